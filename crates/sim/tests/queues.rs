//! Links that queue. Drop-tail in two phases equals drop-tail, and both engines agree on every discipline.

mod nets;

use faircast_aqm::{Limit, LossCause, QueueSpec, fifo};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{Change, LinkId, Mode, Network, Options, Outcome, UnicastProtocol, UnicastSpec};

fn run(network: &Network, mode: Mode, seconds: f64) -> Outcome {
    let options = Options {
        until: Time::from_secs_f64(seconds),
        mode,
        sample: Span::from_millis(300),
        ..Options::default()
    };
    network.run(&options).expect("a sound network")
}

/// Asserts that the outcomes are equal, except for the number of calendar entries.
#[track_caller]
fn assert_same(a: &Outcome, b: &Outcome, what: &str) {
    assert_eq!(a.digest, b.digest, "{what}: digests of arrivals");
    assert!(a.flows == b.flows, "{what}: flows");
    for (link, (a, b)) in a.links.iter().zip(&b.links).enumerate() {
        assert_eq!(a.counts, b.counts, "{what}: link {link}");
        let first = a.samples.iter().zip(&b.samples).find(|(a, b)| a != b);
        assert_eq!(first, None, "{what}: the first different sample of link {link}");
    }
    assert!(a.taps == b.taps, "{what}: packets on tapped links");
    assert_eq!((a.traversals, a.arrivals), (b.traversals, b.arrivals), "{what}");
}

/// Returns the network with two-phase queues in place of the drop-tail queues of links for which `choose` returns true. Also
/// returns the number of replaced queues.
fn in_two_phases(network: &Network, choose: impl Fn(u32) -> bool) -> (Network, usize) {
    let mut network = network.clone();
    let mut changed = 0;
    for link in (0..network.link_count()).filter(|link| choose(*link)).map(LinkId) {
        if let QueueSpec::DropTail(limit) = network.link_spec(link).queue {
            network.set_queue(link, QueueSpec::Fifo(fifo::Config { limit, drops: fifo::Drops::Tail }));
            changed += 1;
        }
    }
    (network, changed)
}

/// Returns the outcome without traversals, without the counts of lost packets, and without the losses of tapped packets on failed
/// links.
fn without_timing(mut outcome: Outcome) -> Outcome {
    outcome.traversals = 0;
    outcome.links.iter_mut().for_each(|link| link.counts.lost = 0);
    for sample in outcome.links.iter_mut().flat_map(|link| &mut link.samples) {
        sample.counts.lost = 0;
    }
    for tapped in &mut outcome.taps {
        tapped.lost = tapped.lost.filter(|cause| *cause != LossCause::Down);
    }
    outcome
}

#[track_caller]
fn assert_drop_tail(network: &Network, seconds: f64) {
    let known = without_timing(run(network, Mode::Eager, seconds));
    assert!(known.arrivals > 100, "something happens: {}", known.arrivals);
    for (name, thirds) in [("all", 0..3), ("every third", 0..1), ("the others", 1..3)] {
        let (network, changed) = in_two_phases(network, |link| thirds.contains(&(link % 3)));
        assert!(changed > 0);
        for mode in [Mode::Eager, Mode::Evented] {
            let found = without_timing(run(&network, mode, seconds));
            assert_same(&known, &found, &format!("{name}, {mode:?}"));
        }
    }
}

#[test]
fn two_phase_drop_tail_equals_drop_tail_on_stars_and_trees() {
    use nets::Background::{Datagrams, Sessions, Tcp};
    for background in [Tcp, Sessions, Datagrams] {
        assert_drop_tail(&nets::star(8, background), 40.0);
    }
    assert_drop_tail(&nets::tree(4, 5), 40.0);
}

#[test]
fn two_phase_drop_tail_equals_drop_tail_with_rejoins_and_layers() {
    assert_drop_tail(&nets::coming_back(6), 40.0);
    for scheme in ["gmcc", "rlc"] {
        assert_drop_tail(&nets::layered(scheme, 4), 40.0);
    }
}

