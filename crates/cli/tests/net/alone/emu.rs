//! Emulated networks: flows and programs of scenarios, and what remains of killed emulations.

use crate::kit::{FAIRCAST, must};
use faircast_testkit::{Company, Turn, require_root};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Too many datagrams for one receiver, whose link gets slower, and a session to the other one.
const LAB: &str = r#"
title = "three hosts"
duration = "6 s"
warmup = "2 s"
start_jitter = "0 s"

[topology]
kind = "text"
network = """
host src
host a
host b
router r
link src r rate=100M delay=10ms
link r a rate=8M delay=10ms queue=droptail,50
link r b rate=2M delay=10ms queue=droptail,50
"""

[probe]
links = "r->a"
taps = "r->a"

[[flow]]
name = "flood"
kind = "udp"
rate = "10 Mbit/s"
from = "src"
to = "a"

[[change]]
at = "4 s"
link = "r->a"
rate = "4 Mbit/s"

[[flow]]
name = "session"
kind = "session"
scheme = "ormcc"
alive = "250 ms"
from = "src"
to = "b"
"#;

/// Attempts to measure on a machine that may be too busy.
const ATTEMPTS: usize = 6;

/// Runs the program. Returns its exit code, its events and its errors.
fn faircast(directory: &Path, args: &[&str]) -> (Option<i32>, Vec<Value>, String) {
    let output = must(Command::new(FAIRCAST).args(args).current_dir(directory).output());
    let Output { status, stdout, stderr } = output;
    let lines = String::from_utf8_lossy(&stdout);
    let events = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    (status.code(), events, String::from_utf8_lossy(&stderr).into_owned())
}

fn lab() -> tempfile::TempDir {
    let place = must(tempfile::Builder::new().prefix("faircast-net-").tempdir());
    must(std::fs::write(place.path().join("lab.toml"), LAB));
    place
}

/// Runs until this machine has kept up with a run. A run in which it has not says so.
fn valid(directory: &Path, args: &[&str]) -> Vec<Value> {
    valid_after(directory, args, || {})
}

/// Calls `prepare` before each run.
fn valid_after(directory: &Path, args: &[&str], prepare: impl Fn()) -> Vec<Value> {
    for attempt in 1..=ATTEMPTS {
        prepare();
        let (code, events, errors) = faircast(directory, args);
        let done = events.last().unwrap_or_else(|| panic!("no events: {code:?} {errors}"));
        if done["valid"] == true {
            assert_eq!((code, &done["ok"]), (Some(0), &Value::Bool(true)), "{errors}\n{events:?}");
            return events;
        }
        let has_reason = done["faults"].as_array().is_some_and(|faults| !faults.is_empty());
        assert!(has_reason && code == Some(1) && errors.contains("is invalid"), "{done}\n{errors}");
        assert!(attempt < ATTEMPTS, "this machine never kept up: {done}");
    }
    unreachable!("the last attempt returns or panics")
}

/// Returns the captured and the full length of each packet in a file in the format pcapng.
fn captured(mut file: &[u8]) -> Vec<(u32, u32)> {
    let mut sizes = Vec::new();
    while !file.is_empty() {
        let field = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
        if field(0) == 6 {
            sizes.push((field(20), field(24)));
        }
        file = &file[field(4) as usize..];
    }
    sizes
}

fn one<'a>(events: &'a [Value], key: &str, value: &str) -> &'a Value {
    events.iter().find(|event| event[key] == value).unwrap_or_else(|| panic!("no {value} in {events:?}"))
}

