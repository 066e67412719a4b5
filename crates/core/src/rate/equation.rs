//! Equation-based rate policy at the source: the rate is the rate of a TCP flow with the same loss events (paper 000, 2.3).
//!
//! The scheme decides which loss events count. The source itself counts the packets between these loss events, so receivers
//! measure nothing.

#[cfg(test)]
mod tests;

use super::policy::{Congestion, Operating, RatePolicy};
use super::{Aimd, Start};
use crate::time::{Rate, Span};

/// Weights of the mean loss interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Averaging {
    /// As in the thesis: the latest eight intervals have equal weights. Each older interval has 0.95 times the weight of the next
    /// newer one. The scheme's choice among receivers is random, so the intervals vary more than the intervals of one receiver,
    /// and their mean must include older intervals.
    #[default]
    Thesis,
    /// Only the latest eight intervals count; the weights of the older four decrease (RFC 5348, 5.4).
    Rfc5348,
}

/// Growth before the first loss event.
// Paper gap: 2.3.1 has no rate before the first loss event. Here the rate doubles every round-trip time, up to a rate that is
// safe without feedback. Reports of losses may take several assumed round trips. An unlimited rate would be thousands of times
// too high by then. Above this limit the rate grows by a packet per round-trip time. It also grows like this after a start-up in
// rounds, which has already found the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Double,
    Add,
}

/// Rate policy by the equation. Its memory and its work per event do not depend on the duration of the session.
#[derive(Debug, Clone)]
pub struct Equation {
    averaging: Averaging,
    before: Before,
    /// Number of packets since the latest loss event, "s_0".
    open: f64,
    /// The latest closed intervals in packets, newest first, "s_1" to "s_n".
    closed: [f64; LATEST],
    /// Number of all closed intervals, "N".
    count: u64,
    /// Sum of all intervals older than `closed`. The weight of an interval is "alpha" to the power of its age in intervals.
    tail: Sum,
    /// Round-trip time at the latest loss event, and its mean deviation.
    path: (Span, Span),
    /// Whether the only closed interval is a guess.
    guessed: bool,
    /// Mean interval from which the rate was computed; `None` if the rate has not yet reached the equation's rate.
    enforced: Option<f64>,
}

/// A weighted sum and its weights.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    values: f64,
    weights: f64,
}

/// Number of intervals with individual weights, "n".
const LATEST: usize = 8;
/// Fraction of the guessed interval. A measured interval below it shows that the rate is still far too high.
const FAR_SHORTER: f64 = 0.5;

/// Number of packets per round-trip time that may be sent without feedback: one and a half times the initial window of TCP (RFC
/// 6928).
const BLIND: u64 = 15;

impl Averaging {
    /// Returns "w_1" to "w_n".
    const fn weights(self) -> [f64; LATEST] {
        match self {
            Averaging::Thesis => [1.0; LATEST],
            Averaging::Rfc5348 => [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2],
        }
    }

    /// Returns "alpha".
    const fn fading(self) -> f64 {
        match self {
            Averaging::Thesis => 0.95,
            Averaging::Rfc5348 => 0.0,
        }
    }
}

impl Sum {
    fn add(&mut self, value: f64, weight: f64) {
        self.values += value * weight;
        self.weights += weight;
    }

    /// Returns the sum with one more interval `value`, after all intervals have aged by one interval.
    fn aged_with(self, value: f64, fading: f64) -> Sum {
        Sum { values: fading * (self.values + value), weights: fading * (self.weights + 1.0) }
    }

    fn mean(self) -> f64 {
        self.values / self.weights
    }
}

impl Equation {
    /// Creates the policy before the first packet of a session with this start.
    pub fn new(averaging: Averaging, start: Start) -> Equation {
        let before = match start {
            Start::Linear => Before::Double,
            Start::Doubling(_) => Before::Add,
        };
        Equation {
            averaging,
            before,
            open: 0.0,
            closed: [0.0; LATEST],
            count: 0,
            tail: Sum::default(),
            path: (Span::ZERO, Span::ZERO),
            guessed: false,
            enforced: None,
        }
    }

    /// Returns the loss event rate, which is the inverse of the mean interval; `None` before the first loss event. The open
    /// interval is included in the mean if that increases the mean.
    pub fn loss_event_rate(&self) -> Option<f64> {
        (self.count > 0).then(|| 1.0 / self.mean())
    }

    fn mean(&self) -> f64 {
        self.mean_from_open().max(self.mean_of_closed())
    }

    fn counted(&self) -> usize {
        self.count.min(LATEST as u64) as usize
    }

    /// Returns "s^_1": the mean of the closed intervals. There must be at least one.
    fn mean_of_closed(&self) -> f64 {
        let mut sum = self.tail;
        let weights = self.averaging.weights();
        (0..self.counted()).for_each(|i| sum.add(self.closed[i], weights[i]));
        sum.mean()
    }

