//! The source's records of receivers that report losses, 24 bytes each.
//!
//! A hash table with open addressing and a fixed hash: the order of its slots never affects the source's actions. The table
//! allocates memory only if it is too small for a new reporter, or after a sweep has removed records.

#[cfg(test)]
mod tests;

use crate::packet::{ReceiverId, Seq};
use crate::time::Time;

/// All receivers that have reported losses, each with a decaying count of its loss events, "X_i".
#[derive(Debug, Clone)]
pub(super) struct Reporters {
    /// The slots; their number is a power of two.
    places: Box<[Slot]>,
    used: usize,
    /// Value of one stored unit of a count. Decay changes this value instead of every count.
    unit: f64,
    /// Sum of all counts in stored units, "sum X_i".
    sum: f64,
    /// Largest count, in stored units, "max X_i". `worst_is` is the receiver with this count.
    worst: f32,
    worst_is: Option<ReceiverId>,
}

/// One receiver, or an empty slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    is: Option<ReceiverId>,
    /// Time of the latest indication that became a loss event, "T_last".
    passed_at: Time,
    /// Number of loss events, in stored units.
    count: f32,
    /// The newest packet in the reports of this receiver, modulo 2^32.
    named: u32,
}

const _: () = assert!(size_of::<Slot>() == 24);

/// Index of a receiver's slot, valid until a receiver is added or removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reporter(usize);

/// A receiver's count, the largest count, and the sum of all counts. All three have the same unit, so only their ratios have a
/// meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    pub own: f64,
    pub worst: f64,
    pub all: f64,
    /// Number of receivers that report.
    pub reporters: f64,
}

/// Number of slots of an empty table.
const FEWEST: usize = 16;
/// Maximum number of reporters. It limits the memory that an attacker who invents receivers can consume.
const MAX: usize = 1 << 20;
/// A receiver without recent loss events is removed if its count is below this value.
const FORGOTTEN_BELOW: f32 = 0.01;

impl Reporters {
    pub(super) fn new() -> Reporters {
        Reporters {
            places: vec![Slot::default(); FEWEST].into_boxed_slice(),
            used: 0,
            unit: 1.0,
            sum: 0.0,
            worst: 0.0,
            worst_is: None,
        }
    }

    /// Returns the receiver with the largest count.
    pub(super) const fn worst(&self) -> Option<ReceiverId> {
        self.worst_is
    }

    /// Returns the slot of a reporting receiver, and adds the receiver if necessary; `None` if the table is full.
    pub(super) fn find(&mut self, who: ReceiverId) -> Option<Reporter> {
        let at = self.place_of(who);
        if self.places[at].is.is_some() {
            return Some(Reporter(at));
        }
        if self.used >= MAX {
            return None;
        }
        if (self.used + 1) * 4 > self.places.len() * 3 {
            self.move_to(self.places.len() * 2, |_| true);
        }
        let at = self.place_of(who);
        self.places[at] = Slot { is: Some(who), passed_at: Time::NEVER, ..Slot::default() };
        self.used += 1;
        Some(Reporter(at))
    }

    /// Records that a report of the receiver contains packet `seq`. Returns whether this is the newest packet that the receiver
    /// has reported.
    pub(super) fn names(&mut self, Reporter(at): Reporter, seq: Seq) -> bool {
        let place = &mut self.places[at];
        let newer = (seq.0 as u32).wrapping_sub(place.named) as i32 > 0;
        let anew = place.passed_at.is_never() || newer;
        if anew {
            place.named = seq.0 as u32;
        }
        anew
    }

    /// Returns the time of the receiver's latest indication that became a loss event.
    pub(super) fn passed_at(&self, Reporter(at): Reporter) -> Option<Time> {
        let passed_at = self.places[at].passed_at;
        (!passed_at.is_never()).then_some(passed_at)
    }

