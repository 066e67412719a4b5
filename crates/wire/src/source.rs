//! The source's codec.

use crate::bodies::Fit;
use crate::codec::Codec;
use crate::encode::{
    self, Form, ID_LEN, encode_data, put_body, put_data, put_data_header, put_header, undo_on_error,
};
use crate::error::EncodeError;
use crate::key::GroupKey;
use crate::message::{DataPacket, Kind, Message};
use crate::parse::{Fixed, HEADER_LEN, Newest, SEALED, parse, read_body};
use crate::reader::Reader;
use crate::replay::ReplayWindow;
use crate::seal::{BOOT_LEN, Cipher, OpenError, Secret, TAG_LEN, announce_nonce, announcer, nonce};
use faircast_core::packet::{Layer, Mark, ReceiverId, Seq, SessionId};
use std::collections::BTreeMap;
use std::mem;

/// Turns what a source says into datagrams, and opens what receivers answer.
#[derive(Debug)]
pub struct SourceCodec {
    session: SessionId,
    salt: [u8; 16],
    announced: u64,
    statuses: u64,
    sealing: Option<Box<Sealing>>,
}

#[derive(Debug)]
struct Sealing {
    secret: Secret,
    announcer: Cipher,
    packets: Cipher,
    /// By layer, the number that the next data packet must have at least.
    next: [u64; 256],
    senders: Senders,
}

impl SourceCodec {
    /// A codec for one session. With a key everything is sealed and nothing else is let in.
    ///
    /// `salt` must be drawn at random for each start of a source: the session's keys depend on it,
    /// and two starts with the same salt and session would seal different packets alike.
    pub fn new(session: SessionId, key: Option<&GroupKey>, salt: [u8; 16]) -> SourceCodec {
        let sealing = key.map(|key| {
            let secret = Secret::new(key, session, &salt);
            let (announcer, packets) = (announcer(key), secret.source());
            Box::new(Sealing { secret, announcer, packets, next: [0; 256], senders: Senders::default() })
        });
        SourceCodec { session, salt, announced: 0, statuses: 0, sealing }
    }

    /// The session.
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// How packets travel.
    pub const fn form(&self) -> Form {
        if self.sealing.is_some() { Form::Sealed } else { Form::Open }
    }

    /// Bytes around a data packet's symbol: see [`encode::data_header_len`].
    pub const fn data_header_len(&self, mark: &Mark) -> usize {
        encode::data_header_len(mark, self.form())
    }

    /// Append a data packet. `out` may hold packets already: a batch is laid out back to back.
    ///
    /// # Errors
    /// When a number does not fit its field, or, in a sealed session, when the layer's numbers do
    /// not grow; `out` is then as it was.
    pub fn encode_data(&mut self, out: &mut Vec<u8>, packet: &DataPacket<'_>) -> Result<(), EncodeError> {
        let Some(sealing) = &mut self.sealing else {
            return encode_data(out, self.session, packet);
        };
        let (layer, seq) = (packet.layer, packet.data.seq.0);
        let next = &mut sealing.next[usize::from(layer.0)];
        if seq < *next {
            return Err(EncodeError::NumberReused { layer, seq, newest: *next - 1 });
        }
        undo_on_error(out, |out, start| {
            out.reserve(encode::data_header_len(&packet.data.mark, Form::Sealed) + packet.payload.len());
            put_data_header(out, self.session, packet, Form::Sealed);
            put_data(out, packet)?;
            sealing.packets.seal(out, start, HEADER_LEN, nonce(Kind::Data, layer, seq));
            *next = seq + 1;
            Ok(())
        })
    }

    /// Append an announcement or a status, in at most `limit` bytes; a status's lists are cut to fit.
    ///
    /// # Errors
    /// When the message is of another kind, a number does not fit its field, the message without its
    /// lists does not fit `limit`, or an announcement names another salt than this codec's.
    pub fn encode(
        &mut self,
        out: &mut Vec<u8>,
        message: &Message<'_>,
        limit: usize,
    ) -> Result<Fit, EncodeError> {
        let count = match message {
            Message::Announce(announce) if announce.salt != self.salt => return Err(EncodeError::WrongSalt),
            Message::Announce(_) => &mut self.announced,
            Message::Status(_) => &mut self.statuses,
            other => return Err(EncodeError::NotMine(other.kind())),
        };
        let seq = *count;
        *count += 1;
        let Some(sealing) = &self.sealing else {
            return encode::encode(out, self.session, seq as u32, message, limit);
        };
        undo_on_error(out, |out, start| {
            let kind = message.kind();
            put_header(out, kind, SEALED, Layer(0), self.session, seq as u32);
            let (cipher, nonce) = if kind == Kind::Announce {
                let nonce = announce_nonce(&sealing.secret, seq);
                out.extend_from_slice(&nonce);
                (&sealing.announcer, nonce)
            } else {
                (&sealing.packets, nonce(kind, Layer(0), seq))
            };
            let clear = out.len() - start;
            let fit = put_body(out, message, (start + limit).saturating_sub(TAG_LEN))?;
            cipher.seal(out, start, clear, nonce);
            Ok(fit)
        })
    }

