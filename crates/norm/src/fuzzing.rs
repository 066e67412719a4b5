//! Fuzzing of sessions: a source that gets arbitrary messages from receivers.
//!
//! The input contains a sequence of datagrams in the format of [`Steps`].

#[cfg(test)]
mod corpus;

use super::codec;
use super::files::Files;
use super::source::{NormSource, Setup};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::step_driver::{Steps, give, pump};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

const GROUP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(239, 255, 0, 1)), 6003);
/// Node number of the source, and number of its run.
const NODE: u32 = 1;
const INSTANCE: u16 = 1;
/// Maximum duration of a session. It exceeds all timeouts.
const MAX_DURATION: Span = Span::from_secs(120);
const SEGMENT: usize = 128;
const FEC: codec::Fec = codec::Fec::SmallBlock;

fn source_session() -> NormSource {
    // This file exists wherever the crate is built, and a fuzzer needs no other content.
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    let (files, _) = Files::look(&[path], FEC, SEGMENT).expect("the source tree can be read");
    let scheme: Scheme = "tfmcc".parse().expect("a scheme of the catalogue");
    let setup = Setup {
        group: GROUP,
        node: NODE,
        instance: INSTANCE,
        overhead: 28,
        bounds: Bounds { max: Rate::from_mbps(4.0), ..scheme.bounds() },
        scheme: scheme.with_packet_size((SEGMENT + FEC.data_header_len() + 28) as u16),
        rng: Rng::new(1, 0),
        files,
        expect: None,
        join_timeout: Span::from_secs(10),
        unix_secs: 0,
        receiver_events: faircast_transport::config::ReceiverEvents::EverySecond,
    };
    NormSource::new(setup, Time::ZERO)
}

/// Runs a source that gets arbitrary messages from receivers.
pub fn source(input: &[u8]) {
    let mut source = source_session();
    let mut now = Time::ZERO;
    for step in Steps(input) {
        if now > Time::ZERO + MAX_DURATION {
            break;
        }
        let mut packet = step.bytes.to_vec();
        // Most inputs would have another sender or another run.
        if !step.is_raw && packet.len() >= 16 {
            packet[0] = 0x14 | packet[0] & 1;
            packet[8..14].copy_from_slice(&[0, 0, 0, NODE as u8, 0, INSTANCE as u8]);
        }
        let host = packet.get(7).copied().unwrap_or_default();
        give(&mut source, &mut packet, (Ipv4Addr::new(10, 0, 1, host), 6003).into(), now);
        pump(&mut source, &mut now, step.wait);
    }
    let _ = source.report();
}
