//! A source sends a file to a receiver in virtual time: `packet_costs open|sealed MEGABYTES`. Prints the number of packets.
//!
//! `bench/sim/run --count` counts the instructions in [`source_turn`] and in [`receiver_turn`]: those of sessions without sockets
//! and system calls. The source has the file in memory, the receiver writes a file, the rate is constant, and no packet is lost.

#![expect(clippy::disallowed_methods, reason = "the received file is compared")]

use faircast_core::time::{Rate, Span, Time};
use faircast_net::Ecn;
use faircast_transport::endpoint::{Datagram, Endpoint, HostEvent};
use faircast_transport::object::host::disk::Disk;
use faircast_transport::session::{Host, Receiver, SYMBOLS_PER_BLOCK, Source};
use faircast_transport::worker::Worker;
use faircast_transport::{Content, Destination, MemoryFile, ReceiveConfig, SendConfig};
use faircast_wire::GroupKey;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Delay of the path, each way.
const DELAY: Span = Span::from_millis(1);
/// Size of a datagram in packets of 1500 bytes.
const DATAGRAM: usize = 1472;

/// Datagrams on their way to a host, with the times at which they arrive.
#[derive(Default)]
struct Path {
    datagrams: VecDeque<(Time, Vec<u8>)>,
    sent: u64,
}

impl Path {
    fn next(&self) -> Time {
        self.datagrams.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Delivers all datagrams that have arrived from this address.
    fn deliver(&mut self, to: &mut dyn Endpoint, from: SocketAddr, now: Time) {
        while self.next() <= now {
            let Some((arrived, mut bytes)) = self.datagrams.pop_front() else { break };
            to.handle_datagram(Datagram { bytes: &mut bytes, from, ecn: Ecn::NotEct, arrived }, now);
        }
    }

    /// Takes all datagrams that are to be sent.
    fn fill(&mut self, by: &mut dyn Endpoint, now: Time, out: &mut Vec<u8>) {
        while let Some(transmit) = by.poll_transmit(now, out) {
            for bytes in out.chunks(transmit.segment) {
                self.datagrams.push_back((now + DELAY, bytes.to_vec()));
                self.sent += 1;
            }
        }
        while by.poll_event().is_some() {}
    }
}

/// Both directions.
#[derive(Default)]
struct Network {
    down: Path,
    up: Path,
    out: Vec<u8>,
}

/// Performs all work of a source that is due.
#[inline(never)]
fn source_turn(source: &mut dyn Endpoint, network: &mut Network, receiver: SocketAddr, now: Time) {
    network.up.deliver(source, receiver, now);
    source.handle_timeout(now);
    network.down.fill(source, now, &mut network.out);
}

/// Performs all work of a receiver that is due.
#[inline(never)]
fn receiver_turn(receiver: &mut dyn Endpoint, network: &mut Network, source: SocketAddr, now: Time) {
    network.down.deliver(receiver, source, now);
    receiver.handle_host_event(HostEvent::Drained, now);
    receiver.handle_timeout(now);
    network.up.fill(receiver, now, &mut network.out);
}

fn host(random: u64, local: SocketAddr) -> Host {
    Host {
        random: std::array::from_fn(|at| random + at as u64),
        local,
        datagram: DATAGRAM,
        symbols: SYMBOLS_PER_BLOCK,
        unix_nanos: 1_700_000_000_000_000_000,
        now: Time::ZERO,
        disk: Disk::default(),
        worker: Worker::at_once(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [form, megabytes] = arguments.as_slice() else {
        return Err("usage: packet_costs open|sealed MEGABYTES".into());
    };
    let key = (form == "sealed").then(|| GroupKey::from_bytes([7; 32]));
    let size = megabytes.parse::<usize>()? * 1_000_000;
    let (source_at, receiver_at) = ("10.0.0.1:5777".parse()?, "10.0.0.2:5777".parse()?);

    let bytes: Vec<u8> = (0..size).map(|at| (at * at / 7) as u8).collect();
    let mut sending = SendConfig::new(Content::Memory(vec![MemoryFile::new("file", bytes.clone())]));
    (sending.min, sending.max) = (Some(Rate::from_bps(400e6)), Some(Rate::from_bps(400e6)));
    (sending.expect, sending.key) = (Some(1), key.clone());
    sending.join_timeout = Duration::from_secs(10);
    let directory = tempfile::tempdir()?;
    let mut receiving = ReceiveConfig::new(Destination::Directory(directory.path().to_owned()));
    receiving.key = key.map(Into::into);
    let mut source = Source::new(sending, &host(1, source_at), &mut drop)?;
    let mut receiver = Receiver::new(receiving, &host(5, receiver_at));

    let mut network = Network::default();
    let mut now = Time::ZERO;
    while !(source.endpoint().is_finished() && receiver.endpoint().is_finished()) {
        source_turn(source.endpoint(), &mut network, receiver_at, now);
        receiver_turn(receiver.endpoint(), &mut network, source_at, now);
        let timeouts = source.next_timeout(now).min(receiver.next_timeout(now));
        let next = timeouts.min(network.down.next()).min(network.up.next());
        now = next.max(now + Span::from_micros(100));
        if now > Time::from_secs_f64(60.0) {
            return Err("the session does not end".into());
        }
    }
    source.report()?;
    receiver.report()?;
    if std::fs::read(directory.path().join("file"))? != bytes {
        return Err("the receiver has another file".into());
    }
    println!("{{\"packets\": {}}}", network.down.sent);
    Ok(())
}
