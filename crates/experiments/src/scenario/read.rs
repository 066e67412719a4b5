//! Conversion of a checked tree of keys and values to a [`RunPlan`].

use super::diagnostic::Diagnostic;
use super::plan::{
    Abscissa, AgentPlan, ChangePlan, CoordinatePlan, Ecn, Ends, FitPlan, FlowKind, FlowPlan, LinkPlan,
    PartPlan, Patterns, Per, Probe, RouterPlan, RowValues, RunPlan, SessionPlan, SharedBy, Spanned,
    TimeWindow, Topology, TreePlan, Wire,
};
use super::syntax::{Node, Value};
use super::units::{self, LawOf};
use super::{Alternative, Choice, Claim, Setting, Trend, When, names, shape, shapes, traces};
use crate::stats::{Scale, Trait};
use faircast_core::rate::Bounds;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{ApplicationData, Change, Events, Law};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reads a whole file.
pub(crate) fn plan(root: &Node) -> Result<RunPlan, Vec<Diagnostic>> {
    let mut wrong = Vec::new();
    shape::check(root, &shapes::SCENARIO, &mut wrong);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let duration = moment(root, "duration").unwrap_or_default();
    let jitter = time(root, "start_jitter").unwrap_or(1.0);
    let probe = read_probe(root.get("probe"));
    let plan = RunPlan {
        duration,
        seeds: seeds(root),
        topology: root.get("topology").map_or(Topology::None, |node| topology(node, &mut wrong)),
        links: root.list("link").iter().map(link).collect(),
        flows: root.list("flow").iter().map(|node| flow(node, jitter, &mut wrong)).collect(),
        aggregators: patterns(root, "aggregate"),
        aggregate_for: span(root, "aggregate_for").unwrap_or(Span::from_secs(1)),
        routers: root.list("router").iter().map(router).collect(),
        coordinated: root.list("coordinate").iter().filter_map(|node| coordinate(node, &mut wrong)).collect(),
        changes: root.list("change").iter().map(|node| change(node, duration, &mut wrong)).collect(),
        windows: windows(root, duration, probe.bin, &mut wrong),
        fits: root.list("fit").iter().map(|node| fit(node, &mut wrong)).collect(),
        probe,
        claims: root.list("claim").iter().map(|node| claim(node, &mut wrong)).collect(),
    };
    unique_names(&plan, &mut wrong);
    if duration == Time::ZERO {
        wrong.push(Diagnostic::new(
            &root.place("duration"),
            "the duration of a run must be longer than zero",
            "no time at all",
        ));
    }
    if wrong.is_empty() { Ok(plan) } else { Err(wrong) }
}

fn time(node: &Node, key: &str) -> Option<f64> {
    node.get(key).and_then(units::time)
}

fn moment(node: &Node, key: &str) -> Option<Time> {
    time(node, key).map(Time::from_secs_f64)
}

fn span(node: &Node, key: &str) -> Option<Span> {
    time(node, key).map(Span::from_secs_f64)
}

fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::text).map(str::to_owned)
}

fn number(node: &Node, key: &str) -> Option<f64> {
    node.get(key).and_then(Node::number)
}

fn count(node: &Node, key: &str, wrong: &mut Vec<Diagnostic>) -> Option<u32> {
    let node = node.get(key)?;
    let whole = units::whole(node)?;
    if whole > names::MAX {
        wrong.push(Diagnostic::new(&node.span, format!("at most {} are permitted", names::MAX), "too many"));
        return None;
    }
    Some(whole as u32)
}

fn size(node: &Node, key: &str) -> Option<u16> {
    node.get(key).and_then(units::size).map(|size| size.round() as u16)
}

fn many(node: &Node, key: &str, read: fn(&Node) -> Option<f64>) -> Option<RowValues> {
    let node = node.get(key)?;
    match shape::range(node, read) {
        Some(ends) => ends.map(|(low, high)| RowValues::Between(low, high)),
        None => Some(RowValues::Turn(node.items().iter().filter_map(read).collect())),
    }
}

