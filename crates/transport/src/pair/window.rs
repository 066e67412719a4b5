//! Receive windows of slow, stopped and malicious receivers, for every scheme at one rate.

use super::*;
use crate::config::SlowReceiverPolicy;
use crate::event::SlowAction;
use faircast_core::packet::{Echo, Seq};
use faircast_core::schemes::{CATALOGUE, LayerRates};
use faircast_core::time::Rate;
use faircast_wire::{Kind, Message, ReceiverCodec, Window, peek};

/// Returns the schemes at one rate.
fn schemes() -> impl Iterator<Item = &'static str> {
    let of_one_rate = CATALOGUE.iter().filter(|entry| entry.layers == LayerRates::One);
    of_one_rate.map(|entry| entry.name)
}

fn millis(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// Returns a fast local network.
fn lan() -> Link {
    Link::default().mbps(200.0).fifo(4_000_000)
}

fn net(scheme: &'static str, receivers: usize, offer: Offer) -> (Net, usize) {
    let mut net = Net::new(3);
    net.receivers(receivers, lan(), Link::millis(1));
    let source = net.source(offer.by(scheme).expect(receivers as u32));
    (net, source)
}

/// Runs until the source has sent 2 MB.
fn settle(net: &mut Net, source: usize) {
    net.run_until(secs(30), |net| net.trace.sent.get(source).is_some_and(|sent| sent.total() > 2_000_000));
}

/// Runs the network for `span`. Returns the source's mean rate in this time, in bit/s.
fn rate_over(net: &mut Net, source: usize, span: Span) -> f64 {
    let from = net.now;
    net.run_for(span);
    net.trace.sent[source].between(from, net.now) as f64 * 8.0 / span.as_secs_f64()
}

fn dropped(net: &Net, receiver: usize) -> u64 {
    net.receivers[receiver].socket.backlog().dropped
}

#[test]
fn rate_follows_a_slow_receiver_up_and_down_without_loss() {
    for scheme in schemes() {
        let (mut net, source) = net(scheme, 2, Offer::zeros(1 << 28));
        settle(&mut net, source);
        net.run_for(secs(2));
        for mbps in [16.0, 48.0, 16.0_f64] {
            // The rate falls to the first limit more slowly, because the buffer was nearly empty before.
            let first = net.receivers[1].socket.rate.bps() > 1e12;
            net.limit_receiver(1, Rate::from_mbps(mbps));
            net.run_for(if first { secs(3) } else { millis(500) });
            let rate = rate_over(&mut net, source, secs(2)) / 1e6;
            println!("{scheme}: {mbps} Mbit/s taken, {rate:.1} sent");
            // TFMCC's receivers report twice their recent receive rate, and this rate was zero for some time.
            let least = if scheme == "tfmcc" { 0.5 } else { 0.8 * mbps };
            assert!((least..1.2 * mbps).contains(&rate), "{scheme} sends {rate} Mbit/s for {mbps}");
        }
        assert_eq!((dropped(&net, 0), dropped(&net, 1)), (0, 0), "{scheme}");
    }
}

#[test]
fn short_pause_of_a_process_loses_no_datagram() {
    for scheme in schemes() {
        let run = |pause: bool| {
            let (mut net, source) = net(scheme, 3, Offer::bytes(8_000_000));
            // Maximum buffer size of a user without privileges.
            net.receivers[2].socket.capacity = 425_984;
            settle(&mut net, source);
            if pause {
                net.pause_receiver(2, millis(300));
            }
            net.run_to_end(secs(120));
            net.assert_all_verified(source, 0..3);
            assert_eq!(net.receivers[2].report().dropped_local, 0, "{scheme}");
            net.sources[source].report().duration.as_secs_f64()
        };
        let (without, with) = (run(false), run(true));
        println!("{scheme}: {without:.2} s, with a pause of 0.3 s {with:.2} s");
        assert!(with < without + 20.0, "{scheme}: {without} and {with}");
    }
}

#[test]
fn long_pause_of_a_process_delays_others_only_briefly() {
    for scheme in schemes() {
        let (mut net, source) = net(scheme, 3, Offer::bytes(16_000_000).at_most_mbps(40.0));
        net.receivers[2].socket.capacity = 425_984;
        settle(&mut net, source);
        net.pause_receiver(2, secs(3));
        net.run_for(millis(1_700));
        let rate = rate_over(&mut net, source, secs(1)) / 1e6;
        println!("{scheme}: {rate:.1} Mbit/s while one has been silent for more than a second");
        assert!(rate > 1.0, "{scheme}: {rate}");
        net.run_to_end(secs(120));
        net.assert_all_verified(source, 0..3);
    }
}

#[test]
fn dead_receiver_does_not_stop_other_receivers() {
    for scheme in schemes() {
        let (mut net, source) = net(scheme, 3, Offer::bytes(16_000_000).at_most_mbps(40.0));
        settle(&mut net, source);
        net.kill_receiver(2);
        net.run_until(secs(60), |net| net.receivers[..2].iter().all(|node| node.session.is_none()));
        assert!((0..2).all(|receiver| net.receivers[receiver].has(&net.sources[source])), "{scheme}");
    }
}

#[test]
fn lost_window_advertisements_cause_no_local_drops() {
    for scheme in schemes() {
        let mut net = Net::new(4);
        net.receivers(2, lan(), Link::millis(1).losing(0.3));
        let source = net.source(Offer::bytes(6_000_000).by(scheme).expect(2));
        for receiver in 0..2 {
            net.receivers[receiver].socket.capacity = 425_984;
            net.limit_receiver(receiver, Rate::from_mbps(24.0));
        }
        net.run_to_end(secs(120));
        net.assert_all_verified(source, 0..2);
        let seconds = net.sources[source].report().duration.as_secs_f64();
        println!("{scheme}: {seconds:.2} s of 2.0 s");
        assert!(net.receivers.iter().all(|node| node.report().dropped_local == 0), "{scheme}");
    }
}

/// Delivers a forged window of receiver 1 to the source.
fn forge(net: &mut Net, source: usize, echo: Seq, limit: Seq) {
    let joined = net.sources[source].events.iter().find_map(|(_, event)| match event {
        Event::Joined { receiver, host, .. } if host == "host1" => *receiver,
        _ => None,
    });
    let id = joined.expect("it has joined");
    let window = Window { from: id, echo: Echo { seq: echo, hold: Span::ZERO }, limit };
    let mut bytes = Vec::new();
    let session = net.sources[source].id;
    let encoded = ReceiverCodec::new(&[], id, 1).encode(&mut bytes, session, &Message::Window(window));
    encoded.expect("an open session");
    net.inject_up(source, net.receivers[1].address, bytes);
}

#[test]
fn forged_windows_do_not_stop_a_session() {
    for scheme in schemes() {
        let (mut net, source) = net(scheme, 2, Offer::bytes(12_000_000).at_most_mbps(40.0));
        settle(&mut net, source);
        // The echo names a packet that was never sent.
        forge(&mut net, source, Seq((1 << 62) - 2), Seq(0));
        assert!(rate_over(&mut net, source, millis(200)) > 0.0, "{scheme}");
        // Repeatedly forge a closed window with an echo of the newest packet. The true receiver soon sends a newer window.
        let end = net.now + secs(8);
        while net.now < end
            && let Some(session) = &net.sources[source].session
        {
            let newest = Seq(session.next_seq().0 - 1);
            forge(&mut net, source, newest, Seq(0));
            net.run_for(millis(20));
        }
        net.run_to_end(secs(120));
        net.assert_all_verified(source, 0..2);
    }
}

#[test]
fn receiver_with_a_closed_window_does_not_block_others() {
    for scheme in schemes() {
        let (mut net, source) = net(scheme, 3, Offer::bytes(12_000_000).at_most_mbps(40.0));
        settle(&mut net, source);
        // The receiver reads about one packet per minute, and continues to send windows.
        net.limit_receiver(2, Rate::from_bps(200.0));
        let began = net.now;
        net.run_until(secs(60), |net| net.receivers[..2].iter().all(|node| node.session.is_none()));
        let seconds = net.now.since(began).as_secs_f64();
        println!("{scheme}: the others are done after {seconds:.1} s");
        assert!((0..2).all(|receiver| net.receivers[receiver].has(&net.sources[source])), "{scheme}");
    }
}

#[test]
fn slow_receiver_policy_applies_to_receivers_with_small_windows() {
    for scheme in schemes() {
        for (slow, done) in [
            (SlowReceiverPolicy::Floor(Rate::from_mbps(20.0)), SlowAction::Deferred),
            (SlowReceiverPolicy::Drop(Rate::from_mbps(20.0)), SlowAction::Dropped),
        ] {
            let offer = Offer::bytes(24_000_000).at_most_mbps(60.0).slow(slow);
            let (mut net, source) = net(scheme, 3, offer);
            net.receivers[2].socket.capacity = 425_984;
            net.limit_receiver(2, Rate::from_mbps(8.0));
            net.run_until(secs(60), |net| net.receivers[..2].iter().all(|node| node.session.is_none()));
            let named = net.reported(source, |event| {
                matches!(event, Event::SlowReceiver { host, action, .. } if host == "host2" && *action == done)
            });
            let named = named.expect("the slow receiver is named").as_secs_f64();
            let fast = net.receivers[..2].iter().map(|node| node.ended_at.as_secs_f64()).fold(0.0, f64::max);
            println!("{scheme}: {done} after {named:.2} s, the others are done at {fast:.1} s");
            assert!(fast < 20.0, "{scheme}: {fast}");
            assert!((0..2).all(|receiver| net.receivers[receiver].has(&net.sources[source])), "{scheme}");
        }
    }
}

#[test]
fn one_slow_receiver_of_forty_causes_few_window_advertisements() {
    for scheme in schemes() {
        let (mut net, source) = net(scheme, 40, Offer::zeros(1 << 26));
        settle(&mut net, source);
        net.limit_receiver(7, Rate::from_mbps(20.0));
        net.run_for(secs(3));
        net.trace.record = true;
        let rate = rate_over(&mut net, source, secs(2)) / 1e6;
        let windows = net
            .trace
            .up
            .iter()
            .filter(|(_, _, bytes)| peek(bytes).is_ok_and(|header| header.kind == Kind::Window));
        let windows = windows.count();
        println!("{scheme}: {rate:.1} Mbit/s, {windows} advertisements in 2 s");
        assert!((16.0..24.0).contains(&rate), "{scheme}: {rate}");
        assert!(windows < 300, "{scheme}: {windows}");
        assert!((0..40).all(|receiver| dropped(&net, receiver) == 0), "{scheme}");
    }
}
