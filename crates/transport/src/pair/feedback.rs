//! Number of feedback messages per second from a group of receivers to their source, by kind (docs/reliability.md, "The rate of
//! feedback").
//!
//! The number of congestion reports is not limited here: it follows from the papers, and is only printed.

use super::*;
use crate::backoff::REQUESTS_PER_SECOND;
use faircast_core::schemes::{CATALOGUE, Feedback, LayerRates};
use faircast_core::time::Rate;

/// Maximum number of messages of all receivers in a second, without congestion reports. The documented bounds are 1,000
/// membership messages, 1,000 requests and 2,000 windows, but no group here sends the maximum of all three kinds at once.
const STATED: u64 = 3_000;

/// Returns the schemes whose receivers send reports. The flag states whether the scheme sends at one rate.
fn schemes() -> impl Iterator<Item = (&'static str, bool)> {
    let reporting = CATALOGUE.iter().filter(|entry| entry.feedback == Feedback::Reports);
    reporting.map(|entry| (entry.name, entry.layers == LayerRates::One))
}

/// Builds a group of this number of receivers, each with independent losses.
fn group(receivers: usize, loss: f64, offer: Offer) -> Net {
    let mut net = Net::new(5).with_trunk(Link::millis(2).mbps(50.0).fifo(200_000));
    net.receivers(receivers, Link::millis(2).losing(loss), Link::millis(4));
    net.trace.kinds = Some(Default::default());
    net.source(offer.expect(receivers as u32).wait_secs(60));
    net.run_until(secs(20), |net| net.trace.sent.first().is_some_and(|sent| sent.total() > 40_000));
    net
}

/// Counts messages during `span`. Returns a function that states the mean number per second for a kind. Also returns the number
/// of messages in the busiest second, without congestion reports.
fn count(net: &mut Net, span: Span) -> (impl Fn(&str) -> f64 + use<>, u64) {
    let from = net.now;
    net.run_for(span);
    let kinds = net.trace.kinds.clone().expect("they are kept");
    let till = net.now;
    let steps = (0..).map(|step| from + Span::from_millis(100) * step).take_while(|at| *at + secs(1) <= till);
    let all = |at| {
        kinds
            .iter()
            .filter(|(kind, _)| **kind != "Report")
            .map(|(_, bins)| bins.between(at, at + secs(1)))
            .sum()
    };
    let busiest = steps.map(all).max().unwrap_or(0);
    let mean = move |kind: &str| {
        let count: u64 =
            kinds.iter().filter(|(of, _)| **of == kind).map(|(_, bins)| bins.between(from, till)).sum();
        count as f64 / span.as_secs_f64()
    };
    (mean, busiest)
}

#[test]
fn feedback_of_receivers_with_independent_losses_is_bounded() {
    const RECEIVERS: usize = 120;
    for (scheme, _) in schemes() {
        let offer = Offer::bytes(500_000).in_blocks_of(16).at_most_mbps(1.0);
        let mut net = group(RECEIVERS, 0.02, offer.by(scheme));
        let (mean, busiest) = count(&mut net, secs(3));
        println!(
            "{scheme}: {:.0} of membership, {:.0} requests, {:.0} windows, {:.0} reports of congestion in a second; at most {busiest}",
            mean("Member"),
            mean("Request"),
            mean("Window"),
            mean("Report"),
        );
        assert!(busiest <= STATED, "{scheme}: {busiest}");
        net.run_to_end(secs(300));
        net.assert_all_verified(0, 0..RECEIVERS);
    }
}

#[test]
fn window_advertisements_of_many_slow_hosts_are_bounded() {
    const RECEIVERS: usize = 120;
    let mut held = 0;
    for (scheme, is_of_one_rate) in schemes() {
        let offer = Offer::zeros(1 << 25).at_most_mbps(4.0);
        let mut net = group(RECEIVERS, 0.0, offer.by(scheme));
        (0..RECEIVERS).for_each(|receiver| net.limit_receiver(receiver, Rate::from_mbps(1.0)));
        net.run_for(secs(2));
        let sent = net.trace.sent[0].total();
        let (mean, busiest) = count(&mut net, secs(4));
        let rate = (net.trace.sent[0].total() - sent) as f64 * 8e-6 / 4.0;
        println!(
            "{scheme}: {:.0} windows in a second, {rate:.2} Mbit/s; at most {busiest} of all kinds",
            mean("Window")
        );
        assert!(busiest <= STATED, "{scheme}: {busiest}");
        if mean("Window") > 100.0 {
            held += 1;
            assert!(
                is_of_one_rate && (0.3..1.4).contains(&rate),
                "{scheme}: {rate} Mbit/s for hosts that take 1"
            );
        }
    }
    assert!(held >= 3, "others are held by their own feedback, but not all");
}

#[test]
fn receivers_with_different_losses_back_off_and_complete() {
    const RECEIVERS: usize = 120;
    let offer = Offer::bytes(10_000_000).in_blocks_of(8).at_mbps(20.0);
    let mut net = group(RECEIVERS, 0.05, offer);
    net.run_for(secs(1));
    let (mean, busiest) = count(&mut net, secs(2));
    println!("{:.0} requests in a second; at most {busiest} of all kinds", mean("Request"));
    assert!(mean("Request") <= REQUESTS_PER_SECOND as f64 * 1.2, "{}", mean("Request"));
    assert!(busiest <= STATED, "{busiest}");
    net.run_to_end(secs(60));
    net.assert_all_verified(0, 0..RECEIVERS);
}
