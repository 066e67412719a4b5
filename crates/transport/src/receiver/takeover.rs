//! Takeover: another session of the same source replaces the followed session, which has been interrupted.
//!
//! The followed session must be silent, as for a source that moves. The new session must answer a query, like every session
//! before it is joined. By its source's own clock, it must have begun after the last packet of the followed session. So two
//! simultaneous sessions of one host do not end each other during a short network failure. The clocks of different hosts are
//! never compared.

use super::reachability::MOVED_AFTER;
use super::{ParentLink, Phase, ReceiverSession, Totals};
use crate::config::{Destination, ReplayPolicy};
use crate::error::{Error, TransferError};
use crate::event::Event;
use faircast_core::packet::SessionId;
use faircast_core::time::{Span, Time};
use faircast_wire::{Announce, MemberState, Message};
use std::net::{IpAddr, SocketAddr};

/// Maximum time that an announcement may have spent in relays.
const AGE_MARGIN: Span = Span::from_millis(500);

impl ReceiverSession {
    /// Whether the followed session has been silent long enough to be left for another session, or serves no data.
    pub(super) fn is_quiet(&self, now: Time) -> bool {
        now.since(self.clocks.received_at) >= MOVED_AFTER || self.is_unserved()
    }

    /// Whether another announced session may replace the followed one: it has the same content, or is a later session of the same
    /// source.
    pub(super) fn may_succeed(&self, session: SessionId, announce: &Announce, now: Time) -> bool {
        let Some(stream) = &self.stream else { return false };
        // Without answers of sources, an older session may be a recording.
        let is_fresh =
            self.setup.replay_policy == ReplayPolicy::Answer || announce.started >= stream.announced.started;
        let is_same_content = stream.announced.transfer == announce.transfer;
        let began_later = age(announce) <= now.since(self.clocks.received_at) + AGE_MARGIN;
        is_fresh && (is_same_content || began_later && self.is_of_the_source(session, announce))
    }

    /// Whether the announcement comes from the source of the followed session: from the same address, or with the same key and
    /// name.
    fn is_of_the_source(&self, session: SessionId, announce: &Announce) -> bool {
        let Some(stream) = &self.stream else { return false };
        let key = self.codec.key_of(session);
        let is_under_its_key = key.is_some() && key == self.codec.key_of(stream.session);
        host_of(announce) == host_of(&stream.announced)
            || is_under_its_key && announce.name == stream.announced.name
    }

    /// Ends the followed session if it was interrupted and the announced session replaces it. Another receiver of this host takes
    /// part in the announced session.
    pub(super) fn yield_to(&mut self, session: SessionId, announce: &Announce, now: Time) {
        if !self.is_quiet(now) || !self.may_move() || !self.may_succeed(session, announce, now) {
            return;
        }
        self.end_superseded(announce, now);
    }

    /// Ends the followed session in favour of another session. The followed session fails if content is still missing.
    fn end_superseded(&mut self, announce: &Announce, now: Time) {
        if self.phase == Phase::Receiving {
            let silent = now.since(self.clocks.received_at);
            self.failure = Some(Error::Transfer(TransferError::Superseded {
                host: announce.name.to_string(),
                silent: std::time::Duration::from_nanos(silent.as_nanos()),
            }));
            self.totals.finished = now;
        }
        self.phase = Phase::Over;
    }

    /// Follows another session of a restarted source: continues with the stored blocks, or with other content.
    pub(super) fn follow_restarted(
        &mut self,
        session: SessionId,
        announce: Announce,
        from: SocketAddr,
        now: Time,
    ) {
        if self.setup.relay.is_some() {
            // The cached symbols belong to the session that has ended. Downstream receivers follow the new session by themselves.
            // The source of the new session does not know this relay, so the source is not notified of the failure.
            self.failure = Some(Error::Transfer(TransferError::SourceRestarted));
            self.totals.finished = now;
            self.phase = Phase::Over;
            return;
        }
        let is_other =
            self.stream.as_ref().is_some_and(|stream| stream.announced.transfer != announce.transfer);
        if is_other || self.phase != Phase::Receiving {
            return self.follow_other(session, announce, from, now);
        }
        let Ok(trust) = self.trust_in(session, &announce) else { return };
        let last_received_at = self.clocks.received_at;
        if !self.begin_with(session, announce, from, now) {
            return;
        }
        self.scope.found(&announce, now);
        let Some(stream) = &mut self.stream else { return };
        stream.trust = trust;
        stream.withdrawn = 0;
        let restarted = stream.sink.restart(now, trust);
        // A finishing receiver continues with the root hash of the former session, unless blocks are to be verified again.
        if stream.finishing_since.is_none() || !stream.sink.is_complete() {
            (stream.root, stream.finishing_since) = (None, None);
        }
        self.report_takeover(&announce, now.since(last_received_at), "continuing with the verified part");
        if let Err(error) = restarted {
            self.fail(error, now);
        }
    }

    /// Follows a session with other content. Verified blocks of the former content remain stored; the new blocks are stored
    /// separately.
    fn follow_other(&mut self, session: SessionId, announce: Announce, from: SocketAddr, now: Time) {
        if self.trust_in(session, &announce).is_err() {
            return;
        }
        if self.phase != Phase::Receiving || matches!(self.setup.destination, Destination::Writer(_)) {
            return self.end_superseded(&announce, now);
        }
        let Some(former) = self.stream.take() else { return };
        let verified = former.sink.stored_bytes();
        let goes_on = format!(
            "the new session has other content; {verified} verified bytes of the former session remain stored"
        );
        self.report_takeover(&announce, now.since(self.clocks.received_at), &goes_on);
        // The former process of the source may still be running, and must not wait for this receiver.
        let member = self.stranger(MemberState::Leaving, 0);
        for _ in 0..2 {
            self.outbox.add_to(former.session, Message::Member(member.clone()), former.source, now);
        }
        drop(former);
        (self.under, self.totals) = (ParentLink::default(), Totals::default());
        self.clocks.silence_reported = false;
        if let Err(error) = self.follow(session, announce, from, now) {
            self.refuse(session, error, from, now);
        }
    }

    /// Reports that another session replaces the followed one, and how this receiver continues.
    fn report_takeover(&mut self, announce: &Announce, silent: Span, goes_on: &str) {
        self.events.push_back(Event::warning(format!(
            "{} started a new session, so the session that was interrupted {:.0} s ago ends; {goes_on}",
            announce.name,
            silent.as_secs_f64()
        )));
    }
}

/// Returns the age of a session at its announcement, by its source's clock. The result is up to a second too small.
pub(super) fn age(announce: &Announce) -> Span {
    Span::from_nanos(announce.unix_secs.saturating_mul(1_000_000_000).saturating_sub(announce.started))
}

/// Returns the host of a source. If a source serves hosts by unicast only, its own address is a loopback address. Its relay in
/// the same process has an address of the host.
pub(super) fn host_of(announce: &Announce) -> IpAddr {
    let Announce { source, parent, .. } = announce;
    if source.ip().is_loopback() { parent.ip() } else { source.ip() }
}
