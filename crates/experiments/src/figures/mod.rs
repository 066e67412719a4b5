//! Standard figures of a scenario's results.

pub mod curves;
mod layers;

pub use layers::{rates as layer_rates, subscription_layers, subscriptions};

use crate::plot::{Axis, Colour, Dot, Figure, Layer, Panel};
use crate::results::Results;
use crate::scenario::{Point, Scenario, Setting};
use crate::stats::Estimate;
use crate::table::{Column, Table};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of panels in a figure.
const MAX_PANELS: usize = 12;

/// A figure, and the name of the figure's file without extension.
pub type Named = (&'static str, Figure);

/// Values over time: `(seconds, value)`.
pub type Trace = Vec<(f64, f64)>;

/// Draws all figures that these results support.
pub fn figures(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let groups: Vec<&str> = scenario.groups().collect();
    let mut all = vec![("averages", averages(scenario.title(), results, &groups))];
    if results.points.len() == 1 {
        all.push(("rates", rates(scenario.title(), results, &groups)));
    } else {
        all.push(("sweep", sweep(scenario.title(), results, &groups)));
    }
    all.extend(queues(scenario.title(), results).map(|figure| ("queues", figure)));
    all.extend(representatives(scenario.title(), results).map(|figure| ("representatives", figure)));
    all.extend(layers::subscriptions(scenario, results).map(|figure| ("subscriptions", figure)));
    all.extend(layers::rates(scenario, results).map(|figure| ("layers", figure)));
    all
}

/// Unit in which a rate is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Bits per second in this unit.
    pub size: f64,
    /// Name of the unit.
    pub name: &'static str,
}

impl Unit {
    /// Returns a unit in which the number of this rate has few digits.
    pub fn of(bps: f64) -> Unit {
        match bps {
            bps if bps >= 2e9 => Unit { size: 1e9, name: "Gbit/s" },
            bps if bps >= 2e6 => Unit { size: 1e6, name: "Mbit/s" },
            _ => Unit { size: 1e3, name: "kbit/s" },
        }
    }

    fn scaled(self, trace: Trace) -> Trace {
        trace.into_iter().map(|(t, bps)| (t, bps / self.size)).collect()
    }
}

/// Returns the traces of a flow at a point, one for each seed.
pub fn traces(
    results: &Results,
    table: &str,
    point: usize,
    flow: &str,
    receiver: Receiver<'_>,
) -> Vec<Trace> {
    let Some(table) = results.table(table) else { return Vec::new() };
    let value = match table.columns.last() {
        Some((_, Column::Number(values))) => values,
        _ => return Vec::new(),
    };
    let (points, seeds, times) = (table.wholes("point"), table.wholes("seed"), table.numbers("time"));
    let (flows, copies, receivers) = (table.texts("flow"), table.wholes("copy"), table.texts("receiver"));
    let mut by_seed: BTreeMap<u64, Trace> = BTreeMap::new();
    for row in 0..table.rows() {
        let wanted = match receiver {
            Receiver::All => copies[row] == 0,
            Receiver::Named(name) => copies[row] != 0 && receivers[row] == name,
        };
        if wanted && points[row] == point as u64 && flows[row] == flow {
            by_seed.entry(seeds[row]).or_default().push((times[row], value[row]));
        }
    }
    by_seed.into_values().collect()
}

/// Receiver whose rate is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver<'a> {
    /// The mean over all receivers of the group.
    All,
    /// The receiver with this name, in the first flow of the group that has this receiver.
    Named(&'a str),
}

/// Returns the mean of several traces at each moment. If there are at least two traces, also returns the confidence interval of
/// the mean.
pub fn mean_of(traces: &[Trace]) -> (Trace, Vec<(f64, f64, f64)>) {
    let longest = traces.iter().map(Vec::len).max().unwrap_or(0);
    let (mut mean, mut band) = (Vec::with_capacity(longest), Vec::new());
    for at in 0..longest {
        let here: Vec<(f64, f64)> = traces.iter().filter_map(|trace| trace.get(at).copied()).collect();
        let values: Vec<f64> = here.iter().map(|(_, value)| *value).collect();
        let (time, estimate) = (here[0].0, Estimate::of(&values));
        mean.push((time, estimate.mean));
        if estimate.half_width.is_finite() {
            let (low, high) = estimate.interval();
            band.push((time, low, high));
        }
    }
    (mean, band)
}

