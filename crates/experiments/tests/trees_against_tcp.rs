//! Tests sessions with agents or active routers that compete with a TCP flow at every exit of a network.

use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_experiments::run::{RunOptions, Silent, run};
use faircast_experiments::scenario::Scenario;

/// Returns a scenario with a network tree of two levels and nine exits, each with a TCP flow. `tree` has the keys for a session
/// with agents. `routers` is the function of the active routers, or empty.
fn exits(scheme: &str, tree: &str, routers: &str) -> String {
    let routers = if routers.is_empty() {
        String::new()
    } else {
        format!("[[router]]\nis = \"{routers}\"\nat = [\"root\", \"r1.*\"]\n")
    };
    let windows: String = (40..120)
        .step_by(20)
        .map(|from| {
            format!("[[window]]\nname = \"from{from}\"\nfrom = \"{from} s\"\nto = \"{} s\"\n", from + 20)
        })
        .collect();
    format!(
        r#"
title = "A tree with TCP at every exit"
duration = "120 s"
warmup = "20 s"
seeds = 3
[topology]
kind = "tree"
fanout = [3, 3]
sources = 2
level = [
  {{ rate = "100 Mbit/s", delay = "10 ms", queue = "200 packets" }},
  {{ rate = "2 Mbit/s", delay = "10 ms .. 30 ms", queue = "40 packets" }},
]
[[flow]]
name = "group"
kind = "session"
scheme = "{scheme}"
{tree}
from = "src1"
to = "leaf*"
[[flow]]
name = "tcp"
kind = "tcp-sack,jitter=2ms"
from = "src2"
to = "leaf*"
{routers}{windows}"#
    )
}

fn metric(text: &str, names: &[&str]) -> Vec<Vec<f64>> {
    let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let results = run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
    names
        .iter()
        .map(|name| {
            let values = results.metric(0, name);
            assert!(!values.is_empty(), "{name} is measured");
            values
        })
        .collect()
}

#[test]
fn sessions_make_progress_with_competing_tcp_at_every_exit() {
    let mut tried = 0;
    for scheme in CATALOGUE.iter().map(|entry| entry.name) {
        let plain: Scheme = scheme.parse().expect("a scheme of the catalogue");
        // A session tree requires repairs by parents, which are an option of MTCP.
        let (text, tree) = match plain.routers().is_some() {
            true => (scheme.to_owned(), ""),
            false => (format!("{scheme},preset=published"), "fan_out = 2"),
        };
        let parsed: Scheme = text.parse().expect("a scheme of the catalogue");
        let routers = match scheme {
            "raccoom" => "acknowledgements",
            "rmanp" => "rmanp",
            _ if parsed.agents().is_some() => "",
            _ => continue,
        };
        tried += 1;
        let names = [
            "group.rate.min@from40",
            "group.rate.min@from60",
            "group.rate.min@from80",
            "group.rate.min@from100",
        ];
        for (name, rates) in names.iter().zip(metric(&exits(&text, tree, routers), &names)) {
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(least >= 8_000.0, "{scheme}: {name} is {rates:?}, less than a packet a second");
        }
    }
    assert!(tried >= 3, "MTCP, RACCOOM and RMANP at least");
}

/// Returns a scenario with this topology, this fan-out of the session, and a TCP flow at each of these exits.
fn shared(topology: &str, fan_out: u32, exits: &str) -> String {
    format!(
        r#"
title = "MTCP in a tree beside TCP"
duration = "120 s"
warmup = "20 s"
seeds = 4
[topology]
sources = 2
{topology}
[[flow]]
name = "group"
kind = "session"
scheme = "mtcp,preset=published"
fan_out = {fan_out}
from = "src1"
to = "leaf*"
[[flow]]
name = "tcp"
kind = "tcp-sack"
from = "src2"
to = [{exits}]
[[window]]
name = "late"
from = "60 s"
to = "120 s"
"#
    )
}

/// The reports to agents cross links that TCP fills, and many of these reports are lost.
#[test]
fn mtcp_in_a_tree_gets_at_least_three_tenths_of_tcps_rate() {
    let star = r#"
kind = "star"
leaves = 20
leaf = { rate = "2 Mbit/s", delay = "20 ms", queue = "50 packets" }"#;
    let tree = r#"
kind = "tree"
fanout = [10, 10]
level = [
  { rate = "4 Mbit/s", delay = "10 ms", queue = "50 packets" },
  { rate = "3 Mbit/s", delay = "10 ms", queue = "50 packets" },
]"#;
    let cases = [shared(star, 2, r#""leaf1""#), shared(tree, 4, r#""leaf1", "leaf3", "leaf5""#)];
    for text in cases {
        let measured = metric(&text, &["group.rate.min@late", "tcp.rate@late"]);
        for (group, tcp) in measured[0].iter().zip(&measured[1]) {
            assert!(*group >= 0.3 * tcp, "{group} bit/s beside {tcp} in {text}");
        }
    }
}
