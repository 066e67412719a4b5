//! Sources that their application limits: a live stream needs much less than the permitted rate.

use super::slow_disk::{file_of, one_rate};
use super::*;
use faircast_core::time::Rate;

/// Size of a block, bytes, and time between two blocks.
const BLOCK: usize = 1200;
const EVERY: Span = Span::from_millis(100);

/// Sends blocks over a path of 1 ms on which 1 % of one receiver's packets are lost. Returns the lowest rate after the first
/// second, in bit/s.
fn lowest_rate(scheme: &'static str, seed: u64) -> f64 {
    let mut net = Net::new(seed);
    net.receivers(1, Link::millis(1).losing(0.01), Link::millis(1));
    net.receivers(1, Link::millis(1), Link::millis(1));
    let mut offer = Offer::live(secs(5), 0).by(scheme).datagrams_of(424).in_blocks_of(3).expect(2);
    offer.latency = Span::from_millis(20);
    net.source(offer);
    let (mut all, mut lowest) = (Vec::new(), f64::INFINITY);
    for block in 0..100 {
        all.extend(net.feed(0, block));
        for _ in 0..10 {
            net.run_for(EVERY / 10);
            let session = net.sources[0].session.as_ref().expect("the stream has not ended");
            if block >= 10 {
                lowest = lowest.min(session.observe().rate.bps());
            }
        }
    }
    net.end_feed(0);
    net.run_to_end(secs(60));
    assert!(all.len() <= 100 * BLOCK && all.len() > 90 * BLOCK);
    for receiver in 0..2 {
        assert!(
            file_of(&net, receiver, "") == all,
            "{scheme}, seed {seed}: receiver {receiver} lacks a part"
        );
    }
    lowest
}

/// After a loss the rate is at least half of the rate that the application needs.
#[test]
fn loss_leaves_half_of_a_limited_sources_rate_every_scheme() {
    let needed = Rate::of(BLOCK as u64, EVERY);
    for scheme in one_rate() {
        for seed in 0..10 {
            let lowest = lowest_rate(scheme, seed);
            assert!(lowest > 0.5 * needed.bps(), "{scheme}, seed {seed}: {lowest:.0} bit/s of {needed:?}");
        }
    }
}
