//! What is emulated: hosts, routers and the links between them.
//!
//! A plan is built by calls or read from text, one thing a line, `#` for remarks:
//!
//! ```text
//! mtu 1500                 # largest IP packet; 1500 if not said
//! overhead 0               # bytes that every packet takes on a link beside its IP packet
//! seed 1                   # of losses and random drops
//! host left 10.9.0.1 netns=left
//! host right 10.9.0.2 netns=right groups=all
//! router r
//! link left r
//! link r right rate=10M delay=20ms queue=droptail,50 loss=bernoulli,0.01 back rate=1M delay=20ms
//! ```
//!
//! `netns` is the name of the network namespace, else the host is where the emulator is; `groups` is `all`, `none` (if
//! not said) or addresses joined by `+`: what the host is a member of. A link's options count for both directions; behind
//! `back` they change the way from the second to the first. Without options a link has no limit, no delay and an
//! endless queue. Queues and losses are written as [`faircast_aqm::QueueSpec`] and [`faircast_aqm::LossSpec`] say. `jitter=1ms` delays each packet by up to
//! so much more, without reordering: real hosts are not as regular as emulated links, and without it a full drop-tail
//! queue may always drop the same flow's packets, because they always come at the same time after a departure.

use faircast_aqm::{LinkSpec, LossSpec, QueueSpec};
use faircast_core::spec::SpecError;
use faircast_core::time::{Rate, Span};
use std::net::Ipv4Addr;

/// A host or router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u16);

/// What is emulated.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulationPlan {
    /// The largest IP packet, in bytes.
    pub mtu: u16,
    /// Bytes that every packet takes on a link beside its IP packet.
    pub overhead: u16,
    /// Seed of losses and random drops.
    pub seed: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) cables: Vec<Cable>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// `None` for a router.
    pub(crate) host: Option<Host>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Host {
    pub(crate) address: Ipv4Addr,
    pub(crate) namespace: Option<String>,
    pub(crate) groups: Groups,
}

/// Which multicast groups a host gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Groups {
    /// None.
    #[default]
    None,
    /// Whatever is sent.
    All,
    /// These.
    These(Vec<Ipv4Addr>),
}

/// Both directions between two nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cable {
    pub(crate) ends: [NodeId; 2],
    /// From the first to the second, and back.
    pub(crate) ways: [Way; 2],
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way {
    /// Rate, delay, queue and loss.
    pub link: LinkSpec,
    /// Each packet is delayed by a random time up to this, but never overtakes.
    pub jitter: Span,
}

impl From<LinkSpec> for Way {
    fn from(link: LinkSpec) -> Way {
        Way { link, jitter: Span::ZERO }
    }
}

/// A link without limit and delay.
pub const FREE: LinkSpec =
    LinkSpec { rate: Rate::UNLIMITED, delay: Span::ZERO, queue: QueueSpec::UNLIMITED, loss: None };

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A line of the text.
    #[error("line {number}, `{line}`: {what}")]
    Line {
        /// Counted from 1.
        number: usize,
        /// As written.
        line: String,
        /// What is wrong.
        what: LineError,
    },
    /// Two hosts have one address.
    #[error("{first} and {second} have the same address, {address}")]
    SameAddress {
        /// A host.
        first: String,
        /// Another.
        second: String,
        /// The address of both.
        address: Ipv4Addr,
    },
    /// There is no host.
    #[error("there is no host; a plan needs at least one `host NAME ADDRESS`")]
    NoHost,
}

