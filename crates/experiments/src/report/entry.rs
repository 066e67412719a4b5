//! The report of one figure or table: the published result, the run and its results, choices for values that the paper leaves
//! open, and claims that do not hold.

use super::block::Block;
use super::text::{Align, Grid};
use crate::plot::scale::short;
use crate::repro::{Alternative, Judged, ReproOutcome, Reproduction, Verdict};
use crate::scenario::{Choice, When};

/// Returns a table of the claims and the values that were measured for them.
pub fn claims(outcome: &ReproOutcome) -> Grid {
    let mut grid = Grid::new(&[
        ("claim", Align::Left),
        ("published", Align::Right),
        ("measured", Align::Right),
        ("difference", Align::Right),
        ("95 % interval", Align::Left),
        ("accepted", Align::Left),
        ("verdict", Align::Left),
    ]);
    // A statement that is tested at several points is followed by its points.
    let rows = outcome.claims.iter().flat_map(|claim| std::iter::once((claim, "")).chain(points(claim)));
    for (claim, indent) in rows {
        let interval = claim
            .interval
            .map_or_else(|| "-".to_owned(), |[low, high]| format!("{} to {}", short(low), short(high)));
        grid.row(vec![
            format!("{indent}{}", claim.name),
            claim.published.map_or_else(|| "no number".to_owned(), short),
            claim.measured.map_or_else(|| "-".to_owned(), short),
            difference(claim).unwrap_or_else(|| "-".to_owned()),
            interval,
            claim.tolerance.words(),
            claim.verdict.word().into(),
        ]);
    }
    grid
}

/// Returns the points of a statement, with the mark of their rows.
fn points(claim: &Judged) -> impl Iterator<Item = (&Judged, &'static str)> {
    claim.points.iter().map(|point| (point, "\u{b7} "))
}

/// Returns the difference between the measured and the published value, relative to the latter.
fn difference(claim: &Judged) -> Option<String> {
    let part = claim.measured? / claim.published? - 1.0;
    part.is_finite().then(|| format!("{:+.1} %", part * 100.0))
}

/// Describes the run in one line, or the reason why nothing was run.
pub fn what_was_run(done: &Reproduction) -> String {
    let Some(run) = &done.run else {
        if !done.entry.restates.is_empty() {
            return "No separate runs: it summarises other figures and tables, which were repeated for it."
                .into();
        }
        let computed = done.entry.calculation.is_some();
        return if computed { "Computed, without a scenario." } else { "Nothing is simulated." }.into();
    };
    let (points, seeds) = (run.results.points.len(), run.results.identity.seeds.len());
    let each = if points > 1 {
        format!("{points} settings with {seeds} seeds each")
    } else {
        format!("{seeds} seeds")
    };
    format!(
        "Simulated: {each}, {} s, {} million packets over links.",
        short(run.scenario.duration(0)).trim_end_matches(".0"),
        short(run.results.totals.traversals as f64 / 1e6)
    )
}

/// Returns the notes about an entry, each once: the notes of the claims, and the known reasons for failures.
pub fn notes(done: &Reproduction) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for claim in done.outcome.claims.iter().filter(|claim| !claim.note.is_empty()) {
        let kind = match claim.verdict {
            Verdict::Open => "Open",
            Verdict::Contradicts => "Contradiction",
            _ => "Note",
        };
        let note = format!("{kind}: {}.", claim.note.trim_end_matches('.'));
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let fails = done.outcome.count(Verdict::Fails) > 0;
    match (done.entry.known.as_str(), fails) {
        ("", true) => notes.push("A claim fails for an unknown reason.".into()),
        ("", false) => {}
        (known, true) => notes.push(format!("Known about the failing claims: {known}")),
        (known, false) => notes.push(format!("Known: {known}")),
    }
    notes
}

/// Describes a value that the paper leaves open.
pub fn choice(chosen: &Choice) -> String {
    let when = match chosen.when {
        When::Before => "chosen before the published numbers had been seen",
        When::After => "chosen after the published numbers had been seen",
        When::Departs => "departs from the paper",
    };
    format!("{}: {} ({when}). {}", sentence(&chosen.what), chosen.value, chosen.why)
}

/// Capitalizes the first letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns a text with the numbers of seeds of the run and of the alternatives of a choice; empty without alternatives.
fn runs_beside(done: &Reproduction, number: usize) -> String {
    let other = done.alternatives.iter().find(|other| other.choice == number);
    let Some((run, other)) = done.run.as_ref().zip(other) else { return String::new() };
    let seeds = run.results.identity.seeds.len();
    format!(" Column \"as run\": {seeds} seeds; each alternative: {}.", other.seeds)
}

