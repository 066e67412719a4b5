//! Tests that forecasts are close to the real cost of runs.

use faircast_experiments::run::forecast::forecast;
use faircast_experiments::run::stored_results::StoredResults;
use faircast_experiments::run::{RunOptions, Silent, run};
use faircast_experiments::scenario::{Scenario, TEMPLATES};
use std::num::NonZeroUsize;

fn scenario(text: &str) -> Scenario {
    let mut scenario = Scenario::parse(text, "t.toml").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    scenario.set_seeds(vec![1]);
    scenario
}

fn options() -> RunOptions {
    RunOptions { threads: NonZeroUsize::new(1), ..RunOptions::default() }
}

/// Returns the ratio of the forecast number of link traversals to the number in the run.
fn ratio(text: &str) -> f64 {
    let scenario = scenario(text);
    let ahead = forecast(&scenario, &options()).expect("it may be run");
    let results = run(&scenario, &options(), &Silent).expect("it runs");
    ahead.traversals / results.totals.traversals as f64
}

const NETWORK: &str = r#"
title = "Flows of all kinds"
duration = "60 s"

[topology]
kind = "dumbbell"
sources = 2
leaves = 10
bottleneck = { rate = "4 Mbit/s", delay = "20 ms", queue = "50 packets" }
"#;

#[test]
fn forecast_packet_counts_are_at_most_a_factor_of_two_wrong() {
    let flow = |lines: &str| format!("{NETWORK}\n[[flow]]\nname = \"a\"\nfrom = \"src1\"\n{lines}");
    let session = "kind = \"session\"\nscheme = \"ormcc\"\nto = \"leaf*\"\n";
    let tcp = "kind = \"tcp-sack\"\nto = \"leaf1\"\n";
    let layered = flow("kind = \"session\"\nscheme = \"rlc\"\nto = \"leaf*\"\n");
    let mut cases: Vec<(String, String)> =
        TEMPLATES.iter().map(|template| (template.name.to_owned(), template.text.to_owned())).collect();
    for (name, text) in [
        ("session", flow(session)),
        ("a session for half of the time", flow(&format!("{session}start = \"30 s\"\n"))),
        ("a session of layers", layered),
        ("tcp", flow(tcp)),
        ("ten of tcp", flow(&format!("{tcp}count = 10\n"))),
        ("a small window", flow("kind = \"tcp-sack,window=4\"\nto = \"leaf1\"\n")),
        ("random loss", flow(tcp).replace("50 packets\"", "50 packets\", loss = \"2 %\"")),
        ("datagrams", flow("kind = \"udp\"\nrate = \"100 kbit/s\"\nto = \"leaf*\"\n")),
        (
            "datagrams beside tcp",
            format!(
                "{}\n[[flow]]\nname = \"b\"\nkind = \"udp\"\nrate = \"3 Mbit/s\"\nfrom = \"src2\"\nto = \"leaf2\"\n",
                flow(tcp)
            ),
        ),
        ("a file", flow(&format!("{tcp}packets = 300\n"))),
    ] {
        cases.push((name.to_owned(), text));
    }
    let mut wrong = Vec::new();
    for (name, text) in cases {
        let ratio = ratio(&text);
        println!("{name}: {ratio:.2}");
        if !(0.5..2.0).contains(&ratio) {
            wrong.push((name, ratio));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn forecast_excludes_stored_runs() {
    let place = tempfile::tempdir().expect("a directory");
    let kept = StoredResults::at(place.path()).expect("it can be written");
    let text =
        format!("{NETWORK}\n[[flow]]\nname = \"a\"\nfrom = \"src1\"\nkind = \"tcp-sack\"\nto = \"leaf1\"\n");
    let mut scenario = scenario(&text);
    let options = RunOptions { kept: Some(kept), ..options() };
    run(&scenario, &options, &Silent).expect("it runs");
    let done = forecast(&scenario, &options).expect("it may be run");
    assert_eq!((done.runs, done.stored, done.simulated, done.traversals), (1, 1, 0.0, 0.0));
    scenario.set_seeds(vec![1, 2, 3]);
    let rest = forecast(&scenario, &options).expect("it may be run");
    assert_eq!((rest.runs, rest.stored, rest.simulated), (3, 1, 120.0));
    let all = forecast(&scenario, &RunOptions { kept: None, ..options }).expect("it may be run");
    // Flows start at different times with other seeds.
    assert!((all.traversals / rest.traversals - 1.5).abs() < 0.05, "{all:?} {rest:?}");
}
