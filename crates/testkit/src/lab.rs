//! A lab of namespaces: a sender and receivers on one bridge.

use crate::damage::{Damage, Injector, Tally};
use crate::damaged_link::{DamagedLink, QUEUE};
use crate::error::KitError;
use crate::members::{MemberWatch, is_routed};
use crate::node::Node;
use crate::root::Root;
use crate::task::run;
use crate::turn::{Company, Turn};
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) const LIMIT: Duration = Duration::from_secs(20);
/// Minimum MTU of IPv6, bytes (RFC 8200, 5).
const IPV6_MTU: u32 = 1280;

pub(crate) const PREFIX: &str = "fclab";

/// A token bucket with a queue, on the bridge's port towards a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bottleneck {
    /// Rate including link-layer headers, bits per second.
    pub rate_bps: u64,
    /// Size of the bucket, in bytes: at least one packet. A smaller bucket gives a smoother rate.
    pub burst: u32,
    /// Maximum length of the queue, in bytes. Arriving packets that do not fit are dropped.
    pub queue: u32,
}

/// Whether hosts and the bridge may merge packets into larger ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offloads {
    /// The default offloads of the kernel, which reduce the CPU time of a transfer.
    #[default]
    On,
    /// No merged packets, as on a physical link. A bottleneck needs this setting.
    Off,
}

/// Hosts to which the bridge forwards a multicast group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Forwarding {
    /// All hosts.
    #[default]
    ToAll,
    /// Hosts that have joined the group. The bridge queries for members with the default timers of a multicast router (RFC 3376,
    /// 8; RFC 3810, 9). After a host has left a group, the bridge forwards the group to this host for another 2 s.
    ToMembers,
}

/// Plan of a lab.
#[derive(Debug, Clone)]
pub struct LabPlan {
    receivers: u16,
    mtu: u32,
    offloads: Offloads,
    forwarding: Forwarding,
    company: Company,
    bottlenecks: Vec<(u16, Bottleneck)>,
    damage: Vec<(u16, Damage)>,
    feedback_damage: Option<Damage>,
}

/// A network of namespaces. Dropping it removes the namespaces.
#[derive(Debug)]
pub struct Lab {
    bridge: String,
    sender: Node,
    receivers: Vec<Node>,
    /// Links with damage, with the names of their ports.
    damaged: Vec<(String, DamagedLink)>,
    made: Namespaces,
    _turn: Turn,
}

/// Namespaces that are removed on drop.
#[derive(Debug, Default)]
pub(crate) struct Namespaces(Vec<String>);

impl Namespaces {
    pub(crate) fn push(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = run("ip", &["netns", "del", name], LIMIT);
        }
    }
}

impl Bottleneck {
    /// Returns a bottleneck of this rate in Mbit/s, with a bucket of 5 kB and a queue of 50 kB.
    pub fn mbps(megabits_per_second: f64) -> Bottleneck {
        Bottleneck { rate_bps: (megabits_per_second * 1e6).round() as u64, burst: 5_000, queue: 50_000 }
    }

    /// Sets the length of the queue, in bytes.
    #[must_use]
    pub fn queue(self, bytes: u32) -> Bottleneck {
        Bottleneck { queue: bytes, ..self }
    }

    /// Sets the bottleneck on an interface. Replaces an existing bottleneck.
    pub(crate) fn put(self, namespace: &str, interface: &str) -> Result<(), KitError> {
        let Bottleneck { rate_bps, burst, queue } = self;
        let command = format!(
            "-n {namespace} qdisc replace dev {interface} root tbf rate {rate_bps}bit burst {burst} limit {queue}"
        );
        run("tc", &command.split(' ').collect::<Vec<_>>(), LIMIT).map(drop)
    }
}

impl LabPlan {
    /// Sets the number of receivers.
    #[must_use]
    pub fn receivers(mut self, count: u16) -> LabPlan {
        self.receivers = count;
        self
    }

    /// Sets the MTU of every link, in bytes. The default is 1500. With an MTU below 1280, hosts have no IPv6 address.
    #[must_use]
    pub fn mtu(mut self, bytes: u32) -> LabPlan {
        self.mtu = bytes;
        self
    }

    /// Sets the offloads; the default is on.
    #[must_use]
    pub fn offloads(mut self, offloads: Offloads) -> LabPlan {
        self.offloads = offloads;
        self
    }

    /// Sets the forwarding of groups: to all hosts (the default) or to members only.
    #[must_use]
    pub fn forwarding(mut self, forwarding: Forwarding) -> LabPlan {
        self.forwarding = forwarding;
        self
    }

    /// Sets whether other labs may run at the same time. By default, no other lab may run.
    #[must_use]
    pub fn company(mut self, company: Company) -> LabPlan {
        self.company = company;
        self
    }

