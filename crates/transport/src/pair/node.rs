//! Sources and receivers. The tests call them as a driver does.

use super::net::OVERHEAD;
use super::slow_disk::SlowDisk;
use super::socket::Socket;
use super::streams::LiveInput;
use crate::config::{
    Destination, DryRun, Existing, Extraneous, FilePolicy, OneWay, ReceiptKeys, ReceiverEvents, Repeat,
    ReplayPolicy, RequiredHost, SlowReceiverPolicy, StartNow,
};
use crate::day_limits::DayLimits;
use crate::endpoint::{Datagram, Endpoint, HostEvent};
use crate::error::Error;
use crate::event::{Event, ReceiveReport, SendReport};
use crate::object::host::disk::Disk;
use crate::object::{Delta, Holes, ObjectStream, Reading, TRAILER};
use crate::receiver;
use crate::source;
use crate::source::block_source::BlockSource;
use crate::source::scheduler::streams::{Cut, Feed, Fill, Streams};
use crate::source::scheduler::{Scheduler, in_rounds, of_blocks};
use faircast_core::packet::{Layer, ReceiverId, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_host::pipe::Feeder;
use faircast_net::Ecn;
use faircast_wire::{
    Announce, Form, GroupKey, Name, ReceiverCodec, Series, SigningKey, SourceCodec, Spacing, TransferId,
    VerifyKeys, data_header_len,
};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time zero of the session, in seconds since 1970.
pub(super) const UNIX_SECS: u64 = 1_800_000_000;

/// Length in bytes of each of the two ranges with data of [`Offer::disk`].
pub(super) const IN_DISK: u64 = 150_000;

/// Idle timeout of sources and receivers.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of wakeups of a source at one moment. A higher number indicates an endless loop.
const MAX_TURNS: u32 = 200_000;

/// The content of a source, and the options of its session.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    pub(super) bytes: u64,
    /// Congestion control, in the syntax of the command line.
    scheme: &'static str,
    /// Announced packet size, in place of the real one.
    announced_size: Option<u16>,
    /// Whether the chunks of the content are listed.
    delta: Delta,
    /// Whether the content is zeros that take no space on the disk.
    sparse: bool,
    /// Treatment of holes in the content.
    holes: Holes,
    datagram: usize,
    symbols_per_block: u16,
    extraneous: Extraneous,
    slow: SlowReceiverPolicy,
    one_way: Option<OneWay>,
    min: Option<Rate>,
    max: Option<Rate>,
    day_limits: Option<DayLimits>,
    expect: Option<u32>,
    to_hosts: &'static str,
    pub(super) series: Option<Series>,
    dry_run: DryRun,
    required: Vec<RequiredHost>,
    join_timeout: Duration,
    not_before: Time,
    pub(super) start: StartNow,
    idle_timeout: Duration,
    spread: Span,
    pub(super) key: Option<GroupKey>,
    sign: Option<SigningKey>,
    receipts: Option<ReceiptKeys>,
    /// A live stream for each layer, and the age at which unsent blocks are dropped.
    streams: Option<(Vec<LiveInput>, Span)>,
    /// A live stream to which a test adds blocks. Values: the time for which blocks are stored, and the number of announcements
    /// and of status messages that count as already sent.
    live: Option<(Span, u64)>,
    /// Aim for the delay of a stream.
    pub(super) latency: Span,
}

impl Offer {
    /// Offers this number of random bytes.
    pub(super) fn bytes(bytes: u64) -> Offer {
        Offer {
            bytes,
            scheme: "ormcc",
            announced_size: None,
            delta: Delta::Off,
            sparse: false,
            holes: Holes::AsZeros,
            datagram: 1472,
            symbols_per_block: 256,
            extraneous: Extraneous::Keep,
            slow: SlowReceiverPolicy::Follow,
            one_way: None,
            min: None,
            max: None,
            day_limits: None,
            expect: None,
            to_hosts: "",
            series: None,
            dry_run: DryRun::Off,
            required: Vec::new(),
            join_timeout: Duration::from_secs(10),
            not_before: Time::ZERO,
            start: StartNow::default(),
            idle_timeout: IDLE_TIMEOUT,
            spread: Span::from_millis(10),
            key: None,
            sign: None,
            receipts: None,
            streams: None,
            live: None,
            latency: Span::from_millis(200),
        }
    }

