//! Inbound packets from sources and relays. Each packet is opened, and admitted at most once.

use crate::codec::Codec;
use crate::encode::ID_LEN;
use crate::error::ParseError;
use crate::key::{GroupKey, HopKey, KeyId};
use crate::message::{Announce, DataPacket, Header, Kind, Message, Status};
use crate::parse::{Fixed, HEADER_LEN, LAYERS, Newest, parse, parse_data, read_body};
use crate::reader::Reader;
use crate::replay::ReplayWindow;
use crate::seal::{
    BOOT_LEN, Cipher, ContentKeys, KEY_ID_LEN, KeyOwner, NONCE_LEN, OpenError, PacketKeys, Secret, TAG_LEN,
    announcer, nonce,
};
use crate::shells::{Streams, Symbols, is_sealed_by, open_data};
use faircast_core::packet::{Data, Layer, ReceiverId, Seq, SessionId};
use faircast_core::time::Time;
use std::net::SocketAddr;

/// Maximum number of known sessions. The followed session is never removed.
const SESSIONS: usize = 16;

/// Maximum number of known relays of a session.
const RELAYS: usize = 4;

/// Words for 8192 numbers, and one word that is being refilled.
const DATA_WORDS: usize = 8_192 / 64 + 1;

/// The id and boot number of this receiver or relay. The key of its own packets is derived from them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Me {
    pub(crate) id: ReceiverId,
    pub(crate) boot: u64,
}

/// Keys, and state of sessions.
#[derive(Debug)]
pub(crate) struct Inbound {
    me: Me,
    keys: Vec<Known>,
    sessions: Vec<AnnouncedSession>,
    followed: Option<SessionId>,
    /// Seconds since 1970 and the allowed deviation of announcements, in seconds. `None`: times are not checked.
    clock: Option<(u64, u64)>,
    /// The current time, as last set.
    now: Time,
}

/// A configured key.
#[derive(Debug)]
struct Known {
    id: KeyId,
    hop: HopKey,
    announcer: Cipher,
    group: Option<GroupKey>,
}

/// A session that was announced.
#[derive(Debug)]
pub(crate) struct AnnouncedSession {
    session: SessionId,
    salt: Option<[u8; 16]>,
    streams: Streams,
    pub(crate) keys: Option<Keys>,
    source: Box<Flow>,
    relays: Vec<Relay>,
    /// Copy of a packet that is opened with the keys of several relays, one after another.
    trial: Vec<u8>,
}

/// A relay of a session.
#[derive(Debug)]
struct Relay {
    sender: Sender,
    /// Source address of the relay's announcements. The relay's data packets do not name their sender.
    place: SocketAddr,
    flow: Box<Flow>,
}

/// The keys of a session.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) secret: Secret,
    pub(crate) own: PacketKeys,
    pub(crate) key_id: KeyId,
    content: Option<ContentKeys>,
}

/// A relay's id and boot number.
type Sender = (ReceiverId, u64);

/// State of the packets of one sender of a session, the source or a relay.
#[derive(Debug)]
struct Flow {
    keys: Option<PacketKeys>,
    /// Time at which the newest packet was sent, on the source's clock, and time of its arrival, on this host's clock.
    sent_at: Time,
    came_at: Time,
    newest: [Seq; LAYERS],
    announcements: ReplayWindow<3>,
    statuses: ReplayWindow<3>,
    pages: ReplayWindow<3>,
    orders: ReplayWindow<3>,
    layers: Vec<Option<Box<ReplayWindow<DATA_WORDS>>>>,
}

impl Inbound {
    /// Creates the state of a member, which opens symbols. Without keys it admits only packets that are not sealed.
    pub(crate) fn of_member(keys: &[GroupKey], me: Me) -> Inbound {
        let keys = keys.iter().map(|key| Known::new(key.hop(), Some(key.clone())));
        Inbound {
            me,
            keys: keys.collect(),
            sessions: Vec::new(),
            followed: None,
            clock: None,
            now: Time::ZERO,
        }
    }

