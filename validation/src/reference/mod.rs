//! The references: files of other simulators' runs as they were handed over, and runs of our own beside them.
//!
//! `reference/ns2.json` and `reference/queues.json` are copies that nobody edits. A module for each kind of section says which
//! network a row stands for and which of our quantities a field is. A section, field, queue or description that is not known is
//! an error that says where it is, so a file that changes is not compared with the networks of the old one.
//!
//! | module | sections |
//! |---|---|
//! | `single_flow` | `a_single_flow` of ns2.json |
//! | `reno_queues` | `b_ten_reno_aqm`, `c_many_reno_ecn_seed002ch6`, `check_pi_default_long` |
//! | `side_by_side` | `d_friendliness`, `check_rap_buffer_and_finegrain` |
//! | `star` | `e_star64` |
//! | `disciplines` | `a_ns2_disciplines` of queues.json, and what its sections have in common |
//! | `other_tcp` | `b_ns3_disciplines`, `c_two_simulators_droptail` |
//! | `supplement` | `supplement.json`: ours |

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

/// All that others measured.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The files' descriptions of themselves: name, and sentences.
    pub files: Vec<(&'static str, Vec<String>)>,
    /// The sections, in the order of the files.
    pub sections: Vec<Section>,
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file of references is not understood.
    #[error("{file} is not understood: {why}")]
    File {
        /// Which.
        file: &'static str,
        /// The fault and its place.
        why: serde_json::Error,
    },
    /// A row is of a network that is not known here, or describes a known one otherwise.
    #[error("{place}: {what}")]
    Row {
        /// File, section and row.
        place: String,
        /// The unknown item.
        what: String,
    },
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

/// The file of ns-2's runs.
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

/// The file of queue disciplines.
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
    /// The references that come with this package.
    ///
    /// # Errors
    /// When they are not understood.
    pub fn read() -> Result<Reference, Failure> {
        Reference::of(
            include_str!("../../reference/ns2.json"),
            include_str!("../../reference/queues.json"),
            include_str!("../../supplement.json"),
        )
    }

    /// Reads these files.
    ///
    /// # Errors
    /// When they are not understood.
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

    /// All cases.
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

/// Mean and deviation as the files write them.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spread {
    mean: f64,
    /// None where there was one run.
    #[serde(deserialize_with = "Option::deserialize")]
    sd_over_seeds: Option<f64>,
}

impl From<Spread> for Value {
    fn from(it: Spread) -> Value {
        it.sd_over_seeds.map_or(Value::Single(it.mean), |deviation| Value::Spread(it.mean, deviation))
    }
}

/// A value that is compared.
fn given(quantity: &str, value: impl Into<Value>) -> Given {
    Given { quantity: quantity.to_owned(), value: value.into(), left: None }
}

/// A value that is not judged.
fn left(quantity: &str, value: impl Into<Value>, why: &'static str) -> Given {
    Given { left: Some(why), ..given(quantity, value) }
}

impl From<f64> for Value {
    fn from(it: f64) -> Value {
        Value::Single(it)
    }
}

/// A section of queues has delays for 20 flows, and parameters of queues that are known.
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

/// An error unless the file describes what the reader was written for.
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

/// ns-2 counts which cuts answer a mark; our counters do not distinguish cuts.
const CUTS_FOR_MARKS: &str = "the simulator does not count cuts by what caused them";
/// See `timeout` in ns-2's `tcp.cc`.
const TIMEOUTS_AFTER_MARKS: &str =
    "ns-2's `nrexmit_` leaves out timeouts that follow a cut for a mark; ours counts them";

fn cases_of(name: &str, reasons: &[Reason]) -> Vec<Reason> {
    reasons.iter().filter(|reason| reason.case == name).cloned().collect()
}
