//! Receipts to be sent to the source: a receiver's own receipt, and at a relay the receipts of downstream receivers.
//!
//! A receiver that has all content sends its receipt in its turn. It reports completion only after the receipt is answered. So
//! the source waits for a lost receipt as it waits for a receiver. The receipt is repeated like a membership message. A relay
//! stores downstream receipts, answers them, and forwards them in the same way. Until the relay's parent has answered a receipt,
//! the relay counts the receiver that signed the receipt as incomplete.

use super::{ReceiverSession, Stream};
use crate::announced::whole_of;
use crate::dry_run::comparison_of;
use crate::event::Event;
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Span, Time};
use faircast_wire::{Comparison, Message, Name, Receipt, Signed, SigningKey, Status};
use std::collections::VecDeque;

/// Maximum number of transmissions of a receipt. The last intervals are a second each, or the spread if it is longer.
const TRIES: u32 = 12;

/// Minimum interval of receipts of one receiver or relay.
const APART: Span = Span::from_millis(5);

/// Minimum and maximum of [`Outgoing::pause`]; a longer spread raises the maximum.
const MIN_PAUSE: Span = Span::from_millis(10);
const LATEST: Span = Span::from_secs(1);

/// Number of nonces that are reserved for the replies to queries and joins. Nonces are counted from the random nonce.
const OTHER_ANSWERS: u16 = 2;

/// Receipts that have not been answered yet.
pub(super) struct Outgoing {
    /// The key with which this receiver signs.
    key: Option<SigningKey>,
    /// Whether the parent accepts receipts, according to its last status.
    taken: bool,
    /// Pending receipts; the first one is sent next.
    waiting: VecDeque<Pending>,
    /// Number of the latest receipt, counted from the random nonce.
    number: u16,
    /// Earliest time of the next transmission.
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

    /// Adds a receipt to be sent at `at`; `drawn` is the random nonce of this receiver.
    fn add(&mut self, receipt: Receipt, (from, drawn): (ReceiverId, u16), at: Time) {
        self.number = self.number.wrapping_add(1).clamp(1, u16::MAX - OTHER_ANSWERS);
        let nonce = drawn.wrapping_add(OTHER_ANSWERS - 1).wrapping_add(self.number);
        self.waiting.push_front(Pending { receipt: Receipt { from, nonce, ..receipt }, tries: 0, at });
    }

    /// Returns the time of the next transmission.
    pub(super) fn deadline(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |first| first.at.max(self.free_at))
    }

    /// Returns the number of unanswered receipts.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the receipt that is due, if any. It is sent again after [`Outgoing::pause`].
    fn next(&mut self, rtt: Span, spread: Span, now: Time) -> Option<Receipt> {
        if self.deadline() > now {
            return None;
        }
        let mut next = self.waiting.pop_front()?;
        let receipt = next.receipt.clone();
        self.free_at = now + APART;
        next.at = now + Outgoing::pause(next.tries, rtt, spread);
        next.tries += 1;
        self.waiting.push_back(next);
        Some(receipt)
    }

    /// Returns the pause after a transmission, as for membership messages. It grows with each transmission and with the number of
    /// receivers.
    fn pause(tries: u32, rtt: Span, spread: Span) -> Span {
        let first = (spread + rtt * 2).max(MIN_PAUSE);
        (first * (1 << tries.min(7))).min(LATEST.max(spread))
    }

    /// Removes an answered receipt. Returns whether it was pending.
    fn on_answer(&mut self, nonce: u16) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|pending| pending.receipt.nonce != nonce);
        self.waiting.len() < before
    }

    /// Drops the receipts whose last transmission was not answered. Returns the number of dropped receipts.
    fn give_up(&mut self, now: Time) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|pending| pending.tries < TRIES || pending.at > now);
        before - self.waiting.len()
    }
}

impl ReceiverSession {
    /// Returns the comparison of a dry run, after the disk was compared.
    pub(super) fn comparison(&self) -> Option<Comparison> {
        let whole = whole_of(&self.stream.as_ref()?.announced)?;
        Some(comparison_of(self.finished.as_ref()?.compared.as_deref()?, &whole))
    }

    /// Sends a receipt after all content was verified and stored: signed if this receiver has a key, or with the comparison of a
    /// dry run.
    pub(super) fn send_receipt(&mut self, root: [u8; 32], now: Time) {
        let comparison = self.comparison();
        let Some(stream) = &self.stream else { return };
        if comparison.is_none() && self.receipts.key.is_none() {
            return;
        }
        if !self.receipts.taken {
            self.events.push_back(Event::warning(
                "the source, or a relay on the path to it, accepts no receipts of this session: it is a live stream, or the program there is older"
                    .to_owned(),
            ));
            return;
        }
        let (by, unix_secs) = (
            (self.setup.id, Name::clipped(&self.setup.host)),
            self.setup.unix_secs + now.as_nanos() / 1_000_000_000,
        );
        let receipt = match (&self.receipts.key, comparison) {
            (Some(key), None) => Receipt::sign(&about(stream), root, by, unix_secs, key),
            (_, comparison) => Receipt::unsigned(root, by, unix_secs, comparison.map(Box::new)),
        };
        // Receivers often complete at the same moment, so each waits for its turn.
        let turn = stream.spread.scaled(self.rng.unit());
        self.receipts.add(receipt, (self.setup.id, self.setup.nonce), now + turn);
    }

    /// Sends due receipts. A relay first takes over the downstream receipts.
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
                None => "the source has not acknowledged the receipt".to_owned(),
                Some(_) => format!("{given_up} receipts of downstream receivers were not acknowledged"),
            }));
            self.on_receipts_fewer(now);
        }
    }

    /// Returns the time of the next call of `ReceiverSession::send_receipts`.
    pub(super) fn receipts_at(&self) -> Time {
        let has_come = self.setup.relay.as_ref().is_some_and(|relay| relay.has_receipts());
        if has_come { Time::ZERO } else { self.receipts.deadline() }
    }

    /// Records whether the parent accepts receipts, and the receipts that it has.
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

    /// Records that the parent has the receipt of this number.
    pub(super) fn on_receipt_answer(&mut self, nonce: u16, now: Time) {
        if self.receipts.on_answer(nonce) {
            self.on_receipts_fewer(now);
        }
    }

    /// Returns the receiver ID that the receipts contain.
    #[cfg(test)]
    pub(crate) const fn id(&self) -> ReceiverId {
        self.setup.id
    }

    fn on_receipts_fewer(&mut self, now: Time) {
        if let Some(relay) = &self.setup.relay {
            relay.note_receipts_waiting(self.receipts.waiting());
        }
        if let Some(stream) = self.stream.as_mut().filter(|_| self.setup.relay.is_none()) {
            // The receiver has completed, and reports this in its turn.
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
    fn unanswered_receipt_is_retried_more_slowly_and_then_dropped() {
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
    fn relayed_receipts_are_spaced_and_have_distinct_numbers() {
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