    /// Returns "s^_0": the mean in which the open interval is the newest one. If there are at most n closed intervals, the oldest
    /// one is left out, and the sum of older intervals is empty.
    fn mean_from_open(&self) -> f64 {
        let mut sum = match self.count {
            0..=8 => Sum::default(),
            _ => self.tail.aged_with(self.closed[LATEST - 1], self.averaging.fading()),
        };
        let weights = self.averaging.weights();
        sum.add(self.open, weights[0]);
        (1..self.counted()).for_each(|i| sum.add(self.closed[i - 1], weights[i]));
        sum.mean()
    }

    fn close(&mut self, interval: f64) {
        if self.count >= LATEST as u64 {
            self.tail = self.tail.aged_with(self.closed[LATEST - 1], self.averaging.fading());
        }
        self.closed.rotate_right(1);
        self.closed[0] = interval;
        self.count += 1;
        self.open = 0.0;
    }
}

const _: () = assert!(LATEST == 8, "`mean_from_open` tells by this number whether there is a tail");

impl RatePolicy for Equation {
    fn on_departure(&mut self) {
        self.open += 1.0;
    }

    /// The equation gets the round-trip time of the latest loss event. In the thesis only loss indications measure the round-trip
    /// time, so it does not change between loss events. Samples from between loss events, when the queue is empty, would allow a
    /// rate that fills the queue at once.
    // Paper gap: 2.3.1 sets the rate to the equation's. Between loss events that rate rises by less than a packet per round-trip
    // time in each round trip. Here this is also the maximum increase after a loss event at a shorter round-trip time.
    fn on_tick(&mut self, at: Operating) -> Rate {
        if self.count == 0 {
            return match self.before {
                Before::Double if at.rate.bps() < blind_rate(at).bps() => (at.rate * 2.0).min(blind_rate(at)),
                Before::Double | Before::Add => Aimd.on_tick(at),
            };
        }
        let mean = self.mean();
        if self.enforced == Some(mean) {
            return at.rate;
        }
        let (rtt, deviation) = self.path;
        let rate = tcp_rate(Operating { rtt, deviation, ..at }, 1.0 / mean);
        let most = Aimd.on_tick(at);
        self.enforced = (rate.bps() <= most.bps()).then_some(mean);
        rate.min(most)
    }

    // Paper gap: 2.3.1 sets the rate to the equation's at every loss event, which may be higher than the rate before. Here a loss
    // event never raises the rate; the next tick does.
    fn on_congestion(&mut self, at: Operating, congestion: Congestion) -> Rate {
        self.path = (at.rtt, at.deviation);
        let still_guessing = self.guessed && self.open < FAR_SHORTER * self.closed[0];
        if self.count == 0 || still_guessing {
            return self.guess(at, congestion);
        }
        self.guessed = false;
        self.close(self.open.max(1.0));
        let mean = self.mean_of_closed();
        let rate = tcp_rate(at, 1.0 / mean);
        self.enforced = (rate.bps() <= at.rate.bps()).then_some(mean);
        rate.min(at.rate)
    }
}

impl Equation {
    /// Guesses the interval before the first loss event. The loss event shows that the rate is too high, but not the length of
    /// the interval. The guess is the interval for which the equation gives the rate that the scheme would set without the
    /// equation. The guess is repeated while measured intervals are far shorter than the guessed interval.
    // Paper gap: 2.3.1 has no interval before the second loss event. A permanent guess would keep the rate many times too high
    // for a minute, because all intervals have the same weight.
    fn guess(&mut self, at: Operating, congestion: Congestion) -> Rate {
        let rate = at.rate.min(congestion.level * congestion.keep);
        let interval = 1.0 / loss_at(at, rate);
        (self.count, self.guessed) = (0, true);
        self.close(interval);
        self.enforced = Some(interval);
        rate
    }
}

/// Returns the highest rate that doubling may reach without feedback.
fn blind_rate(at: Operating) -> Rate {
    Rate::of(BLIND * u64::from(at.packet_size), at.rtt)
}

/// Returns the rate by the equation as printed in the thesis. The term for timeouts in that equation lacks the limit that
/// [`crate::rate::formula`] has. The limit matters above a loss event rate of 8/27.
fn tcp_rate(at: Operating, loss: f64) -> Rate {
    let rtt = at.rtt.as_secs_f64();
    let timeout = rtt + 4.0 * at.deviation.as_secs_f64();
    let loss = loss.min(1.0);
    let sawtooth = rtt * (2.0 * loss / 3.0).sqrt();
    let timeouts = timeout * 3.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    Rate::of(u64::from(at.packet_size), Span::from_secs_f64(sawtooth + timeouts))
}

/// Returns the loss event rate, between 10^-8 and 1, for which the equation yields `rate`. The relative error is at most a
/// thousandth.
fn loss_at(at: Operating, rate: Rate) -> f64 {
    let (mut low, mut high) = (1e-8_f64, 1.0_f64);
    for _ in 0..16 {
        let middle = (low * high).sqrt();
        if tcp_rate(at, middle).bps() > rate.bps() { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}
