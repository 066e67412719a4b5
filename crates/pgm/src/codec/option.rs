//! Options of PGM packets (RFC 3208, 9).

use faircast_core::packet::ReportContent;
use faircast_wire::stamp::Stamp;
use std::net::IpAddr;

pub(super) const LENGTH: u8 = 0x00;
pub(super) const FRAGMENT: u8 = 0x01;
pub(super) const NAK_LIST: u8 = 0x02;
pub(super) const JOIN: u8 = 0x03;
pub(super) const NAK_BO_IVL: u8 = 0x04;
pub(super) const NAK_BO_RNG: u8 = 0x05;
pub(super) const SYN: u8 = 0x0d;
pub(super) const FIN: u8 = 0x0e;
pub(super) const RST: u8 = 0x0f;
pub(super) const PGMCC_DATA: u8 = 0x12;
pub(super) const PGMCC_FEEDBACK: u8 = 0x13;

/// On the type of the last option.
pub(super) const END: u8 = 0x80;
/// Type, length, reserved octet with the extensibility bits, and an octet of the option's own.
pub(super) const OPTION_HEADER: usize = 4;
/// Bytes of OPT_LENGTH, which comes first.
pub(super) const LENGTH_LEN: usize = 4;
/// In the third octet: treatment of an unknown option.
pub(super) const EXTENSIBILITY: u8 = 0x03;
pub(super) const DISCARD: u8 = 0x02;

/// In the fourth octet of [`super::OPT_FAIRCAST`]: the value is a [`Stamp`], or a report's content.
pub(super) const SAYS_STAMP: u8 = 0xf1;
pub(super) const SAYS_CONTENT: u8 = 0xf2;

/// Packets that one NAK can name: its own field and a full list (RFC 3208, 9.3.5).
pub const SEQUENCES_PER_NAK: usize = 63;

/// The options of a packet. Unknown ones have been skipped.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options<'a> {
    /// The packet is a part of something larger (9.2).
    pub fragment: Option<Fragment>,
    /// More packets of the same NAK or NCF (9.3).
    pub nak_list: NakList<'a>,
    /// Late joiners may ask for packets from this one on (9.4).
    pub join: Option<u32>,
    /// How long to wait before a NAK (15.4.1).
    pub back_off: Option<BackOff>,
    /// Between what limits that lies (15.4.2).
    pub back_off_range: Option<BackOffRange>,
    /// The session begins here (9.6).
    pub syn: bool,
    /// The session ends here (9.7).
    pub fin: bool,
    /// The session has broken down (9.8).
    pub rst: bool,
    /// Fields of a PGMCC source.
    pub pgmcc_data: Option<PgmccData>,
    /// Fields of a PGMCC receiver.
    pub pgmcc_feedback: Option<PgmccFeedback>,
    /// Fields of a faircast scheme.
    pub said: Option<OwnOption>,
}

/// Where a fragment belongs (RFC 3208, 9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Number of the packet with the first fragment.
    pub first: u32,
    /// Where in the whole this one begins, in bytes.
    pub offset: u32,
    /// Bytes of the whole.
    pub len: u32,
}

/// A list of packet numbers, as encoded in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NakList<'a>(pub &'a [[u8; 4]]);

/// How long receivers wait before a NAK (RFC 3208, 15.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    /// Longest wait, in microseconds.
    pub micros: u32,
    /// Number that distinguishes a new value from an old one.
    pub sqn: u32,
}

/// Limits of that wait (RFC 3208, 15.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOffRange {
    /// In microseconds.
    pub longest: u32,
    /// In microseconds.
    pub shortest: u32,
}

/// Fields of a PGMCC source in each data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgmccData {
    /// The source's clock, in milliseconds.
    pub stamp: u32,
    /// The acker; the unspecified address asks for an election.
    pub acker: IpAddr,
}

/// Fields of a PGMCC receiver in each acknowledgement, positive or negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgmccFeedback {
    /// The newest packet's stamp and how long it was held, in milliseconds.
    pub stamp: u32,
    /// Smoothed loss fraction, in 65536ths.
    pub loss: u16,
    /// Address of the receiver.
    pub from: IpAddr,
}

/// Content of faircast's own option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OwnOption {
    /// From the source, in data packets.
    Stamp(Stamp),
    /// From a receiver, in acknowledgements.
    Content(ReportContent),
}

impl<'a> NakList<'a> {
    /// The numbers.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.0.iter().map(|sqn| u32::from_be_bytes(*sqn))
    }

    /// Whether there is no option.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}
