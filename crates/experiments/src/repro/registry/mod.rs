//! Which figures and tables can be repeated.

mod accumulation;
mod chapter2;
mod chapter3;
mod chapter4;
mod cocoon;
mod computed;
mod mtcp;
mod own;
mod prediction;
mod queues;
mod raccoom;
mod rlc;
mod rmanp;

use super::Judged;
use crate::figures::Named;
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

/// A document whose figures and tables are repeated.
#[derive(Debug)]
pub struct Document {
    /// How the names of its entries begin.
    pub prefix: &'static str,
    /// What it is called here.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Who wrote it, and what it is.
    pub by: &'static str,
}

/// All of them, and what is our own.
pub static DOCUMENTS: &[Document] = &[
    Document {
        prefix: "000",
        name: "seed 000",
        title: "End-to-End Multicast Congestion Control and Avoidance",
        by: "Jiang Li, thesis, Rensselaer Polytechnic Institute",
    },
    Document {
        prefix: "001",
        name: "seed 001",
        title: "MTCP: Scalable TCP-like Congestion Control for Reliable Multicast",
        by: "Injong Rhee, Nallathambi Balaguru and George N. Rouskas, NCSU TR-98-01",
    },
    Document {
        prefix: "002",
        name: "seed 002",
        title: "Congestion Control for Next-Generation Global Internets",
        by: "Yuan Gao, dissertation, The Ohio State University, 2002",
    },
    Document {
        prefix: "003",
        name: "seed 003",
        title: "Performance of Active Multicast Congestion Control",
        by: "Marifeli Sedano, Arturo Azcorra and María Calderón",
    },
    Document {
        prefix: "004",
        name: "seed 004",
        title: "TCP-like Congestion Control for Layered Multicast Data Transfer",
        by: "Lorenzo Vicisano, Luigi Rizzo and Jon Crowcroft, IEEE INFOCOM 1998",
    },
    Document { prefix: "faircast", name: "faircast", title: "Comparisons of our own", by: "of no document" },
];

impl Entry {
    /// Where it is from.
    pub fn document(&self) -> &'static Document {
        let prefix = self.id.split('/').next().unwrap_or_default();
        let of = |document: &&Document| document.prefix == prefix;
        DOCUMENTS.iter().find(of).expect("a test finds the document of every entry")
    }

    /// The chapter or appendix of a figure or table, by its number: "chapter 2", "appendix D"; empty where there are none.
    pub fn chapter(&self) -> String {
        let number = self.id.split_once('-').and_then(|(_, number)| number.split_once('.'));
        match number {
            Some((part, _)) if part.bytes().all(|byte| byte.is_ascii_digit()) => format!("chapter {part}"),
            Some((part, _)) => format!("appendix {part}"),
            None => String::new(),
        }
    }
}

impl Entry {
    /// What it says of other figures and tables; empty but for summaries.
    pub fn restates(&self) -> &'static [Restated] {
        match self.id {
            "000/table-3.3" => chapter3::SUMMARY,
            _ => &[],
        }
    }
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

/// A claim of a summary: a word about claims of another figure or table.
#[derive(Debug)]
pub struct Restated {
    /// What is claimed.
    pub name: &'static str,
    /// Which figure or table it sums up.
    pub entry: &'static str,
    /// Which of its claims, by how their names begin.
    pub claims: &'static [&'static str],
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
        mtcp::ENTRIES,
        queues::ENTRIES,
        raccoom::ENTRIES,
        rmanp::ENTRIES,
        cocoon::ENTRIES,
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
