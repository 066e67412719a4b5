//! The reason codes of failures in membership messages.

use crate::error::{Error, StorageError, TransferError};
use crate::membership::{
    REASON_CONTENT, REASON_DISK_FULL, REASON_OLDER, REASON_OTHER, REASON_OTHER_SOURCE, REASON_PERMISSION,
};
use crate::object::ObjectError;

/// Returns the reason code of this failure.
pub(super) fn reason(error: &Error) -> u8 {
    match error {
        Error::Storage(StorageError::Object(ObjectError::DiskFull { .. })) => REASON_DISK_FULL,
        Error::Storage(StorageError::Object(ObjectError::Denied { .. } | ObjectError::ReadOnly { .. })) => {
            REASON_PERMISSION
        }
        Error::Storage(StorageError::Object(ObjectError::Older { .. })) => REASON_OLDER,
        Error::Storage(StorageError::Object(ObjectError::OtherSource { .. })) => REASON_OTHER_SOURCE,
        Error::Transfer(TransferError::RootMismatch) => REASON_CONTENT,
        Error::Storage(StorageError::Object(error)) if error.is_contradiction() => REASON_CONTENT,
        _ => super::reachability::reason(error).unwrap_or(REASON_OTHER),
    }
}
