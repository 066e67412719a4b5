//! Figures of reproductions, for comparison with the published ones.

use crate::figures::{
    Named, Receiver, Unit, average_layers, averages, dot, figures, mean_of, representative_trace,
    source_trace, traces,
};
use crate::plot::{Axis, Colour, Dot, Figure, Layer, Panel};
use crate::results::Results;
use crate::scenario::{Point, Scenario};

const KBIT: Unit = Unit { size: 1e3, name: "kbit/s" };

const KBIT_RATE: &str = "rate (kbit/s)";

fn kbit(trace: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    trace.into_iter().map(|(time, bps)| (time, bps / 1e3)).collect()
}

/// The receiver whose flows are shown. The paper selects a receiver at random.
const SHOWN: &str = "leaf1";

/// Draws running averages of rates at one receiver, for each scheme, and the rates in one run of the first scheme.
pub fn fig_3_4(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let names =
        [("multicast", "multicast, 64 receivers"), ("single", "unicast session"), ("tcp", "TCP Reno")];
    let shown = |table, point, flow| traces(results, table, point, flow, Receiver::Named(SHOWN));
    let panels = results.points.iter().map(|point| {
        let mut layers = vec![Layer::Level { name: "fair share".into(), y: 1000.0 / 3.0 }];
        for (colour, (flow, name)) in names.into_iter().enumerate() {
            let (mean, band) = mean_of(&shown("averages", point.index, flow));
            let band = band.into_iter().map(|(t, low, high)| (t, low / 1e3, high / 1e3)).collect();
            layers.insert(0, Layer::Band { colour: Colour::Series(colour), points: band });
            layers.push(Layer::line(name, colour, kbit(mean)));
        }
        Panel::over_time(value_of(point, "scheme"), KBIT_RATE, layers)
    });
    let averages = Figure::new(
        scenario.title(),
        format!(
            "Over-time averages of the three flows to receiver 1; mean of {} runs, shaded: 95 % interval.",
            results.identity.seeds.len()
        ),
        panels,
    );
    let one_run = names.into_iter().enumerate().map(|(colour, (flow, name))| {
        let first = |table| shown(table, 0, flow).into_iter().next();
        Panel::over_time(
            name,
            KBIT_RATE,
            vec![
                Layer::noise(colour, kbit(first("rates").unwrap_or_default())),
                Layer::line("", colour, kbit(first("averages").unwrap_or_default())),
            ],
        )
    });
    let rates = Figure::new(
        "The same flows in one run",
        "The first scheme. Thin: each second. Heavy: average since the start.",
        one_run,
    );
    vec![("averages", averages), ("rates", rates)]
}

/// Returns the value of a point on an axis; empty if the point has no such axis.
fn value_of(point: &Point, axis: &str) -> String {
    point
        .values
        .iter()
        .find(|(name, _)| name == axis)
        .map_or_else(String::new, |(_, value)| value.to_string())
}

/// Draws running averages of rates, and the rates of one run.
pub fn averages_and_rates(scenario: &Scenario, results: &Results) -> Vec<Named> {
    figures(scenario, results).into_iter().filter(|(name, _)| ["averages", "rates"].contains(name)).collect()
}

/// Draws running averages of rates at each point of the sweep, and the means of all points.
pub fn averages_and_sweep(scenario: &Scenario, results: &Results) -> Vec<Named> {
    figures(scenario, results).into_iter().filter(|(name, _)| ["averages", "sweep"].contains(name)).collect()
}

/// Draws the standard figures except the figure of representatives, because the slowest part of a tree changes constantly.
pub fn figures_of_trees(scenario: &Scenario, results: &Results) -> Vec<Named> {
    figures(scenario, results).into_iter().filter(|(name, _)| *name != "representatives").collect()
}

/// Draws the rates of the long and the short sessions over time, for each scheme.
pub fn fig_3_10(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let groups = ["long", "short-1", "short-2"];
    let mut averages = averages(scenario.title(), results, &groups);
    for (panel, point) in averages.panels.iter_mut().zip(&results.points) {
        panel.layers = average_layers(results, point.index, &groups, KBIT);
        panel.y = Axis::new("rate so far (kbit/s)").from(0.0);
        panel.layers.push(Layer::Level { name: "a third".into(), y: 1000.0 / 3.0 });
        panel.layers.push(Layer::Level { name: "two thirds".into(), y: 2000.0 / 3.0 });
    }
    vec![("averages", averages)]
}

