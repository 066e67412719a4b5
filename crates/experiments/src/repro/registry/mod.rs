//! Lists of the figures and tables that can be reproduced. The lists are TOML files in this directory, and name functions of this
//! module.

mod computed;
mod prediction;
mod queues;

use super::downloads::downloads;
use super::{Judged, Tolerance, Verdict, views};
use crate::figures::{Named, figures};
use crate::results::Results;
use crate::scenario::Scenario;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A figure or table of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Identifier in this project: the number of the paper and of the figure.
    pub id: String,
    /// Other names of the entry, from figures with the same content and from figures that show the network.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Subject, in one line.
    pub about: String,
    /// Published result of the figure or table, in words.
    pub published: String,
    /// Known reasons for claims that do not hold; may be empty.
    #[serde(default)]
    pub known: String,
    /// Scenario of the figure or table; `None` if nothing is simulated.
    pub scenario: Option<Embedded>,
    /// Calculation that needs no simulation.
    pub calculation: Option<Calculation>,
    /// Claims that need a missing feature.
    #[serde(default)]
    pub open: Vec<Open>,
    /// Claims that summarize other figures and tables; empty except in summaries.
    #[serde(default)]
    pub restates: Vec<Restated>,
}

/// A paper whose figures and tables are reproduced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Prefix of the identifiers of the paper's entries.
    pub prefix: String,
    /// Name in this project.
    pub name: String,
    /// Title of the paper.
    pub title: String,
    /// Author and kind of the text.
    pub by: String,
}

/// A scenario file, embedded in the program.
#[derive(Debug)]
pub struct Embedded {
    /// Path in the repository.
    pub file: &'static str,
    /// The text of the file.
    pub text: &'static str,
    /// Further changes for quick runs, in addition to shorter times.
    pub quick: Vec<(String, String)>,
    /// Function that draws the figures.
    pub figures: Figures,
}

/// A function that draws the figures of a scenario's results.
pub type Figures = fn(&Scenario, &Results) -> Vec<Named>;

/// Names of a scenario file and of the function that draws its figures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbeddedNames {
    file: String,
    figures: Option<String>,
    #[serde(default)]
    quick: Vec<(String, String)>,
}

/// A calculation without a scenario.
#[derive(Debug, Clone, Copy)]
pub struct Calculation {
    /// The claims, which are known before the calculation.
    pub claims: &'static [Declared],
    /// Makes the calculation. Calculations that simulate use these random seeds.
    pub run: fn(&[u64]) -> Calculated,
}

/// A claim about a calculation.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Name of the claim.
    pub name: &'static str,
    /// Statement of the paper, if several claims test it.
    pub statement: Option<&'static str>,
    /// The published value; `None` if no value is published.
    pub published: Option<f64>,
    /// The range of values for which the claim holds.
    pub tolerance: Tolerance,
    /// Why the claim cannot hold; `None` if it can.
    pub contradicts: Option<&'static str>,
}

impl Declared {
    const fn new(name: &'static str, published: Option<f64>, tolerance: Tolerance) -> Declared {
        Declared { name, statement: None, published, tolerance, contradicts: None }
    }

    /// Makes this a point of a statement.
    const fn of(self, statement: &'static str) -> Declared {
        Declared { statement: Some(statement), ..self }
    }

    /// Turns the verdict "fails" into "contradicts", because the measured value follows from the paper's own formulas.
    const fn by_algebra(self, why: &'static str) -> Declared {
        Declared { contradicts: Some(why), ..self }
    }

    fn judge(&self, values: &[f64]) -> Judged {
        let judged = Judged::measured(self.name.into(), self.published, self.tolerance, values);
        match self.contradicts.filter(|_| judged.verdict == Verdict::Fails) {
            Some(why) => Judged { verdict: Verdict::Contradicts, note: why.into(), ..judged },
            None => judged,
        }
    }
}

