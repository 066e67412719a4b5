//! Agents of MTCP within one session: they serve receivers and repair losses. If an agent dies, its children move to other
//! parents.

use super::node::ReceiverNode;
use super::*;
use faircast_core::packet::Seq;
use faircast_wire::{GroupKey, Kind, Message, Newest, Order, OrderAction, encode, parse, peek};

/// Offers 2 MB to this number of receivers.
fn offer(receivers: u32) -> Offer {
    Offer::bytes(2_000_000).by("mtcp").expect(receivers)
}

fn lan() -> Link {
    Link::millis(2).mbps(8.0).fifo(60_000)
}

/// Builds two agents with three receivers each.
fn two_agents(seed: u64, offer: Offer, lossy: f64) -> Net {
    let mut grove = Net::of(seed, offer);
    for place in 0..2 {
        let agent = grove.agent(&[], 16, lan());
        let address = grove.agents[agent].address;
        grove.children(&[address], 2, lan());
        grove.children(&[address], 1, lan().losing(if place == 0 { lossy } else { 0.0 }));
    }
    grove
}

#[test]
fn children_of_agents_send_feedback_to_their_agents_only() {
    let mut grove = two_agents(1, offer(6), 0.0);
    grove.start();
    grove.run_to_end(secs(120));
    grove.assert_have_all(0..6);
    assert_eq!(grove.sources[0].report().verified, 6);
    assert_eq!(grove.received_from(0..6), 0, "nothing of a child reaches the source");
    for agent in &grove.agents {
        assert_eq!(agent.below(), (3, 3));
        assert_eq!(agent.shown(), [(1, 1); 3], "what whoever asks is told last");
        let status = agent.status();
        assert!(status.reports_received > 3 * status.reports_sent / 2, "{status:?}");
    }
}

#[test]
fn only_the_agent_repairs_the_loss_of_its_child() {
    let run = |lossy: f64| {
        let mut grove = two_agents(2, offer(6), lossy);
        grove.start();
        grove.run_to_end(secs(300));
        grove.assert_have_all(0..6);
        let repairs = [0, 1].map(|at| grove.agents[at].status().repairs);
        let report = grove.sources[0].report();
        let lost = grove.receivers[2].report().lost;
        (repairs, report.packets as f64, lost)
    };
    let (clean, with_loss) = (run(0.0), run(0.02));
    println!("without loss {clean:?}, with {with_loss:?}");
    let (repairs, lost) = (with_loss.0[0], with_loss.2);
    assert!(lost > 10 && repairs >= lost && repairs < lost + lost / 4, "each once: {with_loss:?}");
    assert!(with_loss.0[1] < 5 + clean.0[1], "{with_loss:?}");
    assert!(with_loss.1 < 1.01 * clean.1, "the source repairs next to nothing: {with_loss:?}, {clean:?}");
}

#[test]
fn agents_without_the_group_key_repair_sealed_sessions() {
    let key = GroupKey::from_bytes([7; 32]);
    let mut grove = two_agents(3, offer(6).sealed(key), 0.02);
    grove.start();
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..6);
    assert!(grove.agents[0].status().repairs > 10);
    assert_eq!(grove.received_from(0..6), 0);
}

#[test]
fn nested_agents_aggregate_feedback() {
    let mut grove = Net::of(4, offer(4));
    let top = grove.agent(&[], 16, lan());
    let top = grove.agents[top].address;
    let below = grove.agent(&[top], 16, lan());
    let below = grove.agents[below].address;
    grove.children(&[top], 1, lan());
    grove.children(&[below], 2, lan());
    grove.children(&[below], 1, lan().losing(0.02));
    grove.start();
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..4);
    assert_eq!(grove.agents[0].below(), (4, 4));
    assert_eq!(grove.agents[1].below(), (3, 3));
    let received: Vec<_> = grove.received.keys().copied().collect();
    assert_eq!(received, [top], "the source hears its own child");
    assert!(grove.agents[1].status().repairs > 10);
}

