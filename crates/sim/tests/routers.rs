//! Nodes with routers. Packets of a session pass the same state machines that run in a real router.

mod nets;
#[path = "../../core/tests/toy/router.rs"]
mod toy;

use faircast_aqm::LinkSpec;
use faircast_core::node::{
    Cx, Effect, Port, Router, RouterControl, RouterObservation, RouterSpec, To, Verdict,
};
use faircast_core::packet::{Body, Flags, Layer, Packet, SessionId, Signal};
use faircast_core::time::{Span, Time};
use faircast_sim::{LinkId, Network, NodeId, Options, Outcome, SessionSpec, SimError, TappedPacket};
use std::sync::Arc;
use toy::ToyRouter;

const TOY: ToyRouter = ToyRouter { delay: Span::from_millis(7), spacing: Span::from_millis(40) };

/// Builds a source, two consecutive nodes, and receivers at the second node: `source - first - second - receivers`. The links
/// from the second node to the receivers are tapped.
fn net(scheme: &str, receivers: usize, routers: &[(usize, Arc<dyn RouterSpec>)]) -> (Network, Vec<LinkId>) {
    let mut net = Network::new(3);
    let (source, first, second) = (net.node(), net.node(), net.node());
    net.duplex(source, first, nets::wide(100.0, 1), nets::wide(100.0, 1));
    net.duplex(first, second, nets::wide(100.0, 3), nets::wide(100.0, 3));
    let mut members = Vec::new();
    let mut last = Vec::new();
    for _ in 0..receivers {
        let leaf = net.node();
        last.push(net.link(second, leaf, LinkSpec { ..nets::link(2.0, 10, 20) }));
        net.link(leaf, second, nets::wide(10.0, 10));
        members.push(nets::member(leaf));
    }
    let scheme = scheme.parse().expect("a scheme");
    net.session(SessionSpec { scheme, ..nets::session(source, members) });
    last.iter().for_each(|link| net.tap(*link));
    let nodes = [source, first, second];
    routers.iter().for_each(|(which, router)| net.router(nodes[*which], Arc::clone(router)));
    (net, last)
}

/// Returns packet number, flag, time and layer of the data that entered a link.
fn data(outcome: &Outcome, link: LinkId) -> Vec<(u64, bool, Time, Layer)> {
    let on_link = outcome.taps.iter().filter(|tapped| tapped.link == link);
    let data = on_link.filter_map(|tapped| match tapped.what {
        TappedPacket::Session(Packet { body: Body::Data(data), layer, .. }) => {
            Some((data.seq.0, data.flags.has(Flags::GAP_SEEN), tapped.at, layer))
        }
        _ => None,
    });
    data.collect()
}

#[test]
fn every_scheme_works_with_a_router_that_modifies_packets() {
    for entry in faircast_core::schemes::CATALOGUE {
        let plain = net(entry.name, 6, &[]);
        let (plain, links) = (nets::in_both_engines(&plain.0, 20.0), plain.1);
        let routed = nets::in_both_engines(&net(entry.name, 6, &[(2, Arc::new(TOY))]).0, 20.0);
        let (before, after) = (&plain.flows[0], &routed.flows[0]);
        for (member, link) in after.members.iter().zip(&links) {
            // MTCP's source waits for each of its children. If the router drops most reports, the source progresses only by
            // timeouts.
            let least = if entry.name == "mtcp" { 10 } else { 100 };
            assert!(member.packets > least, "{}: {} packets", entry.name, member.packets);
            // Port 0 leads to the source, so receivers are at ports 1, 2, ...
            let is_odd = links.iter().position(|other| other == link).expect("one of them").is_multiple_of(2);
            let seen = data(&routed, *link);
            let marks = data(&plain, *link).iter().any(|packet| packet.1);
            assert!(
                seen.iter().all(|packet| packet.1 == is_odd) || marks,
                "{}: a copy is changed, not all",
                entry.name
            );
        }
        if entry.feedback == faircast_core::schemes::Feedback::Reports {
            assert!(
                after.feedback > 10 && after.feedback < before.feedback.max(600),
                "{}: {}",
                entry.name,
                after.feedback
            );
        }
    }
}

