//! Paper 002, chapters 5 and 6: calculations about PAQM and SFC.

use super::{Calculated, Declared};
use crate::analysis::self_similar::prediction::{Correlation, brownian_error, farima_error, linear_error};
use crate::plot::{Axis, Figure, Layer, Panel};
use crate::repro::Tolerance;
use faircast_aqm::analysis::sfc::{Gains, Link, Model};
use faircast_aqm::paqm;
use faircast_core::time::Span;

fn panel(title: &str, x: &str, y: &str, layers: Vec<Layer>) -> Panel {
    Panel { title: title.into(), x: Axis::new(x), y: Axis::new(y).from(0.0), layers }
}

fn figure(title: &str, subtitle: &str, panels: Vec<Panel>) -> Figure {
    Figure::new(title, subtitle, panels).with_own_ranges()
}

/// Claims about figure 5.2.
pub(super) const FIG_5_2: &[Declared] = &[
    Declared::new(
        "largest error over smallest error, the worst of H = 0.55 to 0.85",
        None,
        Tolerance::Between(None, Some(1.25)),
    ),
    Declared::new(
        "FARIMA's error over the nearer of the other errors, in the middle of 0.85 to 1",
        None,
        Tolerance::Between(Some(1.25), None),
    ),
    Declared::new("largest error at H = 0.999", None, Tolerance::Between(None, Some(0.01))),
];

/// Paper 002, figure 5.2: accuracy of predictions of self-similar traffic.
pub(super) fn fig_5_2(_seeds: &[u64]) -> Calculated {
    type Error = fn(f64) -> f64;
    let curves: [(&str, Error); 4] = [
        ("FBM", brownian_error),
        ("FARIMA, 20 values", |hurst| farima_error(hurst, Some(20))),
        ("LMMSE, 20 values", |hurst| linear_error(hurst, 20, Correlation::Exact)),
        ("LMMSE, asymptotic", |hurst| linear_error(hurst, 20, Correlation::Asymptotic)),
    ];
    let at = |hurst: f64| curves.map(|(_, error)| error(hurst));
    // The paper has three predictors; the asymptotic correlation is another curve of LMMSE.
    let largest = |hurst: f64| at(hurst)[..3].iter().copied().fold(0.0, f64::max);
    let smallest = |hurst: f64| at(hurst)[..3].iter().copied().fold(1.0, f64::min);
    let steps = (11..=17).map(|step| 0.05 * f64::from(step));
    let [brownian, farima, linear, _] = at(0.925);
    let values = [
        steps.map(|hurst| largest(hurst) / smallest(hurst)).fold(0.0, f64::max),
        farima / brownian.max(linear),
        largest(0.999),
    ];
    let values = values.map(|value| vec![value]).to_vec();
    let line = |(number, (name, error)): (usize, &(&str, Error))| {
        let hurst = (51..100).map(|percent| f64::from(percent) / 100.0);
        Layer::line(*name, number, hurst.map(|hurst| (hurst, error(hurst))).collect())
    };
    let lines = curves.iter().enumerate().map(line).collect();
    let drawn = panel("", "Hurst parameter", "error over the variance", lines);
    let subtitle = "Mean squared error one step ahead. FBM uses an infinite past. Nothing is simulated.";
    Calculated {
        values,
        figures: vec![("errors", figure("Predictability of self-similar traffic", subtitle, vec![drawn]))],
    }
}

const RAMP: &str = "the drop probability is zero, then a ramp, then one";
const EXACT: Tolerance = Tolerance::Relative(1e-9);
/// Claims about figure 5.6.
pub(super) const FIG_5_6: &[Declared] = &[
    Declared::new("drop probability at C + Q_opt - f", Some(0.0), Tolerance::Between(None, Some(0.0)))
        .of(RAMP),
    Declared::new("drop probability halfway to C + Q_opt", Some(0.5), EXACT).of(RAMP),
    Declared::new("drop probability above C + Q_opt", Some(1.0), EXACT).of(RAMP),
];

/// Paper 002, figure 5.6: the drop probability as a function of queue and traffic. The capacity per interval is half of the
/// buffer, and the target is 0.6 of the buffer.
pub(super) fn fig_5_6(_seeds: &[u64]) -> Calculated {
    let (buffer, capacity) = (100.0, 50.0);
    let config = paqm::Config { target: 60.0, solution: paqm::Solution::Clamp, ..paqm::Config::default() };
    let p = |queue: f64, traffic: f64| paqm::probability(&config, queue, (traffic, traffic), capacity);
    let values = vec![vec![p(30.0, 80.0)], vec![p(70.0, 80.0)], vec![p(111.0, 80.0)]];
    let line = |(number, traffic): (usize, f64)| {
        let points = (0..=200).map(|k| buffer * f64::from(k) / 200.0);
        Layer::line(
            format!("f = {traffic}"),
            number,
            points.map(|queue| (queue, p(queue, traffic))).collect(),
        )
    };
    let lines = [20.0, 40.0, 60.0, 80.0, 100.0].into_iter().enumerate().map(line).collect();
    let drawn = panel("", "queue (packets)", "probability", lines);
    let subtitle = "Buffer of 100 packets, capacity of 50 packets per interval, optimum of 60 packets; f: predicted packets.";
    Calculated {
        values,
        figures: vec![("surface", figure("Drop probability of PAQM", subtitle, vec![drawn]))],
    }
}

