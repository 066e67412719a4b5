//! A receiver's codec.

use crate::bodies::Fit;
use crate::codec::Codec;
use crate::encode::{FEEDBACK_LIMIT, Form, encode, put_body, put_header, undo_on_error};
use crate::error::{EncodeError, ParseError};
use crate::key::GroupKey;
use crate::message::{Announce, Header, Kind, Message};
use crate::parse::{Fixed, HEADER_LEN, Newest, SEALED, parse, read_body};
use crate::reader::Reader;
use crate::replay::ReplayWindow;
use crate::seal::{Cipher, NONCE_LEN, OpenError, Secret, TAG_LEN, announcer, nonce};
use faircast_core::packet::{ReceiverId, Seq, SessionId};
use faircast_core::time::Time;

/// Opens what sources send, and turns what one receiver answers into datagrams.
///
/// Announcements of all sessions are let in; anything else only of the session that is followed.
#[derive(Debug)]
pub struct ReceiverCodec {
    me: ReceiverId,
    boot: u64,
    /// Messages sent so far, in all sessions: following one again must not start over.
    sent: u64,
    key: Option<KeyRing>,
    unix_secs: u64,
    skew: u64,
    announced: Vec<Announced>,
    followed: Option<Box<Followed>>,
}

#[derive(Debug)]
struct KeyRing {
    group: GroupKey,
    announcer: Cipher,
}

/// What an announcement told of a session.
#[derive(Debug, Clone, Copy)]
struct Announced {
    session: SessionId,
    salt: [u8; 16],
    next_seq: u64,
}

#[derive(Debug)]
struct Followed {
    session: SessionId,
    salt: Option<[u8; 16]>,
    keys: Option<Keys>,
    sent_at: Time,
    newest: [Seq; 256],
    announcements: ReplayWindow<3>,
    statuses: ReplayWindow<3>,
    layers: Vec<Option<Box<ReplayWindow<DATA_WORDS>>>>,
}

#[derive(Debug)]
struct Keys {
    source: Cipher,
    own: Cipher,
}

/// 8192 numbers and one word that is being refilled.
const DATA_WORDS: usize = 8_192 / 64 + 1;

impl ReceiverCodec {
    /// How far an announcement's time may be from ours, in seconds, unless set otherwise.
    pub const SKEW: u64 = 600;
    /// Sessions whose announcement is remembered.
    const SESSIONS: usize = 16;

    /// A codec for one receiver. With a key only sealed packets are let in, and answers are sealed.
    ///
    /// `boot` must be drawn at random at each start: it keeps two runs under the same id from sealing
    /// different messages alike.
    pub fn new(key: Option<&GroupKey>, me: ReceiverId, boot: u64) -> ReceiverCodec {
        let key = key.map(|key| KeyRing { group: key.clone(), announcer: announcer(key) });
        let announced = Vec::with_capacity(ReceiverCodec::SESSIONS);
        ReceiverCodec {
            me,
            boot,
            sent: 0,
            key,
            unix_secs: 0,
            skew: ReceiverCodec::SKEW,
            announced,
            followed: None,
        }
    }

    /// Who it speaks for.
    pub const fn me(&self) -> ReceiverId {
        self.me
    }

    /// Say what time it is, in seconds since 1970. Sealed announcements from another time are refused,
    /// so this must be called before the first one is opened, and every few minutes from then on.
    pub const fn set_time(&mut self, unix_secs: u64) {
        self.unix_secs = unix_secs;
    }

    /// Allow announcements to be this many seconds off.
    pub const fn set_skew(&mut self, secs: u64) {
        self.skew = secs;
    }

    /// Whether packets are sealed.
    pub const fn form(&self) -> Form {
        if self.key.is_some() { Form::Sealed } else { Form::Open }
    }

    /// The session that is followed.
    pub fn following(&self) -> Option<SessionId> {
        self.followed.as_ref().map(|followed| followed.session)
    }

    /// Follow a session from now on, and forget the one before. Following the same one again changes
    /// nothing.
    pub fn follow(&mut self, session: SessionId) {
        if self.following() == Some(session) {
            return;
        }
        self.followed = Some(Box::new(Followed::new(session)));
        if let Some(announced) = self.announced.iter().find(|announced| announced.session == session).copied()
        {
            self.take_in(announced);
        }
    }

