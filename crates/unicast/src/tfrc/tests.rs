use crate::pipe::{Fate, Pipe};
use crate::{Protocol, Sender as _, Sink as _};
use faircast_core::rate::formula::Path;
use faircast_core::time::{Rate, Span, Time};

fn pipe(name: &str, seed: u64) -> Pipe {
    let protocol: Protocol = name.parse().expect("a protocol of the catalogue");
    Pipe::with_seed(protocol, Rate::from_mbps(100.0), Span::from_millis(50), seed)
}

/// Returns the number of packets sent in 2000 s at this probability of loss, summed over four runs.
fn sent_at(name: &str, loss: f64) -> f64 {
    let runs = (2..6).map(|seed| {
        let mut pipe = pipe(name, seed);
        pipe.lose_at_random(loss);
        pipe.run_until(Time::from_secs_f64(2000.0));
        pipe.sender.observe().sent as f64
    });
    runs.sum()
}

#[test]
fn rate_with_random_loss_matches_ns_2_35() {
    // For each probability of loss: number of packets that ns-2.35 sent in four runs of 2000 s over a link of 100 Mbit/s with a
    // delay of 50 ms. The four runs differ by 1.5 % (first probability) and 0.5 % (second).
    for (loss, theirs) in [(0.005, 350_842.0 + 351_394.0 + 354_023.0 + 362_397.0), (0.02, 665_483.0)] {
        let ours = sent_at("tfrc", loss);
        assert!((ours / theirs - 1.0).abs() < 0.02, "loss {loss}: {ours} against {theirs}");
    }
}

#[test]
fn rate_matches_the_equation_at_the_loss_event_rate() {
    // If every 200th packet is lost, every loss interval has 200 packets.
    for name in ["tfrc", "tfrc,preset=rfc"] {
        let mut pipe = pipe(name, 1);
        pipe.judge = Box::new(|n, _, _| if n % 200 == 199 { Fate::Dropped } else { Fate::Passes });
        pipe.run_until(Time::from_secs_f64(100.0));
        let before = pipe.sender.observe().sent;
        pipe.run_until(Time::from_secs_f64(300.0));
        let measured = (pipe.sender.observe().sent - before) as f64 * 8000.0 / 200.0;
        let mut path = Path::new(1000, pipe.sender.observe().rtt);
        if name == "tfrc" {
            path.timeout = Span::from_millis(200); // two ticks of ns-2's clock
        }
        let wanted = path.tcp_rate(1.0 / 200.0).bps();
        assert!((measured / wanted - 1.0).abs() < 0.05, "{name}: {measured} against {wanted}");
    }
}

#[test]
fn single_flow_fills_a_bottleneck_with_few_losses() {
    // ns-2.35 at 196 s: 24,456 packets, 26 drops.
    for name in ["tfrc", "tfrc,preset=rfc"] {
        let protocol: Protocol = name.parse().expect("a protocol of the catalogue");
        let mut pipe = Pipe::new(protocol, Rate::from_mbps(1.0), Span::from_millis(20));
        pipe.waiting_limit = 49;
        pipe.run_until(Time::from_secs_f64(196.0));
        assert!(pipe.sink.delivered() > 24_300, "{name}: {}", pipe.sink.delivered());
        assert!((20..=40).contains(&pipe.drops), "{name}: {}", pipe.drops);
    }
}

#[test]
fn reports_are_sent_once_per_round_trip() {
    let mut pipe = pipe("tfrc", 1);
    pipe.judge = Box::new(|n, _, _| if n % 1000 == 999 { Fate::Dropped } else { Fate::Passes });
    pipe.run_until(Time::from_secs_f64(50.0));
    let before = pipe.acks;
    pipe.run_until(Time::from_secs_f64(100.0));
    let round_trips = 50.0 / pipe.sender.observe().rtt.as_secs_f64();
    let per_round_trip = (pipe.acks - before) as f64 / round_trips;
    assert!((0.9..1.1).contains(&per_round_trip), "{per_round_trip}");
}

#[test]
fn rate_is_halved_repeatedly_when_feedback_stops() {
    let mut pipe = pipe("tfrc", 1);
    pipe.lose_at_random(0.01);
    pipe.run_until(Time::from_secs_f64(50.0));
    let before = pipe.sender.observe();
    pipe.judge = Box::new(|_, _, _| Fate::Dropped);
    pipe.run_until(Time::from_secs_f64(52.0));
    let after = pipe.sender.observe();
    let silences = after.timeouts - before.timeouts;
    assert!(silences >= 4, "{silences}");
    assert!(after.rate.bps() <= before.rate.bps() * 1.5 / f64::from(1 << silences), "{before:?} {after:?}");
}

#[test]
fn ecn_mark_counts_as_a_loss_although_no_packet_is_lost() {
    let mut pipe = pipe("tfrc,ecn", 1);
    pipe.judge = Box::new(|n, _, _| if n % 200 == 199 { Fate::Marked } else { Fate::Passes });
    pipe.run_until(Time::from_secs_f64(300.0));
    let (view, marked) = (pipe.sender.observe(), pipe.drops);
    assert_eq!((marked, pipe.sink.delivered().abs_diff(view.sent) < 30), (0, true));
    let mut lossy = self::pipe("tfrc", 1);
    lossy.judge = Box::new(|n, _, _| if n % 200 == 199 { Fate::Dropped } else { Fate::Passes });
    lossy.run_until(Time::from_secs_f64(300.0));
    let ratio = view.sent as f64 / lossy.sender.observe().sent as f64;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}

#[test]
fn idle_flow_retains_a_rate_of_four_packets_per_round_trip() {
    let mut pipe = pipe("tfrc", 1);
    pipe.lose_at_random(0.01);
    pipe.run_until(Time::from_secs_f64(20.0));
    let sent = pipe.sender.observe().sent as u32;
    pipe.sender.supply(sent, pipe.now);
    pipe.run_until(Time::from_secs_f64(60.0));
    let view = pipe.sender.observe();
    assert_eq!(view.sent, u64::from(sent));
    let per_round_trip = view.rate.bps() / 8000.0 * view.rtt.as_secs_f64();
    assert!((3.99..4.01).contains(&per_round_trip), "{per_round_trip}");
}
