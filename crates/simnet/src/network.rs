//! Sites of hosts, the path of a datagram between two sites, and the wake-ups of hosts.

use crate::calendar::Calendar;
use crate::link::{Copies, Link, Pipe};
use faircast_core::time::{Span, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Delay between hosts of one site, and between hosts that no site connects.
const NEIGHBOURS: Span = Span::from_millis(1);

/// Operations that the network needs from the test's hosts. `H` is the type of a host, `P` the type of a socket of a host.
pub trait Hosts<H, P> {
    /// Adds to `into` the sockets of `host` that have joined `group`.
    fn ears(&self, host: H, group: SocketAddr, into: &mut Vec<(H, P)>);

    /// Damages a datagram on its way to or from the host `path`, behind `link`. Returns the copies that arrive.
    fn damage(&mut self, path: H, link: &Link, bytes: &mut [u8]) -> Copies;
}

/// Hosts behind a link.
#[derive(Debug)]
pub struct Site<H, D> {
    /// The sources whose multicast this site carries.
    pub heads: Vec<D>,
    /// The hosts.
    pub members: Vec<H>,
    /// The pipe from the sources to the hosts. It carries multicast; it also carries unicast if `near` is not set.
    pub down: Pipe,
    /// The pipe from the hosts.
    pub up: Pipe,
    /// If set: the pipe for unicast between the host of this site and all other hosts, in both directions, in place of `down` and
    /// `up`.
    pub near: Option<Pipe>,
    /// Whether the link carries all groups. Otherwise it carries the base layer, and the groups that a host of the site has
    /// joined.
    pub floods: bool,
}

impl<H, D> Site<H, D> {
    /// Returns a site without members.
    #[must_use]
    pub fn new(heads: Vec<D>, down: Link, up: Link) -> Site<H, D> {
        let (down, up) = (Pipe::new(down), Pipe::new(up));
        Site { heads, members: Vec::new(), down, up, near: None, floods: false }
    }
}

/// The order of simultaneous events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// The order of booking.
    Booked,
    /// Arrivals first, then wake-ups, then other events; the events of a class in the order of their hosts. So an additional
    /// event does not change the order of the other events.
    Hosts,
}

/// An event of the network.
#[derive(Debug)]
pub enum Happens<H, P, O> {
    /// The arrival of a datagram at a socket.
    Arrives {
        /// The host.
        host: H,
        /// The host's socket.
        socket: P,
        /// The sender.
        from: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// The call of a host at the time that the host has requested.
    Wakes(H),
    /// An event that the test booked.
    Other(O),
}

/// Class of an event, and host of the event; `None` if simultaneous events are in the order of booking.
type Rank<H> = Option<(u8, Option<H>)>;

enum Booked<H, P, O> {
    Arrives { host: H, socket: P, from: SocketAddr, bytes: Vec<u8> },
    Wakes(H),
    Other(O),
}

/// Sites, links and the calendar. Values of type `H` identify hosts, `P` sockets of a host, and `D` sources of multicast. `O` is
/// the type of the test's own events.
pub struct Network<H, P, D, O> {
    /// The current time.
    pub now: Time,
    /// The sites.
    pub sites: Vec<Site<H, D>>,
    /// Bytes of the IP and UDP headers.
    pub headers: u64,
    ties: Ties,
    calendar: Calendar<Time, Rank<H>, Booked<H, P, O>>,
    scheduled: BTreeMap<H, Time>,
    /// Sockets that receive the current datagram.
    ears: Vec<(H, P)>,
}

impl<H: Copy + Ord, P: Clone, D: PartialEq, O> Network<H, P, D, O> {
    /// Returns a network without sites at time zero.
    #[must_use]
    pub fn new(headers: u64, ties: Ties) -> Network<H, P, D, O> {
        let (calendar, scheduled) = (Calendar::default(), BTreeMap::new());
        Network { now: Time::ZERO, sites: Vec::new(), headers, ties, calendar, scheduled, ears: Vec::new() }
    }

    /// Adds a site and returns its number.
    pub fn site(&mut self, site: Site<H, D>) -> usize {
        self.sites.push(site);
        self.sites.len() - 1
    }

    fn push(&mut self, at: Time, rank: (u8, Option<H>), booked: Booked<H, P, O>) {
        if !at.is_never() {
            let rank = (self.ties == Ties::Hosts).then_some(rank);
            self.calendar.book(at.max(self.now), rank, booked);
        }
    }

    /// Books an event of the test.
    pub fn book(&mut self, at: Time, other: O) {
        self.push(at, (2, None), Booked::Other(other));
    }

    /// Books a call of a host at this time, unless an earlier call is already booked.
    pub fn wake(&mut self, host: H, at: Time) {
        let scheduled = self.scheduled.get(&host).copied().unwrap_or(Time::NEVER);
        if at < scheduled {
            self.scheduled.insert(host, at.max(self.now));
            self.push(at, (1, Some(host)), Booked::Wakes(host));
        }
    }

