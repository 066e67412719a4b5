//! Packet filters: which rule drops what a session needs, and the command that takes it away.

use super::{Check, Verdict};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// What the rules say, as far as they can be read here.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// They cannot be read: no right.
    Unread,
    /// No program that shows them is here.
    NoProgram,
    /// None drops it.
    Nothing,
    /// This one does, and this command removes it or makes an exception.
    Rule { rule: String, mend: String },
}

/// A packet filter that drops what comes from the group; `silent`: the self-test has shown that something does.
pub fn check(group: SocketAddr, silent: bool) -> Check {
    let nft = said("nft", &["-a", "list", "ruleset"]).map(|text| in_nft(&text, group));
    let family = if group.is_ipv4() { "iptables" } else { "ip6tables" };
    let old = said(family, &["-S", "INPUT"]).map(|text| in_iptables(&text, family, group));
    let found = match (nft, old) {
        (Ok(found @ Found::Rule { .. }), _) | (_, Ok(found @ Found::Rule { .. })) => found,
        (Err(Unsaid::Absent), Err(Unsaid::Absent)) => Found::NoProgram,
        (Err(_), Err(_)) => Found::Unread,
        _ => Found::Nothing,
    };
    let port = group.port();
    match (found, silent) {
        (Found::Rule { rule, mend }, true) => {
            Check::new("firewall", Verdict::Fail, format!("a packet filter drops it: {rule}")).advise(mend)
        }
        // What is heard on this host may still be dropped when it comes from another.
        (Found::Rule { rule, mend }, false) => Check::new(
            "firewall",
            Verdict::Warn,
            format!("a packet filter may drop what others send: {rule}"),
        )
        .advise(mend),
        (Found::Nothing, true) => Check::new(
            "firewall",
            Verdict::Note,
            "no rule was found that drops it; look for ones that depend on more than group and port",
        ),
        (Found::Nothing, false) => Check::new("firewall", Verdict::Ok, "no rule drops UDP from this group"),
        (unknown, _) => {
            let why = match unknown {
                Found::NoProgram => {
                    "there is no nft or iptables here that would show rules; most likely there are none"
                }
                _ => "its rules can be read by root only",
            };
            Check::new("firewall", Verdict::Note, why).advise(format!(
                "receivers: allow UDP to port {port} (firewall-cmd --add-port={port}/udp, ufw allow {port}/udp)\n\
                 sources: allow UDP from the receivers; their answers match no outgoing connection"
            ))
        }
    }
}

/// Why a program says nothing.
#[derive(Debug, PartialEq, Eq)]
enum Unsaid {
    /// It is not here.
    Absent,
    /// It failed: there is no right to ask it, say.
    Refused,
}

/// What a program says.
fn said(program: &str, args: &[&str]) -> Result<String, Unsaid> {
    // Users have no `sbin` in their path; they may not read rules either.
    let elsewhere = || ["/usr/sbin", "/sbin"].iter().any(|dir| Path::new(dir).join(program).exists());
    let out = match Command::new(program).args(args).output() {
        Err(error) if error.kind() == ErrorKind::NotFound && !elsewhere() => return Err(Unsaid::Absent),
        Ok(out) if out.status.success() => out,
        _ => return Err(Unsaid::Refused),
    };
    String::from_utf8(out.stdout).map_err(|_| Unsaid::Refused)
}

/// Whether a rule that says these words is about something else than UDP from this group.
fn is_elsewhere(words: &[&str], group: SocketAddr) -> bool {
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1).copied()
    };
    let covers_port = |text: &str| ports(text).any(|(low, high)| (low..=high).contains(&group.port()));
    let covers_group = |text: &str| covers(text, group.ip());
    let port = after("dport").or(after("--dport")).or(after("--dports"));
    let to = after("daddr").or(after("-d"));
    let protocol = after("-p").or(after("l4proto"));
    let has_tcp = words.contains(&"tcp") || words.contains(&"icmp");
    let is_exception = ["ct", "saddr", "-s", "-m", "conntrack", "limit", "sport"]
        .iter()
        .any(|word| words.contains(word) && !(*word == "-m" && words.contains(&"udp")));
    has_tcp
        || is_exception
        || port.is_some_and(|text| !covers_port(text))
        || to.is_some_and(|text| !covers_group(text))
        || protocol.is_some_and(|text| text != "udp" && text != "all")
}

/// Ports as rules have them: `5777`, `5000-6000`, `5000:6000`, several with commas.
fn ports(text: &str) -> impl Iterator<Item = (u16, u16)> + '_ {
    text.trim_matches(|c| matches!(c, '{' | '}' | ',')).split(',').filter_map(|part| {
        let (low, high) = part.split_once(['-', ':']).unwrap_or((part, part));
        Some((low.trim().parse().ok()?, high.trim().parse().ok()?))
    })
}

/// Whether an address or prefix covers this one; what cannot be read is taken for another.
fn covers(text: &str, group: IpAddr) -> bool {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    match (address.parse::<IpAddr>(), group) {
        (Ok(IpAddr::V4(prefix)), IpAddr::V4(group)) => {
            let length = length.and_then(|length| length.parse::<u32>().ok()).unwrap_or(32).min(32);
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            u32::from(prefix) & mask == u32::from(group) & mask
        }
        (Ok(IpAddr::V6(prefix)), IpAddr::V6(group)) => {
            let length = length.and_then(|length| length.parse::<u32>().ok()).unwrap_or(128).min(128);
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            u128::from(prefix) & mask == u128::from(group) & mask
        }
        _ => false,
    }
}

