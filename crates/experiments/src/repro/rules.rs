//! Rules for claims, fixed before the measurements: widths of accepted ranges, duplicates, and a ledger of all ranges.

use super::{Entry, Settings, Tolerance, entries, tolerance};
use crate::scenario::Claim;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Largest half width of a range, over its middle, unless the paper prints the limits.
const WIDEST: f64 = 0.25;
/// Largest factor between a published number and a single limit.
const FARTHEST: f64 = 2.0;
/// The ledger: a line for each range, as in `000/fig-2.6: name [point] = ±20 % of 4`. Lines are only appended.
const LEDGER: &str = "scenarios/ranges.txt";

/// Returns the entries that are simulated, with their claims.
fn simulated() -> impl Iterator<Item = (&'static Entry, Vec<Claim>)> {
    entries().filter_map(|entry| {
        let scenario =
            entry.scenario.as_ref()?.scenario(&Settings::default()).expect("a test reads all scenarios");
        Some((entry, scenario.claims().to_vec()))
    })
}

/// Returns the fault of a claim's range, if it is wider than the rules allow.
fn too_wide(claim: &Claim) -> Option<String> {
    if claim.limits_are_published {
        return None;
    }
    let range = tolerance(claim);
    let (low, high) = range.limits(claim.published);
    if let Some(half) = range.half_width(claim.published) {
        return (half > WIDEST + 1e-9).then(|| format!("half width {:.0} %", half * 100.0));
    }
    let published = claim.published.filter(|value| *value > 0.0)?;
    let far =
        (low.is_finite() && low < published / FARTHEST) || (high.is_finite() && high > published * FARTHEST);
    far.then(|| format!("{} is more than a factor of two from {published}", range.words()))
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

/// Describes a range exactly.
fn exact(claim: &Claim) -> String {
    match (tolerance(claim), claim.published) {
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
    let faults: Vec<String> = simulated()
        .flat_map(|(entry, claims)| {
            let fault = move |claim: &Claim| Some(format!("{}: {}", key(entry, claim), too_wide(claim)?));
            claims.iter().filter_map(fault).collect::<Vec<_>>()
        })
        .collect();
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
    for (entry, claims) in simulated() {
        for claim in &claims {
            let (key, range) = (key(entry, claim), exact(claim));
            assert!(current.insert(key.clone()), "two claims are called {key}");
            match known.get(&key) {
                Some(Some(before)) => assert_eq!(*before, range, "the range of {key} must not change"),
                Some(None) => panic!("{key} was withdrawn: give the new claim another name"),
                None => writeln!(new, "{key} == {range}").expect("a string takes everything"),
            }
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
