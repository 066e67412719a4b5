//! Rules for claims, fixed before the measurements: widths of accepted ranges, one claim for each statement of a paper, and a ledger
//! of all ranges.

use super::{Entry, Settings, Tolerance, entries, find, statements, tolerance};
use crate::scenario::{Claim, Scenario};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Largest half width of a range, over its middle, unless the paper prints the limits.
const WIDEST: f64 = 0.25;
/// Largest factor between a published number and a single limit.
const FARTHEST: f64 = 2.0;
/// Metrics with a value that they cannot pass, and this value. Their ranges are judged by the distance from it: utilisation cannot
/// exceed 1, and delays have the minima that paper 003 prints.
const ENDS: &[(&str, f64)] = &[
    (".utilisation", 1.0),
    (".layers", 1.0),
    (".layers.end", 1.0),
    ("r4.delay", 0.00336),
    ("r4.delay.max", 0.00336),
    ("r8.delay", 0.777),
    ("r8.delay.max", 0.777),
    ("r12.delay", 0.778),
    ("r12.delay.max", 0.778),
];
/// Axes of sweeps whose values are things that a paper compares, or two readings of it. The values of all other axes are settings of one
/// experiment.
const THINGS: &[&str] = &[
    "scheme",
    "queue",
    "way",
    "mode",
    "policy",
    "with",
    "by",
    "others",
    "beta",
    "localize",
    "mute_after",
    "slow",
];
/// The ledger: a line for each range, as in `000/fig-2.6: name [point] = ±20 % of 4`. Lines are only appended.
const LEDGER: &str = "scenarios/ranges.txt";

/// Returns the entries that are simulated, with their claims.
fn simulated() -> impl Iterator<Item = (&'static Entry, Vec<Claim>)> {
    scenarios().map(|(entry, scenario)| (entry, scenario.claims().to_vec()))
}

/// Returns the entries that are simulated, with their scenarios.
fn scenarios() -> impl Iterator<Item = (&'static Entry, Scenario)> {
    entries().filter_map(|entry| {
        let scenario =
            entry.scenario.as_ref()?.scenario(&Settings::default()).expect("a test reads all scenarios");
        Some((entry, scenario))
    })
}

/// Returns a metric without its window.
fn metric(name: &str) -> &str {
    name.split('@').next().unwrap_or_default()
}

/// Returns the entries that are calculated, with their claims: key, range in the ledger, published value and range.
fn calculated() -> impl Iterator<Item = (String, String, Option<f64>, Tolerance)> {
    let claims = |entry: &'static Entry| {
        entry.calculation.iter().flat_map(|it| it.claims).map(move |claim| (entry, claim))
    };
    entries().flat_map(claims).map(|(entry, claim)| {
        let key = format!("{}: {}", entry.id, claim.name);
        (key, in_figures(claim.tolerance, claim.published), claim.published, claim.tolerance)
    })
}

/// Returns the fault of a claim's range, if it is wider than the rules allow.
fn too_wide(claim: &Claim) -> Option<String> {
    if claim.limits_are_published {
        return None;
    }
    let range = tolerance(claim);
    let (low, high) = range.limits(claim.published);
    too_far_from_an_end(claim, low, high).or_else(|| too_wide_a_range(range, claim.published))
}

/// Returns the fault of a range, by its half width or its distance from the published value.
fn too_wide_a_range(range: Tolerance, published: Option<f64>) -> Option<String> {
    let (low, high) = range.limits(published);
    if let Some(half) = range.half_width(published) {
        return (half > WIDEST + 1e-9).then(|| format!("half width {:.0} %", half * 100.0));
    }
    let published = published.filter(|value| *value > 0.0)?;
    let far =
        (low.is_finite() && low < published / FARTHEST) || (high.is_finite() && high > published * FARTHEST);
    far.then(|| format!("{} is more than a factor of two from {published}", range.words()))
}

/// Returns the fault of a range that is narrow beside its middle, and wide beside the distance from a value that the metric cannot
/// pass. For a ratio with a single limit, this value is 1, where both metrics are equal. A limit of 1 is an order.
fn too_far_from_an_end(claim: &Claim, low: f64, high: f64) -> Option<String> {
    let published = claim.published?;
    if claim.over.is_some() {
        let limit = match (low.is_finite(), high.is_finite()) {
            (true, false) => low,
            (false, true) => high,
            _ => return None,
        };
        let part = (limit - 1.0) / (published - 1.0);
        let far = (limit - 1.0).abs() > 1e-9 && !(1.0 / FARTHEST - 5e-3..=FARTHEST + 5e-3).contains(&part);
        return far.then(|| format!("{limit} is more than a factor of two from {published}, counted from 1"));
    }
    let of = metric(&claim.of);
    let (_, end) = ENDS.iter().find(|(suffix, _)| of.ends_with(suffix))?;
    let distance = (published - end).abs();
    let half = f64::max(published - low, high - published);
    // The limits are rounded.
    let far = half.is_finite() && distance > 0.0 && half > distance * (WIDEST + 0.01);
    far.then(|| format!("{} % of the distance from {end}", (100.0 * half / distance).round()))
}

