//! Plan of an emulation: a network whose hosts have addresses and namespaces.
//!
//! A plan is built by calls, made from a [`Topology`], or parsed from text. The text format is [`faircast_topology::text`] with
//! further options of hosts and further lines:
//!
//! ```text
//! mtu 1500                 # largest IP packet; 1500 if not said
//! overhead 0               # bytes that every packet takes on a link beside its IP packet
//! seed 1                   # of losses and random drops
//! host left 10.9.0.1 netns=left
//! host right 10.9.0.2 netns=right groups=all
//! router r
//! link left r
//! link r right rate=10M delay=20ms queue=droptail,50 loss=bernoulli,0.01 jitter=1ms back rate=1M delay=20ms
//! ```
//!
//! A host without an address gets an address of 10.9.0.0/16 that is derived from its index, and each host gets an address of
//! fd09::/64 in the same way. `netns` is the name of its network
//! namespace. Without `netns` the host is in the emulator's namespace. `groups` lists the groups of which the host is a member:
//! `all`, `none` (the default), `joined` (by its messages of IGMP and MLD) or addresses joined by `+`. Emulated links are more regular than real hosts. Without `jitter=` a
//! full drop-tail queue may always drop packets of the same flow, because the packets of this flow always arrive at the same time
//! after a departure.

use crate::trees::Latencies;
use faircast_aqm::LinkSpec;
use faircast_topology::memory::{self, Estimate, TooLarge};
use faircast_topology::{Dialect, LineError, NodeId, TextError, Topology, Words};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Plan of an emulation.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulationPlan {
    /// Maximum size of an IP packet, bytes.
    pub mtu: u16,
    /// Bytes that every packet takes on a link in addition to the bytes of its IP packet.
    pub overhead: u16,
    /// Random seed of losses and random drops.
    pub seed: u64,
    /// Maximum memory of the emulation, bytes. It includes the estimated memory of routes and links, and the memory of packets in
    /// transit. The default is [`memory::DEFAULT`].
    pub memory: u64,
    /// Treatment of groups without members.
    pub unknown: Unknown,
    /// First and last group, with the latencies of these groups and those between; other groups have none.
    pub latencies: Vec<(IpAddr, IpAddr, Latencies)>,
    pub(crate) topology: Topology,
    /// The hosts in the order of their nodes.
    pub(crate) hosts: Vec<Host>,
}

/// Properties of a host, in addition to the properties of its node.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// IPv6 address, which the host has if [`EmulationPlan::has_ipv6`] is true.
    pub address6: Ipv6Addr,
    /// Name of the network namespace of the host; `None` for the emulator's namespace.
    pub namespace: Option<String>,
    /// Groups of which the host is a member.
    pub groups: Groups,
}

/// Multicast groups that a host receives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Groups {
    /// No groups.
    #[default]
    None,
    /// All groups.
    All,
    /// Only these groups.
    These(Vec<IpAddr>),
    /// The groups that the host joins, by its messages of IGMP and MLD.
    Joined,
}

/// Treatment of groups without members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unknown {
    /// Their packets are dropped, as by routers.
    #[default]
    Prune,
    /// Their packets reach all hosts, as over switches without snooping.
    Flood,
}

/// An error in a plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A line of the text is invalid.
    #[error(transparent)]
    Line(#[from] TextError),
    /// Two hosts have the same address.
    #[error("{first} and {second} have the same address, {address}")]
    SameAddress {
        /// Name of the first host.
        first: String,
        /// Name of the second host.
        second: String,
        /// The address of both hosts.
        address: IpAddr,
    },
    /// The emulation would exceed its maximum memory.
    #[error(
        "the network is too large: {refused}; make it smaller, or, if this host has enough memory, use --max-memory {}",
        .refused.enough()
    )]
    TooLarge {
        /// The excess and its main cause.
        refused: TooLarge,
    },
    /// The plan has no host.
    #[error("there is no host; a plan needs at least one `host NAME`")]
    NoHost,
}

impl Default for EmulationPlan {
    fn default() -> EmulationPlan {
        EmulationPlan::new()
    }
}

/// Makes a plan for a topology. Hosts have addresses by their index, are members of all groups, and are in the emulator's
/// namespace. [`EmulationPlan::hosts_mut`] can change them.
impl From<Topology> for EmulationPlan {
    fn from(topology: Topology) -> EmulationPlan {
        let host = |place| Host { groups: Groups::All, ..Host::at_place(place) };
        let hosts = (0..topology.hosts().len()).map(host).collect();
        EmulationPlan { topology, hosts, ..EmulationPlan::new() }
    }
}

impl Groups {
    /// Returns the groups in the list.
    pub(crate) fn listed(&self) -> &[IpAddr] {
        match self {
            Groups::These(groups) => groups,
            Groups::None | Groups::All | Groups::Joined => &[],
        }
    }
}

