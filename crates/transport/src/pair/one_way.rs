//! Sessions without feedback: complete and interrupted transfers, late joiners, and losses.

use super::*;
use crate::config::{Repeat, ReplayPolicy};
use crate::endpoint::Endpoint;
use crate::error::{EndReason, Error, JoinObstacle, TransferError};
use crate::event::Event;
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_wire::{GroupKey, Series, SigningKey, VerifyKeys};
use std::time::Duration;

const BYTES: u64 = 1_500_000;
const THRICE: Repeat = Repeat::Rounds(3);
const ONCE: Repeat = Repeat::Rounds(1);

/// Adds receivers behind a lossy link. They check by their clocks whether announcements are new.
fn receivers(net: &mut Net, count: usize, loss: f64, key: Option<&GroupKey>) -> Range<usize> {
    let all = net.receivers_with(count, Link::millis(5).losing(loss), Link::millis(5), None, key.cloned());
    for receiver in all.clone() {
        net.receivers[receiver].replay_policy = ReplayPolicy::Clock;
        net.start_receiver(receiver);
    }
    all
}

/// Returns the number of rounds until the last of these receivers ended.
fn rounds_used(net: &Net, source: usize, receivers: Range<usize>) -> f64 {
    let report = net.sources[source].report();
    let took = |node: &super::node::ReceiverNode| node.ended_at.since(Time::ZERO).as_secs_f64() - 1.0;
    let longest = receivers.map(|receiver| took(&net.receivers[receiver])).fold(0.0, f64::max);
    longest / report.duration.as_secs_f64() * report.rounds as f64
}

#[test]
fn one_way_content_arrives_with_every_single_rate_scheme() {
    let one_rate = |name: &&str| name.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() <= 1);
    for scheme in CATALOGUE.iter().map(|entry| entry.name).filter(one_rate) {
        for (seed, loss) in [(1, 0.01), (2, 0.05)] {
            let mut net = Net::new(seed);
            let all = receivers(&mut net, 3, loss, None);
            let source = net.source(Offer::bytes(BYTES).by(scheme).one_way_at_mbps(8.0, THRICE));
            net.run_to_end(secs(30));
            net.assert_all_verified(source, all.clone());
            let (report, received) = (net.sources[source].report(), net.sources[source].received);
            assert_eq!((report.rounds, report.receivers, report.cuts, received), (3, 0, 0, 0), "{scheme}");
            let rounds = rounds_used(&net, source, all);
            assert!(rounds <= 1.1, "{scheme} at {loss}: {rounds} rounds");
            let pace = report.packets as f64 * 1_500.0 * 8.0 / report.duration.as_secs_f64() / 8e6;
            assert!((0.97..=1.03).contains(&pace), "{scheme}: {pace} of the rate");
        }
    }
}

/// Runs the network until `begin`, drops all packets to these receivers for `lasts`, and runs the network to the end.
fn run_with_outage(net: &mut Net, receivers: &Range<usize>, loss: f64, begin: Span, lasts: Span) {
    let down = Link::millis(5);
    net.run_for(begin);
    net.group_of(receivers.start).down.set_link(down.losing(1.0));
    net.run_for(lasts);
    net.group_of(receivers.start).down.set_link(down.losing(loss));
    net.run_to_end(secs(60));
}

/// Sends 3 MB once in 4 s, during an outage of 0.3 s. Returns the network, the source, and the receivers.
fn sent_through_outage(scheme: &'static str, burst: Duration, begin: Span) -> (Net, usize, Range<usize>) {
    let mut net = Net::new(12);
    let all = receivers(&mut net, 2, 0.01, None);
    let offer = Offer::bytes(2 * BYTES).by(scheme).one_way_at_mbps(8.0, ONCE).against_outages_of(burst, 0.25);
    let source = net.source(offer);
    run_with_outage(&mut net, &all, 0.01, begin, Span::from_millis(300));
    (net, source, all)
}

#[test]
fn outage_costs_no_further_generation_with_any_scheme() {
    let one_rate = |name: &&str| name.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() <= 1);
    let burst = Duration::from_millis(300);
    for scheme in CATALOGUE.iter().map(|entry| entry.name).filter(one_rate) {
        let (net, source, all) = sent_through_outage(scheme, burst, Span::from_millis(2_500));
        net.assert_all_verified(source, all);
        let report = net.sources[source].report();
        assert_eq!((report.rounds, net.sources[source].received), (1, 0), "{scheme}");
    }
}

#[test]
fn outage_at_any_time_of_a_session_is_survived() {
    for tenths in 0..55 {
        let begin = Span::from_millis(100 * tenths);
        let (net, source, all) = sent_through_outage("tfmcc", Duration::from_millis(300), begin);
        net.assert_all_verified(source, all);
    }
    let begin = Span::from_millis(2_500);
    let (net, _, mut all) = sent_through_outage("tfmcc", Duration::ZERO, begin);
    let is_incomplete = |receiver: usize| matches!(net.receivers[receiver].ended, Some(Err(_)));
    assert!(all.clone().all(is_incomplete), "blocks that leave one after the other do not survive it");
    let is_named = |(_, event): &(Time, Event)| matches!(event, Event::Warning { message, .. } if message.contains(" lacks "));
    assert!(
        all.all(|receiver| net.receivers[receiver].events.iter().any(is_named)),
        "missing files are named"
    );
}

