//! Receipts of downstream receivers, stored until the parent has accepted them.

use super::{RelayState, SessionHandle};
use faircast_core::packet::ReceiverId;
use faircast_wire::{Receipt, Signature};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of receivers whose receipts are relayed in a session. Each receiver takes about 150 bytes, and 300 further
/// bytes, in a dry run 900, until its receipt is acknowledged.
const MAX_RECEIVERS: usize = 65_536;

/// Maximum number of receipts per receiver. More than one is stored because a relay cannot verify receipts, and an invalid
/// receipt must not block a valid one.
const MAX_OF_ONE_RECEIVER: usize = 4;

/// Receipts that a relay has accepted.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    /// Whether the parent accepts receipts, so that downstream receivers may send them.
    pub(super) taken: bool,
    /// Signatures of all accepted receipts, by receiver.
    known: BTreeMap<ReceiverId, Vec<Signature>>,
    /// Receipts to send.
    queue: VecDeque<Receipt>,
    /// Number of receipts that were sent but not acknowledged.
    pub(super) waiting: usize,
}

impl Keeping {
    /// Accepts a receipt; returns whether the relay now stores it.
    fn keep(&mut self, receipt: &Receipt) -> bool {
        if !self.known.contains_key(&receipt.receiver) && self.known.len() >= MAX_RECEIVERS {
            return false;
        }
        let known = self.known.entry(receipt.receiver).or_default();
        if known.contains(&receipt.signature) {
            return true;
        }
        if known.len() >= MAX_OF_ONE_RECEIVER {
            return false;
        }
        known.push(receipt.signature);
        self.queue.push_back(receipt.clone());
        true
    }

    /// Whether receipts wait to be sent.
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes the receipts to send. They count as pending until they are acknowledged.
    pub(super) fn take_queued(&mut self) -> Vec<Receipt> {
        self.waiting += self.queue.len();
        self.queue.drain(..).collect()
    }
}

impl RelayState {
    /// Returns the number of receipts that the parent has not accepted yet. The receivers of these receipts do not count as done.
    pub(super) fn receipts_waiting(&self) -> u64 {
        (self.receipts.queue.len() + self.receipts.waiting) as u64
    }
}

impl SessionHandle {
    /// Stores a receipt from downstream; returns whether to acknowledge the receipt.
    pub(crate) fn keep_receipt(&self, receipt: &Receipt) -> bool {
        self.lock().receipts.keep(receipt)
    }

    /// Whether downstream receivers may send receipts.
    pub(super) fn takes_receipts(&self) -> bool {
        self.lock().receipts.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::SessionId;
    use faircast_wire::{Name, Signed, SigningKey, TransferId};

    #[test]
    fn receipts_stored_per_receiver_are_bounded() {
        let about =
            Signed { session: SessionId(1), salt: [0; 16], transfer: TransferId([0; 16]), started: 1 };
        let receipt = |receiver: u64, unix_secs| {
            let receiver = ReceiverId::new(receiver).expect("it is not zero");
            Receipt::sign(
                &about,
                [0; 32],
                (receiver, Name::EMPTY),
                unix_secs,
                &SigningKey::from_seed([1; 32]),
            )
        };
        let mut keeping = Keeping::default();
        assert!((0..3).all(|_| keeping.keep(&receipt(1, 5))), "it is answered each time");
        assert_eq!(keeping.queue.len(), 1);
        let others = (0..10).filter(|secs| keeping.keep(&receipt(1, 100 + secs))).count();
        assert_eq!((others, keeping.queue.len()), (MAX_OF_ONE_RECEIVER - 1, MAX_OF_ONE_RECEIVER));
        assert!(keeping.keep(&receipt(2, 5)));
    }
}
