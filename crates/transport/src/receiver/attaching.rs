//! Search for a parent by a receiver without multicast. The receiver queries its configured hosts in order, searches for the
//! nearest relay, or waits for an invitation from a source.
//!
//! ```text
//!   parents:  ask the first -- silent --> ask the next ...
//!   a group:  query it within 1, 2, 4, 8, 16 hops -- a token comes from a relay --> ask that one -- silent --> query again
//!   invited:  wait -- an invitation --> one question to who invites -- a token --> ask that one -- silent --> wait again
//! ```
//!
//! An invitation does not prove the address of its sender. So the receiver replies with a single packet, and at a limited rate.
//! An attacker that forges the address thus directs hardly any traffic to a third host.

use super::{Phase, ReceiverSession};
use crate::error::JoinObstacle;
use crate::receiver::reachability::MOVED_AFTER;
use faircast_core::packet::SessionId;
use faircast_core::time::{Span, Time};
use faircast_wire::{Attach, Header, Invite, Kind, Message, Name, Token};
use std::net::SocketAddr;

/// First pause between two queries. Each later pause is twice as long as the pause before it.
const FIRST_PAUSE: Span = Span::from_millis(100);

/// Longest pause between two queries. A parent removes a silent child only after a much longer time.
const MAX_PAUSE: Span = Span::from_secs(2);

/// Number of unanswered queries after which the next parent is tried.
const TRIES: u32 = 4;

/// Hop limits of the expanding ring search for relays, in order.
const RINGS: [u8; 5] = [1, 2, 4, 8, 16];

/// Time unit of the ring search: ring `n`, counted from 1, takes `1 + n / 2` times this duration.
const RING_PAUSE: Span = Span::from_millis(250);

/// Minimum interval between two replies to invitations, regardless of the inviters.
const INVITED_EVERY: Span = Span::from_millis(100);

/// Time within which an inviter must reply with a token.
const PROVEN_WITHIN: Span = Span::from_secs(3);

/// Maximum number of inviters that are stored.
const MAX_INVITERS: usize = 8;

/// Session ID of messages that are sent before a session is known.
const NONE: SessionId = SessionId(0);

/// Hosts that may become the parent.
#[derive(Debug)]
pub(super) struct Attaching {
    /// Candidate hosts, and groups in which relays are searched for. While the receiver waits for an invitation, the list is
    /// empty or contains the inviter that has replied.
    parents: Vec<SocketAddr>,
    at: usize,
    /// The relay that replied in a group.
    found: Option<SocketAddr>,
    ring: usize,
    token: [u8; 16],
    /// Whether the parent that issued the token is an agent; `was_agent`: whether any parent was an agent.
    is_agent: bool,
    was_agent: bool,
    invitation: u64,
    next_at: Time,
    tries: u32,
    /// Number of queries since the latest packet of the parent.
    unanswered: u32,
    /// The group in which no relay replied.
    unfound: Option<SocketAddr>,
    waits_for_invitations: bool,
    inviters: Vec<Inviter>,
    invited_at: Time,
}

/// An inviter whose address is not proven.
#[derive(Debug)]
struct Inviter {
    address: SocketAddr,
    number: u64,
    until: Time,
}

/// A query to a possible parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ask {
    to: SocketAddr,
    token: [u8; 16],
    invitation: u64,
    /// Hop limit of a query to a group.
    hops: Option<u8>,
}

impl Attaching {
    /// Creates a search among these hosts in order, or the state of a receiver that waits for any inviter.
    pub(super) fn new(parents: Vec<SocketAddr>, waits_for_invitations: bool, now: Time) -> Option<Attaching> {
        (waits_for_invitations || !parents.is_empty()).then_some(Attaching {
            parents,
            at: 0,
            found: None,
            ring: 0,
            token: [0; 16],
            is_agent: false,
            was_agent: false,
            invitation: 0,
            next_at: now,
            tries: 0,
            unanswered: 0,
            unfound: None,
            waits_for_invitations,
            inviters: Vec::new(),
            invited_at: Time::ZERO,
        })
    }

    /// Returns the host that is queried now.
    fn parent(&self) -> Option<SocketAddr> {
        let place = *self.parents.get(self.at)?;
        if place.ip().is_multicast() { self.found } else { Some(place) }
    }

