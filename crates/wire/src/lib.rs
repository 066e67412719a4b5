//! faircast's native packet format: conversion between bytes and messages, unsealed or sealed.
//!
//! Every function that reads bytes is total: it never panics and never allocates more than the datagram's size. Reading and
//! writing data packets allocates nothing. The crate uses no clock and no socket. Only [`key::GroupKey::generate`] uses random
//! bytes of the operating system.
//!
//! | module | content |
//! |---|---|
//! | [`message`] | the messages, as Rust types |
//! | [`mod@parse`] [`mod@encode`] | bytes to messages and back, with a CRC-32C |
//! | `bodies` `marks` `reports` | the fields of packets, each declared once |
//! | [`key`] [`seal`] | the group's key and its relays' key, and packets sealed under them |
//! | [`sign`] | keys and statements of signed content |
//! | [`source`] [`receiver`] | the codecs of both ends, and of a relay's two sides: encode, seal, open, replay protection |
//! | [`mod@layers`] | the groups of a session's layers |
//! | [`stamp`] | fields of schemes in packets of other formats |
//! | [`fields`] | the field table, from which `docs/wire.md` and the Wireshark dissector are generated |

#[macro_use]
mod declare;
pub mod doctor;

mod bodies;
mod codec;
pub mod encode;
pub mod error;
mod field;
pub mod fields;
mod inbound;
pub mod key;
pub mod layers;
mod marks;
pub mod message;
mod name;
mod outbound;
pub mod parse;
mod reader;
pub mod receipt;
pub mod receiver;
mod replay;
mod reports;
pub mod seal;
mod senders;
mod series;
mod shells;
pub mod sign;
mod signature;
pub mod source;
pub mod stamp;
#[cfg(feature = "testing")]
pub mod testing;
mod withdrawn;

pub use bodies::Fit;
pub use codec::Quantised;
pub use encode::{Form, MAX_DATA_HEADER, data_header_len, encode, encode_data};
pub use error::{EncodeError, ParseError};
pub use fields::dissector_lua;
pub use key::{GroupKey, HopKey, KeyError, KeyId, KeyRing};
pub use layers::{Spacing, group_of};
pub use message::{
    Activity, Announce, Attach, DataPacket, Hashes, Header, Invite, Kind, Member, MemberState, Message, Name,
    NameTooLong, Need, Order, OrderAction, Refusal, RefusalReason, Request, Scheduled, Status, SymbolMap,
    Token, TransferId, Tree, TreeNode, Verified, Welcome, Window, Words,
};
pub use parse::{Newest, parse, peek};
pub use receipt::{Comparison, NeededPart, Receipt};
pub use receiver::ReceiverCodec;
pub use seal::OpenError;
pub use series::Series;
pub use sign::{Signed, SigningKey, VerifyKey, VerifyKeys};
pub use signature::{SIGNATURE_LEN, Signature};
pub use source::SourceCodec;
pub use withdrawn::{Withdrawn, WithdrawnPart};
