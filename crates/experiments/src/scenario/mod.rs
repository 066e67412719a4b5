//! Scenario files: network, flows, records and claims.
//!
//! A scenario is a TOML file (`docs/scenarios.md`). [`Scenario::parse`] reads the file and lays out the network at every point of
//! the sweep. Therefore all faults are reported together, with line and column, and only the run itself can fail later.
//!
//! | module | contents |
//! |---|---|
//! | `diagnostic` | faults with their positions |
//! | `syntax` `units` | the file as a tree with positions; numbers with units |
//! | `shape` `shapes` | the permitted keys: for checks, the JSON Schema and the reference |
//! | `read` `plan` | conversion of the tree to typed values |
//! | `real` | flows for programs on real hosts |
//! | `estimate` | estimate of the memory that a run of a plan needs |
//! | `names` `layout` | conversion of the plan to a network |
//! | `missing_parts` | needed parts that a scenario does not have |
//! | `unused_parts` `warnings` | parts without effect; probable mistakes |
//! | `template` | template files |

mod coordinated;
mod diagnostic;
mod estimate;
mod hosts;
mod layout;
mod membership_periods;
mod metrics;
mod missing_parts;
mod names;
pub(crate) mod plan;
mod read;
mod real;
mod shape;
mod shapes;
mod syntax;
mod template;
#[cfg(test)]
mod tests;
pub mod traces;
mod units;
mod unused_parts;
mod warnings;

pub use diagnostic::{Diagnostic, DiagnosticStyle, Diagnostics};
pub use faircast_topology::memory;
pub use hosts::HostThatForwards;
pub use layout::Layout;
pub use missing_parts::{flow_keys, router_kind};
pub use real::{Ecn, RealFlow, RealFlows, RealReceiver, Supply, Traffic, Transfers};
pub use template::{TEMPLATES, Template, template};

use crate::stats::{Scale, Trait};
use faircast_sim::Network;
use faircast_topology::memory::Estimate;
use plan::RunPlan;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use syntax::{Node, Value};

/// A valid scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    title: String,
    about: String,
    source: String,
    file: String,
    text: String,
    seeds: Vec<u64>,
    axes: Vec<Axis>,
    points: Vec<Point>,
    plans: Vec<RunPlan>,
    choices: Vec<Choice>,
    fingerprints: Vec<String>,
    warnings: Diagnostics,
}

/// An axis of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Name in tables and claims.
    pub name: String,
    /// The values of the axis.
    pub values: Vec<Setting>,
}

/// A point of a sweep. A scenario without a sweep has one point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// Number of the point, from 0.
    pub index: usize,
    /// The value on each axis, in the order of the axes.
    pub values: Vec<(String, Setting)>,
}

/// A value on an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// A number, as written in the file.
    Number(f64),
    /// A text.
    Text(String),
}

/// A claim about a metric. The caller compares the claim with the results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Claim {
    /// Name of the claim.
    pub name: String,
    /// The published value.
    pub published: Option<f64>,
    /// The metric.
    pub of: String,
    /// A metric by which `of` is divided.
    pub over: Option<String>,
    /// The point at which the metric `over` is taken: these values replace the values of the claim's own point.
    pub over_at: Vec<(String, Setting)>,
    /// The points of the claim: all points with these values.
    pub at: Vec<(String, Setting)>,
    /// The line through the claim's points, if the claim is about a trend. `None` means a separate claim at each point.
    pub trend: Option<Trend>,
    /// The minimum value for which the claim holds.
    pub low: Option<f64>,
    /// The maximum value for which the claim holds.
    pub high: Option<f64>,
    /// Permitted deviation, relative to the published value.
    pub tolerance: Option<f64>,
    /// Whether the source states these limits; otherwise they are a reading of it.
    pub limits_are_published: bool,
    /// The statement of the source, if several claims test it.
    pub statement: Option<String>,
    /// A remark for readers.
    pub note: Option<String>,
    /// The contradiction in the source, if the claim cannot hold.
    pub contradicts: Option<String>,
}