/// Draws the session's rate over time with the changes of the representative, for each scheme and queue.
pub fn fig_3_12(scenario: &Scenario, results: &Results) -> Vec<Named> {
    followed_links(scenario, results, &[1, 2, 3, 2, 1])
}

/// Draws the session's rate over time with the changes of the representative, for MCA+.
pub fn fig_5_14(scenario: &Scenario, results: &Results) -> Vec<Named> {
    followed_links(scenario, results, &[1, 2, 3, 4, 3, 2, 1])
}

/// Draws the session's rate over time in one run, with the changes of the representative and of the most congested link.
fn followed_links(scenario: &Scenario, results: &Results, links: &[u32]) -> Vec<Named> {
    let panels = results.points.iter().map(|point| {
        let part = scenario.duration(point.index) / links.len() as f64;
        let spans = links.iter().zip(0..).map(|(link, n)| Layer::Span {
            name: format!("link {link}"),
            from: part * f64::from(n),
            to: part * f64::from(n + 1),
        });
        let mut layers: Vec<Layer> = spans.collect();
        let changes = representative_trace(results, point.index, "multicast");
        layers.push(Layer::Moments {
            name: "the representative changes".into(),
            at: changes.iter().skip(1).map(|(time, _)| *time).collect(),
        });
        let runs = traces(results, "rates", point.index, "multicast", Receiver::Named(SHOWN));
        layers.push(Layer::line("rate of one run", 0, kbit(runs.into_iter().next().unwrap_or_default())));
        let title: Vec<String> = point.values.iter().map(|(_, value)| value.to_string()).collect();
        Panel::over_time(title.join(", "), KBIT_RATE, layers)
    });
    let figure = Figure::new(
        scenario.title(),
        "What receiver 1 gets of the session each second, in one run. Above: the most congested link.",
        panels,
    )
    .in_columns(1);
    vec![("rates", figure)]
}

/// Returns a panel of bars for the measured values, with the published values as diamonds.
fn bars(title: &str, label: &str, names: &[&str], measured: &[Dot], published: &[(f64, f64)]) -> Panel {
    Panel {
        title: title.into(),
        x: Axis::new("").named(names.iter().map(|name| (*name).to_owned()).collect()),
        y: Axis::new(label).from(0.0),
        layers: vec![
            Layer::bars("measured", 0, measured.iter().copied()),
            Layer::Published { points: published.to_vec() },
        ],
    }
}

fn measured(results: &Results, point: usize, metric: &str, x: f64, unit: f64) -> Dot {
    dot(x, &results.metric(point, metric), unit)
}

/// Returns the values of a metric for ORMCC, PGMCC and TFMCC. The metric of PGMCC has the name `of_pgmcc`, which may differ.
fn of_schemes(results: &Results, metric: &str, of_pgmcc: &str, unit: f64) -> Vec<Dot> {
    let points = results.points.iter();
    let dot = |point: &Point| {
        let metric = if value_of(point, "scheme") == "PGMCC" { of_pgmcc } else { metric };
        measured(results, point.index, metric, point.index as f64, unit)
    };
    points.map(dot).collect()
}

fn bar_figure(scenario: &Scenario, results: &Results, panels: Vec<Panel>) -> Vec<Named> {
    let runs = results.identity.seeds.len();
    let subtitle = format!("Mean of {runs} runs; whiskers: 95 % interval. Diamonds: published.");
    vec![("bars", Figure::new(scenario.title(), subtitle, panels).with_own_ranges())]
}

const SCHEMES: [&str; 3] = ["ORMCC", "PGMCC", "TFMCC"];

/// Draws counts of feedback.
pub fn sec_3_3_5(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let sent = [
        measured(results, 0, "multicast.reports", 0.0, 1.0),
        measured(results, 0, "multicast.reports.hypothetical", 1.0, 1.0),
    ];
    let suppressed = [measured(results, 0, "multicast.suppressed", 0.0, 1.0)];
    let panels = vec![
        bars(
            "ORMCC's reports",
            "reports",
            &["sent by all 64 receivers", "of one receiver without suppression"],
            &sent,
            &[(0.0, 816.0), (1.0, 553.0)],
        ),
        bars("Suppressed", "reports", &["by all 64 receivers"], &suppressed, &[(0.0, 34_601.0)]),
        bars(
            "Feedback of all schemes",
            "packets",
            &SCHEMES,
            &of_schemes(results, "multicast.reports", "multicast.reports", 1.0),
            &[(0.0, 816.0), (1.0, 74_830.0), (2.0, 5344.0)],
        ),
    ];
    bar_figure(scenario, results, panels)
}

