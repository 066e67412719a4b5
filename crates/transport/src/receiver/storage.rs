//! The storage of a transfer. The session has the ledger of the storage; a worker performs the operations on the files.
//!
//! A session plans operations without waiting for them; the next [`Storage::poll`] processes their results.

use super::batches::Batches;
use crate::object::{Affected, AnyFiles, AnyStore, Hash, Ledger, ObjectError, Operation, Performed, Plan};
use crate::worker::Worker;
use faircast_wire::Withdrawn;

/// The ledger and the files of a transfer.
pub(super) struct Storage {
    ledger: Ledger,
    files: Batches<AnyFiles, Operation, Performed>,
    /// Reusable memory of written data.
    spent: Vec<Vec<u8>>,
    /// Bytes of stored blocks of an earlier run whose verification has begun, and the first block whose verification has not.
    verifying: u64,
    verified_to: u32,
}

/// Maximum number of bytes whose verification is pending. Blocks that arrive are written after them.
const VERIFIED_AT_ONCE: u64 = 8 << 20;

/// The result of passing a block to the storage.
#[derive(Debug)]
pub(super) enum Given {
    /// The block is stored or will be.
    Taken,
    /// The block cannot be stored before the manifest is complete.
    NeedsManifest(Vec<u8>),
}

/// The result of [`Storage::poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Nothing,
    /// Operations have ended.
    Some,
    /// A stored block cannot be read any longer and must be received again.
    Lost,
}

impl Storage {
    pub(super) fn new(store: AnyStore, worker: Worker) -> Storage {
        let (ledger, files) = store.into_parts();
        let files = Batches::new(Some(files), worker, AnyFiles::perform);
        Storage { ledger, files, spent: Vec::new(), verifying: 0, verified_to: 0 }
    }

    /// Begins to verify further stored blocks of an earlier run.
    pub(super) fn verify_more(&mut self) {
        while self.verifying < VERIFIED_AT_ONCE
            && let Some((block, operation)) = self.ledger.verification(self.verified_to)
        {
            self.verifying += u64::from(self.ledger.geometry().block_len(block));
            self.verified_to = block + 1;
            self.files.extend([operation]);
        }
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the files, unless a job uses them.
    pub(super) fn files(&mut self) -> Option<&mut AnyFiles> {
        self.files.files()
    }

    /// Stores a block of verified data.
    ///
    /// # Errors
    /// If the block contradicts the stored one.
    pub(super) fn put(&mut self, block: u32, data: Vec<u8>, hash: Hash) -> Result<Given, ObjectError> {
        match self.ledger.plan(block, data, hash)? {
            Plan::Write(operation) => self.files.extend([operation]),
            Plan::AlreadyHad(data) => self.spent.push(data),
            Plan::NeedsManifest(data) => return Ok(Given::NeedsManifest(data)),
        }
        Ok(Given::Taken)
    }

    /// Records that the source has withdrawn these files. Returns the blocks that change as a result.
    pub(super) fn withdraw(&mut self, files: &[Withdrawn]) -> Vec<Affected> {
        let entries: Vec<u32> = files.iter().map(|file| file.entry).collect();
        let (affected, operations) = self.ledger.withdraw_files(&entries);
        self.files.extend(operations);
        affected
    }

    /// Marks withdrawn files as missing again, because another session sends the same content.
    pub(super) fn want_withdrawn(&mut self) {
        self.files.extend(self.ledger.want_withdrawn());
    }

    /// Rejects a block of an earlier run that differs from the source's block.
    pub(super) fn reject(&mut self, block: u32) {
        self.files.extend(self.ledger.reject(block));
    }

    /// Sets the length of the object stream.
    ///
    /// # Errors
    /// If the length contradicts the stored data.
    pub(super) fn set_stream_len(&mut self, len: u64) -> Result<(), ObjectError> {
        if self.ledger.geometry().stream_len != Some(len) {
            self.ledger.set_stream_len(len)?;
            self.files.extend([Operation::End(len)]);
        }
        Ok(())
    }

    /// Processes the results of operations that have ended, and begins pending operations. Call it until it returns no more
    /// results.
    ///
    /// # Errors
    /// If an operation failed. Later operations of its job are not performed.
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
            if let Performed::Verified(block, _) = performed {
                let bytes = u64::from(self.ledger.geometry().block_len(block));
                self.verifying = self.verifying.saturating_sub(bytes);
            }
            if matches!(performed, Performed::Rehashed(_, None)) {
                settled = Settled::Lost;
            }
            self.files.extend(self.ledger.settle(performed));
        }
        Ok(settled)
    }

    /// Drops the pending operations. The operations of the running job continue.
    pub(super) fn drop_waiting(&mut self) {
        self.files.drop_waiting();
        (self.verifying, self.verified_to) = (0, 0);
    }

    /// Whether no operation is pending and no job is running.
    pub(super) fn is_idle(&self) -> bool {
        self.files.is_idle()
    }

    /// Returns the whole store, unless a job uses its files. Pending operations are dropped.
    pub(super) fn into_store(self) -> Option<AnyStore> {
        Some(AnyStore::of(self.ledger, self.files.into_files()?))
    }

    /// Returns the memory of written data, for reuse.
    pub(super) fn take_spent(&mut self) -> Option<Vec<u8>> {
        self.spent.pop()
    }
}
