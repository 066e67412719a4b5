//! Records of a run, by flow.

use super::agents::{ReceiverAgent, SessionAgent, SinkAgent};
use super::meter::Moments;
use super::nanos::{mix, put, time};
use super::relays::SessionSource;
use super::{Island, SimError};
use crate::events::{CutCause, Event, Happening};
use crate::network::{Events, Flow, FlowId, Network, NodeId};
use crate::outcome::{
    DelayOutcome, FlowOutcome, LinkOutcome, MemberOutcome, Outcome, RouterOutcome, SourceSample,
};
use faircast_core::estimate::RoundTrip;
use faircast_core::node::Observation;
use faircast_core::packet::{Layer, ReceiverId, Report};
use faircast_core::time::{Rate, Span};
use faircast_unicast::{SenderView, Sink as _};

/// The outcomes of all flows, which are filled during the run.
#[derive(Debug, Default)]
pub struct Records {
    pub flows: Vec<FlowOutcome>,
    /// By unicast sender: lost packets in each interval between counted moments. A small table, because a loss must not touch the
    /// outcome of its flow.
    pub lost: Vec<u32>,
    /// Unordered events; `None` unless requested.
    pub events: Option<Vec<Event>>,
    /// With events: round-trip times to the members of each flow.
    pub round_trips: Vec<Vec<RoundTrip>>,
    /// Cause of the cut that a session's source may make now.
    cause: Option<CutCause>,
}

impl Records {
    /// Returns empty records, with or without events.
    pub fn new(flows: Vec<FlowOutcome>, lost: Vec<u32>, events: Events) -> Records {
        let is_on = events == Events::On;
        let round_trips = if is_on { vec![Vec::new(); flows.len()] } else { Vec::new() };
        Records { flows, lost, events: is_on.then(Vec::new), round_trips, cause: None }
    }

    fn at(&mut self, flow: u32) -> &mut FlowOutcome {
        &mut self.flows[flow as usize]
    }

    /// Records an event, if events are requested.
    pub fn note(&mut self, now: u64, what: Happening) {
        if let Some(events) = &mut self.events {
            events.push(Event { at: time(now), what });
        }
    }

    pub fn sample_session(&mut self, flow: u32, now: u64, view: Observation) {
        self.at(flow).samples.push(SourceSample::Session { at: time(now), view });
    }

    /// Counts a packet sent on a layer of a session of several layers.
    pub fn sent_on(&mut self, flow: u32, layer: Layer, size: u16) {
        let it = &mut self.at(flow).layers[usize::from(layer.0)];
        it.sent += 1;
        it.bytes += u64::from(size);
    }

    /// Records the rates of the layers. Called when the session is sampled.
    pub fn sample_layers(&mut self, flow: u32, source: &SessionSource) {
        for (layer, number) in self.at(flow).layers.iter_mut().zip(0..) {
            layer.rates.push(source.layer_rate(Layer(number)));
        }
    }

    pub fn sample_unicast(&mut self, flow: u32, now: u64, view: SenderView) {
        self.at(flow).samples.push(SourceSample::Unicast { at: time(now), view });
    }

    pub fn aggregated(&mut self, flow: u32) {
        self.at(flow).aggregated += 1;
    }

    pub fn feedback(&mut self, flow: u32) {
        self.at(flow).feedback += 1;
    }

    pub fn follows(&mut self, flow: u32, now: u64, receiver: Option<ReceiverId>) {
        let member = receiver.map(member_of);
        self.at(flow).representatives.push((time(now), member));
        self.note(now, Happening::Follows { flow: FlowId(flow), member });
    }

    /// Notes why a session's source may cut its rate now, if events are requested.
    pub fn expect_cut(&mut self, cause: impl FnOnce() -> CutCause) {
        if self.events.is_some() {
            self.cause = Some(cause());
        }
    }

    /// Records a round-trip time to the receiver of a report, if events are requested.
    pub fn round_trip(&mut self, flow: u32, report: &Report, sample: impl FnOnce() -> Option<Span>) {
        let Some(all) = self.round_trips.get_mut(flow as usize).filter(|_| report.layer == Layer(0)) else {
            return;
        };
        let (Some(sample), member) = (sample(), member_of(report.from) as usize) else { return };
        if all.len() <= member {
            all.resize(member + 1, RoundTrip::default());
        }
        all[member].add(sample, Some(&report.content));
    }

