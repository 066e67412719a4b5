//! Runs queues under loads, and reads what came of it.

use super::loads::{Load, Set};
use crate::results::Results;
use crate::run::{Progress, RunError, RunOptions, run};
use crate::scenario::{Diagnostics, Scenario};
use faircast_aqm::QueueSpec;
use std::str::FromStr as _;

/// How to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which loads.
    pub set: Set,
    /// The queues, as they are written.
    pub queues: Vec<String>,
    /// Random seeds.
    pub seeds: Vec<u64>,
    /// Simulated seconds of a run.
    pub seconds: f64,
    /// Threads, and the directory of stored runs.
    pub options: RunOptions,
}

/// Why it cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A load and a queue make no scenario.
    #[error("the load `{load}` cannot be set up: {source}")]
    Scenario {
        /// Which.
        load: &'static str,
        /// Why.
        source: Diagnostics,
    },
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Actions of a queue in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acted {
    /// It was not the bottleneck: hardly anything waited.
    Idle,
    /// It dropped nothing but what did not fit.
    OverflowOnly,
    /// It dropped, marked or reordered packets for a reason of its own.
    Yes,
}

/// A run of a load under a queue.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which load and queue, by number.
    pub load: usize,
    /// The queue.
    pub queue: usize,
    /// The seed.
    pub seed: u64,
    /// Actions of the queue.
    pub acted: Acted,
    /// Mean delay and the delay that 95 % have at most, in seconds, with the own transmission.
    pub delay: f64,
    /// See [`Row::delay`].
    pub delay_p95: f64,
    /// Deviation of the queue's length over time, in packets.
    pub deviation: f64,
    /// Share of the link's capacity that was used.
    pub utilisation: f64,
    /// Share of the offered packets that was lost.
    pub loss: f64,
    /// Packets dropped, those of them that were dropped early, marked and reordered.
    pub drops: f64,
    /// See [`Row::drops`].
    pub early: f64,
    /// See [`Row::drops`].
    pub marks: f64,
    /// See [`Row::drops`].
    pub reordered: f64,
    /// Jain's index over the rates of the flows that should get the same; NaN without such flows.
    pub fairness: f64,
    /// Mean rate of a receiver of each group of flows, in bit/s.
    pub rates: Vec<(String, f64)>,
    /// Mean time of a complete transfer, in seconds; NaN without transfers.
    pub transfer_time: f64,
}

/// A load, a queue, and packets that waited at moments in seconds.
pub type OverTime = (usize, usize, Vec<(f64, f64)>);

/// All runs.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The loads.
    pub loads: &'static [Load],
    /// The queues: name, and as they are written.
    pub queues: Vec<(String, String)>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Simulated seconds of a run.
    pub seconds: f64,
    /// The runs, by load, queue and seed.
    pub rows: Vec<Row>,
    /// The queue over time where the load asks for it, of the first seed: load, queue, `(seconds, packets)`.
    pub over_time: Vec<OverTime>,
}

/// The queue with marks, where it has them.
pub fn marking(queue: &str) -> String {
    let with = format!("{queue},ecn");
    match (QueueSpec::from_str(queue), QueueSpec::from_str(&with)) {
        (Ok(plain), Ok(marks)) if plain != marks => with,
        _ => queue.to_owned(),
    }
}

/// Run all loads under all queues.
///
/// # Errors
/// When a scenario cannot be set up or run.
pub fn bench(settings: &Settings, progress: &dyn Progress) -> Result<Bench, BenchError> {
    let loads = settings.set.loads();
    let queues = named(&settings.queues);
    let mut bench = Bench {
        loads,
        seeds: settings.seeds.clone(),
        seconds: settings.seconds,
        rows: Vec::new(),
        over_time: Vec::new(),
        queues,
    };
    for (number, load) in loads.iter().enumerate() {
        let with = |(name, queue): &(String, String)| {
            (name.clone(), if load.marks { marking(queue) } else { queue.clone() })
        };
        let queues: Vec<_> = bench.queues.iter().map(with).collect();
        let text = load.scenario(&queues, settings.seconds);
        let mut scenario = Scenario::parse(&text, load.name)
            .map_err(|source| BenchError::Scenario { load: load.name, source })?;
        scenario.set_seeds(settings.seeds.clone());
        let results = run(&scenario, &settings.options, progress)?;
        for (queue, (name, _)) in queues.iter().enumerate() {
            bench.rows.extend(rows(&scenario, &results, (number, load), queue));
            if load.over_time {
                bench.over_time.push((number, queue, series(&results, name, settings.seeds[0])));
            }
        }
    }
    Ok(bench)
}

