//! A network of namespaces: a sender and receivers on one bridge.

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
/// The smallest MTU that IPv6 works with (RFC 8200, 5).
const IPV6_MTU: u32 = 1280;

pub(crate) const PREFIX: &str = "fclab";

/// A token bucket with a queue of bytes, on the bridge's port towards a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bottleneck {
    /// Bits per second, link-layer headers included.
    pub rate_bps: u64,
    /// Size of the bucket, in bytes; at least a packet, and the smaller the smoother.
    pub burst: u32,
    /// Longest queue, in bytes; packets that do not fit are dropped at the tail.
    pub queue: u32,
}

/// Whether hosts and bridge may join packets into large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offloads {
    /// As the kernel chooses: fast.
    #[default]
    On,
    /// Every packet on its own, as on a wire: what a bottleneck needs.
    Off,
}

/// Where the bridge sends a multicast group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Forwarding {
    /// To every host.
    #[default]
    ToAll,
    /// To hosts that have joined it. The bridge asks for members and waits after a leave as a multicast router with default timers does
    /// (RFC 3376, 8; RFC 3810, 9): it continues to send a group for 2 s.
    ToMembers,
}

/// The plan of a lab.
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

/// A network of namespaces, removed when dropped.
#[derive(Debug)]
pub struct Lab {
    bridge: String,
    sender: Node,
    receivers: Vec<Node>,
    /// By the name of the port.
    damaged: Vec<(String, DamagedLink)>,
    made: Namespaces,
    _turn: Turn,
}

/// Namespaces to be removed.
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
    /// This many megabits per second, with a bucket of 5 kB and a queue of 50 kB.
    pub fn mbps(megabits_per_second: f64) -> Bottleneck {
        Bottleneck { rate_bps: (megabits_per_second * 1e6).round() as u64, burst: 5_000, queue: 50_000 }
    }

    /// With another queue, in bytes.
    #[must_use]
    pub fn queue(self, bytes: u32) -> Bottleneck {
        Bottleneck { queue: bytes, ..self }
    }

    /// Puts it on an interface, or in the place of the present one.
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

    /// Sets the MTU of every link, in bytes; the default is 1500. Below 1280 hosts have no IPv6 address.
    #[must_use]
    pub fn mtu(mut self, bytes: u32) -> LabPlan {
        self.mtu = bytes;
        self
    }

    /// Sets offloads; the default is on.
    #[must_use]
    pub fn offloads(mut self, offloads: Offloads) -> LabPlan {
        self.offloads = offloads;
        self
    }

    /// Sets the forwarding of groups, to all or to members only; the default is to all.
    #[must_use]
    pub fn forwarding(mut self, forwarding: Forwarding) -> LabPlan {
        self.forwarding = forwarding;
        self
    }

    /// Sets whether other labs may run at the same time; the default is no.
    #[must_use]
    pub fn company(mut self, company: Company) -> LabPlan {
        self.company = company;
        self
    }

    /// With a bottleneck before this receiver, counted from 0.
    #[must_use]
    pub fn bottleneck(mut self, receiver: u16, bottleneck: Bottleneck) -> LabPlan {
        self.bottlenecks.push((receiver, bottleneck));
        self
    }

    /// With damage to datagrams on their way to these receivers, counted from 0.
    #[must_use]
    pub fn damage(mut self, receivers: impl IntoIterator<Item = u16>, damage: Damage) -> LabPlan {
        self.damage.extend(receivers.into_iter().map(|receiver| (receiver, damage)));
        self
    }

    /// With damage to datagrams on their way to the sender.
    #[must_use]
    pub fn damage_feedback(mut self, damage: Damage) -> LabPlan {
        self.feedback_damage = Some(damage);
        self
    }

    /// Build it.
    ///
    /// # Errors
    /// When a command fails, an offload cannot be switched off, or other labs hold the machine for too long. A partly built lab is removed.
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

    /// Make a virtual cable between a host and the bridge.
    fn wire(&self, node: &Node, bridge: &str) -> Result<(), KitError> {
        let (inner, port, mtu) = (Node::INTERFACE, node.port(), self.mtu);
        in_namespace(
            node.namespace(),
            &format!("link add {inner} mtu {mtu} type veth peer name {port} mtu {mtu} netns {bridge}"),
        )
    }

    /// Make a link with damage in its place.
    fn damaged_link(&self, node: &Node, bridge: &str, injector: Injector) -> Result<DamagedLink, KitError> {
        let (inner, port) = (Node::INTERFACE, node.port());
        let wires = Path::new("/run/netns").join(bridge);
        let link = DamagedLink::start((node.path(), inner), (&wires, port), injector)?;
        for (namespace, device) in [(node.namespace(), inner), (bridge, port)] {
            in_namespace(namespace, &format!("link set {device} mtu {} txqueuelen {QUEUE}", self.mtu))?;
        }
        Ok(link)
    }

    /// Join a host to the bridge.
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
        // TCP flows must not remember what earlier ones learned about the path.
        let sysctl = ["netns", "exec", host, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"];
        run("ip", &sysctl, LIMIT).map(drop)
    }
}

impl Lab {
    /// A lab of one receiver, MTU 1500, with offloads and without bottleneck, to be changed.
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

    /// The sending host.
    pub fn sender(&self) -> &Node {
        &self.sender
    }

