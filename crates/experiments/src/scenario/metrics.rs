//! List of all metrics, for the reference, the schema, and the check of claims before a run.

use super::diagnostic::{Diagnostic, nearest};
use super::plan::{FlowKind, FlowPlan, RouterKind, RouterPlan, RunPlan};
use super::shapes::text;
use super::syntax::Node;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Objects that have a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Every group of flows.
    Any,
    /// Groups of unicast flows with congestion control.
    Unicast,
    /// Groups of unicast flows with a number of packets to send.
    Transfers,
    /// Multicast sessions.
    Session,
    /// Sessions whose receivers need a number of packets.
    Content,
    /// Sessions with a timetable of representatives.
    Expected,
    /// Sessions of several layers.
    Layered,
    /// Sessions whose receivers form a tree.
    Tree,
    /// Sessions whose packets are timed.
    Timed,
    /// Unicast flows whose packets are timed.
    TimedUnicast,
    /// Active routers: all routers together, or the routers with the same name.
    Routers,
    /// All groups together.
    All,
    /// A probed link.
    Link,
    /// A `[[fit]]`.
    Fit,
}

/// Time that a metric is about: each window, or the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    Window,
    Run,
}

/// Whether a group's parts also have the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    Too,
    No,
}

/// Metrics with a common meaning.
struct Metric {
    of: Owner,
    parts: Parts,
    over: Period,
    /// Parts of metrics' names that follow the name of the group, link or fit; `#` is a number from 1.
    names: &'static [&'static str],
    meaning: &'static str,
}

/// Number of joins whose times are recorded; the same for leaves.
const FIRST: usize = 16;

