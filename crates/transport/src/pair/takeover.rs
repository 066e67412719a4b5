//! A source dies and starts another session, with the same content or with other content. The receivers follow the source.

use super::node::UNIX_SECS;
use super::*;
use crate::error::{Error, TransferError};
use crate::session_filter::SessionFilter;
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_wire::GroupKey;
use std::time::{Duration, UNIX_EPOCH};

const BYTES: u64 = 3_000_000;

fn path() -> Link {
    Link::millis(5).mbps(20.0).fifo(100_000)
}

fn back() -> Link {
    Link::millis(5)
}

fn key() -> GroupKey {
    GroupKey::from_bytes([7; 32])
}

/// Builds two receivers, and a source with this scheme. Runs the network for this duration.
fn started(scheme: &'static str, key: Option<&GroupKey>, after: Span) -> (Net, Range<usize>, usize) {
    let mut net = Net::new(11);
    let all = net.receivers_with(2, path(), back(), None, key.cloned());
    let offer = Offer::bytes(BYTES).by(scheme).at_most_mbps(4.0).expect(2);
    let source = net.source(key.cloned().into_iter().fold(offer, Offer::sealed));
    net.run_for(after);
    (net, all, source)
}

/// Returns the number of a receiver's warnings that contain these words.
fn warned(net: &Net, receiver: usize, words: &str) -> usize {
    let says = |(_, event): &&(Time, Event)| matches!(event, Event::Warning { message, .. } if message.contains(words));
    net.receivers[receiver].events.iter().filter(says).count()
}

const TOLD: &str = "started a new session, so the session that was interrupted";

#[test]
fn receivers_follow_a_restarted_source_with_other_content() {
    for entry in CATALOGUE {
        for (gap, key) in [(200, None), (1_000, Some(key())), (4_000, None)] {
            let (mut net, all, source) = started(entry.name, key.as_ref(), secs(2));
            net.kill_source(source);
            net.run_for(Span::from_millis(gap));
            net.sources[source].replace_content(BYTES - 7);
            net.start_source(source);
            let from = net.now;
            net.run_to_end(secs(120));
            net.assert_all_verified(source, all.clone());
            let busy = |(_, event): &&(Time, Event)| matches!(event, Event::Busy { .. });
            assert_eq!(net.sources[source].events.iter().find(busy), None, "{} {gap}", entry.name);
            for receiver in all {
                assert_eq!(
                    warned(&net, receiver, TOLD),
                    1,
                    "{}: {:?}",
                    entry.name,
                    net.receivers[receiver].events
                );
                let joined = net.receivers[receiver].events.iter().rev().find_map(|(at, event)| {
                    matches!(event, Event::Joined { .. }).then(|| at.since(from).as_secs_f64())
                });
                assert!(joined.is_some_and(|after| after < 3.0), "{} {gap}: {joined:?}", entry.name);
                let events = net.receivers[receiver].events.iter();
                let others = events.filter(|(_, event)| matches!(event, Event::OtherSource { .. })).count();
                assert_eq!(others, 0, "{} {gap}: it is no other source", entry.name);
            }
        }
    }
}

#[test]
fn receivers_resume_after_a_source_restart_at_any_time() {
    for entry in CATALOGUE {
        for (after, gap) in [(60, 200), (1_500, 500), (3_000, 2_500)] {
            let (mut net, all, source) = started(entry.name, None, Span::from_millis(after));
            net.kill_source(source);
            net.run_for(Span::from_millis(gap));
            net.start_source(source);
            net.run_to_end(secs(120));
            net.assert_all_verified(source, all.clone());
            for receiver in all {
                assert_eq!(net.receivers[receiver].report().refetched_bytes, 0, "{}", entry.name);
            }
        }
    }
}

#[test]
fn receivers_follow_a_restarted_source_with_an_older_clock() {
    for key in [None, Some(key())] {
        for other in [false, true] {
            let (mut net, all, source) = started("ormcc", key.as_ref(), secs(2));
            net.kill_source(source);
            net.sources[source].unix_secs = UNIX_SECS - 20_000 * 86_400;
            if other {
                net.sources[source].replace_content(BYTES - 7);
            }
            net.start_source(source);
            net.run_to_end(secs(60));
            net.assert_all_verified(source, all);
        }
    }
}