impl Host {
    /// Returns a host with addresses by its index, counted from 0. The host is in the emulator's namespace and a member of no
    /// group.
    fn at_place(place: usize) -> Host {
        let number = place as u32 % 0xffff + 1;
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(10, 9, 0, 0).to_bits() + number);
        let address6 =
            Ipv6Addr::from_bits(Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 0).to_bits() + u128::from(number));
        Host { address, address6, namespace: None, groups: Groups::None }
    }

    /// Returns the addresses of both versions.
    pub(crate) fn addresses(&self) -> [IpAddr; 2] {
        [self.address.into(), self.address6.into()]
    }
}

impl EmulationPlan {
    /// Returns an empty plan: MTU 1500, no overhead, random seed 1.
    pub fn new() -> EmulationPlan {
        EmulationPlan {
            mtu: 1500,
            overhead: 0,
            seed: 1,
            memory: memory::DEFAULT,
            unknown: Unknown::Prune,
            latencies: Vec::new(),
            topology: Topology::new(),
            hosts: Vec::new(),
        }
    }

    /// Returns whether hosts have IPv6 addresses, if their kernel has IPv6: the MTU must be 1280 bytes or more (RFC 8200, 5).
    pub const fn has_ipv6(&self) -> bool {
        self.mtu >= 1280
    }

    /// Adds a host, whose IPv6 address is derived from its index. `namespace` is the name of its network namespace, or `None` for the emulator's namespace.
    pub fn host(&mut self, name: &str, address: Ipv4Addr, namespace: Option<&str>, groups: Groups) -> NodeId {
        let node = self.topology.host();
        self.topology.rename(node, name);
        let host = Host::at_place(self.hosts.len());
        self.hosts.push(Host { address, namespace: namespace.map(str::to_owned), groups, ..host });
        node
    }

    /// Adds a router.
    pub fn router(&mut self, name: &str) -> NodeId {
        let node = self.topology.router();
        self.topology.rename(node, name);
        node
    }

    /// Adds a link between two nodes, with the properties of its two directions.
    pub fn link(&mut self, from: NodeId, to: NodeId, forth: LinkSpec, back: LinkSpec) {
        self.topology.duplex(from, to, forth, back);
    }

    /// Returns the hosts with their names, in the order of their numbers.
    pub fn hosts(&self) -> impl Iterator<Item = (String, &Host)> {
        let name = |node| self.topology.name(node).into_owned();
        self.topology.hosts().map(name).zip(&self.hosts)
    }

    /// Returns the hosts with their names, so that they can be changed.
    pub fn hosts_mut(&mut self) -> impl Iterator<Item = (String, &mut Host)> {
        let EmulationPlan { topology, hosts, .. } = self;
        topology.hosts().map(|node| topology.name(node).into_owned()).zip(hosts)
    }

    /// Returns the names of the links in the order of their numbers. Each direction has a name.
    pub fn link_names(&self) -> Vec<String> {
        let name = |node| self.topology.name(node);
        let edges = self.topology.edges().iter();
        edges.map(|edge| format!("{}>{}", name(edge.from), name(edge.to))).collect()
    }

    /// Estimates the memory of routes and links. The estimate tends to be too high. Packets use the remainder of
    /// [`EmulationPlan::memory`].
    pub fn estimate(&self) -> Estimate {
        let (hosts, nodes) = (self.hosts.len() as u64, u64::from(self.topology.nodes()));
        let named: u64 = self.hosts.iter().map(|host| host.groups.listed().len() as u64).sum();
        let tables = self.topology.edges().iter().map(|edge| memory::of_queue(&edge.spec.queue));
        let mut all = Estimate::new();
        all.add(nodes, "nodes", 200);
        all.add(self.topology.edges().len() as u64, "links", memory::LINK);
        all.add(tables.fold(0, u64::saturating_add), "bytes of queues' tables", 1);
        all.add(hosts.saturating_mul(nodes), "ways (hosts times nodes)", 4);
        let trees = hosts.saturating_mul(named + 1);
        all.add(trees.saturating_mul(nodes), "nodes of trees (hosts times groups times nodes)", 40);
        all
    }

    /// Parses a plan.
    ///
    /// # Errors
    /// Returns the first invalid line.
    pub fn parse(text: &str) -> Result<EmulationPlan, PlanError> {
        let mut plan = EmulationPlan::new();
        plan.topology = Topology::parse_with(text, &mut plan)?;
        Ok(plan)
    }
}

impl Dialect for EmulationPlan {
    const LINES: &'static str = "`mtu`, `overhead`, `seed`, `host`, `router`, `link`, `oneway`";

    fn line(&mut self, first: &str, words: &mut Words<'_>) -> Result<(), LineError> {
        match first {
            "mtu" => self.mtu = words.value("a number of bytes")?,
            "overhead" => self.overhead = words.value("a number of bytes")?,
            "seed" => self.seed = words.value("a whole number")?,
            _ => return Err(LineError::UnknownWord(Self::LINES)),
        }
        Ok(())
    }

