//! Malicious receivers. They send false reports to slow a session down, or to raise its rate above the network's capacity. The
//! session is open, or the malicious receivers have the key. So the source treats them like other receivers.

use super::*;
use crate::config::SlowReceiverPolicy;
use crate::event::Event;
use faircast_core::packet::{ReportContent, Seq};
use faircast_core::schemes::CATALOGUE;
use faircast_core::time::Rate;
use faircast_wire::{Member, MemberState, Message, Need, Newest, Request, encode, parse};
use std::collections::BTreeMap;

/// Attack of a malicious receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    /// Reports the highest possible congestion.
    Congested,
    /// Reports a closed window.
    Full,
    /// Reports no loss, a high receive rate and a short round-trip time.
    Fine,
    /// Lacks symbols, but does not request them.
    Stuck,
    /// Requests all blocks repeatedly.
    Greedy,
    /// Reports the highest possible congestion, and never completes.
    Endless,
    /// As an agent, forwards no data.
    Withholding,
}

/// Malicious hosts and their attacks.
#[derive(Debug, Default)]
pub(super) struct Lies(pub(super) BTreeMap<Who, Lie>);

impl Lies {
    /// Returns the datagram that this host sends instead of `bytes`, if any.
    pub(super) fn reported(&self, who: Who, bytes: Vec<u8>) -> Option<Vec<u8>> {
        match self.0.get(&who) {
            Some(lie) => lie.reported(bytes),
            None => Some(bytes),
        }
    }
}

impl Lie {
    /// Returns the datagram sent instead of `bytes`, if any.
    pub(super) fn reported(self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let Ok((header, message)) = parse(&bytes, &Newest::default()) else { return Some(bytes) };
        let lie = match (self, message) {
            (Lie::Stuck | Lie::Endless, Message::Request(_)) | (Lie::Withholding, Message::Data(_)) => {
                return None;
            }
            (Lie::Greedy, Message::Member(member)) if header.seq.is_multiple_of(2) => {
                let needs = vec![Need { first: 0, run: u16::MAX, symbols: u16::MAX, wrong: false }];
                Message::Request(Request { from: member.from, needs, held: Vec::new(), echo: member.echo })
            }
            (Lie::Stuck | Lie::Greedy | Lie::Endless, Message::Member(member))
                if is_finished(member.state) =>
            {
                Message::Member(Member { state: MemberState::Receiving, blocks_missing: 3, ..member })
            }
            (Lie::Congested | Lie::Endless, Message::Report(mut report)) => {
                congested(&mut report.content);
                Message::Report(report)
            }
            (Lie::Fine, Message::Report(mut report)) => {
                if !fine(&mut report.content) {
                    return None;
                }
                Message::Report(report)
            }
            (Lie::Full, Message::Window(window)) => {
                Message::Window(faircast_wire::Window { limit: Seq(0), ..window })
            }
            (Lie::Full, Message::Report(mut report)) => {
                let (from, echo) = (report.from, *report.content.echo_mut());
                Message::Window(faircast_wire::Window { from, echo, limit: Seq(0) })
            }
            _ => return Some(bytes),
        };
        let mut out = Vec::new();
        encode(&mut out, header.session, header.seq, &lie, 1_000).expect("a lie is as long as the truth");
        Some(out)
    }
}

const fn is_finished(state: MemberState) -> bool {
    matches!(state, MemberState::Done | MemberState::Leaving)
}

/// Makes a report state the highest possible congestion.
fn congested(content: &mut ReportContent) {
    match content {
        ReportContent::Congested { level, mean, .. } => (*level, *mean) = (1.0, 1.0),
        ReportContent::Received { rate, loss, .. } => (*rate, *loss) = (1.0, 1.0),
        ReportContent::Selective { bitmap, loss, .. } => (*bitmap, *loss) = (1, 1.0),
        ReportContent::Lost { loss, .. } => *loss = 1.0,
        ReportContent::Calculated { rate, .. } => *rate = 1.0,
        ReportContent::Averaged { mean, deviation, rate, .. } => (*mean, *deviation, *rate) = (1.0, 0.0, 1.0),
        ReportContent::Summary { window, .. } => *window = 1.0,
        ReportContent::Newest { echo, past_lost, .. } => *past_lost = Seq(echo.seq.0 + 1),
        ReportContent::Acknowledged { behind, newer, .. } => (*behind, *newer) = (u16::MAX, 1),
        ReportContent::Alive { .. } | ReportContent::Answered { .. } => {}
    }
}