    /// Creates the state of a relay, which forwards symbols.
    pub(crate) fn of_relay(key: Option<&HopKey>, me: Me) -> Inbound {
        let keys = key.map(|key| Known::new(key.clone(), None)).into_iter().collect();
        Inbound { me, keys, sessions: Vec::new(), followed: None, clock: None, now: Time::ZERO }
    }

    /// Returns the id of the first key.
    pub(crate) fn first_key(&self) -> Option<KeyId> {
        self.keys.first().map(|key| key.id)
    }

    pub(crate) const fn me(&self) -> Me {
        self.me
    }

    pub(crate) fn is_sealed(&self) -> bool {
        !self.keys.is_empty()
    }

    pub(crate) const fn set_clock(&mut self, unix_secs: u64, skew: u64) {
        self.clock = Some((unix_secs, skew));
    }

    pub(crate) const fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    pub(crate) const fn following(&self) -> Option<SessionId> {
        self.followed
    }

    pub(crate) fn follow(&mut self, session: SessionId) {
        self.followed = Some(session);
        self.know(session);
    }

    /// Forgets forged packets of the followed session: see [`Flow::go_back`].
    pub(crate) fn go_back(&mut self, from: SocketAddr, layer: Layer, next: u64) {
        let Some(received) = self.followed.and_then(|session| self.session_mut(session)) else { return };
        let mut is_relay = false;
        for relay in received.relays.iter_mut().filter(|relay| relay.place == from) {
            relay.flow.go_back(layer, next);
            is_relay = true;
        }
        if !is_relay {
            received.source.go_back(layer, next);
        }
    }

    /// Returns the state of a session.
    pub(crate) fn session(&self, session: SessionId) -> Option<&AnnouncedSession> {
        self.place_of(session).map(|at| &self.sessions[at])
    }

    /// Returns the state of a session for sealing.
    pub(crate) fn session_mut(&mut self, session: SessionId) -> Option<&mut AnnouncedSession> {
        let at = self.place_of(session)?;
        Some(&mut self.sessions[at])
    }

    fn place_of(&self, session: SessionId) -> Option<usize> {
        self.sessions.iter().position(|received| received.session == session)
    }

    /// Returns the state of a session. The state is stored until the announcement of another session replaces it.
    fn know(&mut self, session: SessionId) -> &mut AnnouncedSession {
        let at = match self.place_of(session) {
            Some(at) => at,
            None => {
                if self.sessions.len() == SESSIONS
                    && let Some(oldest) =
                        self.sessions.iter().position(|received| self.followed != Some(received.session))
                {
                    self.sessions.remove(oldest);
                }
                self.sessions.push(AnnouncedSession::new(session));
                self.sessions.len() - 1
            }
        };
        &mut self.sessions[at]
    }

    /// Opens a datagram of a source or relay from this address. Admits announcements of all sessions, statuses of all announced
    /// sessions, and data of the followed session.
    pub(crate) fn open<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<(SessionId, Message<'a>), OpenError> {
        let fixed = Fixed::read(bytes)?;
        let Header { session, kind, sealed, .. } = fixed.header;
        if kind.is_feedback() {
            return Err(OpenError::NotForMe(kind));
        }
        if matches!(kind, Kind::Token | Kind::Invite) {
            // These two messages need no key: they are sent before the session is announced, and they grant nothing.
            return if sealed {
                Err(OpenError::NotForMe(kind))
            } else {
                Ok((session, parse(bytes, &Newest::default())?.1))
            };
        }
        if kind == Kind::Data {
            let mut packet = DataPacket::EMPTY;
            return self.open_data(bytes, from, &mut packet).map(|session| (session, Message::Data(packet)));
        }
        let place = self.place_of(session);
        if kind != Kind::Announce && place.is_none() {
            return Err(OpenError::OtherSession(session));
        }
        self.check_form(session, sealed)?;
        let message = match (kind, place) {
            (Kind::Announce, _) if sealed => self.open_announce(&fixed, bytes, from)?,
            (Kind::Announce, _) => self.parse_announce(&fixed, bytes, from)?,
            (_, None) => return Err(OpenError::OtherSession(session)),
            (Kind::Order, Some(place)) => self.sessions[place].open_order(&fixed, bytes, from)?,
            (Kind::Hashes, Some(place)) => self.sessions[place].open_page(&fixed, bytes)?,
            (_, Some(place)) => self.sessions[place].open_status(&fixed, bytes)?,
        };
        Ok((session, message))
    }

