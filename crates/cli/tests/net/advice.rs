//! `faircast doctor` and sessions on hosts and networks with faults: each fault is named, and the advised command repairs it.

use crate::filters::admit_only;
use crate::kit::{FAIRCAST, Running, Stage, must, print_line};
use faircast_testkit::{Company, Forwarding, Lab, Node, require_root, run};
use serde_json::Value;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(60);

fn shell(node: &Node, line: &str) {
    must(node.run("sh", &["-c", line], WITHIN));
}

fn text<'a>(check: &'a Value, field: &str) -> &'a str {
    check[field].as_str().unwrap_or("")
}

/// Runs doctor on this host. Returns its exit code and its checks.
fn doctor(node: &Node, more: &[&str]) -> (i32, Vec<Value>) {
    let ended = must(must(node.start(FAIRCAST, &[&["doctor", "--json"], more].concat())).finish(WITHIN));
    let lines = ended.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let checks: Vec<Value> = lines.filter(|line| line["event"] == "check").collect();
    (ended.status.code().unwrap_or(-1), checks)
}

/// Returns the check with this verdict whose finding contains `words`.
fn found<'a>(checks: &'a [Value], verdict: &str, words: &str) -> Option<&'a Value> {
    checks.iter().find(|check| check["verdict"] == verdict && text(check, "found").contains(words))
}

/// Breaks a host with a command. Checks that doctor names the fault, and that the first line of its advice repairs the host.
fn is_named_and_mended(node: &Node, broken_by: &str, (verdict, words): (&str, &str), more: &[&str]) {
    shell(node, broken_by);
    let (code, checks) = doctor(node, more);
    let check = found(&checks, verdict, words);
    let check = check.unwrap_or_else(|| panic!("{broken_by}: {checks:#?}"));
    assert_eq!(code, i32::from(verdict == "fail"), "{broken_by}: {checks:#?}");
    let command = text(check, "advice").lines().next().expect("it says what to do");
    print_line(&format!("{}: {command}", text(check, "found")));
    shell(node, command);
    let (code, checks) = doctor(node, more);
    assert!(code == 0 && found(&checks, verdict, words).is_none(), "{command}: {checks:#?}");
}

const CLOSED: &str = "nft -f - <<'N'
table inet closed
delete table inet closed
table inet closed {
 chain input {
  type filter hook input priority 0; policy drop;
  iif lo accept
  ct state established,related accept
  meta l4proto igmp accept
  EXCEPTION
 }
}
N";

/// Needs a kernel: nftables and iptables filter packets.
#[test]
fn packet_filter_that_blocks_a_role_is_named_and_repaired() {
    let Some(root) = require_root() else { return };
    let lab = must(Lab::plan().company(Company::Shared).build(&root));
    let node = lab.sender();
    let closed = CLOSED.replace("EXCEPTION", "");
    is_named_and_mended(node, &closed, ("fail", "as a source: a packet filter drops"), &[]);
    let for_receivers = CLOSED.replace("EXCEPTION", "ip daddr 239.255.70.1 udp dport 5777 accept");
    is_named_and_mended(node, &for_receivers, ("fail", "as a source: a packet filter drops"), &[]);
    shell(node, "nft delete table inet closed");
    let iptables = "iptables -P INPUT DROP; iptables -A INPUT -i lo -j ACCEPT; iptables -A INPUT -p igmp -j ACCEPT; \
                    iptables -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT";
    is_named_and_mended(node, iptables, ("fail", "as a source: a packet filter drops"), &[]);
    shell(node, "iptables -P INPUT ACCEPT; iptables -F");
    // The first rule drops IGMP queries from the switch. The second rule drops IGMP reports of this host.
    let table = "nft add table inet lab; nft add chain inet lab in '{ type filter hook input priority 0; }'; \
                 nft add chain inet lab out '{ type filter hook output priority 0; }'; ";
    let asked = format!("{table} nft add rule inet lab in ip protocol igmp drop");
    is_named_and_mended(node, &asked, ("warn", "drops IGMP queries"), &[]);
    let answered = "nft add rule inet lab out meta l4proto igmp drop";
    is_named_and_mended(node, answered, ("warn", "drops IGMP reports"), &[]);
}

