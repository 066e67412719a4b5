//! Receivers of layered sessions: joining and leaving of layers, and the symbols in flight meanwhile.

use super::node::{ReceiverNode, SourceNode};
use super::*;
use crate::endpoint::{Backlog, Endpoint, HostEvent};
use crate::event::{IncompleteReceiver, Subscription};
use faircast_core::packet::Layer;
use faircast_wire::{GroupKey, Kind, peek};

/// RLC with eight layers. Rates double from layer to layer, starting at 0.25 Mbit/s.
const RLC: &str = "rlc,base=250000";
const CONTENT: u64 = 2_000_000;

fn fast() -> Link {
    Link::millis(5).mbps(20.0).fifo(60_000)
}

/// Returns the subscriptions that a receiver has reported as events, in order of time.
fn reported(net: &Net, receiver: usize) -> Vec<Subscription> {
    let layers = |event: &Event| match event {
        Event::Layers(subscription) => Some(*subscription),
        _ => None,
    };
    net.receivers[receiver].events.iter().filter_map(|(_, event)| layers(event)).collect()
}

/// Runs until this receiver has joined this number of layers.
fn run_until_joined(net: &mut Net, receiver: usize, joined: usize) {
    let has = |net: &Net| {
        let session = net.receivers[receiver].session.as_ref();
        session.is_some_and(|session| session.groups().len() + 1 >= joined)
    };
    net.run_until(secs(60), has);
}

#[test]
fn layer_events_match_the_counts_of_the_report() {
    let mut net = Net::new(1);
    let all = net.receivers(1, fast(), Link::millis(5));
    let source = net.source(Offer::bytes(CONTENT).by(RLC).expect(1));
    run_until_joined(&mut net, 0, 4);
    net.group_of(0).down.set_link(Link::millis(5).mbps(0.7).fifo(20_000));
    net.run_to_end(secs(100));
    net.assert_all_verified(source, all);
    let (reported, report) = (reported(&net, 0), net.receivers[0].report());
    let layers = report.layers.expect("a session in layers");
    let (mut joins, mut leaves, mut before) = (0, 0, 1);
    for Subscription { joined, of } in &reported {
        assert_eq!(*of, 8);
        joins += u64::from(joined.saturating_sub(before));
        leaves += u64::from(before.saturating_sub(*joined));
        before = *joined;
    }
    assert_eq!((layers.of, layers.joins, layers.leaves), (8, joins, leaves), "{reported:?}");
    assert_eq!(Some(layers.highest), reported.iter().map(|reported| reported.joined).max());
    assert!(layers.highest >= 4 && layers.leaves >= 2, "0.7 Mbit/s hold two layers: {layers:?}");
    let progress = net.receivers[0].events.iter().rev().find_map(|(_, event)| match event {
        Event::Progress(progress) => Some(progress.layers),
        _ => None,
    });
    assert_eq!(progress.flatten().map(|layers| layers.of), Some(8));
}

#[test]
fn receivers_with_little_memory_complete_by_spilling_to_disk() {
    let mut net = Net::new(2);
    let all = net.receivers(2, fast().losing(0.01), Link::millis(5));
    for (receiver, memory) in [(0, 0), (1, 200_000)] {
        net.receivers[receiver].session = None;
        net.receivers[receiver].memory = memory;
        net.start_receiver(receiver);
    }
    let source = net.source(Offer::bytes(CONTENT).by(RLC).expect(2));
    net.run_to_end(secs(100));
    net.assert_all_verified(source, all.clone());
    for receiver in all {
        let node = &net.receivers[receiver];
        assert!(node.report().symbol_ratio <= 1.05, "nothing has come in vain: {:?}", node.report());
        let left = std::fs::read_dir(node.dir.join(".faircast")).expect("it remembers what it has received");
        let left: Vec<_> = left.map(|entry| entry.expect("listed").file_name()).collect();
        assert_eq!(left, ["received"], "nothing else is left behind");
    }
}

#[test]
fn receivers_resume_with_a_restarted_layered_source() {
    let mut net = Net::new(3);
    let all = net.receivers(2, fast(), Link::millis(5));
    let source = net.source(Offer::bytes(CONTENT).by(RLC).expect(2));
    run_until_joined(&mut net, 0, 3);
    let had = net.receivers[0].session.as_ref().map_or(0, |session| session.groups().len());
    net.kill_source(source);
    net.run_for(secs(1));
    net.start_source(source);
    net.run_for(secs(3)); // the earlier process must have been silent
    let has = net.receivers[0].session.as_ref().map_or(0, |session| session.groups().len());
    assert!(has < had, "it begins with the base layer again: {has} after {had}");
    net.run_to_end(secs(100));
    net.assert_all_verified(source, all.clone());
    for receiver in all {
        let report = net.receivers[receiver].report();
        assert!(report.symbol_ratio <= 1.2, "what had come before counts: {report:?}");
    }
}

