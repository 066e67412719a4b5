//! Warnings about valid scenarios whose effect probably differs from what the author expects.

use super::Point;
use super::diagnostic::Diagnostic;
use super::layout::{LaidFlow, Layout};
use super::plan::{FlowKind, FlowPlan, RunPlan, SessionPlan, TreePlan};
use faircast_sim::NodeId;
use faircast_topology::{LinkId, Routes};
use faircast_unicast::Protocol;
use faircast_unicast::tcp::Variant;

/// Maximum number of paths that are examined for each group; the receivers of a group usually have similar paths.
const PATHS: usize = 64;

/// Returns all warnings about a point of the sweep.
pub(super) fn of(plan: &RunPlan, layout: &Layout, point: &Point) -> Vec<Diagnostic> {
    let topology = layout.nodes_and_links(|node| layout.hosts.contains(&node));
    let mut routes = Routes::new(&topology);
    let (mut all, mut path) = (Vec::new(), Vec::new());
    for flows in layout.flows.chunk_by(|one, other| one.group == other.group) {
        let flow = &plan.flows[flows[0].group];
        let ends =
            flows.iter().flat_map(|laid| laid.receivers.iter().map(|receiver| (laid.source, *receiver)));
        let (mut unstated, mut unmarked) = (None, None);
        for (from, to) in ends.take(PATHS) {
            if routes.path(NodeId(from), NodeId(to), &mut path).is_some() {
                unstated = unstated.or_else(|| unstated_bottleneck(flow, layout, &path));
                unmarked = unmarked.or_else(|| never_marked(flow, layout, &path));
            }
        }
        all.extend(unstated);
        all.extend(unmarked);
        if let FlowKind::Session(session) = &flow.kind {
            all.extend(useless_tree(flow, session));
            all.extend(too_flat(flow, session, &flows[0]));
        }
    }
    if !point.values.is_empty() {
        all.iter_mut().for_each(|warning| warning.message.push_str(&format!(" (at {point})")));
    }
    all
}

/// Warns if the narrowest link of a path has the default rate, although the file states the rates of other links of the path.
fn unstated_bottleneck(flow: &FlowPlan, layout: &Layout, path: &[LinkId]) -> Option<Diagnostic> {
    let laid = |link: &LinkId| layout.links[link.0 as usize];
    let rate = |link: &LinkId| layout.specs[laid(link).spec as usize].rate.bps();
    let narrowest = path.iter().min_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    if laid(narrowest).is_stated || !path.iter().any(|link| laid(link).is_stated) {
        return None;
    }
    let (link, name) = (layout.link_name(narrowest.0), &flow.name.value);
    let message = format!(
        "the bottleneck of \"{name}\" is {link}: the file states no rate for this link, so it has the default of {:.0} Mbit/s",
        rate(narrowest) / 1e6
    );
    let help = "state its rate, or remove the bottleneck with `rate = \"unlimited\"`";
    Some(Diagnostic::new(&flow.name.span, message, "a bottleneck by default").help(help))
}

/// Warns if a TCP variant that needs marks has a path without a queue that marks.
fn never_marked(flow: &FlowPlan, layout: &Layout, path: &[LinkId]) -> Option<Diagnostic> {
    let FlowKind::Unicast { protocol, .. } = &flow.kind else { return None };
    let Protocol::Tcp(config) = protocol else { return None };
    let needs_marks = matches!(config.variant, Variant::Dctcp | Variant::Prague);
    let spec = |link: &LinkId| layout.specs[layout.links[link.0 as usize].spec as usize];
    if !needs_marks || path.iter().any(|link| spec(link).queue.marks()) {
        return None;
    }
    let message = format!(
        "`{}` needs marks, but no queue on the path of \"{}\" marks packets, so it reacts only to losses",
        protocol.name(),
        flow.name.value
    );
    let help = "give the bottleneck a queue that marks, such as \"dualpi2\" or \"fq_codel,ecn\"";
    Some(Diagnostic::new(&flow.name.span, message, "never marked").help(help))
}

/// Warns if a tree is described for a scheme without agents.
fn useless_tree(flow: &FlowPlan, session: &SessionPlan) -> Option<Diagnostic> {
    if session.tree == TreePlan::Flat || session.scheme.agents().is_some() {
        return None;
    }
    let message =
        format!("`{}` with these options has no agents, so its tree is ignored", session.scheme.name());
    let help = "a tree needs a scheme with agents: `mtcp,preset=published` or `raccoom`";
    Some(Diagnostic::new(&flow.name.span, message, "no tree").help(help))
}

