//! Comparison with the formulas of the drafts and RFCs, and with cases computed by hand.

use super::bbr::MaxFilter;
use super::cubic::{self, Cubic};
use super::dctcp::Dctcp;
use super::delivery::Delivery;
use super::{Law, Received};
use crate::pipe::{Fate, Pipe};
use crate::tcp::config::{Config, Switch, Variant};
use crate::tcp::window::CongestionWindow;
use crate::{Ack, Feedback, Protocol, Segment, SegmentFlags, Sender as _, Sink as _, tcp};
use faircast_core::node::{Cx, Effects};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

fn pipe(protocol: &str, mbps: f64, one_way: u64) -> Pipe {
    let protocol: Protocol = protocol.parse().expect("a protocol of the catalogue");
    Pipe::new(protocol, Rate::from_mbps(mbps), Span::from_millis(one_way))
}

fn secs(time: f64) -> Time {
    Time::from_secs_f64(time)
}

/// Returns the mean window between two moments.
fn mean_window(pipe: &mut Pipe, from: f64, to: f64) -> f64 {
    pipe.run_until(secs(from));
    let (mut sum, mut count) = (0.0, 0.0);
    pipe.run_sampled(secs(to), Span::from_millis(20), |pipe| {
        sum += pipe.sender.observe().window;
        count += 1.0;
    });
    sum / count
}

fn ack(next: u32, echo: Time, ece: bool) -> Ack {
    Ack { next, echo, blocks: [(0, 0); 3], ece, syn: false }
}

#[test]
fn cubic_window_follows_the_function_of_rfc_9438() {
    // The window was reduced from 200 to 140 packets, so K = cbrt(60 / 0.4) = 5.313 s.
    let mut window = CongestionWindow::new(140.0, 140.0);
    let mut cubic = Cubic::new(Switch::Off, Switch::On);
    cubic.on_reduction(200.0);
    let (rtt, mut una) = (Span::from_millis(100), 0);
    let mut at = |seconds: f64| {
        let mut now = Time::ZERO;
        while now < secs(seconds) {
            now += rtt;
            for _ in 0..window.packets() as u32 {
                let received = Received { now, rtt, una, nxt: una + 100 };
                una += 1;
                cubic.on_received(&ack(una, Time::ZERO, false), &received);
                cubic.grow(&mut window, 1);
            }
        }
        window.packets()
    };
    // When a whole window has been acknowledged, the window has reached the value that the cubic function has one round trip
    // later.
    let reached = at(2.0);
    let expected = 0.4 * (2.0_f64 - 5.313).powi(3) + 200.0;
    assert!((reached / expected - 1.0).abs() < 0.02, "{reached} packets, by hand {expected}");
    assert!((5.3..5.32).contains(&(60.0_f64 / cubic::C).cbrt()));
}

#[test]
fn cubic_lowers_its_plateau_when_its_maximum_falls() {
    let mut cubic = Cubic::new(Switch::Off, Switch::On);
    cubic.on_reduction(100.0);
    cubic.on_reduction(80.0); // lower than 100: (1 + 0.7) / 2 of 80 is 68
    let mut window = CongestionWindow::new(68.0, 56.0);
    let received = Received { now: secs(1.0), rtt: Span::from_millis(100), una: 0, nxt: 100 };
    cubic.on_received(&ack(1, Time::ZERO, false), &received);
    cubic.grow(&mut window, 1);
    // The window is at the plateau of 68 packets. One round trip later, the cubic function has the value 68 + 0.4 * 0.1^3.
    assert!((window.packets() - 68.0) < 0.02, "{}", window.packets());
}