/// Changes a report so that it states the lowest possible congestion. Returns whether the report is sent at all.
fn fine(content: &mut ReportContent) -> bool {
    let echo = content.echo_mut();
    echo.hold = echo.hold + Span::from_millis(40);
    match content {
        ReportContent::Congested { .. } | ReportContent::Lost { .. } | ReportContent::Averaged { .. } => {
            return false;
        }
        ReportContent::Received { rate, loss, .. } => (*rate, *loss) = (*rate * 4.0, 0.0),
        ReportContent::Selective { behind, bitmap, loss, .. } => {
            (*behind, *bitmap, *loss) = (0, u32::MAX, 0.0)
        }
        ReportContent::Calculated { rate, .. } => *rate = 1e9,
        ReportContent::Acknowledged { behind, holes, newer, .. } => {
            (*behind, *holes, *newer) = (0, Default::default(), 0);
        }
        ReportContent::Summary { behind, window, transit, lag, .. } => {
            (*behind, *window, *transit, *lag) = (0, f32::INFINITY, 0, 0);
        }
        ReportContent::Newest { past_lost, .. } => *past_lost = Seq(0),
        ReportContent::Alive { .. } | ReportContent::Answered { .. } => {}
    }
    true
}

/// Rate floor of a session, Mbit/s. The next constant is the size of its content in bytes.
const FLOOR: f64 = 0.5;
const BYTES: u64 = 1_500_000;

/// Builds three receivers behind links of 4 Mbit/s. If `lie` is given, the last receiver is malicious.
fn three(offer: Offer, lie: Option<Lie>) -> Net {
    let mut net = Net::new(31);
    net.trace.off = true;
    net.receivers(3, Link::millis(20).mbps(4.0).fifo(40_000), Link::millis(20));
    if let Some(lie) = lie {
        net.lies.0.insert(Who::Receiver(2), lie);
    }
    net.source(offer);
    net
}

fn schemes() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().map(|entry| entry.name)
}

/// Runs until both honest receivers are complete; returns the time in seconds.
fn honest_at(net: &mut Net, limit: u64) -> f64 {
    net.run_until(secs(limit), |net| net.receivers[..2].iter().all(|node| node.ended.is_some()));
    assert!(net.receivers[..2].iter().all(|node| node.has(&net.sources[0])), "something else");
    net.receivers[..2].iter().map(|node| node.ended_at.as_secs_f64()).fold(0.0, f64::max)
}

#[test]
fn rate_floor_holds_despite_forged_congestion_reports() {
    for scheme in schemes() {
        let offer = || Offer::bytes(BYTES).by(scheme).at_least_mbps(FLOOR).expect(3);
        let alone = honest_at(&mut three(offer(), None), 300);
        let beside = honest_at(&mut three(offer(), Some(Lie::Congested)), 300);
        println!("{scheme}: {alone:.1} s, and {beside:.1} s beside a liar");
        let floor = BYTES as f64 * 8.0 / (FLOOR * 1e6);
        assert!(beside < 1.25 * floor + 3.0, "{scheme}: {beside:.1} s, {floor:.1} s at the floor");
    }
}

#[test]
fn slow_receiver_policy_bounds_the_effect_of_forged_reports() {
    for lie in [Lie::Congested, Lie::Full] {
        for scheme in schemes() {
            let seconds = |slow: SlowReceiverPolicy| {
                let mut net = three(Offer::bytes(BYTES).by(scheme).slow(slow).expect(3), Some(lie));
                let seconds = honest_at(&mut net, 600);
                net.run_to_end(secs(300));
                (seconds, net.sources[0].report().slow.clone())
            };
            let rate = Rate::from_mbps(2.0 * FLOOR);
            let (dropped, deferred) =
                (seconds(SlowReceiverPolicy::Drop(rate)), seconds(SlowReceiverPolicy::Floor(rate)));
            println!("{scheme}, {lie:?}: dropped {dropped:?}, deferred {deferred:?}");
            assert!(dropped.0 < 20.0 && deferred.0 < 20.0, "{scheme}, {lie:?}: {dropped:?}, {deferred:?}");
        }
    }
}

