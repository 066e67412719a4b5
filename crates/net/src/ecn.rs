//! Explicit congestion notification.

/// Explicit congestion notification in a datagram's IP header (RFC 3168, 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The sender does not support ECN.
    #[default]
    NotEct,
    /// The sender supports ECN: ECT(1).
    Ect1,
    /// The sender supports ECN: ECT(0).
    Ect0,
    /// A router on the path was congested.
    Ce,
}

impl Ecn {
    /// Converts the two low bits of a type-of-service or traffic-class octet.
    pub const fn from_bits(octet: u8) -> Ecn {
        match octet & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Returns the two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }
}
