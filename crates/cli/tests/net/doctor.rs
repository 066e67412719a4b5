//! `faircast doctor` on hosts with one fault each: it names the fault and exits with 1, and the advised command repairs the
//! fault.

use crate::kit::Running;
use crate::kit::{FAIRCAST, must, print_line};
use faircast_testkit::{Company, Forwarding, Lab, Link, Node, require_root, run};
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const WITHIN: Duration = Duration::from_secs(40);

fn shell(node: &Node, line: &str) {
    must(node.run("sh", &["-c", line], WITHIN));
}

/// Runs doctor on this host. Returns the exit code, and the failed checks with their advice.
fn doctor(node: &Node, more: &[&str]) -> (i32, Vec<(String, String, String)>) {
    let args = [&["doctor", "--json"], more].concat();
    let ended = must(must(node.start(FAIRCAST, &args)).finish(WITHIN));
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or("").to_owned();
    let lines = ended.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let failed = lines.filter(|check| check["verdict"] == "fail");
    let failed = failed.map(|check| (text(&check, "check"), text(&check, "found"), text(&check, "advice")));
    (ended.status.code().unwrap_or(-1), failed.collect())
}

/// Breaks a host with a command. Checks that doctor names the fault with these words, and that its advice repairs the host.
fn is_named_and_mended(node: &Node, broken_by: &str, named: &str, more: &[&str]) {
    assert_eq!(doctor(node, more).0, 0, "it is fit before {broken_by}");
    shell(node, broken_by);
    let (code, failed) = doctor(node, more);
    print_line(&format!("{broken_by}: {failed:?}"));
    assert_eq!(code, 1, "{broken_by}: {failed:?}");
    let found = failed.iter().find(|(_, found, _)| found.contains(named));
    let (.., advice) = found.unwrap_or_else(|| panic!("{broken_by}: {failed:?}"));
    shell(node, advice.lines().next().expect("it says what to do"));
    let (code, failed) = doctor(node, more);
    assert_eq!((code, failed.len()), (0, 0), "{advice} after {broken_by}: {failed:?}");
}

/// Needs a kernel: routes, filters and settings of a host.
#[test]
fn advised_command_repairs_each_broken_setting() {
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
        // Restores the earlier route.
        shell(node, "ip route replace multicast 224.0.0.0/4 dev eth0 2>/dev/null || true");
    }
    // The route to the source uses another interface than eth0, at which the packets to the group arrive.
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
    // Without a carrier, no command can help.
    must(lab.set_link(0, Link::Down));
    let (code, failed) = doctor(node, &["--iface", "eth0"]);
    assert!(code == 1 && failed.iter().any(|(_, found, _)| found.contains("no carrier")), "{failed:?}");
    must(lab.set_link(0, Link::Up));
}

/// Runs doctor in the bridge's namespace. Returns the checks of the bridge.
fn of_bridge(lab: &Lab) -> Vec<Value> {
    let args = ["netns", "exec", lab.bridge(), FAIRCAST, "doctor", "--iface", "br0", "--json"];
    let printed = std::process::Command::new("ip").args(args).output();
    let printed = String::from_utf8(must(printed).stdout).expect("JSON is UTF-8");
    printed
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|check: &Value| check["check"] == "bridge")
        .collect()
}