    /// Offers a live stream to which a test adds blocks ([`SourceNode::feed`]). Announcements and status messages are numbered as
    /// if `sent` of each kind had been sent before.
    pub(super) fn live(history: Span, sent: u64) -> Offer {
        Offer { live: Some((history, sent)), ..Offer::bytes(0) }
    }

    /// Offers a live stream on each layer; blocks that cannot be sent within `history` are dropped.
    pub(super) fn streams(streams: &[LiveInput], history: Span) -> Offer {
        Offer { streams: Some((streams.to_vec(), history)), ..Offer::bytes(0) }
    }

    /// Sends only the list of files, or the content too.
    pub(super) fn dry_run(self, dry_run: DryRun) -> Offer {
        Offer { dry_run, ..self }
    }

    /// Lists the chunks of the content.
    pub(super) fn with_chunks(self) -> Offer {
        Offer { delta: Delta::On, ..self }
    }

    /// Offers this number of zero bytes.
    pub(super) fn zeros(bytes: u64) -> Offer {
        Offer { sparse: true, ..Offer::bytes(bytes) }
    }

    /// Offers a sparse file of this length, with random bytes at its start and in its middle ([`IN_DISK`]).
    pub(super) fn disk(bytes: u64) -> Offer {
        Offer { sparse: true, holes: Holes::Keep, ..Offer::bytes(bytes) }
    }

    /// Uses this congestion control.
    pub(super) fn by(self, scheme: &'static str) -> Offer {
        Offer { scheme, ..self }
    }

    pub(super) fn expect(self, receivers: u32) -> Offer {
        Offer { expect: Some(receivers), ..self }
    }

    /// Requires these hosts to receive all content.
    pub(super) fn require(self, names: &[&str]) -> Offer {
        let required: Vec<_> = names.iter().map(|name| RequiredHost::new(name)).collect();
        Offer { expect: Some(required.len() as u32), required, ..self }
    }

    /// Sends to hosts whose names match these patterns only.
    pub(super) fn for_hosts(self, patterns: &'static str) -> Offer {
        Offer { to_hosts: patterns, ..self }
    }

    pub(super) fn wait_secs(self, secs: u64) -> Offer {
        Offer { join_timeout: Duration::from_secs(secs), ..self }
    }

    /// Sends no content in the first `secs` seconds.
    pub(super) fn not_before_secs(self, secs: u64) -> Offer {
        Offer { not_before: Time::ZERO + Span::from_secs(secs), ..self }
    }

    pub(super) fn datagrams_of(self, bytes: usize) -> Offer {
        Offer { datagram: bytes, ..self }
    }

    /// Sets the number of symbols per block.
    pub(super) fn in_blocks_of(self, symbols: u16) -> Offer {
        Offer { symbols_per_block: symbols, ..self }
    }

    /// Lets receivers delete files that the source does not have.
    pub(super) fn deleting(self) -> Offer {
        Offer { extraneous: Extraneous::Delete, ..self }
    }

    /// Announces this size of packets.
    pub(super) fn announcing(self, size: u16) -> Offer {
        Offer { announced_size: Some(size), ..self }
    }

    pub(super) fn slow(self, slow: SlowReceiverPolicy) -> Offer {
        Offer { slow, ..self }
    }

    /// Sends without feedback, at this rate, one block after the other.
    pub(super) fn one_way_at_mbps(self, rate: f64, repeat: Repeat) -> Offer {
        let mut one_way = OneWay::new(Rate::from_mbps(rate), repeat);
        one_way.burst = Duration::ZERO;
        Offer { one_way: Some(one_way), ..self }
    }

    /// Interleaves blocks against outages of this length, in a session without feedback.
    pub(super) fn against_outages_of(mut self, burst: Duration, overhead: f64) -> Offer {
        let one_way = self.one_way.as_mut().expect("a session without feedback");
        (one_way.burst, one_way.overhead) = (burst, overhead);
        self
    }

    /// Sends at exactly this rate, regardless of reports.
    pub(super) fn at_mbps(self, rate: f64) -> Offer {
        Offer { min: Some(Rate::from_mbps(rate)), max: Some(Rate::from_mbps(rate)), ..self }
    }

    /// Sends at this rate or more, regardless of reports.
    pub(super) fn at_least_mbps(self, rate: f64) -> Offer {
        Offer { min: Some(Rate::from_mbps(rate)), ..self }
    }