    /// Opens a data packet of the followed session from this address, and reads it into `packet`.
    pub(crate) fn open_data<'a>(
        &mut self,
        bytes: &'a mut [u8],
        from: SocketAddr,
        packet: &mut DataPacket<'a>,
    ) -> Result<SessionId, OpenError> {
        let fixed = Fixed::read(bytes)?;
        let Header { session, kind, sealed, .. } = fixed.header;
        if kind != Kind::Data {
            return Err(OpenError::NotForMe(kind));
        }
        let place = self.place_of(session).filter(|_| self.followed == Some(session));
        let place = place.ok_or(OpenError::OtherSession(session))?;
        self.check_form(session, sealed)?;
        self.sessions[place].open_data(&fixed, bytes, from, self.now, packet)?;
        Ok(session)
    }

    /// Checks that a packet is sealed if this codec has a key, and only then.
    fn check_form(&self, session: SessionId, sealed: bool) -> Result<(), OpenError> {
        match (self.is_sealed(), sealed) {
            (false, true) => Err(OpenError::NeedsKey(session)),
            (true, false) => Err(OpenError::Unsealed(session)),
            _ => Ok(()),
        }
    }

    /// Reads an announcement that is not sealed.
    fn parse_announce<'a>(
        &mut self,
        fixed: &Fixed,
        bytes: &'a [u8],
        from: SocketAddr,
    ) -> Result<Message<'a>, OpenError> {
        let message = parse(bytes, &Newest::default())?.1;
        if let Message::Announce(announce) = &message {
            self.check_place(announce, from)?;
            self.check_time(announce)?;
            let received = self.know(fixed.header.session);
            received.check_salt(announce)?;
            received.learn(announce, None, from);
        }
        Ok(message)
    }

    fn open_announce<'a>(
        &mut self,
        fixed: &Fixed,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<Message<'a>, OpenError> {
        let session = fixed.header.session;
        let mut reader = Reader { bytes, at: HEADER_LEN };
        let relay = read_sender(fixed, &mut reader)?;
        let key_id = KeyId(u32::from_be_bytes(reader.array::<KEY_ID_LEN>("key")?));
        let nonce = reader.array::<NONCE_LEN>("nonce")?;
        let clear = reader.at;
        let place = self.keys.iter().position(|key| key.id == key_id);
        let place = place.ok_or(OpenError::OtherKey { session, key: key_id })?;
        let flow = self.session(session).and_then(|received| received.flow(relay));
        let seq = flow.map_or_else(
            || fixed.header.seq.into(),
            |flow| Seq::unwrap(Seq(flow.announcements.newest()), fixed.header.seq).0,
        );
        if flow.is_some_and(|flow| !flow.announcements.is_new(seq)) {
            return Err(OpenError::Replayed(seq));
        }
        let bytes = self.keys[place].announcer.open(bytes, clear, nonce)?;
        let message = read_body(fixed, None, Reader { bytes, at: clear }, &Newest::default())?;
        if let Message::Announce(announce) = &message {
            self.check_place(announce, from)?;
            self.check_time(announce)?;
            let (me, group, hop) = (self.me, self.keys[place].group.clone(), self.keys[place].hop.clone());
            let received = self.know(session);
            received.check_salt(announce)?;
            if received.keys.is_none() {
                received.keys = Some(Keys::new(key_id, &hop, group.as_ref(), me, session, &announce.salt));
            }
            received.learn(announce, relay, from);
            if let Some(flow) = received.flow_mut(relay) {
                flow.announcements.mark(seq);
            }
        }
        Ok(message)
    }

    /// Checks that an announcement comes from the address that it states.
    fn check_place(&self, announce: &Announce, from: SocketAddr) -> Result<(), OpenError> {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let stated = announce.parent;
        if stated == from { Ok(()) } else { Err(OpenError::Elsewhere { stated, from }) }
    }

    fn check_time(&self, announce: &Announce) -> Result<(), OpenError> {
        let sent = announce.unix_secs;
        match self.clock {
            Some((now, skew)) if sent.abs_diff(now) > skew => Err(OpenError::Stale { sent, now, skew }),
            _ => Ok(()),
        }
    }
}

