//! ACK fusion: of the acknowledgements of several children, the smallest one counts, because packets are stored until all
//! receivers have them (paper 003, 2.4 and 3).

use crate::packet::{Echo, ReportContent, Seq};
use crate::time::{Span, Time};
use smallvec::SmallVec;

/// Acknowledgements of several children, which are identified by keys of type `K`.
#[derive(Debug, Clone)]
pub(crate) struct Fusion<K> {
    /// Children, sorted by key.
    children: SmallVec<[Child<K>; 1]>,
    least: u64,
    /// Number of children that have acknowledged exactly `least`.
    at_least: usize,
}

#[derive(Debug, Clone, Copy)]
struct Child<K> {
    key: K,
    /// Number below which the child has all packets.
    acked: u64,
    received_at: Time,
}

impl<K: Copy + Ord> Fusion<K> {
    pub(crate) fn new() -> Fusion<K> {
        Fusion { children: SmallVec::new(), least: 0, at_least: 0 }
    }

    /// Returns the number below which all children have all packets; `None` without children.
    pub(crate) fn least(&self) -> Option<u64> {
        (!self.children.is_empty()).then_some(self.least)
    }

    pub(crate) fn len(&self) -> usize {
        self.children.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    pub(crate) fn knows(&self, key: K) -> bool {
        self.place(key).is_ok()
    }

    /// Returns the number below which this child has all packets; `None` for an unknown child.
    pub(crate) fn acked(&self, key: K) -> Option<u64> {
        self.place(key).ok().map(|place| self.children[place].acked)
    }

    /// Returns the key of one child; `None` without children.
    pub(crate) fn any(&self) -> Option<K> {
        self.children.first().map(|child| child.key)
    }

    fn place(&self, key: K) -> Result<usize, usize> {
        self.children.binary_search_by(|child| child.key.cmp(&key))
    }

    /// Records that a child has all packets below `acked`. A number smaller than an earlier one is from a late acknowledgement
    /// and is ignored.
    pub(crate) fn on_ack(&mut self, key: K, acked: u64, now: Time) {
        match self.place(key) {
            Ok(place) => {
                let child = &mut self.children[place];
                child.received_at = now;
                if acked <= child.acked {
                    return;
                }
                let was = std::mem::replace(&mut child.acked, acked);
                if was == self.least {
                    self.at_least -= 1;
                    if self.at_least == 0 {
                        self.look();
                    }
                }
            }
            Err(place) => {
                self.children.insert(place, Child { key, acked, received_at: now });
                if self.children.len() == 1 || acked < self.least {
                    (self.least, self.at_least) = (acked, 1);
                } else if acked == self.least {
                    self.at_least += 1;
                }
            }
        }
    }

    /// Records that a child has all packets below `acked`, even if the child has acknowledged more packets before.
    pub(crate) fn set(&mut self, key: K, acked: u64, now: Time) {
        match self.place(key) {
            Ok(place) if acked < self.children[place].acked => {
                self.children[place].acked = acked;
                self.children[place].received_at = now;
                self.look();
            }
            _ => self.on_ack(key, acked, now),
        }
    }

    /// Removes a child, so that only the progress of the remaining children counts.
    pub(crate) fn leave(&mut self, key: K) {
        if let Ok(place) = self.place(key) {
            self.children.remove(place);
            self.look();
        }
    }

    /// Removes children that were silent since `before`. Returns whether any child was removed.
    pub(crate) fn expire(&mut self, before: Time) -> bool {
        let count = self.children.len();
        self.children.retain(|child| child.received_at >= before);
        let is_less = self.children.len() < count;
        if is_less {
            self.look();
        }
        is_less
    }

    /// Removes the child with the longest silence.
    pub(crate) fn forget_oldest(&mut self) {
        if let Some(oldest) =
            self.children.iter().min_by_key(|child| child.received_at).map(|child| child.key)
        {
            self.leave(oldest);
        }
    }

    fn look(&mut self) {
        self.least = self.children.iter().map(|child| child.acked).min().unwrap_or(0);
        self.at_least = self.children.iter().filter(|child| child.acked == self.least).count();
    }
}

/// Departure times of the latest packets to the children of a [`Fusion`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Departures([Time; 3]);

/// Time in which a child answers a packet.
const ANSWERED: Span = Span::from_secs(1);

impl Departures {
    /// Records the departure of a packet.
    pub(crate) fn note(&mut self, now: Time) {
        self.0.rotate_left(1);
        self.0[2] = now;
    }