/// Needs a kernel: TCP, IGMP and UDP of the kernel, and the times of the emulation.
#[test]
fn emulated_flows_and_programs_have_the_rates_of_links() {
    let Some(_root) = require_root() else { return };
    let _turn = must(Turn::take(Company::Alone));
    let place = lab();
    let record = ["--out", "record", "--pcap", "links.pcapng", "--snaplen", "64"];
    let events = valid(place.path(), &[&["emu", "run", "lab.toml", "--json"][..], &record].concat());
    let rate = |flow: &str| one(&events, "flow", flow)["rate"].as_f64().expect("a number");
    assert!((rate("flood") / 6e6 - 1.0).abs() < 0.02, "the mean rate of the link: {}", rate("flood"));
    assert!((5e5..2e6).contains(&rate("session")), "{}", rate("session"));
    let to_a = one(&events, "link", "r->a");
    let offered = to_a["offered"].as_f64().expect("a number");
    assert!((offered / 5_000.0 - 1.0).abs() < 0.02, "the group is not forwarded to a: {to_a}");
    assert!(to_a["dropped"].as_f64() > Some(500.0), "{to_a}");

    // The state of each second, and the record of the run.
    let live: Vec<&Value> = events.iter().filter(|event| event["event"] == "live").collect();
    let Some(full) = live.get(1).filter(|_| live.len() >= 5) else { panic!("few states: {live:?}") };
    let to_a = one(full["links"].as_array().expect("a list"), "link", "r->a");
    assert!(to_a["queue"].as_u64() > Some(40) && to_a["dropped"].as_u64() > Some(100), "{to_a}");
    let second = one(full["flows"].as_array().expect("a list"), "flow", "flood");
    assert!(second["rate"].as_f64().is_some_and(|rate| (rate / 8e6 - 1.0).abs() < 0.03), "{second}");
    let record = |name: &str| must(std::fs::read_to_string(place.path().join("record").join(name)));
    let rows = |name: &str, of: &str| record(name).lines().filter(|line| line.contains(of)).count();
    assert_eq!((rows("rates.csv", ",flood,1,a,"), rows("queues.csv", ",r->a,")), (6, 61));
    assert!(
        record("metrics.csv").contains(",link.r->a.queue.max,")
            && record("manifest.json").contains("\"rates.csv\"")
    );
    assert_eq!(place.path().join("record/rates.parquet").exists(), cfg!(feature = "parquet"));

    // The capture has all packets of the tapped link.
    let capture = must(std::fs::read(place.path().join("links.pcapng")));
    let sizes = captured(&capture);
    assert!((7_000..8_000).contains(&sizes.len()), "10 Mbit/s for 6 s: {}", sizes.len());
    assert!(sizes.iter().all(|(kept, size)| *kept == 64.min(*size)), "{sizes:?}");
    let count = |text: &[u8]| capture.windows(text.len()).filter(|bytes| *bytes == text).count();
    assert!(count(b"dropped: the buffer was full") > 500 && count(b"r->a") == 1);

    // The simulator has the same rates and queues.
    let events = valid(place.path(), &["compare", "--worlds", "sim,emu", "lab.toml", "--json", "-q"]);
    let flood = one(&events, "metric", "flood.rate");
    assert!(flood["difference"].as_f64().is_some_and(|part| part.abs() < 0.02), "{flood}");
    let queue = one(&events, "metric", "link.r->a.queue");
    assert!(queue["difference"].as_f64().is_some_and(|part| part.abs() < 0.05), "{queue}");
    assert!(one(&events, "metric", "session.rate")["emulated"].as_f64() > Some(5e5), "{events:?}");

    // Programs find hosts by name, and a server listens before its client starts. The kernel wakes processors promptly.
    let words = "b: iperf3 -s -1 -- a: iperf3 -c b -n 100K -- src: sh -c";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push("ping -c 2 -i 0.2 a; echo limit=$(od -An -td4 /dev/cpu_dma_latency | tr -d ' ') us");
    let events = valid(place.path(), &[&["emu", "run", "lab.toml", "--json", "--"], &words[..]].concat());
    let output = |host: &str, text: &str| {
        let line = |event: &&Value| {
            event["host"] == host && event["line"].as_str().is_some_and(|line| line.contains(text))
        };
        let found = events.iter().find(line).unwrap_or_else(|| panic!("{host}: no {text} in {events:?}"));
        found["line"].as_str().expect("a text").to_owned()
    };
    output("a", "iperf Done.");
    output("b", "Accepted connection from 10.9.0.2");
    output("src", "limit=0 us");
    let line = output("src", "icmp_seq=2");
    let millis = line.split("time=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    assert!(millis.is_some_and(|millis| (40.0..45.0).contains(&millis)), "20 ms each way: {line}");

    let (code, events, errors) =
        faircast(place.path(), &["emu", "run", "lab.toml", "--json", "--", "a:", "sh", "-c", "exit 3"]);
    assert!(code == Some(1) && errors.contains("`sh -c exit 3` on a ended with exit status: 3"), "{errors}");
    assert_eq!(one(&events, "event", "ended")["code"], 3);
}

/// Needs a kernel: TCP, MLD and multicast of the kernel over IPv6.
#[test]
fn programs_on_emulated_hosts_use_ipv6() {
    let Some(_root) = require_root() else { return };
    let _turn = must(Turn::take(Company::Alone));
    let place = lab();
    let run = |options: &[&str], programs: &[String]| {
        let words = programs.join(" -- ");
        let words: Vec<&str> = words.split(' ').collect();
        // Receivers with the content of an earlier run would need no packets.
        let prepare = || {
            ["to-a", "to-b"].iter().for_each(|name| drop(std::fs::remove_dir_all(place.path().join(name))))
        };
        valid_after(
            place.path(),
            &[&["emu", "run", "lab.toml", "--json"], options, &["--"], &words].concat(),
            prepare,
        )
    };
    let events = run(&[], &["b: iperf3 -6 -s -1", "src: iperf3 -6 -c b -t 3"].map(str::to_owned));
    let mut lines = events.iter().filter(|event| event["host"] == "src").filter_map(|it| it["line"].as_str());
    let line = lines.rfind(|line| line.ends_with("receiver")).unwrap_or_else(|| panic!("{events:?}"));
    let rate = line.split(" Mbits/sec").next().and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    assert!(rate.is_some_and(|rate| (1.5..1.93).contains(&rate)), "60 of 1500 bytes are headers: {line}");

    let content = crate::kit::noise("over IPv6", 500_000);
    must(std::fs::write(place.path().join("file"), &content));
    let recv = |host: &str| format!("{host}: {FAIRCAST} recv --group [ff3e::70:1]:5777 --out to-{host}");
    let send = format!("src: {FAIRCAST} send file --no-key --group [ff3e::70:1]:5777 --expect 2");
    run(&["--pcap", "links.pcapng", "--timeout", "60"], &[recv("a"), recv("b"), send]);
    for host in ["a", "b"] {
        let received = must(std::fs::read(place.path().join(format!("to-{host}/file"))));
        assert!(received == content, "{host} has other bytes");
    }
    let capture = must(std::fs::read(place.path().join("links.pcapng")));
    let group = [0xff, 0x3e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x70, 0, 1];
    let packets = capture.windows(16).filter(|bytes| *bytes == group).count();
    assert!(packets > 300, "packets to the group: {packets}");
}

/// Needs a kernel: TCP, MLD and multicast of the kernel over IPv6.
#[test]
fn flows_of_a_scenario_use_ipv6() {
    let Some(_root) = require_root() else { return };
    let _turn = must(Turn::take(Company::Alone));
    let place = lab();
    let more = "
        [[flow]]
        name = \"tcp\"
        kind = \"tcp-cubic\"
        from = \"src\"
        to = \"b\"
        [[flow]]
        name = \"layers\"
        kind = \"session\"
        scheme = \"rlc,layers=2\"
        leave_latency = \"100 ms\"
        from = \"src\"
        to = \"b\"";
    let text = LAB.replace("taps = \"r->a\"", "taps = \"r->b\"");
    must(std::fs::write(place.path().join("lab.toml"), format!("{text}{more}")));
    let run = ["emu", "run", "lab.toml", "--ipv6", "--json", "--pcap", "links.pcapng"];
    let events = valid(place.path(), &run);
    let rate = |flow: &str| one(&events, "flow", flow)["rate"].as_f64().expect("a number");
    assert!((rate("flood") / 6e6 - 1.0).abs() < 0.02, "the mean rate of its link: {}", rate("flood"));
    for flow in ["tcp", "session", "layers"] {
        assert!((1e4..2e6).contains(&rate(flow)), "{flow}: {}", rate(flow));
    }
    let to_b = one(&events, "link", "r->b");
    assert!(to_b["offered"].as_f64() > Some(800.0), "the flows fill the link of b: {to_b}");
    let capture = must(std::fs::read(place.path().join("links.pcapng")));
    let group = |last: u8| [0xff, 0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, last];
    let packets = |last| capture.windows(16).filter(|bytes| *bytes == group(last)).count();
    assert!(packets(0x30) > 20, "the lowest layer reaches b: {}", packets(0x30));

    let small =
        LAB.split("[[change]]").next().expect("the flood").replace("\"udp\"", "\"udp\"\npacket = \"900 B\"");
    must(std::fs::write(place.path().join("lab.toml"), small));
    let (code, _, errors) = faircast(place.path(), &["emu", "run", "lab.toml", "--ipv6", "--mtu", "1000"]);
    assert!(code == Some(2) && errors.contains("IPv6 needs packets of 1280 bytes"), "{code:?} {errors}");
}

/// Needs a kernel: user namespaces.
#[test]
fn ordinary_user_runs_and_removes_emulations() {
    const NOBODY: u32 = 65_534;
    let Some(_root) = require_root() else { return };
    let _turn = must(Turn::take(Company::Alone));
    let place = lab();
    must(std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY)));
    let program = place.path().join("faircast");
    must(std::fs::copy(FAIRCAST, &program));
    let faircast = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(args).current_dir(place.path()).env("HOME", place.path()).uid(NOBODY).gid(NOBODY);
        let Output { status, stdout, stderr } = must(command.output());
        let (out, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        let events: Vec<Value> = out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (status.code(), events, errors.into_owned())
    };
    let run = ["emu", "run", "lab.toml", "--json", "--out", "record", "--pcap", "links.pcapng"];
    let words = "--flows -- b: iperf3 -s -1 -- a: iperf3 -6 -c b -n 100K".split(' ');
    let (code, events, errors) = faircast(&run.into_iter().chain(words).collect::<Vec<_>>());
    let done = events.last().unwrap_or_else(|| panic!("no events: {code:?} {errors}"));
    assert!(done["failures"] == serde_json::json!([]), "{errors}\n{events:?}");
    let rate = |flow: &str| one(&events, "flow", flow)["rate"].as_f64().expect("a number");
    assert!((rate("flood") / 6e6 - 1.0).abs() < 0.05 && rate("session") > 1e5, "{events:?}");
    let owner = must(std::fs::metadata(place.path().join("record/rates.csv"))).uid();
    assert_eq!(owner, NOBODY);

    let (code, up, errors) = faircast(&["emu", "up", "lab.toml", "--json"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let id = text(&up[0], "id");
    let ping = ["emu", "run", &id, "--json", "--", "src:", "ping", "-c", "1", "a"];
    let (_, events, errors) = faircast(&ping);
    assert_eq!(one(&events, "event", "ended")["code"], 0, "{errors} {events:?}");
    let (code, networks, _) = faircast(&["emu", "status", "--json"]);
    assert_eq!((code, &one(&networks, "id", &id)["keeper"]), (Some(0), &up[0]["keeper"]));
    let (code, _, errors) = faircast(&["emu", "down", &id]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(faircast(&["emu", "down", &id]).0, Some(2), "it is gone");
}

/// Needs a kernel: user namespaces.
#[test]
fn kernel_that_refuses_user_namespaces_is_named() {
    let Some(_root) = require_root() else { return };
    let place = lab();
    // In the new user namespace, the command is an ordinary user, and further user namespaces are refused.
    const REFUSING: &str = r#"echo 0 > /proc/sys/user/max_user_namespaces &&
        exec setpriv --ambient-caps=-all --inh-caps=-all "$0" emu run lab.toml"#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--keep-caps", "sh", "-c", REFUSING, FAIRCAST]).current_dir(place.path());
    let Output { status, stderr, .. } = must(command.output());
    let errors = String::from_utf8_lossy(&stderr);
    let wanted = [
        "an emulation needs root or user namespaces",
        "the kernel refuses",
        "sudo",
        "user.max_user_namespaces",
    ];
    assert!(
        status.code() == Some(2) && wanted.iter().all(|words| errors.contains(words)),
        "{status} {errors}"
    );
}

