//! Children without multicast. They attach at a port of the relay, and the relay serves them by unicast.
//!
//! Hosts search for a relay by sending a query to a group. Relays that have room for children have joined this group. A source's
//! own relay invites waiting hosts to attach to it.
//!
//! A host that attaches gets a token, and is served after it has returned the token. So no host can direct a session at another
//! host. Each child is a branch with its own socket, connected to the child. The socket uses the local address and port to which
//! the child has sent. So packet filters and address translators at the child need no further state.

use super::RelayHandle;
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_wire::{Attach, Invite, Message, Name, Newest, Token, encode, parse};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Duration of a token's period. A token is valid in its own period and in the next one.
const TOKEN_AGE: Duration = Duration::from_secs(30);

/// Maximum size of an answer, bytes. It is smaller than the shortest query.
const MAX_ANSWER: usize = 64;

/// Maximum size of an invitation with the longest name, bytes.
const MAX_INVITATION: usize = 128;

/// Tokens for addresses. They are computed from a secret, so no state is stored per address.
#[derive(Debug)]
pub(super) struct Tokens {
    secret: [u8; 32],
    since: Instant,
}

impl Tokens {
    /// Creates tokens with this secret, starting at `now`.
    pub(super) fn new(random: [u64; 4], now: Instant) -> Tokens {
        let mut secret = [0; 32];
        for (part, word) in secret.chunks_exact_mut(8).zip(random) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        Tokens { secret, since: now }
    }

    /// Returns the token of this address in a period.
    fn of(&self, address: SocketAddr, period: u64) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(address.to_string().as_bytes()).update(&period.to_le_bytes());
        *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
    }

    fn period(&self, now: Instant) -> u64 {
        now.duration_since(self.since).as_secs() / TOKEN_AGE.as_secs()
    }

    fn new_for(&self, address: SocketAddr, now: Instant) -> [u8; 16] {
        self.of(address, self.period(now))
    }

    pub(super) fn is_good(&self, token: [u8; 16], address: SocketAddr, now: Instant) -> bool {
        let period = self.period(now);
        token == self.of(address, period) || period > 0 && token == self.of(address, period - 1)
    }
}

impl RelayHandle {
    /// Returns the answer to a datagram that was sent from address `from` to the local address `local`. A host that attaches is
    /// served after it has proved its address by a token. An answer shows that the relay is alive and has room.
    pub fn answer(&self, bytes: &[u8], (from, local): (SocketAddr, SocketAddr)) -> Option<Vec<u8>> {
        self.answer_to(&attach_in(bytes)?, (from, local))
    }

    /// Returns the answer to this attach packet.
    pub(super) fn answer_to(
        &self,
        attach: &Attach,
        (from, local): (SocketAddr, SocketAddr),
    ) -> Option<Vec<u8>> {
        let has_come = self.tokens().is_good(attach.token, from, self.now());
        let answers = !has_come || self.attach(from, local, attach);
        answers.then(|| self.token_for(attach.from, from)).flatten()
    }

    /// Returns the answer to a datagram that was sent to the group in which hosts search for relays.
    pub fn answer_search(&self, bytes: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
        let attach = attach_in(bytes)?;
        self.answers_search(from, &attach).then(|| self.token_for(attach.from, from)).flatten()
    }

    /// Returns the invitations to send now to hosts of one address family, with their destinations.
    pub fn invitations(&self, is_v4: bool, name: Name) -> Vec<(Vec<u8>, SocketAddr)> {
        let invite = |(number, to)| {
            let mut out = Vec::new();
            let invite = Message::Invite(Invite { number, name });
            encode(&mut out, NONE, 0, &invite, MAX_INVITATION).is_ok().then_some((out, to))
        };
        self.to_invite(is_v4).into_iter().filter_map(invite).collect()
    }

    /// Appends a token to `out` for a host that attaches from this address; returns whether a token was appended.
    pub(crate) fn put_token(&self, to: ReceiverId, from: SocketAddr, out: &mut Vec<u8>) -> bool {
        let token = self.tokens().new_for(from, self.now());
        let token = Message::Token(Token { to, token, agent: self.is_agent() });
        encode(out, NONE, 0, &token, MAX_ANSWER).is_ok()
    }

    fn token_for(&self, to: ReceiverId, from: SocketAddr) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.put_token(to, from, &mut out).then_some(out)
    }
}

/// Placeholder: this packet belongs to no session.
const NONE: SessionId = SessionId(0);

/// Returns the attach packet in a datagram.
fn attach_in(bytes: &[u8]) -> Option<Attach> {
    match parse(bytes, &Newest::default()) {
        Ok((_, Message::Attach(attach))) => Some(attach),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_valid_for_its_address_only() {
        let now = Instant::now();
        let tokens = Tokens::new([1, 2, 3, 4], now);
        let [one, other] = [1, 2].map(|last| SocketAddr::from(([10, 0, 0, last], 4000)));
        assert!(tokens.is_good(tokens.new_for(one, now), one, now));
        assert!(!tokens.is_good(tokens.new_for(one, now), other, now));
        assert!(!tokens.is_good([0; 16], one, now));
        let others = Tokens::new([1, 2, 3, 5], now).new_for(one, now);
        assert!(!tokens.is_good(others, one, now), "another relay's");
    }
}