    /// Returns the address at which a session is expected: the queried host, or the group in which a relay is searched for.
    pub(super) fn place(&self) -> Option<SocketAddr> {
        self.parent().or_else(|| self.parents.get(self.at).copied())
    }

    /// Whether packets from this address are accepted. A receiver that waits for an invitation accepts packets of its parent
    /// only.
    fn receives(&self, from: SocketAddr) -> bool {
        !self.waits_for_invitations || self.parent() == Some(from)
    }

    /// Returns a host that does not reply, or a group in which no host replies.
    fn silent(&self) -> Option<SocketAddr> {
        let has_no_token = self.token == [0; 16];
        let silent = (self.unanswered >= TRIES && has_no_token).then(|| self.parent()).flatten();
        silent.or(self.unfound.filter(|_| has_no_token))
    }

    /// Tries the next candidate, because the parent is silent.
    fn move_on(&mut self) {
        let is_group = self.parents.get(self.at).is_some_and(|place| place.ip().is_multicast());
        match self.parents.len() {
            _ if self.waits_for_invitations => self.parents.clear(),
            // The group is searched again, because its next nearest relay is preferred to the hosts listed after the group.
            _ if is_group => {}
            0 | 1 => return,
            more => self.at = (self.at + 1) % more,
        }
        (self.found, self.ring, self.token, self.invitation) = (None, 0, [0; 16], 0);
        (self.tries, self.unanswered) = (0, 0);
    }

    /// Returns the query that is due, if any.
    fn due(&mut self, now: Time) -> Option<Ask> {
        if now < self.next_at {
            return None;
        }
        if self.unanswered >= TRIES {
            self.move_on();
        }
        let place = *self.parents.get(self.at)?;
        if place.ip().is_multicast() && self.found.is_none() {
            return self.search(place, now);
        }
        let to = self.parent()?;
        self.next_at = now + (FIRST_PAUSE * (1 << self.tries.min(8))).min(MAX_PAUSE);
        (self.tries, self.unanswered) = (self.tries + 1, self.unanswered + 1);
        Some(Ask { to, token: self.token, invitation: self.invitation, hops: None })
    }

    /// Returns the query for the next ring of a search.
    fn search(&mut self, group: SocketAddr, now: Time) -> Option<Ask> {
        if let Some(hops) = RINGS.get(self.ring).copied() {
            self.ring += 1;
            self.next_at = now + RING_PAUSE.scaled(1.0 + 0.5 * self.ring as f64);
            return Some(Ask { to: group, token: [0; 16], invitation: 0, hops: Some(hops) });
        }
        (self.ring, self.unfound) = (0, Some(group));
        self.at = (self.at + 1) % self.parents.len();
        self.next_at = if self.at == 0 { now + MAX_PAUSE } else { now };
        None
    }

    /// Handles a token from the host `from`. Returns whether this receiver had queried that host.
    fn on_token(&mut self, token: [u8; 16], is_agent: bool, from: SocketAddr, now: Time) -> bool {
        if let Some(at) = self.inviters.iter().position(|one| one.address == from && now < one.until) {
            let inviter = self.inviters.swap_remove(at);
            (self.parents, self.at, self.invitation) = (vec![from], 0, inviter.number);
            (self.token, self.tries, self.unanswered, self.next_at) = (token, 0, 0, now);
            return true;
        }
        let Some(place) = self.parents.get(self.at) else { return false };
        // In a group, the first host that replies is the nearest.
        if place.ip().is_multicast() && self.found.is_none() && self.ring > 0 {
            (self.found, self.unfound, self.tries, self.unanswered) = (Some(from), None, 0, 0);
        }
        if self.parent() != Some(from) {
            return false;
        }
        if token != self.token {
            (self.token, self.next_at) = (token, now);
        }
        self.is_agent = is_agent;
        self.was_agent |= is_agent;
        true
    }

    /// Returns the parent if it has replied and is an agent.
    pub(super) fn agent(&self) -> Option<SocketAddr> {
        self.parent().filter(|_| self.is_agent && self.token != [0; 16])
    }

    /// Whether any parent was an agent. If so, the receiver also listens to the source's group.
    pub(super) const fn has_met_agent(&self) -> bool {
        self.was_agent
    }