    /// Adds a bottleneck on the link to a receiver. `receiver` is the receiver's index, from 0.
    #[must_use]
    pub fn bottleneck(mut self, receiver: u16, bottleneck: Bottleneck) -> LabPlan {
        self.bottlenecks.push((receiver, bottleneck));
        self
    }

    /// Adds damage to datagrams that are sent to these receivers. `receivers` contains the indexes of the receivers, from 0.
    #[must_use]
    pub fn damage(mut self, receivers: impl IntoIterator<Item = u16>, damage: Damage) -> LabPlan {
        self.damage.extend(receivers.into_iter().map(|receiver| (receiver, damage)));
        self
    }

    /// Adds damage to datagrams towards the sender.
    #[must_use]
    pub fn damage_feedback(mut self, damage: Damage) -> LabPlan {
        self.feedback_damage = Some(damage);
        self
    }

    /// Builds the lab.
    ///
    /// # Errors
    /// Fails if a command fails, an offload cannot be switched off, or other labs use the machine for too long. A partly built
    /// lab is removed.
    pub fn build(self, _root: &Root) -> Result<Lab, KitError> {
        let turn = Turn::take(self.company)?;
        remove_orphans();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |part: &str| format!("{PREFIX}{}-{count}-{part}", std::process::id());
        let mut made = Namespaces::default();
        let mut make = |name: &str| {
            run("ip", &["netns", "add", name], LIMIT)?;
            made.0.push(name.to_string());
            in_namespace(name, "link set lo up")
        };

        let bridge = name("bridge");
        make(&bridge)?;
        quiet_ipv6(&bridge)?;
        let mtu = self.mtu;
        in_namespace(
            &bridge,
            &format!("link add br0 mtu {mtu} type bridge mcast_snooping 0 forward_delay 0"),
        )?;
        in_namespace(&bridge, "link set br0 up")?;

        let sender = Node::new(name("sender"), 1, "to-sender".into());
        let receivers: Vec<_> = (0..self.receivers)
            .map(|i| Node::new(name(&format!("recv{i}")), 0x100 + i, format!("to-recv{i}")))
            .collect();
        let damage_of =
            |receiver| self.damage.iter().find(|(at, _)| *at == receiver).map(|(_, damage)| *damage);
        let damage = std::iter::once(self.feedback_damage).chain((0..self.receivers).map(damage_of));
        let mut damaged = Vec::new();
        for ((node, damage), stream) in std::iter::once(&sender).chain(&receivers).zip(damage).zip(0..) {
            make(node.namespace())?;
            quiet_ipv6(node.namespace())?;
            match damage {
                None => self.wire(node, &bridge)?,
                Some(damage) => {
                    let link = self.damaged_link(node, &bridge, Injector::new(damage, stream))?;
                    damaged.push((node.port().to_owned(), link));
                }
            }
            self.join(node, &bridge)?;
        }
        let lab = Lab { bridge, sender, receivers, damaged, made, _turn: turn };
        if self.forwarding == Forwarding::ToMembers {
            lab.forward_to_members()?;
        }
        for (receiver, bottleneck) in self.bottlenecks {
            lab.limit(receiver, bottleneck)?;
        }
        Ok(lab)
    }

    /// Creates a veth pair between a host and the bridge.
    fn wire(&self, node: &Node, bridge: &str) -> Result<(), KitError> {
        let (inner, port, mtu) = (Node::INTERFACE, node.port(), self.mtu);
        in_namespace(
            node.namespace(),
            &format!("link add {inner} mtu {mtu} type veth peer name {port} mtu {mtu} netns {bridge}"),
        )
    }

    /// Creates a link with damage instead of a veth pair.
    fn damaged_link(&self, node: &Node, bridge: &str, injector: Injector) -> Result<DamagedLink, KitError> {
        let (inner, port) = (Node::INTERFACE, node.port());
        let wires = Path::new("/run/netns").join(bridge);
        let link = DamagedLink::start((node.path(), inner), (&wires, port), injector)?;
        for (namespace, device) in [(node.namespace(), inner), (bridge, port)] {
            in_namespace(namespace, &format!("link set {device} mtu {} txqueuelen {QUEUE}", self.mtu))?;
        }
        Ok(link)
    }

