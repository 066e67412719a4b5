//! Tables for a terminal and for the documentation.

mod cells;

use crate::case::Section;
use crate::compare::{Judged, Line, Verdict};
use crate::reference::Reference;
use crate::run::Compared;
use cells::{HEADER, cells, number, relative};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Number of values by verdict.
#[derive(Default, Clone, Copy)]
struct Tally {
    inside: usize,
    explained: usize,
    outside: usize,
    beside: usize,
}

impl Tally {
    fn of<'a>(lines: impl Iterator<Item = &'a Line>) -> Tally {
        let mut counts = Tally::default();
        for line in lines {
            match line.verdict() {
                Verdict::Inside => counts.inside += 1,
                Verdict::Explained => counts.explained += 1,
                Verdict::Outside => counts.outside += 1,
                Verdict::Beside => counts.beside += 1,
            }
        }
        counts
    }

    const fn judged(self) -> usize {
        self.inside + self.explained + self.outside
    }
}

fn is_clean(it: &Compared<'_>) -> bool {
    it.lines.iter().all(|line| matches!(line.verdict(), Verdict::Inside | Verdict::Beside))
}

fn summary(all: &[Compared<'_>]) -> String {
    let built: Vec<_> = all.iter().filter(|it| it.case.network.is_ok()).collect();
    let missing: usize =
        all.iter().filter(|it| it.case.network.is_err()).map(|it| it.case.values.len()).sum();
    let tally = Tally::of(all.iter().flat_map(|it| &it.lines));
    let other = all.iter().flat_map(|it| &it.lines);
    let other = other.filter(|line| line.verdict() == Verdict::Inside && !line.is_near_reference()).count();
    format!(
        "{} cases compared, {} of them inside in every quantity; {} not compared, with {missing} values. {} quantities: {} inside \
         ({other} of them only compared with ns-2 run again), {} outside with a reason, {} outside without; {} more have no verdict.",
        built.len(),
        built.iter().filter(|it| is_clean(it)).count(),
        all.len() - built.len(),
        tally.judged(),
        tally.inside,
        tally.explained,
        tally.outside,
        tally.beside,
    )
}

/// Returns all results as text for a terminal.
pub fn terminal(all: &[Compared<'_>]) -> String {
    let mut text = String::new();
    for it in all {
        let _ = writeln!(text, "{} ({})", it.case.name, runs(it));
        if let Err(why) = &it.case.network {
            let _ = writeln!(text, "  not compared: {why}");
        }
        for line in &it.lines {
            let [quantity, ours, theirs, again, difference, allowed, verdict] = cells(line);
            let _ = writeln!(
                text,
                "  {quantity:<22} {ours:>22} {theirs:>20} {again:>20} {difference:>10} {allowed:>10}  {verdict}"
            );
        }
        for (quantities, why) in it.reasons() {
            let _ = writeln!(text, "  {}: {why}", quantities.join(", "));
        }
    }
    let _ = writeln!(text, "{}", summary(all));
    text
}

fn runs(it: &Compared<'_>) -> String {
    let again =
        it.case.again.as_ref().map_or(String::new(), |again| format!(", {} of ns-2 again", again.runs));
    format!("{} runs of ours, {} of the reference{again}", it.runs, it.case.runs)
}

/// Returns all results as a page of the documentation.
pub fn markdown(reference: &Reference, all: &[Compared<'_>]) -> String {
    let mut text = String::from(HEAD);
    let _ = writeln!(text, "## Result\n\n{}\n", summary(all));
    by_section(&mut text, reference, all);
    outside(&mut text, all);
    let _ = writeln!(text, "\n## The files");
    for (file, notes) in &reference.files {
        let _ = writeln!(text, "\n`{file}`:\n");
        for sentence in notes {
            let _ = writeln!(text, "- {}", sentence.trim_end_matches('.'));
        }
    }
    for section in &reference.sections {
        let cases: Vec<_> = all.iter().filter(|it| it.section.name == section.name).collect();
        if !cases.is_empty() {
            one_section(&mut text, section, &cases);
        }
    }
    text
}

fn by_section(text: &mut String, reference: &Reference, all: &[Compared<'_>]) {
    let _ = writeln!(
        text,
        "| section | where | rows | compared | not compared | quantities | inside | outside with a reason | outside without | no verdict |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for section in &reference.sections {
        let cases = || all.iter().filter(|it| it.section.name == section.name);
        let rows = |built: bool| {
            let of = cases().filter(|it| it.case.network.is_ok() == built);
            of.map(|it| it.case.rows.len()).sum::<usize>()
        };
        let it = Tally::of(cases().flat_map(|it| &it.lines));
        let _ = writeln!(
            text,
            "| [{}](#{}) | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            section.name,
            section.name.to_lowercase().replace(' ', "-"),
            section.place,
            section.rows,
            rows(true),
            rows(false),
            it.judged(),
            it.inside,
            it.explained,
            it.outside,
            it.beside
        );
    }
}

/// Writes all values outside the tolerance. Values without a reason come first.
fn outside(text: &mut String, all: &[Compared<'_>]) {
    for (wanted, title) in
        [(Verdict::Outside, "Outside without a reason"), (Verdict::Explained, "Outside with a reason")]
    {
        let _ = writeln!(text, "\n### {title}\n");
        let lines = || all.iter().flat_map(|it| it.lines.iter().map(move |line| (it, line)));
        let found: Vec<_> = lines().filter(|(_, line)| line.verdict() == wanted).collect();
        if found.is_empty() {
            let _ = writeln!(text, "Nothing.");
            continue;
        }
        let _ = writeln!(text, "| case | runs {HEADER}\n|---|---|---|--:|--:|--:|--:|--:|---|");
        for (it, line) in found {
            let _ = writeln!(text, "| {} | {} | {} |", it.case.name, counts(it), cells(line).join(" | "));
        }
        if wanted == Verdict::Explained {
            for (cases, why) in reasons(all) {
                let _ = writeln!(text, "\n*{}*: {why}", cases.join("; "));
            }
        }
    }
}

/// Returns each reason once, with its cases.
fn reasons<'a>(all: &'a [Compared<'_>]) -> Vec<(Vec<String>, &'a str)> {
    let mut reasons: Vec<(Vec<String>, &str)> = Vec::new();
    for it in all {
        for (quantities, why) in it.reasons() {
            let what = format!("{} ({})", it.case.name, quantities.join(", "));
            match reasons.iter_mut().find(|(_, known)| *known == why) {
                Some((cases, _)) => cases.push(what),
                None => reasons.push((vec![what], why)),
            }
        }
    }
    reasons
}

fn one_section(text: &mut String, section: &Section, cases: &[&Compared<'_>]) {
    let _ = writeln!(text, "\n## {}\n\n{}, {} rows:\n", section.name, section.place, section.rows);
    for sentence in &section.described {
        let _ = writeln!(text, "- {}", sentence.trim_end_matches('.'));
    }
    let windows: std::collections::BTreeSet<String> = cases
        .iter()
        .map(|it| format!("{} to {} s", number(it.case.window_s.0), number(it.case.window_s.1)))
        .collect();
    let windows: Vec<_> = windows.into_iter().collect();
    let _ = writeln!(text, "- Measured from {}", windows.join(", "));
    inside(text, section, cases);
    inside_again(text, section, cases);
    not_compared(text, section, cases);
    not_judged(text, cases);
}

fn own_name<'a>(section: &Section, name: &'a str) -> &'a str {
    name.strip_prefix(section.name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(name)
}

/// Returns the numbers of runs of our simulator, of the reference, and of ns-2 with other seeds.
fn counts(it: &Compared<'_>) -> String {
    let again = it.case.again.as_ref().map_or("–".to_owned(), |again| again.runs.to_string());
    format!("{}, {}, {again}", it.runs, it.case.runs)
}

/// Writes the number of cases in which every quantity is inside the tolerance, and the quantity nearest to its tolerance.
fn inside(text: &mut String, section: &Section, cases: &[&Compared<'_>]) {
    let built = cases.iter().filter(|it| it.case.network.is_ok());
    let clean = built.clone().filter(|it| is_clean(it)).count();
    let part = |line: &Line| {
        let allowed = line.allowed().unwrap_or(0.0);
        let difference = (line.ours.mean.unwrap_or(0.0) - line.deciding().mean()).abs();
        if allowed > 0.0 { difference / allowed } else { 0.0 }
    };
    let lines = cases.iter().flat_map(|it| it.lines.iter().map(move |line| (it, line)));
    let judged = lines.filter(|(_, line)| line.verdict() == Verdict::Inside);
    let Some((it, line)) = judged.max_by(|one, other| part(one.1).total_cmp(&part(other.1))) else { return };
    let of = line.deciding().mean();
    let _ = writeln!(
        text,
        "\nInside in every quantity: {clean} of {} cases. Nearest to its tolerance: {} of {}, with a difference of {} where {} is allowed.",
        built.count(),
        line.quantity,
        own_name(section, &it.case.name),
        line.ours.mean.map_or("–".to_owned(), |mean| relative(mean - of, of)),
        line.allowed().map_or("–".to_owned(), |allowed| relative(allowed, of)),
    );
}

/// Writes the quantities that are inside only compared with runs of ns-2 with other seeds.
fn inside_again(text: &mut String, section: &Section, cases: &[&Compared<'_>]) {
    let mut found = Vec::new();
    for it in cases {
        let lines =
            it.lines.iter().filter(|line| line.verdict() == Verdict::Inside && !line.is_near_reference());
        let quantities: Vec<_> = lines.map(|line| line.quantity.as_str()).collect();
        if !quantities.is_empty() {
            found.push(format!("{} ({})", own_name(section, &it.case.name), quantities.join(", ")));
        }
    }
    if !found.is_empty() {
        let _ = writeln!(text, "\nInside only compared with *ns-2 again*: {}.", found.join("; "));
    }
}

/// Writes the rows without a network, by reason.
fn not_compared(text: &mut String, section: &Section, cases: &[&Compared<'_>]) {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for it in cases {
        if let Err(why) = &it.case.network {
            let rows: Vec<_> = it.case.rows.iter().map(ToString::to_string).collect();
            let what = format!("{} (row {})", own_name(section, &it.case.name), rows.join(", "));
            by_reason.entry(why).or_default().push(what);
        }
    }
    for (why, cases) in by_reason {
        let _ = writeln!(text, "\nNot compared, {why}: {}.", cases.join("; "));
    }
}

/// Writes the quantities without a verdict, by reason.
fn not_judged(text: &mut String, cases: &[&Compared<'_>]) {
    let mut by_reason: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for line in cases.iter().flat_map(|it| &it.lines) {
        if let Judged::Not(why) = line.judged {
            *by_reason.entry(why).or_default().entry(&line.quantity).or_default() += 1;
        }
    }
    for (why, quantities) in by_reason {
        let quantities: Vec<_> = quantities.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        let _ = writeln!(text, "\nWithout a verdict, as {why}: {}.", quantities.join(", "));
    }
}

const HEAD: &str = include_str!("head.md");
