//! One more run of a scenario, in steps: rates, receivers and links after each step, for a page that is open during the run.
//!
//! The run has its own samples. The other runs, their results and their cost are therefore the same without it.

use super::RunError;
use super::traced::{MAX_PROBED, flow_name, probed_network};
use crate::scenario::plan::{FlowKind, RunPlan};
use crate::scenario::{Layout, Scenario};
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    CutCause, Engine, Events, FlowId, FlowSnapshot, Happening, MemberSnapshot, Network, Options,
    SourceSample, Watch,
};
use std::time::Duration;

/// Maximum number of steps. Afterwards steps are longer than a second.
const MAX_STEPS: u64 = 600;

/// Runs shorter than this have ten steps each second.
const SHORT: Span = Span::from_secs(20);

/// Maximum number of watched sessions, of watched receivers of each, and of groups of other flows.
const MAX_SESSIONS: usize = 16;
const MAX_RECEIVERS: u32 = 1_000;
const MAX_GROUPS: usize = 16;

/// A run in steps.
pub struct Watched<'a> {
    scenario: &'a Scenario,
    layout: Layout,
    network: Network,
    engine: Engine,
    step: Span,
    now: Time,
    /// State after the last step: of flows, and losses of the probed links.
    flows: Vec<FlowSnapshot>,
    lost: Vec<u64>,
    /// Sessions: number of the flow, and the receiver that limits the rate.
    sessions: Vec<(usize, Option<u32>)>,
    /// Presence of each receiver of each flow, as events state it.
    present: Vec<Vec<Presence>>,
}

/// Whether a receiver takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// It has not joined.
    #[default]
    Absent,
    /// It has joined.
    Present,
    /// It has left.
    Left,
    /// Its session has excluded it.
    Excluded,
}

/// The run, before its first step.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// Simulated duration.
    pub duration: Duration,
    /// Name and scheme of each watched session.
    pub sessions: Vec<(String, String)>,
    /// Name of each group of flows, and number of its flows.
    pub groups: Vec<(String, usize)>,
    /// Names of the links.
    pub links: Vec<String>,
}

/// The state after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Simulated time at the beginning and the end of the step.
    pub from: Duration,
    /// As `from`.
    pub to: Duration,
    /// The watched sessions.
    pub sessions: Vec<SessionStep>,
    /// The groups of flows.
    pub groups: Vec<GroupStep>,
    /// The links.
    pub links: Vec<LinkStep>,
}

/// A session after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionStep {
    /// Bytes and packets sent so far.
    pub sent_bytes: u64,
    /// As `sent_bytes`.
    pub packets: u64,
    /// Rate of the source in the step, and the rate that the scheme allows.
    pub rate: Rate,
    /// As `rate`.
    pub allowed: Rate,
    /// Round-trip time to the receiver that limits the rate.
    pub rtt: Duration,
    /// Name of the receiver that limits the rate.
    pub limiting: Option<String>,
    /// Rate cuts in the step, and all so far.
    pub cuts: Vec<Cut>,
    /// As `cuts`.
    pub all_cuts: u64,
    /// Number of receivers that take part.
    pub present: u64,
    /// The first receivers that have joined.
    pub receivers: Vec<ReceiverStep>,
}

/// A rate cut.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Simulated time.
    pub at: Duration,
    /// Rates before and after.
    pub from: Rate,
    /// As `from`.
    pub to: Rate,
    /// Name of the receiver whose report caused the cut.
    pub receiver: Option<String>,
    /// Reason in one word.
    pub reason: &'static str,
}

/// A receiver after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiverStep {
    /// Number of the receiver in its session, from 0.
    pub number: u32,
    /// Name of its host.
    pub host: String,
    /// Whether it takes part.
    pub presence: Presence,
    /// Bytes received so far, and the rate in the step.
    pub bytes: u64,
    /// As `bytes`.
    pub rate: Rate,
    /// Share of packets that it found lost in the step.
    pub loss: f64,
}

/// Flows of one group after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupStep {
    /// Mean received rate of a receiver in the step.
    pub rate: Rate,
    /// Number of rate cuts in the step.
    pub cuts: u64,
}