    /// Returns the group in which a relay is searched for, until a relay replies.
    fn sought(&self) -> Option<SocketAddr> {
        let place = self.parents.get(self.at).filter(|place| place.ip().is_multicast())?;
        (self.found.is_none() && self.ring > 0).then_some(*place).or(self.unfound)
    }

    /// Gives up an unusable parent and queries the next candidate at once.
    pub(super) fn lose(&mut self, now: Time) {
        self.at = (self.at + 1) % self.parents.len().max(1);
        (self.found, self.ring, self.token, self.invitation) = (None, 0, [0; 16], 0);
        (self.tries, self.unanswered, self.is_agent, self.next_at) = (0, 0, false, now);
    }

    /// Gives up a parent that serves no data, if another parent is possible. Returns the former parent.
    pub(super) fn forsake(&mut self, now: Time) -> Option<SocketAddr> {
        let parent = self.parent()?;
        let is_group = self.parents.get(self.at).is_some_and(|place| place.ip().is_multicast());
        let is_only = self.parents.len() == 1 && !is_group;
        if self.waits_for_invitations || is_only {
            return None;
        }
        self.lose(now);
        Some(parent)
    }

    /// Handles an invitation. Returns whether to query the inviter, whose reply proves its address.
    fn on_invite(&mut self, number: u64, from: SocketAddr, now: Time) -> bool {
        let has_parent = self.parent().is_some() && self.unanswered < TRIES / 2;
        let too_soon = self.invited_at > Time::ZERO && now < self.invited_at + INVITED_EVERY;
        if !self.waits_for_invitations || has_parent || too_soon {
            return false;
        }
        self.inviters.retain(|one| now < one.until && one.address != from);
        if self.inviters.len() == MAX_INVITERS {
            self.inviters.remove(0);
        }
        self.inviters.push(Inviter { address: from, number, until: now + PROVEN_WITHIN });
        self.invited_at = now;
        true
    }

    /// Records a packet from this host.
    pub(super) fn on_sign_of_life(&mut self, from: SocketAddr) {
        if Some(from) == self.parent() {
            self.unanswered = 0;
        }
    }

    fn deadline(&self) -> Time {
        if self.parents.is_empty() { Time::NEVER } else { self.next_at }
    }
}

impl ReceiverSession {
    /// Whether to search for a parent: there is no parent yet, or the present parent is silent or serves no data.
    fn attaches(&self, now: Time) -> bool {
        match self.phase {
            Phase::Searching => true,
            Phase::Receiving if self.seeks_an_agent() || self.is_unserved() => true,
            _ => self.may_move() && now.since(self.clocks.received_at) >= MOVED_AFTER,
        }
    }

    /// Returns the reason why no session was found, if known.
    pub(super) fn why_nothing(&self) -> Option<JoinObstacle> {
        let waits = self.attaching.as_ref().is_some_and(|attaching| attaching.place().is_none());
        let sought = self.attaching.as_ref().and_then(Attaching::sought);
        self.seen.or(waits.then_some(JoinObstacle::Uninvited)).or(sought.map(JoinObstacle::NoParent))
    }

    /// Whether to ignore a packet because its sender has not proven its address. Without this check, a forged announcement could
    /// direct this receiver's replies to any host. Invitations and tokens are never ignored.
    pub(super) fn is_uninvited(&self, header: &Header, from: &SocketAddr) -> bool {
        self.attaching.as_ref().is_some_and(|attaching| !attaching.receives(*from))
            && !matches!(header.kind, Kind::Invite | Kind::Token)
    }

    /// Sends the query that is due, if any.
    pub(super) fn attach(&mut self, now: Time) {
        let attaches = self.attaches(now);
        let Some(attaching) = &mut self.attaching else { return };
        if !attaches {
            attaching.tries = 0;
            return;
        }
        let ask = attaching.due(now);
        let silent = attaching.silent();
        if let Some(silent) = silent {
            self.seen = Some(JoinObstacle::NoParent(silent));
        }
        if let Some(ask) = ask {
            self.ask_to_attach(ask, now);
        }
    }

    fn ask_to_attach(&mut self, Ask { to, token, invitation, hops }: Ask, now: Time) {
        let attach = Attach {
            from: self.setup.id,
            token,
            invitation,
            relay: self.setup.relay.is_some(),
            host: Name::clipped(&self.setup.host),
        };
        self.outbox.add_within(NONE, Message::Attach(attach), to, hops, now);
    }

