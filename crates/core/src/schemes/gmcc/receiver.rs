//! GMCC's receiver: measures its congestion in each layer, compares it with the representative's congestion, and joins and leaves
//! layers accordingly.

use super::config::{Assumed, Config, Joins, LeaveNotice};
use super::settings::Settings;
use super::subscribed_layer::{DEFAULT_RTT, StatisticsChange, SubscribedLayer};
use super::taf::{AddedSamples, Taf};
use crate::node::{Cx, Effect};
use crate::packet::{
    Arrival, Cause, Data, Echo, Flags, Layer, LayerState, LayerStates, Mark, ReceiverId, Report,
    ReportContent, Seq,
};
use crate::time::{Span, Time};

/// A receiver of a GMCC session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    /// Time of the next action.
    wake_at: Time,
    last_arrival: Time,
    /// Time of the latest loss in any layer.
    lost_at: Time,
    /// Time of the next check whether another layer can be joined.
    look_at: Time,
    /// Rate of the layer above the highest joined one, in bit/s.
    above: f32,
    /// The states of all layers, from the newest packet.
    states: LayerStates,
    /// The joined layers, the base layer first.
    joined: Vec<SubscribedLayer>,
    knocking: Option<PendingJoin>,
    /// For each layer: the time from which it may be joined again, and the number of short stays in it.
    barred: Box<[JoinBackoff]>,
    /// Number of consecutive checks with a result in favour of a leave.
    leaning: u8,
    settings: Settings,
    counts: Counts,
}

/// Counters of subscription changes, reports and suppressed reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of joins because this receiver's own losses were less severe than the representative's losses (paper 000, 4.1.4.1).
    pub joins_at_own: u32,
    /// Number of joins because of losses that only the representative had (paper 000, 4.1.4.2).
    pub joins_at_others: u32,
    /// Number of joins because shifted bandwidth caused no harm (paper 000, 4.1.4.3).
    pub joins_at_shifts: u32,
    /// Number of joins because a start-up without losses, or losses of the representative alone, indicated available bandwidth.
    pub joins_at_room: u32,
    /// Number of cancelled decisions to join (paper 000, 4.1.4.4).
    pub vetoes: u32,
    /// Number of times that a layer was left.
    pub leaves: u32,
    /// Number of sent reports of losses.
    pub losses: u32,
    /// Number of sent heartbeats.
    pub heartbeats: u32,
    /// Number of sent requests for layers.
    pub requests: u32,
    /// Number of losses that were not reported.
    pub suppressed: u32,
}

/// A joined layer from which no packet has arrived yet.
#[derive(Debug, Clone, Copy)]
struct PendingJoin {
    layer: Layer,
    since: Time,
    tries: u8,
    next_at: Time,
}

/// The result of earlier attempts to join a layer.
#[derive(Debug, Clone, Copy, Default)]
struct JoinBackoff {
    until: Time,
    joined_at: Time,
    visits: u8,
}

/// The reason for joining a layer.
#[derive(Debug, Clone, Copy)]
enum Situation {
    OwnLosses,
    OthersLosses,
    Shifts,
    Room,
}

const _: () = assert!(size_of::<Receiver>() <= 400);

