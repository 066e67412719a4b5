//! Model of packet filters: chains, rules, and the decision about one unsolicited packet.

use std::net::IpAddr;

/// The properties of a packet that rules examine. The packet belongs to no connection that the filter has recorded.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub protocol: Protocol,
    pub to: IpAddr,
    /// Name of the incoming or outgoing interface.
    pub interface: &'a str,
}

/// Protocol above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// UDP, with this destination port.
    Udp(u16),
    /// IGMP, or MLD over IPv6, with this message.
    Membership(Message),
}

/// A message about group membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Query,
    Report,
}

/// Position of chains on a packet's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Packets to a program of this host.
    In,
    /// Packets from a program of this host.
    Out,
    /// Packets between two ports of a bridge.
    Bridge,
}

/// Whether a condition holds for the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fits {
    No,
    /// The condition depends on unknown facts.
    Perhaps,
    Yes,
}

impl Fits {
    pub fn of(holds: bool) -> Fits {
        if holds { Fits::Yes } else { Fits::No }
    }

    pub fn negated(self) -> Fits {
        match self {
            Fits::No => Fits::Yes,
            Fits::Perhaps => Fits::Perhaps,
            Fits::Yes => Fits::No,
        }
    }
}

/// The action of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Accept,
    Drop,
    /// Continues in this chain, and returns at its end.
    Jump(String),
    /// Continues in this chain, and does not return.
    Goto(String),
    Return,
}

/// A rule, evaluated for the packet.
#[derive(Debug, Clone)]
pub struct Rule {
    pub fits: Fits,
    pub target: Target,
    /// The rule as the filter prints it.
    pub text: String,
    /// Command that deletes the rule; `None` if the rule also concerns other packets.
    pub removal: Option<String>,
}

/// A chain and its rules.
#[derive(Debug, Clone)]
pub struct Chain {
    pub name: String,
    /// The table's name in commands.
    pub table: String,
    pub hook: Option<Hook>,
    /// Whether the policy of the chain is drop. `false` for a chain without a hook.
    pub policy_drops: bool,
    pub rules: Vec<Rule>,
}

/// Decision about a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketDecision {
    Passes,
    /// A rule or policy drops the packet. If `unless` is set, an earlier rule may accept the packet under a condition that doctor
    /// cannot evaluate.
    Dropped {
        by: Dropper,
        unless: bool,
    },
}

/// The rule or policy that drops a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropper {
    /// Description of the rule or policy.
    pub what: String,
    /// Name of the base chain. `table` is the name of its table.
    pub base: String,
    pub table: String,
    /// Command that deletes the rule.
    pub removal: Option<String>,
}

/// Result of a chain.
enum ChainDecision {
    Accepts,
    Drops(usize, usize),
    /// No decision: evaluation continues after the jump.
    Nothing,
}

/// Maximum depth of jumps, which ends circular jumps.
const MAX_DEPTH: usize = 16;

/// Returns the decision about a packet at this hook. The packet passes only if all base chains accept it.
pub fn fate(chains: &[Chain], hook: Hook) -> PacketDecision {
    for base in chains.iter().filter(|chain| chain.hook == Some(hook)) {
        let mut unless = false;
        let by = match walk(chains, base, Fits::Yes, &mut unless, 0) {
            ChainDecision::Accepts => continue,
            ChainDecision::Nothing if !base.policy_drops => continue,
            ChainDecision::Nothing => {
                let what = format!("the policy of chain {} in table {} is drop", base.name, base.table);
                Dropper { what, base: base.name.clone(), table: base.table.clone(), removal: None }
            }
            ChainDecision::Drops(chain, rule) => {
                let (chain, base) = (&chains[chain], base.name.clone());
                let rule = &chain.rules[rule];
                let what = format!("`{}` of chain {} in table {}", rule.text, chain.name, chain.table);
                Dropper { what, base, table: chain.table.clone(), removal: rule.removal.clone() }
            }
        };
        return PacketDecision::Dropped { by, unless };
    }
    PacketDecision::Passes
}

fn walk(chains: &[Chain], chain: &Chain, sure: Fits, unless: &mut bool, depth: usize) -> ChainDecision {
    let below = |name: &str| chains.iter().find(|other| other.name == name && other.table == chain.table);
    for (at, rule) in chain.rules.iter().enumerate() {
        let fits = rule.fits.min(sure);
        match (&rule.target, fits) {
            (_, Fits::No) => {}
            (Target::Accept, Fits::Yes) => return ChainDecision::Accepts,
            (Target::Accept, Fits::Perhaps) => *unless = true,
            (Target::Drop, Fits::Yes) => {
                let place = chains.iter().position(|other| std::ptr::eq(other, chain)).unwrap_or(0);
                return ChainDecision::Drops(place, at);
            }
            (Target::Return, Fits::Yes) => return ChainDecision::Nothing,
            (Target::Drop | Target::Return, Fits::Perhaps) => {}
            (Target::Jump(name) | Target::Goto(name), _) => {
                let Some(next) = below(name).filter(|_| depth < MAX_DEPTH) else { continue };
                match walk(chains, next, fits, unless, depth + 1) {
                    ChainDecision::Nothing if matches!(rule.target, Target::Goto(_)) && fits == Fits::Yes => {
                        return ChainDecision::Nothing;
                    }
                    ChainDecision::Nothing => {}
                    verdict => return verdict,
                }
            }
        }
    }
    ChainDecision::Nothing
}

