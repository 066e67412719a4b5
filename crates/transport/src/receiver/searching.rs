//! Announced sources that have not answered yet.
//!
//! An announcement may be a recording, or forged. So a receiver sends a query with a random nonce to the announced address, and
//! follows the session when a status repeats the nonce. The receiver joins the first announced session at once; the join also
//! serves as the query. Other sessions are only queried. The receiver joins one of them if the first session remains silent.

use super::feedback::millis;
use super::reachability::is_relayed;
use super::trust::Trust;
use super::{Event, Phase, ReceiverSession, Stream, reason};
use crate::announced::{geometry_of, packet_size_fits, scheme_of};
use crate::config::ReplayPolicy;
use crate::error::{Error, JoinObstacle, TransferError};
use crate::event::RelayBelow;
use crate::members::{first_turn, stretched};
use crate::membership::NOTHING_YET;
use crate::places::Standing;
use crate::session_filter::Claim;
use faircast_core::packet::SessionId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{
    Announce, Form, Header, Kind, Member, MemberState, Message, Name, Status, Welcome, Words,
};
use std::net::SocketAddr;

/// Maximum number of sources that are queried at a time.
const MAX_ASKED: usize = 8;

/// Number of initial queries to a source that does not answer.
const TRIES: u32 = 6;

/// Interval of further queries to a source that does not answer but is still announced.
const SELDOM: Span = Span::from_secs(15);

/// Pause in the announcements of a source after which it may have been restarted, so that it is queried again.
const AWAY: Span = Span::from_secs(1);

/// Number of queries to a source after a pause of `AWAY`, before the interval is `SELDOM` again.
const TRIES_AGAIN: u32 = 2;

/// First pause between two queries, in addition to the spread. Each later pause is twice as long as the pause before it.
const FIRST_PAUSE: Span = Span::from_millis(10);
const MAX_PAUSE: Span = Span::from_secs(1);

/// Interval of queries to an agent in place of a source.
const ASK_AGENT: Span = Span::from_millis(100);

/// Time after the latest announcement of a source for which the source is still queried.
const GONE_AFTER: Span = Span::from_secs(5);

/// Number of unanswered queries after which a source counts as silent.
const SILENT: u32 = 3;

/// An announced source.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) session: SessionId,
    pub(super) source: SocketAddr,
    pub(super) announce: Announce,
    last_received_at: Time,
    ask_at: Time,
    tries: u32,
}

/// The announced sources that have not answered.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    all: Vec<Candidate>,
    /// The claim of the followed session, which keeps other receivers of this host from following it.
    claim: Option<Claim>,
}

impl Candidate {
    /// Schedules a query of a rarely queried source at this time or earlier, because the source may answer now.
    fn ask_again(&mut self, at: Time) {
        if self.tries >= TRIES {
            (self.tries, self.ask_at) = (TRIES - TRIES_AGAIN, self.ask_at.min(at));
        }
    }
}

impl Candidates {
    /// Records an announcement of a source.
    fn receive(
        &mut self,
        session: SessionId,
        source: SocketAddr,
        announce: Announce,
        now: Time,
        rng: &mut Rng,
    ) {
        self.all.retain(|candidate| now.since(candidate.last_received_at) < GONE_AFTER);
        if let Some(known) = self.find(session, source) {
            let (before, spread) = (millis(known.announce.spread_ms), millis(announce.spread_ms));
            known.ask_at = stretched(known.ask_at, now, before, spread);
            if now.since(known.last_received_at) >= AWAY {
                known.ask_again(now + first_turn(spread, rng));
            }
            (known.announce, known.last_received_at) = (announce, now);
            return;
        }
        if self.all.len() == MAX_ASKED {
            // The source that was queried most often is the least likely to answer.
            let asked = (0..MAX_ASKED).max_by_key(|at| self.all[*at].tries).expect("there are some");
            self.all.remove(asked);
        }
        let ask_at = now + first_turn(millis(announce.spread_ms), rng);
        self.all.push(Candidate { session, source, announce, last_received_at: now, ask_at, tries: 0 });
    }