/// Draws throughput and feedback.
pub fn table_3_2(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let panels = vec![
        bars(
            "Average throughput",
            "rate (kbit/s)",
            &SCHEMES,
            &of_schemes(results, "multicast.rate", "multicast.rate", 1e3),
            &[(0.0, 415.4), (1.0, 126.6), (2.0, 226.7)],
        ),
        bars(
            "Feedback (PGMCC: negative acknowledgements)",
            "packets",
            &SCHEMES,
            &of_schemes(results, "multicast.reports", "multicast.reports.naks", 1.0),
            &[(0.0, 866.9), (1.0, 5009.6), (2.0, 3312.9)],
        ),
    ];
    bar_figure(scenario, results, panels)
}

/// Draws mean rates for each decrease factor.
pub fn fig_3_16(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let names = [("multicast", "multicast"), ("single", "unicast sessions"), ("tcp", "TCP")];
    let layers = names.into_iter().enumerate().map(|(colour, (flow, name))| {
        let bars = results
            .points
            .iter()
            .map(|point| dot(point.index as f64, &results.metric(point.index, &format!("{flow}.rate")), 1e3));
        Layer::bars(name, colour, bars)
    });
    let beta = |point: &Point| {
        let text = point.values.first().map(|(_, value)| value.to_string()).unwrap_or_default();
        text.rsplit_once("beta=").map_or(text.clone(), |(_, beta)| format!("\u{3b2} = {beta}"))
    };
    let panel = Panel {
        x: Axis::new("decrease factor").named(results.points.iter().map(beta).collect()),
        y: Axis::new(KBIT_RATE).from(0.0),
        layers: layers.collect(),
        ..Panel::default()
    };
    let subtitle = format!(
        "Mean rates over the receivers; whiskers: 95 % interval of {} runs. Simulated, with exact pacing.",
        results.identity.seeds.len()
    );
    vec![("bars", Figure::new(scenario.title(), subtitle, [panel]))]
}

/// Draws the rates of one run at each point: the session's rate at one receiver, and the mean rate of each other group.
pub fn rates_by_setting(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let panels = results.points.iter().map(|point| {
        let mut layers = Vec::new();
        for (colour, group) in scenario.groups().enumerate() {
            let wanted = if group == "multicast" { Receiver::Named(SHOWN) } else { Receiver::All };
            let run = traces(results, "rates", point.index, group, wanted).into_iter().next();
            layers.extend(run.map(|run| Layer::line(group, colour, kbit(run))));
        }
        Panel::over_time(point.to_string(), KBIT_RATE, layers)
    });
    let rates = Figure::new(
        scenario.title(),
        "Each second of one run: the session at receiver 1, and the mean of the flows of other groups.",
        panels,
    )
    .in_columns(1);
    let mut all = averages_and_sweep(scenario, results);
    all.push(("rates", rates));
    all
}

/// Draws the same rates as `rates_by_setting`, and the round-trip time that the session's source measures.
pub fn rates_and_round_trips(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let panels = results.points.iter().map(|point| {
        let run = source_trace(results, point.index, "multicast", "rtt");
        let run = run.into_iter().map(|(time, rtt)| (time, rtt * 1e3)).collect();
        Panel::over_time(point.to_string(), "round-trip time (ms)", vec![Layer::line("", 0, run)])
    });
    let round_trips = Figure::new("Round trips as the source sees them", "One run.", panels);
    let mut all = rates_by_setting(scenario, results);
    all.push(("round-trips", round_trips));
    all
}

/// Dots by the name of their series.
pub(super) type Series = Vec<(String, Vec<Dot>)>;

/// Returns the entry of this name. Adds the entry if it is missing.
pub(super) fn entry<T: Default>(all: &mut Vec<(String, T)>, name: String) -> &mut T {
    let at = all.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
        all.push((name, T::default()));
        all.len() - 1
    });
    &mut all[at].1
}