    pub(super) fn at_most_mbps(self, rate: f64) -> Offer {
        Offer { max: Some(Rate::from_mbps(rate)), ..self }
    }

    /// Limits the rate by the time of day.
    pub(super) fn limited_by_day(self, limits: DayLimits) -> Offer {
        Offer { day_limits: Some(limits), ..self }
    }

    /// Uses the feedback spread of a large network.
    pub(super) fn far(self) -> Offer {
        Offer { spread: Span::from_millis(200), ..self }
    }

    pub(super) fn sealed(self, key: GroupKey) -> Offer {
        Offer { key: Some(key), ..self }
    }

    /// Requires each receiver's receipt to be signed by one of these keys.
    pub(super) fn receipts(self, keys: ReceiptKeys) -> Offer {
        Offer { receipts: Some(keys), ..self }
    }

    pub(super) fn signed(self, key: SigningKey) -> Offer {
        Offer { sign: Some(key), ..self }
    }
}

/// Returns the groups for this number of layers.
pub(super) fn groups(layers: u8) -> Vec<SocketAddr> {
    (0..layers.max(1)).map(|layer| group_of(Layer(layer))).collect()
}

/// Returns the group of a layer.
pub(super) fn group_of(layer: Layer) -> SocketAddr {
    SocketAddr::from(([239, 255, 70, 1 + layer.0], 5777))
}

/// Returns the layer of this group.
pub(super) fn layer_of(group: SocketAddr) -> Layer {
    let IpAddr::V4(address) = group.ip() else { panic!("{group} is no group of these") };
    Layer(address.octets()[3] - 1)
}

/// A source and its events.
pub(super) struct SourceNode {
    /// Number of datagrams received.
    pub(super) received: u64,
    pub(super) offer: Offer,
    pub(super) address: SocketAddr,
    pub(super) session: Option<source::SourceSession>,
    pub(super) ended: Option<Result<SendReport, Error>>,
    pub(super) events: Vec<(Time, Event)>,
    pub(super) content: PathBuf,
    pub(super) id: SessionId,
    pub(super) salt: [u8; 16],
    /// Value of the source's clock at time zero, in seconds since 1970; applies from the next start of the source.
    pub(super) unix_secs: u64,
    /// Size of the IP and UDP headers, bytes.
    pub(super) headers: usize,
    /// Whether the path drops packets that are sent in bursts without segmentation.
    pub(super) bursts_are_lost: bool,
    feeder: Option<Feeder>,
    rng: Rng,
    origin: Time,
    out: Vec<u8>,
}

