//! Tests that all loads are valid scenarios, and that runs in which the queue acted are recognized.

use super::bench::{Acted, Settings, bench, marking};
use super::loads::Set;
use crate::run::{RunOptions, Silent};
use crate::scenario::Scenario;

#[test]
fn every_load_is_a_valid_scenario_with_several_queues() {
    for set in [Set::Rfc7928, Set::Three, Set::Multicast] {
        for load in set.loads() {
            let queues = ["droptail,100", "fq_codel"].map(|queue| (queue.to_owned(), marking(queue)));
            let text = load.scenario(&queues, 30.0);
            let scenario = Scenario::parse(&text, load.name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.points().len(), 2, "{}", load.name);
            for group in load.equals {
                assert!(scenario.groups().any(|known| known == *group), "{}: {group}", load.name);
            }
        }
    }
}

#[test]
fn queues_mark_only_if_configured() {
    assert_eq!(marking("codel"), "codel,ecn");
    assert_eq!(marking("codel,ecn"), "codel,ecn");
    assert_eq!(marking("droptail,100"), "droptail,100", "it does not");
    assert_eq!(marking("dualpi2"), "dualpi2", "it always does");
}

#[test]
fn rows_record_whether_the_queue_acted() {
    let settings = Settings {
        set: Set::Three,
        queues: ["droptail,100", "droptail,100000", "codel", "drr"].map(str::to_owned).to_vec(),
        seeds: vec![5],
        seconds: 15.0,
        options: RunOptions::default(),
    };
    let bench = bench(&settings, &Silent).expect("it runs");
    let acted = |queue: usize| {
        bench
            .rows
            .iter()
            .filter(|row| row.queue == queue && row.load == 0)
            .map(|row| row.acted)
            .collect::<Vec<_>>()
    };
    assert_eq!(acted(0), [Acted::OverflowOnly], "a full buffer is no reason of its own");
    assert_eq!(acted(1), [Acted::OverflowOnly], "it was the bottleneck and dropped nothing");
    assert_eq!(acted(2), [Acted::Yes]);
    assert_eq!(acted(3), [Acted::Yes], "it sent packets in another order");
    let delay = |queue: usize| bench.rows.iter().find(|row| row.queue == queue).expect("it ran").delay;
    assert!(
        delay(2) < delay(0) && delay(0) < delay(1),
        "CoDel keeps it short, and a large buffer makes it long"
    );
    assert_eq!(bench.csv().lines().count(), 1 + 4 * 3);
    assert!(bench.table(0).markdown().contains("* overflow"));
    assert!(bench.page("faircast aqm compare").contains("Comparison of queues"));
}
