//! Receivers' own limits: a host that cannot take more, though the network would carry it.
//!
//! This is flow control, not congestion control. A cap lies on top of the scheme's rate. It follows
//! what the most limited receiver says it can take, up and down, and recovers by itself when nobody
//! says anything, so a receiver that got faster or left need not say so.

use crate::packet::ReceiverId;
use crate::time::{Rate, Span, Time};

/// The cap from receivers' own limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pressure {
    cap: Option<Cap>,
}

#[derive(Debug, Clone, Copy)]
struct Cap {
    rate: Rate,
    /// Who set it: another receiver can only lower it.
    by: ReceiverId,
    /// When it was lowered.
    lowered_at: Time,
    /// When it recovers by the next step.
    step_at: Time,
}

/// One report lowers the rate to this part of it at most: it may be a hiccup, and there is a buffer.
const DEEPEST: f64 = 0.5;
/// The rate is lowered only so often: the receiver must see the effect first.
const PATIENCE: Span = Span::from_millis(15);
/// How much the cap recovers per step.
const RECOVERY: f64 = 1.04;
/// How long a step is.
const STEP: Span = Span::from_millis(10);
/// A receiver under pressure reports more often than this.
const QUIET: Span = Span::from_millis(30);
/// A cap this many times above the scheme's rate is no cap any more.
const IRRELEVANT: f64 = 2.0;

impl Pressure {
    /// The lower of `rate` and the cap.
    pub fn applied_to(&self, rate: Rate) -> Rate {
        self.cap.map_or(rate, |cap| rate.min(cap.rate))
    }

    /// The cap, while there is one.
    pub fn cap(&self) -> Option<Rate> {
        self.cap.map(|cap| cap.rate)
    }

    /// Receiver `by` can take `sustainable` and no more, while we send at `current`. Ignored when it is
    /// not a usable rate.
    pub fn on_report(&mut self, by: ReceiverId, sustainable: Rate, current: Rate, now: Time) {
        if !sustainable.is_usable() {
            return;
        }
        let lowest = self.cap.filter(|cap| cap.by != by).map_or(current, |cap| cap.rate);
        let own = self.cap.is_some_and(|cap| cap.by == by);
        if !own && sustainable.bps() >= lowest.bps() {
            return;
        }
        let lowered_at = match self.cap {
            Some(cap) if sustainable.bps() >= cap.rate.bps() || now.since(cap.lowered_at) < PATIENCE => {
                cap.lowered_at
            }
            _ => now,
        };
        let patient =
            self.cap.filter(|cap| sustainable.bps() < cap.rate.bps() && lowered_at == cap.lowered_at);
        let rate = patient.map_or(sustainable.max(current * DEEPEST), |cap| cap.rate);
        self.cap = Some(Cap { rate, by, lowered_at, step_at: now + QUIET });
    }

    /// Time has passed: recover. `rate` is what the scheme allows.
    pub fn recover(&mut self, rate: Rate, now: Time) {
        let Some(cap) = &mut self.cap else { return };
        if now < cap.step_at {
            return;
        }
        let steps = 1 + now.since(cap.step_at).as_nanos() / STEP.as_nanos();
        cap.step_at += STEP * steps;
        cap.rate = cap.rate * RECOVERY.powi(steps.min(1000) as i32);
        if cap.rate.bps() >= rate.bps() * IRRELEVANT {
            self.cap = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(rate: f64) -> Rate {
        Rate::from_mbps(rate)
    }

    fn receiver(id: u64) -> ReceiverId {
        ReceiverId::new(id).expect("not zero")
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_cap_follows_the_limited_receiver_down_and_up() {
        let mut pressure = Pressure::default();
        pressure.on_report(receiver(1), mbps(80.0), mbps(100.0), at(0));
        assert_eq!(pressure.applied_to(mbps(100.0)), mbps(80.0));
        pressure.on_report(receiver(1), mbps(90.0), mbps(80.0), at(10));
        assert_eq!(pressure.cap(), Some(mbps(90.0)));
    }

    #[test]
    fn another_receiver_only_lowers_the_cap() {
        let mut pressure = Pressure::default();
        pressure.on_report(receiver(1), mbps(70.0), mbps(100.0), at(0));
        pressure.on_report(receiver(2), mbps(80.0), mbps(70.0), at(1));
        assert_eq!(pressure.cap(), Some(mbps(70.0)));
        pressure.on_report(receiver(2), mbps(50.0), mbps(70.0), at(30));
        assert_eq!(pressure.cap(), Some(mbps(50.0)));
    }

    #[test]
    fn a_hiccup_does_not_stop_the_session() {
        let mut pressure = Pressure::default();
        for millis in 0..15 {
            pressure.on_report(receiver(1), mbps(0.001), mbps(100.0), at(millis));
            assert_eq!(pressure.cap(), Some(mbps(50.0)));
        }
        pressure.on_report(receiver(1), mbps(0.001), mbps(50.0), at(15));
        assert_eq!(pressure.cap(), Some(mbps(25.0)));
    }

    #[test]
    fn the_cap_recovers_in_silence_and_vanishes() {
        let mut pressure = Pressure::default();
        pressure.on_report(receiver(1), mbps(80.0), mbps(100.0), at(0));
        pressure.recover(mbps(100.0), at(29));
        assert_eq!(pressure.cap(), Some(mbps(80.0)));
        pressure.recover(mbps(100.0), at(41));
        let expected = 80.0 * 1.04 * 1.04;
        assert!((pressure.cap().expect("still there").bps() / 1e6 - expected).abs() < 1e-9);
        pressure.recover(mbps(100.0), at(2000));
        assert_eq!(pressure.cap(), None);
    }

    #[test]
    fn absurd_rates_and_rates_above_ours_are_no_pressure() {
        let mut pressure = Pressure::default();
        for rate in [f64::NAN, f64::INFINITY, 0.0, -5.0, 200e6] {
            pressure.on_report(receiver(1), Rate::from_bps(rate), mbps(100.0), at(0));
        }
        assert_eq!(pressure.cap(), None);
    }
}