/// What is wrong with a line of a plan's text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LineError {
    /// It begins with none of the words.
    #[error("begins with none of `mtu`, `overhead`, `seed`, `host`, `router`, `link`")]
    UnknownWord,
    /// Something is missing.
    #[error("needs {0}")]
    Missing(&'static str),
    /// An option that is not known here.
    #[error("`{0}` is not known here; there are {1}")]
    UnknownOption(String, &'static str),
    /// A value that is none.
    #[error("`{value}` is not {expected}")]
    Value {
        /// As written.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A name that is taken.
    #[error("there is a `{0}` already")]
    Twice(String),
    /// A link to nowhere.
    #[error("there is no `{0}`; hosts and routers stand before their links")]
    NoNode(String),
    /// A queue or a loss.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Default for EmulationPlan {
    fn default() -> EmulationPlan {
        EmulationPlan::new()
    }
}

impl EmulationPlan {
    /// Nothing yet; an MTU of 1500, no overhead, seed 1.
    pub const fn new() -> EmulationPlan {
        EmulationPlan { mtu: 1500, overhead: 0, seed: 1, nodes: Vec::new(), cables: Vec::new() }
    }

    /// A host, in a network namespace or in the emulator's own.
    pub fn host(&mut self, name: &str, address: Ipv4Addr, namespace: Option<&str>, groups: Groups) -> NodeId {
        let namespace = namespace.map(str::to_owned);
        self.node(name, Some(Host { address, namespace, groups }))
    }

    /// A router.
    pub fn router(&mut self, name: &str) -> NodeId {
        self.node(name, None)
    }

    /// A link between two nodes: how it is from the first to the second, and back.
    pub fn link(&mut self, from: NodeId, to: NodeId, forth: impl Into<Way>, back: impl Into<Way>) {
        self.cables.push(Cable { ends: [from, to], ways: [forth.into(), back.into()] });
    }

    /// Names of the links in the order of their numbers, both directions of each.
    pub fn link_names(&self) -> Vec<String> {
        let name = |node: NodeId| &self.nodes[usize::from(node.0)].name;
        let both = |cable: &Cable| {
            let [a, b] = cable.ends;
            [format!("{}>{}", name(a), name(b)), format!("{}>{}", name(b), name(a))]
        };
        self.cables.iter().flat_map(both).collect()
    }

    fn node(&mut self, name: &str, host: Option<Host>) -> NodeId {
        self.nodes.push(Node { name: name.to_owned(), host });
        NodeId(u16::try_from(self.nodes.len() - 1).expect("a plan has fewer than 65,536 nodes"))
    }

    /// Read a plan.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<EmulationPlan, PlanError> {
        let mut plan = EmulationPlan::new();
        for (at, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or("");
            let mut words = content.split_whitespace();
            let Some(first) = words.next() else { continue };
            plan.read_line(first, &mut words).map_err(|what| PlanError::Line {
                number: at + 1,
                line: content.trim().to_owned(),
                what,
            })?;
        }
        Ok(plan)
    }

    fn read_line<'a>(
        &mut self,
        first: &str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), LineError> {
        match first {
            "mtu" => self.mtu = number(words, "a number of bytes")?,
            "overhead" => self.overhead = number(words, "a number of bytes")?,
            "seed" => self.seed = number(words, "a whole number")?,
            "host" => {
                let name = self.new_name(words)?;
                let address = number(words, "an IPv4 address")?;
                let (mut namespace, mut groups) = (None, Groups::None);
                for option in words.by_ref() {
                    match option.split_once('=') {
                        Some(("netns", name)) => namespace = Some(name),
                        Some(("groups", list)) => groups = read_groups(list)?,
                        _ => return Err(LineError::UnknownOption(option.into(), "`netns=` and `groups=`")),
                    }
                }
                self.host(&name, address, namespace, groups);
            }
            "router" => {
                let name = self.new_name(words)?;
                self.router(&name);
            }
            "link" => {
                let (from, to) = (self.known(words)?, self.known(words)?);
                let (forth, back) = read_link(words)?;
                self.link(from, to, forth, back);
            }
            _ => return Err(LineError::UnknownWord),
        }
        match words.next() {
            None => Ok(()),
            Some(more) => Err(LineError::UnknownOption(more.into(), "no more words")),
        }
    }

    fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(|at| NodeId(at as u16))
    }

    fn new_name<'a>(&self, words: &mut impl Iterator<Item = &'a str>) -> Result<String, LineError> {
        let name = words.next().ok_or(LineError::Missing("a name"))?;
        if self.find(name).is_some() { Err(LineError::Twice(name.into())) } else { Ok(name.into()) }
    }

    fn known<'a>(&self, words: &mut impl Iterator<Item = &'a str>) -> Result<NodeId, LineError> {
        let name = words.next().ok_or(LineError::Missing("two names"))?;
        self.find(name).ok_or_else(|| LineError::NoNode(name.into()))
    }
}

fn number<'a, T: std::str::FromStr>(
    words: &mut impl Iterator<Item = &'a str>,
    expected: &'static str,
) -> Result<T, LineError> {
    let value = words.next().ok_or(LineError::Missing(expected))?;
    value.parse().map_err(|_| LineError::Value { value: value.into(), expected })
}

fn read_groups(list: &str) -> Result<Groups, LineError> {
    let group = |text: &str| {
        let address = text.parse::<Ipv4Addr>().ok().filter(Ipv4Addr::is_multicast);
        let expected = "`all`, `none` or IPv4 multicast addresses joined by `+`";
        address.ok_or_else(|| LineError::Value { value: text.into(), expected })
    };
    match list {
        "none" => Ok(Groups::None),
        "all" => Ok(Groups::All),
        list => Ok(Groups::These(list.split('+').map(group).collect::<Result<_, _>>()?)),
    }
}