/// A value that the source leaves open.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// The meaning of the value.
    pub what: String,
    /// The value that the run uses, in words.
    pub value: String,
    /// Time and kind of the choice.
    pub when: When,
    /// The reason for this value.
    pub why: String,
    /// Prefixes of the names of the claims that the choice concerns; empty for all claims.
    pub claims: Vec<String>,
    /// Other possible values.
    pub alternatives: Vec<Alternative>,
}

/// Time and kind of a [`Choice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    /// The source leaves the value open, and it was chosen before the published numbers had been seen.
    #[default]
    Before,
    /// The source leaves the value open, and it was chosen with knowledge of the published numbers.
    After,
    /// The source has another value.
    Departs,
}

/// Another possible value of a [`Choice`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Alternative {
    /// Name of the alternative.
    pub name: String,
    /// Keys of the scenario and their values, for [`crate::edit::Edit::set`].
    pub set: Vec<(String, String)>,
}

impl Choice {
    /// Returns whether the choice concerns a claim of this name.
    pub fn concerns(&self, claim: &str) -> bool {
        self.claims.is_empty() || self.claims.iter().any(|start| claim.starts_with(start))
    }
}

/// A metric as a function of another metric, over the points of a sweep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trend {
    /// The other metric.
    pub against: String,
    /// The property of the line that the claim is about, such as its slope.
    pub number: Trait,
    /// Scale of both coordinates.
    pub scale: Scale,
}

