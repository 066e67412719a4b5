//! Tests the departures from the papers that a second reader found: the reader's scenarios, and settings of figures.

use faircast_experiments::repro::{Tolerance, judge};
use faircast_experiments::run::{RunOptions, Silent, run};
use faircast_experiments::scenario::Scenario;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use toml_edit::{DocumentMut, Item, Value};

/// Returns the text of a file of this repository.
fn text(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a scenario of the second reader. Each claim states a least value, which the mean must reach.
fn reaches_all_limits(name: &str, change: impl Fn(String) -> String) {
    let text = change(text(&format!("bench/second-look/{name}.toml")));
    let scenario = Scenario::parse(&text, name).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let results = run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
    let judged = judge(&scenario, &results);
    assert!(judged.len() >= 2, "{name} has claims");
    for claim in judged {
        let Tolerance::Between(Some(least), None) = claim.tolerance else { panic!("{name}: {}", claim.name) };
        let measured = claim.measured.unwrap_or(f64::NAN);
        assert!(measured >= least, "{name}: {}: {measured}, at least {least}", claim.name);
    }
}

#[test]
fn mtcp_moves_children_whose_links_other_flows_fill() {
    for name in ["only-child", "both-children", "one-of-two", "udp"] {
        reaches_all_limits(name, |text| text);
    }
}

#[test]
fn rmanp_excludes_all_slow_receivers_in_time() {
    reaches_all_limits("exclusion", |text| {
        text.replace("duration = \"600 s\"", "duration = \"1200 s\"")
            .replace("from = \"500 s\"", "from = \"1100 s\"")
            .replace("to = \"600 s\"", "to = \"1200 s\"")
    });
}

fn figure(name: &str) -> DocumentMut {
    text(&format!("crates/experiments/scenarios/{name}.toml")).parse().expect("a scenario is TOML")
}

/// Returns the value at a path of keys and indices, as text.
fn at(document: &DocumentMut, path: &[&str]) -> String {
    let item = path.iter().fold(document.as_item(), |item, key| match key.parse::<usize>() {
        Ok(place) => item.get(place).unwrap_or(&Item::None),
        Err(_) => item.get(*key).unwrap_or(&Item::None),
    });
    item.to_string().trim().trim_matches('"').to_owned()
}

/// Returns all texts of a document, except those of alternatives.
fn texts(document: &DocumentMut) -> Vec<String> {
    fn of_value(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.value().clone()),
            Value::Array(values) => values.iter().for_each(|value| of_value(value, found)),
            Value::InlineTable(table) => table.iter().for_each(|(_, value)| of_value(value, found)),
            _ => {}
        }
    }
    fn of_item(item: &Item, found: &mut Vec<String>) {
        match item {
            Item::Value(value) => of_value(value, found),
            Item::Table(table) => table.iter().for_each(|(_, item)| of_item(item, found)),
            Item::ArrayOfTables(tables) => {
                tables.iter().flat_map(|table| table.iter()).for_each(|(_, item)| of_item(item, found));
            }
            Item::None => {}
        }
    }
    let mut found = Vec::new();
    let items = document.iter().filter(|(name, _)| !["alternative", "chosen"].contains(name));
    items.for_each(|(_, item)| of_item(item, &mut found));
    found
}

/// Paper 000, chapter 2: figures with the same network.
#[test]
fn figures_of_one_network_have_the_same_settings() {
    let figures =
        ["2.6", "2.7", "2.13", "2.15", "2.16", "2.19"].map(|name| figure(&format!("000/fig-{name}")));
    for path in [
        &["topology", "bottleneck"][..],
        &["topology", "access"],
        &["topology", "leaf", "rate"],
        &["topology", "leaf", "delay"],
    ] {
        let found: BTreeSet<String> = figures.iter().map(|figure| at(figure, path)).collect();
        assert!(found.len() == 1 && !found.contains(""), "{path:?}: {found:?}");
    }
    // Sweeps change only single options of the scheme.
    for flow in figures.iter().flat_map(|figure| figure["flow"].as_array_of_tables().expect("flows")) {
        let scheme = flow.get("scheme").and_then(Item::as_str);
        assert_eq!(scheme.unwrap_or("le-sbcc,preset=published"), "le-sbcc,preset=published", "{flow}");
    }
}

/// Paper 001, 3.1: the figures run with the modified Vegas, and all of them with the same thresholds.
#[test]
fn figures_of_mtcp_run_the_published_scheme() {
    for name in ["fig-2", "fig-3", "fig-5", "fig-7", "fig-9", "fig-11"] {
        assert_eq!(
            at(&figure(&format!("001/{name}")), &["flow", "0", "scheme"]),
            "mtcp,preset=published,alpha=12,beta=18,gamma=12,localize=off",
            "{name}"
        );
    }
}

/// Paper 002, chapters 5 and 6: one version of RED for one sentence, and the algorithm of figure 6.6 under the name of the scheme.
#[test]
fn queues_of_paper_002_are_those_of_the_text() {
    for name in ["5.9", "5.12", "6.7", "6.10", "6.11", "6.12", "6.14"] {
        let figure = figure(&format!("002/fig-{name}"));
        for queue in texts(&figure).iter().filter(|text| text.contains("limit=")) {
            assert!(!queue.starts_with("red,") || queue.starts_with("red,floyd,"), "{name}: {queue}");
        }
        for claim in figure.get("claim").and_then(Item::as_array_of_tables).expect("claims") {
            let judged = claim.get("at").map(|at| at.to_string()).unwrap_or_default();
            assert!(!judged.contains("integral"), "{name}: {claim}");
        }
    }
}

/// Paper 002, 4.7.2: the server runs FreeBSD 2.2.8; up to 100 requests; connections are grouped by measurement.
#[test]
fn servers_of_paper_002_run_reno_from_one_packet() {
    for name in ["fig-4.12", "fig-4.16"] {
        let figure = figure(&format!("002/{name}"));
        let kinds: Vec<String> = texts(&figure).into_iter().filter(|text| text.starts_with("tcp-")).collect();
        assert!(!kinds.is_empty(), "{name}");
        for kind in kinds {
            assert!(kind.starts_with("tcp-reno,") && kind.contains(",initial-window=1"), "{name}: {kind}");
        }
    }
    assert!(text("crates/experiments/scenarios/002/fig-4.16.toml").contains("groups = \"measured\""));
    assert!(text("crates/experiments/scenarios/002/fig-4.12.toml").contains("\"100 of 30 KB\""));
    let delays = text("crates/experiments/scenarios/002/fig-4.5a.toml");
    for delay in ["0 ms", "2 ms", "6 ms", "8 ms", "10 ms", "12 ms"] {
        assert!(delays.contains(&format!("{{ name = \"{delay}\"")), "{delay}");
    }
}
