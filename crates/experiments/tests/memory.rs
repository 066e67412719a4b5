//! Tests estimates of the memory of a scenario, which are made before the network is laid out.

use faircast_experiments::run::{Progress, RunError, RunOptions, Silent, Status, run};
use faircast_experiments::scenario::{Diagnostics, Scenario};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

const STAR: &str = r#"
title = "Large"
duration = "5 s"

[topology]
kind = "star"
leaves = 20
leaf = { rate = "1 Mbit/s", delay = "20 ms", queue = "20 packets" }

[[flow]]
name = "multicast"
kind = "session"
scheme = "ormcc"
from = "src1"
to = "leaf*"
"#;

const DUMBBELL: &str = r#"
title = "Many"
duration = "30 s"

[topology]
kind = "dumbbell"
sources = 50
leaves = 50
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = "100 packets" }

[[flow]]
name = "tcp"
kind = "tcp-cubic"
from = "src[1-50]"
to = "leaf[1-50]"
count = 4

[[flow]]
name = "web"
kind = "udp"
rate = "100 kbit/s"
from = "src1"
to = "leaf1"

[probe]
links = ["left->right"]
queue_every = "1 ms"
sample = "10 ms"
"#;

fn parsed(text: &str) -> Scenario {
    Scenario::parse(text, "t.toml").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn changed(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// Measures the memory of the thread that makes the runs.
#[derive(Default)]
struct Measured(AtomicU64);

impl Progress for Measured {
    fn update(&self, _status: &Status) {}

    fn in_thread(&self, runs: &mut dyn FnMut()) {
        self.0.store(allocation_counter::measure(runs).bytes_max, Ordering::Relaxed);
    }
}

#[test]
fn memory_estimate_is_slightly_above_the_memory_of_a_run() {
    let large = changed(STAR, &[("leaves = 20\n", "leaves = 20000\n")]);
    let many = changed(DUMBBELL, &[("count = 4", "count = 20")]);
    let coming = changed(
        STAR,
        &[
            ("leaves = 20\n", "leaves = 3000\n"),
            (
                "from = \"src1\"",
                "from = \"src1\"\npresent = \"exponential 100 ms\"\nabsent = \"exponential 100 ms\"",
            ),
        ],
    );
    for (name, text) in [("star", &*large), ("dumbbell", DUMBBELL), ("many", &many), ("coming", &coming)] {
        let scenario = parsed(text);
        let options = RunOptions { threads: NonZeroUsize::new(1), ..RunOptions::default() };
        let measured = Measured::default();
        run(&scenario, &options, &measured).unwrap_or_else(|error| panic!("{error}"));
        let took = measured.0.into_inner();
        let estimate = scenario.estimate_of_runs(&[(0, 1)], 1).total();
        println!("{name}: {took} bytes at most, estimated {estimate}; {:?}", scenario.estimate(0).parts());
        assert!((took..took * 6 + 10_000_000).contains(&estimate), "{name}: {took}, estimated {estimate}");
    }
}

#[test]
fn scenarios_too_large_for_memory_are_refused_before_layout() {
    for (text, from, to, what) in [
        (STAR, "leaves = 20\n", "leaves = 200000000\n", "200000000 receivers of \"multicast\""),
        (STAR, "duration = \"5 s\"", "duration = \"1000000000 s\"", "moments of flows' series"),
        (STAR, "leaves = 20\n", "leaves = 20\nsources = 100000000\n", "100000021 nodes"),
        (DUMBBELL, "count = 4", "count = 100000000", "moments of flows' series"),
        (DUMBBELL, "queue_every = \"1 ms\"", "queue_every = \"1 ns\"", "30000000001 samples of queues"),
        (DUMBBELL, "sample = \"10 ms\"", "sample = \"1 ns\"", "moments of flows' series"),
        (DUMBBELL, "queue = \"100 packets\"", "queue = \"sfb,levels=16,bins=65536\"", ""),
        (DUMBBELL, "delay = \"10 ms\", queue", "delay = \"900000 s\", queue", ""),
        (DUMBBELL, "rate = \"100 kbit/s\"", "rate = \"100 Gbit/s\"", "packets in queues and on links"),
    ] {
        let text = changed(text, &[(from, to)]);
        let refused = Scenario::parse(&text, "t.toml");
        if what.is_empty() {
            // These values are large but permitted, because packets that the queue drops take no memory.
            assert!(refused.is_ok(), "{to}: {refused:?}");
            continue;
        }
        let refused = refused.expect_err(to).to_string();
        assert!(refused.contains("too large for this run") && refused.contains(what), "{to}: {refused}");
        assert!(refused.contains("--max-memory "), "{to}: {refused}");
    }
}

#[test]
fn configured_memory_limit_is_enforced() {
    let text = changed(STAR, &[("leaves = 20\n", "leaves = 3000\n")]);
    let within = |bytes| -> Result<Scenario, Diagnostics> { Scenario::parse_within(&text, "t.toml", bytes) };
    let refused = within(1_000_000).expect_err("it takes more").to_string();
    assert!(
        refused.contains("1.0 MB are allowed: 3000 receivers") || refused.contains("1.0 MB are allowed"),
        "{refused}"
    );
    assert!(within(u64::MAX).is_ok());
}

#[test]
fn runs_whose_results_exceed_memory_are_refused() {
    let text = changed(DUMBBELL, &[("sample = \"10 ms\"", "sample = \"1 ms\"")]);
    let mut scenario = parsed(&text);
    scenario.set_seeds((1..=20_000).collect());
    let refused = run(&scenario, &RunOptions::default(), &Silent).expect_err("it is too much");
    assert!(matches!(refused, RunError::Memory { .. }), "{refused}");
    assert!(refused.to_string().contains("20000 runs whose results are kept"), "{refused}");
}
