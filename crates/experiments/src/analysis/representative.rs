//! Properties of ORMCC (paper 000, appendix C). The source follows the most congested path, and its session shares this path with
//! TCP. The number of reports does not grow with the group.

use faircast_core::time::{Rate, Span};

/// The bottleneck of a path (paper 000, C.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bottleneck {
    /// Rate of the bottleneck, "W".
    pub rate: Rate,
    /// Buffer of the bottleneck in bytes, "Q". If the queue never empties, only the part of the buffer that drains and fills
    /// again counts.
    pub buffer: u64,
    /// Growth of the rates of all other flows at the bottleneck together, relative to the growth of the session's rate, "gamma".
    pub others: f64,
}

/// Returns the growth of the session's rate in bit/s per second, "Delta".
// Paper gap: C.1 prints the growth per round trip, s / RTT. Its formulas need the growth per unit of time, s / RTT^2.
pub fn growth(packet_size: u16, rtt: Span) -> f64 {
    8.0 * f64::from(packet_size) / rtt.as_secs_f64().powi(2)
}

impl Bottleneck {
    fn buffer_bits(&self) -> f64 {
        8.0 * self.buffer as f64
    }

    /// Returns the time until the first loss, counted from the moment at which the sum of all rates equals the bottleneck's rate
    /// (C.4). `growth` is the growth of the session's rate.
    pub fn time_to_overflow(&self, growth: f64) -> Span {
        Span::from_secs_f64((2.0 * self.buffer_bits() / ((1.0 + self.others) * growth)).sqrt())
    }

    /// Returns the amount by which the sum of all rates exceeds the bottleneck's rate at the first loss (C.5).
    pub fn overload(&self, growth: f64) -> Rate {
        Rate::from_bps((2.0 * growth * self.buffer_bits() * (1.0 + self.others)).sqrt())
    }

    /// Returns the session's throughput behind the bottleneck at the first loss, if the session sends at `rate` (C.6).
    pub fn throughput_at_congestion(&self, rate: Rate, growth: f64) -> Rate {
        rate * (1.0 / (1.0 + self.overload(growth).bps() / self.rate.bps()))
    }

    /// Returns the value by which the representative is selected: the receiver with the lowest value becomes the representative
    /// (C.8). If all buffers have the same size, the selection does not depend on this size, as in the paper.
    pub fn standing(&self) -> f64 {
        self.rate.bps() / (self.buffer_bits() * (1.0 + self.others)).sqrt()
    }
}

/// A session and a TCP flow alone at a bottleneck (paper 000, C.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The session's rate when the sum of both rates equals the bottleneck's rate, "X".
    pub session: Rate,
    /// The bottleneck's rate, "W".
    pub bottleneck: Rate,
    /// Increase of each of the two rates from this moment until the loss, "d".
    pub rise: Rate,
}

impl Pair {
    /// Returns the ratio of the session's rate to TCP's rate when the sum of both rates equals the bottleneck's rate.
    pub fn ratio_before(&self) -> f64 {
        self.session.bps() / (self.bottleneck.bps() - self.session.bps())
    }

    /// Returns the rates after the cuts: the session cuts its rate to `beta` times its throughput, TCP to half of its rate.
    pub fn after(&self, beta: f64) -> (Rate, Rate) {
        let (x, w, d) = (self.session.bps(), self.bottleneck.bps(), self.rise.bps());
        let session = beta * w * (x + d) / (w + 2.0 * d);
        (Rate::from_bps(session), Rate::from_bps((w - x + d) / 2.0))
    }

    /// Returns the ratio of the session's rate to TCP's rate after the cuts of both flows.
    pub fn ratio_after(&self, beta: f64) -> f64 {
        let (session, tcp) = self.after(beta);
        session.bps() / tcp.bps()
    }

    /// Returns the decrease factor with which the ratio of the two rates approaches one (C.11).
    pub fn fair_beta(&self) -> f64 {
        0.5 + self.rise.bps() / self.bottleneck.bps()
    }

    /// Returns the pair after a cut, when both rates have grown until their sum equals the bottleneck's rate again.
    #[must_use]
    pub fn next(&self, beta: f64) -> Pair {
        let (session, tcp) = self.after(beta);
        let grown = (self.bottleneck.bps() - session.bps() - tcp.bps()) / 2.0;
        Pair { session: session + Rate::from_bps(grown), ..*self }
    }
}

/// Parameters that determine the number of reports after a change of the most congested bottleneck (paper 000, C.4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feedback {
    /// Packets sent per second, "v".
    pub packets_per_sec: f64,
    /// Number of reports per packet that a receiver sends without suppression, "p": one report per loss event, not per lost
    /// packet.
    pub reports_per_packet: f64,
    /// Number of receivers behind the bottleneck that is now the most congested, "N".
    pub receivers: u32,
    /// The shortest round-trip time of these receivers, "RTT_min".
    pub nearest: Span,
}

impl Feedback {
    fn reports_in(&self, secs: f64) -> f64 {
        self.packets_per_sec * self.reports_per_packet * secs
    }

    /// Returns the number of reports that all receivers together send after a change, before the reports of the new
    /// representative suppress other reports.
    pub fn per_change(&self) -> f64 {
        self.reports_in(f64::from(self.receivers) * self.nearest.as_secs_f64())
    }