impl Claim {
    /// Returns the lowest and the highest value with which the claim holds.
    pub fn range(&self) -> (f64, f64) {
        let around = self.published.zip(self.tolerance);
        let low = self.low.or(around.map(|(value, tolerance)| value - value.abs() * tolerance));
        let high = self.high.or(around.map(|(value, tolerance)| value + value.abs() * tolerance));
        (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY))
    }

    /// Returns the point at which the metric `over` is taken for the claim at `point`.
    pub fn base(&self, points: &[Point], point: usize) -> usize {
        let wanted = |(name, value): &(String, Setting)| {
            let other = self.over_at.iter().find(|(known, _)| known == name);
            (name.clone(), other.map_or(value, |(_, value)| value).clone())
        };
        let wanted: Vec<_> = points[point].values.iter().map(wanted).collect();
        points.iter().position(|point| point.values == wanted).unwrap_or(point)
    }

    /// Returns whether the claim is about this point.
    pub fn is_about(&self, point: &Point) -> bool {
        self.at
            .iter()
            .all(|(name, value)| point.values.iter().any(|(known, at)| known == name && at == value))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Number(number) => write!(f, "{number}"),
            Setting::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.values.iter().enumerate() {
            write!(f, "{}{name} = {value}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Keys that do not influence a run.
const HEAD: &[&str] = &["title", "about", "source", "seeds", "sweep", "claim", "chosen"];

/// Maximum number of points of a sweep.
const MAX_POINTS: usize = 10_000;

/// An axis as specified in the file.
struct Ruled<'a> {
    axis: Axis,
    paths: Vec<&'a str>,
    values: &'a [Node],
    share: Share,
}

/// Rule that assigns the values of an axis to the keys of the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// All keys take the whole value.
    Same,
    /// Each key takes its own item of the value: the first key takes the first item, and so on.
    Each,
}

impl Scenario {
    /// Parses a scenario. Messages refer to the text as `file`. Each run may use [`DEFAULT`](faircast_topology::memory::DEFAULT)
    /// bytes of memory, by an estimate.
    ///
    /// # Errors
    /// All faults in the text.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, Diagnostics> {
        Scenario::parse_within(text, file, memory::DEFAULT)
    }

    /// Parses a scenario. Each run may use `memory` bytes, by an estimate that is made before the layout.
    ///
    /// # Errors
    /// All faults in the text. If the estimated memory exceeds the limit, the error has the estimate.
    pub fn parse_within(text: &str, file: &str, memory: u64) -> Result<Scenario, Diagnostics> {
        Scenario::read(text, file, memory).map_err(|wrong| Diagnostics::new(file, text, wrong))
    }

    fn read(text: &str, file: &str, memory: u64) -> Result<Scenario, Vec<Diagnostic>> {
        let root = Node::parse(text)?;
        let axes = axes(&root)?;
        let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
        let count = count.filter(|count| *count <= MAX_POINTS).ok_or_else(|| {
            vec![Diagnostic::new(
                &root.place("sweep"),
                format!("more than {MAX_POINTS} points"),
                "too many combinations",
            )]
        })?;
        let (mut points, mut plans, mut fingerprints, mut wrong, mut warnings) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // Each warning is reported only at the first point to which it applies.
        let mut warned = BTreeSet::new();
        for index in 0..count {
            let point = point(&axes, index);
            match plan_at(&root, &axes, index) {
                Ok((plan, fingerprint)) => {
                    // If a plan is too large, no network is laid out, and the remaining points are not examined.
                    fits(&root, &plan, count, memory).map_err(|wrong| vec![wrong])?;
                    fingerprints.push(fingerprint);
                    let seed = plan.seeds.first().copied().unwrap_or(1);
                    match layout::Layout::new(&plan, seed) {
                        Ok(layout) => {
                            let mut here = warnings::of(&plan, &layout, &point);
                            here.retain(|warning| warned.insert((warning.span.start, warning.label.clone())));
                            warnings.extend(here);
                        }
                        Err(errors) => wrong.extend(errors),
                    }
                    plans.push(plan);
                }
                Err(errors) => wrong.extend(errors),
            }
            points.push(point);
        }
        let axes: Vec<Axis> = axes.into_iter().map(|ruled| ruled.axis).collect();
        check_claims(&root, &axes, &mut wrong);
        check_choices(&root, &mut wrong);
        if wrong.is_empty() {
            metrics::check(&root, plans.iter().map(metrics_of), &mut wrong);
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let head = |key| root.get(key).and_then(Node::text).unwrap_or_default().to_owned();
        Ok(Scenario {
            title: head("title"),
            about: head("about"),
            source: head("source"),
            file: file.to_owned(),
            text: text.to_owned(),
            seeds: read::seeds(&root),
            axes,
            points,
            plans,
            choices: read::choices(&root),
            fingerprints,
            warnings: Diagnostics::warnings(file, text, warnings),
        })
    }

    /// Returns the warnings about probable mistakes in the text.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Returns the title: the subject in one line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the description; may be empty.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Returns the publication; may be empty.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the name of the scenario's file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the BLAKE3 hash of the text, in hexadecimal digits.
    pub fn hash(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }

    /// Returns the random seeds.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// Replaces the random seeds.
    pub fn set_seeds(&mut self, seeds: Vec<u64>) {
        self.seeds = seeds;
    }

    /// Returns the axes of the sweep. The axis whose value changes most slowly is the first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns the points of the sweep.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns a hash of all inputs of a run at a point, except the random seed and the code.
    pub fn fingerprint(&self, point: usize) -> &str {
        &self.fingerprints[point]
    }

    /// Returns the claims.
    pub fn claims(&self) -> &[Claim] {
        self.plans.first().map_or(&[], |plan| &plan.claims)
    }

    /// Returns the values that the source leaves open.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// Returns the names of the groups of flows.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.plans.first().into_iter().flat_map(|plan| plan.flows.iter().map(|flow| flow.name.value.as_str()))
    }

    /// Returns whether receivers of a group need a number of packets to be complete.
    pub fn has_content(&self, point: usize, group: &str) -> bool {
        let flows = self.plans[point].flows.iter().filter(|flow| flow.name.value == group);
        flows
            .into_iter()
            .any(|flow| matches!(&flow.kind, plan::FlowKind::Session(session) if session.content.is_some()))
    }

    /// Returns the duration of a run at a point, in simulated seconds.
    pub fn duration(&self, point: usize) -> f64 {
        self.plans[point].duration.as_secs_f64()
    }

    /// Lays out the network at a point, with names of nodes.
    pub fn layout(&self, point: usize, seed: u64) -> Layout {
        layout::Layout::new(&self.plans[point], seed).expect("was laid out when the scenario was read")
    }

    /// Builds the network at a point for the simulator.
    pub fn network(&self, point: usize, seed: u64) -> Network {
        self.layout(point, seed).network(&self.plans[point], seed)
    }

    /// Returns the names of the metrics that a run at a point may have. A run leaves out metrics without a defined value.
    pub fn metric_names(&self, point: usize) -> BTreeSet<String> {
        metrics_of(&self.plans[point])
    }

    /// Estimates the memory of a run at a point.
    pub fn estimate(&self, point: usize) -> Estimate {
        estimate::of(&self.plans[point]).run
    }

    /// Estimates the memory of these runs if `threads` runs are simultaneous. The estimate includes the results of all runs,
    /// which stay in memory until they are written.
    pub fn estimate_of_runs(&self, jobs: &[(usize, u64)], threads: usize) -> Estimate {
        let points: Vec<estimate::OfRun> = self.plans.iter().map(estimate::of).collect();
        let mut all = Estimate::new();
        let largest = points.iter().max_by_key(|point| point.run.total());
        let threads = threads.min(jobs.len()) as u64;
        for part in largest.iter().flat_map(|point| point.run.parts()) {
            let what = if threads > 1 { format!("times {}", part.what) } else { part.what.clone() };
            if threads > 1 { all.add(threads, &what, part.bytes) } else { all.add_part(part.clone()) }
        }
        let what = format!("{} runs whose results are kept", jobs.len());
        all.add_part(memory::Part { what, bytes: self.estimate_of_results(jobs) });
        all
    }

    /// Estimates the memory for the results of these runs, in bytes. Results stay in memory until they are written.
    pub fn estimate_of_results(&self, jobs: &[(usize, u64)]) -> u64 {
        let points: Vec<u64> = self.plans.iter().map(|plan| estimate::of(plan).kept).collect();
        jobs.iter().fold(0, |sum: u64, (point, _)| sum.saturating_add(points[*point]))
    }

    pub(crate) fn plan(&self, point: usize) -> &RunPlan {
        &self.plans[point]
    }
}

