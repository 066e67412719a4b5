//! The window, its tokens, and the packets in flight (draft, 3.3 and 3.5).
//!
//! Invariant: tokens and packets in flight add up to the window.

use super::config::{Config, Tokens};
use crate::packet::{ReceiverId, Seq};
use crate::rate::Losses;

/// Window "W", tokens "T" and the packets without an acknowledgement.
#[derive(Debug, Clone)]
pub(in crate::schemes) struct CongestionWindow {
    size: f64,
    tokens: f64,
    /// Window in packets below which growth is exponential.
    threshold: f64,
    lost_tokens: Tokens,
    losses: Losses,
    /// The window is not halved again until a packet above this number is acknowledged.
    suspended_to: Option<u64>,
    /// Packets `next - slots.len() .. next`, indexed by number modulo length. The length doubles if more packets are in flight.
    slots: Box<[Slot]>,
    /// No packet below this number is in flight.
    oldest: u64,
    next: u64,
    in_flight: u64,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    in_flight: bool,
    /// The receiver whose acknowledgement the packet requested.
    acker: Option<ReceiverId>,
}

/// Whether acknowledgements may open the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schemes) enum WindowGrowth {
    /// Acknowledgements open the window.
    Open,
    /// The window stays constant, because the application does not use it or the rate is at its limit.
    Hold,
}

/// The effect of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::schemes) struct AckOutcome {
    /// Number of packets acknowledged for the first time.
    pub(in crate::schemes) acknowledged: u32,
    /// Number of packets declared lost.
    pub(in crate::schemes) lost: u32,
    /// Whether the window was halved.
    pub(in crate::schemes) cut: bool,
}

const FEWEST: usize = 64;
const MAX: usize = 1 << 20;
/// Number of later arrivals after which a missing packet counts as lost.
const LATER: u32 = 3;
/// Number of bits in an acknowledgement's bitmap.
const BITS: u64 = 32;

impl CongestionWindow {
    /// Creates a window of one packet, with its token.
    pub(in crate::schemes) fn new(config: &Config, threshold: f64) -> CongestionWindow {
        CongestionWindow {
            size: 1.0,
            tokens: 1.0,
            threshold,
            lost_tokens: config.tokens,
            losses: config.sending.losses,
            suspended_to: None,
            slots: vec![Slot { in_flight: false, acker: None }; FEWEST].into_boxed_slice(),
            oldest: 0,
            next: 0,
            in_flight: 0,
        }
    }

    /// Returns the size in packets.
    pub(in crate::schemes) const fn size(&self) -> f64 {
        self.size
    }

    /// Returns whether there is a token for another packet.
    pub(in crate::schemes) fn has_token(&self) -> bool {
        self.tokens >= 1.0
    }

    pub(in crate::schemes) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Sets the window up to which growth is exponential.
    pub(in crate::schemes) const fn set_threshold(&mut self, threshold: f64) {
        self.threshold = threshold;
    }

    /// Records a sent packet that requests an acknowledgement from `acker`.
    pub(in crate::schemes) fn depart(&mut self, acker: Option<ReceiverId>) {
        if self.next - self.oldest == self.slots.len() as u64 {
            if self.slots.len() < MAX { self.grow() } else { self.credit_oldest() }
        }
        let place = self.place(self.next);
        self.slots[place] = Slot { in_flight: true, acker };
        self.next += 1;
        self.in_flight += 1;
        self.tokens -= 1.0;
    }

    #[cold]
    fn grow(&mut self) {
        let longer = self.slots.len() * 2;
        let mut slots = vec![Slot { in_flight: false, acker: None }; longer].into_boxed_slice();
        for seq in self.oldest..self.next {
            slots[seq as usize & (longer - 1)] = self.slots[self.place(seq)];
        }
        self.slots = slots;
    }

    const fn place(&self, seq: u64) -> usize {
        seq as usize & (self.slots.len() - 1)
    }

    /// Returns the receiver whose acknowledgement packet `seq` requested; `None` for packets that are not stored.
    pub(in crate::schemes) fn designated(&self, seq: Seq) -> Option<ReceiverId> {
        let known = seq.0 < self.next && self.next - seq.0 <= self.slots.len() as u64;
        if known { self.slots[self.place(seq.0)].acker } else { None }
    }

