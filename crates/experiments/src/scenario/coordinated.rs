//! Groups of flows that share congestion control.

use super::diagnostic::{Diagnostic, meant};
use super::plan::{CoordinatePlan, FlowKind, RunPlan, SharedBy};
use faircast_sim::{CoordinationSpec, FlowId, Groups};
use faircast_unicast::cocoon::grouping;
use faircast_unicast::coordination::Coordination;

/// A flow of the layout: the index of its group, and the two nodes at its ends.
#[derive(Debug, Clone, Copy)]
struct Ends {
    group: usize,
    source: u32,
    receiver: u32,
}

/// Returns the flows that share congestion control, in the form of the simulator. Flows are numbered as in the layout. `flows`
/// has for each flow the index of its group in the plan, its source and its first receiver.
pub(super) fn specs(
    flows: impl Iterator<Item = (usize, u32, u32)>,
    plan: &RunPlan,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<CoordinationSpec> {
    let laid: Vec<_> = flows.map(|(group, source, receiver)| Ends { group, source, receiver }).collect();
    plan.coordinated.iter().filter_map(|reported| spec(&laid, plan, reported, wrong)).collect()
}

fn spec(
    laid: &[Ends],
    plan: &RunPlan,
    reported: &CoordinatePlan,
    wrong: &mut Vec<Diagnostic>,
) -> Option<CoordinationSpec> {
    let mut hosts: Vec<u32> = Vec::new();
    let mut flows: Vec<(FlowId, u32)> = Vec::new();
    for (place, name) in reported.flows.iter().enumerate() {
        let Some(group) = plan.flows.iter().position(|flow| flow.name.value == name.value) else {
            let message = format!("no flow is called \"{}\"", name.value);
            let known: Vec<_> = plan.flows.iter().map(|flow| flow.name.value.as_str()).collect();
            wrong.push(Diagnostic::new(&name.span, message, "unknown").help(meant(&name.value, &known)));
            continue;
        };
        for (number, flow) in laid.iter().enumerate().filter(|(_, flow)| flow.group == group) {
            if reported.groups == SharedBy::Measured && !can_be_measured(reported, &plan.flows[group].kind) {
                let message = format!("the groups of \"{}\" cannot be measured", name.value);
                let help =
                    "measured groups require TCP flows with separate windows; use `cocoon` or `ensemble`";
                wrong.push(Diagnostic::new(&reported.span, message, "no groups").help(help));
                return None;
            }
            let first = flows.first().map_or(flow.source, |first| laid[first.0.0 as usize].source);
            if matches!(plan.flows[group].kind, FlowKind::Session(_)) || flow.source != first {
                let message =
                    format!("\"{}\" cannot share congestion control with the other flows", name.value);
                let help = "only unicast flows from the same node can share congestion control";
                wrong.push(Diagnostic::new(&reported.span, message, "not of one host").help(help));
                return None;
            }
            let part = match reported.groups {
                SharedBy::One => 0,
                SharedBy::Flows => place,
                SharedBy::Hosts | SharedBy::Measured => place_of(&mut hosts, flow.receiver),
            };
            flows.push((FlowId(number as u32), part as u32));
        }
    }
    let groups = match reported.groups {
        SharedBy::One | SharedBy::Flows | SharedBy::Hosts => Groups::Given,
        SharedBy::Measured => Groups::Measured(grouping::Config::default()),
    };
    (!flows.is_empty()).then_some(CoordinationSpec { way: reported.way, flows, groups })
}

/// Returns whether a flow has its own window and measures round-trip times. Groups that are formed by measurements require both.
fn can_be_measured(reported: &CoordinatePlan, kind: &FlowKind) -> bool {
    matches!(reported.way, Coordination::Windows(_)) && !matches!(kind, FlowKind::Datagrams { .. })
}

/// Returns the index of a host in the list. Appends the host if it is missing.
fn place_of(hosts: &mut Vec<u32>, host: u32) -> usize {
    hosts.iter().position(|other| *other == host).unwrap_or_else(|| {
        hosts.push(host);
        hosts.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    fn text(coordinate: &str) -> String {
        let flow = |name: &str, kind: &str, from: &str, to: &str| {
            format!("[[flow]]\nname = \"{name}\"\n{kind}\nfrom = \"{from}\"\nto = \"{to}\"\n")
        };
        "title = \"t\"\nduration = \"10 s\"\n[topology]\nkind = \"star\"\nleaves = 4\nsources = 2\n"
            .to_owned()
            + &flow("near", "kind = \"tcp-reno\"\ncount = 2", "src1", "leaf[1-2]")
            + &flow("far", "kind = \"tcp-reno\"", "src1", "leaf[2-3]")
            + &flow("other", "kind = \"tcp-reno\"", "src2", "leaf4")
            + &flow("many", "kind = \"session\"\nscheme = \"ormcc\"", "src1", "leaf*")
            + "[[coordinate]]\n"
            + coordinate
    }

    fn groups(coordinate: &str) -> Vec<u32> {
        let scenario = Scenario::parse(&text(coordinate), "t.toml").expect("it is right");
        let layout = scenario.layout(0, 1);
        layout.coordinated.iter().flat_map(|spec| spec.flows.iter().map(|(_, group)| *group)).collect()
    }

    #[test]
    fn groups_are_formed_by_names_of_flows_or_by_receivers() {
        let both = "way = \"cocoon\"\nflows = [\"near\", \"far\"]\n";
        assert_eq!(groups(both), [0; 6]);
        assert_eq!(groups(&format!("{both}groups = \"flows\"")), [0, 0, 0, 0, 1, 1]);
        assert_eq!(groups(&format!("{both}groups = \"hosts\"")), [0, 0, 1, 1, 1, 2]);
        assert_eq!(groups("way = \"tcp-int\"\nflows = []"), [0; 0]);
    }

    #[test]
    fn invalid_coordination_of_flows_is_refused_with_a_reason() {
        let refusal = |coordinate: &str| {
            Scenario::parse(&text(coordinate), "t.toml").expect_err("it is wrong").to_string()
        };
        let message = refusal("way = \"cocoons\"\nflows = [\"near\"]");
        assert!(message.contains("known") || message.contains("cocoon, ensemble"), "{message}");
        assert!(refusal("way = \"cocoon\"\nflows = [\"nears\"]").contains("did you mean `near`?"));
        assert!(refusal("way = \"cocoon\"\nflows = [\"near\", \"other\"]").contains("from the same node"));
        assert!(refusal("way = \"cocoon\"\nflows = [\"many\"]").contains("from the same node"));
        let measured = "flows = [\"near\"]\ngroups = \"measured\"\nway = ";
        assert!(refusal(&format!("{measured}\"manager\"")).contains("cannot be measured"));
        assert_eq!(groups(&format!("{measured}\"cocoon\"")), [0, 0, 1, 1]);
    }
}
