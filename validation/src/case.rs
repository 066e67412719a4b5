//! Cases of the comparison, each a network with the measurements of another simulator in it.

use serde::Deserialize;

/// Cases that belong together.
#[derive(Debug, Clone)]
pub struct Section {
    /// How it is called here.
    pub name: &'static str,
    /// Where its rows are.
    pub place: String,
    /// How many rows it has there.
    pub rows: usize,
    /// The file's description of its networks, in its words.
    pub described: Vec<String>,
    /// The cases; every row belongs to one.
    pub cases: Vec<Case>,
}

/// A network and the values measured in it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its section and its own name.
    pub name: String,
    /// Which rows of its section it is; rows that differ in their seed alone are one case.
    pub rows: Vec<usize>,
    /// How many runs the values are the mean of.
    pub runs: u32,
    /// How close ours must be.
    pub rule: Rule,
    /// When the measurement begins and ends, in seconds; the end of the run, too.
    pub window_s: (f64, f64),
    /// The network, or the reason why it is missing.
    pub network: Result<Net, String>,
    /// Measured values.
    pub values: Vec<Given>,
    /// The same measured once more, with other seeds.
    pub again: Option<Again>,
    /// Why ours lies outside the tolerance, where that was found out.
    pub reasons: Vec<Reason>,
}

/// A value of a row.
#[derive(Debug, Clone)]
pub struct Given {
    /// The quantity, as here.
    pub quantity: String,
    /// The value.
    pub value: Value,
    /// Why it is not judged, if it is not.
    pub left: Option<&'static str>,
}

/// Values of other runs of the same network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Again {
    /// The case.
    pub case: String,
    /// How many runs.
    pub runs: u32,
    /// How they were made.
    pub how: String,
    /// Measured values.
    pub values: std::collections::BTreeMap<String, Value>,
}

/// Why quantities of a case lie outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The case.
    pub case: String,
    /// Its quantities.
    pub quantities: Vec<String>,
    /// The reason.
    pub why: String,
    /// A case in which the reason is absent: it counts as long as the same quantities are inside there.
    pub shown_by: Option<String>,
}

/// Which tolerances apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Those of runs in which nothing is random.
    Deterministic,
    /// Those of runs that differ with their seed.
    Random,
    /// Those of a simulator whose TCP is another one.
    #[serde(skip)]
    OtherTcp,
    /// The same, where a single run gives no information about the spread.
    #[serde(skip)]
    OtherTcpOnce,
}

/// Measured value of one quantity.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// In one run.
    Single(f64),
    /// In several runs: mean, and standard deviation over runs.
    Spread(f64, f64),
}

impl Value {
    /// Returns the value from these runs.
    pub fn of(runs: &[f64]) -> Value {
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        match runs.len() {
            1 => Value::Single(mean),
            many => {
                let squares: f64 = runs.iter().map(|value| (value - mean).powi(2)).sum();
                Value::Spread(mean, (squares / (many as f64 - 1.0)).sqrt())
            }
        }
    }

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
    /// The bottleneck's rate.
    pub mbps: f64,
    /// The bottleneck's delay.
    pub delay_ms: f64,
    /// The bottleneck's queue, as in a scenario.
    pub queue: String,
    /// How often the queue is looked at.
    pub sample_ms: f64,
    /// The rate of links between hosts and routers.
    pub access_mbps: f64,
    /// Delay of those at the receivers.
    pub access_delay_ms: f64,
    /// Flows start at random times before this.
    pub starts_within_s: f64,
    /// A source without control beside the flows.
    pub steady: Option<Steady>,
}

/// Flows of the same protocol.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// How many.
    pub flows: u32,
    /// As in a scenario.
    pub protocol: String,
    /// Data packets on the wire.
    pub packet_bytes: u16,
    /// Bytes of a packet that count as goodput.
    pub useful_bytes: u16,
    /// Delays of the senders' access links, the first flow's first; begins again when it is used up.
    pub access_delays_ms: Vec<f64>,
}

/// Datagrams at a constant rate.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Their rate on the wire.
    pub mbps: f64,
    /// A datagram on the wire.
    pub packet_bytes: u16,
    /// Bytes of it that count as goodput.
    pub useful_bytes: u16,
    /// Delay of the source's access link.
    pub access_delay_ms: f64,
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
