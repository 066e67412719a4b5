//! Ratio of lost packets to loss events: a Markov chain whose states are the windows of an AIMD sender (paper 000, 2.2.1.3).
//!
//! In state `x` the sender sends `x` packets in a round trip. A round trip without loss changes the state to `x + 1`, a round
//! trip with loss to half of `x`. Two models have the same probability of a first loss in a round trip, and differ in the number
//! of packets that are lost after the first.

/// Models of packet loss within a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Losses {
    /// Each packet is lost independently.
    Independent,
    /// After the first lost packet, all later packets of the round trip are lost, as at the end of a full queue.
    Bursty,
}

/// Number of lost packets and number of loss events, both per packet sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Probability that a packet is lost if no earlier packet of the round trip was lost, "p".
    pub first_loss: f64,
    /// Lost packets per packet sent, "p_li".
    pub indications: f64,
    /// Loss events per packet sent, "p_le".
    pub events: f64,
    /// Mean packets per round trip, `E[x]`.
    pub window: f64,
}

impl Point {
    /// Returns the number of lost packets per loss event, the ordinate of paper 000, figure 2.10.
    pub fn ratio(&self) -> f64 {
        self.indications / self.events
    }
}

/// Natural logarithm of the probability below which a state is ignored.
const NEVER_REACHED: f64 = -600.0;

/// Returns the stationary probabilities of windows of 1 to `largest` packets; entry 0 is for a window of 1. `first_loss` (above
/// 0, at most 1) is the loss probability of the first packet of a round trip, and of each packet whose predecessors in the round
/// trip arrived.
///
/// # Panics
///
/// If `first_loss` or `largest` is out of range.
// Paper gap: 2.2.1.3 lists five cases of balance for an even largest window. This code uses the transitions themselves, which
// hold for any largest window.
pub fn windows(first_loss: f64, largest: usize) -> Vec<f64> {
    assert!(first_loss > 0.0 && first_loss <= 1.0, "a probability above zero, not {first_loss}");
    assert!(largest > 0, "there is a smallest window");
    let arrives = (-first_loss).ln_1p();
    // To grow the window from 1 to n, n (n - 1) / 2 consecutive packets must arrive.
    let reached = |n: usize| (n * (n - 1) / 2) as f64 * arrives > NEVER_REACHED;
    let states = (1..=largest).take_while(|&n| n == 1 || reached(n)).last().unwrap_or(1);
    let mut weights = vec![0.0; largest + 1];
    weights[states] = 1.0;
    // In equilibrium, the flow from state k up to k + 1 equals the flow down from all states above k to state k and lower states.
    for k in (1..states).rev() {
        let down: f64 = (k + 1..=(2 * k + 1).min(states)).map(|x| weights[x] * has_loss(x, arrives)).sum();
        weights[k] = down / (k as f64 * arrives).exp();
    }
    weights.remove(0);
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}

/// Returns the probability that at least one of `x` packets is lost. Each packet arrives with probability e^`arrives`.
fn has_loss(x: usize, arrives: f64) -> f64 {
    -(x as f64 * arrives).exp_m1()
}

/// Returns the numbers of lost packets and loss events, per packet sent, of a sender whose window is at most `largest`.
/// [`windows`] describes the parameters.
///
/// # Panics
///
/// If `first_loss` or `largest` is out of range.
// Paper gap: 2.2.1.3 divides the losses by the packets of a round trip and the events by nothing, so that their ratio would fall
// with larger windows. The paper's numbers result if both are per packet, as in this code.
pub fn point(losses: Losses, first_loss: f64, largest: usize) -> Point {
    let stationary = windows(first_loss, largest);
    let arrives = (-first_loss).ln_1p();
    let mean = |value: &dyn Fn(usize) -> f64| -> f64 {
        stationary.iter().zip(1..).map(|(probability, x)| probability * value(x)).sum()
    };
    let window = mean(&|x| x as f64);
    let events = mean(&|x| has_loss(x, arrives)) / window;
    let indications = match losses {
        Losses::Independent => first_loss,
        Losses::Bursty => mean(&|x| lost_in_burst(x, first_loss)) / window,
    };
    Point { first_loss, indications, events, window }
}

/// Returns the mean number of lost packets among `x` packets if all packets after the first lost packet are also lost.
fn lost_in_burst(x: usize, first_loss: f64) -> f64 {
    let arrives = (-first_loss).ln_1p();
    x as f64 - (1.0 - first_loss) * has_loss(x, arrives) / first_loss
}

