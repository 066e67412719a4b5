//! Tests that call controllers as quinn does.

use crate::{Cocoon, Prefixes};
use faircast_unicast::cocoon::{Config, Start};
use quinn_proto::congestion::{Controller, ControllerFactory, NewRenoConfig};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MTU: u64 = 1200;
/// Initial window of quinn's NewReno.
const INITIAL: u64 = 10 * MTU;
const MS: Duration = Duration::from_millis(1);

fn cocoon() -> Cocoon {
    Cocoon::new(Arc::new(NewRenoConfig::default()))
}

fn build(cocoon: &Cocoon, peer: &str, now: Instant) -> Box<dyn Controller> {
    let peer: IpAddr = peer.parse().expect("an address");
    cocoon.factory(peer).build(now, MTU as u16)
}

/// Sends this many packets.
fn send(controller: &mut dyn Controller, now: Instant, packets: u64) {
    for number in 0..packets {
        controller.on_sent(now, MTU, number);
    }
}

#[test]
fn later_connections_begin_with_half_of_the_smallest_window() {
    let (cocoon, now) = (cocoon(), Instant::now());
    let first = build(&cocoon, "192.0.2.1", now);
    assert_eq!((first.window(), first.initial_window()), (INITIAL, INITIAL));
    let second = build(&cocoon, "192.0.2.200", now);
    assert_eq!((second.window(), second.initial_window()), (INITIAL / 2, INITIAL / 2));
    let third = build(&cocoon, "192.0.2.3", now);
    assert_eq!(third.window(), INITIAL / 4);
    let fourth = build(&cocoon, "192.0.2.4", now);
    assert_eq!(fourth.window(), 2 * MTU, "two packets at least, or quinn sends none");
    let elsewhere = build(&cocoon, "198.51.100.1", now);
    assert_eq!(elsewhere.window(), INITIAL, "another prefix is another group");
}

#[test]
fn loss_cuts_another_connection_with_more_bytes_in_flight() {
    let config = Config { start: Start::Alone, ..Config::published() };
    let cocoon = Cocoon::with(Arc::new(NewRenoConfig::default()), Prefixes::default(), config);
    let now = Instant::now();
    let (mut one, mut other) = (build(&cocoon, "192.0.2.1", now), build(&cocoon, "192.0.2.2", now));
    send(&mut *one, now + MS, 4);
    send(&mut *other, now + MS, 9);
    one.on_congestion_event(now + 40 * MS, now + MS, false, MTU);
    assert_eq!(one.window(), INITIAL / 2, "the wrapped NewReno halves its own window");
    assert_eq!(other.window(), INITIAL, "a controller acts when it is called");
    other.on_end_acks(now + 41 * MS, 9 * MTU, false, None);
    // Figure 4.2: nine packets are in flight at this connection and four at the connection with the loss, so the window is max(9
    // / 2, 4).
    assert_eq!(other.window(), 9 * MTU / 2);
    // The loss of a packet that was sent before the reduction changes nothing.
    other.on_congestion_event(now + 42 * MS, now + MS, false, MTU);
    assert_eq!(other.window(), 9 * MTU / 2);
    // The loss of a packet that was sent after the reduction causes another reduction.
    other.on_end_acks(now + 59 * MS, 3 * MTU, false, None);
    other.on_sent(now + 60 * MS, MTU, 20);
    other.on_congestion_event(now + 90 * MS, now + 60 * MS, false, MTU);
    assert_eq!(other.window(), 2 * MTU, "half of the four in flight");
    let counters = cocoon.counters();
    assert_eq!((counters.reactions, counters.covered), (2, 1));
}

#[test]
fn loss_of_another_connection_expires_after_two_round_trips() {
    let config = Config { start: Start::Alone, ..Config::published() };
    let cocoon = Cocoon::with(Arc::new(NewRenoConfig::default()), Prefixes::default(), config);
    let now = Instant::now();
    let (mut one, mut other) = (build(&cocoon, "192.0.2.1", now), build(&cocoon, "192.0.2.2", now));
    send(&mut *one, now + MS, 4);
    send(&mut *other, now + MS, 9);
    one.on_congestion_event(now + 40 * MS, now + MS, false, MTU);
    other.on_end_acks(now + 141 * MS, 9 * MTU, false, None);
    assert_eq!(other.window(), INITIAL);
}

#[test]
fn persistent_congestion_sets_the_minimum_window() {
    let (cocoon, now) = (cocoon(), Instant::now());
    let mut one = build(&cocoon, "192.0.2.1", now);
    send(&mut *one, now + MS, 8);
    one.on_congestion_event(now + 40 * MS, now + MS, false, MTU);
    assert_eq!(one.window(), INITIAL / 2);
    send(&mut *one, now + 41 * MS, 1);
    one.on_congestion_event(now + 900 * MS, now + 41 * MS, true, MTU);
    assert_eq!(one.window(), 2 * MTU);
}

#[test]
fn a_connection_is_a_member_until_its_controllers_are_dropped() {
    let (cocoon, now) = (cocoon(), Instant::now());
    let one = build(&cocoon, "2001:db8::1", now);
    let members = || cocoon.groups().iter().map(|group| group.members).sum::<usize>();
    assert_eq!(cocoon.groups()[0].prefix, "2001:db8::".parse::<IpAddr>().unwrap());
    let migrated = one.clone_box();
    drop(one);
    assert_eq!(members(), 1, "quinn clones a controller when a connection migrates");
    drop(migrated);
    assert_eq!(cocoon.groups(), [], "the group is closed with its last connection");
}

#[test]
fn connection_beyond_the_member_limit_runs_uncoordinated() {
    let config = Config { max_members: 1, ..Config::published() };
    let cocoon = Cocoon::with(Arc::new(NewRenoConfig::default()), Prefixes::default(), config);
    let now = Instant::now();
    let _one = build(&cocoon, "192.0.2.1", now);
    let mut alone = build(&cocoon, "192.0.2.2", now);
    assert_eq!(alone.window(), INITIAL);
    send(&mut *alone, now + MS, 8);
    alone.on_congestion_event(now + 40 * MS, now + MS, false, MTU);
    assert_eq!(alone.window(), INITIAL / 2);
}