#[test]
fn two_phase_drop_tail_equals_drop_tail_on_random_networks() {
    for seed in 0..60 {
        let network = nets::random(seed);
        let known = without_timing(run(&network, Mode::Eager, 8.0));
        let (network, _) = in_two_phases(&network, |_| true);
        for mode in [Mode::Eager, Mode::Evented] {
            let found = without_timing(run(&network, mode, 8.0));
            assert_same(&known, &found, &format!("seed {seed}, {mode:?}"));
        }
    }
}

#[test]
fn two_phase_drop_tail_equals_drop_tail_on_a_changing_link() {
    let mut network = nets::star(3, nets::Background::Tcp);
    for (number, at) in (0..12).zip([3.0, 4.5, 4.6, 9.0, 9.2, 13.0, 14.0, 14.00001, 20.0, 25.0, 25.5, 28.0]) {
        let change = match number % 6 {
            0 => Change::Rate(Rate::from_bps(300e3)),
            1 => Change::Delay(Span::from_millis(60)),
            2 => Change::Down,
            3 => Change::Up,
            4 => Change::Rate(Rate::from_mbps(2.0)),
            _ => Change::Delay(Span::from_millis(5)),
        };
        // The first bottleneck, which is probed and tapped.
        network.change(Time::from_secs_f64(at), LinkId(2), change);
    }
    assert_drop_tail(&network, 40.0);
}

#[test]
fn both_engines_agree_on_every_discipline() {
    let texts = [
        "codel",
        "codel,ecn,target=10ms,interval=50ms,limit=30",
        "drr",
        "drr,quantum=600,limit=25,queues=8",
        "drr,limit=20kB",
        "fifo,limit=12,drops=front",
        "cobalt,limit=30,interval=50ms,ecn",
        "fq_codel,limit=30,interval=50ms,queues=4",
        "dualpi2,limit=40",
        "fred,limit=20,w=0.05",
        "sred,limit=20,list=50,ecn",
        "blue,limit=12",
        "sfb,limit=12,size=3,increase=0.05",
        "bred,limit=12",
        "rem,limit=20,target=5,gamma=0.01",
        "rem,limit=20,target=5,gamma=0.01,ecn,marks=departure",
        "pi,limit=20,target=5,flows=2",
        "avq,limit=12,ecn",
        "paqm,limit=20,target=5",
        "sfc,limit=20,target=5,k1=0.01,ecn",
        "pie,limit=40,burst=0,ecn",
        "pie,limit=40,burst=0,delay=length",
    ];
    let (mut early, mut overflow, mut marked) = (0, 0, 0);
    for seed in 0..120 {
        let mut network = if seed % 3 == 2 { nets::random_layered(seed) } else { nets::random(seed) };
        let mut rng = Rng::new(seed, 99);
        for link in (0..network.link_count()).map(LinkId) {
            if rng.chance(0.6) {
                let text = texts[rng.below(texts.len() as u64) as usize];
                network.set_queue(link, text.parse().expect("a queue"));
            }
            if rng.chance(0.1) {
                let at = |rng: &mut Rng| Time::from_secs_f64(7.0 * rng.unit());
                let (delay, rate) = (Span::from_micros(rng.below(60_000)), Rate::from_mbps(0.2 + rng.unit()));
                network.change(at(&mut rng), link, Change::Delay(delay));
                network.change(at(&mut rng), link, Change::Rate(rate));
                let down = at(&mut rng);
                network.change(down, link, Change::Down);
                network.change(down + Span::from_millis(300), link, Change::Up);
            }
        }
        let (eager, evented) = (run(&network, Mode::Eager, 8.0), run(&network, Mode::Evented, 8.0));
        assert_same(&eager, &evented, &format!("seed {seed}"));
        for counts in eager.links.iter().map(|link| link.counts) {
            early += counts.early;
            overflow += counts.overflow;
            marked += counts.marked;
        }
    }
    assert!(early > 1_000 && overflow > 1_000 && marked > 100, "{early}, {overflow}, {marked}");
}