/// TCP with marks to one host, a session whose second receiver joins at 3 s and gets its packets from 5 s on, and transfers by TCP
/// and by a session.
const FLOWS: &str = r#"
title = "marks, joins and transfers"
duration = "8 s"
warmup = "2 s"
start_jitter = "0 s"

[topology]
kind = "text"
network = """
host src
host tcp
host a
host b
host c
host d
router r
link src r rate=100M delay=5ms
link tcp r rate=100M delay=5ms
link r a rate=8M delay=10ms queue=codel,ecn
link r b rate=2M delay=10ms queue=droptail,50
link r c rate=2M delay=10ms queue=droptail,50
link r d rate=8M delay=10ms queue=droptail,50
"""

[[flow]]
name = "tcp"
kind = "tcp-cubic,ecn"
from = "tcp"
to = "a"

[[flow]]
name = "session"
kind = "session"
scheme = "le-sbcc,preset=published,rate0=200000,rtt=0.2,backoff=0.1"
from = "src"
to = ["b", "c"]
join = ["0 s", "3 s"]
join_latency = "2 s"

[[flow]]
name = "web"
kind = "tcp-cubic"
transfer = 20
pause = "100 ms"
from = "src"
to = "d"

[[flow]]
name = "file"
kind = "session"
scheme = "ormcc"
packets = 300
content = 300
from = "src"
to = "d"
"#;

