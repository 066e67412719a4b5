//! The marks of data packets in their encoded form. The upper half of the header's fourth byte selects one.

use crate::codec::Rounded;
use crate::error::{EncodeError, ParseError};
use crate::field::max_len;
use faircast_core::half::Half;
use faircast_core::packet::{Flags, LayerStates, Mark, ReceiverId, ShortId, Signal};

choice! {
    Mark, unknown numbers are ParseError::UnknownMark;

    0 "no_mark" "nothing" => None {}

    1 "representative" "the congestion representative and its statistics (ORMCC, GMCC, MCA+)" [64 "control"] => Representative {
        id: Option<ReceiverId>, "its id; 0: none, everybody may report";
        mean: Rounded, "mean of its level";
        deviation: Rounded, "mean deviation of its level";
        rtt_max: Rounded, "largest round-trip time, in seconds";
    }

    2 "acker" "the acknowledging receiver (PGMCC)" => Acker {
        id: Option<ReceiverId>, "its id; 0: an election";
    }

    3 "equation" "equation-based control (TFMCC)" => Equation {
        suppress_above: Rounded, "reports above this rate are suppressed, in bit/s";
        rtt_max: Rounded, "largest round-trip time, in seconds";
        round: u8, "feedback round";
        limiting: bool, "1: the receiver below is the current limiting one";
        to: Option<ReceiverId>, "whose stamp is echoed; 0: nobody's";
        echo: u32, "that receiver's stamp in microseconds, plus the time it was held";
    }

    4 "timetable" "the slot of a common timetable (RLC)" [8 "burst", 16 "sync"] => Timetable {
        slot: u32, "slot number since the session started";
    }

    5 "layered" "the representative of the packet's layer, and where every layer stands (GMCC)" [8 "gains", 16 "gives"] => Layered {
        id: Option<ShortId>, "its id; 0: none, everybody may report";
        mean: Rounded, "mean of its level";
        error: Rounded, "standard error of that mean";
        rtt: Rounded, "round-trip time to it, in seconds";
        above: Half, "rate of the layer above, in bit/s; 0: off";
        updates: u8, "changes of its statistics so far, modulo 256";
        states: LayerStates, "two bits a layer, the base layer's lowest: 0 off, 1 nobody followed, 2 followed, 3 followed and settled";
    }

    6 "windows" "the window of the whole tree and the time of a round (MTCP)" [8 "local"] => Window {
        window: Rounded, "maximum number of packets in flight to the slowest receiver";
        rtt: Rounded, "from sending a packet until all have acknowledged it, in seconds; 0: not known";
    }

    7 "target" "the receiver that acknowledges each packet, and the packets that others omit (RACCOOM)" => Target {
        id: Option<ShortId>, "its id; 0: none is known";
        since_cut: u16, "losses of packets more than this number behind this one have been answered; 2^16 - 1: none of the losses that can be reported";
        rtt_max: Rounded, "largest round-trip time, in seconds";
        every: Rounded, "interval of other receivers' acknowledgements, in seconds; 0: all acknowledge each packet";
    }

    8 "floor" "the minimum rate, and the interval of acknowledgements (RMANP)" => Floor {
        least: Rounded, "the minimum rate that the application accepts, in bit/s";
        rtt_max: Rounded, "largest round-trip time, in seconds";
        every: Rounded, "interval of each receiver's acknowledgements, in seconds; 0: each packet";
        excluded: Option<ShortId>, "this receiver is excluded and leaves; 0: nobody";
    }
}

/// The signals that packets with a mark of this number may have, with their bits in the byte of flags.
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

/// Returns the byte of flags: common flags, and the bits of a signal of packets with this mark.
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

/// Any signal that packets with this mark may have.
#[cfg(feature = "testing")]
pub(crate) fn any_signal(mark: &Mark) -> impl proptest::strategy::Strategy<Value = Signal> + use<> {
    let declared = signals(number(mark)).iter().map(|(signal, _)| *signal);
    proptest::sample::select(declared.chain([Signal::None]).collect::<Vec<_>>())
}

/// Signals have bits of their own, which the mark's layout names.
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