/// Checks that a run of this plan, together with the plans of all points, fits in memory.
fn fits(root: &Node, plan: &RunPlan, points: usize, most: u64) -> Result<(), Diagnostic> {
    let mut all = estimate::of(plan).run;
    all.add(points as u64, "points of the sweep", estimate::of_plan(plan));
    let Err(refused) = all.within(most) else { return Ok(()) };
    let largest = all.parts().iter().max_by_key(|part| part.bytes).map_or("", |part| part.what.as_str());
    let of_flow = plan.flows.iter().find(|flow| largest.ends_with(&format!("\"{}\"", flow.name.value)));
    let span = of_flow.map_or_else(|| root.place("topology"), |flow| flow.span.clone());
    let enough = refused.enough();
    let bytes = enough.replace('G', "_000_000_000");
    let help = format!(
        "make the network smaller, or allow the memory if this host has it: --max-memory {enough} (in Python: memory={bytes})",
    );
    Err(Diagnostic::new(&span, format!("too large for this run: {refused}"), "too large").help(help))
}

/// Returns the names of the metrics that a run of this plan may have.
fn metrics_of(plan: &RunPlan) -> BTreeSet<String> {
    let seed = plan.seeds.first().copied().unwrap_or(1);
    let layout = layout::Layout::new(plan, seed).expect("was laid out when the scenario was read");
    let links: Vec<String> = layout.probes.iter().map(|link| layout.link_name(*link)).collect();
    metrics::names(plan, &links)
}

