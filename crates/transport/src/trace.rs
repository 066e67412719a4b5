//! Events of sessions for the crate `tracing`: about joins, reports, cuts, repairs, blocks and parents.
//!
//! The transport has no clock, so each event contains the time of its session. `docs/tracing.md` describes targets, messages and
//! fields. Only this file depends on the feature `tracing`. Without the feature, a [`Scope`] is empty and its methods have no
//! effect.

use crate::error::Error;
use crate::event::{Limit, Progress};
use faircast_core::estimate::RoundTrip;
use faircast_core::node::Observation;
use faircast_core::packet::{Flags, ReceiverId, Report};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Announce, DataPacket, Message, Window};
use sink::{emit, text};
use std::net::SocketAddr;

/// The session of traced events, and the role of this endpoint in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope(sink::Names);

/// The reason for calling a scheme.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call<'a> {
    /// A report has arrived.
    Report(&'a Report),
    /// The scheme's deadline has passed.
    Deadline,
    /// The session has called a control function of the scheme.
    Control,
}

/// The rate of a source since the last sample, and its limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateSample {
    /// Rate of the sent packets.
    pub(crate) rate: Rate,
    /// Factor that limited the rate; if it was a window, also its receiver.
    pub(crate) limit: Option<(Limit, Option<ReceiverId>)>,
    /// Duration for which windows held the source.
    pub(crate) held: Span,
    /// Number of sent data packets, and of those with repair symbols.
    pub(crate) packets: u64,
    pub(crate) repairs: u64,
    /// Number of active layers of a layered session.
    pub(crate) layers: Option<u8>,
    /// State of the scheme.
    pub(crate) seen: Observation,
}

/// A session at its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning<'a> {
    /// The scheme with its options.
    pub(crate) scheme: &'a str,
    pub(crate) receivers: u64,
    /// Maximum number of layers.
    pub(crate) layers: u8,
    /// Size of a datagram with a symbol, IP and UDP headers included.
    pub(crate) packet_bytes: usize,
    /// Configured maximum rate.
    pub(crate) max: Option<Rate>,
}

/// A session at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending<'a> {
    pub(crate) receivers: u64,
    pub(crate) verified: u64,
    /// Time from the first data packet to completion at all receivers, or to the end.
    pub(crate) sending: Span,
    /// Number of sent data packets.
    pub(crate) packets: u64,
    /// Number of symbols sent, divided by the number of symbols of the content.
    pub(crate) repair_ratio: f64,
    pub(crate) cuts: u64,
    /// Reason of a failure.
    pub(crate) failure: Option<&'a Error>,
}

/// The path to a member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// Number of receivers: more than one below a relay.
    pub(crate) receivers: u32,
    pub(crate) loss: f32,
    pub(crate) round_trip: RoundTrip,
}

/// The role of a source.
pub(crate) const SOURCE: &str = "source";
/// The role of a receiver.
pub(crate) const RECEIVER: &str = "receiver";
/// The role of a relay, upstream and downstream.
pub(crate) const RELAY: &str = "relay";

#[cfg(feature = "tracing")]
mod sink {
    use faircast_core::packet::ReceiverId;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use tracing::field::DisplayValue;

    #[derive(Debug, Clone, Default)]
    pub(super) struct Names {
        pub(super) session: Arc<str>,
        pub(super) role: &'static str,
        pub(super) receiver: Option<ReceiverId>,
        pub(super) branch: Option<SocketAddr>,
    }

    impl Names {
        pub(super) fn new(session: &str, role: &'static str) -> Names {
            Names { session: session.into(), role, receiver: None, branch: None }
        }

        pub(super) fn of(self, receiver: ReceiverId) -> Names {
            Names { receiver: Some(receiver), ..self }
        }

        pub(super) fn on(self, branch: SocketAddr) -> Names {
            Names { branch: Some(branch), ..self }
        }

        pub(super) fn receiver(&self) -> Option<DisplayValue<ReceiverId>> {
            self.receiver.map(text)
        }
    }

    /// Returns the text form of a receiver ID, or of an error.
    pub(super) fn text<T: std::fmt::Display>(value: T) -> DisplayValue<T> {
        tracing::field::display(value)
    }

    /// Emits an event of this scope, level, target, time and message. Fields are those of `tracing::event!`.
    macro_rules! emit {
        ($scope:expr, $level:ident, $target:literal, $at:expr, $message:literal
            $(, $field:ident = $(% $shown:ident)? $(? $debug:ident)? $($value:expr)?)* $(,)?) => {
            tracing::event!(
                target: $target,
                tracing::Level::$level,
                session = &*$scope.0.session,
                role = $scope.0.role,
                branch = $scope.0.branch.map(text),
                at = $at.as_secs_f64(),
                $($field = $(%$shown)? $(?$debug)? $($value)?,)*
                $message
            )
        };
    }
    pub(super) use emit;
}