/// Needs a kernel: TCP with ECN, connections, and IGMP.
#[test]
fn marks_joins_and_transfers_have_their_effects() {
    let Some(_root) = require_root() else { return };
    let _turn = must(Turn::take(Company::Alone));
    let place = lab();
    must(std::fs::write(place.path().join("lab.toml"), FLOWS));
    let flood = ["--unknown-groups", "flood"];
    let events =
        valid(place.path(), &[&["emu", "run", "lab.toml", "--json", "--out", "record"], &flood[..]].concat());
    let to_a = one(&events, "link", "r->a");
    assert!(to_a["marked"].as_f64() > Some(3.0) && to_a["dropped"] == 0, "{to_a}");
    assert!(to_a["utilisation"].as_f64() > Some(0.8), "{to_a}");
    let rates = must(std::fs::read_to_string(place.path().join("record/rates.csv")));
    let rate = |receiver: &str| -> Vec<bool> {
        let rows = rates.lines().filter(|line| line.contains(&format!(",session,1,{receiver},")));
        rows.map(|row| row.rsplit(',').next() != Some("0")).collect()
    };
    assert_eq!(rate("c"), [false, false, false, false, false, true, true, true], "{rates}");
    assert_eq!(rate("b")[1..], [true; 7], "it has joined before the beginning: {rates}");
    let metrics = must(std::fs::read_to_string(place.path().join("record/metrics.csv")));
    let metric = |name: &str| -> f64 {
        let value = metrics.lines().find_map(|line| line.split_once(&format!(",{name},")));
        value.and_then(|(_, value)| value.parse().ok()).unwrap_or_else(|| panic!("no {name}: {metrics}"))
    };
    // A connection takes at least two round trips of 30 ms.
    assert!(
        metric("web.transfers") >= 10.0 && (0.06..0.6).contains(&metric("web.transfer_time.p50")),
        "{metrics}"
    );
    assert!((0.3..6.0).contains(&metric("file.completion")), "{metrics}");
    let of_file = rates.lines().rfind(|line| line.contains(",file,1,d,"));
    assert_eq!(of_file.and_then(|row| row.rsplit(',').next()), Some("0"), "it has ended: {rates}");
}

