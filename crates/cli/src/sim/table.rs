//! Results of a scenario, as tables and JSON.

use crate::json;
use crate::units;
use faircast_experiments::plot::scale::short;
use faircast_experiments::report::page;
use faircast_experiments::report::text::{Align, Grid};
use faircast_experiments::repro::{Judged, ReproOutcome};
use faircast_experiments::results::Results;
use faircast_experiments::scenario::{Point, Scenario};
use faircast_experiments::stats::Estimate;
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;

/// Describes the network of a scenario and its planned runs in one line.
pub fn what_would_run(scenario: &Scenario) -> String {
    let layout = scenario.layout(0, scenario.seeds().first().copied().unwrap_or(1));
    let points = scenario.points().len();
    let settings = if points > 1 { format!("{points} settings, ") } else { String::new() };
    format!(
        "{} nodes, {} flows, {} receivers, {settings}{}, {} s",
        layout.nodes(),
        layout.flows(),
        layout.receivers(),
        units::count(scenario.seeds().len() as u64, "seed"),
        short(scenario.duration(0)).trim_end_matches(".0"),
    )
}

/// Describes the network of a scenario and its finished runs. `stored` is the number of runs that an earlier command has stored.
pub fn what_was_run(scenario: &Scenario, results: &Results, stored: usize, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let (would, runs) = (what_would_run(scenario), units::count(results.jobs.len() as u64, "run"));
    if stored == results.jobs.len() {
        return format!("{would}; not simulated, {stored} of {runs} were stored before");
    }
    if stored > 0 {
        return format!(
            "{would}; {stored} of {runs} were stored before, the others simulated in {}",
            units::seconds(seconds)
        );
    }
    let per_second = results.totals.traversals as f64 / seconds.max(1e-9);
    format!(
        "{would}; simulated in {}, {} million packets over links a second",
        units::seconds(seconds),
        short(per_second / 1e6)
    )
}

fn estimate(results: &Results, point: &Point, metric: &str) -> Option<Estimate> {
    let values = results.metric(point.index, metric);
    (!values.is_empty()).then(|| Estimate::of(&values))
}

/// Writes tables for each point of the sweep: groups of flows, layered sessions, probed links, and bottlenecks.
///
/// # Errors
/// When the output cannot be written.
pub fn text(scenario: &Scenario, results: &Results, out: &mut impl Write) -> io::Result<()> {
    for (number, point) in results.points.iter().enumerate() {
        if !point.values.is_empty() {
            writeln!(out, "{}{point}", if number == 0 { "" } else { "\n" })?;
        }
        for (number, grid) in grids(scenario, results, point).into_iter().enumerate() {
            write!(out, "{}{}", if number == 0 { "" } else { "\n" }, grid.text())?;
        }
        others(results, point, out)?;
        completions(scenario, results, point, out)?;
    }
    Ok(())
}

/// Returns the tables of a point that have rows.
pub fn grids(scenario: &Scenario, results: &Results, point: &Point) -> Vec<Grid> {
    let mut grids = vec![groups(scenario, results, point)];
    let more = [
        layers(results, point),
        delays(scenario, results, point),
        links(results, point),
        bottlenecks(results, point),
    ];
    grids.extend(more.into_iter().filter(|grid| !grid.is_empty()));
    grids
}

