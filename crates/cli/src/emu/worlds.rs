//! `compare --worlds`: one scenario in the simulator and in the emulator, side by side.

use super::args::{Building, UnknownGroups};
use super::lab::Lab;
use super::{measure, network};
use crate::failure::{Failure, unwritten};
use crate::sim::args::{Compare, World};
use crate::sim::running::{ProgressOutput, RunPrinter, refused};
use crate::sim_usage::SimUsage;
use crate::{json, units};
use faircast_experiments::report::text::{Align, Grid};
use faircast_experiments::run::{RunOptions, run as simulate};
use faircast_experiments::stats::Estimate;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::AtomicBool;

/// Values of a world by the names of their metrics, one for each run.
type Values = BTreeMap<String, Vec<f64>>;

/// Metrics that are parts of 1.
const PARTS: [&str; 4] = [".utilisation", ".loss", ".acted", ".busy"];

/// A metric in both worlds.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Pair {
    event: &'static str,
    metric: String,
    simulated: f64,
    simulated_interval: (f64, f64),
    emulated: f64,
    emulated_interval: (f64, f64),
    /// Emulated less simulated, as a part of the simulated value; `None` if that is zero.
    difference: Option<f64>,
    runs: (usize, usize),
}

/// Runs a scenario in both worlds.
///
/// # Errors
/// When the scenario cannot be emulated, or this machine has fallen behind in a run.
pub fn compare(typed: &Compare, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let file = typed.path();
    if !(typed.worlds.contains(&World::Sim) && typed.worlds.contains(&World::Emu)) {
        return Err(SimUsage::OneWorld.into());
    }
    let building = Building {
        seed: None,
        set: Vec::new(),
        mtu: 1500,
        unknown_groups: UnknownGroups::Prune,
        max_memory: typed.running.max_memory,
    };
    let mut lab = Lab::read(file, &building)?;
    if !lab.real.omitted.is_empty() {
        return Err(SimUsage::NotCompared(lab.real.omitted.join("\n  ")).into());
    }
    network::become_root()?;
    if let Some(seeds) = &typed.running.seeds {
        lab.scenario.set_seeds(seeds.0.clone());
    }
    let seeds = lab.scenario.seeds().to_vec();
    let options = RunOptions {
        threads: typed.running.threads,
        memory: Some(typed.running.max_memory),
        ..RunOptions::default()
    };
    let quiet = if typed.quiet { ProgressOutput::Nothing } else { ProgressOutput::Progress };
    let results =
        simulate(&lab.scenario, &options, &RunPrinter::new(quiet, "simulator", stop)).map_err(refused)?;
    let names = results.metric_names().into_iter();
    let simulated: Values = names.map(|name| (name.to_owned(), results.metric(0, name))).collect();
    let (mut emulated, mut faults) = (Values::new(), Vec::new());
    for (number, seed) in seeds.iter().enumerate() {
        if !(typed.quiet || typed.json) {
            let seconds = units::seconds(lab.scenario.duration(0));
            eprintln!("emulator: run {} of {}, {seconds}", number + 1, seeds.len());
        }
        let lab = Lab::read(file, &Building { seed: Some(*seed), ..building.clone() })?;
        let (results, load) = measure(&lab, &building, stop)?;
        faults.extend(load.faults().into_iter().map(|fault| format!("run {}: {fault}", number + 1)));
        for row in results.metrics {
            emulated.entry(row.name).or_default().push(row.value);
        }
    }
    let pairs = pairs(&simulated, &emulated);
    match typed.json {
        true => {
            pairs.iter().try_for_each(|pair| json::write(out, pair)).map_err(unwritten)?;
            let done = serde_json::json!({ "event": "done", "ok": faults.is_empty(), "valid": faults.is_empty(), "faults": faults });
            json::write(out, &done).map_err(unwritten)?;
        }
        false => write!(out, "{}\n\n{}", lab.scenario.title(), grid(&pairs).text()).map_err(unwritten)?,
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::Check(format!(
            "the comparison is invalid, because this machine fell behind: {}; use a smaller network or lower rates, or end other programs",
            faults.join(", ")
        ))),
    }
}

/// Returns the metrics that both worlds have.
fn pairs(simulated: &Values, emulated: &Values) -> Vec<Pair> {
    let pair = |(name, theirs): (&String, &Vec<f64>)| {
        let (ours, theirs) = (Estimate::of(simulated.get(name)?), Estimate::of(theirs));
        (ours.runs > 0 && theirs.runs > 0).then(|| Pair {
            event: "pair",
            metric: name.clone(),
            simulated: ours.mean,
            simulated_interval: ours.interval(),
            emulated: theirs.mean,
            emulated_interval: theirs.interval(),
            difference: (ours.mean != 0.0).then(|| theirs.mean / ours.mean - 1.0),
            runs: (ours.runs, theirs.runs),
        })
    };
    emulated.iter().filter_map(pair).collect()
}

fn grid(pairs: &[Pair]) -> Grid {
    let columns = [("metric", Align::Left), ("simulated", Align::Right), ("95 % interval", Align::Left)];
    let more = [("emulated", Align::Right), ("95 % interval", Align::Left), ("difference", Align::Right)];
    let mut grid = Grid::new(&[columns, more].concat());
    for pair in pairs {
        let show = |value: f64| match pair.metric.as_str() {
            name if name.contains(".rate") => units::rate(value),
            name if PARTS.iter().any(|part| name.ends_with(part)) => units::percent(value),
            _ if value.fract() == 0.0 => format!("{value:.0}"),
            _ => format!("{value:.2}"),
        };
        let interval = |(low, high): (f64, f64), runs: usize| match runs {
            1 => String::new(),
            _ => format!("{} to {}", show(low), show(high)),
        };
        grid.row(vec![
            pair.metric.clone(),
            show(pair.simulated),
            interval(pair.simulated_interval, pair.runs.0),
            show(pair.emulated),
            interval(pair.emulated_interval, pair.runs.1),
            pair.difference.map_or_else(|| "-".to_owned(), |part| format!("{:+.1} %", part * 100.0)),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_both_worlds_stand_side_by_side() {
        let values = |list: &[(&str, &[f64])]| -> Values {
            list.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect()
        };
        let simulated =
            values(&[("tcp.rate", &[2e6, 2.2e6]), ("tcp.cuts", &[4.0]), ("link.a->b.drops", &[0.0])]);
        let emulated =
            values(&[("tcp.rate", &[2.31e6]), ("link.a->b.drops", &[3.0]), ("other.rate", &[1.0])]);
        let pairs = pairs(&simulated, &emulated);
        let found: Vec<_> = pairs.iter().map(|pair| (pair.metric.as_str(), pair.runs)).collect();
        assert_eq!(found, [("link.a->b.drops", (1, 1)), ("tcp.rate", (2, 1))]);
        assert!(pairs[0].difference.is_none() && (pairs[1].difference.unwrap_or(0.0) - 0.1).abs() < 1e-9);
        let text = grid(&pairs).text();
        assert!(text.contains("+10.0 %") && text.contains("2.3 Mbit/s"), "{text}");
    }
}