    /// Schedules early queries for the sessions of a host from which a packet has arrived.
    pub(super) fn on_sign_of_life(&mut self, source: SocketAddr, now: Time) {
        let there = self.all.iter_mut().filter(|candidate| candidate.source == source);
        there.for_each(|candidate| candidate.ask_again(now));
    }

    fn find(&mut self, session: SessionId, source: SocketAddr) -> Option<&mut Candidate> {
        self.all.iter_mut().find(|candidate| (candidate.session, candidate.source) == (session, source))
    }

    /// Whether a packet of this session is expected from this address.
    pub(super) fn contains(&self, session: SessionId, source: SocketAddr) -> bool {
        self.all.iter().any(|candidate| (candidate.session, candidate.source) == (session, source))
    }

    /// Returns the time of the next query.
    pub(super) fn deadline(&self) -> Time {
        self.all.iter().map(|candidate| candidate.ask_at).min().unwrap_or(Time::NEVER)
    }

    /// Returns the sources to query now.
    fn due(&mut self, now: Time) -> Vec<(SessionId, SocketAddr)> {
        let mut due = Vec::new();
        for candidate in self.all.iter_mut().filter(|one| one.ask_at <= now) {
            if now.since(candidate.last_received_at) >= GONE_AFTER {
                candidate.ask_at = Time::NEVER;
                continue;
            }
            due.push((candidate.session, candidate.source));
            let first = FIRST_PAUSE + millis(candidate.announce.spread_ms);
            let pause = first * (1 << candidate.tries.min(TRIES));
            candidate.tries += 1;
            let most = MAX_PAUSE.max(first);
            candidate.ask_at = now + if candidate.tries < TRIES { pause.min(most) } else { SELDOM };
        }
        due
    }

    /// Removes and returns the source that has answered.
    fn answered(&mut self, session: SessionId, source: SocketAddr) -> Option<Candidate> {
        let place = self.all.iter().position(|one| (one.session, one.source) == (session, source))?;
        Some(self.all.swap_remove(place))
    }

    /// Schedules another query and resets the count of unanswered queries. The earlier queries were sent to another host, so they
    /// do not show that the source is silent.
    fn ask_again(&mut self, session: SessionId, source: SocketAddr, at: Time) {
        if let Some(candidate) = self.find(session, source) {
            (candidate.tries, candidate.ask_at) = (0, at);
        }
    }

    /// Removes the source of this session that was announced most recently, and returns it.
    pub(super) fn take(&mut self, session: SessionId) -> Option<Candidate> {
        let of_session = self.all.iter().enumerate().filter(|(_, one)| one.session == session);
        let place = of_session.max_by_key(|(_, one)| one.last_received_at)?.0;
        Some(self.all.swap_remove(place))
    }

    /// Removes all sources.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Returns a source that has not answered several queries.
    fn silent(&self) -> Option<&Candidate> {
        self.all.iter().find(|candidate| candidate.tries >= SILENT)
    }
}

impl ReceiverSession {
    /// Considers an announced session that this receiver might follow.
    pub(super) fn consider(&mut self, session: SessionId, announce: Announce, from: SocketAddr, now: Time) {
        self.candidates.receive(session, from, announce, now, &mut self.rng);
        self.ask(now);
    }

    /// Sends the queries that are due.
    pub(super) fn ask(&mut self, now: Time) {
        for (session, to) in self.candidates.due(now) {
            let member = self.stranger(MemberState::Asking, 0);
            let whom = self.whom_to_ask(to, now);
            if whom != to {
                self.candidates.ask_again(session, to, now + ASK_AGENT);
            }
            self.outbox.add_to(session, Message::Member(member), whom, now);
        }
        if let Some(silent) = self.candidates.silent() {
            self.seen = Some(JoinObstacle::Unanswering(silent.source));
        }
    }

    /// Handles a status of a session that is not followed, or a status from an address other than the source's. Checks whether
    /// the status answers a query.
    pub(super) fn on_answer(&mut self, session: SessionId, from: SocketAddr, status: &Status, now: Time) {
        let me = Welcome { id: self.setup.id, nonce: self.setup.nonce };
        if !status.welcomed.contains(&me) {
            return;
        }
        let Some(candidate) = self.candidates.answered(session, from) else { return };
        self.accept(candidate.session, candidate.announce, candidate.source, now);
    }

