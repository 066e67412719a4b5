//! `faircast compare`: runs one scenario with each of several congestion controls.

use super::args::{Compare, Contender, Contenders};
use super::running::{self, ProgressOutput, RunPrinter, refused};
use super::served::Served;
use super::stored::{self, Stored};
use super::{files, outlook, table};
use crate::failure::{Failure, unwritten};
use crate::json;
use crate::sim_usage::SimUsage;
use crate::units;
use faircast_experiments::edit::Edit;
use faircast_experiments::figures::{Named, Unit, dot};
use faircast_experiments::plot::{Axis, Figure, Layer, Panel};
use faircast_experiments::report::results::ResultsPage;
use faircast_experiments::report::text::{Align, Grid};
use faircast_experiments::results::Results;
use faircast_experiments::run::forecast::{Forecast, forecast};
use faircast_experiments::run::{RunOptions, admit, run as simulate};
use faircast_experiments::scenario::{Point, Scenario, flow_keys, router_kind};
use faircast_experiments::stats::Estimate;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A contender and its results.
struct Candidate {
    contender: Contender,
    scenario: Scenario,
    results: Results,
}

/// All contenders, and the flow that each of them replaces.
struct Comparison {
    flow: String,
    all: Vec<Candidate>,
}

/// Runs the comparison.
///
/// # Errors
/// When the scenario cannot be read or run.
pub fn run(typed: &Compare, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let Contenders(contenders) = typed.schemes.as_ref().expect("required without --worlds");
    let text = running::text(typed.path())?;
    let original = running::parse(&text, typed.path(), typed.running.max_memory)?;
    running::warn(&original);
    let flow = flow(&text, typed.flow.as_deref())?;
    let directory = typed.out.clone().unwrap_or_else(|| files::beside(typed.path(), "comparison"));
    let output_options = if typed.quiet { ProgressOutput::Nothing } else { ProgressOutput::Progress };
    let place = |(number, contender): (usize, &Contender)| {
        format!("{}-{}", number + 1, contender.text().replace([',', '='], "_"))
    };
    let places: Vec<String> = contenders.iter().enumerate().map(place).collect();
    let scenarios = scenarios(typed, contenders, &text, &original, &flow)?;
    let mut options = RunOptions {
        threads: typed.running.threads,
        memory: Some(typed.running.max_memory),
        ..RunOptions::default()
    };
    scenarios.iter().try_for_each(|scenario| admit(scenario, &options).map(|_| ())).map_err(refused)?;
    let served = Served::open(&typed.shown, "compare", typed.json, out)?;
    let stored = Stored::open(typed.out.as_deref())?;
    options.kept = stored.as_ref().map(Stored::kept);
    if !(typed.quiet || typed.json) {
        let mut all = Forecast::default();
        for scenario in &scenarios {
            all += forecast(scenario, &options).map_err(refused)?;
        }
        outlook::announce(&all, stored.as_ref(), &scenarios.iter().collect::<Vec<_>>())?;
    }
    let mut all = Vec::new();
    for (number, (contender, scenario)) in contenders.iter().zip(scenarios).enumerate() {
        let began = Instant::now();
        let results = {
            let printer = RunPrinter::new(output_options, contender.text(), stop);
            let results = simulate(&scenario, &options, &printer);
            results.inspect_err(|_| stored.iter().for_each(Stored::explain_resume)).map_err(refused)?
        };
        if number == 0 {
            begin(&directory, &places)?;
        }
        let place = directory.join(&places[number]);
        files::run(Some(&results), &[], &place, typed.running.threads, began.elapsed())?;
        all.push(Candidate { contender: contender.clone(), scenario, results });
    }
    let comparison = Comparison { flow, all };
    let figures = [("comparison", comparison.figure())];
    let page = comparison.page(typed, &text, &figures);
    files::write(&files::svg(&figures), &directory)?;
    files::page(PAGE, &page, &directory)?;
    let scenarios: Vec<&Scenario> = comparison.all.iter().map(|candidate| &candidate.scenario).collect();
    stored::keep_only(&scenarios, &directory)?;
    if typed.json {
        comparison.json(out).map_err(unwritten)?;
    } else {
        comparison.text(out).map_err(unwritten)?;
        let place = directory.display();
        writeln!(out, "\nwrote {PAGE}, comparison.svg and the results of each into {place}")
            .map_err(unwritten)?;
    }
    served.show(&page, stop);
    Ok(())
}

/// Returns the scenario of each contender. All scenarios are checked before the first run.
fn scenarios(
    typed: &Compare,
    contenders: &[Contender],
    text: &str,
    original: &Scenario,
    flow: &str,
) -> Result<Vec<Scenario>, Failure> {
    let memory = typed.running.max_memory;
    let one = |contender: &Contender| -> Result<Scenario, Failure> {
        let text = replaced(text, original, flow, contender)?;
        let mut scenario = running::parse(&text, typed.path(), memory)?;
        if let Some(seeds) = &typed.running.seeds {
            scenario.set_seeds(seeds.0.clone());
        }
        match scenario.lack(flow) {
            Some(lack) => Err(running::mistaken(&lack, typed.path()).into()),
            None => Ok(scenario),
        }
    };
    contenders.iter().map(one).collect()
}