#[test]
fn children_of_a_dead_agent_move_to_another_parent() {
    let mut grove = two_agents(5, offer(6), 0.02);
    let second = grove.agents[1].address;
    grove.receivers[0].parents.push(second);
    grove.start();
    grove.run_until(secs(60), |grove| grove.agents[0].status().reports_sent > 200);
    grove.kill_agent(0);
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..6);
    assert_eq!(grove.agents[1].below().1, 4, "one came over");
    assert_eq!(grove.received_from(0..1), 0);
    assert!(grove.received_from(1..3) > 0, "the others are the source's own");
}

#[test]
fn orphaned_agent_moves_to_the_source_with_its_children() {
    let mut grove = Net::of(13, offer(4));
    let top = grove.agent(&[], 16, lan());
    let top = grove.agents[top].address;
    let below = grove.agent(&[top], 16, lan());
    let below = grove.agents[below].address;
    grove.children(&[top], 1, lan());
    grove.children(&[below], 3, lan().losing(0.01));
    grove.start();
    grove.run_until(secs(60), |grove| grove.agents[1].status().reports_sent > 200);
    grove.kill_agent(0);
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..4);
    assert_eq!(grove.received_from(1..4), 0, "they stay with their agent");
    assert!(grove.received.get(&below).copied().unwrap_or(0) > 100, "which is the source's own now");
    assert_eq!(grove.agents[1].below(), (3, 3));
}

#[test]
fn agents_with_each_other_as_parent_join_the_source() {
    let mut grove = Net::of(14, offer(2));
    let first = std::net::SocketAddr::from(([10, 2, 0, 1], 5778));
    let second = std::net::SocketAddr::from(([10, 2, 0, 2], 5778));
    grove.agent(&[second], 16, lan());
    grove.agent(&[first], 16, lan());
    assert_eq!(grove.agents.iter().map(|agent| agent.address).collect::<Vec<_>>(), [first, second]);
    grove.children(&[first], 1, lan());
    grove.children(&[second], 1, lan());
    grove.start();
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..2);
    for agent in [first, second] {
        assert!(grove.received.contains_key(&agent), "{:?}", grove.received);
    }
}

#[test]
fn restarted_agent_serves_its_children_again() {
    let mut grove = two_agents(6, offer(6), 0.02);
    grove.start();
    grove.run_until(secs(60), |grove| grove.agents[0].status().reports_sent > 200);
    grove.kill_agent(0);
    grove.run_for(Span::from_millis(1_500));
    grove.start_host(Who::Agent(0));
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..6);
    assert_eq!(grove.received_from(0..3), 0, "all of them came back to it");
    assert_eq!(grove.agents[0].below(), (3, 3));
}

/// Kills the agent at `place` as soon as one of its receivers has completed. Repeats this with several random seeds.
fn dies_when_one_is_done(place: usize, network: impl Fn(u64) -> Net) {
    for seed in 0..20 {
        let mut grove = network(seed);
        let receivers = grove.receivers.len();
        grove.start();
        let is_done = |grove: &Net| grove.agents[place].below().1 > 0;
        grove.run_until(secs(120), is_done);
        assert!(is_done(&grove));
        grove.run_for(Span::from_millis(2 * (seed % 10)));
        grove.kill_agent(place);
        grove.run_to_end(secs(300));
        grove.assert_have_all(0..receivers);
        assert_eq!(grove.sources[0].report().verified, receivers as u64, "of network {seed}");
    }
}

#[test]
fn completed_child_counts_once_after_its_agent_fails() {
    dies_when_one_is_done(0, |seed| two_agents(100 + seed, offer(6), 0.0));
}

#[test]
fn completed_child_counts_once_after_its_agents_parent_fails() {
    dies_when_one_is_done(0, |seed| {
        let mut grove = Net::of(200 + seed, offer(4));
        let top = grove.agent(&[], 16, lan());
        let top = grove.agents[top].address;
        let below = grove.agent(&[top], 16, lan());
        let below = grove.agents[below].address;
        grove.children(&[top], 1, lan());
        grove.children(&[below], 3, lan());
        grove
    });
}