    /// Returns the membership message of a receiver that has not joined a session yet.
    pub(super) fn stranger(&self, state: MemberState, reason: u8) -> Member {
        Member {
            from: self.setup.id,
            nonce: self.setup.nonce,
            state,
            reason,
            receivers: u32::from(self.setup.relay.is_none()),
            done: 0,
            verified_bytes: 0,
            resumed_bytes: 0,
            blocks_missing: u32::MAX,
            rate: 0.0,
            loss: 0.0,
            dropped_local: 0,
            unwritten_bytes: 0,
            activity: faircast_wire::Activity::Network,
            percent: 0,
            echo: NOTHING_YET,
            host: Name::clipped(&self.setup.host),
            why: Words::default(),
        }
    }

    /// Follows a session. It may be the first session, the present session with a new address or parent, or the next session of a
    /// restarted source.
    pub(super) fn accept(&mut self, session: SessionId, announce: Announce, from: SocketAddr, now: Time) {
        self.candidates.clear();
        let is_new = self.stream.as_ref().is_none_or(|stream| stream.session != session);
        if is_new && !self.claim(session, &announce, from) {
            return;
        }
        match &self.stream {
            None if self.setup.relay.as_ref().is_some_and(|relay| !relay.claim(session)) => {}
            None => {
                if let Err(error) = self.follow(session, announce, from, now) {
                    self.refuse(session, error, from, now);
                }
            }
            Some(stream) if stream.session == session => {
                match is_relayed(&stream.announced) || is_relayed(&announce) {
                    true => self.attach_elsewhere(announce, from, now),
                    false => self.go_on_from(announce, from, now),
                }
            }
            Some(_) => self.follow_restarted(session, announce, from, now),
        }
    }

    /// Whether another receiver of this host, or another part of this relay, takes part in the session. A receiver that has
    /// joined an earlier session with the same content continues with that content.
    pub(super) fn is_anothers(&self, session: SessionId, announce: &Announce) -> bool {
        let (accept, me) = (&self.setup.accept, self.setup.id);
        accept.is_anothers(session, me)
            || self.stream.is_none() && accept.is_anothers_content(announce.transfer, me)
            || self.setup.relay.as_ref().is_some_and(|relay| relay.is_anothers(session))
    }

    /// Claims the session. This fails if another receiver of this host follows the session or another session with the same
    /// content. It also fails if the maximum number of sessions is reached.
    fn claim(&mut self, session: SessionId, announce: &Announce, from: SocketAddr) -> bool {
        let standing = match self.codec.form() {
            Form::Sealed => Standing::HasKey,
            Form::Open => Standing::Unproved,
        };
        let of = (session, announce.transfer);
        let claim = self.setup.accept.claim(of, self.setup.id, (from.ip(), standing));
        let is_ours = claim.is_some();
        if is_ours {
            self.candidates.claim = claim;
        }
        is_ours
    }

    /// Records in the claim that content has arrived, so that other sessions replace this one less easily.
    pub(super) fn keep_place(&self) {
        self.candidates.claim.iter().for_each(Claim::brings_content);
    }

    /// Whether another session has replaced the followed one at this host.
    pub(super) fn has_lost_place(&self) -> bool {
        self.candidates.claim.as_ref().is_some_and(Claim::is_lost)
    }

    /// Ends the session because another session has replaced it. The source is notified, so that it does not wait.
    pub(super) fn give_way(&mut self, now: Time) {
        let Some(source_address) = self.stream.as_ref().map(|stream| stream.source) else { return };
        self.leave(now);
        self.failure = Some(Error::Transfer(TransferError::GaveWay {
            source_address,
            verified_bytes: self.stored_bytes(),
        }));
    }

    /// Refuses a session whose content this host cannot accept. Reports the reason to the source, for its user.
    pub(super) fn refuse(&mut self, session: SessionId, error: Error, source: SocketAddr, now: Time) {
        let why = Words::clipped(&error.in_full());
        let member = Member { why, ..self.stranger(MemberState::Failed, reason(&error)) };
        // The message is sent twice, because no answer confirms it.
        for _ in 0..2 {
            self.outbox.add_to(session, Message::Member(member.clone()), source, now);
        }
        self.setup.accept.end(session);
        self.scope.failed(&error, now);
        self.failure = Some(error);
        self.phase = Phase::Over;
    }