/// Returns the point at which the share `indications` of all packets is lost under this loss model. Searches `first_loss` by
/// bisection. Returns `None` if no `first_loss` between 10^-9 and 1 gives this share.
pub fn point_at(losses: Losses, indications: f64, largest: usize) -> Option<Point> {
    let (mut low, mut high) = (1e-9_f64, 1.0_f64);
    let lost = |first_loss| point(losses, first_loss, largest).indications;
    if !(lost(low)..=lost(high)).contains(&indications) {
        return None;
    }
    for _ in 0..50 {
        let middle = (low * high).sqrt();
        if lost(middle) < indications { low = middle } else { high = middle }
    }
    Some(point(losses, (low * high).sqrt(), largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value / expected - 1.0).abs() <= tolerance, "{value} instead of {expected}");
    }

    #[test]
    fn window_probabilities_are_stationary_in_every_state() {
        for (p, largest) in [(0.3, 1), (0.2, 2), (0.05, 7), (0.01, 40), (0.01, 41), (0.003, 200)] {
            let stationary = windows(p, largest);
            assert_near(stationary.iter().sum(), 1.0, 1e-12);
            let mut next = vec![0.0; largest + 1];
            for (x, probability) in (1..).zip(&stationary) {
                let loss = 1.0 - (1.0 - p).powi(x as i32);
                next[(x + 1).min(largest)] += probability * (1.0 - loss);
                next[(x / 2).max(1)] += probability * loss;
            }
            for (x, probability) in (1..).zip(&stationary) {
                assert!((next[x] - probability).abs() < 1e-12, "state {x} of {largest} at {p}");
            }
        }
    }

    /// Analysis A1: the published numbers for independent losses.
    #[test]
    fn independent_losses_exceed_loss_events_by_up_to_a_quarter() {
        let ratios = [
            (0.001, 1.024),
            (0.005, 1.051),
            (0.01, 1.071),
            (0.02, 1.097),
            (0.05, 1.142),
            (0.1, 1.183),
            (0.2, 1.221),
            (0.3, 1.235),
            (0.35, 1.236),
            (0.4, 1.235),
            (0.5, 1.225),
            (0.7, 1.179),
            (0.9, 1.083),
        ];
        for (p, ratio) in ratios {
            for largest in [100, 400] {
                assert_near(point(Losses::Independent, p, largest).ratio(), ratio, 0.005);
            }
        }
        let most = (1..100)
            .map(|p| point(Losses::Independent, f64::from(p) / 100.0, 100).ratio())
            .fold(0.0, f64::max);
        assert!(most < 1.25, "paper 000, 2.2.1.3: less than 1.25, here {most}");
    }

    #[test]
    fn number_of_loss_events_in_6000_packets_is_as_published() {
        for (p, events) in [(0.04, 212.0), (0.1, 507.0), (0.2, 983.0)] {
            assert_near(6000.0 * point(Losses::Independent, p, 100).events, events, 0.005);
        }
    }

    #[test]
    fn mean_windows_match_computed_values() {
        for (p, window) in [(0.01, 12.43), (0.02, 8.60), (0.1, 3.525), (0.2, 2.395)] {
            assert_near(point(Losses::Independent, p, 100).window, window, 0.005);
        }
    }

    /// Analysis A1: the published numbers for bursty losses. The published loss rates have at most three significant digits.
    #[test]
    fn bursty_losses_have_many_lost_packets_for_each_loss_event() {
        let points = [
            (400, 0.0001, 0.0076, 76.8),
            (400, 0.0003, 0.0132, 44.5),
            (400, 0.001, 0.0240, 24.6),
            (400, 0.002, 0.0339, 17.5),
            (400, 0.005, 0.0534, 11.2),
            (400, 0.01, 0.0754, 8.07),
            (400, 0.02, 0.106, 5.83),
            (400, 0.05, 0.168, 3.84),
            (400, 0.1, 0.239, 2.83),
            (400, 0.2, 0.345, 2.11),
            (400, 0.5, 0.592, 1.45),
            (100, 0.0001, 0.00462, 46.4),
            (100, 0.001, 0.0240, 24.5),
        ];
        for (largest, p, indications, ratio) in points {
            let point = point(Losses::Bursty, p, largest);
            assert_near(point.indications, indications, 0.005);
            assert_near(point.ratio(), ratio, 0.005);
            let found = point_at(Losses::Bursty, point.indications, largest).expect("it exists");
            assert_near(found.first_loss, p, 1e-6);
        }
    }

    #[test]
    fn mean_loss_of_a_burst_equals_the_printed_sum() {
        for (x, p) in [(1, 0.5), (7, 0.1), (50, 0.01)] {
            let sum: f64 = (0..=x).map(|i| (x - i) as f64 * (1.0f64 - p).powi(i as i32) * p).sum();
            assert_near(lost_in_burst(x, p), sum, 1e-12);
        }
    }

    #[test]
    fn extreme_loss_rates_give_finite_results() {
        assert_eq!(point(Losses::Independent, 1.0, 100).ratio(), 1.0);
        assert_eq!(windows(0.5, 1), [1.0]);
        assert!(point(Losses::Bursty, 1e-9, 1000).ratio().is_finite());
        assert_eq!(point_at(Losses::Bursty, 1e-30, 10), None);
    }
}
