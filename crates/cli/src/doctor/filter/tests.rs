use super::*;
use faircast_net::{Interface, Why};

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

fn choice() -> Choice {
    let local = IpAddr::from([192, 0, 2, 1]);
    let chosen = Interface {
        name: "eth0".into(),
        index: 2,
        addrs: vec![local],
        mtu: 1500,
        up: true,
        connected: true,
        multicast: true,
        loopback: false,
    };
    Choice { chosen, local, alternatives: Vec::new(), why: Why::Route }
}

fn found(nft: &str, iptables: &str) -> Vec<Check> {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let rules = Rules::Read { nft: text(nft), iptables: text(iptables), program: "iptables" };
    let group = "239.255.70.1:5777".parse().expect("a group");
    let checks = judged(&rules, group, &choice(), false);
    checks.into_iter().filter(|check| check.verdict != Verdict::Ok).collect()
}

/// Returns the commands of all findings.
fn mends(nft: &str, iptables: &str) -> Vec<String> {
    found(nft, iptables).into_iter().map(|check| check.advice.unwrap_or_default()).collect()
}

#[test]
fn missing_and_failing_filter_programs_are_distinguished() {
    assert_eq!(printed("no-such-packet-filter", &[]), Err(Unsaid::Absent));
    assert_eq!(printed("false", &[]), Err(Unsaid::Refused));
}

#[test]
fn rule_that_drops_packets_is_found_with_its_removal_command() {
    let delete = "nft delete rule inet lab input handle 12".to_owned();
    for rule in [
        "udp dport 5777 drop",
        "udp dport 5000-6000 counter packets 1 bytes 2 drop",
        "udp dport { 53, 5777 } reject",
    ] {
        assert_eq!(mends(&NFT.replace("RULE", rule), ""), [delete.clone(), delete.clone()], "{rule}");
    }
    // These rules concern only the group: they affect neither a source nor IGMP.
    for rule in [
        "ip daddr 239.255.70.1 reject",
        "ip daddr 239.0.0.0/8 udp dport 5777 drop",
        "ip daddr 239.255.0.0-239.255.255.255 drop",
    ] {
        assert_eq!(mends(&NFT.replace("RULE", rule), ""), std::slice::from_ref(&delete), "{rule}");
    }
    for rule in [
        "udp dport 53 drop",
        "tcp dport 5777 drop",
        "ip daddr 239.1.1.1 drop",
        "udp dport 5777 accept",
        "iifname \"eth1\" drop",
        "ct state invalid drop",
        "ip saddr 10.0.0.0/8 drop",
        "udp dport != 5777 ip daddr 239.255.70.1 drop",
    ] {
        assert_eq!(mends(&NFT.replace("RULE", rule), ""), Vec::<String>::new(), "{rule}");
    }
}

#[test]
fn advice_on_a_closed_filter_has_a_rule_for_each_role() {
    let closed = NFT.replace("policy accept", "policy drop");
    let insert = |what: &str| format!("nft insert rule inet lab input {what} accept");
    let (udp, igmp) = (insert("udp dport 5777"), insert("meta l4proto igmp"));
    let all = found(&closed.replace("RULE", "udp dport 53 accept"), "");
    let verdicts: Vec<Verdict> = all.iter().map(|check| check.verdict).collect();
    assert_eq!(verdicts, [Verdict::Warn, Verdict::Fail, Verdict::Warn], "{all:?}");
    assert!(all[1].found.starts_with("as a source: a packet filter drops"), "{all:?}");
    assert_eq!(
        mends(&closed.replace("RULE", "udp dport 53 accept"), ""),
        [udp.clone(), udp.clone(), igmp.clone()]
    );
    assert_eq!(mends(&closed.replace("RULE", "udp dport 5777 accept"), ""), std::slice::from_ref(&igmp));
    // A rule that accepts only the group does not accept the answers to a source.
    assert_eq!(
        mends(&closed.replace("RULE", "ip daddr 239.255.70.1 accept"), ""),
        [udp.clone(), igmp.clone()]
    );
    assert_eq!(mends(&closed.replace("RULE", "ip protocol { udp, igmp } accept"), ""), Vec::<String>::new());
    // The advice does not delete a final rule without conditions, because that rule also drops other packets.
    assert_eq!(mends(&NFT.replace("RULE", "drop"), ""), [udp.clone(), udp, igmp]);
}

