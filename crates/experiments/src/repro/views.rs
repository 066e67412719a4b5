//! The figures of reproductions, made to stand beside the published ones.

use crate::plot::{Axis, Colour, Dot, Figure, Layer, Panel, Ranges};
use crate::report::figures::{
    Named, Receiver, Unit, average_layers, averages, dot, figures, mean_of, representative_trace, traces,
};
use crate::results::Results;
use crate::scenario::{Point, Scenario};

const KBIT: Unit = Unit { size: 1e3, name: "kbit/s" };

fn time() -> Axis {
    Axis::new("time (s)").from(0.0)
}

fn rate() -> Axis {
    Axis::new("rate (kbit/s)").from(0.0)
}

fn kbit(trace: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    trace.into_iter().map(|(time, bps)| (time, bps / 1e3)).collect()
}

/// The receiver whose flows are shown where the document takes one at random.
const SHOWN: &str = "leaf1";

/// Over-time averages at one receiver, and the rates behind them in one run.
pub fn fig_3_4(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let names =
        [("multicast", "multicast, 64 receivers"), ("single", "unicast session"), ("tcp", "TCP Reno")];
    let mut layers = vec![Layer::Level { name: "fair share".into(), y: 1000.0 / 3.0 }];
    let mut one_run = Vec::new();
    for (colour, (flow, name)) in names.into_iter().enumerate() {
        let (mean, band) = mean_of(&traces(results, "averages", 0, flow, Receiver::Named(SHOWN)));
        let band = band.into_iter().map(|(t, low, high)| (t, low / 1e3, high / 1e3)).collect();
        layers.insert(0, Layer::Band { colour: Colour::Series(colour), points: band });
        layers.push(Layer::line(name, colour, kbit(mean)));
        let first = |table| traces(results, table, 0, flow, Receiver::Named(SHOWN)).into_iter().next();
        one_run.push(Panel {
            title: name.into(),
            x: time(),
            y: rate(),
            layers: vec![
                Layer::noise(colour, kbit(first("rates").unwrap_or_default())),
                Layer::line("", colour, kbit(first("averages").unwrap_or_default())),
            ],
        });
    }
    let averages = Figure {
        subtitle: format!(
            "Over-time averages of the three flows to receiver 1; mean of {} runs, shaded: 95 % interval.",
            results.identity.seeds.len()
        ),
        ..Figure::of(scenario.title(), Panel { x: time(), y: rate(), layers, ..Panel::default() })
    };
    let rates = Figure {
        title: "The same flows in one run".into(),
        subtitle: "Thin: each second. Heavy: average since the start.".into(),
        panels: one_run,
        ..Figure::default()
    };
    vec![("averages", averages), ("rates", rates)]
}

/// Over-time averages, and the rates of one run.
pub fn averages_and_rates(scenario: &Scenario, results: &Results) -> Vec<Named> {
    figures(scenario, results).into_iter().filter(|(name, _)| ["averages", "rates"].contains(name)).collect()
}

/// Over-time averages at each point of the sweep, and the means of all points.
pub fn averages_and_sweep(scenario: &Scenario, results: &Results) -> Vec<Named> {
    figures(scenario, results).into_iter().filter(|(name, _)| ["averages", "sweep"].contains(name)).collect()
}

/// Rates of the long and the short sessions over time.
pub fn fig_3_10(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let groups = ["long", "short-1", "short-2"];
    let mut averages = averages(scenario.title(), results, &groups);
    let panel = &mut averages.panels[0];
    panel.layers = average_layers(results, 0, &groups, KBIT);
    panel.y = Axis::new("rate so far (kbit/s)").from(0.0);
    panel.layers.push(Layer::Level { name: "a third".into(), y: 1000.0 / 3.0 });
    panel.layers.push(Layer::Level { name: "two thirds".into(), y: 2000.0 / 3.0 });
    vec![("averages", averages)]
}

/// The rate over time with the changes of the representative, for each queue.
pub fn fig_3_12(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let panels = results.points.iter().map(|point| {
        let mut layers: Vec<Layer> = timetable(scenario.duration(point.index))
            .into_iter()
            .map(|(name, from, to)| Layer::Span { name, from, to })
            .collect();
        let changes = representative_trace(results, point.index, "multicast");
        layers.push(Layer::Moments {
            name: "the representative changes".into(),
            at: changes.iter().skip(1).map(|(time, _)| *time).collect(),
        });
        let runs = traces(results, "rates", point.index, "multicast", Receiver::Named(SHOWN));
        layers.push(Layer::line("rate of one run", 0, kbit(runs.into_iter().next().unwrap_or_default())));
        Panel { title: queue_name(point), x: time(), y: rate(), layers }
    });
    let figure = Figure {
        title: scenario.title().into(),
        subtitle:
            "What receiver 1 gets of the session each second, in one run. Above: the most congested link."
                .into(),
        panels: panels.collect(),
        columns: 1,
        ranges: Ranges::Shared,
    };
    vec![("rates", figure)]
}

