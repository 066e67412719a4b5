//! Errors of decoding and encoding.

use crate::message::{Kind, VERSION};
use faircast_core::packet::{Layer, ReceiverId, SessionId, Signal};

/// Reason why bytes are not a packet of this format.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ParseError {
    /// The datagram ends too early.
    #[error("{field} ends at byte {need}, but the datagram has {have} bytes: it is truncated")]
    Truncated {
        /// The expected field.
        field: &'static str,
        /// Number of bytes needed to read it.
        need: usize,
        /// Number of bytes in the datagram.
        have: usize,
    },
    /// The datagram is not a faircast packet.
    #[error("the first byte is {0:#04x} and not 0xfc: not a faircast packet")]
    NotOurs(u8),
    /// The format has another version.
    #[error(
        "format version {0} is not supported; this program supports version {VERSION}: update the older end"
    )]
    Version(u8),
    /// The packet kind is not known.
    #[error("packet kind {0} is not known")]
    UnknownKind(u8),
    /// The mark kind is not known.
    #[error("mark kind {0} is not known")]
    UnknownMark(u8),
    /// The packet was damaged on the path.
    #[error(
        "the CRC field is {found:#010x}, but the CRC of the bytes is {computed:#010x}: the packet was damaged on the path"
    )]
    Damaged {
        /// Value in the packet.
        found: u32,
        /// Value computed from the bytes of the packet.
        computed: u32,
    },
    /// The packet is sealed: only a codec with the key can read it.
    #[error("the packet is sealed; open it with the group's key")]
    Sealed,
    /// The packet has an unknown option that must be understood.
    #[error("option {0:#04x} is mandatory but not known: update this program")]
    UnknownOption(u8),
    /// The number in a field has no meaning.
    #[error("{field} has the invalid value {value}")]
    BadValue {
        /// Name of the field.
        field: &'static str,
        /// Value in the packet.
        value: u64,
    },
    /// The number cannot be a rate, a loss fraction or a level.
    #[error("{field} is not a usable number")]
    NotANumber {
        /// Name of the field.
        field: &'static str,
    },
    /// The text is not UTF-8.
    #[error("{field} is not UTF-8")]
    NotUtf8 {
        /// Name of the field.
        field: &'static str,
    },
    /// Bytes follow the end of the message.
    #[error("{0} bytes follow the end of the message")]
    Trailing(usize),
}

/// Reason why a message cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum EncodeError {
    /// The fixed part of the message does not fit.
    #[error("the message needs {need} bytes but the datagram may have {limit}: allow larger datagrams")]
    TooLong {
        /// Minimum number of bytes.
        need: usize,
        /// Number of allowed bytes.
        limit: usize,
    },
    /// The number is too large for its field.
    #[error("{field} is {value} but must be at most {max}")]
    TooLarge {
        /// Name of the field.
        field: &'static str,
        /// Value in the packet.
        value: u64,
        /// Largest number that fits.
        max: u64,
    },
    /// The number is below the minimum of its field.
    #[error("{field} is {value} but must be at least {least}")]
    TooSmall {
        /// Name of the field.
        field: &'static str,
        /// Value in the packet.
        value: u64,
        /// The minimum.
        least: u64,
    },
    /// The number cannot be a rate, a loss fraction or a level.
    #[error("{field} is {value}, which is not a usable number")]
    NotANumber {
        /// Name of the field.
        field: &'static str,
        /// Value in the packet.
        value: f32,
    },
    /// The flags have no meaning.
    #[error("the flags {0:#04x} are not defined")]
    UnknownFlags(u8),
    /// Packets with this mark have no bits for the signal.
    #[error("packets with the mark {mark} cannot carry {signal:?}: declare the signal with the mark")]
    NoSuchSignal {
        /// The mark's name.
        mark: &'static str,
        /// Signal to encode.
        signal: Signal,
    },
    /// The number was used before. Two packets sealed under the same number would reveal the contents of both.
    #[error("packet number {seq} of layer {layer} is not above the newest number, {newest}: each number seals only one packet", layer = layer.0)]
    NumberReused {
        /// Layer of the packet.
        layer: Layer,
        /// The packet's number.
        seq: u64,
        /// The newest number sealed.
        newest: u64,
    },
    /// This codec does not send messages of this kind.
    #[error("this codec does not send packets of kind {0:?}")]
    NotMine(Kind),
    /// The message names another sender.
    #[error("the message is from {from} but this codec sends as {me}")]
    NotMe {
        /// Sender of the message.
        from: ReceiverId,
        /// Receiver that the codec represents.
        me: ReceiverId,
    },
    /// The announcement has another salt than the keys.
    #[error("the salt of the announcement differs from the salt of the codec")]
    WrongSalt,
    /// The sealed session has not been announced yet.
    #[error("session {0} has not been announced yet: wait for its announcement")]
    NotAnnounced(SessionId),
}
