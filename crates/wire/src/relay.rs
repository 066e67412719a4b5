//! A relay's codec: it passes a session on without being able to read its content.

use crate::bodies::Fit;
use crate::encode::{self, Form, encode_data};
use crate::error::EncodeError;
use crate::inbound::{Inbound, Me};
use crate::key::HopKey;
use crate::message::{DataPacket, Kind, Message};
use crate::outbound::{Numbers, Sealer};
use crate::parse::Fixed;
use crate::receiver::Feedback;
use crate::seal::OpenError;
use crate::senders::Senders;
use crate::shells::Symbols;
use faircast_core::packet::{ReceiverId, SessionId};
use std::net::SocketAddr;

/// Opens what comes from above and from below, and writes both in its own name: packets of the source towards receivers, with
/// headers, marks and numbers as the relay wants them, and feedback towards the source.
///
/// Symbols of sealed sessions stay sealed: [`DataPacket::payload`] has the sealed bytes, and they are written as they are. So a
/// symbol that was heard repairs the same symbol later, in a packet with another number.
#[derive(Debug)]
pub struct RelayCodec {
    inbound: Inbound,
    feedback: Feedback,
    below: Senders,
    numbers: Numbers,
}

impl RelayCodec {
    /// A codec for one relay and one session. With a key only sealed packets are let in, and what is written is sealed.
    ///
    /// `boot` must be drawn at random at each start.
    pub fn new(key: Option<&HopKey>, me: ReceiverId, boot: u64) -> RelayCodec {
        RelayCodec {
            inbound: Inbound::of_relay(key, Me { id: me, boot }),
            feedback: Feedback::default(),
            below: Senders::default(),
            numbers: Numbers::new(),
        }
    }

    /// Who it speaks for.
    pub const fn me(&self) -> ReceiverId {
        self.inbound.me().id
    }

    /// Whether packets are sealed.
    pub fn form(&self) -> Form {
        if self.inbound.is_sealed() { Form::Sealed } else { Form::Open }
    }

    /// Pass this session on from now on, and no other.
    pub fn follow(&mut self, session: SessionId) {
        self.inbound.follow(session);
    }

    /// Open what the source, or a relay above, sent from this address.
    ///
    /// # Errors
    /// As [`ReceiverCodec::open`](crate::ReceiverCodec::open).
    pub fn open_above<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<(SessionId, Message<'a>), OpenError> {
        self.inbound.open(bytes, from)
    }

    /// Open what a receiver, or a relay below, sent from this address, and its number.
    ///
    /// # Errors
    /// As [`SourceCodec::open`](crate::SourceCodec::open); sealed feedback is not opened before the session was announced.
    pub fn open_below<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<(u64, Message<'a>), OpenError> {
        let fixed = Fixed::read(bytes)?;
        let header = fixed.header;
        if self.inbound.following() != Some(header.session) {
            return Err(OpenError::OtherSession(header.session));
        }
        if !header.kind.is_feedback() {
            return Err(OpenError::NotForMe(header.kind));
        }
        match (self.form(), header.sealed) {
            (Form::Open, true) => Err(OpenError::NeedsKey(header.session)),
            (Form::Sealed, false) => Err(OpenError::Unsealed(header.session)),
            (Form::Open, false) => self.below.open_plain(&fixed, bytes, from),
            (Form::Sealed, true) => {
                let heard = self.inbound.session(header.session).and_then(|heard| heard.keys.as_ref());
                let keys = heard.ok_or(OpenError::NotAnnounced(header.session))?;
                self.below.open_sealed(&keys.secret, &fixed, bytes)
            }
        }
    }

    /// Append a data packet for the receivers below, its symbol as it came.
    ///
    /// # Errors
    /// As [`SourceCodec::encode_data`](crate::SourceCodec::encode_data).
    pub fn encode_data(&mut self, out: &mut Vec<u8>, packet: &DataPacket<'_>) -> Result<(), EncodeError> {
        let session = self.session()?;
        if self.form() == Form::Open {
            return encode_data(out, session, packet);
        }
        let sealer = sealer(&self.inbound, session)?;
        self.numbers.seal_data(out, packet, &sealer, Symbols::Passed)
    }

    /// Append a message of at most `limit` bytes: an announcement, status or page for those below, whose lists are cut to fit, or
    /// feedback in this relay's name for above.
    ///
    /// # Errors
    /// As the source's and the receiver's codecs.
    pub fn encode(
        &mut self,
        out: &mut Vec<u8>,
        message: &Message<'_>,
        limit: usize,
    ) -> Result<Fit, EncodeError> {
        let (session, kind) = (self.session()?, message.kind());
        match self.numbers.next(kind) {
            None if kind == Kind::Data => Err(EncodeError::NotMine(kind)),
            None => self.feedback.encode(&self.inbound, out, session, message),
            Some(seq) if self.form() == Form::Open => {
                encode::encode(out, session, seq as u32, message, limit)
            }
            Some(seq) => sealer(&self.inbound, session)?.seal_message(out, seq, message, limit),
        }
    }

    fn session(&self) -> Result<SessionId, EncodeError> {
        self.inbound.following().ok_or(EncodeError::NotAnnounced(SessionId(0)))
    }
}

/// With what a relay seals what it passes on of a session.
fn sealer(inbound: &Inbound, session: SessionId) -> Result<Sealer<'_>, EncodeError> {
    let unknown = EncodeError::NotAnnounced(session);
    let keys = inbound.session(session).and_then(|heard| heard.keys.as_ref()).ok_or(unknown)?;
    let announcer = inbound.announcer().ok_or(unknown)?;
    let Me { id, boot } = inbound.me();
    let relay = Some((id, boot));
    Ok(Sealer { session, relay, key_id: keys.key_id, secret: &keys.secret, announcer, packets: &keys.own })
}