#[test]
fn session_ends_despite_a_member_that_never_completes() {
    let rate = Rate::from_mbps(2.0 * FLOOR);
    let policies = [
        ("drop", SlowReceiverPolicy::Drop(rate)),
        ("floor", SlowReceiverPolicy::Floor(rate)),
        ("follow", SlowReceiverPolicy::Follow),
    ];
    for lie in [Lie::Stuck, Lie::Greedy, Lie::Endless] {
        for scheme in schemes() {
            for (name, slow) in policies {
                let mut net = three(
                    Offer::bytes(BYTES).by(scheme).slow(slow).at_least_mbps(FLOOR).expect(2),
                    Some(lie),
                );
                let honest = honest_at(&mut net, 600);
                net.run_until(secs(300), |net| net.sources[0].session.is_none());
                let (took, report) = (net.now.as_secs_f64(), net.sources[0].report());
                println!(
                    "{scheme}, {lie:?}, {name}: honest at {honest:.1} s, over at {took:.1} s; {} verified, {:?} dropped, {:?}",
                    report.verified, report.dropped, report.incomplete
                );
                assert!(!report.ok && report.verified == 2, "{scheme}, {lie:?}, {name}: {report:?}");
                assert_eq!(
                    report.dropped.len() + report.incomplete.len(),
                    1,
                    "{scheme}, {lie:?}, {name}: {report:?}"
                );
                assert!(took < 3.0 * honest + 45.0, "{scheme}, {lie:?}, {name}: {took}, {honest}");
            }
        }
    }
}

/// Returns the highest rate, in Mbit/s, of a source that serves `1 + honest` receivers over a link of 2 Mbit/s. If `lie` is
/// given, the first receiver is malicious.
fn reached(scheme: &'static str, honest: usize, most: f64, lie: Option<Lie>) -> f64 {
    let mut net = Net::new(37);
    net.trace.off = true;
    net.receivers(1 + honest, Link::millis(20).mbps(2.0).fifo(20_000), Link::millis(20));
    if let Some(lie) = lie {
        net.lies.0.insert(Who::Receiver(0), lie);
    }
    let offer = Offer::zeros(1 << 25).by(scheme).at_most_mbps(most).expect(1 + honest as u32);
    let source = net.source(offer);
    net.run_for(secs(12));
    let rates = net.sources[source].events.iter().filter_map(|(_, event)| match event {
        Event::Progress(progress) => Some(progress.rate.bps() / 1e6),
        _ => None,
    });
    rates.fold(0.0, f64::max)
}

#[test]
fn maximum_rate_holds_despite_forged_reports_of_zero_loss() {
    for scheme in schemes() {
        let honest = reached(scheme, 1, 6.0, None);
        let (alone, beside) =
            (reached(scheme, 0, 6.0, Some(Lie::Fine)), reached(scheme, 1, 6.0, Some(Lie::Fine)));
        println!(
            "{scheme}: {honest:.1} Mbit/s without a lie, {beside:.1} beside somebody honest, {alone:.1} to a liar alone"
        );
        // The maximum rate applies to all layers together.
        assert!(alone <= 6.0 * 1.1 && beside <= 6.0 * 1.1, "{scheme}: {alone:.1}, {beside:.1}");
    }
}

/// Here the rate floor exceeds the network's capacity. A source at its rate floor warns of congestion and continues, so receivers
/// can only leave.
#[test]
fn source_at_its_rate_floor_does_not_slow_down_for_congestion() {
    let mut net = Net::new(41);
    net.trace.off = true;
    net.receivers(1, Link::millis(20).mbps(4.0).fifo(40_000), Link::millis(20));
    let source = net.source(Offer::zeros(1 << 26).at_least_mbps(8.0).expect(1));
    net.run_for(secs(20));
    let rates = net.sources[source].events.iter().filter_map(|(_, event)| match event {
        Event::Progress(progress) => Some(progress.rate.bps() / 1e6),
        _ => None,
    });
    let rates: Vec<f64> = rates.skip(5).collect();
    assert!(rates.len() > 10 && rates.iter().all(|rate| *rate > 7.0), "{rates:?}");
    assert!(net.receivers[0].ended.is_none(), "it is still there, and may leave");
}