/// Declares all metrics. Each has a meaning, an owner, a period and names, and either applies to parts or does not.
macro_rules! metrics {
    ($($(#[doc = $meaning:literal])+ $of:ident, $parts:ident, $over:ident: $($name:literal),+;)*) => {
        const METRICS: &[Metric] = &[$(Metric {
            of: Owner::$of,
            parts: Parts::$parts,
            over: Period::$over,
            names: &[$($name),+],
            meaning: text!($($meaning)+),
        }),*];
    };
}

metrics! {
    /// received rate in bit/s over whole bins, mean over the group's receivers
    Any, Too, Window: "rate";
    /// standard deviation, minimum and maximum of `rate` over the receivers
    Any, Too, Window: "rate.sd", "rate.min", "rate.max";
    /// Jain's fairness index over the group's receivers
    Any, Too, Window: "jain";
    /// coefficient of variation of a receiver's rate in intervals of 1 s (`probe.stretch`), mean over
    /// receivers
    Any, Too, Window: "cov";
    /// bit/s delivered to the application, each packet counted once. `goodput` is over the whole window, so the sum over flows is
    /// at most a link's rate; `goodput.present` is over the part of the window in which the flow and the receiver were present
    Any, Too, Window: "goodput", "goodput.present";
    /// fraction of lost data packets. For a session: packets that its receivers detected as lost, divided by lost and received
    /// packets. For unicast flows: packets that links lost, divided by sent packets
    Any, Too, Window: "loss";
    /// data packets sent and lost, per flow, without the packets that open a connection
    Any, No, Window: "sent", "lost";
    /// retransmitted data packets, per flow
    Unicast, No, Window: "again";
    /// cuts of rate or window, per flow
    Any, No, Window: "cuts";
    /// retransmission timeouts, per flow (TFRC, RAP: timeouts of feedback)
    Unicast, No, Window: "timeouts";
    /// Jain's index over the mean rates of the groups, if there are several groups
    All, No, Window: "jain";
    /// number of bottlenecks: links that carried at least 95 % of their capacity, or whose queue dropped or marked packets;
    /// number of all other links with a limited rate that carried packets; maximum utilisation of these other links
    All, No, Window: "links.bottlenecks", "links.others", "links.others.utilisation";
    /// waiting packets: mean, standard deviation and maximum of the samples; mean of the waiting bytes
    Link, No, Window: "queue", "queue.sd", "queue.max", "queue.bytes";
    /// used fraction of the link's capacity
    Link, No, Window: "utilisation";
    /// packets that the queue dropped; packets that the queue dropped early, without a full buffer (included in `drops`); packets
    /// that the queue marked; lost fraction of the offered packets
    Link, No, Window: "drops", "drops.early", "marks", "loss";
    /// fraction of the samples in which packets wait, that is, in which the link is a bottleneck; fraction of the offered packets
    /// that the queue dropped or marked
    Link, No, Window: "busy", "acted";
    /// packets that departed after a packet that had arrived later
    Link, No, Window: "reordered";
    /// seconds from a packet's arrival at the queue to the end of the packet's transmission: mean; 95 % and 99 % quantiles, with
    /// an error of at most 5 %
    Link, No, Window: "delay", "delay.p95", "delay.p99";
    /// round-trip time measured by the source, mean of the samples
    Session, No, Window: "rtt";
    /// round-trip time measured by the senders, mean of the samples
    Unicast, No, Window: "rtt";
    /// reports (or acknowledgements) of all receivers, per flow
    Any, Too, Run: "reports";
    /// congestion events that were not reported, per flow
    Session, Too, Run: "suppressed";
    /// reports that acknowledge received packets; all other reports; both per flow
    Session, No, Run: "reports.acks", "reports.naks";
    /// reports that reached the source; reports that nodes on the path dropped
    Session, No, Run: "reports.heard", "reports.aggregated";
    /// at the source: congestion indications, one per packet; loss events, which are one for all indications of a receiver within
    /// a round trip; loss events that remain after the filter or the choice of a representative
    Session, No, Run: "indications", "loss_events", "followed";
    /// congestion events per receiver: the number of reports that the receiver would send without suppression
    Session, No, Run: "reports.hypothetical";
    /// fraction of congestion events without a report
    Session, No, Run: "suppression";
    /// with `content`: seconds from a session's start until all receivers have this number of packets, over the group's sessions:
    /// mean. A session that does not get so far within the run has no value
    Content, No, Run: "completion";
    /// changes from one representative to another, per flow
    Session, No, Run: "switches";
    /// fraction of time in which the representative was one of `expected`. After each change of `expected`, the time `settle` is
    /// excluded
    Expected, No, Run: "representative.as_expected";
    /// number of complete transfers; their mean duration, its median, and its 95 % quantile
    Transfers, No, Run: "transfers", "transfer_time", "transfer_time.p50", "transfer_time.p95";
    /// Jain's index over the rates of complete transfers; time from the start of the first transfer to the end of the last
    /// transfer
    Transfers, No, Run: "transfer_jain", "makespan";
    /// number of layers of a receiver while the receiver is present, mean over time and receivers
    Layered, Too, Window: "layers";
    /// number of layers at the end of the window, mean over the receivers that are present; maximum number of layers of a
    /// receiver
    Layered, Too, Window: "layers.end", "layers.max";
    /// fraction of time in which all present receivers have the same number of layers; only times with at least two present
    /// receivers count
    Layered, Too, Window: "layers.agreement";
    /// number of joined layers; number of left layers; both summed over the receivers, per flow; the base layer does not count
    Layered, Too, Window: "joins", "leaves";
    /// number of joins of the receiver with the most joins; number of leaves of the receiver with the most leaves
    Layered, Too, Window: "joins.max", "leaves.max";
    /// time of each of the first 16 joins and leaves, by any receiver
    Layered, Too, Run: "join.#", "leave.#";
    /// rate at which the source sends a layer (0 while it does not send the layer), mean of the samples
    Layered, No, Window: "layer.#.rate";
    /// intra-fairness index (paper 001, 5): (sum x)^2 / (N sum x^2), where x is a receiver's rate divided by the lowest mean
    /// capacity of the links on the receiver's path; mean of x, because the index does not show whether all rates are too low
    Tree, No, Window: "F", "U";
    /// windows in packets, medians of the samples: the window that limits the source's rate; the source's own window; the windows
    /// of the first agents in the order of the receivers
    Tree, No, Window: "window", "window.own", "agent.#.window";
    /// seconds from a slow start of an agent until the source's window is as small as the agent's window: mean; maximum. If the
    /// source's window is already as small at a slow start, the slow start does not count
    Tree, No, Run: "lag", "lag.max";
    /// per flow: packets that parents repeated; repeated packets that the receiver already had; orders;
    /// children moved into local groups; slow starts of agents
    Tree, No, Run: "repairs", "duplicates", "orders", "moves", "slow_starts";
    /// reports per data packet of the source: reports that reach the source; reports that reach an agent, as a mean over the
    /// agents
    Tree, No, Run: "reports.per_packet", "reports.of_agents";
    /// seconds from the source's first transmission of a packet to the packet's arrival: mean over packets and receivers;
    /// minimum; maximum
    Timed, Too, Run: "delay", "delay.min", "delay.max";
    /// 50 %, 95 % and 99 % quantiles of `delay` over all receivers, with an error of at most 5 %
    Timed, Too, Run: "delay.p50", "delay.p95", "delay.p99";
    /// with `delays = "on"`: seconds from each transmission of a packet to the packet's arrival, over all flows of the group:
    /// mean; 50 %, 95 % and 99 % quantiles, with an error of at most 5 %
    TimedUnicast, No, Window: "delay", "delay.p50", "delay.p95", "delay.p99";
    /// receivers that were excluded, per flow
    Session, No, Run: "excluded";
    /// number of packets that an active router stores. The mean over time: mean, minimum and maximum over the routers. The
    /// maximum over time: mean, minimum and maximum over the routers
    Routers, No, Run: "stored", "stored.min", "stored.max", "peak", "peak.min", "peak.max";
    /// sums over all active routers: requests answered from stored packets; congestion indications that were forwarded;
    /// congestion indications that were suppressed; packets dropped at full queues; excluded receivers
    Routers, No, Run: "repairs", "indications", "filtered", "overflows", "exclusions";
    /// slope and intercept of the line of a `[[fit]]`; share of the variance that the line explains
    Fit, No, Run: "slope", "intercept", "r2";
}

/// Returns whether a group of flows has the metrics of the owner `of`.
fn has(flow: &FlowPlan, of: Owner) -> bool {
    match (of, &flow.kind) {
        (Owner::Any, _) => true,
        (Owner::Unicast, FlowKind::Unicast { .. }) => true,
        (Owner::Transfers, FlowKind::Unicast { supply, .. }) => {
            use faircast_sim::ApplicationData::{Packets, Transfers};
            matches!(supply, Packets(_) | Transfers { .. })
        }
        (Owner::Session, FlowKind::Session(_)) => true,
        (Owner::Content, FlowKind::Session(session)) => session.content.is_some(),
        (Owner::Expected, FlowKind::Session(session)) => !session.expected.is_empty(),
        (Owner::Layered, FlowKind::Session(session)) => session.scheme.layers() > 1,
        (Owner::Tree, FlowKind::Session(session)) => session.scheme.agents().is_some(),
        (Owner::Timed, FlowKind::Session(session)) => session.is_timed,
        (Owner::TimedUnicast, FlowKind::Unicast { is_timed, .. }) => *is_timed,
        _ => false,
    }
}

/// Returns the names of all metrics that a run of a plan may have. `links` are the probed links. A run leaves out metrics without
/// a defined value, such as the loss of a flow that sent no packets.
pub(crate) fn names(plan: &RunPlan, links: &[String]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for metric in METRICS {
        for name in metric.names.iter().flat_map(|name| numbered(name)) {
            for owner in owners(metric, plan, links) {
                let bare = if owner.is_empty() { name.clone() } else { format!("{owner}.{name}") };
                match metric.over {
                    Period::Run => {
                        all.insert(bare);
                    }
                    Period::Window => {
                        all.extend(plan.windows.iter().map(|window| match window.name.as_str() {
                            "" => bare.clone(),
                            window => format!("{bare}@{window}"),
                        }))
                    }
                }
            }
        }
    }
    all
}

/// Expands `join.#` to all possible numbers.
fn numbered(name: &str) -> Vec<String> {
    if name.contains('#') {
        (1..=FIRST).map(|number| name.replace('#', &number.to_string())).collect()
    } else {
        vec![name.to_owned()]
    }
}

/// Returns the prefixes of a metric's names.
fn owners(metric: &Metric, plan: &RunPlan, links: &[String]) -> Vec<String> {
    match metric.of {
        Owner::All => vec![String::new()],
        Owner::Routers => {
            let is_active = |router: &RouterPlan| matches!(router.kind, RouterKind::Active(_));
            let active = || plan.routers.iter().filter(|router| is_active(router));
            let named = active().filter_map(|router| router.name.as_ref());
            let all = active().next().map(|_| "routers".to_owned());
            all.into_iter().chain(named.map(|name| format!("routers.{name}"))).collect()
        }
        Owner::Link => links.iter().map(|link| format!("link.{link}")).collect(),
        Owner::Fit => plan.fits.iter().map(|fit| format!("fit.{}", fit.name)).collect(),
        of => {
            let flows = plan.flows.iter().filter(|flow| has(flow, of));
            let owners = flows.flat_map(|flow| {
                let parts = flow.parts.iter().filter(|_| metric.parts == Parts::Too);
                let group = &flow.name.value;
                let parts = parts.map(move |part| format!("{group}.{}", part.name.value));
                std::iter::once(group.clone()).chain(parts)
            });
            owners.collect()
        }
    }
}

/// Checks that the metrics in claims, trends and fits exist at one or more points of the sweep. `at` yields the names at each
/// point.
pub(super) fn check(
    root: &Node,
    mut at: impl Iterator<Item = BTreeSet<String>>,
    wrong: &mut Vec<Diagnostic>,
) {
    let claims = root.list("claim").iter();
    let of_claims = claims.flat_map(|claim| ["of", "over", "against"].map(|key| claim.get(key)));
    let fits = root.list("fit").iter();
    let of_fits = fits.flat_map(|fit| ["of", "against"].map(|key| fit.get(key)));
    let named = of_claims.chain(of_fits).flatten().flat_map(Node::items);
    // A number with a unit is also permitted, in place of a metric.
    let named: Vec<(&Node, &str)> = named
        .filter_map(|node| Some((node, node.text()?)))
        .filter(|(_, name)| !name.starts_with(|first: char| first.is_ascii_digit() || first == '-'))
        .collect();
    let mut known = BTreeSet::new();
    for (node, name) in named {
        while !known.contains(name) {
            let Some(more) = at.next() else { break };
            known.extend(more);
        }
        if !known.contains(name) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let help = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => help(name, &names),
            };
            wrong.push(
                Diagnostic::new(&node.span, format!("no metric is called `{name}`"), "unknown").help(help),
            );
        }
    }
}