/// Returns the text by which a claim is known in the ledger.
fn key(entry: &Entry, claim: &Claim) -> String {
    let mut key = format!("{}: {}", entry.id, claim.name);
    for (number, (name, value)) in claim.at.iter().enumerate() {
        write!(key, "{}{name} = {value}", if number == 0 { " [" } else { ", " })
            .expect("a string takes everything");
    }
    if !claim.at.is_empty() {
        key.push(']');
    }
    key
}

/// Describes the range of a claim exactly.
fn exact(claim: &Claim) -> String {
    in_figures(tolerance(claim), claim.published)
}

fn in_figures(range: Tolerance, published: Option<f64>) -> String {
    match (range, published) {
        (Tolerance::Relative(part), Some(value)) => format!("{value} +- {part}"),
        (Tolerance::Between(low, high), _) => {
            let end = |end: Option<f64>| end.map_or_else(String::new, |end| end.to_string());
            format!("{} .. {}", end(low), end(high)).trim().to_owned()
        }
        (Tolerance::Relative(_), None) => unreachable!("a tolerance without a published number is refused"),
    }
}

#[test]
fn ranges_are_at_most_as_wide_as_the_rules_allow() {
    let fault = |(entry, claims): (&Entry, Vec<Claim>)| {
        let fault = move |claim: &Claim| Some(format!("{}: {}", key(entry, claim), too_wide(claim)?));
        claims.iter().filter_map(fault).collect::<Vec<_>>()
    };
    let computed = calculated().filter_map(|(key, _, published, range)| {
        Some(format!("{key}: {}", too_wide_a_range(range, published)?))
    });
    let faults: Vec<String> = simulated().flat_map(fault).chain(computed).collect();
    assert!(faults.is_empty(), "ranges wider than the rules allow:\n{}", faults.join("\n"));
}

/// Two claims about the same value at the same point would count one result twice.
#[test]
fn no_two_claims_are_about_the_same_value() {
    for (entry, claims) in simulated() {
        let mut known = BTreeSet::new();
        for claim in &claims {
            let value = format!(
                "{:?} {:?} {:?} {:?} {:?}",
                claim.of, claim.over, claim.over_at, claim.at, claim.trend
            );
            assert!(known.insert(value), "{} repeats another claim", key(entry, claim));
        }
    }
}

/// A statement of the paper that is tested at several points of a sweep, in several windows or for several receivers counts once.
/// It has one quantity, one published number and one range.
#[test]
fn one_statement_is_one_claim() {
    let digits = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "#");
    for (entry, scenario) in scenarios() {
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
        for claim in scenario.claims() {
            let things: Vec<_> =
                claim.at.iter().filter(|(name, _)| THINGS.contains(&name.as_str())).collect();
            let over = claim.over.as_deref().map(|over| digits(metric(over)));
            let of = digits(metric(&claim.of));
            let (published, range, base) = (claim.published, exact(claim), &claim.over_at);
            let statement =
                format!("{of} {over:?} {base:?} {things:?} {published:?} {range} {:?}", claim.trend);
            let name = statements::name(claim, &scenario);
            let other = known.entry(statement).or_insert_with(|| name.clone());
            assert_eq!(*other, name, "{}: one statement; give both claims a `statement`", entry.id);
            if let Some(statement) = &claim.statement {
                *parts.entry(statement.as_str()).or_default() += 1;
            }
        }
        assert!(parts.values().all(|count| *count > 1), "{}: a `statement` has several claims", entry.id);
    }
}

/// A range has a printed number or is an order, or a note quotes the words of the paper and says that the range is ours. A limit that
/// differs from the printed number has a note, too.
#[test]
fn ranges_of_ours_have_a_note() {
    for (entry, claims) in simulated() {
        for claim in claims.iter().filter(|claim| claim.note.is_none() && claim.contradicts.is_none()) {
            let (low, high) = claim.range();
            let is_one_sided = low == f64::NEG_INFINITY || high == f64::INFINITY;
            let is_order = claim.over.is_some() && is_one_sided && (low == 1.0 || high == 1.0);
            let is_printed =
                claim.published.is_some_and(|value| !is_one_sided || value == low || value == high);
            assert!(is_order || is_printed, "{}: whose range is it? Write a `note`", key(entry, claim));
        }
    }
}

/// A verdict depends on an open value only through `[[chosen]]`.
#[test]
fn open_values_are_choices_and_no_remarks() {
    for (entry, scenario) in scenarios() {
        let about = scenario.about();
        assert!(!about.contains("Ours:") && !about.contains("Ours,"), "{}: make it a `[[chosen]]`", entry.id);
    }
}

