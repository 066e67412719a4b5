//! The documents' figures and tables, run again and compared with what is published.
//!
//! Every [`Entry`] has a scenario file with the published values and the tolerances that were set before anything was
//! measured. A claim that does not hold is reported as not holding.
//!
//! | module | what it holds |
//! |---|---|
//! | [`registry`] | which figures and tables there are |
//! | [`verdict`] | what became of a claim |
//! | [`computed`] | what is computed without a simulation |
//! | [`views`] | the figures |

pub mod computed;
pub mod registry;
#[cfg(test)]
mod tests;
pub mod verdict;
pub mod views;

pub use registry::{Calculated, Embedded, Entry, NoSuchEntry, Open, entries, find};
pub use verdict::{Judged, ReproOutcome, Tolerance, Verdict};

use crate::edit::Edit;
use crate::report::figures::Named;
use crate::results::Results;
use crate::run::{Progress, RunError, RunOptions, run};
use crate::scenario::{Claim, Point, Scenario, Trend};
use std::num::NonZeroUsize;

/// How thoroughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// As the scenario says.
    #[default]
    Full,
    /// Two seeds, a tenth of the time, smaller groups: shows that it works, and decides nothing.
    Quick,
}

/// How to repeat an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Other seeds than the scenario's.
    pub seeds: Option<Vec<u64>>,
    /// Threads; `None` for as many as there are processors.
    pub threads: Option<NonZeroUsize>,
    /// How thoroughly.
    pub pace: Pace,
}

/// An entry that has been repeated.
#[derive(Debug, Clone)]
pub struct Reproduction {
    /// Which.
    pub entry: &'static Entry,
    /// Its claims.
    pub outcome: ReproOutcome,
    /// What was run; `None` when nothing was simulated.
    pub run: Option<Run>,
    /// The figures.
    pub figures: Vec<Named>,
}

/// What was run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The scenario.
    pub scenario: Scenario,
    /// What came of it.
    pub results: Results,
}

/// Parts of the times of a scenario in a quick run.
const QUICK: f64 = 0.1;

impl Embedded {
    /// The scenario, as the settings want it.
    pub fn scenario(&self, settings: &Settings) -> Scenario {
        let text = match settings.pace {
            Pace::Full => self.text.to_owned(),
            Pace::Quick => self.quick_text(),
        };
        let mut scenario = Scenario::parse(&text, self.file).expect("a test parses every embedded scenario");
        match (&settings.seeds, settings.pace) {
            (Some(seeds), _) => scenario.set_seeds(seeds.clone()),
            (None, Pace::Quick) => scenario.set_seeds(vec![1, 2]),
            (None, Pace::Full) => {}
        }
        scenario
    }

    fn quick_text(&self) -> String {
        let mut edit = Edit::of(self.text).expect("a test parses every embedded scenario");
        edit.shorten(QUICK);
        for (path, value) in self.quick {
            edit.set(path, value).expect("a test makes the quick form of every embedded scenario");
        }
        edit.text()
    }
}

/// Repeat an entry.
///
/// # Errors
/// When the simulator refuses its network, or `progress` asked to stop.
pub fn reproduce(
    entry: &'static Entry,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Reproduction, RunError> {
    let (mut claims, mut figures) = (Vec::new(), Vec::new());
    if let Some(calculation) = entry.calculation {
        let done = calculation();
        claims.extend(done.claims);
        figures.extend(done.figures);
    }
    let run = match &entry.scenario {
        None => None,
        Some(embedded) => {
            let scenario = embedded.scenario(settings);
            let options = RunOptions { threads: settings.threads, ..RunOptions::default() };
            let results = run(&scenario, &options, progress)?;
            claims.extend(judge(&scenario, &results));
            figures.extend((embedded.figures)(&scenario, &results));
            Some(Run { scenario, results })
        }
    };
    claims.extend(entry.open.iter().map(|open| {
        let tolerance = Tolerance::Between(None, None);
        Judged { note: open.needs.into(), ..Judged::open(open.name.into(), open.published, tolerance) }
    }));
    Ok(Reproduction { entry, outcome: ReproOutcome { id: entry.id.into(), claims }, run, figures })
}

/// What became of a scenario's claims: one for each claim and point that it is about.
pub fn judge(scenario: &Scenario, results: &Results) -> Vec<Judged> {
    let mut judged = Vec::new();
    for claim in scenario.claims() {
        let points: Vec<&Point> = results.points.iter().filter(|point| claim.is_about(point)).collect();
        if let Some(trend) = &claim.trend {
            let values = trends(claim, trend, &points, results);
            judged.push(one(claim, claim.name.clone(), &values));
            continue;
        }
        let namesakes = scenario.claims().iter().filter(|other| other.name == claim.name).count();
        for point in &points {
            let name = if points.len() == 1 && namesakes == 1 {
                claim.name.clone()
            } else {
                format!("{} ({point})", claim.name)
            };
            judged.push(one(claim, name, &values(claim, point.index, results)));
        }
    }
    judged
}

fn one(claim: &Claim, name: String, values: &[f64]) -> Judged {
    let mut judged = Judged::measured(name, claim.published, tolerance(claim), values);
    if let Some(note) = &claim.note {
        judged.note.clone_from(note);
    }
    judged
}

/// The line through the points, one for each seed.
fn trends(claim: &Claim, trend: &Trend, points: &[&Point], results: &Results) -> Vec<f64> {
    let of = |point: usize, name: &str, seed: u64| {
        let mut rows = results.metrics.iter();
        rows.find(|row| row.point == point && row.seed == seed && row.name == name).map(|row| row.value)
    };
    let line = |&seed: &u64| {
        let place = |point: &&Point| {
            let (x, y) = (of(point.index, &trend.against, seed)?, of(point.index, &claim.of, seed)?);
            Some((x, y))
        };
        let places: Vec<(f64, f64)> = points.iter().filter_map(place).collect();
        trend.scale.fit(&places).map_or(f64::NAN, |fit| fit.get(trend.number))
    };
    results.identity.seeds.iter().map(line).collect()
}

fn tolerance(claim: &Claim) -> Tolerance {
    match (claim.low, claim.high, claim.tolerance) {
        (None, None, Some(part)) => Tolerance::Relative(part),
        (low, high, _) => Tolerance::Between(low, high),
    }
}

/// The claim's value in each run; where it is a ratio, of the two values of the same run.
fn values(claim: &Claim, point: usize, results: &Results) -> Vec<f64> {
    let of = |point: usize, name: &str, seed: u64| {
        let row =
            results.metrics.iter().find(|row| row.point == point && row.seed == seed && row.name == name);
        row.map_or(f64::NAN, |row| row.value)
    };
    let seeds = results.jobs.iter().filter(|(at, _)| *at == point).map(|(_, seed)| *seed);
    let base = claim.base(&results.points, point);
    seeds
        .map(|seed| match &claim.over {
            Some(over) => of(point, &claim.of, seed) / of(base, over, seed),
            None => of(point, &claim.of, seed),
        })
        .collect()
}