/// Needs a kernel: processes that are killed, and namespaces.
#[test]
fn killed_emulation_leaves_nothing_and_another_stays() {
    let Some(_root) = require_root() else { return };
    let _turn = must(Turn::take(Company::Shared));
    let place = lab();
    let (code, up, errors) = faircast(place.path(), &["emu", "up", "lab.toml", "--json"]);
    assert_eq!(code, Some(0), "{errors}");
    let (id, keeper) = (up[0]["id"].as_str().expect("a text"), up[0]["keeper"].as_u64().expect("a number"));

    // A program that leaves another one behind, in a network that is killed.
    let marker = format!("86400.{}", std::process::id());
    let line = format!("sleep {marker} & echo started; wait");
    let mut command = Command::new(FAIRCAST);
    command.args(["emu", "run", "lab.toml", "--", "a:", "sh", "-c", &line]).current_dir(place.path());
    let mut run = must(command.stdout(Stdio::piped()).spawn());
    let mut lines = BufReader::new(run.stdout.take().expect("it is a pipe")).lines();
    assert_eq!(lines.next().and_then(Result::ok).as_deref(), Some("a: started"));
    let listed = || {
        let (_, networks, errors) = faircast(place.path(), &["emu", "status", "--json"]);
        assert_eq!(errors, "");
        networks
            .into_iter()
            .filter_map(|it| Some((it["id"].as_str()?.to_owned(), it["keeper"].as_u64()?)))
            .collect::<Vec<_>>()
    };
    let own: Vec<u64> = listed().into_iter().map(|(_, keeper)| keeper).collect();
    assert!(own.contains(&keeper) && !processes(&marker).is_empty(), "{own:?}");
    must(run.kill());
    must(run.wait());
    let end = Instant::now() + Duration::from_secs(60);
    while !processes(&marker).is_empty() {
        assert!(Instant::now() < end, "a process remains: {:?}", processes(&marker));
        std::thread::sleep(Duration::from_millis(10));
    }

    let (code, events, errors) =
        faircast(place.path(), &["emu", "run", id, "--json", "--", "b:", "ping", "-c", "1", "a"]);
    assert!(
        events.last().is_some_and(|done| done["failures"] == serde_json::json!([])),
        "{code:?} {errors} {events:?}"
    );
    let (code, _, errors) = faircast(place.path(), &["emu", "down", id]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(listed().iter().all(|(other, _)| other != id), "{:?}", listed());
    // A process that has ended may wait for its parent, but it holds no namespace.
    let held = std::fs::read_dir(format!("/proc/{keeper}/fd")).map_or(0, Iterator::count);
    assert_eq!(held, 0, "the keeper has open files");
    let (code, _, errors) = faircast(place.path(), &["emu", "down", id]);
    assert!(code == Some(2) && errors.contains("there is no emulated network"), "{errors}");
}

/// How an emulation ends under traffic.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The run is killed.
    RunKilled,
    /// The run is interrupted.
    RunInterrupted,
    /// The keeper of a run is killed.
    KeeperKilled,
    /// A network that stays is removed.
    Removed,
}

