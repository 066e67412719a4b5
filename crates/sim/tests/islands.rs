//! A network that is divided into islands has the outcome of the whole network, whatever the number of islands and threads.

mod nets;

use faircast_core::time::{Span, Time};
use faircast_sim::{Events, Islands, LinkId, Mode, Network, Options, Outcome};

fn options(mode: Mode, seconds: f64, islands: Islands) -> Options {
    let sample = Span::from_millis(300);
    let until = Time::from_secs_f64(seconds);
    Options {
        until,
        mode,
        islands,
        sample,
        bin: Span::from_millis(900),
        events: Events::On,
        ..Options::default()
    }
}

/// Returns the outcome without the number of calendar entries, which depends on the islands, and the number of islands.
fn run(network: &Network, options: &Options) -> (Outcome, usize) {
    let (outcome, islands) = nets::in_threads(network, options);
    (Outcome { events: 0, ..outcome }, islands)
}

/// Asserts that the outcome does not depend on the islands, in both modes. Returns whether there were several islands.
#[track_caller]
fn assert_islands_agree(network: &Network, seconds: f64, what: &str) -> bool {
    let mut network = network.clone();
    [0.3, 0.7].iter().for_each(|share| network.count_until(Time::from_secs_f64(share * seconds)));
    (0..network.link_count())
        .step_by(3)
        .for_each(|link| network.probe_link(LinkId(link), Span::from_millis(170)));
    let mut most = 1;
    for mode in [Mode::Eager, Mode::Evented] {
        let (whole, _) = run(&network, &options(mode, seconds, Islands::One));
        for parts in if mode == Mode::Eager { 2..=4 } else { 3..=3 } {
            let (divided, islands) = run(&network, &options(mode, seconds, Islands::AtMost(parts)));
            most = most.max(islands);
            assert_eq!(whole.digest, divided.digest, "{what}, {parts} islands, {mode:?}: digest");
            for (flow, (a, b)) in whole.flows.iter().zip(&divided.flows).enumerate() {
                assert!(a == b, "{what}, {parts} islands, {mode:?}: flow {flow}");
            }
            for (link, (a, b)) in whole.links.iter().zip(&divided.links).enumerate() {
                assert_eq!(a, b, "{what}, {parts} islands, {mode:?}: link {link}");
            }
            assert!(whole.log == divided.log, "{what}, {parts} islands, {mode:?}: events");
            assert!(whole == divided, "{what}, {parts} islands, {mode:?}");
        }
    }
    most > 1
}

#[test]
fn islands_agree_on_every_kind_of_network() {
    use nets::Background::{Datagrams, None as Nothing, Sessions, Tcp};
    for background in [Nothing, Tcp, Sessions, Datagrams] {
        assert!(assert_islands_agree(&nets::star(16, background), 15.0, "star"));
    }
    assert!(assert_islands_agree(&nets::tree(4, 5), 10.0, "tree"));
    assert!(assert_islands_agree(&nets::rough_star(8), 30.0, "links that change"));
    assert!(assert_islands_agree(&nets::coming_and_going(6), 30.0, "members that come and go"));
    assert!(assert_islands_agree(&nets::coming_back(8), 20.0, "members that come back"));
    assert!(assert_islands_agree(&nets::saying(8, Some(Span::from_millis(250))), 15.0, "signs of life"));
    assert!(assert_islands_agree(&nets::one_sender(30), 10.0, "many senders on a host"));
    assert!(assert_islands_agree(&nets::one_tcp(), 10.0, "a TCP flow"));
    for scheme in ["gmcc", "rlc", "smcc"] {
        assert!(assert_islands_agree(&nets::layered(scheme, 6), 20.0, scheme));
    }
}

#[test]
fn islands_agree_if_the_packets_of_last_hops_are_logged() {
    assert!(assert_islands_agree(&nets::far_source(40), 15.0, "far source"));
}

/// The number of calendar entries depends on the islands, but not on the threads.
#[test]
fn outcome_of_islands_does_not_depend_on_the_threads() {
    let network = nets::tree(4, 5);
    let options = options(Mode::Eager, 10.0, Islands::AtMost(3));
    let alone = network.run(&options).expect("a sound network");
    let (outcome, islands) = nets::in_threads(&network, &options);
    assert!(islands == 3 && outcome == alone);
}

#[test]
fn small_networks_are_divided_only_on_request() {
    let network = nets::star(16, nets::Background::Tcp);
    let islands = |islands| {
        let options = options(Mode::Eager, 1.0, islands);
        network.engine(&options).expect("a sound network").islands()
    };
    assert_eq!([Islands::One, Islands::IfFaster(4), Islands::AtMost(4)].map(islands), [1, 1, 4]);
}

#[test]
fn islands_agree_on_random_networks() {
    let divided = |seed| assert_islands_agree(&nets::random(seed), 4.0, &format!("seed {seed}"));
    let divided = (0..60).filter(|seed| divided(*seed)).count();
    assert!(divided > 50, "{divided} of 60");
    let divided =
        |seed| assert_islands_agree(&nets::random_layered(seed), 4.0, &format!("layered, seed {seed}"));
    let divided = (1000..1020).filter(|seed| divided(*seed)).count();
    assert!(divided > 15, "{divided} of 20");
}
