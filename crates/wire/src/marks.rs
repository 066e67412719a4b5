//! The marks of data packets in their encoded form. The upper half of the header's fourth byte selects the mark.

use crate::codec::Rounded;
use crate::error::{EncodeError, ParseError};
use crate::field::max_len;
use faircast_core::half::Half;
use faircast_core::packet::{Flags, LayerStates, Mark, ReceiverId, ShortId, Signal};

choice! {
    Mark, unknown numbers are ParseError::UnknownMark;

    0 "no_mark" "nothing" => None {}

    1 "representative" "congestion representative and its statistics (ORMCC, GMCC, MCA+)" [64 "control"] => Representative {
        id: Option<ReceiverId>, "ID of the representative; 0: none, all receivers may report";
        mean: Rounded, "mean of the representative's congestion level";
        deviation: Rounded, "mean deviation of the representative's level";
        rtt_max: Rounded, "largest round-trip time, in seconds";
    }

    2 "acker" "acknowledging receiver (PGMCC)" => Acker {
        id: Option<ReceiverId>, "ID of the acker; 0: an acker is being elected";
    }

    3 "equation" "equation-based control (TFMCC)" => Equation {
        suppress_above: Rounded, "reports above this rate are suppressed, in bit/s";
        rtt_max: Rounded, "largest round-trip time, in seconds";
        round: u8, "number of the feedback round";
        limiting: bool, "1: the receiver in `to` is the limiting one";
        to: Option<ReceiverId>, "receiver whose stamp is echoed; 0: none";
        echo: u32, "stamp of this receiver, in microseconds, plus the delay at the source";
    }

    4 "timetable" "slot of the timetable (RLC)" [8 "burst", 16 "sync"] => Timetable {
        slot: u32, "number of the slot since the start of the session";
    }

    5 "layered" "representative of the packet's layer, and state of each layer (GMCC)" [8 "gains", 16 "gives"] => Layered {
        id: Option<ShortId>, "ID of the representative; 0: none, all receivers may report";
        mean: Rounded, "mean of the representative's congestion level";
        error: Rounded, "standard error of the representative's mean level";
        rtt: Rounded, "round-trip time to the representative, in seconds";
        above: Half, "rate of the next higher layer, in bit/s; 0: the layer is off";
        updates: u8, "number of changes of the representative's statistics, modulo 256";
        states: LayerStates, "two bits per layer, the base layer in the lowest bits: 0 off, 1 on without a representative, 2 followed, 3 followed with enough samples";
    }

    6 "windows" "window of the whole tree, and duration of a round (MTCP)" [8 "local"] => Window {
        window: Rounded, "maximum number of packets in flight to the slowest receiver";
        rtt: Rounded, "time from sending a packet until all receivers have acknowledged it, in seconds; 0: not known";
    }

    7 "target" "receiver that acknowledges each packet, and interval of the other receivers' acknowledgements (RACCOOM)" => Target {
        id: Option<ShortId>, "ID of the target; 0: not known";
        since_cut: u16, "if a lost packet precedes this packet by more than this number, the source has already reacted to its loss; 2^16 - 1: the source has reacted to none of the losses that can be reported";
        rtt_max: Rounded, "largest round-trip time, in seconds";
        every: Rounded, "interval of other receivers' acknowledgements, in seconds; 0: all acknowledge each packet";
    }

    8 "floor" "minimum rate, and interval of acknowledgements (RMANP)" => Floor {
        least: Rounded, "minimum rate that the application accepts, in bit/s";
        rtt_max: Rounded, "largest round-trip time, in seconds";
        every: Rounded, "interval of each receiver's acknowledgements, in seconds; 0: each packet";
        excluded: Option<ShortId>, "ID of a receiver that is excluded and must leave; 0: none; 2^32 - 1: all receivers that get this packet";
    }
}

/// Returns the signals that packets with a mark of this number may have, with their bits in the byte of flags.
const fn signals(number: u8) -> &'static [(Signal, u8)] {
    match number {
        1 => &[(Signal::Control, 64)],
        4 => &[(Signal::Burst, 8), (Signal::SyncPoint, 8 + 16)],
        5 => &[(Signal::Gains, 8), (Signal::Gives, 16)],
        6 => &[(Signal::Local, 8)],
        _ => &[],
    }
}

/// Maximum length of a mark, in bytes.
pub(crate) const MAX_LEN: usize = max_len(LAYOUTS);

/// Returns the byte of flags: the common flags, and the bits of the signal, which depend on the mark.
#[inline]
pub(crate) fn flags_byte(mark: &Mark, flags: Flags, signal: Signal) -> Result<u8, EncodeError> {
    if flags.0 & !Flags::ALL.0 != 0 {
        return Err(EncodeError::UnknownFlags(flags.0));
    }
    if signal == Signal::None {
        return Ok(flags.0);
    }
    match signals(number(mark)).iter().find(|(declared, _)| *declared == signal) {
        Some((_, bits)) => Ok(flags.0 | bits),
        None => Err(EncodeError::NoSuchSignal { mark: name(mark), signal }),
    }
}

/// Decodes the flags of packets with a mark of this number.
#[inline]
pub(crate) fn flags_of(number: u8, byte: u8) -> Result<(Flags, Signal), ParseError> {
    let flags = Flags(byte & Flags::ALL.0);
    let bits = byte & !Flags::ALL.0;
    if bits == 0 {
        return Ok((flags, Signal::None));
    }
    match signals(number).iter().find(|(_, declared)| *declared == bits) {
        Some((signal, _)) => Ok((flags, *signal)),
        None => Err(ParseError::BadValue { field: "flags", value: byte.into() }),
    }
}

fn name(mark: &Mark) -> &'static str {
    LAYOUTS.iter().find(|layout| layout.number == number(mark)).map_or("", |layout| layout.name)
}

/// Generates any signal that packets with this mark may have.
#[cfg(feature = "testing")]
pub(crate) fn any_signal(mark: &Mark) -> impl proptest::strategy::Strategy<Value = Signal> + use<> {
    let declared = signals(number(mark)).iter().map(|(signal, _)| *signal);
    proptest::sample::select(declared.chain([Signal::None]).collect::<Vec<_>>())
}

/// Checks that the bits of signals differ from the common flags, and that the layout of the mark names them.
const _: () = {
    let mut at = 0;
    while at < LAYOUTS.len() {
        let mut named = 0;
        let mut bit = 0;
        while bit < LAYOUTS[at].bits.len() {
            named |= LAYOUTS[at].bits[bit].0;
            bit += 1;
        }
        assert!(named & Flags::ALL.0 == 0, "a mark's bit is a flag of all packets");
        let signals = signals(LAYOUTS[at].number);
        let mut one = 0;
        while one < signals.len() {
            assert!(signals[one].1 & !named == 0, "a signal has a bit that its mark does not name");
            one += 1;
        }
        at += 1;
    }
};
