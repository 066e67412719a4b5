//! The codec of a source, or of a relay towards its children.

use crate::bodies::Fit;
use crate::encode::{self, Form, encode_data};
use crate::error::EncodeError;
use crate::key::{GroupKey, HopKey, KeyId};
use crate::message::{DataPacket, Kind, Message, Status};
use crate::outbound::{Numbers, Sealer};
use crate::parse::{Fixed, Newest, parse};
use crate::seal::{Cipher, ContentKeys, KeyOwner, OpenError, PacketKeys, Secret, TAG_LEN, announcer};
use crate::senders::Senders;
use crate::shells::{Streams, Symbols};
use faircast_core::packet::{Mark, ReceiverId, SessionId};
use std::borrow::Cow;
use std::net::SocketAddr;

/// Encodes a source's messages, and opens receivers' answers.
#[derive(Debug)]
pub struct SourceCodec {
    session: SessionId,
    salt: [u8; 16],
    numbers: Numbers,
    sealing: Option<Box<Sealing>>,
    senders: Senders,
}

#[derive(Debug)]
struct Sealing {
    key_id: KeyId,
    secret: Secret,
    announcer: Cipher,
    packets: PacketKeys,
    /// Present at a source only; a relay forwards symbols unchanged.
    content: Option<ContentKeys>,
    /// A relay's id and boot number.
    relay: Option<(ReceiverId, u64)>,
    /// Numbering of blocks, from the announcement. Nothing is sealed before the announcement.
    streams: Option<Streams>,
}

impl SourceCodec {
    /// Creates a codec for one session. With a key, it seals everything and admits only sealed packets.
    ///
    /// `salt` must be drawn at random at each start of a source, because the session's keys depend on it. Two starts with the
    /// same salt and session would seal different packets with the same key and nonce.
    pub fn new(session: SessionId, key: Option<&GroupKey>, salt: [u8; 16]) -> SourceCodec {
        let sealing = key.map(|key| {
            let hop = key.hop();
            let secret = Secret::new(&hop, session, &salt);
            let (announcer, packets) = (announcer(&hop), PacketKeys::new(&secret, KeyOwner::Source));
            let content = Some(ContentKeys::new(key, session, &salt));
            let key_id = hop.id();
            Box::new(Sealing { key_id, secret, announcer, packets, content, relay: None, streams: None })
        });
        SourceCodec { session, salt, numbers: Numbers::new(), sealing, senders: Senders::default() }
    }

    /// Creates a codec for one relay of a session, which forwards received packets. In sealed sessions symbols stay sealed:
    /// [`DataPacket::payload`] holds the sealed bytes, which are written unchanged. A relay can therefore send a received symbol
    /// again as a repair, in a packet with another number. A status that states a root needs the proof that the relay received
    /// with the root.
    ///
    /// `boot` must be drawn at random for each codec; `salt` is the salt of the session.
    pub fn of_relay(
        session: SessionId,
        key: Option<&HopKey>,
        salt: [u8; 16],
        me: ReceiverId,
        boot: u64,
    ) -> SourceCodec {
        let sealing = key.map(|hop| {
            let secret = Secret::new(hop, session, &salt);
            let (announcer, packets) = (announcer(hop), PacketKeys::new(&secret, KeyOwner::Member(me, boot)));
            let (key_id, relay) = (hop.id(), Some((me, boot)));
            Box::new(Sealing { key_id, secret, announcer, packets, content: None, relay, streams: None })
        });
        SourceCodec { session, salt, numbers: Numbers::new(), sealing, senders: Senders::default() }
    }

    /// Continues as if `sent` announcements, statuses and pages had been sent, for tests of long sessions. Data packets keep
    /// their given numbers.
    #[doc(hidden)]
    #[must_use]
    pub fn after(mut self, sent: u64) -> SourceCodec {
        self.numbers = Numbers::after(sent);
        self
    }

    /// Permits data packets with given numbers in any order, for a router that forwards packets. Each number is written once, and
    /// must be among the latest 2048 of the base layer.
    #[must_use]
    pub fn with_given_numbers(mut self) -> SourceCodec {
        self.numbers.pass_on();
        self
    }

    /// The session.
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the key under which packets are sealed.
    pub fn key_id(&self) -> Option<KeyId> {
        self.sealing.as_ref().map(|sealing| sealing.key_id)
    }

    /// Returns the protection of packets.
    pub const fn form(&self) -> Form {
        if self.sealing.is_some() { Form::Sealed } else { Form::Open }
    }

    /// Returns the number of bytes around a data packet's symbol: see [`encode::data_header_len`]. A relay's symbols include
    /// their tags.
    pub fn data_header_len(&self, mark: &Mark) -> usize {
        let passes = self.sealing.as_ref().is_some_and(|sealing| sealing.content.is_none());
        encode::data_header_len(mark, self.form()) - if passes { TAG_LEN } else { 0 }
    }

