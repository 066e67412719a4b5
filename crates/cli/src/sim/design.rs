//! `sim sfc-design`: gains of SFC, PI and RED for a link, with their margins.

use super::args::SimSfcDesign;
use super::files;
use crate::failure::{Failure, unwritten};
use crate::json;
use faircast_aqm::analysis::control::{self, Flows, Loop, Margins};
use faircast_aqm::analysis::sfc::{Gains, Link, Model};
use faircast_experiments::plot::{Axis, Colour, Dot, Figure, Joined, Layer, Panel};
use serde::Serialize;
use std::io::Write;

/// Frequency at which PI updates its drop or mark probability, in Hz.
const HZ: f64 = 170.0;
/// Criteria for SFC's default gains. `k2` is the fraction `SHARE` of its upper bound. `k1` is the largest gain with at least the
/// margins `PHASE_DEG` and `GAIN_DB`.
const SHARE: f64 = 0.4;
const PHASE_DEG: f64 = 45.0;
const GAIN_DB: f64 = 6.0;

/// A designed queue.
struct Design {
    name: &'static str,
    /// The queue in the syntax of scenarios.
    queue: String,
    open: Loop,
}

/// A designed queue as JSON.
#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    name: &'a str,
    queue: &'a str,
    phase_margin_deg: f64,
    gain_margin_db: f64,
    crossover_rad_s: f64,
}

/// Computes the design, prints and draws it.
///
/// # Errors
/// When no equilibrium exists, or figures cannot be written.
pub fn run(typed: &SimSfcDesign, out: &mut impl Write) -> Result<(), Failure> {
    let link = Link {
        flows: typed.min_flows,
        rtt: typed.max_rtt,
        packets_per_second: typed.capacity.bps() / 8.0 / f64::from(typed.packet_size),
        per_ack: typed.per_ack,
    };
    let rest = link.equilibrium(Model::Corrected);
    if !(rest.loss > 0.0 && rest.loss < 1.0) || rest.window < 1.0 {
        let most = link.max_flows(Model::Corrected);
        return Err(Failure::Check(format!(
            "with {} flows, each flow has a window of {:.2} packets, and no drop or mark probability holds a window that small; design for at most {most:.0} \
             flows",
            typed.min_flows, rest.window
        )));
    }
    let gains = choose(&link, typed.k1, typed.k2);
    let designs = designs(&link, gains, typed.target);
    if typed.json {
        for design in &designs {
            let Margins { phase_deg, gain_db, crossover } = design.open.margins();
            let line = Line {
                event: "design",
                name: design.name,
                queue: &design.queue,
                phase_margin_deg: phase_deg,
                gain_margin_db: gain_db,
                crossover_rad_s: crossover,
            };
            json::write(out, &line).map_err(unwritten)?;
        }
    } else {
        print(&link, gains, &designs, out).map_err(unwritten)?;
    }
    let Some(directory) = &typed.plot else { return Ok(()) };
    let figures = [("bode", bode(&designs)), ("nyquist", nyquist(&designs))];
    let names = files::write(&files::svg(&figures), directory)?;
    if typed.json {
        return Ok(());
    }
    writeln!(out, "\nwrote {} into {}", names.join(" "), directory.display()).map_err(unwritten)
}

/// Returns SFC's gains: `k1` for each packet in the queue, `k2` for each packet of the window.
fn choose(link: &Link, k1: Option<f64>, k2: Option<f64>) -> Gains {
    let k2 = k2.map_or_else(|| SHARE * link.max_k2(Model::Corrected), |k2| link.per_window(k2));
    if let Some(k1) = k1 {
        return Gains { k1, k2 };
    }
    let (mut low, mut high) = (0.0, link.max_k1(Model::Corrected, k2).max(0.0));
    for _ in 0..50 {
        let k1 = (low + high) / 2.0;
        let margins = link.open(Model::Corrected, Gains { k1, k2 }).margins();
        if margins.phase_deg >= PHASE_DEG && margins.gain_db >= GAIN_DB { low = k1 } else { high = k1 }
    }
    Gains { k1: low, k2 }
}

fn designs(link: &Link, gains: Gains, target: f64) -> [Design; 3] {
    let flows = Flows { count: link.flows, rtt: link.rtt, packets_per_second: link.packets_per_second };
    let pi = control::pi(&flows, 1.0 / HZ);
    let (min, max) = (target / 2.0, 1.5 * target);
    let red = control::red(&flows, (min, max), 0.1);
    // The queue discipline multiplies its `k2` by the ratio of arrival rate to link rate, so the gain per packet is converted.
    let k2 = gains.k2 * link.window();
    let short = |value: f64| format!("{value:.3e}").parse::<f64>().unwrap_or(value);
    let (k1, k2, a, b, w) = (short(gains.k1), short(k2), short(pi.a), short(pi.b), short(red.w));
    [
        Design {
            name: "SFC",
            queue: format!("sfc,target={target},k1={k1},k2={k2}"),
            open: link.open(Model::Corrected, gains),
        },
        Design { name: "PI", queue: format!("pi,target={target},hz={HZ},a={a},b={b}"), open: pi.open },
        Design { name: "RED", queue: format!("red,min={min},max={max},w={w},p=0.1,gentle"), open: red.open },
    ]
}

