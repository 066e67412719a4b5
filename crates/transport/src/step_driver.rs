//! A driver that runs an [`Endpoint`] step by step, without sockets or a clock, for tests and fuzzers.
//!
//! [`give`] delivers a datagram to an endpoint, and [`take_all`] returns the endpoint's pending datagrams. [`Steps`] parses
//! datagrams from the input of a fuzzer, and [`pump`] runs an endpoint for some time.

use crate::endpoint::{Datagram, Endpoint};
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use std::net::SocketAddr;

/// A sequence of datagrams. A datagram is encoded as a mode byte, a length byte, and the bytes of the datagram. Bits 0 to 3 of
/// the mode select the time after the datagram (1 ms, 2 ms, 4 ms ... 33 s). Bit 6 sets a congestion mark. If bit 7 is set, the
/// bytes are sent unchanged.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'a>(pub &'a [u8]);

/// One datagram of the sequence.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The bytes of the datagram.
    pub bytes: &'a [u8],
    /// The time after the datagram.
    pub wait: Span,
    /// Whether the bytes are sent unchanged.
    pub is_raw: bool,
    ecn: Ecn,
}

impl<'a> Iterator for Steps<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let (&[mode, len], rest) = self.0.split_first_chunk()?;
        let (bytes, rest) = rest.split_at(usize::from(len).min(rest.len()));
        self.0 = rest;
        let wait = Span::from_millis(1 << (mode & 15));
        let ecn = if mode & 0x40 != 0 { Ecn::Ce } else { Ecn::NotEct };
        Some(Step { bytes, wait, is_raw: mode & 0x80 != 0, ecn })
    }
}

impl Step<'_> {
    /// Delivers these bytes, with the congestion mark of this step, if any.
    pub fn give(&self, to: &mut dyn Endpoint, bytes: &mut [u8], from: SocketAddr, now: Time) {
        give_with(to, bytes, from, self.ecn, now);
    }
}

/// Runs an endpoint for this duration.
///
/// # Panics
/// If the endpoint sends datagrams or requests calls without end.
pub fn pump(endpoint: &mut dyn Endpoint, now: &mut Time, span: Span) {
    let (until, mut out) = (*now + span, Vec::new());
    let mut transmitted = 0;
    for turn in 0.. {
        while endpoint.poll_transmit(*now, &mut out).is_some() {
            transmitted += 1;
            assert!(transmitted < 1_000_000, "it sends without an end");
        }
        while endpoint.poll_event().is_some() {}
        let next = endpoint.poll_timeout(*now).max(*now + Span::from_micros(10));
        if endpoint.is_finished() || next > until {
            break;
        }
        assert!(turn < 200_000, "it is awake without an end");
        *now = next;
        endpoint.handle_timeout(*now);
    }
    *now = until;
}

/// Delivers a datagram that arrives now, without a congestion mark.
pub fn give(to: &mut dyn Endpoint, bytes: &mut [u8], from: SocketAddr, now: Time) {
    give_with(to, bytes, from, Ecn::NotEct, now);
}

/// Delivers a datagram that arrives now.
pub fn give_with(to: &mut dyn Endpoint, bytes: &mut [u8], from: SocketAddr, ecn: Ecn, now: Time) {
    to.handle_datagram(Datagram { bytes, from, ecn, arrived: now }, now);
}

/// Returns all datagrams to be sent now, with their destinations.
pub fn take_all(from: &mut dyn Endpoint, now: Time) -> Vec<(Vec<u8>, SocketAddr)> {
    let (mut taken, mut out) = (Vec::new(), Vec::new());
    while let Some(transmit) = from.poll_transmit(now, &mut out) {
        taken.extend(out.chunks(transmit.segment).map(|bytes| (bytes.to_vec(), transmit.to)));
    }
    taken
}
