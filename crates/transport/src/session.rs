//! Sessions of sources and receivers, created from their configurations. The host provides an address, a clock, random numbers, a
//! disk and a worker.

use crate::config::{
    Content, DryRun, FilePolicy, ReceiveConfig, SendConfig, SlowReceiverPolicy, check_limits, span,
    spread_within,
};
use crate::datagram::overhead;
use crate::day_limits::DayLimits;
use crate::endpoint::Endpoint;
use crate::error::{ConfigError, Error, Unlayered};
use crate::event::{Event, ReceiveReport, SendReport, Setting, TransferName};
use crate::object::host::disk::Disk;
use crate::object::{Aspect, HardLinks, Holes, ObjectStream, Reading, Unreadable};
use crate::receiver;
use crate::source;
use crate::source::block_source::BlockSource;
use crate::source::scheduler::streams::{Cut, Fill, Streams};
use crate::source::scheduler::{Scheduler, in_rounds, of_blocks};
use crate::worker::Worker;
use faircast_core::own;
use faircast_core::packet::{Layer, ReceiverId, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Time};
use faircast_wire::encode::MAX_ANNOUNCE;
use faircast_wire::{
    Form, KeyRing, Name, ReceiverCodec, Series, SourceCodec, Spacing, TransferId, data_header_len, group_of,
};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Default number of source symbols per block. Such a block fits in a processor's cache, and is large enough for an efficient
/// erasure code (`docs/design/delivery.md`).
pub const SYMBOLS_PER_BLOCK: u16 = 256;

/// The host of a session: the inputs of the session that are not in its configuration.
#[derive(Debug, Clone)]
pub struct Host {
    /// Random numbers for this session.
    pub random: [u64; 4],
    /// The address and port from which packets are sent.
    pub local: SocketAddr,
    /// Maximum size of a datagram, in bytes.
    pub datagram: usize,
    /// Number of source symbols per block.
    pub symbols: u16,
    /// The present time, nanoseconds since 1970.
    pub unix_nanos: u64,
    /// The present session time.
    pub now: Time,
    /// The disk that stores the files.
    pub disk: Disk,
    /// The worker for a receiver's long-running jobs.
    pub worker: Worker,
}

impl Host {
    /// Returns the session time of this time of the clock. A time in the past is session time zero.
    fn session_time(&self, at: Option<SystemTime>) -> Time {
        let here = UNIX_EPOCH + Duration::from_nanos(self.unix_nanos);
        let left = at.and_then(|at| at.duration_since(here).ok());
        left.map_or(Time::ZERO, |left| self.now + span(left))
    }
}

/// A session of a source.
pub struct Source(source::SourceSession);

/// A session of a receiver.
pub struct Receiver(receiver::ReceiverSession);

impl Source {
    /// Creates a source on this host. `events` receives the events that occur during the creation.
    ///
    /// # Errors
    /// If the configuration is contradictory, or the content cannot be read.
    pub fn new(mut config: SendConfig, host: &Host, events: &mut dyn FnMut(Event)) -> Result<Source, Error> {
        let groups = check(&mut config)?;
        source_at(config, groups, host, events).map(Source)
    }

    /// Returns the session ID.
    pub fn session(&self) -> SessionId {
        self.0.id()
    }

    /// Returns the session as an endpoint for a driver.
    pub fn endpoint(&mut self) -> &mut (dyn Endpoint + Send + 'static) {
        &mut self.0
    }

    /// Returns the time at which [`Endpoint::handle_timeout`] must be called next.
    pub fn next_timeout(&self, now: Time) -> Time {
        self.0.poll_timeout(now)
    }

    /// Returns the report of the ended session.
    ///
    /// # Errors
    /// If the session failed.
    pub fn report(self) -> Result<SendReport, Error> {
        self.0.report()
    }
}

impl Receiver {
    /// Creates a receiver on this host.
    pub fn new(config: ReceiveConfig, host: &Host) -> Receiver {
        Receiver(receiver_at(config, host))
    }

    /// Returns the session as an endpoint for a driver.
    pub fn endpoint(&mut self) -> &mut (dyn Endpoint + Send + 'static) {
        &mut self.0
    }

    /// Returns the time at which [`Endpoint::handle_timeout`] must be called next.
    pub fn next_timeout(&self, now: Time) -> Time {
        self.0.poll_timeout(now)
    }