const BOUND: &str = "example 6.1: maximum k1 with k2 = 0.2";
const MARGIN: &str = "phase margin, in degrees";
/// Claims about figures 6.2 to 6.5 and the examples.
pub(super) const FIG_6_2: &[Declared] = &[
    Declared::new(
        "example 6.1: drop probability at the equilibrium",
        Some(0.1429),
        Tolerance::Relative(1e-3),
    ),
    Declared::new(
        "example 6.1: maximum k1 with k2 = 0.2, by (6.17) and (6.18) as printed",
        Some(7e-4),
        Tolerance::Relative(0.01),
    )
    .of(BOUND),
    Declared::new(
        "example 6.1: maximum k1 with k2 = 0.2, by the model",
        Some(7e-4),
        Tolerance::Relative(0.01),
    )
    .of(BOUND)
    .by_algebra("The model of (6.13) gives 0.00086. (6.17) lacks the factor 2 on two of its terms, and (6.18) lacks a factor z. Only with both equations as printed is the bound 0.0007."),
    Declared::new("phase margin of the printed loop, in degrees", Some(60.0), Tolerance::Relative(0.05))
        .of(MARGIN),
    Declared::new("gain margin of the printed loop, in dB", Some(9.0), Tolerance::Relative(0.05)).by_algebra(
        "The printed loop is (1.167 s + 0.5833) exp(-0.6 s) / (s (s + 0.6548)). At a phase of -180 degrees its gain is -7.4 dB.",
    ),
    Declared::new("phase margin with the chosen gains, in degrees", Some(60.0), Tolerance::Relative(0.05))
        .of(MARGIN)
        .by_algebra("The 0.5833 of the printed loop belongs to k1 = 0.0002. The chosen 0.0005 gives 1.458."),
    Declared::new("example 6.2: maximum k1 with k2 = 0", None, Tolerance::Between(Some(5e-4), None)).by_algebra(
        "The model of (6.13) bounds k1 by 0.0004 at k2 = 0. With k1 = 0.0005 the loop is stable only from k2 = 0.034 on, not for every k2 up to 0.2.",
    ),
];

/// Paper 002, figures 6.2 to 6.5 and examples 6.1 and 6.2: the stable range of SFC.
pub(super) fn fig_6_2(_seeds: &[u64]) -> Calculated {
    let example =
        |per_ack| Link { flows: 300.0, rtt: Span::from_millis(600), packets_per_second: 1250.0, per_ack };
    let link = example(2.0);
    let margins = |k1, k2| link.open(Model::Paper, Gains { k1, k2 }).margins();
    let values = [
        link.equilibrium(Model::Paper).loss,
        link.printed_k1(0.2),
        link.max_k1(Model::Paper, 0.2),
        margins(2e-4, 0.2).phase_deg,
        margins(2e-4, 0.2).gain_db,
        margins(5e-4, 0.2).phase_deg,
        link.max_k1(Model::Paper, 0.0),
    ];
    let values = values.map(|value| vec![value]).to_vec();
    let bound = |(number, per_ack): (usize, f64)| {
        let shares = (2..=70).map(|percent| f64::from(percent) / 100.0);
        let of = |share: f64| Link { flows: share * 750.0, ..example(per_ack) }.max_k2(Model::Paper);
        Layer::line(format!("b = {per_ack}"), number, shares.map(|share| (share, of(share))).collect())
    };
    let region = |(number, per_ack): (usize, f64)| {
        let most = example(per_ack).max_k2(Model::Paper);
        let k2 = (0..60).map(|k| most * f64::from(k) / 60.0);
        let points = k2.map(|k2| (k2, 1e3 * example(per_ack).max_k1(Model::Paper, k2))).collect();
        Layer::line(format!("b = {per_ack}"), number, points)
    };
    let both = [1.0, 2.0];
    let panels = vec![
        panel(
            "(a) maximum k2",
            "flows / (round-trip time * capacity)",
            "k2",
            both.into_iter().enumerate().map(bound).collect(),
        ),
        panel(
            "(b) maximum k1, example 6.1",
            "k2",
            "k1 (1/1000)",
            both.into_iter().enumerate().map(region).collect(),
        ),
    ];
    let subtitle = "Stable below the lines. The bounds follow from the printed model. Nothing is simulated.";
    Calculated { values, figures: vec![("stability", figure("Stability of SFC", subtitle, panels))] }
}