/// Names for queues: the first word where that is enough.
fn named(queues: &[String]) -> Vec<(String, String)> {
    let word = |queue: &str| queue.split(',').next().unwrap_or_default().to_owned();
    let all = queues.iter().map(|queue| {
        let short = word(queue);
        let several = queues.iter().filter(|other| word(other) == short).count() > 1;
        (if several { queue.clone() } else { short }, queue.clone())
    });
    all.collect()
}

const LINK: &str = "link.left->right";

fn rows(scenario: &Scenario, results: &Results, load: (usize, &Load), queue: usize) -> Vec<Row> {
    let point = queue; // the sweep has one axis, the queues
    let groups: Vec<&str> = scenario.groups().collect();
    let metric = |name: &str| results.metric(point, name);
    let value = |name: &str, run: usize, otherwise: f64| metric(name).get(run).copied().unwrap_or(otherwise);
    let seeds = scenario.seeds().iter().enumerate();
    let row = |(run, seed): (usize, &u64)| {
        let link = |name: &str, otherwise: f64| value(&format!("{LINK}.{name}"), run, otherwise);
        let rates: Vec<(String, f64)> = groups
            .iter()
            .map(|group| ((*group).to_owned(), value(&format!("{group}.rate"), run, 0.0)))
            .collect();
        let (early, marks, reordered) =
            (link("drops.early", 0.0), link("marks", 0.0), link("reordered", 0.0));
        let (waiting, utilisation) = (link("queue", 0.0), link("utilisation", 0.0));
        let acted = match early + marks + reordered > 0.0 {
            true => Acted::Yes,
            false if waiting < 1.0 && utilisation < 0.9 => Acted::Idle,
            false => Acted::OverflowOnly,
        };
        let transfers =
            groups.iter().flat_map(|group| metric(&format!("{group}.transfer_time")).get(run).copied());
        let transfers: Vec<f64> = transfers.collect();
        Row {
            load: load.0,
            queue,
            seed: *seed,
            acted,
            delay: link("delay", f64::NAN),
            delay_p95: link("delay.p95", f64::NAN),
            deviation: link("queue.sd", f64::NAN),
            utilisation,
            loss: link("loss", f64::NAN),
            drops: link("drops", 0.0),
            early,
            marks,
            reordered,
            fairness: fairness(load.1, &|name| value(name, run, f64::NAN)),
            rates,
            transfer_time: crate::stats::mean(&transfers),
        }
    };
    seeds.map(row).collect()
}

/// Jain's index over all flows of the groups that should get the same, from each group's mean and deviation.
fn fairness(load: &Load, value: &dyn Fn(&str) -> f64) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for group in load.equals {
        let mean = value(&format!("{group}.rate"));
        let index = value(&format!("{group}.jain"));
        // The index of one flow is not defined: the flow is equal to itself. All groups here have the same number
        // of flows, or there is one group.
        let index = if index.is_finite() { index } else { 1.0 };
        count += 1.0;
        sum += mean;
        squares += mean * mean / index;
    }
    if count == 0.0 { f64::NAN } else { sum * sum / (count * squares) }
}

/// The queue of one run over time.
fn series(results: &Results, queue: &str, seed: u64) -> Vec<(f64, f64)> {
    let Some(table) = results.table("queues") else { return Vec::new() };
    let (names, seeds) = (table.texts("queue"), table.wholes("seed"));
    let (times, lengths) = (table.numbers("time"), table.wholes("packets"));
    let rows = (0..table.rows()).filter(|row| names[*row] == queue && seeds[*row] == seed);
    rows.map(|row| (times[row], lengths[row] as f64)).collect()
}
