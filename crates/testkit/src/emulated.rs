//! Namespaces connected by emulated links with any rate, delay, loss and queue.

use crate::error::KitError;
use crate::lab::{LIMIT, Namespaces, PREFIX, quiet_ipv6, remove_orphans};
use crate::node::Node;
use crate::root::Root;
use crate::task::run;
use crate::turn::{Company, Turn};
use faircast_emulator::{EmulationPlan, Emulator, Report};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

/// Hosts connected by emulated links. Dropping it removes the hosts and links.
#[derive(Debug)]
pub struct EmulatedLab {
    hosts: Vec<(String, Node)>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Report, KitError>>>,
    _made: Namespaces,
    _turn: Turn,
}

impl EmulatedLab {
    /// Parses a plan in the format of `faircast_emulator::plan`, builds its network and starts the links. Addresses and
    /// namespaces are chosen automatically.
    ///
    /// # Errors
    /// Fails if the plan is invalid, a command fails, or other labs use the machine for too long.
    pub fn start(root: &Root, text: &str) -> Result<EmulatedLab, KitError> {
        let plan = EmulationPlan::parse(text).map_err(faircast_emulator::EmulatorError::from)?;
        EmulatedLab::of(root, plan)
    }

    /// Does the same as [`EmulatedLab::start`], but other labs may run at the same time. For tests whose results do not depend on
    /// the load of the processor.
    ///
    /// # Errors
    /// Fails like [`EmulatedLab::start`].
    pub fn shared(root: &Root, text: &str) -> Result<EmulatedLab, KitError> {
        let plan = EmulationPlan::parse(text).map_err(faircast_emulator::EmulatorError::from)?;
        EmulatedLab::build(root, plan, Company::Shared)
    }

    /// Builds the network of a plan and starts its links. Addresses and namespaces are chosen automatically.
    ///
    /// # Errors
    /// Fails like [`EmulatedLab::start`].
    pub fn of(root: &Root, plan: EmulationPlan) -> Result<EmulatedLab, KitError> {
        EmulatedLab::build(root, plan, Company::Alone)
    }

    fn build(_root: &Root, mut plan: EmulationPlan, company: Company) -> Result<EmulatedLab, KitError> {
        let turn = Turn::take(company)?;
        remove_orphans();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut made = Namespaces::default();
        let mut hosts = Vec::new();
        for (name, host) in plan.hosts_mut() {
            let namespace = format!("{PREFIX}{}-e{count}-{name}", std::process::id());
            run("ip", &["netns", "add", &namespace], LIMIT)?;
            made.push(&namespace);
            run("ip", &["-n", &namespace, "link", "set", "lo", "up"], LIMIT)?;
            quiet_ipv6(&namespace)?;
            // TCP flows must not reuse the path metrics that earlier flows measured.
            let forget = "net.ipv4.tcp_no_metrics_save=1";
            run("ip", &["netns", "exec", &namespace, "sysctl", "-qw", forget], LIMIT)?;
            let node = Node::new(namespace.clone(), hosts.len() as u16 + 1, String::new());
            (host.address, host.address6, host.namespace) = (node.ipv4(), node.ipv6(), Some(namespace));
            hosts.push((name, node));
        }
        let mut emulator = Emulator::new(&plan)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            emulator.run(&stopped)?;
            Ok(emulator.report())
        });
        Ok(EmulatedLab { hosts, stop, thread: Some(thread), _made: made, _turn: turn })
    }

    /// Returns the host of this name.
    ///
    /// # Panics
    /// Panics if the plan has no host of this name.
    pub fn host(&self, name: &str) -> &Node {
        let found = self.hosts.iter().find(|(other, _)| other == name);
        &found.unwrap_or_else(|| panic!("the plan has no host {name}")).1
    }

    /// Stops the links and returns the report about them.
    ///
    /// # Errors
    /// Fails if the links had already stopped because of an error.
    pub fn stop(mut self) -> Result<Report, KitError> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("only this and drop take it, and both once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for EmulatedLab {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The error is ignored, because the test has not requested the report.
            let _ = thread.join();
        }
    }
}
