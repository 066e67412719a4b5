//! Results of emulations, as tables and JSON.

use super::flows::{self, FlowRate};
use super::guests::Program;
use super::keeper::{LinkState, Load, Sampled, State};
use super::lab::Lab;
use super::network::Network;
use crate::failure::{Failure, unwritten};
use crate::{json, safe, units};
use faircast_core::time::Rate;
use faircast_experiments::report::text::{Align, Grid};
use faircast_topology::Edge;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal, Write};
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
    address6: Option<std::net::Ipv6Addr>,
    namespace: String,
}

impl<'a> Listed<'a> {
    /// Describes a network.
    pub fn new(network: &'a Network, state: &'a State) -> Listed<'a> {
        let hosts = state.hosts.iter().map(|host| ListedHost {
            host: &host.name,
            address: host.address,
            address6: host.address6,
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
    let columns = ["host", "address", "IPv6 address"].map(|name| (name, Align::Left));
    let mut grid = Grid::new(&columns);
    for host in &state.hosts {
        let address6 = host.address6.map_or_else(|| "-".to_owned(), |address| address.to_string());
        grid.row(vec![host.name.clone(), host.address.to_string(), address6]);
    }
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

/// A link between two states of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkResult {
    pub link: String,
    /// Packets that left the link, in bit/s.
    pub rate: f64,
    /// Used fraction of the rate of the scenario; `None` for a link without a limit.
    pub utilisation: Option<f64>,
    pub offered: u64,
    pub dropped: u64,
    pub marked: u64,
    pub lost: u64,
    /// Waiting packets at the second state, and their bytes.
    pub queue: u32,
    pub queue_bytes: u64,
}

/// Measurements between two states of a run.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    pub flows: Vec<FlowRate>,
    pub links: Vec<LinkResult>,
}

impl Measured {
    /// Compares two states of a run.
    pub fn new(lab: &Lab, before: &Sampled, after: &Sampled) -> Measured {
        let seconds = (after.seconds - before.seconds).max(1e-9);
        let topology = &lab.topology;
        let link = |(edge, (before, after)): (&Edge, (&LinkState, &LinkState))| {
            let rate = (after.departed - before.departed) as f64 * 8.0 / seconds;
            let limit = Some(edge.spec.rate).filter(|rate| *rate != Rate::UNLIMITED);
            LinkResult {
                link: format!("{}->{}", topology.name(edge.from), topology.name(edge.to)),
                rate,
                utilisation: limit.map(|limit| rate / limit.bps()),
                offered: after.offered - before.offered,
                dropped: after.dropped() - before.dropped(),
                marked: after.marked - before.marked,
                lost: after.lost - before.lost,
                queue: after.waiting,
                queue_bytes: after.waiting_bytes,
            }
        };
        let states = before.links.iter().zip(&after.links);
        let received = [after, before].map(|sample| lab.received(&sample.watched));
        let bytes = received[0].iter().zip(&received[1]).map(|(after, before)| after - before);
        Measured {
            flows: flows::rates(&lab.real, bytes, seconds),
            links: topology.edges().iter().zip(states).map(link).collect(),
        }
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

    /// Returns the groups of flows and the links with a limit as tables of at most this number of lines: the links that drop, mark
    /// or carry most.
    fn tables(&self, most: usize) -> [Grid; 2] {
        let columns = [("flows", Align::Left), ("receivers", Align::Right), ("rate", Align::Right)];
        let mut flows = Grid::new(&columns);
        for (name, rate, count) in self.groups().into_iter().take(most) {
            flows.row(vec![name, count.to_string(), units::rate(rate)]);
        }
        let columns = [("link", Align::Left), ("used", Align::Right), ("queue", Align::Right)];
        let more = ["packets", "dropped", "marked", "lost"].map(|name| (name, Align::Right));
        let mut grid = Grid::new(&[&columns[..], &more].concat());
        let mut links: Vec<_> = self.links.iter().filter(|link| link.utilisation.is_some()).collect();
        if links.len() > most {
            let busy = |link: &LinkResult| (link.dropped + link.marked, link.utilisation.unwrap_or_default());
            links.sort_by(|a, b| busy(b).partial_cmp(&busy(a)).unwrap_or(std::cmp::Ordering::Equal));
        }
        for link in links.into_iter().take(most) {
            grid.row(vec![
                link.link.clone(),
                link.utilisation.map_or(String::new(), |used| format!("{:.1} %", used * 100.0)),
                link.queue.to_string(),
                link.offered.to_string(),
                link.dropped.to_string(),
                link.marked.to_string(),
                link.lost.to_string(),
            ]);
        }
        [flows, grid]
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
    /// The view of the run at the bottom of a terminal.
    view: Option<ProgressBar>,
    failures: Vec<String>,
}

/// Maximum number of lines of a table in the view.
const VIEW: usize = 12;

fn view() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg}").expect("the template is valid");
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
}

impl<'a, W: Write> Printer<'a, W> {
    pub fn new(out: &'a mut W, json: bool) -> Printer<'a, W> {
        let shows = !json && std::io::stderr().is_terminal();
        let view = shows.then(view);
        Printer { view, json, ..Printer::silent(out) }
    }

    /// Returns a printer without a view.
    pub fn silent(out: &'a mut W) -> Printer<'a, W> {
        Printer { out, json: false, view: None, failures: Vec::new() }
    }

    /// Notes a reason for which the run has failed.
    pub fn failed(&mut self, reason: String) {
        self.failures.push(reason);
    }

    fn event(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        json::write(self.out, value).map_err(unwritten)
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        let mut write = || self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        let written = match &self.view {
            Some(view) => view.suspend(write),
            None => write(),
        };
        written.map_err(unwritten)
    }

    /// Shows the state of a run.
    pub fn live(&mut self, seconds: f64, end: f64, measured: &Measured) -> Result<(), Failure> {
        if self.json {
            let Measured { flows, links } = measured;
            return self.event(
                &serde_json::json!({ "event": "live", "seconds": seconds, "flows": flows, "links": links }),
            );
        }
        if let Some(view) = &self.view {
            let of = if seconds > end { String::new() } else { format!(" of {}", units::seconds(end)) };
            let [flows, links] = measured.tables(VIEW);
            view.set_message(format!(
                "{}{of}\n{}{}",
                units::seconds(seconds.round()),
                flows.text(),
                links.text()
            ));
        }
        Ok(())
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
        self.end_view();
        if !self.json {
            let [flows, links] = measured.tables(usize::MAX);
            return self.text(&format!("{}\n{}", flows.text(), links.text()));
        }
        let flows = measured.flows.iter().map(|flow| ("flow", serde_json::to_value(flow)));
        let links = measured.links.iter().map(|link| ("link", serde_json::to_value(link)));
        for (event, value) in flows.chain(links) {
            let mut value = value.expect("numbers and texts are JSON");
            value["event"] = event.into();
            self.event(&value)?;
        }
        Ok(())
    }

    fn end_view(&mut self) {
        if let Some(view) = self.view.take() {
            view.finish_and_clear();
        }
    }

    /// Prints how well the machine kept up, and returns the verdict about the run.
    ///
    /// # Errors
    /// [`Failure::Check`] when a program has failed, or when the run is invalid.
    pub fn conclude(&mut self, load: &Load) -> Result<(), Failure> {
        self.end_view();
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