    /// Whether the receiver has joined the session's group although it has a parent.
    pub fn receives_group(&self) -> bool {
        self.0.receives_group()
    }

    /// Returns the number of joined layers above the base layer.
    pub fn layers(&self) -> usize {
        self.0.groups().len()
    }

    /// Returns the report of the ended session.
    ///
    /// # Errors
    /// If the session failed.
    pub fn report(self) -> Result<ReceiveReport, Error> {
        self.0.report()
    }
}

/// Checks the configuration of a source, and adapts the number of layers of its congestion control. Returns the groups of its
/// layers.
///
/// # Errors
/// If the configuration is contradictory.
pub fn check(config: &mut SendConfig) -> Result<Vec<SocketAddr>, Error> {
    let lowest = config.day_limits.as_ref().and_then(DayLimits::lowest);
    check_limits(config.min, config.max.into_iter().chain(lowest).reduce(Rate::min), config.slow)?;
    if let Some(own) = config.scheme.to_string().split(',').find(|part| part.contains(own::PREFIX)) {
        return Err(Error::Config(ConfigError::OwnScheme { own: own.to_owned() }));
    }
    config.scheme = scheme_for(config.scheme, &config.content)?;
    if config.sign.is_some() && matches!(config.content, Content::Layers { .. }) {
        return Err(Error::Config(ConfigError::LayersUnsigned));
    }
    if config.one_way.is_some() && matches!(config.content, Content::Live { .. } | Content::Layers { .. }) {
        return Err(Error::Config(ConfigError::NotOneWay { what: "a live stream" }));
    }
    if config.one_way.is_some_and(|one_way| !one_way.rate.is_usable()) {
        return Err(Error::Config(ConfigError::NotOneWay { what: "a rate of 0" }));
    }
    if config.dry_run == DryRun::On {
        match &config.content {
            _ if config.one_way.is_some() => {
                Err(ConfigError::NoDryRun { what: "a session without feedback" })
            }
            Content::Paths(_) | Content::Memory(_) => Ok(()),
            other => Err(ConfigError::NoDryRun { what: other.kind() }),
        }?;
        config.receipts = None; // comparisons take their place
    }
    if config.one_way.is_none() && !config.group.ip().is_multicast() {
        return Err(Error::Config(ConfigError::HostAsGroup { group: config.group }));
    }
    if config.receipts.is_some() && matches!(config.content, Content::Live { .. } | Content::Layers { .. }) {
        return Err(Error::Config(ConfigError::LiveReceipts));
    }
    layer_groups(config)
}

fn source_at(
    config: SendConfig,
    groups: Vec<SocketAddr>,
    at: &Host,
    events: &mut dyn FnMut(Event),
) -> Result<source::SourceSession, Error> {
    let (random, datagram) = (at.random, at.datagram);
    let form = if config.key.is_some() { Form::Sealed } else { Form::Open };
    let symbol_size = ((datagram - data_header_len(&config.scheme.mark(), form)) / 8 * 8) as u16;
    let (mut scheduler, dry_run) = scheduler(&config, symbol_size, at, events)?;
    for warning in scheduler.take_warnings() {
        events(Event::warning(warning));
    }
    let entries = scheduler.entries();
    events(Event::Content {
        transfer: TransferName::Own(TransferId(scheduler.transfer().0)),
        files: entries.files,
        links: entries.links,
        directories: entries.directories,
        bytes: match dry_run {
            Some(whole) => Some(whole - u64::from(scheduler.geometry().manifest_len)),
            None => scheduler.geometry().stream_len.map(|_| scheduler.amounts().content_bytes),
        },
        resumed_bytes: 0,
    });
    let session = SessionId(random[0] as u32 | 1);
    let mut salt = [0; 16];
    salt[..8].copy_from_slice(&random[1].to_le_bytes());
    salt[8..].copy_from_slice(&random[2].to_le_bytes());
    let overhead = overhead(config.group);
    let scheme = config.scheme.with_packet_size((datagram + overhead) as u16);
    if scheme.options().len() > Name::MAX {
        return Err(Error::Config(ConfigError::SchemeOptions {
            len: scheme.options().len(),
            most: Name::MAX,
        }));
    }
    let numbers = if config.series.is_some() { 1 + size_of::<Series>() } else { 0 };
    let len = if dry_run.is_some() { 1 + size_of::<u64>() } else { 0 };
    let to_hosts = patterns(&config.to_hosts, datagram.saturating_sub(numbers + len))?;
    let expect = expected(&config);
    let setup = source::Setup {
        codec: SourceCodec::new(session, config.key.as_ref(), salt),
        salt,
        scheme,
        groups,
        spacing: config.spacing,
        scheduler,
        sign: config.sign,
        receipts: config.receipts,
        rng: Rng::new(random[3], 0),
        name: config.host,
        datagram,
        overhead,
        slow: config.slow,
        one_way: config.one_way,
        min: config.min,
        max: config.max,
        day_limits: config.day_limits,
        expect,
        to_hosts,
        series: config.series,
        dry_run,
        required: config.required,
        join_timeout: config.join_timeout,
        not_before: at.session_time(config.start_at),
        start: config.start,
        ttl: config.ttl,
        idle_timeout: config.idle_timeout,
        spread: spread_within(config.ttl),
        local: at.local,
        receiver_events: config.receiver_events,
        started: at.unix_nanos,
    };
    Ok(source::SourceSession::new(setup, at.now))
}

