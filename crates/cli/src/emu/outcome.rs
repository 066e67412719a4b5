//! Results of emulations, as tables and JSON.

use super::flows::{self, FlowRate};
use super::guests::Program;
use super::keeper::{LinkState, Load, State};
use super::network::Network;
use crate::failure::{Failure, unwritten};
use crate::{json, safe, units};
use faircast_core::time::{Rate, Time};
use faircast_experiments::report::text::{Align, Grid};
use faircast_experiments::scenario::RealFlows;
use faircast_topology::Topology;
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitStatus;

/// A network in a list.
#[derive(Debug, Serialize)]
pub struct Listed<'a> {
    event: &'static str,
    id: &'a str,
    title: &'a str,
    keeper: u32,
    seconds: f64,
    valid: bool,
    faults: Vec<String>,
    hosts: Vec<ListedHost<'a>>,
    load: &'a Load,
}

/// A host in a list: others enter its network namespace by the file.
#[derive(Debug, Serialize)]
struct ListedHost<'a> {
    host: &'a str,
    address: std::net::Ipv4Addr,
    namespace: String,
}

impl<'a> Listed<'a> {
    /// Describes a network.
    pub fn new(network: &'a Network, state: &'a State) -> Listed<'a> {
        let hosts = state.hosts.iter().map(|host| ListedHost {
            host: &host.name,
            address: host.address,
            namespace: format!("/proc/{}/fd/{}", network.keeper, host.descriptor),
        });
        let faults = state.load.faults();
        Listed {
            event: "network",
            id: &network.id,
            title: &state.title,
            keeper: network.keeper,
            seconds: state.seconds,
            valid: faults.is_empty(),
            faults,
            hosts: hosts.collect(),
            load: &state.load,
        }
    }
}

/// Returns a table of the hosts of a network.
pub fn hosts(state: &State) -> Grid {
    let mut grid = Grid::new(&[("host", Align::Left), ("address", Align::Left)]);
    state.hosts.iter().for_each(|host| grid.row(vec![host.name.clone(), host.address.to_string()]));
    grid
}

/// Returns a table of networks.
pub fn networks(states: &[(&Network, State)]) -> Grid {
    let columns = [("network", Align::Left), ("keeper", Align::Right), ("hosts", Align::Right)];
    let more = [("runs for", Align::Right), ("packets", Align::Right), ("99 % late by", Align::Right)];
    let mut grid =
        Grid::new(&[&columns[..], &more, &[("state", Align::Left), ("title", Align::Left)]].concat());
    for (network, state) in states {
        let faults = state.load.faults();
        grid.row(vec![
            network.id.clone(),
            network.keeper.to_string(),
            state.hosts.len().to_string(),
            units::seconds(state.seconds),
            state.load.packets.to_string(),
            format!("{:.0} us", state.load.late_p99_us),
            if faults.is_empty() { "valid".to_owned() } else { format!("invalid: {}", faults.join("; ")) },
            state.title.clone(),
        ]);
    }
    grid
}

/// A link between the two states of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkResult {
    pub link: String,
    /// Used fraction of the rate; `None` for a link without a limit.
    pub utilisation: Option<f64>,
    pub offered: u64,
    pub dropped: u64,
    pub marked: u64,
    pub lost: u64,
}

/// Results of a run, from the warm-up to the end.
#[derive(Debug, Clone)]
pub struct Measured {
    pub flows: Vec<FlowRate>,
    pub links: Vec<LinkResult>,
}

impl Measured {
    /// Compares two states of a network.
    pub fn new(
        real: &RealFlows,
        topology: &Topology,
        before: &(Time, State),
        after: &(Time, State),
    ) -> Measured {
        let window = after.0.since(before.0);
        let seconds = window.as_secs_f64().max(1e-9);
        let link =
            |(edge, (before, after)): (&faircast_topology::Edge, (&LinkState, &LinkState))| LinkResult {
                link: format!("{}->{}", topology.name(edge.from), topology.name(edge.to)),
                utilisation: Some(edge.spec.rate)
                    .filter(|rate| *rate != Rate::UNLIMITED)
                    .map(|rate| (after.bytes - before.bytes) as f64 * 8.0 / seconds / rate.bps()),
                offered: after.offered - before.offered,
                dropped: after.dropped - before.dropped,
                marked: after.marked - before.marked,
                lost: after.lost - before.lost,
            };
        let states = before.1.links.iter().zip(&after.1.links);
        Measured {
            flows: flows::rates(real, &before.1, &after.1, window),
            links: topology.edges().iter().zip(states).map(link).collect(),
        }
    }

    /// Returns the metrics that have the same names and units in the simulator.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        let rates = self.groups().into_iter().map(|(group, rate, _)| (format!("{group}.rate"), rate));
        let links = self.links.iter().flat_map(|link| {
            let name = |metric: &str| format!("link.{}.{metric}", link.link);
            let counts = [("drops", link.dropped), ("marks", link.marked)];
            let counts = counts.map(|(metric, count)| (name(metric), count as f64));
            link.utilisation.map(|used| (name("utilisation"), used)).into_iter().chain(counts)
        });
        rates.chain(links).collect()
    }

    /// Returns the mean rate over the receivers of each group, and the number of receivers, in the order of the groups.
    pub fn groups(&self) -> Vec<(String, f64, usize)> {
        let mut groups: Vec<(String, f64, usize)> = Vec::new();
        for flow in &self.flows {
            match groups.iter_mut().find(|(name, ..)| *name == flow.flow) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + flow.rate, *count + 1),
                None => groups.push((flow.flow.clone(), flow.rate, 1)),
            }
        }
        groups.iter_mut().for_each(|(_, sum, count)| *sum /= *count as f64);
        groups
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended<'a> {
    pub program: &'a Program,
    pub status: ExitStatus,
    /// Whether the time limit of the run has ended it.
    pub by_us: bool,
}

