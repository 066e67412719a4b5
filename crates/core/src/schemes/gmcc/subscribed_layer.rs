//! A receiver's state of one joined layer.

use super::acks::Arrived;
use super::conditions::Estimate;
use super::config::Output;
use super::early_join::{JoinEvidence, ObservedLayer};
use super::settings::Settings;
use super::taf::{AddedSamples, Taf};
use crate::estimate::Throughput;
use crate::packet::{Arrival, Cause, Data, Echo, Mark, ReceiverId, Seq, Signal};
use crate::rate::StartUpReceiver;
use crate::time::{Rate, Span, Time};

/// A layer that the receiver is subscribed to.
#[derive(Debug, Clone)]
pub(super) struct SubscribedLayer {
    pub(super) taf: Taf,
    /// The newest packet's header; `None` before the first packet.
    pub(super) newest: Option<NewestHeader>,
    /// Mean attenuation factor of the latest representative with valid statistics.
    pub(super) reference: Option<f64>,
    arrivals: Throughput,
    /// Received packets, for the acknowledgements of a representative.
    pub(super) arrived: Arrived,
    /// Arrival time of the packet before the newest one.
    before_at: Option<Time>,
    joined_at: Time,
    /// Number of samples since a layer was joined or left, "gate".
    pub(super) gate: u8,
    /// Numbers of consecutive comparisons in favour of a join: at losses of this receiver, and at losses of the representative.
    pub(super) at_own: u8,
    pub(super) at_others: u8,
    /// Number of updates of the representative's statistics since the latest loss at this receiver.
    quiet: u8,
    /// Whether this receiver lost a packet since the latest update of the representative's statistics.
    lost_since_update: bool,
    pub(super) pending: Option<Pending>,
    /// Time of the next heartbeat, if this receiver is the representative.
    pub(super) beat_at: Time,
    pub(super) reported_at: Option<Time>,
    pub(super) start_up: StartUpReceiver,
    pub(super) climb: JoinEvidence,
}

/// The newest packet of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewestHeader {
    seq: Seq,
    at: Time,
    size: u16,
    signal: Signal,
    rate: f32,
    pub(super) representative: Option<ReceiverId>,
    /// Statistics of the representative; `None` if they are missing or invalid.
    pub(super) followed: Option<Estimate>,
    pub(super) rtt: Span,
    stated_rtt: f32,
    stated_mean: f32,
    pub(super) updates: u8,
}

/// A delayed report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) at: Time,
    event_at: Time,
    seq: Seq,
    pub(super) cause: Cause,
}

/// Whether the representative's statistics differ from those of the previous packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatisticsChange {
    Same,
    Updated,
}

/// The round-trip time before a header states one.
pub(super) const DEFAULT_RTT: Span = Span::from_millis(100);
/// Round-trip times that a header can carry.
const RTT_RANGE: (Span, Span) = (Span::from_micros(100), Span::from_secs(10));

impl SubscribedLayer {
    pub(super) fn new(settings: &Settings, now: Time) -> SubscribedLayer {
        SubscribedLayer {
            taf: Taf::new(&settings.rules, now),
            newest: None,
            reference: None,
            arrivals: Throughput::new(),
            arrived: Arrived::default(),
            before_at: None,
            joined_at: now,
            gate: 0,
            at_own: 0,
            at_others: 0,
            quiet: 0,
            lost_since_update: false,
            pending: None,
            beat_at: Time::NEVER,
            reported_at: None,
            start_up: StartUpReceiver::default(),
            climb: JoinEvidence::new(now),
        }
    }

    pub(super) fn rtt(&self) -> Span {
        self.newest.map_or(DEFAULT_RTT, |newest| newest.rtt)
    }

    /// Returns the representative of the layer.
    pub(super) fn representative(&self) -> Option<ReceiverId> {
        self.newest.and_then(|newest| newest.representative)
    }

    /// Returns the representative's statistics, if available.
    pub(super) fn followed(&self) -> Option<Estimate> {
        self.newest.and_then(|newest| newest.followed)
    }