    /// Appends a data packet. `out` may hold earlier packets, so a batch is laid out back to back.
    ///
    /// In a session, the same block and symbol (and the same layer, if each layer has its own stream) must always have the same
    /// content, because these numbers are the nonce of the symbol.
    ///
    /// # Errors
    /// When a number does not fit its field, or, in a sealed session, when the layer's numbers do not grow or no announcement was
    /// made. `out` is then unchanged.
    pub fn encode_data(&mut self, out: &mut Vec<u8>, packet: &DataPacket<'_>) -> Result<(), EncodeError> {
        let Some(sealing) = &mut self.sealing else {
            return encode_data(out, self.session, packet);
        };
        let streams = sealing.streams.ok_or(EncodeError::NotAnnounced(self.session))?;
        out.reserve(encode::data_header_len(&packet.data.mark, Form::Sealed) + packet.payload.len());
        let (sealer, content) = sealing.parts(self.session);
        let symbols = content.map_or(Symbols::Passed, |keys| Symbols::Opened(keys, streams));
        self.numbers.seal_data(out, packet, sealer, symbols)
    }

    /// Appends an announcement, a status or a page, in at most `limit` bytes. Lists are cut to fit. A page that is cut is
    /// useless: see [`encode::max_hashes`].
    ///
    /// # Errors
    /// When the message has another kind, a number does not fit its field, the message without its lists exceeds `limit`, or an
    /// announcement has another salt than this codec.
    pub fn encode(
        &mut self,
        out: &mut Vec<u8>,
        message: &Message<'_>,
        limit: usize,
    ) -> Result<Fit, EncodeError> {
        let kind = message.kind();
        if let Message::Announce(announce) = message
            && announce.salt != self.salt
        {
            return Err(EncodeError::WrongSalt);
        }
        let seq = self.numbers.next(kind).ok_or(EncodeError::NotMine(kind))?;
        let Some(sealing) = &mut self.sealing else {
            return encode::encode(out, self.session, seq as u32, message, limit);
        };
        if let Message::Announce(announce) = message {
            sealing.streams = Some(Streams::of(announce));
        }
        let message = sealing.prove(message);
        sealing.parts(self.session).0.seal_message(out, seq, &message, limit)
    }

    /// Opens a receiver's packet from this address and returns its number. Packets that were written later have higher numbers.
    /// Sealed packets are decrypted in place. A refusal that is not sealed is admitted repeatedly.
    ///
    /// # Errors
    /// When the datagram
    /// - is not an intact packet of this session's receivers,
    /// - is sealed although this codec has no key, or is not sealed although the codec has a key, or
    /// - was admitted before.
    pub fn open<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<(u64, Message<'a>), OpenError> {
        let fixed = Fixed::read(bytes)?;
        let header = fixed.header;
        if header.session != self.session {
            return Err(OpenError::OtherSession(header.session));
        }
        if !header.kind.is_feedback() {
            return Err(OpenError::NotForMe(header.kind));
        }
        match (&self.sealing, header.sealed) {
            // The sender does not have the key. The message is only displayed, so no state is stored for its sender.
            (_, false) if matches!(header.kind, Kind::Refusal | Kind::Attach) => {
                Ok((header.seq.into(), parse(bytes, &Newest::default())?.1))
            }
            (None, true) => Err(OpenError::NeedsKey(header.session)),
            (Some(_), false) => Err(OpenError::Unsealed(header.session)),
            (None, false) => self.senders.open_plain(&fixed, bytes, from),
            (Some(sealing), true) => self.senders.open_sealed(&sealing.secret, &fixed, bytes),
        }
    }
}

impl Sealing {
    /// Returns the keys of packets and of symbols.
    fn parts(&mut self, session: SessionId) -> (Sealer<'_>, Option<&mut ContentKeys>) {
        let Sealing { key_id, secret, announcer, packets, relay, content, .. } = self;
        let sealer = Sealer { session, relay: *relay, key_id: *key_id, secret, announcer, packets };
        (sealer, content.as_mut())
    }

    /// Adds the proof to a source's status that states the root.
    fn prove<'m, 'p>(&self, message: &'m Message<'p>) -> Cow<'m, Message<'p>> {
        match (message, &self.content) {
            (Message::Status(status), Some(content)) if status.root.is_some() => {
                let proof =
                    status.root.map(|root| content.proof(&root, (status.blocks, status.withdrawn_count())));
                Cow::Owned(Message::Status(Status { proof, ..status.clone() }))
            }
            (other, _) => Cow::Borrowed(other),
        }
    }
}