/// Needs a kernel: namespaces and processes of emulations.
#[test]
fn emulations_that_end_under_traffic_leave_nothing() {
    end_under_traffic(4);
}

/// Needs a kernel: namespaces and processes of emulations.
#[test]
#[ignore = "it takes minutes"]
fn fifty_emulations_that_end_under_traffic_leave_nothing() {
    end_under_traffic(50);
}

/// Starts emulations with datagrams, a session and TCP, and ends them in all ways, beside one whose hosts have the same addresses.
fn end_under_traffic(cycles: usize) {
    let Some(_root) = require_root() else { return };
    let _turn = must(Turn::take(Company::Shared));
    let place = lab();
    let up = || {
        let (code, up, errors) = faircast(place.path(), &["emu", "up", "lab.toml", "--json"]);
        assert_eq!(code, Some(0), "{errors}");
        text(&up[0], "id")
    };
    let beside = up();
    for cycle in 0..cycles {
        let end = [End::RunKilled, End::RunInterrupted, End::KeeperKilled, End::Removed][cycle % 4];
        let stays = matches!(end, End::Removed).then(up);
        let network = stays.as_deref().map_or(vec!["lab.toml", "--flows"], |id| vec![id]);
        let mut command = Command::new(FAIRCAST);
        command.args(["emu", "run"]).args(network).current_dir(place.path()).stdout(Stdio::null());
        command.args(["--", "b:", "iperf3", "-s", "--", "a:", "iperf3", "-c", "b", "-t", "600"]);
        let mut run = must(command.stderr(Stdio::null()).spawn());
        let network = with_traffic(place.path(), stays.as_deref(), &run);
        let left = Remains::of(&network);
        match end {
            End::RunKilled => must(run.kill()),
            End::RunInterrupted => signal(run.id(), Signal::INT),
            End::KeeperKilled => signal(network["keeper"].as_u64().expect("a number") as u32, Signal::KILL),
            End::Removed => {
                let (code, _, errors) = faircast(place.path(), &["emu", "down", &text(&network, "id")]);
                assert_eq!((code, errors.as_str()), (Some(0), ""));
            }
        }
        let status = must(run.wait());
        assert!(
            status.code() == Some(1) || matches!(end, End::RunKilled) || status.code() == Some(3),
            "{end:?}: {status}"
        );
        left.end(end);
        let networks = networks(place.path());
        assert!(networks.iter().all(|other| other["id"] != network["id"]), "{end:?}: {networks:?}");
    }
    // The hosts of the other emulations have the same addresses and groups.
    let networks = networks(place.path());
    let quiet = one(&networks, "id", &beside);
    assert_eq!(quiet["load"]["packets"], 0, "packets of other emulations: {quiet}");
    let left = Remains::of(quiet);
    assert_eq!(faircast(place.path(), &["emu", "down", &beside]).0, Some(0));
    left.end(End::Removed);
}

