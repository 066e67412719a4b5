//! Reports of reproductions: in HTML an overview, a page for each paper and a page for each figure; a page for all papers in Markdown
//! or HTML.

use super::block::{self, Block};
use super::entry::section;
pub use super::entry::{claims, counts, entry_path, figure_path, notes, what_was_run};
use super::text::{Align, Grid};
use crate::plot::scale::short;
use crate::repro::{DOCUMENTS, Document, Judged, ReproOutcome, Reproduction, Verdict};

const ABOUT: &str = "Every figure and table is a scenario file with claims and their accepted ranges. \"published\" is the \
number in the paper. \"no number\" marks a claim for which the paper has only a picture or a sentence; its range is our \
reading. \"measured\" is the mean over runs with different random seeds; the interval is Student's at 95 %. Orders (at \
most 1, at least 1) are judged by the differences of the two values in each run. A claim has one of six verdicts. It \
holds: the whole interval is in the range. It holds with a choice of ours: a value that the paper leaves open was \
chosen after the published numbers had been seen, or a value departs from the paper, and the claim does not hold with every alternative; the value, its \
reason and its alternatives follow the claim. It is undecided: the interval crosses a limit. The paper contradicts \
itself, as the stated algebra shows. The claim fails: the interval is outside the range. Or it is open: a feature is \
missing.";

/// Returns a table of all entries with the number of claims of each verdict. Each entry links to its page.
fn summary(all: &[Reproduction]) -> Grid {
    let mut grid = table(&["reproduction", "about"]);
    for done in all {
        let cells = row(vec![done.entry.id.clone(), done.entry.about.clone()], &[done]);
        grid.linked_row(entry_path(&done.entry.id), cells);
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
    head.extend(
        ["hold", "with a choice", "undecided", "contradict", "fail", "open"].map(|name| (name, Align::Right)),
    );
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

/// Returns a table of the accepted ranges by their width, with the number of claims that state a published number.
fn widths(all: &[Reproduction]) -> Grid {
    let mut grid = Grid::new(&[
        ("accepted range", Align::Left),
        ("claims", Align::Right),
        ("with a published number", Align::Right),
    ]);
    let claims = || all.iter().flat_map(|done| &done.outcome.claims);
    let mut row = |name: String, fits: &dyn Fn(Option<f64>) -> bool| {
        let wide = claims().filter(|claim| fits(claim.tolerance.half_width(claim.published)));
        let (count, published) = wide.fold((0, 0), |(count, published), claim| {
            (count + 1, published + usize::from(claim.published.is_some()))
        });
        grid.row(vec![name, count.to_string(), published.to_string()]);
    };
    row("one limit, or none".into(), &|half| half.is_none());
    let mut above = -1.0;
    for most in [0.05, 0.1, 0.15, 0.2, 0.25, f64::INFINITY] {
        let name = if f64::is_finite(most) {
            format!("half width up to {} % of the middle", short(most * 100.0).trim_end_matches(".0"))
        } else {
            "wider, as published".into()
        };
        row(name, &|half| half.is_some_and(|half| half > above + 1e-9 && half <= most + 1e-9));
        above = most;
    }
    grid
}

/// Lists the claims that do not hold. Claims for which the paper contradicts itself are first.
/// Returns the claims that fail, with the results of other settings and the known reasons.
fn failures(all: &[Reproduction]) -> Block<'_> {
    let mut lines = Vec::new();
    for (verdict, why) in [(Verdict::Contradicts, " The paper contradicts itself."), (Verdict::Fails, "")] {
        for done in all {
            let mut known = if verdict == Verdict::Fails { done.entry.known.as_str() } else { "" };
            for claim in done.outcome.claims.iter().filter(|claim| claim.verdict == verdict) {
                let measured = claim.measured.map_or_else(|| "nothing".to_owned(), short);
                let (id, name, accepted) = (&done.entry.id, &claim.name, claim.tolerance.words());
                let published =
                    claim.published.map_or_else(String::new, |it| format!("published {}, ", short(it)));
                let tried = tries(claim);
                let known = match std::mem::take(&mut known) {
                    "" => String::new(),
                    known => format!(" {known}"),
                };
                lines.push(format!(
                    "{id}: {name}. Measured {measured}, {published}accepted {accepted}.{why}{tried}{known}"
                ));
            }
        }
    }
    if lines.is_empty() { Block::Text("", "No measured claim fails.".into()) } else { Block::List(lines) }
}

/// Returns a sentence about the values of a failing claim with other settings; empty without other settings.
fn tries(claim: &Judged) -> String {
    let values = claim.tried.iter().map(|other| other.measured);
    let Some(least) = values.clone().reduce(f64::min) else { return String::new() };
    let most = values.fold(least, f64::max);
    let accepted = claim.tried.iter().filter(|other| other.accepted).count();
    let (settings, least, most) = (claim.tried.len(), short(least), short(most));
    format!(" Other settings: {settings}, with {least} to {most}, of which {accepted} are accepted.")
}

fn beginning<'a>(all: &'a [Reproduction], heading: &str) -> Vec<Block<'a>> {
    let outcomes: Vec<&ReproOutcome> = all.iter().map(|done| &done.outcome).collect();
    vec![
        Block::Heading(1, heading.to_owned()),
        Block::Text("", ABOUT.to_owned()),
        Block::Text("Total", format!("{}.", counts(&outcomes))),
        Block::Table(chapters(all)),
        Block::Text(
            "Widths",
            "The ranges were set before the measurements and have not changed since (scenarios/ranges.txt)."
                .into(),
        ),
        Block::Table(widths(all)),
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

/// Returns a page for each paper and a page for each entry: their file names and texts.
pub fn documents(all: &[Reproduction]) -> Vec<(String, String)> {
    let page = |document: &'static Document| {
        let mine: Vec<Reproduction> =
            all.iter().filter(|done| done.entry.document().name == document.name).cloned().collect();
        let heading = format!("{}: {}", document.name, document.title);
        let mut blocks = beginning(&mine, &heading);
        blocks.extend([
            Block::Table(summary(&mine)),
            Block::Heading(2, "Claims that fail".into()),
            failures(&mine),
        ]);
        (file(document), block::page(&heading, &blocks))
    };
    present(all).map(page).chain(all.iter().map(entry)).collect()
}

/// Returns the page of an entry: its path and text.
fn entry(done: &Reproduction) -> (String, String) {
    let document = done.entry.document();
    let mut blocks =
        vec![Block::Link(format!("../{}", file(document)), format!("{}: {}", document.name, document.title))];
    blocks.extend(section(done));
    (entry_path(&done.entry.id), block::page(&format!("{}: {}", done.entry.id, done.entry.about), &blocks))
}

/// Returns the papers of the reproduced entries.
fn present(all: &[Reproduction]) -> impl Iterator<Item = &'static Document> {
    DOCUMENTS.iter().filter(|document| all.iter().any(|done| done.entry.document().name == document.name))
}

/// Returns the file name of a paper's page.
fn file(document: &Document) -> String {
    format!("{}.html", document.prefix)
}
