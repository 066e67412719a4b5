//! Codes and numbers in membership messages (`reason` and `echo` in docs/wire.md).

use faircast_core::packet::{Echo, Seq};
use faircast_core::time::Span;

/// Reason codes of a failed receiver.
pub(crate) const REASON_DISK_FULL: u8 = 1;
pub(crate) const REASON_PERMISSION: u8 = 2;
pub(crate) const REASON_CONTENT: u8 = 3;
pub(crate) const REASON_OTHER: u8 = 4;
pub(crate) const REASON_NO_DATA: u8 = 5;
pub(crate) const REASON_OLDER: u8 = 6;
pub(crate) const REASON_OTHER_SOURCE: u8 = 7;
/// Reason code of an active member that is a relay.
pub(crate) const RELAYS: u8 = 17;
/// Reason code of a departing member that continues under another parent.
pub(crate) const MOVED: u8 = 18;
/// Reason code of an active receiver that has joined only the base layer, but loses packets of the base layer while the source
/// also sends enhancement layers.
pub(crate) const FLOODED: u8 = 16;

/// The echo of a member that has received no packet. Its packet number, the largest that the format can express, is never used.
pub(crate) const NOTHING_YET: Echo = Echo { seq: Seq((1 << 62) - 1), hold: Span::ZERO };
