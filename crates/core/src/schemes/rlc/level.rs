//! Reception of one layer: the missing packets, and the slots in which they were sent.

use super::timetable::Timetable;
use crate::packet::{Arrival, Layer, Seq};

/// A layer that a receiver is subscribed to.
///
/// The packets of a layer that are missing. The driver reports only the number of lost packets, in the order of the gaps, and up
/// to a few packets after a gap appears. This record has the numbers and slots of these packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct LayerReception {
    /// The newest packet and its slot.
    newest: Option<(Seq, u64)>,
    /// A packet that was the first one of its slot, and this slot.
    first: (Seq, u64),
    open: [Gap; OPEN],
    count: u8,
}

/// Missing packets within `from..to`.
#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    from: u64,
    to: u64,
    missing: u64,
    /// Slots of the first and of the last packet of the gap.
    slots: (u64, u64),
}

/// The result of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalResult {
    /// Whether the packet is new: it has not arrived before, and it did not count as lost.
    pub copy: Copy,
    /// Slots of the first and of the last packet that this arrival declares lost.
    pub lost: Option<(u64, u64)>,
}

/// Whether a packet is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    /// The packet arrived for the first time.
    First,
    /// The packet arrived before, or too late.
    Another,
}

/// Maximum number of stored gaps. Beyond it, the two oldest gaps are merged.
const OPEN: usize = 4;
/// Maximum size of a gap, in packets. A larger gap is a restart of the stream, not a series of losses, as in
/// [`crate::delivery::gaps`].
const RESTART: u64 = 1 << 15;

impl LayerReception {
    /// Records a packet of `layer` that belongs to `slot`.
    pub fn on_arrival(&mut self, layer: Layer, seq: Seq, slot: u64, arrival: Arrival) -> ArrivalResult {
        let copy = match self.newest {
            Some((newest, before)) if seq > newest => {
                self.advance(layer, seq, slot, newest, before);
                Copy::First
            }
            Some(_) => self.fill(seq),
            None => {
                self.first = (seq, slot);
                Copy::First
            }
        };
        if self.newest.is_none_or(|(newest, _)| seq > newest) {
            self.newest = Some((seq, slot));
        }
        ArrivalResult { copy, lost: self.give_up(arrival.lost, slot) }
    }

    fn advance(&mut self, layer: Layer, seq: Seq, slot: u64, newest: Seq, before: u64) {
        let packets = Timetable::packets(layer);
        let missing = seq.0 - newest.0 - 1;
        if missing == 0 {
            if slot != before || packets == 1 {
                self.first = (seq, slot);
            }
            return;
        }
        let by_turns = |seq: u64| self.first.1 + (seq - self.first.0.0) / packets;
        let slots = if by_turns(seq.0) == slot {
            (by_turns(newest.0 + 1), by_turns(seq.0 - 1))
        } else {
            // The source has skipped turns, or the first packet of a slot is not known yet. The missing packets are assumed to be
            // spread evenly between the two known slots.
            let ahead = slot.saturating_sub(before);
            (before + ahead / (missing + 1), slot.max(before) - ahead.div_ceil(missing + 1).min(ahead))
        };
        if missing > RESTART {
            self.count = 0;
        }
        let missing = if missing > RESTART { 1 } else { missing };
        self.push(Gap { from: newest.0 + 1, to: seq.0, missing, slots });
        if packets == 1 {
            self.first = (seq, slot);
        }
    }

    fn push(&mut self, gap: Gap) {
        if usize::from(self.count) == OPEN {
            let (oldest, next) = (self.open[0], self.open[1]);
            let slots = (oldest.slots.0, next.slots.1);
            self.remove(0);
            self.open[0] = Gap { from: oldest.from, missing: oldest.missing + next.missing, slots, ..next };
        }
        self.open[usize::from(self.count)] = gap;
        self.count += 1;
    }

    /// Removes a late packet from its gap.
    fn fill(&mut self, seq: Seq) -> Copy {
        let open = &mut self.open[..usize::from(self.count)];
        let Some(at) = open.iter().position(|gap| (gap.from..gap.to).contains(&seq.0)) else {
            return Copy::Another;
        };
        open[at].missing -= 1;
        if open[at].missing == 0 {
            self.remove(at);
        }
        Copy::First
    }

    /// Declares lost the `lost` packets that have been missing for the longest time.
    fn give_up(&mut self, lost: u32, now_at: u64) -> Option<(u64, u64)> {
        let mut left = u64::from(lost);
        let mut slots: Option<(u64, u64)> = None;
        while left > 0 {
            // Without a stored gap, a loss counts in the slot of the packet that reveals the loss.
            let gap = if self.count == 0 {
                Gap { missing: left, slots: (now_at, now_at), ..Gap::default() }
            } else {
                self.open[0]
            };
            let taken = left.min(gap.missing);
            left -= taken;
            if taken == gap.missing && self.count > 0 {
                self.remove(0);
            } else if self.count > 0 {
                self.open[0].missing -= taken;
            }
            slots = Some(
                slots.map_or(gap.slots, |(first, last)| (first.min(gap.slots.0), last.max(gap.slots.1))),
            );
        }
        slots
    }

    fn remove(&mut self, at: usize) {
        self.open.copy_within(at + 1..usize::from(self.count), at);
        self.count -= 1;
    }
}
