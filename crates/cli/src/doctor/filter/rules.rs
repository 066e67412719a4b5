//! Rules of packet filters as far as they decide about one packet that comes unasked: chains, conditions, and the fate of the packet.

use std::net::IpAddr;

/// A packet as rules see it. Nothing of its connection is known to the filter.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub protocol: Protocol,
    pub to: IpAddr,
    /// Where it comes in or goes out.
    pub interface: &'a str,
}

/// The protocol above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// UDP to this port.
    Udp(u16),
    /// IGMP, or over IPv6 MLD: this message of it.
    Membership(Message),
}

/// A message about who is a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Query,
    Report,
}

/// Where chains are on a packet's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// To a program of this host.
    In,
    /// From one.
    Out,
    /// From one port of a bridge to another.
    Bridge,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fits {
    No,
    /// It depends on more than is known here.
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

/// The action of a rule on packets that it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Accept,
    Drop,
    /// On to this chain, and back.
    Jump(String),
    /// On to this chain for good.
    Goto(String),
    Return,
}

/// One rule, as it fits the packet.
#[derive(Debug, Clone)]
pub struct Rule {
    pub fits: Fits,
    pub target: Target,
    /// As the filter prints it.
    pub text: String,
    /// Takes it away; nothing where that would open more than this packet needs.
    pub removal: Option<String>,
}

/// A chain and its rules.
#[derive(Debug, Clone)]
pub struct Chain {
    pub name: String,
    /// Its table, as commands name it.
    pub table: String,
    pub hook: Option<Hook>,
    /// Whether its end drops packets, where it has a hook.
    pub policy_drops: bool,
    pub rules: Vec<Rule>,
}

/// The fate of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketDecision {
    Passes,
    /// A rule or policy drops it, unless an earlier rule accepts it by what is not known here.
    Dropped {
        by: Dropper,
        unless: bool,
    },
}

/// The rule or policy that drops a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropper {
    /// In words.
    pub what: String,
    /// The chain with the hook, and its table.
    pub base: String,
    pub table: String,
    /// Takes the rule away.
    pub removal: Option<String>,
}

/// The decision of a chain.
enum ChainDecision {
    Accepts,
    Drops(usize, usize),
    /// Nothing: it goes on behind the jump.
    Nothing,
}

/// No chain is deeper below its hook; more would be a circle.
const MAX_DEPTH: usize = 16;

/// The fate of a packet at this hook: it has to pass all base chains there.
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
                    said => return said,
                }
            }
        }
    }
    ChainDecision::Nothing
}

/// The parts of a list in braces, with commas.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.trim_matches(|c| matches!(c, '{' | '}' | ' ')).split(',').map(str::trim)
}

/// Whether a list of ports has this one: `5777`, `5000-6000`, `5000:6000`, several with commas, in braces.
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

/// Whether a list of addresses, prefixes and ranges has this one.
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

/// Whether an address or prefix covers this one.
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
    /// Whether it is of this protocol, as rules name it.
    pub fn is_of(&self, protocol: &str) -> Fits {
        let own: &[&str] = match (self.protocol, self.to.is_ipv4()) {
            (Protocol::Udp(_), _) => &["udp", "17"],
            (Protocol::Membership(_), true) => &["igmp", "2"],
            (Protocol::Membership(_), false) => &["icmpv6", "ipv6-icmp", "58"],
        };
        let any = ["all", "0"];
        Fits::of(listed(protocol).any(|name| own.contains(&name) || any.contains(&name)))
    }

    /// Whether it goes to one of these ports.
    pub fn goes_to(&self, ports: &str) -> Fits {
        match self.protocol {
            Protocol::Udp(port) => has_port(ports, port),
            Protocol::Membership(_) => Fits::No,
        }
    }

    /// Whether it is one of these messages of IGMP or ICMPv6.
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

    /// Whether it is on the interface of this name, or of one that begins so.
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
