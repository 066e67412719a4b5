//! Receipts at the source: they are checked against the sent content, stored and counted.

use super::SourceSession;
use crate::config::ReceiptKeys;
use crate::event::Event;
use crate::members::MemberRecord;
use crate::receipts::{ReceiptReport, ReceiptsReport, WithoutReceipt, hex};
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Span, Time};
use faircast_wire::{Receipt, Signed, TransferId};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of stored receipts: about 300 bytes each.
const MAX_RECEIPTS: usize = 65_536;

/// Maximum number of stored root hashes.
const MAX_ROOTS: usize = 65_536;

/// Maximum number of signatures checked per second: a tenth of a processor, at 50 us each.
const CHECKS: u32 = 2_000;

/// The receipts of a session.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// Keys of the receivers that must sign.
    keys: Option<ReceiptKeys>,
    stored: BTreeMap<ReceiverId, StoredReceipt>,
    /// Start of the current second, and the number of signatures checked since then.
    checked: (Time, u32),
    /// Root hashes sent to receivers. There are several, because each withdrawn file changes the root hash.
    roots: BTreeSet<[u8; 32]>,
}

#[derive(Debug)]
struct StoredReceipt {
    receipt: Receipt,
    worth: Worth,
    /// The sender of the receipt: the receiver, or a relay.
    via: ReceiverId,
}

/// Strength of a receipt's proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// No proof: the receipt is not signed, or is about other content.
    Nothing,
    /// Signed with the key in the receipt.
    Signed,
    /// Signed by one of the required keys.
    Known,
}

/// Result of checking a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReceiptResult {
    /// Not stored, because there is no room for the receipt, or no time to check its signature. The receipt will be sent again.
    No,
    /// Not stored, because the receipt proves no more than the stored one.
    Again,
    /// Stored.
    New,
}

impl Receipts {
    pub(super) fn new(keys: Option<ReceiptKeys>) -> Receipts {
        Receipts { keys, ..Receipts::default() }
    }

    /// Records a root hash that is sent to receivers.
    pub(super) fn note_root(&mut self, root: Option<[u8; 32]>) {
        if self.roots.len() < MAX_ROOTS {
            self.roots.extend(root);
        }
    }

    fn take(&mut self, receipt: &Receipt, about: &Signed, now: Time) -> ReceiptResult {
        let known = self.stored.get(&receipt.receiver);
        if known.is_some_and(|stored| same(&stored.receipt, receipt)) {
            return ReceiptResult::Again;
        }
        if now.since(self.checked.0) >= Span::from_secs(1) {
            self.checked = (now, 0);
        }
        if self.checked.1 >= CHECKS || known.is_none() && self.stored.len() >= MAX_RECEIPTS {
            return ReceiptResult::No;
        }
        self.checked.1 += 1;
        let worth = match &self.keys {
            _ if !self.roots.contains(&receipt.root) || !receipt.is_signed(about) => Worth::Nothing,
            Some(keys) if keys.has(&receipt.key) => Worth::Known,
            _ => Worth::Signed,
        };
        if known.is_some_and(|stored| stored.worth >= worth) {
            return ReceiptResult::Again; // a receipt is replaced only by a better one
        }
        self.stored
            .insert(receipt.receiver, StoredReceipt { receipt: receipt.clone(), worth, via: receipt.from });
        ReceiptResult::New
    }

    /// Returns the minimum proof of a receipt that counts.
    fn least(&self) -> Worth {
        if self.keys.is_some() { Worth::Known } else { Worth::Signed }
    }

    /// Returns the receipts that count, by receiver.
    fn good(&self) -> impl Iterator<Item = (&ReceiverId, &StoredReceipt)> {
        let least = self.least();
        self.stored.iter().filter(move |(_, stored)| stored.worth >= least)
    }

    /// Returns the receipt of this receiver, in the form for reports.
    pub(super) fn of(&self, id: ReceiverId) -> Option<ReceiptReport> {
        self.stored.get(&id).map(|stored| self.reported(stored))
    }