fn patterns(node: &Node, key: &str) -> Patterns {
    let items = node.list(key).iter();
    let one = |item: &Node| Some(Spanned { value: item.text()?.to_owned(), span: item.span.clone() });
    items.filter_map(one).collect()
}

pub(crate) fn seeds(root: &Node) -> Vec<u64> {
    match root.get("seeds") {
        None => vec![1],
        Some(node) => match units::whole(node) {
            Some(count) => (1..=count).collect(),
            None => node.items().iter().filter_map(units::whole).collect(),
        },
    }
}

fn wire(node: Option<&Node>) -> Wire {
    let Some(node) = node else { return Wire::default() };
    Wire {
        rate: many(node, "rate", units::rate),
        delay: many(node, "delay", units::time),
        queue: node.get("queue").and_then(|queue| units::queue(queue).ok()),
        loss: node.get("loss").and_then(|loss| units::loss(loss).ok()),
        jitter: node.get("jitter").and_then(units::time),
        back: node.get("back").map(|back| Box::new(wire(Some(back)))),
    }
}

fn topology(node: &Node, wrong: &mut Vec<Diagnostic>) -> Topology {
    let mut count = |key, default| count(node, key, wrong).unwrap_or(default);
    let wires = |key| wire(node.get(key));
    match node.get("kind").and_then(Node::text) {
        Some("star") => Topology::Star {
            leaves: count("leaves", 1),
            sources: count("sources", 1),
            access: wires("access"),
            leaf: wires("leaf"),
        },
        Some("dumbbell") => Topology::Dumbbell {
            leaves: count("leaves", 1),
            sources: count("sources", 1),
            bottleneck: wires("bottleneck"),
            access: wires("access"),
            leaf: wires("leaf"),
        },
        Some("tree") => {
            let counts = node.list("fanout").iter().filter_map(units::whole);
            let counts: Vec<u32> = counts.map(|count| count.clamp(1, names::MAX) as u32).collect();
            let leaves = counts.iter().try_fold(1u64, |leaves, fan| leaves.checked_mul(u64::from(*fan)));
            if leaves.is_none_or(|leaves| leaves > names::MAX) {
                wrong.push(Diagnostic::new(&node.place("fanout"), "too many leaves", "too many"));
            }
            Topology::Tree {
                fanout: counts,
                levels: node.list("level").iter().map(|level| wire(Some(level))).collect(),
                sources: self::count(node, "sources", wrong).unwrap_or(0),
                access: wires("access"),
            }
        }
        Some("text") => Topology::Text(
            node.get("network").and_then(|network| units::network(network).ok()).unwrap_or_default(),
        ),
        _ => Topology::Chain {
            bottlenecks: count("bottlenecks", 1),
            leaves: count("leaves", 1),
            sources: count("sources", 1),
            bottleneck: wires("bottleneck"),
            access: wires("access"),
            leaf: wires("leaf"),
        },
    }
}

fn link(node: &Node) -> LinkPlan {
    LinkPlan {
        span: node.span.clone(),
        from: patterns(node, "from"),
        to: patterns(node, "to"),
        wire: wire(Some(node)),
    }
}

fn ends(node: &Node, wrong: &mut Vec<Diagnostic>) -> Ends {
    let has = |key| node.get(key).is_some();
    let (nodes, along) = (has("from") || has("to"), has("along"));
    if nodes == along || nodes && !(has("from") && has("to")) {
        let message = "a flow needs `from` and `to`, or `along` in their place";
        wrong.push(Diagnostic::new(&node.span, message, "between whom?"));
    }
    match along {
        true => Ends::Along(patterns(node, "along")),
        false => Ends::Nodes { from: patterns(node, "from"), to: patterns(node, "to") },
    }
}