/// Returns the title of a panel: the values of a point, or an empty text without a sweep.
fn panel_title(point: &Point) -> String {
    point.to_string()
}

/// Returns a panel's title: the subject, followed by the values of the point in a sweep.
fn titled(what: &str, point: &Point) -> String {
    let place = panel_title(point);
    if place.is_empty() { what.to_owned() } else { format!("{what}, {place}") }
}

/// Limits a figure to [`MAX_PANELS`] panels. If panels are removed, the subtitle states this.
fn cut(mut figure: Figure) -> Figure {
    if figure.panels.len() > MAX_PANELS {
        figure.panels.truncate(MAX_PANELS);
        figure.subtitle.push_str(&format!(" Only the first {MAX_PANELS} panels are shown."));
    }
    figure
}

/// Returns the name of the run that is shown in place of all runs of a point.
fn one_run(results: &Results) -> String {
    match (&results.identity.seeds[..], results.identity.shard) {
        ([first, _, ..], None) => format!("the run with seed {first}"),
        _ => "one run".to_owned(),
    }
}

fn largest(results: &Results, groups: &[&str]) -> f64 {
    let rates = groups.iter().flat_map(|group| {
        (0..results.points.len()).flat_map(move |point| results.metric(point, &format!("{group}.rate")))
    });
    rates.fold(0.0, f64::max)
}

/// Draws running averages of rates at a point of the sweep: a line and a band for each group. A running average is the mean since
/// the start of the run.
pub fn average_layers(results: &Results, point: usize, groups: &[&str], unit: Unit) -> Vec<Layer> {
    let (mut bands, mut lines) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        let (mean, band) = mean_of(&traces(results, "averages", point, group, Receiver::All));
        let scaled = band.into_iter().map(|(t, low, high)| (t, low / unit.size, high / unit.size)).collect();
        bands.push(Layer::Band { colour: Colour::Series(number), points: scaled });
        lines.push(Layer::line(*group, number, unit.scaled(mean)));
    }
    bands.extend(lines);
    bands
}

fn runs(results: &Results) -> String {
    match results.identity.seeds.len() {
        1 => "one run".into(),
        n => format!("mean of {n} runs, shaded: 95 % interval"),
    }
}

/// Draws running averages of the rates of all groups: a panel for each point.
pub fn averages(title: &str, results: &Results, groups: &[&str]) -> Figure {
    let unit = Unit::of(largest(results, groups));
    let panels = results.points.iter().take(MAX_PANELS + 1).map(|point| {
        Panel::over_time(
            panel_title(point),
            format!("rate so far ({})", unit.name),
            average_layers(results, point.index, groups, unit),
        )
    });
    cut(Figure::new(
        title,
        format!(
            "Over-time averages: what a receiver of each group has got on average since the start; {}.",
            runs(results)
        ),
        panels,
    ))
}

/// Returns the first receiver of a group that has its own rows in `rates`.
fn first_receiver(results: &Results, flow: &str) -> Option<String> {
    let table = results.table("rates")?;
    let (flows, copies, receivers) = (table.texts("flow"), table.wholes("copy"), table.texts("receiver"));
    (0..flows.len()).find(|&row| flows[row] == flow && copies[row] != 0).map(|row| receivers[row].clone())
}

/// Draws the rates of one run, bin by bin: a panel for each group.
fn rates(title: &str, results: &Results, groups: &[&str]) -> Figure {
    let unit = Unit::of(largest(results, groups));
    let panels = groups.iter().enumerate().filter_map(|(number, group)| {
        let receiver = first_receiver(results, group)?;
        let one = |table| traces(results, table, 0, group, Receiver::Named(&receiver)).into_iter().next();
        Some(Panel::over_time(
            format!("{group} to {receiver}"),
            format!("rate ({})", unit.name),
            vec![
                Layer::noise(number, unit.scaled(one("rates")?)),
                Layer::line("", number, unit.scaled(one("averages")?)),
            ],
        ))
    });
    let subtitle = format!(
        "Of {}, one receiver of each group. Thin: bins of the length that the scenario sets. Heavy: average since the start.",
        one_run(results)
    );
    cut(Figure::new(title, subtitle, panels))
}