    /// Returns the key that has signed this announcement, if content must be signed.
    ///
    /// # Errors
    /// The obstacle, if the announcement is not signed with one of the keys.
    pub(super) fn trust_in(
        &self,
        session: SessionId,
        announce: &Announce,
    ) -> Result<Option<Trust>, JoinObstacle> {
        self.setup.verify.as_ref().map(|keys| Trust::in_announcement(keys, session, announce)).transpose()
    }

    /// Joins after the first packet, before other messages: messages of a host that has not joined are ignored.
    pub(super) fn join_first(&mut self, now: Time) {
        let waits = |stream: &&mut Stream| !stream.registered && stream.member_tries == 0;
        let asked = self.setup.replay_policy == ReplayPolicy::Answer && self.phase == Phase::Receiving;
        if let Some(stream) = self.stream.as_mut().filter(waits).filter(|_| asked) {
            stream.member_at = now;
            self.report_membership(now);
        }
    }

    /// Whether this packet of the followed session is to be ignored, because it does not come from the address of the source.
    /// Announcements are accepted from any address, and statuses from addresses that have announced the session.
    pub(super) fn is_from_elsewhere(&self, header: &Header, from: &SocketAddr) -> bool {
        let Some(stream) = self.stream.as_ref().filter(|stream| stream.source != *from) else { return false };
        let asked = self.candidates.contains(stream.session, *from);
        let received = header.kind == Kind::Announce || (asked && header.kind == Kind::Status);
        header.session == stream.session && !received
    }

    /// Returns the obstacle to following the announced session, if any.
    pub(super) fn why_not(&self, announce: &Announce) -> Option<JoinObstacle> {
        let scheme = scheme_of(announce);
        let unfit = self.setup.relay.as_ref().and_then(|relay| relay.why_not(scheme.as_ref()));
        match geometry_of(announce) {
            _ if announce.hops > RelayBelow::MAX_DEPTH => Some(JoinObstacle::Senseless),
            _ if announce.is_one_way() && self.needs_answers() => Some(JoinObstacle::OneWay),
            _ if self.setup.relay.is_some() && announce.has_streams() => Some(JoinObstacle::Layered),
            _ if scheme.is_none() => Some(JoinObstacle::UnknownScheme),
            _ if unfit.is_some() => unfit,
            _ if !packet_size_fits(announce) => Some(JoinObstacle::PacketSize),
            None => Some(JoinObstacle::Senseless),
            Some(_) if announce.has_streams() && self.setup.verify.is_some() => {
                Some(JoinObstacle::UnsignedStreams)
            }
            Some(_) => None,
        }
    }

    /// Whether a session can be followed only if its source answers.
    fn needs_answers(&self) -> bool {
        self.setup.replay_policy == ReplayPolicy::Answer || self.setup.relay.is_some()
    }

