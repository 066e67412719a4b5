//! Congestion detection at a receiver of MCA or MCA+: accumulation, loss and marks (paper 000, 5.2.2.1).

use super::{Accumulation, Measuring, Reading};
use crate::packet::{Arrival, Cause, Data, Seq, Signal};
use crate::time::{Rate, Span, Time};

/// Decides for each arrival whether it shows an instance of congestion.
#[derive(Debug, Clone)]
pub struct Detector {
    pub(super) accumulation: Accumulation,
    /// Sending time of the newest packet.
    newest_sent: Time,
    /// Whether a packet was marked since the latest control packet.
    marks: Marks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    Seen,
}

/// An instance of congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    /// The packet that showed the congestion: the control packet, or the one after the lost packets. MCA+ uses it for round-trip
    /// samples: "the packet which triggered the CI" (paper 000, 5.2.1.1).
    pub trigger: Seq,
    /// The packet that MCA uses for round-trip samples: the control packet, or the first lost packet (paper 000, D.2).
    pub first: Seq,
    /// The observed sign of congestion.
    pub cause: Cause,
}

/// Minimum duration without packets that counts as a pause of the source. A pause must also exceed the sending time of
/// `PAUSE_PACKETS` packets.
const PAUSE: Span = Span::from_millis(20);
const PAUSE_PACKETS: u64 = 4;

impl Detector {
    /// Creates the state before the first packet.
    pub fn new(measuring: Measuring) -> Detector {
        Detector { accumulation: Accumulation::new(measuring), newest_sent: Time::ZERO, marks: Marks::None }
    }

    /// Processes an arrival and returns the instance of congestion that it shows, if any. Loss takes precedence over
    /// accumulation, and accumulation over a mark.
    // Paper gap: 5.2.2.1 does not cover marks of routers. Here a mark is reported with the next control packet, so there is still
    // at most one report per interval.
    #[inline]
    pub fn on_data(&mut self, data: &Data, arrival: Arrival, now: Time) -> Option<Instance> {
        if arrival.marked {
            self.marks = Marks::Seen;
        }
        if arrival.late {
            self.accumulation.on_arrival(arrival.size, now);
            return None;
        }
        self.notice_pause(data, arrival);
        self.accumulation.on_arrival(arrival.size, now);
        if arrival.lost > 0 {
            self.accumulation.on_loss(now);
        }
        let control = data.signal == Signal::Control;
        let congested = control
            && matches!(
                self.accumulation.on_control(data.sent_at, data.sent_rate(), now),
                Reading::Congested(_)
            );
        let marked = control && std::mem::replace(&mut self.marks, Marks::None) == Marks::Seen;
        let cause = match (arrival.lost, congested, marked) {
            (1.., _, _) => Cause::Loss,
            (0, true, _) => Cause::Accumulation,
            (0, false, true) => Cause::Mark,
            _ => return None,
        };
        let first = Seq(data.seq.0.saturating_sub(u64::from(arrival.lost)));
        Some(Instance { trigger: data.seq, first, cause })
    }

    /// Restarts the measurement of the arrival rate after a pause of the source.
    #[inline]
    fn notice_pause(&mut self, data: &Data, arrival: Arrival) {
        let passed = data.sent_at.since(self.newest_sent);
        if passed > PAUSE && data.rate > 0.0 {
            let packets = 1 + u64::from(arrival.lost) + u64::from(arrival.excused);
            let expected = data.sent_rate().span_of(u64::from(arrival.size) * packets);
            if passed > expected * PAUSE_PACKETS {
                self.accumulation.remeasure();
            }
        }
        self.newest_sent = self.newest_sent.max(data.sent_at);
    }

    /// Returns the arrival rate, or the sending rate stated by `data` if too few packets have arrived. `None` if neither is
    /// available.
    pub fn egress(&self, data: &Data, now: Time) -> Option<Rate> {
        self.accumulation.egress(now).or(Some(data.sent_rate())).filter(|rate| rate.is_usable())
    }

    /// Sets the time over which arrival rates are measured.
    #[inline]
    pub fn measure_over(&mut self, window: Span) {
        self.accumulation.measure_over(window);
    }

    /// Restarts the measurement of the arrival rate, because earlier arrivals do not represent the current rate.
    pub fn remeasure(&mut self) {
        self.accumulation.remeasure();
    }
}
