//! Fuzzing of sessions: a receiver that gets arbitrary messages from its sender, and a source that gets arbitrary messages from
//! receivers.
//!
//! The input contains a sequence of datagrams in the format of [`Steps`].

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod hostile;

use super::SCHEMES;
use super::feed::Feed;
use super::receiver::{self, UdpcastReceiver};
use super::rendezvous::Gathering;
use super::source::{self, UdpcastSource};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::{Feeder, Pipe, Reporting};
use faircast_transport::endpoint::Endpoint;
use faircast_transport::step_driver::{Steps, give, pump};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(234, 0, 0, 1), 9000);
const SENDER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 9001);
/// Maximum duration of a session. It exceeds all timeouts.
const MAX_DURATION: Span = Span::from_secs(120);
/// Size of a block, in bytes: short, so that a slice is complete after few inputs.
const BLOCK: u16 = 128;

/// Returns content of this many bytes.
fn content(bytes: usize) -> Pipe {
    let (feeder, pipe) = Feeder::pipe();
    feeder.put(&vec![7; bytes]);
    feeder.end();
    pipe
}

fn receiver_session() -> UdpcastReceiver {
    let setup = receiver::Setup {
        port: GROUP.port(),
        rendezvous: vec![Ipv4Addr::BROADCAST],
        group: GROUP.into(),
        only: None,
        join_timeout: Some(Span::from_secs(10)),
        idle_timeout: Span::from_secs(30),
        buffer: 0,
    };
    let open = Box::new(|_| Ok(Box::new(io::sink()) as Box<dyn io::Write + Send>));
    UdpcastReceiver::new(setup, open, Time::ZERO)
}

fn source_session(scheme: &str, bytes: usize) -> UdpcastSource {
    let scheme: Scheme = scheme.parse().expect("a scheme of the catalogue");
    let setup = source::Setup {
        group: GROUP,
        rendezvous: vec![Ipv4Addr::BROADCAST],
        bounds: Bounds { max: Rate::from_mbps(4.0), ..scheme.bounds() },
        scheme: scheme.with_packet_size(BLOCK + 44),
        rng: Rng::new(1, 0),
        feed: Feed::new(content(bytes), BLOCK.into()),
        block_size: BLOCK,
        gathering: Gathering {
            expect: None,
            first: Some(Span::from_secs(10)),
            min: Span::ZERO,
            max: Some(Span::from_secs(10)),
        },
        idle_timeout: Span::from_secs(10),
        total: None,
        receiver_events: faircast_transport::config::ReceiverEvents::EverySecond,
    };
    UdpcastSource::new(setup, Time::ZERO)
}

/// Delivers the datagrams of the input. The address of the sender of a datagram is `from(mode)`, and `mode` is its first byte.
fn run(session: &mut dyn Endpoint, input: &[u8], from: impl Fn(u8) -> SocketAddr) {
    let mut now = Time::ZERO;
    for step in Steps(input) {
        if now > Time::ZERO + MAX_DURATION {
            break;
        }
        let mut packet = step.bytes.to_vec();
        // The first byte of most opcodes is 0. It selects the sender instead.
        let mode = packet.first().copied().unwrap_or_default();
        if let Some(first) = packet.first_mut().filter(|first| !step.is_raw && **first != 5) {
            *first = 0;
        }
        // Maps are longer than a step, so they are filled.
        if !step.is_raw && matches!(packet.get(1), Some(1 | 6)) {
            packet.resize(144, mode);
        }
        give(session, &mut packet, from(mode), now);
        pump(session, &mut now, step.wait);
    }
}

/// Runs a receiver that gets arbitrary messages from its sender.
pub fn receiver(input: &[u8]) {
    let mut receiver = receiver_session();
    // A reply: client 3, and blocks of 128 bytes.
    let reply = [0, 7, 0, 0, 0, 0, 0, 3, 0, 0, 0, 128, 0, 0, 0, 9, 234, 0, 0, 1];
    if input.first().is_some_and(|first| first % 2 == 0) {
        give(&mut receiver, &mut reply.clone(), SENDER.into(), Time::ZERO);
    }
    run(&mut receiver, input, |_| SENDER.into());
    let _ = receiver.report();
}

/// Runs a source that gets arbitrary messages from receivers. The first byte of the input selects the scheme.
pub fn source(input: &[u8]) {
    let Some((first, input)) = input.split_first() else { return };
    let mut source = source_session(SCHEMES[usize::from(first % 4)], 500_000);
    let host = |mode: u8| SocketAddr::from((Ipv4Addr::new(10, 0, 1, mode % 4), GROUP.port()));
    (0..2).for_each(|n| give(&mut source, &mut [0, 3, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0], host(n), Time::ZERO));
    run(&mut source, input, host);
    let _ = source.report();
}
