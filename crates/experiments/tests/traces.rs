//! Sources and links that follow traces.

use faircast_experiments::results::Results;
use faircast_experiments::run::{RunOptions, Silent, run};
use faircast_experiments::scenario::Scenario;
use faircast_sim::Mode;

const SCENARIO: &str = r#"
title = "Traces"
duration = "20 s"
seeds = 2

[topology]
kind = "dumbbell"
sources = 2
leaves = 2
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = "50 packets" }

[[flow]]
name = "tcp"
kind = "tcp-cubic"
from = "src1"
to = "leaf1"
start_jitter = 0

[[flow]]
name = "talk"
kind = "udp"
rate = "10 Mbit/s"
from = "src2"
to = "leaf2"
packet = "500 B"
start = "1 s"
start_jitter = 0
trace = """
seconds,bytes
0,1200
0.5,500
0.5,100
9,20000
"""

[[flow]]
name = "writes"
kind = "tcp-sack"
from = "src2"
to = "leaf2"
start_jitter = 0
trace = "0,5000\n10,5000"

[[change]]
at = "4 s"
link = "left->right"
rates = """
0,2e6
4,4e6
8,2e6
"""

[[window]]
name = "slow"
from = "5 s"
to = "8 s"

[[window]]
name = "fast"
from = "9 s"
to = "12 s"

[[window]]
name = "again"
from = "13 s"
to = "16 s"

[probe]
links = "left->right"
"#;

fn outcome(mode: Mode) -> Results {
    let scenario = Scenario::parse(SCENARIO, "traces").expect("it is a scenario");
    run(&scenario, &RunOptions { mode, ..RunOptions::default() }, &Silent).expect("it runs")
}

#[test]
fn links_follow_and_repeat_their_rate_trace() {
    let results = outcome(Mode::Eager);
    let rate = |window: &str| results.metric(0, &format!("tcp.rate@{window}"))[0];
    for (window, rate_of_link) in [("slow", 2e6), ("fast", 4e6), ("again", 2e6)] {
        let share = rate(window) / rate_of_link;
        assert!((0.93..1.01).contains(&share), "{window}: {share} of the link");
    }
}

#[test]
fn sources_send_the_bytes_of_their_trace_in_whole_packets() {
    let results = outcome(Mode::Eager);
    // 45 packets of 500 bytes each: 3, then 1 and 1, then 40.
    assert_eq!(results.metric(0, "talk.sent"), [45.0; 2]);
    assert_eq!(results.metric(0, "writes.sent"), [10.0; 2], "and none again");
}

#[test]
fn both_simulator_modes_give_equal_results_with_traces() {
    let (eager, evented) = (outcome(Mode::Eager), outcome(Mode::Evented));
    assert_eq!(eager.totals.digest, evented.totals.digest);
}

#[test]
fn error_about_a_trace_contains_the_number_of_the_line() {
    let wrong = |from: &str, to: &str| {
        let text = SCENARIO.replacen(from, to, 1);
        assert_ne!(text, SCENARIO);
        Scenario::parse(&text, "traces").expect_err(to).to_string()
    };
    let message = wrong("8,2e6", "8,0");
    assert!(message.contains("line 3 of the trace, \"8,0\""), "{message}");
    wrong("9,20000", "nine,20000");
    wrong("kind = \"tcp-sack\"", "kind = \"tcp-sack\"\npackets = 5");
    wrong("rates = ", "rates_file = ");
}
