//! Data packets in two shells: header, fields and mark for whoever holds the hop key, the symbol for members.

use crate::bodies::{DATA_FIXED, RATE_LEN};
use crate::encode::{put_data_fields, put_prefix};
use crate::error::{EncodeError, ParseError};
use crate::marks;
use crate::message::{Announce, DataPacket, Kind};
use crate::parse::{Fixed, Newest, read_data_fields};
use crate::reader::Reader;
use crate::seal::{Cipher, ContentKeys, NONCE_LEN, OpenError, TAG_LEN, nonce, symbol_nonce};
use faircast_core::packet::{Payload, ReceiverId, SessionId};

/// What is done with symbols.
#[derive(Debug)]
pub(crate) enum Symbols<'a> {
    /// They are sealed and opened.
    Opened(&'a mut ContentKeys, Streams),
    /// They stay sealed, their tags behind them: at a relay.
    Passed,
}

/// How blocks are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Streams {
    /// The session has one stream of blocks.
    #[default]
    One,
    /// Each layer has its own.
    PerLayer,
}

impl Streams {
    /// As this announcement says.
    pub(crate) const fn of(announce: &Announce) -> Streams {
        if announce.has_streams() { Streams::PerLayer } else { Streams::One }
    }

    /// The nonce of this packet's symbol.
    fn nonce(self, packet: &DataPacket<'_>) -> [u8; NONCE_LEN] {
        let stream = if self == Streams::PerLayer { packet.layer.0 } else { 0 };
        let Payload { block, symbol } = packet.data.payload;
        symbol_nonce(stream, block, symbol, packet.symbols)
    }
}

/// Append a data packet. Its number must be unwrapped and seal this packet alone.
pub(crate) fn seal_data(
    out: &mut Vec<u8>,
    session: SessionId,
    relay: Option<(ReceiverId, u64)>,
    packet: &DataPacket<'_>,
    hop: &Cipher,
    symbols: Symbols<'_>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let clear = put_prefix(out, session, relay, packet);
    put_data_fields(out, packet)?;
    let fields_end = out.len();
    out.extend_from_slice(&[0; TAG_LEN]);
    out.extend_from_slice(packet.payload);
    if packet.data.payload != Payload::NONE
        && let Symbols::Opened(keys, streams) = symbols
    {
        let symbols = keys.symbols_of(packet.data.payload.block);
        let tag = symbols.seal_in_place(&[], &mut out[fields_end + TAG_LEN..], streams.nonce(packet));
        out.extend_from_slice(tag.as_ref());
    }
    let bytes = &mut out[start..];
    let (bound, fields_end) = (Bound::of(bytes, clear, fields_end - start + TAG_LEN), fields_end - start);
    let number = nonce(Kind::Data, packet.layer, packet.data.seq.0);
    let tag = hop.seal_in_place(bound.bytes(), &mut bytes[clear..fields_end], number);
    bytes[fields_end..fields_end + TAG_LEN].copy_from_slice(tag.as_ref());
    Ok(())
}

/// Where the parts of a data packet lie.
struct Outline {
    /// What is sealed for hops begins here; so many bytes of options are in it.
    at: usize,
    options: usize,
    fields_end: usize,
    symbol_at: usize,
}

/// The outline of a packet whose options, if it has any, or sealed part begin at `at`.
fn outline(fixed: &Fixed, at: usize, bytes: &[u8]) -> Result<Outline, OpenError> {
    let have = bytes.len();
    let (at, options) = match fixed.has_options() {
        false => (at, 0),
        true => match bytes.get(at) {
            Some(options) => (at + 1, usize::from(*options)),
            None => {
                return Err(ParseError::Truncated { field: "options", need: at + 1, have }.into());
            }
        },
    };
    let rate = if fixed.has_rate() { RATE_LEN } else { 0 };
    let mark = marks::len_by_number(fixed.mark()).ok_or(ParseError::UnknownMark(fixed.mark()))?;
    let fields_end = at + options + DATA_FIXED + rate + mark;
    let symbol_at = fields_end + TAG_LEN;
    if have < symbol_at {
        return Err(ParseError::Truncated { field: "tag", need: symbol_at, have }.into());
    }
    Ok(Outline { at, options, fields_end, symbol_at })
}

/// No packet has more for hops to read: options of 255 bytes, the fields, a mark and a tag.
const MOST_FIELDS: usize = 512;

/// Whether this key has sealed what hops read of a data packet. The packet stays as it is.
pub(crate) fn is_sealed_by(hop: &Cipher, fixed: &Fixed, at: usize, bytes: &[u8], seq: u64) -> bool {
    let Ok(Outline { at, symbol_at, .. }) = outline(fixed, at, bytes) else { return false };
    let bound = Bound::of(bytes, at, symbol_at);
    let mut room = [0; MOST_FIELDS];
    let Some(fields) = room.get_mut(..symbol_at - at) else { return false };
    fields.copy_from_slice(&bytes[at..symbol_at]);
    hop.open_in_place(bound.bytes(), fields, nonce(Kind::Data, fixed.header.layer, seq)).is_ok()
}

