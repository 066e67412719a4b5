//! Equation-based adaptation at the source: the rate of a TCP that saw the same loss events (paper 000, 2.3).
//!
//! The scheme decides which loss events count. The source itself counts the packets between them, so receivers need not measure anything.

#[cfg(test)]
mod tests;

use super::policy::{Congestion, Operating, RatePolicy};
use super::{Aimd, Start};
use crate::time::{Rate, Span};

/// Which weights the mean loss interval has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Averaging {
    /// The thesis: eight intervals alike, older ones fading by 0.95 each. The choice among receivers is random, so
    /// intervals vary more than at one receiver, and the mean has to reach further back.
    #[default]
    Thesis,
    /// Eight intervals, the older half of them fading (RFC 5348, 5.4).
    Rfc5348,
}

/// Behaviour before the first loss event.
// Paper gap: 2.3.1 has no rate before the first loss event. Here it doubles every round-trip time, but not beyond what is
// safe without any answer: where losses take several assumed round trips to be heard of, it would be thousands of times
// too high by then. From there on, and after a start-up in rounds that has already found the rate, it grows by a packet
// per round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Double,
    Add,
}

/// The rate from the equation. State and work per event do not depend on how long the session lasts.
#[derive(Debug, Clone)]
pub struct Equation {
    averaging: Averaging,
    before: Before,
    /// Packets since the latest loss event, "s_0".
    open: f64,
    /// The latest closed intervals in packets, newest first, "s_1" to "s_n".
    closed: [f64; LATEST],
    /// Closed intervals altogether, "N".
    count: u64,
    /// All intervals before those, each weighted by "alpha" for every interval that it is older.
    tail: Sum,
    /// Round-trip time and deviation at the latest loss event.
    path: (Span, Span),
    /// The only closed interval is a guess.
    guessed: bool,
    /// The mean interval that the rate stands for; `None` while something kept the rate from following.
    enforced: Option<f64>,
}

/// A weighted sum and its weights.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    values: f64,
    weights: f64,
}

/// Intervals with weights of their own, "n".
const LATEST: usize = 8;
/// A real interval below this part of the guessed one is another sign of a rate that is far too high.
const FAR_SHORTER: f64 = 0.5;

/// As many packets per round-trip time are sent without any answer: half as many again as TCP's (RFC 6928).
const BLIND: u64 = 15;

impl Averaging {
    /// "w_1" to "w_n".
    const fn weights(self) -> [f64; LATEST] {
        match self {
            Averaging::Thesis => [1.0; LATEST],
            Averaging::Rfc5348 => [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2],
        }
    }

    /// "alpha".
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

    /// One more interval, and all of them one interval older.
    fn aged_with(self, value: f64, fading: f64) -> Sum {
        Sum { values: fading * (self.values + value), weights: fading * (self.weights + 1.0) }
    }

    fn mean(self) -> f64 {
        self.values / self.weights
    }
}

impl Equation {
    /// Before the first packet of a session that starts like this.
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

    /// The loss event rate, as far as there were loss events: one over the mean interval. The open interval counts where
    /// that makes the mean larger.
    pub fn loss_event_rate(&self) -> Option<f64> {
        (self.count > 0).then(|| 1.0 / self.mean())
    }

    fn mean(&self) -> f64 {
        self.mean_from_open().max(self.mean_of_closed())
    }

    fn counted(&self) -> usize {
        self.count.min(LATEST as u64) as usize
    }

    /// "s^_1": the mean of the closed intervals, of which there is one at least.
    fn mean_of_closed(&self) -> f64 {
        let mut sum = self.tail;
        let weights = self.averaging.weights();
        (0..self.counted()).for_each(|i| sum.add(self.closed[i], weights[i]));
        sum.mean()
    }

    /// "s^_0": the same one interval later, as if the open one closed now. With no more than n closed intervals the oldest falls out and
    /// there is no tail.
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

    /// With the round trip of the latest loss event: where only loss indications time it, as in the thesis, it does not
    /// change in between. Answers that come in between would, at an empty queue, allow a rate that fills it at once.
    // Paper gap: 2.3.1 sets the rate to the equation's. Between loss events that never rises by as much as a packet per
    // round-trip time in each, and here no more than that is allowed: after an event at a shorter round trip, too.
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

    // Paper gap: 2.3.1 sets the rate to the equation's at every loss event, which may be higher than before it. Here a loss
    // event never raises the rate; the next round-trip time does.
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
    /// The first loss event shows that the rate is too high, but not how long intervals are. The interval is assumed to be one that lowers
    /// the rate as the scheme would without the equation. As long as real ones are far shorter than that, the guess was too long, and the
    /// next one is made.
    // Paper gap: 2.3.1 has no interval before the second loss event. A guess that stayed would hold the rate many times too
    // high for a minute, for all intervals weigh the same.
    fn guess(&mut self, at: Operating, congestion: Congestion) -> Rate {
        let rate = at.rate.min(congestion.level * congestion.keep);
        let interval = 1.0 / loss_at(at, rate);
        (self.count, self.guessed) = (0, true);
        self.close(interval);
        self.enforced = Some(interval);
        rate
    }
}

/// The rate up to which it doubles before any feedback arrives.
fn blind_rate(at: Operating) -> Rate {
    Rate::of(BLIND * u64::from(at.packet_size), at.rtt)
}

/// The equation as the thesis prints it, without the bound of the timeouts' share by one. [`crate::rate::formula`] has that bound, which
/// matters above a loss event rate of 8/27.
fn tcp_rate(at: Operating, loss: f64) -> Rate {
    let rtt = at.rtt.as_secs_f64();
    let timeout = rtt + 4.0 * at.deviation.as_secs_f64();
    let loss = loss.min(1.0);
    let sawtooth = rtt * (2.0 * loss / 3.0).sqrt();
    let timeouts = timeout * 3.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    Rate::of(u64::from(at.packet_size), Span::from_secs_f64(sawtooth + timeouts))
}

/// The loss event rate at which the equation gives `rate`, between 10^-8 and 1, to within a thousandth.
fn loss_at(at: Operating, rate: Rate) -> f64 {
    let (mut low, mut high) = (1e-8_f64, 1.0_f64);
    for _ in 0..16 {
        let middle = (low * high).sqrt();
        if tcp_rate(at, middle).bps() > rate.bps() { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}
