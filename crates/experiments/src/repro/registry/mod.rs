//! Which figures and tables can be repeated.

mod accumulation;
mod chapter2;
mod chapter3;
mod chapter4;
mod own;
mod rlc;

use super::Judged;
use crate::report::figures::Named;
use crate::results::Results;
use crate::scenario::Scenario;

/// A figure or table of a document.
#[derive(Debug)]
pub struct Entry {
    /// What it is called here: the document's number and the figure's.
    pub id: &'static str,
    /// Other names, of figures that show the same or the network for it.
    pub aliases: &'static [&'static str],
    /// What it is about, in one line.
    pub about: &'static str,
    /// What the published figure or table shows, in words.
    pub published: &'static str,
    /// Its scenario; `None` when nothing is simulated.
    pub scenario: Option<Embedded>,
    /// What is computed without a simulation.
    pub calculation: Option<fn() -> Calculated>,
    /// Claims that need something that is not there yet.
    pub open: &'static [Open],
    /// What is known about claims that do not hold; may be empty.
    pub known: &'static str,
}

/// A scenario file.
#[derive(Debug)]
pub struct Embedded {
    /// Its path in the repository.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Further changes for quick runs, beside short times.
    pub quick: &'static [(&'static str, &'static str)],
    /// Its figures.
    pub figures: fn(&Scenario, &Results) -> Vec<Named>,
}

/// What came of a calculation.
#[derive(Debug)]
pub struct Calculated {
    /// Its claims.
    pub claims: Vec<Judged>,
    /// Its figures.
    pub figures: Vec<Named>,
}

/// A claim that needs something that is not there yet.
#[derive(Debug)]
pub struct Open {
    /// What is claimed.
    pub name: &'static str,
    /// The published value, where there is one.
    pub published: Option<f64>,
    /// What it needs.
    pub needs: &'static str,
}

const fn open(name: &'static str, published: Option<f64>, needs: &'static str) -> Open {
    Open { name, published, needs }
}

macro_rules! embedded {
    ($file:literal, $quick:expr, $figures:expr) => {
        Some(Embedded {
            file: concat!("scenarios/", $file),
            text: include_str!(concat!("../../../scenarios/", $file)),
            quick: $quick,
            figures: $figures,
        })
    };
}
use embedded;

/// All of them, in the order of the documents, then our own.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    let parts = [
        chapter2::ENTRIES,
        chapter3::ENTRIES,
        chapter4::ENTRIES,
        accumulation::ENTRIES,
        rlc::ENTRIES,
        own::ENTRIES,
    ];
    parts.into_iter().flatten()
}

/// No figure or table has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no reproduction `{0}`; `faircast repro list` shows all")]
pub struct NoSuchEntry(pub String);

/// The figure or table of this name or alias.
///
/// # Errors
/// When there is none.
pub fn find(id: &str) -> Result<&'static Entry, NoSuchEntry> {
    let named = |entry: &&Entry| entry.id == id || entry.aliases.contains(&id);
    entries().find(named).ok_or_else(|| NoSuchEntry(id.to_owned()))
}
