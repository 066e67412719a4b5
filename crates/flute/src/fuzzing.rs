//! Fuzzing of an ALC receiver: a hostile source.
//!
//! The input is a sequence of datagrams, as read by [`Steps`].

#[cfg(test)]
mod corpus;

use super::receiver::{self, AlcReceiver};
use faircast_core::time::{Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::object::Names;
use faircast_transport::step_driver::{Steps, pump};
use std::net::SocketAddr;
use std::path::Path;

/// Runs a receiver with arbitrary packets of a source: object packets, tables, congestion control information. `scratch` is a
/// directory; its content is removed.
pub fn receiver(input: &[u8], scratch: &Path) {
    let out = scratch.join("alc");
    let setup = receiver::Setup {
        group: SocketAddr::from(([239, 1, 1, 1], 5777)),
        only: None,
        out: out.clone(),
        names: Names::Escape,
        most: None,
        join_timeout: Some(Span::from_secs(5)),
        idle_timeout: Span::from_secs(5),
        overhead: 28,
        unix_secs: 1_790_000_000,
        random: 3,
    };
    let mut receiver = AlcReceiver::new(setup, Time::ZERO).expect("the directory can be made");
    let (from, mut now) = (SocketAddr::from(([192, 0, 2, 1], 40_000)), Time::ZERO);
    for step in Steps(input) {
        step.give(&mut receiver, &mut step.bytes.to_vec(), from, now);
        pump(&mut receiver, &mut now, step.wait);
    }
    let _ = receiver.report();
    let _ = std::fs::remove_dir_all(&out);
}