    /// Removes a packet from the packets in flight. Returns whether it was in flight.
    fn land(&mut self, seq: u64) -> bool {
        let place = self.place(seq);
        let news = seq >= self.oldest && std::mem::replace(&mut self.slots[place].in_flight, false);
        self.in_flight -= u64::from(news);
        news
    }

    /// Processes an acknowledgement: `from` has received `newest`, and each packet `newest - k` for which bit k of the bitmap is
    /// set.
    pub(in crate::schemes) fn acknowledge(
        &mut self,
        from: ReceiverId,
        newest: Seq,
        bitmap: u32,
        growth: WindowGrowth,
    ) -> AckOutcome {
        let newest = newest.0;
        if newest >= self.next {
            return AckOutcome::default();
        }
        let bitmap = bitmap | 1;
        let (mut acknowledged, mut lost) = (0, 0);
        for back in (0..BITS).take_while(|back| *back <= newest) {
            let seq = newest - back;
            if seq < self.oldest {
                break;
            }
            let earlier_bits = bitmap & ((1u64 << back) - 1) as u32;
            if bitmap >> back & 1 == 1 {
                acknowledged += u32::from(self.land(seq));
            } else if earlier_bits.count_ones() >= LATER && self.designated(Seq(seq)) == Some(from) {
                lost += u32::from(self.land(seq));
            }
        }
        lost += self.settle_before((newest + 1).saturating_sub(BITS), from);
        if self.lost_tokens == Tokens::Returned {
            self.tokens += f64::from(lost);
        }
        let suspended = self.suspended_to.is_some_and(|last| newest <= last);
        let cut = lost > 0 && !suspended;
        if cut {
            self.halve();
        }
        self.tokens += f64::from(acknowledged);
        if !cut && !suspended && lost == 0 && growth == WindowGrowth::Open {
            self.open_by(f64::from(acknowledged));
        }
        AckOutcome { acknowledged, lost, cut }
    }

    /// Removes the packets in flight below `seq`, because no bitmap covers them. Packets that `from` should have acknowledged are
    /// lost, unless `from` excuses losses: then the bitmaps have the losses that count. It is unknown whether the other packets
    /// have arrived, and their tokens are returned.
    fn settle_before(&mut self, seq: u64, from: ReceiverId) -> u32 {
        let mut lost = 0;
        while self.oldest < self.next {
            let slot = self.slots[self.place(self.oldest)];
            if slot.in_flight {
                if self.oldest >= seq {
                    break;
                }
                self.land(self.oldest);
                let counts = slot.acker == Some(from) && self.losses == Losses::All;
                if counts { lost += 1 } else { self.tokens += 1.0 }
            }
            self.oldest += 1;
        }
        lost
    }

    /// Responds to a mark on packet `seq`, which indicates congestion without a loss. Returns whether the window was halved.
    pub(in crate::schemes) fn on_mark(&mut self, seq: Seq) -> bool {
        let cut = self.suspended_to.is_none_or(|last| seq.0 > last);
        if cut {
            self.halve();
        }
        cut
    }

    // The draft removes tokens for half the window even if the window is below two packets. Such a window shrinks only to one
    // packet, so tokens would be lost. Here the number of tokens falls by the same amount as the window.
    fn halve(&mut self) {
        self.shrink_to((self.size / 2.0).max(1.0));
        self.suspended_to = self.next.checked_sub(1);
    }

    /// Shrinks the window and removes the same number of tokens.
    pub(in crate::schemes) fn shrink_to(&mut self, size: f64) {
        if size < self.size {
            self.tokens -= self.size - size;
            self.size = size;
        }
    }

    fn open_by(&mut self, acknowledged: f64) {
        let mut rest = acknowledged;
        let mut grow = 0.0;
        if self.size < self.threshold {
            let exponential = rest.min(self.threshold - self.size);
            grow += exponential;
            rest -= exponential;
        }
        grow += rest / (self.size + grow);
        let grow = grow.min((MAX as f64 - self.size).max(0.0));
        self.size += grow;
        self.tokens += grow;
    }

