//! A scenario, ready to be emulated.

use super::args::{Building, UnknownGroups};
use super::capture::CaptureOrder;
use super::flows::{self, Flows};
use super::guests::Guests;
use super::keeper::{Order, State};
use super::network::Network;
use crate::failure::Failure;
use crate::sim::running;
use crate::sim_usage::SimUsage;
use crate::system;
use faircast_core::time::Time;
use faircast_emulator::EmulationPlan;
use faircast_experiments::scenario::{RealFlows, Scenario};
use faircast_topology::Topology;
use std::net::IpAddr;
use std::path::Path;

/// Maximum number of hosts, each of which is a namespace.
const MAX_HOSTS: usize = 1_000;

/// A scenario, ready to be emulated.
#[derive(Debug)]
pub struct Lab {
    pub scenario: Scenario,
    pub topology: Topology,
    /// Names of the hosts, with the addresses that the flows use.
    pub hosts: Vec<(String, IpAddr)>,
    pub real: RealFlows,
    pub seed: u64,
    pub mtu: u16,
    pub memory: u64,
}

impl Lab {
    /// Reads a scenario.
    ///
    /// # Errors
    /// When the scenario is invalid, or too large for an emulation.
    pub fn read(file: &Path, typed: &Building) -> Result<Lab, Failure> {
        let scenario = running::read(file, &typed.set, typed.max_memory)?;
        running::warn(&scenario);
        if scenario.points().len() > 1 {
            return Err(SimUsage::EmulatedSweep(scenario.points().len()).into());
        }
        let seed = typed.seed.or(scenario.seeds().first().copied()).unwrap_or(1);
        let topology = scenario.layout(0, seed).topology().map_err(SimUsage::HostThatForwards)?;
        let plan = EmulationPlan::from(topology.clone());
        let hosts: Vec<_> = plan.hosts().map(|(name, host)| (name, host.address.into())).collect();
        if hosts.len() > MAX_HOSTS {
            return Err(SimUsage::TooManyEmulatedHosts { hosts: hosts.len(), most: MAX_HOSTS }.into());
        }
        let real = scenario.real_flows(0, seed);
        if real.flows.len() > flows::MAX_FLOWS {
            return Err(
                SimUsage::TooManyEmulatedFlows { flows: real.flows.len(), most: flows::MAX_FLOWS }.into()
            );
        }
        let largest = real.flows.iter().map(|flow| flow.packet).max().unwrap_or(0);
        Ok(Lab {
            scenario,
            topology,
            hosts,
            real,
            seed,
            mtu: typed.mtu.max(largest),
            memory: typed.max_memory,
        })
    }

    /// Lets the flows use the IPv6 addresses of the hosts.
    ///
    /// # Errors
    /// When the MTU is too small for IPv6.
    pub fn over_ipv6(mut self) -> Result<Lab, Failure> {
        let mut plan = EmulationPlan::from(self.topology.clone());
        plan.mtu = self.mtu;
        if !plan.has_ipv6() {
            return Err(SimUsage::EmulatedMtu(self.mtu).into());
        }
        self.hosts = plan.hosts().map(|(name, host)| (name, host.address6.into())).collect();
        Ok(self)
    }

    /// Returns the order of a network.
    pub fn order(&self, typed: &Building, bound: bool) -> Order {
        Order {
            id: format!("emu-{:04x}", system::random() as u16),
            title: self.scenario.title().to_owned(),
            network: self.topology.to_string(),
            mtu: self.mtu,
            seed: self.seed,
            memory: typed.max_memory,
            bound,
            changes: self
                .real
                .changes
                .iter()
                .map(|(at, link, text)| (at.as_secs_f64(), *link, text.clone()))
                .collect(),
            watched: flows::watched(&self.real, &self.hosts),
            latencies: flows::latencies(&self.real, &self.hosts),
            floods: typed.unknown_groups == UnknownGroups::Flood,
            sample_every: self.scenario.recording_interval(0).as_secs_f64(),
            capture: None,
        }
    }

    /// Returns the order to capture the tapped links of the scenario, or all links if it has no taps.
    ///
    /// # Errors
    /// When the current directory is unknown.
    pub fn capture(&self, file: &Path, most: Option<u32>) -> Result<CaptureOrder, Failure> {
        let file = std::path::absolute(file).map_err(Failure::system("find the current directory"))?;
        let layout = self.scenario.layout(0, self.seed);
        let is_tapped = |link: &u32| layout.taps().is_empty() || layout.taps().contains(link);
        let name = |node| self.topology.name(node);
        let links = (0..).zip(self.topology.edges()).filter(|(link, _)| is_tapped(link));
        let links =
            links.map(|(link, edge)| (link, format!("{}->{}", name(edge.from), name(edge.to)))).collect();
        Ok(CaptureOrder { file, links, most: most.unwrap_or(u32::MAX) })
    }

    /// Returns the bytes that reached each receiver of each flow, from the counts of the watched packets.
    pub fn received(&self, watched: &[u64]) -> Vec<u64> {
        flows::received(&self.real, watched)
    }

    /// Prepares the flows.
    ///
    /// # Errors
    /// When a flow cannot be made.
    pub fn flows(&self, network: &Network, state: &State, guests: &Guests) -> Result<Flows, Failure> {
        let end = Time::from_secs_f64(self.scenario.duration(0));
        let planned = flows::Planned {
            real: &self.real,
            topology: &self.topology,
            hosts: &self.hosts,
            seed: self.seed,
            end,
        };
        Flows::prepare(planned, network, (state, guests))
    }
}
