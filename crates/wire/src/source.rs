//! The codec of a source, or of a relay towards those below it.

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

/// Turns what a source says into datagrams, and opens what receivers answer.
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
    /// At a source only; a relay forwards symbols unchanged.
    content: Option<ContentKeys>,
    /// A relay's id and boot number.
    relay: Option<(ReceiverId, u64)>,
    /// As announced; nothing is sealed before.
    streams: Option<Streams>,
}

impl SourceCodec {
    /// A codec for one session. With a key everything is sealed and nothing else is let in.
    ///
    /// `salt` must be drawn at random for each start of a source: the session's keys depend on it,
    /// and two starts with the same salt and session would seal different packets alike.
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

    /// A codec for one relay of a session, which sends on what it has heard. In sealed sessions symbols stay sealed:
    /// [`DataPacket::payload`] is the sealed bytes, and they are written as they are. So a symbol that was heard repairs the same
    /// symbol later, in a packet with another number. A status needs the proof that came with its root.
    ///
    /// `boot` must be drawn at random for each codec, and `salt` is the session's.
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

    /// As if it had written this many announcements, statuses and pages already, for tests of long sessions. Data packets have the numbers
    /// that they are given.
    #[doc(hidden)]
    #[must_use]
    pub fn after(mut self, sent: u64) -> SourceCodec {
        self.numbers = Numbers::after(sent);
        self
    }

    /// Data packets have the numbers that they came with, which need not grow: each is written once, as long as it is one of the
    /// latest 2048 of the base layer. For who passes packets on one by one, as a router does.
    #[must_use]
    pub fn with_given_numbers(mut self) -> SourceCodec {
        self.numbers.pass_on();
        self
    }

    /// The session.
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The key that packets are sealed under.
    pub fn key_id(&self) -> Option<KeyId> {
        self.sealing.as_ref().map(|sealing| sealing.key_id)
    }

    /// How packets travel.
    pub const fn form(&self) -> Form {
        if self.sealing.is_some() { Form::Sealed } else { Form::Open }
    }

    /// Bytes around a data packet's symbol: see [`encode::data_header_len`]. A relay's symbols bring their tags.
    pub fn data_header_len(&self, mark: &Mark) -> usize {
        let passes = self.sealing.as_ref().is_some_and(|sealing| sealing.content.is_none());
        encode::data_header_len(mark, self.form()) - if passes { TAG_LEN } else { 0 }
    }

    /// Append a data packet. `out` may hold packets already: a batch is laid out back to back.
    ///
    /// One place (block and symbol, and layer where each has a stream of its own) must have the same content whenever it is sent
    /// in a session: its number is what it is sealed under.
    ///
    /// # Errors
    /// When a number does not fit its field, or, in a sealed session, when the layer's numbers do
    /// not grow or nothing was announced yet; `out` is then as it was.
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

    /// Append an announcement, a status or a page, in at most `limit` bytes; lists are cut to fit (a page that is cut is worth
    /// nothing: see [`encode::max_hashes`]).
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

    /// Open what a receiver sent from this address, and its number: of two packets the one with the higher number was written
    /// later. Sealed packets are decrypted in place. A refusal that is not sealed is let in as often as it comes.
    ///
    /// # Errors
    /// When it is not an intact packet of this session's receivers, when it is sealed and should not
    /// be or the other way round, or when it was let in before.
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
            // From a sender without a key, or with another one. It is only shown to people, so no state is stored for its sender.
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
    /// With what packets are sealed, and with what symbols are.
    fn parts(&mut self, session: SessionId) -> (Sealer<'_>, Option<&mut ContentKeys>) {
        let Sealing { key_id, secret, announcer, packets, relay, content, .. } = self;
        let sealer = Sealer { session, relay: *relay, key_id: *key_id, secret, announcer, packets };
        (sealer, content.as_mut())
    }

    /// Proves a source's status that states the root.
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
