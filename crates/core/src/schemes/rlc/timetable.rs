//! Departure times of the packets of all layers (paper 004, 3).
//!
//! Time is divided into slots. In a slot the base layer has one packet and layer j has 2^(j-1) packets. The packets are placed so
//! that, for every i, the 2^i packets of layers 0 to i are equally spaced:
//!
//! ```text
//!   layer 0   0 . . . . . . .      at 0
//!   layer 1   . . . . 1 . . .      at 1/2
//!   layer 2   . . 2 . . . 2 .      at 1/4 and 3/4
//!   layer 3   . 3 . 3 . 3 . 3      at 1/8, 3/8, 5/8 and 7/8 of the slot
//! ```
//!
//! A cycle has W slots. The last 2 B slots of a cycle are sent at double rate, in the time of B slots (the burst). Then the
//! source is silent for the time of B slots. The mean rate does not change.

use crate::packet::Layer;
use crate::time::Span;

/// The timetable of all layers. A packet's *turn* is the number that the packet would have in its layer if the source had never
/// skipped a packet. Slots are numbered as if all slots were sent evenly; the early sending of a burst does not change the
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timetable {
    slot: Span,
    distance: u64,
    burst: u64,
}

/// Mode of sending a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// At its regular time.
    Even,
    /// In a burst.
    Burst,
}

impl Timetable {
    /// Creates a timetable. A slot lasts at least 1 us. There is a burst every `distance` slots (at least 3). A burst lasts for
    /// the time of `burst` slots: at least 1, and less than half of `distance`.
    pub fn new(slot: Span, distance: u16, burst: u16) -> Timetable {
        let distance = distance.max(3);
        let burst = burst.clamp(1, (distance - 1) / 2);
        Timetable {
            slot: slot.max(Span::from_micros(1)),
            distance: u64::from(distance),
            burst: u64::from(burst),
        }
    }

    /// Returns the duration of a slot.
    pub const fn slot(&self) -> Span {
        self.slot
    }

    /// Returns the number of slots of a cycle, "W".
    pub const fn distance(&self) -> u64 {
        self.distance
    }

    /// Returns the number of packets of `layer` in a slot.
    pub const fn packets(layer: Layer) -> u64 {
        1 << layer.0.saturating_sub(1)
    }

    /// Returns the number of packets of layers 0 to `level` in a burst.
    pub const fn packets_of_burst(&self, level: u8) -> u64 {
        (2 * self.burst) << level
    }

    /// Returns the time from the first to the last packet of a burst with layers 0 to `level`.
    pub fn length_of_burst(&self, level: u8) -> Span {
        self.slot * (self.packets_of_burst(level) - 1) / (2 << level)
    }

    /// Returns the mode of sending `slot`.
    pub const fn phase(&self, slot: u64) -> Phase {
        if slot % self.distance < self.distance - 2 * self.burst { Phase::Even } else { Phase::Burst }
    }

    /// Returns whether all slots from `first` to `last` belong to one burst.
    pub const fn is_one_burst(&self, first: u64, last: u64) -> bool {
        first / self.distance == last / self.distance && matches!(self.phase(first), Phase::Burst)
    }

    /// Returns the last turn of `layer` in the burst of cycle `cycle`; cycles are counted from 0.
    pub const fn last_turn(&self, layer: Layer, cycle: u64) -> u64 {
        (cycle + 1) * self.distance * Timetable::packets(layer) - 1
    }

    /// Returns the time of a turn, measured from the beginning of the first slot.
    pub fn time_of(&self, layer: Layer, turn: u64) -> Span {
        let packets = Timetable::packets(layer);
        let (slot, index) = (turn / packets, turn % packets);
        let (cycle, place) = (slot / self.distance, slot % self.distance);
        let even = self.distance - 2 * self.burst;
        let (begin, length) = match self.phase(slot) {
            Phase::Even => (self.slot * place, self.slot),
            Phase::Burst => (self.slot * even + self.slot * (place - even) / 2, self.slot / 2),
        };
        let parts = if layer.0 == 0 { 0 } else { 2 * index + 1 };
        self.slot * self.distance * cycle + begin + length * parts / (1 << layer.0)
    }

    /// Returns the latest turn of `layer` at or before `time`; `None` if `time` is before the first turn.
    pub fn latest_turn(&self, layer: Layer, time: Span) -> Option<u64> {
        let (time, slot) = (time.as_nanos(), self.slot.as_nanos());
        let length = slot.saturating_mul(self.distance);
        let (cycle, rest) = (time / length, time % length);
        let even = self.distance - 2 * self.burst;
        let place = match rest / slot {
            place if place < even => place,
            _ => (even + (rest - slot * even) * 2 / slot).min(self.distance - 1),
        };
        // Starts at the first turn of the slot and advances to the latest one.
        let mut turn = (cycle * self.distance + place) * Timetable::packets(layer);
        while self.time_of(layer, turn + 1).as_nanos() <= time {
            turn += 1;
        }
        if self.time_of(layer, turn).as_nanos() <= time { Some(turn) } else { turn.checked_sub(1) }
    }
}
