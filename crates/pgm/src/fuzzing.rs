//! Fuzzing of PGM: a receiver that gets arbitrary packets from its source, and a source that gets arbitrary packets from
//! receivers.
//!
//! The input contains a sequence of datagrams in the format of [`Steps`].

#[cfg(test)]
mod corpus;

use super::content_writer::ContentWriter;
use super::feed::{Feed, Input, ReadResult};
use super::missing::Timeouts;
use super::receiver::{self, PgmReceiver};
use super::source::{self, PgmSource};
use super::{Framing, WindowLimits};
use crate::codec::{self, Gsi, Tsi};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::config::ReceiverEvents;
use faircast_transport::step_driver::{Steps, pump};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 5555);
const TSI: Tsi = Tsi { gsi: Gsi([1, 2, 3, 4, 5, 6]), port: 77 };

/// Content of this many bytes.
pub(super) struct Content(pub(super) usize);

impl Input for Content {
    fn read(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<ReadResult> {
        let len = most.min(self.0);
        into.resize(into.len() + len, 7);
        self.0 -= len;
        Ok(if len == 0 { ReadResult::End } else { ReadResult::Bytes })
    }
}

/// Sets the ports, the session and the checksum of a datagram to valid values, so that the datagram is not refused because of
/// them.
fn address(packet: &mut [u8], ports: (u16, u16)) {
    if packet.len() < codec::HEADER_LEN {
        return;
    }
    packet[..2].copy_from_slice(&ports.0.to_be_bytes());
    packet[2..4].copy_from_slice(&ports.1.to_be_bytes());
    packet[8..14].copy_from_slice(&TSI.gsi.0);
    let sum = codec::checksum(packet).to_be_bytes();
    packet[6..8].copy_from_slice(&sum);
}

/// Maximum number of packets that a receiver stores. It is a hundredth of the usual limit; separate tests cover the work with the
/// usual limit.
const HELD: u64 = 600;

/// Limit of a source's window in bytes. It is so small that the window has its minimum number of packets. A window of 64 MiB for
/// each input would take longer to create than the input takes to process.
const KEPT: usize = 1;

/// Maximum duration of a receiver's session. It exceeds all timeouts of the receiver.
const MAX_DURATION: Span = Span::from_secs(120);

/// Runs a receiver that gets arbitrary packets from its source.
pub fn receiver(input: &[u8]) {
    let setup = receiver::Setup {
        group: GROUP,
        local: RECEIVER,
        data_port: GROUP.port(),
        nak_port: GROUP.port(),
        only: None,
        join_timeout: Some(Span::from_secs(10)),
        idle_timeout: Span::from_secs(30),
        timeouts: Timeouts { most_unconfirmed: 5, most_unanswered: 5, ..Timeouts::default() },
        most_held: HELD,
        rng: Rng::new(2, 1),
    };
    let open = Box::new(|_| Ok(ContentWriter::new(Box::new(io::sink()), Framing::None, None)));
    let (mut receiver, mut now) = (PgmReceiver::new(setup, open, Time::ZERO), Time::ZERO);
    for step in Steps(input) {
        if now > Time::ZERO + MAX_DURATION {
            break;
        }
        let mut packet = step.bytes.to_vec();
        if !step.is_raw {
            address(&mut packet, (TSI.port, GROUP.port()));
        }
        step.give(&mut receiver, &mut packet, (SOURCE, GROUP.port()).into(), now);
        pump(&mut receiver, &mut now, step.wait);
    }
    let _ = receiver.report();
}

/// Runs a source that gets arbitrary packets from receivers and routers. The first byte of the input selects the scheme and the
/// first packet number; the rest of the input contains the packets.
pub fn source(input: &[u8]) {
    let Some((&setup, input)) = input.split_first() else { return };
    let scheme = ["ormcc", "pgmcc", "le-sbcc", "tfmcc"][usize::from(setup & 3)];
    let scheme: Scheme = scheme.parse().expect("a scheme of the catalogue");
    let setup = source::Setup {
        tsi: TSI,
        data_port: GROUP.port(),
        local: SOURCE,
        group: *GROUP.ip(),
        to: GROUP.into(),
        source: scheme.source(),
        scheme_number: scheme.number(),
        bounds: Bounds { max: Rate::from_mbps(2.0), ..scheme.bounds() },
        rng: Rng::new(1, 0),
        feed: Feed::new(Box::new(Content(20_000)), Framing::None, None, 1_000),
        room: 1_000,
        window: WindowLimits { bytes: KEPT, ..WindowLimits::default() },
        linger: Span::from_secs(3),
        // The larger number is just below the maximum, so that packet numbers wrap.
        first: if setup & 4 == 0 { 0 } else { u32::MAX - 4 },
        total: None,
        receiver_events: ReceiverEvents::EverySecond,
    };
    let (mut source, mut now) = (PgmSource::new(setup, Time::ZERO), Time::ZERO);
    for step in Steps(input) {
        let mut packet = step.bytes.to_vec();
        if !step.is_raw {
            address(&mut packet, (GROUP.port(), TSI.port));
        }
        step.give(&mut source, &mut packet, (RECEIVER, GROUP.port()).into(), now);
        pump(&mut source, &mut now, step.wait);
    }
    let _ = source.report();
}