/// Name of the page.
const PAGE: &str = "index.html";

/// Name of the file that lists the directories of a comparison.
const PLACES: &str = "comparison.json";

/// Removes the results of an earlier comparison, and writes the list of the directories of this comparison.
fn begin(directory: &Path, places: &[String]) -> Result<(), Failure> {
    let earlier: Vec<String> = std::fs::read(directory.join(PLACES))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    // Only directories directly below `directory` belong to the comparison. Any other path in the file is ignored.
    for place in earlier.iter().filter(|place| Path::new(place).file_name() == Some(place.as_str().as_ref()))
    {
        let place = directory.join(place);
        files::remove_run(&place)?;
        let _ = std::fs::remove_dir(place); // fails if it contains files of the user
    }
    for file in ["comparison.svg", PAGE] {
        let _ = std::fs::remove_file(directory.join(file));
    }
    files::page(PLACES, &serde_json::json!(places).to_string(), directory)?;
    Ok(())
}

/// Returns the name of the flow to replace.
fn flow(text: &str, wanted: Option<&str>) -> Result<String, SimUsage> {
    let flows = Edit::of(text)?.flows();
    let found = match wanted {
        Some(wanted) => flows.iter().find(|(name, _)| name == wanted),
        None => flows.iter().find(|(_, kind)| kind == "session"),
    };
    found.map(|(name, _)| name.clone()).ok_or_else(|| SimUsage::NoSuchFlow {
        what: wanted.map_or_else(|| "session to replace".into(), |name| format!("flow called `{name}`")),
        known: flows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the scenario with a contender in place of the flow. Removes the claims, which are about the original flow. Removes
/// routers whose scheme no session uses. Removes keys of the flow that are invalid for the contender.
fn replaced(text: &str, original: &Scenario, flow: &str, contender: &Contender) -> Result<String, SimUsage> {
    let mut edit = Edit::of(text)?;
    edit.remove("claim")?;
    let key = |name: &str| format!("flow.{flow}.{name}");
    let name = contender.text().split(',').next().unwrap_or_default();
    let (kind, scheme) = match contender {
        Contender::Scheme(scheme) => ("session", Some(scheme)),
        Contender::Protocol(protocol) => (protocol.as_str(), None),
    };
    edit.set(&key("kind"), &format!("{kind:?}"))?;
    if let Some(scheme) = scheme {
        edit.set(&key("scheme"), &format!("{scheme:?}"))?;
    }
    let known = flow_keys(kind);
    for foreign in flow_keys("session").into_iter().filter(|key| !known.contains(key)) {
        edit.remove(&key(foreign))?;
    }
    let others = original.sessions().filter(|(group, _)| *group != flow).map(|(_, scheme)| scheme);
    let wanted: Vec<&str> = others.chain([name]).filter_map(router_kind).collect();
    edit.retain("router", "is", |is| wanted.contains(&is.split(',').next().unwrap_or_default()));
    Ok(edit.text())
}

impl Comparison {
    fn groups(&self) -> Vec<String> {
        self.all.first().map_or(Vec::new(), |first| first.scenario.groups().map(str::to_owned).collect())
    }

    fn points(&self) -> &[Point] {
        self.all.first().map_or(&[], |first| &first.results.points)
    }

    fn others(&self) -> Vec<String> {
        self.groups().into_iter().filter(|group| *group != self.flow).collect()
    }

    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(first) = self.all.first() else { return Ok(()) };
        writeln!(out, "{}", first.scenario.title())?;
        writeln!(out, "{}\n", table::what_would_run(&first.scenario))?;
        writeln!(
            out,
            "Replacements of `{}`, the rate of each, and the rates of the other flows:\n",
            self.flow
        )?;
        for (number, point) in self.points().iter().enumerate() {
            if !point.values.is_empty() {
                writeln!(out, "{}{point}", if number == 0 { "" } else { "\n" })?;
            }
            write!(out, "{}", self.grid(point).text())?;
        }
        Ok(())
    }

    fn grid(&self, point: &Point) -> Grid {
        let (main, others) = (format!("{} mean", self.flow), self.others());
        let other_names: Vec<String> = others.iter().map(|group| format!("{group} mean")).collect();
        let mut columns = vec![
            ("congestion control", Align::Left),
            (main.as_str(), Align::Right),
            ("+-", Align::Right),
            ("lowest", Align::Right),
        ];
        columns.extend(other_names.iter().map(|name| (name.as_str(), Align::Right)));
        columns.extend([("fairness", Align::Right), ("loss", Align::Right), ("feedback", Align::Right)]);
        let mut grid = Grid::new(&columns);
        for candidate in &self.all {
            let value = |metric: &str| Estimate::of(&candidate.results.metric(point.index, metric));
            let cell = |metric: &str, show: &dyn Fn(f64) -> String| match value(metric) {
                estimate if estimate.runs > 0 => show(estimate.mean),
                _ => "-".into(),
            };
            let of_flow = |name: &str| format!("{}.{name}", self.flow);
            let half = value(&of_flow("rate")).half_width;
            let lowest = if value(&of_flow("rate.min")).runs > 0 { "rate.min" } else { "rate" };
            let mut row = vec![
                candidate.contender.text().to_owned(),
                cell(&of_flow("rate"), &units::rate),
                if half.is_finite() { units::rate(half) } else { "-".into() },
                cell(&of_flow(lowest), &units::rate),
            ];
            row.extend(others.iter().map(|group| cell(&format!("{group}.rate"), &units::rate)));
            row.push(cell("jain", &|index| format!("{index:.3}")));
            row.push(cell(&of_flow("loss"), &units::percent));
            row.push(cell(&of_flow("reports"), &|count| format!("{count:.0}")));
            grid.row(row);
        }
        grid
    }

    /// Returns the page of the comparison. `text` is the scenario.
    fn page(&self, typed: &Compare, text: &str, figures: &[Named]) -> String {
        let Some(first) = self.all.first() else { return String::new() };
        let contenders: Vec<&str> = self.all.iter().map(|candidate| candidate.contender.text()).collect();
        let file = typed.path().display().to_string();
        let page = ResultsPage {
            title: first.scenario.title(),
            about: vec![
                format!("{}.", table::what_would_run(&first.scenario)),
                format!(
                    "Replacements of `{}`, the rate of each, and the rates of the other flows:",
                    self.flow
                ),
            ],
            tables: self.points().iter().map(|point| (point.to_string(), self.grid(point))).collect(),
            figures,
            scenario: (&file, text),
            command: format!("faircast compare --schemes {} --scenario {file}", contenders.join(",")),
        };
        page.html()
    }

    fn figure(&self) -> Figure {
        let groups = self.groups();
        let rates = self.all.iter().flat_map(|candidate| {
            let metrics = candidate.results.metrics.iter();
            metrics.filter(|row| row.name.ends_with(".rate")).map(|row| row.value)
        });
        let unit = Unit::of(rates.fold(0.0, f64::max));
        let panels = self.points().iter().take(9).map(|point| {
            let layers = groups.iter().enumerate().map(|(colour, group)| {
                Layer::bars(
                    group.clone(),
                    colour,
                    self.all.iter().zip(0..).map(|(candidate, place)| {
                        let values = candidate.results.metric(point.index, &format!("{group}.rate"));
                        dot(f64::from(place), &values, unit.size)
                    }),
                )
            });
            let names = self.all.iter().map(|candidate| candidate.contender.text().to_owned()).collect();
            Panel {
                title: point.to_string(),
                x: Axis::new(format!("in place of `{}`", self.flow)).named(names),
                y: Axis::new(format!("mean rate ({})", unit.name)).from(0.0),
                layers: layers.collect(),
            }
        });
        Figure::new(
            self.all.first().map_or("", |first| first.scenario.title()),
            "Mean rate of a receiver of each group; whiskers: 95 % interval over the runs.",
            panels,
        )
    }

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        for candidate in &self.all {
            for point in self.points() {
                for name in candidate.results.metric_names() {
                    let estimate = Estimate::of(&candidate.results.metric(point.index, name));
                    let scheme = candidate.contender.text();
                    let Estimate { runs, mean, deviation, .. } = estimate;
                    let at = point.to_string();
                    let (flow, interval) = (self.flow.as_str(), estimate.interval());
                    if runs > 0 {
                        let line = MetricLine {
                            event: "metric",
                            scheme,
                            flow,
                            at,
                            name,
                            mean,
                            deviation,
                            interval,
                            runs,
                        };
                        json::write(out, &line)?;
                    }
                }
            }
        }
        json::write(out, &serde_json::json!({"event": "done", "ok": true}))
    }
}

/// A metric as JSON.
#[derive(Serialize)]
struct MetricLine<'a> {
    event: &'static str,
    /// The contender.
    scheme: &'a str,
    /// The replaced flow.
    flow: &'a str,
    /// The point of the sweep; empty if the scenario has no sweep.
    at: String,
    name: &'a str,
    mean: f64,
    deviation: f64,
    interval: (f64, f64),
    runs: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_experiments::scenario::template;

    #[test]
    fn session_of_every_template_can_be_replaced() {
        for template in faircast_experiments::scenario::TEMPLATES {
            let name = flow(template.text, None).expect("every template has a session");
            let original = Scenario::parse(template.text, template.name).expect("it can be run");
            for contender in
                [Contender::Scheme("ormcc,beta=0.6".into()), Contender::Protocol("tcp-sack,delack".into())]
            {
                let text = replaced(template.text, &original, &name, &contender).expect("the flow is there");
                Scenario::parse(&text, template.name).expect("it can be run");
                assert!(text.contains(contender.text()) && !text.contains("[[claim]]"), "{text}");
            }
        }
    }

    #[test]
    fn error_names_the_unknown_flow_and_the_existing_flows() {
        let text = template("dumbbell").expect("it exists");
        let error = flow(text, Some("nosuch")).expect_err("it does not exist");
        assert!(error.to_string().contains("`nosuch`; its flows are: multicast, tcp"), "{error}");
    }
}
