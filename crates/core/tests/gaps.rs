//! Comparison of the gap detector with a plain list of missing packets.

use faircast_core::delivery::gaps::Gaps;
use faircast_core::packet::Seq;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Reference for the gap detector. A missing packet is lost after `tolerance` arrivals that raise the highest number; the first
/// of them is the arrival that reveals the gap. A missing packet that arrives earlier is not lost.
struct Plain {
    tolerance: u8,
    next: Option<u64>,
    missing: BTreeMap<u64, u8>,
    lost: u64,
}

impl Plain {
    /// Records an arrival. Returns whether the packet is late, and how many other packets are declared lost.
    fn on_arrival(&mut self, seq: u64) -> (bool, u32) {
        let Some(next) = self.next else {
            self.next = Some(seq + 1);
            return (false, 0);
        };
        if seq < next {
            self.missing.remove(&seq);
            return (true, 0);
        }
        self.missing.extend((next..seq).map(|missing| (missing, 0)));
        self.next = Some(seq + 1);
        self.missing.values_mut().for_each(|later| *later += 1);
        let before = self.missing.len();
        let tolerance = self.tolerance;
        self.missing.retain(|_, later| *later < tolerance);
        let lost = before - self.missing.len();
        self.lost += lost as u64;
        (false, lost as u32)
    }
}

/// Generates arrivals as distances from the newest packet; a distance may be negative.
fn arrivals() -> impl Strategy<Value = Vec<i64>> {
    proptest::collection::vec(prop_oneof![6 => 1..2_i64, 2 => 2..7_i64, 4 => -12..1_i64], 1..300)
}

proptest! {
    #[test]
    fn gap_detector_agrees_with_a_list_of_all_missing_packets(tolerance in 1..5_u8, steps in arrivals(), first in 0..1_000_u64) {
        let mut gaps = Gaps::new(tolerance);
        let mut plain = Plain { tolerance, next: None, missing: BTreeMap::new(), lost: 0 };
        for step in steps {
            // `next` is the number after the newest packet, so the arriving packet is `step` above `next - 1`.
            let seq = plain.next.map_or(first, |next| (next - 1).saturating_add_signed(step));
            let arrival = gaps.on_arrival(Seq(seq));
            prop_assert_eq!((arrival.late, arrival.lost), plain.on_arrival(seq), "packet {}", seq);
            prop_assert_eq!(gaps.is_waiting(), !plain.missing.is_empty());
            prop_assert_eq!((gaps.lost(), Some(gaps.next().0)), (plain.lost, plain.next));
        }
    }
}