/// Warns if a source without a tree has more children than the scheme is designed to serve.
fn too_flat(flow: &FlowPlan, session: &SessionPlan, laid: &LaidFlow) -> Option<Diagnostic> {
    let is_flat = laid.parents.is_empty() && session.scheme.name() == "mtcp";
    if !is_flat || laid.receivers.len() <= session.most_children as usize {
        return None;
    }
    let message = format!(
        "\"{}\" has no tree: its source has {} children, but `mtcp` is designed for at most {}",
        flow.name.value,
        laid.receivers.len(),
        session.most_children
    );
    let help = "give it a tree: `fan_out = 16`, `tree = \"nearest\"` or `agents`";
    Some(Diagnostic::new(&flow.name.span, message, "no tree").help(help))
}

#[cfg(test)]
mod tests {
    use crate::scenario::{DiagnosticStyle, Scenario};

    fn warnings(topology: &str, flow: &str) -> String {
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\n[topology]\n{topology}\n[[flow]]\nname = \"f\"\n{flow}\n"
        );
        let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
        scenario.warnings().render(DiagnosticStyle::Plain)
    }

    const DUMBBELL: &str = "kind = \"dumbbell\"\nleaves = 1\nbottleneck = { rate = \"10 Gbit/s\" }\n";

    fn tcp(kind: &str) -> String {
        format!("kind = \"{kind}\"\nfrom = \"src1\"\nto = \"leaf1\"\n")
    }

    #[test]
    fn bottleneck_with_the_default_rate_causes_a_warning() {
        let reported = warnings(DUMBBELL, &tcp("tcp-cubic"));
        assert!(
            reported.contains("the bottleneck of \"f\" is src1->left") && reported.contains("default of 100"),
            "{reported}"
        );
        let slower = DUMBBELL.replace("10 Gbit/s", "10 Mbit/s");
        assert_eq!(warnings(&slower, &tcp("tcp-cubic")), "");
        let stated = format!("{DUMBBELL}access.rate = \"unlimited\"\nleaf.rate = \"40 Gbit/s\"\n");
        assert_eq!(warnings(&stated, &tcp("tcp-cubic")), "");
    }

    #[test]
    fn ecn_tcp_with_queues_that_never_mark_causes_a_warning() {
        let queue = |queue: &str| {
            let topology = DUMBBELL.replace("10 Gbit/s\"", &format!("10 Mbit/s\", queue = \"{queue}\""));
            warnings(&topology, &tcp("tcp-prague"))
        };
        for silent in ["40 packets", "red,buffer=40", "fq_codel"] {
            assert!(queue(silent).contains("`tcp-prague` needs marks"), "{silent}: {}", queue(silent));
        }
        for marking in ["red,buffer=40,ecn", "fq_codel,ecn", "dualpi2", "codel,ecn"] {
            assert_eq!(queue(marking), "", "{marking}");
        }
        let sack = warnings(&DUMBBELL.replace("10 Gbit/s", "10 Mbit/s"), &tcp("tcp-sack"));
        assert_eq!(sack, "");
    }

    #[test]
    fn ignored_tree_or_mtcp_source_without_a_tree_causes_a_warning() {
        let star = "kind = \"star\"\nleaves = 40";
        let session = |scheme: &str, more: &str| {
            let flow =
                format!("kind = \"session\"\nscheme = \"{scheme}\"\nfrom = \"src1\"\nto = \"leaf*\"\n{more}");
            warnings(star, &flow)
        };
        assert!(session("ormcc", "fan_out = 4").contains("its tree is ignored"));
        assert!(session("mtcp,preset=published", "").contains("its source has 40 children"));
        assert_eq!(session("mtcp,preset=published", "fan_out = 4"), "");
        assert_eq!(session("ormcc", ""), "");
    }

    #[test]
    fn warning_contains_the_first_sweep_point_that_causes_it() {
        let sweep = "\n[sweep]\nscheme = { set = \"flow.f.scheme\", to = [\"mtcp,preset=published\", \"ormcc\", \"smcc\"] }";
        let flow = format!(
            "kind = \"session\"\nscheme = \"ormcc\"\nfrom = \"src1\"\nto = \"leaf*\"\nfan_out = 4{sweep}"
        );
        let reported = warnings("kind = \"star\"\nleaves = 40", &flow);
        assert_eq!(reported.matches("its tree is ignored").count(), 1, "{reported}");
        assert!(reported.contains("(at scheme = ormcc)"), "{reported}");
    }
}