    /// Connects a host to the bridge.
    fn join(&self, node: &Node, bridge: &str) -> Result<(), KitError> {
        let (host, port, inner, mtu) = (node.namespace(), node.port(), Node::INTERFACE, self.mtu);
        if self.offloads == Offloads::Off {
            switch_off_offloads(host, inner)?;
            switch_off_offloads(bridge, port)?;
        }
        in_namespace(bridge, &format!("link set {port} master br0 up"))?;
        in_namespace(host, &format!("address add {}/16 broadcast + dev {inner}", node.ipv4()))?;
        if mtu >= IPV6_MTU {
            in_namespace(host, &format!("address add {}/64 dev {inner} nodad", node.ipv6()))?;
        }
        in_namespace(host, &format!("link set {inner} up"))?;
        in_namespace(host, &format!("route add multicast 224.0.0.0/4 dev {inner}"))?;
        // TCP flows must not reuse the path metrics that earlier flows measured.
        let sysctl = ["netns", "exec", host, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"];
        run("ip", &sysctl, LIMIT).map(drop)
    }
}

impl Lab {
    /// Returns the default plan: one receiver, an MTU of 1500, offloads on, no bottleneck.
    pub fn plan() -> LabPlan {
        LabPlan {
            receivers: 1,
            mtu: 1500,
            offloads: Offloads::On,
            forwarding: Forwarding::ToAll,
            company: Company::Alone,
            bottlenecks: Vec::new(),
            damage: Vec::new(),
            feedback_damage: None,
        }
    }

    /// Returns the sending host.
    pub fn sender(&self) -> &Node {
        &self.sender
    }

    /// Returns a receiving host, counted from 0.
    ///
    /// # Panics
    /// Panics if the lab has fewer receivers.
    pub fn receiver(&self, number: usize) -> &Node {
        &self.receivers[number]
    }

    /// Returns all receiving hosts.
    pub fn receivers(&self) -> &[Node] {
        &self.receivers
    }

    /// Returns the namespace of the bridge.
    pub fn bridge(&self) -> &str {
        &self.bridge
    }

    /// Returns all namespaces of this lab.
    pub fn namespaces(&self) -> &[String] {
        &self.made.0
    }

    /// Sets or changes the bottleneck on the link to a receiver.
    ///
    /// # Errors
    /// Fails if `tc` fails.
    ///
    /// # Panics
    /// Panics if the receiver does not exist.
    pub fn limit(&self, receiver: u16, bottleneck: Bottleneck) -> Result<(), KitError> {
        bottleneck.put(&self.bridge, self.receivers[usize::from(receiver)].port())
    }

    /// Removes the bottleneck on the link to a receiver.
    ///
    /// # Errors
    /// Fails if the receiver has no bottleneck.
    ///
    /// # Panics
    /// Panics if the receiver does not exist.
    pub fn unlimit(&self, receiver: u16) -> Result<(), KitError> {
        let port = self.receivers[usize::from(receiver)].port();
        run("tc", &["-n", &self.bridge, "qdisc", "del", "dev", port, "root"], LIMIT).map(drop)
    }

    /// Disconnects a receiver or connects it again.
    ///
    /// # Errors
    /// Fails if `ip` fails.
    ///
    /// # Panics
    /// Panics if the receiver does not exist.
    pub fn set_link(&self, receiver: u16, link: Link) -> Result<(), KitError> {
        let port = self.receivers[usize::from(receiver)].port();
        let state = if link == Link::Up { "up" } else { "down" };
        in_namespace(&self.bridge, &format!("link set {port} {state}"))
    }

    /// Changes the damage to datagrams towards a host.
    ///
    /// # Panics
    /// Panics if the plan has no damage for this host.
    pub fn damage(&self, node: &Node, damage: Damage) {
        self.damaged_link(node).set(damage);
    }

    /// Returns the numbers of datagrams that have been sent to a host so far, by kind of damage.
    ///
    /// # Panics
    /// Panics if the plan has no damage for this host.
    pub fn damaged(&self, node: &Node) -> Tally {
        self.damaged_link(node).tally()
    }

    fn damaged_link(&self, node: &Node) -> &DamagedLink {
        let mut links = self.damaged.iter();
        &links.find(|(port, _)| port == node.port()).expect("the plan has damage for this host").1
    }

    /// Returns the number of packets that the bottleneck on the link to a receiver has dropped.
    ///
    /// # Errors
    /// Fails if `tc` fails or reports no such number.
    ///
    /// # Panics
    /// Panics if the receiver does not exist.
    pub fn dropped(&self, receiver: u16) -> Result<u64, KitError> {
        let port = self.receivers[usize::from(receiver)].port();
        let shown = run("tc", &["-n", &self.bridge, "-s", "-j", "qdisc", "show", "dev", port], LIMIT)?;
        serde_json::from_str::<serde_json::Value>(&shown.stdout)
            .ok()
            .and_then(|all| all.get(0)?.get("drops")?.as_u64())
            .ok_or_else(|| KitError::Output { program: "tc", why: format!("no drops in {}", shown.stdout) })
    }
}

/// Membership of groups in a lab with [`Forwarding::ToMembers`].
impl Lab {
    fn forward_to_members(&self) -> Result<(), KitError> {
        for node in std::iter::once(&self.sender).chain(&self.receivers) {
            let flood = format!("-n {} link set dev {} mcast_flood off", self.bridge, node.port());
            run("bridge", &flood.split(' ').collect::<Vec<_>>(), LIMIT)?;
        }
        let bridge =
            |options: &str| in_namespace(&self.bridge, &format!("link set br0 type bridge {options}"));
        // During the first response interval of a new querier, the bridge does not forward by membership. The lab therefore
        // begins with a short interval.
        bridge("mcast_igmp_version 3 mcast_mld_version 2 mcast_query_response_interval 10")?;
        bridge("mcast_snooping 1 mcast_querier 1")?;
        std::thread::sleep(Duration::from_millis(300));
        bridge("mcast_query_response_interval 1000")
    }

