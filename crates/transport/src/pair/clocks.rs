//! Receivers whose clocks differ from the source's.

use super::node::UNIX_SECS;
use super::*;
use crate::config::ReplayPolicy;
use crate::error::JoinObstacle;
use faircast_wire::GroupKey;

const HOUR: u64 = 3_600;

/// Clock of a receiver at time zero, in seconds since 1970: an hour behind, an hour ahead, and never set. The source's clock is
/// right.
const WRONG: [u64; 3] = [UNIX_SECS - HOUR, UNIX_SECS + HOUR, 0];

fn keys() -> [Option<GroupKey>; 2] {
    [None, Some(GroupKey::from_bytes([5; 32]))]
}

/// Runs a session for `time`. The receiver's clock shows `unix_secs` at time zero; the source's clock is right.
fn run(key: Option<GroupKey>, unix_secs: u64, replay_policy: ReplayPolicy, time: Span) -> (Net, usize) {
    let mut net = Net::new(31);
    net.receivers_with(1, Link::millis(5), Link::millis(5), None, key.clone());
    (net.receivers[0].unix_secs, net.receivers[0].replay_policy) = (unix_secs, replay_policy);
    net.start_receiver(0);
    let offer = Offer::bytes(200_000).expect(1).wait_secs(30);
    let source = net.source(key.into_iter().fold(offer, Offer::sealed));
    net.run_for(time);
    (net, source)
}

#[test]
fn receiver_with_a_wrong_clock_receives_normally() {
    for key in keys() {
        for clock in WRONG {
            let (net, source) = run(key.clone(), clock, ReplayPolicy::Answer, secs(25));
            net.assert_all_verified(source, 0..1);
            let warned = |event: &Event| matches!(event, Event::Warning { .. });
            assert!(!net.receivers[0].events.iter().any(|(_, event)| warned(event)), "{clock}");
        }
    }
}

#[test]
fn clock_based_replay_check_warns_of_a_wrong_clock() {
    for key in keys() {
        for clock in WRONG {
            let (net, _) = run(key.clone(), clock, ReplayPolicy::Clock, secs(5));
            let node = &net.receivers[0];
            let session = node.session.as_ref().expect("it goes on looking");
            assert_eq!((session.seen(), session.scheme()), (Some(JoinObstacle::Stale), None), "{clock}");
            let warning = node.events.iter().find_map(|(_, event)| match event {
                Event::Warning { message, .. } => Some(message),
                _ => None,
            });
            assert!(warning.is_some_and(|text| text.contains("clock differs")), "{clock}: {:?}", node.events);
        }
    }
}

#[test]
fn clock_based_replay_check_tolerates_five_minutes_of_error() {
    for key in keys() {
        for clock in [UNIX_SECS - 300, UNIX_SECS + 300] {
            let (net, source) = run(key.clone(), clock, ReplayPolicy::Clock, secs(25));
            net.assert_all_verified(source, 0..1);
        }
    }
}
