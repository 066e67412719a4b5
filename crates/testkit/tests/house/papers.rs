//! Reads `papers/papers.toml`.

use crate::scan::Section;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Papers {
    paper: Vec<Document>,
    #[serde(default, rename = "gap")]
    pub gaps: Vec<Gap>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    number: String,
    title: String,
    authors: Vec<String>,
    kind: String,
    sections: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    title: String,
    status: Status,
    reason: Option<String>,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Status {
    Done,
    Gap,
    Todo,
}

/// A departure from a paper, or a guess where the paper is silent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    pub file: String,
    /// The section of a paper, as `000, 3.1.5`, or the number of an RFC and its section.
    section: String,
    /// The first words of the gap comment, or the whole comment.
    pub text: String,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.file, self.section, self.text)
    }
}

impl Gap {
    /// Returns the section of a paper that the gap departs from; `None` for an RFC.
    pub fn cites(&self) -> Option<Section> {
        let (paper, id) = self.section.split_once(", ")?;
        paper.starts_with("00").then(|| Section::new(paper, id))
    }
}

impl Papers {
    pub fn read(path: &Path) -> Papers {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn has(&self, section: &Section) -> bool {
        self.all().any(|(known, _)| known == *section)
    }

    /// Returns the sections that the code implements, with or without gaps.
    pub fn implemented(&self) -> impl Iterator<Item = Section> + '_ {
        self.all().filter(|(_, entry)| entry.status != Status::Todo).map(|(section, _)| section)
    }

    /// Returns the inconsistencies within the file.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut seen = BTreeSet::new();
        for document in &self.paper {
            if document.title.is_empty() || document.authors.is_empty() || document.kind.is_empty() {
                faults.push(format!("document {} lacks a title, authors or kind", document.number));
            }
        }
        for (section, entry) in self.all() {
            if entry.title.is_empty() {
                faults.push(format!("{section} has no title"));
            }
            if entry.reason.is_none() == (entry.status == Status::Todo) {
                faults.push(format!("{section}: a reason belongs to what is not done, and only to that"));
            }
            let marked = entry.status == Status::Gap;
            let listed = self.gaps.iter().any(|gap| gap.cites().as_ref() == Some(&section));
            if marked != listed {
                faults.push(format!(
                    "{section}: status \"gap\" is for sections with a [[gap]], and for no others"
                ));
            }
            if !seen.insert(section.clone()) {
                faults.push(format!("{section} is listed twice"));
            }
        }
        let known = |section: &Section| seen.contains(section);
        faults.extend(
            self.gaps
                .iter()
                .filter(|gap| gap.section.is_empty() || gap.cites().is_some_and(|cited| !known(&cited)))
                .map(|gap| format!("this gap names no known section: {gap}")),
        );
        faults
    }

    fn all(&self) -> impl Iterator<Item = (Section, &Entry)> {
        let of = |document: &'_ Document| document.number.clone();
        self.paper.iter().flat_map(move |document| {
            let number = of(document);
            document.sections.iter().map(move |entry| (Section::new(&number, &entry.id), entry))
        })
    }
}