impl SourceNode {
    pub(super) fn new(seed: u64, index: usize, offer: Offer, content: PathBuf) -> SourceNode {
        fs::create_dir_all(content.parent().expect("it lies in a directory")).expect("a directory is made");
        let file = fs::File::create(&content).expect("a file is made");
        if offer.sparse {
            file.set_len(offer.bytes).expect("a sparse file has any length");
            let mut rng = Rng::new(seed, 7_000 + index as u64);
            for at in [0, offer.bytes / 2].into_iter().filter(|_| offer.holes == Holes::Keep) {
                let bytes: Vec<u8> = (0..IN_DISK).map(|_| rng.bits() as u8).collect();
                file.write_all_at(&bytes, at).expect("room for the content");
            }
        } else {
            let mut rng = Rng::new(seed, 7_000 + index as u64);
            let bytes: Vec<u8> =
                (0..offer.bytes.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect();
            fs::write(&content, &bytes[..offer.bytes as usize]).expect("room for the content");
        }
        let changed: SystemTime = UNIX_EPOCH + Duration::from_secs(UNIX_SECS - 100);
        file.set_modified(changed).expect("our own file");
        SourceNode {
            received: 0,
            offer,
            address: SourceNode::address_of(index),
            session: None,
            ended: None,
            events: Vec::new(),
            content,
            id: SessionId(1),
            salt: [0; 16],
            unix_secs: UNIX_SECS,
            headers: OVERHEAD,
            bursts_are_lost: false,
            feeder: None,
            rng: Rng::new(seed, 8_000 + index as u64),
            origin: Time::ZERO,
            out: Vec::new(),
        }
    }

    /// Returns the address of source number `index`.
    pub(super) fn address_of(index: usize) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1 + index as u8], 5777))
    }

    /// Changes the address of the host.
    pub(super) fn move_to(&mut self, address: SocketAddr, now: Time) {
        self.address = address;
        let now = local(now, self.origin);
        if let Some(session) = &mut self.session {
            session.handle_host_event(HostEvent::NetworkChanged { local: Some(address) }, now);
        }
    }

    /// Replaces the content with this number of different random bytes; applies from the next start.
    pub(super) fn replace_content(&mut self, bytes: u64) {
        let content: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| self.rng.bits().to_le_bytes()).collect();
        fs::write(&self.content, &content[..bytes as usize]).expect("room for the content");
        self.offer.bytes = bytes;
    }

    /// Returns an announcement with the required fields only.
    pub(super) fn announced(&self) -> Announce {
        let (object, empty) = (self.object(), Name::EMPTY);
        Announce {
            salt: self.salt,
            unix_secs: UNIX_SECS,
            started: 0,
            source: self.address,
            parent: self.address,
            transfer: TransferId(object.transfer().0),
            stream_len: object.geometry().stream_len,
            manifest_len: object.geometry().manifest_len,
            symbol_size: object.geometry().symbol_size,
            packet_size: 1_500,
            symbols_per_block: object.geometry().symbols_per_block,
            first_block: 0,
            next_seq: 0,
            scheme: self.scheme().number(),
            layers: self.scheme().layers().max(1),
            options: empty,
            hops: 0,
            spread_ms: 10,
            flags: 0,
            name: empty,
            signer: 0,
            to_hosts: Name::EMPTY,
            series: None,
            dry_run: None,
            signature: None,
        }
    }

    /// Returns the content as the object stream that is sent.
    pub(super) fn object(&self) -> ObjectStream {
        let symbols = self.offer.symbols_per_block;
        let (content, size) = (std::slice::from_ref(&self.content), self.symbol_size());
        let Offer { extraneous, delta, holes, .. } = self.offer;
        let reading = Reading { extraneous, delta, holes, ..Reading::default() };
        let object = ObjectStream::open_with(content, &reading, size, symbols);
        object.expect("the content can be read")
    }

    fn scheme(&self) -> Scheme {
        self.offer.scheme.parse().expect("the scheme is there")
    }

    pub(super) fn symbol_size(&self) -> u16 {
        let form = if self.offer.key.is_some() { Form::Sealed } else { Form::Open };
        ((self.offer.datagram - data_header_len(&self.scheme().mark(), form)) / 8 * 8) as u16
    }

    /// Starts a new session with the same content.
    pub(super) fn start(&mut self, now: Time) {
        let offer = &self.offer;
        let (scheme, symbol, symbols) = (self.scheme(), self.symbol_size(), offer.symbols_per_block);
        let mut dry_run = None;
        let scheduler: Box<dyn Scheduler> = match &offer.streams {
            None if offer.live.is_some() => {
                let (feeder, pipe) = Feeder::pipe();
                self.feeder = Some(feeder);
                let history = offer.live.map_or(Span::ZERO, |(history, _)| history);
                let live = BlockSource::live_pipe(
                    pipe,
                    symbol,
                    symbols,
                    now.as_nanos(),
                    (history, offer.latency),
                    Time::ZERO,
                );
                of_blocks(live.expect("symbols make blocks"), scheme.layers())
            }
            None => match offer.one_way {
                Some(one_way) => in_rounds(BlockSource::files(self.object()), &one_way),
                None => {
                    let mut object = self.object();
                    if offer.dry_run == DryRun::On {
                        dry_run = object.geometry().stream_len;
                        object = object.without_content();
                    }
                    of_blocks(BlockSource::files(object), scheme.layers())
                }
            },
            Some((streams, history)) => {
                let (repair, fill) = (0.1, Fill::of(&scheme));
                let cut = Cut {
                    symbol_size: symbol,
                    symbols,
                    repair,
                    history: *history,
                    block_time: offer.latency / 2,
                    fill,
                };
                let feeds = streams.iter().map(|made| Box::new(made.clone()) as Box<dyn Feed>);
                let streams = Streams::new(feeds.collect(), cut, now.as_nanos());
                Box::new(streams.expect("symbols make blocks"))
            }
        };
        let size = offer.announced_size.unwrap_or((offer.datagram + self.headers) as u16);
        let scheme = scheme.with_packet_size(size);
        let mut salt = [0; 16];
        salt[..8].copy_from_slice(&self.rng.bits().to_le_bytes());
        self.id = SessionId(self.rng.bits() as u32 | 1);
        self.salt = salt;
        self.origin = now;
        self.ended = None;
        let setup = source::Setup {
            codec: SourceCodec::new(self.id, offer.key.as_ref(), salt)
                .after(offer.live.map_or(0, |(_, sent)| sent)),
            salt,
            groups: groups(scheme.layers()),
            scheme,
            spacing: Spacing::Address,
            scheduler,
            sign: offer.sign.clone(),
            receipts: offer.receipts.clone(),
            rng: Rng::new(self.rng.bits(), 0),
            name: "source".to_owned(),
            datagram: offer.datagram,
            overhead: self.headers,
            slow: offer.slow,
            one_way: offer.one_way,
            min: offer.min,
            max: offer.max,
            day_limits: offer.day_limits.clone(),
            expect: offer.expect,
            to_hosts: Name::new(offer.to_hosts).expect("short patterns"),
            series: offer.series,
            dry_run,
            required: offer.required.clone(),
            join_timeout: offer.join_timeout,
            not_before: offer.not_before,
            start: offer.start.clone(),
            ttl: 1,
            idle_timeout: offer.idle_timeout,
            spread: offer.spread,
            local: self.address,
            receiver_events: ReceiverEvents::EverySecond,
            started: self.unix_secs * 1_000_000_000 + now.as_nanos(),
        };
        self.session = Some(source::SourceSession::new(setup, Time::ZERO));
    }

    pub(super) fn on_datagram(&mut self, bytes: &mut [u8], from: SocketAddr, now: Time) {
        self.received += 1;
        let now = local(now, self.origin);
        if let Some(session) = &mut self.session {
            session.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now }, now);
        }
    }

    /// Runs all pending work.
    pub(super) fn drive(&mut self, now: Time, mut send: impl FnMut(&[u8], Layer)) {
        let here = local(now, self.origin);
        for _ in 0..MAX_TURNS {
            let Some(session) = &mut self.session else { return };
            session.handle_timeout(here);
            let transmit = session.poll_transmit(here, &mut self.out);
            self.events.extend(std::iter::from_fn(|| session.poll_event()).map(|event| (now, event)));
            if let Some(transmit) = transmit {
                let layer = layer_of(transmit.to);
                if self.bursts_are_lost && self.out.len() > transmit.segment {
                    self.out.clear();
                }
                self.out.chunks(transmit.segment).for_each(|bytes| send(bytes, layer));
            }
            if session.is_finished() {
                self.ended = self.session.take().map(source::SourceSession::report);
                return;
            }
            if session.poll_timeout(here) > here {
                return;
            }
        }
        panic!("the source does not let time pass at {here:?}");
    }

    /// Adds a block to the stream, filled with the byte `bytes`.
    pub(super) fn feed(&mut self, bytes: u8) -> Vec<u8> {
        let len = usize::from(self.symbol_size()) * usize::from(self.offer.symbols_per_block) - TRAILER;
        let block = vec![bytes; len];
        self.feeder.as_ref().expect("a live stream").put(&block);
        block
    }

    /// Ends the stream.
    pub(super) fn end_feed(&mut self) {
        self.feeder.as_ref().expect("a live stream").end();
    }

    pub(super) fn next_timeout(&self, now: Time) -> Time {
        let here = local(now, self.origin);
        let wake = |session: &source::SourceSession| match self.feeder {
            Some(_) => session.wake_without_looking(here),
            None => session.poll_timeout(here),
        };
        self.session.as_ref().map_or(Time::NEVER, |session| global(wake(session), self.origin))
    }

    /// Returns the report of a successful session.
    pub(super) fn report(&self) -> &SendReport {
        match &self.ended {
            Some(Ok(report)) => report,
            Some(Err(error)) => panic!("the source failed: {error}"),
            None => panic!("the source has not ended"),
        }
    }
}