    /// Returns the time of the next call of [`ReceiverSession::attach`].
    pub(super) fn attach_at(&self, now: Time) -> Time {
        let Some(attaching) = &self.attaching else { return Time::NEVER };
        match self.phase {
            _ if self.attaches(now) => attaching.deadline(),
            _ if self.may_move() => (self.clocks.received_at + MOVED_AFTER).max(attaching.deadline()),
            _ => Time::NEVER,
        }
    }

    pub(super) fn on_token(&mut self, token: &Token, from: SocketAddr, now: Time) {
        let is_no_better = self.is_no_better(from, now);
        let Some(attaching) = self.attaching.as_mut().filter(|_| token.to == self.setup.id) else { return };
        if attaching.sought().is_some() && is_no_better {
            return; // the search would find the same relay
        }
        if attaching.on_token(token.token, token.agent, from, now) {
            self.candidates.on_sign_of_life(from, now);
            self.seen = self.seen.filter(|seen| !matches!(seen, JoinObstacle::NoParent(_)));
            if let Some(relay) = &self.setup.relay {
                relay.note_upstream_alive();
            }
        }
    }

    /// Handles a source's offer to serve this host.
    pub(super) fn on_invite(&mut self, invite: &Invite, from: SocketAddr, now: Time) {
        let attaches = self.attaches(now);
        let Some(attaching) = self.attaching.as_mut().filter(|_| attaches && invite.number != 0) else {
            return;
        };
        if attaching.on_invite(invite.number, from, now) {
            self.ask_to_attach(Ask { to: from, token: [0; 16], invitation: invite.number, hops: None }, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 5778))
    }

    fn group() -> SocketAddr {
        crate::config::FIND_GROUP.parse().expect("a group")
    }

    #[test]
    fn silent_parent_is_replaced_by_the_next_configured_host() {
        let parents: Vec<SocketAddr> = (1..=2).map(host).collect();
        let mut attaching = Attaching::new(parents.clone(), false, Time::ZERO).expect("there are some");
        let mut now = Time::ZERO;
        let mut asked = Vec::new();
        for _ in 0..10 {
            now = attaching.next_at;
            let ask = attaching.due(now).expect("it is time");
            asked.push((ask.to, ask.token[0]));
            if ask.to == parents[1] {
                attaching.on_token([7; 16], false, ask.to, now);
                attaching.on_token([8; 16], false, parents[0], now);
                attaching.on_sign_of_life(ask.to);
            }
        }
        assert_eq!(asked[..4], [(parents[0], 0); 4]);
        assert_eq!(asked[4..6], [(parents[1], 0), (parents[1], 7)], "and the token is said at once");
        assert!(asked[6..].iter().all(|asked| *asked == (parents[1], 7)), "{asked:?}");
        assert!(now < Time::ZERO + Span::from_secs(20));
    }

    /// Runs until `end`; returns the queries. `answers` returns the host that replies to a query.
    fn run(
        attaching: &mut Attaching,
        from: Time,
        end: Time,
        answers: &dyn Fn(Ask) -> Option<u8>,
    ) -> Vec<Ask> {
        let (mut now, mut asked) = (from, Vec::new());
        while now < end {
            if let Some(ask) = attaching.due(now) {
                asked.push(ask);
                if let Some(last) = answers(ask) {
                    attaching.on_sign_of_life(host(last));
                    attaching.on_token([last; 16], false, host(last), now);
                }
            }
            now = attaching.deadline().max(now + Span::from_millis(1)).min(end);
        }
        asked
    }