/// Needs a kernel: a bridge, its querier and an MTU.
#[test]
fn doctor_measures_the_path_between_hosts_and_names_faults() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().receivers(1).forwarding(Forwarding::ToMembers).company(Company::Shared);
    let lab = must(plan.build(&root));
    let (here, there) = (lab.sender(), lab.receiver(0));
    let host = there.address().to_string();
    let with = ["--with", host.as_str()];
    let mut serving = Running::start(there, &["doctor", "--serve", "--json"]);
    serving.prints("answers at", 10);
    // Without a fault, both directions are measured.
    let ended = must(must(here.start(FAIRCAST, &["doctor", "--json", "--with", &host])).finish(WITHIN));
    print_line(&ended.stdout);
    let lines: Vec<Value> = ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(ended.status.code(), Some(0), "{lines:?}");
    for (check, count) in [("mtu", 2), ("path", 2), ("group", 2), ("clocks", 1)] {
        assert_eq!(lines.iter().filter(|line| line["check"] == check).count(), count, "{check}: {lines:?}");
    }
    assert!(lines.iter().filter_map(|line| line["measured"]["rate_bps"].as_f64()).all(|rate| rate > 0.0));
    // A clock is an hour ahead, which prevents sessions without feedback. Only the text of the advice is checked, because the
    // advised command would set this machine's clock.
    let mut ahead = Running::start(there, &["doctor", "--serve", "5779", "--clock-ahead", "3600", "--json"]);
    ahead.prints("answers at", 10);
    let place = format!("{host}:5779");
    let (code, failed) = doctor(here, &["--with", &place, "--one-way"]);
    let clocks = failed.iter().find(|(check, ..)| check == "clocks");
    let (_, found, advice) = clocks.unwrap_or_else(|| panic!("{code}: {failed:?}"));
    assert!(code == 1 && failed.len() == 1 && found.contains("behind that of"), "{failed:?}");
    let printed = advice.lines().next().and_then(|command| command.strip_prefix("date -u -s @"));
    let there_it_is: u64 = printed.and_then(|secs| secs.parse().ok()).expect("the command sets a time");
    let now = must(SystemTime::now().duration_since(UNIX_EPOCH)).as_secs();
    assert!(there_it_is.abs_diff(now + 3_600) < 600, "{advice} at {now}");
    ahead.task.interrupt();
    assert_eq!(ahead.ends(10).code, 0);
    // The MTU of this host is smaller than the MTU of the other hosts.
    shell(there, "ip link set eth0 mtu 1400");
    let (code, failed) = doctor(here, &with);
    let mtu = failed.iter().find(|(check, ..)| check == "mtu");
    let (_, found, advice) = mtu.unwrap_or_else(|| panic!("{code}: {failed:?}"));
    assert!(code == 1 && found.contains("1472 bytes (MTU 1500) do not pass"), "{failed:?}");
    shell(here, advice.lines().next().expect("it says what to do"));
    let (code, failed) = doctor(here, &with);
    assert_eq!((code, failed.len()), (0, 0), "after {advice}: {failed:?}");
    // A bridge that snoops without a querier.
    let bridge = |line: &str| {
        let args: Vec<_> = ["-n", lab.bridge()].into_iter().chain(line.split_whitespace()).collect();
        must(run("ip", &args, WITHIN));
    };
    bridge("address add 10.77.255.254/16 dev br0");
    bridge("link set br0 type bridge mcast_querier 0");
    let (code, failed) = doctor(here, &with);
    let group = failed.iter().find(|(check, ..)| check == "group");
    let (_, found, advice) = group.unwrap_or_else(|| panic!("{code}: {failed:?}"));
    assert!(code == 1 && found.contains("without a querier"), "{failed:?}");
    let own = of_bridge(&lab);
    assert!(own.len() == 1 && own[0]["verdict"] == "fail", "{own:?}");
    let command = advice.lines().next().expect("it says what to do");
    let command = command.split("   ").next().expect("before the remark").replace("BRIDGE", "br0");
    assert!(own[0]["advice"].as_str().is_some_and(|advice| advice.starts_with(&command)), "{own:?}");
    bridge("link set br0 type bridge mcast_query_response_interval 10");
    bridge(command.strip_prefix("ip ").expect("it is a command of ip"));
    assert_eq!(of_bridge(&lab)[0]["verdict"], "ok");
    // The bridge forwards the group to this host only after the host's first membership report, so the first attempts may fail.
    let mended = (0..5).any(|_| doctor(here, &with).0 == 0);
    assert!(mended, "{command}: {:?}", doctor(here, &with));
    serving.task.interrupt();
    assert_eq!(serving.ends(10).code, 0);
}
