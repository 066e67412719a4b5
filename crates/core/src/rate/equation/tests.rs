//! Tests of the mean interval, term by term, and of the resulting rate.

use super::*;
use crate::rate::Doubling;
use crate::rate::formula::Path;

const AT: Operating = Operating {
    rate: Rate::from_mbps(1.0),
    rtt: Span::from_millis(100),
    full_rtt: Span::from_millis(100),
    deviation: Span::from_millis(10),
    packet_size: 1000,
};

fn equation(averaging: Averaging) -> Equation {
    Equation::new(averaging, Start::Linear)
}

fn congestion(at: Operating) -> Congestion {
    Congestion { level: at.rate, keep: 0.5 }
}

/// Creates a policy after these intervals, oldest first.
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

/// Returns the mean interval by its definition, term by term: `intervals` are "s_0", "s_1" and so on; `i` selects "s^_0" or
/// "s^_1".
fn by_definition(averaging: Averaging, intervals: &[f64], i: usize) -> f64 {
    let (n, closed) = (8, intervals.len() - 1);
    let weights = averaging.weights();
    let fading = if closed <= n { 0.0 } else { averaging.fading() };
    let mut sum = Sum::default();
    (1..=n.min(closed)).for_each(|k| sum.add(intervals[i + k - 1], weights[k - 1]));
    (i + n..=closed).for_each(|k| sum.add(intervals[k], fading.powi((k - i - n + 1) as i32)));
    sum.mean()
}

#[test]
fn loss_event_rate_of_even_losses_is_their_inverse_interval() {
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

#[test]
fn open_interval_raises_the_rate_once_it_exceeds_the_mean() {
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

/// RFC 5348, 5.4: its sums run over all stored intervals; history discounting is not used.
#[test]
fn mean_with_rfc_5348_weights_matches_rfc_5348() {
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
fn running_sums_match_the_definition_of_the_mean() {
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
fn low_rate_doubles_per_tick_before_any_loss() {
    let mut equation = equation(Averaging::Thesis);
    let mut rate = Rate::from_mbps(0.2);
    // 15 packets of 1000 bytes in 100 ms are 1.2 Mbit/s.
    for expected in [0.4, 0.8, 1.2, 1.28, 1.36] {
        rate = equation.on_tick(Operating { rate, ..AT });
        assert_near(rate.bps(), expected * 1e6, 1e-9);
    }
}

#[test]
fn first_loss_event_cuts_the_rate_by_the_factor_of_the_scheme() {
    for keep in [0.5, 0.75] {
        let mut equation = equation(Averaging::Thesis);
        let lowered = equation.on_congestion(AT, Congestion { level: AT.rate, keep });
        assert_near(lowered.bps(), keep * 1e6, 1e-9);
        let mean = equation.loss_event_rate().expect("there was one");
        assert_near(tcp_rate(AT, mean).bps(), keep * 1e6, 0.001);
    }
}

#[test]
fn rate_grows_by_a_packet_per_rtt_after_doubling_slow_start() {
    let start = Start::Doubling(Doubling::default());
    assert_eq!(Equation::new(Averaging::Thesis, start).on_tick(AT), Rate::from_bps(1_080_000.0));
}

#[test]
fn a_loss_event_never_raises_the_rate_before_the_next_tick() {
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
fn overlong_guess_of_the_first_interval_is_corrected() {
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
fn equation_uses_only_the_rtt_of_loss_events() {
    let mut equation = after(Averaging::Thesis, [100.0; 30]);
    depart(&mut equation, 110);
    let rate = equation.on_tick(AT);
    assert_eq!(after_tick_at(&mut equation, rate, 20), rate);
    depart(&mut equation, 1);
    assert_near(after_tick_at(&mut equation, rate, 20).bps(), rate.bps(), 0.001);
}

/// Returns the rate after a tick at a round-trip time of `millis` milliseconds.
fn after_tick_at(equation: &mut Equation, rate: Rate, millis: u64) -> Rate {
    equation.on_tick(Operating { rate, rtt: Span::from_millis(millis), ..AT })
}

#[test]
fn equation_matches_tcp_where_timeouts_are_rare() {
    let path = Path { timeout: Span::from_millis(140), ..Path::new(1000, AT.rtt) };
    for loss in [1e-5, 1e-3, 0.02, 0.1, 0.29] {
        assert_near(tcp_rate(AT, loss).bps(), path.tcp_rate(loss).bps(), 1e-6);
        assert_near(loss_at(AT, tcp_rate(AT, loss)), loss, 1e-3);
    }
    assert!(tcp_rate(AT, 0.5).bps() < path.tcp_rate(0.5).bps());
}

/// Analysis A10: paper 000, figure 2.6, has 32 loss events in 167,762 packets of 560 bytes. At a round-trip time of 0.392 s the
/// equation then yields the fair share of one megabit per second.
#[test]
fn loss_events_of_figure_2_6_give_the_fair_share() {
    let at =
        Operating { rtt: Span::from_millis(392), deviation: Span::from_millis(294), packet_size: 560, ..AT };
    assert_near(tcp_rate(at, 32.0 / 167_762.0).bps(), 1.014e6, 0.005);
}