/// Returns the patterns of the hosts that take part, as the announcement has them.
fn patterns(to_hosts: &[String], datagram: usize) -> Result<Name, Error> {
    let joined = to_hosts.join(",");
    // Without patterns, an announcement fits the smallest datagram.
    let room = if joined.is_empty() { 0 } else { datagram.saturating_sub(MAX_ANNOUNCE + 2) };
    let most = room.min(Name::MAX);
    let name = Name::new(&joined).ok().filter(|_| joined.len() <= most);
    name.ok_or(Error::Config(ConfigError::HostPatterns { len: joined.len(), most }))
}

/// Returns the number of receivers to wait for: at least the number of required hosts.
fn expected(config: &SendConfig) -> Option<u32> {
    let required = u32::try_from(config.required.len()).unwrap_or(u32::MAX);
    if required == 0 { config.expect } else { Some(config.expect.unwrap_or(0).max(required)) }
}

/// Returns the scheduler of the content, and for a dry run the length of the whole object stream.
fn scheduler(
    config: &SendConfig,
    symbol_size: u16,
    at: &Host,
    events: &mut dyn FnMut(Event),
) -> Result<(Box<dyn Scheduler>, Option<u64>), Error> {
    let (symbols, unix_nanos) = (at.symbols, at.unix_nanos);
    let mut whole = None;
    let mut reduced = |object: ObjectStream| match config.dry_run {
        DryRun::Off => object,
        DryRun::On => {
            whole = object.geometry().stream_len;
            object.without_content()
        }
    };
    let source = match &config.content {
        Content::Paths(paths) => {
            let (preserve, unreadable) = (config.preserve.clone(), config.unreadable);
            let (hard_links, follow) = (HardLinks::Keep, config.follow);
            let (extraneous, delta) = (config.extraneous, config.delta);
            // A receipt covers bytes, and files with other holes can have the same bytes.
            let holes = if config.receipts.is_some() { Holes::AsZeros } else { Holes::Keep };
            let reading = Reading { preserve, unreadable, hard_links, follow, extraneous, delta, holes };
            let object = ObjectStream::open_with(paths, &reading, symbol_size, symbols)?.on(&at.disk);
            let stray = object.stray_links();
            // Symbolic links that are preserved are not followed.
            let outside = stray.outside.filter(|_| !config.preserve.has(Aspect::Links));
            let outside = outside.map(|text| Event::warning_of(Setting::Links, text));
            outside.into_iter().chain(stray.nowhere.map(Event::warning)).for_each(&mut *events);
            let object = reduced(object);
            match unreadable {
                Unreadable::LeaveOut => BlockSource::files(object),
                Unreadable::Refuse => BlockSource::all_files(object),
            }
        }
        Content::Memory(files) => {
            let object = ObjectStream::in_memory(files, unix_nanos as i64, symbol_size, symbols)?;
            BlockSource::files(reduced(object))
        }
        Content::Reader { name, input } => {
            BlockSource::pipe((name, input), &config.temporary, symbol_size, symbols, unix_nanos)?
        }
        Content::Live { input, history, latency } => {
            let times = (span(*history), span(*latency));
            BlockSource::live(input, symbol_size, symbols, unix_nanos, times, at.now)?
        }
        Content::Layers { inputs, history, repair, latency } => {
            let fill = Fill::of(&config.scheme);
            let history = span(*history);
            let block_time = span(*latency) / 2;
            let cut = Cut { symbol_size, symbols, repair: *repair, history, block_time, fill };
            return Ok((Box::new(Streams::open(inputs, cut, unix_nanos)?), None));
        }
    };
    let scheduler = match config.one_way {
        Some(one_way) => in_rounds(source, &one_way),
        None => of_blocks(source, config.scheme.layers()),
    };
    Ok((scheduler, whole))
}