#[test]
fn packets_held_by_a_router_arrive_late_without_loss() {
    let (network, links) = net("ormcc", 4, &[(2, Arc::new(TOY))]);
    let outcome = nets::in_both_engines(&network, 20.0);
    let (odd, even) = (data(&outcome, links[0]), data(&outcome, links[1]));
    assert!(odd.len() > 1000 && even.len() - odd.len() < 30, "{} and {}", odd.len(), even.len());
    for (held, passed) in odd.iter().zip(&even) {
        assert_eq!((held.0, held.2), (passed.0, passed.2 + TOY.delay));
    }
}

#[test]
fn session_works_through_routers_at_every_node() {
    let toy: Arc<dyn RouterSpec> = Arc::new(TOY);
    let all: Vec<_> = (0..3).map(|node| (node, Arc::clone(&toy))).collect();
    for scheme in ["ormcc", "le-sbcc", "gmcc"] {
        let outcome = nets::in_both_engines(&net(scheme, 5, &all).0, 30.0);
        let flow = &outcome.flows[0];
        assert!(flow.members.iter().all(|member| member.packets > 200), "{scheme}");
        assert!(flow.feedback > 20 && flow.feedback <= 30_000 / 40 + 1, "{scheme}: {}", flow.feedback);
    }
}

/// A router that forwards all packets unchanged has no effect at any node.
#[test]
fn router_without_effects_changes_nothing() {
    #[derive(Debug)]
    struct Idle;
    impl RouterSpec for Idle {
        fn router(&self) -> Box<dyn Router + Send> {
            Box::new(Idle)
        }
    }
    impl Router for Idle {
        fn deadline(&self) -> Time {
            Time::NEVER
        }
        fn on_deadline(&mut self, _cx: &mut Cx<'_>) {}
        fn control(&mut self, _control: RouterControl, _now: Time) {}
        fn observe(&self) -> RouterObservation {
            RouterObservation::default()
        }
    }
    let mut compared = 0;
    for seed in 0..40 {
        for mut network in [nets::random(seed), nets::random_layered(1000 + seed)] {
            let without = nets::in_both_engines(&network, 8.0);
            if without.flows.iter().any(|flow| flow.aggregated > 0) {
                continue; // it has routers of its own, which these would replace
            }
            compared += 1;
            (0..4).for_each(|node| network.router(NodeId(node), Arc::new(Idle)));
            let with = nets::in_both_engines(&network, 8.0);
            assert_eq!(without.digest, with.digest, "seed {seed}");
            assert!(without.flows == with.flows, "seed {seed}");
        }
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn invalid_effect_of_a_router_is_an_error() {
    #[derive(Debug)]
    struct Wrong(Effect);
    impl RouterSpec for Wrong {
        fn router(&self) -> Box<dyn Router + Send> {
            Box::new(Wrong(self.0))
        }
    }
    impl Router for Wrong {
        fn on_data(&mut self, _exit: Port, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
            cx.effects.push(match self.0 {
                Effect::Send { to, .. } => Effect::Send { to, packet: *packet },
                other => other,
            });
            Verdict::Pass
        }
        fn deadline(&self) -> Time {
            Time::NEVER
        }
        fn on_deadline(&mut self, _cx: &mut Cx<'_>) {}
        fn control(&mut self, _control: RouterControl, _now: Time) {}
        fn observe(&self) -> RouterObservation {
            RouterObservation::default()
        }
    }
    let order = Body::Data(faircast_core::packet::Data {
        seq: faircast_core::packet::Seq(0),
        sent_at: Time::ZERO,
        rate: 0.0,
        payload: faircast_core::packet::Payload::NONE,
        flags: Flags::default(),
        signal: Signal::None,
        mark: faircast_core::packet::Mark::None,
    });
    let packet = Packet { session: SessionId(1), layer: Layer(0), size: 1, body: order };
    let wrong = [
        Effect::Subscribe(Layer(0)),
        Effect::Send { to: To::Parent, packet },
        Effect::Send { to: To::Group, packet },
        Effect::Send { to: To::Exit(Port(99)), packet },
    ];
    for effect in wrong {
        let (network, _) = net("ormcc", 2, &[(1, Arc::new(Wrong(effect)))]);
        let error = network.run(&Options { until: Time::from_secs_f64(2.0), ..Options::default() });
        let error = error.expect_err("nobody can do that");
        assert!(matches!(error, SimError::Effect { role: "a router", .. }), "{error}");
    }
}