/// Returns the choices of the scenario that was run, with their numbers.
pub fn choices(done: &Reproduction) -> impl Iterator<Item = (usize, &Choice)> {
    done.run.iter().flat_map(|run| run.scenario.choices().iter().enumerate())
}

/// Returns a table of the claims that a choice concerns, with their values in the run and in the run of each alternative. Returns
/// `None` without alternatives.
pub fn alternatives(done: &Reproduction, number: usize) -> Option<Grid> {
    let run = done.run.as_ref()?;
    let chosen = &run.scenario.choices()[number];
    let others: Vec<_> = done.alternatives.iter().filter(|other| other.choice == number).collect();
    if others.is_empty() {
        return None;
    }
    let mut head = vec![("claim", Align::Left), ("accepted", Align::Left), ("as run", Align::Right)];
    head.extend(others.iter().map(|other| (other.name.as_str(), Align::Right)));
    let mut grid = Grid::new(&head);
    let value = |claim: Option<&Judged>| match claim.and_then(|claim| Some((claim, claim.measured?))) {
        None => "-".to_owned(),
        Some((claim, value)) if claim.tolerance.accepts(claim.published, value) => short(value),
        Some((_, value)) => format!("{} (outside)", short(value)),
    };
    let of =
        |other: &&Alternative, claim: &Judged| value(other.claims.iter().find(|one| one.name == claim.name));
    let claims = done.outcome.claims.iter().flat_map(Judged::parts);
    for claim in claims.filter(|claim| chosen.concerns(&claim.name)) {
        let cells: Vec<String> = others.iter().map(|other| of(other, claim)).collect();
        if cells.iter().any(|cell| cell != "-") {
            let mut row = vec![claim.name.clone(), claim.tolerance.words(), value(Some(claim))];
            row.extend(cells);
            grid.row(row);
        }
    }
    Some(grid)
}

/// Returns the path of an entry's page, relative to the report.
pub fn entry_path(id: &str) -> String {
    format!("{}/index.html", id.replace('/', "-"))
}

/// Returns the path of an entry's figure, relative to the report.
pub fn figure_path(id: &str, name: &str) -> String {
    format!("{}/{name}.svg", id.replace('/', "-"))
}

/// Returns the section of an entry.
pub(super) fn section(done: &Reproduction) -> Vec<Block<'_>> {
    let entry = done.entry;
    let mut out = vec![
        Block::Heading(2, format!("{}: {}", entry.id, entry.about)),
        Block::Text("Published result", entry.published.clone()),
    ];
    let mut run = String::new();
    if let Some(what) = &done.run {
        let paragraphs = what.scenario.about().split("\n\n");
        run = paragraphs.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ") + " ").collect();
    }
    out.push(Block::Text("Runs", run + &what_was_run(done)));
    for (name, figure) in &done.figures {
        out.push(Block::Figure(figure, figure_path(&entry.id, name)));
    }
    out.push(Block::Text("Result", counts(&[&done.outcome]) + "."));
    out.push(Block::Table(claims(&done.outcome)));
    for (number, chosen) in choices(done) {
        out.push(Block::Text("Our choice", choice(chosen) + &runs_beside(done, number)));
        if let Some(grid) = alternatives(done, number) {
            out.push(Block::Table(grid));
        }
    }
    for note in notes(done) {
        out.push(Block::Text("", note));
    }
    if let Some(run) = &done.run {
        out.push(Block::File(run.scenario.file(), run.scenario.text()));
    }
    out.push(Block::Command(format!("faircast repro run {}", entry.id)));
    out
}

/// Counts the verdicts in words, as in "12 hold, 2 hold with a choice of ours, 1 fails, 3 are open".
pub fn counts(outcomes: &[&ReproOutcome]) -> String {
    let words = |verdict| match verdict {
        Verdict::Holds => ("holds", "hold"),
        Verdict::Chosen => ("holds with a choice of ours", "hold with a choice of ours"),
        Verdict::Undecided => ("is undecided", "are undecided"),
        Verdict::Contradicts => ("contradicts itself", "contradict themselves"),
        Verdict::Fails => ("fails", "fail"),
        Verdict::Open => ("is open", "are open"),
    };
    let reported = Verdict::ALL.into_iter().filter_map(|verdict| {
        let count: usize = outcomes.iter().map(|outcome| outcome.count(verdict)).sum();
        let always = matches!(verdict, Verdict::Holds | Verdict::Fails);
        let (one, more) = words(verdict);
        (always || count > 0).then(|| format!("{count} {}", if count == 1 { one } else { more }))
    });
    reported.collect::<Vec<_>>().join(", ")
}