/// A link after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkStep {
    /// Waiting packets and bytes.
    pub packets: u64,
    /// As `packets`.
    pub bytes: u64,
    /// Share of its capacity that was used in the step.
    pub used: f64,
    /// Packets lost in the step, and all so far.
    pub lost: u64,
    /// As `lost`.
    pub all_lost: u64,
}

impl<'a> Watched<'a> {
    /// Builds the run of the first point with the first seed.
    ///
    /// # Errors
    /// If the simulator refuses the network.
    pub fn new(scenario: &'a Scenario) -> Result<Watched<'a>, RunError> {
        let (plan, seed) = (scenario.plan(0), scenario.seeds()[0]);
        let mut layout = scenario.layout(0, seed);
        layout.probes.truncate(MAX_PROBED);
        let step = step_of(plan.duration);
        let mut network = probed_network(&mut layout, (plan, seed), step);
        let steps = plan.duration.as_nanos() / step.as_nanos();
        (1..=steps).for_each(|number| network.count_until(Time::ZERO + step * number));
        let options = Options {
            until: plan.duration,
            bin: step,
            sample: step,
            watch: Watch::First(MAX_RECEIVERS),
            events: Events::On,
            ..Options::default()
        };
        let refused = |source| RunError::Network { place: String::new(), seed, source };
        let engine = network.engine(&options).map_err(refused)?;
        let is_session =
            |flow: &usize| matches!(plan.flows[layout.flows[*flow].group].kind, FlowKind::Session(_));
        Ok(Watched {
            scenario,
            step,
            now: Time::ZERO,
            flows: Vec::new(),
            lost: Vec::new(),
            sessions: (0..layout.flows.len())
                .filter(is_session)
                .take(MAX_SESSIONS)
                .map(|flow| (flow, None))
                .collect(),
            present: layout.flows.iter().map(|flow| vec![Presence::Absent; flow.receivers.len()]).collect(),
            layout,
            network,
            engine,
        })
    }

    fn plan(&self) -> &'a RunPlan {
        self.scenario.plan(0)
    }

    /// Describes the run.
    pub fn about(&self) -> About {
        let plan = self.plan();
        let session = |(flow, _): &(usize, _)| {
            let scheme = match &plan.flows[self.layout.flows[*flow].group].kind {
                FlowKind::Session(session) => session.scheme.to_string(),
                _ => String::new(),
            };
            (flow_name(plan, &self.layout, *flow), scheme)
        };
        let count = |group| self.layout.flows.iter().filter(|flow| flow.group == group).count();
        let groups = plan.flows.iter().enumerate().take(MAX_GROUPS);
        About {
            duration: plan.duration.since(Time::ZERO).into(),
            sessions: self.sessions.iter().map(session).collect(),
            groups: groups.map(|(group, flow)| (flow.name.value.clone(), count(group))).collect(),
            links: self.layout.probes.iter().map(|link| self.layout.link_name(*link)).collect(),
        }
    }

    /// Makes the next step; `None` at the end of the run.
    pub fn step(&mut self) -> Option<Step> {
        let (from, to) = (self.now, self.now + self.step);
        if to > self.plan().duration {
            return None;
        }
        self.engine.run_until(to);
        self.now = to;
        let (cuts, group_cuts) = self.take_events();
        let snapshot = self.engine.snapshot(to).expect("the step is the interval of bins and samples");
        let before = std::mem::replace(&mut self.flows, snapshot.flows);
        let sessions = std::mem::take(&mut self.sessions);
        let session = |(&(flow, limiting), cuts)| self.session(flow, before.get(flow), limiting, cuts);
        let step = Step {
            from: from.since(Time::ZERO).into(),
            to: to.since(Time::ZERO).into(),
            sessions: sessions.iter().zip(cuts).map(session).collect(),
            groups: group_cuts
                .into_iter()
                .enumerate()
                .map(|(group, cuts)| self.group(group, &before, cuts))
                .collect(),
            links: snapshot
                .links
                .iter()
                .zip(self.lost.iter().copied().chain(std::iter::repeat(0)))
                .map(link)
                .collect(),
        };
        self.sessions = sessions;
        self.lost = step.links.iter().map(|link| link.all_lost).collect();
        Some(step)
    }

