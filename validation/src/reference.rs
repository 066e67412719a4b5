//! The networks and what ns-2 measured in them.

use faircast_core::spec::SpecError;
use faircast_sim::SimError;
use serde::Deserialize;
use std::collections::BTreeMap;

/// All that ns-2 measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Which ns-2.
    pub made_with: String,
    /// How it was run, a sentence each.
    pub how: Vec<String>,
    /// Groups of cases that have much in common.
    pub experiments: Vec<Experiment>,
}

/// Cases that are measured alike.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// How close ours must be.
    pub rule: Rule,
    /// When the measurement begins and ends, in seconds; the end of the run, too.
    pub window_s: (f64, f64),
    /// The network in words.
    pub about: String,
    /// The cases.
    pub cases: Vec<Case>,
}

/// Which tolerances apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Those of runs in which nothing is random.
    Deterministic,
    /// Those of runs that differ with their seed.
    Random,
}

/// A network and what was measured in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// How many runs of ns-2 the values are the mean of.
    pub runs: u32,
    /// The network; none for a queue that is not built yet.
    pub network: Option<Net>,
    /// What ns-2 measured.
    pub values: BTreeMap<String, Value>,
    /// Why ours lies outside the tolerance, for values that do and where the reason was found.
    #[serde(default)]
    pub explained: BTreeMap<String, String>,
}

/// What ns-2 measured of one quantity.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// In one run.
    Single(f64),
    /// In several runs: mean, and standard deviation over runs.
    Spread(f64, f64),
}

impl Value {
    /// The mean.
    pub const fn mean(self) -> f64 {
        match self {
            Value::Single(mean) | Value::Spread(mean, _) => mean,
        }
    }

    /// The standard deviation over runs; 0 where it is not known.
    pub const fn deviation(self) -> f64 {
        match self {
            Value::Single(_) => 0.0,
            Value::Spread(_, deviation) => deviation,
        }
    }
}

/// A network.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Net {
    /// One flow over one link.
    Line(Line),
    /// Many flows, each between hosts of its own, over one bottleneck.
    Dumbbell(Dumbbell),
    /// Many bottlenecks with a flow each, and multicast to all.
    Star(Star),
}

/// One flow over one link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// As in a scenario.
    pub protocol: String,
    /// Data packets on the wire.
    pub packet_bytes: u16,
    /// The link's rate.
    pub mbps: f64,
    /// The link's delay.
    pub delay_ms: f64,
    /// As in a scenario.
    pub queue: String,
}

/// Many flows over one bottleneck.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// The flows.
    pub groups: Vec<Group>,
    /// Data packets on the wire.
    pub packet_bytes: u16,
    /// The bottleneck's rate.
    pub mbps: f64,
    /// The bottleneck's delay.
    pub delay_ms: f64,
    /// The bottleneck's queue, as in a scenario.
    pub queue: String,
    /// The rate of links between hosts and routers.
    pub access_mbps: f64,
    /// Their delay.
    pub access_delay_ms: f64,
    /// Flows start at random times before this.
    pub starts_within_s: f64,
}

/// Flows of the same protocol.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// How many.
    pub flows: u32,
    /// As in a scenario.
    pub protocol: String,
    /// Delay of the senders' access links, if another one.
    pub access_delay_ms: Option<f64>,
    /// Packets of each transfer, with an exponential pause of this mean in seconds between two; endless without.
    pub transfers: Option<(u32, f64)>,
}

/// Many bottlenecks with a flow each, and multicast to all.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Star {
    /// How many bottlenecks.
    pub leaves: u32,
    /// As in a scenario.
    pub protocol: String,
    /// Data packets on the wire.
    pub packet_bytes: u16,
    /// The bottlenecks' rate.
    pub mbps: f64,
    /// Their delay.
    pub delay_ms: f64,
    /// Their queue, as in a scenario.
    pub queue: String,
    /// The rate of the sources' links to the router.
    pub access_mbps: f64,
    /// Their delay.
    pub access_delay_ms: f64,
    /// Flows start at random times before this.
    pub starts_within_s: f64,
    /// Rate of the multicast; 0 for none.
    pub multicast_kbps: f64,
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file of references is not understood.
    #[error("the references are not understood: {0}")]
    Reference(#[from] serde_json::Error),
    /// A protocol or queue of a case is not understood.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A case cannot be simulated.
    #[error("{case} cannot be simulated: {why}")]
    Simulation {
        /// Which.
        case: String,
        /// Why.
        why: SimError,
    },
    /// A case names a quantity that is not measured in its network.
    #[error("{case} has a value for {quantity:?}, which is not measured there")]
    Quantity {
        /// Which case.
        case: String,
        /// Which quantity.
        quantity: String,
    },
    /// The page cannot be written.
    #[error("the page cannot be written: {0}")]
    Page(#[from] std::io::Error),
}

impl Reference {
    /// The references that come with this package.
    ///
    /// # Errors
    /// When they are not understood.
    pub fn read() -> Result<Reference, Failure> {
        Ok(serde_json::from_str(include_str!("../ns2.json"))?)
    }
}
