//! faircast's own sessions on real sockets.

use crate::config::{Content, FilePolicy, ReceiveConfig, SendConfig, Slow, check_limits, span};
use crate::datagram::{self, overhead};
use crate::driver::{Clock, Hearing, Listening, Moves, Uplink, random, run_one, spread_within, tell_opened};
use crate::error::{Error, Unlayered};
use crate::event::{Event, ReceiveReport, SendReport, Setting};
use crate::object::host::disk::Disk;
use crate::object::{Aspect, HardLinks, ObjectStream, Reading, Unreadable};
use crate::receiver;
use crate::serve::{self, Serving};
use crate::source;
use crate::source::block_source::BlockSource;
use crate::source::delivery::streams::{Cut, Fill, Streams};
use crate::source::delivery::{Delivery, in_rounds, of_blocks};
use crate::worker::Worker;
use faircast_core::packet::{Layer, ReceiverId, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_net::{Port, SourceOptions};
use faircast_wire::{
    Form, GroupKey, KeyRing, Name, ReceiverCodec, SourceCodec, Spacing, data_header_len, group_of,
};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// Source symbols of a block: small enough to stay in a processor's cache, large enough for the code to
/// lose nothing (see `docs/decisions/`).
const SYMBOLS_PER_BLOCK: u16 = 256;

/// Send files, trees or a stream to everybody who receives the group. Returns when the session has
/// ended; a report with `ok: false` names the receivers that are incomplete.
///
/// # Errors
/// When the session cannot start or the content cannot be read; see [`Error::class`].
pub fn send(
    config: SendConfig,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<SendReport, Error> {
    let clock = Clock::start();
    let ((mut session, mut uplink), serving) = open_serving(config, &clock, events)?;
    let mut events = with_hosts(serving.as_ref(), events);
    run_one(&mut session, &mut uplink, &clock, &mut events, stop)?;
    drop(events);
    finish(sent(session, uplink), serving)
}

/// A source, and the relay in its process when it serves hosts by unicast.
fn open_serving(
    mut config: SendConfig,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<((source::SourceSession, Uplink), Option<Serving>), Error> {
    if config.unicast.is_some() && config.scheme.layers() > 1 {
        return Err(Error::NotInLayers { what: Unlayered::Unicast, scheme: config.scheme.name() });
    }
    if config.unicast.is_some() && config.one_way.is_some() {
        return Err(Error::NotOneWay { what: "hosts that are served by unicast" });
    }
    serve::prepare(&mut config);
    let (unicast, patience) = (config.unicast.take(), config.patience);
    let place = (config.group, config.interface.clone());
    let key = config.key.as_ref().map(GroupKey::hop);
    let opened = open_source(config, clock, events)?;
    let session = opened.0.id();
    let serving =
        unicast.map(|unicast| Serving::start(unicast, session, place, key, patience)).transpose()?;
    Ok((opened, serving))
}

/// The source's events, and before each what there is to say of hosts that it serves.
fn with_hosts<'a>(
    serving: Option<&'a Serving>,
    events: &'a mut (dyn FnMut(Event) + 'a),
) -> impl FnMut(Event) + 'a {
    move |event| {
        serving.into_iter().flat_map(Serving::events).for_each(&mut *events);
        events(if serving.is_some() { serve::without_own_relay(event) } else { event });
    }
}

/// How it ended, hosts that were served by unicast included.
fn finish(report: Result<SendReport, Error>, serving: Option<Serving>) -> Result<SendReport, Error> {
    match serving {
        Some(serving) => serving.finish(report),
        None => report,
    }
}

/// How it ended.
fn sent(session: source::SourceSession, mut uplink: Uplink) -> Result<SendReport, Error> {
    let report = session.report();
    // Receivers that were not heard because the network was gone are not what is wrong.
    match (uplink.take_error(), &report) {
        (Some(gone), Ok(report)) if !report.ok && !report.stopped => Err(gone),
        (Some(gone), Err(error)) if error.may_be_the_network() => Err(gone),
        _ => report,
    }
}

