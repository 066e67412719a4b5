//! Results of a scenario: tidy tables, metrics and captured packets; writing and merging of results.
//!
//! Every table begins with columns for the number of the point, the value on each axis of the sweep, and the seed. The same
//! scenario and seeds give the same bytes, in every build and with any number of threads.
//!
//! | module | contents |
//! |---|---|
//! | [`measure`] | conversion of one run's outcome into rows and metrics |
//! | [`write`](mod@write) | CSV files and `manifest.json` |
//! | [`merge`](mod@merge) | merging of the results of several shards |
//! | [`bottlenecks`] | links that were almost fully utilised, or whose queue dropped or marked packets |
//! | `counters` | numbers of packets sent, lost and received in a window |
//! | `events` | events, one row each |
//! | `flent` | the TCP flows of a run as a data file of Flent |
//! | `recorded` | results of a network that is not simulated |
//! | `single_runs` | tables of single runs, for stores that keep each run separately |
//! | `parts` `layers` | metrics of some receivers of a flow, and of sessions of several layers |
//! | [`transform`] | encoding and decoding of all packets in the wire format |
//! | [`pcapng`] | the format of captures |
//! | [`capture`] | packets of tapped links as pcapng, with the bytes that they would have on a real network |

pub mod bottlenecks;
pub mod capture;
mod counters;
pub(crate) mod events;
mod flent;
mod layers;
pub mod measure;
pub mod merge;
#[cfg(feature = "parquet")]
pub mod parquet;
mod parts;
pub mod pcapng;
mod recorded;
mod rows;
mod single_runs;
#[cfg(test)]
mod tests;
pub mod transform;
mod trees;
pub mod write;

pub use faircast_sim::LinkSample;
pub use flent::flent;
pub use measure::TABLES;
pub use merge::{MergeError, merge};
pub use recorded::{Recorded, of_recording};
pub use single_runs::{stack_runs, tables_of_run};
pub use write::{WriteError, to_csv, write};

use crate::scenario::{Axis, Point};
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

pub(crate) use rows::{Rows, rows_of_runs};

/// All results of a scenario, in the order of its points and seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The axes of the sweep.
    pub axes: Vec<Axis>,
    /// The points of the sweep.
    pub points: Vec<Point>,
    /// The completed runs: the number of the point and the seed of each.
    pub jobs: Vec<(usize, u64)>,
    /// The tables `metrics`, `rates`, `averages`, `samples`, `queues`, `representatives`, `feedback`, `transfers`,
    /// `subscriptions`, `layers`, `events`, `flows` and `bottlenecks`.
    pub tables: Vec<Table>,
    /// All metrics as rows. Claims are judged by these metrics.
    pub metrics: Vec<MetricRow>,
    /// Captured packets.
    pub captures: Vec<capture::Capture>,
    /// Totals of the simulator.
    pub totals: Totals,
    /// Changes that the wire format made to packets; `None` if packets were not encoded.
    pub codec: Option<transform::Differences>,
    /// Scenario, seeds and shard of the results.
    pub identity: Identity,
}

/// Properties that all runs of a set of results share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The scenario's text.
    pub scenario: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The shard of the runs; `None` for all runs.
    pub shard: Option<Shard>,
}

/// Part `index` of `of`, counted from 1. The part contains every `of`-th run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// Number of the part, from 1.
    pub index: usize,
    /// Number of parts.
    pub of: usize,
}

/// A text that is not a valid shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a shard is written as in 2/8 (part 2 of 8), not {0:?}")]
pub struct NotAShard(String);

impl FromStr for Shard {
    type Err = NotAShard;

    fn from_str(text: &str) -> Result<Shard, NotAShard> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Shard { index, of }),
            _ => Err(NotAShard(text.to_owned())),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// A metric of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricRow {
    /// Number of the point.
    pub point: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the metric, such as `multicast.rate`.
    pub name: String,
    /// Value in its base unit: bits per second, seconds, packets, or shares of 1.
    pub value: f64,
}

/// Totals of the simulator over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Number of link traversals: a packet counts once for each link that it crosses.
    pub traversals: u64,
    /// Number of packets that arrived at a receiver or sender.
    pub arrivals: u64,
    /// Number of events that the simulator took from its calendar.
    pub events: u64,
    /// A hash over all arrivals of all runs.
    pub digest: u64,
}

impl Results {
    /// Returns the table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Returns the values of a metric at a point, in the order of the seeds. Runs without the metric are skipped.
    pub fn metric(&self, point: usize, name: &str) -> Vec<f64> {
        let rows = self.metrics.iter().filter(|row| row.point == point && row.name == name);
        rows.map(|row| row.value).collect()
    }

    /// Returns the names of all metrics, each once, in the order of their first appearance.
    pub fn metric_names(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        self.metrics.iter().map(|row| row.name.as_str()).filter(|name| seen.insert(*name)).collect()
    }
}