    /// Open what a source sent. Sealed packets are decrypted in place.
    ///
    /// # Errors
    /// When it is not an intact packet of a source, belongs to a session that is not followed (but for
    /// announcements), is sealed and should not be or the other way round, or was let in before.
    pub fn open<'a>(&mut self, bytes: &'a mut [u8]) -> Result<(SessionId, Message<'a>), OpenError> {
        let fixed = Fixed::read(bytes)?;
        let header = fixed.header;
        if header.kind.is_feedback() {
            return Err(OpenError::NotForMe(header.kind));
        }
        let is_followed = self.following() == Some(header.session);
        if header.kind != Kind::Announce && !is_followed {
            return Err(OpenError::OtherSession(header.session));
        }
        let message = match (&self.key, header.sealed) {
            (None, true) => return Err(OpenError::NeedsKey(header.session)),
            (Some(_), false) => return Err(OpenError::Unsealed(header.session)),
            (None, false) => parse(bytes, &self.newest(&header))?.1,
            (Some(_), true) if header.kind == Kind::Announce => self.open_announce(&fixed, bytes)?,
            (Some(_), true) => self.open_sealed(&fixed, bytes)?,
        };
        match &message {
            Message::Announce(announce) => self.learn(header.session, announce)?,
            Message::Status(status) => {
                if let Some(followed) = &mut self.followed {
                    followed.learn_layers(&status.upper_seqs);
                }
            }
            Message::Data(packet) => {
                if let Some(followed) = &mut self.followed {
                    let newest = &mut followed.newest[usize::from(packet.layer.0)];
                    *newest = packet.data.seq.max(*newest);
                    followed.sent_at = packet.data.sent_at.max(followed.sent_at);
                }
            }
            _ => {}
        }
        Ok((header.session, message))
    }

    /// Append a report, request or member message for `session`. A request's list is cut to fit
    /// [`FEEDBACK_LIMIT`].
    ///
    /// # Errors
    /// When the message is of another kind or in another's name, when a number does not fit its field,
    /// or when the answer must be sealed and the session is not followed or not announced yet.
    pub fn encode(
        &mut self,
        out: &mut Vec<u8>,
        session: SessionId,
        message: &Message<'_>,
    ) -> Result<Fit, EncodeError> {
        let kind = message.kind();
        let from = message.from().ok_or(EncodeError::NotMine(kind))?;
        if from != self.me {
            return Err(EncodeError::NotMe { from, me: self.me });
        }
        let seq = self.sent;
        self.sent += 1;
        if self.key.is_none() {
            return encode(out, session, seq as u32, message, FEEDBACK_LIMIT);
        }
        let followed = self.followed.as_ref().filter(|followed| followed.session == session);
        let keys =
            followed.and_then(|followed| followed.keys.as_ref()).ok_or(EncodeError::NotAnnounced(session))?;
        undo_on_error(out, |out, start| {
            put_header(out, kind, SEALED, message.layer(), session, seq as u32);
            ReceiverId::put(out, "from", &from)?;
            out.extend_from_slice(&self.boot.to_be_bytes());
            let clear = out.len() - start;
            let fit = put_body(out, message, start + FEEDBACK_LIMIT - TAG_LEN)?;
            keys.own.seal(out, start, clear, nonce(kind, message.layer(), seq));
            Ok(fit)
        })
    }

    /// The newest numbers known of a packet's layer.
    fn newest(&self, header: &Header) -> Newest {
        self.followed.as_ref().filter(|followed| followed.session == header.session).map_or_else(
            Newest::default,
            |followed| Newest {
                seq: followed.newest[usize::from(header.layer.0)],
                sent_at: followed.sent_at,
            },
        )
    }

    fn open_announce<'a>(&mut self, fixed: &Fixed, bytes: &'a mut [u8]) -> Result<Message<'a>, OpenError> {
        let ring = self.key.as_ref().ok_or(OpenError::NeedsKey(fixed.header.session))?;
        let have = bytes.len();
        let Some(&nonce) = bytes[HEADER_LEN..].first_chunk::<NONCE_LEN>() else {
            let need = HEADER_LEN + NONCE_LEN + TAG_LEN;
            return Err(ParseError::Truncated { field: "nonce", need, have }.into());
        };
        let at = HEADER_LEN + NONCE_LEN;
        let bytes = ring.announcer.open(bytes, at, nonce)?;
        let message = read_body(fixed, None, Reader { bytes, at }, &Newest::default())?;
        if let Message::Announce(announce) = &message
            && announce.unix_secs.abs_diff(self.unix_secs) > self.skew
        {
            let (sent, now, skew) = (announce.unix_secs, self.unix_secs, self.skew);
            return Err(OpenError::Stale { sent, now, skew });
        }
        let session = fixed.header.session;
        if let Some(followed) = self.followed.as_mut().filter(|followed| followed.session == session) {
            let seq = Seq::unwrap(Seq(followed.announcements.newest()), fixed.header.seq).0;
            if !followed.announcements.is_new(seq) {
                return Err(OpenError::Replayed(seq));
            }
            followed.announcements.mark(seq);
        }
        Ok(message)
    }

    /// Open a data packet or a status of the session that is followed.
    fn open_sealed<'a>(&mut self, fixed: &Fixed, bytes: &'a mut [u8]) -> Result<Message<'a>, OpenError> {
        let header = fixed.header;
        let known = self.newest(&header);
        let unknown = OpenError::NotAnnounced(header.session);
        let followed = self.followed.as_mut().ok_or(unknown)?;
        let source = &followed.keys.as_ref().ok_or(unknown)?.source;
        if header.kind == Kind::Status {
            let seq = Seq::unwrap(Seq(followed.statuses.newest()), header.seq).0;
            open_once(source, Some(&mut followed.statuses), &header, seq, bytes)?;
        } else {
            let seq = Seq::unwrap(known.seq, header.seq).0;
            let layer = usize::from(header.layer.0);
            let window = followed.layers.get_mut(layer).and_then(Option::as_deref_mut);
            let is_first = window.is_none();
            open_once(source, window, &header, seq, bytes)?;
            if is_first {
                followed.add_layer(layer, seq);
            }
        }
        let bytes = &bytes[..bytes.len() - TAG_LEN];
        Ok(read_body(fixed, None, Reader { bytes, at: HEADER_LEN }, &known)?)
    }

    /// Take in what an announcement says.
    fn learn(&mut self, session: SessionId, announce: &Announce) -> Result<(), OpenError> {
        let announced = Announced { session, salt: announce.salt, next_seq: announce.next_seq };
        if let Some(followed) = self.followed.as_ref().filter(|followed| followed.session == session)
            && followed.salt.is_some_and(|salt| salt != announce.salt)
        {
            return Err(OpenError::TwoSources(session));
        }
        self.announced.retain(|known| known.session != session);
        if self.announced.len() == ReceiverCodec::SESSIONS {
            self.announced.remove(0);
        }
        self.announced.push(announced);
        if self.following() == Some(session) {
            self.take_in(announced);
        }
        Ok(())
    }

    /// Start with what the announcement of the followed session says.
    fn take_in(&mut self, announced: Announced) {
        let Some(followed) = &mut self.followed else { return };
        let newest = &mut followed.newest[0];
        *newest = Seq(announced.next_seq.saturating_sub(1)).max(*newest);
        followed.salt = Some(announced.salt);
        if let (Some(ring), None) = (&self.key, &followed.keys) {
            let secret = Secret::new(&ring.group, announced.session, &announced.salt);
            followed.keys = Some(Keys { source: secret.source(), own: secret.receiver(self.me, self.boot) });
        }
    }
}

