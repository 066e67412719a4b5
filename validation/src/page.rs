//! Tables for a terminal and for the documentation.

use crate::compare::{Line, Verdict};
use crate::reference::Reference;
use crate::run::Compared;
use std::fmt::Write as _;

/// Three or four digits that matter.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value == value.trunc() && size < 1e9 => format!("{value:.0}"),
        _ if size >= 1000.0 => format!("{value:.0}"),
        _ if size >= 100.0 => format!("{value:.1}"),
        _ if size >= 10.0 => format!("{value:.2}"),
        _ if size >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

/// One line of a table: quantity, ours, ns-2's, difference, allowed, verdict.
fn cells(line: &Line) -> [String; 6] {
    let theirs = line.theirs.mean();
    let difference = line.ours - theirs;
    let relative = |value: f64| {
        if theirs == 0.0 { number(value) } else { format!("{:.1} %", 100.0 * value / theirs.abs()) }
    };
    let verdict = match line.verdict() {
        Verdict::Inside => "inside",
        Verdict::Explained => "explained",
        Verdict::Outside => "OUTSIDE",
    };
    let spread = |mean: f64, deviation: f64| match deviation {
        0.0 => number(mean),
        _ => format!("{} ± {}", number(mean), number(deviation)),
    };
    [
        line.quantity.clone(),
        spread(line.ours, line.deviation),
        spread(theirs, line.theirs.deviation()),
        relative(difference),
        relative(line.allowed),
        verdict.to_owned(),
    ]
}

/// How many lines of each verdict.
fn tally<'a>(all: impl Iterator<Item = &'a Compared<'a>>) -> (usize, usize, usize) {
    let mut counts = (0, 0, 0);
    for line in all.flat_map(|it| &it.lines) {
        match line.verdict() {
            Verdict::Inside => counts.0 += 1,
            Verdict::Explained => counts.1 += 1,
            Verdict::Outside => counts.2 += 1,
        }
    }
    counts
}

fn summary(all: &[Compared<'_>]) -> String {
    let built: Vec<_> = all.iter().filter(|it| it.case.network.is_some()).collect();
    let clean = |it: &&&Compared<'_>| it.lines.iter().all(|line| line.verdict() == Verdict::Inside);
    let (inside, explained, outside) = tally(all.iter());
    format!(
        "{} cases compared, {} of them inside in every quantity; {} not built yet. {} quantities: {inside} inside, \
         {explained} outside with a reason, {outside} outside without.",
        built.len(),
        built.iter().filter(clean).count(),
        all.len() - built.len(),
        inside + explained + outside,
    )
}

/// Everything, for a terminal.
pub fn terminal(all: &[Compared<'_>]) -> String {
    let mut text = String::new();
    for it in all {
        let _ = writeln!(text, "{} ({} runs, ns-2 {})", it.name(), it.runs, it.case.runs);
        if it.case.network.is_none() {
            let _ = writeln!(text, "  not built yet");
        }
        for line in &it.lines {
            let [quantity, ours, theirs, difference, allowed, verdict] = cells(line);
            let _ = writeln!(
                text,
                "  {quantity:<17} {ours:>20} {theirs:>20} {difference:>10} {allowed:>10}  {verdict}"
            );
        }
        for (quantity, why) in it.reasons() {
            let _ = writeln!(text, "  {quantity}: {why}");
        }
    }
    let _ = writeln!(text, "{}", summary(all));
    text
}

/// Everything, for the documentation.
pub fn markdown(reference: &Reference, all: &[Compared<'_>]) -> String {
    let mut text = String::from(HEAD);
    let _ =
        writeln!(text, "## Result\n\n{}\n\n## The runs of ns-2\n\n{}:\n", summary(all), reference.made_with);
    for how in &reference.how {
        let _ = writeln!(text, "- {how}");
    }
    for experiment in &reference.experiments {
        let cases: Vec<_> = all.iter().filter(|it| it.experiment.name == experiment.name).collect();
        if cases.is_empty() {
            continue;
        }
        let (from, to) = experiment.window_s;
        let _ = writeln!(
            text,
            "\n## {}\n\n{} Measured from {from} to {to} s.",
            experiment.name, experiment.about
        );
        for it in &cases {
            if it.case.network.is_some() {
                section(&mut text, it);
            }
        }
        let missing: Vec<_> =
            cases.iter().filter(|it| it.case.network.is_none()).map(|it| it.case.name.as_str()).collect();
        if !missing.is_empty() {
            let _ = writeln!(text, "\nNot built yet: {}.", missing.join("; "));
        }
    }
    text
}

fn section(text: &mut String, it: &Compared<'_>) {
    let _ = writeln!(
        text,
        "\n### {}\n\n{} runs of ours, {} of ns-2.\n\n| quantity | ours | ns-2 | difference | allowed | |\n|---|--:|--:|--:|--:|---|",
        it.case.name, it.runs, it.case.runs
    );
    for line in &it.lines {
        let _ = writeln!(text, "| {} |", cells(line).join(" | "));
    }
    for (quantity, why) in it.reasons() {
        let _ = writeln!(text, "\n*{quantity}*: {why}");
    }
}

const HEAD: &str = "\
# The simulator against ns-2

`make validate` builds networks that ns-2.35 was run in, runs them in `faircast-sim`, measures the same and compares every
value. This page is what it found; `FAIRCAST_BLESS=1 make validate` writes it. `validation/ns2.json` holds the networks
and the values. A part of it that takes a few seconds runs with the tests.

## What is allowed

Ours is the mean over at least as many runs as ns-2's. It must lie within three standard deviations of ns-2's runs, or
within a share of ns-2's value where that is more:

| runs | quantity | share |
|---|---|--:|
| random | utilisation, goodput, rates and their ratio, fairness, arrivals, mean queue | 5 % |
| random | loss, marks, deviation of the queue, variation of rates, counts of drops, cuts and timeouts | 15 % |
| one flow | goodput, packets sent and acknowledged | 0.5 % |
| one flow | mean, least and greatest window | 3 % |
| one flow | mean queue | 5 % |
| one flow | deviation of the queue | 15 % |
| one flow | drops, cuts, timeouts, packets sent again | 10 % |

These shares were fixed before the first comparison. Where ours lies outside, it is corrected, or the reason is written
below the table and the line says *explained*.

A queue's length does not count the packet in transmission. Goodput counts 1000 bytes for every packet acknowledged.

";
