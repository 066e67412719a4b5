//! Plausibility of the source's packet numbers: an upper bound from its statuses, and recovery from a forged number.
//!
//! A data packet can be forged by every holder of the group's key. In an open session, every host that spoofs the source's
//! address can forge one. A forged packet number would make a receiver respond to packets that have not been sent, and treat
//! genuine packets as late duplicates. So packet numbers are bounded by the number of the next packet, which each status states.
//! A packet number that contradicts a later status is discarded, with all values derived from it.

use super::{BASE, Phase, ReceiverSession};
use crate::announced::scheme_of;
use crate::event::Event;
use crate::membership::NOTHING_YET;
use faircast_core::node::Effect;
use faircast_core::packet::{Echo, Layer, Seq};
use faircast_core::time::{Span, Time};
use faircast_wire::{Header, Kind, Status};

/// Number by which a packet number may exceed the number in the latest status, whatever the pace: a burst may overtake the status
/// that covers it.
const SLACK: u64 = 64;

/// Maximum growth factor of the pace since the last status. A starting source doubles its rate in each round trip, and statuses
/// are two round trips apart.
const FASTER: f64 = 4.0;

/// Number of sent packets for which each received packet accounts, since the latest status: half of the packets may be lost.
const EXPLAINED: u64 = 2;

/// Half-life of the measured pace.
const HALF_LIFE: Span = Span::from_secs(1);

/// Minimum interval between two statuses from which the pace is measured. The source sends statuses at longer intervals, so a
/// shorter interval results from delays on the path.
const MIN_INTERVAL: Span = Span::from_millis(2);

/// Maximum time by which a status and data may overtake each other.
const REORDERED: Span = Span::from_millis(10);

/// Maximum age of the last status for which a lower packet number counts as a late status. An active source sends statuses more
/// often.
const LATE: Span = Span::from_millis(400);

/// The packet numbers of one layer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SequenceBounds {
    /// The next packet number according to the last status, and the arrival time of this status.
    reported: Option<(u64, Time)>,
    /// Number of packets per second, measured between statuses.
    pace: f64,
    /// Number of packets that have arrived since the status in `reported`, and have the number in that status or a higher number.
    since: u64,
    newest: Option<(Seq, Time)>,
    /// The newest packet that was consistent with a status.
    confirmed: Option<(Seq, Time)>,
}

impl SequenceBounds {
    /// Whether the source can have sent a packet with this packet number, which arrived at this time.
    pub(super) fn allows(&self, wire: u32, arrived: Time) -> bool {
        let Some((next, at)) = self.reported else { return true };
        let ahead = Seq::unwrap(Seq(next), wire).0.saturating_sub(next);
        let explained = SLACK + self.since * EXPLAINED;
        ahead < explained || ahead - explained < (self.pace * FASTER * arrived.since(at).as_secs_f64()) as u64
    }

    /// Records an authentic packet.
    pub(super) fn on_packet(&mut self, seq: Seq, arrived: Time) {
        self.since += u64::from(self.reported.is_some_and(|(next, _)| seq.0 >= next));
        if self.newest.is_none_or(|(newest, _)| seq > newest) {
            self.newest = Some((seq, arrived));
        }
    }

    /// Records the number of the next packet, as the source states it. Returns whether a packet beyond that number had arrived;
    /// such a number is discarded.
    pub(super) fn on_stated(&mut self, next: u64, arrived: Time) -> bool {
        let known = self.reported;
        if known.is_some_and(|(known, at)| next < known && arrived.since(at) < LATE) {
            return false;
        }
        let is_ahead = |&(seq, at): &(Seq, Time)| seq.0 >= next && arrived.since(at) >= REORDERED;
        let is_forged = self.newest.as_ref().is_some_and(is_ahead);
        if is_forged {
            self.newest = self.confirmed.filter(|(seq, _)| seq.0 < next);
        } else if self.newest.is_some_and(|(seq, _)| seq.0 < next) {
            self.confirmed = self.newest;
        }
        if let Some((before, at)) = known {
            let passed = arrived.since(at);
            let pace = next.saturating_sub(before) as f64 / passed.max(MIN_INTERVAL).as_secs_f64();
            let halves = passed.as_secs_f64() / HALF_LIFE.as_secs_f64();
            self.pace = pace.max(self.pace * 0.5_f64.powf(halves));
        }
        (self.reported, self.since) = (Some((next, arrived)), 0);
        is_forged
    }

    /// Returns the newest packet and its arrival time.
    pub(super) const fn newest(&self) -> Option<(Seq, Time)> {
        self.newest
    }
}