/// A receiver and its events.
pub(super) struct ReceiverNode {
    pub(super) group: usize,
    pub(super) address: SocketAddr,
    pub(super) host: String,
    pub(super) dir: PathBuf,
    pub(super) session: Option<receiver::ReceiverSession>,
    pub(super) ended: Option<Result<ReceiveReport, Error>>,
    pub(super) ended_at: Time,
    pub(super) events: Vec<(Time, Event)>,
    pub(super) path_rng: Rng,
    /// Whether the receiver writes to memory that no test reads; only for content of zeros.
    pub(super) to_stdout: bool,
    /// Memory for incomplete blocks, bytes.
    pub(super) memory: usize,
    /// First layer that the host refuses to join.
    pub(super) refuses: Option<Layer>,
    pub(super) socket: Socket,
    /// Size of the IP and UDP headers, bytes.
    pub(super) headers: usize,
    /// Public keys with which accepted content may be signed; applies from the next start.
    pub(super) verify: Option<VerifyKeys>,
    /// Key with which receipts are signed; applies from the next start.
    pub(super) sign_receipts: Option<SigningKey>,
    /// Filter of the sessions to receive; applies from the next start.
    pub(super) accept: crate::session_filter::SessionFilter,
    /// Possible parents; applies from the next start.
    pub(super) parents: Vec<SocketAddr>,
    /// Protection against replayed announcements; applies from the next start.
    pub(super) replay_policy: ReplayPolicy,
    /// Value of the receiver's clock at time zero, in seconds since 1970; applies from the next start of the receiver.
    pub(super) unix_secs: u64,
    /// Treatment of existing files; applies from the next start.
    pub(super) existing: Existing,
    /// Delays of the disk; applies from the next start.
    pub(super) disk: SlowDisk,
    /// Files and directories whose content is reused; applies from the next start.
    pub(super) reuse: Vec<PathBuf>,
    key: Option<GroupKey>,
    rng: Rng,
    origin: Time,
    backlog_at: Time,
    /// Number of datagrams that arrived while the session accepted none. They are delivered nevertheless.
    pub(super) unaccepted: u64,
    out: Vec<u8>,
}

