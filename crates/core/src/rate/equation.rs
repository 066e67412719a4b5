//! Equation-based adaptation at the source: the rate of a TCP flow with the same loss events (paper 000, 2.3).
//!
//! The scheme decides which loss events count. The source counts the packets between loss events, so receivers need no
//! measurements.

#[cfg(test)]
mod tests;

use super::policy::{Congestion, Operating, RatePolicy};
use super::{Aimd, Start};
use crate::time::{Rate, Span};

/// Weights of the mean loss interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Averaging {
    /// The thesis: eight intervals with equal weights; the weight of each older one falls by a factor of 0.95. The choice among
    /// receivers is random, so intervals vary more than at one receiver, and the mean must include older intervals.
    #[default]
    Thesis,
    /// Eight intervals; the weights of the older four fall (RFC 5348, 5.4).
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

/// Rate policy by the equation. State and work per event do not depend on the duration of the session.
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
    /// Sum of all intervals before `closed`, each weighted by "alpha" per interval of age.
    tail: Sum,
    /// Round-trip time and deviation at the latest loss event.
    path: (Span, Span),
    /// Whether the only closed interval is a guess.
    guessed: bool,
    /// Mean interval that corresponds to the present rate; `None` if a limit has kept the rate from reaching it.
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
/// A measured interval below this fraction of the guessed one shows that the rate is still far too high.
const FAR_SHORTER: f64 = 0.5;

/// Number of packets per round-trip time that may be sent without feedback: one and a half times TCP's (RFC 6928).
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

    /// Returns the sum after one more interval, with all intervals one interval older.
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
    /// interval counts if it increases the mean.
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

    /// Returns "s^_0": the mean with the open interval as the newest one. With at most n closed intervals the oldest is left out,
    /// and there is no tail.
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

    /// Uses the round-trip time of the latest loss event. In the thesis only loss indications measure the round-trip time, so it
    /// does not change between them. Samples between loss events come from an empty queue, and would allow a rate that fills the
    /// queue at once.
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
    /// Guesses the interval before the first loss event. The event shows that the rate is too high, but not the length of
    /// intervals. The guess is the interval that lowers the rate as the scheme would without the equation. The guess is repeated
    /// while measured intervals are far shorter than the guessed one.
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

/// Returns the rate up to which the rate doubles without feedback.
fn blind_rate(at: Operating) -> Rate {
    Rate::of(BLIND * u64::from(at.packet_size), at.rtt)
}

/// Returns the rate by the equation as printed in the thesis, which does not limit the share of timeouts to one.
/// [`crate::rate::formula`] has this limit, which matters above a loss event rate of 8/27.
fn tcp_rate(at: Operating, loss: f64) -> Rate {
    let rtt = at.rtt.as_secs_f64();
    let timeout = rtt + 4.0 * at.deviation.as_secs_f64();
    let loss = loss.min(1.0);
    let sawtooth = rtt * (2.0 * loss / 3.0).sqrt();
    let timeouts = timeout * 3.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    Rate::of(u64::from(at.packet_size), Span::from_secs_f64(sawtooth + timeouts))
}

/// Returns the loss event rate at which the equation yields `rate`, between 10^-8 and 1, with an error of at most a thousandth.
fn loss_at(at: Operating, rate: Rate) -> f64 {
    let (mut low, mut high) = (1e-8_f64, 1.0_f64);
    for _ in 0..16 {
        let middle = (low * high).sqrt();
        if tcp_rate(at, middle).bps() > rate.bps() { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}
