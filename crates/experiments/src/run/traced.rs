//! One more run of a scenario, whose events and samples explain the rates of its sessions.
//!
//! The run has its own samples. The other runs, their results and their cost are therefore the same without it.

use super::{RunError, STEPS};
use crate::results::events::reason;
use crate::results::measure::complete_at;
use crate::scenario::plan::{FlowKind, RunPlan, SessionPlan};
use crate::scenario::{Layout, Scenario};
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Span, Time};
use faircast_sim::{
    CutCause, Events, FlowId, FlowOutcome, Happening, LinkId, MemberOutcome, Network, Options, Outcome,
    SourceSample, Watch,
};
use std::collections::BTreeMap;

/// Interval of the samples.
const EVERY: Span = Span::from_millis(100);

/// Maximum number of links whose queues are sampled. In larger networks, only the links are that the scenario probes.
pub(super) const MAX_PROBED: usize = 64;

/// Returns the network of a layout whose probed links are sampled at this interval.
pub(super) fn probed_network(layout: &mut Layout, (plan, seed): (&RunPlan, u64), every: Span) -> Network {
    let mut probed = std::mem::take(&mut layout.probes);
    if layout.links.len() <= MAX_PROBED {
        probed = (0..layout.links.len() as u32).collect();
    }
    let mut network = layout.network(plan, seed);
    probed.iter().for_each(|link| network.probe_link(LinkId(*link), every));
    layout.probes = probed;
    network
}

/// Returns the name of a flow: of its group, and its number if the group has several.
pub(super) fn flow_name(plan: &RunPlan, layout: &Layout, flow: usize) -> String {
    let group = layout.flows[flow].group;
    let all = layout.flows.iter().enumerate().filter(|(_, other)| other.group == group);
    let name = &plan.flows[group].name.value;
    match all.clone().count() {
        1 => name.clone(),
        _ => format!("{name}-{}", all.take_while(|(other, _)| *other <= flow).count()),
    }
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// Simulated time, in seconds.
    pub at: f64,
    /// Name of the session: of its flow, and its number if the flow has several.
    pub session: String,
    /// Name of the event in words, as a session on a network has it.
    pub message: &'static str,
    /// Names and values.
    pub fields: Vec<(&'static str, Value)>,
}

/// A value of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Whether something is true.
    Is(bool),
}

/// The events of a run in order of time, and the digest of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The events.
    pub events: Vec<Traced>,
    /// Hash of all arrivals, equal to that of the run without a trace.
    pub digest: u64,
}

/// Runs the first point with the first seed, unless `is_cancelled` returns true during the run.
///
/// # Errors
/// If the simulator refuses the network, or the run was cancelled.
pub fn trace(scenario: &Scenario, is_cancelled: &dyn Fn() -> bool) -> Result<Trace, RunError> {
    let (plan, seed) = (scenario.plan(0), scenario.seeds()[0]);
    let mut layout = scenario.layout(0, seed);
    let network = probed_network(&mut layout, (plan, seed), EVERY);
    let options = Options {
        until: plan.duration,
        bin: EVERY,
        sample: EVERY,
        watch: Watch::First(plan.watched()),
        events: Events::On,
        ..Options::default()
    };
    let refused = |source| RunError::Network { place: String::new(), seed, source };
    let mut engine = network.engine(&options).map_err(refused)?;
    for step in 1..=STEPS {
        if is_cancelled() {
            return Err(RunError::Cancelled);
        }
        engine.run_until(Time::from_nanos(plan.duration.as_nanos() / STEPS * step));
    }
    engine.run();
    let outcome = engine.finish(&network).map_err(refused)?;
    let run = TracedRun { plan, layout: &layout, outcome: &outcome };
    let mut events = Vec::new();
    for flow in 0..layout.flows.len() {
        if let FlowKind::Session(session) = &plan.flows[layout.flows[flow].group].kind {
            events.extend(run.session(flow, session));
        }
    }
    events.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok(Trace { events, digest: outcome.digest })
}

/// A run whose events are converted.
struct TracedRun<'a> {
    plan: &'a RunPlan,
    layout: &'a Layout,
    outcome: &'a Outcome,
}