    /// Delivers a datagram to a socket at the time `at`, regardless of sites and links.
    pub fn put(&mut self, at: Time, (host, socket): (H, P), from: SocketAddr, bytes: Vec<u8>) {
        self.push(at, (0, Some(host)), Booked::Arrives { host, socket, from, bytes });
    }

    /// Returns the next event, unless it is after `end`. The current time becomes the event's time.
    pub fn next(&mut self, end: Time) -> Option<Happens<H, P, O>> {
        loop {
            let (at, booked) = self.calendar.pop_until(end)?;
            self.now = self.now.max(at);
            return Some(match booked {
                Booked::Arrives { host, socket, from, bytes } => {
                    Happens::Arrives { host, socket, from, bytes }
                }
                // Since this booking, the host has been called or has requested an earlier time.
                Booked::Wakes(host) if self.scheduled.get(&host) != Some(&at) => continue,
                Booked::Wakes(host) => {
                    self.scheduled.remove(&host);
                    Happens::Wakes(host)
                }
                Booked::Other(other) => Happens::Other(other),
            });
        }
    }

    /// Sends a source's datagram, at the time `at`, to all hosts that have joined the group. A site also carries a datagram of
    /// the base layer if none of its hosts has joined the group.
    pub fn multicast(
        &mut self,
        hosts: &mut impl Hosts<H, P>,
        (at, head): (Time, &D),
        (from, group, is_base): (SocketAddr, SocketAddr, bool),
        bytes: &[u8],
    ) {
        let size = bytes.len() as u64 + self.headers;
        for site in 0..self.sites.len() {
            if !self.sites[site].heads.contains(head) {
                continue;
            }
            let mut ears = std::mem::take(&mut self.ears);
            self.sites[site].members.iter().for_each(|member| hosts.ears(*member, group, &mut ears));
            let is_carried = !ears.is_empty() || is_base || self.sites[site].floods;
            let link = *self.sites[site].down.link();
            let at = if is_carried { self.sites[site].down.pass(size, at) } else { None };
            for (host, socket) in ears.drain(..) {
                if let Some(at) = at {
                    self.deliver(hosts, (at, host, link), (host, socket), from, bytes);
                }
            }
            self.ears = ears;
        }
    }

    /// Sends a datagram from one host to a socket of another host.
    pub fn unicast(
        &mut self,
        hosts: &mut impl Hosts<H, P>,
        (sender, target): (H, (H, P)),
        from: SocketAddr,
        bytes: &[u8],
        is_head: impl Fn(&D, H) -> bool,
    ) {
        let size = bytes.len() as u64 + self.headers;
        if let Some(way) = self.way((sender, target.0), size, is_head) {
            self.deliver(hosts, way, target, from, bytes);
        }
    }

    /// Computes the path of a packet between two hosts. Returns the arrival time, the host at whose site the packet may be
    /// damaged, and the link of this site.
    fn way(
        &mut self,
        (from, to): (H, H),
        size: u64,
        is_head: impl Fn(&D, H) -> bool,
    ) -> Option<(Time, H, Link)> {
        let now = self.now;
        let site_of = |host: H| self.sites.iter().position(|site| site.members.contains(&host));
        let (own, others) = (site_of(from), site_of(to));
        let farther = own.max(others);
        if let Some(near) = farther.and_then(|site| self.sites[site].near.as_mut()) {
            let path = if others == farther { to } else { from };
            return near.pass(size, now).map(|at| (at, path, *near.link()));
        }
        let heads = |site: usize, host: H| self.sites[site].heads.iter().any(|head| is_head(head, host));
        let (up, down) = match (own, others) {
            (Some(own), _) if heads(own, to) => (Some(own), None),
            (_, Some(others)) if heads(others, from) => (None, Some(others)),
            (Some(own), others) if others != Some(own) => (Some(own), others),
            _ => (None, None),
        };
        let (mut at, mut path, mut link) = (now, from, Link::default());
        if let Some(pipe) = up.map(|site| &mut self.sites[site].up) {
            (at, link) = (pipe.pass(size, now)?, *pipe.link());
        }
        if let Some(pipe) = down.map(|site| &mut self.sites[site].down) {
            // The packet is offered to the second link already now, not when it leaves the first link. If the second link were
            // reserved for a later time, it would drop other packets that arrive earlier.
            (at, path, link) = (at + pipe.pass(size, now)?.since(now), to, *pipe.link());
        }
        if up.or(down).is_none() {
            at = now + NEIGHBOURS;
        }
        Some((at, path, link))
    }

    fn deliver(
        &mut self,
        hosts: &mut impl Hosts<H, P>,
        (at, path, link): (Time, H, Link),
        (host, socket): (H, P),
        from: SocketAddr,
        bytes: &[u8],
    ) {
        let mut bytes = bytes.to_vec();
        let [first, others @ ..] = hosts.damage(path, &link, &mut bytes);
        for later in others.into_iter().flatten() {
            self.put(at + later, (host, socket.clone()), from, bytes.clone());
        }
        if let Some(later) = first {
            self.put(at + later, (host, socket), from, bytes);
        }
    }
}
