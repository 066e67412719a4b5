//! Parser of the output of `nft -a list ruleset`.

use super::rules::{Chain, Fits, Hook, Packet, Rule, Target, has_address, listed};
use std::iter::Peekable;

/// Returns the chains of the tables of `nft`. The tables of `iptables-nft` are omitted.
pub fn chains(text: &str, packet: &Packet<'_>) -> Vec<Chain> {
    let (mut chains, mut table, mut open): (Vec<Chain>, _, Option<Chain>) = (Vec::new(), String::new(), None);
    let mut is_of_iptables = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("# Warning: table") {
            is_of_iptables = true;
            continue;
        }
        let (line, handle) = line.split_once(" # handle ").unwrap_or((line, ""));
        let line = line.trim_end_matches('{').trim();
        if let Some(name) = line.strip_prefix("table ") {
            name.clone_into(&mut table);
        } else if let Some(name) = line.strip_prefix("chain ") {
            let (name, table, rules) = (name.to_owned(), table.clone(), Vec::new());
            open = Some(Chain { name, table, hook: None, policy_drops: false, rules });
        } else if line == "}" {
            match open.take() {
                Some(chain) if !is_of_iptables && carries(&chain.table, packet) => chains.push(chain),
                Some(_) => {}
                None => is_of_iptables = false,
            }
        } else if let Some(chain) = &mut open {
            if line.starts_with("type ") {
                chain.hook = hook(&chain.table, line);
                chain.policy_drops = line.contains("policy drop");
            } else if let Some(rule) = rule(line, handle, chain, packet) {
                chain.rules.push(rule);
            }
        }
    }
    chains
}

/// Whether packets of this address family pass through the table.
fn carries(table: &str, packet: &Packet<'_>) -> bool {
    match table.split_whitespace().next() {
        Some("ip") => packet.to.is_ipv4(),
        Some("ip6") => packet.to.is_ipv6(),
        Some("inet" | "netdev" | "bridge") => true,
        _ => false,
    }
}

fn hook(table: &str, line: &str) -> Option<Hook> {
    if !line.starts_with("type filter") {
        return None;
    }
    let mut words = line.split_whitespace().skip_while(|word| *word != "hook").skip(1);
    match (table.starts_with("bridge "), words.next()?) {
        (true, "forward" | "prerouting") => Some(Hook::Bridge),
        (false, "input" | "ingress" | "prerouting") => Some(Hook::In),
        (false, "output" | "postrouting" | "egress") => Some(Hook::Out),
        _ => None,
    }
}

