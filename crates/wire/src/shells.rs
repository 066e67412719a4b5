//! Data packets in two shells. The inner shell is the symbol, which members open. The outer shell is the whole packet, which
//! every holder of the hop key opens. A relay therefore accepts symbols only from holders of the hop key.

use crate::encode::{put_data_fields, put_data_header, sealed_by};
use crate::error::{EncodeError, ParseError};
use crate::message::{Announce, DataPacket, Kind};
use crate::parse::{Fixed, HEADER_LEN, Newest, read_data_fields};
use crate::reader::Reader;
use crate::seal::{Cipher, ContentKeys, NONCE_LEN, OpenError, TAG_LEN, nonce, symbol_nonce};
use faircast_core::packet::{Payload, ReceiverId, SessionId};

/// Treatment of symbols.
#[derive(Debug)]
pub(crate) enum Symbols<'a> {
    /// Symbols are sealed and opened.
    Opened(&'a mut ContentKeys, Streams),
    /// Symbols stay sealed, with their tags, as at a relay.
    Passed,
}

/// Numbering of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Streams {
    /// The session has one stream of blocks.
    #[default]
    One,
    /// Each layer has its own stream.
    PerLayer,
}

impl Streams {
    /// Returns the numbering that this announcement states.
    pub(crate) const fn of(announce: &Announce) -> Streams {
        if announce.has_streams() { Streams::PerLayer } else { Streams::One }
    }

    /// Returns the nonce of this packet's symbol.
    fn nonce(self, packet: &DataPacket<'_>) -> [u8; NONCE_LEN] {
        let stream = if self == Streams::PerLayer { packet.layer.0 } else { 0 };
        let Payload { block, symbol } = packet.data.payload;
        symbol_nonce(stream, block, symbol, packet.symbols)
    }
}

/// Appends a data packet. Its number must be unwrapped and unused.
pub(crate) fn seal_data(
    out: &mut Vec<u8>,
    session: SessionId,
    relay: Option<(ReceiverId, u64)>,
    packet: &DataPacket<'_>,
    hop: &Cipher,
    symbols: Symbols<'_>,
) -> Result<(), EncodeError> {
    let start = out.len();
    put_data_header(out, session, sealed_by(relay), packet)?;
    let clear = out.len() - start;
    put_data_fields(out, packet)?;
    let symbol_at = out.len();
    out.extend_from_slice(packet.payload);
    if packet.data.payload != Payload::NONE
        && let Symbols::Opened(keys, streams) = symbols
    {
        let symbols = keys.symbols_of(packet.data.payload.block);
        let tag = symbols.seal_in_place(&[], &mut out[symbol_at..], streams.nonce(packet));
        out.extend_from_slice(tag.as_ref());
    }
    hop.seal(out, start, clear, nonce(Kind::Data, packet.layer, packet.data.seq.0));
    Ok(())
}

/// Whether this key has sealed a data packet. The packet is copied into `trial` for the test and stays unchanged.
pub(crate) fn is_sealed_by(hop: &Cipher, fixed: &Fixed, bytes: &[u8], seq: u64, trial: &mut Vec<u8>) -> bool {
    trial.clear();
    trial.extend_from_slice(bytes);
    hop.open(trial, HEADER_LEN, nonce(Kind::Data, fixed.header.layer, seq)).is_ok()
}

/// Opens a data packet with the unwrapped number `seq` in place, and reads it into `packet`.
pub(crate) fn open_data<'a>(
    fixed: &Fixed,
    bytes: &'a mut [u8],
    seq: u64,
    newest: &Newest,
    (hop, symbols): (&Cipher, Symbols<'_>),
    packet: &mut DataPacket<'a>,
) -> Result<(), OpenError> {
    let bytes = hop.open(bytes, HEADER_LEN, nonce(Kind::Data, fixed.header.layer, seq))?;
    let have = bytes.len();
    let mut reader = Reader { bytes, at: HEADER_LEN };
    read_data_fields(fixed, &mut reader, newest, packet)?;
    let symbol_at = reader.at;
    let symbol = &mut bytes[symbol_at..];
    let block = packet.data.payload.block;
    if packet.data.payload == Payload::NONE {
        packet.payload = &[];
        return if symbol.is_empty() { Ok(()) } else { Err(ParseError::Trailing(symbol.len()).into()) };
    }
    let Some(len) = symbol.len().checked_sub(TAG_LEN) else {
        return Err(ParseError::Truncated { field: "symbol's tag", need: symbol_at + TAG_LEN, have }.into());
    };
    packet.payload = match symbols {
        Symbols::Passed => symbol,
        Symbols::Opened(keys, streams) => {
            // A relay sent a wrong symbol. The rest of the packet is authentic and counts for the congestion control.
            let opened = keys.symbols_of(block).open_in_place(&[], symbol, streams.nonce(packet));
            if opened.is_ok() { &symbol[..len] } else { &[] }
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::GroupKey;
    use crate::parse::OPTIONS;
    use crate::seal::{KeyOwner, PacketKeys, Secret};
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

    /// Writes a packet with these options, as a later version may do.
    fn with_options(hop: &Cipher, keys: &mut ContentKeys, options: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let packet = packet(b"a symbol");
        put_data_header(&mut bytes, SESSION, sealed_by(None), &packet).expect("it fits");
        bytes[1] |= OPTIONS;
        bytes.push(options.len() as u8);
        bytes.extend_from_slice(options);
        put_data_fields(&mut bytes, &packet).expect("it fits");
        let mut symbol = packet.payload.to_vec();
        let tag = keys.symbols_of(1).seal_in_place(&[], &mut symbol, Streams::One.nonce(&packet));
        bytes.extend_from_slice(&symbol);
        bytes.extend_from_slice(tag.as_ref());
        hop.seal(&mut bytes, 0, HEADER_LEN, nonce(Kind::Data, Layer(3), 5));
        bytes
    }

    #[test]
    fn unknown_options_are_skipped_unless_marked_mandatory() {
        let (key, salt) = (GroupKey::from_bytes([1; 32]), [2; 16]);
        let mut keys = PacketKeys::new(&Secret::new(&key.hop(), SESSION, &salt), KeyOwner::Source);
        let hop = keys.of(5);
        let content = || ContentKeys::new(&key, SESSION, &salt);
        let with_options = |options: &[u8]| with_options(hop, &mut content(), options);
        let open = |mut bytes: Vec<u8>| {
            let (fixed, mut content) = (Fixed::read(&bytes).expect("a header"), content());
            let symbols = Symbols::Opened(&mut content, Streams::One);
            let mut opened = DataPacket::EMPTY;
            open_data(&fixed, &mut bytes, 5, &Newest::default(), (hop, symbols), &mut opened)
                .map(|()| assert_eq!(opened, packet(b"a symbol")))
        };
        assert_eq!(open(with_options(&[])), Ok(()));
        assert_eq!(open(with_options(&[0, 0, 0x7f, 2, 1, 2])), Ok(()));
        let unknown = Err(OpenError::Parse(ParseError::UnknownOption(0x81)));
        assert_eq!(open(with_options(&[0x81, 0])), unknown);
        let whole = with_options(&[0, 0]);
        assert!((HEADER_LEN..whole.len()).all(|len| open(whole[..len].to_vec()).is_err()));
    }
}