/// Returns the relay at this address that has sealed this data packet. An address has one process at a time, but announcements of
/// earlier processes may be late or replayed. The keys of all relays at the address are therefore tried, beginning with the
/// sender of the newest packet.
fn relay_at<'r>(
    relays: &'r mut [Relay],
    from: SocketAddr,
    fixed: &Fixed,
    bytes: &[u8],
    now: Time,
    trial: &mut Vec<u8>,
) -> Option<&'r mut Relay> {
    let last = relays.iter().rposition(|relay| relay.place == from)?;
    if relays[..last].iter().all(|relay| relay.place != from) {
        return Some(&mut relays[last]);
    }
    let place = (0..=last)
        .rev()
        .find(|&at| relays[at].place == from && relays[at].flow.has_sealed(fixed, bytes, now, trial));
    // Moves the relay to the end of the list. The keys of this relay are then tried first for the next packet.
    let place = place.unwrap_or(last);
    relays[place..=last].rotate_left(1);
    Some(&mut relays[last])
}

/// Reads the id and boot number of a relay.
fn read_sender(fixed: &Fixed, reader: &mut Reader<'_>) -> Result<Option<Sender>, ParseError> {
    const _: () = assert!(ID_LEN + BOOT_LEN == 12, "what is read here");
    if !fixed.is_relayed() {
        return Ok(None);
    }
    Ok(Some((ReceiverId::read(reader, "from")?, u64::read(reader, "boot")?)))
}

impl Known {
    fn new(hop: HopKey, group: Option<GroupKey>) -> Known {
        Known { id: hop.id(), announcer: announcer(&hop), hop, group }
    }
}

impl Keys {
    fn new(
        key_id: KeyId,
        hop: &HopKey,
        group: Option<&GroupKey>,
        me: Me,
        session: SessionId,
        salt: &[u8; 16],
    ) -> Keys {
        let secret = Secret::new(hop, session, salt);
        let content = group.map(|key| ContentKeys::new(key, session, salt));
        Keys { own: PacketKeys::new(&secret, KeyOwner::Member(me.id, me.boot)), secret, key_id, content }
    }
}

impl AnnouncedSession {
    fn new(session: SessionId) -> AnnouncedSession {
        let (streams, source) = (Streams::One, Box::new(Flow::new(None)));
        AnnouncedSession {
            session,
            salt: None,
            streams,
            keys: None,
            source,
            relays: Vec::new(),
            trial: Vec::new(),
        }
    }

    fn flow(&self, relay: Option<Sender>) -> Option<&Flow> {
        match relay {
            None => Some(&self.source),
            Some(sender) => self.relays.iter().find(|relay| relay.sender == sender).map(|relay| &*relay.flow),
        }
    }

    fn flow_mut(&mut self, relay: Option<Sender>) -> Option<&mut Flow> {
        match relay {
            None => Some(&mut self.source),
            Some(sender) => {
                let relay = self.relays.iter_mut().find(|relay| relay.sender == sender);
                relay.map(|relay| &mut *relay.flow)
            }
        }
    }

