//! Claims of paper 004 about RLC: the dependence of its throughput on losses, the synchronisation of receivers, and the sharing
//! of a link between sessions.

mod nets;

use faircast_aqm::{LinkSpec, LossSpec};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Span, Time};
use faircast_sim::{MemberOutcome, Network, NodeId, Options, Outcome, ReceiverSpec, SessionSpec, Watch};
use nets::{link, wide};

/// Size of a packet in the paper, bytes.
const PACKET: u16 = 500;
/// Time between packets of the base layer, "tau".
const TAU: f64 = 0.125;

fn seconds(seconds: f64) -> Time {
    Time::from_secs_f64(seconds)
}

/// Leave latency of one router. Routers process a leave one after another. A bottleneck one hop before the receivers is therefore
/// free of a layer 2 s after the last receiver has left the layer. RLC's deaf period assumes this.
const LEAVE: Span = Span::from_secs(1);

/// Returns a session with the parameters of the paper; each router takes `leave` to stop sending a layer.
fn session(options: &str, source: NodeId, members: Vec<ReceiverSpec>, leave: Span) -> SessionSpec {
    let scheme: Scheme = format!("rlc,preset=published{options}").parse().expect("a scheme");
    let (join_latency, packet_size) = (Span::from_millis(20), PACKET);
    SessionSpec { scheme, packet_size, join_latency, leave_latency: leave, ..nets::session(source, members) }
}

fn run(net: &Network, until: f64) -> Outcome {
    let options =
        Options { until: seconds(until), sample: Span::MAX, watch: Watch::First(256), ..Options::default() };
    net.run(&options).expect("a sound network")
}

/// Returns the level of a receiver at `at`.
fn level(member: &MemberOutcome, at: Time) -> u8 {
    member.subscriptions.iter().take_while(|change| change.0 <= at).last().map_or(0, |change| change.1)
}

/// Returns the received rate in this part of the run, in bit/s.
fn rate(member: &MemberOutcome, from: usize, to: usize) -> f64 {
    member.bins[from.min(member.bins.len())..to.min(member.bins.len())].iter().sum::<u64>() as f64 * 8.0
        / (to - from) as f64
}

/// Runs one receiver whose packets are lost at random with probability `loss`. Returns the packets per loss event, and the rate
/// in packets per slot. Losses within the `deaf` period count as one loss event.
fn at_random(loss: f64, deaf: &str, until: f64, seed: u64) -> (f64, f64) {
    let mut net = Network::new(seed);
    let (source, leaf) = (net.node(), net.node());
    let lossy = LinkSpec { loss: Some(LossSpec::Bernoulli(loss)), ..wide(100.0, 5) };
    net.duplex(source, leaf, lossy, wide(100.0, 5));
    net.session(session(deaf, source, vec![nets::member(leaf)], Span::ZERO));
    let outcome = run(&net, until);
    let member = &outcome.flows[0].members[0];
    let whole = rate(member, 100, until as usize) / (8.0 * f64::from(PACKET)) * TAU;
    (member.suppressed as f64 / (member.packets + member.lost) as f64, whole)
}

/// With random losses, the rate is K s / (tau sqrt(P W p)), with K between 1 and 1.45.
#[test]
fn rate_falls_with_the_square_root_of_the_loss_rate() {
    let mut points = Vec::new();
    for (loss, until) in [(3e-4, 12_000.0), (1e-3, 8_000.0), (3e-3, 6_000.0), (1e-2, 4_000.0)] {
        let (events, rate) = at_random(loss, ",deaf=0.125", until, 1);
        let constant = rate * (8.0 * events).sqrt();
        println!(
            "loss {loss}: {events:.2e} events per packet, {rate:.2} packets per slot, K = {constant:.2}"
        );
        assert!((1.0..1.45).contains(&constant), "K = {constant} at {loss}");
        points.push((events.ln(), rate.ln()));
    }
    let slope = slope(&points);
    println!("slope {slope:.3}");
    assert!((slope + 0.5).abs() < 0.05, "{slope}");
}

fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), point| {
        (above + (point.0 - x) * (point.1 - y), below + (point.0 - x).powi(2))
    });
    above / below
}

/// Runs four receivers behind a bottleneck, at different distances. They join 20 s apart.
fn together(bottleneck: LinkSpec, seed: u64) -> Outcome {
    let mut net = Network::new(seed);
    let (source, near, far) = (net.node(), net.node(), net.node());
    net.duplex(source, near, wide(100.0, 5), wide(100.0, 5));
    net.duplex(near, far, bottleneck, wide(1.5, 20));
    let members = (0..4).map(|number| {
        let leaf = net.node();
        net.duplex(far, leaf, wide(100.0, 5 + 15 * number), wide(100.0, 5 + 15 * number));
        ReceiverSpec { join: seconds(20.0 * number as f64), ..nets::member(leaf) }
    });
    let members = members.collect();
    net.session(session("", source, members, LEAVE));
    run(&net, 420.0)
}