fn text(event: &Value, key: &str) -> String {
    event[key].as_str().expect("a text").to_owned()
}

fn signal(process: u32, signal: Signal) {
    let process = Pid::from_raw(process.cast_signed()).expect("a process ID");
    must(kill_process(process, signal).map_err(std::io::Error::from));
}

fn networks(directory: &Path) -> Vec<Value> {
    let (code, networks, errors) = faircast(directory, &["emu", "status", "--json"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    networks.into_iter().filter(|event| event["event"] == "network").collect()
}

/// Waits until the network with this ID, or the network that a run has built, has carried packets.
fn with_traffic(directory: &Path, id: Option<&str>, run: &Child) -> Value {
    let is_meant = |network: &Value| match id {
        Some(id) => network["id"] == id,
        None => parent(network["keeper"].as_u64().expect("a number")) == Some(run.id()),
    };
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let networks = networks(directory);
        let found = networks.iter().find(|network| is_meant(network));
        if let Some(network) = found.filter(|it| it["load"]["packets"].as_u64() > Some(1_000)) {
            return network.clone();
        }
        assert!(Instant::now() < end, "no traffic: {found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the parent of a process.
fn parent(process: u64) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The namespaces of an emulation. Devices, addresses and queues are in them.
struct Remains(BTreeSet<PathBuf>);

impl Remains {
    fn of(network: &Value) -> Remains {
        let hosts = network["hosts"].as_array().expect("a list").iter();
        let files = hosts.map(|host| text(host, "namespace"));
        let keeper = network["keeper"].as_u64().expect("a number");
        let own = ["pid", "mnt"].map(|kind| format!("/proc/{keeper}/ns/{kind}"));
        let remains = Remains(files.chain(own).map(|file| must(std::fs::read_link(file))).collect());
        assert!(!remains.found().is_empty(), "a network that exists is found");
        remains
    }

    /// Waits until no process is in the namespaces or holds them open, and none is mounted.
    fn end(&self, how: End) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let found = self.found();
            if found.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "{how:?}: these namespaces remain: {found:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn found(&self) -> Vec<String> {
        let mut found = Vec::new();
        let processes = must(std::fs::read_dir("/proc")).filter_map(Result::ok).map(|it| it.path());
        for process in processes {
            // A process may end meanwhile. Other entries of /proc have no such folders.
            let links =
                ["ns", "fd"].iter().filter_map(|of| std::fs::read_dir(process.join(of)).ok()).flatten();
            let links = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
            found.extend(
                links
                    .filter(|to| self.0.contains(to))
                    .map(|to| format!("{}: {}", process.display(), to.display())),
            );
            let mounts = std::fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
            let is_ours = |line: &&str| {
                line.contains(" net:[") && self.0.iter().any(|it| line.contains(&*it.to_string_lossy()))
            };
            found.extend(mounts.lines().filter(is_ours).map(str::to_owned));
        }
        found
    }
}

/// Returns the processes whose arguments contain a text.
fn processes(text: &str) -> Vec<String> {
    let all = must(std::fs::read_dir("/proc"));
    let arguments = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let shown = all
        .filter_map(Result::ok)
        .filter_map(arguments)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    shown.filter(|line| line.contains(text)).collect()
}
