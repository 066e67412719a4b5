//! When each packet of each layer leaves (paper 004, 3).
//!
//! Time is divided into slots. In a slot the base layer has one packet and layer j has 2^(j-1), placed so that the 2^i
//! packets of layers 0 to i are equally spaced for every i:
//!
//! ```text
//!   layer 0   0 . . . . . . .      at 0
//!   layer 1   . . . . 1 . . .      at 1/2
//!   layer 2   . . 2 . . . 2 .      at 1/4 and 3/4
//!   layer 3   . 3 . 3 . 3 . 3      at 1/8, 3/8, 5/8 and 7/8 of the slot
//! ```
//!
//! Of W slots, which make a cycle, the last 2 B are sent in the time of B, at double rate, and then nothing is sent for as
//! long. The mean rate stays as it is.

use crate::packet::Layer;
use crate::time::Span;

/// The timetable that all layers share. A packet's *turn* is its number in its layer as if no packet had ever been left
/// out; slots are those of even sending, so the ones of a burst count as well although they are sent before their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timetable {
    slot: Span,
    distance: u64,
    burst: u64,
}

/// How a slot is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// At its time.
    Even,
    /// In a burst.
    Burst,
}

impl Timetable {
    /// A timetable of slots this long (1 us at least), with a burst every `distance` slots (3 at least). A burst takes the time of `burst`
    /// slots (1 at least, and less than half of the distance).
    pub fn new(slot: Span, distance: u16, burst: u16) -> Timetable {
        let distance = distance.max(3);
        let burst = burst.clamp(1, (distance - 1) / 2);
        Timetable {
            slot: slot.max(Span::from_micros(1)),
            distance: u64::from(distance),
            burst: u64::from(burst),
        }
    }

    /// How long a slot is.
    pub const fn slot(&self) -> Span {
        self.slot
    }

    /// How many slots a cycle has, "W".
    pub const fn distance(&self) -> u64 {
        self.distance
    }

    /// How many packets of `layer` a slot has.
    pub const fn packets(layer: Layer) -> u64 {
        1 << layer.0.saturating_sub(1)
    }

    /// How many packets of layers 0 to `level` a burst has.
    pub const fn packets_of_burst(&self, level: u8) -> u64 {
        (2 * self.burst) << level
    }

    /// How long it is from the first to the last packet of a burst, with layers 0 to `level`.
    pub fn length_of_burst(&self, level: u8) -> Span {
        self.slot * (self.packets_of_burst(level) - 1) / (2 << level)
    }

    /// How a slot is sent.
    pub const fn phase(&self, slot: u64) -> Phase {
        if slot % self.distance < self.distance - 2 * self.burst { Phase::Even } else { Phase::Burst }
    }

    /// Whether all slots from `first` to `last` belong to one burst.
    pub const fn is_one_burst(&self, first: u64, last: u64) -> bool {
        first / self.distance == last / self.distance && matches!(self.phase(first), Phase::Burst)
    }

    /// The last turn of `layer` in the burst of a cycle, counted from 0.
    pub const fn last_turn(&self, layer: Layer, cycle: u64) -> u64 {
        (cycle + 1) * self.distance * Timetable::packets(layer) - 1
    }

    /// When a turn comes, from the beginning of the first slot on.
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

    /// The latest turn of `layer` that has come by this time; `None` before the first one.
    pub fn latest_turn(&self, layer: Layer, time: Span) -> Option<u64> {
        let (time, slot) = (time.as_nanos(), self.slot.as_nanos());
        let length = slot.saturating_mul(self.distance);
        let (cycle, rest) = (time / length, time % length);
        let even = self.distance - 2 * self.burst;
        let place = match rest / slot {
            place if place < even => place,
            _ => (even + (rest - slot * even) * 2 / slot).min(self.distance - 1),
        };
        // The first turn of that slot, then as far as it goes.
        let mut turn = (cycle * self.distance + place) * Timetable::packets(layer);
        while self.time_of(layer, turn + 1).as_nanos() <= time {
            turn += 1;
        }
        if self.time_of(layer, turn).as_nanos() <= time { Some(turn) } else { turn.checked_sub(1) }
    }
}
