//! Runs scenarios from the file to the results. The results must have equal bytes with any number of threads or shards.

use faircast_experiments::results::Shard;
use faircast_experiments::results::{self, MergeError, Results, merge};
use faircast_experiments::run::{Codec, Progress, RunError, RunOptions, Silent, Status, run};
use faircast_experiments::scenario::Scenario;
use faircast_experiments::table::{Column, Table};
use faircast_sim::Mode;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// A sweep of two points with three seeds: a session with four receivers, TCP, datagrams, and a link that changes.
const SMALL: &str = r#"
title = "A little of everything"
duration = "12 s"
warmup = "4 s"
seeds = 3

[topology]
kind = "star"
sources = 2
leaves = 4
leaf = { rate = "1 Mbit/s", delay = "10 ms .. 40 ms", queue = "20 packets" }

[[flow]]
name = "multicast"
kind = "session"
scheme = "ormcc,preset=published"
from = "src1"
to = "leaf*"

[[flow]]
name = "tcp"
kind = "tcp-sack"
from = "src2"
to = "leaf*"

[[flow]]
name = "web"
kind = "tcp-reno"
from = "src2"
to = "leaf1"
transfer = "pareto 20"
pause = "exponential 1 s"

[[flow]]
name = "udp"
kind = "udp"
rate = "200 kbit/s"
from = "src2"
to = "leaf2"
on = "exponential 1 s"
off = "exponential 1 s"

[[change]]
at = "8 s"
link = "hub->leaf3"
rate = "500 kbit/s"
loss = "1 %"

[probe]
links = "hub->leaf[2-3]"

[sweep]
queue = { set = "topology.leaf.queue", to = ["20 packets", "red,buffer=20"] }
"#;

fn small() -> Scenario {
    Scenario::parse(SMALL, "small.toml").unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn run_with(options: RunOptions) -> Results {
    run(&small(), &options, &Silent).expect("it runs")
}

fn threads(count: usize) -> RunOptions {
    RunOptions { threads: NonZeroUsize::new(count), ..RunOptions::default() }
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a place for files")
}

/// Returns all files of a directory.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("readable");
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("readable");
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("readable"))
    };
    entries.map(file).collect()
}

/// Returns the scenario files below a directory.
fn scenario_files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).expect("readable").map(|entry| entry.expect("readable").path());
    let below = |path: std::path::PathBuf| if path.is_dir() { scenario_files(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|end| end == "toml")).collect()
}

