//! The references: files with runs of other simulators, and our additional runs of ns-2.
//!
//! `reference/ns2.json` and `reference/queues.json` are unchanged copies. A module for each kind of section maps its rows to
//! networks, and its fields to our quantities. An unknown section, field, queue or description is an error that states its
//! position. So a changed file is never compared with the networks of the old file.
//!
//! | module | sections |
//! |---|---|
//! | `single_flow` | `a_single_flow` of ns2.json |
//! | `reno_queues` | `b_ten_reno_aqm`, `c_many_reno_ecn_seed002ch6`, `check_pi_default_long` |
//! | `side_by_side` | `d_friendliness`, `check_rap_buffer_and_finegrain` |
//! | `star` | `e_star64` |
//! | `disciplines` | `a_ns2_disciplines` of queues.json, and the common parts of its sections |
//! | `other_tcp` | `b_ns3_disciplines`, `c_two_simulators_droptail` |
//! | `supplement` | `supplement.json`: our own runs of ns-2 |

mod disciplines;
mod other_tcp;
mod reno_queues;
mod side_by_side;
mod single_flow;
mod star;
mod supplement;
#[cfg(test)]
mod tests;

use crate::case::{Case, Given, Reason, Section, Value};
use faircast_core::spec::SpecError;
use faircast_sim::SimError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// All values of the references.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Name of each file, and its description of itself in sentences.
    pub files: Vec<(&'static str, Vec<String>)>,
    /// The sections, in the order of the files.
    pub sections: Vec<Section>,
}

/// Reason for a failed comparison.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file of the references cannot be parsed.
    #[error("{file} is not understood: {why}")]
    File {
        /// Name of the file.
        file: &'static str,
        /// The error and its position.
        why: serde_json::Error,
    },
    /// A row has an unknown network, or describes a known network differently.
    #[error("{place}: {what}")]
    Row {
        /// File, section and row.
        place: String,
        /// The unknown item.
        what: String,
    },
    /// A protocol or queue of a case cannot be parsed.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A case cannot be simulated.
    #[error("{case} cannot be simulated: {why}")]
    Simulation {
        /// Name of the case.
        case: String,
        /// The reason.
        why: SimError,
    },
    /// A case names a quantity that is not measured in its network.
    #[error("{case} has a value for {quantity:?}, which is not measured there")]
    Quantity {
        /// Name of the case.
        case: String,
        /// Name of the quantity.
        quantity: String,
    },
    /// The page cannot be written.
    #[error("the page cannot be written: {0}")]
    Page(#[from] std::io::Error),
}

/// The file with the runs of ns-2.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ns2 {
    meta: Ns2Meta,
    a_single_flow: single_flow::Table,
    b_ten_reno_aqm: reno_queues::Ten,
    c_many_reno_ecn_seed002ch6: reno_queues::Many,
    d_friendliness: side_by_side::Table,
    e_star64: star::Table,
    check_pi_default_long: reno_queues::LongPi,
    check_rap_buffer_and_finegrain: side_by_side::Check,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ns2Meta {
    simulator: String,
    units: BTreeMap<String, String>,
    wire_size: String,
    profiles: BTreeMap<String, String>,
    tcp_sinks: String,
    caveats: Vec<String>,
}

/// The file with the queue disciplines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queues {
    meta: QueuesMeta,
    a_ns2_disciplines: disciplines::Table,
    b_ns3_disciplines: other_tcp::Disciplines,
    c_two_simulators_droptail: other_tcp::Both,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueuesMeta {
    simulators: String,
    units: BTreeMap<String, String>,
    seeds: String,
    start: String,
}

const NS2: &str = "validation/reference/ns2.json";
const QUEUES: &str = "validation/reference/queues.json";
const SUPPLEMENT: &str = "validation/supplement.json";

fn parse<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|why| Failure::File { file, why })
}

impl Reference {
    /// Parses the references of this package.
    ///
    /// # Errors
    /// Fails if a file cannot be parsed or has unknown content.
    pub fn read() -> Result<Reference, Failure> {
        Reference::of(
            include_str!("../../reference/ns2.json"),
            include_str!("../../reference/queues.json"),
            include_str!("../../supplement.json"),
        )
    }