/// Reads a name that becomes a part of metrics' names.
fn name(node: &Node, whose: &str, wrong: &mut Vec<Diagnostic>) -> Spanned<String> {
    let name = Spanned { value: text(node, "name").unwrap_or_default(), span: node.place("name") };
    if name.value.is_empty() || name.value.contains([' ', '.', '@', ',', '"']) {
        let message = format!("{whose} name becomes part of metrics' names: letters, digits, `-` and `_`");
        wrong.push(Diagnostic::new(&name.span, message, "not as a name"));
    }
    name
}

fn parts(node: &Node, wrong: &mut Vec<Diagnostic>) -> Vec<PartPlan> {
    let mut all: Vec<PartPlan> = Vec::new();
    for part in node.list("parts") {
        let name = name(part, "a part's", wrong);
        if all.iter().any(|other| other.name.value == name.value) {
            let message = format!("two parts are called \"{}\"", name.value);
            wrong.push(Diagnostic::new(&name.span, message, "the second one"));
        }
        all.push(PartPlan { name, receivers: patterns(part, "receivers") });
    }
    all
}

fn scale(node: &Node) -> Scale {
    if text(node, "scale").as_deref() == Some("log") { Scale::Logarithmic } else { Scale::Linear }
}

fn fit(node: &Node, wrong: &mut Vec<Diagnostic>) -> FitPlan {
    let against = node.list("against").iter();
    let abscissa = |node: &Node| match (node.number().or_else(|| units::rate(node)), node.text()) {
        (Some(number), _) => Abscissa::Number(number),
        (None, text) => Abscissa::Metric(text.unwrap_or_default().to_owned()),
    };
    let plan = FitPlan {
        name: name(node, "a fit's", wrong).value,
        of: patterns(node, "of").into_iter().map(|metric| metric.value).collect(),
        against: against.map(abscissa).collect(),
        scale: scale(node),
    };
    if plan.of.len() != plan.against.len() || plan.of.len() < 2 {
        let message =
            format!("`of` has {} metrics, but `against` has {} values", plan.of.len(), plan.against.len());
        let help = "a line needs at least two metrics, and one abscissa in `against` for each metric";
        wrong.push(Diagnostic::new(&node.span, message, "no line").help(help));
    }
    plan
}

fn flow(node: &Node, jitter: f64, wrong: &mut Vec<Diagnostic>) -> FlowPlan {
    let name = name(node, "a flow's", wrong);
    if ["link", "fit"].contains(&name.value.as_str()) {
        let message = format!(
            "a flow cannot be called \"{}\", because the names of other metrics begin with this word",
            name.value
        );
        wrong.push(Diagnostic::new(&name.span, message, "not this name"));
    }
    let packet = size(node, "packet").unwrap_or(1000);
    let kind = match node.get("kind").and_then(Node::text).unwrap_or_default() {
        "session" => session(node, packet, wrong),
        "udp" => FlowKind::Datagrams {
            rate: node.get("rate").and_then(units::rate).unwrap_or_default(),
            jitter: node.get("jitter").and_then(units::share).unwrap_or(0.0),
            supply: supply(node, wrong),
        },
        protocol => FlowKind::Unicast {
            protocol: protocol.parse().expect("was accepted when the tree was checked"),
            ack: size(node, "ack").unwrap_or(40),
            supply: supply(node, wrong),
            is_timed: is_on(node, "delays"),
        },
    };
    FlowPlan {
        span: node.span.clone(),
        name,
        ends: ends(node, wrong),
        count: count(node, "count", wrong).unwrap_or(1),
        packet,
        start: many(node, "start", units::time).unwrap_or(RowValues::one(0.0)),
        stop: many(node, "stop", units::time),
        jitter: time(node, "start_jitter").unwrap_or(jitter),
        clock_error: many(node, "clock_error", units::clock_error),
        parts: parts(node, wrong),
        trace: trace(node, packet, wrong),
        kind,
    }
}