/// Returns the items of a comma-separated list, with or without braces.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.trim_matches(|c| matches!(c, '{' | '}' | ' ')).split(',').map(str::trim)
}

/// Whether `text` contains `port`. The text is a port, a range (`5000-6000`, `5000:6000`), or a comma-separated list, with or
/// without braces.
pub fn has_port(text: &str, port: u16) -> Fits {
    if text.starts_with('@') {
        return Fits::Perhaps;
    }
    let has = |part: &str| {
        let (low, high) = part.split_once(['-', ':']).unwrap_or((part, part));
        let (Ok(low), Ok(high)) = (low.parse::<u16>(), high.parse::<u16>()) else { return false };
        (low..=high).contains(&port)
    };
    Fits::of(listed(text).any(has))
}

/// Whether a list of addresses, prefixes and ranges contains `address`.
pub fn has_address(text: &str, address: IpAddr) -> Fits {
    if text.starts_with('@') {
        return Fits::Perhaps;
    }
    Fits::of(listed(text).any(|part| {
        match part.split_once('-') {
            Some((low, high)) => {
                low.parse::<IpAddr>().is_ok_and(|low| low <= address)
                    && high
                        .parse::<IpAddr>()
                        .is_ok_and(|high| address <= high && high.is_ipv4() == address.is_ipv4())
            }
            None => covers(part, address),
        }
    }))
}

/// Whether an address or prefix contains `address`.
fn covers(text: &str, address: IpAddr) -> bool {
    let (prefix, length) =
        text.split_once('/').map_or((text, None), |(prefix, length)| (prefix, Some(length)));
    let bits = |most: u32| length.and_then(|length| length.parse::<u32>().ok()).unwrap_or(most).min(most);
    match (prefix.parse::<IpAddr>(), address) {
        (Ok(IpAddr::V4(prefix)), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - bits(32)).unwrap_or(0);
            u32::from(prefix) & mask == u32::from(address) & mask
        }
        (Ok(IpAddr::V6(prefix)), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - bits(128)).unwrap_or(0);
            u128::from(prefix) & mask == u128::from(address) & mask
        }
        _ => false,
    }
}

impl Packet<'_> {
    /// Whether the packet has this protocol.
    pub fn is_of(&self, protocol: &str) -> Fits {
        let own: &[&str] = match (self.protocol, self.to.is_ipv4()) {
            (Protocol::Udp(_), _) => &["udp", "17"],
            (Protocol::Membership(_), true) => &["igmp", "2"],
            (Protocol::Membership(_), false) => &["icmpv6", "ipv6-icmp", "58"],
        };
        let any = ["all", "0"];
        Fits::of(listed(protocol).any(|name| own.contains(&name) || any.contains(&name)))
    }

    /// Whether the packet's destination port is one of `ports`.
    pub fn goes_to(&self, ports: &str) -> Fits {
        match self.protocol {
            Protocol::Udp(port) => has_port(ports, port),
            Protocol::Membership(_) => Fits::No,
        }
    }

    /// Whether the packet is an IGMP or ICMPv6 message of one of `types`.
    pub fn is_message(&self, types: &str) -> Fits {
        let names: &[&str] = match (self.protocol, self.to.is_ipv4()) {
            (Protocol::Udp(_), _) => return Fits::No,
            (Protocol::Membership(Message::Query), true) => &["membership-query", "17"],
            (Protocol::Membership(Message::Report), true) => &["membership-report-v3", "34"],
            (Protocol::Membership(Message::Query), false) => &["mld-listener-query", "130"],
            (Protocol::Membership(Message::Report), false) => &["mld2-listener-report", "143"],
        };
        Fits::of(listed(types).any(|name| names.contains(&name)))
    }

    /// Whether the packet's interface is one of `names`. A final `*` or `+` of a name matches any ending.
    pub fn is_on(&self, names: &str) -> Fits {
        Fits::of(listed(names).any(|name| {
            let name = name.trim_matches('"');
            match name.strip_suffix(['*', '+']) {
                Some(begin) => self.interface.starts_with(begin),
                None => self.interface == name,
            }
        }))
    }
}
