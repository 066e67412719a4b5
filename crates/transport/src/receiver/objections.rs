//! Refusals: a receiver reports to the source of a received session why it does not follow that session.

use super::{Phase, ReceiverSession};
use crate::config::ReplayPolicy;
use crate::error::JoinObstacle;
use crate::event::Event;
use faircast_core::packet::SessionId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{Announce, KeyId, Message, Name, Refusal, RefusalReason};
use std::net::SocketAddr;

/// Maximum number of sessions that are refused at a time.
const MAX_SESSIONS: usize = 8;

/// Number of refusals sent to each session.
const TIMES: u32 = 2;

/// Delay of the first refusal. During this delay, this receiver or another receiver of its host may follow the session after all.
/// The delay also keeps receivers from answering at the same moment.
const FIRST: Span = SILENT;
const SPREAD: Span = Span::from_millis(1_200);
const AGAIN: Span = Span::from_secs(10);

/// Duration of silence after which a source gets no more refusals.
const GONE_AFTER: Span = Span::from_secs(5);

/// Time after which a refusal is forgotten.
const FORGOTTEN_AFTER: Span = Span::from_secs(600);

/// Duration of silence of the followed source after which a receiver does not count as busy, because it may soon follow another
/// source.
const SILENT: Span = Span::from_secs(1);

/// The reason that a session is not followed.
#[derive(Debug, Clone, Copy)]
struct About {
    reason: RefusalReason,
    /// For a busy receiver: the host name of the refused session's source; `is_same_content`: whether this receiver already
    /// receives the content of the refused session.
    host: Name,
    is_same_content: bool,
}

/// A received session that is refused.
#[derive(Debug)]
struct Objection {
    session: SessionId,
    source: SocketAddr,
    about: About,
    last_received_at: Time,
    send_at: Time,
    times_sent: u32,
}

impl About {
    /// Returns the refusal of a session that this receiver cannot follow.
    const fn own(reason: RefusalReason) -> About {
        About { reason, host: Name::EMPTY, is_same_content: false }
    }
}

/// A refusal to send now.
struct Due {
    session: SessionId,
    source: SocketAddr,
    about: About,
    is_first: bool,
}

/// The refusals of all sessions.
#[derive(Debug, Default)]
pub(super) struct Objections(Vec<Objection>);

impl Objections {
    fn receive(&mut self, session: SessionId, source: SocketAddr, about: About, now: Time, rng: &mut Rng) {
        let known = self.0.iter_mut().find(|one| (one.session, one.source) == (session, source));
        if let Some(known) = known {
            (known.about, known.last_received_at) = (about, now);
            return;
        }
        self.0.retain(|one| now.since(one.last_received_at) < FORGOTTEN_AFTER);
        if self.0.len() < MAX_SESSIONS {
            let send_at = now + FIRST + SPREAD.scaled(rng.unit());
            self.0.push(Objection { session, source, about, last_received_at: now, send_at, times_sent: 0 });
        }
    }

    /// Schedules the first refusals no later than `at`, when this receiver will have completed and may end.
    pub(super) fn hasten(&mut self, at: Time) {
        self.0.iter_mut().filter(|one| one.times_sent == 0).for_each(|one| one.send_at = one.send_at.min(at));
    }

    /// Returns the time of the next refusal.
    pub(super) fn deadline(&self) -> Time {
        self.0.iter().map(|one| one.send_at).min().unwrap_or(Time::NEVER)
    }

    fn due(&mut self, now: Time) -> Vec<Due> {
        let mut due = Vec::new();
        for one in self.0.iter_mut().filter(|one| one.send_at <= now) {
            one.send_at = Time::NEVER;
            if now.since(one.last_received_at) < GONE_AFTER {
                due.push(Due {
                    session: one.session,
                    source: one.source,
                    about: one.about,
                    is_first: one.times_sent == 0,
                });
                one.times_sent += 1;
                if one.times_sent < TIMES {
                    one.send_at = now + AGAIN;
                }
            }
        }
        due
    }
}

impl ReceiverSession {
    /// Records a session that this receiver cannot follow.
    pub(super) fn object(&mut self, session: SessionId, from: SocketAddr, seen: JoinObstacle, now: Time) {
        self.seen = Some(seen);
        if self.stream.is_none()
            && self.setup.replay_policy == ReplayPolicy::Answer
            && let Some(reason) = reason(seen)
        {
            self.objections.receive(session, from, About::own(reason), now, &mut self.rng);
        }
    }

    /// Records a session that is announced while this receiver takes part in another session. The users at the source and at the
    /// receiver should be notified.
    pub(super) fn object_to_another(
        &mut self,
        session: SessionId,
        announce: &Announce,
        from: SocketAddr,
        now: Time,
    ) {
        if self.setup.relay.is_some() {
            return;
        }
        let is_same_content =
            self.stream.as_ref().is_some_and(|stream| stream.announced.transfer == announce.transfer);
        let about = About { reason: RefusalReason::Busy, host: announce.name, is_same_content };
        self.objections.receive(session, from, about, now, &mut self.rng);
    }

    /// Sends the refusals that are due.
    pub(super) fn refuse_sessions(&mut self, now: Time) {
        for due in self.objections.due(now) {
            let is_busy = due.about.reason == RefusalReason::Busy;
            if is_busy && self.may_follow_soon(&due, now) {
                continue;
            }
            if is_busy && due.is_first {
                self.events.extend(self.stream.as_ref().map(|stream| Event::OtherSource {
                    host: due.about.host.to_string(),
                    address: due.source,
                    followed: stream.announced.name.to_string(),
                }));
            }
            if self.setup.replay_policy == ReplayPolicy::Answer {
                let refusal = self.refusal(&due, now);
                self.outbox.add_to(due.session, Message::Refusal(refusal), due.source, now);
            }
        }
    }