fn receiver_at(config: ReceiveConfig, host: &Host) -> receiver::ReceiverSession {
    let Host { random, unix_nanos, now, .. } = *host;
    let id = ReceiverId::new(u64::from(random[0] as u32 | 1)).expect("an odd number is not zero");
    let codec = ReceiverCodec::new(config.key.as_ref().map_or(&[], KeyRing::keys), id, random[1]);
    let setup = receiver::Setup {
        codec,
        id,
        nonce: (random[0] >> 32) as u16,
        seed: random[2],
        scheme_rng: Rng::new(random[2], 0),
        reordering: receiver::REORDERING,
        host: config.host,
        temporary: config.temporary,
        worker: host.worker.clone(),
        disk: host.disk.clone(),
        destination: config.destination,
        layers_to: config.layers_to,
        durability: config.durability,
        files: FilePolicy {
            overwrite: config.overwrite,
            preserve: config.preserve,
            owners_by: config.owners_by,
            names: config.names,
            keep_partial: config.keep_partial,
            existing: config.existing,
            reuse: config.reuse,
        },
        verify: config.verify,
        sign_receipts: config.sign_receipts,
        only: config.source,
        overhead: overhead(config.group),
        join_timeout: config.join_timeout.map(span),
        idle_timeout: span(config.idle_timeout),
        group: config.listen.unwrap_or(config.group),
        replay_policy: config.replay_policy,
        unix_secs: unix_nanos / 1_000_000_000,
        memory: receiver::INCOMPLETE,
        parents: config.parents,
        invited: config.listen.is_some(),
        accept: config.accept,
        relay: None,
    };
    receiver::ReceiverSession::new(setup, now)
}

/// Returns the scheme for this content, with as many layers as the content has streams.
fn scheme_for(scheme: Scheme, content: &Content) -> Result<Scheme, Error> {
    let Content::Layers { inputs, .. } = content else { return Ok(scheme) };
    let (count, layers, name) = (inputs.len(), scheme.layers(), scheme.name());
    match count {
        _ if layers <= 1 => Err(Error::Config(ConfigError::NeedsLayers { scheme: name })),
        0 => Err(Error::Config(ConfigError::LayerInputs { count, layers, scheme: name })),
        // The minimum is two layers, because a scheme with one layer would not be layered.
        1..256 if count <= usize::from(layers) => Ok(scheme.with_layers(count.max(2) as u8)),
        _ => Err(Error::Config(ConfigError::LayerInputs { count, layers, scheme: name })),
    }
}

