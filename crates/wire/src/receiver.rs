//! The codec of a receiver, or of a relay towards its source.

use crate::bodies::Fit;
use crate::encode::{FEEDBACK_LIMIT, Form, encode, put_body, put_header, put_sender, undo_on_error};
use crate::error::EncodeError;
use crate::inbound::{Inbound, Me};
use crate::key::{GroupKey, HopKey, KeyId};
use crate::message::{DataPacket, Kind, Message};
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

/// State of the packets that a receiver or relay sends upstream.
#[derive(Debug, Default)]
pub(crate) struct Feedback {
    /// Number of messages sent in all sessions. It is never reset, even if a session is followed a second time.
    sent: u64,
}

impl ReceiverCodec {
    /// Maximum deviation of an announcement's time from this host's clock, in seconds, for codecs that check this time.
    pub const SKEW: u64 = 600;

    /// Creates a codec for one receiver. With keys, it admits only packets sealed under one of them, and seals answers.
    ///
    /// `boot` must be drawn at random at each start. Otherwise two runs under the same id would seal different messages with the
    /// same key and nonce.
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

    /// Continues as if the codec had sent `sent` messages, for tests of long sessions.
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

    /// Sets the current time of a clock that does not jump. Packets carry the lower 32 bits of the time at which they were sent,
    /// in microseconds. The codec unwraps this number to the time nearest to the source's current time. Without a call of
    /// `set_now`, it unwraps to the time nearest to the newest packet, which is wrong after a silence of 36 minutes.
    pub const fn set_now(&mut self, now: Time) {
        self.inbound.set_now(now);
    }

    /// Whether packets are sealed.
    pub fn form(&self) -> Form {
        if self.inbound.is_sealed() { Form::Sealed } else { Form::Open }
    }

    /// Returns the id of the first key.
    pub fn first_key(&self) -> Option<KeyId> {
        self.inbound.first_key()
    }

    /// Returns the session that is followed.
    pub const fn following(&self) -> Option<SessionId> {
        self.inbound.following()
    }

    /// Follows this session and no other session. A second call for the same session changes nothing.
    pub fn follow(&mut self, session: SessionId) {
        self.inbound.follow(session);
    }

    /// Forgets the packets of this layer whose numbers are `next` or above. The sender at this address has not sent these
    /// numbers, so the admitted packets were forged. The numbers count as new again, and numbers below `next` are no longer
    /// admitted.
    pub fn go_back(&mut self, from: SocketAddr, layer: Layer, next: u64) {
        self.inbound.go_back(from, layer, next);
    }

    /// Returns the id of the key of a sealed session that was announced.
    pub fn key_of(&self, session: SessionId) -> Option<KeyId> {
        self.inbound.session(session).and_then(|received| received.keys.as_ref()).map(|keys| keys.key_id)
    }

    /// Opens a source's datagram from this address. Sealed packets are decrypted in place.
    ///
    /// # Errors
    /// When the datagram
    /// - is not an intact packet of a source,
    /// - belongs to a session that is not followed (except for announcements and statuses),
    /// - is sealed although this codec has no key, or is not sealed although the codec has a key,
    /// - was admitted before, or
    /// - announces a session from an address that the announcement does not state.
    pub fn open<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<(SessionId, Message<'a>), OpenError> {
        self.inbound.open(bytes, from)
    }

    /// Opens a source's data packet from this address, like [`ReceiverCodec::open`], and reads it into `packet` without a copy.
    ///
    /// # Errors
    /// As [`ReceiverCodec::open`], and when the datagram is of another kind.
    pub fn open_data<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
        packet: &mut DataPacket<'a>,
    ) -> Result<SessionId, OpenError> {
        self.inbound.open_data(bytes, from, packet)
    }

    /// Appends a report, request, member or window message for `session`, which must have been announced. Also appends refusals,
    /// for any session. A request's list is cut to fit [`FEEDBACK_LIMIT`].
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
    /// Appends a message of this receiver or relay.
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
            // The receiver has no key, or no key in common with the source.
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
