//! Runs queues under loads, and collects the results.

use super::loads::{Load, Set};
use crate::results::Results;
use crate::run::{Progress, RunError, RunOptions, run};
use crate::scenario::{Diagnostics, Scenario};
use faircast_aqm::QueueSpec;
use std::str::FromStr as _;

/// Settings of the bench.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The set of loads.
    pub set: Set,
    /// The queues, as specified by the user.
    pub queues: Vec<String>,
    /// Random seeds.
    pub seeds: Vec<u64>,
    /// Simulated seconds of a run.
    pub seconds: f64,
    /// Number of threads, and the directory of stored runs.
    pub options: RunOptions,
}

/// Reason why the bench cannot run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A load and a queue do not form a valid scenario.
    #[error("the load `{load}` cannot be set up: {source}")]
    Scenario {
        /// Name of the load.
        load: &'static str,
        /// The faults of the scenario.
        source: Diagnostics,
    },
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Actions of a queue in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acted {
    /// The queue was not the bottleneck: almost no packets waited.
    Idle,
    /// The queue dropped packets only when its buffer was full.
    OverflowOnly,
    /// The queue discipline dropped, marked or reordered packets.
    Yes,
}

/// Results of one run: a load on a queue.
#[derive(Debug, Clone)]
pub struct Row {
    /// Index of the load.
    pub load: usize,
    /// Index of the queue.
    pub queue: usize,
    /// Random seed of the run.
    pub seed: u64,
    /// Actions of the queue.
    pub acted: Acted,
    /// Mean delay of a packet at the bottleneck in seconds, including the packet's transmission.
    pub delay: f64,
    /// 95 % quantile of the delay, in seconds.
    pub delay_p95: f64,
    /// Standard deviation of the number of packets in the queue over time.
    pub deviation: f64,
    /// Share of the link's capacity that was used.
    pub utilisation: f64,
    /// Share of the offered packets that was lost.
    pub loss: f64,
    /// Number of dropped packets.
    pub drops: f64,
    /// Number of packets dropped by the queue discipline, included in [`Row::drops`].
    pub early: f64,
    /// Number of marked packets.
    pub marks: f64,
    /// Number of reordered packets.
    pub reordered: f64,
    /// Jain's index over the rates of the flows that should get equal rates; NaN if the load has no such flows.
    pub fairness: f64,
    /// Mean rate of a receiver in bit/s, for each group of flows.
    pub rates: Vec<(String, f64)>,
    /// Mean duration of complete transfers, in seconds; NaN if no transfer was completed.
    pub transfer_time: f64,
}

/// Index of a load, index of a queue, and the number of waiting packets over time: `(seconds, packets)`.
pub type OverTime = (usize, usize, Vec<(f64, f64)>);

/// Results of all runs.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The loads.
    pub loads: &'static [Load],
    /// The queues: name, and specification of the user.
    pub queues: Vec<(String, String)>,
    /// Random seeds.
    pub seeds: Vec<u64>,
    /// Simulated seconds of a run.
    pub seconds: f64,
    /// The runs, by load, queue and seed.
    pub rows: Vec<Row>,
    /// Queue length over time in the run with the first seed, for loads with `over_time`.
    pub over_time: Vec<OverTime>,
}

/// Returns the specification `queue` with ECN marking added. If the queue cannot mark, returns the specification unchanged.
pub fn marking(queue: &str) -> String {
    let with = format!("{queue},ecn");
    match (QueueSpec::from_str(queue), QueueSpec::from_str(&with)) {
        (Ok(plain), Ok(marks)) if plain != marks => with,
        _ => queue.to_owned(),
    }
}

/// Runs each load on each queue.
///
/// # Errors
/// If a scenario cannot be set up or run.
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

/// Names each queue: by the first word of its specification if no other queue has this word, else by the full specification.
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

/// Returns Jain's index over all flows of the groups that should get equal rates. The index is computed from each group's mean
/// rate and Jain's index.
fn fairness(load: &Load, value: &dyn Fn(&str) -> f64) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for group in load.equals {
        let mean = value(&format!("{group}.rate"));
        let index = value(&format!("{group}.jain"));
        // A group with a single flow has no index, and 1 is used instead. The computation assumes that all groups have the same
        // number of flows.
        let index = if index.is_finite() { index } else { 1.0 };
        count += 1.0;
        sum += mean;
        squares += mean * mean / index;
    }
    if count == 0.0 { f64::NAN } else { sum * sum / (count * squares) }
}

/// Returns the queue length of one run over time.
fn series(results: &Results, queue: &str, seed: u64) -> Vec<(f64, f64)> {
    let Some(table) = results.table("queues") else { return Vec::new() };
    let (names, seeds) = (table.texts("queue"), table.wholes("seed"));
    let (times, lengths) = (table.numbers("time"), table.wholes("packets"));
    let rows = (0..table.rows()).filter(|row| names[*row] == queue && seeds[*row] == seed);
    rows.map(|row| (times[row], lengths[row] as f64)).collect()
}
