//! The cases with short runs, which every change is tested against.

use faircast_validation::compare::{Judged, Verdict};
use faircast_validation::reference::Reference;
use faircast_validation::run::run_all;

/// Returns the values outside the tolerance, except for values with a stated reason.
fn outside(wanted: &dyn Fn(&str) -> bool, runs: u32) -> Vec<String> {
    let reference = Reference::read().expect("the package's own references");
    let all = run_all(&reference, wanted, Some(runs)).expect("the cases make sense");
    assert!(all.iter().any(|it| !it.lines.is_empty()), "nothing was compared");
    let lines = all.iter().flat_map(|it| it.lines.iter().map(move |line| (&it.case.name, line)));
    lines
        .filter(|(_, line)| line.verdict() == Verdict::Outside)
        .map(|(name, line)| {
            let (ours, theirs, allowed) = (line.ours.mean, line.deciding().mean(), line.allowed());
            format!("{name}: {} is {ours:?}, in ns-2 {theirs}, allowed {allowed:?}", line.quantity)
        })
        .collect()
}

#[test]
fn one_flow_behaves_as_in_ns_2() {
    assert_eq!(outside(&|name| name.starts_with("One flow"), 1), [""; 0]);
}

#[test]
fn ten_reno_flows_share_a_queue_as_in_ns_2() {
    assert_eq!(outside(&|name| name.starts_with("Ten Reno"), 3), [""; 0]);
}

#[test]
fn star_without_multicast_has_the_values_of_ns_2() {
    assert_eq!(outside(&|name| name == "Star with multicast: without multicast", 1), [""; 0]);
}

#[test]
fn twenty_sack_flows_share_red_with_marks_as_in_ns_2() {
    assert_eq!(outside(&|name| name == "Queues in ns-2: 20 SACK, ECN, RED2060", 2), [""; 0]);
}

#[test]
fn value_without_a_verdict_has_a_reason() {
    let reference = Reference::read().expect("the package's own references");
    let all = run_all(&reference, &|name| name == "Queues in ns-3: 1 SACK, CoDel, 10 Mbit/s", Some(1));
    let all = all.expect("the cases make sense");
    let line = all[0].lines.iter().find(|line| line.quantity == "fairness").expect("it is there");
    assert!(matches!(line.judged, Judged::Not(why) if why.contains("not comparable")));
    assert!(line.ours.mean.is_some());
}
