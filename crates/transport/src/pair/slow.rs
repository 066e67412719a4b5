//! A receiver behind a link of 10 Mbit/s in a group with three fast receivers.

use super::*;
use crate::config::SlowReceiverPolicy;
use crate::event::SlowAction;
use faircast_core::time::Rate;

const SLOW: usize = 3;
const CONTENT: u64 = 40_000_000;

/// Runs a session with three receivers at up to 50 Mbit/s. If `with_slow` is given, adds a receiver behind that link.
fn run(slow: SlowReceiverPolicy, with_slow: Option<Link>) -> (Net, usize) {
    let mut net = Net::new(5).with_trunk(Link::millis(5).mbps(50.0).fifo(150_000));
    let fast = net.receivers(3, Link::millis(5), Link::millis(5));
    let mut expected = fast.len() as u32;
    if let Some(link) = with_slow {
        expected += net.receivers(1, link, Link::millis(5)).len() as u32;
    }
    let source = net.source(Offer::bytes(CONTENT).slow(slow).expect(expected));
    net.run_to_end(secs(300));
    (net, source)
}

fn narrow() -> Link {
    Link::millis(5).mbps(10.0).fifo(50_000)
}

/// Returns the time in seconds at which the last fast receiver completed.
fn fast_done(net: &Net) -> f64 {
    (0..SLOW).map(|receiver| net.receivers[receiver].ended_at.as_secs_f64()).fold(0.0, f64::max)
}

fn named(net: &Net, source: usize, wanted: SlowAction) -> f64 {
    let at = net.reported(source, |event| {
        matches!(event, Event::SlowReceiver { host, action, .. } if host == "host3" && *action == wanted)
    });
    let others = net.reported(source, |event| {
        matches!(event, Event::SlowReceiver { host, action, .. } if host != "host3" && *action != SlowAction::Follow)
    });
    assert_eq!(others, None, "nobody else is too slow");
    let followed = net.reported(
        source,
        |event| matches!(event, Event::SlowReceiver { action, .. } if *action == SlowAction::Follow),
    );
    assert!(wanted == SlowAction::Follow || followed.is_none(), "under a bound nobody is waited for");
    at.expect("the slow receiver is named").as_secs_f64()
}

#[test]
fn follow_policy_adopts_the_slowest_rate_and_names_its_receiver() {
    let (net, source) = run(SlowReceiverPolicy::Follow, Some(narrow()));
    net.assert_all_verified(source, 0..4);
    let (named, seconds) =
        (named(&net, source, SlowAction::Follow), net.sources[source].report().duration.as_secs_f64());
    println!("follow: named after {named:.2} s, all done in {seconds:.1} s (at 10 Mbit/s: 33.2 s)");
    assert!(named < 6.0, "{named}");
    assert!(seconds < 60.0, "{seconds}");
}

#[test]
fn floor_policy_serves_a_slow_receiver_after_the_others() {
    let (alone, _) = run(SlowReceiverPolicy::Follow, None);
    let (net, source) = run(SlowReceiverPolicy::Floor(Rate::from_mbps(20.0)), Some(narrow()));
    net.assert_all_verified(source, 0..4);
    let (base, fast) = (fast_done(&alone), fast_done(&net));
    let (named, end) =
        (named(&net, source, SlowAction::Deferred), net.receivers[SLOW].ended_at.as_secs_f64());
    println!(
        "floor: named after {named:.2} s, the fast done at {fast:.1} s (alone {base:.1} s), the slow at {end:.1} s"
    );
    assert!(fast <= 1.25 * base, "{fast} > 1.25 x {base}");
    assert!(named < 3.0, "{named}");
}

#[test]
fn drop_policy_ends_a_slow_receiver_and_reports_it() {
    let (alone, _) = run(SlowReceiverPolicy::Follow, None);
    let (net, source) = run(SlowReceiverPolicy::Drop(Rate::from_mbps(20.0)), Some(narrow()));
    let (base, fast) = (fast_done(&alone), fast_done(&net));
    let named = named(&net, source, SlowAction::Dropped);
    println!("drop: named after {named:.2} s, the fast done at {fast:.1} s (alone {base:.1} s)");
    assert!(fast <= 1.25 * base, "{fast} > 1.25 x {base}");
    assert!(named < 3.0, "{named}");
    let report = net.sources[source].report();
    assert_eq!((report.verified, &report.slow[..]), (3, &["host3".to_owned()][..]));
    match &net.receivers[SLOW].ended {
        Some(Err(error)) => assert!(error.to_string().contains("too slow"), "{error}"),
        other => panic!("the slow receiver was not told: {other:?}"),
    }
    assert!((0..SLOW).all(|receiver| net.receivers[receiver].has(&net.sources[source])));
}

#[test]
fn floor_policy_defers_no_receiver_above_the_floor() {
    let (net, source) =
        run(SlowReceiverPolicy::Floor(Rate::from_mbps(20.0)), Some(Link::millis(5).mbps(40.0).fifo(150_000)));
    net.assert_all_verified(source, 0..4);
    assert_eq!(net.sources[source].report().slow, Vec::<String>::new());
}