/// With early joins: number of samples that a receiver needs to replace the representative.
const SOON: u8 = super::layer::SOON as u8;
/// A layer is left if its share of the total rate is below this fraction.
const LITTLE: f64 = 0.1;
/// Duration of the source's silence after which nothing is sent to the source.
const STALE_AFTER: Span = Span::from_secs(10);
/// Number of requests for a layer that is off, and the minimum duration before the receiver gives up the layer.
const TRIES: u8 = 20;
const PATIENCE: Span = Span::from_secs(2);
/// Maximum number of doublings of the minimum time for which a layer is barred.
const MAX: u8 = 6;
/// Number of round-trip times without a join after a requested layer sent no packets.
const HOLD_OFF: u64 = 64;

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        let settings = Settings::new(config);
        Receiver {
            me,
            wake_at: Time::NEVER,
            last_arrival: Time::ZERO,
            lost_at: Time::ZERO,
            look_at: Time::ZERO,
            above: 0.0,
            states: LayerStates::default(),
            joined: vec![SubscribedLayer::new(&settings, Time::ZERO)],
            knocking: None,
            barred: vec![JoinBackoff::default(); usize::from(settings.layers)].into(),
            leaning: 0,
            settings,
            counts: Counts::default(),
        }
    }

    /// Returns the counters.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the highest joined layer.
    pub fn subscription(&self) -> Layer {
        Layer(self.top() as u8)
    }

    /// Returns the mean, standard deviation and number of the latest attenuation factors in `layer`, in 1/s; `None` for a layer
    /// that is not joined.
    pub fn attenuation(&self, layer: Layer) -> Option<(f64, f64, u8)> {
        let taf = &self.joined.get(usize::from(layer.0))?.taf;
        let (mean, deviation) = taf.moments();
        Some((mean, deviation, taf.len()))
    }

    /// Returns whether the newest packet of `layer` named this receiver as the layer's representative.
    pub fn is_representative(&self, layer: Layer) -> bool {
        self.joined.get(usize::from(layer.0)).and_then(SubscribedLayer::representative) == Some(self.me)
    }

    fn top(&self) -> usize {
        self.joined.len() - 1
    }

    /// Returns the interval between heartbeats of a representative.
    fn beat(&self, joined: &SubscribedLayer) -> Span {
        joined.rtt().max(self.settings.beat)
    }

    /// Returns whether this receiver may report in a layer (paper 000, 4.1.2 and 4.1.3).
    // Paper gap: 4.1.2 compares statistics of N samples only. A representative may have no samples, because it requested the
    // layer or was the only receiver to answer. It is replaced by any receiver with samples; otherwise nothing would slow the
    // layer down until a receiver has N samples.
    fn may_report(&self, joined: &SubscribedLayer, cause: Cause) -> bool {
        let taf = &joined.taf;
        if self.is_early() && cause != Cause::Heartbeat && !std::ptr::eq(joined, &self.joined[self.top()]) {
            return false;
        }
        let enough = |taf: &Taf| taf.is_settled() || (self.is_early() && taf.len() >= SOON);
        match (joined.representative(), joined.followed()) {
            (Some(id), _) if id == self.me => true,
            (None, _) => cause != Cause::Heartbeat || joined.is_orphaned(&self.settings),
            (Some(_), _) if cause == Cause::Heartbeat => false,
            (Some(_), Some(followed)) if followed.mean > 0.0 => {
                enough(taf) && taf.estimate().replaces(followed)
            }
            (Some(_), Some(_)) => taf.len() > 0 && taf.estimate().mean > 0.0,
            (Some(_), None) => false,
        }
    }

    /// Returns the delay of a report if this receiver is not the representative. A more congested receiver reports sooner (paper
    /// 000, 4.1.3).
    // Paper gap: 4.1.3 only states "the larger the TAF, the sooner". Here ORMCC's distribution over two round-trip times is used,
    // shortened by the share of the last representative's factor in the sum of both factors.
    fn delay(&self, joined: &SubscribedLayer, cx: &mut Cx<'_>) -> Span {
        let own = joined.taf.moments().0;
        let part = joined.reference.filter(|reference| *reference > 0.0).map_or(1.0, |r| r / (r + own));
        self.settings.law.delay(joined.rtt() * 2, cx.rng).scaled(part)
    }

    fn send(&self, index: usize, content: ReportContent, cx: &mut Cx<'_>) {
        cx.effects.push(Effect::Report(Report { from: self.me, layer: Layer(index as u8), content }));
    }

    fn say(&mut self, index: usize, cause: Cause, echo: Echo, cx: &mut Cx<'_>) {
        match cause {
            Cause::Heartbeat => self.counts.heartbeats += 1,
            Cause::Joining => self.counts.requests += 1,
            Cause::Leaving => {}
            Cause::Loss | Cause::Mark | Cause::Accumulation => self.counts.losses += 1,
        }
        let (settings, me, highest) = (self.settings, self.me, self.top());
        let joined = &mut self.joined[index];
        if cause != Cause::Joining {
            joined.reported_at = Some(cx.now);
        }
        if joined.representative() == Some(me) {
            joined.beat_at = cx.now + joined.rtt().max(settings.beat);
        }
        let (mean, deviation, samples) = match settings.joins {
            Joins::Compared => (joined.taf.moments().0, joined.taf.moments().1, joined.taf.len()),
            // In layers below the highest one, a receiver only reports that it is present.
            Joins::Early if index < highest => (0.0, 0.0, 0),
            Joins::Early => {
                let (mean, deviation) = joined.taf.moments_now(cx.now);
                (mean, deviation, joined.taf.len())
            }
        };
        let rate = joined.arrival_rate(&settings, cx.now).bps();
        let content = ReportContent::Averaged {
            echo,
            mean: mean as f32,
            deviation: deviation as f32,
            samples: samples.into(),
            rate: rate as f32,
            cause,
        };
        self.send(index, content, cx);
    }

    /// Handles a congestion epoch that a packet of a layer revealed.
    #[inline(never)]
    fn on_congestion(&mut self, index: usize, seq: Seq, cause: Cause, cx: &mut Cx<'_>) {
        let settings = self.settings;
        let added = self.joined[index].on_epoch(&settings, cx.now);
        self.lost_at = cx.now;
        let joined = &self.joined[index];
        if !self.may_report(joined, cause) || self.speaks_too_often(joined, cx.now) {
            self.counts.suppressed += 1;
        } else if joined.representative() == Some(self.me) {
            self.joined[index].pending = None;
            self.say(index, cause, Echo { seq, hold: Span::ZERO }, cx);
        } else {
            let delay = self.delay(joined, cx);
            self.joined[index].plan(seq, cause, delay, cx.now);
        }
        if added != AddedSamples::default() || self.is_early() {
            self.decide(index, added, cx);
        }
    }

    /// Handles a congestion epoch if early joins are enabled. A loss on any layer counts as a loss on the highest layer, because
    /// the total rate is too high only with that layer. Losses within a round-trip time are one epoch.
    fn on_early_congestion(&mut self, index: usize, seq: Seq, cause: Cause, cx: &mut Cx<'_>) {
        let top = self.top();
        let again = cx.now.since(self.lost_at) < self.joined[top].rtt();
        if again && self.joined[top].taf.has_lost() {
            return;
        }
        let seq = if index == top { seq } else { self.joined[top].echo(cx.now).seq };
        self.on_congestion(top, seq, cause, cx);
    }

    fn speaks_too_often(&self, joined: &SubscribedLayer, now: Time) -> bool {
        let (Some(limit), Some(last)) = (self.settings.reports_per_rtt, joined.reported_at) else {
            return false;
        };
        now.since(last) < joined.rtt() / u64::from(limit.max(1))
    }

    /// Decides on a leave or a join after new samples in a layer.
    fn decide(&mut self, index: usize, added: AddedSamples, cx: &mut Cx<'_>) {
        if self.is_early() {
            let squeezed = self.is_squeezed(index);
            self.leaning = if squeezed { self.leaning.saturating_add(1) } else { 0 };
            if self.leaning >= self.settings.checks {
                self.bar(cx.now);
                return self.leave(cx);
            }
        } else if added.factor {
            self.leaning = if self.limits_too_much(cx.now) { self.leaning.saturating_add(1) } else { 0 };
            if self.leaning >= self.settings.checks {
                self.bar(cx.now);
                return self.leave(cx);
            }
        }
        if index != self.top() {
            return;
        }
        if added.factor && self.is_ahead_at_own_loss(index) {
            self.joined[index].at_own = 0;
            self.join(Situation::OwnLosses, cx);
        } else if added.shifted && self.is_unhurt_by_shifts(index) {
            self.join(Situation::Shifts, cx);
        }
    }

    /// Compares the statistics after a loss of this receiver. Returns whether the required number of consecutive comparisons are
    /// in favour of a join (paper 000, 4.1.4.1).
    fn is_ahead_at_own_loss(&mut self, index: usize) -> bool {
        let rules = self.settings.rules;
        let settled = self.standing(index) == LayerState::Settled;
        let joined = &mut self.joined[index];
        let Some(followed) = joined.followed() else { return false };
        if !settled || joined.gate < rules.samples {
            return false;
        }
        let ahead = joined.taf.estimate().is_well_below(followed);
        joined.at_own = if ahead { joined.at_own.saturating_add(1) } else { 0 };
        joined.at_own >= rules.comparisons
    }

    /// Compares this receiver's statistics with those of the highest layer's representative, after a loss of the representative.
    /// The comparison assumes that this receiver has also lost a packet (paper 000, 4.1.4.2).
    // Paper gap: 4.1.4.2 does not state the number of samples for a comparison, and a receiver with few losses has few samples.
    // Here the representative must have N samples, and the receiver may have any number.
    fn is_ahead_at_others_loss(&mut self, index: usize, now: Time) -> bool {
        let (rules, assumed, me) = (self.settings.rules, self.settings.assumed, self.me);
        let settled = self.standing(index) == LayerState::Settled;
        let joined = &mut self.joined[index];
        let quiet = joined.quiet_updates();
        let Some(followed) = joined.followed().filter(|_| joined.representative() != Some(me)) else {
            return false;
        };
        if quiet == 0 || !settled {
            return false;
        }
        let copies = match assumed {
            Assumed::Once => 1,
            Assumed::Each => quiet,
        };
        let ahead = joined.taf.assumed(copies, now).is_well_below(followed);
        joined.at_others = if ahead { joined.at_others.saturating_add(1) } else { 0 };
        joined.at_others >= rules.comparisons
    }

    /// Returns whether bandwidth shifted to the highest layer causes no harm. If so, the next higher layer shares the bottleneck
    /// of the highest layer (paper 000, 4.1.4.3).
    fn is_unhurt_by_shifts(&self, index: usize) -> bool {
        let taf = &self.joined[index].taf;
        let above =
            (index + 1..usize::from(self.settings.layers)).any(|l| self.standing(l) != LayerState::Off);
        let enough = taf.steady.is_full() && taf.shifted.is_full();
        above && enough && taf.shifted.estimate().is_like(taf.steady.estimate())
    }

    /// Joins the next layer if the evidence of the highest layer shows enough available bandwidth.
    #[inline(never)]
    fn look_for_room(&mut self, cx: &mut Cx<'_>) {
        let joined = &self.joined[self.top()];
        self.look_at = cx.now + joined.rtt() / 2;
        let total = self.joined.iter().filter_map(SubscribedLayer::rate).map(f64::from).sum();
        let (lost_at, above) = (self.lost_at, f64::from(self.above));
        if self.settings.joins == Joins::Early && joined.has_room(lost_at, total, above, cx.now) {
            self.join(Situation::Room, cx);
        }
    }

    fn standing(&self, index: usize) -> LayerState {
        self.states.of(Layer(index as u8))
    }

    /// Returns whether a join would be spurious (paper 000, 4.1.4.4).
    fn is_join_vetoed(&self, now: Time) -> bool {
        if self.is_early() {
            return self.standing(self.top()) == LayerState::Open
                || self.limits(&self.joined[self.top()], now);
        }
        let unsettled = (0..LayerStates::LAYERS).any(|l| self.states.of(Layer(l)) == LayerState::Open);
        unsettled || self.joined.iter().any(|joined| self.limits(joined, now))
    }

    /// Returns whether this receiver is a layer's representative or may become its representative. A receiver that joins early
    /// has few samples, possibly all from the layer's start-up. Therefore the time since its latest loss is taken into account.
    fn limits(&self, joined: &SubscribedLayer, now: Time) -> bool {
        let taf = &joined.taf;
        let own = || if self.is_early() { taf.estimate_now(now) } else { taf.estimate() };
        let may = |followed| taf.len() > 0 && own().may_replace(followed);
        joined.representative() == Some(self.me) || joined.followed().is_some_and(may)
    }

    /// Returns whether losses continue although the rate of the highest layer, which this receiver limits, is almost zero.
    fn is_squeezed(&self, top: usize) -> bool {
        let joined = &self.joined[top];
        let total: f64 = self.joined.iter().filter_map(SubscribedLayer::rate).map(f64::from).sum();
        let rate = joined.rate().map_or(0.0, f64::from);
        top > 0 && joined.representative() == Some(self.me) && rate < LITTLE * total
    }

    fn is_early(&self) -> bool {
        self.settings.joins == Joins::Early
    }

    /// Returns whether this receiver limits more than one layer. Returns false until each layer has enough samples since the
    /// latest join or leave (paper 000, 4.1.5).
    fn limits_too_much(&self, now: Time) -> bool {
        let settled = self.joined.iter().all(|joined| joined.gate >= self.settings.rules.samples);
        settled && self.joined.iter().filter(|joined| self.limits(joined, now)).count() > 1
    }

    /// Joins the next layer, unless the join would be spurious.
    fn join(&mut self, situation: Situation, cx: &mut Cx<'_>) {
        let next = self.joined.len();
        if next >= usize::from(self.settings.layers) || cx.now < self.barred[next].until {
            return;
        }
        if self.is_join_vetoed(cx.now) {
            self.counts.vetoes += 1;
            return;
        }
        match situation {
            Situation::OwnLosses => self.counts.joins_at_own += 1,
            Situation::OthersLosses => self.counts.joins_at_others += 1,
            Situation::Shifts => self.counts.joins_at_shifts += 1,
            Situation::Room => self.counts.joins_at_room += 1,
        }
        self.barred[next].joined_at = cx.now;
        self.leaning = 0;
        self.joined.push(SubscribedLayer::new(&self.settings, cx.now));
        self.above = 0.0;
        self.joined.iter_mut().for_each(SubscribedLayer::reopen_gate);
        cx.effects.push(Effect::Subscribe(Layer(next as u8)));
        self.knock_at(Layer(next as u8), cx);
    }

    /// Bars the receiver from rejoining the highest layer for some time after an overload. The time doubles with each consecutive
    /// short stay.
    fn bar(&mut self, now: Time) {
        let top = self.top();
        let barred = &mut self.barred[top];
        let span = |visits: u8| self.settings.rejoin * (1 << visits.min(MAX));
        let short = now.since(barred.joined_at) < span(barred.visits) * 2;
        barred.visits = if short { barred.visits.saturating_add(1) } else { 0 };
        barred.until = now + span(barred.visits);
    }

    /// Leaves the highest layer.
    fn leave(&mut self, cx: &mut Cx<'_>) {
        let top = self.top();
        if top == 0 {
            return;
        }
        if self.settings.farewell == LeaveNotice::Reported && self.is_representative(Layer(top as u8)) {
            self.say(top, Cause::Leaving, self.joined[top].echo(cx.now), cx);
        }
        self.leaning = 0;
        self.joined.pop();
        self.joined.iter_mut().for_each(SubscribedLayer::reopen_gate);
        self.knocking = self.knocking.filter(|knocking| usize::from(knocking.layer.0) < top);
        self.counts.leaves += 1;
        cx.effects.push(Effect::Subscribe(Layer(top as u8 - 1)));
    }

    /// Starts requesting a layer that sends no packets.
    fn knock_at(&mut self, layer: Layer, cx: &mut Cx<'_>) {
        self.knocking = Some(PendingJoin { layer, since: cx.now, tries: 0, next_at: cx.now });
        self.knock(cx);
    }

    /// Requests the layer if the layer is off; leaves the layer after too many requests (paper 000, 4.1.3).
    // Paper gap: 4.1.3 lets the first receiver of a layer send reports until the layer is on, without a limit. Here it sends
    // twenty reports, one per round-trip time, for at least two seconds. Then it leaves the layer, and joins no other layer for
    // 64 round-trip times.
    fn knock(&mut self, cx: &mut Cx<'_>) {
        let Some(mut knocking) = self.knocking.filter(|knocking| knocking.next_at <= cx.now) else { return };
        let index = usize::from(knocking.layer.0);
        let beat = self.beat(&self.joined[0]);
        if knocking.tries >= TRIES && cx.now.since(knocking.since) >= PATIENCE {
            self.knocking = None;
            self.barred[self.top()].until = cx.now + beat * HOLD_OFF;
            return self.leave(cx);
        }
        let unanswered = matches!(self.standing(index), LayerState::Off | LayerState::Open);
        if knocking.tries < TRIES && unanswered {
            self.say(index, Cause::Joining, Echo { seq: Seq(0), hold: Span::MAX }, cx);
        }
        knocking.tries = knocking.tries.saturating_add(1);
        knocking.next_at = cx.now + beat;
        self.knocking = Some(knocking);
    }

    /// Starts requesting a joined layer that was switched off.
    fn watch_standings(&mut self, cx: &mut Cx<'_>) {
        if self.knocking.is_some() {
            return;
        }
        if let Some(off) = (1..self.joined.len()).find(|index| self.standing(*index) == LayerState::Off) {
            self.knock_at(Layer(off as u8), cx);
        }
    }

    /// Applies the newest header of a layer to this receiver's pending reports.
    #[inline]
    fn reconsider(&mut self, index: usize, newest: Seq, cx: &mut Cx<'_>) {
        let joined = &self.joined[index];
        if let Some(pending) = joined.pending {
            if !self.may_report(joined, pending.cause) {
                self.joined[index].pending = None;
                self.counts.suppressed += 1;
            }
        } else if joined.is_orphaned(&self.settings) {
            let delay = self.delay(joined, cx);
            self.joined[index].plan(newest, Cause::Heartbeat, delay, cx.now);
        }
        let joined = &self.joined[index];
        if joined.representative() != Some(self.me) {
            self.joined[index].beat_at = Time::NEVER;
        } else if joined.beat_at.is_never() {
            let beat = self.beat(joined);
            let first = joined.reported_at.map_or(cx.now, |last| (last + beat).max(cx.now));
            self.joined[index].beat_at = first;
        }
    }

    /// Acknowledges the newest packet, as PGMCC requires of a representative.
    fn acknowledge(&self, index: usize, cx: &mut Cx<'_>) {
        let joined = &self.joined[index];
        if self.settings.acknowledges && joined.representative() == Some(self.me) {
            self.send(index, joined.arrived.acknowledgement(joined.echo(cx.now).hold), cx);
        }
    }

    fn schedule(&mut self) {
        let layers = self.joined.iter().map(SubscribedLayer::deadline).min().unwrap_or(Time::NEVER);
        let knock = self.knocking.map_or(Time::NEVER, |knocking| knocking.next_at);
        self.wake_at = layers.min(knock);
    }

    fn open(&mut self, index: usize, data: &Data, arrival: Arrival, cx: &mut Cx<'_>) {
        let joined = &mut self.joined[index];
        if data.flags.has(Flags::STARTING) || joined.start_up.is_active() {
            let rtt = joined.rtt();
            joined.start_up.on_data(data, arrival, rtt, self.settings.law, cx);
            joined.climb.note(data, joined.start_up.whole_round(cx.now), cx.now);
        }
    }

    /// Performs the actions that are due in a layer.
    fn run_layer(&mut self, index: usize, cx: &mut Cx<'_>) {
        let stale = cx.now.since(self.last_arrival) > STALE_AFTER;
        let joined = &mut self.joined[index];
        if let Some(due) = joined.pending.take_if(|pending| pending.at <= cx.now) {
            if stale || !self.may_report(&self.joined[index], due.cause) {
                self.counts.suppressed += 1;
            } else {
                self.say(index, due.cause, due.echo(cx.now), cx);
            }
        }
        let joined = &mut self.joined[index];
        if joined.beat_at <= cx.now {
            joined.beat_at = Time::NEVER;
            if !stale {
                let echo = joined.echo(cx.now);
                self.say(index, Cause::Heartbeat, echo, cx);
            }
        }
        if let Some(content) = self.joined[index].start_up.take_due(cx.now)
            && !stale
        {
            self.send(index, content, cx);
        }
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if self.wake_at <= cx.now {
            crate::node::Receiver::on_deadline(self, cx);
        }
        let index = usize::from(layer.0);
        if index >= self.joined.len() {
            return;
        }
        if self.settings.acknowledges {
            self.joined[index].arrived.note(data.seq);
        }
        if arrival.late {
            return self.acknowledge(index, cx);
        }
        self.last_arrival = cx.now;
        if let Mark::Layered { states, above, .. } = data.mark {
            self.states = states;
            if index == self.top() {
                self.above = above.get();
            }
        }
        if self.knocking.is_some_and(|knocking| knocking.layer == layer) {
            self.knocking = None;
        }
        let (settings, joined) = (self.settings, &mut self.joined[index]);
        let news = joined.read(data, cx.now);
        self.open(index, data, arrival, cx);
        self.joined[index].count(arrival, settings.window, cx.now);
        let cause = match arrival {
            Arrival { lost: 1.., .. } => Some(Cause::Loss),
            Arrival { marked: true, .. } if !self.has_just_lost(index, cx.now) => Some(Cause::Mark),
            _ => None,
        };
        match cause {
            Some(cause) if self.is_early() => self.on_early_congestion(index, data.seq, cause, cx),
            Some(cause) => self.on_congestion(index, data.seq, cause, cx),
            None => {}
        }
        // A decision may have changed the set of joined layers.
        if let Some(joined) = self.joined.get_mut(index) {
            joined.note(data, arrival, cx.now);
            self.acknowledge(index, cx);
            self.reconsider(index, data.seq, cx);
            let ahead = news == StatisticsChange::Updated && self.is_ahead_at_others_loss(index, cx.now);
            if ahead && index == self.top() {
                self.joined[index].at_others = 0;
                self.join(Situation::OthersLosses, cx);
            } else if cx.now >= self.look_at && index == self.top() {
                self.look_for_room(cx);
            }
        }
        self.watch_standings(cx);
        self.schedule();
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.wake_at
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now < self.wake_at {
            return;
        }
        (0..self.joined.len()).for_each(|index| self.run_layer(index, cx));
        if cx.now.since(self.last_arrival) > STALE_AFTER {
            self.knocking = None;
        }
        self.knock(cx);
        self.schedule();
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        self.knocking = None;
        for index in (0..self.joined.len()).rev() {
            let joined = &mut self.joined[index];
            joined.pending = None;
            joined.start_up.cancel();
            joined.beat_at = Time::NEVER;
            let echo = joined.echo(cx.now);
            if self.settings.farewell == LeaveNotice::Reported && self.is_representative(Layer(index as u8)) {
                self.say(index, Cause::Leaving, echo, cx);
                self.joined[index].beat_at = Time::NEVER;
            }
        }
        self.wake_at = Time::NEVER;
    }

    fn suppressed(&self) -> u32 {
        self.counts.suppressed
    }
}

impl Receiver {
    /// Returns whether there was an epoch within the latest round-trip time. Congestion marks in this time belong to that epoch.
    fn has_just_lost(&self, index: usize, now: Time) -> bool {
        let joined = &self.joined[index];
        now.since(joined.taf.latest()) < joined.newest.map_or(DEFAULT_RTT, |received| received.rtt)
    }
}
