//! Runs of a scenario with other values, where the paper leaves a value open. There is one run for each alternative value, with
//! few seeds.

use super::{Embedded, Judged, ReproError, Settings, judge};
use crate::run::{Progress, run};
use crate::scenario::Scenario;

/// Results with one alternative value.
#[derive(Debug, Clone)]
pub struct Alternative {
    /// Index of the choice in the scenario.
    pub choice: usize,
    /// Name of the alternative.
    pub name: String,
    /// The judged claims with this alternative.
    pub claims: Vec<Judged>,
    /// Number of seeds.
    pub seeds: usize,
}

/// Runs all alternatives of a scenario. Runs none if the settings disable alternatives.
pub(super) fn run_all(
    embedded: &Embedded,
    scenario: &Scenario,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Vec<Alternative>, ReproError> {
    let mut all = Vec::new();
    if settings.alternatives == 0 {
        return Ok(all);
    }
    for (choice, chosen) in scenario.choices().iter().enumerate() {
        for alternative in &chosen.alternatives {
            let mut other = embedded.scenario_with(settings, &alternative.set)?;
            let seeds: Vec<u64> = other.seeds().iter().take(settings.alternatives).copied().collect();
            let count = seeds.len();
            other.set_seeds(seeds);
            let results = run(&other, &settings.options(), progress)?;
            let claims = judge(&other, &results);
            all.push(Alternative { choice, name: alternative.name.clone(), claims, seeds: count });
        }
    }
    Ok(all)
}