    /// Open what a receiver sent. Sealed packets are decrypted in place.
    ///
    /// # Errors
    /// When it is not an intact packet of this session's receivers, when it is sealed and should not
    /// be or the other way round, or when it was let in before.
    pub fn open<'a>(&mut self, bytes: &'a mut [u8]) -> Result<Message<'a>, OpenError> {
        let fixed = Fixed::read(bytes)?;
        let header = fixed.header;
        if header.session != self.session {
            return Err(OpenError::OtherSession(header.session));
        }
        if !header.kind.is_feedback() {
            return Err(OpenError::NotForMe(header.kind));
        }
        match (&mut self.sealing, header.sealed) {
            (None, true) => Err(OpenError::NeedsKey(header.session)),
            (Some(_), false) => Err(OpenError::Unsealed(header.session)),
            (None, false) => Ok(parse(bytes, &Newest::default())?.1),
            (Some(sealing), true) => {
                let (from, clear) = sealing.senders.open(&sealing.secret, &fixed, bytes)?;
                let bytes = &bytes[..bytes.len() - TAG_LEN];
                Ok(read_body(&fixed, Some(from), Reader { bytes, at: clear }, &Newest::default())?)
            }
        }
    }
}

/// What is known of one receiver since one start of it.
#[derive(Debug)]
struct Sender {
    cipher: Cipher,
    seen: ReplayWindow<3>,
}

/// The receivers heard of, in two generations: when the young one is full, the old one is forgotten
/// and the young one becomes old. So the [`Senders::GENERATION`] last heard ones are always known,
/// and memory is bounded. Only packets that open add anything.
///
/// A receiver that was forgotten starts afresh; until it is heard again, its old packets would be let
/// in once more.
#[derive(Debug, Default)]
struct Senders {
    young: BTreeMap<(ReceiverId, u64), Box<Sender>>,
    old: BTreeMap<(ReceiverId, u64), Box<Sender>>,
}

impl Senders {
    /// Receivers in a generation.
    const GENERATION: usize = 16_384;

    /// Decrypt in place. Returns who sent it and where the body starts.
    fn open(
        &mut self,
        secret: &Secret,
        fixed: &Fixed,
        bytes: &mut [u8],
    ) -> Result<(ReceiverId, usize), OpenError> {
        let clear = HEADER_LEN + ID_LEN + BOOT_LEN;
        let mut reader = Reader { bytes, at: HEADER_LEN };
        let (from, boot) = (ReceiverId::read(&mut reader, "from")?, u64::read(&mut reader, "boot")?);
        let known = self.young.remove(&(from, boot)).or_else(|| self.old.remove(&(from, boot)));
        let was_known = known.is_some();
        let mut sender = known.unwrap_or_else(|| {
            Box::new(Sender { cipher: secret.receiver(from, boot), seen: ReplayWindow::new() })
        });
        let opened = sender.open(fixed, bytes, clear);
        if was_known || opened.is_ok() {
            self.keep((from, boot), sender);
        }
        opened.map(|()| (from, clear))
    }

    fn keep(&mut self, who: (ReceiverId, u64), sender: Box<Sender>) {
        if self.young.len() >= Senders::GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(who, sender);
    }
}

impl Sender {
    fn open(&mut self, fixed: &Fixed, bytes: &mut [u8], clear: usize) -> Result<(), OpenError> {
        let header = fixed.header;
        let seq = Seq::unwrap(Seq(self.seen.newest()), header.seq).0;
        if !self.seen.is_new(seq) {
            return Err(OpenError::Replayed(seq));
        }
        self.cipher.open(bytes, clear, nonce(header.kind, header.layer, seq))?;
        self.seen.mark(seq);
        Ok(())
    }
}