/// Needs a kernel: routes and reverse path filters.
#[test]
fn routes_and_path_filters_that_drop_multicast_are_named() {
    let Some(root) = require_root() else { return };
    let lab = must(Lab::plan().company(Company::Shared).build(&root));
    let node = lab.receiver(0);
    let nowhere = "ip link add nowhere type veth peer name end; ip link set end up; ip link set nowhere up multicast off; \
                   ip address add 10.88.0.1/24 dev nowhere; ip route replace 239.255.70.1 dev nowhere";
    is_named_and_mended(node, nowhere, ("warn", "uses nowhere, which carries no multicast"), &[]);
    let strict = "ip link add other type veth peer name beside; ip link set other up; ip link set beside up; \
                  ip address add 10.99.0.1/24 dev other; sysctl -qw net.ipv4.conf.all.rp_filter=1";
    is_named_and_mended(node, strict, ("warn", "strict reverse path filter: it drops"), &["--iface", "eth0"]);
}

/// Needs a kernel: the rules of a packet filter.
#[test]
fn filter_rules_are_read_by_root_without_sbin_in_its_path() {
    let Some(root) = require_root() else { return };
    let lab = must(Lab::plan().company(Company::Shared).build(&root));
    let ended = must(lab.receiver(0).run("env", &["PATH=/nowhere", FAIRCAST, "doctor"], WITHIN));
    assert!(ended.stdout.contains("ok    firewall    no rule drops UDP"), "{}", ended.stdout);
}

/// Needs a kernel: two hosts answer ARP requests for one address.
#[test]
fn duplicate_address_of_two_hosts_is_reported() {
    let Some(root) = require_root() else { return };
    let lab = must(Lab::plan().company(Company::Shared).build(&root));
    let (node, other) = (lab.receiver(0), lab.sender());
    let (code, checks) = doctor(node, &[]);
    assert!(code == 0 && found(&checks, "ok", "no other host has 10.77.1.0").is_some(), "{checks:#?}");
    shell(other, "ip address add 10.77.1.0/16 dev eth0");
    let (code, checks) = doctor(node, &[]);
    let named = found(&checks, "fail", "another host has 10.77.1.0 of eth0, too:");
    assert!(
        code == 1 && named.is_some_and(|it| text(it, "found").ends_with("answers for it")),
        "{checks:#?}"
    );
    shell(other, "ip address del 10.77.1.0/16 dev eth0");
    // The kernel detects the duplicate IPv6 address and does not use it.
    shell(other, "ip address add fd77::99/64 dev eth0 nodad");
    shell(
        node,
        "sysctl -qw net.ipv6.conf.eth0.accept_dad=1 net.ipv6.conf.eth0.dad_transmits=1; ip address add fd77::99/64 dev eth0; \
         until ip -6 address show dev eth0 dadfailed | grep -q fd77::99; do sleep 0.1; done",
    );
    let (code, checks) = doctor(node, &["--group", "ff15::7:1"]);
    let named = found(&checks, "fail", "another host has fd77::99 of eth0, too: the kernel has refused it");
    assert!(code == 1 && named.is_some(), "{checks:#?}");
}

