//! Runs until the means of some metrics are precise.

use super::{Completed, Progress, RunError, RunOptions, admit, assemble, complete};
use crate::results::Results;
use crate::scenario::Scenario;
use crate::stats::Estimate;
use std::collections::BTreeMap;

/// Minimum number of runs at each point. The deviation of fewer runs is too uncertain for a decision.
const FIRST: usize = 5;

/// A required precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Precision {
    /// The metric.
    pub metric: String,
    /// Maximum half width of its 95 % interval, as a share of its mean, at every point.
    pub share: f64,
}

/// Results of runs that were added until they were precise.
#[derive(Debug, Clone, PartialEq)]
pub struct PreciseResults {
    /// The results of all runs.
    pub results: Results,
    /// Whether the required precision was reached.
    pub is_reached: bool,
}

/// Runs all points with the seeds of the scenario and with further seeds, until the metrics have the required precision or each
/// point has `most` runs. Sets the seeds of the scenario to those of the runs.
///
/// # Errors
/// As [`run`](super::run), and if a point has no such metric.
pub fn run_until(
    scenario: &mut Scenario,
    options: &RunOptions,
    progress: &dyn Progress,
    wanted: &[Precision],
    most: usize,
) -> Result<PreciseResults, RunError> {
    for precision in wanted {
        let mut points = (0..scenario.points().len()).map(|point| scenario.metric_names(point));
        if let Some(known) = points.find(|known| !known.contains(&precision.metric)) {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(RunError::NoMetric { name: precision.metric.clone(), known });
        }
    }
    let mut seeds = scenario.seeds().to_vec();
    add_seeds(&mut seeds, FIRST.min(most.max(1)));
    let mut done = BTreeMap::new();
    loop {
        let before = scenario.seeds().to_vec();
        scenario.set_seeds(seeds);
        // The memory for results grows with each step. Completed runs are not lost at the limit.
        if let (Err(RunError::Memory { .. }), false) = (admit(scenario, options).map(drop), done.is_empty()) {
            scenario.set_seeds(before);
            return Ok(PreciseResults { results: assemble(scenario, options, done), is_reached: false });
        }
        seeds = scenario.seeds().to_vec();
        done = complete(scenario, options, progress, done)?;
        let needed = runs_for(&done, scenario.points().len(), wanted);
        if needed <= seeds.len() || seeds.len() >= most {
            let results = assemble(scenario, options, done);
            return Ok(PreciseResults { results, is_reached: needed <= seeds.len() });
        }
        // The deviation is itself an estimate, so each step at most doubles the number of runs.
        let count = needed.min(2 * seeds.len()).min(most);
        add_seeds(&mut seeds, count);
    }
}

/// Appends unused seeds until there are `count`.
fn add_seeds(seeds: &mut Vec<u64>, count: usize) {
    let mut next = seeds.iter().max().map_or(1, |most| most.wrapping_add(1));
    while seeds.len() < count {
        if !seeds.contains(&next) {
            seeds.push(next);
        }
        next = next.wrapping_add(1);
    }
}

/// Returns the estimated number of runs at each point that the precision needs.
fn runs_for(done: &Completed, points: usize, wanted: &[Precision]) -> usize {
    let mut needed = 0;
    for Precision { metric, share } in wanted {
        for point in 0..points {
            let runs = done.range((point, 0)..=(point, u64::MAX));
            let values: Vec<f64> = runs
                .filter_map(|(_, run)| run.measured.metrics.iter().find(|(name, _)| name == metric))
                .map(|(_, value)| *value)
                .collect();
            let estimate = Estimate::of(&values);
            let accepted = share * estimate.mean.abs();
            if estimate.half_width <= accepted {
                continue; // also a metric that is always 0
            }
            let excess = estimate.half_width / accepted;
            if excess.is_nan() || excess > 1.0 {
                let more = (values.len() as f64 * excess * excess).ceil().min(1e9) as usize;
                needed = needed.max(more).max(values.len() + 1);
            }
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::to_csv;
    use crate::run::Silent;

    fn precise(share: f64, most: usize) -> (Vec<u64>, PreciseResults) {
        let text = crate::scenario::template("dumbbell").expect("there is one");
        let text = text.replace("100 s", "20 s").replace("\"20 s\"            #", "\"5 s\" #");
        let mut scenario = Scenario::parse(&text, "dumbbell").expect("it is valid");
        let wanted = [Precision { metric: "multicast.rate".into(), share }];
        let done = run_until(&mut scenario, &RunOptions::default(), &Silent, &wanted, most).expect("it runs");
        (scenario.seeds().to_vec(), done)
    }

    #[test]
    fn seeds_are_added_until_the_mean_is_precise() {
        let ((rough, first), (fine, second)) = (precise(0.3, 1000), precise(0.04, 1000));
        assert!(first.is_reached && second.is_reached && rough.len() < fine.len(), "{rough:?} and {fine:?}");
        let estimate = Estimate::of(&second.results.metric(0, "multicast.rate"));
        assert!(estimate.runs == fine.len() && estimate.half_width <= 0.04 * estimate.mean, "{estimate:?}");
    }

    #[test]
    fn metric_that_is_always_zero_is_precise() {
        let text = crate::scenario::template("dumbbell").expect("there is one").replace("100 s", "30 s");
        let mut scenario = Scenario::parse(&text, "dumbbell").expect("it is valid");
        let wanted = [Precision { metric: "multicast.excluded".into(), share: 0.01 }];
        let done = run_until(&mut scenario, &RunOptions::default(), &Silent, &wanted, 100).expect("it runs");
        assert!(done.is_reached && scenario.seeds().len() == FIRST, "{:?}", scenario.seeds());
    }

    #[test]
    fn number_of_runs_is_limited() {
        let (seeds, done) = precise(1e-6, 8);
        assert_eq!((seeds, done.is_reached), ((1..=8).collect(), false));
    }

    #[test]
    fn added_runs_equal_those_of_one_call() {
        let (seeds, done) = precise(0.04, 1000);
        let text = done.results.identity.scenario.clone();
        let mut scenario = Scenario::parse(&text, "dumbbell").expect("it is valid");
        scenario.set_seeds(seeds);
        let at_once = crate::run::run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
        let bytes = |results: &Results| results.tables.iter().map(to_csv).collect::<Vec<_>>();
        assert_eq!((at_once.totals, bytes(&at_once)), (done.results.totals, bytes(&done.results)));
    }
}
