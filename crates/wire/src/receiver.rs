//! The codec of a receiver, or of a relay towards its source.

use crate::bodies::Fit;
use crate::encode::{FEEDBACK_LIMIT, Form, encode, put_body, put_header, put_sender, undo_on_error};
use crate::error::EncodeError;
use crate::inbound::{Inbound, Me};
use crate::key::{GroupKey, HopKey, KeyId};
use crate::message::{Kind, Message};
use crate::parse::SEALED;
use crate::seal::{OpenError, TAG_LEN, nonce};
use faircast_core::packet::{Layer, ReceiverId, SessionId};
use faircast_core::time::Time;
use std::net::SocketAddr;

/// Opens packets of sources, and turns one receiver's answers into datagrams.
///
/// Announcements of all sessions are admitted, statuses of announced ones, and data only of the session that is
/// followed.
#[derive(Debug)]
pub struct ReceiverCodec {
    inbound: Inbound,
    feedback: Feedback,
}

/// Outbound state of a receiver or relay, upstream.
#[derive(Debug, Default)]
pub(crate) struct Feedback {
    /// Messages sent so far, in all sessions: following one again must not start over.
    sent: u64,
}

impl ReceiverCodec {
    /// How far an announcement's time may be from ours where that counts, in seconds.
    pub const SKEW: u64 = 600;

    /// Creates a codec for one receiver. With keys only packets sealed under one of them are admitted, and answers are sealed.
    ///
    /// `boot` must be drawn at random at each start: it keeps two runs under the same id from sealing
    /// different messages alike.
    pub fn new(keys: &[GroupKey], me: ReceiverId, boot: u64) -> ReceiverCodec {
        ReceiverCodec {
            inbound: Inbound::of_member(keys, Me { id: me, boot }),
            feedback: Feedback::default(),
        }
    }

    /// A codec for one relay. With a key only sealed packets are let in, and answers are sealed; symbols stay sealed
    /// ([`DataPacket::payload`](crate::DataPacket::payload) is the sealed bytes).
    ///
    /// `boot` must be drawn at random at each start.
    pub fn of_relay(key: Option<&HopKey>, me: ReceiverId, boot: u64) -> ReceiverCodec {
        ReceiverCodec { inbound: Inbound::of_relay(key, Me { id: me, boot }), feedback: Feedback::default() }
    }

    /// As if it had sent this many messages already, for tests of long sessions.
    #[doc(hidden)]
    #[must_use]
    pub fn after(mut self, sent: u64) -> ReceiverCodec {
        self.feedback.sent = sent;
        self
    }

    /// Returns the receiver that it speaks for.
    pub const fn me(&self) -> ReceiverId {
        self.inbound.me().id
    }

    /// Refuses announcements that were sent more than `skew` seconds from `unix_secs`, the present in seconds since 1970.
    /// For sessions without answers; call it every few minutes then.
    pub const fn check_time(&mut self, unix_secs: u64, skew: u64) {
        self.inbound.set_clock(unix_secs, skew);
    }

    /// Sets the present, by any clock that does not leap. Packets carry 32 bits of the microseconds of their departure, read as the
    /// moment nearest to the present of the source's clock. Without this call it is the moment nearest to that of the newest packet,
    /// which is wrong after a silence of 36 minutes.
    pub const fn set_now(&mut self, now: Time) {
        self.inbound.set_now(now);
    }

    /// Whether packets are sealed.
    pub fn form(&self) -> Form {
        if self.inbound.is_sealed() { Form::Sealed } else { Form::Open }
    }

    /// The first of its keys.
    pub fn first_key(&self) -> Option<KeyId> {
        self.inbound.first_key()
    }

    /// The session that is followed.
    pub const fn following(&self) -> Option<SessionId> {
        self.inbound.following()
    }

    /// Follow a session from now on, and no other. Following the same one again changes nothing.
    pub fn follow(&mut self, session: SessionId) {
        self.inbound.follow(session);
    }

    /// The sender at this address has not sent packets of this layer from `next` on yet: those that were let in were not its own. Their
    /// numbers are new again, and older ones than `next` are not let in any more.
    pub fn go_back(&mut self, from: SocketAddr, layer: Layer, next: u64) {
        self.inbound.go_back(from, layer, next);
    }

    /// The key of a sealed session that was announced.
    pub fn key_of(&self, session: SessionId) -> Option<KeyId> {
        self.inbound.session(session).and_then(|received| received.keys.as_ref()).map(|keys| keys.key_id)
    }

    /// Opens a source's datagram from this address. Sealed packets are decrypted in place.
    ///
    /// # Errors
    /// When it is not an intact packet of a source; belongs to a session that is not followed, except for announcements and statuses;
    /// is sealed and should not be, or the reverse; was admitted before; or announces a session that comes from another address.
    pub fn open<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<(SessionId, Message<'a>), OpenError> {
        self.inbound.open(bytes, from)
    }

    /// Append a report, request, member or window message for `session`, which was announced, or a refusal of any session. A
    /// request's list is cut to fit [`FEEDBACK_LIMIT`].
    ///
    /// # Errors
    /// When the message is of another kind or in another's name, when a number does not fit its field,
    /// or when the answer must be sealed and the session was not announced yet.
    pub fn encode(
        &mut self,
        out: &mut Vec<u8>,
        session: SessionId,
        message: &Message<'_>,
    ) -> Result<Fit, EncodeError> {
        self.feedback.encode(&mut self.inbound, out, session, message)
    }
}

impl Feedback {
    /// Append a message in this end's name.
    pub(crate) fn encode(
        &mut self,
        inbound: &mut Inbound,
        out: &mut Vec<u8>,
        session: SessionId,
        message: &Message<'_>,
    ) -> Result<Fit, EncodeError> {
        let (kind, Me { id: me, boot }) = (message.kind(), inbound.me());
        let from = message.from().ok_or(EncodeError::NotMine(kind))?;
        if from != me {
            return Err(EncodeError::NotMe { from, me });
        }
        let seq = self.sent;
        self.sent += 1;
        let is_sealed = inbound.is_sealed() && kind != Kind::Attach;
        let keys = inbound.session_mut(session).and_then(|received| received.keys.as_mut());
        let keys = match keys.filter(|_| is_sealed) {
            Some(keys) => keys,
            // There is no key, or none that both have.
            None if !is_sealed || kind == Kind::Refusal => {
                return encode(out, session, seq as u32, message, FEEDBACK_LIMIT);
            }
            None => return Err(EncodeError::NotAnnounced(session)),
        };
        undo_on_error(out, |out, start| {
            put_header(out, (kind, SEALED), (0, message.layer()), session, seq as u32)?;
            put_sender(out, Some((me, boot)))?;
            let clear = out.len() - start;
            let fit = put_body(out, message, start + FEEDBACK_LIMIT - TAG_LEN)?;
            keys.own.of(seq).seal(out, start, clear, nonce(kind, message.layer(), seq));
            Ok(fit)
        })
    }
}
