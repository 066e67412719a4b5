//! Figures that the papers compute without simulation.

use super::{Calculated, Declared};
use crate::analysis::loss_events::{Losses, Point, point};
use crate::plot::{Axis, Figure, Layer, Panel};
use crate::repro::Tolerance;

/// The largest window of the chain, in packets. If losses are independent, a larger limit does not change the results.
// Paper gap: 2.2.1.3 solves the chain "for different large N's" and names none.
const MAX: usize = 400;

/// Claims about figure 2.10.
pub(super) const FIG_2_10: &[Declared] = &[
    Declared::new("losses one by one: the highest ratio", Some(1.25), Tolerance::Between(None, Some(1.25))),
    Declared::new("at which share of packets lost", None, Tolerance::Between(Some(0.3), Some(0.4))),
    Declared::new("the ratio at 10 %", Some(1.2), Tolerance::Relative(0.05)),
    Declared::new(
        "losses in bursts, 0.5 to 7 % lost: the lowest ratio",
        Some(9.0),
        Tolerance::Between(Some(4.5), None),
    ),
    Declared::new(
        "losses in bursts, 0.5 to 7 % lost: the highest ratio",
        Some(90.0),
        Tolerance::Relative(0.25),
    ),
];

/// Paper 000, figure 2.10: loss indications per loss event.
pub(super) fn fig_2_10(_seeds: &[u64]) -> Calculated {
    let independent: Vec<Point> = (1..100).map(|k| at(Losses::Independent, f64::from(k) / 100.0)).collect();
    let bursty: Vec<Point> =
        (1..60).map(|k| at(Losses::Bursty, 10f64.powf(-5.0 + f64::from(k) / 12.0))).collect();
    let highest = independent.iter().max_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let highest = highest.map_or((f64::NAN, f64::NAN), |point| (point.ratio(), point.indications));
    let ratio_at = |loss| at(Losses::Independent, loss).ratio();
    let low = bursty.iter().filter(|point| (0.005..=0.07).contains(&point.indications));
    let low: Vec<f64> = low.map(Point::ratio).collect();
    let values = [
        highest.0,
        highest.1,
        ratio_at(0.1),
        low.iter().copied().fold(f64::INFINITY, f64::min),
        low.iter().copied().fold(0.0, f64::max),
    ];
    let values = values.map(|value| vec![value]).to_vec();
    Calculated { values, figures: vec![("ratios", figure(&independent, &bursty))] }
}

fn at(losses: Losses, first_loss: f64) -> Point {
    point(losses, first_loss, MAX)
}

fn figure(independent: &[Point], bursty: &[Point]) -> Figure {
    let line = |points: &[Point], most: f64| {
        let points = points.iter().filter(|point| point.indications <= most);
        vec![Layer::line("", 0, points.map(|point| (100.0 * point.indications, point.ratio())).collect())]
    };
    let panel = |title: &str, layers| Panel {
        title: title.into(),
        x: Axis::new("packets lost (%)").from(0.0),
        y: Axis::new("indications per event").from(0.0),
        layers,
    };
    Figure::new(
        "Loss indications per loss event",
        format!("A Markov chain of the window, up to {MAX} packets; nothing is simulated."),
        vec![
            panel("(a) losses one by one", line(independent, 1.0)),
            panel("(b) losses in bursts", line(bursty, 1.0)),
            panel("(c) losses in bursts, few packets lost", line(bursty, 0.1)),
        ],
    )
    .with_own_ranges()
}
