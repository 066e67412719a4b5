//! Rate control of a layer by PGMCC's window: the representative acknowledges every packet. Paper 000, 4.1.2 names PGMCC's
//! mechanism as a possible replacement of GMCC's own mechanism.
//!
//! The layer's representative is chosen as under GMCC's other rate controls; PGMCC's acker election is not used.

use super::config::Config;
use crate::packet::{Echo, ReceiverId, ReportContent, Seq};
use crate::rate::Start;
use crate::schemes::pgmcc;
use crate::schemes::pgmcc::timeout::Timeout;
use crate::schemes::pgmcc::window::{CongestionWindow, WindowGrowth};
use crate::time::{Rate, Span, Time};

/// The source's state of a layer whose rate is controlled by acknowledgements.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    window: CongestionWindow,
    timeout: Timeout,
    timeout_at: Time,
    /// Time at which the tokens last ran out. The window grows only while it is fully used.
    starved_at: Option<Time>,
    /// Lower bound of the slow-start threshold.
    min_threshold: f64,
}

/// Whether the window was halved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halved {
    No,
    Yes,
}

impl Acknowledged {
    pub(super) fn new(config: &Config) -> Acknowledged {
        let rules = pgmcc::Config::published();
        let threshold = match config.sending.start {
            Start::Linear => rules.ssthresh,
            Start::Doubling(_) => f64::INFINITY,
        };
        Acknowledged {
            window: CongestionWindow::new(&rules, threshold),
            timeout: Timeout::new(rules.min_rto, rules.first_rto, rules.max_rto),
            timeout_at: Time::NEVER,
            starved_at: None,
            min_threshold: rules.ssthresh,
        }
    }

    pub(super) fn has_token(&self) -> bool {
        self.window.has_token()
    }

    /// Returns the rate of one window per round-trip time.
    pub(super) fn rate(&self, packet_size: u16, rtt: Span) -> Rate {
        Rate::of(u64::from(packet_size), rtt) * self.window.size()
    }

    pub(super) const fn deadline(&self) -> Time {
        self.timeout_at
    }

    fn restart_timer(&mut self, now: Time) {
        self.timeout_at = if self.window.in_flight() > 0 { now + self.timeout.span() } else { Time::NEVER };
    }

    /// Records a packet that was sent while `representative` was the representative.
    pub(super) fn on_departure(&mut self, representative: Option<ReceiverId>, now: Time) {
        self.window.depart(representative);
        if !self.window.has_token() {
            self.starved_at = Some(now);
        }
        if self.timeout_at.is_never() {
            self.restart_timer(now);
        }
    }

    /// Handles a change of the representative. Packets that were sent without a representative will not be acknowledged.
    pub(super) fn follow(&mut self, sample: Option<Span>, now: Time) {
        self.window.credit_unasked();
        self.timeout.restart(sample);
        self.restart_timer(now);
    }

    /// Handles an acknowledgement. `sample` is set only for an acknowledgement of the representative, because the round-trip
    /// times of other receivers do not count.
    pub(super) fn on_selective(
        &mut self,
        from: ReceiverId,
        seq: Seq,
        bitmap: u32,
        sample: Option<Span>,
        rtt: Span,
        now: Time,
    ) -> Halved {
        let used = !self.window.has_token() || self.starved_at.is_some_and(|at| now.since(at) <= rtt);
        let before = self.window.size();
        let growth = if used { WindowGrowth::Open } else { WindowGrowth::Hold };
        let outcome = self.window.acknowledge(from, seq, bitmap, growth);
        if let Some(sample) = sample {
            self.timeout.sample(sample);
        }
        if outcome.acknowledged + outcome.lost > 0 {
            self.timeout.end_back_off();
            self.restart_timer(now);
        }
        if outcome.cut {
            self.window.set_threshold(self.min_threshold.max(before / 2.0));
            return Halved::Yes;
        }
        Halved::No
    }

    /// Restarts with a window of one packet.
    pub(super) fn restart(&mut self) {
        let half = self.window.size() / 2.0;
        self.window.restart();
        self.window.set_threshold(self.min_threshold.max(half));
        self.timeout_at = Time::NEVER;
    }

    /// Handles a missing acknowledgement.
    pub(super) fn time_out(&mut self) {
        self.restart();
        self.timeout.back_off();
    }
}

/// The receiver's state: the received packets among the latest 32 packets of a layer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrived {
    newest: Seq,
    /// Bit k is set if packet `newest - k` has arrived.
    bitmap: u32,
}

impl Arrived {
    pub(super) fn note(&mut self, seq: Seq) {
        if self.bitmap == 0 {
            *self = Arrived { newest: seq, bitmap: 1 };
        } else if seq > self.newest {
            let step = u32::try_from(seq.0 - self.newest.0).unwrap_or(u32::MAX);
            *self = Arrived { newest: seq, bitmap: self.bitmap.checked_shl(step).unwrap_or(0) | 1 };
        } else {
            let back = u32::try_from(self.newest.0 - seq.0).unwrap_or(u32::MAX);
            self.bitmap |= 1u32.checked_shl(back).unwrap_or(0);
        }
    }

    /// Returns the acknowledgement of these packets. `hold` is the time since the newest packet has arrived.
    pub(super) fn acknowledgement(&self, hold: Span) -> ReportContent {
        let behind = 32 - (!self.bitmap).leading_zeros();
        let echo = Echo { seq: self.newest, hold };
        ReportContent::Selective { echo, behind, bitmap: self.bitmap, loss: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_packets_set_their_bits_in_the_acknowledgement() {
        let mut arrived = Arrived::default();
        [5, 8, 6].into_iter().for_each(|seq| arrived.note(Seq(seq)));
        let ReportContent::Selective { echo, bitmap, .. } = arrived.acknowledgement(Span::ZERO) else {
            panic!("an acknowledgement")
        };
        assert_eq!((echo.seq, bitmap), (Seq(8), 0b1101));
    }
}
