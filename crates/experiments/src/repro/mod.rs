//! The papers' figures and tables, reproduced and compared with the published ones.
//!
//! Every [`Entry`] has a scenario file with the published values and with tolerances that were set before any measurement. If a
//! claim does not hold, the report states this.
//!
//! | module | contents |
//! |---|---|
//! | [`registry`] | the list of figures and tables |
//! | [`verdict`] | verdicts about claims |
//! | `statements` | statements that are tested at several points |
//! | `summary_claims` | claims that summarize other figures and tables |
//! | `alternatives` | runs with other values where a paper leaves a value open |
//! | [`views`] | the figures |

mod alternatives;
pub mod downloads;
pub mod registry;
#[cfg(test)]
mod rules;
mod statements;
mod summary_claims;
#[cfg(test)]
mod tests;
pub mod verdict;
pub mod views;

pub use alternatives::Alternative;
pub use registry::{
    Calculated, DOCUMENTS, Declared, Document, Embedded, Entry, NoSuchEntry, Open, Restated, entries, find,
};
pub use verdict::{Judged, ReproOutcome, Tolerance, Tried, Verdict};

use crate::edit::{Edit, EditError};
use crate::figures::Named;
use crate::results::Results;
use crate::run::stored_results::StoredResults;
use crate::run::{Progress, RunError, RunOptions, run};
use crate::scenario::{Choice, Claim, Diagnostics, Point, Scenario, Trend, When, memory};
use std::num::NonZeroUsize;

/// Reason why an entry cannot be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproError {
    /// A key to set does not exist.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The changed scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] Diagnostics),
    /// The simulation failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Thoroughness of a reproduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// Full: all seeds and times of the scenario.
    #[default]
    Full,
    /// Quick: two seeds, a tenth of the time, smaller groups. A quick run only checks that the scenario runs, and gives no
    /// verdict.
    Quick,
}

/// Settings of a reproduction.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Seeds that replace the scenario's.
    pub seeds: Option<Vec<u64>>,
    /// Number of threads; `None` means the number of processors.
    pub threads: Option<NonZeroUsize>,
    /// Thoroughness.
    pub pace: Pace,
    /// Keys of the scenario to set, with their values, for [`Edit::set`].
    pub set: Vec<(String, String)>,
    /// Maximum number of seeds for a run with an alternative value, where a paper leaves the value open. With 0, there are no
    /// such runs.
    pub alternatives: usize,
    /// Store of earlier runs, which are reused; new runs are added.
    pub kept: Option<StoredResults>,
    /// Memory limit for a scenario's runs in bytes, compared with an estimate; `None` for
    /// [`DEFAULT`](faircast_topology::memory::DEFAULT).
    pub memory: Option<u64>,
}

impl Settings {
    fn options(&self) -> RunOptions {
        RunOptions {
            threads: self.threads,
            kept: self.kept.clone(),
            memory: self.memory,
            ..RunOptions::default()
        }
    }
}

/// A reproduced entry.
#[derive(Debug, Clone)]
pub struct Reproduction {
    /// The entry.
    pub entry: &'static Entry,
    /// The judged claims.
    pub outcome: ReproOutcome,
    /// The simulated run; `None` when nothing was simulated.
    pub run: Option<Run>,
    /// The figures.
    pub figures: Vec<Named>,
    /// Results with alternative values where the paper leaves a value open.
    pub alternatives: Vec<Alternative>,
}

/// A scenario that was run, and its results.
#[derive(Debug, Clone)]
pub struct Run {
    /// The scenario.
    pub scenario: Scenario,
    /// Metrics, counters and samples of the run.
    pub results: Results,
}

/// Factor by which a quick run multiplies the times of a scenario.
const QUICK: f64 = 0.1;

impl Embedded {
    /// Returns the scenario with the changes of these settings.
    ///
    /// # Errors
    /// If a key of [`Settings::set`] does not exist, or the value of the key makes the scenario invalid.
    pub fn scenario(&self, settings: &Settings) -> Result<Scenario, ReproError> {
        self.scenario_with(settings, &[])
    }