#[test]
fn small_file_survives_an_outage_that_is_longer_than_it() {
    for seed in 0..40 {
        let mut net = Net::new(seed);
        let all = receivers(&mut net, 1, 0.01, None);
        let offer = Offer::bytes(20_000).one_way_at_mbps(8.0, THRICE);
        let source = net.source(offer.against_outages_of(Duration::from_secs(3), 0.125));
        run_with_outage(&mut net, &all, 0.01, Span::from_millis(100 * seed), secs(3));
        net.assert_all_verified(source, all);
        let report = net.sources[source].report();
        assert!((3.5..4.5).contains(&report.duration.as_secs_f64()), "{report:?}");
    }
}

#[test]
fn signed_content_survives_an_outage() {
    let (key, sign) = (GroupKey::from_bytes([7; 32]), SigningKey::from_seed([5; 32]));
    for tenths in [5, 10, 15, 25, 40, 50] {
        let mut net = Net::new(tenths);
        let all = receivers(&mut net, 1, 0.02, Some(&key));
        net.receivers[0].verify = Some(VerifyKeys::from(sign.verify_key()));
        net.start_receiver(0);
        let offer =
            Offer::bytes(2 * BYTES).sealed(key.clone()).signed(sign.clone()).one_way_at_mbps(8.0, ONCE);
        let source = net.source(offer.against_outages_of(Duration::from_millis(300), 0.25));
        run_with_outage(&mut net, &all, 0.02, Span::from_millis(100 * tenths), Span::from_millis(300));
        net.assert_all_verified(source, all);
    }
}

#[test]
fn late_joiner_completes_after_one_more_generation() {
    let mut net = Net::new(3);
    let (key, sign) = (GroupKey::from_bytes([7; 32]), SigningKey::from_seed([5; 32]));
    let source = net.source(
        Offer::bytes(BYTES).sealed(key.clone()).signed(sign.clone()).one_way_at_mbps(8.0, Repeat::Rounds(4)),
    );
    net.run_for(secs(4)); // in the second round
    let all = net.receivers_with(2, Link::millis(5).losing(0.05), Link::millis(5), None, Some(key));
    for receiver in all.clone() {
        net.receivers[receiver].replay_policy = ReplayPolicy::Clock;
        net.receivers[receiver].verify = Some(VerifyKeys::from(sign.verify_key()));
        net.start_receiver(receiver);
    }
    net.run_to_end(secs(30));
    net.assert_all_verified(source, all.clone());
    for receiver in all {
        let took = net.receivers[receiver].ended_at.since(Time::ZERO);
        assert!(took < secs(7), "{took}");
        assert_eq!(net.receivers[receiver].report().forged_blocks, 0);
    }
}

#[test]
fn later_sessions_complete_an_incomplete_transfer() {
    // At a loss of 11 %, one round completes about half of the blocks.
    for seed in 5..25 {
        let mut net = Net::new(seed);
        let all = receivers(&mut net, 1, 0.11, None);
        let source = net.source(Offer::bytes(2 * BYTES).one_way_at_mbps(8.0, ONCE));
        let mut before = 0;
        let complete = (1..=20).any(|session| {
            net.run_to_end(secs(20));
            match &net.receivers[0].ended {
                Some(Ok(report)) => {
                    assert_eq!(report.resumed_bytes, before, "seed {seed}, session {session}");
                    assert!(session > 1, "seed {seed}: {report:?}");
                    return true;
                }
                Some(Err(Error::Transfer(TransferError::Ended {
                    reason: EndReason::SentEnough,
                    verified_bytes,
                    ..
                }))) => {
                    assert!(*verified_bytes >= before, "seed {seed}: {verified_bytes} after {before}");
                    assert!(session > 1 || *verified_bytes > 0, "seed {seed}: nothing is kept");
                    before = *verified_bytes;
                }
                other => panic!("seed {seed}: {other:?}"),
            }
            net.start_receiver(0);
            net.start_source(source);
            false
        });
        assert!(complete, "seed {seed}: after twenty sessions {before} bytes are verified");
        net.assert_all_verified(source, all);
    }
}

/// A receiver that has blocks but no manifest cannot store them in files.
#[test]
fn blocks_without_a_manifest_are_not_reported_as_stored() {
    let mut net = Net::new(5);
    let source = net.source(Offer::bytes(2 * BYTES).one_way_at_mbps(8.0, ONCE));
    net.run_for(secs(3)); // the manifest has been sent
    let all = receivers(&mut net, 1, 0.0, None);
    net.run_to_end(secs(20));
    match &net.receivers[0].ended {
        Some(Err(Error::Transfer(TransferError::Ended {
            reason: EndReason::SentEnough,
            verified_bytes: 0,
            ..
        }))) => {}
        other => panic!("{other:?}"),
    }
    net.start_receiver(0);
    net.start_source(source);
    net.run_to_end(secs(20));
    assert_eq!(net.receivers[0].report().resumed_bytes, 0);
    net.assert_all_verified(source, all);
}