/// Returns the lines about a point that are in no table.
pub fn remarks(scenario: &Scenario, results: &Results, point: &Point) -> Vec<String> {
    let mut text = Vec::new();
    others(results, point, &mut text).expect("a vector takes everything");
    completions(scenario, results, point, &mut text).expect("a vector takes everything");
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Writes the times after which all receivers of sessions with a content were complete.
fn completions(
    scenario: &Scenario,
    results: &Results,
    point: &Point,
    out: &mut impl Write,
) -> io::Result<()> {
    let runs = results.jobs.iter().filter(|(index, _)| *index == point.index).count();
    for group in scenario.groups().filter(|group| scenario.has_content(point.index, group)) {
        let Some(took) = estimate(results, point, &format!("{group}.completion")) else {
            writeln!(out, "\n{group}: not all receivers are complete when the run ends; raise `duration`")?;
            continue;
        };
        let half = Some(took.half_width).filter(|half| half.is_finite());
        let half = half.map_or_else(String::new, |half| format!(" +- {}", units::seconds(half)));
        let runs =
            if took.runs < runs { format!(", in {} of {runs} runs", took.runs) } else { String::new() };
        writeln!(
            out,
            "\n{group}: all receivers are complete after {}{half}{runs}",
            units::seconds(took.mean)
        )?;
    }
    Ok(())
}

fn groups(scenario: &Scenario, results: &Results, point: &Point) -> Grid {
    let mut grid = Grid::new(&[
        ("flows", Align::Left),
        ("mean rate", Align::Right),
        ("+-", Align::Right),
        ("lowest", Align::Right),
        ("highest", Align::Right),
        ("loss", Align::Right),
        ("round trip", Align::Right),
        ("feedback", Align::Right),
        ("suppressed", Align::Right),
    ]);
    for group in scenario.groups() {
        let metric = |name: &str| estimate(results, point, &format!("{group}.{name}"));
        let cell = |name: &str, show: &dyn Fn(f64) -> String| {
            metric(name).map_or_else(|| "-".to_owned(), |estimate| show(estimate.mean))
        };
        let half = metric("rate").filter(|estimate| estimate.half_width.is_finite());
        grid.row(vec![
            group.to_owned(),
            cell("rate", &units::rate),
            half.map_or_else(|| "-".to_owned(), |estimate| units::rate(estimate.half_width)),
            cell("rate.min", &units::rate),
            cell("rate.max", &units::rate),
            cell("loss", &units::percent),
            cell("rtt", &|seconds| format!("{:.0} ms", seconds * 1e3)),
            cell("reports", &|count| format!("{count:.0}")),
            cell("suppression", &units::percent),
        ]);
    }
    grid
}

/// Returns a table with a row for each layered session, or part of a session, that has the metric `layers`.
fn layers(results: &Results, point: &Point) -> Grid {
    let mut grid = Grid::new(&[
        ("layers of", Align::Left),
        ("mean", Align::Right),
        ("at the end", Align::Right),
        ("most", Align::Right),
        ("agree", Align::Right),
        ("joins", Align::Right),
        ("leaves", Align::Right),
        ("mean rate", Align::Right),
    ]);
    let names = results.metric_names();
    for who in names.iter().filter_map(|name| name.strip_suffix(".layers")) {
        let cell = |name: &str, show: &dyn Fn(f64) -> String| {
            let metric = estimate(results, point, &format!("{who}.{name}"));
            metric.map_or_else(|| "-".to_owned(), |estimate| show(estimate.mean))
        };
        let count = |count: f64| format!("{count:.0}");
        grid.row(vec![
            who.to_owned(),
            cell("layers", &|layers| format!("{layers:.1}")),
            cell("layers.end", &|layers| format!("{layers:.1}")),
            cell("layers.max", &count),
            cell("layers.agreement", &units::percent),
            cell("joins", &count),
            cell("leaves", &count),
            cell("rate", &units::rate),
        ]);
    }
    grid
}

/// Returns a table of the packet delays of flows whose delay is measured.
fn delays(scenario: &Scenario, results: &Results, point: &Point) -> Grid {
    let mut grid = Grid::new(&[
        ("delay of", Align::Left),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
    ]);
    for group in scenario.groups() {
        let cell = |name: &str| {
            let metric = estimate(results, point, &format!("{group}.{name}"));
            metric.map_or_else(|| "-".to_owned(), |estimate| format!("{:.1} ms", estimate.mean * 1e3))
        };
        if estimate(results, point, &format!("{group}.delay.p50")).is_some() {
            let cells = ["delay", "delay.p50", "delay.p95", "delay.p99"].map(cell);
            grid.row([group.to_owned()].into_iter().chain(cells).collect());
        }
    }
    grid
}

/// Maximum number of bottlenecks in the table.
const NAMED: usize = 10;

/// Returns a table of the bottlenecks.
fn bottlenecks(results: &Results, point: &Point) -> Grid {
    let mut grid = Grid::new(&[
        ("bottleneck", Align::Left),
        ("used", Align::Right),
        ("dropped, buffer full", Align::Right),
        ("dropped early", Align::Right),
        ("marked", Align::Right),
    ]);
    let runs = results.jobs.iter().filter(|(index, _)| *index == point.index).count();
    for it in results.bottlenecks(point.index).iter().take(NAMED) {
        let name = if it.runs == runs {
            it.link.clone()
        } else {
            format!("{} (in {} of {runs} runs)", it.link, it.runs)
        };
        let shares = [it.utilisation, it.dropped_full, it.dropped_early, it.marked];
        grid.row([name].into_iter().chain(shares.map(units::percent)).collect());
    }
    grid
}

/// Writes the number of further bottlenecks, and one line about all other links.
fn others(results: &Results, point: &Point, out: &mut impl Write) -> io::Result<()> {
    let listed = results.bottlenecks(point.index).len().min(NAMED);
    let mean = |name: &str| estimate(results, point, name).map_or(0.0, |estimate| estimate.mean);
    let (bottlenecks, others) = (mean("links.bottlenecks"), mean("links.others"));
    let more = bottlenecks - listed as f64;
    if more >= 1.0 {
        writeln!(out, "and {more:.0} more bottlenecks")?;
    }
    if others > 0.0 {
        let links = match (listed, units::count(others.round() as u64, "link")) {
            (0, links) => format!("no bottleneck; {links}"),
            (_, links) => format!("{links} besides"),
        };
        let most = units::percent(mean("links.others.utilisation"));
        writeln!(out, "{links}: at most {most} used, no packet dropped or marked")?;
    }
    Ok(())
}

fn links(results: &Results, point: &Point) -> Grid {
    let mut grid = Grid::new(&[
        ("link", Align::Left),
        ("used", Align::Right),
        ("mean queue", Align::Right),
        ("longest", Align::Right),
        ("drops", Align::Right),
    ]);
    let names = results.metric_names();
    let probed = names.iter().filter_map(|name| name.strip_prefix("link.")?.strip_suffix(".queue"));
    for link in probed {
        let cell = |name: &str, show: &dyn Fn(f64) -> String| {
            let metric = estimate(results, point, &format!("link.{link}.{name}"));
            metric.map_or_else(|| "-".to_owned(), |estimate| show(estimate.mean))
        };
        grid.row(vec![
            link.to_owned(),
            cell("utilisation", &units::percent),
            cell("queue", &|packets| format!("{packets:.1} packets")),
            cell("queue.max", &|packets| format!("{packets:.0}")),
            cell("drops", &|packets| format!("{packets:.0}")),
        ]);
    }
    grid
}

/// Returns a table of claims with the measured values.
pub fn claims(claims: &[Judged]) -> Grid {
    page::claims(&ReproOutcome { id: String::new(), claims: claims.to_vec() })
}

/// A metric as JSON.
#[derive(Serialize)]
struct Metric<'a> {
    event: &'static str,
    point: usize,
    at: serde_json::Map<String, serde_json::Value>,
    name: &'a str,
    mean: f64,
    deviation: f64,
    interval: (f64, f64),
    runs: usize,
}

/// A claim as JSON.
#[derive(Serialize)]
struct ClaimLine<'a> {
    event: &'static str,
    #[serde(flatten)]
    claim: &'a Judged,
}

/// Writes every metric at every point, one JSON object per line.
///
/// # Errors
/// When the output cannot be written.
pub fn json(results: &Results, out: &mut impl Write) -> io::Result<()> {
    for point in &results.points {
        for name in results.metric_names() {
            let Some(estimate) = estimate(results, point, name).filter(|estimate| estimate.runs > 0) else {
                continue;
            };
            let at =
                point.values.iter().map(|(name, value)| (name.clone(), value.to_string().into())).collect();
            let Estimate { runs, mean, deviation, .. } = estimate;
            let interval = estimate.interval();
            json::write(
                out,
                &Metric { event: "metric", point: point.index, at, name, mean, deviation, interval, runs },
            )?;
        }
    }
    Ok(())
}

/// Writes every claim, one JSON object per line.
///
/// # Errors
/// When the output cannot be written.
pub fn json_claims(claims: &[Judged], out: &mut impl Write) -> io::Result<()> {
    claims.iter().try_for_each(|claim| json::write(out, &ClaimLine { event: "claim", claim }))
}