    /// Records a cut of a session, with its cause.
    pub fn cut_session(&mut self, flow: u32, now: u64, rate: Rate) {
        let cause = self.cause;
        self.cut(flow, now, rate, cause);
    }

    /// Records a cut.
    pub fn cut(&mut self, flow: u32, now: u64, rate: Rate, cause: Option<CutCause>) {
        self.at(flow).cuts.push(time(now));
        self.note(now, Happening::Cut { flow: FlowId(flow), rate, cause });
    }

    pub fn timeout(&mut self, flow: u32, now: u64) {
        self.at(flow).timeouts.push(time(now));
    }

    pub fn transfer(&mut self, flow: u32, began: u64, ended: u64, packets: u32) {
        self.at(flow).transfers.push((time(began), time(ended), packets));
        self.note(ended, Happening::Transferred { flow: FlowId(flow), packets, began: time(began) });
    }

    pub fn sent(&mut self, flow: u32, done: (usize, u64)) {
        put(&mut self.at(flow).sent_bins, done);
    }

    pub fn received(&mut self, flow: u32, done: (usize, u64)) {
        put(&mut self.at(flow).received_bins, done);
    }
}

/// Returns the member number of a receiver.
pub fn member_of(receiver: ReceiverId) -> u32 {
    (receiver.get() - 1) as u32
}

impl Island {
    /// Returns the outcome of the run, without events.
    ///
    /// # Errors
    /// When a role requested an action that the simulator cannot carry out for this role.
    pub(super) fn finish(&mut self, network: &Network) -> Result<Outcome, SimError> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        for link in 0..self.links.len() as u32 {
            self.sample_link(link, self.until);
            if self.links[link as usize].is_counted() {
                self.count_link(link, u64::MAX);
            }
        }
        let mut flows = std::mem::take(&mut self.records.flows);
        let (bin, moments) = (self.bin, std::mem::take(&mut self.moments));
        for session in &mut self.sessions {
            let into = &mut flows[session.flow as usize];
            if let Some(done) = session.sent_meter.finish(bin) {
                put(&mut into.sent_bins, done);
            }
            let sent = session.sent_counts();
            into.sent = sent.sent;
            into.counts[moments.left(session.sent_meter.end)].iter_mut().for_each(|it| it.add(&sent));
            into.tally = session.source.observe().tally;
            if let Some(tree) = &mut session.tree {
                let mut outcome = tree.finish();
                outcome.source = session.source.windows().unwrap_or_default();
                outcome.repairs += outcome.source.repairs;
                outcome.moves += outcome.source.moves;
                into.tree = Some(Box::new(outcome));
            }
            finish_session(session, into, bin, &moments);
        }
        let lost = self.records.lost.chunks(moments.0.len() + 1);
        for ((sender, sink), lost) in self.senders.iter_mut().zip(&mut self.sinks).zip(lost) {
            let into = &mut flows[sender.flow as usize];
            let mut sum = 0;
            for (counts, lost) in into.counts.iter_mut().zip(lost) {
                sum += u64::from(*lost);
                counts.lost += sum;
            }
            if let Some(done) = sender.sent_meter.finish(bin) {
                put(&mut into.sent_bins, done);
            }
            into.feedback = sender.feedback;
            into.sent = sender.sent;
            let (left, counts) = (moments.left(sender.sent_meter.end), sender.counts());
            into.counts[left].iter_mut().for_each(|it| it.add(&counts));
            let (left, counts) = (moments.left(sink.meter.end), sink.counts());
            into.counts[left].iter_mut().for_each(|it| it.add(&counts));
            finish_sink(sink, into, bin);
            into.members[0].counts = into.counts.clone();
        }
        if bin != u64::MAX {
            let bins = self.until.div_ceil(bin) as usize;
            let session = |flow: usize| matches!(network.flows[flow], Flow::Session(..));
            for (number, flow) in flows.iter_mut().enumerate() {
                flow.received_bins.resize(bins.max(flow.received_bins.len()), 0);
                flow.sent_bins.resize(bins.max(flow.sent_bins.len()), 0);
                if !session(number) {
                    flow.members[0].bins = flow.received_bins.clone();
                }
                for member in flow.members.iter_mut().filter(|member| !member.bins.is_empty()) {
                    member.bins.resize(bins.max(member.bins.len()), 0);
                }
            }
        }
        let mut digest = 0;
        for session in &self.sessions {
            digest = session.members.iter().fold(digest, |hash, member| mix(hash, member.digest, 1));
        }
        for (sender, sink) in self.senders.iter().zip(&self.sinks) {
            digest = mix(mix(digest, sender.digest, 2), sink.digest, 3);
        }
        let until = self.until;
        let links = (0..self.links.len() as u32).map(|number| {
            let probe = self.probes.remove(&number);
            let (samples, delays) =
                probe.map(|probe| (probe.samples, probe.delays.finish(until))).unwrap_or_default();
            let link = &self.links[number as usize].link;
            let departed_bytes = link.departed_bytes(time(until));
            LinkOutcome { counts: link.counts(), departed_bytes, samples, delays }
        });
        let links = links.collect();
        let routers = self.routers.iter().map(|it| RouterOutcome { node: NodeId(it.node), seen: it.seen() });
        let routers = routers.collect();
        let mut taps = std::mem::take(&mut self.taps);
        taps.retain(|tapped| tapped.at.as_nanos() <= until);
        taps.sort_by_key(|tapped| (tapped.at, tapped.link));
        let coordinations = self.coordination_outcomes();
        Ok(Outcome {
            coordinations,
            flows,
            links,
            link_moments: std::mem::take(&mut self.link_moments.tallies),
            routers,
            taps,
            round_trips: std::mem::take(&mut self.records.round_trips),
            log: Vec::new(),
            digest,
            traversals: self.traversals,
            arrivals: self.arrivals,
            events: self.events,
        })
    }
}