impl ReceiverNode {
    pub(super) fn new(
        seed: u64,
        index: usize,
        group: usize,
        dir: PathBuf,
        key: Option<GroupKey>,
    ) -> ReceiverNode {
        let [_, _, high, low] = (index as u32).to_be_bytes();
        ReceiverNode {
            group,
            address: SocketAddr::from(([10, 1, high, low], 5778)),
            host: format!("host{index}"),
            dir,
            session: None,
            ended: None,
            ended_at: Time::ZERO,
            events: Vec::new(),
            path_rng: Rng::new(seed, 1 << 33 | index as u64),
            to_stdout: false,
            memory: receiver::INCOMPLETE,
            refuses: None,
            verify: None,
            sign_receipts: None,
            accept: crate::session_filter::SessionFilter::default(),
            parents: Vec::new(),
            replay_policy: ReplayPolicy::Answer,
            unix_secs: UNIX_SECS,
            existing: Existing::default(),
            disk: SlowDisk::default(),
            reuse: Vec::new(),
            key,
            rng: Rng::new(seed, 1 << 34 | index as u64),
            origin: Time::ZERO,
            socket: Socket::default(),
            headers: OVERHEAD,
            backlog_at: Time::ZERO,
            unaccepted: 0,
            out: Vec::new(),
        }
    }

    pub(super) fn start(&mut self, now: Time) {
        let unix_secs = self.unix_secs + now.as_nanos() / 1_000_000_000;
        let id = ReceiverId::new(u64::from(self.rng.bits() as u32 | 1)).expect("an odd number is not zero");
        let codec = ReceiverCodec::new(self.key.as_slice(), id, self.rng.bits());
        let destination = match self.to_stdout {
            true => Destination::Writer(crate::Output::new(std::io::stdout())),
            false => {
                fs::create_dir_all(&self.dir).expect("a directory is made");
                Destination::Directory(self.dir.clone())
            }
        };
        let seed = self.rng.bits();
        let setup = receiver::Setup {
            host: self.host.clone(),
            verify: self.verify.clone(),
            sign_receipts: self.sign_receipts.clone(),
            overhead: self.headers,
            idle_timeout: Span::from_nanos(IDLE_TIMEOUT.as_nanos() as u64),
            replay_policy: self.replay_policy,
            memory: self.memory,
            parents: self.parents.clone(),
            accept: self.accept.clone(),
            worker: self.disk.worker(),
            disk: Disk::default(),
            files: FilePolicy {
                existing: self.existing.clone(),
                reuse: self.reuse.clone(),
                ..FilePolicy::default()
            },
            ..receiver::Setup::plain(codec, id, seed, destination, (groups(1)[0], unix_secs))
        };
        self.origin = now;
        self.socket.restart();
        self.backlog_at = Time::ZERO;
        self.ended = None;
        self.session = Some(receiver::ReceiverSession::new(setup, Time::ZERO));
    }

