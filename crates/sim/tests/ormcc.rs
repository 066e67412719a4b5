//! Claims of paper 000 about ORMCC, on stars of bottlenecks of 1 Mbit/s. At each bottleneck, two sessions with one receiver each
//! compete with the session under test. The constants were chosen with a prototype in this set-up.

mod nets;

use faircast_aqm::{LinkSpec, LossSpec};
use faircast_core::time::{Span, Time};
use faircast_sim::{Network, Options, Outcome, SessionSpec, Watch};

const SECONDS: f64 = 200.0;

struct Star {
    receivers: usize,
    seed: u64,
    report_loss: Option<f64>,
    mute_after: Option<Span>,
}

impl Star {
    fn of(receivers: usize, seed: u64) -> Star {
        Star { receivers, seed, report_loss: None, mute_after: None }
    }

    /// Runs the session as flow 0, and the sessions with one receiver as the following flows.
    fn run(&self) -> Outcome {
        let mut net = Network::new(self.seed);
        let (source, router) = (net.node(), net.node());
        net.duplex(source, router, nets::wide(100.0, 1), nets::wide(100.0, 1));
        let mut members = Vec::new();
        let mut singles = Vec::new();
        for _ in 0..self.receivers {
            let leaf = net.node();
            let back = LinkSpec { loss: self.report_loss.map(LossSpec::Bernoulli), ..nets::wide(1.0, 50) };
            net.duplex(router, leaf, nets::link(1.0, 50, 50), back);
            members.push(faircast_sim::ReceiverSpec { mute_after: self.mute_after, ..nets::member(leaf) });
            for _ in 0..2 {
                let single = net.node();
                net.duplex(single, router, nets::wide(100.0, 1), nets::wide(100.0, 1));
                singles.push((single, leaf));
            }
        }
        net.session(nets::session(source, members));
        for (number, (single, leaf)) in singles.into_iter().enumerate() {
            let start = Time::from_secs_f64((number as f64 * 0.618).fract());
            net.session(SessionSpec { start, ..nets::session(single, vec![nets::member(leaf)]) });
        }
        let until = Time::from_secs_f64(SECONDS);
        let options = Options { until, sample: Span::MAX, watch: Watch::First(0), ..Options::default() };
        net.run(&options).expect("a sound network")
    }
}

/// Returns the mean received rate of a flow's members, in bit/s.
fn rate(outcome: &Outcome, flow: usize) -> f64 {
    let members = &outcome.flows[flow].members;
    members.iter().map(|member| member.bytes as f64).sum::<f64>() * 8.0 / SECONDS / members.len() as f64
}

/// Returns the session's rate relative to the rate of the sessions with one receiver.
fn ratio(outcome: &Outcome) -> f64 {
    let singles = 1..outcome.flows.len();
    let count = singles.len() as f64;
    rate(outcome, 0) / (singles.map(|flow| rate(outcome, flow)).sum::<f64>() / count)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// The rate does not drop to zero with many receivers.
#[test]
fn session_rate_is_nearly_that_of_single_receiver_sessions() {
    let ratios = |receivers, seeds: u32| {
        mean((0..seeds).map(|seed| ratio(&Star::of(receivers, 1 + u64::from(seed)).run())))
    };
    let (one, four, sixteen, many) = (ratios(1, 6), ratios(4, 4), ratios(16, 3), ratios(64, 2));
    println!("multicast over unicast: {one:.3} (1), {four:.3} (4), {sixteen:.3} (16), {many:.3} (64)");
    assert!((0.85..1.15).contains(&one), "{one}");
    assert!((0.85..1.15).contains(&four), "{four}");
    assert!((0.65..1.15).contains(&sixteen), "{sixteen}");
    assert!((0.65..1.15).contains(&many), "{many}");
}

/// Paper 000, 3.3.5: feedback hardly grows with the group, and almost all feedback is suppressed.
#[test]
fn feedback_of_64_receivers_is_less_than_that_of_two() {
    let outcome = Star::of(64, 3).run();
    let members = &outcome.flows[0].members;
    let sent: u64 = members.iter().map(|member| member.reports).sum();
    let suppressed: u64 = members.iter().map(|member| member.suppressed).sum();
    let singles = &outcome.flows[1..];
    let single = mean(singles.iter().map(|flow| flow.members[0].reports as f64));
    let share = suppressed as f64 / (sent + suppressed) as f64;
    println!("sent {sent}, a single receiver {single:.0}, suppressed {:.1} %", 100.0 * share);
    assert!(share > 0.95, "{share}");
    assert!((sent as f64) < 2.0 * single, "{sent} against {single}");
}

/// Paper 000, 3.3.2: losing every tenth report changes little.
#[test]
fn loss_of_every_tenth_report_hardly_changes_the_rate() {
    let rate_at = |report_loss| {
        mean((1..5u32).map(|seed| rate(&Star { report_loss, ..Star::of(8, u64::from(seed)) }.run(), 0)))
    };
    let (without, with) = (rate_at(None), rate_at(Some(0.1)));
    println!("{without:.0} bit/s without losses, {with:.0} with");
    assert!((with / without - 1.0).abs() < 0.1, "{without} and {with}");
}

/// Paper 000, 3.3.4: representatives that stop sending reports are replaced.
#[test]
fn silent_representatives_are_replaced() {
    let run = |mute_after, seed| rate(&Star { mute_after, ..Star::of(32, u64::from(seed)) }.run(), 0);
    let normal = mean((1..4u32).map(|seed| run(None, seed)));
    let muted = mean((1..4u32).map(|seed| run(Some(Span::from_secs(20)), seed)));
    println!("{normal:.0} bit/s, {muted:.0} when each representative falls silent after 20 s");
    assert!((0.8..1.35).contains(&(muted / normal)), "{normal} and {muted}");
}