    /// Opens a data packet from this address, and reads it into `packet`.
    fn open_data<'a>(
        &mut self,
        fixed: &Fixed,
        bytes: &'a mut [u8],
        from: SocketAddr,
        now: Time,
        packet: &mut DataPacket<'a>,
    ) -> Result<(), OpenError> {
        if !fixed.header.sealed {
            parse_data(fixed, bytes, &self.source.newest(fixed, now), packet)?;
            self.source.on_data(packet.layer.0, &packet.data, now);
            return Ok(());
        }
        let unknown = OpenError::NotAnnounced(self.session);
        let AnnouncedSession { keys: Some(keys), source, relays, streams, trial, .. } = self else {
            return Err(unknown);
        };
        let streams = *streams;
        let flow = match fixed.is_relayed() {
            false => source,
            true => &mut relay_at(relays, from, fixed, bytes, now, trial).ok_or(unknown)?.flow,
        };
        let symbols = keys.content.as_mut().map_or(Symbols::Passed, |keys| Symbols::Opened(keys, streams));
        flow.open_data(fixed, bytes, symbols, now, packet)
    }

    /// Opens a status.
    fn open_status<'a>(&mut self, fixed: &Fixed, bytes: &'a mut [u8]) -> Result<Message<'a>, OpenError> {
        if !fixed.header.sealed {
            let mut message = parse(bytes, &Newest::default())?.1;
            if let Message::Status(status) = &mut message {
                status.proof = None; // where nothing is sealed it proves nothing
                self.source.on_status(status);
            }
            return Ok(message);
        }
        let (flow, keys, clear) = self.sealed_flow(fixed, bytes)?;
        flow.open_status(fixed, clear, bytes, keys.content.as_ref())
    }

    /// Opens a page of hashes.
    fn open_page<'a>(&mut self, fixed: &Fixed, bytes: &'a mut [u8]) -> Result<Message<'a>, OpenError> {
        if !fixed.header.sealed {
            return Ok(parse(bytes, &Newest::default())?.1);
        }
        let (flow, _, clear) = self.sealed_flow(fixed, bytes)?;
        flow.open_page(fixed, clear, bytes)
    }

    /// Opens an agent's message. Agents send no announcements, so an agent becomes known with its first valid message.
    fn open_order<'a>(
        &mut self,
        fixed: &Fixed,
        bytes: &'a mut [u8],
        from: SocketAddr,
    ) -> Result<Message<'a>, OpenError> {
        if !fixed.header.sealed {
            return Ok(parse(bytes, &Newest::default())?.1);
        }
        let unknown = OpenError::NotAnnounced(self.session);
        let Some(keys) = &self.keys else { return Err(unknown) };
        let mut reader = Reader { bytes, at: HEADER_LEN };
        let sender = read_sender(fixed, &mut reader)?.ok_or(OpenError::NotForMe(fixed.header.kind))?;
        let clear = reader.at;
        if let Some(known) = self.relays.iter_mut().find(|relay| relay.sender == sender) {
            return known.flow.open_order(fixed, clear, bytes);
        }
        let mut flow =
            Box::new(Flow::new(Some(PacketKeys::new(&keys.secret, KeyOwner::Member(sender.0, sender.1)))));
        let message = flow.open_order(fixed, clear, bytes)?;
        self.remember(Relay { sender, place: from, flow });
        Ok(message)
    }

    /// Stores a relay of this session, if necessary in place of the first one. Relays at one address are sorted by their newest
    /// data.
    fn remember(&mut self, relay: Relay) {
        if self.relays.len() == RELAYS {
            self.relays.remove(0);
        }
        self.relays.push(relay);
    }

    /// Returns the sender of a packet, its keys, and the offset of the sealed part.
    fn sealed_flow(&mut self, fixed: &Fixed, bytes: &[u8]) -> Result<(&mut Flow, &Keys, usize), OpenError> {
        let unknown = OpenError::NotAnnounced(self.session);
        let AnnouncedSession { keys: Some(keys), source, relays, .. } = self else { return Err(unknown) };
        let mut reader = Reader { bytes, at: HEADER_LEN };
        let flow = match read_sender(fixed, &mut reader)? {
            None => source,
            // Relays announce the session before they forward packets.
            Some(sender) => &mut relays.iter_mut().find(|relay| relay.sender == sender).ok_or(unknown)?.flow,
        };
        Ok((flow, keys, reader.at))
    }

    /// Checks that the announcement has the same salt as earlier announcements of the session.
    fn check_salt(&self, announce: &Announce) -> Result<(), OpenError> {
        match self.salt {
            Some(salt) if salt != announce.salt => Err(OpenError::TwoSources(self.session)),
            _ => Ok(()),
        }
    }

    /// Stores the content of an announcement.
    fn learn(&mut self, announce: &Announce, relay: Option<Sender>, from: SocketAddr) {
        (self.salt, self.streams) = (Some(announce.salt), Streams::of(announce));
        if let (Some(keys), Some(sender)) = (&self.keys, relay) {
            match self.relays.iter_mut().find(|relay| relay.sender == sender) {
                Some(known) => known.place = from,
                None => {
                    let keys = PacketKeys::new(&keys.secret, KeyOwner::Member(sender.0, sender.1));
                    self.remember(Relay { sender, place: from, flow: Box::new(Flow::new(Some(keys))) });
                }
            }
        }
        if let (Some(keys), None) = (&self.keys, &self.source.keys) {
            self.source.keys = Some(PacketKeys::new(&keys.secret, KeyOwner::Source));
        }
        if let Some(flow) = self.flow_mut(relay) {
            let newest = &mut flow.newest[0];
            *newest = Seq(announce.next_seq.saturating_sub(1)).max(*newest);
        }
    }
}

