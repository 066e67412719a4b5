//! Receipts on their way to the source: a receiver's own, and at a relay those of the receivers below.
//!
//! A receiver that has everything sends its receipt in its turn and reports that it is done when that is answered, so the source waits for
//! a lost receipt as it waits for a receiver. The receipt is repeated as membership messages are. A relay stores receipts from below,
//! answers them, and forwards them in the same way. Until the parent answers, the relay counts their receivers as not done.

use super::{ReceiverSession, Stream};
use crate::event::Event;
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Span, Time};
use faircast_wire::{Message, Name, Receipt, Signed, SigningKey, Status};
use std::collections::VecDeque;

/// The greatest number of transmissions of a receipt. The last ones are a second apart, or the spread.
const TRIES: u32 = 12;

/// The shortest interval of receipts of one receiver or relay.
const APART: Span = Span::from_millis(5);

/// See [`Outgoing::pause`].
const MIN_PAUSE: Span = Span::from_millis(10);
const LATEST: Span = Span::from_secs(1);

/// The replies to questions and joins have these numbers, counted from the drawn one.
const OTHER_ANSWERS: u16 = 2;

/// Receipts that are not answered yet.
pub(super) struct Outgoing {
    /// The key that this receiver signs with.
    key: Option<SigningKey>,
    /// Whether the parent accepts receipts, by its last status.
    taken: bool,
    /// Pending receipts, the next to leave first.
    waiting: VecDeque<Pending>,
    /// The number of the latest receipt, counted from the drawn one.
    number: u16,
    /// When the next may leave.
    free_at: Time,
}

struct Pending {
    receipt: Receipt,
    tries: u32,
    at: Time,
}

impl Outgoing {
    pub(super) fn new(key: Option<SigningKey>) -> Outgoing {
        Outgoing { key, taken: false, waiting: VecDeque::new(), number: 0, free_at: Time::ZERO }
    }

    /// Sends this receipt at `at`; `drawn` is the number that this receiver has drawn.
    fn add(&mut self, receipt: Receipt, (from, drawn): (ReceiverId, u16), at: Time) {
        self.number = self.number.wrapping_add(1).clamp(1, u16::MAX - OTHER_ANSWERS);
        let nonce = drawn.wrapping_add(OTHER_ANSWERS - 1).wrapping_add(self.number);
        self.waiting.push_front(Pending { receipt: Receipt { from, nonce, ..receipt }, tries: 0, at });
    }

    /// Returns when the next one leaves.
    pub(super) fn deadline(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |first| first.at.max(self.free_at))
    }

    /// Returns the number of unanswered receipts.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the receipt that leaves now, if any; it is sent again after a pause as [`Outgoing::pause`] returns.
    fn next(&mut self, rtt: Span, spread: Span, now: Time) -> Option<Receipt> {
        if self.deadline() > now {
            return None;
        }
        let mut next = self.waiting.pop_front()?;
        let receipt = next.receipt;
        self.free_at = now + APART;
        next.at = now + Outgoing::pause(next.tries, rtt, spread);
        next.tries += 1;
        self.waiting.push_back(next);
        Some(receipt)
    }

    /// Returns the pause, as for membership messages: longer each time, and when there are many receivers.
    fn pause(tries: u32, rtt: Span, spread: Span) -> Span {
        let first = (spread + rtt * 2).max(MIN_PAUSE);
        (first * (1 << tries.min(7))).min(LATEST.max(spread))
    }

    /// This receipt was answered.
    fn on_answer(&mut self, nonce: u16) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|pending| pending.receipt.nonce != nonce);
        self.waiting.len() < before
    }

    /// Gives up those that were sent often enough and had time for an answer; returns how many.
    fn give_up(&mut self, now: Time) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|pending| pending.tries < TRIES || pending.at > now);
        before - self.waiting.len()
    }
}

impl ReceiverSession {
    /// Everything is verified and in its place: signs that.
    pub(super) fn sign_receipt(&mut self, root: [u8; 32], now: Time) {
        let (Some(stream), Some(key)) = (&self.stream, &self.receipts.key) else { return };
        if !self.receipts.taken {
            self.events.push_back(Event::warning(
                "the source, or a relay on the way to it, takes no receipts of this session: it is a live stream, or the program \
                 there is older"
                    .to_owned(),
            ));
            return;
        }
        let about = about(stream);
        let (host, unix_secs) =
            (Name::clipped(&self.setup.host), self.setup.unix_secs + now.as_nanos() / 1_000_000_000);
        let receipt = Receipt::sign(&about, root, (self.setup.id, host), unix_secs, key);
        // Receivers are often done at the same moment: each waits for its turn.
        let turn = stream.spread.scaled(self.rng.unit());
        self.receipts.add(receipt, (self.setup.id, self.setup.nonce), now + turn);
    }

