//! `faircast doctor` on hosts that are broken in one way each: it names it, exits with 1, and the command that it gives mends it.

use crate::kit::{FAIRCAST, must, tell};
use faircast_testkit::{Company, Lab, Link, Node, require_root};
use serde_json::Value;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(40);

fn shell(node: &Node, line: &str) {
    must(node.run("sh", &["-c", line], WITHIN));
}

/// What doctor says on this host: its exit code, and what failed with the advice.
fn doctor(node: &Node, more: &[&str]) -> (i32, Vec<(String, String, String)>) {
    let args = [&["doctor", "--json"], more].concat();
    let ended = must(must(node.start(FAIRCAST, &args)).finish(WITHIN));
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or("").to_owned();
    let lines = ended.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let failed = lines.filter(|check| check["verdict"] == "fail");
    let failed = failed.map(|check| (text(&check, "check"), text(&check, "found"), text(&check, "advice")));
    (ended.status.code().unwrap_or(-1), failed.collect())
}

/// It is broken by this, which doctor names by these words; what it advises mends it.
fn is_named_and_mended(node: &Node, broken_by: &str, named: &str, more: &[&str]) {
    assert_eq!(doctor(node, more).0, 0, "it is fit before {broken_by}");
    shell(node, broken_by);
    let (code, failed) = doctor(node, more);
    tell(&format!("{broken_by}: {failed:?}"));
    assert_eq!(code, 1, "{broken_by}: {failed:?}");
    let found = failed.iter().find(|(_, found, _)| found.contains(named));
    let (.., advice) = found.unwrap_or_else(|| panic!("{broken_by}: {failed:?}"));
    shell(node, advice.lines().next().expect("it says what to do"));
    let (code, failed) = doctor(node, more);
    assert_eq!((code, failed.len()), (0, 0), "{advice} after {broken_by}: {failed:?}");
}

#[test]
fn what_is_broken_is_named_and_the_command_mends_it() {
    let Some(root) = require_root() else { return };
    let lab = must(Lab::plan().receivers(1).company(Company::Shared).build(&root));
    let node = lab.receiver(0);
    let table = "nft add table inet lab; nft add chain inet lab input '{ type filter hook input priority 0; policy accept; }'";
    shell(node, table);
    let cases = [
        ("nft add rule inet lab input udp dport 5777 drop", "udp dport 5777 drop"),
        ("nft add rule inet lab input ip daddr 239.255.70.1 drop", "ip daddr 239.255.70.1 drop"),
        ("nft add chain inet lab input '{ policy drop; }'", "policy of chain input"),
        ("ip link set eth0 down", "this host only"),
        ("ip link set eth0 multicast off", "this host only"),
        ("ip route del multicast 224.0.0.0/4; ip route add blackhole 224.0.0.0/4", "blackhole 224.0.0.0/4"),
    ];
    for (broken_by, named) in cases {
        is_named_and_mended(node, broken_by, named, &[]);
        // What else was there before.
        shell(node, "ip route replace multicast 224.0.0.0/4 dev eth0 2>/dev/null || true");
    }
    // A source that is reached by another interface than the one that hears it.
    shell(
        node,
        "ip link add other type veth peer name beside; ip link set other up; ip link set beside up; ip address add 10.99.0.1/24 dev other; sysctl -qw net.ipv4.conf.all.rp_filter=1",
    );
    let broken = "ip route replace 10.77.0.1/32 dev other; sysctl -qw net.ipv4.conf.eth0.rp_filter=1";
    is_named_and_mended(
        node,
        broken,
        "strict reverse path filter",
        &["--iface", "eth0", "--source", "10.77.0.1"],
    );
    // No carrier: nothing that is typed here helps.
    must(lab.set_link(0, Link::Down));
    let (code, failed) = doctor(node, &["--iface", "eth0"]);
    assert!(code == 1 && failed.iter().any(|(_, found, _)| found.contains("no carrier")), "{failed:?}");
    must(lab.set_link(0, Link::Up));
}
