//! The codes of what members say beside their state (`reason` in docs/wire.md).

use crate::error::Error;
use crate::object::ObjectError;

/// Why a receiver has failed, as it tells the source.
pub(crate) const REASON_DISK_FULL: u8 = 1;
pub(crate) const REASON_PERMISSION: u8 = 2;
pub(crate) const REASON_CONTENT: u8 = 3;
pub(crate) const REASON_OTHER: u8 = 4;
pub(crate) const REASON_NO_DATA: u8 = 5;
pub(crate) const REASON_OLDER: u8 = 6;
pub(crate) const REASON_OTHER_SOURCE: u8 = 7;
/// Of a member that goes on: it is a relay.
pub(crate) const RELAYS: u8 = 17;
/// Of one that leaves: it goes on under another parent, so nobody here waits for it.
pub(crate) const MOVED: u8 = 18;
/// Of a receiver that goes on: it loses packets of the lowest layer, the only one that it has joined, while others are sent.
pub(crate) const FLOODED: u8 = 16;

/// Why it failed, as a receiver tells its source.
pub(super) fn reason(error: &Error) -> u8 {
    match error {
        Error::Object(ObjectError::DiskFull { .. }) => REASON_DISK_FULL,
        Error::Object(ObjectError::Denied { .. } | ObjectError::ReadOnly { .. }) => REASON_PERMISSION,
        Error::Object(ObjectError::Older { .. }) => REASON_OLDER,
        Error::Object(ObjectError::OtherSource { .. }) => REASON_OTHER_SOURCE,
        Error::RootMismatch => REASON_CONTENT,
        Error::Object(error) if error.is_contradiction() => REASON_CONTENT,
        _ => super::reach::reason(error).unwrap_or(REASON_OTHER),
    }
}