#[cfg(not(feature = "tracing"))]
mod sink {
    use faircast_core::packet::ReceiverId;
    use std::net::SocketAddr;

    #[derive(Debug, Clone, Default)]
    pub(super) struct Names;

    impl Names {
        pub(super) fn new(_: &str, _: &'static str) -> Names {
            Names
        }

        pub(super) fn of(self, _: ReceiverId) -> Names {
            self
        }

        pub(super) fn on(self, _: SocketAddr) -> Names {
            self
        }

        pub(super) fn receiver(&self) {}
    }

    pub(super) const fn text<T>(value: T) -> T {
        value
    }

    /// Checks the types of the values. No code is generated.
    macro_rules! emit {
        ($scope:expr, $level:ident, $target:literal, $at:expr, $message:literal
            $(, $field:ident = $(% $shown:ident)? $(? $debug:ident)? $($value:expr)?)* $(,)?) => {
            if false {
                let _ = (&$scope.0, $at, $($(&$shown)? $(&$debug)? $(&$value)?,)*);
            }
        };
    }
    pub(super) use emit;
}

impl Scope {
    /// Returns the scope of this session and role.
    pub(crate) fn new(session: &str, role: &'static str) -> Scope {
        Scope(sink::Names::new(session, role))
    }

    /// Returns the same scope for a branch of a relay.
    pub(crate) fn on(self, branch: SocketAddr) -> Scope {
        Scope(self.0.on(branch))
    }

    /// Returns the same scope for this receiver.
    pub(crate) fn of(self, receiver: ReceiverId) -> Scope {
        Scope(self.0.of(receiver))
    }

    /// Traces that a member has joined.
    pub(crate) fn joined(&self, receiver: ReceiverId, host: &str, address: SocketAddr, at: Time) {
        emit!(self, INFO, "faircast::join", at, "member joined", receiver = %receiver, host = host, address = %address);
    }

    /// Traces that a member has left, with its path unless the member has moved.
    pub(crate) fn left(&self, receiver: ReceiverId, host: &str, reason: &str, path: Option<Path>, at: Time) {
        let millis = |of: fn(&RoundTrip) -> Option<Span>| Some(of(&path?.round_trip)?.as_secs_f64() * 1e3);
        emit!(
            self, INFO, "faircast::join", at, "member left", receiver = %receiver, host = host, reason = reason,
            receivers = path.map(|path| path.receivers), loss = path.map(|path| f64::from(path.loss)),
            rtt_ms = millis(RoundTrip::least), congested_rtt_ms = millis(RoundTrip::congested)
        );
    }

    /// Traces that a member was given up.
    pub(crate) fn given_up(&self, receiver: ReceiverId, host: &str, reason: &str, at: Time) {
        emit!(self, WARN, "faircast::join", at, "member given up", receiver = %receiver, host = host, reason = reason);
    }

    /// Traces that a receiver has found its session.
    pub(crate) fn found(&self, announce: &Announce, at: Time) {
        let (source, parent) = (announce.source, announce.parent);
        emit!(self, INFO, "faircast::join", at, "session found", receiver = self.0.receiver(), address = %source);
        if parent != source {
            let hops = announce.hops;
            emit!(self, INFO, "faircast::relay", at, "relay attached", receiver = self.0.receiver(), parent = %parent, hops = hops);
        }
    }

    /// Traces that a receiver's parent has confirmed the receiver's membership.
    pub(crate) fn admitted(&self, at: Time) {
        emit!(self, INFO, "faircast::join", at, "receiver admitted", receiver = self.0.receiver());
    }

    /// Traces that a receiver has a new parent: a source, a relay or an agent.
    pub(crate) fn moved(&self, parent: SocketAddr, reason: &str, at: Time) {
        emit!(self, INFO, "faircast::relay", at, "parent changed", receiver = self.0.receiver(), parent = %parent, reason = reason);
    }

    /// Traces that a relay begins to serve a group or a host.
    pub(crate) fn serves(&self, to: SocketAddr, at: Time) {
        emit!(self, INFO, "faircast::relay", at, "branch begun", address = %to);
    }

    /// Traces a message of a receiver to its parent.
    pub(crate) fn sent(&self, message: &Message<'_>, at: Time) {
        self.message(message, "sent", at);
    }

    /// Traces a message that a parent has received from a receiver.
    pub(crate) fn received(&self, message: &Message<'_>, at: Time) {
        self.message(message, "received", at);
    }

