//! Sessions for a simulated world: the same as on real sockets, but whoever makes them says what was drawn, what time it is and
//! where packets leave, and drives them through [`Endpoint`]. No part of the interface.

pub use crate::disk::door::{Disk, Failure, Mistake, Op, Verdict, make_mistake, stand};

use crate::config::{ReceiveConfig, SendConfig};
use crate::drive::{AtHost, check, receiver_at, source_at};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event::{Event, ReceiveReport, SendReport};
use crate::receiver::ReceiverSession;
use crate::relay::{BranchPlace, RelayConfig, RelayHandle, Shared, Upstream, above_at, branch_at};
use crate::source::SourceSession;
use faircast_core::packet::ReceiverId;
use faircast_core::time::Time;
use std::net::SocketAddr;

/// The host that a session starts at.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Numbers that it has drawn for this session.
    pub random: [u64; 4],
    /// Where packets leave.
    pub local: SocketAddr,
    /// The largest datagram, in bytes, and source symbols of a block.
    pub cut: (usize, u16),
    /// Nanoseconds since 1970.
    pub unix_nanos: u64,
    /// The session's time.
    pub now: Time,
}

/// A source.
pub struct Source(SourceSession);

impl Source {
    /// What [`send`](crate::send) would drive on this host.
    ///
    /// # Errors
    /// As [`send`](crate::send).
    pub fn new(mut config: SendConfig, host: &Host, events: &mut dyn FnMut(Event)) -> Result<Source, Error> {
        let groups = check(&mut config)?;
        let (datagram, symbols) = host.cut;
        let Host { random, local, unix_nanos, now, .. } = *host;
        let at = AtHost { random, local, datagram, symbols, unix_nanos, now };
        source_at(config, groups, &at, events).map(Source)
    }

    /// To drive it.
    pub fn endpoint(&mut self) -> &mut dyn Endpoint {
        &mut self.0
    }

    /// When it wants to be called.
    pub fn wake_at(&self, now: Time) -> Time {
        self.0.poll_timeout(now)
    }

    /// How it ended.
    ///
    /// # Errors
    /// Why it did not end well.
    pub fn report(self) -> Result<SendReport, Error> {
        self.0.report()
    }
}

/// A receiver.
pub struct Receiver(ReceiverSession);

impl Receiver {
    /// What [`receive`](crate::receive) would drive on this host.
    pub fn new(config: ReceiveConfig, host: &Host) -> Receiver {
        Receiver(receiver_at(config, host.random, host.unix_nanos / 1_000_000_000, host.now))
    }

    /// To drive it.
    pub fn endpoint(&mut self) -> &mut dyn Endpoint {
        &mut self.0
    }

    /// When it wants to be called.
    pub fn wake_at(&self, now: Time) -> Time {
        self.0.poll_timeout(now)
    }

    /// How many layers above the base layer it has joined.
    pub fn layers(&self) -> usize {
        self.0.groups().len()
    }

    /// How it ended.
    ///
    /// # Errors
    /// Why it did not end well.
    pub fn report(self) -> Result<ReceiveReport, Error> {
        self.0.report()
    }
}

/// What a relay's process does for one session, or the next that it finds: what hears above first, and then the branches.
pub struct Relay {
    /// To drive them, one after the other.
    pub endpoints: Vec<Box<dyn Endpoint>>,
    shared: Shared,
}

impl Relay {
    /// What [`relay`](crate::relay()) would drive for the first of its sources, with branches that send from these places to its
    /// group. All that one process does has the same handle.
    pub fn new(
        config: &RelayConfig,
        handle: &RelayHandle,
        branches: &[SocketAddr],
        host: &Host,
        seeds: &[[u64; 2]],
    ) -> Relay {
        let id = ReceiverId::new(u64::from(host.random[0] as u32 | 1)).expect("an odd number is not zero");
        let shared = Shared::new(handle.clone(), branches.len(), config.memory, None);
        let source = &config.sources[0];
        let when = (host.unix_nanos / 1_000_000_000, host.now);
        let above = above_at((config, source), &shared, id, host.random, when);
        let mut endpoints: Vec<Box<dyn Endpoint>> = vec![Box::new(Upstream::new(above, shared.clone()))];
        for (place, (&local, &[boot, seed])) in branches.iter().zip(seeds).enumerate() {
            let at = BranchPlace { place, to: source.group, local, ttl: 1, max: None, boot, seed };
            endpoints.push(Box::new(branch_at(config, &shared, id, at)));
        }
        Relay { endpoints, shared }
    }

    /// Whether all of it is over; the session may be found again then.
    pub fn is_over(&self) -> bool {
        let over = self.endpoints.iter().all(|endpoint| endpoint.is_over());
        if over {
            self.shared.release();
        }
        over
    }
}
