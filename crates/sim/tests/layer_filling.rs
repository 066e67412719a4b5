//! Layered sessions to receivers behind links of very different rates, each competing with one Linux Reno flow. The tests measure
//! the time to fill the layers. `bench/layers/fill` measures the same with more seeds.

mod nets;

use faircast_aqm::{Limit, LinkSpec, QueueSpec};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Span, Time};
use faircast_sim::{MemberOutcome, Network, Options, Outcome, SessionSpec, UnicastProtocol, UnicastSpec};
use faircast_unicast::Protocol;
use nets::{link, member, session, wide};

const LINKS: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 32.0, 100.0];
const SECS: u64 = 40;
const FASTEST: usize = LINKS.len() - 1;

/// Runs a session with queues of 50 kB and round-trip times of at least 20 ms. Leaving a layer takes two seconds, as with the
/// default timers of routers.
fn six(scheme: &str, seed: u64) -> Outcome {
    let (mut net, mut starts) = (Network::new(seed), Rng::new(seed, 9));
    let (source, servers, hub) = (net.node(), net.node(), net.node());
    net.duplex(source, hub, wide(1000.0, 1), wide(1000.0, 1));
    net.duplex(servers, hub, wide(1000.0, 1), wide(1000.0, 1));
    let mut leaves = Vec::new();
    for rate in LINKS {
        let leaf = net.node();
        let queue = QueueSpec::DropTail(Limit::Bytes(50_000));
        net.duplex(hub, leaf, LinkSpec { queue, ..link(rate, 9, 0) }, wide(rate, 9));
        let reno = "tcp-reno,preset=linux".parse::<Protocol>().expect("a protocol");
        let start = 0.2 * starts.unit();
        let spec = nets::unicast(UnicastProtocol::Controlled(reno), servers, leaf, start);
        net.unicast(UnicastSpec { packet_size: 1500, ..spec });
        leaves.push(leaf);
    }
    let scheme = scheme.parse::<Scheme>().expect("a scheme").with_packet_size(1450);
    let members = leaves.iter().map(|leaf| member(*leaf)).collect();
    let leave_latency = Span::from_secs(2);
    net.session(SessionSpec { scheme, packet_size: 1450, leave_latency, ..session(source, members) });
    let options = Options { until: Time::from_secs_f64(SECS as f64), ..Options::default() };
    net.run(&options).expect("a sound network")
}

fn members(outcome: &Outcome) -> &[MemberOutcome] {
    let layered = outcome.flows.iter().find(|flow| flow.layers.len() > 1);
    &layered.expect("a layered session").members
}

/// Returns the TCP flow that competes with the session at a receiver.
fn tcp(outcome: &Outcome, receiver: usize) -> &MemberOutcome {
    let mut flows = outcome.flows.iter().filter(|flow| flow.layers.len() <= 1);
    &flows.nth(receiver).expect("one for each").members[0]
}

/// Returns the session's rate relative to TCP's rate, from second `from` to second `to`.
fn share(outcome: &Outcome, receiver: usize, from: usize, to: usize) -> f64 {
    let sum =
        |member: &MemberOutcome| member.bins[from..to.min(member.bins.len())].iter().sum::<u64>() as f64;
    sum(&members(outcome)[receiver]) / sum(tcp(outcome, receiver)).max(1.0)
}

/// Returns the first second at which the receiver had at least half of TCP's rate over two seconds.
fn half_after(outcome: &Outcome, receiver: usize) -> Option<usize> {
    (2..=SECS as usize).find(|end| share(outcome, receiver, end - 2, *end) >= 0.5)
}

/// Returns the second at which the receiver had received `bytes` bytes.
fn got(outcome: &Outcome, receiver: usize, bytes: u64) -> Option<usize> {
    let mut sum = 0;
    members(outcome)[receiver].bins.iter().position(|bin| {
        sum += bin;
        sum >= bytes
    })
}

#[test]
fn fastest_gmcc_receiver_reaches_half_of_tcp_rate_within_10_s() {
    let mut after: Vec<usize> =
        (31..36).map(|seed| half_after(&six("gmcc", seed), FASTEST).unwrap_or(usize::MAX)).collect();
    after.sort_unstable();
    assert!(after[2] <= 10 && after[4] <= 15, "{after:?}");
}

#[test]
fn gmcc_receivers_have_half_of_tcp_rate_after_20_megabytes() {
    for seed in [31, 32, 33] {
        let outcome = six("gmcc", seed);
        for (receiver, link) in LINKS.iter().enumerate() {
            let from =
                got(&outcome, receiver, 20_000_000).unwrap_or(SECS as usize / 2).min(SECS as usize - 5);
            let share = share(&outcome, receiver, from, SECS as usize);
            assert!(share >= 0.5, "seed {seed}: {share} at {link} Mbit/s from {from} s on");
        }
    }
}

#[test]
fn fast_smcc_receivers_reach_half_of_tcp_rate_within_15_s() {
    for seed in [31, 32, 33] {
        let outcome = six("smcc", seed);
        let after = half_after(&outcome, FASTEST);
        assert!(after.is_some_and(|secs| secs <= 15), "seed {seed}: {after:?}");
        for receiver in [FASTEST - 1, FASTEST] {
            let share = share(&outcome, receiver, 15, SECS as usize);
            assert!(share >= 0.5, "seed {seed}: {share} at {} Mbit/s", LINKS[receiver]);
        }
    }
}

#[test]
fn default_sync_points_double_bytes_of_the_fastest_rlc_receiver() {
    for seed in [31, 32, 33] {
        let outcome = six("rlc", seed);
        let letter = six("rlc,points=doubling", seed);
        let bytes = |outcome: &Outcome| members(outcome)[FASTEST].bytes;
        assert!(bytes(&outcome) > 2 * bytes(&letter), "seed {seed}: {} {}", bytes(&outcome), bytes(&letter));
    }
}