    /// Delivers a datagram to the host. The process takes the datagram from the socket's buffer at once, unless the process is
    /// slow or stopped.
    pub(super) fn on_datagram(&mut self, bytes: &mut [u8], from: SocketAddr, now: Time) {
        if self.session.is_some() && self.socket.put(bytes, from, now) {
            self.take_in(now);
        }
    }

    /// Processes the datagrams that the process can take by now.
    fn take_in(&mut self, now: Time) {
        let here = local(now, self.origin);
        while let Some((mut bytes, from, arrived)) = self.socket.take(now) {
            let Some(session) = &mut self.session else { return };
            self.unaccepted += u64::from(!session.accepts(here));
            let arrived = local(arrived, self.origin);
            session.handle_datagram(Datagram { bytes: &mut bytes, from, ecn: Ecn::NotEct, arrived }, here);
            if here >= self.backlog_at {
                self.backlog_at = here + Span::from_millis(1);
                session.handle_host_event(HostEvent::Backlog(self.socket.backlog()), here);
            }
        }
    }

    pub(super) fn drive(&mut self, now: Time, mut send: impl FnMut(&[u8], SocketAddr)) {
        if self.socket.is_stopped(now) {
            return;
        }
        self.disk.work(now);
        self.take_in(now);
        let here = local(now, self.origin);
        let Some(session) = &mut self.session else { return };
        session.handle_timeout(here);
        if let Some(refused) = self.refuses.filter(|layer| session.groups().len() >= usize::from(layer.0)) {
            let place = usize::from(refused.0) - 1;
            session.handle_host_event(HostEvent::JoinFailed { place, why: &"its port is taken" }, here);
        }
        while let Some(transmit) = session.poll_transmit(here, &mut self.out) {
            send(&self.out, transmit.to);
        }
        self.events.extend(std::iter::from_fn(|| session.poll_event()).map(|event| (now, event)));
        if session.is_finished() {
            self.ended = self.session.take().map(receiver::ReceiverSession::report);
            self.ended_at = now;
        }
    }

    /// Returns the verified bytes of the latest progress event.
    pub(super) fn verified_bytes(&self) -> u64 {
        let reported = self.events.iter().rev().find_map(|(_, event)| match event {
            Event::Progress(progress) => Some(progress.bytes),
            _ => None,
        });
        reported.unwrap_or(0)
    }

    /// Whether the receiver has joined the session's group.
    pub(super) fn receives_group(&self) -> bool {
        self.session.as_ref().is_some_and(|session| self.parents.is_empty() || session.receives_group())
    }

    /// Whether the receiver gets packets of this layer.
    pub(super) fn takes(&self, layer: Layer) -> bool {
        self.session.as_ref().is_some_and(|session| usize::from(layer.0) <= session.groups().len())
    }

    pub(super) fn next_timeout(&self, now: Time) -> Time {
        let Some(session) = &self.session else { return Time::NEVER };
        let here = local(now, self.origin);
        self.socket.next_timeout(global(session.poll_timeout(here), self.origin))
    }

    /// Returns the report of a successful session.
    pub(super) fn report(&self) -> &ReceiveReport {
        match &self.ended {
            Some(Ok(report)) => report,
            Some(Err(error)) => panic!("{} failed: {error}", self.host),
            None => panic!("{} has not ended", self.host),
        }
    }

    /// Whether the receiver has stored the source's content under its final name, byte for byte.
    pub(super) fn has(&self, source: &SourceNode) -> bool {
        let (wanted, got) = (fs::read(&source.content), fs::read(self.dir.join("content")));
        match (wanted, got) {
            (Ok(wanted), Ok(got)) => wanted == got,
            _ => false,
        }
    }
}

fn local(now: Time, origin: Time) -> Time {
    Time::from_nanos(now.since(origin).as_nanos())
}

fn global(here: Time, origin: Time) -> Time {
    if here.is_never() { here } else { origin + Span::from_nanos(here.as_nanos()) }
}