impl Flow {
    fn new(keys: Option<PacketKeys>) -> Flow {
        Flow {
            keys,
            sent_at: Time::ZERO,
            came_at: Time::ZERO,
            newest: [Seq(0); LAYERS],
            announcements: ReplayWindow::new(),
            statuses: ReplayWindow::new(),
            pages: ReplayWindow::new(),
            orders: ReplayWindow::new(),
            layers: Vec::new(),
        }
    }

    /// Returns the newest known number of a packet's layer, and an estimate of the source's current time.
    fn newest(&self, fixed: &Fixed, now: Time) -> Newest {
        let sent_at = self.sent_at + now.since(self.came_at);
        Newest { seq: self.newest[usize::from(fixed.header.layer.0)], sent_at }
    }

    fn open_status<'a>(
        &mut self,
        fixed: &Fixed,
        clear: usize,
        bytes: &'a mut [u8],
        content: Option<&ContentKeys>,
    ) -> Result<Message<'a>, OpenError> {
        let (seq, bytes) = open_numbered(&self.statuses, self.keys.as_mut(), fixed, clear, bytes)?;
        let mut message = read_body(fixed, None, Reader { bytes, at: clear }, &Newest::default())?;
        if let Message::Status(status) = &mut message {
            // A relay cannot state when the content is complete.
            if let (Some(content), Some(root)) = (content, &status.root) {
                let proof = status.proof.take().ok_or(OpenError::Forged)?;
                if !content.proves(&proof, root, (status.blocks, status.withdrawn_count())) {
                    return Err(OpenError::Forged);
                }
            }
            self.on_status(status);
        }
        self.statuses.mark(seq);
        Ok(message)
    }

    fn open_page<'a>(
        &mut self,
        fixed: &Fixed,
        clear: usize,
        bytes: &'a mut [u8],
    ) -> Result<Message<'a>, OpenError> {
        let (seq, bytes) = open_numbered(&self.pages, self.keys.as_mut(), fixed, clear, bytes)?;
        let message = read_body(fixed, None, Reader { bytes, at: clear }, &Newest::default())?;
        self.pages.mark(seq);
        Ok(message)
    }

    fn open_order<'a>(
        &mut self,
        fixed: &Fixed,
        clear: usize,
        bytes: &'a mut [u8],
    ) -> Result<Message<'a>, OpenError> {
        let (seq, bytes) = open_numbered(&self.orders, self.keys.as_mut(), fixed, clear, bytes)?;
        let message = read_body(fixed, None, Reader { bytes, at: clear }, &Newest::default())?;
        self.orders.mark(seq);
        Ok(message)
    }

    /// Whether this flow's keys open the data packet.
    fn has_sealed(&mut self, fixed: &Fixed, bytes: &[u8], now: Time, trial: &mut Vec<u8>) -> bool {
        let seq = Seq::unwrap(self.newest(fixed, now).seq, fixed.header.seq).0;
        self.keys.as_mut().is_some_and(|keys| is_sealed_by(keys.of(seq), fixed, bytes, seq, trial))
    }

    fn open_data<'a>(
        &mut self,
        fixed: &Fixed,
        bytes: &'a mut [u8],
        symbols: Symbols<'_>,
        now: Time,
        packet: &mut DataPacket<'a>,
    ) -> Result<(), OpenError> {
        let known = self.newest(fixed, now);
        let seq = Seq::unwrap(known.seq, fixed.header.seq).0;
        let layer = usize::from(fixed.header.layer.0);
        if let Some(Some(window)) = self.layers.get(layer)
            && !window.is_new(seq)
        {
            return Err(OpenError::Replayed(seq));
        }
        let keys = self.keys.as_mut().ok_or(OpenError::NotAnnounced(fixed.header.session))?;
        open_data(fixed, bytes, seq, &known, (keys.of(seq), symbols), packet)?;
        if self.layers.len() <= layer {
            self.layers.resize_with(layer + 1, || None);
        }
        self.layers[layer].get_or_insert_with(|| Box::new(ReplayWindow::new())).mark(seq);
        self.on_data(fixed.header.layer.0, &packet.data, now);
        Ok(())
    }

    fn on_data(&mut self, layer: u8, data: &Data, now: Time) {
        let newest = &mut self.newest[usize::from(layer)];
        *newest = data.seq.max(*newest);
        if data.sent_at >= self.sent_at {
            (self.sent_at, self.came_at) = (data.sent_at, now);
        }
    }

    /// Stores the packet numbers of the enhancement layers, even if this host does not receive these layers.
    fn on_status(&mut self, status: &Status) {
        for (newest, next) in self.newest[1..].iter_mut().zip(&status.upper_seqs) {
            *newest = Seq(next.saturating_sub(1)).max(*newest);
        }
    }

    /// Forgets forged packets of this layer, whose numbers are `next` or above.
    fn go_back(&mut self, layer: Layer, next: u64) {
        let layer = usize::from(layer.0);
        let Some(newest) = self.newest.get_mut(layer) else { return };
        *newest = Seq(next.saturating_sub(1));
        if let Some(Some(window)) = self.layers.get_mut(layer) {
            window.go_back(next);
        }
    }
}

