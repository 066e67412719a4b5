//! Datagrams that fuzzers give to an endpoint, and what it does then.

use crate::endpoint::{Datagram, Endpoint};
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use std::net::SocketAddr;

/// Datagrams one after the other: a byte of mode, a byte of length, the bytes. Bits 0 to 3 of the mode are the time after it (1 ms, 2 ms,
/// 4 ms ... 33 s), bit 6 says that it carries a congestion mark, bit 7 that the bytes are sent as they are.
pub(crate) struct Steps<'a>(pub(crate) &'a [u8]);

/// One of them.
pub(crate) struct Step<'a> {
    pub bytes: &'a [u8],
    pub wait: Span,
    pub is_raw: bool,
    is_marked: bool,
}

impl<'a> Iterator for Steps<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let (&[mode, len], rest) = self.0.split_first_chunk()?;
        let (bytes, rest) = rest.split_at(usize::from(len).min(rest.len()));
        self.0 = rest;
        let wait = Span::from_millis(1 << (mode & 15));
        Some(Step { bytes, wait, is_raw: mode & 0x80 != 0, is_marked: mode & 0x40 != 0 })
    }
}

impl Step<'_> {
    pub(crate) fn give(&self, to: &mut dyn Endpoint, bytes: &mut [u8], from: SocketAddr, now: Time) {
        give(to, bytes, from, self.is_marked, now);
    }
}

/// An endpoint does for so long what it has to do. It must not be busy without an end.
pub(crate) fn pump(endpoint: &mut dyn Endpoint, now: &mut Time, span: Span) {
    let (until, mut out) = (*now + span, Vec::new());
    let mut transmitted = 0;
    for turn in 0.. {
        while endpoint.poll_transmit(*now, &mut out).is_some() {
            transmitted += 1;
            assert!(transmitted < 1_000_000, "it sends without an end");
        }
        while endpoint.poll_event().is_some() {}
        let next = endpoint.poll_timeout(*now).max(*now + Span::from_micros(10));
        if endpoint.is_over() || next > until {
            break;
        }
        assert!(turn < 200_000, "it is awake without an end");
        *now = next;
        endpoint.handle_timeout(*now);
    }
    *now = until;
}

/// A datagram comes.
pub(crate) fn give(to: &mut dyn Endpoint, bytes: &mut [u8], from: SocketAddr, marked: bool, now: Time) {
    let ecn = if marked { Ecn::Ce } else { Ecn::NotEct };
    to.handle_datagram(Datagram { bytes, from, ecn, arrived: now }, now);
}