#[test]
fn queued_packets_arrive_earlier_after_the_link_speeds_up() {
    for queue in ["droptail,unlimited", "fifo,limit=unlimited", "red,limit=1000,min=500,max=900"] {
        let mut network = Network::new(1);
        let (from, to) = (network.node(), network.node());
        let slow = nets::link(0.01, 10, 0); // 0.8 s for a packet, so that most would arrive after the end
        let link = network.link(from, to, slow);
        network.set_queue(link, queue.parse().expect("a queue"));
        let rate = Rate::from_bps(80e3); // ten packets a second
        let datagrams = UnicastProtocol::Datagrams { rate, jitter: 0.0 };
        let stop = Time::from_secs_f64(3.95);
        let flow = network.unicast(UnicastSpec { stop, ..nets::unicast(datagrams, from, to, 0.0) });
        network.change(Time::from_secs_f64(4.0), link, Change::Rate(Rate::from_mbps(10.0)));
        for mode in [Mode::Eager, Mode::Evented] {
            let outcome = run(&network, mode, 5.0);
            let flow = &outcome.flows[flow.0 as usize];
            assert_eq!((flow.sent, flow.members[0].packets), (40, 40), "{queue}");
            assert_eq!((outcome.traversals, outcome.arrivals), (40, 40), "{queue}");
        }
    }
}

/// Runs a TCP flow and a session over one bottleneck of 1 Mbit/s. Returns the bottleneck's samples and the outcome.
fn bottleneck(queue: &str) -> (Vec<f64>, Outcome) {
    let mut network = nets::star(1, nets::Background::Tcp);
    network.set_queue(LinkId(2), queue.parse().expect("a queue"));
    network.allow_marks(faircast_sim::FlowId(0));
    let outcome = run(&network, Mode::Eager, 60.0);
    let waiting = outcome.links[2].samples.iter().map(|sample| f64::from(sample.waiting)).collect();
    (waiting, outcome)
}

#[test]
fn codel_shortens_queues_that_drop_tail_fills() {
    let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
    let (full, _) = bottleneck("droptail,100");
    let (short, outcome) = bottleneck("codel,limit=100");
    assert!(mean(&short) < mean(&full) / 3.0, "{} and {}", mean(&short), mean(&full));
    let counts = outcome.links[2].counts;
    assert!(counts.early > 20 && counts.overflow == 0, "{counts:?}");
    let lost = outcome.taps.iter().filter(|tapped| tapped.lost.is_some()).count() as u64;
    assert_eq!(lost, counts.early, "taps know what was dropped at departure");
}

#[test]
fn codel_with_ecn_marks_packets() {
    let (_, outcome) = bottleneck("codel,ecn");
    let counts = outcome.links[2].counts;
    assert!(counts.marked > 20, "{counts:?}");
}

#[test]
fn fair_queue_protects_tcp_from_datagrams() {
    let share = |queue: QueueSpec| {
        let mut network = nets::star(1, nets::Background::Datagrams);
        let (far, near) = (network.node(), faircast_sim::NodeId(2));
        network.duplex(far, faircast_sim::NodeId(1), nets::wide(10.0, 3), nets::wide(10.0, 3));
        let tcp = network.unicast(nets::unicast(nets::reno(), far, near, 0.0));
        let flood = Rate::from_mbps(2.0);
        let flood = UnicastProtocol::Datagrams { rate: flood, jitter: 0.1 };
        network.unicast(nets::unicast(flood, far, near, 0.0));
        network.set_queue(LinkId(2), queue);
        let outcome = run(&network, Mode::Eager, 60.0);
        outcome.flows[tcp.0 as usize].members[0].bytes as f64 * 8.0 / 60.0
    };
    let (fair, unfair) =
        (share("drr,limit=40".parse().expect("a queue")), share(QueueSpec::DropTail(Limit::Packets(40))));
    assert!(unfair < 50e3, "who does not yield gets everything: {unfair}");
    assert!(fair > 200e3, "one of four flows: {fair}");
}