    /// Ends the run. Returns the hash of all arrivals, equal to that of the run without steps.
    ///
    /// # Errors
    /// If a role requested an action that the simulator cannot carry out for this role.
    pub fn finish(mut self) -> Result<u64, RunError> {
        let seed = self.scenario.seeds()[0];
        self.engine.run();
        let outcome = self.engine.finish(&self.network);
        let outcome = outcome.map_err(|source| RunError::Network { place: String::new(), seed, source })?;
        Ok(outcome.digest)
    }

    /// Processes the events of a step. Returns the cuts of each watched session, and the number of cuts of each group.
    fn take_events(&mut self) -> (Vec<Vec<Cut>>, Vec<u64>) {
        let mut cuts = vec![Vec::new(); self.sessions.len()];
        let mut group_cuts = vec![0; self.plan().flows.len().min(MAX_GROUPS)];
        for event in self.engine.take_events() {
            match event.what {
                Happening::Joined { flow: FlowId(flow), member } => {
                    self.present[flow as usize][member as usize] = Presence::Present;
                }
                Happening::Left { flow: FlowId(flow), member } => {
                    self.present[flow as usize][member as usize] = Presence::Left;
                }
                Happening::Follows { flow: FlowId(flow), member } => {
                    let session = self.sessions.iter_mut().find(|(of, _)| *of == flow as usize);
                    session.into_iter().for_each(|(_, limiting)| *limiting = member);
                }
                Happening::Cut { flow: FlowId(flow), rate, cause } => {
                    let flow = flow as usize;
                    group_cuts
                        .get_mut(self.layout.flows[flow].group)
                        .into_iter()
                        .for_each(|count| *count += 1);
                    let place = self.sessions.iter().position(|(of, _)| *of == flow);
                    if let (Some(place), Some(CutCause { before, reason, member })) = (place, cause) {
                        let receiver = member.map(|member| self.host(flow, member));
                        let at = event.at.since(Time::ZERO).into();
                        cuts[place].push(Cut { at, from: before, to: rate, receiver, reason });
                    }
                }
                _ => {}
            }
        }
        (cuts, group_cuts)
    }

    /// Returns the size of a flow's packets.
    fn packet(&self, flow: usize) -> u64 {
        u64::from(self.plan().flows[self.layout.flows[flow].group].packet).max(1)
    }

    fn host(&self, flow: usize, member: u32) -> String {
        self.layout.names.name(self.layout.flows[flow].receivers[member as usize])
    }

    fn rate(&self, bytes: u64) -> Rate {
        Rate::from_bps(bytes as f64 * 8.0 / self.step.as_secs_f64())
    }

    fn session(
        &self,
        flow: usize,
        before: Option<&FlowSnapshot>,
        limiting: Option<u32>,
        cuts: Vec<Cut>,
    ) -> SessionStep {
        let now = &self.flows[flow];
        let (allowed, rtt, all_cuts) = match now.source {
            Some(SourceSample::Session { view, .. }) => (view.rate, view.rtt.into(), view.cuts),
            _ => (Rate::ZERO, Duration::ZERO, 0),
        };
        let present = &self.present[flow];
        let receivers = now.members.iter().zip(present).zip(0_u32..);
        let receivers = receivers.filter(|((_, presence), _)| **presence != Presence::Absent);
        SessionStep {
            sent_bytes: now.sent_bytes,
            packets: now.sent_bytes / self.packet(flow),
            rate: self.rate(now.sent_bytes - before.map_or(0, |before| before.sent_bytes)),
            allowed,
            rtt,
            limiting: limiting.map(|member| self.host(flow, member)),
            cuts,
            all_cuts,
            present: present.iter().filter(|presence| **presence == Presence::Present).count() as u64,
            receivers: receivers
                .map(|((now, presence), number)| {
                    let before = before.and_then(|before| before.members.get(number as usize));
                    self.receiver((flow, number), (before, now), *presence)
                })
                .collect(),
        }
    }

