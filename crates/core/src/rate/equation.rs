//! Equation-based adaptation at the source: the rate of a TCP that saw the same loss events (seed 000, 2.3).
//!
//! The scheme says which loss events count. The source itself counts the packets between them, so receivers need not
//! measure anything.

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

/// What happens before the first loss event.
// Seed gap: 2.3.1 has no rate before the first loss event. Here it doubles every round-trip time; after a start-up in
// rounds, which has already found the rate, it grows by a packet per round-trip time.
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

    /// "s^_0": the same one interval later, as if the open one closed now. With no more than n closed intervals the
    /// oldest falls out and there is no tail.
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
    // Seed gap: 2.3.1 sets the rate to the equation's. Between loss events that never rises by as much as a packet per
    // round-trip time in each, and here no more than that is allowed: after an event at a shorter round trip, too.
    fn on_tick(&mut self, at: Operating) -> Rate {
        if self.count == 0 {
            return match self.before {
                Before::Double => at.rate * 2.0,
                Before::Add => Aimd.on_tick(at),
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

    // Seed gap: 2.3.1 sets the rate to the equation's at every loss event, which may be higher than before it. Here a loss
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
    /// The first loss event says that the rate is too high, not how long intervals are: the interval is taken for one
    /// that lowers the rate as the scheme would without the equation. As long as real ones are far shorter than that,
    /// the guess was too long, and the next one is made.
    // Seed gap: 2.3.1 has no interval before the second loss event. A guess that stayed would hold the rate many times too
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

/// The equation as the thesis prints it: without the bound of the timeouts' share by one, which
/// [`crate::unicast::formula`] has and which tells above a loss event rate of 8/27.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Doubling;
    use crate::unicast::formula::Path;

    const AT: Operating = Operating {
        rate: Rate::from_mbps(1.0),
        rtt: Span::from_millis(100),
        deviation: Span::from_millis(10),
        packet_size: 1000,
    };

    fn equation(averaging: Averaging) -> Equation {
        Equation::new(averaging, Start::Linear)
    }

    fn congestion(at: Operating) -> Congestion {
        Congestion { level: at.rate, keep: 0.5 }
    }

    /// After the given intervals, oldest first.
    fn after(averaging: Averaging, intervals: impl IntoIterator<Item = f64>) -> Equation {
        let mut equation = Equation { path: (AT.rtt, AT.deviation), ..equation(averaging) };
        intervals.into_iter().for_each(|interval| equation.close(interval));
        equation
    }

    fn depart(equation: &mut Equation, packets: usize) {
        (0..packets).for_each(|_| equation.on_departure());
    }

    #[track_caller]
    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value / expected - 1.0).abs() <= tolerance, "{value} instead of {expected}");
    }

    /// The definition, term by term: `intervals` are "s_0", "s_1" and so on; "i" is 0 or 1.
    fn by_definition(averaging: Averaging, intervals: &[f64], i: usize) -> f64 {
        let (n, closed) = (8, intervals.len() - 1);
        let weights = averaging.weights();
        let fading = if closed <= n { 0.0 } else { averaging.fading() };
        let mut sum = Sum::default();
        (1..=n.min(closed)).for_each(|k| sum.add(intervals[i + k - 1], weights[k - 1]));
        (i + n..=closed).for_each(|k| sum.add(intervals[k], fading.powi((k - i - n + 1) as i32)));
        sum.mean()
    }

    /// T-LE-13.
    #[test]
    fn evenly_spaced_loss_events_are_one_in_so_many_packets() {
        let mut equation = equation(Averaging::Thesis);
        for _ in 0..400 {
            depart(&mut equation, 50);
            equation.on_congestion(AT, congestion(AT));
        }
        assert_near(equation.loss_event_rate().expect("there were"), 0.02, 1e-6);
        depart(&mut equation, 50);
        let fast = Operating { rate: Rate::from_mbps(100.0), ..AT };
        assert_near(equation.on_congestion(fast, congestion(AT)).bps(), tcp_rate(AT, 0.02).bps(), 1e-6);
    }

    /// T-LE-13.
    #[test]
    fn a_run_without_loss_raises_the_rate_once_its_mean_is_the_larger() {
        let mut equation = after(Averaging::Thesis, [100.0; 30]);
        let rate = equation.on_tick(AT);
        assert_near(rate.bps(), tcp_rate(AT, 0.01).bps(), 1e-9);
        let at = Operating { rate, ..AT };
        depart(&mut equation, 100);
        assert_eq!(equation.on_tick(at), rate, "the open interval is as long as the others");
        depart(&mut equation, 100);
        let raised = equation.on_tick(at);
        assert!(raised.bps() > rate.bps());
        assert_eq!(equation.on_tick(Operating { rate: raised, ..AT }), raised, "nothing new");
    }

    /// T-LE-14: RFC 5348, 5.4, with its sums over all intervals it has and no discounting.
    #[test]
    fn with_the_weights_of_the_rfc_the_mean_is_the_rfcs() {
        let weights = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
        for count in 1..=20usize {
            let intervals: Vec<f64> = (0..count).map(|i| 20.0 + 7.0 * (i * i % 11) as f64).collect();
            let mut equation = after(Averaging::Rfc5348, intervals.iter().copied());
            depart(&mut equation, 300);
            let newest_first: Vec<f64> = std::iter::once(300.0).chain(intervals.into_iter().rev()).collect();
            let k = count.min(8);
            let total = |from: usize| (0..k).map(|i| newest_first[from + i] * weights[i]).sum::<f64>();
            let mean = total(0).max(total(1)) / weights[..k].iter().sum::<f64>();
            assert_near(1.0 / equation.loss_event_rate().expect("some"), mean, 1e-12);
        }
    }

    #[test]
    fn the_running_sums_are_the_definition() {
        for averaging in [Averaging::Thesis, Averaging::Rfc5348] {
            for count in 1..=60usize {
                let intervals: Vec<f64> = (0..count).map(|i| 10.0 + (i * 37 % 50) as f64).collect();
                let mut equation = after(averaging, intervals.iter().copied());
                depart(&mut equation, 25);
                let all: Vec<f64> = std::iter::once(25.0).chain(intervals.into_iter().rev()).collect();
                assert_near(equation.mean_from_open(), by_definition(averaging, &all, 0), 1e-12);
                assert_near(equation.mean_of_closed(), by_definition(averaging, &all, 1), 1e-12);
            }
        }
    }

    #[test]
    fn before_any_loss_the_rate_doubles_and_the_first_event_halves_it() {
        let mut equation = equation(Averaging::Thesis);
        assert_eq!(equation.on_tick(AT), AT.rate * 2.0);
        assert_near(equation.on_congestion(AT, congestion(AT)).bps(), 0.5e6, 0.01);
        assert!(equation.loss_event_rate().is_some());
    }

    #[test]
    fn after_a_start_up_in_rounds_the_rate_grows_by_packets() {
        let start = Start::Doubling(Doubling::default());
        assert_eq!(Equation::new(Averaging::Thesis, start).on_tick(AT), Rate::from_bps(1_080_000.0));
    }

    #[test]
    fn a_loss_event_never_raises_the_rate_and_the_next_tick_catches_up() {
        let mut equation = after(Averaging::Thesis, [1e6; 8]);
        depart(&mut equation, 1_000_000);
        assert_eq!(equation.on_congestion(AT, congestion(AT)), AT.rate);
        let mut rate = AT.rate;
        for _ in 0..3 {
            let raised = equation.on_tick(Operating { rate, ..AT });
            assert_eq!(raised, rate + Rate::from_bps(80_000.0), "by a packet per round trip at a time");
            rate = raised;
        }
    }

    #[test]
    fn guesses_that_are_far_too_long_do_not_stay() {
        let mut equation = equation(Averaging::Thesis);
        let mut rate = Rate::from_mbps(100.0);
        for _ in 0..40 {
            let at = Operating { rate, ..AT };
            depart(&mut equation, 100);
            rate = equation.on_congestion(at, congestion(at));
        }
        let part = rate.bps() / tcp_rate(AT, 0.01).bps();
        assert!((0.7..=1.0).contains(&part), "{part} of what the real intervals give");
    }

    #[test]
    fn answers_between_loss_events_do_not_change_the_round_trip_of_the_equation() {
        let mut equation = after(Averaging::Thesis, [100.0; 30]);
        depart(&mut equation, 110);
        let rate = equation.on_tick(AT);
        assert_eq!(after_tick_at(&mut equation, rate, 20), rate);
        depart(&mut equation, 1);
        assert_near(after_tick_at(&mut equation, rate, 20).bps(), rate.bps(), 0.001);
    }

    /// The rate after a tick at another round-trip time, in milliseconds.
    fn after_tick_at(equation: &mut Equation, rate: Rate, millis: u64) -> Rate {
        equation.on_tick(Operating { rate, rtt: Span::from_millis(millis), ..AT })
    }

    #[test]
    fn the_equation_is_tcps_where_timeouts_are_rare() {
        let path = Path { timeout: Span::from_millis(140), ..Path::new(1000, AT.rtt) };
        for loss in [1e-5, 1e-3, 0.02, 0.1, 0.29] {
            assert_near(tcp_rate(AT, loss).bps(), path.tcp_rate(loss).bps(), 1e-6);
            assert_near(loss_at(AT, tcp_rate(AT, loss)), loss, 1e-3);
        }
        assert!(tcp_rate(AT, 0.5).bps() < path.tcp_rate(0.5).bps());
    }

    /// Analysis A10: the numbers of seed 000, figure 2.6, 32 loss events of 167,762 packets of 560 bytes, are the fair
    /// share of a megabit at a round trip of 0.392 s.
    #[test]
    fn the_loss_events_of_figure_2_6_are_worth_the_fair_share() {
        let at = Operating {
            rtt: Span::from_millis(392),
            deviation: Span::from_millis(294),
            packet_size: 560,
            ..AT
        };
        assert_near(tcp_rate(at, 32.0 / 167_762.0).bps(), 1.014e6, 0.005);
    }
}
