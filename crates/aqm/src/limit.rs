//! Size of a buffer.

use faircast_core::spec::SpecError;
use std::fmt;
use std::str::FromStr;

/// Size of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Number of packets.
    Packets(u32),
    /// Number of bytes.
    Bytes(u32),
}

impl Limit {
    /// Returns whether a buffer that contains `packets` packets and `bytes` bytes has room for another packet of `size` bytes.
    #[inline]
    pub fn has_room(&self, packets: u32, bytes: u64, size: u16) -> bool {
        match *self {
            Limit::Packets(limit) => packets < limit,
            Limit::Bytes(limit) => bytes + u64::from(size) <= u64::from(limit),
        }
    }

    /// Returns whether `packets` packets, with `bytes` bytes in total, exceed the buffer.
    #[inline]
    pub fn is_exceeded(&self, packets: u32, bytes: u64) -> bool {
        match *self {
            Limit::Packets(limit) => packets > limit,
            Limit::Bytes(limit) => bytes > u64::from(limit),
        }
    }
}

/// The option for the field `limit` of a configuration, with its meaning.
macro_rules! option {
    ($meaning:literal) => {
        faircast_core::spec::Opt::other(
            "limit",
            "packets (`50`), bytes (`50kB`) or `unlimited`, above 0",
            |config| config.limit.to_string(),
            |config, text| {
                use $crate::limit::Limit;
                let limit = text.parse::<Limit>().ok();
                config.limit = limit.filter(|limit| !matches!(limit, Limit::Packets(0) | Limit::Bytes(0)))?;
                Some(())
            },
            $meaning,
        )
    };
}
pub(crate) use option;

impl FromStr for Limit {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Limit, SpecError> {
        let refuse = || SpecError::BadValue {
            option: "size",
            value: text.to_owned(),
            takes: "packets (`50`), bytes (`50kB`) or `unlimited`".to_owned(),
            meaning: "what the buffer holds",
        };
        if text == "unlimited" {
            return Ok(Limit::Packets(u32::MAX));
        }
        let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit);
        let factor = match unit {
            "" => return number.parse().map(Limit::Packets).map_err(|_| refuse()),
            "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            _ => return Err(refuse()),
        };
        let bytes = number.parse::<f64>().map_err(|_| refuse())? * factor;
        let whole = (bytes.fract() == 0.0 && bytes <= f64::from(u32::MAX)).then_some(bytes as u32);
        whole.map(Limit::Bytes).ok_or_else(refuse)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(u32::MAX) => f.write_str("unlimited"),
            Limit::Packets(packets) => write!(f, "{packets}"),
            Limit::Bytes(bytes) => write!(f, "{bytes}B"),
        }
    }
}