/// Table 3.1: which link is the most congested.
fn timetable(duration: f64) -> Vec<(String, f64, f64)> {
    let fifth = duration / 5.0;
    let links = [1, 2, 3, 2, 1].into_iter().zip(0..);
    links.map(|(link, n)| (format!("link {link}"), fifth * f64::from(n), fifth * f64::from(n + 1))).collect()
}

fn queue_name(point: &Point) -> String {
    match point.values.first() {
        Some((_, value)) if value.to_string().starts_with("red") => "RED queues".into(),
        _ => "drop-tail queues".into(),
    }
}

/// A panel of bars with published values beside them.
fn bars(title: &str, label: &str, names: &[&str], measured: &[Dot], published: &[(f64, f64)]) -> Panel {
    let colour = Colour::Series(0);
    Panel {
        title: title.into(),
        x: Axis::new("").named(names.iter().map(|name| (*name).to_owned()).collect()),
        y: Axis::new(label).from(0.0),
        layers: vec![
            Layer::Bars { name: "measured".into(), colour, bars: measured.to_vec() },
            Layer::Published { points: published.to_vec() },
        ],
    }
}

fn measured(results: &Results, metric: &str, x: f64, unit: f64) -> Dot {
    dot(x, &results.metric(0, metric), unit)
}

fn bar_figure(scenario: &Scenario, results: &Results, panels: Vec<Panel>) -> Vec<Named> {
    let runs = results.identity.seeds.len();
    let subtitle = format!(
        "Mean of {runs} runs; whiskers: 95 % interval. Diamonds without a bar: schemes that are not there yet."
    );
    vec![(
        "bars",
        Figure { title: scenario.title().into(), subtitle, panels, columns: 0, ranges: Ranges::Own },
    )]
}

/// Counts of feedback.
pub fn sec_3_3_5(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let sent = [
        measured(results, "multicast.reports", 0.0, 1.0),
        measured(results, "multicast.reports.hypothetical", 1.0, 1.0),
    ];
    let suppressed = [measured(results, "multicast.suppressed", 0.0, 1.0)];
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
            &["ORMCC", "TFMCC", "PGMCC"],
            &sent[..1],
            &[(0.0, 816.0), (1.0, 5344.0), (2.0, 74_830.0)],
        ),
    ];
    bar_figure(scenario, results, panels)
}

/// Throughput and feedback.
pub fn table_3_2(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let names = ["ORMCC", "PGMCC", "TFMCC"];
    let panels = vec![
        bars(
            "Average throughput",
            "rate (kbit/s)",
            &names,
            &[measured(results, "multicast.rate", 0.0, 1e3)],
            &[(0.0, 415.4), (1.0, 126.6), (2.0, 226.7)],
        ),
        bars(
            "Feedback",
            "packets",
            &names,
            &[measured(results, "multicast.reports", 0.0, 1.0)],
            &[(0.0, 866.9), (1.0, 5009.6), (2.0, 3312.9)],
        ),
    ];
    bar_figure(scenario, results, panels)
}

/// Mean rates for each decrease factor.
pub fn fig_3_16(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let names = [("multicast", "multicast"), ("single", "unicast sessions"), ("tcp", "TCP")];
    let layers = names.into_iter().enumerate().map(|(colour, (flow, name))| {
        let bars = results
            .points
            .iter()
            .map(|point| dot(point.index as f64, &results.metric(point.index, &format!("{flow}.rate")), 1e3));
        Layer::Bars { name: name.into(), colour: Colour::Series(colour), bars: bars.collect() }
    });
    let beta = |point: &Point| {
        let text = point.values.first().map(|(_, value)| value.to_string()).unwrap_or_default();
        text.rsplit_once("beta=").map_or(text.clone(), |(_, beta)| format!("\u{3b2} = {beta}"))
    };
    let panel = Panel {
        x: Axis::new("decrease factor").named(results.points.iter().map(beta).collect()),
        y: rate(),
        layers: layers.collect(),
        ..Panel::default()
    };
    let subtitle = format!(
        "Mean rates over the receivers; whiskers: 95 % interval of {} runs. Simulated, with exact pacing.",
        results.identity.seeds.len()
    );
    vec![("bars", Figure { subtitle, ..Figure::of(scenario.title(), panel) })]
}
