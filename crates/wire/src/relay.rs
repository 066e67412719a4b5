//! A relay's codec: it passes a session on without being able to read its content.

use crate::bodies::Fit;
use crate::encode::{self, Form, encode_data, put_body, put_header, put_sender, sealed_by, undo_on_error};
use crate::error::EncodeError;
use crate::inbound::{Inbound, Me};
use crate::key::HopKey;
use crate::message::{DataPacket, Kind, Message};
use crate::parse::Fixed;
use crate::receiver::Feedback;
use crate::seal::{OpenError, TAG_LEN, announcer, nonce};
use crate::senders::Senders;
use crate::shells::{Symbols, seal_data};
use faircast_core::packet::{Layer, ReceiverId, SessionId};
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
    key: Option<HopKey>,
    announced: u64,
    statuses: u64,
    pages: u64,
    /// By layer, the number that the next data packet must have at least.
    next: [u64; 256],
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
            key: key.cloned(),
            announced: 0,
            statuses: 0,
            pages: 0,
            next: [0; 256],
        }
    }

    /// Who it speaks for.
    pub const fn me(&self) -> ReceiverId {
        self.inbound.me().id
    }

    /// Whether packets are sealed.
    pub const fn form(&self) -> Form {
        if self.key.is_some() { Form::Sealed } else { Form::Open }
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
        match (&self.key, header.sealed) {
            (None, true) => Err(OpenError::NeedsKey(header.session)),
            (Some(_), false) => Err(OpenError::Unsealed(header.session)),
            (None, false) => self.below.open_plain(&fixed, bytes, from),
            (Some(_), true) => {
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
        if self.key.is_none() {
            return encode_data(out, session, packet);
        }
        let (layer, seq) = (packet.layer, packet.data.seq.0);
        let next = &mut self.next[usize::from(layer.0)];
        if seq < *next {
            return Err(EncodeError::NumberReused { layer, seq, newest: *next - 1 });
        }
        let keys = self.inbound.session(session).and_then(|heard| heard.keys.as_ref());
        let own = &keys.ok_or(EncodeError::NotAnnounced(session))?.own;
        let Me { id, boot } = self.inbound.me();
        undo_on_error(out, |out, _| {
            seal_data(out, session, Some((id, boot)), packet, own, Symbols::Passed)?;
            *next = seq + 1;
            Ok(())
        })
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
        let count = match kind {
            Kind::Announce => &mut self.announced,
            Kind::Status => &mut self.statuses,
            Kind::Hashes => &mut self.pages,
            Kind::Data => return Err(EncodeError::NotMine(kind)),
            _ => return self.feedback.encode(&self.inbound, out, session, message),
        };
        let seq = *count;
        *count += 1;
        let Some(key) = &self.key else {
            return encode::encode(out, session, seq as u32, message, limit);
        };
        let keys = self.inbound.session(session).and_then(|heard| heard.keys.as_ref());
        let keys = keys.ok_or(EncodeError::NotAnnounced(session))?;
        let Me { id, boot } = self.inbound.me();
        let me = Some((id, boot));
        undo_on_error(out, |out, start| {
            put_header(out, kind, sealed_by(me), Layer(0), session, seq as u32);
            put_sender(out, me)?;
            let nonce = match kind {
                Kind::Announce => keys.secret.announce_nonce(me, seq),
                _ => nonce(kind, Layer(0), seq),
            };
            if kind == Kind::Announce {
                out.extend_from_slice(&keys.key_id.0.to_be_bytes());
                out.extend_from_slice(&nonce);
            }
            let clear = out.len() - start;
            let fit = put_body(out, message, (start + limit).saturating_sub(TAG_LEN))?;
            match kind {
                Kind::Announce => announcer(key).seal(out, start, clear, nonce),
                _ => keys.own.seal(out, start, clear, nonce),
            }
            Ok(fit)
        })
    }

    fn session(&self) -> Result<SessionId, EncodeError> {
        self.inbound.following().ok_or(EncodeError::NotAnnounced(SessionId(0)))
    }
}
