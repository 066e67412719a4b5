//! The target path and its shortest round-trip time (paper 002, 3.5).

use crate::packet::ShortId;
use crate::time::{Span, Time};

/// The receiver of the target path, and its round-trip times.
#[derive(Debug, Clone)]
pub(super) struct Target {
    id: Option<ShortId>,
    shortest: Option<Span>,
    /// Shortest round-trip times of the present target and of former targets. The time is the latest moment at which the receiver
    /// was the target.
    known: Vec<(ShortId, Span, Time)>,
    places: usize,
}

/// Duration for which a former target's shortest round-trip time is stored.
const REMEMBERED: Span = Span::from_secs(60);

impl Target {
    /// Creates the state without a target, with room for the shortest round-trip times of `places` receivers.
    pub fn new(places: u8) -> Target {
        Target { id: None, shortest: None, known: Vec::new(), places: places.into() }
    }

    /// Returns the receiver at the end of the target path.
    pub const fn id(&self) -> Option<ShortId> {
        self.id
    }

    /// Returns "RTT_min".
    pub const fn shortest(&self) -> Option<Span> {
        self.shortest
    }

    /// Adds a round-trip sample from an acknowledgement of this receiver, by equation (3.3). The receiver becomes the target.
    // Paper gap: (3.3) uses the newest round trip as the shortest one of a new target. If two receivers alternate, this value
    // includes the present queue each time. Here the stored value of a former target counts too.
    pub fn sample(&mut self, of: ShortId, rtt: Span, now: Time) {
        if self.id != Some(of) {
            self.known.retain(|(_, _, at)| now.since(*at) <= REMEMBERED);
            let known = self.known.iter().find(|(id, _, _)| *id == of).map(|(_, shortest, _)| *shortest);
            self.id = Some(of);
            self.shortest = Some(known.map_or(rtt, |known| known.min(rtt)));
        } else if self.shortest.is_none_or(|shortest| rtt < shortest) {
            self.shortest = Some(rtt);
        }
        self.remember(of, now);
    }

    fn remember(&mut self, of: ShortId, now: Time) {
        let Some(shortest) = self.shortest.filter(|_| self.places > 0) else { return };
        let place = self.known.iter().position(|(id, _, _)| *id == of);
        let place = place.or_else(|| {
            if self.known.len() < self.places {
                return None;
            }
            (0..self.known.len()).min_by_key(|place| self.known[*place].2)
        });
        match place {
            Some(place) => self.known[place] = (of, shortest, now),
            None => self.known.push((of, shortest, now)),
        }
    }

    /// Sets the shortest round trip, regardless of earlier samples.
    pub fn set_shortest(&mut self, shortest: Span, now: Time) {
        self.shortest = Some(shortest);
        if let Some(id) = self.id {
            self.remember(id, now);
        }
    }

    /// Removes a receiver that left.
    pub fn forget(&mut self, id: ShortId) {
        self.known.retain(|(other, _, _)| *other != id);
        if self.id == Some(id) {
            (self.id, self.shortest) = (None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ReceiverId;

    fn id(number: u64) -> ShortId {
        ReceiverId::new(number).and_then(ShortId::of).expect("small")
    }

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn each_target_has_its_own_shortest_round_trip() {
        let mut target = Target::new(64);
        for (of, rtt, shortest) in [
            (1, 60, 60),
            (1, 54, 54),
            (1, 80, 54),
            (2, 70, 70),
            (2, 64, 64),
            (3, 99, 99),
            (2, 90, 64),
            (1, 85, 54),
        ] {
            target.sample(id(of), ms(rtt), at(1.0));
            assert_eq!((target.id(), target.shortest()), (Some(id(of)), Some(ms(shortest))));
        }
    }

    #[test]
    fn shortest_rtt_of_a_new_target_is_the_latest_without_a_table() {
        let mut target = Target::new(0);
        [(1, 54), (2, 64), (1, 85)].iter().for_each(|&(of, rtt)| target.sample(id(of), ms(rtt), at(1.0)));
        assert_eq!(target.shortest(), Some(ms(85)));
    }

    #[test]
    fn former_target_is_forgotten_after_a_minute() {
        let mut target = Target::new(64);
        target.sample(id(1), ms(54), at(1.0));
        target.sample(id(2), ms(64), at(2.0));
        target.sample(id(1), ms(85), at(62.0));
        assert_eq!(target.shortest(), Some(ms(85)));
    }

    #[test]
    fn target_table_never_exceeds_its_limit() {
        let mut target = Target::new(4);
        (1..100).for_each(|of| target.sample(id(of), ms(50), at(of as f64 * 0.1)));
        assert_eq!(target.known.len(), 4);
    }
}
