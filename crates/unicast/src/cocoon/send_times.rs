//! Times of sending of unacknowledged packets.

use faircast_core::time::Time;
use std::collections::VecDeque;

/// Time of the latest transmission of each outstanding packet, for senders that do not store these times. Memory is allocated
/// only when the number of outstanding packets exceeds its previous maximum.
#[derive(Debug, Clone, Default)]
pub struct SendTimes {
    /// Number of the first outstanding packet.
    first: u64,
    times: VecDeque<Time>,
}

/// Maximum number of stored times. If more packets are outstanding, the times of the newest packets are not stored.
const MAX: usize = 1 << 16;

impl SendTimes {
    /// Records that packet `seq` is sent.
    pub fn on_sent(&mut self, seq: u64, now: Time) {
        if self.times.is_empty() {
            self.first = seq;
        }
        let Some(at) = seq.checked_sub(self.first) else { return };
        if let Some(time) = self.times.get_mut(at as usize) {
            *time = now;
        } else if at == self.times.len() as u64 && self.times.len() < MAX {
            self.times.push_back(now);
        }
    }

    /// Records that all packets before `una` are acknowledged.
    pub fn on_acknowledged(&mut self, una: u64) {
        while self.first < una && self.times.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Returns the time of the latest transmission of the first outstanding packet; [`Time::NEVER`] if no packet is outstanding.
    pub fn of_first(&self) -> Time {
        self.times.front().copied().unwrap_or(Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_the_first_packet_is_its_latest_transmission() {
        let mut it = SendTimes::default();
        assert_eq!(it.of_first(), Time::NEVER);
        let at = Time::from_nanos;
        (5..9).for_each(|seq| it.on_sent(seq, at(seq * 10)));
        it.on_sent(5, at(100));
        assert_eq!(it.of_first(), at(100));
        it.on_acknowledged(7);
        assert_eq!(it.of_first(), at(70));
        it.on_sent(3, at(200));
        assert_eq!(it.of_first(), at(70));
        it.on_acknowledged(50);
        assert_eq!(it.of_first(), Time::NEVER);
        it.on_sent(60, at(600));
        assert_eq!(it.of_first(), at(600));
    }
}