#[test]
fn stopped_receiver_leaves_all_layers_at_once() {
    let mut net = Net::new(4);
    net.receivers(2, fast(), Link::millis(5));
    let source = net.source(Offer::bytes(CONTENT).by(RLC).expect(2).wait_secs(2));
    run_until_joined(&mut net, 0, 3);
    let now = net.now;
    let session = net.receivers[0].session.as_mut().expect("it runs");
    session.stop(now);
    assert!(session.groups().is_empty());
    net.run_to_end(secs(100));
    assert!(net.receivers[1].has(&net.sources[source]));
    assert_eq!(
        net.sources[source].report().incomplete,
        [IncompleteReceiver { host: "host0".to_owned(), reason: "the receiver was stopped".to_owned() }]
    );
}

#[test]
fn receiver_uses_lower_layers_and_warns_once_if_a_join_fails() {
    let mut net = Net::new(5);
    let all = net.receivers(1, fast(), Link::millis(5));
    net.receivers[0].refuses = Some(Layer(2));
    let source = net.source(Offer::bytes(CONTENT / 2).by(RLC).expect(1));
    net.run_to_end(secs(100));
    net.assert_all_verified(source, all);
    let warnings = |event: &&(Time, Event)| matches!(&event.1, Event::Warning { message, .. } if message.contains("cannot join layer 2"));
    assert_eq!(net.receivers[0].events.iter().filter(warnings).count(), 1);
    let most = reported(&net, 0).iter().map(|reported| reported.joined).max();
    assert!(most.is_some(), "{:?}", reported(&net, 0));
    let last = reported(&net, 0).last().copied();
    assert_eq!(last, Some(Subscription { joined: 2, of: 8 }));
}

#[test]
fn receiver_without_the_key_joins_no_sealed_layer() {
    let key = GroupKey::from_bytes([9; 32]);
    let mut net = Net::new(6);
    let all = net.receivers_with(2, fast().losing(0.01), Link::millis(5), None, Some(key.clone()));
    let strangers = net.receivers(1, fast(), Link::millis(5));
    let source = net.source(Offer::bytes(CONTENT / 2).by(RLC).expect(2).sealed(key));
    net.run_until(secs(100), |net| net.sources[0].session.is_none());
    net.assert_all_verified(source, all);
    let stranger =
        net.receivers[strangers.start].session.as_ref().expect("it waits for a session that it can open");
    assert!(stranger.groups().is_empty());
}

/// The receiver gets only symbols of enhancement layers, as if it had just left these layers. The buffer of the receiver's socket
/// also overflows.
#[test]
fn scheme_ignores_symbols_of_unjoined_layers() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let offer = Offer::bytes(300_000).by(RLC).expect(1);
    let mut source = SourceNode::new(1, 0, offer, dir.path().join("in").join("content"));
    let mut receiver = ReceiverNode::new(1, 0, 0, dir.path().join("out"), None);
    let mut now = Time::ZERO;
    source.start(now);
    receiver.start(now);
    while receiver.ended.is_none() {
        assert!(now < Time::ZERO + secs(60), "{:?}", receiver.events);
        let (mut down, mut up) = (Vec::new(), Vec::new());
        source.drive(now, |bytes, layer| down.push((bytes.to_vec(), layer)));
        for (mut bytes, layer) in down {
            let kind = peek(&bytes).expect("the source's own").kind;
            if kind != Kind::Data || layer > Layer(0) {
                receiver.on_datagram(&mut bytes, source.address, now);
            }
        }
        if let Some(session) = &mut receiver.session {
            let backlog = Backlog { used: 900, capacity: 1000, dropped: 7 };
            session.handle_host_event(HostEvent::Backlog(backlog), now);
        }
        receiver.drive(now, |bytes, _| up.push(bytes.to_vec()));
        for mut bytes in up {
            assert_eq!(peek(&bytes).expect("the receiver's own").kind, Kind::Member, "no request, no report");
            source.on_datagram(&mut bytes, receiver.address, now);
        }
        now = source.next_timeout(now).min(receiver.next_timeout(now)).max(now + Span::from_micros(1));
    }
    assert!(receiver.has(&source));
    let report = receiver.report();
    let layers = report.layers.expect("a session in layers");
    assert_eq!((layers.highest, layers.joins, report.lost, report.dropped_local), (1, 0, 0, 7), "{report:?}");
}
