//! Children without multicast: they ask at a port of the relay, and are served there by unicast.
//!
//! Hosts that look for a relay ask a group, which relays with room for them have joined; and a source's relay invites those that
//! wait to be invited, so that they ask.
//!
//! Who asks gets a token, and is served when it says it again: so nobody can have a session sent to somebody else. Each child is
//! a branch of its own on a socket that is connected to it, with the address and port that it has asked, so that packet filters
//! and address translators on its side need to know nothing.

use super::RelayHandle;
use crate::config::{FIND_GROUP, FIND_GROUP_V6};
use crate::error::Error;
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_net::{
    Batch, GroupOptions, GroupSocket, Membership, Meta, UnicastSocket, Waiter, Want, Watch, choose,
    interfaces,
};
use faircast_wire::{Attach, Invite, Message, Name, Newest, Token, encode, parse};
use std::net::{IpAddr, SocketAddr};
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

/// And an invitation than this, which is with the longest name.
const MOST_INVITATION: usize = 128;

/// Networks that have come are joined within this.
const JOIN_EVERY: Duration = Duration::from_secs(10);

/// What children ask at.
pub(super) struct Listener {
    socket: UnicastSocket,
    handle: RelayHandle,
    /// What is sent, as invitations say.
    name: Name,
    /// The group in which hosts look for relays, unless this one is not to be found.
    group: Option<SocketAddr>,
}

/// Tokens for addresses, without keeping any.
#[derive(Debug)]
pub(super) struct Tokens {
    secret: [u8; 32],
    since: Instant,
}

impl Tokens {
    /// Tokens under this secret, from now on.
    pub(super) fn new(random: [u64; 4], now: Instant) -> Tokens {
        let mut secret = [0; 32];
        for (part, word) in secret.chunks_exact_mut(8).zip(random) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        Tokens { secret, since: now }
    }

    /// The token of this address in a period.
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

impl Listener {
    /// Listen here.
    ///
    /// # Errors
    /// When the port is taken, or the system refuses.
    pub(super) fn open(
        at: SocketAddr,
        handle: RelayHandle,
        name: &str,
        is_found: bool,
    ) -> Result<Listener, Error> {
        let socket = UnicastSocket::listen(at, RECEIVE_BUFFER)?;
        let group = if at.is_ipv4() { FIND_GROUP } else { FIND_GROUP_V6 };
        let group = is_found.then(|| group.parse().expect("it is an address and a port"));
        Ok(Listener { socket, handle, name: Name::clipped(name), group })
    }

    /// Answer until `stop` is set.
    pub(super) fn run(&self, stop: &AtomicBool) {
        let (mut waiter, mut batch) = (Waiter::new(), Batch::new(SLOTS));
        let mut searched = Searched::default();
        while !stop.load(Ordering::Relaxed) {
            if let Some(group) = self.group {
                searched.join(group);
            }
            self.invite();
            let mut watch = vec![Watch::new(&self.socket, Want::Readable)];
            watch.extend(searched.groups.iter().map(|(_, socket)| Watch::new(socket, Want::Readable)));
            // What cannot be waited for or read now is tried again.
            let _ = waiter.wait(&watch, Some(Instant::now() + STOP_CHECK));
            for (_, socket) in &searched.groups {
                if socket.receive(&mut batch).is_ok() {
                    for (attach, from, _) in attaches(&mut batch) {
                        if self.handle.answers_search(from, &attach) {
                            self.give_token(&attach, from);
                        }
                    }
                }
            }
            if self.socket.receive(&mut batch).is_err() {
                std::thread::sleep(STOP_CHECK);
                continue;
            }
            let port = self.socket.local_addr().port();
            for (attach, from, to) in attaches(&mut batch) {
                if to.is_multicast() {
                    continue; // a search, which the group's socket hears as well
                }
                if let Some(token) = self.handle.answer(&attach, (from, SocketAddr::new(to, port))) {
                    // What does not leave is asked for again.
                    let _ = self.socket.send_to(&token, from);
                }
            }
        }
    }

