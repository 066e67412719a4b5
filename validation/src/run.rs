//! Runs all cases on all processors.

use crate::case::{Case, Net, Reason, Section};
use crate::compare::{Line, Verdict, compare};
use crate::measure::{Values, measure};
use crate::networks::build;
use crate::reference::{Failure, Reference};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum number of our runs for each case.
const FEWEST: u32 = 5;

/// A case with the results of its runs.
#[derive(Debug)]
pub struct Compared<'a> {
    /// Section of the case.
    pub section: &'a Section,
    /// Name of the case.
    pub case: &'a Case,
    /// Number of our runs.
    pub runs: u32,
    /// One line for each quantity; empty if the case has no network.
    pub lines: Vec<Line>,
}

impl Compared<'_> {
    /// Returns the stated reasons for values outside the tolerance. Quantities with the same reason are grouped.
    pub fn reasons(&self) -> Vec<(Vec<&str>, &str)> {
        let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
        for line in self.lines.iter().filter(|line| line.verdict() == Verdict::Explained) {
            let Some(why) = line.explained.as_deref() else { continue };
            match reasons.iter_mut().find(|(_, known)| *known == why) {
                Some((quantities, _)) => quantities.push(&line.quantity),
                None => reasons.push((vec![&line.quantity], why)),
            }
        }
        reasons
    }

    /// Returns the needless reasons, whose quantities are all inside the tolerance: name of the case, and reason.
    pub fn needless_reasons(&self) -> Vec<(&str, &str)> {
        let inside = |quantity: &String| {
            self.lines.iter().all(|line| line.quantity != *quantity || line.verdict() == Verdict::Inside)
        };
        let needless = self.case.reasons.iter().filter(|reason| reason.quantities.iter().all(inside));
        needless.map(|reason| (self.case.name.as_str(), reason.why.as_str())).collect()
    }
}

/// Runs a network once.
///
/// # Errors
/// Fails if the case is invalid.
pub fn run_once(case: &Case, net: &Net, seed: u64) -> Result<Values, Failure> {
    let ready = build(net, seed, case.window_s)?;
    let outcome = ready.network.run(&ready.options);
    let outcome = outcome.map_err(|why| Failure::Simulation { case: case.name.clone(), why })?;
    Ok(measure(&ready, &outcome))
}

/// Runs the cases whose names are `wanted`, and the cases that show their reasons. Each case has `count` runs, or at least as
/// many runs as the reference. Compares the results.
///
/// # Errors
/// Fails if a case is invalid.
pub fn run_all<'a>(
    reference: &'a Reference,
    wanted: &dyn Fn(&str) -> bool,
    count: Option<u32>,
) -> Result<Vec<Compared<'a>>, Failure> {
    let reasons = || reference.cases().filter(|case| wanted(&case.name)).flat_map(|case| &case.reasons);
    let shows = |name: &str| reasons().any(|reason| reason.shown_by.as_deref() == Some(name));
    let all = reference.sections.iter();
    let all = all.flat_map(|section| section.cases.iter().map(move |case| (section, case)));
    let cases: Vec<_> = all.filter(|(_, case)| wanted(&case.name) || shows(&case.name)).collect();
    let values = all_runs(&cases, count)?;
    // A case that shows a reason is compared without reasons of its own.
    let holds = |reason: &Reason, quantity: &str| {
        let Some(other) = &reason.shown_by else { return true };
        let at = cases.iter().position(|(_, case)| case.name == *other);
        let lines = at.and_then(|at| compare(cases[at].1, &values[at], &|_, _| false).ok());
        let found = lines.iter().flatten().find(|line| line.quantity == quantity);
        found.is_some_and(|line| line.verdict() == Verdict::Inside)
    };
    let mut compared = Vec::new();
    for (&(section, case), values) in cases.iter().zip(&values) {
        let lines = if values.is_empty() { Vec::new() } else { compare(case, values, &holds)? };
        compared.push(Compared { section, case, runs: values.len() as u32, lines });
    }
    Ok(compared)
}

fn all_runs(cases: &[(&Section, &Case)], count: Option<u32>) -> Result<Vec<Vec<Values>>, Failure> {
    let runs = |case: &Case| {
        let again = case.again.as_ref().map_or(0, |again| again.runs);
        let usual = count.unwrap_or(case.runs.max(again).max(FEWEST));
        if case.network.is_ok() { u64::from(usual) } else { 0 }
    };
    let of =
        |(number, (_, case)): (usize, &(&Section, &Case))| (1..=runs(case)).map(move |seed| (number, seed));
    let jobs: Vec<(usize, u64)> = cases.iter().enumerate().flat_map(of).collect();
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Values, Failure>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(number, seed)) = jobs.get(place) else { return };
                    let (_, case) = cases[number];
                    let Ok(net) = &case.network else { continue };
                    let result = run_once(case, net, seed);
                    *done[place].lock().expect("no worker panics while it holds this") = Some(result);
                }
            });
        }
    });
    let mut values: Vec<Vec<Values>> = cases.iter().map(|_| Vec::new()).collect();
    for ((number, _), result) in jobs.iter().zip(done) {
        let result = result.into_inner().expect("no worker panics while it holds this");
        values[*number].push(result.expect("every job was taken")?);
    }
    Ok(values)
}