/// Returns the share of the interval in which all receivers have the same level.
fn agreement(members: &[MemberOutcome], from: f64, to: f64) -> f64 {
    let steps = ((to - from) * 100.0) as u32;
    let agree = |step: &u32| {
        let at = seconds(from + f64::from(*step) / 100.0);
        members.iter().all(|member| level(member, at) == level(&members[0], at))
    };
    (0..steps).filter(agree).count() as f64 / f64::from(steps)
}

#[test]
fn late_joiners_behind_one_bottleneck_converge_to_one_level() {
    for packets in [10, 20, 30, 100] {
        for seed in [1, 2] {
            let outcome = together(link(1.5, 20, packets), seed);
            let members = &outcome.flows[0].members;
            let share = agreement(members, 120.0, 420.0);
            let rates: Vec<f64> = members.iter().map(|member| rate(member, 120, 420) / 1e6).collect();
            println!("{packets} packets, seed {seed}: together {share:.3}, {rates:.2?} Mbit/s");
            if packets > 10 {
                assert!(share > 0.95, "{share} with {packets} packets");
            } else {
                // Bursts at level 5 overflow such a small buffer. A receiver at a lower level loses packets in each burst.
                assert!(share < 0.05 && rates[0] > 3.0 * rates[3], "{rates:?} with {packets} packets");
            }
        }
    }
}

/// A layer that exceeds the path's capacity is left before the routers could have processed a leave. The layer is tried
/// again at the next synchronisation point.
#[test]
fn layer_above_the_capacity_is_left_within_the_leave_delay() {
    let leave = Span::from_secs(2);
    for packets in [20, 60] {
        let outcome = together(link(1.5, 20, packets), 3);
        let member = &outcome.flows[0].members[0];
        let failed: Vec<(Time, Time)> = member
            .subscriptions
            .windows(2)
            .filter(|w| w[0].1 == 6 && w[1].1 < 6)
            .map(|w| (w[0].0, w[1].0))
            .collect();
        println!("{packets}: {:?}", member.subscriptions);
        assert!(!failed.is_empty(), "{packets}: never tried");
        assert!(failed.iter().all(|(up, down)| down.since(*up) < leave), "{packets}: {failed:?}");
        // Synchronisation points of level 5 are 32 s apart. Before the next one, the receiver has returned to level 5.
        let retries = failed.windows(2).map(|w| w[1].0.since(w[0].0).as_secs_f64());
        assert!(retries.into_iter().all(|apart| apart > 31.9), "{packets}: {failed:?}");
    }
}

/// Runs sessions with one receiver each over one bottleneck. Their sources are at different distances, and they start within 10
/// s.
fn side_by_side(bottleneck: LinkSpec, sessions: u32, seed: u64) -> Vec<f64> {
    let mut net = Network::new(seed);
    let mut starts = Rng::new(seed, 77);
    let (near, far) = (net.node(), net.node());
    net.duplex(near, far, bottleneck, wide(1.5, 20));
    for number in 0..sessions {
        let (source, leaf) = (net.node(), net.node());
        let millis = 5 + u64::from(number * 90 / sessions);
        net.duplex(source, near, wide(100.0, millis), wide(100.0, millis));
        net.duplex(far, leaf, wide(100.0, 1), wide(100.0, 1));
        let start = seconds(10.0 * starts.unit());
        let member = ReceiverSpec { join: start, ..nets::member(leaf) };
        net.session(SessionSpec { start, ..session("", source, vec![member], LEAVE) });
    }
    let outcome = run(&net, 460.0);
    outcome.flows.iter().map(|flow| rate(&flow.members[0], 60, 460)).collect()
}

/// Returns the fairness index (sum x)^2 / (n sum x^2).
fn fairness(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>().powi(2)
        / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

#[test]
fn sessions_share_a_red_queue_fairly() {
    let red = LinkSpec { queue: "red,buffer=60,mean=500".parse().expect("a queue"), ..link(1.5, 20, 0) };
    for sessions in [8, 16] {
        let (mut indices, mut used) = (Vec::new(), Vec::new());
        for seed in 1..=2 {
            let rates = side_by_side(red, sessions, seed);
            indices.push(fairness(&rates));
            used.push(rates.iter().sum::<f64>() / 1.5e6);
        }
        println!("{sessions} sessions: fairness {indices:.3?}, use {used:.2?}");
        let mean = indices.iter().sum::<f64>() / indices.len() as f64;
        assert!(mean > 0.95, "{mean} for {sessions}");
    }
}