impl Calculation {
    /// Judges the claims by their values. Returns each with the name of its statement.
    pub(super) fn judge(&self, values: &[Vec<f64>]) -> Vec<(String, Judged)> {
        assert_eq!(self.claims.len(), values.len(), "each claim has values");
        let pairs = self.claims.iter().zip(values);
        pairs
            .map(|(claim, values)| (claim.statement.unwrap_or(claim.name).into(), claim.judge(values)))
            .collect()
    }
}

/// Results of a calculation.
#[derive(Debug)]
pub struct Calculated {
    /// The measured values of each claim.
    pub values: Vec<Vec<f64>>,
    /// The figures.
    pub figures: Vec<Named>,
}

/// A claim that needs a missing feature.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Name of the claim.
    pub name: String,
    /// The published value; `None` if no value is published.
    pub published: Option<f64>,
    /// The missing feature.
    pub needs: String,
}

/// A claim of a summary. It is about the claims of another figure or table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restated {
    /// Name of the claim.
    pub name: String,
    /// Identifier of the summarized figure or table.
    pub entry: String,
    /// Prefixes of the names of the summarized claims.
    pub claims: Vec<String>,
}

/// Functions that draw figures, by name.
const FIGURES: &[(&str, Figures)] = &[
    ("averages_and_rates", views::averages_and_rates),
    ("averages_and_sweep", views::averages_and_sweep),
    ("downloads", downloads),
    ("drop_to_zero", views::drop_to_zero),
    ("fig_2_12", views::fig_2_12),
    ("fig_2_18", views::fig_2_18),
    ("fig_3_4", views::fig_3_4),
    ("fig_3_10", views::fig_3_10),
    ("fig_3_12", views::fig_3_12),
    ("fig_3_16", views::fig_3_16),
    ("fig_5_14", views::fig_5_14),
    ("figures", figures),
    ("figures_of_trees", views::figures_of_trees),
    ("rates_and_round_trips", views::rates_and_round_trips),
    ("rates_by_setting", views::rates_by_setting),
    ("sec_3_3_5", views::sec_3_3_5),
    ("table_3_2", views::table_3_2),
];

/// Calculations, by name.
const CALCULATIONS: &[(&str, Calculation)] = &[
    ("fig_2_10", Calculation { claims: computed::FIG_2_10, run: computed::fig_2_10 }),
    ("fig_5_2", Calculation { claims: queues::FIG_5_2, run: queues::fig_5_2 }),
    ("fig_5_3", Calculation { claims: prediction::FIG_5_3, run: prediction::fig_5_3 }),
    ("fig_5_6", Calculation { claims: queues::FIG_5_6, run: queues::fig_5_6 }),
    ("fig_5_7", Calculation { claims: prediction::FIG_5_7, run: prediction::fig_5_7 }),
    ("fig_6_2", Calculation { claims: queues::FIG_6_2, run: queues::fig_6_2 }),
];

macro_rules! scenarios {
    ($($folder:literal: $($name:literal)+;)+) => {
        /// Scenario files: path in the repository, and text.
        const SCENARIOS: &[(&str, &str)] = &[$($((
            concat!("scenarios/", $folder, "/", $name, ".toml"),
            include_str!(concat!("../../../scenarios/", $folder, "/", $name, ".toml")),
        ),)+)+];
    };
}

scenarios! {
    "000": "fig-2.6" "fig-2.7" "fig-2.12" "fig-2.13" "fig-2.15" "fig-2.16" "fig-2.18" "fig-2.19" "fig-2.20" "fig-3.4"
        "fig-3.6" "fig-3.7" "fig-3.8" "fig-3.10" "fig-3.12" "fig-3.13" "sec-3.3.5" "table-3.2" "fig-3.16" "fig-4.5" "fig-4.7"
        "fig-4.9" "fig-4.11" "fig-4.13" "fig-5.8" "fig-5.10" "fig-5.12" "fig-5.14" "fig-5.15" "fig-D.4" "fig-D.6"
        "fig-D.8";
    "001": "fig-2" "fig-3" "fig-5" "fig-7" "fig-9" "fig-11" "sec-3.2" "sec-5";
    "002": "fig-3.12a" "fig-3.12b" "fig-3.13" "fig-3.14a" "fig-3.14b" "fig-3.15a" "fig-3.15b" "fig-3.16a"
        "fig-3.16b" "fig-3.17" "fig-3.18" "fig-4.5a" "fig-4.5b" "fig-4.6a" "fig-4.6b" "fig-4.9" "fig-4.10"
        "fig-4.11" "fig-4.12" "fig-4.16" "fig-5.9" "fig-5.12" "fig-5.15" "fig-5.16" "fig-5.17" "fig-6.7" "fig-6.10"
        "fig-6.11" "fig-6.12" "fig-6.14";
    "003": "fig-3" "table-1" "table-2" "sec-4-storage" "sec-4-tcp";
    "004": "eq-2" "fig-5" "fig-7" "fig-8" "fig-9" "sec-4";
    "compare": "drop-to-zero";
}

