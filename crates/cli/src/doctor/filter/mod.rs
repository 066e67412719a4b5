//! Checks whether packet filters accept the packets of sources and receivers. If packets would be dropped, advises commands that
//! make the filters accept these packets.

mod iptables;
mod nft;
mod rules;

use super::{Check, Verdict};
use faircast::config::RELAY_PORT;
use faircast_net::Choice;
use rules::{Chain, Dropper, Hook, Message, Packet, PacketDecision, Protocol, fate};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// The rules of this host, as printed by programs.
enum Rules {
    /// The rules cannot be read: this user lacks the permission.
    Unread,
    /// Neither `nft` nor `iptables` is installed.
    NoProgram,
    /// The output of `nft` and of `program`, which is `iptables` or `ip6tables`.
    Read { nft: Option<String>, iptables: Option<String>, program: &'static str },
}

/// Checks the packet filters for the packets of a session. `silent` states that the self-test received no datagram from the
/// group.
pub fn checks(group: SocketAddr, choice: &Choice, silent: bool) -> Vec<Check> {
    judged(&Rules::read(group.ip()), group, choice, silent)
}

fn judged(rules: &Rules, group: SocketAddr, choice: &Choice, silent: bool) -> Vec<Check> {
    let why = match rules {
        Rules::NoProgram => "nft and iptables are not installed; most likely there are no rules",
        Rules::Unread => "only root can read the rules of the packet filter",
        Rules::Read { .. } => {
            let port = group.port();
            let mut checks = data(rules, group, choice, silent);
            if checks.is_empty() {
                let found = format!("no rule drops UDP to port {port}, from the group or from receivers");
                checks.push(Check::new("firewall", Verdict::Ok, found));
            }
            checks.extend(membership(rules, group.ip(), choice));
            return checks;
        }
    };
    vec![Check::new("firewall", Verdict::Note, why).advise(rules_to_add(group.port()))]
}

/// Returns the rules for each role, as commands for `nft`, firewalld and ufw.
fn rules_to_add(port: u16) -> String {
    format!(
        "sources and receivers of a group, one rule:\n\
         nft add rule inet filter input udp dport {port} accept\n\
         firewall-cmd --add-port={port}/udp\n\
         ufw allow {port}/udp\n\
         hosts that serve by unicast or wait for an invitation (--listen): the same rule with port {RELAY_PORT}"
    )
}

/// Checks the rules for data packets to a receiver and for answers to a source.
fn data(rules: &Rules, group: SocketAddr, choice: &Choice, silent: bool) -> Vec<Check> {
    let port = group.port();
    let packet = |to| Packet { protocol: Protocol::Udp(port), to, interface: &choice.chosen.name };
    let mut checks = Vec::new();
    match (rules.fate(&packet(group.ip()), Hook::In), silent) {
        (PacketDecision::Dropped { by, .. }, true) => checks.push(
            Check::new("firewall", Verdict::Fail, format!("a packet filter drops it: {}", by.what))
                .advise(rules.mend(&by, &packet(group.ip()), Hook::In)),
        ),
        // The self-test has received packets of this host, but the rules may still drop packets of other hosts.
        (PacketDecision::Dropped { by, .. }, false) => checks.push(
            Check::new(
                "firewall",
                Verdict::Warn,
                format!("a packet filter may drop data from other hosts: {}", by.what),
            )
            .advise(rules.mend(&by, &packet(group.ip()), Hook::In)),
        ),
        (PacketDecision::Passes, true) => checks.push(Check::new(
            "firewall",
            Verdict::Note,
            "no rule that drops these packets was found; check the rules that have further conditions",
        )),
        (PacketDecision::Passes, false) => {}
    }
    if let PacketDecision::Dropped { by, unless } = rules.fate(&packet(choice.local), Hook::In) {
        let (verdict, may) = if unless { (Verdict::Warn, "may drop") } else { (Verdict::Fail, "drops") };
        let found = format!(
            "as a source: a packet filter {may} the answers of receivers to port {port}: {}",
            by.what
        );
        checks.push(Check::new("firewall", verdict, found).advise(rules.mend(
            &by,
            &packet(choice.local),
            Hook::In,
        )));
    }
    checks
}

/// Checks the rules for IGMP and MLD messages.
fn membership(rules: &Rules, group: IpAddr, choice: &Choice) -> Vec<Check> {
    let (name, all, routers): (_, IpAddr, IpAddr) = match group {
        IpAddr::V4(_) => ("IGMP", Ipv4Addr::new(224, 0, 0, 1).into(), Ipv4Addr::new(224, 0, 0, 22).into()),
        IpAddr::V6(_) => (
            "MLD",
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16).into(),
        ),
    };
    let interface = choice.chosen.name.as_str();
    let packet = |message, to| Packet { protocol: Protocol::Membership(message), to, interface };
    let cases = [
        (
            Hook::In,
            packet(Message::Query, all),
            "queries, so switches and routers remove the memberships of this host after minutes",
        ),
        (
            Hook::Out,
            packet(Message::Report, routers),
            "reports, so switches and routers forward no group to this host",
        ),
        (
            Hook::Bridge,
            packet(Message::Report, routers),
            "reports on a bridge of this host, so hosts behind the bridge receive no group",
        ),
    ];
    let dropped = cases.into_iter().filter_map(|(hook, packet, what)| match rules.fate(&packet, hook) {
        PacketDecision::Dropped { by, unless: false } => {
            let found = format!("a packet filter drops {name} {what}: {}", by.what);
            Some(Check::new("membership", Verdict::Warn, found).advise(rules.mend(&by, &packet, hook)))
        }
        _ => None,
    });
    dropped.collect()
}

