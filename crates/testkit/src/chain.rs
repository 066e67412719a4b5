//! Networks in a row: a source, hops that connect each network to the next, and receivers on the network behind each hop.

use crate::error::KitError;
use crate::lab::{
    Bottleneck, LIMIT, Namespaces, PREFIX, in_namespace, quiet_ipv6, remove_orphans, switch_off_offloads,
};
use crate::node::Node;
use crate::root::Root;
use crate::task::{Task, run};
use crate::turn::{Company, Turn};
use std::fs;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// ```text
///   source -- network 0 -- hop 0 -- network 1 -- hop 1 -- network 2 ..
///                                     | | |                 | | |
///                                   receivers             receivers
/// ```
/// The hops forward unicast packets. They forward multicast packets only while the task of [`Chain::forward`] exists. Offloads
/// are off.
#[derive(Debug)]
pub struct Chain {
    wires: String,
    source: Node,
    hops: Vec<Node>,
    receivers: Vec<Node>,
    /// For each receiver: its port on the bridge of its network, and its address.
    places: Vec<(String, Ipv4Addr)>,
    directory: TempDir,
    _made: Namespaces,
    _turn: Turn,
}

impl Chain {
    /// Name of a hop's interface towards the source.
    pub const UP: &'static str = "above";
    /// Name of a hop's interface towards the receivers.
    pub const DOWN: &'static str = "below";

    /// Builds a chain with one hop for each element of `receivers`. Each element is the number of receivers on the network behind
    /// the hop.
    ///
    /// # Errors
    /// Fails if a command fails, or if other labs use the machine for too long. A partly built network is removed.
    pub fn build(_root: &Root, receivers: &[u8], company: Company) -> Result<Chain, KitError> {
        let turn = Turn::take(company)?;
        remove_orphans();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |part: &str| format!("{PREFIX}{}-c{count}-{part}", std::process::id());
        let mut made = Namespaces::default();
        let mut make = |part: &str| -> Result<Node, KitError> {
            let name = name(part);
            run("ip", &["netns", "add", &name], LIMIT)?;
            made.push(&name);
            in_namespace(&name, "link set lo up")?;
            quiet_ipv6(&name)?;
            sysctl(&name, "net.ipv4.tcp_no_metrics_save=1")?;
            Ok(Node::new(name, 0, String::new()))
        };
        let wires = make("wires")?.namespace().to_owned();
        let source = make("source")?;
        let hops = (0..receivers.len()).map(|at| make(&format!("hop{at}"))).collect::<Result<Vec<_>, _>>()?;
        let mut hosts = Vec::new();
        for (at, count) in receivers.iter().enumerate() {
            for _ in 0..*count {
                hosts.push((at + 1, make(&format!("r{}", hosts.len()))?));
            }
        }
        for network in 0..=receivers.len() {
            let bridge = format!("link add br{network} type bridge mcast_snooping 0 forward_delay 0");
            in_namespace(&wires, &bridge)?;
            in_namespace(&wires, &format!("link set br{network} up"))?;
        }
        let wire = |node: &Node, interface: &str, network: usize, host: u8| {
            let (host_of, port) = (node.namespace(), format!("n{network}h{host}"));
            in_namespace(host_of, &format!("link add {interface} type veth peer name {port} netns {wires}"))?;
            switch_off_offloads(host_of, interface)?;
            switch_off_offloads(&wires, &port)?;
            in_namespace(&wires, &format!("link set {port} master br{network} up"))?;
            let address = Ipv4Addr::new(10, 78, network as u8, host);
            in_namespace(host_of, &format!("address add {address}/24 broadcast + dev {interface}"))?;
            in_namespace(host_of, &format!("link set {interface} up"))?;
            Ok::<_, KitError>((port, address))
        };
        wire(&source, Node::INTERFACE, 0, 1)?;
        in_namespace(source.namespace(), "route add default via 10.78.0.2")?;
        for (at, hop) in hops.iter().enumerate() {
            wire(hop, Chain::UP, at, 2)?;
            wire(hop, Chain::DOWN, at + 1, 1)?;
            sysctl(hop.namespace(), "net.ipv4.ip_forward=1")?;
            sysctl(hop.namespace(), "net.ipv4.conf.all.rp_filter=0")?;
            if at > 0 {
                in_namespace(hop.namespace(), &format!("route add default via 10.78.{at}.1"))?;
            }
            for far in at + 2..=receivers.len() {
                let route = format!("route add 10.78.{far}.0/24 via 10.78.{}.2", at + 1);
                in_namespace(hop.namespace(), &route)?;
            }
        }
        let mut places = Vec::new();
        for (number, (network, host)) in hosts.iter().enumerate() {
            places.push(wire(host, Node::INTERFACE, *network, 10 + number as u8)?);
            in_namespace(host.namespace(), &format!("route add default via 10.78.{network}.1"))?;
        }
        let receivers = hosts.into_iter().map(|(_, host)| host).collect();
        let directory = tempfile::Builder::new().prefix("faircast-chain-").tempdir();
        let directory =
            directory.map_err(|error| KitError::Output { program: "tempdir", why: error.to_string() })?;
        Ok(Chain { wires, source, hops, receivers, places, directory, _made: made, _turn: turn })
    }

