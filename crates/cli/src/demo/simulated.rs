//! The simulations of the demonstration: a session and TCP flows share one bottleneck, with few and with many receivers.

use crate::failure::Failure;
use crate::sim::running::refused;
use crate::units;
use faircast_experiments::edit::{Edit, EditError};
use faircast_experiments::figures::{Unit, average_layers};
use faircast_experiments::plot::{Figure, Layer, Panel};
use faircast_experiments::report::html;
use faircast_experiments::report::text::{Align, Grid};
use faircast_experiments::results::Results;
use faircast_experiments::run::{Progress, RunOptions, Status, run};
use faircast_experiments::scenario::Scenario;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Number of receivers in each simulation.
const GROUPS: [u32; 2] = [8, 10_000];
const BOTTLENECK: &str = include_str!("bottleneck.toml");
/// Half of the bottleneck's rate, in kbit/s.
const HALF: f64 = 2_000.0;

/// Results of one simulation.
#[derive(Debug, Clone, Serialize)]
pub struct Simulated {
    receivers: u32,
    multicast_bps: f64,
    tcp_bps: f64,
    /// Share of the session's packets that its receivers lost.
    loss: f64,
    /// Total number of reports that the receivers sent.
    reports: f64,
    /// Share of reports that was suppressed.
    suppressed: f64,
    /// Duration of the simulation, in seconds.
    seconds: f64,
    /// Packets that arrived at receivers.
    arrivals: u64,
    #[serde(skip)]
    panel: Panel,
}

/// An observer that stops the simulation when the flag is set.
struct Until<'a>(&'a AtomicBool);

impl Progress for Until<'_> {
    fn update(&self, _status: &Status) {}

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn scenario(receivers: u32) -> Scenario {
    let text = || -> Result<String, EditError> {
        let mut edit = Edit::of(BOTTLENECK)?;
        edit.set("topology.leaves", &(receivers + 1).to_string())?;
        edit.set("flow.multicast.to", &format!("leaf[1-{receivers}]"))?;
        edit.set("flow.tcp.to", &format!("leaf{}", receivers + 1))?;
        Ok(edit.text())
    };
    let text = text().expect("a test changes the embedded scenario in this way");
    Scenario::parse(&text, "bottleneck.toml").expect("a test reads the embedded scenario")
}

/// Runs a simulation for each number of receivers.
///
/// # Errors
/// When the simulation was stopped.
pub fn simulate(stop: &AtomicBool) -> Result<Vec<Simulated>, Failure> {
    GROUPS.into_iter().map(|receivers| one(receivers, stop)).collect()
}

fn one(receivers: u32, stop: &AtomicBool) -> Result<Simulated, Failure> {
    let began = Instant::now();
    let results = run(&scenario(receivers), &RunOptions::default(), &Until(stop)).map_err(refused)?;
    let value = |name: &str| results.metric(0, name).first().copied().unwrap_or(0.0);
    Ok(Simulated {
        receivers,
        multicast_bps: value("multicast.rate"),
        tcp_bps: value("tcp.rate"),
        loss: value("multicast.loss"),
        reports: value("multicast.reports"),
        suppressed: value("multicast.suppression"),
        seconds: began.elapsed().as_secs_f64(),
        arrivals: results.totals.arrivals,
        panel: panel(receivers, &results),
    })
}

fn panel(receivers: u32, results: &Results) -> Panel {
    let unit = Unit { size: 1e3, name: "kbit/s" };
    let mut layers = average_layers(results, 0, &["multicast", "tcp"], unit);
    layers.push(Layer::Level { name: "half of the bottleneck".into(), y: HALF });
    Panel::over_time(format!("{receivers} receivers"), "rate so far (kbit/s)", layers)
}

/// Returns the results as a table.
pub fn grid(all: &[Simulated]) -> Grid {
    let mut grid = Grid::new(&[
        ("simulated receivers", Align::Left),
        ("multicast", Align::Right),
        ("Competing TCP", Align::Right),
        ("loss", Align::Right),
        ("reports", Align::Right),
        ("suppressed", Align::Right),
        ("took", Align::Right),
    ]);
    for one in all {
        grid.row(vec![
            one.receivers.to_string(),
            units::rate(one.multicast_bps),
            units::rate(one.tcp_bps),
            units::percent(one.loss),
            format!("{:.0}", one.reports),
            units::percent(one.suppressed),
            units::seconds(one.seconds),
        ]);
    }
    grid
}

/// Returns the HTML page with a figure of the simulations and the results of the transfer.
pub fn page(all: &[Simulated], transfer: &str) -> String {
    let figure = Figure::new(
        "Multicast and one TCP flow through 4 Mbit/s",
        "Average rate since the start, at each multicast receiver and at the TCP receiver; one run for each number of receivers.",
        all.iter().map(|one| one.panel.clone()),
    );
    let explanation = "One multicast session and one TCP flow share a bottleneck of 4 Mbit/s with 20 ms of delay and a queue of \
                40 packets, for 60 s: once with few receivers, once with very many. The receivers send reports about congestion. Suppressed reports were not sent, because the source did not need them.";
    let body = format!(
        "<h1>faircast: the demonstration</h1>\n<h2>Simulated</h2>\n{}<figure>\n{}</figure>\n{}\
         <h2>A real transfer on this host</h2>\n<pre>{}</pre>\n{}",
        html::paragraph(explanation),
        figure.svg(),
        grid(all).html(),
        html::escaped(transfer.trim()),
        html::paragraph(
            "More: faircast sim new dumbbell > lab.toml, faircast sim run lab.toml --plot, faircast repro list."
        )
    );
    html::page("faircast: the demonstration", &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_scenario_accepts_every_group_size() {
        for receivers in GROUPS {
            let layout = scenario(receivers).layout(0, 1);
            assert_eq!(layout.receivers(), receivers as usize + 1);
        }
    }

    #[test]
    fn simulated_flows_share_the_bottleneck_and_appear_on_a_page() {
        let few = one(GROUPS[0], &AtomicBool::new(false)).expect("nobody stops it");
        let total = few.multicast_bps + few.tcp_bps;
        assert!(total > 3.2e6 && total < 4.0e6, "{total}");
        let page = page(std::slice::from_ref(&few), "a < b");
        assert!(page.contains("<svg") && page.contains("a &lt; b") && page.contains(">8<"));
        assert!(one(GROUPS[0], &AtomicBool::new(true)).is_err(), "it can be stopped");
    }
}
