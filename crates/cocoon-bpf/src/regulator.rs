//! The window of the virtual connection, which consists of all UDP flows of a group (paper 002, 4.5).

use crate::layout::Group;
use std::time::Duration;

/// Assumed round-trip time before the group has a measurement.
// Paper gap: a round trip to send by when no TCP of the group was ever measured is not given; 200 ms.
pub const DEFAULT_RTT: Duration = Duration::from_millis(200);

/// Window of the virtual connection if the group has no TCP, in packets per UDP flow.
// Paper gap: the virtual connection's default window is not given; two packets for each UDP flow.
pub const DEFAULT_WINDOW: f64 = 2.0;

/// Packet size by which windows in packets are converted to bytes.
const PACKET: f64 = 1460.0;

/// The acknowledged bytes of TCP flows that open the window of the virtual connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opening {
    /// The fair share: for each UDP flow, the mean number of acknowledged bytes of a TCP flow.
    // Paper gap: 4.5, rule 2, takes all that is acknowledged to any TCP off the virtual flight. One UDP flow then gets as much as
    // all TCPs together. Here it gets only its share.
    #[default]
    Share,
    /// All acknowledged bytes, as in rule 2.
    All,
}

/// Limits the sending of UDP packets. All times are durations since one fixed moment.
#[derive(Debug, Clone)]
pub struct Regulator {
    opening: Opening,
    window: f64,
    flight: f64,
    acked: Option<u64>,
    frozen: bool,
    /// Time up to which rule 5 has reduced the bytes in flight; `None` while TCP flows receive acknowledgements.
    idle_since: Option<Duration>,
    rtt: Duration,
    at: Duration,
}

impl Default for Regulator {
    fn default() -> Self {
        Self {
            opening: Opening::default(),
            window: 0.0,
            flight: 0.0,
            acked: None,
            frozen: false,
            idle_since: None,
            rtt: DEFAULT_RTT,
            at: Duration::ZERO,
        }
    }
}

impl Regulator {
    /// Returns a regulator whose window opens by `opening`.
    #[must_use]
    pub fn new(opening: Opening) -> Self {
        Self { opening, ..Self::default() }
    }

    /// Processes the state of the group at `now`, for `flows` UDP flows. If `group` is `None`, the group does not exist.
    pub fn observe(&mut self, now: Duration, flows: usize, group: Option<&Group>) {
        self.at = now.max(self.at);
        let flows = flows.max(1) as f64;
        let mean = group.and_then(Group::mean_cwnd);
        match mean {
            Some(mean) => self.window = mean * flows * PACKET, // rule 1
            None if self.acked.is_none() => self.window = DEFAULT_WINDOW * flows * PACKET,
            None => {} // rule 5: the window is unchanged
        }
        if let Some(group) = group {
            if group.srtt_us != 0 {
                self.rtt = Duration::from_micros(group.srtt_us.into());
            }
            let new = group.acked.saturating_sub(self.acked.unwrap_or(group.acked));
            self.acked = Some(group.acked);
            let part = match self.opening {
                Opening::All => 1.0,
                Opening::Share => flows / group.slots.iter().filter(|slot| slot.active).count().max(1) as f64,
            };
            self.flight = (self.flight - new as f64 * part).max(0.0); // rule 2
        }
        self.frozen = group.is_some_and(|group| group.frozen > 0); // rule 4
        match group.is_some_and(|group| group.slots.iter().any(|slot| slot.active)) {
            true => self.idle_since = None,
            false => self.drain_by_rate(), // rule 5
        }
    }

    /// Rule 5: without acknowledgements, the bytes in flight fall by one window per round-trip time.
    fn drain_by_rate(&mut self) {
        let since = *self.idle_since.get_or_insert(self.at);
        let passed = (self.at - since).as_secs_f64() / self.rtt.as_secs_f64();
        self.flight = (self.flight - passed * self.window).max(0.0);
        self.idle_since = Some(self.at);
    }

    /// Returns whether a packet may be sent (rules 2 to 4).
    #[must_use]
    pub fn may_send(&self) -> bool {
        !self.frozen && self.flight <= self.window
    }

    /// Records a sent packet of this size.
    pub fn sent(&mut self, bytes: usize) {
        self.flight += bytes as f64;
    }

