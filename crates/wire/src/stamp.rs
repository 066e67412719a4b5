//! Fields of schemes in packets of other formats: a source's [`Stamp`], and the content of a receiver's report.
//!
//! Reading is total, as for the native format: any bytes are read or refused.

use crate::codec::{Codec, Rounded};
use crate::error::{EncodeError, ParseError};
use crate::field::{fields_of, len_of};
use crate::reader::Reader;
use crate::{marks, reports};
use faircast_core::packet::{Flags, Mark, ReportContent, Signal};

/// Fields of a source's scheme in each data packet, for receivers that run the receiver half of the scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stamp {
    /// Number of the scheme in faircast's catalogue.
    pub scheme: u8,
    /// Lower 32 bits of the scheme's number of this transmission. A repair has a new number.
    pub seq: u32,
    /// Time of sending, in microseconds of the source's clock.
    pub micros: u32,
    /// Rate in bit/s; zero if the scheme does not state it.
    pub rate: f32,
    /// The scheme's flags.
    pub flags: Flags,
    /// The scheme's signal for this packet.
    pub signal: Signal,
    /// The scheme's mark.
    pub mark: Mark,
}

/// The fields of a [`Stamp`] before those of the mark.
#[derive(Debug, Clone)]
struct Fixed {
    scheme: u8,
    mark: u8,
    flags: u8,
    seq: u32,
    micros: u32,
    rate: f32,
}

group! {
    Fixed {
        scheme: u8, "number of the scheme in faircast's catalogue";
        mark: u8, "number of the mark, whose fields follow";
        flags: u8, "flags, and the bits of the mark";
        seq: u32, "lower 32 bits of the scheme's number of this transmission";
        micros: u32, "time of sending, in microseconds of the source's clock; wraps";
        rate: Rounded, "rate, in bit/s; 0: the scheme states no rate";
    }
}

const FIXED: usize = len_of(fields_of(Fixed::SHAPE));

/// Maximum length of a stamp, in bytes.
pub const MAX_STAMP: usize = FIXED + marks::MAX_LEN;

/// Maximum length of the content of a report, in bytes.
pub const MAX_CONTENT: usize = 1 + reports::MAX_LEN;

impl Stamp {
    /// Returns the length of a stamp with this mark, in bytes.
    pub fn len_with(mark: &Mark) -> usize {
        FIXED + marks::len(mark)
    }

    /// Appends the stamp.
    ///
    /// # Errors
    /// When a number does not fit its field, or the mark has no such signal.
    pub fn put(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let fields = Fixed {
            scheme: self.scheme,
            mark: marks::number(&self.mark),
            flags: marks::flags_byte(&self.mark, self.flags, self.signal)?,
            seq: self.seq,
            micros: self.micros,
            rate: self.rate,
        };
        Fixed::put(out, "stamp", &fields)?;
        marks::put(out, &self.mark)
    }

    /// Parses these bytes as a stamp.
    ///
    /// # Errors
    /// When the bytes are malformed, or more bytes follow.
    pub fn parse(bytes: &[u8]) -> Result<Stamp, ParseError> {
        whole(bytes, |r| {
            let Fixed { scheme, mark, flags, seq, micros, rate } = Fixed::read(r, "stamp")?;
            let (flags, signal) = marks::flags_of(mark, flags)?;
            let (number, mut mark) = (mark, Mark::None);
            marks::read_into(number, r, &mut mark)?;
            Ok(Stamp { scheme, seq, micros, rate, flags, signal, mark })
        })
    }
}

/// Appends the content of a report: its number and its fields.
///
/// # Errors
/// When a number does not fit its field.
pub fn put_content(out: &mut Vec<u8>, content: &ReportContent) -> Result<(), EncodeError> {
    crate::encode::put_content(out, content)
}

/// Parses these bytes as the content of a report.
///
/// # Errors
/// When the bytes are malformed, or more bytes follow.
pub fn parse_content(bytes: &[u8]) -> Result<ReportContent, ParseError> {
    whole(bytes, |r| {
        let number = u8::read(r, "content")?;
        reports::read(number, r)
    })
}

/// Reads a value from all of these bytes.
fn whole<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, ParseError>,
) -> Result<T, ParseError> {
    let mut r = Reader { bytes, at: 0 };
    let value = read(&mut r)?;
    match r.left() {
        0 => Ok(value),
        left => Err(ParseError::Trailing(left)),
    }
}