    /// Records that an indication of the receiver becomes a loss event now.
    pub(super) fn pass(&mut self, Reporter(at): Reporter, now: Time) {
        self.places[at].passed_at = now;
    }

    /// Counts one loss event of a receiver.
    pub(super) fn count(&mut self, Reporter(at): Reporter) -> Shares {
        let place = &mut self.places[at];
        let before = place.count;
        place.count += (1.0 / self.unit) as f32;
        self.sum += f64::from(place.count) - f64::from(before);
        if place.count >= self.worst {
            (self.worst, self.worst_is) = (place.count, place.is);
        }
        let reporters = self.used.max(1) as f64;
        Shares { own: f64::from(place.count), worst: f64::from(self.worst), all: self.sum, reporters }
    }

    /// Multiplies all counts by `part`.
    pub(super) fn decay(&mut self, part: f64) {
        self.unit *= part;
    }

    /// Removes receivers whose counts are almost zero and whose latest loss event was before `oldest`. Visits every slot, so it
    /// should be called rarely.
    pub(super) fn sweep(&mut self, oldest: Time) {
        for place in &mut self.places {
            place.count = (f64::from(place.count) * self.unit) as f32;
        }
        self.unit = 1.0;
        let outdated = |place: &Slot| place.count < FORGOTTEN_BELOW && place.passed_at < oldest;
        let keep = self.receivers().filter(|place| !outdated(place)).count();
        if keep < self.used {
            self.move_to(places_for(keep), |place| !outdated(place));
        }
        self.add_up();
    }

    /// Removes a receiver that left.
    pub(super) fn forget(&mut self, who: ReceiverId) {
        let at = self.place_of(who);
        if self.places[at].is.is_none() {
            return;
        }
        self.used -= 1;
        let mask = self.places.len() - 1;
        let (mut hole, mut next) = (at, (at + 1) & mask);
        while let Some(id) = self.places[next].is {
            // The search for `id` begins at `home`. A later entry may move into the hole unless its search begins after the hole.
            let home = self.home_of(id);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.places[hole] = Slot::default();
        self.add_up();
    }

    /// Recomputes the sum and the largest count.
    fn add_up(&mut self) {
        let (mut sum, mut worst, mut worst_is) = (0.0, 0.0, None);
        for place in self.receivers() {
            sum += f64::from(place.count);
            // Among several receivers with the largest count, the one with the lowest ID is the worst, so the order of slots has no
            // effect.
            if place.count > worst || (place.count == worst && place.is < worst_is) {
                (worst, worst_is) = (place.count, place.is);
            }
        }
        (self.sum, self.worst, self.worst_is) = (sum, worst, worst_is);
    }

    fn receivers(&self) -> impl Iterator<Item = &Slot> {
        self.places.iter().filter(|place| place.is.is_some())
    }

    #[cold]
    fn move_to(&mut self, places: usize, keep: impl Fn(&Slot) -> bool) {
        let old = std::mem::replace(&mut self.places, vec![Slot::default(); places].into_boxed_slice());
        self.used = 0;
        for place in old.iter().filter(|place| keep(place)) {
            if let Some(id) = place.is {
                let at = self.place_of(id);
                self.places[at] = *place;
                self.used += 1;
            }
        }
    }

    /// Returns the index of a receiver's slot, or of the empty slot where it would be inserted.
    fn place_of(&self, who: ReceiverId) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.home_of(who);
        while self.places[at].is.is_some_and(|id| id != who) {
            at = (at + 1) & mask;
        }
        at
    }

    /// Returns the index where the search for a receiver begins: the upper bits of a product with the golden ratio (Fibonacci
    /// hashing).
    fn home_of(&self, who: ReceiverId) -> usize {
        let bits = self.places.len().trailing_zeros();
        (who.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }
}

/// Returns the number of slots for this number of receivers.
fn places_for(receivers: usize) -> usize {
    (receivers * 4 / 3 + 1).next_power_of_two().max(FEWEST)
}
