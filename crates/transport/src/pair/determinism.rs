//! The same random seed gives the same datagrams at the same times.

use super::*;

/// Runs a lossy transfer to three receivers. Returns the fingerprint of all datagrams.
fn fingerprint(seed: u64, spurious: Option<Span>) -> String {
    let mut net = Net::new(seed).with_trunk(Link::millis(5).mbps(50.0).fifo(60_000)).traced();
    if let Some(every) = spurious {
        net = net.with_spurious_wakes(every);
    }
    let rough = Link::millis(3)
        .losing(0.02)
        .duplicating(0.01)
        .corrupting(0.01)
        .reordering(0.02, Span::from_millis(4));
    let all = net.receivers(3, rough, Link::millis(3).losing(0.05));
    let source = net.source(Offer::bytes(3_000_000).expect(3));
    net.run_to_end(secs(120));
    net.assert_all_verified(source, all);
    net.trace.fingerprint()
}

#[test]
fn same_seed_gives_the_same_datagrams_at_the_same_times() {
    assert_eq!(fingerprint(1, None), fingerprint(1, None));
}

#[test]
fn different_seeds_give_different_runs() {
    assert_ne!(fingerprint(1, None), fingerprint(2, None));
}

#[test]
fn spurious_wakeups_change_no_datagram() {
    assert_eq!(fingerprint(1, None), fingerprint(1, Some(Span::from_micros(730))));
}