impl ReceiverSession {
    /// Whether this is a data packet of the followed session with a number that the source cannot have reached yet.
    pub(super) fn is_implausible(&self, header: &Header, arrived: Time) -> bool {
        let Some(stream) = &self.stream else { return false };
        let is_data = header.kind == Kind::Data && header.session == stream.session;
        is_data && !stream.layers.allows(header.layer, header.seq, arrived)
    }

    /// Compares the received packet numbers of each layer with the source's status, and discards numbers beyond it.
    pub(super) fn check_numbers(&mut self, status: &Status, arrived: Time, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        let forged = stream.layers.on_stated(status.next_seq, &status.upper_seqs, arrived);
        for &(layer, next) in &forged {
            self.go_back(layer, next);
        }
        if !forged.is_empty() {
            self.restart_scheme(now);
        }
    }

    /// Discards the packet numbers of a layer from `next` on.
    fn go_back(&mut self, layer: Layer, next: u64) {
        let Some(stream) = &mut self.stream else { return };
        self.codec.go_back(stream.source, layer, next);
        if layer == BASE {
            let newest = stream.layers.newest();
            stream.newest = Echo { seq: newest.map_or(NOTHING_YET.seq, |(seq, _)| seq), hold: Span::ZERO };
            stream.newest_at = newest.map_or(stream.newest_at, |(_, at)| at);
            stream.window.go_back(next);
            stream.reach.go_back(next);
        }
        if !std::mem::replace(&mut stream.forgery_reported, true) {
            self.events.push_back(Event::warning(
                "packets arrived with numbers that the source has not reached: another host forges packets of this source; the forged packets are ignored",
            ));
        }
    }

    /// Restarts the congestion control, which has processed forged numbers, in the state of a receiver that has just joined.
    fn restart_scheme(&mut self, now: Time) {
        if self.phase != Phase::Receiving {
            return;
        }
        let Some(scheme) = self.stream.as_ref().and_then(|stream| scheme_of(&stream.announced)) else {
            return;
        };
        self.leave_layers(now);
        let Some(stream) = &mut self.stream else { return };
        stream.receiver = self.setup.control(&scheme);
        self.effects.push(Effect::Subscribe(BASE));
        self.carry_out(Span::ZERO, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Returns the bounds at time `until`, after a thousand packets a second and a status every 20 ms.
    fn steady(until: u64) -> SequenceBounds {
        let mut numbers = SequenceBounds::default();
        for millis in 0..until {
            assert!(numbers.allows(millis as u32, at(millis)), "{millis}");
            numbers.on_packet(Seq(millis), at(millis));
            if millis % 20 == 0 {
                assert!(!numbers.on_stated(millis + 1, at(millis)), "{millis}");
            }
        }
        numbers
    }

    #[test]
    fn packet_numbers_far_beyond_the_last_status_are_refused() {
        let numbers = steady(1_000);
        for jump in [5_000, 1 << 20, (1 << 31) - 1, 1 << 31] {
            assert!(!numbers.allows(1_000_u32.wrapping_add(jump), at(1_000)), "{jump}");
        }
        assert!(numbers.allows(0, at(1_000)), "late packets");
    }

    #[test]
    fn packet_numbers_after_an_outage_are_bounded_by_earlier_rate() {
        let numbers = steady(1_000);
        assert!(numbers.allows(11_000, at(11_000)), "ten seconds later");
        assert!(!numbers.allows(45_000, at(11_000)));
    }

    #[test]
    fn packet_numbers_of_a_fast_source_with_losses_are_allowed() {
        let mut numbers = SequenceBounds::default();
        numbers.on_stated(100, at(0));
        for seq in (100..10_000).step_by(2) {
            assert!(numbers.allows(seq, at(0)), "{seq}");
            numbers.on_packet(Seq(seq.into()), at(0));
        }
    }

    #[test]
    fn later_status_discards_a_higher_packet_number() {
        let mut numbers = steady(1_000);
        assert!(numbers.allows(1_050, at(1_000)));
        numbers.on_packet(Seq(1_050), at(1_000));
        assert!(!numbers.on_stated(1_001, at(1_001)), "it may have been overtaken");
        assert!(numbers.on_stated(1_010, at(1_020)));
        assert_eq!(numbers.newest(), Some((Seq(980), at(980))), "that is known to be true");
        assert!(!numbers.on_stated(1_030, at(1_040)), "once");
    }

    #[test]
    fn lower_packet_number_in_a_status_counts_only_after_a_pause() {
        let mut numbers = steady(1_000);
        assert!(!numbers.on_stated(900, at(1_060)));
        assert_eq!(numbers.newest(), Some((Seq(999), at(999))));
        assert!(numbers.on_stated(900, at(1_600)), "nothing else for so long: the status before was forged");
    }
}
