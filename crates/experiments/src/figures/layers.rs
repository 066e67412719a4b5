//! Figures of sessions of several layers.

use super::{Trace, Unit, cut, one_run, titled};
use crate::plot::{Colour, Figure, Join, Layer, Panel, Weight};
use crate::results::Results;
use crate::scenario::Scenario;
use crate::table::Table;
use std::collections::BTreeSet;

/// Maximum number of lines in a panel.
const MAX_LINES: usize = 7;

/// Returns the names of the flows in a table, in the order of the scenario.
fn flows<'a>(scenario: &'a Scenario, table: &Table) -> Vec<&'a str> {
    let known: BTreeSet<&str> = table.texts("flow").iter().map(String::as_str).collect();
    scenario.groups().filter(|group| known.contains(group)).collect()
}

/// Returns the traces of a flow in the first run at a point, in the order of the table. Each trace has a name.
fn traces_of(
    table: &Table,
    point: usize,
    flow: &str,
    value: &str,
    key: impl Fn(usize) -> String,
) -> Vec<(String, Trace)> {
    let (points, seeds, names) = (table.wholes("point"), table.wholes("seed"), table.texts("flow"));
    let (times, wholes, numbers) = (table.numbers("time"), table.wholes(value), table.numbers(value));
    let mut seed = None;
    let mut all: Vec<(String, Trace)> = Vec::new();
    for row in (0..names.len()).filter(|row| points[*row] == point as u64 && names[*row] == flow) {
        if *seed.get_or_insert(seeds[row]) != seeds[row] {
            break;
        }
        let y = wholes.get(row).map_or_else(|| numbers[row], |value| *value as f64);
        let key = key(row);
        match all.last_mut().filter(|(known, _)| *known == key) {
            Some((_, trace)) => trace.push((times[row], y)),
            None => all.push((key, vec![(times[row], y)])),
        }
    }
    all
}

/// Draws the number of layers of each receiver of a flow over time, for the first run at a point.
pub fn subscription_layers(scenario: &Scenario, results: &Results, point: usize, flow: &str) -> Vec<Layer> {
    let Some(table) = results.table("subscriptions") else { return Vec::new() };
    let (copies, receivers) = (table.wholes("copy"), table.texts("receiver"));
    let several = copies.iter().any(|copy| *copy != 1);
    let key = |row: usize| match several {
        true => format!("{} ({})", receivers[row], copies[row]),
        false => receivers[row].clone(),
    };
    let traces = traces_of(table, point, flow, "layers", key).into_iter().take(MAX_LINES).enumerate();
    let layer = |(colour, (name, mut trace)): (usize, (String, Trace))| {
        if let Some(&(_, last)) = trace.last() {
            trace.push((scenario.duration(point), last));
        }
        Layer::steps(name, colour, trace)
    };
    traces.map(layer).collect()
}

/// Draws the number of layers of each receiver over time: a panel for each flow and point.
pub fn subscriptions(scenario: &Scenario, results: &Results) -> Option<Figure> {
    let flows = flows(scenario, results.table("subscriptions")?);
    let mut panels = Vec::new();
    for point in &results.points {
        for flow in &flows {
            let layers = subscription_layers(scenario, results, point.index, flow);
            panels.push(Panel::over_time(titled(flow, point), "layers", layers));
        }
    }
    let subtitle = format!("How many layers each receiver is subscribed to, in {}.", one_run(results));
    figure(scenario, subtitle, panels)
}

/// Draws the rates of layers over time: a panel for each flow and point.
pub fn rates(scenario: &Scenario, results: &Results) -> Option<Figure> {
    let table = results.table("layers")?;
    let unit = Unit::of(table.numbers("rate").iter().copied().fold(0.0, f64::max));
    let (copies, layers) = (table.wholes("copy"), table.wholes("layer"));
    let key = |row: usize| match copies[row] {
        1 => format!("layer {}", layers[row]),
        copy => format!("{copy}: {}", layers[row]),
    };
    let mut panels = Vec::new();
    for point in &results.points {
        for flow in flows(scenario, table) {
            let traces = traces_of(table, point.index, flow, "rate", key).into_iter();
            let on = |(name, trace): &(String, Trace)| {
                name.starts_with("layer") && trace.iter().any(|(_, rate)| *rate > 0.0)
            };
            let line = |(colour, (name, trace))| Layer::Line {
                name,
                colour: Colour::Series(colour),
                weight: Weight::Light,
                join: Join::Straight,
                points: unit.scaled(trace),
            };
            let layers = traces.filter(on).take(MAX_LINES).enumerate().map(line).collect();
            panels.push(Panel::over_time(titled(flow, point), format!("rate ({})", unit.name), layers));
        }
    }
    let subtitle = format!(
        "The rate at which each layer is sent, in {}; layers that are never on are left out.",
        one_run(results)
    );
    figure(scenario, subtitle, panels)
}

fn figure(scenario: &Scenario, subtitle: String, mut panels: Vec<Panel>) -> Option<Figure> {
    panels.retain(|panel| !panel.layers.is_empty());
    let figure = Figure::new(scenario.title(), subtitle, panels);
    (!figure.panels.is_empty()).then(|| cut(figure))
}
