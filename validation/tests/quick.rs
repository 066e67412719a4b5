//! The cases that take little time, so that every change is held against them.

use faircast_validation::compare::Verdict;
use faircast_validation::reference::Reference;
use faircast_validation::run::run_all;

/// What lies outside, without those that have a stated reason.
fn outside(wanted: &dyn Fn(&str) -> bool, runs: u32) -> Vec<String> {
    let reference = Reference::read().expect("the package's own references");
    let all = run_all(&reference, wanted, Some(runs)).expect("the cases make sense");
    assert!(all.iter().any(|it| !it.lines.is_empty()), "nothing was compared");
    let lines = all.iter().flat_map(|it| it.lines.iter().map(move |line| (it.name(), line)));
    lines
        .filter(|(_, line)| line.verdict() == Verdict::Outside)
        .map(|(name, line)| {
            let (ours, theirs, allowed) = (line.ours, line.theirs.mean(), line.allowed);
            format!("{name}: {} is {ours}, in ns-2 {theirs}, allowed {allowed}", line.quantity)
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
fn a_star_without_multicast_is_full_as_in_ns_2() {
    assert_eq!(outside(&|name| name == "Star with multicast: without multicast", 1), [""; 0]);
}
