//! A store in a directory or on a block device.

use super::device::{DeviceFiles, DeviceStore};
use super::ledger::{Ledger, Operation, Performed};
use super::{Files, Finished, Store};
use crate::error::ObjectError;
use crate::file_work::FileWork;
use crate::gather::seeds::Seeds;
use crate::geometry::Hash;
use crate::policy::Durability;

/// A transfer that is being received into a directory or onto a block device.
#[derive(Debug)]
pub enum AnyStore {
    /// Into a directory.
    Directory(Store),
    /// Onto a block device.
    Device(DeviceStore),
}

/// The files of a transfer, or the block device that takes their place.
#[derive(Debug)]
pub enum AnyFiles {
    /// Files of a directory.
    Directory(Files),
    /// A block device.
    Device(DeviceFiles),
}

impl AnyFiles {
    /// Performs an operation.
    ///
    /// # Errors
    /// An [`ObjectError`]. A block whose write failed does not count as stored.
    pub fn perform(&mut self, operation: Operation) -> Result<Performed, ObjectError> {
        match self {
            AnyFiles::Directory(files) => files.perform(operation),
            AnyFiles::Device(files) => files.perform(operation),
        }
    }

    /// Returns the warnings for the user, in the order in which they arose.
    pub fn warnings(&mut self) -> &mut Vec<String> {
        match self {
            AnyFiles::Directory(files) => &mut files.warnings,
            AnyFiles::Device(files) => &mut files.warnings,
        }
    }
}

impl AnyStore {
    /// Joins a ledger and its files.
    pub fn of(ledger: Ledger, files: AnyFiles) -> AnyStore {
        match files {
            AnyFiles::Directory(files) => AnyStore::Directory(Store { ledger, files }),
            AnyFiles::Device(files) => AnyStore::Device(DeviceStore { ledger, files }),
        }
    }

    /// Separates the ledger from its files.
    pub fn into_parts(self) -> (Ledger, AnyFiles) {
        match self {
            AnyStore::Directory(store) => (store.ledger, AnyFiles::Directory(store.files)),
            AnyStore::Device(store) => (store.ledger, AnyFiles::Device(store.files)),
        }
    }

    /// Returns the record of the blocks.
    pub fn ledger(&self) -> &Ledger {
        match self {
            AnyStore::Directory(store) => &store.ledger,
            AnyStore::Device(store) => &store.ledger,
        }
    }

    /// Reuses files of other transfers, or the content of the device; see [`Store::adopt`] and [`DeviceStore::adopt`].
    ///
    /// # Errors
    /// As [`Store::adopt`].
    pub fn adopt(&mut self, work: &FileWork) -> Result<(), ObjectError> {
        match self {
            AnyStore::Directory(store) => store.adopt(work),
            AnyStore::Device(store) => store.adopt(work),
        }
    }

    /// Returns the found symbols of incomplete blocks, once.
    pub fn take_seeds(&mut self) -> Option<Seeds> {
        match self {
            AnyStore::Directory(store) => store.take_seeds(),
            AnyStore::Device(store) => store.take_seeds(),
        }
    }

    /// Drops blocks that may be wrong, because of the contradiction `error`.
    ///
    /// # Errors
    /// When the disk cannot be changed.
    pub fn give_up(&mut self, error: &ObjectError) -> Result<(), ObjectError> {
        match self {
            AnyStore::Directory(store) => store.give_up(error),
            AnyStore::Device(store) => store.give_up(error),
        }
    }

    /// Drops all blocks. Returns the number of dropped bytes.
    ///
    /// # Errors
    /// When the disk cannot be changed.
    pub fn start_over(&mut self) -> Result<u64, ObjectError> {
        match self {
            AnyStore::Directory(store) => store.start_over(),
            AnyStore::Device(store) => store.start_over(),
        }
    }

    /// Completes the transfer if its root hash equals the source's `root`. A device is always flushed.
    ///
    /// # Errors
    /// As [`Store::finish_as`].
    pub fn finish_as(
        &mut self,
        root: &Hash,
        durability: Durability,
        work: &FileWork,
    ) -> Result<Finished, ObjectError> {
        match self {
            AnyStore::Directory(store) => store.finish_as(root, durability, work),
            AnyStore::Device(store) => store.finish_as(root, work),
        }
    }
}