fn print(link: &Link, gains: Gains, designs: &[Design], out: &mut impl Write) -> std::io::Result<()> {
    let rest = link.equilibrium(Model::Corrected);
    let Link { flows, rtt, packets_per_second, per_ack } = *link;
    writeln!(
        out,
        "{flows} flows or more, round trips of {:.0} ms or less, {packets_per_second:.0} packets/s, packets for each \
         acknowledgement: {per_ack}\n",
        rtt.as_secs_f64() * 1e3
    )?;
    writeln!(
        out,
        "at equilibrium: a window of {:.2} packets, a drop or mark probability of {:.4}",
        rest.window, rest.loss
    )?;
    writeln!(out, "an equilibrium exists up to {:.0} flows", link.max_flows(Model::Corrected))?;
    writeln!(
        out,
        "SFC is stable if k2, the factor of the arrival rate over the link rate, is below {:.4}. With k2 = {:.4}, it is stable if k1 is below {:.3e}\n",
        link.max_k2(Model::Corrected) * link.window(),
        gains.k2 * link.window(),
        link.max_k1(Model::Corrected, gains.k2)
    )?;
    writeln!(out, "{:<5} {:>13} {:>12} {:>10}  queue", "", "phase margin", "gain margin", "crossover")?;
    for design in designs {
        let Margins { phase_deg, gain_db, crossover } = design.open.margins();
        let margins = format!("{phase_deg:>9.1} deg {gain_db:>9.1} dB {crossover:>6.2} /s");
        writeln!(out, "{:<5} {margins}  {}", design.name, design.queue)?;
    }
    writeln!(
        out,
        "\nwith fewer flows or longer round trips, the queues are less stable; with more flows or shorter round trips, they react more slowly"
    )
}

/// Returns the frequencies of the figures, in rad/s.
fn frequencies(designs: &[Design]) -> Vec<f64> {
    let delay = designs[0].open.delay.max(1e-6);
    (0..=400).map(|k| 10f64.powf(-3.0 + f64::from(k) / 100.0) / delay).collect()
}

fn bode(designs: &[Design]) -> Figure {
    let at = frequencies(designs);
    let lines = |value: &dyn Fn(&Loop, f64) -> f64| {
        let line = |(number, design): (usize, &Design)| {
            let points = at.iter().map(|frequency| (*frequency, value(&design.open, *frequency))).collect();
            Layer::line(design.name, number, points)
        };
        designs.iter().enumerate().map(line).collect::<Vec<_>>()
    };
    let panel = |title: &str, unit: &str, layers| Panel {
        title: title.into(),
        x: Axis::new("frequency (rad/s)").logarithmic(),
        y: Axis::new(unit),
        layers,
    };
    Figure::new(
        "Open loops of the designed queues",
        "Bode plot. Stable: where the gain falls through 0 dB, the phase is above -180 degrees.",
        vec![
            panel("gain", "gain (dB)", lines(&|open, frequency| 20.0 * open.magnitude(frequency).log10())),
            panel(
                "phase",
                "phase (degrees)",
                // Phases below -720 degrees are not drawn.
                lines(&|open, frequency| match open.phase(frequency).to_degrees() {
                    phase if phase >= -720.0 => phase,
                    _ => f64::NAN,
                }),
            ),
        ],
    )
    .in_columns(1)
    .with_own_ranges()
}

fn nyquist(designs: &[Design]) -> Figure {
    let at = frequencies(designs);
    let line = |(number, design): (usize, &Design)| {
        let points = at.iter().map(|frequency| design.open.response(*frequency));
        let inside = |(re, im): &(f64, f64)| (-3.0..=1.5).contains(re) && (-3.0..=1.5).contains(im);
        Layer::line(design.name, number, points.filter(inside).collect())
    };
    let mut layers: Vec<Layer> = designs.iter().enumerate().map(line).collect();
    layers.push(Layer::Dots {
        name: "-1".into(),
        colour: Colour::Series(designs.len()),
        points: vec![Dot { x: -1.0, y: 0.0, interval: None }],
        joined: Joined::No,
    });
    let panel = Panel {
        title: String::new(),
        x: Axis::new("real part").from(-3.0).to(1.5),
        y: Axis::new("imaginary part").from(-3.0).to(1.5),
        layers,
    };
    let subtitle = "Nyquist plot of positive frequencies. Stable: -1 stays to the left of the line as the frequency \
                    grows.";
    Figure::new("Open loops of the designed queues", subtitle, [panel]).in_columns(1).with_own_ranges()
}
