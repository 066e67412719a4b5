//! Sessions that are heard and cannot be followed. Who runs their sources wants to know, and hears of it in a few packets.

use super::ReceiverSession;
use crate::config::Freshness;
use crate::error::Seen;
use faircast_core::packet::SessionId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{KeyId, Message, Name, Refusal, RefusalReason};
use std::net::SocketAddr;

/// So many sessions are told at a time.
const MOST: usize = 8;

/// So often each.
const TIMES: u32 = 2;

/// Not at once, for what is wanted may come, too; and not all receivers at the same moment.
const FIRST: Span = Span::from_millis(300);
const SPREAD: Span = Span::from_millis(1_200);
const AGAIN: Span = Span::from_secs(10);

/// Who is not heard for so long is told no more,
const GONE_AFTER: Span = Span::from_secs(5);

/// and after so long it is forgotten that it was told.
const FORGOTTEN_AFTER: Span = Span::from_secs(600);

/// A session that is heard.
#[derive(Debug)]
struct Objection {
    session: SessionId,
    source: SocketAddr,
    reason: RefusalReason,
    heard_at: Time,
    say_at: Time,
    said: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Objections(Vec<Objection>);

impl Objections {
    fn hear(
        &mut self,
        session: SessionId,
        source: SocketAddr,
        reason: RefusalReason,
        now: Time,
        rng: &mut Rng,
    ) {
        let known = self.0.iter_mut().find(|one| (one.session, one.source) == (session, source));
        if let Some(known) = known {
            (known.reason, known.heard_at) = (reason, now);
            return;
        }
        self.0.retain(|one| now.since(one.heard_at) < FORGOTTEN_AFTER);
        if self.0.len() < MOST {
            let say_at = now + FIRST + SPREAD.scaled(rng.unit());
            self.0.push(Objection { session, source, reason, heard_at: now, say_at, said: 0 });
        }
    }

    /// When one of them is to be told.
    pub(super) fn deadline(&self) -> Time {
        self.0.iter().map(|one| one.say_at).min().unwrap_or(Time::NEVER)
    }

    fn due(&mut self, now: Time) -> Vec<(SessionId, SocketAddr, RefusalReason)> {
        let mut due = Vec::new();
        for one in self.0.iter_mut().filter(|one| one.say_at <= now) {
            one.say_at = Time::NEVER;
            if now.since(one.heard_at) < GONE_AFTER {
                due.push((one.session, one.source, one.reason));
                one.said += 1;
                if one.said < TIMES {
                    one.say_at = now + AGAIN;
                }
            }
        }
        due
    }
}

impl ReceiverSession {
    /// A session is heard that this receiver cannot follow.
    pub(super) fn object(&mut self, session: SessionId, from: SocketAddr, seen: Seen, now: Time) {
        self.seen = Some(seen);
        if self.stream.is_none()
            && self.setup.freshness == Freshness::Answer
            && let Some(reason) = reason(seen)
        {
            self.objections.hear(session, from, reason, now, &mut self.rng);
        }
    }

    /// Another session is announced where this receiver takes part in one: whoever sends it should know.
    pub(super) fn object_to_another(&mut self, session: SessionId, from: SocketAddr, now: Time) {
        if self.setup.freshness == Freshness::Answer && self.setup.relay.is_none() {
            self.objections.hear(session, from, RefusalReason::Busy, now, &mut self.rng);
        }
    }

    /// Tell those whose time has come.
    pub(super) fn refuse_sessions(&mut self, now: Time) {
        for (session, to, reason) in self.objections.due(now) {
            let accept = &self.setup.accept;
            let is_moot = accept.does_one_wait() || accept.is_anothers(session, self.setup.id);
            if reason == RefusalReason::Busy && is_moot {
                continue; // another receiver of this host can take it, or has
            }
            let (from, host) = (self.setup.id, Name::clipped(&self.setup.host));
            let key = self.codec.first_key().unwrap_or(KeyId(0));
            self.outbox.add_to(session, Message::Refusal(Refusal { from, reason, key, host }), to, now);
        }
    }
}

/// What the source is told; `None`: it is not its matter.
const fn reason(seen: Seen) -> Option<RefusalReason> {
    Some(match seen {
        Seen::Sealed => RefusalReason::NoKey,
        Seen::OtherKey(_) => RefusalReason::OtherKey,
        Seen::Unsealed => RefusalReason::Unsealed,
        Seen::Unsigned | Seen::UnsignedStreams => RefusalReason::Unsigned,
        Seen::OtherSigner => RefusalReason::OtherSigner,
        Seen::WrongSignature => RefusalReason::WrongSignature,
        Seen::UnknownScheme => RefusalReason::UnknownScheme,
        Seen::Version(_) => RefusalReason::OtherVersion,
        Seen::NotAccepted => RefusalReason::NotAccepted,
        Seen::PacketSize | Seen::Senseless => RefusalReason::Senseless,
        Seen::Stale
        | Seen::OneWay
        | Seen::Layered
        | Seen::NoAgents
        | Seen::NoRouter(_)
        | Seen::NoParent(_)
        | Seen::Uninvited
        | Seen::Elsewhere { .. }
        | Seen::DoesNotOpen
        | Seen::Unanswering(_)
        | Seen::NotPgm(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn however_many_sessions_are_announced_few_packets_leave() {
        let mut objections = Objections::default();
        let (mut rng, mut said) = (Rng::new(1, 1), 0);
        for millis in (0..500_000).step_by(20) {
            let (session, port) = (SessionId(millis as u32 % 977), 1_000 + (millis % 9_973) as u16);
            let source = SocketAddr::from(([10, 0, 0, 1], port));
            objections.hear(session, source, RefusalReason::OtherKey, at(millis), &mut rng);
            said += objections.due(at(millis)).len();
        }
        assert!(said <= 2 * MOST, "{said}");
    }

    #[test]
    fn a_session_is_told_soon_and_once_more() {
        let mut objections = Objections::default();
        let (mut rng, mut told) = (Rng::new(2, 1), Vec::new());
        let source = SocketAddr::from(([10, 0, 0, 1], 9));
        for millis in (0..60_000).step_by(250) {
            objections.hear(SessionId(7), source, RefusalReason::NoKey, at(millis), &mut rng);
            told.extend(objections.due(at(millis)).iter().map(|_| millis));
        }
        assert!(matches!(told[..], [first, _] if (300..1_800).contains(&first)), "{told:?}");
    }
}