/// Decrypt a packet that has not been let in before, and remember it.
fn open_once<const WORDS: usize>(
    cipher: &Cipher,
    window: Option<&mut ReplayWindow<WORDS>>,
    header: &Header,
    seq: u64,
    bytes: &mut [u8],
) -> Result<(), OpenError> {
    if window.as_ref().is_some_and(|window| !window.is_new(seq)) {
        return Err(OpenError::Replayed(seq));
    }
    cipher.open(bytes, HEADER_LEN, nonce(header.kind, header.layer, seq))?;
    if let Some(window) = window {
        window.mark(seq);
    }
    Ok(())
}

impl Followed {
    fn new(session: SessionId) -> Followed {
        Followed {
            session,
            salt: None,
            keys: None,
            sent_at: Time::ZERO,
            newest: [Seq(0); 256],
            announcements: ReplayWindow::new(),
            statuses: ReplayWindow::new(),
            layers: Vec::new(),
        }
    }

    /// The layers above the base layer are so far, whether their packets come here or not.
    fn learn_layers(&mut self, next: &[u64]) {
        for (newest, next) in self.newest[1..].iter_mut().zip(next) {
            *newest = Seq(next.saturating_sub(1)).max(*newest);
        }
    }

    fn add_layer(&mut self, layer: usize, seq: u64) {
        if self.layers.len() <= layer {
            self.layers.resize_with(layer + 1, || None);
        }
        let mut window = Box::new(ReplayWindow::new());
        window.mark(seq);
        self.layers[layer] = Some(window);
    }
}
