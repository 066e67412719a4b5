//! A receiver without multicast asks hosts that may become its parent, one after the other, to serve it by unicast.

use super::{Phase, ReceiverSession};
use crate::error::Seen;
use crate::receiver::reach::MOVED_AFTER;
use faircast_core::packet::SessionId;
use faircast_core::time::{Span, Time};
use faircast_wire::{Attach, Message, Name, Token};
use std::net::SocketAddr;

/// The first pause between two questions; each is twice the one before.
const FIRST_PAUSE: Span = Span::from_millis(100);

/// And no longer than this: a parent forgets who is silent for much longer.
const LONGEST_PAUSE: Span = Span::from_secs(2);

/// A parent that has not answered so many questions is left for the next.
const TRIES: u32 = 4;

/// No session: this is said before there is one.
const NONE: SessionId = SessionId(0);

/// Hosts that may become the parent.
#[derive(Debug)]
pub(super) struct Attaching {
    parents: Vec<SocketAddr>,
    at: usize,
    token: [u8; 16],
    next_at: Time,
    tries: u32,
}

impl Attaching {
    /// These hosts, the first of them first.
    pub(super) fn new(parents: Vec<SocketAddr>, now: Time) -> Option<Attaching> {
        (!parents.is_empty()).then_some(Attaching { parents, at: 0, token: [0; 16], next_at: now, tries: 0 })
    }

    /// The host that is asked now.
    pub(super) fn parent(&self) -> SocketAddr {
        self.parents[self.at]
    }

    /// A host that does not answer.
    fn silent(&self) -> Option<SocketAddr> {
        (self.tries >= TRIES && self.token == [0; 16]).then(|| self.parent())
    }

    /// Whom to ask, and with which token, when it is time.
    fn due(&mut self, now: Time) -> Option<(SocketAddr, [u8; 16])> {
        if now < self.next_at {
            return None;
        }
        if self.tries >= TRIES && self.parents.len() > 1 {
            (self.at, self.token, self.tries) = ((self.at + 1) % self.parents.len(), [0; 16], 0);
        }
        self.next_at = now + (FIRST_PAUSE * (1 << self.tries.min(8))).min(LONGEST_PAUSE);
        self.tries += 1;
        Some((self.parent(), self.token))
    }

    /// The parent has answered.
    fn on_token(&mut self, token: [u8; 16], from: SocketAddr, now: Time) {
        if from == self.parent() && token != self.token {
            (self.token, self.next_at) = (token, now);
        }
    }

    /// Something has come from this host.
    pub(super) fn on_sign_of_life(&mut self, from: SocketAddr) {
        if from == self.parent() {
            self.tries = self.tries.min(TRIES - 1);
        }
    }
}

impl ReceiverSession {
    /// Whether a parent is looked for: none is there yet, or the one that was is silent.
    fn attaches(&self, now: Time) -> bool {
        match self.phase {
            Phase::Searching => true,
            Phase::Receiving => now.since(self.clocks.heard_at) >= MOVED_AFTER,
            Phase::Confirming { .. } | Phase::Over => false,
        }
    }

    /// Ask to be served, when it is time.
    pub(super) fn attach(&mut self, now: Time) {
        if !self.attaches(now) {
            return;
        }
        let Some((parent, token)) = self.attaching.as_mut().and_then(|attaching| attaching.due(now)) else {
            return;
        };
        if let Some(silent) = self.attaching.as_ref().and_then(Attaching::silent) {
            self.seen = Some(Seen::NoParent(silent));
        }
        let attach = Attach { from: self.setup.id, token, host: Name::clipped(&self.setup.host) };
        self.outbox.add_to(NONE, Message::Attach(attach), parent, now);
    }

    /// When [`ReceiverSession::attach`] wants to be called.
    pub(super) fn attach_at(&self, now: Time) -> Time {
        let Some(attaching) = &self.attaching else { return Time::NEVER };
        match self.phase {
            _ if self.attaches(now) => attaching.next_at,
            Phase::Receiving => (self.clocks.heard_at + MOVED_AFTER).max(attaching.next_at),
            _ => Time::NEVER,
        }
    }

    pub(super) fn on_token(&mut self, token: &Token, from: SocketAddr, now: Time) {
        if let Some(attaching) = self.attaching.as_mut().filter(|_| token.to == self.setup.id) {
            attaching.on_token(token.token, from, now);
            self.seen = self.seen.filter(|seen| !matches!(seen, Seen::NoParent(_)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_that_does_not_answer_is_left_for_the_next() {
        let parents: Vec<SocketAddr> =
            (1..=2).map(|last| SocketAddr::from(([10, 0, 0, last], 5778))).collect();
        let mut attaching = Attaching::new(parents.clone(), Time::ZERO).expect("there are some");
        let mut now = Time::ZERO;
        let mut asked = Vec::new();
        for _ in 0..10 {
            now = attaching.next_at;
            let (parent, token) = attaching.due(now).expect("it is time");
            asked.push((parent, token[0]));
            if parent == parents[1] {
                attaching.on_token([7; 16], parent, now);
                attaching.on_token([8; 16], parents[0], now);
                attaching.on_sign_of_life(parent);
            }
        }
        assert_eq!(asked[..4], [(parents[0], 0); 4]);
        assert_eq!(asked[4..6], [(parents[1], 0), (parents[1], 7)], "and the token is said at once");
        assert!(asked[6..].iter().all(|asked| *asked == (parents[1], 7)), "{asked:?}");
        assert!(now < Time::ZERO + Span::from_secs(20));
    }
}