/// Returns a help text for a name that resembles no known name. The text lists known names.
fn help(name: &str, known: &[&str]) -> String {
    if name.starts_with("link.") && !known.iter().any(|known| known.starts_with("link.")) {
        return "no link is probed; add `[probe]` with `links = \"left->right\"`".to_owned();
    }
    let owner = name.split('.').next().unwrap_or_default();
    let own: Vec<&str> =
        known.iter().filter(|known| known.split('.').next() == Some(owner)).copied().collect();
    let owners: BTreeSet<&str> = known.iter().filter_map(|known| known.split('.').next()).collect();
    if own.is_empty() {
        format!("names of metrics begin with one of: {}", owners.into_iter().collect::<Vec<_>>().join(", "))
    } else {
        format!("the metrics of `{owner}` are: {}", own.join(", "))
    }
}

/// Returns the table of metrics, in Markdown.
pub(super) fn reference(out: &mut String) {
    out.push_str("### metrics\n\n");
    out.push_str(
        "`G` is a group of flows, `G.P` a part of this group, `L` a link, `NAME` a fit; `#` is a number from 1.\n\n",
    );
    out.push_str("| metric | over | meaning |\n|---|---|---|\n");
    for metric in METRICS {
        let names: Vec<String> =
            metric.names.iter().map(|name| format!("`{}`", shown(metric, name))).collect();
        let over = if metric.over == Period::Window { "window" } else { "run" };
        let parts = if metric.parts == Parts::Too { "; also for parts" } else { "" };
        let _ = writeln!(out, "| {} | {over} | {}{parts} |", names.join(" "), metric.meaning);
    }
    out.push('\n');
}

/// Returns a metric's name in the form of the reference.
fn shown(metric: &Metric, name: &str) -> String {
    let owner = match metric.of {
        Owner::All => return name.to_owned(),
        Owner::Link => "link.L",
        Owner::Fit => "fit.NAME",
        Owner::Routers => "routers",
        _ => "G",
    };
    format!("{owner}.{name}")
}

/// Returns the metrics for the JSON Schema: name, period, and meaning.
pub(super) fn schema() -> serde_json::Value {
    let rows = METRICS.iter().flat_map(|metric| {
        metric.names.iter().map(move |name| {
            let over = if metric.over == Period::Window { "window" } else { "run" };
            serde_json::json!({"name": shown(metric, name), "over": over, "meaning": metric.meaning})
        })
    });
    serde_json::Value::Array(rows.collect())
}
