use super::*;
use crate::bench;

const RATE: Rate = Rate::from_mbps(20.0); // 50 packets of 1000 bytes in 20 ms

fn with(solution: Solution) -> Config {
    Config { solution, ..Config::default() }
}

/// Figure 5.6: the probability is zero for low values of the queue and traffic, one for high values, and linear between them.
#[test]
fn drop_probability_is_zero_then_linear_then_one() {
    for solution in [Solution::Clamp, Solution::Exact, Solution::Literal] {
        let p = |queue: f64| probability(&with(solution), queue, (60.0, 60.0), 50.0);
        assert_eq!(p(9.0), 0.0, "below C + Q_opt - f1 = 10");
        assert!((p(40.0) - 30.0 / 60.0).abs() < 1e-12, "{solution:?}");
        assert_eq!(p(71.0), 1.0, "above C + Q_opt = 70");
    }
}

#[test]
fn nothing_is_dropped_without_traffic() {
    assert_eq!(probability(&Config::default(), 100.0, (0.5, 0.5), 50.0), 0.0);
}

#[test]
fn bound_of_the_second_interval_changes_the_exact_solution() {
    // The second interval's arrivals are below the capacity, so a part of the first interval's excess can wait until the second
    // interval.
    let p = |solution| probability(&with(solution), 30.0, (60.0, 40.0), 50.0);
    assert!((p(Solution::Clamp) - 20.0 / 60.0).abs() < 1e-12);
    // u2 = 0: the minimum of (20 - u)^2 + (10 - u)^2 is at 15.
    assert!((p(Solution::Exact) - 15.0 / 60.0).abs() < 1e-12);
}

/// The queue is served at the link's rate. Packets arrive at random times and at a higher mean rate.
#[test]
fn queue_converges_to_its_target() {
    let mut paqm = Paqm::new(Config { limit: 1000, ..Config::default() }, RATE);
    let (mut rng, mut queue, mut sum) = (Rng::new(4, 4), 0u32, 0.0);
    for interval in 0..2000 {
        for _ in 0..60 + rng.below(11) {
            if paqm.on_arrival(&bench::busy(queue), &mut rng) == Decision::Accept {
                queue += 1;
            }
        }
        queue = queue.saturating_sub(50);
        paqm.on_timer(&bench::busy(queue));
        if interval >= 100 {
            sum += f64::from(queue) / 1900.0;
        }
    }
    assert!((sum - 20.0).abs() < 3.0, "{sum}");
}

#[test]
fn dropped_packets_count_as_arrivals() {
    let mut paqm = Paqm::new(Config { limit: 1, predictor: Predictor::Last, ..Config::default() }, RATE);
    let mut rng = Rng::new(1, 1);
    for _ in 0..30 {
        assert_eq!(paqm.on_arrival(&bench::busy(1), &mut rng), Decision::Drop(DropCause::Overflow));
    }
    paqm.on_timer(&bench::busy(1));
    assert_eq!(paqm.predicted(), (30.0, 30.0));
}

#[test]
fn probability_is_valid_after_bursts_and_idle_time() {
    for bytes in [false, true] {
        let mut paqm = Paqm::new(Config { bytes, ..Config::default() }, RATE);
        let mut rng = Rng::new(7, 7);
        for interval in 0..500u32 {
            let burst = if interval % 50 == 0 { 500 } else { interval / 100 };
            for _ in 0..burst {
                paqm.on_arrival(&bench::busy(burst / 10), &mut rng);
            }
            paqm.on_timer(&bench::busy(burst / 10));
            assert!((0.0..=1.0).contains(&paqm.probability()), "{}", paqm.probability());
        }
    }
}