    fn reported(&self, stored: &StoredReceipt) -> ReceiptReport {
        ReceiptReport {
            receiver: stored.receipt.receiver.to_string(),
            host: stored.receipt.host.as_str().to_owned(),
            key: hex(&stored.receipt.key),
            signed_at: stored.receipt.unix_secs,
            signature: hex(&stored.receipt.signature),
            root: Some(hex(&stored.receipt.root)),
            valid: stored.worth >= Worth::Signed,
            known: self.keys.as_ref().map(|_| stored.worth == Worth::Known),
        }
    }

    /// Returns the missing receipts of a completed member: its own receipt, or receipts of some receivers of a relay.
    fn lacking(&self, id: ReceiverId, member: &MemberRecord) -> Option<WithoutReceipt> {
        self.keys.as_ref()?;
        let done = member.verified() as usize;
        let signed = self.good().filter(|(_, stored)| stored.via == id).count();
        let reason = match self.stored.get(&id).map(|stored| stored.worth) {
            _ if signed >= done => return None,
            _ if member.is_relay => {
                format!(
                    "{} of {done} receivers downstream of this relay have no valid receipt",
                    done - signed
                )
            }
            None => "it is complete, but has signed no receipt".to_owned(),
            Some(Worth::Nothing) => "it is complete, but its receipt is not valid".to_owned(),
            Some(_) => "it is complete, but its receipt is signed by an unknown key".to_owned(),
        };
        Some(WithoutReceipt { host: member.host.clone(), reason })
    }
}

impl SourceSession {
    /// Handles a receipt of a receiver, or from a relay for one of its receivers.
    pub(super) fn on_receipt(&mut self, receipt: &Receipt, now: Time) {
        self.members.on_sign_of_life(receipt.from, now);
        if !self.members.may_sign(receipt) {
            self.counts.refused.sender += 1;
            return;
        }
        let is_here = match self.scheduler.pass_receipt(receipt) {
            Some(is_here) => is_here,
            None => self.keep_receipt(receipt, now),
        };
        if is_here {
            self.members.acknowledge(receipt.from, receipt.nonce);
            self.status_soon(now);
        }
    }

    /// Stores a receipt at the source; returns whether to acknowledge the receipt.
    fn keep_receipt(&mut self, receipt: &Receipt, now: Time) -> bool {
        if self.setup.dry_run.is_some() {
            self.events.extend(self.comparisons.take(receipt).map(Event::Compared));
            return true;
        }
        if receipt.comparison.is_some() {
            self.counts.refused.unexpected += 1;
            return false;
        }
        let taken = self.receipts.take(receipt, &self.about(), now);
        if taken == ReceiptResult::New
            && let Some(reported) = self.receipts.of(receipt.receiver)
        {
            self.events.push_back(Event::Receipt(reported));
        }
        taken != ReceiptResult::No
    }

    /// Returns the session and content that all receipts of this session are about.
    pub(crate) fn about(&self) -> Signed {
        let transfer = TransferId(self.scheduler.transfer().0);
        Signed { session: self.id(), salt: self.setup.salt, transfer, started: self.setup.started }
    }

    /// Returns the report about receipts, if there are receipts or if they are required.
    pub(super) fn receipts_report(&self, replaced: &BTreeSet<ReceiverId>) -> Option<ReceiptsReport> {
        if self.receipts.stored.is_empty() && self.receipts.keys.is_none() {
            return None;
        }
        let (about, geometry) = (self.about(), self.scheduler.geometry());
        let used: BTreeSet<[u8; 32]> = self.receipts.good().map(|(_, stored)| stored.receipt.key).collect();
        let silent = self.receipts.keys.as_ref().map(|keys| keys.without(&used));
        Some(ReceiptsReport {
            session: about.session.to_string(),
            salt: hex(&about.salt),
            transfer: hex(&about.transfer.0),
            started: about.started.to_string(),
            root: self.scheduler.status().root.map(|root| hex(&root.0)),
            symbol_size: geometry.symbol_size,
            symbols_per_block: geometry.symbols_per_block,
            good: self.receipts.good().count() as u64,
            unused_keys: silent.unwrap_or_default().iter().map(|key| hex(key)).collect(),
            without_receipt: self.without_receipt(replaced),
            signed: self.receipts.stored.values().map(|stored| self.receipts.reported(stored)).collect(),
        })
    }