    #[test]
    fn search_for_a_relay_widens_and_restarts_after_silence() {
        let mut attaching = Attaching::new(vec![group(), host(9)], false, Time::ZERO).expect("a group");
        let seconds = |s| Time::ZERO + Span::from_secs(s);
        let near = |ask: Ask| match ask.hops {
            Some(hops) => (hops >= 4).then_some(1),
            None => (ask.to == host(1)).then_some(1),
        };
        let asked = run(&mut attaching, Time::ZERO, seconds(30), &near);
        let rings: Vec<u8> = asked.iter().filter_map(|ask| ask.hops).collect();
        assert_eq!(rings, [1, 2, 4], "and no farther, nor again");
        assert!(asked[3..].iter().all(|ask| ask.to == host(1)), "{asked:?}");
        assert!(asked.iter().filter(|ask| ask.token == [1; 16]).count() > 5);
        // The near relay has stopped; another relay is farther away.
        let far = |ask: Ask| match ask.hops {
            Some(hops) => (hops >= 16).then_some(2),
            None => (ask.to == host(2)).then_some(2),
        };
        let asked = run(&mut attaching, seconds(30), seconds(60), &far);
        let rings: Vec<u8> = asked.iter().filter_map(|ask| ask.hops).collect();
        assert_eq!(rings, RINGS);
        assert_eq!(asked.last().map(|ask| ask.to), Some(host(2)));
        // Both relays have stopped, so the configured host after the group is queried.
        let asked = run(&mut attaching, seconds(60), seconds(90), &|ask| (ask.to == host(9)).then_some(9));
        assert_eq!(asked.last().map(|ask| ask.to), Some(host(9)), "{asked:?}");
    }

    #[test]
    fn first_relay_that_answers_becomes_the_parent() {
        let mut attaching = Attaching::new(vec![group()], false, Time::ZERO).expect("a group");
        assert!(!attaching.on_token([3; 16], false, host(3), Time::ZERO), "nobody was asked");
        attaching.due(Time::ZERO).expect("the first ring");
        assert!(attaching.on_token([1; 16], false, host(1), Time::ZERO));
        assert!(!attaching.on_token([2; 16], false, host(2), Time::ZERO));
        assert_eq!(attaching.due(Time::ZERO).map(|ask| (ask.to, ask.token)), Some((host(1), [1; 16])));
    }

    #[test]
    fn invitation_without_a_token_gets_one_reply() {
        let mut attaching = Attaching::new(Vec::new(), true, Time::ZERO).expect("it waits");
        let mut now = Time::ZERO + Span::from_secs(1);
        assert_eq!(attaching.deadline(), Time::NEVER);
        assert!(attaching.on_invite(5, host(1), now));
        assert!(!attaching.receives(host(1)), "not before it has answered");
        assert!(!attaching.on_invite(5, host(1), now + Span::from_millis(50)), "too soon");
        assert_eq!(attaching.deadline(), Time::NEVER, "nothing more is sent by itself");
        assert!(attaching.due(now + Span::from_secs(9)).is_none());
        // Invitations with forged addresses flood the host. The host replies to ten of them a second, and the genuine invitation
        // still succeeds.
        let mut answered = 0;
        for other in 0..1_000_u32 {
            now += Span::from_millis(1);
            let from = SocketAddr::from(([10, 9, (other >> 8) as u8, other as u8], 5778));
            answered += u32::from(attaching.on_invite(6, from, now));
        }
        assert!((9..=11).contains(&answered), "{answered}");
        now += Span::from_secs(1);
        assert!(attaching.on_invite(7, host(2), now));
        assert!(!attaching.on_token([9; 16], false, host(3), now), "it was not asked");
        assert!(attaching.on_token([2; 16], false, host(2), now));
        assert!(attaching.receives(host(2)) && !attaching.receives(host(1)));
        let ask = attaching.due(now).expect("at once");
        assert_eq!((ask.to, ask.token, ask.invitation), (host(2), [2; 16], 7));
        assert!(!attaching.on_invite(8, host(4), now + Span::from_secs(1)), "it has a parent");
        // The parent stops: the host waits for an invitation again.
        for _ in 0..2 * TRIES {
            now = attaching.next_at;
            attaching.due(now);
        }
        assert_eq!((attaching.deadline(), attaching.place()), (Time::NEVER, None));
        assert!(attaching.on_invite(8, host(4), now));
    }

    #[test]
    fn token_from_an_inviter_is_ignored_after_the_time_limit() {
        let mut attaching = Attaching::new(Vec::new(), true, Time::ZERO).expect("it waits");
        let now = Time::ZERO + Span::from_secs(1);
        assert!(attaching.on_invite(5, host(1), now));
        assert!(!attaching.on_token([1; 16], false, host(1), now + PROVEN_WITHIN));
    }
}
