//! Tests sessions of several layers, parts of groups, and lines through metrics.

use super::{flow, member, seconds};
use crate::results::measure;
use crate::scenario::Scenario;
use crate::table::Column;
use faircast_core::node::{Observation, Tally};
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{LayerOutcome, LinkOutcome, Outcome, SourceSample};

/// Three receivers; the third joins at 4 s.
const THREE: &str = "title = \"t\"\nduration = \"10 s\"\nstart_jitter = 0\n[topology]\nkind = \"star\"\nleaves = 3\n\
    [[flow]]\nname = \"m\"\nkind = \"session\"\nscheme = \"rlc\"\nfrom = \"src1\"\nto = \"leaf*\"\n\
    join = [0, 0, \"4 s\"]\nparts = [{ name = \"first\", receivers = \"leaf1\" }, { name = \"rest\", receivers = \"leaf[2-3]\" }]\n\
    [[window]]\nname = \"late\"\nfrom = \"5 s\"\nto = \"10 s\"\n\
    [[fit]]\nname = \"line\"\nof = [\"m.first.rate\", \"m.rest.rate\"]\nagainst = [\"40 kbit/s\", 80e3]\n\
    [[fit]]\nname = \"power\"\nof = [\"m.first.rate\", \"m.rest.rate\"]\nagainst = [1, \"m.rest.layers.max\"]\nscale = \"log\"\n";

fn at(changes: &[(u64, u8)]) -> Vec<(Time, u8)> {
    changes.iter().map(|&(second, highest)| (seconds(second), highest)).collect()
}

fn view(rate: f64) -> Observation {
    Observation {
        rate: Rate::from_bps(rate),
        rtt: Span::ZERO,
        limiting: None,
        level: None,
        rtt_max: Span::ZERO,
        cuts: 0,
        tally: Tally::default(),
        starting: false,
    }
}

fn measured() -> measure::Measured {
    let scenario = Scenario::parse(THREE, "three.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let layout = scenario.layout(0, 1);
    let bins = |bytes| [bytes; 10];
    let mut members = vec![member(bins(5_000), 3, 1), member(bins(10_000), 2, 0), member(bins(10_000), 4, 0)];
    members[0].subscriptions = at(&[(2, 1), (6, 2), (8, 0)]);
    members[1].subscriptions = at(&[(2, 1), (7, 2)]);
    members[2].subscriptions = at(&[(5, 2)]);
    let mut session = flow(members);
    let sample = |second| SourceSample::Session { at: seconds(second), view: view(100e3) };
    session.samples = (0..10).map(sample).collect();
    let layer = |rate| LayerOutcome { sent: 1, bytes: 1000, rates: vec![Rate::from_bps(rate); 10] };
    session.layers = vec![layer(64e3), layer(36e3), layer(0.0)];
    let links = vec![LinkOutcome::default(); layout.links()];
    let outcome = Outcome { flows: vec![session], links, ..Outcome::default() };
    measure::measure(scenario.plan(0), &layout, &outcome)
}

#[track_caller]
fn is(name: &str, expected: f64) {
    let all = measured().metrics;
    let found = all.iter().find(|(known, _)| known == name);
    let value = found.unwrap_or_else(|| panic!("no {name} in {all:?}")).1;
    assert!((value - expected).abs() < 1e-9, "{name}: {value}");
}

#[test]
fn number_of_layers_is_averaged_while_the_receiver_is_present() {
    is("m.first.layers", (2.0 + 4.0 * 2.0 + 2.0 * 3.0 + 2.0) / 10.0);
    is("m.first.layers.end", 1.0);
    is("m.first.layers.max", 3.0);
    is("m.first.layers@late", (2.0 + 6.0 + 2.0) / 5.0);
    is("m.rest.layers.end", 3.0);
    // The second receiver has 1, 2 and 3 layers for 2, 5 and 3 s. The third receiver has 1 and 3 layers for 1 and 5 s.
    is("m.rest.layers", f64::midpoint((2.0 + 10.0 + 9.0) / 10.0, (1.0 + 15.0) / 6.0));
}

#[test]
fn joins_and_leaves_of_layers_are_counted_with_their_times() {
    is("m.joins", 6.0);
    is("m.leaves", 2.0);
    is("m.joins.max", 2.0);
    is("m.rest.joins", 4.0);
    is("m.rest.joins@late", 3.0);
    is("m.first.leaves", 2.0);
    is("m.first.join.1", 2.0);
    is("m.first.join.2", 6.0);
    is("m.join.3", 5.0);
    is("m.first.leave.1", 8.0);
    is("m.first.leave.2", 8.0);
    assert!(measured().metrics.iter().all(|(name, _)| !name.starts_with("m.rest.leave.")), "nobody left");
}

#[test]
fn agreement_is_the_time_share_with_equal_numbers_of_layers() {
    // The first two receivers have the same number of layers until 4 s, and all three from 7 to 8 s.
    is("m.layers.agreement", 0.5);
    is("m.rest.layers.agreement", 3.0 / 6.0);
    assert!(measured().metrics.iter().all(|(name, _)| name != "m.first.layers.agreement"), "with whom?");
}

#[test]
fn parts_of_a_group_have_their_own_rates_and_counts() {
    is("m.first.rate", 40e3);
    is("m.rest.rate", 80e3);
    is("m.rest.reports", 6.0);
    is("m.first.suppressed", 1.0);
    is("m.rest.jain", 1.0);
    is("m.first.goodput", 40e3);
}

#[test]
fn fitted_lines_become_metrics_of_the_run() {
    is("fit.line.slope", 1.0);
    is("fit.line.intercept", 0.0);
    is("fit.line.r2", 1.0);
    is("fit.power.slope", 2f64.ln() / 3f64.ln());
}

#[test]
fn layer_rates_and_subscription_steps_are_recorded() {
    is("m.layer.1.rate", 64e3);
    is("m.layer.3.rate", 0.0);
    let tables = measured().tables;
    let steps = tables.iter().find(|table| table.name == "subscriptions").expect("always there");
    assert_eq!(steps.column("layers"), Some(&Column::Whole(vec![1, 2, 3, 1, 1, 2, 3, 1, 3])));
    let layers = tables.iter().find(|table| table.name == "layers").expect("always there");
    assert_eq!(layers.rows(), 30);
}