    fn receiver(
        &self,
        (flow, number): (usize, u32),
        (before, now): (Option<&MemberSnapshot>, &MemberSnapshot),
        presence: Presence,
    ) -> ReceiverStep {
        let bytes = now.received_bytes - before.map_or(0, |before| before.received_bytes);
        let lost = now.lost.unwrap_or(0) - before.and_then(|before| before.lost).unwrap_or(0);
        let expected = lost + bytes / self.packet(flow);
        ReceiverStep {
            number,
            host: self.host(flow, number),
            presence: if now.excluded.is_some() { Presence::Excluded } else { presence },
            bytes: now.received_bytes,
            rate: self.rate(bytes),
            loss: lost as f64 / expected.max(1) as f64,
        }
    }

    fn group(&self, group: usize, before: &[FlowSnapshot], cuts: u64) -> GroupStep {
        let (mut bytes, mut receivers) = (0, 0);
        for (flow, laid) in self.layout.flows.iter().enumerate().filter(|(_, laid)| laid.group == group) {
            let before = before.get(flow).map_or(0, |before| before.received_bytes);
            bytes += self.flows[flow].received_bytes - before;
            receivers += laid.receivers.len();
        }
        GroupStep { rate: self.rate(bytes) * (1.0 / receivers.max(1) as f64), cuts }
    }
}

fn link((now, before): (&faircast_sim::LinkSnapshot, u64)) -> LinkStep {
    let counts = now.sample.counts;
    let all_lost = counts.overflow + counts.early + counts.lost;
    LinkStep {
        packets: now.sample.waiting.into(),
        bytes: now.sample.waiting_bytes,
        used: now.utilisation,
        lost: all_lost - before,
        all_lost,
    }
}

/// Returns the length of a step: a second, less in short runs, and more in long ones.
fn step_of(duration: Time) -> Span {
    let duration = duration.since(Time::ZERO);
    if duration < SHORT {
        return Span::from_millis(100);
    }
    let seconds = Span::from_secs(1).as_nanos();
    Span::from_secs(duration.as_nanos().div_ceil(seconds * MAX_STEPS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunOptions, Silent, run};

    #[test]
    fn steps_add_up_to_the_results_of_the_run() {
        for template in crate::scenario::TEMPLATES {
            let mut scenario = Scenario::parse(template.text, template.name).expect("it is good");
            scenario.set_seeds(vec![3]);
            let mut watched = Watched::new(&scenario).expect("it runs");
            let about = watched.about();
            let mut steps = Vec::new();
            while let Some(step) = watched.step() {
                steps.push(step);
            }
            let results = run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
            if scenario.points().len() == 1 {
                assert_eq!(watched.finish().expect("it runs"), results.totals.digest, "{}", template.name);
            }
            let last = steps.last().expect("a step");
            assert!(last.to.as_secs_f64() > 0.99 * about.duration.as_secs_f64(), "{last:?}");
            assert!(steps.is_sorted_by(|a, b| a.to == b.from), "{}", template.name);
            let warmup = scenario.plan(0).windows[0].from.as_secs_f64();
            for (group, (name, _)) in about.groups.iter().enumerate() {
                let measured = results.metric(0, &format!("{name}.rate"));
                let seen = steps.iter().filter(|step| step.from.as_secs_f64() >= warmup - 1e-9);
                let rates: Vec<f64> = seen.map(|step| step.groups[group].rate.bps()).collect();
                let mean = rates.iter().sum::<f64>() / rates.len() as f64;
                let ratio = mean / measured[0];
                assert!((0.99..1.01).contains(&ratio), "{}: {name}: {mean} of {measured:?}", template.name);
            }
            let cuts: u64 = steps.iter().map(|step| step.sessions[0].cuts.len() as u64).sum();
            assert_eq!(cuts, last.sessions[0].all_cuts, "{}", template.name);
            let lost = |step: &Step| step.links.iter().map(|link| link.lost).sum::<u64>();
            let all: u64 = last.links.iter().map(|link| link.all_lost).sum();
            assert_eq!(steps.iter().map(lost).sum::<u64>(), all, "{}", template.name);
            assert_eq!(last.links.len(), about.links.len());
            let receivers = &last.sessions[0].receivers;
            assert!(!receivers.is_empty() && receivers.iter().all(|one| one.bytes > 0), "{receivers:?}");
        }
    }
}
