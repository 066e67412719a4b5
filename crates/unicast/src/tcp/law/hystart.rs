//! HyStart++ (RFC 9406): ends slow start when round-trip times grow, before a packet is lost.

use super::Received;
use crate::Ack;
use faircast_core::time::Span;

/// Constants of RFC 9406, 4.3. The limit `L` on the growth of senders without pacing is left out.
const MIN_THRESHOLD: Span = Span::from_millis(4);
const MAX_THRESHOLD: Span = Span::from_millis(16);
const RTT_DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: f64 = 4.0;
const ROUNDS: u32 = 5;

/// One slow start.
#[derive(Debug, Clone)]
pub(super) struct HyStart {
    /// Packet number whose acknowledgement ends the round.
    round_end: u32,
    last_min: Span,
    min: Span,
    samples: u32,
    /// State of conservative slow start, if it has begun: the lowest round-trip time at its start, and the number of rounds
    /// since.
    conservative: Option<(Span, u32)>,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart { round_end: 0, last_min: Span::MAX, min: Span::MAX, samples: 0, conservative: None }
    }
}

impl HyStart {
    pub(super) fn on_received(&mut self, ack: &Ack, received: &Received) {
        if ack.next <= received.una {
            return;
        }
        self.min = self.min.min(received.now.since(ack.echo));
        self.samples += 1;
        let enough = self.samples >= SAMPLES;
        match self.conservative {
            None if enough && self.min < Span::MAX && self.last_min < Span::MAX => {
                let eighth = Span::from_nanos(self.last_min.as_nanos() / RTT_DIVISOR);
                let threshold = eighth.clamp(MIN_THRESHOLD, MAX_THRESHOLD);
                if self.min >= self.last_min + threshold {
                    self.conservative = Some((self.min, 0));
                }
            }
            // The longer round-trip time was temporary.
            Some((baseline, _)) if enough && self.min < baseline => self.conservative = None,
            _ => {}
        }
        if ack.next > self.round_end {
            self.round_end = received.nxt;
            (self.last_min, self.min, self.samples) = (self.min, Span::MAX, 0);
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
            }
        }
    }

    /// Returns whether congestion avoidance begins.
    pub(super) fn is_over(&self) -> bool {
        self.conservative.is_some_and(|(_, rounds)| rounds >= ROUNDS)
    }

    /// Returns the divisor that is applied to the growth of the window per acknowledged packet.
    pub(super) const fn divisor(&self) -> f64 {
        if self.conservative.is_some() { GROWTH_DIVISOR } else { 1.0 }
    }
}