#[test]
fn scenarios_accept_queues_that_hold_packets() {
    let text = SMALL.replace("\"20 packets\", \"red,buffer=20\"", "\"codel,limit=20\", \"drr,limit=20\"");
    assert!(text.contains("codel"));
    let scenario = Scenario::parse(&text, "small.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &threads(1), &Silent).expect("it runs");
    for point in 0..2 {
        let rates = results.metric(point, "udp.rate");
        assert!(!rates.is_empty() && rates.iter().all(|rate| *rate > 30e3), "{rates:?}");
    }
    let wrong = Scenario::parse(&text.replace("codel,limit=20", "codel,limit=0"), "small.toml").err();
    let wrong = wrong.map(|wrong| format!("{wrong:?}")).unwrap_or_default();
    assert!(wrong.contains("above 0"), "{wrong}");
}

#[test]
fn events_are_recorded_if_a_scenario_requests_them() {
    let text = SMALL.replace("[probe]", "[probe]\nevents = \"on\"");
    let scenario = Scenario::parse(&text, "small.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &threads(1), &Silent).expect("it runs");
    let events = results.table("events").expect("it is there");
    let Some(Column::Text(kinds)) = events.column("event") else { panic!("events are words") };
    for kind in ["join", "start", "cut", "follow", "transfer", "loss"] {
        assert!(kinds.iter().any(|known| known == kind), "no {kind}");
    }
    let silent = run_with(threads(1));
    assert_eq!(silent.table("events").map_or(1, Table::rows), 0);
    assert_eq!(silent.totals.digest, results.totals.digest, "looking changes nothing");
}

#[test]
fn every_scenario_of_the_repository_is_valid() {
    let files = scenario_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios"));
    assert!(files.len() > 25, "{}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("readable");
        Scenario::parse(&text, &file.to_string_lossy()).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (one, three) = (directory(), directory());
    results::write(&run_with(threads(1)), one.path()).expect("written");
    results::write(&run_with(threads(3)), three.path()).expect("written");
    let files = contents(one.path());
    assert!(files.len() >= 9, "{:?}", files.keys());
    assert!(files == contents(three.path()));
}

/// The number of calendar entries, which is in `run.json`, shows that the run was divided.
#[test]
fn threads_that_share_a_run_do_not_change_its_results() {
    let large = [
        ("leaves = 4", "leaves = 20"),
        ("sources = 2", "sources = 20"),
        ("1 Mbit/s\", delay", "500 Mbit/s\", delay"),
        ("from = \"src2\"\nto = \"leaf*\"", "from = \"src[1-20]\"\nto = \"leaf[1-20]\""),
        ("duration = \"12 s\"\nwarmup = \"4 s\"\nseeds = 3", "duration = \"2 s\""),
        ("at = \"8 s\"", "at = \"1 s\""),
    ];
    let text = large.iter().fold(SMALL.to_owned(), |text, (from, to)| text.replace(from, to));
    let (text, _) = text.split_once("[sweep]").expect("the scenario is a sweep");
    let scenario = Scenario::parse(text, "large.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let [alone, shared] = [1, 2].map(|count| run(&scenario, &threads(count), &Silent).expect("it runs"));
    assert_ne!(alone.totals.events, shared.totals.events);
    assert_eq!(alone.totals.digest, shared.totals.digest);
    for (alone, shared) in alone.tables.iter().zip(&shared.tables) {
        assert!(results::to_csv(alone) == results::to_csv(shared), "{}", alone.name);
    }
}

#[test]
fn both_modes_of_the_simulator_give_the_same_results() {
    let eager = run_with(threads(2));
    let evented = run_with(RunOptions { mode: Mode::Evented, ..threads(2) });
    for (eager, evented) in eager.tables.iter().zip(&evented.tables) {
        assert!(results::to_csv(eager) == results::to_csv(evented), "{}", eager.name);
    }
    assert_eq!(eager.totals.digest, evented.totals.digest);
}

#[test]
fn merged_shards_equal_the_whole_run_in_every_byte() {
    let (whole, merged) = (directory(), directory());
    results::write(&run_with(threads(2)), whole.path()).expect("written");
    let shards: Vec<_> = (1..=4).map(|_| directory()).collect();
    for (number, shard) in shards.iter().enumerate() {
        let options = RunOptions { shard: Some(Shard { index: number + 1, of: 4 }), ..threads(1) };
        results::write(&run_with(options), shard.path()).expect("written");
    }
    let paths: Vec<_> = shards.iter().rev().map(|shard| shard.path().to_owned()).collect();
    let summary = merge(&paths, merged.path()).expect("they belong together");
    assert_eq!((summary.runs, summary.missing.len()), (6, 0));
    let (whole, merged) = (contents(whole.path()), contents(merged.path()));
    assert_eq!(whole.keys().collect::<Vec<_>>(), merged.keys().collect::<Vec<_>>());
    for (name, bytes) in &whole {
        assert!(merged[name] == *bytes, "{name} differs");
    }
    let part = merge(&paths[..3], directory().path()).expect("they belong together");
    assert_eq!(part.missing.len(), 2);
}

#[test]
fn unrelated_results_are_not_merged() {
    let (a, b) = (directory(), directory());
    let shard = |index| RunOptions { shard: Some(Shard { index, of: 6 }), ..threads(1) };
    results::write(&run_with(shard(1)), a.path()).expect("written");
    results::write(&run_with(shard(2)), b.path()).expect("written");
    let paths = [a.path().to_owned(), b.path().to_owned()];
    let twice = merge(&[paths[0].clone(), paths[0].clone()], directory().path());
    assert!(matches!(twice, Err(MergeError::Twice { point: 0, seed: 1, .. })), "{twice:?}");
    let metrics = b.path().join("metrics.csv");
    let mut text = fs::read_to_string(&metrics).expect("readable");
    text.push('\n');
    fs::write(&metrics, text).expect("writable");
    assert!(
        matches!(merge(&paths, directory().path()), Err(MergeError::Changed { path }) if path == metrics)
    );
    let other = Scenario::parse(&SMALL.replace("12 s", "11 s"), "other.toml").expect("right");
    results::write(&run(&other, &shard(2), &Silent).expect("it runs"), b.path()).expect("written");
    let different = merge(&paths, directory().path());
    assert!(matches!(different, Err(MergeError::Different { what: "scenario", .. })), "{different:?}");
}

#[test]
fn every_packet_of_a_session_round_trips_in_the_wire_format() {
    let results = run_with(RunOptions { codec: Codec::RoundTrip, ..threads(2) });
    let codec = results.codec.expect("it went through");
    assert!(codec.packets > 1_000, "{codec:?}");
    assert_eq!((codec.wrong, codec.refused), (0, 0), "{codec:?}");
    assert_eq!(codec.same + codec.rounded, codec.packets);
    // The shares of short runs with competing TCP vary chaotically, so only their means can be compared.
    let mean = |results: &Results| {
        let rates = [results.metric(0, "multicast.rate"), results.metric(1, "multicast.rate")].concat();
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    let ratio = mean(&results) / mean(&run_with(threads(2)));
    assert!((0.7..1.4).contains(&ratio), "roundings do not make another scheme: {ratio}");
}

#[test]
fn results_have_one_row_per_seed_and_seeds_differ() {
    let results = run_with(threads(2));
    let rates = results.metric(0, "multicast.rate");
    assert_eq!(rates.len(), 3);
    assert!(rates[0] != rates[1] && rates[1] != rates[2], "{rates:?}");
    assert!(results.metric_names().contains(&"web.transfer_time"));
    assert_eq!(results.jobs.len(), 6);
}

/// Stores each status, and requests that the runs stop after the first completed run.
#[derive(Default)]
struct Impatient(Mutex<Vec<Status>>);

impl Progress for Impatient {
    fn update(&self, status: &Status) {
        self.0.lock().expect("nobody panics").push(*status);
    }

    fn is_cancelled(&self) -> bool {
        self.0.lock().expect("nobody panics").iter().any(|status| status.done > 0)
    }
}

#[test]
fn run_reports_progress_and_can_be_cancelled() {
    let progress = Impatient::default();
    assert_eq!(run(&small(), &threads(1), &progress), Err(RunError::Cancelled));
    let reported = progress.0.into_inner().expect("nobody panics");
    assert!(reported.windows(2).all(|pair| pair[0].simulated <= pair[1].simulated));
    assert!(reported.iter().all(|status| status.runs == 6 && status.to_simulate == 72.0 && status.done <= 2));
}

#[test]
fn shard_numbers_are_parsed_and_empty_shards_refused() {
    assert_eq!("2/8".parse(), Ok(Shard { index: 2, of: 8 }));
    for wrong in ["0/8", "9/8", "2", "a/b", ""] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
    let options = RunOptions { shard: Some(Shard { index: 7, of: 8 }), ..threads(1) };
    assert!(matches!(run(&small(), &options, &Silent), Err(RunError::EmptyShard(_, 6))));
}

/// Dissects a file with tshark. Returns these fields of each packet.
fn dissect(file: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-T", "fields", "-E", "separator=|"]);
    tshark.args([
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
    ]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

#[test]
fn wireshark_decodes_captured_packets() {
    let text = SMALL
        .replace("[probe]", "[probe]\ntaps = [\"hub->leaf[1-2]\", \"leaf*->hub\"]")
        .replace("seeds = 3", "seeds = 1");
    let scenario = Scenario::parse(&text, "taps.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &threads(2), &Silent).expect("it runs");
    assert_eq!(results.captures.len(), 2);
    let place = directory();
    results::write(&results, place.path()).expect("written");
    let file = place.path().join("packets-p0-s1.pcapng");
    let fields = [
        "frame.protocols",
        "ip.checksum.status",
        "tcp.checksum.status",
        "udp.checksum.status",
        "udp.payload",
    ];
    let Some(packets) = dissect(&file, &fields) else {
        eprintln!("tshark is not installed: the capture is not looked at");
        return;
    };
    let good = |status: &str| status.is_empty() || status == "1";
    assert!(packets.len() > 1_000);
    assert!(packets.iter().all(|packet| packet[1] == "1" && good(&packet[2]) && good(&packet[3])));
    let count = |found: &dyn Fn(&Vec<String>) -> bool| packets.iter().filter(|packet| found(packet)).count();
    assert!(count(&|packet| packet[0].contains("tcp")) > 100);
    let is_kind = |payload: &str, kind: &str| payload.starts_with("fc3") && payload.get(4..6) == Some(kind);
    assert!(count(&|packet| is_kind(&packet[4], "01")) > 100, "data packets of the native format");
    assert!(count(&|packet| is_kind(&packet[4], "02")) > 5, "and reports");
    let losses = dissect(&file, &["frame.comment"]).expect("was there before");
    assert!(losses.iter().any(|packet| packet[0] == "dropped: the buffer was full"));
    let sacks = dissect(&file, &["tcp.options.sack_le"]).expect("was there before");
    assert!(sacks.iter().any(|packet| !packet[0].is_empty()));
}

/// Counts the packets of a pcapng file by ECN codepoint: not ECN-capable, ECT(1), ECT(0), CE.
fn codepoints(file: &[u8]) -> [usize; 4] {
    let (mut counts, mut at) = ([0; 4], 0);
    while let Some([kind, length]) = file.get(at..at + 8).map(|head| {
        [0, 4].map(|place| u32::from_le_bytes(head[place..place + 4].try_into().expect("four bytes")))
    }) {
        if kind == 6 {
            let ipv4 = at + 28 + 14;
            counts[usize::from(file[ipv4 + 1] & 3)] += 1;
        }
        at += length as usize;
    }
    counts
}

#[test]
fn captured_packets_carry_their_ecn_codepoints() {
    let scenario = r#"
title = "Marks"
duration = "10 s"

[topology]
kind = "dumbbell"
sources = 2
leaves = 1
bottleneck = { rate = "4 Mbit/s", delay = "20 ms", queue = "dualpi2" }

[[flow]]
name = "multicast"
kind = "session"
scheme = "ormcc"
ecn = "on"
from = "src1"
to = "leaf1"

[[flow]]
name = "prague"
kind = "tcp-prague"
from = "src2"
to = "leaf1"

[probe]
links = "left->right"
taps = "left->right"

[sweep]
queue = { set = "topology.bottleneck.queue", to = ["red,buffer=60,ecn", "dualpi2", "fq_codel,ecn"] }
"#;
    let scenario = Scenario::parse(scenario, "marks.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &threads(2), &Silent).expect("it runs");
    for (point, capture) in results.captures.iter().enumerate() {
        let [_, ect1, ect0, marked] = codepoints(&capture.bytes);
        assert!(ect1 > 100 && ect0 > 100, "{ect1} {ect0}");
        assert_eq!(results.metric(point, "link.left->right.marks"), [marked as f64]);
        assert!(marked > 0);
    }
}

#[test]
fn metrics_include_unicast_delays_and_bottleneck_counts() {
    let scenario = r#"
title = "Delays"
duration = "20 s"
warmup = "5 s"

[topology]
kind = "dumbbell"
sources = 2
leaves = 2
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = "dualpi2" }
access = { rate = "unlimited", delay = "1 ms" }
leaf = { rate = "unlimited", delay = "1 ms" }

[[flow]]
name = "prague"
kind = "tcp-prague"
delays = "on"
from = "src1"
to = "leaf1"

[[flow]]
name = "cubic"
kind = "tcp-cubic"
delays = "on"
from = "src2"
to = "leaf2"

[[link]]
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "5 ms"

[[flow]]
name = "alone"
kind = "tcp-reno,window=1"
delays = "on"
from = "a"
to = "b"

[probe]
links = ["left->right", "a->b"]
"#;
    let scenario = Scenario::parse(scenario, "delays.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &threads(1), &Silent).expect("it runs");
    let metric = |name: &str| results.metric(0, name)[0];
    // The flow's own link has a delay of 5 ms and a transmission time of 8 ms.
    assert!((metric("alone.delay") - 0.013).abs() < 1e-6, "{}", metric("alone.delay"));
    assert!((metric("alone.delay.p99") / 0.013 - 1.0).abs() < 0.05);
    for group in ["prague", "cubic"] {
        let [p50, p95, p99] = ["p50", "p95", "p99"].map(|name| metric(&format!("{group}.delay.{name}")));
        assert!(0.012 <= p50 && p50 <= p95 && p95 <= p99, "{group}: {p50} {p95} {p99}");
    }
    assert!(metric("prague.delay.p50") < metric("cubic.delay.p50"), "the queue for L4S is the shorter one");
    let Some(Column::Number(delays)) = results.table("flows").and_then(|table| table.column("delay_p99"))
    else {
        panic!("every flow has a column")
    };
    assert_eq!(delays.len(), 3);
    assert!((delays[0] - metric("prague.delay.p99")).abs() < 1e-12);
    assert!(metric("link.left->right.busy") > 0.5 && metric("link.a->b.busy") == 0.0);
    assert!(metric("link.left->right.acted") > 0.0 && metric("link.a->b.acted") == 0.0);
}

#[test]
fn bottlenecks_of_a_tree_are_found_without_probes() {
    let scenario = r#"
title = "A tree"
duration = "20 s"
warmup = "5 s"
seeds = 2

[topology]
kind = "tree"
fanout = [2, 3]
level = [
  { rate = "20 Mbit/s", delay = "2 ms", queue = "100 packets" },
  { rate = ["1 Mbit/s", "5 Mbit/s"], delay = "5 ms", queue = "red,floyd,limit=30" },
]

[[flow]]
name = "tcp"
kind = "tcp-sack"
from = "root"
to = "leaf1"

[[flow]]
name = "datagrams"
kind = "udp"
rate = "1 Mbit/s"
from = "root"
to = "leaf2"
"#;
    let scenario = Scenario::parse(scenario, "tree.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &threads(1), &Silent).expect("it runs");
    let found = results.bottlenecks(0);
    let [only] = &found[..] else { panic!("{found:?}") };
    assert!(only.link.ends_with("->leaf1") && only.runs == 2, "{only:?}");
    assert!(only.utilisation > 0.8 && only.dropped_early > 0.0 && only.dropped_full == 0.0, "{only:?}");
    // Two flows, each with data and acknowledgements, cross two other links each.
    assert_eq!(results.metric(0, "links.bottlenecks"), [1.0, 1.0]);
    assert!((0.19..0.22).contains(&results.metric(0, "links.others.utilisation")[0]));
}

/// An RLC session to two slow and two fast receivers.
const LAYERED: &str = r#"
title = "Layers"
duration = "60 s"
warmup = "30 s"

[topology]
kind = "star"
leaves = 4
leaf = { rate = ["250 kbit/s", "2 Mbit/s"], delay = "20 ms", queue = "20 packets" }

[[flow]]
name = "layered"
kind = "session"
scheme = "rlc,preset=published"
from = "src1"
to = "leaf*"
join_latency = "20 ms"
leave_latency = "200 ms"
parts = [{ name = "slow", receivers = ["leaf1", "leaf3"] }, { name = "fast", receivers = ["leaf2", "leaf4"] }]

[[fit]]
name = "width"
of = ["layered.slow.rate", "layered.fast.rate"]
against = ["250 kbit/s", "2 Mbit/s"]
"#;

#[test]
fn layered_sessions_have_subscription_metrics_and_figures() {
    let scenario = Scenario::parse(LAYERED, "layered.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &threads(1), &Silent).expect("it runs");
    let metric = |name: &str| *results.metric(0, name).first().unwrap_or_else(|| panic!("no {name}"));
    assert!(metric("layered.fast.layers") > metric("layered.slow.layers") + 1.0);
    assert!(metric("layered.fast.rate") > 2.0 * metric("layered.slow.rate"));
    assert!(metric("fit.width.slope") > 0.2, "{}", metric("fit.width.slope"));
    assert!(metric("layered.slow.join.1") < metric("layered.fast.join.3"));
    assert!(metric("layered.fast.layers.max") >= metric("layered.fast.layers.end"));
    assert!(metric("layered.layers.agreement") < metric("layered.fast.layers.agreement"));
    let figures = faircast_experiments::figures::figures(&scenario, &results);
    for name in ["subscriptions", "layers"] {
        let (_, figure) = figures.iter().find(|(known, _)| *known == name).expect("there are several layers");
        let svg = figure.svg();
        assert!(svg.contains("<path") && !svg.contains("NaN"), "{name}");
    }
}

#[test]
fn trends_are_judged_over_all_points_of_a_sweep() {
    let text = r#"
title = "TCP's rate falls with the square root of the loss rate"
duration = "100 s"
[[link]]
from = "a"
to = "b"
rate = "100 Mbit/s"
delay = "50 ms"
queue = "1 MB"
[[flow]]
name = "tcp"
kind = "tcp-sack"
from = "a"
to = "b"
[probe]
links = "a->b"
[sweep]
loss = { set = ["link.1.loss"], to = ["0.2 %", "0.5 %", "1 %", "2 %"] }
[[claim]]
name = "exponent"
of = "tcp.goodput"
against = "link.a->b.loss"
scale = "log"
low = -0.8
high = -0.4
[[claim]]
name = "explained"
of = "tcp.goodput"
against = "link.a->b.loss"
scale = "log"
fit = "r2"
low = 0.9
"#;
    let scenario = Scenario::parse(text, "trend.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &threads(2), &Silent).expect("it runs");
    let judged = faircast_experiments::repro::judge(&scenario, &results);
    assert_eq!(judged.len(), 2, "one for each claim, not one for each point");
    for claim in judged {
        assert_eq!(claim.verdict, faircast_experiments::repro::Verdict::Holds, "{claim:?}");
    }
}

/// A layered session with a part, a session with a timetable of representatives, a fit, and a transfer of a few packets.
const EVERYTHING: &str = r#"
title = "Layers, parts and fits"
duration = "30 s"
warmup = "10 s"

[topology]
kind = "star"
sources = 2
leaves = 3
leaf = { rate = ["300 kbit/s", "1 Mbit/s"], delay = "20 ms", queue = "20 packets" }

[[flow]]
name = "layered"
kind = "session"
scheme = "rlc,preset=published"
from = "src1"
to = "leaf*"
parts = [{ name = "slow", receivers = "leaf1" }, { name = "fast", receivers = "leaf[2-3]" }]

[[flow]]
name = "followed"
kind = "session"
scheme = "ormcc"
from = "src1"
to = "leaf[1-2]"
expected = [{ from = 0, is = "leaf1" }]
settle = "1 s"

[[flow]]
name = "short"
kind = "tcp-reno"
from = "src2"
to = "leaf2"
packets = 30

[[window]]
name = "early"
from = "2 s"
to = "8 s"

[[fit]]
name = "line"
of = ["layered.slow.rate", "layered.fast.rate"]
against = ["300 kbit/s", "1 Mbit/s"]

[probe]
links = "hub->leaf1"
"#;

/// Metrics that compare the members of a group. A group with a single flow or receiver does not have these metrics.
const AMONG: [&str; 7] =
    ["jain", "rate.max", "rate.min", "rate.sd", "layers.agreement", "joins.max", "leaves.max"];

/// Returns whether a predicted metric may be missing in a run. Examples are a metric of a layer that no receiver joined, a
/// comparison within a group of one member, or an undefined value of a group without packets.
fn may_be_missing(name: &str, of_one: &[&str], idle: &[&str]) -> bool {
    let bare = name.split('@').next().unwrap_or(name);
    let numbered = bare.split('.').any(|word| word.parse::<u32>().is_ok());
    let of = |groups: &[&str], metrics: &[&str]| {
        groups.iter().any(|group| metrics.iter().any(|metric| bare == format!("{group}.{metric}")))
    };
    numbered || of(of_one, &AMONG) || of(idle, &["cov", "loss"])
}

/// Tests that runs produce exactly the predicted metric names, against which claims are checked.
#[test]
fn runs_produce_the_predicted_metric_names() {
    let cases: [(&str, &[&str], &[&str]); 2] =
        [(SMALL, &["udp", "web"], &[]), (EVERYTHING, &["layered.slow", "short"], &["short"])];
    for (text, of_one, idle) in cases {
        let scenario = Scenario::parse(text, "here.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
        let known = scenario.metric_names(0);
        let results = run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
        let given: std::collections::BTreeSet<&str> =
            results.metrics.iter().filter(|row| row.point == 0).map(|row| row.name.as_str()).collect();
        for name in &given {
            assert!(known.contains(*name), "{name} is not known before");
        }
        let never = known.iter().filter(|name| !given.contains(name.as_str()));
        let wrong: Vec<_> = never.filter(|name| !may_be_missing(name, of_one, idle)).collect();
        assert!(wrong.is_empty(), "known, but they did not come: {wrong:?}");
    }
}
