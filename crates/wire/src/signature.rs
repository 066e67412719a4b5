//! Encoding of a signature in packets that carry one.

/// Bytes of a signature.
pub const SIGNATURE_LEN: usize = 64;

/// An Ed25519 signature (RFC 8032).
pub type Signature = [u8; SIGNATURE_LEN];