    /// Returns the scenario with the changes of these settings and the further changes `set`.
    fn scenario_with(&self, settings: &Settings, set: &[(String, String)]) -> Result<Scenario, ReproError> {
        let mut text = match settings.pace {
            Pace::Full => self.text.to_owned(),
            Pace::Quick => self.quick_text(),
        };
        if !(settings.set.is_empty() && set.is_empty()) {
            let mut edit = Edit::of(&text)?;
            for (path, value) in settings.set.iter().chain(set) {
                edit.set(path, value)?;
            }
            text = edit.text();
        }
        let mut scenario =
            Scenario::parse_within(&text, self.file, settings.memory.unwrap_or(memory::DEFAULT))?;
        match (&settings.seeds, settings.pace) {
            (Some(seeds), _) => scenario.set_seeds(seeds.clone()),
            (None, Pace::Quick) => scenario.set_seeds(vec![1, 2]),
            (None, Pace::Full) => {}
        }
        Ok(scenario)
    }

    fn quick_text(&self) -> String {
        let mut edit = Edit::of(self.text).expect("a test parses every embedded scenario");
        edit.shorten(QUICK);
        for (path, value) in &self.quick {
            edit.set(path, value).expect("a test makes the quick form of every embedded scenario");
        }
        edit.text()
    }
}

/// Random seeds of calculations that simulate, unless the settings name others.
const CALCULATION_SEEDS: [u64; 10] = [9701, 9702, 9703, 9704, 9705, 9706, 9707, 9708, 9709, 9710];

/// Reproduces an entry.
///
/// # Errors
/// If a key to set does not exist, the value of a key makes the scenario invalid, the simulator refuses the network, or
/// `progress` requested to stop.
pub fn reproduce(
    entry: &'static Entry,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Reproduction, ReproError> {
    let (mut claims, mut figures, mut alternatives) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(calculation) = entry.calculation {
        let done = (calculation.run)(settings.seeds.as_deref().unwrap_or(&CALCULATION_SEEDS));
        claims.extend(statements::fold(calculation.judge(&done.values)));
        figures.extend(done.figures);
    }
    let run = match &entry.scenario {
        None => None,
        Some(embedded) => {
            let scenario = embedded.scenario(settings)?;
            alternatives = alternatives::run_all(embedded, &scenario, settings, progress)?;
            let results = run(&scenario, &settings.options(), progress)?;
            let (of, mut judged): (Vec<&Claim>, Vec<Judged>) =
                points(&scenario, &results).into_iter().unzip();
            confirm(&mut judged, &scenario, &alternatives);
            let statements = of.into_iter().map(|claim| statements::name(claim, &scenario));
            let mut judged = statements::fold(statements.zip(judged));
            list_tries(&mut judged, &scenario, &alternatives);
            claims.extend(judged);
            figures.extend((embedded.figures)(&scenario, &results));
            Some(Run { scenario, results })
        }
    };
    claims.extend(entry.open.iter().map(|open| {
        let tolerance = Tolerance::Between(None, None);
        Judged { note: open.needs.clone(), ..Judged::open(open.name.clone(), open.published, tolerance) }
    }));
    claims.extend(summary_claims::judge_all(&entry.restates, settings, progress)?);
    Ok(Reproduction {
        entry,
        outcome: ReproOutcome { id: entry.id.clone(), claims },
        run,
        figures,
        alternatives,
    })
}

/// Judges the claims of a scenario. A claim about a trend has a single verdict. Any other claim has one verdict for each of its
/// points.
pub fn judge(scenario: &Scenario, results: &Results) -> Vec<Judged> {
    points(scenario, results).into_iter().map(|(_, judged)| judged).collect()
}

/// Judges the claims of a scenario at each point.
fn points<'a>(scenario: &'a Scenario, results: &Results) -> Vec<(&'a Claim, Judged)> {
    let mut judged = Vec::new();
    for claim in scenario.claims() {
        let points: Vec<&Point> = results.points.iter().filter(|point| claim.is_about(point)).collect();
        if let Some(trend) = &claim.trend {
            let values = trends(claim, trend, &points, results);
            let measured = Judged::measured(claim.name.clone(), claim.published, tolerance(claim), &values);
            judged.push((claim, one(scenario, claim, measured)));
            continue;
        }
        let namesakes = scenario.claims().iter().filter(|other| other.name == claim.name).count();
        for point in &points {
            // A value over itself is no result.
            if claim.over.as_ref() == Some(&claim.of)
                && claim.base(&results.points, point.index) == point.index
            {
                continue;
            }
            let name = if points.len() == 1 && namesakes == 1 {
                claim.name.clone()
            } else {
                format!("{} ({point})", claim.name)
            };
            let measured = match &claim.over {
                None => {
                    let values = values(&claim.of, point.index, results);
                    Judged::measured(name, claim.published, tolerance(claim), &values)
                }
                Some(over) => {
                    let pairs = pairs(claim, over, point.index, results);
                    let ratios: Vec<f64> = pairs.iter().map(|(value, base)| value / base).collect();
                    Judged::measured(name, claim.published, tolerance(claim), &ratios).by_differences(&pairs)
                }
            };
            judged.push((claim, one(scenario, claim, measured)));
        }
    }
    judged
}