/// Number of upper halves of a 64-bit packet number that are tried for the first packet of a kind. The upper half of a source
/// that sends a hundred statuses per second increases every 16 months.
const UPPER_HALVES: u64 = 4;

/// Returns the body and the number of a sealed packet whose kind has its own numbers.
fn open_numbered<'a>(
    window: &ReplayWindow<3>,
    keys: Option<&mut PacketKeys>,
    fixed: &Fixed,
    clear: usize,
    bytes: &'a mut [u8],
) -> Result<(u64, &'a [u8]), OpenError> {
    let header = fixed.header;
    let keys = keys.ok_or(OpenError::NotAnnounced(header.session))?;
    let seq = Seq::unwrap(Seq(window.newest()), header.seq).0;
    if !window.is_new(seq) {
        return Err(OpenError::Replayed(seq));
    }
    if !window.is_empty() {
        let bytes = keys.of(seq).open(bytes, clear, nonce(header.kind, header.layer, seq))?;
        return Ok((seq, bytes));
    }
    // A failed attempt to open changes the bytes.
    let sealed = bytes.to_vec();
    let halves = (0..UPPER_HALVES).map(|upper| upper << 32 | seq);
    let seq = halves
        .into_iter()
        .find(|&seq| {
            bytes.copy_from_slice(&sealed);
            keys.of(seq).open(bytes, clear, nonce(header.kind, header.layer, seq)).is_ok()
        })
        .ok_or(OpenError::Forged)?;
    let len = bytes.len() - TAG_LEN;
    Ok((seq, &bytes[..len]))
}