/// Equal values with equal intervals of two statements are one result. Values without spread, such as a whole number of layers, are
/// compared within a figure; a floor or a full link is no result.
#[test]
fn no_measured_value_is_judged_twice() {
    let measured = include_str!("../../../../bench/results/papers.json");
    let all: Vec<serde_json::Value> = serde_json::from_str(measured).expect("`bench/papers` wrote it");
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for outcome in &all {
        let id = outcome["id"].as_str().expect("an id");
        if find(id).is_ok_and(|entry| entry.scenario.is_none()) {
            continue;
        }
        for claim in outcome["claims"].as_array().expect("a list") {
            let whole = [claim.clone()];
            let parts = claim["points"].as_array().map_or(whole.as_slice(), Vec::as_slice);
            let mut values = BTreeSet::new();
            for part in parts {
                let (value, interval) = (&part["measured"], &part["interval"]);
                let is_exact = interval[0] == interval[1];
                if is_exact && [0.0, 1.0].iter().any(|end| *value == *end) || value.is_null() {
                    continue;
                }
                values.insert(format!("{} {value} {interval}", if is_exact { id } else { "" }));
            }
            for value in values {
                let name = format!("{id}: {}", claim["name"]);
                let other = known.insert(value, name.clone());
                assert!(other.is_none(), "{other:?} and {name} have the same value");
            }
        }
    }
}

/// A share cannot exceed 1, and the minimum of several values cannot exceed their mean.
#[test]
fn every_claim_can_fail() {
    for (entry, claims) in simulated() {
        for claim in &claims {
            let (low, high) = claim.range();
            let of = claim.of.split('@').next().unwrap_or_default();
            let over = claim.over.as_deref().map(|over| over.split('@').next().unwrap_or_default());
            let is_part = [".loss", ".F", ".jain", ".utilisation"].iter().any(|end| of.ends_with(end))
                && over.is_none();
            let trivial = (low <= 0.0 && high == f64::INFINITY)
                || (is_part && low <= 0.0 && high >= 1.0)
                || (over.is_some_and(|over| of == format!("{over}.min")) && low <= 0.0 && high >= 1.0)
                || (over.is_some_and(|over| of == format!("{over}.max"))
                    && low <= 1.0
                    && high == f64::INFINITY);
            assert!(!trivial, "{} holds with any result", key(entry, claim));
        }
    }
}

/// The ledger has each claim's range from its first day. A claim whose range has to change is withdrawn with a reason, and a new one
/// gets another name.
#[test]
fn ledger_has_the_range_of_every_claim() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(LEDGER);
    let mut text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((key, range)) = line.rsplit_once(" == ") {
            known.insert(key.into(), Some(range.into()));
        } else if let Some((key, _reason)) = line.rsplit_once(" withdrawn: ") {
            assert!(known.insert(key.into(), None).is_some(), "{key} is withdrawn, but was never entered");
        }
    }
    let mut current = BTreeSet::new();
    let mut new = String::new();
    let ranges = |(entry, claims): (&Entry, Vec<Claim>)| {
        claims.iter().map(|claim| (key(entry, claim), exact(claim))).collect::<Vec<_>>()
    };
    let computed = calculated().map(|(key, range, ..)| (key, range));
    for (key, range) in simulated().flat_map(ranges).chain(computed) {
        assert!(current.insert(key.clone()), "two claims are called {key}");
        match known.get(&key) {
            Some(Some(before)) => assert_eq!(*before, range, "the range of {key} must not change"),
            Some(None) => panic!("{key} was withdrawn: give the new claim another name"),
            None => writeln!(new, "{key} == {range}").expect("a string takes everything"),
        }
    }
    for (key, range) in &known {
        assert!(
            range.is_none() || current.contains(key),
            "{key} is missing: append `{key} withdrawn: REASON` to {LEDGER}"
        );
    }
    if std::env::var_os("FAIRCAST_BLESS").is_some() && !new.is_empty() {
        text.push_str(&new);
        std::fs::write(&path, text).expect("the ledger can be written");
    } else {
        assert!(new.is_empty(), "these claims are not in {LEDGER} (FAIRCAST_BLESS=1 appends them):\n{new}");
    }
}

/// Each version of the ledger in the repository's history begins with the version before.
#[test]
fn ledger_is_only_appended_to() {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-C", env!("CARGO_MANIFEST_DIR")]).args(arguments);
        let output = command.output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).expect("git prints UTF-8"))
    };
    let Some(commits) = git(&["log", "--format=%H", "--reverse", "--", LEDGER]) else {
        println!("not a git repository: the history of {LEDGER} is not checked");
        return;
    };
    let mut before = String::new();
    for commit in commits.lines() {
        let text = git(&["show", &format!("{commit}:./{LEDGER}")]).expect("the commit has the ledger");
        assert!(text.starts_with(&before), "commit {commit} changes lines of {LEDGER}");
        before = text;
    }
    let now = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(LEDGER)).unwrap_or_default();
    assert!(now.starts_with(&before), "{LEDGER} differs from its committed version");
}