#[test]
fn dead_agent_without_receivers_does_not_delay_a_session() {
    let mut grove = Net::of(16, offer(2));
    let top = grove.agent(&[], 16, lan());
    let top = grove.agents[top].address;
    grove.agent(&[top], 16, lan());
    grove.children(&[], 2, lan());
    grove.start();
    let has_child = |grove: &Net| grove.agents[1].status().reports_sent > 10;
    grove.run_until(secs(60), has_child);
    assert!(has_child(&grove) && !grove.received.contains_key(&grove.agents[1].address));
    grove.kill_agent(1);
    grove.run_to_end(secs(60));
    grove.assert_have_all(0..2);
}

#[test]
fn agent_without_receivers_does_not_leave_its_parent() {
    let mut grove = Net::of(17, Offer::bytes(12_000_000).by("mtcp").expect(1));
    let top = grove.agent(&[], 16, lan());
    let top = grove.agents[top].address;
    let below = grove.agent(&[top], 16, lan());
    grove.children(&[], 1, lan());
    grove.start();
    grove.run_to_end(secs(60));
    grove.assert_have_all(0..1);
    let (agent, source) = (&grove.agents[below], grove.sources[0].report());
    assert!(
        source.duration.as_secs_f64() > 13.0,
        "longer than who has asked has time to join: {}",
        source.duration.as_secs_f64()
    );
    assert!(!grove.received.contains_key(&agent.address), "it is not the source's");
    let warned = |event: &Event| matches!(event, Event::Warning { .. });
    assert!(!agent.events.iter().any(|(_, event)| warned(event)), "{:?}", agent.events);
}

#[test]
fn late_child_gets_the_whole_content() {
    let mut grove = two_agents(7, offer(5), 0.0);
    grove.late.push(Who::Receiver(1));
    grove.start();
    grove.run_until(secs(60), |grove| grove.agents[0].status().reports_sent > 200);
    grove.start_host(Who::Receiver(1));
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..6);
    assert_eq!(grove.received_from(0..6), 0);
}

#[test]
fn distant_receiver_gets_one_status_per_two_round_trips() {
    let mut grove = Net::of(15, Offer::bytes(4_000_000).by("mtcp").expect(1));
    let far = Link::millis(40).mbps(8.0).fifo(60_000);
    grove.children(&[], 1, far);
    grove.near(Who::Receiver(0), far);
    grove.start();
    grove.run_to_end(secs(120));
    grove.assert_have_all(0..1);
    let a_second = grove.statuses as f64 / grove.sources[0].report().duration.as_secs_f64();
    println!("{a_second:.1} status messages a second");
    assert!(a_second < 8.0, "{a_second}");
}

#[test]
fn child_refused_by_a_full_agent_joins_the_source() {
    let mut grove = Net::of(8, offer(3));
    let agent = grove.agent(&[], 2, lan());
    let agent = grove.agents[agent].address;
    grove.children(&[agent], 3, lan());
    grove.start();
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..3);
    assert_eq!(grove.agents[0].below().1, 2);
}

#[test]
fn slow_child_is_served_separately_and_others_are_faster() {
    let slow = Link::millis(2).mbps(1.0).fifo(60_000);
    let run = |localized: bool| {
        let mut grove = Net::of(9, Offer::bytes(2_000_000).by("mtcp,local-high=0.01,local-hold=1").expect(4));
        let agent = grove.agent(&[], 16, lan());
        let agent = grove.agents[agent].address;
        let parents = if localized { vec![agent] } else { Vec::new() };
        grove.children(&[agent], 3, lan());
        let last = grove.children(&parents, 1, slow).start;
        // Unicast packets to the last receiver share the narrow link.
        grove.near(Who::Receiver(last), slow);
        grove.start();
        grove.run_to_end(secs(600));
        grove.assert_have_all(0..4);
        let ends: Vec<f64> = grove.receivers.iter().map(|node| node.ended_at.as_secs_f64()).collect();
        (ends, grove.agents[0].status())
    };
    let (with, without) = (run(true), run(false));
    println!("moved: {with:?}; not: {without:?}");
    assert!(with.1.passed_on > 300 && without.1.passed_on == 0, "{with:?}");
    assert!(
        with.0[0] < 0.8 * without.0[0],
        "the others are as far ahead as the store reaches: {with:?} {without:?}"
    );
    assert!(with.0[3] < 1.3 * without.0[3], "and it costs the slow one little: {with:?} {without:?}");
}