    fn message(&self, message: &Message<'_>, way: &'static str, at: Time) {
        match message {
            Message::Report(Report { from, layer, content }) => {
                let (layer, echo) = (layer.0, content.echo().seq.0);
                emit!(self, DEBUG, "faircast::report", at, "report", way = way, receiver = %from, layer = layer, echo = echo, content = ?content);
            }
            Message::Member(member) => {
                let (from, state) = (member.from, member.state);
                let missing = Some(member.blocks_missing).filter(|missing| *missing != u32::MAX);
                emit!(
                    self, DEBUG, "faircast::report", at, "state", way = way, receiver = %from, state = ?state,
                    bytes = member.verified_bytes, blocks_missing = missing,
                    rate_bps = member.rate, loss = member.loss
                );
            }
            Message::Window(window) => {
                let Window { from, echo, limit } = window;
                let limit = Some(limit.0).filter(|_| *limit != Window::UNLIMITED);
                emit!(self, DEBUG, "faircast::window", at, "window", way = way, receiver = %from, echo = echo.seq.0, limit = limit);
            }
            Message::Request(request) => {
                let (from, needs) = (request.from, &request.needs);
                emit!(
                    self, DEBUG, "faircast::repair", at, "repair requested", way = way, receiver = %from,
                    block = needs.first().map(|need| need.first),
                    blocks = needs.iter().map(|need| u64::from(need.run)).sum::<u64>(),
                    symbols = needs.iter().map(|need| u64::from(need.run) * u64::from(need.symbols)).sum::<u64>()
                );
            }
            _ => {}
        }
    }

    /// Traces a data packet of a source or relay.
    pub(crate) fn sends(&self, packet: &DataPacket<'_>, at: Time) {
        if packet.data.flags.has(Flags::REPAIR) {
            let (place, bytes) = (packet.data.payload, packet.payload.len());
            emit!(
                self,
                TRACE,
                "faircast::repair",
                at,
                "repair sent",
                block = place.block,
                symbol = place.symbol,
                bytes = bytes
            );
        }
    }

    /// Traces that a source starts to send.
    pub(crate) fn began(&self, session: &Beginning<'_>, at: Time) {
        emit!(
            self,
            INFO,
            "faircast::session",
            at,
            "session started",
            scheme = session.scheme,
            receivers = session.receivers,
            layers = session.layers,
            packet_bytes = session.packet_bytes,
            max_bps = session.max.map(|max| max.bps())
        );
    }

    /// Traces that a source ends its session.
    pub(crate) fn ended(&self, session: &Ending<'_>, at: Time) {
        emit!(
            self,
            INFO,
            "faircast::session",
            at,
            "session ended",
            receivers = session.receivers,
            verified = session.verified,
            seconds = session.sending.as_secs_f64(),
            packets = session.packets,
            repair_ratio = session.repair_ratio,
            cuts = session.cuts,
            reason = session.failure.map(text)
        );
    }

    /// Traces that a receiver has stored all content.
    pub(crate) fn complete(&self, bytes: u64, at: Time) {
        emit!(
            self,
            INFO,
            "faircast::session",
            at,
            "content complete",
            receiver = self.0.receiver(),
            bytes = bytes
        );
    }

    /// Traces that the factor that limits the rate of a source has changed.
    pub(crate) fn limited(
        &self,
        limit: Limit,
        receiver: Option<ReceiverId>,
        host: Option<&str>,
        rate: Rate,
        allowed: Rate,
        at: Time,
    ) {
        emit!(
            self,
            INFO,
            "faircast::rate",
            at,
            "limit changed",
            limited_by = word(limit),
            receiver = receiver.map(text),
            host = host,
            rate_bps = rate.bps(),
            allowed_bps = allowed.bps()
        );
    }

    /// Traces the rate of a source since the last sample.
    pub(crate) fn sampled(&self, sample: &RateSample, at: Time) {
        let seen = &sample.seen;
        emit!(
            self,
            DEBUG,
            "faircast::rate",
            at,
            "rate sampled",
            rate_bps = sample.rate.bps(),
            allowed_bps = seen.rate.bps(),
            limited_by = sample.limit.map(|(limit, _)| word(limit)),
            window_of = sample.limit.and_then(|(_, holder)| holder).map(text),
            held_ms = sample.held.as_secs_f64() * 1e3,
            limiting = seen.limiting.map(text),
            rtt_ms = seen.rtt.as_secs_f64() * 1e3,
            starting = seen.starting,
            layers = sample.layers,
            packets = sample.packets,
            repairs = sample.repairs,
            cuts = seen.cuts
        );
    }

