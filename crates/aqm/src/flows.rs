//! A discipline's record for each flow that has packets in the queue.

/// Records by flow, in a hash table with open addressing. A look-up takes constant time on average. Memory is allocated only when
/// the number of flows exceeds its earlier maximum.
#[derive(Debug, Clone)]
pub(crate) struct Flows<T> {
    /// The slots of the table. The number of slots is a power of two, and less than half of the slots are used.
    places: Vec<Option<(u32, T)>>,
    count: usize,
}

impl<T: Copy + Default> Flows<T> {
    /// Returns an empty table with room for `flows` flows.
    pub fn with_room_for(flows: usize) -> Flows<T> {
        Flows { places: vec![None; (2 * flows + 2).next_power_of_two()], count: 0 }
    }

    /// Returns the number of records.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.places.fill(None);
        self.count = 0;
    }

    /// Returns the slot at which the search for a flow begins (Fibonacci hashing).
    fn home(&self, flow: u32) -> usize {
        let mixed = u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed as usize & (self.places.len() - 1)
    }

    /// Returns the slot of a flow, or the slot that a new record of the flow would use.
    fn place(&self, flow: u32) -> usize {
        let mut place = self.home(flow);
        while self.places[place].is_some_and(|(other, _)| other != flow) {
            place = (place + 1) & (self.places.len() - 1);
        }
        place
    }

    /// Returns the record of a flow.
    pub fn get(&self, flow: u32) -> Option<&T> {
        self.places[self.place(flow)].as_ref().map(|(_, record)| record)
    }

    /// Returns the record of a flow. Creates the record if it is missing.
    pub fn entry(&mut self, flow: u32) -> &mut T {
        if 2 * (self.count + 1) >= self.places.len() {
            self.grow();
        }
        let place = self.place(flow);
        if self.places[place].is_none() {
            self.count += 1;
        }
        &mut self.places[place].get_or_insert((flow, T::default())).1
    }

    fn grow(&mut self) {
        let twice = self.places.len() * 2;
        let old = std::mem::replace(&mut self.places, vec![None; twice]);
        for (flow, record) in old.into_iter().flatten() {
            let place = self.place(flow);
            self.places[place] = Some((flow, record));
        }
    }

    /// Removes the flow's record. Moves later records to the empty slot if necessary, because a search ends at an empty slot.
    pub fn remove(&mut self, flow: u32) {
        let mut hole = self.place(flow);
        if self.places[hole].is_none() {
            return;
        }
        self.count -= 1;
        let mask = self.places.len() - 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let Some((other, _)) = self.places[place] else { break };
            let from_home = place.wrapping_sub(self.home(other)) & mask;
            let from_hole = place.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.places[hole] = self.places[place];
                hole = place;
            }
        }
        self.places[hole] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn flow_table_behaves_like_a_map() {
        let mut flows: Flows<u64> = Flows::with_room_for(0);
        let mut map = BTreeMap::new();
        let mut rng = Rng::new(1, 1);
        for step in 0..20_000 {
            let flow = rng.below(40) as u32 * 0x0100_0001;
            if rng.chance(0.5) {
                *flows.entry(flow) += step;
                *map.entry(flow).or_insert(0) += step;
            } else {
                flows.remove(flow);
                map.remove(&flow);
            }
            assert_eq!((flows.len(), flows.get(flow)), (map.len(), map.get(&flow)));
        }
        for (flow, record) in &map {
            assert_eq!(flows.get(*flow), Some(record));
        }
        flows.clear();
        assert_eq!((flows.len(), flows.get(0)), (0, None));
    }
}
