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

/// Flag in the type of the last option.
pub(super) const END: u8 = 0x80;
/// Bytes of an option's header: type, length, a reserved octet with the extensibility bits, and an octet whose meaning depends on
/// the option.
pub(super) const OPTION_HEADER: usize = 4;
/// Bytes of OPT_LENGTH, the first option.
pub(super) const LENGTH_LEN: usize = 4;
/// Mask of the bits in the third octet that determine the treatment of an unknown option.
pub(super) const EXTENSIBILITY: u8 = 0x03;
pub(super) const DISCARD: u8 = 0x02;

/// Values of the fourth octet of [`super::OPT_FAIRCAST`]: the option contains a [`Stamp`], or the content of a report.
pub(super) const SAYS_STAMP: u8 = 0xf1;
pub(super) const SAYS_CONTENT: u8 = 0xf2;

/// Maximum number of packets that one NAK can request: one in a field of the NAK, the others in the list of the option (RFC 3208,
/// 9.3.5).
pub const SEQUENCES_PER_NAK: usize = 63;

/// The options of a packet. Parsing omits unknown options.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options<'a> {
    /// The position of the packet's payload in an application data unit (9.2).
    pub fragment: Option<Fragment>,
    /// Numbers of further packets that the NAK or NCF is about (9.3).
    pub nak_list: NakList<'a>,
    /// First packet that late joiners may request (9.4).
    pub join: Option<u32>,
    /// Time for which receivers wait before they send a NAK (15.4.1).
    pub back_off: Option<BackOff>,
    /// Limits of the waiting time (15.4.2).
    pub back_off_range: Option<BackOffRange>,
    /// Whether the session begins with this packet (9.6).
    pub syn: bool,
    /// Whether the session ends with this packet (9.7).
    pub fin: bool,
    /// Whether the session has failed (9.8).
    pub rst: bool,
    /// Fields of a PGMCC source.
    pub pgmcc_data: Option<PgmccData>,
    /// Fields of a PGMCC receiver.
    pub pgmcc_feedback: Option<PgmccFeedback>,
    /// Fields of a faircast scheme.
    pub extension: Option<OwnOption>,
}

/// Position of a fragment (RFC 3208, 9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Number of the packet with the first fragment.
    pub first: u32,
    /// Offset of this fragment in the application data unit, in bytes.
    pub offset: u32,
    /// Bytes of the unit.
    pub len: u32,
}

/// A list of packet numbers, in the encoding of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NakList<'a>(pub &'a [[u8; 4]]);

/// Time for which receivers wait before they send a NAK (RFC 3208, 15.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    /// Maximum waiting time, in microseconds.
    pub micros: u32,
    /// Number by which receivers recognize a new value of `micros`.
    pub sqn: u32,
}

/// Limits of the waiting time (RFC 3208, 15.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOffRange {
    /// Upper limit, in microseconds.
    pub longest: u32,
    /// Lower limit, in microseconds.
    pub shortest: u32,
}

/// Fields that a PGMCC source adds to each data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgmccData {
    /// The source's clock, in milliseconds.
    pub stamp: u32,
    /// Address of the acker; the unspecified address requests the election of an acker.
    pub acker: IpAddr,
}

/// Fields that a PGMCC receiver adds to each positive or negative acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgmccFeedback {
    /// Stamp of the newest packet plus the time for which the receiver held this packet, in milliseconds.
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
    /// Returns the numbers.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.0.iter().map(|sqn| u32::from_be_bytes(*sqn))
    }

    /// Returns whether the list contains no packet number.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}