    /// Returns the number of reports between two changes that are `period` apart. `period` is at least a round-trip time.
    pub fn per_period(&self, period: Span) -> f64 {
        self.reports_in(period.as_secs_f64() + self.redundant_secs())
    }

    /// Returns the number of reports in a session of this length if the most congested bottleneck changes at random,
    /// `changes_per_sec` times per second on average (C.13). Without changes, this is the number of reports of one receiver
    /// (C.14).
    pub fn in_session(&self, changes_per_sec: f64, length: Span) -> f64 {
        let secs = length.as_secs_f64();
        self.reports_in(secs + changes_per_sec * secs * self.redundant_secs())
    }

    /// Returns the time after a change for which receivers other than the representative send reports, summed over these
    /// receivers, in seconds.
    fn redundant_secs(&self) -> f64 {
        f64::from(self.receivers.saturating_sub(1)) * self.nearest.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    #[track_caller]
    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value / expected - 1.0).abs() <= tolerance, "{value} instead of {expected}");
    }

    const MEGABIT: Bottleneck = Bottleneck { rate: Rate::from_mbps(1.0), buffer: 50_000, others: 2.0 };

    /// Analysis A3.
    #[test]
    fn throughput_at_congestion_matches_computed_values() {
        let growth = growth(1000, Span::from_millis(500));
        assert_eq!(growth, 32_000.0);
        let level = MEGABIT.throughput_at_congestion(Rate::from_mbps(0.5), growth);
        assert_near(level.bps(), 391_503.4, 1e-6);
        // In this time the queue grows from zero to the size of the buffer.
        let time = MEGABIT.time_to_overflow(growth).as_secs_f64();
        assert_near(MEGABIT.overload(growth).bps() * time / 2.0, 400_000.0, 1e-6);
    }

    #[test]
    fn lower_standing_implies_lower_throughput_at_congestion() {
        let (mut rng, growth, rate) = (Rng::new(3, 1), 32_000.0, Rate::from_mbps(0.5));
        let mut any = || Bottleneck {
            rate: Rate::from_mbps(0.5 + 5.0 * rng.unit()),
            buffer: 10_000 + rng.below(90_000),
            others: 20.0 * rng.unit(),
        };
        for _ in 0..1000 {
            let (one, other) = (any(), any());
            let level = |bottleneck: Bottleneck| bottleneck.throughput_at_congestion(rate, growth).bps();
            assert_eq!(one.standing() < other.standing(), level(one) < level(other));
        }
    }

    /// Analysis A4: identity C.10.
    #[test]
    fn change_of_the_rate_ratio_equals_the_printed_product() {
        let mut rng = Rng::new(3, 2);
        for _ in 0..1000 {
            let (w, x, d) = (1e6, 1e5 + 8e5 * rng.unit(), 1e5 * rng.unit());
            let beta = 0.4 + 0.5 * rng.unit();
            let rate = Rate::from_bps;
            let pair = Pair { session: rate(x), bottleneck: rate(w), rise: rate(d) };
            let kept = beta * w / (w + 2.0 * d);
            let bracket = (0.5 - kept) * x + (x / (2.0 * (w - x)) - kept) * d;
            let change = pair.ratio_before() - pair.ratio_after(beta);
            assert!((change - 2.0 / (w - x + d) * bracket).abs() < 1e-9);
            let fair = pair.ratio_before() - pair.ratio_after(pair.fair_beta());
            let expected = 2.0 / (w - x + d) * d / 2.0 * (x / (w - x) - 1.0);
            assert!((fair - expected).abs() < 1e-9);
        }
    }

    /// Analysis A4: the fair decrease factor is in the range that the paper recommends.
    #[test]
    fn session_and_tcp_rates_converge_with_the_fair_decrease_factor() {
        let (w, growth) = (1e6, 32_000.0);
        let path = Bottleneck { others: 1.0, ..MEGABIT };
        let time = path.time_to_overflow(growth).as_secs_f64();
        assert_near(time, 3.54, 0.005);
        let rise = Rate::from_bps(growth * time);
        assert_near(rise.bps(), 113e3, 0.005);
        for share in [0.1, 0.9] {
            let mut pair = Pair { session: Rate::from_bps(share * w), bottleneck: Rate::from_bps(w), rise };
            assert_near(pair.fair_beta(), 0.613, 0.001);
            let mut distance = pair.ratio_before().ln().abs();
            for _ in 0..60 {
                pair = pair.next(pair.fair_beta());
                let nearer = pair.ratio_before().ln().abs();
                assert!(nearer <= distance, "{nearer} after {distance}");
                distance = nearer;
            }
            assert!(distance < 0.01, "{distance}");
        }
    }

    const FEEDBACK: Feedback = Feedback {
        packets_per_sec: 41.7,
        reports_per_packet: 0.01,
        receivers: 32,
        nearest: Span::from_millis(100),
    };

    /// Analysis A6.
    #[test]
    fn each_change_of_the_bottleneck_adds_few_reports() {
        let session = Span::from_secs(1000);
        assert_near(FEEDBACK.in_session(0.01, session), 429.9, 0.0005);
        assert_near(FEEDBACK.in_session(0.0, session), 417.0, 1e-9);
        assert_near(FEEDBACK.per_change(), 1.334, 0.001);
        let ten_changes = 10.0 * FEEDBACK.per_period(Span::from_secs(100));
        assert_near(FEEDBACK.in_session(0.01, session), ten_changes, 1e-9);
    }
}