/// Reads the trace of an application, for packets of this size.
fn trace(node: &Node, packet: u16, wrong: &mut Vec<Diagnostic>) -> Option<Arc<[(Span, u32)]>> {
    not_read(node, "trace_file", wrong);
    let trace = node.get("trace")?;
    if let Some(other) =
        ["packets", "on", "off", "transfer", "pause"].into_iter().find_map(|key| node.get(key))
    {
        let message =
            "the application follows either its `trace` or other keys such as `packets`; remove one of them";
        wrong.push(Diagnostic::new(&other.span, message, "both"));
    }
    let mut sum = 0_u32;
    let packets = |(at, bytes): (Span, u64)| {
        sum = sum.saturating_add(bytes.div_ceil(u64::from(packet.max(1))) as u32).min(u32::MAX - 1);
        (at, sum)
    };
    Some(units::sends(trace).ok()?.into_iter().map(packets).collect())
}

/// Reports a key that names a file. A caller that reads a scenario from a file must replace this key by the text of the named
/// file.
fn not_read(node: &Node, key: &str, wrong: &mut Vec<Diagnostic>) {
    if let Some(file) = node.get(key) {
        let message = format!(
            "`{key}` works only in a scenario that is read from a file; write the text of the named file into `{}` instead",
            &key[..key.len() - 5]
        );
        wrong.push(Diagnostic::new(&file.span, message, "a file's name"));
    }
}

fn session(node: &Node, packet: u16, wrong: &mut Vec<Diagnostic>) -> FlowKind {
    let scheme = node.get("scheme").and_then(Node::text).and_then(|text| text.parse().ok());
    let scheme: faircast_core::schemes::Scheme = scheme.expect("was accepted when the tree was checked");
    let expected = node
        .list("expected")
        .iter()
        .map(|line| (moment(line, "from").unwrap_or_default(), patterns(line, "is")));
    FlowKind::Session(Box::new(SessionPlan {
        scheme: match node.get("at_most").and_then(units::rate) {
            Some(most) => {
                let max = Rate::from_bps(most);
                scheme.with_packet_size(packet).with_bounds(Bounds { min: Rate::ZERO, max })
            }
            None => scheme.with_packet_size(packet),
        },
        per: if text(node, "per").as_deref() == Some("receiver") { Per::Receiver } else { Per::Group },
        report: size(node, "report").unwrap_or(40),
        join: many(node, "join", units::time).unwrap_or(RowValues::one(0.0)),
        leave: many(node, "leave", units::time),
        join_latency: span(node, "join_latency").unwrap_or_default(),
        leave_latency: span(node, "leave_latency").unwrap_or_default(),
        alive: span(node, "alive"),
        mute_after: span(node, "mute_after"),
        expected: expected.collect(),
        settle: span(node, "settle").unwrap_or(Span::from_secs(20)),
        presence: both(node, "present", "absent", wrong),
        steady: patterns(node, "steady"),
        packets: node.get("packets").and_then(units::whole),
        content: node.get("content").and_then(units::whole),
        talks: both(node, "on", "off", wrong),
        tree: tree(node, wrong),
        most_children: count(node, "most_children", wrong).unwrap_or(MAX_CHILDREN),
        ecn: if is_on(node, "ecn") { Ecn::On } else { Ecn::Off },
        is_timed: is_on(node, "delays"),
    }))
}

fn is_on(node: &Node, key: &str) -> bool {
    node.get(key).and_then(Node::text) == Some("on")
}

fn router(node: &Node) -> RouterPlan {
    let kind = node.get("is").map(units::router);
    RouterPlan {
        name: text(node, "name"),
        at: patterns(node, "at"),
        kind: kind.and_then(Result::ok).expect("was accepted when the tree was checked"),
        restarts: moment(node, "restarts"),
    }
}