/// The axis with the most values, which becomes the horizontal axis of panels, and the combinations of the values on the other
/// axes of the sweep.
struct Across<'a> {
    results: &'a Results,
    place: usize,
    /// The values of the axis, if all are numbers.
    numeric: Option<Vec<f64>>,
    /// All combinations of values on the other axes, as text.
    others: Vec<String>,
}

impl<'a> Across<'a> {
    fn of(results: &'a Results) -> Across<'a> {
        let most = results.axes.iter().enumerate().max_by_key(|(_, axis)| axis.values.len());
        let place = most.map_or(0, |(place, _)| place);
        let numeric = results.axes[place].values.iter().map(number).collect();
        let mut others: Vec<String> = Vec::new();
        for point in &results.points {
            let other = others_of(point, place);
            if !others.contains(&other) {
                others.push(other);
            }
        }
        Across { results, place, numeric, others }
    }

    /// Draws a metric at the points whose values on the other axes are `others`.
    fn layer(&self, others: &str, metric: &str, name: &str, colour: usize, unit: f64) -> Layer {
        let points = self.results.points.iter().filter(|point| others_of(point, self.place) == others);
        let dots = points.enumerate().map(|(place, point)| {
            let x = self.numeric.as_ref().map_or(place as f64, |values| values[place]);
            dot(x, &self.results.metric(point.index, metric), unit)
        });
        match self.numeric {
            Some(_) => Layer::dots(name, colour, dots),
            None => Layer::bars(name, colour, dots),
        }
    }

    fn axis(&self) -> Axis {
        let axis = &self.results.axes[self.place];
        match &self.numeric {
            Some(values) => numeric_axis(&axis.name, values),
            None => Axis::new("").named(axis.values.iter().map(|v| format!("{} = {v}", axis.name)).collect()),
        }
    }
}

/// Returns the values of a point on all axes except the axis with the number `without`, as text.
fn others_of(point: &Point, without: usize) -> String {
    let others = point.values.iter().enumerate().filter(|(at, _)| *at != without);
    let texts: Vec<String> = others.map(|(_, (name, value))| format!("{name} = {value}")).collect();
    texts.join(", ")
}

/// Draws rates as functions of one axis of the sweep. There is a panel for each combination of values on the other axes.
fn sweep(title: &str, results: &Results, groups: &[&str]) -> Figure {
    let unit = Unit::of(largest(results, groups));
    let across = Across::of(results);
    let panels = across.others.iter().take(MAX_PANELS + 1).map(|others| {
        let rate = |(colour, group): (usize, &&str)| {
            across.layer(others, &format!("{group}.rate"), group, colour, unit.size)
        };
        let y = Axis::new(format!("rate ({})", unit.name)).from(0.0);
        let layers = groups.iter().enumerate().map(rate).collect();
        Panel { title: others.clone(), x: across.axis(), y, layers }
    });
    let subtitle = "Mean rate of a receiver of each group; whiskers: 95 % interval over the runs.";
    cut(Figure::new(title, subtitle, panels))
}

/// Draws selected metrics as functions of one axis of the sweep. There is a panel for each metric, with a series for each
/// combination of values on the other axes. Returns `None` without a sweep.
pub fn metrics(title: &str, results: &Results, wanted: &[String]) -> Option<Figure> {
    if results.axes.is_empty() {
        return None;
    }
    let across = Across::of(results);
    let panels = wanted.iter().map(|metric| {
        let series = across.others.iter().enumerate();
        let layers = series.map(|(colour, others)| across.layer(others, metric, others, colour, 1.0));
        let y = Axis::new(metric.as_str()).from(0.0);
        Panel { title: metric.clone(), x: across.axis(), y, layers: layers.collect() }
    });
    let subtitle = "Means over the runs in base units; whiskers: 95 % interval.";
    Some(cut(Figure::new(title, subtitle, panels).with_own_ranges()))
}

/// Returns an axis for these values. It is logarithmic if the largest value exceeds the smallest value more than 30 times.
fn numeric_axis(name: &str, values: &[f64]) -> Axis {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let axis = Axis::new(name);
    if low > 0.0 && high / low > 30.0 { axis.logarithmic().from(low / 1.2).to(high * 1.2) } else { axis }
}

fn number(setting: &Setting) -> Option<f64> {
    match setting {
        Setting::Number(number) => Some(*number),
        Setting::Text(_) => None,
    }
}

/// Returns a dot at the position `x`: the mean of `values` and the confidence interval of the mean, both divided by `unit`.
pub fn dot(x: f64, values: &[f64], unit: f64) -> Dot {
    let estimate = Estimate::of(values);
    let (low, high) = estimate.interval();
    let interval = estimate.half_width.is_finite().then_some((low / unit, high / unit));
    Dot { x, y: estimate.mean / unit, interval }
}

/// Draws the number of waiting packets at probed links, for the first run of each point: a panel for each point and link.
fn queues(title: &str, results: &Results) -> Option<Figure> {
    let table = results.table("queues")?;
    let (points, seeds, times) = (table.wholes("point"), table.wholes("seed"), table.numbers("time"));
    let (links, waiting) = (table.texts("link"), table.wholes("packets"));
    let mut traces: BTreeMap<(usize, &str), (u64, Trace)> = BTreeMap::new();
    for row in 0..links.len() {
        let key = (points[row] as usize, links[row].as_str());
        let (seed, trace) = traces.entry(key).or_insert_with(|| (seeds[row], Trace::new()));
        if *seed == seeds[row] {
            trace.push((times[row], waiting[row] as f64));
        }
    }
    let panels = traces.into_iter().map(|((point, link), (_, points))| {
        Panel::over_time(
            titled(link, &results.points[point]),
            "queue (packets)",
            vec![Layer::noise(0, points)],
        )
    });
    let subtitle =
        format!("Packets that wait, of {}; the one in transmission does not count.", one_run(results));
    let figure = Figure::new(title, subtitle, panels).in_columns(1);
    (!figure.panels.is_empty()).then(|| cut(figure))
}

/// Returns the numbers of the rows of a group's first flow, in the first run at a point.
fn rows_of_first_run(table: &Table, point: usize, flow: &str) -> Vec<usize> {
    let (points, seeds) = (table.wholes("point"), table.wholes("seed"));
    let (flows, copies) = (table.texts("flow"), table.wholes("copy"));
    let of_flow = |row: &usize| points[*row] == point as u64 && flows[*row] == flow && copies[*row] == 1;
    let mut rows: Vec<usize> = (0..table.rows()).filter(of_flow).collect();
    if let Some(&first) = rows.first() {
        rows.retain(|row| seeds[*row] == seeds[first]);
    }
    rows
}

/// Returns the times at which a flow's representative changed in the first run at a point, each with the new representative.
pub fn representative_trace(results: &Results, point: usize, flow: &str) -> Vec<(f64, String)> {
    let Some(table) = results.table("representatives") else { return Vec::new() };
    let (times, receivers) = (table.numbers("time"), table.texts("receiver"));
    let rows = rows_of_first_run(table, point, flow).into_iter();
    rows.map(|row| (times[row], receivers[row].clone())).collect()
}

/// Returns the values of a column of `samples` over time, for a flow in the first run at a point.
pub fn source_trace(results: &Results, point: usize, flow: &str, column: &str) -> Trace {
    let Some(table) = results.table("samples") else { return Vec::new() };
    let (times, values) = (table.numbers("time"), table.numbers(column));
    let rows = rows_of_first_run(table, point, flow).into_iter();
    rows.map(|row| (times[row], values[row])).collect()
}

/// Returns the number at the end of a node's name.
fn node_number(name: &str) -> f64 {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[name.len() - digits..].parse().unwrap_or(f64::NAN)
}

/// Draws the representatives of each session over time, unless a session has only one.
fn representatives(title: &str, results: &Results) -> Option<Figure> {
    let table = results.table("representatives")?;
    let flows: BTreeSet<&String> = table.texts("flow").iter().collect();
    let mut panels = Vec::new();
    for point in results.points.iter().take(MAX_PANELS + 1) {
        for flow in &flows {
            let trace = representative_trace(results, point.index, flow);
            let several: BTreeSet<&String> = trace.iter().map(|(_, receiver)| receiver).collect();
            if several.len() > 1 {
                let steps = trace.iter().map(|(time, receiver)| (*time, node_number(receiver))).collect();
                panels.push(Panel::over_time(
                    titled(flow, point),
                    "receiver",
                    vec![Layer::steps("", 0, steps)],
                ));
            }
        }
    }
    let subtitle =
        format!("The number of the receiver that the source follows, in {}; gaps: none.", one_run(results));
    let figure = Figure::new(title, subtitle, panels).with_own_ranges();
    (!figure.panels.is_empty()).then(|| cut(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_of_traces_has_a_band_where_several_traces_have_values() {
        let (mean, band) = mean_of(&[vec![(1.0, 2.0), (2.0, 4.0)], vec![(1.0, 4.0)]]);
        assert_eq!(mean, [(1.0, 3.0), (2.0, 4.0)]);
        assert_eq!(band.len(), 1);
        assert!(band[0].1 < 3.0 && band[0].2 > 3.0);
    }

    #[test]
    fn titles_of_queue_panels_contain_the_value_of_the_sweep() {
        let text = crate::scenario::template("dumbbell").expect("there is one");
        let text = text.replace("\"100 s\"", "\"3 s\"").replace("\"20 s\"", "\"1 s\"")
            + "\n[sweep]\nqueue = { set = \"topology.bottleneck.queue\", to = [\"20 packets\", \"40 packets\"] }\n";
        let scenario = Scenario::parse(&text, "sweep").unwrap_or_else(|wrong| panic!("{wrong}"));
        let results = crate::run::run(&scenario, &Default::default(), &crate::run::Silent).expect("it runs");
        let figure = queues("", &results).expect("a link is probed");
        let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["left->right, queue = 20 packets", "left->right, queue = 40 packets"]);
        assert!(figure.subtitle.contains("the run with seed 1"), "{}", figure.subtitle);
    }

    #[test]
    fn each_selected_metric_has_a_panel_with_a_series_per_setting() {
        let text = crate::scenario::template("dumbbell").expect("there is one");
        let text = text.replace("\"100 s\"", "\"3 s\"").replace("\"20 s\"", "\"1 s\"");
        let sweep = "\n[sweep]\n\"topology.leaves\" = [5, 6, 7]\n\"topology.bottleneck.delay\" = [\"5 ms\", \"9 ms\"]\n";
        let run = |text: &str| {
            let scenario = Scenario::parse(text, "t").unwrap_or_else(|wrong| panic!("{wrong}"));
            crate::run::run(&scenario, &Default::default(), &crate::run::Silent).expect("it runs")
        };
        let wanted = ["tcp.rtt".to_owned(), "link.left->right.drops".to_owned()];
        let figure = metrics("", &run(&(text.clone() + sweep)), &wanted).expect("there is a sweep");
        let panels: Vec<(&str, usize)> =
            figure.panels.iter().map(|panel| (panel.title.as_str(), panel.layers.len())).collect();
        assert_eq!(panels, [("tcp.rtt", 2), ("link.left->right.drops", 2)]);
        let Layer::Dots { name, points, .. } = &figure.panels[0].layers[1] else { panic!("dots") };
        assert_eq!((name.as_str(), points.len()), ("delay = 9 ms", 3));
        assert!(points.iter().all(|dot| dot.y > 0.018), "a round trip takes 18 ms at least");
        assert!(metrics("", &run(&text), &wanted).is_none());
    }

    #[test]
    fn receiver_number_is_read_from_the_end_of_its_name() {
        assert_eq!(node_number("leaf2.17"), 17.0);
        assert!(node_number("root").is_nan());
    }

    #[test]
    fn units_of_rates_are_chosen_by_magnitude() {
        assert_eq!(Unit::of(415e3).name, "kbit/s");
        assert_eq!(Unit::of(2.5e6).name, "Mbit/s");
        assert_eq!(Unit::of(4e9).name, "Gbit/s");
    }
}