/// Another source may replace a session that broke off, if it has the same address, or the key and the same name.
#[test]
fn replacement_source_needs_the_key_and_the_same_host_name() {
    for (key, is_followed) in [(None, false), (Some(key()), true)] {
        let (mut net, all, source) = started("ormcc", key.as_ref(), secs(2));
        net.kill_source(source);
        net.run_for(secs(3));
        let offer = Offer::bytes(BYTES + 5).at_most_mbps(4.0).expect(2).wait_secs(10);
        let other = net.source(key.into_iter().fold(offer, Offer::sealed));
        net.run_to_end(secs(120));
        match is_followed {
            true => net.assert_all_verified(other, all),
            false => all.for_each(|receiver| {
                let ended = &net.receivers[receiver].ended;
                assert!(
                    matches!(ended, Some(Err(Error::Transfer(TransferError::SourceSilent { .. })))),
                    "{ended:?}"
                );
            }),
        }
    }
}

/// One host sends two sessions at once, and its network fails for a while.
#[test]
fn two_sessions_of_one_host_both_continue_after_an_outage() {
    for entry in CATALOGUE {
        let mut net = Net::new(12);
        let all = net.receivers(2, path(), back());
        let accept = SessionFilter::default();
        for receiver in all.clone() {
            net.receivers[receiver].accept = accept.clone();
            net.start_receiver(receiver);
        }
        let offer = |bytes| Offer::bytes(bytes).by(entry.name).at_most_mbps(2.0).expect(1);
        let first = net.source(offer(BYTES));
        net.run_for(secs(2));
        let second = net.source_at(net.sources[first].address, offer(BYTES + 5));
        net.run_for(secs(2));
        let group = net.group_of(0);
        group.down.set_link(path().losing(1.0));
        group.up.set_link(back().losing(1.0));
        net.run_for(secs(6));
        let group = net.group_of(0);
        group.down.set_link(path());
        group.up.set_link(back());
        net.run_to_end(secs(200));
        for receiver in all {
            assert!(net.receivers[receiver].report().ok, "{}", entry.name);
            assert_eq!(warned(&net, receiver, TOLD), 0);
        }
        for source in [first, second] {
            assert_eq!(net.sources[source].report().verified, 1, "{}", entry.name);
        }
    }
}

/// Builds two receivers on one host, as `recv --serve` does, and a source that is killed after two seconds.
fn served(scheme: &'static str) -> (Net, usize) {
    let mut net = Net::new(13);
    let all = net.receivers(2, path(), back());
    let (accept, dir) = (SessionFilter::default(), net.receivers[0].dir.clone());
    for receiver in all {
        (net.receivers[receiver].accept, net.receivers[receiver].dir) = (accept.clone(), dir.clone());
        net.start_receiver(receiver);
    }
    let source = net.source(Offer::bytes(BYTES).by(scheme).at_most_mbps(4.0).expect(1));
    net.run_for(secs(2));
    net.kill_source(source);
    (net, source)
}

fn ended(net: &Net, like: impl Fn(&Result<crate::event::ReceiveReport, Error>) -> bool) -> usize {
    net.receivers.iter().filter(|node| node.ended.as_ref().is_some_and(&like)).count()
}

#[test]
fn only_one_receiver_of_a_host_follows_a_restarted_source() {
    for entry in CATALOGUE {
        for gap in [200, 1_000, 4_000] {
            let (mut net, source) = served(entry.name);
            net.run_for(Span::from_millis(gap));
            net.start_source(source);
            net.run_until(secs(60), |net| net.sources[source].session.is_none());
            assert!(net.sources[source].report().ok, "{}", entry.name);
            net.run_until(secs(10), |net| ended(net, Result::is_ok) == 1);
            assert_eq!(ended(&net, Result::is_err), 0, "{} {gap}", entry.name);
        }
    }
}

#[test]
fn receiver_ends_as_superseded_by_another_receiver_of_its_host() {
    for entry in CATALOGUE {
        let (mut net, source) = served(entry.name);
        net.run_for(Span::from_millis(500));
        net.sources[source].replace_content(BYTES + 9);
        net.start_source(source);
        net.run_until(secs(60), |net| net.sources[source].session.is_none());
        assert!(net.sources[source].report().ok, "{}", entry.name);
        assert_eq!(
            ended(&net, |end| matches!(end, Err(Error::Transfer(TransferError::Superseded { .. })))),
            1,
            "{}",
            entry.name
        );
        net.run_until(secs(10), |net| ended(net, Result::is_ok) == 1);
    }
}