/// Reads a group of flows that share congestion control.
fn coordinate(node: &Node, wrong: &mut Vec<Diagnostic>) -> Option<CoordinatePlan> {
    let text = node.get("way")?;
    let way = match text.text()?.parse::<faircast_unicast::coordination::Coordination>() {
        Ok(way) => way,
        Err(error) => {
            wrong.push(Diagnostic::new(&text.span, error.to_string(), "no way of coordination"));
            return None;
        }
    };
    let groups = match node.get("groups").and_then(Node::text) {
        Some("flows") => SharedBy::Flows,
        Some("hosts") => SharedBy::Hosts,
        Some("measured") => SharedBy::Measured,
        _ => SharedBy::One,
    };
    Some(CoordinatePlan { span: node.span.clone(), way, flows: patterns(node, "flows"), groups })
}

/// Maximum number of children of a node. Paper 001 concludes from figure 2: "a reasonable upper bound on the number of children".
const MAX_CHILDREN: u32 = 16;

/// Reads the parents of a session's tree.
fn tree(node: &Node, wrong: &mut Vec<Diagnostic>) -> TreePlan {
    let agents: Vec<AgentPlan> = node
        .list("agents")
        .iter()
        .map(|agent| AgentPlan {
            span: agent.span.clone(),
            agent: patterns(agent, "is"),
            children: patterns(agent, "children"),
            dies: moment(agent, "dies"),
            returns: moment(agent, "returns"),
        })
        .collect();
    let fan_out = count(node, "fan_out", wrong).map(|fan_out| fan_out.max(1));
    let nearest = node.get("tree").is_some();
    match (fan_out, nearest, agents.is_empty()) {
        (Some(fan_out), false, true) => TreePlan::FanOut(fan_out),
        (None, true, true) => TreePlan::Nearest,
        (None, false, false) => TreePlan::Agents(agents),
        (None, false, true) => TreePlan::Flat,
        _ => {
            let message = "a tree has one of `fan_out`, `tree` and `agents`";
            wrong.push(Diagnostic::new(&node.span, message, "which of them?"));
            TreePlan::Flat
        }
    }
}

/// Reads two distributions, whose values alternate. Either both must be present or neither.
fn both(node: &Node, first: &str, second: &str, wrong: &mut Vec<Diagnostic>) -> Option<(Law, Law)> {
    let law = |key| node.get(key).and_then(|law| units::law(law, LawOf::Times));
    match (law(first), law(second)) {
        (Some(first), Some(second)) => Some((first, second)),
        (None, None) => None,
        _ => {
            let message = format!("`{first}` and `{second}` alternate; give both or neither");
            wrong.push(Diagnostic::new(&node.span, message, "only one of them"));
            None
        }
    }
}

fn supply(node: &Node, wrong: &mut Vec<Diagnostic>) -> ApplicationData {
    let law = |key, of| node.get(key).and_then(|law| units::law(law, of));
    let packets = count(node, "packets", wrong);
    let (on, off) = (law("on", LawOf::Times), law("off", LawOf::Times));
    let (transfer, pause) = (law("transfer", LawOf::Counts), law("pause", LawOf::Times));
    match (packets, on, off, transfer, pause) {
        (None, None, None, None, None) => ApplicationData::Endless,
        (Some(packets), None, None, None, None) => ApplicationData::Packets(packets),
        (None, Some(on), Some(off), None, None) => ApplicationData::OnOff { on, off },
        (None, None, None, Some(packets), pause) => {
            ApplicationData::Transfers { packets, pause: pause.unwrap_or(Law::Constant { mean: 0.0 }) }
        }
        _ => {
            let message = "an application has either `packets`, or `on` and `off`, or `transfer` and `pause`; without these keys it always has data to send";
            wrong.push(Diagnostic::new(&node.span, message, "what does it send?"));
            ApplicationData::Endless
        }
    }
}