/// Needs a kernel: hosts lose their IPv4 addresses.
#[test]
fn hosts_without_ipv4_use_the_ipv6_group_by_default() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let hosts = [stage.lab.sender(), stage.lab.receiver(0)];
    hosts.iter().for_each(|node| shell(node, "ip -4 address flush dev eth0"));
    let (code, checks) = doctor(hosts[0], &[]);
    assert!(code == 0 && found(&checks, "ok", "the group is [ff15::4643:1]:5777").is_some(), "{checks:#?}");
    assert!(checks.iter().all(|check| !text(check, "found").contains("IGMP")), "{checks:#?}");
    // These hosts have no IPv4 address, so the advice about an IPv4 group names the IPv6 group.
    let (code, checks) = doctor(hosts[0], &["--group", "239.255.70.1"]);
    let choice = found(&checks, "fail", "this host only");
    let advice = choice.map_or("", |check| text(check, "advice"));
    assert!(code == 1 && advice.contains("--group [ff15::4643:1]:5777"), "{checks:#?}");
    let file = stage.file("image", 1_000_000);
    let recv = |node: &Node, host: &str, more: &[&str]| {
        let out = stage.text(host);
        let args = ["recv", "--json", "--host", host, "--out", &out];
        let mut receiver = Running::start(node, &[&args, more].concat());
        receiver.prints("\"opened\"", 10);
        receiver
    };
    // The second receiver has both address families, so it must name the IPv6 group.
    let receivers =
        [recv(hosts[1], "a", &[]), recv(stage.lab.receiver(1), "b", &["--group", "ff15::4643:1"])];
    Running::start(hosts[0], &["send", &file, "--json", "--no-key", "--expect", "2"]).succeeds(30);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
    assert!(stage.has("a", &file) && stage.has("b", &file));
    let alone =
        Running::start(hosts[0], &["send", &file, "--json", "--no-key", "--join-timeout", "1"]).ends(20);
    alone.failed(1, "hosts with IPv4 use the group 239.255.70.1:5777");
    let group = ["send", &file, "--json", "--no-key", "--join-timeout", "1", "--group", "239.255.70.1"];
    let mut lost = Running::start(hosts[0], &group);
    lost.prints("eth0 has no IPv4 address, which 239.255.70.1:5777 needs", 10);
    assert_ne!(lost.ends(20).code, 0);
}

/// Needs a kernel: nftables admits one port.
#[test]
fn doctors_of_two_hosts_use_the_session_ports() {
    let Some(root) = require_root() else { return };
    let lab = must(Lab::plan().company(Company::Shared).build(&root));
    let (here, there) = (lab.sender(), lab.receiver(0));
    let host = there.address().to_string();
    let with = ["--with", host.as_str()];
    let mut serving = Running::start(there, &["doctor", "--serve", "--json"]);
    serving.prints("answers at 10.77.1.0:5777", 10);
    // The packet filter rule for the session port also admits the packets of doctor.
    [here, there].iter().for_each(|node| admit_only(node, "5777"));
    let (code, checks) = doctor(here, &with);
    assert_eq!(code, 0, "{checks:#?}");
    assert_eq!(
        checks.iter().filter(|check| check["check"] == "answers" && check["verdict"] == "ok").count(),
        2
    );
    // The new packet filter accepts packets to the group and answers to this host's own packets. It drops answers of receivers.
    shell(here, "nft delete table inet closed");
    let for_receivers = CLOSED.replace("EXCEPTION", "ip daddr 239.255.70.1 udp dport 5777 accept");
    shell(here, &for_receivers);
    let (code, checks) = doctor(here, &with);
    let answers = found(&checks, "fail", "this host as a source must accept UDP on port 5777");
    assert!(code == 1 && answers.is_some(), "{checks:#?}");
    // The advice of the check `firewall` contains the command that opens the port.
    let firewall = found(&checks, "fail", "as a source: a packet filter drops");
    shell(here, firewall.and_then(|it| text(it, "advice").lines().next()).expect("it says what to do"));
    assert_eq!(doctor(here, &with).0, 0);
    serving.task.interrupt();
    assert_eq!(serving.ends(10).code, 0);
}

/// Needs a kernel: a bridge snoops IGMP and removes a membership.
#[test]
fn receiver_warns_of_a_switch_that_removes_its_membership() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().forwarding(Forwarding::ToMembers));
    let node = stage.lab.receiver(0);
    // The host drops the IGMP queries of the switch. The switch therefore removes the host's membership after some seconds.
    shell(
        node,
        "nft -f - <<'N'\ntable inet deaf {\n chain input {\n  type filter hook input priority 0;\n  meta l4proto igmp drop\n }\n}\nN",
    );
    let bridge = [
        "-n",
        stage.lab.bridge(),
        "link",
        "set",
        "br0",
        "type",
        "bridge",
        "mcast_membership_interval",
        "200",
    ];
    must(run("ip", &bridge, WITHIN));
    let file = stage.file("image", 6_000_000);
    let mut receiver = stage.recv(0, "r0", &[]);
    let source = stage.send(&[&file], &["--expect", "1", "--max", "8M"]);
    receiver.prints("a switch on the path snoops IGMP", 60);
    source.succeeds(120);
    receiver.succeeds(20);
    assert!(stage.has("r0", &file));
}
