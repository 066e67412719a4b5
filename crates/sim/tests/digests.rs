//! Recorded digests of the results of each family of networks. A refactoring must not change any digest.
//!
//! After a change of behaviour, renew the digests: `FAIRCAST_BLESS=1 cargo test -p faircast-sim --test digests`. The digests
//! depend on the last bits of the platform's `ln` and `exp`. On a platform with other last bits, `tests/evented_equivalence.rs`
//! still verifies that both engines agree.

mod nets;

use faircast_core::time::{Span, Time};
use faircast_sim::{Islands, Network, Options, Outcome};
use std::fmt::Write as _;

/// Returns the digest of arrivals (packet, location and time), and the counts of packets on links.
fn line(family: &str, networks: &[Network], seconds: f64) -> String {
    let mut line = format!("{family:28}");
    for network in networks {
        let until = Time::from_secs_f64(seconds);
        let options = Options { until, sample: Span::from_millis(300), ..Options::default() };
        let outcome = network.run(&options).expect("a sound network");
        for threads in [2, 4] {
            let (divided, _) =
                nets::in_threads(network, &Options { islands: Islands::AtMost(threads), ..options });
            let found = Outcome { events: outcome.events, ..divided };
            assert!(found == outcome, "{family} on {threads} threads: {:016x}", found.digest);
        }
        let lost: u64 = outcome.links.iter().map(|link| link.counts.offered - link.counts.accepted).sum();
        let cuts: usize = outcome.flows.iter().map(|flow| flow.cuts.len()).sum();
        write!(line, " {:016x}:{}:{lost}:{cuts}", outcome.digest, outcome.traversals).expect("into a string");
    }
    line + "\n"
}

#[test]
fn every_family_of_networks_has_the_recorded_digest() {
    use nets::Background::{Datagrams, None as Nothing, Sessions, Tcp};
    let backgrounds = [Nothing, Tcp, Sessions, Datagrams].map(|background| nets::star(8, background));
    let layered = ["gmcc", "rlc", "smcc"].map(|scheme| nets::layered(scheme, 6));
    let random: Vec<Network> = (0..6).map(nets::random).collect();
    let random_layered: Vec<Network> = (1000..1006).map(nets::random_layered).collect();
    let found = [
        line("star", &backgrounds, 40.0),
        line("star-of-one", &[nets::star(1, Tcp), nets::star(2, Sessions)], 40.0),
        line("tree", &[nets::tree(4, 5)], 40.0),
        line("rough", &[nets::rough_star(8)], 60.0),
        line("membership", &[nets::coming_and_going(6), nets::coming_back(8)], 60.0),
        line("signs-of-life", &[nets::saying(8, None), nets::saying(8, Some(Span::from_millis(250)))], 40.0),
        line("unicast", &[nets::one_tcp(), nets::tcp_star(4), nets::one_sender(30)], 20.0),
        line("layered", &layered, 60.0),
        line("random", &random, 8.0),
        line("random-layered", &random_layered, 8.0),
    ]
    .concat();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/digests.txt");
    if std::env::var_os("FAIRCAST_BLESS").is_some() {
        std::fs::write(path, &found).expect("the page can be written");
    }
    let recorded = std::fs::read_to_string(path).expect("it is in the repository");
    for (found, recorded) in found.lines().zip(recorded.lines()) {
        assert_eq!(
            found, recorded,
            "if that is meant: FAIRCAST_BLESS=1 cargo test -p faircast-sim --test digests"
        );
    }
    assert_eq!(found.lines().count(), recorded.lines().count());
}
