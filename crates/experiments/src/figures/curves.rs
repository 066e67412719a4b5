//! Rates of selected flows and receivers on one axis.

use super::{Receiver, Trace, Unit, cut, largest, mean_of, panel_title, runs, traces};
use crate::plot::{Colour, Figure, Layer, Panel};
use crate::results::Results;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A flow, or one receiver of a flow: `multicast`, or `multicast:leaf1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Curve {
    /// The group of flows, by its name in the scenario.
    pub flow: String,
    /// A receiver of the group; `None` for the mean over all receivers.
    pub receiver: Option<String>,
}

impl FromStr for Curve {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Curve, Self::Err> {
        let (flow, receiver) = match text.split_once(':') {
            Some((flow, receiver)) => (flow, Some(receiver.trim().to_owned())),
            None => (text, None),
        };
        Ok(Curve { flow: flow.trim().to_owned(), receiver })
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.receiver {
            Some(receiver) => write!(f, "{}:{receiver}", self.flow),
            None => f.write_str(&self.flow),
        }
    }
}

/// A requested curve that the results do not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no curve {curve}; choose one of {}", known.join(", "))]
pub struct UnknownCurve {
    /// The requested curve.
    pub curve: String,
    /// Some of the existing curves.
    pub known: Vec<String>,
}

/// Number of curves that the error lists.
const NAMED: usize = 40;

/// Returns all curves of the results.
pub fn known(results: &Results) -> Vec<Curve> {
    let Some(table) = results.table("rates") else { return Vec::new() };
    let (flows, copies, receivers) = (table.texts("flow"), table.wholes("copy"), table.texts("receiver"));
    let rows = (0..flows.len()).map(|row| Curve {
        flow: flows[row].clone(),
        receiver: (copies[row] != 0).then(|| receivers[row].clone()),
    });
    rows.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Draws the rates of the requested curves, bin by bin, on one axis. There is a panel for each point of a sweep.
///
/// # Errors
/// [`UnknownCurve`], with a list of existing curves.
pub fn curves(title: &str, results: &Results, wanted: &[Curve]) -> Result<Figure, UnknownCurve> {
    let all = known(results);
    if let Some(unknown) = wanted.iter().find(|curve| !all.contains(curve)) {
        let known = all.iter().take(NAMED).map(ToString::to_string).collect();
        return Err(UnknownCurve { curve: unknown.to_string(), known });
    }
    let groups: Vec<&str> = wanted.iter().map(|curve| curve.flow.as_str()).collect();
    let unit = Unit::of(largest(results, &groups));
    let panels = results.points.iter().take(super::MAX_PANELS + 1).map(|point| {
        let (mut bands, mut lines) = (Vec::new(), Vec::new());
        for (number, curve) in wanted.iter().enumerate() {
            let receiver = curve.receiver.as_deref().map_or(Receiver::All, Receiver::Named);
            let (mean, band) = mean_of(&rates(results, point.index, curve, receiver));
            let scaled = band.into_iter().map(|(t, low, high)| (t, low / unit.size, high / unit.size));
            bands.push(Layer::Band { colour: Colour::Series(number), points: scaled.collect() });
            lines.push(Layer::line(curve.to_string(), number, unit.scaled(mean)));
        }
        bands.extend(lines);
        Panel::over_time(panel_title(point), format!("rate ({})", unit.name), bands)
    });
    let subtitle = format!(
        "Rates in bins of the length that the scenario sets; a flow without a receiver: the mean over all of them; {}.",
        runs(results)
    );
    Ok(cut(Figure::new(title, subtitle, panels)))
}

fn rates(results: &Results, point: usize, curve: &Curve, receiver: Receiver<'_>) -> Vec<Trace> {
    traces(results, "rates", point, &curve.flow, receiver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{self, RunOptions, Silent};
    use crate::scenario::{Scenario, template};

    fn results() -> (Scenario, Results) {
        let text = template("dumbbell").expect("there is one").replace("\"100 s\"", "\"5 s\"");
        let text = text.replace("\"20 s\"", "\"1 s\"").replace("seeds = 3 ", "seeds = 2 ");
        let scenario = Scenario::parse(&text, "dumbbell").expect("it is sound");
        let results = run::run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
        (scenario, results)
    }

    #[test]
    fn selected_receivers_and_flows_share_one_panel() {
        let (scenario, results) = results();
        let wanted =
            ["multicast:leaf2", "multicast", "tcp:leaf5"].map(|text| Curve::from_str(text).expect("a curve"));
        let figure = curves(scenario.title(), &results, &wanted).expect("all of them are there");
        let [panel] = &figure.panels[..] else { panic!("{} panels", figure.panels.len()) };
        let lines: Vec<(&str, usize)> = panel
            .layers
            .iter()
            .filter_map(|layer| match layer {
                Layer::Line { name, points, .. } => Some((name.as_str(), points.len())),
                _ => None,
            })
            .collect();
        assert_eq!(
            lines.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["multicast:leaf2", "multicast", "tcp:leaf5"]
        );
        assert!(lines.iter().all(|(_, points)| *points > 2), "{lines:?}");
        let unknown =
            curves("", &results, &["tcp:leaf1".parse().expect("a curve")]).expect_err("TCP goes elsewhere");
        assert_eq!(unknown.curve, "tcp:leaf1");
        assert!(unknown.known.contains(&"multicast:leaf3".to_owned()), "{unknown}");
        let pdf = figure.pdf();
        assert!(pdf.starts_with(b"%PDF-") && pdf == figure.pdf());
    }

    #[test]
    fn curve_names_round_trip_as_text() {
        for text in ["multicast", "multicast:leaf 1"] {
            let curve: Curve = text.parse().expect("any text is one");
            assert_eq!(curve.to_string(), text);
        }
    }
}