    /// Returns the host of the source.
    pub fn source(&self) -> &Node {
        &self.source
    }

    /// Returns a host between two networks.
    ///
    /// # Panics
    /// Panics if the number is out of range.
    pub fn hop(&self, number: usize) -> &Node {
        &self.hops[number]
    }

    /// Returns a receiving host.
    ///
    /// # Panics
    /// Panics if the number is out of range.
    pub fn receiver(&self, number: usize) -> &Node {
        &self.receivers[number]
    }

    /// Returns the number of receivers.
    pub fn receivers(&self) -> usize {
        self.receivers.len()
    }

    /// Returns the address of a receiver.
    ///
    /// # Panics
    /// Panics if the number is out of range.
    pub fn address(&self, receiver: usize) -> Ipv4Addr {
        self.places[receiver].1
    }

    /// Adds a bottleneck on the link to a receiver.
    ///
    /// # Errors
    /// Fails if `tc` fails.
    ///
    /// # Panics
    /// Panics if the number is out of range.
    pub fn limit(&self, receiver: usize, bottleneck: Bottleneck) -> Result<(), KitError> {
        bottleneck.put(&self.wires, &self.places[receiver].0)
    }

    /// Makes the kernel of a hop forward this group downstream, from any source. Forwarding ends when the returned daemon
    /// (`smcrouted`) is dropped.
    ///
    /// # Errors
    /// Fails if the daemon cannot be started or is not ready in time.
    ///
    /// # Panics
    /// Panics if the hop does not exist.
    pub fn forward(&self, hop: usize, group: Ipv4Addr) -> Result<Task, KitError> {
        let path = |kind: &str| self.directory.path().join(format!("hop{hop}.{kind}"));
        let (rules, socket, pid) = (path("conf"), path("sock"), path("pid"));
        let (up, down) = (Chain::UP, Chain::DOWN);
        let text = format!(
            "phyint {up} enable\nphyint {down} enable\nmgroup from {up} group {group}\nmroute from {up} group {group} to {down}\n"
        );
        let failed =
            |error: std::io::Error| KitError::Output { program: "smcrouted", why: error.to_string() };
        fs::write(&rules, text).map_err(failed)?;
        let text = |path: &std::path::Path| path.display().to_string();
        let args =
            ["-n", "-N", "-f", &text(&rules), "-u", &text(&socket), "-P", &text(&pid)].map(str::to_owned);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let task = self.hops[hop].start("smcrouted", &args)?;
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while !socket.exists() {
            if std::time::Instant::now() > until {
                return Err(KitError::Output { program: "smcrouted", why: task.stderr() });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(task)
    }
}

fn sysctl(namespace: &str, setting: &str) -> Result<(), KitError> {
    run("ip", &["netns", "exec", namespace, "sysctl", "-qw", setting], LIMIT).map(drop)
}
