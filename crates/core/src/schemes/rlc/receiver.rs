//! RLC's receiver: steps up at synchronisation points, steps down at losses, and never reports (paper 004, 3).

use super::config::{Config, Points};
use super::level::{ArrivalResult, Copy, LayerReception};
use super::rare_loss::RareLoss;
use super::retry_delay::RetryDelay;
use super::timetable::Timetable;
use crate::node::{Cx, Effect};
use crate::packet::{Arrival, Data, Layer, Mark, ReceiverId, Signal};
use crate::time::{Span, Time};

/// A receiver of an RLC session.
#[derive(Debug, Clone)]
pub struct Receiver {
    timetable: Timetable,
    deaf: Span,
    stretch: Option<f64>,
    /// Number of layers.
    layers: u8,
    /// If every burst ends in a synchronisation point: the delays before a level is joined again.
    patience: Option<Box<RetryDelay>>,
    /// Rule by which rare losses cost no layer; `None` if every loss costs a layer.
    rarity: Option<RareLoss>,
    /// Highest layer of the subscription; initially layer 0.
    level: u8,
    deaf_until: Time,
    burst: Burst,
    /// Number of loss events. Losses closer together than the deaf period are one event (paper 004, 4).
    events: u32,
    /// Losses before this time belong to the latest event.
    event_until: Time,
    intakes: Box<[LayerReception]>,
}

/// Progress of the latest burst. A burst is passed when all packets of it have arrived, so the receiver need not wait for later
/// packets that would reveal a gap. A burst that the source does not fill is not passed.
#[derive(Debug, Clone, Copy)]
struct Burst {
    /// The cycle of the burst.
    cycle: u64,
    /// Arrival of its first packet.
    since: Time,
    /// Number of arrived packets of the subscribed layers.
    came: u64,
    /// Whether the synchronisation flag for this receiver's level has arrived.
    point: Point,
    /// Whether the burst can still be passed.
    hope: BurstOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    NotSeen,
    Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BurstOutcome {
    /// No congestion so far.
    Open,
    /// Congestion occurred, or the receiver changed its level.
    Gone,
}

/// Number of cycles. A burst that is fewer cycles old than this is late. An older burst shows that the source has restarted.
const LATE_CYCLES: u64 = 4;

impl Receiver {
    /// Creates a receiver that has received no packet. Its ID is not used, because it never reports.
    pub fn new(_me: ReceiverId, config: &Config) -> Receiver {
        Receiver {
            timetable: config.timetable(),
            deaf: config.deaf_period(),
            stretch: config.stretch,
            layers: config.layers,
            patience: (config.points == Points::Every).then(|| Box::new(RetryDelay::new())),
            rarity: RareLoss::new(config),
            level: 0,
            deaf_until: Time::ZERO,
            burst: Burst::of(u64::MAX, Time::ZERO),
            events: 0,
            event_until: Time::ZERO,
            intakes: vec![LayerReception::default(); usize::from(config.layers.max(1))].into(),
        }
    }

    /// Returns the highest subscribed layer.
    pub const fn level(&self) -> u8 {
        self.level
    }

    fn is_deaf(&self, now: Time) -> bool {
        now < self.deaf_until
    }

    /// Responds to a lost or marked packet. If the packet was in a burst, the burst does not count as passed. Otherwise the
    /// receiver leaves a layer, at most once per deaf period; it never leaves the base layer.
    fn on_congestion(&mut self, slots: (u64, u64), cx: &mut Cx<'_>) {
        if cx.now >= self.event_until {
            self.events += 1;
            self.event_until = cx.now + self.deaf;
        }
        if self.timetable.is_one_burst(slots.0, slots.1) {
            if slots.1 / self.timetable.distance() == self.burst.cycle {
                self.burst.hope = BurstOutcome::Gone;
            }
        } else if self.level > 0 && !self.is_deaf(cx.now) && !self.is_excused(cx.now) {
            self.deaf_until = cx.now + self.deaf;
            if let Some(patience) = &mut self.patience {
                patience.on_leave(self.level, slots.1 / self.timetable.distance(), cx.now);
            }
            self.subscribe(self.level - 1, cx);
        }
    }

    fn is_excused(&mut self, now: Time) -> bool {
        self.rarity.as_mut().is_some_and(|rarity| rarity.excuses(self.level, now))
    }

    /// Records a packet of a burst; the first packet starts the burst.
    fn meet_burst(&mut self, slot: u64, now: Time) {
        let cycle = slot / self.timetable.distance();
        let is_late = cycle < self.burst.cycle && self.burst.cycle - cycle < LATE_CYCLES;
        if cycle != self.burst.cycle && !is_late {
            self.burst = Burst::of(cycle, now);
        }
    }

    /// Counts a packet of the burst. After the last packet, the receiver joins the next layer if the burst ends in a
    /// synchronisation point of the receiver's level.
    fn count_probe(&mut self, layer: Layer, signal: Signal, slot: u64, cx: &mut Cx<'_>) {
        if slot / self.timetable.distance() != self.burst.cycle {
            return;
        }
        self.burst.came += 1;
        if signal == Signal::SyncPoint && layer == Layer(self.level) {
            self.burst.point = Point::Seen;
        }
        if self.burst.came == self.timetable.packets_of_burst(self.level) && self.may_go_up(cx.now) {
            if let Some(patience) = &mut self.patience {
                patience.on_join(cx.now);
            }
            self.subscribe(self.level + 1, cx);
        }
    }

    fn may_go_up(&self, now: Time) -> bool {
        let Burst { cycle, since, point, hope, .. } = self.burst;
        let nominal = self.timetable.length_of_burst(self.level);
        let stretched = self.stretch.is_some_and(|factor| now.since(since) > nominal.scaled(factor));
        self.level + 1 < self.layers
            && (point, hope) == (Point::Seen, BurstOutcome::Open)
            && self.patience.as_ref().is_none_or(|patience| patience.is_over(self.level, cycle))
            && !stretched
            && !self.is_deaf(now)
    }

    /// Changes the level. The current burst was received at two levels, so it is not evidence for either level.
    fn subscribe(&mut self, level: u8, cx: &mut Cx<'_>) {
        let higher = usize::from(level.max(self.level));
        self.intakes[higher] = LayerReception::default();
        self.level = level;
        if let Some(rarity) = &mut self.rarity {
            rarity.on_change(cx.now);
        }
        self.burst.hope = BurstOutcome::Gone;
        cx.effects.push(Effect::Subscribe(Layer(level)));
    }
}

impl Burst {
    const fn of(cycle: u64, since: Time) -> Burst {
        Burst { cycle, since, came: 0, point: Point::NotSeen, hope: BurstOutcome::Open }
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        let Mark::Timetable { slot } = data.mark else { return };
        if layer.0 > self.level {
            return;
        }
        let slot = u64::from(slot);
        let intake = &mut self.intakes[usize::from(layer.0)];
        let ArrivalResult { copy, lost } = intake.on_arrival(layer, data.seq, slot, arrival);
        let is_probe = data.signal.is_burst() && copy == Copy::First;
        if is_probe {
            self.meet_burst(slot, cx.now);
        }
        if let Some(slots) = lost {
            self.on_congestion(slots, cx);
        }
        // Paper gap: section 3 considers losses only. Here a packet marked by a queue counts as a lost packet.
        if arrival.marked && copy == Copy::First {
            self.on_congestion((slot, slot), cx);
        }
        if is_probe && layer.0 <= self.level {
            self.count_probe(layer, data.signal, slot, cx);
        }
    }

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _cx: &mut Cx<'_>) {}

    fn suppressed(&self) -> u32 {
        self.events
    }
}