impl TracedRun<'_> {
    fn receiver(&self, flow: usize, member: u32) -> String {
        self.layout.names.name(self.layout.flows[flow].receivers[member as usize])
    }

    /// Returns the events of a session, until its content is complete.
    fn session(&self, flow: usize, session: &SessionPlan) -> Vec<Traced> {
        let packet = u64::from(self.plan.flows[self.layout.flows[flow].group].packet);
        let (name, outcome) = (flow_name(self.plan, self.layout, flow), &self.outcome.flows[flow]);
        let event = |at, message, fields| Traced { at, session: name.clone(), message, fields };
        let mut events = Vec::new();
        let mut losses: BTreeMap<(u64, LinkId, &str), u64> = BTreeMap::new();
        for one in &self.outcome.log {
            let at = one.at.as_secs_f64();
            let mut add = |message, fields| events.push(event(at, message, fields));
            match one.what {
                Happening::Started { flow: FlowId(of) } if of as usize == flow => {
                    let receivers = self.layout.flows[flow].receivers.len();
                    add("session started", started(session, receivers, packet));
                }
                Happening::Stopped { flow: FlowId(of) } if of as usize == flow => {
                    add("session ended", Vec::new())
                }
                Happening::Joined { flow: FlowId(of), member } if of as usize == flow => {
                    let host = self.receiver(flow, member);
                    add("member joined", vec![text("receiver", &host), text("host", &host)]);
                }
                Happening::Left { flow: FlowId(of), member } if of as usize == flow => {
                    let host = self.receiver(flow, member);
                    add(
                        "member left",
                        vec![text("receiver", &host), text("host", &host), text("reason", "left")],
                    );
                }
                Happening::Follows { flow: FlowId(of), member } if of as usize == flow => {
                    let host = member.map(|member| text("receiver", &self.receiver(flow, member)));
                    add("representative changed", host.into_iter().collect());
                }
                Happening::Cut { flow: FlowId(of), rate, cause: Some(cause) } if of as usize == flow => {
                    let CutCause { before, reason, member } = cause;
                    let mut fields = vec![
                        number("rate_before_bps", before.bps()),
                        number("rate_bps", rate.bps()),
                        text("reason", reason),
                    ];
                    fields.extend(member.map(|member| text("receiver", &self.receiver(flow, member))));
                    add("rate cut", fields);
                }
                Happening::Subscribed { flow: FlowId(of), member, layer } if of as usize == flow => {
                    let host = self.receiver(flow, member);
                    add(
                        "layers changed",
                        vec![text("receiver", &host), number("layers", f64::from(layer) + 1.0)],
                    );
                }
                Happening::Lost { link, flow: FlowId(of), cause } if of as usize == flow => {
                    let bin = one.at.as_nanos().div_ceil(EVERY.as_nanos());
                    *losses.entry((bin, link, reason(cause))).or_default() += 1;
                }
                _ => {}
            }
        }
        let mut worst: BTreeMap<LinkId, u64> = BTreeMap::new();
        for (&(bin, link, cause), &count) in &losses {
            *worst.entry(link).or_default() += count;
            let at = bin as f64 * EVERY.as_secs_f64();
            let link = text("link", &self.layout.link_name(link.0));
            events.push(event(
                at,
                "packets lost",
                vec![link, number("packets", count as f64), text("reason", cause)],
            ));
        }
        let bottleneck = worst.into_iter().max_by_key(|(_, count)| *count).map(|(link, _)| link);
        events.extend(
            self.samples(flow, outcome, bottleneck).map(|(at, fields)| event(at, "rate sampled", fields)),
        );
        let content = session.content.map(|content| (content, packet));
        let ends = content.map_or(Vec::new(), |content| self.ends(flow, outcome, content));
        if let Some((end, "session ended", _)) = ends.last() {
            events.retain(|event| event.at <= *end);
        }
        events.extend(ends.into_iter().map(|(at, message, fields)| event(at, message, fields)));
        events
    }

    /// Returns the ends of the receivers that have the content, a number of packets of this size, with their paths. If all have it,
    /// also the end of the session.
    fn ends(&self, flow: usize, outcome: &FlowOutcome, (content, packet): (u64, u64)) -> Vec<Ended> {
        let complete = |member: &MemberOutcome| complete_at(member, content * packet, EVERY);
        let times = (0..).zip(outcome.members.iter().map(complete));
        let mut ends: Vec<Ended> = times
            .filter_map(|(member, at)| Some((at?, "member left", self.path(flow, outcome, member))))
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((end, ..)) = ends.last().filter(|_| ends.len() == outcome.members.len()) {
            let end = *end;
            let bins = (end / EVERY.as_secs_f64()).round() as usize;
            let packets = outcome.sent_bins.iter().take(bins).sum::<u64>() / packet.max(1);
            let count = ends.len() as f64;
            let fields = vec![
                number("receivers", count),
                number("verified", count),
                number("seconds", end - self.layout.flows[flow].start.as_secs_f64()),
                number("packets", packets as f64),
                number("repair_ratio", packets as f64 / content.max(1) as f64),
            ];
            ends.push((end, "session ended", fields));
        }
        ends
    }

    /// Returns the fields of a receiver that has the content.
    fn path(&self, flow: usize, outcome: &FlowOutcome, member: u32) -> Vec<(&'static str, Value)> {
        let (host, at) = (self.receiver(flow, member), member as usize);
        let MemberOutcome { packets, lost, .. } = outcome.members[at];
        let mut fields = vec![
            text("receiver", &host),
            text("host", &host),
            text("reason", "done"),
            number("receivers", 1.0),
            number("loss", lost as f64 / (packets + lost).max(1) as f64),
        ];
        let trip = self.outcome.round_trips[flow].get(at).copied().unwrap_or_default();
        let trips = [("rtt_ms", trip.least()), ("congested_rtt_ms", trip.congested())];
        fields.extend(
            trips.into_iter().filter_map(|(name, trip)| Some(number(name, trip?.as_secs_f64() * 1e3))),
        );
        fields
    }

    /// Returns the samples of a session. A sample has the length of the queue of the link that lost the most packets.
    fn samples(
        &self,
        flow: usize,
        outcome: &FlowOutcome,
        bottleneck: Option<LinkId>,
    ) -> impl Iterator<Item = (f64, Vec<(&'static str, Value)>)> {
        let queue = bottleneck.map(|link| &self.outcome.links[link.0 as usize].samples);
        let receiver = move |id: ReceiverId| self.receiver(flow, (id.get() - 1) as u32);
        outcome.samples.iter().filter_map(move |sample| {
            let SourceSample::Session { at, view } = sample else { return None };
            let bin = (at.as_nanos() / EVERY.as_nanos()).checked_sub(1)?;
            let bytes = outcome.sent_bins.get(bin as usize).copied().unwrap_or_default();
            let mut fields = vec![
                number("rate_bps", bytes as f64 * 8.0 / EVERY.as_secs_f64()),
                number("allowed_bps", view.rate.bps()),
                text("limited_by", "congestion"),
                number("rtt_ms", view.rtt.as_secs_f64() * 1e3),
                ("starting", Value::Is(view.starting)),
                number("cuts", view.cuts as f64),
            ];
            fields.extend(view.limiting.map(|id| text("limiting", &receiver(id))));
            let queue = queue.and_then(|queue| queue.get(queue.partition_point(|sample| sample.at < *at)));
            fields.extend(queue.map(|sample| number("queue_bytes", sample.waiting_bytes as f64)));
            Some((at.as_secs_f64(), fields))
        })
    }
}