    fn host(&mut self, _node: NodeId, words: &mut Words<'_>) -> Result<(), LineError> {
        let mut host = Host::at_place(self.hosts.len());
        for (place, option) in words.enumerate() {
            match option.split_once('=') {
                Some(("netns", name)) => host.namespace = Some(name.to_owned()),
                Some(("groups", list)) => host.groups = read_groups(list)?,
                None if place == 0 => {
                    let refuse = |_| LineError::Value { value: option.into(), expected: "an IPv4 address" };
                    host.address = option.parse().map_err(refuse)?;
                }
                _ => return Err(LineError::UnknownOption(option.into(), "`netns=` and `groups=`")),
            }
        }
        self.hosts.push(host);
        Ok(())
    }
}

fn read_groups(list: &str) -> Result<Groups, LineError> {
    let group = |text: &str| {
        let address = text.parse().ok().filter(IpAddr::is_multicast);
        let expected = "`all`, `none`, `joined` or multicast addresses joined by `+`";
        address.ok_or_else(|| LineError::Value { value: text.into(), expected })
    };
    match list {
        "none" => Ok(Groups::None),
        "all" => Ok(Groups::All),
        "joined" => Ok(Groups::Joined),
        list => Ok(Groups::These(list.split('+').map(group).collect::<Result<_, _>>()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_aqm::{Limit, LossSpec, QueueSpec};
    use faircast_core::time::{Rate, Span};
    use faircast_topology::FREE;

    #[test]
    fn parsed_plan_equals_the_built_plan() {
        let text = "
            mtu 1400   # for a tunnel
            overhead 18
            seed 7
            host left 10.9.0.1
            host right 10.9.0.2 netns=there groups=239.1.2.3+ff15::4
            router r
            link left r
            link r right rate=10M delay=20ms queue=droptail,50 jitter=1ms back rate=500k loss=bernoulli,0.25";
        let mut plan = EmulationPlan { mtu: 1400, overhead: 18, seed: 7, ..EmulationPlan::new() };
        let left = plan.host("left", Ipv4Addr::new(10, 9, 0, 1), None, Groups::None);
        let groups = ["239.1.2.3", "ff15::4"].map(|group| group.parse().expect("an address"));
        let there = Groups::These(groups.into());
        let right = plan.host("right", Ipv4Addr::new(10, 9, 0, 2), Some("there"), there);
        let r = plan.router("r");
        plan.link(left, r, FREE, FREE);
        let queue = QueueSpec::DropTail(Limit::Packets(50));
        let forth = LinkSpec::new(Rate::from_mbps(10.0), Span::from_millis(20), queue);
        let back = LinkSpec { rate: Rate::from_bps(5e5), loss: Some(LossSpec::Bernoulli(0.25)), ..forth };
        let jitter = Span::from_millis(1);
        plan.link(r, right, LinkSpec { jitter, ..forth }, LinkSpec { jitter, ..back });
        assert_eq!(EmulationPlan::parse(text), Ok(plan.clone()));
        assert_eq!(plan.link_names(), ["left>r", "r>left", "r>right", "right>r"]);
    }

    #[test]
    fn invalid_lines_are_reported_with_a_reason() {
        for (line, reason) in [
            ("hots a", "line 2, `hots a`: it must begin with one of"),
            ("host", "needs a name"),
            ("host b 10.0.0", "`10.0.0` is not an IPv4 address"),
            ("host a 10.0.0.2", "`a` exists already"),
            ("host b 10.0.0.2 groups=10.0.0.1", "`10.0.0.1` is not `all`"),
            ("host b 10.0.0.2 color=red", "`color=red` is not known here; expected: `netns=`"),
            ("link a", "needs two names"),
            ("link a c", "there is no node `c`"),
            ("link a a rate=10X", "option rate cannot be \"10X\""),
            ("link a a jitter=-5ms", "option jitter cannot be \"-5ms\""),
            ("link a a queue=green", "there is no queue \"green\""),
            ("link a a weight=3", "`weight=3` is not known here; expected: `rate=` `delay=` `jitter=`"),
            ("mtu", "needs a number of bytes"),
            ("mtu 70000", "`70000` is not a number of bytes"),
            ("router r r", "`r` is not known here; expected: no more words"),
        ] {
            let refused =
                EmulationPlan::parse(&format!("host a 10.0.0.1\n{line}")).expect_err(line).to_string();
            assert!(refused.contains(reason), "{line}: {refused}");
        }
    }

    #[test]
    fn hosts_of_a_topology_have_addresses_by_index() {
        let network =
            Topology::parse("host a\nrouter r\nhost b\nlink a r rate=1M\nlink r b").expect("it is right");
        let mut plan = EmulationPlan::from(network);
        let text = "host a 10.9.0.1 groups=all\nrouter r\nhost b groups=all\nlink a r rate=1M\nlink r b";
        assert_eq!(EmulationPlan::parse(text), Ok(plan.clone()));
        for (name, host) in plan.hosts_mut() {
            host.namespace = Some(name);
        }
        let places: Vec<_> =
            plan.hosts().map(|(_, host)| (host.addresses(), host.namespace.clone())).collect();
        let address =
            |last: u8| [[10, 9, 0, last].into(), Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, last.into()).into()];
        assert_eq!(places, [(address(1), Some("a".into())), (address(2), Some("b".into()))]);
    }
}