fn change(node: &Node, until: Time, wrong: &mut Vec<Diagnostic>) -> ChangePlan {
    let rate = node.get("rate").and_then(units::rate).map(|rate| Change::Rate(Rate::from_bps(rate)));
    let delay = span(node, "delay").map(Change::Delay);
    let loss = node.get("loss").and_then(|loss| units::loss(loss).ok()).map(Change::Loss);
    let state = match text(node, "state").as_deref() {
        Some("up") => Some(Change::Up),
        Some(_) => Some(Change::Down),
        None => None,
    };
    let changes: Vec<Change> = [rate, delay, loss, state].into_iter().flatten().collect();
    not_read(node, "rates_file", wrong);
    if changes.is_empty() && node.get("rates").is_none() {
        let message = "a change needs a `rate`, `delay`, `loss`, `state` or `rates`";
        wrong.push(Diagnostic::new(&node.span, message, "changes nothing"));
    }
    let at = moment(node, "at").unwrap_or_default();
    let rates = rates(node, at, until, wrong);
    ChangePlan { at, links: patterns(node, "link"), changes, rates }
}

/// Reads the rates of a link from a trace, which is repeated until the run ends.
fn rates(node: &Node, at: Time, until: Time, wrong: &mut Vec<Diagnostic>) -> Vec<(Time, Rate)> {
    let Some(place) = node.get("rates") else { return Vec::new() };
    let bin = span(node, "rates_bin").unwrap_or(Span::from_millis(100)).max(Span::from_millis(1));
    let Ok(trace) = units::rates_over(place, bin) else { return Vec::new() };
    let repeats = text(node, "rates_repeat").as_deref() != Some("off");
    let rounds = match trace.length.as_nanos() {
        length if length > 0 && repeats => until.since(at).as_nanos() / length + 1,
        _ => 1,
    };
    if rounds.saturating_mul(trace.steps.len() as u64) > traces::MAX_ENTRIES as u64 {
        let message = format!(
            "{rounds} repetitions of {} rates give more than {} rates",
            trace.steps.len(),
            traces::MAX_ENTRIES
        );
        let help = "use a longer `rates_bin`, a longer trace or a shorter run";
        wrong.push(Diagnostic::new(&place.span, message, "too many").help(help));
        return Vec::new();
    }
    // If the trace is repeated, its last entry only marks the end.
    let last = if repeats && trace.steps.len() > 1 { trace.length } else { Span::MAX };
    let steps = trace.steps.iter().filter(|(after, _)| *after < last);
    (0..rounds)
        .flat_map(|round| {
            let began = at + trace.length * round;
            steps.clone().map(move |&(after, rate)| (began + after, rate))
        })
        .filter(|(moment, _)| *moment < until)
        .collect()
}

fn windows(root: &Node, duration: Time, bin: Span, wrong: &mut Vec<Diagnostic>) -> Vec<TimeWindow> {
    let warmup = moment(root, "warmup").unwrap_or_default();
    let mut all = vec![TimeWindow { name: String::new(), from: warmup, to: duration }];
    let mut places = vec![root.place("warmup")];
    for node in root.list("window") {
        all.push(TimeWindow {
            name: text(node, "name").unwrap_or_default(),
            from: moment(node, "from").unwrap_or_default(),
            to: moment(node, "to").unwrap_or_default(),
        });
        places.push(node.span.clone());
    }
    for (window, place) in all.iter().zip(&places) {
        if window.to > duration || window.to.since(window.from) < bin {
            let message = format!(
                "the window from {} to {} must lie within the run of {duration} and hold at least a bin of {bin}",
                window.from, window.to
            );
            wrong.push(Diagnostic::new(place, message, "not within the run"));
        }
    }
    all
}

fn read_probe(node: Option<&Node>) -> Probe {
    let root = Node { span: 0..0, value: Value::Table(Vec::new()) };
    let node = node.unwrap_or(&root);
    let positive = |key, default: Span| span(node, key).filter(|span| *span > Span::ZERO).unwrap_or(default);
    let whole = |key| node.get(key).and_then(units::whole).map(|whole| whole.min(u64::from(u32::MAX)) as u32);
    Probe {
        bin: positive("bin", Span::from_secs(1)),
        stretch: positive("stretch", Span::from_secs(1)),
        sample: span(node, "sample").filter(|span| *span > Span::ZERO),
        links: patterns(node, "links"),
        queue_every: positive("queue_every", Span::from_millis(100)),
        receivers: whole("receivers").unwrap_or(8),
        watch: whole("watch"),
        taps: patterns(node, "taps"),
        events: if is_on(node, "events") { Events::On } else { Events::Off },
    }
}