/// The session is shorter than the delay before a busy receiver reports to another source.
#[test]
fn receiver_reports_a_completed_short_session_to_another_source() {
    for entry in CATALOGUE {
        let is_layered = entry.name.parse::<Scheme>().expect("it is in the catalogue").layers() > 1;
        for key in [None, Some(key())] {
            let mut net = Net::new(15);
            let all = net.receivers_with(2, path(), back(), None, key.clone());
            let offer = || {
                let offer = Offer::bytes(100_000).by(entry.name).expect(2);
                key.clone().into_iter().fold(offer, Offer::sealed)
            };
            let first = net.source(offer());
            let is_joined = |(_, event): &(Time, Event)| matches!(event, Event::Joined { .. });
            let joined = |net: &Net| all.clone().all(|node| net.receivers[node].events.iter().any(is_joined));
            net.run_until(secs(1), joined);
            let loser = net.source(offer());
            net.run_to_end(secs(60));
            net.assert_all_verified(first, all.clone());
            let mut done = 0;
            for (_, event) in &net.sources[loser].events {
                let Event::Busy { source, content, done: is_done, .. } = event else { continue };
                let is_named = content.as_deref().map_or(is_layered, |content| content == "content");
                assert!(*is_done && is_named, "{}: {event:?}", entry.name);
                assert_eq!(source.as_deref(), Some("source"), "{}", entry.name);
                done += 1;
            }
            assert_eq!(done, 2, "{}: {:?}", entry.name, net.sources[loser].events);
            let Some(Err(error)) = &net.sources[loser].ended else { panic!("nobody joined") };
            assert!(error.to_string().contains("has just received"), "{}: {error}", entry.name);
            for receiver in all {
                let events = net.receivers[receiver].events.iter();
                let others = events.filter(|(_, event)| matches!(event, Event::OtherSource { .. })).count();
                assert_eq!(others, 1, "{}", entry.name);
            }
        }
    }
}

#[test]
fn busy_receiver_reports_its_session_to_another_source() {
    for entry in CATALOGUE {
        let is_layered = entry.name.parse::<Scheme>().expect("it is in the catalogue").layers() > 1;
        for key in [None, Some(key())] {
            let mut net = Net::new(14);
            let all = net.receivers_with(2, path(), back(), None, key.clone());
            let offer = |bytes| Offer::bytes(bytes).by(entry.name).at_most_mbps(8.0).wait_secs(30);
            let sealed = |offer| key.clone().into_iter().fold(offer, Offer::sealed);
            net.source(sealed(offer(16_000_000).expect(2)));
            net.run_for(secs(2));
            let other = net.source(sealed(offer(BYTES)));
            let busy = |net: &Net| {
                let events = net.sources[other].events.iter();
                events.filter(|(_, event)| matches!(event, Event::Busy { .. })).count()
            };
            net.run_until(secs(3), |net| busy(net) == 2);
            let now = UNIX_EPOCH + Duration::from_secs(UNIX_SECS + net.now.as_nanos() / 1_000_000_000);
            for (_, event) in &net.sources[other].events {
                let Event::Busy { source, content, until, .. } = event else { continue };
                // In layers, the file names may arrive with the last blocks.
                let is_named = content.as_deref().map_or(is_layered, |content| content == "content");
                assert!(source.as_deref() == Some("source") && is_named, "{}: {event:?}", entry.name);
                assert!(
                    until.is_some_and(|until| (now..now + Duration::from_secs(300)).contains(&until)),
                    "{}: {event:?}",
                    entry.name
                );
            }
            for receiver in all {
                let reported = net.receivers[receiver].events.iter().filter_map(|(_, event)| match event {
                    Event::OtherSource { address, followed, .. } => Some((*address, followed.as_str())),
                    _ => None,
                });
                assert_eq!(
                    reported.collect::<Vec<_>>(),
                    [(net.sources[other].address, "source")],
                    "{}",
                    entry.name
                );
            }
        }
    }
}
