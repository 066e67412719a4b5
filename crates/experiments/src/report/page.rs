//! A report of reproductions, as one Markdown and one HTML page.

use super::html;
use super::text::{Align, Grid};
use crate::plot::scale::short;
use crate::repro::{Alternative, Judged, ReproOutcome, Reproduction, Verdict};
use crate::scenario::Choice;
use std::fmt::Write as _;

/// Claims beside what was measured.
pub fn claims(outcome: &ReproOutcome) -> Grid {
    let mut grid = Grid::new(&[
        ("claim", Align::Left),
        ("published", Align::Right),
        ("measured", Align::Right),
        ("95 % interval", Align::Left),
        ("accepted", Align::Left),
        ("verdict", Align::Left),
    ]);
    for claim in &outcome.claims {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let interval = claim
            .interval
            .map_or_else(|| "-".to_owned(), |[low, high]| format!("{} to {}", short(low), short(high)));
        grid.row(vec![
            claim.name.clone(),
            number(claim.published),
            number(claim.measured),
            interval,
            claim.tolerance.words(),
            claim.verdict.word().into(),
        ]);
    }
    grid
}

/// What was run, in one line; why not, when it was not.
pub fn what_was_run(done: &Reproduction) -> String {
    let Some(run) = &done.run else {
        let computed = done.entry.calculation.is_some();
        return if computed { "Computed; nothing is simulated." } else { "Nothing is simulated." }.into();
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

/// "12 hold, 2 hold with a choice of ours, 1 fails, 3 are open": what there is of each.
pub fn counts(outcomes: &[&ReproOutcome]) -> String {
    let words = |verdict| match verdict {
        Verdict::Holds => ("holds", "hold"),
        Verdict::Chosen => ("holds with a choice of ours", "hold with a choice of ours"),
        Verdict::Contradicts => ("contradicts itself", "contradict themselves"),
        Verdict::Fails => ("fails", "fail"),
        Verdict::Open => ("is open", "are open"),
    };
    let told = Verdict::ALL.into_iter().filter_map(|verdict| {
        let count: usize = outcomes.iter().map(|outcome| outcome.count(verdict)).sum();
        let always = matches!(verdict, Verdict::Holds | Verdict::Fails);
        let (one, more) = words(verdict);
        (always || count > 0).then(|| format!("{count} {}", if count == 1 { one } else { more }))
    });
    told.collect::<Vec<_>>().join(", ")
}

/// A value that the document leaves open, in words.
fn choice(chosen: &Choice) -> String {
    let when = match chosen.after {
        true => "chosen after the published numbers had been seen",
        false => "chosen before the published numbers had been seen",
    };
    format!("{}: {} ({when}). {}", chosen.what, chosen.value, chosen.why)
}

/// The choices of what was run, numbered.
fn choices(done: &Reproduction) -> impl Iterator<Item = (usize, &Choice)> {
    done.run.iter().flat_map(|run| run.scenario.choices().iter().enumerate())
}

/// Every claim that a choice concerns, beside what it gives with the alternatives; `None` without any.
fn alternatives(done: &Reproduction, number: usize) -> Option<Grid> {
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
    for claim in done.outcome.claims.iter().filter(|claim| chosen.concerns(&claim.name)) {
        let same = |other: &&&Alternative| other.claims.iter().any(|one| one.name == claim.name);
        if !others.iter().any(|other| same(&other)) {
            continue;
        }
        let mut row = vec![claim.name.clone(), claim.tolerance.words(), value(Some(claim))];
        row.extend(others.iter().map(|other| value(other.claims.iter().find(|one| one.name == claim.name))));
        grid.row(row);
    }
    Some(grid)
}

/// Notes of an entry: those of claims, each once, and what is known about claims that fail.
pub fn notes(done: &Reproduction) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for claim in done.outcome.claims.iter().filter(|claim| !claim.note.is_empty()) {
        let kind = match claim.verdict {
            Verdict::Open => "Open",
            Verdict::Contradicts => "Contradiction",
            _ => "Note",
        };
        let note = format!("{kind}: {}.", claim.note);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if done.outcome.count(Verdict::Fails) > 0 {
        notes.push(match done.entry.known {
            "" => "A claim fails; why is not known.".into(),
            known => known.into(),
        });
    }
    notes
}

const ABOUT: &str = "Every figure and table is a scenario file. Its claims, with the ranges in which they count as holding, \
were written down before anything was measured. `published` is the number in the document; where the document has only a \
picture or a sentence, there is none, and the range says what was taken for it. `measured` is the mean over runs with \
different random numbers, the interval is Student's at 95 %. A claim `holds`; it `holds with a choice of ours` when a value that the \
document leaves open was chosen after its numbers had been seen (which, why, and what else it might be stands below it); the document \
`contradicts itself`, with the algebra; or the claim `fails`. `open` means that something is needed that is not there yet.";

/// The summary of all entries.
fn summary(all: &[Reproduction]) -> Grid {
    let mut grid = Grid::new(&[
        ("reproduction", Align::Left),
        ("about", Align::Left),
        ("hold", Align::Right),
        ("with a choice", Align::Right),
        ("contradict", Align::Right),
        ("fail", Align::Right),
        ("open", Align::Right),
    ]);
    for done in all {
        let mut row = vec![done.entry.id.into(), done.entry.about.into()];
        row.extend(Verdict::ALL.map(|verdict| done.outcome.count(verdict).to_string()));
        grid.row(row);
    }
    grid
}

/// The claims that do not hold, one a line.
fn failures(all: &[Reproduction]) -> Vec<String> {
    let mut lines = Vec::new();
    for done in all {
        for claim in done.outcome.claims.iter().filter(|claim| claim.verdict == Verdict::Fails) {
            let measured = claim.measured.map_or_else(|| "nothing".to_owned(), short);
            lines.push(format!(
                "{}: {}. Measured {measured}, accepted {}.",
                done.entry.id,
                claim.name,
                claim.tolerance.words()
            ));
        }
    }
    lines
}

/// Where an entry's figure is, relative to the report.
pub fn figure_path(id: &str, name: &str) -> String {
    format!("{}/{name}.svg", id.replace('/', "-"))
}

/// The report in Markdown; figures are linked.
pub fn markdown(all: &[Reproduction], heading: &str) -> String {
    let mut out = format!("# {heading}\n\n{ABOUT}\n\n");
    let mut put = |text: &str| out.push_str(text);
    let outcomes: Vec<&ReproOutcome> = all.iter().map(|done| &done.outcome).collect();
    put(&format!("**{}.**\n\n{}\n", counts(&outcomes), summary(all).markdown()));
    put("## What does not hold\n\n");
    match failures(all) {
        failures if failures.is_empty() => put("Nothing that was measured.\n\n"),
        failures => failures.iter().for_each(|line| put(&format!("- {line}\n"))),
    }
    for done in all {
        put(&format!("\n## {}: {}\n\n", done.entry.id, done.entry.about));
        put(&format!("**Published.** {}\n\n", done.entry.published));
        put(&format!("**Measured.** {}\n\n", what_was_run(done)));
        for (name, figure) in &done.figures {
            put(&format!("![{}]({})\n\n", figure.title, figure_path(done.entry.id, name)));
        }
        put(&claims(&done.outcome).markdown());
        for (number, chosen) in choices(done) {
            put(&format!("\n**Left open.** {}\n", choice(chosen)));
            if let Some(grid) = alternatives(done, number) {
                put(&format!("\n{}", grid.markdown()));
            }
        }
        notes(done).iter().for_each(|note| put(&format!("\n{note}\n")));
        put(&format!("\nRepeat: `faircast repro run {}`\n", done.entry.id));
    }
    out
}

/// The report in HTML, figures and scenarios inside.
pub fn html(all: &[Reproduction], heading: &str) -> String {
    let mut body =
        format!("<h1>{}</h1>\n{}", html::escaped(heading), html::paragraph(&ABOUT.replace('`', "")));
    let outcomes: Vec<&ReproOutcome> = all.iter().map(|done| &done.outcome).collect();
    write!(body, "<p><b>{}.</b></p>\n{}", counts(&outcomes), summary(all).html())
        .expect("a string takes everything");
    body.push_str("<h2>What does not hold</h2>\n");
    match failures(all) {
        failures if failures.is_empty() => body.push_str("<p>Nothing that was measured.</p>\n"),
        failures => {
            let items: Vec<String> =
                failures.iter().map(|line| format!("<li>{}</li>\n", html::escaped(line))).collect();
            write!(body, "<ul>\n{}</ul>\n", items.concat()).expect("a string takes everything");
        }
    }
    all.iter().for_each(|done| body.push_str(&section(done)));
    html::page(heading, &body)
}

fn section(done: &Reproduction) -> String {
    let entry = done.entry;
    let mut out = format!("<h2>{}: {}</h2>\n", html::escaped(entry.id), html::escaped(entry.about));
    let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a string takes everything");
    put(format_args!("<p><b>Published.</b> {}</p>\n", html::escaped(entry.published)));
    put(format_args!("<p><b>Measured.</b> {}</p>\n", html::escaped(&what_was_run(done))));
    for (_, figure) in &done.figures {
        put(format_args!("<figure>\n{}</figure>\n", figure.svg()));
    }
    put(format_args!("{}", claims(&done.outcome).html()));
    for (number, chosen) in choices(done) {
        put(format_args!("<p><b>Left open.</b> {}</p>\n", html::escaped(&choice(chosen))));
        if let Some(grid) = alternatives(done, number) {
            put(format_args!("{}", grid.html()));
        }
    }
    notes(done).iter().for_each(|note| put(format_args!("{}", html::paragraph(note))));
    if let Some(run) = &done.run {
        put(format_args!(
            "<details><summary>Scenario: {}</summary>\n<pre>{}</pre></details>\n",
            html::escaped(run.scenario.file()),
            html::escaped(run.scenario.text())
        ));
    }
    put(format_args!(
        "<p class=\"soft\">Repeat: <code>faircast repro run {}</code></p>\n",
        html::escaped(entry.id)
    ));
    out
}