/// Returns the faults of a scenario; empty if the scenario is valid.
pub fn check(text: &str) -> Vec<Diagnostic> {
    Scenario::read(text, "", memory::DEFAULT).err().unwrap_or_default()
}

/// Returns the JSON Schema of scenario files.
pub fn schema() -> String {
    let mut schema = shapes::SCENARIO.schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "faircast scenario".into();
    schema["x-metrics"] = metrics::schema();
    serde_json::to_string_pretty(&schema).expect("a tree of JSON values has a text")
}

/// Returns the reference of all keys in Markdown, the second half of `docs/scenarios.md`.
pub fn reference() -> String {
    let mut out = String::new();
    metrics::reference(&mut out);
    shapes::ALL.iter().for_each(|shape| shape.reference(&mut out));
    out.trim_end().to_owned() + "\n"
}

fn axes(root: &Node) -> Result<Vec<Ruled<'_>>, Vec<Diagnostic>> {
    let Some(sweep) = root.get("sweep") else { return Ok(Vec::new()) };
    let mut wrong = Vec::new();
    let mut axes: Vec<Ruled<'_>> = Vec::new();
    for entry in sweep.entries() {
        let (to, each) = (entry.node.get("to"), entry.node.get("each"));
        let set = || entry.node.list("set").iter().filter_map(Node::text).collect();
        let (paths, values, share): (Vec<&str>, _, _) = match (&entry.node.value, to, each) {
            (Value::Table(_), Some(to), None) => (set(), to.items(), Share::Same),
            (Value::Table(_), None, Some(each)) => (set(), each.items(), Share::Each),
            (Value::Table(_), ..) => (Vec::new(), &[][..], Share::Same),
            _ => (vec![entry.key.as_str()], entry.node.items(), Share::Same),
        };
        if values.is_empty() || paths.is_empty() {
            let message = format!(
                "the axis `{}` needs a list of values, or `set` and one of `to` and `each`",
                entry.key
            );
            wrong.push(Diagnostic::new(&entry.node.span, message, "no values"));
        }
        if share == Share::Each
            && let Some(value) = values.iter().find(|value| value.items().len() != paths.len())
        {
            let message =
                format!("`each` wants {} values at every point, one for each key of `set`", paths.len());
            wrong.push(Diagnostic::new(&value.span, message, "not so many"));
        }
        let names = entry.node.get("names").map(|names| names.items());
        if let Some(names) = names.filter(|names| names.len() != values.len()) {
            let message = format!("{} names for {} points", names.len(), values.len());
            wrong.push(Diagnostic::new(&entry.node.span, message, "one for each"));
        }
        for path in &paths {
            let top = path.split('.').next().unwrap_or_default();
            if HEAD.contains(&top) {
                let message = format!("`{top}` is the same at all points and cannot be swept");
                wrong.push(Diagnostic::new(&entry.key_span, message, "not this"));
            }
        }
        let short = match entry.node.value {
            Value::Table(_) => entry.key.as_str(),
            _ => entry.key.rsplit('.').next().unwrap_or(&entry.key),
        };
        let name = if axes.iter().any(|known| known.axis.name == short) { &entry.key } else { short };
        let shown: Vec<Setting> = names.unwrap_or(values).iter().map(read::setting).collect();
        let mut seen = BTreeSet::new();
        if let Some(at) = shown.iter().position(|value| !seen.insert(format!("{value:?}"))) {
            let message =
                format!("the axis `{}` has a value twice, so two points would have the same name", entry.key);
            wrong.push(Diagnostic::new(&names.unwrap_or(values)[at].span, message, "again"));
        }
        axes.push(Ruled { axis: Axis { name: name.to_owned(), values: shown }, paths, values, share });
    }
    if wrong.is_empty() { Ok(axes) } else { Err(wrong) }
}