#[test]
fn rules_in_chains_of_firewalld_are_found() {
    let rules = |open: &str| {
        format!(
            "table inet firewalld {{ # handle 2
	chain filter_INPUT {{ # handle 1
		type filter hook input priority filter + 10; policy accept;
		ct state vmap {{ established : accept, related : accept, invalid : drop }} # handle 4
		iifname \"lo\" accept # handle 5
		jump filter_INPUT_ZONES # handle 6
		reject with icmpx admin-prohibited # handle 7
	}}
	chain filter_INPUT_ZONES {{ # handle 8
		iifname vmap {{ \"eth0\" : goto filter_IN_public, \"eth1\" : goto filter_IN_drop }} # handle 9
	}}
	chain filter_IN_public {{ # handle 10
		jump filter_IN_public_allow # handle 11
		meta l4proto {{ icmp, ipv6-icmp }} accept # handle 12
	}}
	chain filter_IN_public_allow {{ # handle 13
		tcp dport 22 accept # handle 14
		{open} # handle 15
	}}
}}
"
        )
    };
    let (port, igmp) = ("firewall-cmd --add-port=5777/udp", "firewall-cmd --add-protocol=igmp");
    assert_eq!(mends(&rules("tcp dport 80 accept"), ""), [port, port, igmp]);
    assert_eq!(mends(&rules("udp dport 5777 accept"), ""), [igmp]);
}

#[test]
fn rules_of_iptables_and_ufw_are_read() {
    let (accept, drop) = ("-P INPUT ACCEPT\n-P OUTPUT ACCEPT\n", "-P INPUT DROP\n-P OUTPUT ACCEPT\n");
    let insert = |what: &str| format!("iptables -I INPUT -p {what} -j ACCEPT");
    let (udp, igmp) = (insert("udp --dport 5777"), insert("igmp"));
    let delete = "iptables -D INPUT -p udp -m udp --dport 5777 -j DROP".to_owned();
    let dropped = format!(
        "{accept}-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n-A INPUT -p udp -m udp --dport 5777 -j DROP\n"
    );
    assert_eq!(mends("", &dropped), [delete.clone(), delete]);
    assert_eq!(mends("", drop), [udp.clone(), udp.clone(), igmp.clone()]);
    assert_eq!(
        mends("", &format!("{drop}-A INPUT -p udp -m udp --dport 5777 -j ACCEPT\n")),
        std::slice::from_ref(&igmp)
    );
    assert_eq!(mends("", &format!("{accept}-A INPUT -d 10.0.0.0/8 -j DROP\n")), Vec::<String>::new());
    assert_eq!(mends("", &format!("{accept}-A OUTPUT -p igmp -j DROP\n")).len(), 1);
    let ufw = |user: &str| {
        format!(
            "{drop}-N ufw-before-input\n-N ufw-not-local\n-N ufw-user-input\n-A INPUT -j ufw-before-input\n\
             -A ufw-before-input -i lo -j ACCEPT\n\
             -A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
             -A ufw-before-input -j ufw-not-local\n\
             -A ufw-before-input -d 224.0.0.251/32 -p udp -m udp --dport 5353 -j ACCEPT\n\
             -A ufw-before-input -j ufw-user-input\n\
             -A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN\n\
             -A ufw-not-local -m addrtype --dst-type MULTICAST -j RETURN\n\
             -A ufw-not-local -m limit --limit 3/min --limit-burst 10 -j LOG\n-A ufw-not-local -j DROP\n{user}"
        )
    };
    assert_eq!(mends("", &ufw("-A ufw-user-input -p udp -m udp --dport 5777 -j ACCEPT\n")), [igmp]);
    assert_eq!(
        mends("", &ufw("")),
        ["ufw allow 5777/udp", "ufw allow 5777/udp", "iptables -I INPUT -p igmp -j ACCEPT"]
    );
}

#[test]
fn advice_covers_each_filter_program_if_rules_are_unreadable() {
    let group = "239.255.70.1:5777".parse().expect("a group");
    let checks = judged(&Rules::Unread, group, &choice(), false);
    let advice = checks[0].advice.clone().expect("it says what to do");
    for words in [
        "nft add rule inet filter input udp dport 5777 accept",
        "firewall-cmd --add-port=5777/udp",
        "ufw allow 5777/udp",
        "5778",
    ] {
        assert!(advice.contains(words), "{advice}");
    }
}