    /// Returns whether the layer needs a representative but has none. It needs one if it had one before, or if packets must be
    /// acknowledged. In this state all receivers are requested to report.
    pub(super) fn is_orphaned(&self, settings: &Settings) -> bool {
        let wanted = |newest: &NewestHeader| newest.updates != 0 || settings.acknowledges;
        self.newest.is_some_and(|newest| newest.representative.is_none() && wanted(&newest))
    }

    /// Copies the layer's state from the header of a packet that is not late.
    #[inline]
    pub(super) fn read(&mut self, data: &Data, now: Time) -> StatisticsChange {
        let Mark::Layered { id, mean, error, rtt, updates, .. } = data.mark else {
            return StatisticsChange::Same;
        };
        let id = id.map(ReceiverId::from);
        let Some(newest) = &mut self.newest else {
            (self.joined_at, self.before_at) = (now, None);
            self.climb = JoinEvidence::new(now);
            self.taf.joined(now);
            let mut newest = NewestHeader::first();
            (newest.representative, newest.updates) = (id, updates);
            newest.follow(id, mean, error, rtt);
            self.reference = newest.followed.map(|followed| followed.mean).or(self.reference);
            self.newest = Some(newest);
            return StatisticsChange::Same;
        };
        let news = if newest.updates == updates { StatisticsChange::Same } else { StatisticsChange::Updated };
        newest.updates = updates;
        if news == StatisticsChange::Updated || newest.representative != id || newest.stated_mean != mean {
            newest.representative = id;
            newest.follow(id, mean, error, rtt);
            self.reference = newest.followed.map(|followed| followed.mean).or(self.reference);
        } else if rtt != newest.stated_rtt {
            newest.time(rtt);
        }
        news
    }

    /// Records a packet that is not late, after it has been processed.
    #[inline]
    pub(super) fn note(&mut self, data: &Data, arrival: Arrival, now: Time) {
        let Some(newest) = &mut self.newest else { return };
        self.before_at = (newest.size > 0).then_some(newest.at);
        (newest.seq, newest.at, newest.size) = (data.seq, now, arrival.size);
        (newest.signal, newest.rate) = (data.signal, data.rate);
    }

    /// Counts an arrival.
    #[inline]
    pub(super) fn count(&mut self, arrival: Arrival, window: Span, now: Time) {
        self.arrivals.record(now, arrival.size);
        if self.arrivals.covered() < window {
            self.arrivals.reach(now.since(self.joined_at).max(DEFAULT_RTT).min(window));
        }
    }

    /// Returns the rate at which packets of the layer arrive; zero while too few have arrived.
    pub(super) fn arrival_rate(&self, settings: &Settings, now: Time) -> Rate {
        let Some(four) = self.arrivals.latest_four(now) else { return Rate::ZERO };
        let window = now.since(self.joined_at).max(four).min(settings.window.max(four));
        let rate = self.arrivals.rate(now, window.min(self.arrivals.covered().max(four)));
        if rate.is_usable() { rate } else { Rate::ZERO }
    }

    /// Returns the individual factor of a loss that is detected now. The factor is measured on the packet before the loss (paper
    /// 000, 4.1.1.1).
    fn individual_factor(&self, settings: &Settings, now: Time) -> Option<f64> {
        let newest = self.newest?;
        let input = f64::from(newest.rate);
        let output = match settings.output {
            Output::Pair => {
                let gap = newest.at.since(self.before_at?).max(MIN_GAP);
                Rate::of(u64::from(newest.size), gap)
            }
            Output::Window => self.arrival_rate(settings, now),
        };
        let usable = input.is_finite() && input > 0.0 && output.is_usable();
        usable.then(|| (1.0 - output.bps() / input).clamp(0.0, 1.0))
    }