    /// Returns completed members that lack receipts, if receipts are required.
    fn without_receipt(&self, replaced: &BTreeSet<ReceiverId>) -> Vec<WithoutReceipt> {
        let done = self.members.iter().filter(|(id, member)| member.has_all() && !replaced.contains(id));
        done.filter_map(|(id, member)| self.receipts.lacking(id, member)).collect()
    }

    /// Returns the missing receipts of one completed member, in words.
    pub(super) fn lacks_receipt(&self, id: ReceiverId, member: &MemberRecord) -> Option<String> {
        self.receipts.lacking(id, member).map(|lacking| lacking.reason)
    }
}

/// Whether two packets contain the same receipt.
fn same(one: &Receipt, other: &Receipt) -> bool {
    let without_sender = |receipt: &Receipt| Receipt { from: receipt.receiver, nonce: 0, ..receipt.clone() };
    without_sender(one) == without_sender(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::SessionId;
    use faircast_wire::{Name, SigningKey};

    const ROOT: [u8; 32] = [5; 32];

    fn about() -> Signed {
        Signed { session: SessionId(7), salt: [3; 16], transfer: TransferId([9; 16]), started: 1 }
    }

    fn id(number: u64) -> ReceiverId {
        ReceiverId::new(number).expect("it is not zero")
    }

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed([seed; 32])
    }

    fn receipt(number: u64, seed: u8) -> Receipt {
        Receipt::sign(&about(), ROOT, (id(number), Name::clipped("host")), 1_000, &key(seed))
    }

    #[test]
    fn forged_receipt_neither_blocks_nor_replaces_the_true_one() {
        let keys = ReceiptKeys::from_iter([key(1).verify_key()]);
        let mut receipts = Receipts::new(Some(keys));
        receipts.note_root(Some(ROOT));
        let take = |receipts: &mut Receipts, one| receipts.take(&one, &about(), Time::ZERO);
        let good = |receipts: &Receipts| receipts.good().count();
        let forged = Receipt { key: key(1).verify_key().to_bytes(), ..receipt(1, 2) };
        assert_eq!((take(&mut receipts, forged.clone()), good(&receipts)), (ReceiptResult::New, 0));
        assert_eq!(
            (take(&mut receipts, receipt(1, 2)), good(&receipts)),
            (ReceiptResult::New, 0),
            "another key"
        );
        assert_eq!((take(&mut receipts, receipt(1, 1)), good(&receipts)), (ReceiptResult::New, 1));
        assert_eq!((take(&mut receipts, forged), good(&receipts)), (ReceiptResult::Again, 1));
        assert_eq!((take(&mut receipts, receipt(1, 2)), good(&receipts)), (ReceiptResult::Again, 1));
        let reported = receipts.of(id(1)).expect("it is kept");
        assert_eq!(
            (reported.valid, reported.known, reported.key),
            (true, Some(true), hex(&key(1).verify_key().to_bytes()))
        );
    }

    #[test]
    fn receipt_of_another_session_or_content_is_invalid() {
        let other = Signed { session: SessionId(8), ..about() };
        for (about, root) in [(other, Some(ROOT)), (about(), Some([6; 32])), (about(), None)] {
            let mut receipts = Receipts::new(None);
            receipts.note_root(root);
            assert_eq!(receipts.take(&receipt(1, 1), &about, Time::ZERO), ReceiptResult::New);
            assert_eq!(receipts.good().count(), 0, "{about:?} {root:?}");
            assert!(receipts.of(id(1)).is_some_and(|reported| !reported.valid && reported.known.is_none()));
        }
    }

    #[test]
    fn signature_checks_per_second_are_bounded() {
        let mut receipts = Receipts::new(None);
        receipts.note_root(Some(ROOT));
        let mut take = |number: u32, now| {
            let receipt = Receipt { unix_secs: number.into(), ..receipt(1, 1) };
            receipts.take(&receipt, &about(), now) != ReceiptResult::No
        };
        let mut taken = 0;
        for number in 0..CHECKS + 10 {
            taken += u32::from(take(number, Time::ZERO));
        }
        assert_eq!(taken, CHECKS);
        assert!(take(1, Time::ZERO + Span::from_secs(1)));
    }
}