/// Returns the item of this name, and the name.
fn named<T: Copy, E: Error>(all: &[(&'static str, T)], name: &str) -> Result<(&'static str, T), E> {
    let found = all.iter().find(|(known, _)| *known == name).copied();
    found.ok_or_else(|| E::custom(format!("nothing here is called {name:?}")))
}

impl<'de> Deserialize<'de> for Embedded {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Embedded, D::Error> {
        let names = EmbeddedNames::deserialize(source)?;
        let (file, text) = named(SCENARIOS, &names.file)?;
        let (_, figures) = named(FIGURES, names.figures.as_deref().unwrap_or("figures"))?;
        Ok(Embedded { file, text, quick: names.quick, figures })
    }
}

impl<'de> Deserialize<'de> for Calculation {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Calculation, D::Error> {
        named(CALCULATIONS, &String::deserialize(source)?).map(|(_, calculation)| calculation)
    }
}

/// Parses a list of TOML tables.
fn list<T: DeserializeOwned>(text: &str) -> impl Iterator<Item = T> {
    let lists: BTreeMap<String, Vec<T>> = toml::from_str(text).expect("a test reads every list");
    lists.into_values().flatten()
}

/// All papers, and the collection of this project's own scenarios.
pub static DOCUMENTS: LazyLock<Vec<Document>> =
    LazyLock::new(|| list(include_str!("documents.toml")).collect());

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let parts = [
        include_str!("chapter2.toml"),
        include_str!("chapter3.toml"),
        include_str!("chapter4.toml"),
        include_str!("accumulation.toml"),
        include_str!("mtcp.toml"),
        include_str!("queues.toml"),
        include_str!("raccoom.toml"),
        include_str!("rmanp.toml"),
        include_str!("cocoon.toml"),
        include_str!("rlc.toml"),
        include_str!("own.toml"),
    ];
    parts.into_iter().flat_map(list).collect()
});

/// Returns all figures and tables in the order of the papers, followed by this project's own scenarios.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter()
}

impl Entry {
    /// Returns the paper of the figure or table.
    pub fn document(&self) -> &'static Document {
        let prefix = self.id.split('/').next().unwrap_or_default();
        let of = |document: &&Document| document.prefix == prefix;
        DOCUMENTS.iter().find(of).expect("a test finds the paper of every entry")
    }

    /// Returns the chapter or appendix of a figure or table, such as "chapter 2" or "appendix D"; empty if the figure or table
    /// has no number.
    pub fn chapter(&self) -> String {
        let number = self.id.split_once('-').and_then(|(_, number)| number.split_once('.'));
        match number {
            Some((part, _)) if part.bytes().all(|byte| byte.is_ascii_digit()) => format!("chapter {part}"),
            Some((part, _)) => format!("appendix {part}"),
            None => String::new(),
        }
    }
}

/// No figure or table has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no reproduction `{0}`; `faircast repro list` lists all of them")]
pub struct NoSuchEntry(pub String);

/// Finds a figure or table by its name or an alias.
///
/// # Errors
/// If no entry has this identifier.
pub fn find(id: &str) -> Result<&'static Entry, NoSuchEntry> {
    let named = |entry: &&Entry| entry.id == id || entry.aliases.iter().any(|alias| alias == id);
    entries().find(named).ok_or_else(|| NoSuchEntry(id.to_owned()))
}
