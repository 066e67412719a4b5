//! Events of sessions for the crate `tracing`: about joins, reports, cuts, repairs, blocks and parents.
//!
//! The transport has no clock, so each event contains the time of its session. `docs/tracing.md` describes targets, messages and
//! fields. Only this file depends on the feature `tracing`. Without the feature, a [`Scope`] is empty and its methods have no
//! effect.

use crate::error::Error;
use faircast_core::node::Observation;
use faircast_core::packet::{Cause, Flags, ReceiverId, Report, ReportContent};
use faircast_core::time::Time;
use faircast_wire::{Announce, DataPacket, Message};
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

/// The role of a source.
pub(crate) const SOURCE: &str = "source";
/// The role of a receiver.
pub(crate) const RECEIVER: &str = "receiver";
/// The role of a relay, upstream and downstream.
pub(crate) const RELAY: &str = "relay";

#[cfg(feature = "tracing")]
mod sink {
    use faircast_core::packet::ReceiverId;
    use std::sync::Arc;
    use tracing::field::DisplayValue;

    #[derive(Debug, Clone, Default)]
    pub(super) struct Names {
        pub(super) session: Arc<str>,
        pub(super) role: &'static str,
        pub(super) receiver: Option<ReceiverId>,
    }

    impl Names {
        pub(super) fn new(session: &str, role: &'static str) -> Names {
            Names { session: session.into(), role, receiver: None }
        }

        pub(super) fn of(self, receiver: ReceiverId) -> Names {
            Names { receiver: Some(receiver), ..self }
        }

        pub(super) fn receiver(&self) -> Option<DisplayValue<ReceiverId>> {
            self.receiver.map(text)
        }
    }

    /// Returns the text form of a receiver ID.
    pub(super) fn text(id: ReceiverId) -> DisplayValue<ReceiverId> {
        tracing::field::display(id)
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

    #[derive(Debug, Clone, Default)]
    pub(super) struct Names;

    impl Names {
        pub(super) fn new(_: &str, _: &'static str) -> Names {
            Names
        }

        pub(super) fn of(self, _: ReceiverId) -> Names {
            self
        }

        pub(super) fn receiver(&self) {}
    }

    pub(super) fn text(id: ReceiverId) -> ReceiverId {
        id
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

    /// Returns the same scope for this receiver.
    pub(crate) fn of(self, receiver: ReceiverId) -> Scope {
        Scope(self.0.of(receiver))
    }

    /// Traces that a member has joined.
    pub(crate) fn joined(&self, receiver: ReceiverId, host: &str, address: SocketAddr, at: Time) {
        emit!(self, INFO, "faircast::join", at, "member joined", receiver = %receiver, host = host, address = %address);
    }

    /// Traces that a member has left.
    pub(crate) fn left(&self, receiver: ReceiverId, host: &str, reason: &str, at: Time) {
        emit!(self, INFO, "faircast::join", at, "member left", receiver = %receiver, host = host, reason = reason);
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

    /// Traces a rate cut of a scheme.
    pub(crate) fn cut(&self, before: &Observation, seen: &Observation, why: Call<'_>, at: Time) {
        let (receiver, limiting) = (why.receiver(), seen.limiting);
        emit!(
            self,
            DEBUG,
            "faircast::cut",
            at,
            "rate cut",
            receiver = receiver.map(text),
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
        let report = match self {
            Call::Report(report) => report,
            Call::Deadline => return "deadline",
            Call::Control => return "control",
        };
        match report.content {
            ReportContent::Congested { cause, .. } | ReportContent::Averaged { cause, .. } => match cause {
                Cause::Loss => "loss",
                Cause::Accumulation => "accumulation",
                Cause::Mark => "mark",
                _ => "report",
            },
            ReportContent::Lost { .. } => "loss",
            ReportContent::Selective { .. }
            | ReportContent::Acknowledged { .. }
            | ReportContent::Summary { .. }
            | ReportContent::Newest { .. } => "acknowledgement",
            ReportContent::Calculated { .. } | ReportContent::Received { .. } => "rate",
            ReportContent::Alive { .. } | ReportContent::Answered { .. } => "report",
        }
    }
}