/// As [`send`], on tokio's runtime.
///
/// # Errors
/// As [`send`].
#[cfg(feature = "tokio")]
pub async fn send_async(
    config: SendConfig,
    events: &mut (dyn FnMut(Event) + Send),
    stop: &AtomicBool,
) -> Result<SendReport, Error> {
    let clock = Clock::start();
    let ((mut session, mut uplink), serving) = open_serving(config, &clock, events)?;
    {
        // Events of hosts come between the source's own.
        let mut events = |event| {
            serving.iter().flat_map(Serving::events).for_each(&mut *events);
            events(if serving.is_some() { serve::without_own_relay(event) } else { event });
        };
        crate::driver::tokio::run_one(&mut session, &mut uplink, &clock, &mut events, stop).await?;
    }
    let report = sent(session, uplink);
    // The hosts' last words take a while.
    let finished = ::tokio::task::spawn_blocking(move || finish(report, serving)).await;
    finished.unwrap_or(Err(Error::Panicked))
}

/// A source and its socket.
///
/// # Errors
/// As [`send`].
pub(crate) fn open_source(
    mut config: SendConfig,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<(source::SourceSession, Uplink), Error> {
    let groups = check(&mut config)?;
    // One rule of a packet filter then serves sources and receivers.
    let port = config.port.map_or(Port::Preferred(config.group.port()), Port::Fixed);
    let options = SourceOptions { ttl: config.ttl, port, ..SourceOptions::default() };
    let mut uplink =
        Uplink::open(config.group, config.interface.take(), options, config.patience, Moves::Anywhere)?;
    tell_opened(config.group, uplink.choice(), events);
    uplink.warning().into_iter().for_each(|warning| events(Event::warning(warning)));
    let random = random();
    let at = AtHost {
        random,
        local: uplink.local().unwrap_or(config.group),
        datagram: datagram::largest(config.datagram, uplink.choice(), config.group)?,
        symbols: SYMBOLS_PER_BLOCK,
        unix_nanos: clock.unix_nanos(),
        now: clock.now(),
        disk: Disk::default(),
    };
    let faults = config.faults.take();
    let session = source_at(config, groups, &at, events)?;
    uplink.inject(faults, random[3]);
    Ok((session, uplink))
}

/// What a host gives a session besides its configuration.
#[derive(Debug, Clone)]
pub(crate) struct AtHost {
    /// Drawn for this session.
    pub(crate) random: [u64; 4],
    /// Where its packets leave.
    pub(crate) local: SocketAddr,
    /// The largest datagram, in bytes.
    pub(crate) datagram: usize,
    /// Source symbols of a block.
    pub(crate) symbols: u16,
    /// Nanoseconds since 1970.
    pub(crate) unix_nanos: u64,
    pub(crate) now: Time,
    /// Where its files lie.
    pub(crate) disk: Disk,
}

/// What is wrong with a source's configuration; else the groups of its layers.
///
/// # Errors
/// As [`send`].
pub(crate) fn check(config: &mut SendConfig) -> Result<Vec<SocketAddr>, Error> {
    check_limits(config.min, config.max, config.slow)?;
    config.scheme = scheme_for(config.scheme, &config.content)?;
    if config.sign.is_some() && matches!(config.content, Content::Layers { .. }) {
        return Err(Error::LayersUnsigned);
    }
    if config.one_way.is_some() && matches!(config.content, Content::Live { .. } | Content::Layers { .. }) {
        return Err(Error::NotOneWay { what: "a live stream" });
    }
    if config.one_way.is_some_and(|one_way| !one_way.rate.is_usable()) {
        return Err(Error::NotOneWay { what: "a rate of nothing" });
    }
    if config.receipts.is_some() && matches!(config.content, Content::Live { .. } | Content::Layers { .. }) {
        return Err(Error::LiveReceipts);
    }
    layer_groups(config)
}

/// A source at this host.
///
/// # Errors
/// As [`send`].
pub(crate) fn source_at(
    config: SendConfig,
    groups: Vec<SocketAddr>,
    at: &AtHost,
    events: &mut dyn FnMut(Event),
) -> Result<source::SourceSession, Error> {
    let (random, datagram) = (at.random, at.datagram);
    let form = if config.key.is_some() { Form::Sealed } else { Form::Open };
    let symbol_size = ((datagram - data_header_len(&config.scheme.mark(), form)) / 8 * 8) as u16;
    let mut delivery = delivery(&config, symbol_size, at, events)?;
    for warning in delivery.take_warnings() {
        events(Event::warning(warning));
    }
    let entries = delivery.entries();
    events(Event::Content {
        transfer: delivery.transfer().to_string(),
        files: entries.files,
        links: entries.links,
        directories: entries.directories,
        bytes: delivery.geometry().stream_len.map(|_| delivery.amounts().content_bytes),
        resumed_bytes: 0,
    });
    let session = SessionId(random[0] as u32 | 1);
    let mut salt = [0; 16];
    salt[..8].copy_from_slice(&random[1].to_le_bytes());
    salt[8..].copy_from_slice(&random[2].to_le_bytes());
    let overhead = overhead(config.group);
    let scheme = config.scheme.with_packet_size((datagram + overhead) as u16);
    if scheme.options().len() > Name::MAX {
        return Err(Error::SchemeOptions { len: scheme.options().len(), most: Name::MAX });
    }
    let expect = expected(&config);
    let setup = source::Setup {
        codec: SourceCodec::new(session, config.key.as_ref(), salt),
        salt,
        scheme,
        groups,
        spacing: config.spacing,
        delivery,
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
        expect,
        required: config.required,
        wait: config.wait,
        start: config.start,
        ttl: config.ttl,
        patience: config.patience,
        spread: spread_within(config.ttl),
        local: at.local,
        started: at.unix_nanos,
    };
    Ok(source::SourceSession::new(setup, at.now))
}

/// How many receivers are waited for: no fewer than those that must have everything.
fn expected(config: &SendConfig) -> Option<u32> {
    let required = u32::try_from(config.required.len()).unwrap_or(u32::MAX);
    if required == 0 { config.expect } else { Some(config.expect.unwrap_or(0).max(required)) }
}

/// How the content is brought to the receivers.
fn delivery(
    config: &SendConfig,
    symbol_size: u16,
    at: &AtHost,
    events: &mut dyn FnMut(Event),
) -> Result<Box<dyn Delivery>, Error> {
    let (symbols, unix_nanos) = (at.symbols, at.unix_nanos);
    let source = match &config.content {
        Content::Paths(paths) => {
            let (preserve, unreadable) = (config.preserve.clone(), config.unreadable);
            let (hard_links, follow) = (HardLinks::Keep, config.follow);
            let reading = Reading { preserve, unreadable, hard_links, follow };
            let object = ObjectStream::open_with(paths, &reading, symbol_size, symbols)?.on(&at.disk);
            let stray = object.stray_links();
            // Preserved links are not followed.
            let outside = stray.outside.filter(|_| !config.preserve.has(Aspect::Links));
            let outside = outside.map(|text| Event::warning_of(Setting::Links, text));
            outside.into_iter().chain(stray.nowhere.map(Event::warning)).for_each(&mut *events);
            match unreadable {
                Unreadable::LeaveOut => BlockSource::files(object),
                Unreadable::Refuse => BlockSource::all_files(object),
            }
        }
        Content::Memory(files) => {
            BlockSource::files(ObjectStream::in_memory(files, unix_nanos as i64, symbol_size, symbols)?)
        }
        Content::Reader { name, input } => {
            BlockSource::pipe((name, input), &config.temporary, symbol_size, symbols, unix_nanos)?
        }
        Content::Live { input, history } => {
            BlockSource::live(input, symbol_size, symbols, unix_nanos, span(*history), at.now)?
        }
        Content::Layers { inputs, history, repair } => {
            let fill = Fill::of(&config.scheme);
            let history = span(*history);
            let cut = Cut { symbol_size, symbols, repair: *repair, history, fill };
            return Ok(Box::new(Streams::open(inputs, cut, unix_nanos)?));
        }
    };
    Ok(match config.one_way {
        Some(one_way) => in_rounds(source, one_way.repeat),
        None => of_blocks(source, config.scheme.layers()),
    })
}

/// Receive one session from the group. Returns when everything is verified and in its place.
///
/// # Errors
/// When nothing was announced, the source fell silent or ended early, or the content cannot be
/// written; see [`Error::class`].
pub fn receive(
    config: ReceiveConfig,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<ReceiveReport, Error> {
    let clock = Clock::start();
    let (mut session, mut groups) = open_receiver(config, &clock, events)?;
    run_one(&mut session, &mut groups, &clock, events, stop)?;
    groups.explain(session.report())
}

/// As [`receive`], on tokio's runtime.
///
/// # Errors
/// As [`receive`].
#[cfg(feature = "tokio")]
pub async fn receive_async(
    config: ReceiveConfig,
    events: &mut (dyn FnMut(Event) + Send),
    stop: &AtomicBool,
) -> Result<ReceiveReport, Error> {
    let clock = Clock::start();
    let (mut session, mut groups) = open_receiver(config, &clock, events)?;
    crate::driver::tokio::run_one(&mut session, &mut groups, &clock, events, stop).await?;
    groups.explain(session.report())
}

/// A receiver and its sockets.
///
/// # Errors
/// As [`receive`].
pub(crate) fn open_receiver(
    config: ReceiveConfig,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<(receiver::ReceiverSession, Hearing), Error> {
    let random = random();
    let listening = Listening {
        group: config.group,
        interface: config.interface.clone(),
        source: config.source,
        patience: config.patience,
        buffer: config.buffer,
        faults: config.faults,
        parents: &config.parents,
        invited: config.listen,
    };
    let groups = listening.open(random[3], events)?;
    let session =
        receiver_at(config, (Worker::own_threads(), Disk::default()), random, clock.unix_secs(), clock.now());
    Ok((session, groups))
}

/// A receiver at a host that has drawn these numbers.
pub(crate) fn receiver_at(
    config: ReceiveConfig,
    (worker, disk): (Worker, Disk),
    random: [u64; 4],
    unix_secs: u64,
    now: Time,
) -> receiver::ReceiverSession {
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
        worker,
        disk,
        destination: config.destination,
        layers_to: config.layers_to,
        durability: config.durability,
        files: FilePolicy {
            replace: config.replace,
            preserve: config.preserve,
            owners_by: config.owners_by,
            names: config.names,
            unfinished: config.unfinished,
        },
        verify: config.verify,
        sign_receipts: config.sign_receipts,
        only: config.source,
        overhead: overhead(config.group),
        wait: config.wait.map(span),
        patience: span(config.patience),
        group: config.listen.unwrap_or(config.group),
        freshness: config.freshness,
        unix_secs,
        memory: receiver::INCOMPLETE,
        parents: config.parents,
        invited: config.listen.is_some(),
        accept: config.accept,
        relay: None,
    };
    receiver::ReceiverSession::new(setup, now)
}

/// The scheme that sends this: with as many layers as there are streams for.
fn scheme_for(scheme: Scheme, content: &Content) -> Result<Scheme, Error> {
    let Content::Layers { inputs, .. } = content else { return Ok(scheme) };
    let (count, layers, name) = (inputs.len(), scheme.layers(), scheme.name());
    match count {
        _ if layers <= 1 => Err(Error::NeedsLayers { scheme: name }),
        0 => Err(Error::LayerInputs { count, layers, scheme: name }),
        // A session of one layer would be one at a single rate.
        1..256 if count <= usize::from(layers) => Ok(scheme.with_layers(count.max(2) as u8)),
        _ => Err(Error::LayerInputs { count, layers, scheme: name }),
    }
}

/// The groups of all layers, the base layer's first; whether everything goes with them.
fn layer_groups(config: &SendConfig) -> Result<Vec<SocketAddr>, Error> {
    let (layers, scheme) = (config.scheme.layers().max(1), config.scheme.name());
    let refused = match (&config.content, config.slow) {
        _ if layers == 1 => None,
        (Content::Live { .. }, _) => Some(Unlayered::LiveStream),
        (_, Slow::Floor(_) | Slow::Drop(_)) => Some(Unlayered::SlowPolicy),
        _ if config.one_way.is_some() => Some(Unlayered::OneWay),
        _ => None,
    };
    if let Some(what) = refused {
        return Err(Error::NotInLayers { what, scheme });
    }
    let group = |layer| group_of(config.group, Layer(layer), config.spacing);
    (0..layers).map(group).collect::<Option<Vec<_>>>().ok_or_else(|| {
        let (by, other) = match config.spacing {
            Spacing::Address => ("address", "port"),
            Spacing::Port => ("port", "address"),
        };
        Error::NoGroupForLayer { scheme, layers, top: layers - 1, by, other, group: config.group }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LayerInput;
    use crate::ends::Input;
    use crate::error::Class;
    use faircast_core::time::Rate;
    use std::path::PathBuf;
    use std::time::Duration;

    fn config(scheme: &str, group: &str) -> SendConfig {
        let (group, scheme) = (group.parse().expect("a group"), scheme.parse().expect("a scheme"));
        SendConfig { group, scheme, ..SendConfig::new(Content::Paths(Vec::new())) }
    }

    #[test]
    fn every_layer_has_a_group_and_a_session_at_one_rate_has_one() {
        let groups = |config: &SendConfig| layer_groups(config).expect("enough addresses").len();
        assert_eq!(groups(&config("ormcc", "239.255.255.255:5777")), 1);
        assert_eq!(groups(&config("rlc,layers=5", "239.255.70.1:5777")), 5);
        let by_port = SendConfig { spacing: Spacing::Port, ..config("rlc", "[ff15::7]:5777") };
        let groups = layer_groups(&by_port).expect("enough ports");
        assert_eq!(groups.last().map(SocketAddr::to_string).as_deref(), Some("[ff15::7]:5784"));
    }

    #[test]
    fn layers_beyond_the_last_group_are_refused_before_anything_is_sent() {
        let error = layer_groups(&config("rlc,layers=4", "239.255.255.254:5777")).expect_err("two addresses");
        assert_eq!(error.class(), Class::Usage);
        assert!(error.to_string().contains("no group for layer 3 by address"), "{error}");
    }

    #[test]
    fn what_does_not_go_with_layers_is_refused() {
        let live = Content::Live { input: Input::new(std::io::empty()), history: Duration::from_secs(1) };
        let live = SendConfig { content: live, ..config("rlc", "239.255.70.1:5777") };
        let slow =
            SendConfig { slow: Slow::Drop(Rate::from_mbps(1.0)), ..config("rlc", "239.255.70.1:5777") };
        for config in [live, slow] {
            let error = layer_groups(&config).expect_err("it makes no sense");
            assert!(matches!(error, Error::NotInLayers { scheme: "rlc", .. }), "{error}");
            assert_eq!(error.class(), Class::Usage);
        }
    }

    #[test]
    fn streams_take_as_many_layers_as_they_need_and_no_more() {
        let layers = |scheme: &str, count: usize| {
            let inputs = vec![LayerInput::Path(PathBuf::new()); count];
            let content = Content::Layers { inputs, history: Duration::ZERO, repair: 0.1 };
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