/// Time, message and fields of an end.
type Ended = (f64, &'static str, Vec<(&'static str, Value)>);

/// Returns the fields of a session that starts.
fn started(session: &SessionPlan, receivers: usize, packet: u64) -> Vec<(&'static str, Value)> {
    let mut fields = vec![
        text("scheme", &session.scheme.to_string()),
        number("receivers", receivers as f64),
        number("layers", f64::from(session.scheme.layers())),
        number("packet_bytes", packet as f64),
    ];
    let max = session.scheme.bounds().max;
    fields.extend(max.is_usable().then(|| number("max_bps", max.bps())));
    fields
}

fn text(name: &'static str, value: &str) -> (&'static str, Value) {
    (name, Value::Text(value.to_owned()))
}

const fn number(name: &'static str, value: f64) -> (&'static str, Value) {
    (name, Value::Number(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunOptions, Silent, run};

    fn values<'a>(trace: &'a Trace, message: &str, name: &str) -> Vec<&'a Value> {
        let events = trace.events.iter().filter(|event| event.message == message);
        events
            .flat_map(|event| &event.fields)
            .filter(|(field, _)| *field == name)
            .map(|(_, value)| value)
            .collect()
    }

    fn numbers(trace: &Trace, message: &str, name: &str) -> Vec<f64> {
        let number = |value: &&Value| if let Value::Number(number) = value { Some(*number) } else { None };
        values(trace, message, name).iter().filter_map(number).collect()
    }

    #[test]
    fn traced_run_equals_the_run_and_names_receivers_and_links() {
        let text =
            crate::scenario::TEMPLATES.iter().find(|template| template.name == "dumbbell").expect("one").text;
        let mut scenario = Scenario::parse(text, "dumbbell.toml").expect("it is good");
        scenario.set_seeds(vec![3]);
        let seconds = scenario.duration(0);
        let trace = trace(&scenario, &|| false).expect("it runs");
        let results = run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
        assert_eq!(results.totals.digest, trace.digest);
        assert!(trace.events.is_sorted_by(|a, b| a.at <= b.at));

        let before = numbers(&trace, "rate cut", "rate_before_bps");
        let after = numbers(&trace, "rate cut", "rate_bps");
        assert!(before.len() > 10 && before.len() == after.len(), "{} cuts", before.len());
        assert!(before.iter().zip(&after).all(|(before, after)| after <= before), "{before:?} {after:?}");
        let joined = values(&trace, "member joined", "host");
        for who in [values(&trace, "rate cut", "receiver"), values(&trace, "rate sampled", "limiting")] {
            assert!(!who.is_empty() && who.iter().all(|host| joined.contains(host)), "{who:?} of {joined:?}");
        }
        assert!(values(&trace, "rate cut", "reason").contains(&&Value::Text("loss".to_owned())));
        let samples = numbers(&trace, "rate sampled", "rate_bps");
        assert!(
            (seconds * 9.0..=seconds * 10.0).contains(&(samples.len() as f64)),
            "{} samples",
            samples.len()
        );
        assert!(numbers(&trace, "rate sampled", "queue_bytes").iter().any(|bytes| *bytes > 0.0));
        assert!(!values(&trace, "packets lost", "link").is_empty());
        assert!(matches!(super::trace(&scenario, &|| true), Err(RunError::Cancelled)));
    }
}