    /// Whether this receiver, or another receiver of this host, may follow the session after all.
    fn may_follow_soon(&self, due: &Due, now: Time) -> bool {
        let accept = &self.setup.accept;
        let is_breaking_off = self.phase == Phase::Receiving && now.since(self.clocks.received_at) >= SILENT;
        // Another receiver of this host waits for a session. It does not take content that this receiver already writes.
        let is_waited_for = accept.does_one_wait() && !due.about.is_same_content;
        // A completed receiver is soon free for the session, if several receivers of this host share a limit of sessions.
        let makes_room = match self.phase {
            Phase::Searching | Phase::Receiving => false,
            Phase::Confirming { .. } => self.failure.is_some() || accept.places.is_some(),
            Phase::Over => true,
        };
        let is_followed = self.stream.as_ref().is_some_and(|stream| stream.session == due.session);
        makes_room
            || is_followed
            || is_breaking_off
            || is_waited_for
            || accept.is_anothers(due.session, self.setup.id)
    }

    fn refusal(&self, due: &Due, now: Time) -> Refusal {
        let key = self.codec.first_key().unwrap_or(KeyId(0));
        let refusal = Refusal::new(self.setup.id, due.about.reason, key, Name::clipped(&self.setup.host));
        let Some(stream) = self.stream.as_ref().filter(|_| due.about.reason == RefusalReason::Busy) else {
            return refusal;
        };
        // Members of another group must not receive names of this group.
        let may_know = self.codec.key_of(due.session) == self.codec.key_of(stream.session);
        let content = stream.title.as_deref().unwrap_or_default();
        Refusal {
            source: if may_know { stream.announced.name } else { Name::EMPTY },
            content: if may_know { Name::clipped(content) } else { Name::EMPTY },
            seconds: if self.finished.is_some() { Some(0) } else { self.seconds_left(now) },
            ..refusal
        }
    }

    /// Returns the estimated number of seconds to completion, at least 1, based on the bytes received so far.
    fn seconds_left(&self, now: Time) -> Option<u32> {
        let sink = &self.stream.as_ref()?.sink;
        let (gathered, all) = (sink.gathered_bytes(), sink.content_bytes()?);
        let moved = gathered.saturating_sub(sink.resumed_bytes().0) as f64;
        let elapsed = now.since(self.totals.first_packet?).as_secs_f64();
        let left = all.saturating_sub(gathered) as f64 * elapsed / moved;
        left.is_finite().then_some((left.ceil() as u32).max(1))
    }
}

/// Returns the refusal reason for the source; `None` if the obstacle does not concern the source.
const fn reason(seen: JoinObstacle) -> Option<RefusalReason> {
    Some(match seen {
        JoinObstacle::Sealed => RefusalReason::NoKey,
        JoinObstacle::OtherKey(_) => RefusalReason::OtherKey,
        JoinObstacle::Unsealed => RefusalReason::Unsealed,
        JoinObstacle::Unsigned | JoinObstacle::UnsignedStreams => RefusalReason::Unsigned,
        JoinObstacle::OtherSigner => RefusalReason::OtherSigner,
        JoinObstacle::WrongSignature => RefusalReason::WrongSignature,
        JoinObstacle::UnknownScheme => RefusalReason::UnknownScheme,
        JoinObstacle::Version(_) => RefusalReason::OtherVersion,
        JoinObstacle::NotAccepted => RefusalReason::NotAccepted,
        JoinObstacle::PacketSize | JoinObstacle::Senseless => RefusalReason::Senseless,
        JoinObstacle::Stale
        | JoinObstacle::OneWay
        | JoinObstacle::OtherHosts
        | JoinObstacle::Layered
        | JoinObstacle::NoAgents
        | JoinObstacle::NoRouter(_)
        | JoinObstacle::NoParent(_)
        | JoinObstacle::Uninvited
        | JoinObstacle::Elsewhere { .. }
        | JoinObstacle::DoesNotOpen
        | JoinObstacle::Unanswering(_)
        | JoinObstacle::OtherFormat { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn number_of_refusals_of_announced_sessions_is_bounded() {
        let mut objections = Objections::default();
        let (mut rng, mut times_sent) = (Rng::new(1, 1), 0);
        for millis in (0..500_000).step_by(20) {
            let (session, port) = (SessionId(millis as u32 % 977), 1_000 + (millis % 9_973) as u16);
            let source = SocketAddr::from(([10, 0, 0, 1], port));
            objections.receive(session, source, About::own(RefusalReason::OtherKey), at(millis), &mut rng);
            times_sent += objections.due(at(millis)).len();
        }
        assert!(times_sent <= 2 * MAX_SESSIONS, "{times_sent}");
    }

    #[test]
    fn refusal_is_sent_within_two_seconds_and_repeated_once() {
        let mut objections = Objections::default();
        let (mut rng, mut reported) = (Rng::new(2, 1), Vec::new());
        let source = SocketAddr::from(([10, 0, 0, 1], 9));
        for millis in (0..60_000).step_by(250) {
            objections.receive(SessionId(7), source, About::own(RefusalReason::NoKey), at(millis), &mut rng);
            reported.extend(objections.due(at(millis)).iter().map(|_| millis));
        }
        assert!(matches!(reported[..], [first, _] if (300..1_800).contains(&first)), "{reported:?}");
    }
}