    /// A receiving host, counted from 0.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn receiver(&self, number: usize) -> &Node {
        &self.receivers[number]
    }

    /// All receiving hosts.
    pub fn receivers(&self) -> &[Node] {
        &self.receivers
    }

    /// The namespace of the bridge.
    pub fn bridge(&self) -> &str {
        &self.bridge
    }

    /// All namespaces of this lab.
    pub fn namespaces(&self) -> &[String] {
        &self.made.0
    }

    /// Put a bottleneck before a receiver, or change the one that is there.
    ///
    /// # Errors
    /// When `tc` refuses.
    ///
    /// # Panics
    /// When there is no such receiver.
    pub fn limit(&self, receiver: u16, bottleneck: Bottleneck) -> Result<(), KitError> {
        bottleneck.put(&self.bridge, self.receivers[usize::from(receiver)].port())
    }

    /// Take the bottleneck before a receiver away.
    ///
    /// # Errors
    /// When the receiver has no bottleneck.
    ///
    /// # Panics
    /// When there is no such receiver.
    pub fn unlimit(&self, receiver: u16) -> Result<(), KitError> {
        let port = self.receivers[usize::from(receiver)].port();
        run("tc", &["-n", &self.bridge, "qdisc", "del", "dev", port, "root"], LIMIT).map(drop)
    }

    /// Cut a receiver off, or join it again.
    ///
    /// # Errors
    /// When `ip` refuses.
    ///
    /// # Panics
    /// When there is no such receiver.
    pub fn set_link(&self, receiver: u16, link: Link) -> Result<(), KitError> {
        let port = self.receivers[usize::from(receiver)].port();
        let state = if link == Link::Up { "up" } else { "down" };
        in_namespace(&self.bridge, &format!("link set {port} {state}"))
    }

    /// Change the damage to datagrams on their way to a host.
    ///
    /// # Panics
    /// When the plan has no damage for it.
    pub fn damage(&self, node: &Node, damage: Damage) {
        self.damaged_link(node).set(damage);
    }

    /// The number of damaged datagrams on their way to a host so far.
    ///
    /// # Panics
    /// When the plan has no damage for it.
    pub fn damaged(&self, node: &Node) -> Tally {
        self.damaged_link(node).tally()
    }

    fn damaged_link(&self, node: &Node) -> &DamagedLink {
        let mut links = self.damaged.iter();
        &links.find(|(port, _)| port == node.port()).expect("the plan has damage for this host").1
    }

    /// Packets that the bottleneck before a receiver has dropped.
    ///
    /// # Errors
    /// When `tc` fails or reports no such number.
    ///
    /// # Panics
    /// When there is no such receiver.
    pub fn dropped(&self, receiver: u16) -> Result<u64, KitError> {
        let port = self.receivers[usize::from(receiver)].port();
        let shown = run("tc", &["-n", &self.bridge, "-s", "-j", "qdisc", "show", "dev", port], LIMIT)?;
        serde_json::from_str::<serde_json::Value>(&shown.stdout)
            .ok()
            .and_then(|all| all.get(0)?.get("drops")?.as_u64())
            .ok_or_else(|| KitError::Output { program: "tc", why: format!("no drops in {}", shown.stdout) })
    }
}

/// Membership of groups, in a lab that is [`Forwarding::ToMembers`].
impl Lab {
    fn forward_to_members(&self) -> Result<(), KitError> {
        for node in std::iter::once(&self.sender).chain(&self.receivers) {
            let flood = format!("-n {} link set dev {} mcast_flood off", self.bridge, node.port());
            run("bridge", &flood.split(' ').collect::<Vec<_>>(), LIMIT)?;
        }
        let bridge =
            |options: &str| in_namespace(&self.bridge, &format!("link set br0 type bridge {options}"));
        // A new querier forwards nothing by membership for one response interval: a short one for the beginning.
        bridge("mcast_igmp_version 3 mcast_mld_version 2 mcast_query_response_interval 10")?;
        bridge("mcast_snooping 1 mcast_querier 1")?;
        std::thread::sleep(Duration::from_millis(300));
        bridge("mcast_query_response_interval 1000")
    }

    /// Groups that the bridge forwards to a receiver now, in order, without those that stay on a link.
    ///
    /// # Errors
    /// When `bridge` fails or reports no such list.
    ///
    /// # Panics
    /// When there is no such receiver.
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

    /// Watch the receivers join and leave groups from now on.
    ///
    /// # Errors
    /// When the bridge's ports cannot be listened to.
    pub fn watch_members(&self) -> Result<MemberWatch, KitError> {
        let ports = self.receivers.iter().map(|node| node.port().to_owned()).collect();
        MemberWatch::start(&self.bridge, ports)
    }
}

/// Whether a link carries packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It does.
    Up,
    /// It does not.
    Down,
}

pub(crate) fn in_namespace(namespace: &str, command: &str) -> Result<(), KitError> {
    let args: Vec<_> = ["-n", namespace].into_iter().chain(command.split(' ')).collect();
    run("ip", &args, LIMIT).map(drop)
}

/// No duplicate-address detection and no router solicitations: addresses work at once, links are silent.
pub(crate) fn quiet_ipv6(namespace: &str) -> Result<(), KitError> {
    let command = "netns exec NAMESPACE sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \
                   net.ipv6.conf.default.router_solicitations=0 net.ipv6.conf.default.accept_ra=0";
    let args: Vec<_> =
        command.split_whitespace().map(|w| if w == "NAMESPACE" { namespace } else { w }).collect();
    run("ip", &args, LIMIT).map(drop)
}

/// The features that join or split packets, as `ethtool -k` names them.
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

/// Remove the namespaces of labs whose process was killed.
pub(crate) fn remove_orphans() {
    let Ok(entries) = fs::read_dir("/run/netns") else { return };
    for name in entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            let _ = run("ip", &["netns", "del", &name], LIMIT);
        }
    }
}
