//! Cases of the comparison: networks with the values that another simulator measured.

use serde::Deserialize;

/// A set of related cases.
#[derive(Debug, Clone)]
pub struct Section {
    /// Name of the section.
    pub name: &'static str,
    /// File and key of the section's rows.
    pub place: String,
    /// Number of rows in the file.
    pub rows: usize,
    /// Description of the networks, quoted from the file.
    pub described: Vec<String>,
    /// Cases of the section. Every row belongs to one case.
    pub cases: Vec<Case>,
}

/// A network and the values measured in it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Name of the section and of the case.
    pub name: String,
    /// Indices of the case's rows in its section. Rows that differ only in their random seed form one case.
    pub rows: Vec<usize>,
    /// Number of runs over which the values are averaged.
    pub runs: u32,
    /// Rule for the tolerance of our values.
    pub rule: Rule,
    /// Start and end of the measurement, seconds. The run ends with the measurement.
    pub window_s: (f64, f64),
    /// The network, or the reason for its absence.
    pub network: Result<Net, String>,
    /// Measured values.
    pub values: Vec<Given>,
    /// Values of the same network with other random seeds.
    pub again: Option<Again>,
    /// Known reasons for values outside the tolerance.
    pub reasons: Vec<Reason>,
}

/// A value that the reference measured.
#[derive(Debug, Clone)]
pub struct Given {
    /// Our name of the quantity.
    pub quantity: String,
    /// The value.
    pub value: Value,
    /// Reason for not judging the value; `None` if it is judged.
    pub left: Option<&'static str>,
}

/// Values of other runs of the same network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Again {
    /// Name of the case.
    pub case: String,
    /// Number of runs.
    pub runs: u32,
    /// Description of the method.
    pub how: String,
    /// Measured values.
    pub values: std::collections::BTreeMap<String, Value>,
}

/// Reason for values outside the tolerance.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Name of the case.
    pub case: String,
    /// The affected quantities.
    pub quantities: Vec<String>,
    /// The reason.
    pub why: String,
    /// Name of a case to which the reason does not apply. The reason is valid only while the same quantities are inside the
    /// tolerance in that case.
    pub shown_by: Option<String>,
}

/// Rule that selects the tolerances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Tolerances for runs without randomness.
    Deterministic,
    /// Tolerances for runs that depend on their random seed.
    Random,
    /// Tolerances for simulators with a different TCP.
    #[serde(skip)]
    OtherTcp,
    /// Tolerances for a different TCP and a single run, which gives no information about the spread.
    #[serde(skip)]
    OtherTcpOnce,
}

/// Measured value of one quantity.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Value of one run.
    Single(f64),
    /// Mean and standard deviation over several runs.
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

    /// Returns the mean.
    pub const fn mean(self) -> f64 {
        match self {
            Value::Single(mean) | Value::Spread(mean, _) => mean,
        }
    }

    /// Returns the standard deviation over runs; 0 if it is unknown.
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
    /// Many flows over one bottleneck. Each flow has separate hosts.
    Dumbbell(Dumbbell),
    /// Many bottlenecks with one flow each, and multicast over all of them.
    Star(Star),
}

/// One flow over one link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Protocol, in the syntax of scenarios.
    pub protocol: String,
    /// Size of data packets on the wire, bytes.
    pub packet_bytes: u16,
    /// Rate of the link, Mbit/s.
    pub mbps: f64,
    /// Delay of the link, ms.
    pub delay_ms: f64,
    /// Queue, in the syntax of scenarios.
    pub queue: String,
}

/// Many flows over one bottleneck.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// The flows.
    pub groups: Vec<Group>,
    /// Rate of the bottleneck, Mbit/s.
    pub mbps: f64,
    /// Delay of the bottleneck, ms.
    pub delay_ms: f64,
    /// Queue of the bottleneck, in the syntax of scenarios.
    pub queue: String,
    /// Sampling interval of the queue, ms.
    pub sample_ms: f64,
    /// Rate of the links between hosts and routers, Mbit/s.
    pub access_mbps: f64,
    /// Delay of the links between receivers and router, ms.
    pub access_delay_ms: f64,
    /// Upper limit of the random start times of flows, seconds.
    pub starts_within_s: f64,
    /// An additional source without congestion control.
    pub steady: Option<Steady>,
}

/// Flows of the same protocol.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Number of flows.
    pub flows: u32,
    /// Protocol, in the syntax of scenarios.
    pub protocol: String,
    /// Size of data packets on the wire, bytes.
    pub packet_bytes: u16,
    /// Bytes of a packet that count as goodput.
    pub useful_bytes: u16,
    /// Delays of the access links of the senders, ms, in the order of flows. The list repeats if there are more flows.
    pub access_delays_ms: Vec<f64>,
}

/// Datagrams at a constant rate.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Rate on the wire, Mbit/s.
    pub mbps: f64,
    /// Size of a datagram on the wire, bytes.
    pub packet_bytes: u16,
    /// Bytes of a datagram that count as goodput.
    pub useful_bytes: u16,
    /// Delay of the access link of the source, ms.
    pub access_delay_ms: f64,
}

/// Many bottlenecks with one flow each, and multicast over all of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Star {
    /// Number of bottlenecks.
    pub leaves: u32,
    /// Protocol, in the syntax of scenarios.
    pub protocol: String,
    /// Size of data packets on the wire, bytes.
    pub packet_bytes: u16,
    /// Rate of the bottlenecks, Mbit/s.
    pub mbps: f64,
    /// Delay of the bottlenecks, ms.
    pub delay_ms: f64,
    /// Queue of the bottlenecks, in the syntax of scenarios.
    pub queue: String,
    /// Rate of the links between sources and router, Mbit/s.
    pub access_mbps: f64,
    /// Delay of the links between sources and router, ms.
    pub access_delay_ms: f64,
    /// Upper limit of the random start times of flows, seconds.
    pub starts_within_s: f64,
    /// Rate of the multicast, kbit/s; 0 for no multicast.
    pub multicast_kbps: f64,
}