    /// Returns the window of the virtual connection, bytes.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Returns the bytes in flight.
    #[must_use]
    pub fn flight(&self) -> f64 {
        self.flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Slot;

    fn group(windows: &[u32], acked: u64, frozen: u32, active: bool) -> Group {
        let slots = windows.iter().zip(1..).map(|(cwnd, id)| Slot { id, cwnd: *cwnd, ssthresh: 9, active });
        Group {
            members: windows.len() as u32,
            born: 1,
            last: 1,
            cut_gen: 0,
            srtt_us: 50_000,
            rttvar_us: 1_000,
            frozen,
            acked,
            losses: 0,
            timeouts: 0,
            ignored: 0,
            applied: 0,
            expired: 0,
            shared: 0,
            alone: 0,
            limited: 0,
            slots: slots.collect(),
        }
    }

    /// Sends packets of 1460 bytes while permitted and returns their number.
    fn burst(regulator: &mut Regulator) -> usize {
        let mut count = 0;
        while regulator.may_send() && count < 1000 {
            regulator.sent(1460);
            count += 1;
        }
        count
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn window_is_the_mean_tcp_window_times_the_number_of_flows() {
        let mut regulator = Regulator::default();
        regulator.observe(MS, 2, Some(&group(&[2, 6], 1000, 0, true)));
        assert_eq!(regulator.window(), 8.0 * 1460.0);
        // The regulator sends if the bytes in flight do not exceed the window, so one packet more than fits is sent.
        assert_eq!(burst(&mut regulator), 9);
        regulator.observe(MS * 2, 2, Some(&group(&[2, 6], 1000, 0, true)));
        assert_eq!(burst(&mut regulator), 0, "no acknowledgement, nothing leaves");
        regulator.observe(MS * 3, 2, Some(&group(&[2, 6], 1000 + 2 * 1460, 0, true)));
        assert_eq!(burst(&mut regulator), 2);
    }

    #[test]
    fn udp_window_opens_by_mean_or_sum_of_acknowledged_tcp_bytes() {
        for (opening, packets) in [(Opening::Share, 2), (Opening::All, 8)] {
            let mut regulator = Regulator::new(opening);
            regulator.observe(MS, 1, Some(&group(&[9, 9, 9, 9], 0, 0, true)));
            assert_eq!(burst(&mut regulator), 10);
            regulator.observe(MS * 2, 1, Some(&group(&[9, 9, 9, 9], 8 * 1460, 0, true)));
            assert_eq!(burst(&mut regulator), packets, "{opening:?}");
        }
    }

    #[test]
    fn cut_stops_sending_until_enough_bytes_are_acknowledged() {
        let mut regulator = Regulator::default();
        regulator.observe(MS, 1, Some(&group(&[8], 0, 0, true)));
        assert_eq!(burst(&mut regulator), 9);
        regulator.observe(MS * 2, 1, Some(&group(&[4], 4 * 1460, 0, true)));
        assert!(!regulator.may_send(), "5 outstanding of 4");
        regulator.observe(MS * 3, 1, Some(&group(&[4], 5 * 1460, 0, true)));
        assert!(regulator.may_send());
    }

    #[test]
    fn a_timeout_freezes_the_window_until_an_acknowledgement() {
        let mut regulator = Regulator::default();
        regulator.observe(MS, 1, Some(&group(&[8], 0, 1, true)));
        assert!(!regulator.may_send());
        regulator.observe(MS * 2, 1, Some(&group(&[8], 1, 0, true)));
        assert!(regulator.may_send());
    }

    #[test]
    fn udp_window_is_sent_once_per_round_trip_while_tcp_is_idle() {
        let mut regulator = Regulator::default();
        regulator.observe(MS, 1, Some(&group(&[10], 0, 0, true)));
        burst(&mut regulator);
        let mut left = 0;
        for round in 0..100 {
            regulator.observe(MS * (2 + 5 * round), 1, Some(&group(&[10], 0, 0, false)));
            left += burst(&mut regulator);
        }
        // 495 ms at 10 packets in 50 ms.
        assert!((98..=100).contains(&left), "{left}");
        // A group without members leaves the window unchanged.
        regulator.observe(MS * 1000, 1, Some(&group(&[], 0, 0, false)));
        assert_eq!(regulator.window(), 14_600.0);
    }

    #[test]
    fn default_window_is_sent_per_default_rtt_without_a_group() {
        let mut regulator = Regulator::default();
        let mut left = 0;
        for tenth in 0..=100 {
            regulator.observe(MS * (10 * tenth), 3, None);
            left += burst(&mut regulator);
        }
        // One packet more than the window of 6 is sent at first, then 6 packets in each of 5 round-trip times.
        assert!((36..=37).contains(&left), "{left}");
    }

    #[test]
    fn regulator_accepts_group_counters_that_restart_at_zero() {
        let mut regulator = Regulator::default();
        regulator.observe(MS, 1, Some(&group(&[4], 1_000_000, 0, true)));
        let left = burst(&mut regulator);
        regulator.observe(MS * 2, 1, Some(&group(&[4], 10, 0, true)));
        assert_eq!((left, burst(&mut regulator)), (5, 0));
        regulator.observe(MS * 3, 1, Some(&group(&[4], 10 + 1460, 0, true)));
        assert_eq!(burst(&mut regulator), 1);
    }
}
