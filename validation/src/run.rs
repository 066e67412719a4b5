//! All runs of all cases, on all processors.

use crate::compare::{Line, Verdict, compare};
use crate::measure::{Values, measure};
use crate::networks::build;
use crate::reference::{Case, Experiment, Failure, Reference};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fewest runs of ours per case.
const FEWEST: u32 = 5;

/// A case that was run.
#[derive(Debug)]
pub struct Compared<'a> {
    /// Its experiment.
    pub experiment: &'a Experiment,
    /// The case.
    pub case: &'a Case,
    /// Our runs.
    pub runs: u32,
    /// Quantity by quantity; nothing when the network is not built.
    pub lines: Vec<Line>,
}

impl Compared<'_> {
    /// Experiment and case.
    pub fn name(&self) -> String {
        full_name(self.experiment, self.case)
    }

    /// Why quantities lie outside, where that is stated.
    pub fn reasons(&self) -> impl Iterator<Item = (&str, &str)> {
        let outside = self.lines.iter().filter(|line| line.verdict() == Verdict::Explained);
        outside.filter_map(|line| Some((line.quantity.as_str(), line.explained.as_deref()?)))
    }
}

fn full_name(experiment: &Experiment, case: &Case) -> String {
    format!("{}: {}", experiment.name, case.name)
}

/// One run of a case.
///
/// # Errors
/// When the case makes no sense.
pub fn run_once(experiment: &Experiment, case: &Case, seed: u64) -> Result<Values, Failure> {
    let Some(net) = &case.network else { return Ok(Values::new()) };
    let ready = build(net, seed, experiment.window_s)?;
    let outcome = ready.network.run(&ready.options);
    let outcome = outcome.map_err(|why| Failure::Simulation { case: case.name.clone(), why })?;
    Ok(measure(&ready, &outcome))
}

/// Run the cases whose full name is `wanted`, each with at least as many runs as ns-2's, or with exactly `count`, and compare.
///
/// # Errors
/// When a case makes no sense.
pub fn run_all<'a>(
    reference: &'a Reference,
    wanted: &dyn Fn(&str) -> bool,
    count: Option<u32>,
) -> Result<Vec<Compared<'a>>, Failure> {
    let cases = reference.experiments.iter().flat_map(|e| e.cases.iter().map(move |case| (e, case)));
    let cases: Vec<_> = cases.filter(|(experiment, case)| wanted(&full_name(experiment, case))).collect();
    let usual = |case: &Case| count.unwrap_or(case.runs.max(FEWEST));
    let runs = |case: &Case| case.network.as_ref().map_or(0, |_| usual(case));
    let jobs: Vec<(usize, u64)> = cases
        .iter()
        .enumerate()
        .flat_map(|(number, (_, case))| (1..=u64::from(runs(case))).map(move |seed| (number, seed)))
        .collect();
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Values, Failure>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(number, seed)) = jobs.get(place) else { return };
                    let (experiment, case) = cases[number];
                    let result = run_once(experiment, case, seed);
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
    cases
        .into_iter()
        .zip(values)
        .map(|((experiment, case), values)| {
            let lines = if values.is_empty() { Vec::new() } else { compare(case, experiment.rule, &values)? };
            Ok(Compared { experiment, case, runs: values.len() as u32, lines })
        })
        .collect()
}
