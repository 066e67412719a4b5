//! Start of a transfer on the disk: its directory, its journal, and a temporary file for symbols. A job performs these steps.

use crate::config::Destination;
use crate::object::gather::spill::SpillFile;
use crate::object::host::disk::Disk;
use crate::object::partial_transfers::tidied;
use crate::object::spool::nameless;
use crate::object::{
    Admission, AnyStore, BlockDevice, Comparing, DeviceStore, Geometry, KeepPartial, ObjectError, Store,
    TransferId, Wanted,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The rules for admitting files to a directory, and for their metadata.
#[derive(Default)]
pub(in super::super) struct Admitting {
    /// The admission rules of the directory; without them names are stored as given.
    pub(in super::super) admission: Option<Admission>,
    /// The metadata that files get together with their names.
    pub(in super::super) wanted: Wanted,
    /// Limits for other incomplete transfers on the disk.
    pub(in super::super) keep_partial: KeepPartial,
    /// Files, directories and block devices whose content is reused.
    pub(in super::super) reuse: Vec<PathBuf>,
    /// Whether symbols need a temporary file.
    pub(in super::super) spills: bool,
    /// In a dry run: the comparison, in place of an output.
    pub(in super::super) comparing: Option<Comparing>,
}

/// The channel to which a job sends the temporary file for symbols.
pub(super) type RoomOrder = Sender<Result<SpillFile, ObjectError>>;

/// Creates the directory of a transfer, or takes over the directory of an earlier run.
pub(super) fn opened(
    disk: &Disk,
    out: &Path,
    (transfer, geometry): (TransferId, Geometry),
    Admitting { admission, wanted, keep_partial, reuse, .. }: Admitting,
    order: Option<RoomOrder>,
) -> Result<Box<AnyStore>, ObjectError> {
    let tidied = tidied(out, keep_partial, Some(transfer));
    let (mut store, reported) = Store::begin(disk, out, transfer, geometry, admission)?;
    store.files.wanted = wanted;
    store.files.warnings.extend(tidied);
    store.reuse(reuse);
    if let Some(order) = order {
        order.send(store.room(reported.as_ref())).ok(); // fails if the session has ended
    }
    reported.map_or(Ok(()), |reported| store.claim(reported))?;
    Ok(Box::new(AnyStore::Directory(store)))
}

/// Prepares a block device for a transfer.
pub(super) fn on_device(
    disk: &Disk,
    device: &Arc<BlockDevice>,
    (transfer, geometry): (TransferId, Geometry),
) -> Result<Box<AnyStore>, ObjectError> {
    let (mut store, reported) = DeviceStore::begin(disk, device, transfer, geometry)?;
    if let Some(reported) = reported {
        store.claim(reported);
    }
    Ok(Box::new(AnyStore::Device(store)))
}

/// Creates the temporary file for symbols of content that is not stored as files.
pub(super) fn temporary_room(disk: Disk, path: PathBuf) -> Result<SpillFile, ObjectError> {
    let file = nameless(&path).map_err(|e| ObjectError::io(&path, "create a temporary file in it", e))?;
    Ok(SpillFile { disk, file, path })
}

pub(super) fn is_in_files(destination: &Destination, live: Option<u32>) -> bool {
    matches!((destination, live), (Destination::Directory(_), None))
}