    /// Handles a congestion epoch (paper 000, 4.1.1).
    pub(super) fn on_epoch(&mut self, settings: &Settings, now: Time) -> AddedSamples {
        let itaf = self.individual_factor(settings, now);
        let signal = self.newest.map_or(Signal::None, |newest| newest.signal);
        let added = self.taf.on_epoch(itaf, signal, now);
        (self.quiet, self.lost_since_update) = (0, true);
        self.climb.on_loss();
        if added.factor {
            self.gate = self.gate.saturating_add(1);
        }
        added
    }

    /// Handles a change of the representative's statistics. Returns the number of such changes since the latest loss at this
    /// receiver; zero if a packet was lost since the previous change.
    pub(super) fn quiet_updates(&mut self) -> u8 {
        self.quiet = self.quiet.saturating_add(1);
        if std::mem::take(&mut self.lost_since_update) {
            self.quiet = 0;
        }
        self.quiet
    }

    /// Returns the rate stated by the newest packet, in bit/s.
    pub(super) fn rate(&self) -> Option<f32> {
        self.newest.filter(|newest| newest.size > 0).map(|newest| newest.rate)
    }

    /// Returns whether the evidence of this layer is enough to join the next higher layer ([`JoinEvidence::has_room`]). This
    /// layer must be the highest joined one.
    pub(super) fn has_room(&self, lost_at: Time, total: f64, above: f64, now: Time) -> bool {
        let packet_bits = self.newest.map_or(0, |newest| u32::from(newest.size) * 8);
        let layer = ObservedLayer { rate: self.rate(), rtt: self.rtt(), quiet: self.quiet, packet_bits };
        self.climb.has_room(layer, lost_at, total, above, now)
    }

    /// Schedules a report of an event that occurs at `now`, unless a report is already scheduled.
    pub(super) fn plan(&mut self, seq: Seq, cause: Cause, delay: Span, now: Time) {
        if self.pending.is_none() {
            self.pending = Some(Pending { at: now + delay, event_at: now, seq, cause });
        }
    }

    /// Returns the echo for a report that is sent now.
    pub(super) fn echo(&self, now: Time) -> Echo {
        match self.newest {
            Some(newest) => Echo { seq: newest.seq, hold: now.since(newest.at) },
            None => Echo { seq: Seq(0), hold: Span::MAX },
        }
    }

    /// Restarts the wait for the network to settle after a change of the joined layers (paper 000, 4.1.5).
    pub(super) fn reopen_gate(&mut self) {
        (self.gate, self.at_own, self.at_others) = (0, 0, 0);
        self.taf.forget_shifts();
    }

    pub(super) fn deadline(&self) -> Time {
        let report = self.pending.map_or(Time::NEVER, |pending| pending.at);
        report.min(self.beat_at).min(self.start_up.deadline())
    }
}

/// Minimum gap between the two packets before a loss.
const MIN_GAP: Span = Span::from_micros(1);

impl NewestHeader {
    fn first() -> NewestHeader {
        NewestHeader {
            seq: Seq(0),
            at: Time::ZERO,
            size: 0,
            signal: Signal::None,
            rate: 0.0,
            representative: None,
            followed: None,
            rtt: DEFAULT_RTT,
            stated_rtt: f32::NAN,
            stated_mean: f32::NAN,
            updates: 0,
        }
    }

    fn follow(&mut self, id: Option<ReceiverId>, mean: f32, error: f32, rtt: f32) {
        let sound = mean.is_finite() && mean >= 0.0 && error.is_finite() && error >= 0.0;
        self.stated_mean = mean;
        let estimate = Estimate { mean: f64::from(mean), error: f64::from(error) };
        self.followed = id.filter(|_| sound).map(|_| estimate);
        self.time(rtt);
    }

    fn time(&mut self, rtt: f32) {
        self.stated_rtt = rtt;
        if rtt.is_finite() && rtt > 0.0 {
            self.rtt = Span::from_secs_f64(f64::from(rtt)).clamp(RTT_RANGE.0, RTT_RANGE.1);
        }
    }
}

impl Pending {
    /// Returns the echo of this packet for a report that is sent now.
    pub(super) fn echo(&self, now: Time) -> Echo {
        Echo { seq: self.seq, hold: now.since(self.event_at) }
    }
}