#[test]
fn forged_and_replayed_reports_of_a_child_change_nothing() {
    let mut grove = two_agents(10, offer(6), 0.0);
    grove.recorded = Some(Vec::new());
    grove.start();
    for _ in 0..30 {
        grove.run_for(Span::from_millis(50));
        let recorded = grove.recorded.as_mut().map(std::mem::take).unwrap_or_default();
        let places: Vec<_> = recorded.iter().map(|(from, ..)| *from).collect();
        for (number, (from, to, bytes)) in recorded.into_iter().enumerate() {
            // Repeat the datagram from the same address, and from the address of another child.
            grove.inject(from, to, bytes.clone());
            let other = places[(number + 1) % places.len()];
            let is_attach = peek(&bytes).is_ok_and(|header| header.kind == Kind::Attach);
            if other != from && !is_attach {
                grove.inject(other, to, bytes);
            }
        }
        grove.recorded = Some(Vec::new());
    }
    grove.recorded = None;
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..6);
    for agent in &grove.agents {
        assert_eq!(agent.below(), (3, 3));
    }
}

#[test]
fn orders_from_unknown_hosts_are_ignored() {
    let mut grove = two_agents(12, offer(6), 0.0);
    grove.recorded = Some(Vec::new());
    grove.start();
    grove.run_until(secs(60), |grove| grove.agents[0].status().reports_sent > 50);
    let recorded = grove.recorded.take().unwrap_or_default();
    let stranger = "10.9.9.9:5778".parse().expect("an address");
    let mut given = 0;
    for (child, _, bytes) in recorded {
        let Ok((_, Message::Attach(attach))) = parse(&bytes, &Newest::default()) else { continue };
        let mut out = Vec::new();
        let action = OrderAction::Join;
        let order = Order { to: attach.from, action, number: 1, group: 1, from: Seq(0), nonce: 0 };
        encode(&mut out, grove.sources[0].id, 7, &Message::Order(order), 500).expect("it fits");
        // Send the datagram from an unknown address, and from another agent's address.
        grove.inject(stranger, child, out.clone());
        let other = grove.agents.iter().map(|agent| agent.address);
        let own = grove.receivers.iter().find(|node| node.address == child).expect("a child").parents[0];
        other.filter(|agent| *agent != own).collect::<Vec<_>>().into_iter().for_each(|agent| {
            grove.inject(agent, child, out.clone());
        });
        given += 1;
    }
    assert!(given >= 6, "{given}");
    grove.run_for(Span::from_millis(100));
    assert!(grove.receivers.iter().all(ReceiverNode::receives_group), "nobody has left the source's group");
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..6);
}

#[test]
fn agents_do_not_serve_sessions_of_other_schemes() {
    let mut grove = Net::of(11, Offer::bytes(6_000_000).expect(1));
    let agent = grove.agent(&[], 16, lan());
    let agent = grove.agents[agent].address;
    grove.children(&[agent], 1, lan());
    grove.start();
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..1);
    assert!(grove.received_from(0..1) > 0, "its child is the source's");
    let reported = |text: &str| {
        let mut events = grove.agents[0].events.iter();
        events.any(|(_, event)| matches!(event, Event::Warning { message, .. } if message.contains(text)))
    };
    assert!(reported("start the relay as a repeater"), "{:?}", grove.agents[0].events);
}