    /// Invite those whose time has come.
    fn invite(&self) {
        for (out, to) in self.handle.invitations(self.socket.local_addr().is_ipv4(), self.name) {
            // What does not leave is said again.
            let _ = self.socket.send_to(&out, to);
        }
    }

    fn give_token(&self, attach: &Attach, from: SocketAddr) {
        let mut out = Vec::new();
        if self.handle.put_token(attach.from, from, &mut out) {
            // What does not leave is asked for again.
            let _ = self.socket.send_to(&out, from);
        }
    }
}

impl RelayHandle {
    /// What is answered to who asks from an address at one of this host's, which is served when it has shown to be there. Who attaches
    /// hears by the answer that the relay lives, and has room.
    pub(crate) fn answer(&self, attach: &Attach, (from, local): (SocketAddr, SocketAddr)) -> Option<Vec<u8>> {
        let has_come = self.tokens().is_good(attach.token, from, self.now());
        let mut out = Vec::new();
        let answers = !has_come || self.attach(from, local, attach);
        (answers && self.put_token(attach.from, from, &mut out)).then_some(out)
    }

    /// Invitations that are due, and where they go.
    pub(crate) fn invitations(&self, is_v4: bool, name: Name) -> Vec<(Vec<u8>, SocketAddr)> {
        let invite = |(number, to)| {
            let mut out = Vec::new();
            let invite = Message::Invite(Invite { number, name });
            encode(&mut out, NONE, 0, &invite, MOST_INVITATION).is_ok().then_some((out, to))
        };
        self.to_invite(is_v4).into_iter().filter_map(invite).collect()
    }

    /// A token for who asks from there goes into `out`; whether it does.
    pub(super) fn put_token(&self, to: ReceiverId, from: SocketAddr, out: &mut Vec<u8>) -> bool {
        let token = Message::Token(Token {
            to,
            token: self.tokens().new_for(from, self.now()),
            agent: self.is_agent(),
        });
        encode(out, NONE, 0, &token, MOST_ANSWER).is_ok()
    }
}

/// No session: this is said before there is one.
const NONE: SessionId = SessionId(0);

/// Who asks, from where, and at which address of this host.
fn attaches(batch: &mut Batch) -> Vec<(Attach, SocketAddr, IpAddr)> {
    let attach = |(bytes, meta): (&mut [u8], Meta)| match parse(bytes, &Newest::default()) {
        Ok((_, Message::Attach(attach))) => Some((attach, meta.from, meta.to.to_canonical())),
        _ => None,
    };
    batch.segments().filter_map(attach).collect()
}

/// Where hosts look for relays: the group, on every network.
#[derive(Default)]
struct Searched {
    groups: Vec<(u32, GroupSocket)>,
    looked_at: Option<Instant>,
}

impl Searched {
    /// Join on networks that have come, and leave those that are gone.
    fn join(&mut self, group: SocketAddr) {
        if self.looked_at.is_some_and(|at| at.elapsed() < JOIN_EVERY) {
            return;
        }
        self.looked_at = Some(Instant::now());
        let Ok(mut all) = interfaces() else { return };
        all.retain(|interface| interface.up && interface.multicast && !interface.loopback);
        self.groups.retain(|(index, _)| all.iter().any(|interface| interface.index == *index));
        for interface in all {
            if self.groups.iter().any(|(index, _)| *index == interface.index) {
                continue;
            }
            // An interface that cannot be joined on (it has no address of this family, say) is looked at again.
            let Ok(choice) = choose(group.ip(), Some(&interface.name)) else { continue };
            let options = GroupOptions { receive_buffer: RECEIVE_BUFFER };
            if let Ok(socket) = GroupSocket::open(group, Membership::AnySource, &choice, &options) {
                self.groups.push((interface.index, socket));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_address_alone() {
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
