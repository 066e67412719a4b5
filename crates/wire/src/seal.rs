//! Sealed packets.

pub(crate) const TAG_LEN: usize = 16;
pub(crate) const NONCE_LEN: usize = 12;
pub(crate) const BOOT_LEN: usize = 8;
