//! Conversion of values to bytes and back: one type for each encoding of a field.
//!
//! Most types of the core and of [`crate::message`] have a single encoding. For a type with several encodings (a 32-bit number, a
//! float), an enum without variants names each encoding.

use crate::error::{EncodeError, ParseError};
use crate::field::{Field, Shape};
use crate::key::KeyId;
use crate::message::{Activity, Announce, MemberState, Name, OrderAction, RefusalReason, TransferId, Words};
use crate::reader::Reader;
use crate::receipt::Comparison;
use crate::series::Series;
use faircast_core::half::{self, Half};
use faircast_core::packet::{Cause, Echo, Hole, Holes, Knows, LayerStates, ReceiverId, Seq, ShortId};
use faircast_core::time::Span;
#[cfg(feature = "testing")]
use proptest::prelude::*;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Upper bound of counters on the wire. Sums of counters below this bound cannot overflow.
pub(crate) const SEQ_LIMIT: u64 = 1 << 62;

/// An encoding of a field.
pub(crate) trait Codec {
    /// Type of the value.
    type Value: Clone;
    /// Its representation in the packet.
    const SHAPE: Shape;

    /// Appends the value. Errors name `field`.
    fn put(out: &mut Vec<u8>, field: &'static str, value: &Self::Value) -> Result<(), EncodeError>;

    /// Reads the value from any bytes.
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<Self::Value, ParseError>;

    /// Returns the value that the peer reads; its precision may be lower.
    fn quantised(value: &Self::Value) -> Self::Value {
        value.clone()
    }

    /// Generates any value that can be written.
    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<Self::Value>;
}

/// Conversion of a message to the precision of the wire format.
pub trait Quantised {
    /// Returns the message that the peer reads: some numbers lose precision in packets.
    #[must_use]
    fn quantised(&self) -> Self;
}

/// Reads `count` entries of `size` bytes each. Checks that the bytes are present before it allocates memory.
pub(crate) fn take_list<C: Codec>(
    r: &mut Reader<'_>,
    field: &'static str,
    count: u16,
    size: usize,
) -> Result<Vec<C::Value>, ParseError> {
    let mut entries = *r;
    r.take(field, usize::from(count) * size)?;
    (0..count).map(|_| C::read(&mut entries, field)).collect()
}

/// Three bytes of a number.
pub(crate) enum U24 {}
/// Four bytes of bits, shown in hexadecimal.
pub(crate) enum Bits32 {}
/// A packet or block number: below 2^62.
pub(crate) enum Counter {}
/// A 32-bit number whose maximum means "none".
pub(crate) enum U32OrNone {}
/// A 64-bit number whose maximum means "none".
pub(crate) enum U64OrNone {}
/// A number that is not negative, rounded to 16 bits.
pub(crate) enum Rounded {}
/// Any finite number, as a level of congestion.
pub(crate) enum Level {}
/// A rate in bit/s: not negative.
pub(crate) enum BitRate {}
/// A number from 0 to 1.
pub(crate) enum Fraction {}
/// Size of a packet on the link with all its headers, in bytes.
pub(crate) enum PacketSize {}
/// A name that takes no bytes when it is empty. Readers that do not know the field refuse a message with such a name.
pub(crate) enum RareName {}
/// The place in a series. Readers that do not know the field refuse a message with it.
pub(crate) enum RareSeries {}
/// A length. Readers that do not know the field refuse a message with it.
pub(crate) enum RareLength {}
/// A comparison. Readers that do not know the field refuse a message with it.
pub(crate) enum RareComparison {}

impl U24 {
    pub(crate) const MAX: u32 = 0xff_ffff;
}

macro_rules! uints {
    ($($uint:ident)*) => {$(
        impl Codec for $uint {
            type Value = $uint;
            const SHAPE: Shape = Shape::Uint(size_of::<$uint>());

            #[inline]
            fn put(out: &mut Vec<u8>, _field: &'static str, value: &$uint) -> Result<(), EncodeError> {
                out.extend_from_slice(&value.to_be_bytes());
                Ok(())
            }

            #[inline]
            fn read(r: &mut Reader<'_>, field: &'static str) -> Result<$uint, ParseError> {
                r.array(field).map($uint::from_be_bytes)
            }

            #[cfg(feature = "testing")]
            fn any() -> BoxedStrategy<$uint> {
                any::<$uint>().boxed()
            }
        }
    )*};
}

macro_rules! uints_or_none {
    ($($codec:ident: $uint:ident;)*) => {$(
        impl Codec for $codec {
            type Value = Option<$uint>;
            const SHAPE: Shape = <$uint as Codec>::SHAPE;

            #[inline]
            fn put(out: &mut Vec<u8>, field: &'static str, value: &Option<$uint>) -> Result<(), EncodeError> {
                if let Some(value) = *value {
                    at_most(field, value.into(), u64::from($uint::MAX) - 1)?;
                }
                $uint::put(out, field, &value.unwrap_or($uint::MAX))
            }

            #[inline]
            fn read(r: &mut Reader<'_>, field: &'static str) -> Result<Option<$uint>, ParseError> {
                Ok(Some($uint::read(r, field)?).filter(|&value| value != $uint::MAX))
            }

            #[cfg(feature = "testing")]
            fn any() -> BoxedStrategy<Option<$uint>> {
                prop::option::of(0..$uint::MAX).boxed()
            }
        }
    )*};
}

uints! { u8 u16 u32 u64 }
uints_or_none! { U32OrNone: u32; U64OrNone: u64; }

macro_rules! floats {
    ($($codec:ident, |$value:ident| $usable:expr;)*) => {$(
        impl Codec for $codec {
            type Value = f32;
            const SHAPE: Shape = Shape::Float;

            #[inline]
            fn put(out: &mut Vec<u8>, field: &'static str, value: &f32) -> Result<(), EncodeError> {
                let $value = *value;
                let usable: bool = $usable;
                if !usable {
                    return Err(EncodeError::NotANumber { field, value: $value });
                }
                u32::put(out, field, &$value.to_bits())
            }

            #[inline]
            fn read(r: &mut Reader<'_>, field: &'static str) -> Result<f32, ParseError> {
                let $value = f32::from_bits(u32::read(r, field)?);
                if $usable { Ok($value) } else { Err(ParseError::NotANumber { field }) }
            }

            #[cfg(feature = "testing")]
            fn any() -> BoxedStrategy<f32> {
                prop_oneof![0.0..=1.0_f32, any::<f32>()]
                    .prop_filter("in range", |&$value| $usable)
                    .boxed()
            }
        }
    )*};
}

floats! {
    Level, |value| !value.is_nan();
    BitRate, |value| value >= 0.0;
    Fraction, |value| (0.0..=1.0).contains(&value);
}

/// Types whose values have fixed numbers.
macro_rules! numbered {
    ($($of:ident { $($number:literal => $variant:ident $name:literal,)* })*) => {$(
        impl Codec for $of {
            type Value = $of;
            const SHAPE: Shape = Shape::Choice(&[$(($number, $name)),*]);

            #[inline]
            fn put(out: &mut Vec<u8>, _field: &'static str, value: &$of) -> Result<(), EncodeError> {
                out.push(match value { $($of::$variant => $number),* });
                Ok(())
            }

            #[inline]
            fn read(r: &mut Reader<'_>, field: &'static str) -> Result<$of, ParseError> {
                match u8::read(r, field)? {
                    $($number => Ok($of::$variant),)*
                    value => Err(ParseError::BadValue { field, value: value.into() }),
                }
            }

            #[cfg(feature = "testing")]
            fn any() -> BoxedStrategy<$of> {
                prop::sample::select(vec![$($of::$variant),*]).boxed()
            }
        }
    )*};
}

numbered! {
    Cause {
        0 => Loss "loss",
        1 => Mark "mark",
        2 => Heartbeat "heartbeat",
        3 => Leaving "leaving",
        4 => Joining "joining",
        5 => Accumulation "accumulation",
    }
    MemberState {
        0 => Joined "joined",
        1 => Receiving "receiving",
        2 => Done "done",
        3 => Failed "failed",
        4 => Leaving "leaving",
        5 => Asking "asking",
        6 => Relaying "relaying",
    }
    Activity {
        0 => Network "receives from the network",
        1 => Verifying "verifies data of an earlier run",
        2 => Completing "sets the metadata of files and flushes them",
        3 => Renaming "renames files",
        4 => Linking "creates links and directories",
    }
    OrderAction {
        0 => Join "join",
        1 => Poll "poll",
        2 => Serves "serves",
        3 => Heard "heard",
    }
    RefusalReason {
        1 => NoKey "no key",
        2 => OtherKey "another key",
        3 => Unsealed "not sealed",
        4 => Unsigned "not signed",
        5 => OtherSigner "another signer",
        6 => WrongSignature "wrong signature",
        7 => UnknownScheme "unknown scheme",
        8 => Senseless "senseless",
        9 => OtherVersion "another version",
        10 => NotAccepted "not accepted",
        11 => Busy "busy",
    }
}

written_as! {
    Bits32: u32 as u32, Shape::Hex(4), |bits| *bits, |bits| bits;
    KeyId: KeyId as Bits32, Shape::Hex(4), |key| key.0, |bits| KeyId(bits);
    LayerStates: LayerStates as u32, Shape::Hex(4), |states| states.0, |bits| LayerStates(bits);
    Half: Half as u16, Shape::Half, |half| half.0, |code| Half(code);
    Knows: Knows as u8, Shape::Flags(&[(Knows::RTT.0, "round-trip time"), (Knows::LOSS.0, "loss"), (Knows::LEAVING.0, "leaving")]), |knows| knows.0, |bits| Knows(bits);
    Seq: Seq as Counter, <Counter as Codec>::SHAPE, |seq| seq.0, |number| Seq(number);
    Span: Span as u64, Shape::Uint(8), |span| span.as_nanos(), |nanos| Span::from_nanos(nanos);
    TransferId: TransferId as [u8; 16], Shape::Bytes(16), |id| id.0, |bytes| TransferId(bytes);
}

impl Codec for U24 {
    type Value = u32;
    const SHAPE: Shape = Shape::Uint(3);

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &u32) -> Result<(), EncodeError> {
        at_most(field, (*value).into(), U24::MAX.into())?;
        out.extend_from_slice(&value.to_be_bytes()[1..]);
        Ok(())
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<u32, ParseError> {
        r.array(field).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<u32> {
        (0..=U24::MAX).boxed()
    }
}

impl Codec for Counter {
    type Value = u64;
    const SHAPE: Shape = Shape::Uint(8);

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &u64) -> Result<(), EncodeError> {
        at_most(field, *value, SEQ_LIMIT - 1)?;
        u64::put(out, field, value)
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<u64, ParseError> {
        match u64::read(r, field)? {
            value if value < SEQ_LIMIT => Ok(value),
            value => Err(ParseError::BadValue { field, value }),
        }
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<u64> {
        prop_oneof![0..100_u64, 0..SEQ_LIMIT].boxed()
    }
}

impl Codec for PacketSize {
    type Value = u16;
    const SHAPE: Shape = <u16 as Codec>::SHAPE;

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &u16) -> Result<(), EncodeError> {
        let least = Announce::MIN_PACKET;
        if *value < least {
            return Err(EncodeError::TooSmall { field, value: (*value).into(), least: least.into() });
        }
        u16::put(out, field, value)
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<u16, ParseError> {
        match u16::read(r, field)? {
            value if value < Announce::MIN_PACKET => Err(ParseError::BadValue { field, value: value.into() }),
            value => Ok(value),
        }
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<u16> {
        (Announce::MIN_PACKET..).boxed()
    }
}

impl Codec for Rounded {
    type Value = f32;
    const SHAPE: Shape = Shape::Half;

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &f32) -> Result<(), EncodeError> {
        if value.is_nan() || *value < 0.0 {
            return Err(EncodeError::NotANumber { field, value: *value });
        }
        u16::put(out, field, &half::encode(*value))
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<f32, ParseError> {
        u16::read(r, field).map(half::decode)
    }

    fn quantised(value: &f32) -> f32 {
        half::decode(half::encode(*value))
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<f32> {
        prop_oneof![any::<u16>().prop_map(half::decode), BitRate::any()].boxed()
    }
}

impl Codec for bool {
    type Value = bool;
    const SHAPE: Shape = Shape::Uint(1);

    #[inline]
    fn put(out: &mut Vec<u8>, _field: &'static str, value: &bool) -> Result<(), EncodeError> {
        out.push(u8::from(*value));
        Ok(())
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<bool, ParseError> {
        match u8::read(r, field)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(ParseError::BadValue { field, value: value.into() }),
        }
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<bool> {
        any::<bool>().boxed()
    }
}

/// Encodes IPv4 addresses as IPv4-mapped IPv6 addresses (RFC 4291, 2.5.5.2). The scope of an address is not sent, because a scope
/// has a meaning on one host only.
impl Codec for SocketAddr {
    type Value = SocketAddr;
    const SHAPE: Shape = Shape::Address;

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &SocketAddr) -> Result<(), EncodeError> {
        let ip = match value.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        out.extend_from_slice(&ip.octets());
        u16::put(out, field, &value.port())
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<SocketAddr, ParseError> {
        let ip = Ipv6Addr::from(r.array::<16>(field)?).to_canonical();
        Ok(SocketAddr::new(ip, u16::read(r, field)?))
    }

    fn quantised(value: &SocketAddr) -> SocketAddr {
        SocketAddr::new(value.ip().to_canonical(), value.port())
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<SocketAddr> {
        (any::<std::net::IpAddr>(), any::<u16>())
            .prop_map(|(ip, port)| SocketAddr::new(ip.to_canonical(), port))
            .boxed()
    }
}

impl<const N: usize> Codec for [u8; N] {
    type Value = [u8; N];
    const SHAPE: Shape = Shape::Bytes(N);

    #[inline]
    fn put(out: &mut Vec<u8>, _field: &'static str, value: &[u8; N]) -> Result<(), EncodeError> {
        out.extend_from_slice(value);
        Ok(())
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<[u8; N], ParseError> {
        r.array(field)
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<[u8; N]> {
        any::<[u8; N]>().boxed()
    }
}

impl<const N: usize> Codec for Option<[u8; N]> {
    type Value = Option<[u8; N]>;
    const SHAPE: Shape = Shape::Optional(N);

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &Option<[u8; N]>) -> Result<(), EncodeError> {
        bool::put(out, field, &value.is_some())?;
        out.extend_from_slice(value.as_ref().map_or(&[], |bytes| bytes));
        Ok(())
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<Option<[u8; N]>, ParseError> {
        if bool::read(r, field)? { r.array(field).map(Some) } else { Ok(None) }
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<Option<[u8; N]>> {
        any::<Option<[u8; N]>>().boxed()
    }
}

impl Codec for Option<ReceiverId> {
    type Value = Option<ReceiverId>;
    const SHAPE: Shape = Shape::Hex(4);

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &Option<ReceiverId>) -> Result<(), EncodeError> {
        let id = value.map_or(0, ReceiverId::get);
        at_most(field, id, u32::MAX.into())?;
        u32::put(out, field, &(id as u32))
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<Option<ReceiverId>, ParseError> {
        Ok(ReceiverId::new(u32::read(r, field)?.into()))
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<Option<ReceiverId>> {
        prop_oneof![1 => Just(0), 3 => any::<u32>()].prop_map(|id| ReceiverId::new(id.into())).boxed()
    }
}

impl Codec for Option<ShortId> {
    type Value = Option<ShortId>;
    const SHAPE: Shape = Shape::Hex(4);

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &Option<ShortId>) -> Result<(), EncodeError> {
        Option::<ReceiverId>::put(out, field, &value.map(ReceiverId::from))
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<Option<ShortId>, ParseError> {
        Ok(Option::<ReceiverId>::read(r, field)?.and_then(ShortId::of))
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<Option<ShortId>> {
        Option::<ReceiverId>::any().prop_map(|id| id.and_then(ShortId::of)).boxed()
    }
}

impl Codec for ReceiverId {
    type Value = ReceiverId;
    const SHAPE: Shape = Shape::Hex(4);

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &ReceiverId) -> Result<(), EncodeError> {
        Option::<ReceiverId>::put(out, field, &Some(*value))
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<ReceiverId, ParseError> {
        Option::<ReceiverId>::read(r, field)?.ok_or(ParseError::BadValue { field, value: 0 })
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<ReceiverId> {
        let id = |id: u32| ReceiverId::new(id.into()).expect("not zero");
        (1..=u32::MAX).prop_map(id).boxed()
    }
}

macro_rules! texts {
    ($($text:ident)*) => {$(
        impl Codec for $text {
            type Value = $text;
            const SHAPE: Shape = Shape::Text($text::MAX);

            #[inline]
            fn put(out: &mut Vec<u8>, _field: &'static str, value: &$text) -> Result<(), EncodeError> {
                put_text(out, value.as_str());
                Ok(())
            }

            #[inline]
            fn read(r: &mut Reader<'_>, field: &'static str) -> Result<$text, ParseError> {
                read_text(r, field, $text::MAX).map($text::clipped)
            }

            #[cfg(feature = "testing")]
            fn any() -> BoxedStrategy<$text> {
                any::<String>().prop_map(|text| $text::clipped(&text)).boxed()
            }
        }
    )*};
}

texts! { Name Words }

/// Fields that take no bytes when they are empty. Otherwise a byte precedes the value, with which the next field never begins.
macro_rules! rare {
    ($($codec:ident = $mark:literal, $shape:expr, $value:ty: $empty:expr, $put:expr, $read:expr, $any:expr;)*) => {$(
        impl Codec for $codec {
            type Value = $value;
            const SHAPE: Shape = $shape;

            #[inline]
            fn put(out: &mut Vec<u8>, field: &'static str, value: &$value) -> Result<(), EncodeError> {
                if *value == $empty {
                    return Ok(());
                }
                out.push($mark);
                $put(out, field, value)
            }

            #[inline]
            fn read(r: &mut Reader<'_>, field: &'static str) -> Result<$value, ParseError> {
                if r.rest().first() != Some(&$mark) {
                    return Ok($empty);
                }
                r.take(field, 1)?;
                match $read(r, field)? {
                    value if value == $empty => Err(ParseError::BadValue { field, value: 0 }),
                    value => Ok(value),
                }
            }

            #[cfg(feature = "testing")]
            fn any() -> BoxedStrategy<$value> {
                prop_oneof![Just($empty), $any].boxed()
            }
        }
    )*};
}

rare! {
    RareName = 2, Shape::RareText(Name::MAX), Name: Name::EMPTY, Name::put, Name::read, Name::any();
    RareSeries = 3, Shape::Rare(3, 16), Option<Series>: None, put_series, read_series,
        any::<(u64, u64)>().prop_map(|(id, number)| Some(Series { id, number }));
    RareLength = 4, Shape::Rare(4, 8), Option<u64>: None, put_length, read_length,
        any::<u64>().prop_map(Some);
    RareComparison = 255, Shape::Rare(255, Comparison::LEN), Option<Box<Comparison>>: None, put_comparison,
        read_comparison, proptest::collection::vec(any::<u8>(), Comparison::LEN).prop_map(|bytes| {
            let bytes = bytes.first_chunk().expect("the vector is as long");
            Some(Box::new(Comparison::from_bytes(bytes)))
        });
}

fn put_series(out: &mut Vec<u8>, field: &'static str, series: &Option<Series>) -> Result<(), EncodeError> {
    let Some(Series { id, number }) = series else { return Ok(()) };
    u64::put(out, field, id)?;
    u64::put(out, field, number)
}

fn put_length(out: &mut Vec<u8>, field: &'static str, len: &Option<u64>) -> Result<(), EncodeError> {
    len.as_ref().map_or(Ok(()), |len| u64::put(out, field, len))
}

fn read_length(r: &mut Reader<'_>, field: &'static str) -> Result<Option<u64>, ParseError> {
    Ok(Some(u64::read(r, field)?))
}

fn put_comparison(
    out: &mut Vec<u8>,
    _field: &'static str,
    comparison: &Option<Box<Comparison>>,
) -> Result<(), EncodeError> {
    out.extend(comparison.iter().flat_map(|comparison| comparison.to_bytes()));
    Ok(())
}

fn read_comparison(r: &mut Reader<'_>, field: &'static str) -> Result<Option<Box<Comparison>>, ParseError> {
    Ok(Some(Box::new(Comparison::from_bytes(&r.array(field)?))))
}

fn read_series(r: &mut Reader<'_>, field: &'static str) -> Result<Option<Series>, ParseError> {
    Ok(Some(Series { id: u64::read(r, field)?, number: u64::read(r, field)? }))
}

/// Writes a text of at most 255 bytes after its length.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

/// Reads a text of at most `most` bytes. Control characters, which a terminal would obey, are refused.
fn read_text<'a>(r: &mut Reader<'a>, field: &'static str, most: usize) -> Result<&'a str, ParseError> {
    let len = u8::read(r, field)?;
    if usize::from(len) > most {
        return Err(ParseError::BadValue { field, value: len.into() });
    }
    let bytes = r.take(field, len.into())?;
    let text = str::from_utf8(bytes).map_err(|_| ParseError::NotUtf8 { field })?;
    match text.chars().find(|character| character.is_control()) {
        Some(control) => Err(ParseError::BadValue { field, value: u64::from(u32::from(control)) }),
        None => Ok(text),
    }
}

group! {
    Echo {
        seq as "echo_seq": Seq, "number of the answered packet of the source, unwrapped";
        hold as "echo_hold": Span, "delay at the receiver, in nanoseconds";
    }
}

/// Each hole has a first number and a count. Unused holes have a count of 0 and come last.
impl Codec for Holes {
    type Value = Holes;
    const SHAPE: Shape = {
        const fn back(name: &'static str) -> Field {
            let meaning = "distance of the range's first missing packet below echo_seq";
            Field { name, shape: <u16 as Codec>::SHAPE, meaning }
        }
        const fn count(name: &'static str) -> Field {
            Field {
                name,
                shape: <u16 as Codec>::SHAPE,
                meaning: "number of missing packets in the range; 0: no range",
            }
        }
        Shape::Group(&[
            back("hole_1_back"),
            count("hole_1_count"),
            back("hole_2_back"),
            count("hole_2_count"),
            back("hole_3_back"),
            count("hole_3_count"),
        ])
    };

    #[inline]
    fn put(out: &mut Vec<u8>, field: &'static str, value: &Holes) -> Result<(), EncodeError> {
        value.0.iter().try_for_each(|hole| {
            u16::put(out, field, &hole.back)?;
            u16::put(out, field, &hole.count)
        })
    }

    #[inline]
    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<Holes, ParseError> {
        let mut holes = Holes::default();
        for hole in &mut holes.0 {
            *hole = Hole { back: u16::read(r, field)?, count: u16::read(r, field)? };
        }
        Ok(holes)
    }

    #[cfg(feature = "testing")]
    fn any() -> BoxedStrategy<Holes> {
        let hole = || any::<(u16, u16)>().prop_map(|(back, count)| Hole { back, count });
        (hole(), hole(), hole()).prop_map(|(one, two, three)| Holes([one, two, three])).boxed()
    }
}

pub(crate) fn at_most(field: &'static str, value: u64, max: u64) -> Result<(), EncodeError> {
    if value <= max { Ok(()) } else { Err(EncodeError::TooLarge { field, value, max }) }
}
