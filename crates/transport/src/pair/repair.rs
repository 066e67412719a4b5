//! Cost of repair: the ratio of sent symbols to needed symbols.

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
