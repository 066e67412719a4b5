//! Cost of repair: the ratio of sent symbols to needed symbols, and the repairs of live streams.

use super::slow_disk::{file_of, one_rate};
use super::*;
use faircast_core::rng::Rng;

const SYMBOLS: u64 = 256;

/// Returns the minimum ratio of sent symbols to K, if each of `receivers` receivers must get K symbols of a block. The number of
/// sent symbols is the maximum of `receivers` negative binomial variables; the ratio uses its mean.
fn least(receivers: usize, loss: f64) -> f64 {
    let mut rng = Rng::new(1, 1);
    let rounds = 3_200 / receivers;
    let mut total = 0;
    for _ in 0..rounds {
        let one = |rng: &mut Rng| {
            let (mut sent, mut got) = (0, 0);
            while got < SYMBOLS {
                sent += 1;
                got += u64::from(!rng.chance(loss));
            }
            sent
        };
        total += (0..receivers).map(|_| one(&mut rng)).max().unwrap_or(0);
    }
    total as f64 / rounds as f64 / SYMBOLS as f64
}

/// Returns the ratio of sent symbols to content symbols. The receivers' losses are independent of each other.
fn sent_over_needed(receivers: usize, loss: f64) -> f64 {
    let mut net = Net::new(7);
    let all = net.receivers(receivers, Link::millis(5).losing(loss), Link::millis(5).losing(loss));
    let source = net.source(Offer::bytes(3_000_000).datagrams_of(600).at_mbps(20.0).expect(receivers as u32));
    net.run_to_end(secs(300));
    net.assert_all_verified(source, all);
    net.sources[source].report().repair_ratio
}

fn assert_frugal(receivers: usize, bound: f64) {
    for loss in [0.0, 0.01, 0.05, 0.2] {
        let (sent, least) = (sent_over_needed(receivers, loss), least(receivers, loss));
        println!(
            "{receivers:>3} receivers, loss {loss:.2}: sent {sent:.3}, at least {least:.3}, {:.3} x",
            sent / least
        );
        assert!(
            sent <= bound * least,
            "{receivers} receivers, loss {loss}: {sent:.3} > {bound} x {least:.3}"
        );
    }
}

#[test]
fn sent_symbols_for_one_receiver_barely_exceed_the_minimum() {
    assert_frugal(1, 1.05);
}

#[test]
fn sent_symbols_for_four_receivers_barely_exceed_the_minimum() {
    assert_frugal(4, 1.15);
}

#[test]
fn sent_symbols_for_16_receivers_barely_exceed_the_minimum() {
    assert_frugal(16, 1.15);
}

#[test]
fn sent_symbols_for_64_receivers_barely_exceed_the_minimum() {
    assert_frugal(64, 1.15);
}

/// Sends a live stream with an aim for its delay over a path of this delay, and a tenth of the packets lost. Returns the ratio of
/// sent symbols to content symbols, and the number of requests.
fn live(scheme: &'static str, path: u64, latency: Span) -> (f64, u64) {
    let mut net = Net::new(11);
    net.receivers(2, Link::millis(path).losing(0.1), Link::millis(path));
    net.trace.kinds = Some(Default::default());
    let offer = Offer::live(secs(60), 0).by(scheme).datagrams_of(424).in_blocks_of(16).at_mbps(4.0);
    let mut offer = offer.expect(2);
    offer.latency = latency;
    net.source(offer);
    let mut all = Vec::new();
    for block in 0..100 {
        all.extend(net.feed(0, block));
        net.run_for(Span::from_millis(100));
    }
    net.end_feed(0);
    net.run_to_end(secs(100));
    assert!(
        (0..2).all(|receiver| file_of(&net, receiver, "") == all),
        "{scheme}: a receiver has something else"
    );
    let kinds = net.trace.kinds.as_ref().expect("they are kept");
    let requests = kinds.get("Request").map_or(0, |bins| bins.total());
    (net.sources[0].report().repair_ratio, requests)
}

/// If requests take longer than a stream's latency permits, enough repairs follow each block without requests.
#[test]
fn repairs_precede_requests_if_latency_is_short_every_scheme() {
    for scheme in one_rate() {
        let (far, near) = (40, 1);
        let (asked, late) = (live(scheme, far, secs(2)), live(scheme, far, Span::from_millis(40)));
        println!("{scheme}: {asked:?} on request, {late:?} in advance");
        assert!(late.1 * 2 < asked.1, "{scheme}: {} requests, and {}", late.1, asked.1);
        assert!(late.0 > asked.0 && late.0 < 1.4, "{scheme}: {} of the content, and {}", late.0, asked.0);
        let quick = live(scheme, near, Span::from_millis(40));
        assert!(quick.0 < late.0, "{scheme}: {} of the content over a short path", quick.0);
    }
}