/// Prints a run, for people or as JSON.
#[derive(Debug)]
pub struct Printer<'a, W> {
    out: &'a mut W,
    json: bool,
    failures: Vec<String>,
}

impl<'a, W: Write> Printer<'a, W> {
    pub fn new(out: &'a mut W, json: bool) -> Printer<'a, W> {
        Printer { out, json, failures: Vec::new() }
    }

    fn event(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        json::write(self.out, value).map_err(unwritten)
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).map_err(unwritten)
    }

    /// Lists the parts of the scenario that are not emulated.
    pub fn omitted(&mut self, parts: &[String]) -> Result<(), Failure> {
        for part in parts {
            match self.json {
                true => self.event(&serde_json::json!({ "event": "omitted", "part": part }))?,
                false => self.text(&format!("omitted: {part}\n"))?,
            }
        }
        Ok(())
    }

    /// Prints a line of a program.
    pub fn line(&mut self, program: &Program, is_error: bool, line: &str) -> Result<(), Failure> {
        let host = &program.host;
        match self.json {
            true => {
                let stream = if is_error { "stderr" } else { "stdout" };
                self.event(
                    &serde_json::json!({ "event": "output", "host": host, "stream": stream, "line": line }),
                )
            }
            false => self.text(&format!("{host}: {}\n", safe::text(line))),
        }
    }

    /// Reports the end of a program.
    pub fn ended(&mut self, ended: &Ended<'_>) -> Result<(), Failure> {
        let Ended { program, status, by_us } = ended;
        let words: Vec<_> = program.words.iter().map(|word| word.to_string_lossy()).collect();
        let words = words.join(" ");
        if !(status.success() || *by_us) {
            self.failures.push(format!("`{words}` on {} ended with {status}", program.host));
        }
        match self.json {
            false => Ok(()),
            true => self.event(&serde_json::json!({
                "event": "ended", "host": program.host, "program": words, "code": status.code(), "by_timeout": by_us,
            })),
        }
    }

    /// Prints the results of the flows.
    pub fn measured(&mut self, measured: &Measured) -> Result<(), Failure> {
        if self.json {
            let write = |out: &mut W, kind: &str, it: serde_json::Value| -> io::Result<()> {
                let mut it = it;
                it["event"] = kind.into();
                json::write(out, &it)
            };
            let value = |it: Result<_, serde_json::Error>| it.expect("numbers and texts are JSON");
            for flow in &measured.flows {
                write(self.out, "flow", value(serde_json::to_value(flow))).map_err(unwritten)?;
            }
            for link in &measured.links {
                write(self.out, "link", value(serde_json::to_value(link))).map_err(unwritten)?;
            }
            return Ok(());
        }
        let mut grid =
            Grid::new(&[("flows", Align::Left), ("receivers", Align::Right), ("rate", Align::Right)]);
        for (name, rate, count) in measured.groups() {
            grid.row(vec![name, count.to_string(), units::rate(rate)]);
        }
        let columns = [("link", Align::Left), ("used", Align::Right), ("packets", Align::Right)];
        let more = [("dropped", Align::Right), ("marked", Align::Right), ("lost", Align::Right)];
        let mut links = Grid::new(&[columns, more].concat());
        for link in measured.links.iter().filter(|link| link.utilisation.is_some()) {
            links.row(vec![
                link.link.clone(),
                link.utilisation.map_or(String::new(), |used| format!("{:.1} %", used * 100.0)),
                link.offered.to_string(),
                link.dropped.to_string(),
                link.marked.to_string(),
                link.lost.to_string(),
            ]);
        }
        self.text(&format!("{}\n{}", grid.text(), links.text()))
    }

    /// Prints how well the machine kept up, and returns the verdict about the run.
    ///
    /// # Errors
    /// [`Failure::Check`] when a program has failed, or when the run is invalid.
    pub fn conclude(&mut self, load: &Load) -> Result<(), Failure> {
        let faults = load.faults();
        if self.json {
            let done = serde_json::json!({
                "event": "done", "ok": self.failures.is_empty() && faults.is_empty(), "valid": faults.is_empty(),
                "faults": faults, "failures": self.failures, "load": load,
            });
            self.event(&done)?;
        } else {
            let late = load.late_p99_us;
            let packets = units::count(load.packets, "packet");
            self.text(&format!("\nthe emulation carried {packets}, 99 % at most {late:.0} us late\n"))?;
        }
        let mut reasons = self.failures.clone();
        if !faults.is_empty() {
            reasons.push(format!(
                "the run is invalid, because this machine fell behind: {}; use a smaller network or lower rates, or end other programs",
                faults.join(", ")
            ));
        }
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(Failure::Check(reasons.join("; "))),
        }
    }
}