#[test]
fn receiver_resumes_with_a_restarted_source() {
    let mut net = Net::new(6);
    let all = receivers(&mut net, 2, 0.05, None);
    let source = net.source(Offer::bytes(2 * BYTES).one_way_at_mbps(8.0, THRICE));
    net.run_for(secs(3));
    net.kill_source(source);
    net.run_for(secs(3));
    net.start_source(source);
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all);
}

#[test]
fn heavy_loss_requires_more_generations_but_little_memory() {
    let mut net = Net::new(7);
    let all = receivers(&mut net, 1, 0.3, None);
    net.receivers[0].memory = 500_000;
    net.start_receiver(0);
    let source = net.source(Offer::bytes(2 * BYTES).one_way_at_mbps(8.0, THRICE));
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all.clone());
    let rounds = rounds_used(&net, source, all);
    assert!((1.5..=2.1).contains(&rounds), "{rounds}");
}

#[test]
fn receiver_that_requires_answers_joins_no_one_way_session() {
    let mut net = Net::new(8);
    net.receivers(1, Link::millis(5), Link::millis(5));
    let source = net.source(Offer::bytes(BYTES).one_way_at_mbps(8.0, THRICE));
    net.run_for(secs(4));
    let session = net.receivers[0].session.as_ref().expect("it goes on looking");
    assert_eq!((session.seen(), session.scheme()), (Some(JoinObstacle::OneWay), None));
    assert_eq!(net.sources[source].received, 0, "it sends nothing");
}

#[test]
fn one_way_source_ends_after_its_duration_or_a_stop_request() {
    let mut net = Net::new(9);
    let timed = net.source(Offer::bytes(100_000).one_way_at_mbps(8.0, Repeat::For(Duration::from_secs(5))));
    net.run_to_end(secs(8));
    let report = net.sources[timed].report();
    assert!(report.ok && (4.9..=5.2).contains(&report.duration.as_secs_f64()), "{report:?}");
    let mut net = Net::new(10);
    let source = net.source(Offer::bytes(100_000).one_way_at_mbps(8.0, Repeat::Forever));
    net.run_for(secs(100));
    let now = net.now;
    net.sources[source].session.as_mut().expect("it goes on").stop(now);
    net.run_to_end(secs(1));
    let report = net.sources[source].report();
    assert!(report.ok && report.rounds > 700, "{report:?}");
    let mut net = Net::new(11);
    let source = net.source(Offer::bytes(10_000_000).one_way_at_mbps(8.0, Repeat::Forever));
    net.run_for(secs(3));
    let now = net.now;
    net.sources[source].session.as_mut().expect("it goes on").stop(now);
    net.run_to_end(secs(1));
    let report = net.sources[source].report();
    assert!(report.stopped && !report.ok, "not even once: {report:?}");
}

#[test]
fn receivers_learn_the_number_of_a_signed_session() {
    let (key, sign) = (GroupKey::from_bytes([7; 32]), SigningKey::from_seed([5; 32]));
    let series = Series { id: 0xfc, number: 41 };
    let mut net = Net::new(13);
    let all = receivers(&mut net, 1, 0.01, Some(&key));
    net.receivers[0].verify = Some(VerifyKeys::from(sign.verify_key()));
    net.start_receiver(0);
    let mut offer = Offer::bytes(BYTES).sealed(key).signed(sign).one_way_at_mbps(8.0, THRICE);
    offer.series = Some(series);
    let source = net.source(offer);
    net.run_to_end(secs(30));
    net.assert_all_verified(source, all);
    let numbered = net.receivers[0].events.iter().filter(|(_, event)| *event == Event::of_series(series));
    assert_eq!(numbered.count(), 1);
}

/// Prints the table of `docs/one-way.md`.
#[test]
#[ignore = "it measures, and takes minutes"]
fn measure_generations_needed_at_each_loss_rate() {
    for burst in [3, 0].map(Duration::from_secs) {
        for loss in [0.0, 0.001, 0.01, 0.05, 0.1, 0.2] {
            let mut rounds: Vec<f64> = (1..=3)
                .map(|seed| {
                    let mut net = Net::new(seed);
                    let all = receivers(&mut net, 1, loss, None);
                    let offer = Offer::bytes(100_000_000).one_way_at_mbps(80.0, Repeat::Rounds(4));
                    let source = net.source(offer.against_outages_of(burst, 0.125));
                    net.run_to_end(secs(100));
                    rounds_used(&net, source, all)
                })
                .collect();
            rounds.sort_by(f64::total_cmp);
            println!("burst of {burst:?}, loss of {:.1} %: {:.2} rounds", loss * 100.0, rounds[1]);
        }
    }
}
