//! Reports of reproductions: an overview, a page for each paper in HTML, and a page for all papers in Markdown or HTML.

use super::block::{self, Block};
use super::entry::section;
pub use super::entry::{claims, counts, figure_path, notes, what_was_run};
use super::text::{Align, Grid};
use crate::plot::scale::short;
use crate::repro::{DOCUMENTS, Document, ReproOutcome, Reproduction, Verdict};

const ABOUT: &str = "Every figure and table is a scenario file. Its claims and their accepted ranges were \
written down before any measurement. \"published\" is the number in the paper; if the paper has only a \
picture or a sentence, there is no number, and the range is our reading of it. \"measured\" is the mean over \
runs with different random seeds; the interval is Student's at 95 %. A claim has one of five verdicts. It \
holds. It holds with a choice of ours: a value that the paper leaves open was chosen after the published \
numbers had been seen; the value, its reason and its alternatives follow the claim. The paper contradicts \
itself, as the stated algebra shows. The claim fails. Or it is open: it needs a feature that does not exist \
yet.";

/// Returns a table of all entries with the number of claims of each verdict.
fn summary(all: &[Reproduction]) -> Grid {
    let mut grid = table(&["reproduction", "about"]);
    for done in all {
        grid.row(row(vec![done.entry.id.clone(), done.entry.about.clone()], &[done]));
    }
    grid
}

/// Returns a table of chapters with the number of claims of each verdict, and a row with the totals.
pub fn chapters(all: &[Reproduction]) -> Grid {
    let mut grid = table(&["document", "part"]);
    let mut parts: Vec<(&str, String)> =
        all.iter().map(|done| (done.entry.document().name.as_str(), done.entry.chapter())).collect();
    parts.dedup();
    for (document, chapter) in parts {
        let of =
            |done: &&Reproduction| done.entry.document().name == document && done.entry.chapter() == chapter;
        grid.row(row(vec![document.into(), chapter.clone()], &all.iter().filter(of).collect::<Vec<_>>()));
    }
    grid.row(row(vec!["all".into(), String::new()], &all.iter().collect::<Vec<_>>()));
    grid
}

fn table(first: &[&'static str]) -> Grid {
    let mut head: Vec<_> = first.iter().map(|name| (*name, Align::Left)).collect();
    head.push(("claims", Align::Right));
    head.extend(["hold", "with a choice", "contradict", "fail", "open"].map(|name| (name, Align::Right)));
    Grid::new(&head)
}

fn row(mut first: Vec<String>, done: &[&Reproduction]) -> Vec<String> {
    let claims: usize = done.iter().map(|done| done.outcome.claims.len()).sum();
    first.push(claims.to_string());
    first.extend(
        Verdict::ALL
            .map(|verdict| done.iter().map(|done| done.outcome.count(verdict)).sum::<usize>().to_string()),
    );
    first
}

/// Lists the claims that do not hold. Claims for which the paper contradicts itself are first.
fn failures(all: &[Reproduction]) -> Block<'_> {
    let mut lines = Vec::new();
    for (verdict, why) in [(Verdict::Contradicts, " The paper contradicts itself."), (Verdict::Fails, "")] {
        for done in all {
            for claim in done.outcome.claims.iter().filter(|claim| claim.verdict == verdict) {
                let measured = claim.measured.map_or_else(|| "nothing".to_owned(), short);
                let (id, name, accepted) = (&done.entry.id, &claim.name, claim.tolerance.words());
                let published =
                    claim.published.map_or_else(String::new, |it| format!("published {}, ", short(it)));
                lines
                    .push(format!("{id}: {name}. Measured {measured}, {published}accepted {accepted}.{why}"));
            }
        }
    }
    if lines.is_empty() { Block::Text("", "No measured claim fails.".into()) } else { Block::List(lines) }
}

fn beginning<'a>(all: &'a [Reproduction], heading: &str) -> Vec<Block<'a>> {
    let outcomes: Vec<&ReproOutcome> = all.iter().map(|done| &done.outcome).collect();
    vec![
        Block::Heading(1, heading.to_owned()),
        Block::Text("", ABOUT.to_owned()),
        Block::Text("Total", format!("{}.", counts(&outcomes))),
        Block::Table(chapters(all)),
    ]
}

fn whole<'a>(all: &'a [Reproduction], heading: &str) -> Vec<Block<'a>> {
    let mut blocks = beginning(all, heading);
    if all.len() > 1 {
        blocks.push(Block::Table(summary(all)));
    }
    blocks.extend([Block::Heading(2, "Claims that fail".into()), failures(all)]);
    blocks.extend(all.iter().flat_map(section));
    blocks
}

/// Returns one page of Markdown with all entries; figures are linked.
pub fn markdown(all: &[Reproduction], heading: &str) -> String {
    block::markdown(&whole(all, heading))
}

/// Returns one page of HTML with all entries; figures and scenarios are included.
pub fn html(all: &[Reproduction], heading: &str) -> String {
    block::page(heading, &whole(all, heading))
}

/// Returns an overview of all entries, with links to the pages of the papers.
pub fn overview(all: &[Reproduction], heading: &str) -> String {
    let mut blocks = beginning(all, heading);
    for document in present(all) {
        blocks.push(Block::Link(
            file(document),
            format!("{}: {}, {}", document.name, document.title, document.by),
        ));
    }
    blocks.extend([Block::Heading(2, "Claims that fail".into()), failures(all)]);
    block::page(heading, &blocks)
}

/// Returns a page for each paper: its file name and text.
pub fn documents(all: &[Reproduction]) -> Vec<(String, String)> {
    let page = |document: &'static Document| {
        let mine: Vec<Reproduction> =
            all.iter().filter(|done| done.entry.document().name == document.name).cloned().collect();
        let heading = format!("{}: {}", document.name, document.title);
        (file(document), block::page(&heading, &whole(&mine, &heading)))
    };
    present(all).map(page).collect()
}

/// Returns the papers of the reproduced entries.
fn present(all: &[Reproduction]) -> impl Iterator<Item = &'static Document> {
    DOCUMENTS.iter().filter(|document| all.iter().any(|done| done.entry.document().name == document.name))
}

/// Returns the file name of a paper's page.
fn file(document: &Document) -> String {
    format!("{}.html", document.prefix)
}