/// Checks that all options support layers. Returns the groups of all layers, starting with the base layer.
fn layer_groups(config: &SendConfig) -> Result<Vec<SocketAddr>, Error> {
    let (layers, scheme) = (config.scheme.layers().max(1), config.scheme.name());
    let refused = match (&config.content, config.slow) {
        _ if layers == 1 => None,
        (Content::Live { .. }, _) => Some(Unlayered::LiveStream),
        (_, SlowReceiverPolicy::Floor(_) | SlowReceiverPolicy::Drop(_)) => Some(Unlayered::SlowPolicy),
        _ if config.one_way.is_some() => Some(Unlayered::OneWay),
        _ => None,
    };
    if let Some(what) = refused {
        return Err(Error::Config(ConfigError::NotInLayers { what, scheme }));
    }
    let group = |layer| group_of(config.group, Layer(layer), config.spacing);
    (0..layers).map(group).collect::<Option<Vec<_>>>().ok_or_else(|| {
        let (by, other) = match config.spacing {
            Spacing::Address => ("address", "port"),
            Spacing::Port => ("port", "address"),
        };
        Error::Config(ConfigError::NoGroupForLayer {
            scheme,
            layers,
            top: layers - 1,
            by,
            other,
            group: config.group,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LATENCY;
    use crate::config::LayerInput;
    use crate::ends::Input;
    use crate::error::Class;
    use std::path::PathBuf;

    fn config(scheme: &str, group: &str) -> SendConfig {
        let (group, scheme) = (group.parse().expect("a group"), scheme.parse().expect("a scheme"));
        SendConfig { group, scheme, ..SendConfig::new(Content::Paths(Vec::new())) }
    }

    #[test]
    fn number_of_groups_equals_the_number_of_layers() {
        let groups = |config: &SendConfig| layer_groups(config).expect("enough addresses").len();
        assert_eq!(groups(&config("ormcc", "239.255.255.255:5777")), 1);
        assert_eq!(groups(&config("rlc,layers=5", "239.255.70.1:5777")), 5);
        let by_port = SendConfig { spacing: Spacing::Port, ..config("rlc", "[ff15::7]:5777") };
        let groups = layer_groups(&by_port).expect("enough ports");
        assert_eq!(groups.last().map(SocketAddr::to_string).as_deref(), Some("[ff15::7]:5784"));
    }

    #[test]
    fn only_sessions_without_feedback_send_to_one_host() {
        let mut config = config("ormcc", "192.0.2.7:5777");
        let error = check(&mut config).expect_err("a host is no group");
        assert!(matches!(error, Error::Config(ConfigError::HostAsGroup { .. })), "{error}");
        config.one_way =
            Some(crate::config::OneWay::new(Rate::from_mbps(1.0), crate::config::Repeat::Forever));
        assert_eq!(check(&mut config).expect("it needs no answers"), [config.group]);
    }

    #[test]
    fn dry_run_needs_files_and_feedback() {
        let input = || Input::new(std::io::empty());
        let reader = Content::Reader { name: "a".to_owned(), input: input() };
        let live = Content::Live { input: input(), history: Duration::from_secs(1), latency: LATENCY };
        let one_way = crate::config::OneWay::new(Rate::from_mbps(1.0), crate::config::Repeat::Forever);
        let (paths, silent) = (Content::Paths(Vec::new()), Some(one_way));
        for (content, one_way) in [(reader, None), (live, None), (paths, silent)] {
            let group = config("ormcc", "239.255.70.1:5777");
            let mut config = SendConfig { content, one_way, dry_run: DryRun::On, ..group };
            let error = check(&mut config).expect_err("nothing can be compared");
            assert!(matches!(error, Error::Config(ConfigError::NoDryRun { .. })), "{error}");
            assert_eq!(error.class(), Class::Usage);
        }
    }

    #[test]
    fn layers_beyond_the_last_group_address_are_refused() {
        let error = layer_groups(&config("rlc,layers=4", "239.255.255.254:5777")).expect_err("two addresses");
        assert_eq!(error.class(), Class::Usage);
        assert!(error.to_string().contains("no group for layer 3 by address"), "{error}");
    }

    #[test]
    fn content_and_options_that_layers_do_not_support_are_refused() {
        let live = Content::Live {
            input: Input::new(std::io::empty()),
            history: Duration::from_secs(1),
            latency: LATENCY,
        };
        let live = SendConfig { content: live, ..config("rlc", "239.255.70.1:5777") };
        let slow = SendConfig {
            slow: SlowReceiverPolicy::Drop(Rate::from_mbps(1.0)),
            ..config("rlc", "239.255.70.1:5777")
        };
        for config in [live, slow] {
            let error = layer_groups(&config).expect_err("it makes no sense");
            assert!(
                matches!(error, Error::Config(ConfigError::NotInLayers { scheme: "rlc", .. })),
                "{error}"
            );
            assert_eq!(error.class(), Class::Usage);
        }
    }

    #[test]
    fn number_of_layers_matches_the_streams() {
        let layers = |scheme: &str, count: usize| {
            let inputs = vec![LayerInput::Path(PathBuf::new()); count];
            let content = Content::Layers { inputs, history: Duration::ZERO, repair: 0.1, latency: LATENCY };
            scheme_for(scheme.parse().expect("a scheme"), &content).map(|scheme| scheme.layers())
        };
        assert_eq!(layers("rlc", 3).expect("eight layers"), 3);
        assert_eq!(layers("gmcc", 1).expect("eight layers"), 2, "the second one stays empty");
        for (scheme, count, words) in
            [("ormcc", 1, "use rlc or gmcc"), ("rlc,layers=2", 3, "3 streams"), ("rlc", 0, "0 streams")]
        {
            let error = layers(scheme, count).expect_err("they do not fit");
            assert!(error.to_string().contains(words) && error.class() == Class::Usage, "{error}");
        }
    }
}