/// Returns the index of the value on each axis, for the point with this number. The last axis varies fastest.
fn places(axes: &[Ruled<'_>], mut index: usize) -> Vec<usize> {
    let mut places = vec![0; axes.len()];
    for (place, axis) in places.iter_mut().zip(axes).rev() {
        *place = index % axis.values.len();
        index /= axis.values.len();
    }
    places
}

fn point(axes: &[Ruled<'_>], index: usize) -> Point {
    let places = places(axes, index);
    let values =
        axes.iter().zip(places).map(|(ruled, at)| (ruled.axis.name.clone(), ruled.axis.values[at].clone()));
    Point { index, values: values.collect() }
}

/// Returns the plan of a point, and a hash of all inputs of the plan.
fn plan_at(root: &Node, axes: &[Ruled<'_>], index: usize) -> Result<(RunPlan, String), Vec<Diagnostic>> {
    let mut root = root.clone();
    for (ruled, at) in axes.iter().zip(places(axes, index)) {
        let value = &ruled.values[at];
        for (index, path) in ruled.paths.iter().enumerate() {
            let value = match ruled.share {
                Share::Same => value,
                Share::Each => &value.items()[index],
            };
            root.set(path, value).map_err(|part| {
                let message = format!("the path `{path}` does not exist: there is no `{part}`");
                let help =
                    "keys by name, flows by their `name`, links by their number from 1: `flow.tcp.count`";
                vec![Diagnostic::new(&value.span, message, "would go there").help(help)]
            })?;
        }
    }
    let plan = read::plan(&root)?;
    Ok((plan, root.fingerprint(HEAD).to_hex().to_string()))
}

/// Checks that choices name existing claims and that their alternatives are valid scenarios.
fn check_choices(root: &Node, wrong: &mut Vec<Diagnostic>) {
    let claims = root.list("claim").iter();
    let names: Vec<&str> = claims.filter_map(|claim| claim.get("name").and_then(Node::text)).collect();
    for choice in root.list("chosen") {
        for start in choice.list("claims") {
            if start.text().is_some_and(|start| !names.iter().any(|name| name.starts_with(start))) {
                wrong.push(Diagnostic::new(&start.span, "no claim begins like this".to_owned(), "of none"));
            }
        }
        for alternative in choice.list("alternative") {
            let mut other = root.clone();
            for entry in alternative.table("set") {
                if let Err(part) = other.set(&entry.key, &entry.node) {
                    let message = format!("the path `{}` does not exist: there is no `{part}`", entry.key);
                    wrong.push(Diagnostic::new(&entry.key_span, message, "would go there"));
                }
            }
            match axes(&other).and_then(|axes| plan_at(&other, &axes, 0).map(|_| ())) {
                Err(errors) if wrong.is_empty() => wrong.extend(errors),
                _ => {}
            }
        }
    }
}

/// Checks that claims are about existing points.
fn check_claims(root: &Node, axes: &[Axis], wrong: &mut Vec<Diagnostic>) {
    let known: BTreeMap<&str, &Axis> = axes.iter().map(|axis| (axis.name.as_str(), axis)).collect();
    for claim in root.list("claim") {
        let entries = ["at", "over_at"].map(|key| claim.table(key));
        for entry in entries.into_iter().flatten() {
            let names: Vec<&str> = known.keys().copied().collect();
            match known.get(entry.key.as_str()) {
                None => {
                    let message = format!("the sweep has no axis `{}`", entry.key);
                    wrong.push(
                        Diagnostic::new(&entry.key_span, message, "unknown")
                            .help(diagnostic::meant(&entry.key, &names)),
                    );
                }
                Some(axis) if !axis.values.contains(&read::setting(&entry.node)) => {
                    let values: Vec<String> = axis.values.iter().map(Setting::to_string).collect();
                    let message = format!("the axis `{}` does not have this value", entry.key);
                    let help = format!("its values: {}", values.join(", "));
                    wrong.push(Diagnostic::new(&entry.node.span, message, "not on the axis").help(help));
                }
                Some(_) => {}
            }
        }
    }
}
