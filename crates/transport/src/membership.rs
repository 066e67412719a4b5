//! Codes and numbers of messages of membership (`reason` and `echo` in docs/wire.md).

use faircast_core::packet::{Echo, Seq};
use faircast_core::time::Span;

/// Reasons of a receiver that has failed.
pub(crate) const REASON_DISK_FULL: u8 = 1;
pub(crate) const REASON_PERMISSION: u8 = 2;
pub(crate) const REASON_CONTENT: u8 = 3;
pub(crate) const REASON_OTHER: u8 = 4;
pub(crate) const REASON_NO_DATA: u8 = 5;
pub(crate) const REASON_OLDER: u8 = 6;
pub(crate) const REASON_OTHER_SOURCE: u8 = 7;
/// Reason of a member that takes part: it is a relay.
pub(crate) const RELAYS: u8 = 17;
/// Reason of a member that leaves: it goes on under another parent.
pub(crate) const MOVED: u8 = 18;
/// Reason of a receiver that takes part: it loses packets of the lowest layer, the only one that it has joined, while others are sent.
pub(crate) const FLOODED: u8 = 16;

/// The echo of a member that has received no packet: no packet has this number, the largest that the format holds.
pub(crate) const NOTHING_YET: Echo = Echo { seq: Seq((1 << 62) - 1), hold: Span::ZERO };
