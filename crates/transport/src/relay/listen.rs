//! Children without multicast: they ask at a port of the relay, and are served there by unicast.
//!
//! Who asks gets a token, and is served when it says it again: so nobody can have a session sent to somebody else. Each child is
//! a branch of its own on a socket that is connected to it, with the address and port that it has asked, so that packet filters
//! and address translators on its side need to know nothing.

use super::RelayHandle;
use crate::driver::random;
use crate::error::Error;
use faircast_net::{Batch, UnicastSocket, Waiter, Want, Watch};
use faircast_wire::{Attach, Message, Newest, Token, encode, parse};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The stop flag is looked at this often.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// A token is good for this long, and as long again.
const TOKEN_AGE: Duration = Duration::from_secs(30);

/// Bytes of receive buffer to ask for.
const RECEIVE_BUFFER: usize = 256 << 10;

/// Receive calls take so many datagrams at most.
const SLOTS: usize = 8;

/// An answer is no longer than this, which is less than what was asked.
const MOST_ANSWER: usize = 64;

/// What children ask at.
pub(super) struct Listener {
    socket: UnicastSocket,
    tokens: Tokens,
    handle: RelayHandle,
}

/// Tokens for addresses, without keeping any.
struct Tokens {
    secret: [u8; 32],
    since: Instant,
}

impl Tokens {
    fn new() -> Tokens {
        let mut secret = [0; 32];
        for (part, word) in secret.chunks_exact_mut(8).zip(random()) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        Tokens { secret, since: Instant::now() }
    }

    /// The token of this address in a period.
    fn of(&self, address: SocketAddr, period: u64) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(address.to_string().as_bytes()).update(&period.to_le_bytes());
        *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
    }

    fn period(&self) -> u64 {
        self.since.elapsed().as_secs() / TOKEN_AGE.as_secs()
    }

    fn new_for(&self, address: SocketAddr) -> [u8; 16] {
        self.of(address, self.period())
    }

    fn is_good(&self, token: [u8; 16], address: SocketAddr) -> bool {
        let period = self.period();
        token == self.of(address, period) || period > 0 && token == self.of(address, period - 1)
    }
}

impl Listener {
    /// Listen here.
    ///
    /// # Errors
    /// When the port is taken, or the system refuses.
    pub(super) fn open(at: SocketAddr, handle: RelayHandle) -> Result<Listener, Error> {
        let socket = UnicastSocket::listen(at, RECEIVE_BUFFER)?;
        Ok(Listener { socket, tokens: Tokens::new(), handle })
    }

    /// Answer until `stop` is set.
    pub(super) fn run(&self, stop: &AtomicBool) {
        let (mut waiter, mut batch) = (Waiter::new(), Batch::new(SLOTS));
        while !stop.load(Ordering::Relaxed) {
            let watch = [Watch::new(&self.socket, Want::Readable)];
            // What cannot be waited for or read now is tried again.
            let _ = waiter.wait(&watch, Some(Instant::now() + STOP_CHECK));
            if self.socket.receive(&mut batch).is_err() {
                std::thread::sleep(STOP_CHECK);
                continue;
            }
            for (bytes, meta) in batch.segments() {
                if let Ok((_, Message::Attach(attach))) = parse(bytes, &Newest::default()) {
                    let local = SocketAddr::new(meta.to.to_canonical(), self.socket.local_addr().port());
                    self.answer(&attach, meta.from, local);
                }
            }
        }
    }

    fn answer(&self, attach: &Attach, from: SocketAddr, local: SocketAddr) {
        if self.tokens.is_good(attach.token, from) {
            self.handle.attach(from, local, attach.host.as_str());
            return;
        }
        let token = Message::Token(Token { to: attach.from, token: self.tokens.new_for(from) });
        let mut out = Vec::new();
        if encode(&mut out, faircast_core::packet::SessionId(0), 0, &token, MOST_ANSWER).is_ok() {
            // What does not leave is asked for again.
            let _ = self.socket.send_to(&out, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_address_alone() {
        let tokens = Tokens::new();
        let [one, other] = [1, 2].map(|last| SocketAddr::from(([10, 0, 0, last], 4000)));
        assert!(tokens.is_good(tokens.new_for(one), one));
        assert!(!tokens.is_good(tokens.new_for(one), other));
        assert!(!tokens.is_good([0; 16], one));
        assert!(!tokens.is_good(Tokens::new().new_for(one), one), "another relay's");
    }
}