    /// Sends due receipts, and at a relay takes over those from below.
    pub(super) fn send_receipts(&mut self, now: Time) {
        let Some(stream) = &self.stream else { return };
        if let Some(relay) = &self.setup.relay {
            let me = (self.setup.id, self.setup.nonce);
            relay.take_receipts().into_iter().for_each(|receipt| self.receipts.add(receipt, me, now));
        }
        let given_up = self.receipts.give_up(now);
        if let Some(receipt) = self.receipts.next(stream.rtt, stream.spread, now) {
            self.outbox.add(stream.session, Message::Receipt(receipt), now);
        }
        if given_up > 0 {
            self.events.push_back(Event::warning(match &self.setup.relay {
                None => "the receipt was not answered".to_owned(),
                Some(_) => format!("{given_up} receipts of receivers below were not answered"),
            }));
            self.on_receipts_fewer(now);
        }
    }

    /// Returns when receipts need attention.
    pub(super) fn receipts_at(&self) -> Time {
        let has_come = self.setup.relay.as_ref().is_some_and(|relay| relay.has_receipts());
        if has_come { Time::ZERO } else { self.receipts.deadline() }
    }

    /// The parent states whether it accepts receipts, and which it has.
    pub(super) fn on_receipts_status(&mut self, status: &Status, now: Time) {
        let taken = status.flags & Status::RECEIPTS != 0;
        self.receipts.taken = taken;
        if let Some(relay) = &self.setup.relay {
            relay.note_receipts_taken(taken);
        }
        let me = self.setup.id;
        for answer in status.welcomed.iter().filter(|answer| answer.id == me) {
            self.on_receipt_answer(answer.nonce, now);
        }
    }

    /// The parent has the receipt of this number.
    pub(super) fn on_receipt_answer(&mut self, nonce: u16, now: Time) {
        if self.receipts.on_answer(nonce) {
            self.on_receipts_fewer(now);
        }
    }

    /// Returns the pending receipts as on the wire.
    #[cfg(test)]
    pub(crate) const fn id(&self) -> ReceiverId {
        self.setup.id
    }

    fn on_receipts_fewer(&mut self, now: Time) {
        if let Some(relay) = &self.setup.relay {
            relay.note_receipts_waiting(self.receipts.waiting());
        }
        if let Some(stream) = self.stream.as_mut().filter(|_| self.setup.relay.is_none()) {
            // It is done, and reports so in its turn.
            let turn = now + stream.spread.scaled(self.rng.unit());
            (stream.member_at, stream.member_tries) = (stream.member_at.min(turn), 0);
        }
    }
}

/// Returns the subject of a receipt of this session.
fn about(stream: &Stream) -> Signed {
    let announced = &stream.announced;
    let (salt, started) = (announced.salt, announced.started);
    Signed { session: stream.session, salt, transfer: announced.transfer, started }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::SessionId;
    use faircast_wire::TransferId;

    fn receipt(number: u64) -> Receipt {
        let about =
            Signed { session: SessionId(1), salt: [0; 16], transfer: TransferId([0; 16]), started: 1 };
        let id = ReceiverId::new(number).expect("it is not zero");
        Receipt::sign(&about, [0; 32], (id, Name::EMPTY), 1, &SigningKey::from_seed([1; 32]))
    }

    #[test]
    fn unanswered_receipt_is_repeated_more_slowly_and_given_up() {
        let me = (ReceiverId::new(9).expect("it is not zero"), u16::MAX);
        let (rtt, spread) = (Span::from_millis(1), Span::from_millis(20));
        let mut outgoing = Outgoing::new(None);
        outgoing.add(receipt(1), me, Time::ZERO);
        let (mut sent, mut now) = (Vec::new(), Time::ZERO);
        while !outgoing.deadline().is_never() {
            now = outgoing.deadline();
            outgoing.give_up(now);
            sent.extend(outgoing.next(rtt, spread, now).map(|_| now));
        }
        assert_eq!(sent.len(), TRIES as usize);
        let pauses: Vec<Span> = sent.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        assert!(pauses.is_sorted() && pauses[0] >= spread, "{pauses:?}");
        assert!(now.since(Time::ZERO) < Span::from_secs(12), "{now:?}");
    }

    #[test]
    fn receipts_of_many_receivers_leave_in_turn_with_own_numbers() {
        let me = (ReceiverId::new(9).expect("it is not zero"), 7);
        let mut outgoing = Outgoing::new(None);
        (1..=100).for_each(|number| outgoing.add(receipt(number), me, Time::ZERO));
        let (mut numbers, mut now) = (Vec::new(), Time::ZERO);
        while numbers.len() < 100 {
            now = now.max(outgoing.deadline());
            let receipt = outgoing.next(Span::from_secs(9), Span::ZERO, now).expect("it is due");
            assert_eq!(receipt.from, me.0);
            numbers.push(receipt.nonce);
        }
        assert!(now.since(Time::ZERO) >= APART * 99);
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 100);
        assert!(numbers.iter().all(|nonce| !(7..7 + OTHER_ANSWERS).contains(nonce)), "{numbers:?}");
        assert!(outgoing.on_answer(numbers[3]) && !outgoing.on_answer(numbers[3]));
        assert_eq!(outgoing.waiting(), 99);
    }
}