/// Splits a rule into words. Text in braces or quotes is one word.
fn words(line: &str) -> Vec<&str> {
    let (mut words, mut begin, mut braces, mut quoted) = (Vec::new(), 0, 0, false);
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '{' => braces += 1,
            '}' => braces -= 1,
            c if c.is_whitespace() && braces == 0 && !quoted => {
                words.push(&line[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[begin..]);
    words.retain(|word| !word.is_empty());
    words
}

/// Words that name the action of a rule.
const VERDICTS: [&str; 6] = ["accept", "drop", "reject", "return", "jump", "goto"];

/// Reader of a rule. It holds the words that have not been read. All words that have been read are conditions.
struct Reader<'a> {
    words: Peekable<std::vec::IntoIter<&'a str>>,
    packet: &'a Packet<'a>,
    hook: Option<Hook>,
    /// Whether the rule names a port, an address or a protocol.
    is_narrow: bool,
}

fn rule(line: &str, handle: &str, chain: &Chain, packet: &Packet<'_>) -> Option<Rule> {
    let words = words(line).into_iter().peekable();
    let mut reader = Reader { words, packet, hook: chain.hook, is_narrow: false };
    let mut fits = Fits::Yes;
    let target = loop {
        let word = reader.words.next()?;
        if VERDICTS.contains(&word) {
            break target(word, reader.words.next())?;
        }
        match reader.condition(word) {
            Condition::Fits(holds) => fits = fits.min(holds),
            Condition::Decides(target) => break target,
        }
    };
    let removal =
        reader.is_narrow.then(|| format!("nft delete rule {} {} handle {handle}", chain.table, chain.name));
    Some(Rule { fits, target, text: line.to_owned(), removal })
}

fn target(word: &str, name: Option<&str>) -> Option<Target> {
    Some(match word {
        "accept" => Target::Accept,
        "drop" | "reject" => Target::Drop,
        "return" => Target::Return,
        "jump" => Target::Jump(name?.to_owned()),
        _ => Target::Goto(name?.to_owned()),
    })
}

/// Result of a condition.
enum Condition {
    Fits(Fits),
    /// A map assigns this action to the packet.
    Decides(Target),
}

impl Reader<'_> {
    fn condition(&mut self, word: &str) -> Condition {
        let packet = self.packet;
        let is_in = self.hook != Some(Hook::Out);
        Condition::Fits(match word {
            "udp" | "tcp" | "igmp" | "icmp" | "icmpv6" | "sctp" | "dccp" | "th" => self.transport(word),
            "l4proto" | "protocol" | "nexthdr" => self.narrow(|text| packet.is_of(text)),
            "daddr" => self.narrow(|text| has_address(text, packet.to)),
            "ip" => Fits::of(packet.to.is_ipv4()),
            "ip6" => Fits::of(packet.to.is_ipv6()),
            "nfproto" => self.value(|text| Fits::of((text == "ipv4") == packet.to.is_ipv4())),
            "iif" | "iifname" if is_in => return self.keyed(|text| packet.is_on(text)),
            "oif" | "oifname" if !is_in => return self.keyed(|text| packet.is_on(text)),
            "pkttype" => self.value(|text| Fits::of((text == "multicast") == packet.to.is_multicast())),
            "ct" if self.words.peek() == Some(&"state") => {
                self.words.next();
                return self.keyed(|text| Fits::of(listed(text).any(|state| state == "new")));
            }
            "fib" => {
                while self.words.next_if(|word| !VERDICTS.contains(word)).is_some() {}
                Fits::Perhaps
            }
            "counter" | "meta" | "log" => Fits::Yes,
            "packets" | "bytes" | "prefix" | "comment" | "level" | "group" => {
                self.words.next();
                Fits::Yes
            }
            _ => Fits::Perhaps,
        })
    }

    /// Reads a condition on a protocol and optionally on a field of its header.
    fn transport(&mut self, protocol: &str) -> Fits {
        let packet = self.packet;
        let own = if protocol == "th" { Fits::Yes } else { packet.is_of(protocol) };
        let holds = match self.words.next_if(|word| matches!(*word, "dport" | "sport" | "type")) {
            Some("dport") => self.narrow(|text| packet.goes_to(text)),
            Some("type") => self.narrow(|text| packet.is_message(text)),
            Some(_) => self.value(|_| Fits::Perhaps),
            None => Fits::Yes,
        };
        own.min(holds)
    }

    /// Reads a condition on a port, an address or a protocol, and marks the rule as narrow.
    fn narrow(&mut self, holds: impl Fn(&str) -> Fits) -> Fits {
        self.is_narrow = true;
        self.value(holds)
    }

    fn value(&mut self, holds: impl Fn(&str) -> Fits) -> Fits {
        let negated = self.words.next_if_eq(&"!=").is_some();
        let fits = self.words.next().map_or(Fits::Perhaps, holds);
        if negated { fits.negated() } else { fits }
    }

    /// Reads a value, or a map from values to actions.
    fn keyed(&mut self, holds: impl Fn(&str) -> Fits) -> Condition {
        if self.words.next_if_eq(&"vmap").is_none() {
            return Condition::Fits(self.value(holds));
        }
        let map = self.words.next().unwrap_or("");
        let mut entries = listed(map).filter_map(|entry| entry.split_once(" : "));
        let does = entries.find(|(key, _)| holds(key) == Fits::Yes).and_then(|(_, does)| {
            let mut words = does.split_whitespace();
            target(words.next()?, words.next())
        });
        does.map_or(Condition::Fits(Fits::No), Condition::Decides)
    }
}
