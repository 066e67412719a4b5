//! A virtual network for tests of sessions: endpoint tests, fuzz tests, tests of foreign packet formats, and the simulated world.
//!
//! The network contains links, sites and the calendar, but no sessions. A test owns the hosts. It takes the next event from
//! [`Network::next`], calls the host of the event, and passes the host's datagrams to the network. Time is virtual and jumps to
//! the next event. The same calls always deliver the same datagrams at the same nanoseconds.
//!
//! | type | contents |
//! |---|---|
//! | [`Calendar`] | events in the order of their times |
//! | [`Link`], [`Pipe`] | properties of a link: rate, delay, queue and damage; state of a link |
//! | [`Site`] | hosts behind a link, and the sources whose multicast the link carries |
//! | [`Network`] | sites, the path of a datagram, and the wake-ups of hosts |

mod calendar;
mod link;
mod network;

pub use calendar::Calendar;
pub use link::{Copies, Link, Pipe};
pub use network::{Happens, Hosts, Network, Site, Ties};