impl Rules {
    fn read(like: IpAddr) -> Rules {
        let program = if like.is_ipv4() { "iptables" } else { "ip6tables" };
        let nft = printed("nft", &["-a", "list", "ruleset"]);
        match (nft, printed(program, &["-S"])) {
            (Err(Unsaid::Absent), Err(Unsaid::Absent)) => Rules::NoProgram,
            (Err(_), Err(_)) => Rules::Unread,
            (nft, iptables) => Rules::Read { nft: nft.ok(), iptables: iptables.ok(), program },
        }
    }

    fn fate(&self, packet: &Packet<'_>, hook: Hook) -> PacketDecision {
        let Rules::Read { nft, iptables, program } = self else { return PacketDecision::Passes };
        let of_nft = nft.as_deref().map(|text| nft::chains(text, packet));
        let of_iptables = iptables.as_deref().map(|text| iptables::chains(text, program, packet));
        let all: [Vec<Chain>; 2] = [of_nft.unwrap_or_default(), of_iptables.unwrap_or_default()];
        all.iter()
            .map(|chains| fate(chains, hook))
            .find(|fate| *fate != PacketDecision::Passes)
            .unwrap_or(PacketDecision::Passes)
    }
    /// Returns the command that lets the packet pass.
    fn mend(&self, by: &Dropper, packet: &Packet<'_>, hook: Hook) -> String {
        let protocol = if packet.to.is_ipv4() { "igmp" } else { "ipv6-icmp" };
        let Dropper { base, table, removal, .. } = by;
        let chain = if hook == Hook::Out { "OUTPUT" } else { "INPUT" };
        let (is_firewalld, is_iptables) = (table.contains("firewalld"), table.ends_with("tables"));
        match (packet.protocol, removal) {
            (Protocol::Udp(port), _) if is_firewalld => format!("firewall-cmd --add-port={port}/udp"),
            (Protocol::Membership(_), _) if is_firewalld => format!("firewall-cmd --add-protocol={protocol}"),
            (Protocol::Udp(port), _) if is_iptables && self.is_of_ufw() => format!("ufw allow {port}/udp"),
            (_, Some(removal)) => removal.clone(),
            (Protocol::Udp(port), None) if is_iptables => {
                format!("{table} -I {chain} -p udp --dport {port} -j ACCEPT")
            }
            (Protocol::Membership(_), None) if is_iptables => {
                format!("{table} -I {chain} -p {protocol} -j ACCEPT")
            }
            (Protocol::Udp(port), None) => format!("nft insert rule {table} {base} udp dport {port} accept"),
            (Protocol::Membership(_), None) => {
                format!("nft insert rule {table} {base} meta l4proto {protocol} accept")
            }
        }
    }

    /// Whether ufw manages the rules. If it does, it restores a removed rule.
    fn is_of_ufw(&self) -> bool {
        matches!(self, Rules::Read { iptables: Some(text), .. } if text.contains("-N ufw"))
    }
}

/// Reason why a program's output is missing.
#[derive(Debug, PartialEq, Eq)]
enum Unsaid {
    /// The program is not installed.
    Absent,
    /// The program failed, for instance without permission.
    Refused,
}

/// Returns the output of a program.
fn printed(program: &str, args: &[&str]) -> Result<String, Unsaid> {
    // The directories `sbin` are missing in the `PATH` of ordinary users, and in the `PATH` of root after `su`.
    for dir in ["", "/usr/sbin", "/sbin"] {
        return match Command::new(Path::new(dir).join(program)).args(args).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Ok(out) if out.status.success() => String::from_utf8(out.stdout).map_err(|_| Unsaid::Refused),
            _ => Err(Unsaid::Refused),
        };
    }
    Err(Unsaid::Absent)
}

#[cfg(test)]
mod tests;