    /// Restarts with one packet after a timeout without acknowledgements. Packets in flight are removed.
    pub(in crate::schemes) fn restart(&mut self) {
        for seq in self.oldest..self.next {
            let place = self.place(seq);
            self.slots[place].in_flight = false;
        }
        (self.oldest, self.in_flight) = (self.next, 0);
        (self.size, self.tokens) = (1.0, 1.0);
        self.suspended_to = None;
    }

    /// Restores the tokens of packets without an acker, which will not be acknowledged.
    // The draft restores one token. Here the token of each such packet is restored, so the sum of tokens and packets in flight
    // stays equal to the window.
    pub(in crate::schemes) fn credit_unasked(&mut self) {
        for seq in self.oldest..self.next {
            if self.slots[self.place(seq)].acker.is_none() && self.land(seq) {
                self.tokens += 1.0;
            }
        }
    }

    /// Removes the oldest packet in flight and restores its token, so that a packet which must not wait can be sent.
    pub(in crate::schemes) fn credit_oldest(&mut self) {
        while self.oldest < self.next {
            let news = self.land(self.oldest);
            self.oldest += 1;
            if news {
                self.tokens += 1.0;
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const A: ReceiverId = ReceiverId::new(1).expect("not zero");
    const B: ReceiverId = ReceiverId::new(2).expect("not zero");

    fn window(threshold: f64) -> CongestionWindow {
        CongestionWindow::new(&Config::published(), threshold)
    }

    /// Creates a window with `size` packets in flight. All of them request an acknowledgement from receiver A.
    fn flying(size: u32) -> CongestionWindow {
        let mut window = window(4.0);
        (window.size, window.tokens) = (f64::from(size), f64::from(size));
        (0..size).for_each(|_| window.depart(Some(A)));
        window
    }

    fn balance(window: &CongestionWindow) -> f64 {
        window.tokens + window.in_flight as f64 - window.size
    }

    #[test]
    fn three_acknowledgements_open_the_window_from_one_to_four() {
        let mut window = window(4.0);
        for (seq, size) in [2.0, 3.0, 4.0].into_iter().enumerate() {
            window.depart(Some(A));
            window.acknowledge(A, Seq(seq as u64), 1, WindowGrowth::Open);
            assert_eq!(window.size, size);
        }
        assert_eq!(window.tokens, 4.0);
    }

    #[test]
    fn above_the_threshold_the_window_grows_by_a_packet_per_rtt() {
        let mut window = window(4.0);
        (window.size, window.tokens) = (10.0, 10.0);
        let mut acknowledged = 0;
        for round in 1..=20 {
            while window.has_token() {
                window.depart(Some(A));
            }
            for seq in acknowledged..window.next {
                window.acknowledge(A, Seq(seq), u32::MAX, WindowGrowth::Open);
            }
            acknowledged = window.next;
            assert!((window.size - (10.0 + f64::from(round))).abs() < 1.0, "{} in {round}", window.size);
        }
    }

    #[test]
    fn unused_window_does_not_grow() {
        let mut window = flying(10);
        window.acknowledge(A, Seq(0), 1, WindowGrowth::Hold);
        assert_eq!((window.size, window.tokens), (10.0, 1.0));
    }

    #[test]
    fn ten_losses_within_a_round_trip_halve_the_window_once() {
        let mut window = flying(40);
        let mut cuts = 0;
        for newest in 0..40u64 {
            if newest % 4 == 1 {
                continue; // this one is lost
            }
            let bitmap = (0..32).filter(|back| newest >= *back && (newest - back) % 4 != 1);
            let bitmap = bitmap.fold(0, |map, back| map | 1 << back);
            cuts += u32::from(window.acknowledge(A, Seq(newest), bitmap, WindowGrowth::Open).cut);
        }
        assert_eq!(cuts, 1);
        assert!((20.0..21.5).contains(&window.size), "{}", window.size);
        assert!(balance(&window).abs() < 1e-9);
    }

    #[test]
    fn packet_is_lost_after_three_later_packets_but_not_after_two() {
        let mut window = flying(10);
        assert_eq!(window.acknowledge(A, Seq(1), 0b01, WindowGrowth::Open).lost, 0);
        assert_eq!(window.acknowledge(A, Seq(2), 0b011, WindowGrowth::Open).lost, 0);
        let outcome = window.acknowledge(A, Seq(3), 0b0111, WindowGrowth::Open);
        assert_eq!(outcome, AckOutcome { acknowledged: 1, lost: 1, cut: true });
    }

    #[test]
    fn no_token_is_available_for_half_a_window_of_acks_after_a_cut() {
        let mut window = flying(16);
        window.acknowledge(A, Seq(3), 0b0111, WindowGrowth::Open);
        assert_eq!((window.size, window.tokens), (8.0, -4.0), "three came, one is lost");
        for seq in 4..8 {
            assert!(!window.has_token());
            window.acknowledge(A, Seq(seq), 1, WindowGrowth::Open);
        }
        assert!(!window.has_token());
        window.acknowledge(A, Seq(8), 1, WindowGrowth::Open);
        assert!(window.has_token());
        assert_eq!(window.size, 8.0, "suspended");
    }

    #[test]
    fn literal_draft_rule_returns_no_tokens_for_lost_packets() {
        let mut window = flying(16);
        window.lost_tokens = Tokens::Kept;
        window.acknowledge(A, Seq(3), 0b0111, WindowGrowth::Open);
        assert_eq!((window.size, window.tokens), (8.0, -5.0));
    }

    #[test]
    fn packets_in_flight_to_another_acker_do_not_count_as_lost() {
        let mut window = flying(5);
        window.size += 10.0;
        window.tokens += 10.0;
        (0..10).for_each(|_| window.depart(Some(B)));
        let outcome = window.acknowledge(B, Seq(9), 0b11111, WindowGrowth::Hold);
        assert_eq!(outcome, AckOutcome { acknowledged: 5, lost: 0, cut: false });
        let outcome = window.acknowledge(A, Seq(4), 0b11111, WindowGrowth::Hold);
        assert_eq!(outcome, AckOutcome { acknowledged: 5, lost: 0, cut: false });
    }

    #[test]
    fn only_packets_of_the_same_acker_are_lost_below_the_bitmap() {
        for (asked, outcome) in [
            (A, AckOutcome { acknowledged: 1, lost: 2, cut: true }),
            (B, AckOutcome { acknowledged: 1, lost: 0, cut: false }),
        ] {
            let mut window = flying(40);
            for seq in 0..2 {
                window.slots[seq].acker = Some(asked);
            }
            assert_eq!(window.acknowledge(A, Seq(33), 1, WindowGrowth::Hold), outcome);
            assert!(balance(&window).abs() < 1e-9);
        }
    }

    #[test]
    fn an_acknowledgement_of_an_unsent_packet_is_ignored() {
        let mut window = flying(3);
        assert_eq!(window.acknowledge(A, Seq(3), u32::MAX, WindowGrowth::Open), AckOutcome::default());
    }

    #[test]
    fn tokens_and_packets_in_flight_always_add_up_to_the_window() {
        let (mut window, mut rng) = (window(4.0), Rng::new(6, 6));
        for step in 0..200_000 {
            match rng.below(100) {
                0..45 if window.has_token() => window.depart([None, Some(A), Some(B)][rng.below(3) as usize]),
                0..90 if window.next > 0 => {
                    let newest = Seq(window.next - 1 - rng.below(40).min(window.next - 1));
                    let from = if rng.chance(0.5) { A } else { B };
                    let bitmap = (rng.bits() | rng.bits() | rng.bits()) as u32;
                    window.acknowledge(from, newest, bitmap, WindowGrowth::Open);
                }
                90..93 => window.credit_unasked(),
                93..95 => window.credit_oldest(),
                95 => window.shrink_to(4.0),
                96 if window.next > 0 => drop(window.on_mark(Seq(window.next - 1))),
                97 if rng.chance(0.1) => window.restart(),
                _ => {}
            }
            assert!(balance(&window).abs() < 1e-6, "step {step}: {window:?}");
            assert!(window.size >= 1.0 && window.tokens <= window.size + 1e-6);
        }
    }

    #[test]
    fn thousands_of_packets_may_be_in_flight() {
        let mut window = flying(5000);
        let acknowledged =
            (0..5000).map(|seq| window.acknowledge(A, Seq(seq), 1, WindowGrowth::Hold).acknowledged);
        assert_eq!(acknowledged.sum::<u32>(), 5000);
        assert_eq!((window.in_flight, window.tokens), (0, 5000.0));
    }
}