/// Returns a layer for each series.
pub(super) fn joined(series: Series) -> Vec<Layer> {
    let layer = |(colour, (name, points))| Layer::dots(name, colour, points);
    series.into_iter().enumerate().map(layer).collect()
}

/// Draws a metric as a function of `number`. There is a panel for each value of `panel`. A panel has a series for each value of
/// `series`.
fn over_numbers(
    results: &Results,
    metric: &str,
    number: impl Fn(&Point) -> Option<f64>,
    panel: impl Fn(&Point) -> String,
    series: impl Fn(&Point) -> String,
) -> Vec<(String, Vec<Layer>)> {
    let mut panels: Vec<(String, Series)> = Vec::new();
    for point in &results.points {
        let Some(x) = number(point) else { continue };
        let dots = entry(entry(&mut panels, panel(point)), series(point));
        dots.push(measured(results, point.index, metric, x, 1.0));
    }
    panels.into_iter().map(|(name, all)| (name, joined(all))).collect()
}

/// Returns the value of a point on the axis of receivers.
fn receivers(point: &Point) -> Option<f64> {
    value_of(point, "receivers").parse().ok()
}

fn many_receivers(results: &Results) -> Axis {
    let numbers = results.points.iter().filter_map(receivers);
    Axis::new("receivers").logarithmic().from(0.8).to(1.3 * numbers.fold(1.0, f64::max))
}

/// Draws the number of loss events that pass the filter as a function of the number of receivers.
pub fn fig_2_12(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let worst = |point: &Point| value_of(point, "worst");
    let panels = over_numbers(results, "multicast.followed", receivers, worst, |_| String::new());
    let panels = panels.into_iter().map(|(name, mut layers)| {
        let y = if name.starts_with("10") { 510.0 } else { 1000.0 };
        layers.push(Layer::Level { name: "published".into(), y });
        let title = format!("the worst receiver loses {name}");
        Panel { title, x: many_receivers(results), y: Axis::new("loss events passed").from(0.0), layers }
    });
    let subtitle = "Of 6000 packets; whiskers: 95 % interval.";
    vec![("events", Figure::new(scenario.title(), subtitle, panels))]
}

/// Draws the number of loss events that pass the filter as a function of the number of receivers, for each method of aggregation.
pub fn fig_2_18(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let split = |point: &Point| value_of(point, "receivers");
    let number = |point: &Point| split(point).rsplit_once(" of ")?.1.parse().ok();
    let panel = |point: &Point| {
        let split = split(point);
        let pair = split.split(" of ").next().unwrap_or_default().replace('/', ", ");
        format!("({pair}) % at routers 2 and 3")
    };
    let series = |point: &Point| value_of(point, "aggregation");
    let panels = over_numbers(results, "multicast.followed", number, panel, series);
    let panels = panels.into_iter().map(|(title, mut layers)| {
        layers.push(Layer::Level { name: "240".into(), y: 240.0 });
        Panel {
            title,
            x: Axis::new("receivers").from(0.0),
            y: Axis::new("loss events passed").from(0.0),
            layers,
        }
    });
    let subtitle = "Of 6000 packets; whiskers: 95 % interval.";
    vec![("events", Figure::new(scenario.title(), subtitle, panels))]
}

/// Draws a session's rate as a function of its number of receivers, relative to the rate of a session with one receiver.
pub fn drop_to_zero(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let mut series: Series = Vec::new();
    for point in &results.points {
        let Some(x) = receivers(point) else { continue };
        let group = results.metric(point.index, "multicast.rate");
        let single = results.metric(point.index, "single.rate");
        let ratios: Vec<f64> = group.iter().zip(&single).map(|(group, single)| group / single).collect();
        entry(&mut series, value_of(point, "scheme")).push(dot(x, &ratios, 1.0));
    }
    let mut layers = joined(series);
    layers.push(Layer::Level { name: "as with one".into(), y: 1.0 });
    let y = Axis::new("rate over that of a single receiver").from(0.0);
    let panel = Panel { x: many_receivers(results), y, layers, ..Panel::default() };
    let subtitle = "Every receiver loses 1 % of all packets at random; whiskers: 95 % interval.";
    vec![("ratios", Figure::new(scenario.title(), subtitle, [panel]))]
}