/// In what `nft -a list ruleset` prints.
fn in_nft(text: &str, group: SocketAddr) -> Found {
    let (mut table, mut chain, mut is_input, mut drops, mut accepted) =
        (String::new(), "", false, false, false);
    for line in text.lines().map(str::trim) {
        let line = line.trim_end_matches('{').trim();
        let (line, handle) = line.split_once(" # handle ").unwrap_or((line, ""));
        let line = line.trim_end_matches('{').trim();
        if let Some(name) = line.strip_prefix("table ") {
            name.clone_into(&mut table);
        } else if let Some(name) = line.strip_prefix("chain ") {
            (chain, is_input, drops, accepted) = (name, false, false, false);
        } else if line.starts_with("type filter hook") {
            is_input = line.contains("hook input")
                || line.contains("hook ingress")
                || line.contains("hook prerouting");
            drops = is_input && line.contains("policy drop");
        } else if line == "}" {
            if drops && !accepted {
                return Found::Rule {
                    rule: format!("the policy of chain {chain} in table {table} is drop"),
                    mend: format!("nft insert rule {table} {chain} udp dport {} accept", group.port()),
                };
            }
            (drops, is_input) = (false, false);
        } else if is_input && !accepted {
            let words: Vec<&str> = line.split_whitespace().collect();
            let acts = |what: &str| words.contains(&what);
            if is_elsewhere(&words, group)
                || words.first() == Some(&"iifname")
                || words.first() == Some(&"iif")
            {
                continue;
            }
            if acts("accept") {
                accepted = true;
            } else if acts("drop") || acts("reject") {
                return Found::Rule {
                    rule: format!("`{line}` of chain {chain} in table {table}"),
                    mend: format!("nft delete rule {table} {chain} handle {handle}"),
                };
            }
        }
    }
    Found::Nothing
}

/// In what `iptables -S INPUT` prints.
fn in_iptables(text: &str, program: &str, group: SocketAddr) -> Found {
    let mut drops = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["-P", "INPUT", policy] => drops = *policy == "DROP",
            ["-A", "INPUT", rule @ ..] => {
                if rule.contains(&"-i") || is_elsewhere(rule, group) {
                    continue;
                }
                let target = rule.iter().position(|word| *word == "-j").and_then(|at| rule.get(at + 1));
                match target {
                    Some(&"ACCEPT") => return Found::Nothing,
                    Some(&("DROP" | "REJECT")) => {
                        return Found::Rule {
                            rule: format!("`{line}` of {program}"),
                            mend: format!("{program} -D INPUT {}", rule.join(" ")),
                        };
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if !drops {
        return Found::Nothing;
    }
    Found::Rule {
        rule: format!("the policy of INPUT of {program} is DROP"),
        mend: format!("{program} -I INPUT -p udp --dport {} -j ACCEPT", group.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_no_program_that_refuses() {
        assert_eq!(said("no-such-packet-filter", &[]), Err(Unsaid::Absent));
        assert_eq!(said("false", &[]), Err(Unsaid::Refused));
    }

    fn group() -> SocketAddr {
        "239.255.70.1:5777".parse().expect("a group")
    }

    const NFT: &str = "table inet lab { # handle 7
	chain input { # handle 1
		type filter hook input priority filter; policy accept;
		ct state established,related accept # handle 3
		tcp dport 22 accept # handle 4
		iifname \"lo\" accept # handle 5
		RULE # handle 12
	}
}
";

    fn mended_by(rule: &str) -> Option<String> {
        match in_nft(&NFT.replace("RULE", rule), group()) {
            Found::Rule { mend, .. } => Some(mend),
            _ => None,
        }
    }

    #[test]
    fn the_rule_that_drops_it_is_found_and_how_it_is_removed() {
        let delete = Some("nft delete rule inet lab input handle 12".to_owned());
        for rule in [
            "udp dport 5777 drop",
            "udp dport 5000-6000 counter packets 1 bytes 2 drop",
            "ip daddr 224.0.0.0/4 drop",
            "ip daddr 239.255.70.1 reject",
            "drop",
        ] {
            assert_eq!(mended_by(rule), delete, "{rule}");
        }
        for rule in
            ["udp dport 53 drop", "tcp dport 5777 drop", "ip daddr 239.1.1.1 drop", "udp dport 5777 accept"]
        {
            assert_eq!(mended_by(rule), None, "{rule}");
        }
    }

    #[test]
    fn a_policy_of_drop_needs_an_exception_unless_there_is_one() {
        let closed = NFT.replace("policy accept", "policy drop");
        let found = in_nft(&closed.replace("RULE", "udp dport 53 accept"), group());
        let Found::Rule { mend, .. } = found else { panic!("{found:?}") };
        assert_eq!(mend, "nft insert rule inet lab input udp dport 5777 accept");
        assert_eq!(in_nft(&closed.replace("RULE", "udp dport 5777 accept"), group()), Found::Nothing);
    }

    #[test]
    fn rules_of_iptables_are_read_likewise() {
        let rules = |rules: &str| in_iptables(rules, "iptables", group());
        let mend = |found: Found| if let Found::Rule { mend, .. } = found { mend } else { String::new() };
        let dropped = "-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n-A INPUT -p udp -m udp --dport 5777 -j DROP\n";
        assert_eq!(mend(rules(dropped)), "iptables -D INPUT -p udp -m udp --dport 5777 -j DROP");
        assert_eq!(mend(rules("-P INPUT DROP\n")), "iptables -I INPUT -p udp --dport 5777 -j ACCEPT");
        let open = "-P INPUT DROP\n-A INPUT -p udp -m udp --dport 5777 -j ACCEPT\n";
        assert_eq!(rules(open), Found::Nothing);
        assert_eq!(rules("-P INPUT ACCEPT\n-A INPUT -d 10.0.0.0/8 -j DROP\n"), Found::Nothing);
    }
}
