//! Why bytes are no message, and why a message has no bytes.

use crate::message::{Kind, VERSION};
use faircast_core::packet::{Layer, ReceiverId, SessionId, Signal};

/// Why bytes are not a packet of ours.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ParseError {
    /// The datagram ends too early.
    #[error("{field} ends at byte {need}, but the datagram has {have} bytes: it was cut off")]
    Truncated {
        /// Field that was expected.
        field: &'static str,
        /// Bytes needed to read it.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Something else was sent to this port.
    #[error("the first byte is {0:#04x} and not 0xfc: not a faircast packet")]
    NotOurs(u8),
    /// Another version of the format.
    #[error("format version {0}; this program speaks version {VERSION}: update the older end")]
    Version(u8),
    /// No such kind.
    #[error("packet kind {0} is not known")]
    UnknownKind(u8),
    /// No such mark.
    #[error("mark kind {0} is not known")]
    UnknownMark(u8),
    /// Damaged on the way.
    #[error("the CRC is {found:#010x} but the bytes give {computed:#010x}: damaged on the way")]
    Damaged {
        /// Value in the packet.
        found: u32,
        /// Value computed from its bytes.
        computed: u32,
    },
    /// A sealed packet: only a codec with the key can read on.
    #[error("the packet is sealed; open it with the group's key")]
    Sealed,
    /// An unknown option that must be understood.
    #[error("option {0:#04x} must be understood and is not: update this program")]
    UnknownOption(u8),
    /// A field's number has no meaning.
    #[error("{field} cannot be {value}")]
    BadValue {
        /// Which field.
        field: &'static str,
        /// Value in the packet.
        value: u64,
    },
    /// A number that cannot be a rate, a loss fraction or a level.
    #[error("{field} is not a usable number")]
    NotANumber {
        /// Which field.
        field: &'static str,
    },
    /// A text that is not UTF-8.
    #[error("{field} is not UTF-8")]
    NotUtf8 {
        /// Which field.
        field: &'static str,
    },
    /// There is more than the message.
    #[error("{0} bytes follow the end of the message")]
    Trailing(usize),
}

/// Why a message cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum EncodeError {
    /// Not even its fixed part fits.
    #[error("the message needs {need} bytes but the datagram may have {limit}: allow larger datagrams")]
    TooLong {
        /// Bytes it needs at least.
        need: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// A number is larger than its field.
    #[error("{field} is {value} but must be at most {max}")]
    TooLarge {
        /// Which field.
        field: &'static str,
        /// Value in the packet.
        value: u64,
        /// Largest number that fits.
        max: u64,
    },
    /// A number is below the smallest possible one.
    #[error("{field} is {value} but must be at least {least}")]
    TooSmall {
        /// Which field.
        field: &'static str,
        /// Value in the packet.
        value: u64,
        /// Smallest number there can be.
        least: u64,
    },
    /// A number that cannot be a rate, a loss fraction or a level.
    #[error("{field} is {value}, which is not a usable number")]
    NotANumber {
        /// Which field.
        field: &'static str,
        /// Value in the packet.
        value: f32,
    },
    /// Flags that stand for nothing.
    #[error("there are no flags {0:#04x}")]
    UnknownFlags(u8),
    /// A signal that packets with this mark have no bits for.
    #[error("packets with the mark {mark} cannot say {signal:?}: declare the signal with the mark")]
    NoSuchSignal {
        /// The mark's name.
        mark: &'static str,
        /// Signal to encode.
        signal: Signal,
    },
    /// Sealing a second packet under the same number would give both away.
    #[error("packet {seq} of layer {layer} follows {newest}: a number seals one packet only", layer = layer.0)]
    NumberReused {
        /// Which layer.
        layer: Layer,
        /// The packet's number.
        seq: u64,
        /// The newest number sealed.
        newest: u64,
    },
    /// This end does not send such messages.
    #[error("this end does not send packets of kind {0:?}")]
    NotMine(Kind),
    /// A message in somebody else's name.
    #[error("the message is from {from} but this codec speaks for {me}")]
    NotMe {
        /// Sender of the message.
        from: ReceiverId,
        /// Whom the codec speaks for.
        me: ReceiverId,
    },
    /// An announcement with another salt than the keys were derived from.
    #[error("the announcement's salt is not the one that the codec was made with")]
    WrongSalt,
    /// A sealed session cannot be answered before it is known.
    #[error("session {0} has not been announced yet: wait for its announcement")]
    NotAnnounced(SessionId),
}
