use super::*;
use crate::text::Written as _;

const RATE: Rate = Rate::from_mbps(8.0); // a packet of 1000 bytes takes a millisecond

fn red(config: Config) -> Red {
    Red::new(config, RATE, Span::from_millis(10))
}

fn busy(waiting: u32) -> Offer {
    Offer {
        now: Time::ZERO,
        size: 1000,
        flow: 0,
        ecn: false.into(),
        waiting,
        waiting_bytes: u64::from(waiting) * 1000,
        in_transmission: 1000,
        idle_since: None,
    }
}

fn with_average(config: Config, average: f64) -> Red {
    Red { average, ..red(config) }
}

/// Returns the decisions on `arrivals` arrivals at a queue with a constant average.
fn decisions(mut red: Red, offer: Offer, arrivals: usize) -> Vec<Decision> {
    let mut rng = Rng::new(1, 1);
    (0..arrivals).map(|_| red.on_arrival(&offer, &mut rng)).collect()
}

/// Returns the number of arrivals after each drop up to and including the next drop.
fn gaps(decisions: &[Decision]) -> Vec<usize> {
    let drops = decisions.iter().enumerate().filter(|(_, d)| **d == Decision::Drop(DropCause::Early));
    let at: Vec<_> = drops.map(|(i, _)| i).collect();
    at.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Thresholds 5 and 15, and a weight so small that the average is constant.
fn frozen() -> Config {
    Config { w_q: 1e-12, limit: 1000, ..Config::red_parameters() }
}

#[test]
fn every_arrival_moves_the_average_by_the_weight() {
    let mut red = red(Config { w_q: 0.25, ..frozen() });
    let mut rng = Rng::new(1, 1);
    red.on_arrival(&busy(4), &mut rng);
    assert_eq!(red.average(), 1.0);
    red.on_arrival(&busy(3), &mut rng);
    assert_eq!(red.average(), 1.5);
}

#[test]
fn idle_time_counts_as_arrivals_at_an_empty_queue() {
    let mut red = with_average(Config { w_q: 0.25, ..frozen() }, 16.0);
    let idle =
        Offer { now: Time::from_nanos(5_900_000), idle_since: Some(Time::from_nanos(4_000_000)), ..busy(0) };
    red.on_arrival(&idle, &mut Rng::new(1, 1)); // 1.9 ms: one packet, and this one
    assert_eq!(red.average(), 16.0 * 0.75 * 0.75);
}

#[test]
fn long_idle_time_resets_the_average() {
    let mut red = with_average(frozen(), 100.0);
    red.config.w_q = 0.002;
    let idle = Offer { now: Time::from_secs_f64(1e6), idle_since: Some(Time::ZERO), ..busy(0) };
    red.on_arrival(&idle, &mut Rng::new(1, 1));
    assert!(red.average() < 1e-9, "{}", red.average());
}

#[test]
fn gentle_probability_is_continuous() {
    let p = |average| with_average(frozen(), average).probability();
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    near(p(5.0), 0.0);
    near(p(10.0), 0.05);
    near(p(15.0 - 1e-9), 0.1);
    near(p(15.0), 0.1);
    near(p(22.5), 0.55);
    near(p(30.0 - 1e-9), 1.0);
    assert_eq!(p(31.0), 1.0);
}

#[test]
fn probability_without_gentle_jumps_to_one() {
    let config = Config { gentle: false, ..frozen() };
    assert!(with_average(config, 14.999).probability() < 0.1);
    assert_eq!(with_average(config, 15.0).probability(), 1.0);
}

#[test]
fn gaps_between_drops_are_uniform() {
    let config = Config { wait: false, ..frozen() };
    // With p = 0.05 the n-th packet after a drop is dropped with probability 1 / (20 - n), so gaps from 1 to 19 are equally
    // likely.
    let gaps = gaps(&decisions(with_average(config, 10.0), busy(10), 400_000));
    let mut counts = [0u32; 20];
    for gap in &gaps {
        counts[(*gap).min(20) - 1] += 1;
    }
    assert_eq!(counts[19], 0, "a gap was longer than 19");
    let expected = gaps.len() as f64 / 19.0;
    let chi2: f64 = counts[..19].iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    assert!(chi2 < 42.3, "chi-squared {chi2} of 18 degrees of freedom: less likely than 0.1 %; {counts:?}");
}

#[test]
fn gaps_with_wait_are_uniform_from_20_to_40_at_probability_0_05() {
    let gaps = gaps(&decisions(with_average(frozen(), 10.0), busy(10), 800_000)); // p = 0.05
    assert!(gaps.iter().all(|gap| (20..=40).contains(gap)));
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    assert!((mean - 29.5).abs() < 0.3, "{mean}");
}

#[test]
fn first_packet_above_the_lower_threshold_is_accepted() {
    let config = Config { wait: false, max_p: 1.0, ..frozen() };
    assert_eq!(decisions(with_average(config, 14.999), busy(10), 1), [Decision::Accept]);
}

#[test]
fn nearly_empty_queue_drops_nothing_at_any_average() {
    assert!(decisions(with_average(frozen(), 100.0), busy(1), 100).iter().all(|d| *d == Decision::Accept));
}

#[test]
fn average_above_twice_the_upper_threshold_drops_everything() {
    let capable = Offer { ecn: true.into(), ..busy(10) };
    let config = Config { ecn: true, ..frozen() };
    let all = decisions(with_average(config, 30.1), capable, 100);
    assert!(all.iter().all(|d| *d == Decision::Drop(DropCause::Overflow)));
}

#[test]
fn full_buffer_drops_even_ecn_capable_packets() {
    let capable = Offer { ecn: true.into(), ..busy(10) };
    let config = Config { ecn: true, limit: 10, ..frozen() };
    let all = decisions(with_average(config, 14.0), capable, 100);
    assert!(all.iter().all(|d| *d == Decision::Drop(DropCause::Overflow)));
}

#[test]
fn ecn_capable_packets_are_marked_and_others_dropped() {
    let config = Config { ecn: true, ..frozen() };
    let is_a = |decision: Decision| move |d: &&Decision| **d == decision;
    let capable = decisions(with_average(config, 10.0), Offer { ecn: true.into(), ..busy(10) }, 10_000);
    let marks = capable.iter().filter(is_a(Decision::Mark)).count();
    assert!(marks > 300 && capable.iter().all(|d| !matches!(d, Decision::Drop(_))), "{marks}");
    let others = decisions(with_average(config, 10.0), busy(10), 10_000);
    assert_eq!(others.iter().filter(is_a(Decision::Drop(DropCause::Early))).count(), marks);
}

#[test]
fn packets_are_dropped_instead_of_marked_above_mark_p() {
    let config = Config { ecn: true, mark_p: 0.05, ..frozen() };
    let all = decisions(with_average(config, 11.0), Offer { ecn: true.into(), ..busy(10) }, 10_000); // p = 0.06
    assert!(all.contains(&Decision::Drop(DropCause::Early)) && !all.contains(&Decision::Mark));
}

#[test]
fn small_packets_are_dropped_less_often_in_byte_mode() {
    let config = Config { bytes: true, wait: false, ..frozen() };
    let drops = |size| {
        let all = decisions(with_average(config, 10_000.0), Offer { size, ..busy(10) }, 100_000);
        all.iter().filter(|d| **d == Decision::Drop(DropCause::Early)).count() as f64
    };
    let ratio = drops(1000) / drops(100);
    assert!((8.0..12.0).contains(&ratio), "{ratio}");
}

#[test]
fn thresholds_and_limit_are_in_mean_packet_sizes_in_byte_mode() {
    let red = red(Config { bytes: true, mean_packet_size: 500, limit: 20, ..Config::red_parameters() });
    assert_eq!((red.thresholds(), red.limit), ((2_500.0, 7_500.0), 10_000.0));
}

#[test]
fn automatic_thresholds_and_weight_follow_from_the_link() {
    // A link of 45 Mbit/s sends 5625 packets per second: 14 packets in 2.5 ms.
    let red = Red::new(Config::auto(), Rate::from_mbps(45.0), Span::from_millis(50));
    assert_eq!(red.thresholds(), (14.0625, 42.1875));
    let round_trip = 3.0 * (0.05 + 1.0 / 5625.0);
    assert!((red.weight() - (1.0 - (-1.0 / (10.0 * round_trip * 5625.0f64)).exp())).abs() < 1e-15);
    let slow = Red::new(Config::auto(), Rate::from_mbps(1.0), Span::from_millis(1));
    assert_eq!(slow.thresholds(), (5.0, 15.0));
    assert!((slow.weight() - (1.0 - (-1.0 / 125.0f64).exp())).abs() < 1e-15);
}

#[test]
fn configured_thresholds_weight_and_limit_are_used() {
    let red = red(Config::experiments_e2e(60));
    assert_eq!((red.thresholds(), red.weight(), red.limit), ((10.0, 30.0), 0.002, 60.0));
}

#[test]
fn zero_and_unlimited_rates_give_a_finite_weight() {
    for rate in [Rate::ZERO, Rate::UNLIMITED] {
        let mut red = Red::new(Config::auto(), rate, Span::ZERO);
        let idle = Offer { now: Time::from_secs_f64(1.0), idle_since: Some(Time::ZERO), ..busy(0) };
        assert_eq!(red.on_arrival(&idle, &mut Rng::new(1, 1)), Decision::Accept);
        assert!(red.average() == 0.0 && red.weight().is_finite(), "{red:?}");
    }
}

/// Returns `max_p` after `times` ticks of the timer.
fn adapted(average: f64, times: u64) -> f64 {
    let mut red = with_average(Config { adaptive: true, ..frozen() }, average);
    for _ in 0..times {
        let now = red.timer();
        red.on_timer(&Offer { now, ..busy(0) });
        red.on_timer(&Offer { now, ..busy(0) }); // early: no effect
    }
    assert_eq!(red.timer(), Time::ZERO + INTERVAL * (times + 1));
    red.max_p()
}

#[test]
fn max_p_is_constant_while_the_average_is_near_the_middle() {
    assert_eq!(adapted(9.1, 10), 0.1);
    assert_eq!(adapted(10.9, 10), 0.1);
}

#[test]
fn max_p_grows_above_the_middle_average_and_shrinks_below() {
    assert!((adapted(11.1, 3) - 0.13).abs() < 1e-12);
    assert!((adapted(8.9, 3) - 0.0729).abs() < 1e-12);
}

#[test]
fn adapted_max_p_stays_within_bounds() {
    assert!((0.5..0.511).contains(&adapted(20.0, 1000)));
    assert!((0.009..0.01).contains(&adapted(1.0, 1000)));
}

#[test]
fn red_without_adaptation_has_no_timer() {
    assert!(red(Config::auto()).timer().is_never());
}

#[test]
fn step_red_marks_at_its_threshold_and_drops_without_ecn() {
    let step = Config { min_th: 65.0, max_th: 65.0, w_q: 1.0, gentle: false, ecn: true, ..frozen() };
    let marked = |waiting| Offer { ecn: true.into(), ..busy(waiting) };
    assert!(step.check().is_ok());
    assert_eq!(decisions(red(step), marked(64), 3), [Decision::Accept; 3]);
    assert_eq!(decisions(red(step), marked(65), 3), [Decision::Mark; 3]);
    assert_eq!(decisions(red(step), busy(65), 3), [Decision::Drop(DropCause::Overflow); 3]);
    let ramp = Config { max_th: 66.0, ..step };
    assert_eq!(decisions(red(ramp), marked(66), 3), [Decision::Drop(DropCause::Overflow); 3], "as in ns-2");
}