/// Reads a number or a text.
pub(crate) fn setting(node: &Node) -> Setting {
    match &node.value {
        Value::Number(number) => Setting::Number(*number),
        Value::Truth(truth) => Setting::Text(truth.to_string()),
        Value::Text(text) => Setting::Text(text.clone()),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| setting(item).to_string()).collect();
            Setting::Text(if items.is_empty() { "none".into() } else { items.join(" ") })
        }
        Value::Table(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|entry| format!("{}={}", entry.key, setting(&entry.node))).collect();
            Setting::Text(entries.join(" "))
        }
    }
}

fn claim(node: &Node, wrong: &mut Vec<Diagnostic>) -> Claim {
    let place = |key| {
        let entries = node.table(key).iter();
        entries.map(|entry| (entry.key.clone(), setting(&entry.node))).collect()
    };
    let claim = Claim {
        name: text(node, "name").unwrap_or_default(),
        published: number(node, "published"),
        of: text(node, "of").unwrap_or_default(),
        over: text(node, "over"),
        over_at: place("over_at"),
        at: place("at"),
        trend: text(node, "against").map(|against| Trend {
            against,
            number: match text(node, "fit").as_deref() {
                Some("intercept") => Trait::Intercept,
                Some("r2") => Trait::Explained,
                _ => Trait::Slope,
            },
            scale: scale(node),
        }),
        low: number(node, "low"),
        high: number(node, "high"),
        tolerance: node.get("tolerance").and_then(units::share),
        limits_are_published: text(node, "limits").as_deref() == Some("published"),
        statement: text(node, "statement"),
        note: text(node, "note"),
        contradicts: text(node, "contradicts"),
    };
    let (trend, of_trends) =
        (claim.trend.is_some(), node.get("fit").is_some() || node.get("scale").is_some());
    if trend && claim.over.is_some() || of_trends && !trend {
        let message = "`fit` and `scale` require `against`, and a claim has either `against` or `over`";
        wrong.push(Diagnostic::new(&node.span, message, "a ratio or a trend?"));
    }
    let relative = claim.tolerance.is_some() && claim.published.is_some();
    if !relative && claim.low.is_none() && claim.high.is_none() {
        let message = "a claim needs `low` or `high`, or `published` and a `tolerance`";
        wrong.push(Diagnostic::new(&node.span, message, "nothing to compare with"));
    }
    claim
}

/// Reads the values that the source leaves open.
pub(super) fn choices(root: &Node) -> Vec<Choice> {
    let alternative = |node: &Node| {
        let set = node.table("set").iter().map(|entry| (entry.key.clone(), entry.node.toml())).collect();
        Alternative { name: text(node, "name").unwrap_or_default(), set }
    };
    let choice = |node: &Node| Choice {
        what: text(node, "what").unwrap_or_default(),
        value: text(node, "value").unwrap_or_default(),
        when: match text(node, "when").as_deref() {
            Some("after") => When::After,
            Some("departs") => When::Departs,
            _ => When::Before,
        },
        why: text(node, "why").unwrap_or_default(),
        claims: node.list("claims").iter().filter_map(Node::text).map(str::to_owned).collect(),
        alternatives: node.list("alternative").iter().map(alternative).collect(),
    };
    root.list("chosen").iter().map(choice).collect()
}

fn unique_names(plan: &RunPlan, wrong: &mut Vec<Diagnostic>) {
    let mut known = BTreeSet::new();
    for flow in &plan.flows {
        if !known.insert(flow.name.value.as_str()) {
            let message = format!("two flows are called \"{}\"", flow.name.value);
            wrong.push(Diagnostic::new(&flow.name.span, message, "the second one"));
        }
    }
}
