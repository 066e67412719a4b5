//! Compares the unsigned statements of a report with the receipts in this report.

use faircast::event::ReceiverOutcome;
use faircast::receipts::{ReceiptReport, ReceiptsReport};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The fields of a report that the receipts in this report can confirm or contradict.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    ok: bool,
    exit_code: u8,
    error: Option<String>,
    verified: u64,
    incomplete: u64,
    dropped: u64,
    absent: u64,
    pub(super) receipts: Option<ReceiptsReport>,
    receivers: Vec<Receiver>,
}

/// An entry of the list of receivers.
#[derive(Debug, Deserialize)]
struct Receiver {
    host: String,
    outcome: ReceiverOutcome,
    receipt: Option<ReceiptReport>,
}

/// A receipt, and the result of its verification.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checked<'a> {
    pub(super) receipt: &'a ReceiptReport,
    pub(super) valid: bool,
    /// Whether `--keys` contains the key of the receipt; `None` without `--keys`.
    pub(super) known: Option<bool>,
}

impl Report {
    /// Describes statements that contradict each other or the receipts.
    pub(super) fn contradictions(&self, receipts: &ReceiptsReport, checked: &[Checked<'_>]) -> Vec<String> {
        let mut found = self.wrong_totals();
        found.extend(wrong_receipts(receipts, checked));
        let signed: BTreeMap<&str, &Checked<'_>> =
            checked.iter().map(|one| (one.receipt.receiver.as_str(), one)).collect();
        let lacking: BTreeSet<&str> = receipts.without_receipt.iter().map(|one| one.host.as_str()).collect();
        for receiver in &self.receivers {
            found.extend(receiver.contradiction(&signed));
            if receiver.outcome == ReceiverOutcome::Verified && lacking.contains(receiver.host.as_str()) {
                found.push(format!("{} is `verified`, but is listed in `without_receipt`", receiver.host));
            }
        }
        found
    }

    /// Returns the number of receivers whose entry has no receipt.
    pub(super) fn unsigned(&self) -> u64 {
        self.receivers.iter().filter(|receiver| receiver.receipt.is_none()).count() as u64
    }

    /// Describes counts that contradict the list of receivers, and an overall result that contradicts the counts.
    fn wrong_totals(&self) -> Vec<String> {
        let count = |outcome| self.receivers.iter().filter(|one| one.outcome == outcome).count() as u64;
        let totals = [
            ("verified", self.verified, count(ReceiverOutcome::Verified)),
            ("incomplete", self.incomplete, count(ReceiverOutcome::Incomplete)),
            ("dropped", self.dropped, count(ReceiverOutcome::Dropped)),
            ("absent", self.absent, count(ReceiverOutcome::Absent)),
        ];
        let wrong = totals.into_iter().filter(|(_, stated, counted)| stated != counted);
        let mut found: Vec<_> = wrong
            .map(|(name, stated, counted)| format!("`{name}` is {stated}, but `receivers` lists {counted}"))
            .collect();
        let others = self.incomplete + self.dropped + self.absent > 0;
        let is_one = self.ok == (self.exit_code == 0) && self.ok == self.error.is_none();
        if !is_one || (self.ok && others) {
            found.push("`ok`, `exit_code`, `error` and the counts contradict each other".to_owned());
        }
        found
    }
}

/// Describes repeated receipts, and statements about a receipt that contradict its verification.
fn wrong_receipts(receipts: &ReceiptsReport, checked: &[Checked<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let silent: BTreeSet<&str> = receipts.unused_keys.iter().map(String::as_str).collect();
    for Checked { receipt, valid, known } in checked {
        let host = &receipt.host;
        if !seen.insert(&receipt.receiver) {
            found.push(format!("`signed` lists the receiver {} twice", receipt.receiver));
        }
        if receipt.valid != *valid {
            found.push(format!("`valid` of {host} is {}, which contradicts the signature", receipt.valid));
        }
        if receipt.known == Some(false) && *known == Some(true) {
            found.push(format!("`known` of {host} is false, but --keys contains its key"));
        }
        if *valid && receipt.known != Some(false) && silent.contains(receipt.key.as_str()) {
            found.push(format!("the key of {host} has signed, but is listed in `unused_keys`"));
        }
    }
    let good = checked.iter().filter(|one| one.valid && one.receipt.known != Some(false)).count() as u64;
    if receipts.good != good {
        found
            .push(format!("`good` is {}, but {good} receipts are valid and have a known key", receipts.good));
    }
    found
}

impl Receiver {
    /// Describes the contradiction between this entry and its receipt, if there is one.
    fn contradiction(&self, signed: &BTreeMap<&str, &Checked<'_>>) -> Option<String> {
        let (receipt, host) = (self.receipt.as_ref()?, &self.host);
        let Some(one) = signed.get(receipt.receiver.as_str()).filter(|one| one.receipt == receipt) else {
            return Some(format!("the receipt of {host} in `receivers` is not among `signed`"));
        };
        if receipt.host != *host {
            return Some(format!("{} has signed the receipt of {host} in `receivers`", receipt.host));
        }
        let counts = one.valid && receipt.known != Some(false);
        (counts && self.outcome != ReceiverOutcome::Verified)
            .then(|| format!("{host} has signed that it is complete, but its `outcome` differs"))
    }
}