/// The options of a link: there, and back.
fn read_link<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<(Way, Way), LineError> {
    let (mut there, mut back) = (Way::from(FREE), None);
    for option in words {
        if option == "back" {
            back = Some(there);
            continue;
        }
        let way = back.as_mut().unwrap_or(&mut there);
        let spec = &mut way.link;
        match option.split_once('=') {
            Some(("rate", rate)) => spec.rate = read_rate(rate)?,
            Some(("delay", delay)) => spec.delay = read_span(delay)?,
            Some(("jitter", jitter)) => way.jitter = read_span(jitter)?,
            Some(("queue", queue)) => spec.queue = queue.parse::<QueueSpec>()?,
            Some(("loss", loss)) => spec.loss = Some(loss.parse::<LossSpec>()?),
            _ => {
                let known = "`rate=` `delay=` `jitter=` `queue=` `loss=` and `back`";
                return Err(LineError::UnknownOption(option.into(), known));
            }
        }
    }
    Ok((there, back.unwrap_or(there)))
}

/// A number with one of these units.
fn read_scaled(text: &str, units: &[(&str, f64)], expected: &'static str) -> Result<f64, LineError> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let value = factor.and_then(|factor| Some(number.parse::<f64>().ok()? * factor));
    let usable = value.filter(|value| value.is_finite() && *value >= 0.0);
    usable.ok_or_else(|| LineError::Value { value: text.into(), expected })
}

fn read_rate(text: &str) -> Result<Rate, LineError> {
    if text == "unlimited" {
        return Ok(Rate::UNLIMITED);
    }
    let units = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let expected = "a bit rate above 0 (`500k`, `10M`, `1G`) or `unlimited`";
    let bps = read_scaled(text, &units, expected)?;
    if bps > 0.0 { Ok(Rate::from_bps(bps)) } else { Err(LineError::Value { value: text.into(), expected }) }
}

fn read_span(text: &str) -> Result<Span, LineError> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    Ok(Span::from_secs_f64(read_scaled(text, &units, "a time (`500us`, `20ms`, `1s`)")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_aqm::Limit;

    #[test]
    fn a_plan_reads_as_it_would_be_built() {
        let text = "
            mtu 1400   # for a tunnel
            overhead 18
            seed 7
            host left 10.9.0.1
            host right 10.9.0.2 netns=there groups=239.1.2.3+239.1.2.4
            router r
            link left r
            link r right rate=10M delay=20ms queue=droptail,50 jitter=1ms back rate=500k loss=bernoulli,0.25";
        let mut plan = EmulationPlan { mtu: 1400, overhead: 18, seed: 7, ..EmulationPlan::new() };
        let left = plan.host("left", Ipv4Addr::new(10, 9, 0, 1), None, Groups::None);
        let groups = [Ipv4Addr::new(239, 1, 2, 3), Ipv4Addr::new(239, 1, 2, 4)];
        let there = Groups::These(groups.into());
        let right = plan.host("right", Ipv4Addr::new(10, 9, 0, 2), Some("there"), there);
        let r = plan.router("r");
        plan.link(left, r, FREE, FREE);
        let queue = QueueSpec::DropTail(Limit::Packets(50));
        let forth = LinkSpec { rate: Rate::from_mbps(10.0), delay: Span::from_millis(20), queue, loss: None };
        let back = LinkSpec { rate: Rate::from_bps(5e5), loss: Some(LossSpec::Bernoulli(0.25)), ..forth };
        let jitter = Span::from_millis(1);
        plan.link(r, right, Way { link: forth, jitter }, Way { link: back, jitter });
        assert_eq!(EmulationPlan::parse(text), Ok(plan.clone()));
        assert_eq!(plan.link_names(), ["left>r", "r>left", "r>right", "right>r"]);
    }

    #[test]
    fn wrong_lines_are_named_with_their_reason() {
        for (line, reason) in [
            ("hots a", "line 2, `hots a`: begins with none of"),
            ("host", "needs a name"),
            ("host b", "needs an IPv4 address"),
            ("host b 10.0.0", "`10.0.0` is not an IPv4 address"),
            ("host a 10.0.0.2", "there is a `a` already"),
            ("host b 10.0.0.2 groups=10.0.0.1", "`10.0.0.1` is not `all`"),
            ("host b 10.0.0.2 color=red", "`color=red` is not known here; there are `netns=`"),
            ("link a", "needs two names"),
            ("link a c", "there is no `c`"),
            ("link a a rate=10X", "`10X` is not a bit rate"),
            ("link a a rate=0", "`0` is not a bit rate"),
            ("link a a rate=-1M", "`-1M` is not a bit rate"),
            ("link a a delay=5", "`5` is not a time"),
            ("link a a queue=codel", "there is no queue \"codel\""),
            ("link a a weight=3", "`weight=3` is not known here"),
            ("mtu", "needs a number of bytes"),
            ("mtu 70000", "`70000` is not a number of bytes"),
            ("router r r", "`r` is not known here; there are no more words"),
        ] {
            let refused =
                EmulationPlan::parse(&format!("host a 10.0.0.1\n{line}")).expect_err(line).to_string();
            assert!(refused.contains(reason), "{line}: {refused}");
        }
    }
}
