//! Figures of downloads that share congestion control (paper 002, 4.7): loss, duration and timeouts as functions of the number of
//! downloads.

use super::views::{Series, entry, joined};
use crate::figures::{Named, dot};
use crate::plot::{Axis, Figure, Panel};
use crate::results::Results;
use crate::scenario::{Point, Scenario};

/// The panels: a metric, its label and its unit.
const SHOWN: [(&str, &str, f64); 4] = [
    ("loss", "data packets lost (%)", 0.01),
    ("transfer_time", "mean time of a download (s)", 1.0),
    ("timeouts", "timeouts of a connection", 1.0),
    ("transfer_jain", "Jain's index of rates", 1.0),
];

/// Returns the number of downloads at a point, and the values on the other axes as text. A load of "20 of 30 KB" gives the number
/// 20, and "30 KB" as a part of the text.
fn number_and_rest(point: &Point) -> (f64, String) {
    let (mut number, mut rest) = (0.0, Vec::new());
    for (axis, value) in &point.values {
        let text = value.to_string();
        match axis.as_str() {
            "n" => number = text.parse().unwrap_or_default(),
            "load" => {
                let (downloads, size) = text.split_once(" of ").unwrap_or((&text, ""));
                number = downloads.parse().unwrap_or_default();
                rest.push(size.to_owned());
            }
            _ => rest.push(text),
        }
    }
    (number, rest.join(", "))
}

/// Returns a metric as a function of the number of downloads, for each group that sends packets.
fn lines(scenario: &Scenario, results: &Results, metric: &str, unit: f64) -> Series {
    let mut lines = Series::new();
    for point in &results.points {
        let (number, rest) = number_and_rest(point);
        for group in scenario.groups().filter(|group| !group.starts_with("cross") && *group != "udp") {
            let sent = results.metric(point.index, &format!("{group}.sent"));
            if !sent.iter().any(|sent| *sent > 0.0) {
                continue;
            }
            let values = results.metric(point.index, &format!("{group}.{metric}"));
            let name = format!("{rest} {group}").trim().to_owned();
            let dots = entry(&mut lines, name);
            if !values.is_empty() {
                dots.push(dot(number, &values, unit));
            }
        }
    }
    lines
}

/// Draws one panel for each metric, with a line for each group of flows and each method of sharing.
pub fn downloads(scenario: &Scenario, results: &Results) -> Vec<Named> {
    let panel = |(metric, label, unit): (&str, &str, f64)| {
        let layers = joined(lines(scenario, results, metric, unit));
        let x = Axis::new("downloads").from(0.0);
        Panel { title: String::new(), x, y: Axis::new(label).from(0.0), layers }
    };
    let subtitle = format!("Whiskers: 95 % interval of {} runs.", results.identity.seeds.len());
    vec![(
        "downloads",
        Figure::new(scenario.title(), subtitle, SHOWN.map(panel)).in_columns(2).with_own_ranges(),
    )]
}