fn finish_session(session: &mut SessionAgent, into: &mut FlowOutcome, bin: u64, moments: &Moments) {
    into.members.reserve_exact(session.members.len());
    for member in &mut session.members {
        let counts = member.counts();
        into.counts[moments.left(member.meter.end)].iter_mut().for_each(|it| it.add(&counts));
        let done = member.meter.finish(bin);
        let mut bins = member.extra.as_mut().and_then(|extra| extra.bins.take());
        let mut kept = Vec::new();
        if let (Some(_), Some(extra)) = (&bins, &mut member.extra) {
            kept = std::mem::take(&mut extra.counts);
            kept.resize(moments.0.len() + 1, counts);
        }
        if let Some(done) = done {
            put(&mut into.received_bins, done);
            if let Some(bins) = &mut bins {
                put(bins, done);
            }
        }
        // A watched member that received no packets has an empty bin.
        let bins = bins.map_or(Vec::new(), |bins| if bins.is_empty() { vec![0] } else { bins });
        let mut outcome = MemberOutcome { counts: kept, ..member_outcome(member, bins) };
        if let Some(it) = member.extra.as_mut().and_then(|extra| extra.subscription.as_mut()) {
            outcome.subscriptions = std::mem::take(&mut it.changes);
        }
        into.members.push(outcome);
    }
}

fn member_outcome(member: &ReceiverAgent, bins: Vec<u64>) -> MemberOutcome {
    let timed = member.extra.as_ref().and_then(|extra| extra.delays.as_ref());
    MemberOutcome {
        packets: u64::from(member.packets),
        bytes: member.bytes,
        lost: member.lost(),
        delivered: u64::from(member.packets),
        reports: u64::from(member.reports),
        acknowledgements: u64::from(member.acknowledgements),
        suppressed: u64::from(member.suppressed()),
        subscriptions: Vec::new(),
        bins,
        counts: Vec::new(),
        excluded: member.extra.as_ref().and_then(|extra| extra.excluded).map(time),
        delay: timed.map_or(DelayOutcome::default(), |delays| delays.outcome),
        delays: timed.map_or(Vec::new(), |delays| vec![delays.counts.clone()]),
    }
}

fn finish_sink(sink: &mut SinkAgent, into: &mut FlowOutcome, bin: u64) {
    let lost = into.counts.last().map_or(0, |counts| counts.lost);
    if let Some(done) = sink.meter.finish(bin) {
        put(&mut into.received_bins, done);
    }
    into.members.push(MemberOutcome {
        packets: sink.packets,
        bytes: sink.bytes,
        lost,
        delivered: sink.delivered(),
        reports: sink.reports,
        delays: sink.delays.take().map_or(Vec::new(), Vec::from),
        ..MemberOutcome::default()
    });
}

impl SinkAgent {
    /// Returns the number of packets delivered to the application.
    pub fn delivered(&self) -> u64 {
        self.sink.as_ref().map_or(self.packets, |sink| self.delivered_before + sink.delivered())
    }
}
