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

/// Opens packets of sources, and encodes one receiver's answers.
///
/// It admits announcements of all sessions, statuses of announced sessions, and data of the followed session only.
#[derive(Debug)]
pub struct ReceiverCodec {
    inbound: Inbound,
    feedback: Feedback,
}

/// Outbound state of a receiver or relay, upstream.
#[derive(Debug, Default)]
pub(crate) struct Feedback {
    /// Number of messages sent in all sessions. It never restarts, even if a session is followed a second time.
    sent: u64,
}

impl ReceiverCodec {
    /// Maximum deviation of an announcement's time from this host's clock, where it is checked, in seconds.
    pub const SKEW: u64 = 600;

    /// Creates a codec for one receiver. With keys, it admits only packets sealed under one of them, and seals answers.
    ///
    /// `boot` must be drawn at random at each start. Otherwise two runs under the same id would seal different messages alike.
    pub fn new(keys: &[GroupKey], me: ReceiverId, boot: u64) -> ReceiverCodec {
        ReceiverCodec {
            inbound: Inbound::of_member(keys, Me { id: me, boot }),
            feedback: Feedback::default(),
        }
    }

    /// Creates a codec for one relay. With a key, it admits only sealed packets and seals answers. Symbols stay sealed:
    /// [`DataPacket::payload`](crate::DataPacket::payload) holds the sealed bytes.
    ///
    /// `boot` must be drawn at random at each start.
    pub fn of_relay(key: Option<&HopKey>, me: ReceiverId, boot: u64) -> ReceiverCodec {
        ReceiverCodec { inbound: Inbound::of_relay(key, Me { id: me, boot }), feedback: Feedback::default() }
    }

    /// Continues as after this number of sent messages, for tests of long sessions.
    #[doc(hidden)]
    #[must_use]
    pub fn after(mut self, sent: u64) -> ReceiverCodec {
        self.feedback.sent = sent;
        self
    }

    /// Returns the receiver that the codec represents.
    pub const fn me(&self) -> ReceiverId {
        self.inbound.me().id
    }

    /// Refuses announcements that were sent more than `skew` seconds before or after `unix_secs`, the current time in seconds
    /// since 1970. Sessions without answers need this call every few minutes.
    pub const fn check_time(&mut self, unix_secs: u64, skew: u64) {
        self.inbound.set_clock(unix_secs, skew);
    }

    /// Sets the current time of a clock that does not jump. Packets carry 32 bits of their time of sending in microseconds. The
    /// codec unwraps it to the time nearest to the source's current time. Without this call it uses the time nearest to the
    /// newest packet, which is wrong after a silence of 36 minutes.
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

    /// Follows this session and no other. A second call for the same session changes nothing.
    pub fn follow(&mut self, session: SessionId) {
        self.inbound.follow(session);
    }

    /// Forgets packets of this layer from `next` on: the sender at this address has not sent these numbers, so admitted ones were
    /// forged. The numbers count as new again, and numbers below `next` are no longer admitted.
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
    /// When the datagram is not an intact packet of a source; belongs to a session that is not followed, except for announcements
    /// and statuses; is sealed and should not be, or the reverse; was admitted before; or announces a session from another
    /// address.
    pub fn open<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<(SessionId, Message<'a>), OpenError> {
        self.inbound.open(bytes, from)
    }

    /// Appends a report, request, member or window message for `session`, which must be announced, or a refusal of any session. A
    /// request's list is cut to fit [`FEEDBACK_LIMIT`].
    ///
    /// # Errors
    /// When the message has another kind or another sender, a number does not fit its field, or the answer must be sealed and the
    /// session was not announced yet.
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
    /// Appends a message of this end.
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
            // The receiver has no key, or both ends have no common key.
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