/// Completes the verdict about a claim from its choices and its contradiction, and adds its note.
fn one(scenario: &Scenario, claim: &Claim, mut judged: Judged) -> Judged {
    let chosen = || {
        scenario.choices().iter().any(|choice| choice.when != When::Before && choice.concerns(&claim.name))
    };
    judged.verdict = match judged.verdict {
        Verdict::Holds if chosen() => Verdict::Chosen,
        Verdict::Fails if claim.contradicts.is_some() => Verdict::Contradicts,
        verdict => verdict,
    };
    if let Some(note) = claim.contradicts.as_ref().filter(|_| judged.verdict == Verdict::Contradicts) {
        judged.note.clone_from(note);
    } else if let Some(note) = &claim.note {
        let before = std::mem::take(&mut judged.note);
        judged.note = if before.is_empty() { note.clone() } else { format!("{before}; {note}") };
    }
    judged
}

/// Changes [`Verdict::Chosen`] to [`Verdict::Holds`] for claims that hold with all alternatives of choices made with knowledge of the
/// published numbers. Each of these choices must have an alternative that was run, and the whole interval with the alternative must
/// be in the range.
fn confirm(claims: &mut [Judged], scenario: &Scenario, alternatives: &[Alternative]) {
    for judged in claims.iter_mut().filter(|claim| claim.verdict == Verdict::Chosen) {
        let holds = |other: &Alternative| {
            let same = other.claims.iter().find(|claim| claim.name == judged.name);
            same.is_some_and(|claim| matches!(claim.verdict, Verdict::Holds | Verdict::Chosen))
        };
        let is_confirmed = |(number, _): (usize, &Choice)| {
            let mut others = alternatives.iter().filter(|other| other.choice == number).peekable();
            others.peek().is_some() && others.all(holds)
        };
        let mut choices = scenario.choices().iter().enumerate();
        if choices.all(|it| it.1.when == When::Before || !it.1.concerns(&judged.name) || is_confirmed(it)) {
            judged.verdict = Verdict::Holds;
        }
    }
}

/// Adds to each failing claim its values with the alternatives that concern it. An alternative is accepted if it is accepted at all
/// points of the claim. The value is that of the point that is the worst with the alternative.
fn list_tries(claims: &mut [Judged], scenario: &Scenario, alternatives: &[Alternative]) {
    for judged in claims.iter_mut().filter(|claim| claim.verdict == Verdict::Fails) {
        let of = |part: &Judged, other: &Alternative| {
            let concerns = scenario.choices()[other.choice].concerns(&part.name);
            let found = other.claims.iter().find(|claim| concerns && claim.name == part.name);
            found.filter(|claim| claim.measured.is_some()).cloned()
        };
        let tried = |other: &Alternative| {
            let values = judged.parts().iter().filter_map(|part| of(part, other));
            let worst = values.max_by(|a, b| a.excess().total_cmp(&b.excess()))?;
            let measured = worst.measured?;
            let accepted = worst.tolerance.accepts(worst.published, measured);
            Some(Tried { name: other.name.clone(), measured, accepted })
        };
        judged.tried = alternatives.iter().filter_map(tried).collect();
    }
}

/// Fits a line through the points for each seed. Returns the value that the claim is about, such as the slope, for each seed.
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

/// Returns a metric of each run at a point.
fn values(name: &str, point: usize, results: &Results) -> Vec<f64> {
    let of = |seed: u64| value(name, point, seed, results);
    results.jobs.iter().filter(|(at, _)| *at == point).map(|(_, seed)| of(*seed)).collect()
}

/// Returns the claim's value in each run, and the value by which it is divided: that of the same random seed.
fn pairs(claim: &Claim, over: &str, point: usize, results: &Results) -> Vec<(f64, f64)> {
    let base = claim.base(&results.points, point);
    let of = |seed: u64| (value(&claim.of, point, seed, results), value(over, base, seed, results));
    results.jobs.iter().filter(|(at, _)| *at == point).map(|(_, seed)| of(*seed)).collect()
}

fn value(name: &str, point: usize, seed: u64, results: &Results) -> f64 {
    let mut rows = results.metrics.iter();
    let row = rows.find(|row| row.point == point && row.seed == seed && row.name == name);
    row.map_or(f64::NAN, |row| row.value)
}