/// Open a data packet with the unwrapped number `seq` in place. `at` is where its sealed part begins.
pub(crate) fn open_data<'a>(
    fixed: &Fixed,
    at: usize,
    bytes: &'a mut [u8],
    seq: u64,
    newest: &Newest,
    (hop, symbols): (&Cipher, Symbols<'_>),
) -> Result<DataPacket<'a>, OpenError> {
    let Outline { at, options, fields_end, symbol_at } = outline(fixed, at, bytes)?;
    let have = bytes.len();
    let bound = Bound::of(bytes, at, symbol_at);
    hop.open_in_place(bound.bytes(), &mut bytes[at..symbol_at], nonce(Kind::Data, fixed.header.layer, seq))?;
    let (fields, symbol) = bytes.split_at_mut(symbol_at);
    let mut reader = Reader { bytes: &fields[..fields_end], at };
    let mut packet = read_data_fields(fixed, options, &mut reader, newest)?;
    if packet.data.payload == Payload::NONE {
        return if symbol.is_empty() { Ok(packet) } else { Err(ParseError::Trailing(symbol.len()).into()) };
    }
    let Some(len) = symbol.len().checked_sub(TAG_LEN) else {
        return Err(ParseError::Truncated { field: "symbol's tag", need: symbol_at + TAG_LEN, have }.into());
    };
    packet.payload = match symbols {
        Symbols::Passed => symbol,
        Symbols::Opened(keys, streams) => {
            keys.symbols_of(packet.data.payload.block).open_in_place(&[], symbol, streams.nonce(&packet))?;
            &symbol[..len]
        }
    };
    Ok(packet)
}

/// What is authenticated with the fields: all before them, and the symbol's tag.
struct Bound {
    bytes: [u8; Bound::MOST],
    len: usize,
}

impl Bound {
    /// The header, the length of the options, and a tag.
    const MOST: usize = 12 + 1 + TAG_LEN;

    /// Of a packet whose fields begin at `clear` and whose symbol, if there is one, at `symbol_at`.
    fn of(packet: &[u8], clear: usize, symbol_at: usize) -> Bound {
        let mut bound = Bound { bytes: [0; Bound::MOST], len: clear };
        bound.bytes[..clear].copy_from_slice(&packet[..clear]);
        if packet.len() >= symbol_at + TAG_LEN {
            bound.bytes[clear..clear + TAG_LEN].copy_from_slice(&packet[packet.len() - TAG_LEN..]);
            bound.len += TAG_LEN;
        }
        bound
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::GroupKey;
    use crate::parse::OPTIONS;
    use crate::seal::{Of, PacketKeys, Secret};
    use faircast_core::packet::{Data, Flags, Layer, Mark, Seq, Signal};
    use faircast_core::time::Time;

    const SESSION: SessionId = SessionId(7);

    fn packet(payload: &[u8]) -> DataPacket<'_> {
        let data = Data {
            seq: Seq(5),
            sent_at: Time::ZERO,
            rate: 0.0,
            payload: Payload { block: 1, symbol: 2 },
            flags: Flags::default(),
            signal: Signal::None,
            mark: Mark::None,
        };
        DataPacket { data, layer: Layer(3), symbols: 9, payload }
    }

    /// A packet with these options, as a later version may write it.
    fn with_options(hop: &Cipher, keys: &mut ContentKeys, options: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let packet = packet(b"a symbol");
        let clear = put_prefix(&mut bytes, SESSION, None, &packet) + 1;
        bytes[2] |= OPTIONS;
        bytes.push(options.len() as u8);
        bytes.extend_from_slice(options);
        put_data_fields(&mut bytes, &packet).expect("it fits");
        let mut symbol = packet.payload.to_vec();
        let tag = keys.symbols_of(1).seal_in_place(&[], &mut symbol, Streams::One.nonce(&packet));
        symbol.extend_from_slice(tag.as_ref());
        let bound = [&bytes[..clear], &symbol[symbol.len() - TAG_LEN..]].concat();
        let tag = hop.seal_in_place(&bound, &mut bytes[clear..], nonce(Kind::Data, Layer(3), 5));
        bytes.extend_from_slice(tag.as_ref());
        bytes.extend_from_slice(&symbol);
        bytes
    }

    #[test]
    fn options_of_sealed_data_are_skipped_unless_they_must_be_understood() {
        let (key, salt) = (GroupKey::from_bytes([1; 32]), [2; 16]);
        let mut keys = PacketKeys::new(&Secret::new(&key.hop(), SESSION, &salt), Of::Source);
        let hop = keys.of(5);
        let content = || ContentKeys::new(&key, SESSION, &salt);
        let with_options = |options: &[u8]| with_options(hop, &mut content(), options);
        let open = |mut bytes: Vec<u8>| {
            let (fixed, mut content) = (Fixed::read(&bytes).expect("a header"), content());
            let symbols = Symbols::Opened(&mut content, Streams::One);
            let opened = open_data(&fixed, 12, &mut bytes, 5, &Newest::default(), (hop, symbols));
            opened.map(|opened| assert_eq!(opened, packet(b"a symbol")))
        };
        assert_eq!(open(with_options(&[])), Ok(()));
        assert_eq!(open(with_options(&[0, 0, 0x7f, 2, 1, 2])), Ok(()));
        let unknown = Err(OpenError::Parse(ParseError::UnknownOption(0x81)));
        assert_eq!(open(with_options(&[0x81, 0])), unknown);
        let mut longer = with_options(&[0, 0]);
        longer[12] = 3;
        assert_eq!(open(longer), Err(OpenError::Forged));
        let whole = with_options(&[0, 0]);
        assert!((12..whole.len()).all(|len| open(whole[..len].to_vec()).is_err()));
    }
}