    /// Returns whether the children have had time to answer the latest packet.
    pub(crate) fn is_answer_due(&self, now: Time) -> bool {
        now.since(self.0[2]) >= ANSWERED
    }

    /// Returns a time for [`Fusion::expire`] at `now`. A child is silent if it has sent nothing for `silence`, and has not answered
    /// the latest packet that it has had time to answer. A child that was sent nothing is not silent.
    pub(crate) fn silent_since(&self, silence: Span, now: Time) -> Time {
        let since = if now > Time::ZERO + silence { now - silence } else { Time::ZERO };
        let is_due = |left: &&Time| now.since(**left) >= ANSWERED;
        since.min(*self.0.iter().rev().find(is_due).unwrap_or(&self.0[0]))
    }
}

/// Returns an acknowledgement of exactly the packets below `acked`, which must be at least 1.
pub(crate) fn acknowledged(acked: u64, hold: Span) -> ReportContent {
    let echo = Echo { seq: Seq(acked.saturating_sub(1)), hold };
    ReportContent::Selective { echo, behind: 0, bitmap: u32::MAX, loss: 0.0 }
}

/// Returns the number below which an acknowledgement confirms all packets.
pub(crate) fn newest_of(content: &ReportContent) -> Option<u64> {
    match *content {
        ReportContent::Selective { echo, behind, .. } => {
            Some(echo.seq.0.saturating_add(1).saturating_sub(behind.into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    #[test]
    fn smallest_acknowledgement_of_all_children_counts() {
        let mut fusion = Fusion::new();
        assert_eq!(fusion.least(), None);
        fusion.on_ack('a', 10, at(1.0));
        fusion.on_ack('b', 7, at(1.0));
        fusion.on_ack('c', 7, at(1.0));
        assert_eq!(fusion.least(), Some(7));
        fusion.on_ack('b', 12, at(2.0));
        assert_eq!(fusion.least(), Some(7), "c has no more");
        fusion.on_ack('c', 5, at(2.0));
        assert_eq!(fusion.least(), Some(7), "a late acknowledgement takes nothing back");
        fusion.on_ack('c', 11, at(3.0));
        assert_eq!(fusion.least(), Some(10));
        fusion.set('b', 4, at(4.0));
        assert_eq!(fusion.least(), Some(4), "b stands for several, of which one has less");
    }

    #[test]
    fn departed_and_silent_children_do_not_delay_acknowledgements() {
        let mut fusion = Fusion::new();
        for (key, acked, received) in [('a', 10, 5.0), ('b', 3, 1.0), ('c', 8, 4.0)] {
            fusion.on_ack(key, acked, at(received));
        }
        assert!(!fusion.expire(at(1.0)));
        assert!(fusion.expire(at(2.0)));
        assert_eq!((fusion.least(), fusion.knows('b')), (Some(8), false));
        fusion.leave('c');
        assert_eq!((fusion.least(), fusion.len()), (Some(10), 1));
        fusion.forget_oldest();
        assert_eq!(fusion.least(), None);
    }

    #[test]
    fn child_that_was_sent_nothing_is_not_silent() {
        let (mut fusion, mut departures) = (Fusion::new(), Departures::default());
        let silence = Span::from_secs(3);
        fusion.on_ack('a', 10, at(1.0));
        assert!(!fusion.expire(departures.silent_since(silence, at(20.0))), "no packet has left");
        departures.note(at(19.5));
        assert!(!fusion.expire(departures.silent_since(silence, at(20.0))), "the answer may be on its way");
        assert!(fusion.expire(departures.silent_since(silence, at(20.6))));
        fusion.on_ack('b', 10, at(18.0));
        (0..5).for_each(|_| departures.note(at(20.0)));
        assert!(!fusion.expire(departures.silent_since(silence, at(20.9))), "too little time has passed");
        assert!(fusion.expire(departures.silent_since(silence, at(21.1))));
    }

    #[test]
    fn encoded_acknowledgements_decode_to_the_same_number() {
        assert_eq!(newest_of(&acknowledged(17, Span::ZERO)), Some(17));
        let echo = Echo { seq: Seq(20), hold: Span::ZERO };
        let behind = |behind| ReportContent::Selective { echo, behind, bitmap: 1, loss: 0.0 };
        assert_eq!(newest_of(&behind(4)), Some(17));
        assert_eq!(newest_of(&behind(u32::MAX)), Some(0), "a number that cannot be is none at all");
        assert_eq!(newest_of(&ReportContent::Alive { echo }), None);
    }
}