    /// Returns the groups that the bridge forwards to a receiver now, in ascending order, without link-local groups.
    ///
    /// # Errors
    /// Fails if `bridge` fails or reports no such list.
    ///
    /// # Panics
    /// Panics if the receiver does not exist.
    pub fn groups(&self, receiver: u16) -> Result<Vec<IpAddr>, KitError> {
        let port = self.receivers[usize::from(receiver)].port();
        let shown = run("bridge", &["-n", &self.bridge, "-j", "mdb", "show"], LIMIT)?;
        let all: serde_json::Value = serde_json::from_str(&shown.stdout)
            .map_err(|e| KitError::Output { program: "bridge", why: e.to_string() })?;
        let entries = all.pointer("/0/mdb").and_then(|mdb| mdb.as_array()).into_iter().flatten();
        let here = entries.filter(|entry| entry["port"] == *port);
        let named = here.filter_map(|entry| entry["grp"].as_str()?.parse().ok());
        let mut groups: Vec<IpAddr> = named.filter(|group| is_routed(*group)).collect();
        groups.sort_unstable();
        groups.dedup();
        Ok(groups)
    }

    /// Starts to record the joins and leaves of the receivers.
    ///
    /// # Errors
    /// Fails if the frames at the ports of the bridge cannot be received.
    pub fn watch_members(&self) -> Result<MemberWatch, KitError> {
        let ports = self.receivers.iter().map(|node| node.port().to_owned()).collect();
        MemberWatch::start(&self.bridge, ports)
    }
}

/// State of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The link carries packets.
    Up,
    /// The link carries no packets.
    Down,
}

pub(crate) fn in_namespace(namespace: &str, command: &str) -> Result<(), KitError> {
    let args: Vec<_> = ["-n", namespace].into_iter().chain(command.split(' ')).collect();
    run("ip", &args, LIMIT).map(drop)
}

/// Disables duplicate-address detection and router solicitations. New addresses can then be used at once, and idle links carry no
/// packets.
pub(crate) fn quiet_ipv6(namespace: &str) -> Result<(), KitError> {
    let command = "netns exec NAMESPACE sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \
                   net.ipv6.conf.default.router_solicitations=0 net.ipv6.conf.default.accept_ra=0";
    let args: Vec<_> =
        command.split_whitespace().map(|w| if w == "NAMESPACE" { namespace } else { w }).collect();
    run("ip", &args, LIMIT).map(drop)
}

/// Features that merge or split packets, by their names in `ethtool -k`.
const JOINING: [&str; 10] = [
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "tx-udp-segmentation",
    "tx-gso-list",
    "tx-gso-partial",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "rx-gro-hw",
];

pub(crate) fn switch_off_offloads(namespace: &str, interface: &str) -> Result<(), KitError> {
    let ethtool = |args: &[&str]| {
        let all: Vec<_> = ["netns", "exec", namespace, "ethtool"].iter().chain(args).copied().collect();
        run("ip", &all, LIMIT)
    };
    let on = |listing: &str| -> Vec<String> {
        let features = listing.lines().filter_map(|line| line.trim().split_once(": "));
        features
            .filter(|(name, state)| JOINING.contains(name) && *state == "on")
            .map(|(n, _)| n.into())
            .collect()
    };
    let before = on(&ethtool(&["-k", interface])?.stdout);
    let mut change = vec!["-K", interface];
    change.extend(before.iter().flat_map(|feature| [feature.as_str(), "off"]));
    if !before.is_empty() {
        ethtool(&change)?;
    }
    match on(&ethtool(&["-k", interface])?.stdout).pop() {
        None => Ok(()),
        Some(feature) => {
            Err(KitError::OffloadStays { interface: interface.into(), namespace: namespace.into(), feature })
        }
    }
}

/// Removes the namespaces of labs whose process was killed.
pub(crate) fn remove_orphans() {
    let Ok(entries) = fs::read_dir("/run/netns") else { return };
    for name in entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            let _ = run("ip", &["netns", "del", &name], LIMIT);
        }
    }
}