    /// Traces the numbers of the latest second of a receiver.
    pub(crate) fn received_now(&self, progress: &Progress, at: Time) {
        let counts = progress.counts.as_deref();
        emit!(
            self,
            DEBUG,
            "faircast::rate",
            at,
            "rate received",
            receiver = self.0.receiver(),
            rate_bps = progress.rate.bps(),
            loss = progress.loss,
            bytes = progress.bytes,
            layers = progress.layers.map(|layers| layers.joined),
            packets = counts.map(|counts| counts.packets),
            lost = counts.map(|counts| counts.lost),
            dropped_local = counts.map(|counts| counts.dropped_local)
        );
    }

    /// Traces that the scheme follows another receiver.
    pub(crate) fn follows(&self, before: &Observation, seen: &Observation, host: Option<&str>, at: Time) {
        emit!(
            self,
            DEBUG,
            "faircast::rate",
            at,
            "representative changed",
            receiver = seen.limiting.map(text),
            host = host,
            receiver_before = before.limiting.map(text),
            rate_bps = seen.rate.bps(),
            rtt_ms = seen.rtt.as_secs_f64() * 1e3
        );
    }

    /// Traces a rate cut of a scheme. `host` is the name of the receiver that caused it.
    pub(crate) fn cut(
        &self,
        before: &Observation,
        seen: &Observation,
        why: Call<'_>,
        host: Option<&str>,
        at: Time,
    ) {
        let (receiver, limiting) = (why.receiver(), seen.limiting);
        emit!(
            self,
            DEBUG,
            "faircast::cut",
            at,
            "rate cut",
            receiver = receiver.map(text),
            host = host,
            limiting = limiting.map(text),
            reason = why.reason(),
            rate_before_bps = before.rate.bps(),
            rate_bps = seen.rate.bps(),
            rtt_ms = seen.rtt.as_secs_f64() * 1e3,
            cuts = seen.cuts
        );
    }

    /// Traces a change of a receiver's subscription from `before` to `layers` layers.
    pub(crate) fn layers(&self, before: u8, layers: u8, at: Time) {
        if layers > before {
            emit!(
                self,
                DEBUG,
                "faircast::rate",
                at,
                "layers joined",
                receiver = self.0.receiver(),
                layers_before = before,
                layers = layers
            );
        }
        if layers < before {
            emit!(
                self,
                DEBUG,
                "faircast::cut",
                at,
                "layers left",
                receiver = self.0.receiver(),
                layers_before = before,
                layers = layers
            );
        }
    }

    /// Traces that a block was verified, and is to be stored.
    pub(crate) fn verified(&self, block: u32, bytes: u32, at: Time) {
        emit!(
            self,
            DEBUG,
            "faircast::store",
            at,
            "block verified",
            receiver = self.0.receiver(),
            block = block,
            bytes = bytes
        );
    }

    /// Traces that a completed block differs from the block at the source.
    pub(crate) fn wrong(&self, block: u32, reason: &str, at: Time) {
        emit!(
            self,
            WARN,
            "faircast::store",
            at,
            "block wrong",
            receiver = self.0.receiver(),
            block = block,
            reason = reason
        );
    }

    /// Traces that blocks were stored. `stored` and `verified` are the numbers of bytes of the session that were stored and
    /// verified so far.
    pub(crate) fn stored(&self, stored: u64, verified: u64, at: Time) {
        emit!(
            self,
            DEBUG,
            "faircast::store",
            at,
            "blocks stored",
            receiver = self.0.receiver(),
            bytes = stored,
            bytes_waiting = verified.saturating_sub(stored)
        );
    }

    /// Traces that a receiver has failed.
    pub(crate) fn failed(&self, error: &Error, at: Time) {
        match error {
            Error::Storage(error) => {
                emit!(self, WARN, "faircast::store", at, "store failed", receiver = self.0.receiver(), reason = %error);
            }
            error => {
                emit!(self, WARN, "faircast::join", at, "receiver failed", receiver = self.0.receiver(), reason = %error);
            }
        }
    }
}

/// Returns the factor in one word.
const fn word(limit: Limit) -> &'static str {
    match limit {
        Limit::Congestion => "congestion",
        Limit::Window => "window",
        Limit::Application => "application",
        Limit::Max => "max",
    }
}

impl Call<'_> {
    /// Returns the receiver whose report has caused the call.
    pub(crate) fn receiver(self) -> Option<ReceiverId> {
        match self {
            Call::Report(report) => Some(report.from),
            Call::Deadline | Call::Control => None,
        }
    }

    /// Returns the reason in one word.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Call::Report(report) => report.content.reason(),
            Call::Deadline => "deadline",
            Call::Control => "control",
        }
    }
}
