//! A virtual network for tests of sessions: endpoint tests, fuzz worlds, foreign formats and the simulated world.
//!
//! The network contains links, sites and the calendar, but no sessions. A test owns its hosts, takes the next event from
//! [`Network::next`], calls the host, and passes the host's datagrams to the network. Time is virtual and jumps to the next
//! event. The same calls always deliver the same datagrams at the same nanoseconds.
//!
//! | type | contents |
//! |---|---|
//! | [`Calendar`] | events in order of time |
//! | [`Link`], [`Pipe`] | rate, delay, queue and damage of a link; its state |
//! | [`Site`] | hosts behind a link, and the sources whose multicast it carries |
//! | [`Network`] | sites, the path of a datagram, and the wake-ups of hosts |

mod calendar;
mod link;
mod network;

pub use calendar::Calendar;
pub use link::{Copies, Link, Pipe};
pub use network::{Happens, Hosts, Network, Site, Ties};