    /// Parses these files.
    ///
    /// # Errors
    /// Fails if a file cannot be parsed or has unknown content.
    pub fn of(ns2: &str, queues: &str, supplement: &str) -> Result<Reference, Failure> {
        let (ns2, queues): (Ns2, Queues) = (parse(NS2, ns2)?, parse(QUEUES, queues)?);
        let supplement: supplement::File = parse(SUPPLEMENT, supplement)?;
        let mut sections = vec![
            ns2.a_single_flow.read("ns2.json, a_single_flow")?,
            ns2.b_ten_reno_aqm.read("ns2.json, b_ten_reno_aqm")?,
            ns2.c_many_reno_ecn_seed002ch6.read("ns2.json, c_many_reno_ecn_seed002ch6")?,
            ns2.d_friendliness.read("ns2.json, d_friendliness")?,
            ns2.e_star64.read("ns2.json, e_star64")?,
            ns2.check_pi_default_long.read("ns2.json, check_pi_default_long")?,
            ns2.check_rap_buffer_and_finegrain.read("ns2.json, check_rap_buffer_and_finegrain")?,
            queues.a_ns2_disciplines.read("queues.json, a_ns2_disciplines")?,
            queues.b_ns3_disciplines.read("queues.json, b_ns3_disciplines")?,
            queues.c_two_simulators_droptail.read("queues.json, c_two_simulators_droptail")?,
        ];
        let files =
            vec![(NS2, ns2.meta.told()), (QUEUES, queues.meta.told()), (SUPPLEMENT, supplement.how.clone())];
        supplement.add_to(&mut sections)?;
        Ok(Reference { files, sections })
    }

    /// Returns all cases.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.sections.iter().flat_map(|section| &section.cases)
    }
}

fn pairs(of: &BTreeMap<String, String>) -> String {
    of.iter().map(|(name, text)| format!("`{name}` {text}")).collect::<Vec<_>>().join("; ")
}

impl Ns2Meta {
    fn told(&self) -> Vec<String> {
        let mut told = vec![
            self.simulator.clone(),
            self.wire_size.clone(),
            format!("Profiles: {}", pairs(&self.profiles)),
        ];
        told.push(format!("Acknowledgements: {}", self.tcp_sinks));
        told.extend(self.caveats.iter().cloned());
        told.push(format!("Units: {}", pairs(&self.units)));
        told
    }
}

impl QueuesMeta {
    fn told(&self) -> Vec<String> {
        let of = |name: &str, text: &str| format!("{name}: {text}");
        vec![
            self.simulators.clone(),
            of("Seeds", &self.seeds),
            of("Start", &self.start),
            format!("Units: {}", pairs(&self.units)),
        ]
    }
}

/// Mean and standard deviation in the format of the files.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spread {
    mean: f64,
    /// Standard deviation over random seeds; `None` for a single run.
    #[serde(deserialize_with = "Option::deserialize")]
    sd_over_seeds: Option<f64>,
}

impl From<Spread> for Value {
    fn from(it: Spread) -> Value {
        it.sd_over_seeds.map_or(Value::Single(it.mean), |deviation| Value::Spread(it.mean, deviation))
    }
}

/// Returns a value that is compared.
fn given(quantity: &str, value: impl Into<Value>) -> Given {
    Given { quantity: quantity.to_owned(), value: value.into(), left: None }
}

/// Returns a value that is not judged, with the reason.
fn left(quantity: &str, value: impl Into<Value>, why: &'static str) -> Given {
    Given { left: Some(why), ..given(quantity, value) }
}

impl From<f64> for Value {
    fn from(it: f64) -> Value {
        Value::Single(it)
    }
}

/// Checks that a section of queues.json has delays for 20 flows and parameters of known queues.
fn with_delays_and_queues<'a>(
    place: &str,
    access_ms: &[f64],
    mut queues: impl Iterator<Item = &'a String>,
    known: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    if access_ms.len() == 20 && queues.all(|name| known(name)) {
        return Ok(());
    }
    Err(unknown(place, "20 delays ACC_ms and parameters of known queues are wanted".to_owned()))
}

/// Fails unless the file describes the network that the parser expects.
fn described_as(place: &str, found: &str, known: &str) -> Result<(), Failure> {
    if found == known {
        return Ok(());
    }
    let what = format!("the reader was written for {known:?}, not for {found:?}");
    Err(Failure::Row { place: place.to_owned(), what })
}

fn unknown(place: &str, what: String) -> Failure {
    Failure::Row { place: place.to_owned(), what }
}

/// ns-2 counts the cuts after a mark separately; our counters do not.
const CUTS_FOR_MARKS: &str = "the simulator does not count cuts by what caused them";
/// See `timeout` in ns-2's `tcp.cc`.
const TIMEOUTS_AFTER_MARKS: &str =
    "ns-2's `nrexmit_` leaves out timeouts that follow a cut for a mark; ours counts them";

fn cases_of(name: &str, reasons: &[Reason]) -> Vec<Reason> {
    reasons.iter().filter(|reason| reason.case == name).cloned().collect()
}
