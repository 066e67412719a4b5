//! The storage of a transfer: its ledger stays with the session, and a worker performs operations on its files.
//!
//! A session plans an operation and goes on; the next [`Storage::poll`] settles the results.

use super::batches::Batches;
use crate::object::{Affected, Files, Hash, Ledger, ObjectError, Operation, Performed, Plan, Store};
use crate::worker::Worker;
use faircast_wire::Withdrawn;

/// The ledger of a transfer, and its files.
pub(super) struct Storage {
    ledger: Ledger,
    files: Batches<Files, Operation, Performed>,
    /// Memory of data that are written.
    spent: Vec<Vec<u8>>,
}

/// The fate of a block that was given to the storage.
#[derive(Debug)]
pub(super) enum Given {
    /// It is stored, or on its way.
    Taken,
    /// It cannot be placed before the manifest is complete.
    NeedsManifest(Vec<u8>),
}

/// The news of a [`Storage::poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Nothing,
    /// Operations have ended.
    Some,
    /// A stored block cannot be read any more: it has to come again.
    Lost,
}

impl Storage {
    pub(super) fn new(store: Store, worker: Worker) -> Storage {
        let Store { ledger, files } = store;
        Storage { ledger, files: Batches::new(Some(files), worker, Files::perform), spent: Vec::new() }
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Its files, while no job has them.
    pub(super) fn files(&mut self) -> Option<&mut Files> {
        self.files.files()
    }

    /// Store a block of verified data.
    ///
    /// # Errors
    /// When the block contradicts the stored one.
    pub(super) fn put(&mut self, block: u32, data: Vec<u8>, hash: Hash) -> Result<Given, ObjectError> {
        match self.ledger.plan(block, data, hash)? {
            Plan::Write(operation) => self.files.extend([operation]),
            Plan::AlreadyHad(data) => self.spent.push(data),
            Plan::NeedsManifest(data) => return Ok(Given::NeedsManifest(data)),
        }
        Ok(Given::Taken)
    }

    /// The source has withdrawn these files. The blocks that change by that.
    pub(super) fn withdraw(&mut self, files: &[Withdrawn]) -> Vec<Affected> {
        let entries: Vec<u32> = files.iter().map(|file| file.entry).collect();
        let (affected, operations) = self.ledger.withdraw_files(&entries);
        self.files.extend(operations);
        affected
    }

    /// Another session brings the same content: withdrawn files are missing again.
    pub(super) fn want_withdrawn(&mut self) {
        self.files.extend(self.ledger.want_withdrawn());
    }

    /// A block of an earlier receiver is not what the source has.
    pub(super) fn reject(&mut self, block: u32) {
        self.files.extend(self.ledger.reject(block));
    }

    /// The object stream has this length.
    ///
    /// # Errors
    /// When that contradicts what is stored.
    pub(super) fn set_stream_len(&mut self, len: u64) -> Result<(), ObjectError> {
        if self.ledger.geometry().stream_len != Some(len) {
            self.ledger.set_stream_len(len)?;
            self.files.extend([Operation::End(len)]);
        }
        Ok(())
    }

    /// Settle the operations that have ended, and begin those that wait. Call it until there are no news.
    ///
    /// # Errors
    /// Why an operation failed. Those behind it are not performed.
    pub(super) fn poll(&mut self) -> Result<Settled, ObjectError> {
        let mut settled = Settled::Nothing;
        while let Some(performed) = self.files.next() {
            let mut performed = performed.inspect_err(|_| {
                self.files.drop_waiting();
                self.ledger.forget_writes();
            })?;
            if settled == Settled::Nothing {
                settled = Settled::Some;
            }
            if let Performed::Written { data, .. } = &mut performed {
                self.spent.push(std::mem::take(data));
            }
            if matches!(performed, Performed::Rehashed(_, None)) {
                settled = Settled::Lost;
            }
            self.files.extend(self.ledger.settle(performed));
        }
        Ok(settled)
    }

    /// Drop the operations that no job has.
    pub(super) fn drop_waiting(&mut self) {
        self.files.drop_waiting();
    }

    /// Whether nothing waits and no job is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.files.is_idle()
    }

    /// The whole store, while no job has its files. Operations that wait are dropped.
    pub(super) fn into_store(self) -> Option<Store> {
        Some(Store { ledger: self.ledger, files: self.files.into_files()? })
    }

    /// Memory of data that are written.
    pub(super) fn take_spent(&mut self) -> Option<Vec<u8>> {
        self.spent.pop()
    }
}
