//! The control laws for the rate (paper 002, 3.3). Units are packets and seconds.

use crate::time::Span;

/// The control law that sets the rate from the number of queued packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// The rate depends on the difference between the wanted and the actual queue, with gains per round trip. Used by
    /// `Config::transport`.
    // Paper gap: (3.1) adds |diff|, which is zero on an empty queue, where the rate should grow. 3.6 integrates E - q. (3.2)
    // takes N_exp from the rate that it sets, so each acknowledgement multiplies the rate by k1. Here the number of queued
    // packets is computed from the measured rate, N_real (1 - RTTmin/RTT), as in TCP Vegas. With k1 = 4 per round trip the loop
    // has no phase margin (it is stable for 0.28 < k1 < 1.44 at k2 = 0.25), so k1 is 0.5.
    Steady,
    /// Equations (3.1) and (3.2), applied at each acknowledgement. Where line 12 of figure 3.3 has another sign than (3.1), the
    /// sign of (3.1) is used.
    Printed,
    /// Like `Steady`, but with the gains of section 3.6, in 1/s and 1/s^2.
    Seconds,
}

/// Gains and thresholds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gains {
    pub law: Law,
    pub k1: f64,
    pub k2: f64,
    /// Half of the width of the dead zone, in packets: `alpha = E - delta`, `beta = E + delta`.
    pub delta: f64,
}

/// Measurements of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AckMeasurements {
    /// Number of packets sent and not acknowledged, "N_real".
    pub outstanding: f64,
    /// "E", in packets.
    pub wanted: f64,
    /// Shortest round-trip time, "RTT_min".
    pub shortest: Span,
    /// Round-trip time of this acknowledgement.
    pub rtt: Span,
    /// Time since the latest application of the control law.
    pub passed: Span,
}

/// The rates in packets per second: the accumulated rate, "R_a", and the sending rate, "R_snd".
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    pub accumulated: f64,
    pub sending: f64,
}

impl AckMeasurements {
    /// Returns the number of queued packets, computed from the measured rate.
    pub fn queued(&self) -> f64 {
        let (shortest, rtt) = (self.shortest.as_secs_f64(), self.rtt.as_secs_f64());
        self.outstanding * (1.0 - shortest / rtt).max(0.0)
    }
}

impl Gains {
    /// Returns the rates after this acknowledgement.
    pub fn apply(&self, before: Rates, seen: &AckMeasurements) -> Rates {
        match self.law {
            Law::Steady => {
                let rtt = seen.rtt.as_secs_f64();
                let passed = seen.passed.as_secs_f64().min(rtt);
                self.towards(before, seen, self.k2 * passed / (rtt * rtt), self.k1 / rtt)
            }
            Law::Seconds => {
                let passed = seen.passed.min(seen.rtt).as_secs_f64();
                self.towards(before, seen, self.k2 * passed, self.k1)
            }
            Law::Printed => self.as_printed(before, seen),
        }
    }

    fn towards(&self, before: Rates, seen: &AckMeasurements, integral: f64, proportional: f64) -> Rates {
        let missing = seen.wanted - seen.queued();
        let step = if missing.abs() > self.delta { integral * missing } else { 0.0 };
        let accumulated = before.accumulated + step;
        // At a rate of less than one packet per round trip, acknowledgements would be rarer than one per round trip.
        let least = 1.0 / seen.rtt.as_secs_f64();
        Rates { accumulated, sending: (accumulated + proportional * missing).max(least) }
    }

    fn as_printed(&self, before: Rates, seen: &AckMeasurements) -> Rates {
        let shortest = seen.shortest.as_secs_f64();
        let diff = seen.outstanding - before.sending * shortest;
        let step = self.k2 * diff.abs() / shortest;
        let accumulated = if diff < seen.wanted - self.delta {
            before.accumulated + step
        } else if diff > seen.wanted + self.delta {
            before.accumulated - step
        } else {
            before.accumulated
        };
        Rates { accumulated, sending: accumulated - self.k1 * diff / shortest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn seen(outstanding: f64, rtt: Span) -> AckMeasurements {
        AckMeasurements { outstanding, wanted: 4.0, shortest: RTT, rtt, passed: RTT }
    }

    fn gains(law: Law) -> Gains {
        Gains { law, k1: 0.5, k2: 0.25, delta: 0.5 }
    }

    #[test]
    fn rate_grows_by_a_packet_per_rtt_squared_with_an_empty_queue() {
        let before = Rates { accumulated: 100.0, sending: 100.0 };
        let after = gains(Law::Steady).apply(before, &seen(10.0, RTT));
        assert!((after.accumulated - 110.0).abs() < 1e-9, "a packet per 100 ms more: {after:?}");
        assert!((after.sending - (110.0 + 0.5 * 4.0 / 0.1)).abs() < 1e-9);
    }

    #[test]
    fn printed_law_keeps_the_rate_if_no_packets_are_queued() {
        let before = Rates { accumulated: 100.0, sending: 100.0 };
        let gains = Gains { k1: 4.0, delta: 2.0, ..gains(Law::Printed) };
        assert_eq!(gains.apply(before, &seen(10.0, RTT)), before);
    }

    #[test]
    fn printed_law_steers_the_queue_between_alpha_and_beta() {
        let rates = |outstanding| {
            let before = Rates { accumulated: 100.0, sending: 100.0 };
            Gains { k1: 0.0, delta: 2.0, ..gains(Law::Printed) }.apply(before, &seen(outstanding, RTT))
        };
        assert!(rates(20.0).accumulated < 100.0 && rates(11.0).accumulated > 100.0);
        assert_eq!(rates(14.0).accumulated, 100.0, "between alpha and beta");
    }

    #[test]
    fn rate_is_at_least_a_packet_per_rtt_at_any_queue_length() {
        let before = Rates { accumulated: 20.0, sending: 20.0 };
        let after = gains(Law::Steady).apply(before, &seen(500.0, Span::from_millis(200)));
        assert_eq!(after.sending, 5.0);
    }

    #[test]
    fn rates_do_not_change_at_the_wanted_queue() {
        // 12 packets are not acknowledged; a third of the round-trip time is queueing delay.
        let before = Rates { accumulated: 80.0, sending: 80.0 };
        for law in [Law::Steady, Law::Seconds] {
            let after = gains(law).apply(before, &seen(12.0, Span::from_millis(150)));
            assert!(
                (after.accumulated - 80.0).abs() < 1e-6 && (after.sending - 80.0).abs() < 1e-6,
                "{after:?}"
            );
        }
    }
}