    /// Reports the source of the session that was found.
    pub(super) fn emit_joined(&mut self, announce: &Announce, from: SocketAddr) {
        self.events.push_back(Event::Joined {
            receiver: Some(self.setup.id),
            host: announce.name.as_str().to_owned(),
            address: from,
        });
        self.events.extend(announce.series.map(Event::of_series));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_wire::TransferId;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn place(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 4000))
    }

    fn announced(last: u8) -> Announce {
        Announce {
            salt: [0; 16],
            unix_secs: 0,
            started: 0,
            source: place(last),
            parent: place(last),
            transfer: TransferId([0; 16]),
            stream_len: None,
            manifest_len: 1,
            symbol_size: 8,
            packet_size: 100,
            symbols_per_block: 8,
            first_block: 0,
            next_seq: 0,
            scheme: 1,
            layers: 1,
            options: Name::EMPTY,
            hops: 0,
            spread_ms: 10,
            flags: 0,
            name: Name::EMPTY,
            signer: 0,
            to_hosts: Name::EMPTY,
            series: None,
            dry_run: None,
            signature: None,
        }
    }

    fn receive(candidates: &mut Candidates, last: u8, now: Time) {
        let session = SessionId(last.into());
        candidates.receive(session, place(last), announced(last), now, &mut Rng::new(1, last.into()));
    }

    #[test]
    fn unresponsive_source_gets_six_queries_and_then_rare_ones() {
        let mut candidates = Candidates::default();
        let mut asked = Vec::new();
        for millis in (0..60_000).step_by(5) {
            receive(&mut candidates, 1, at(millis));
            asked.extend(candidates.due(at(millis)).iter().map(|_| millis));
        }
        assert!(asked.len() <= 6 + 4, "{asked:?}");
        assert!(asked.iter().filter(|millis| **millis < 2_000).count() == 6, "{asked:?}");
    }

    #[test]
    fn source_that_resumes_or_sends_a_packet_is_queried_promptly() {
        for shows in [false, true] {
            let mut candidates = Candidates::default();
            let mut asked = Vec::new();
            for millis in (0..10_000).step_by(5) {
                let is_away = (2_000..3_500).contains(&millis);
                if shows || !is_away {
                    receive(&mut candidates, 1, at(millis));
                }
                if shows && millis == 3_500 {
                    candidates.on_sign_of_life(place(2), at(millis));
                    assert!(candidates.due(at(millis)).is_empty(), "that is somebody else");
                    candidates.on_sign_of_life(place(1), at(millis));
                }
                asked.extend(candidates.due(at(millis)).iter().map(|_| millis));
            }
            let since: Vec<_> = asked.iter().filter(|millis| **millis > 2_000).collect();
            assert!(since.len() == 2 && *since[0] < 3_800 && *since[1] < 5_000, "{shows}: {asked:?}");
        }
    }

    #[test]
    fn source_gets_few_queries_after_its_announcements_stop() {
        let mut candidates = Candidates::default();
        receive(&mut candidates, 1, at(0));
        let asked = (0..100_000).step_by(5).map(|millis| candidates.due(at(millis)).len()).sum::<usize>();
        assert!((4..=6).contains(&asked), "{asked}");
        receive(&mut candidates, 2, at(200_000));
        assert_eq!(candidates.all.len(), 1);
    }

    #[test]
    fn all_sources_are_queried_and_the_first_answer_wins() {
        let mut candidates = Candidates::default();
        receive(&mut candidates, 1, at(0));
        receive(&mut candidates, 2, at(1));
        let asked: Vec<_> = (0..60).flat_map(|millis| candidates.due(at(millis))).collect();
        assert!([1, 2].iter().all(|session| asked.iter().any(|(one, _)| one.0 == *session)), "{asked:?}");
        assert!(candidates.answered(SessionId(2), place(1)).is_none(), "it is announced from elsewhere");
        assert_eq!(candidates.answered(SessionId(2), place(2)).map(|one| one.session.0), Some(2));
    }

    #[test]
    fn source_that_announces_varying_spreads_is_queried() {
        for first in 1..20 {
            let mut candidates = Candidates::default();
            let asks = |millis: &u64| {
                let spread_ms = if (millis / 500).is_multiple_of(4) { 9_000 } else { 4_000 };
                let announce = Announce { spread_ms, ..announced(1) };
                candidates.receive(SessionId(1), place(1), announce, at(*millis), &mut Rng::new(1, first));
                !candidates.due(at(*millis)).is_empty()
            };
            let asked = (0..60_000).step_by(500).find(asks);
            assert!(asked.is_some_and(|millis| millis <= 9_500), "{asked:?}");
        }
    }

    #[test]
    fn forged_sources_do_not_displace_the_real_one() {
        let mut candidates = Candidates::default();
        let mut answered = false;
        for millis in 0..2_000_u64 {
            if millis % 25 == 0 {
                receive(&mut candidates, 1, at(millis));
            }
            if millis % 10 == 0 {
                receive(&mut candidates, 2 + (millis / 10 % 200) as u8, at(millis));
            }
            let asked = candidates.due(at(millis));
            answered |= asked.iter().any(|(session, _)| session.0 == 1)
                && candidates.answered(SessionId(1), place(1)).is_some();
            assert!(candidates.all.len() <= MAX_ASKED);
        }
        assert!(answered);
    }
}