/// Returns the mean window in packets by RFC 9438, 5.1, figure 5.
fn response(rtt: f64, loss: f64) -> f64 {
    let beta = cubic::BETA;
    (cubic::C * (3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25) * rtt.powf(0.75) / loss.powf(0.75)
}

#[test]
fn cubic_under_periodic_loss_reaches_the_window_of_rfc_9438() {
    // The window approaches its stable cycle over hundreds of periods, because the cubic function is flat near the plateau. The
    // test therefore starts once below and once above the expected window.
    for (rtt, every, start) in
        [(0.1, 10_000_u64, 0.85), (0.1, 10_000, 1.15), (0.2, 4_000, 0.85), (0.2, 4_000, 1.15)]
    {
        let expected = response(rtt, 1.0 / every as f64);
        let first = (start * expected * 4.0 / (3.0 + cubic::BETA)) as u64; // slow start's window is the number of the packet
        let mut pipe =
            pipe("tcp-cubic,hystart=off,fast-convergence=off,delack=off", 1000.0, (rtt * 500.0) as u64);
        let lost = move |number| number == first || number % every == every - 1;
        pipe.judge = Box::new(move |number, _, _| if lost(number) { Fate::Dropped } else { Fate::Passes });
        let early = (mean_window(&mut pipe, 10.0, 110.0) / expected - 1.0).abs();
        let late = (mean_window(&mut pipe, 1400.0, 1500.0) / expected - 1.0).abs();
        assert!(
            late < 0.07 && late < early,
            "rtt {rtt}, 1 of {every}, from {start}: {early} off, then {late}"
        );
    }
}

#[test]
fn cubic_window_equals_the_reno_window_if_reno_is_faster() {
    // The round-trip time is 20 ms, and one of 100 packets is lost. The mean window is then 1.8 packets by the cubic function and
    // sqrt(3 / (2 p)) = 12.2 packets by Reno's rules.
    let mut pipe = pipe("tcp-cubic,hystart=off,delack=off", 1000.0, 10);
    pipe.judge = Box::new(|number, _, _| if number % 100 == 99 { Fate::Dropped } else { Fate::Passes });
    let window = mean_window(&mut pipe, 20.0, 200.0);
    assert!((10.5..14.0).contains(&window), "{window}");
}

#[test]
fn hystart_ends_slow_start_before_a_deep_buffer_is_full() {
    let drops = |hystart: &str| {
        let mut pipe = pipe(&format!("tcp-cubic,hystart={hystart}"), 10.0, 50);
        pipe.waiting_limit = 1000;
        pipe.run_until(secs(5.0));
        (pipe.drops, pipe.sender.observe().acked)
    };
    let ((with, got), (without, _)) = (drops("on"), drops("off"));
    // HyStart detects the queue when the window is twice the number of packets that the path holds. In five more rounds, the
    // window grows by a quarter per round.
    assert!(without > 200 && with == 0, "{with} with, {without} without");
    assert!(got > 4500, "{got} of 6250 packets in 5 s");
}

#[test]
fn dctcp_estimate_moves_to_the_share_of_marks_by_its_gain() {
    let mut dctcp = Dctcp::new(&Config::linux(Variant::Dctcp));
    let mut receive = |next: u32, una: u32, nxt: u32, ece: bool| {
        let received = Received { now: secs(1.0), rtt: Span::from_millis(10), una, nxt };
        dctcp.on_received(&ack(next, Time::ZERO, ece), &received);
        dctcp.alpha()
    };
    assert_eq!(receive(1, 0, 11, false), 1.0 - 1.0 / 16.0, "the first window is one packet, and unmarked");
    assert_eq!(receive(5, 1, 15, true), 0.9375, "the window is not over");
    assert_eq!(receive(11, 5, 21, false), 0.9375);
    // 4 of 11 packets are marked.
    let expected = 0.9375 + (4.0 / 11.0 - 0.9375) / 16.0;
    assert!((receive(12, 11, 22, false) - expected).abs() < 1e-12);
}

#[test]
fn dctcp_receiver_sends_an_ack_when_the_marking_changes() {
    let config = Config::linux(Variant::Dctcp);
    let mut sink = tcp::Sink::new(&config);
    let (mut rng, mut effects) = (Rng::new(1, 1), Effects::default());
    let mut arrive = |seq: u32, marked: bool| {
        let segment = Segment { seq, flags: SegmentFlags::ECT, sent_at: Time::ZERO, rtt: Span::ZERO };
        let mut cx = Cx { now: secs(1.0), rng: &mut rng, effects: &mut effects };
        match sink.on_segment(&segment, marked, &mut cx) {
            Some(Feedback::Ack(ack)) => Some((ack.next, ack.ece)),
            _ => None,
        }
    };
    assert_eq!(arrive(0, false), None);
    assert_eq!(arrive(1, false), Some((2, false)), "two of a kind");
    assert_eq!(arrive(2, false), None);
    assert_eq!(arrive(3, true), Some((3, false)), "the one that waited, as it was");
    assert_eq!(arrive(4, true), Some((5, true)));
    assert_eq!(arrive(5, false), None, "nothing waited");
    assert_eq!(arrive(6, false), Some((7, false)), "no CWR is waited for");
}

/// Creates a flow whose packets are marked at random and never lost.
fn marked(name: &str, one_way: u64, probability: f64) -> Pipe {
    let mut pipe = pipe(name, 1000.0, one_way);
    pipe.judge = Box::new(move |_, segment, rng| {
        let marked = segment.flags.has(SegmentFlags::ECT) && rng.chance(probability);
        if marked { Fate::Marked } else { Fate::Passes }
    });
    pipe
}

#[test]
fn dctcp_window_matches_the_expected_marks_per_round_trip() {
    // With a reduction in every round, the window would be W = 2 / p. In this test, a reduction also has to wait for the next
    // mark. Let x = W p / 2 be the number of marks in half a round trip; then x = 1 + 1 / (2 x), so x = 1.366. In addition, the
    // window does not grow at acknowledgements that echo a mark.
    for p in [0.02, 0.05, 0.1] {
        let window = mean_window(&mut marked("tcp-dctcp,delack=off", 20, p), 20.0, 320.0);
        let ratio = window * p / 2.0 / (1.366 * (1.0 - p));
        assert!((0.93..1.07).contains(&ratio), "p = {p}: {window} packets, {ratio} of what is expected");
    }
}

#[test]
fn loss_halves_the_dctcp_window_despite_marks() {
    let mut pipe = marked("tcp-dctcp", 20, 0.02);
    pipe.run_until(secs(20.0));
    let before = pipe.sender.observe().window;
    let mut number = 0;
    pipe.judge = Box::new(move |_, _, _| {
        number += 1;
        [Fate::Passes, Fate::Marked, Fate::Passes, Fate::Dropped].get(number).copied().unwrap_or(Fate::Passes)
    });
    let mut lowest = before;
    pipe.run_sampled(secs(20.1), Span::from_millis(1), |pipe| {
        lowest = pipe.sender.observe().window.min(lowest);
    });
    assert!((0.45..0.53).contains(&(lowest / before)), "{before} to {lowest}");
}

#[test]
fn prague_rate_is_independent_of_short_round_trip_times() {
    let rate = |name: &str, one_way: u64| {
        let mut pipe = marked(name, one_way, 0.01);
        pipe.run_until(secs(20.0));
        let before = pipe.sender.observe().acked;
        pipe.run_until(secs(120.0));
        (pipe.sender.observe().acked - before) as f64 / 100.0
    };
    let (near, far) = (rate("tcp-prague,delack=off", 2), rate("tcp-prague,delack=off", 10));
    assert!((0.75..1.33).contains(&(near / far)), "{near} packets a second at 4 ms, {far} at 20 ms");
    // The expected rate is 2 / p packets per virtual round trip of 25 ms.
    assert!((0.8..1.35).contains(&(far / 8000.0)), "{far} packets a second");
    let (near, far) = (rate("tcp-dctcp,delack=off", 2), rate("tcp-dctcp,delack=off", 10));
    assert!(near / far > 3.5, "DCTCP's does: {near} and {far}");
}

#[test]
fn prague_sets_ect_1_and_dctcp_sets_ect_0() {
    for (name, l4s) in [("tcp-prague", true), ("tcp-dctcp", false)] {
        let mut pipe = pipe(name, 10.0, 10);
        let mut seen = 0;
        let stated = std::rc::Rc::new(std::cell::Cell::new((true, true)));
        let noted = stated.clone();
        pipe.judge = Box::new(move |_, segment, _| {
            let (ect, ect1) = noted.get();
            let (now, now1) = (segment.flags.has(SegmentFlags::ECT), segment.flags.has(SegmentFlags::ECT1));
            noted.set((ect && now, ect1 && now1 == l4s));
            Fate::Passes
        });
        pipe.run_sampled(secs(1.0), Span::from_millis(100), |pipe| seen = pipe.sender.observe().acked);
        assert!(seen > 100 && stated.get() == (true, true), "{name}");
    }
}

#[test]
fn bbr_fills_the_link_and_leaves_its_queue_nearly_empty() {
    let mut pipe = pipe("tcp-bbr", 10.0, 20);
    pipe.run_until(secs(3.0));
    let before = pipe.sender.observe().acked;
    let (mut queued, mut count, mut fewest) = (0, 0, u64::MAX);
    let mut highest: u64 = 0;
    pipe.run_sampled(secs(33.0), Span::from_millis(10), |pipe| {
        queued += pipe.queued();
        count += 1;
        let out = pipe.sender.observe().window as u64;
        (fewest, highest) = (fewest.min(out), highest.max(out));
    });
    let got = pipe.sender.observe().acked - before;
    let share = got as f64 / (30.0 * 1250.0);
    let mean = queued as f64 / f64::from(count);
    assert!(share > 0.96, "{share} of the link");
    // The path without a queue holds 52 packets. In one of eight rounds, a quarter more packets are in flight.
    assert!(mean < 15.0, "{mean} packets queued");
    assert_eq!(fewest, 4, "every 10 s only four are out");
    assert!((104..120).contains(&highest), "twice what the path holds, and a few: {highest}");
    assert_eq!(pipe.drops, 0);
}

#[test]
fn random_loss_slows_cubic_but_not_bbr() {
    let rate = |name: &str| {
        let mut pipe = pipe(name, 10.0, 20);
        pipe.waiting_limit = 200;
        pipe.lose_at_random(0.02);
        pipe.run_until(secs(60.0));
        pipe.sender.observe().acked as f64 / (60.0 * 1250.0)
    };
    let (bbr, cubic) = (rate("tcp-bbr"), rate("tcp-cubic"));
    assert!(bbr > 0.85, "{bbr} of the link at 2 % loss");
    assert!(cubic < 0.4, "{cubic}");
}

#[test]
fn bbr_repairs_losses_almost_without_timeouts() {
    let mut pipe = pipe("tcp-bbr", 10.0, 20);
    pipe.waiting_limit = 200;
    pipe.lose_at_random(0.1);
    pipe.run_until(secs(60.0));
    let view = pipe.sender.observe();
    let share = view.acked as f64 / (60.0 * 1250.0);
    assert!(
        share > 0.75 && view.timeouts < 5,
        "{share} of the link at 10 % loss, {} timeouts",
        view.timeouts
    );
    assert!((view.again as f64 / view.sent as f64) < 0.14, "{} of {} sent again", view.again, view.sent);
}

#[test]
fn bbr_passes_through_its_states_in_the_specified_order() {
    let mut pipe = pipe("tcp-bbr", 10.0, 20);
    let mut seen = Vec::new();
    pipe.run_sampled(secs(12.0), Span::from_millis(5), |pipe| {
        let crate::AnySender::Tcp(sender) = &pipe.sender else { panic!("it is TCP") };
        let Some(Law::Bbr(bbr)) = sender.law() else { panic!("it is BBR") };
        if seen.last() != Some(&bbr.state) {
            seen.push(bbr.state);
        }
    });
    use super::bbr::State::{Drain, ProbeBandwidth, ProbeRtt, StartUp};
    assert_eq!(seen, [StartUp, Drain, ProbeBandwidth, ProbeRtt, ProbeBandwidth]);
}

#[test]
fn delivery_rate_sample_is_the_lower_of_send_and_ack_rate() {
    let mut delivery = Delivery::default();
    let at = Time::from_nanos;
    // Four packets are sent at intervals of 1 ms, and arrive at intervals of 2 ms.
    (0..4_u32).for_each(|seq| delivery.on_sent(seq, 0, seq, false, at(u64::from(seq) * 1_000_000)));
    let mut last = None;
    for seq in 0..4_u32 {
        let now = at(10_000_000 + u64::from(seq) * 2_000_000);
        delivery.on_arrival(seq, now);
        delivery.on_arrival(seq, now); // told twice, counted once
        last = delivery.take_sample(None, now);
    }
    let last = last.expect("a packet arrived");
    assert_eq!((last.newly, last.prior_delivered, delivery.delivered), (1, 0, 4));
    // All four packets were delivered within 16 ms after the first packet was sent at time 0.
    assert!((last.rate.expect("long enough") - 250.0).abs() < 1e-6);
    assert_eq!(last.rtt, Some(Span::from_millis(13)));
}

#[test]
fn bandwidth_maximum_expires_after_ten_rounds() {
    let mut filter = MaxFilter::default();
    filter.update(1, 100.0);
    (2..=11).for_each(|round| filter.update(round, 50.0));
    assert_eq!(filter.max(), 100.0);
    filter.update(12, 50.0);
    assert_eq!(filter.max(), 50.0);
}
