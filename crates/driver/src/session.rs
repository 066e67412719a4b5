//! Sessions in faircast's own format on real sockets.

use crate::run::{Clock, Listening, Moves, ReceiverSockets, Uplink, emit_opened, random, run_one};
use crate::serve::{self, Serving};
use crate::stop::Stop;
use crate::threads::own_threads;
use faircast_net::{Port, SourceOptions};
use faircast_transport::config::{Destination, ReceiveConfig, ReplayPolicy, SendConfig};
use faircast_transport::datagram;
use faircast_transport::error::{ConfigError, Error, Unlayered};
use faircast_transport::event::{Event, ReceiveReport, SendReport};
use faircast_transport::object::Disk;
use faircast_transport::session::{Host, Receiver, SYMBOLS_PER_BLOCK, Source, check};
use faircast_transport::worker::Worker;
use faircast_wire::GroupKey;

/// Sends files, trees or a stream to all receivers of the group. Returns when the session has ended; a report with `ok: false`
/// names the incomplete receivers.
///
/// # Errors
/// If the session cannot start, or the content cannot be read; see [`Error::class`].
pub fn send(config: SendConfig, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<SendReport, Error> {
    let clock = Clock::start();
    let ((mut session, mut uplink), serving) = open_serving(config, &clock, events)?;
    let mut events = with_hosts(serving.as_ref(), events);
    run_one(session.endpoint(), &mut uplink, &clock, &mut events, stop)?;
    drop(events);
    finish(sent(session, uplink), serving)
}

/// Opens a source, and starts the relay in its process if it serves hosts by unicast.
fn open_serving(
    mut config: SendConfig,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<((Source, Uplink), Option<Serving>), Error> {
    if config.unicast.is_some() && config.scheme.layers() > 1 {
        return Err(Error::Config(ConfigError::NotInLayers {
            what: Unlayered::Unicast,
            scheme: config.scheme.name(),
        }));
    }
    if config.unicast.is_some() && config.one_way.is_some() {
        return Err(Error::Config(ConfigError::NotOneWay { what: "hosts that are served by unicast" }));
    }
    serve::prepare(&mut config);
    let (unicast, idle_timeout) = (config.unicast.take(), config.idle_timeout);
    let place = (config.group, config.interface.clone());
    let key = config.key.as_ref().map(GroupKey::hop);
    let opened = open_source(config, clock, events)?;
    let session = opened.0.session();
    let serving =
        unicast.map(|unicast| Serving::start(unicast, session, place, key, idle_timeout)).transpose()?;
    Ok((opened, serving))
}

/// Returns a callback for the source's events, which first reports pending events of served hosts.
fn with_hosts<'a>(
    serving: Option<&'a Serving>,
    events: &'a mut (dyn FnMut(Event) + 'a),
) -> impl FnMut(Event) + 'a {
    move |event| {
        serving.into_iter().flat_map(Serving::events).for_each(&mut *events);
        events(if serving.is_some() { serve::without_own_relay(event) } else { event });
    }
}

/// Returns the report of the session, including hosts served by unicast.
fn finish(report: Result<SendReport, Error>, serving: Option<Serving>) -> Result<SendReport, Error> {
    match serving {
        Some(serving) => serving.finish(report),
        None => report,
    }
}

/// Returns the report of the source.
fn sent(session: Source, mut uplink: Uplink) -> Result<SendReport, Error> {
    let report = session.report();
    // If the network is down, the error is the outage, not the missing receivers.
    match (uplink.take_error(), &report) {
        (Some(gone), Ok(report)) if !report.ok && !report.stopped => Err(gone),
        (Some(gone), Err(error)) if error.may_be_the_network() => Err(gone),
        _ => report,
    }
}

/// Same as [`send`], on tokio's runtime.
///
/// # Errors
/// Same as [`send`].
#[cfg(feature = "tokio")]
pub async fn send_async(
    config: SendConfig,
    events: &mut (dyn FnMut(Event) + Send),
    stop: &Stop,
) -> Result<SendReport, Error> {
    let clock = Clock::start();
    let ((mut session, mut uplink), serving) = open_serving(config, &clock, events)?;
    {
        // Report pending events of hosts before each event of the source.
        let mut events = |event| {
            serving.iter().flat_map(Serving::events).for_each(&mut *events);
            events(if serving.is_some() { serve::without_own_relay(event) } else { event });
        };
        crate::run::tokio::run_one(session.endpoint(), &mut uplink, &clock, &mut events, stop).await?;
    }
    let report = sent(session, uplink);
    // Waiting until the hosts are notified of the end blocks the thread.
    let finished = ::tokio::task::spawn_blocking(move || finish(report, serving)).await;
    finished.unwrap_or(Err(faircast_transport::error::SystemError::Panicked.into()))
}

/// Opens a source and its socket.
///
/// # Errors
/// Same as [`send`].
pub(crate) fn open_source(
    mut config: SendConfig,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<(Source, Uplink), Error> {
    check(&mut config)?;
    // The local port is the group's port, so that one rule of a packet filter is enough for sources and receivers.
    let port = config.port.map_or(Port::Preferred(config.group.port()), Port::Fixed);
    let mut options = SourceOptions { ttl: config.ttl, port, ..SourceOptions::default() };
    options.reports_unresolved = !config.group.ip().is_multicast();
    let uplink =
        Uplink::open(config.group, config.interface.take(), options, config.idle_timeout, Moves::Anywhere)?;
    emit_opened(config.group, uplink.choice(), events);
    uplink.warning().into_iter().for_each(|warning| events(Event::warning(warning)));
    let random = random();
    let host = Host {
        random,
        local: uplink.local().unwrap_or(config.group),
        datagram: datagram::largest(config.datagram, uplink.choice(), config.group)?,
        symbols: SYMBOLS_PER_BLOCK,
        unix_nanos: clock.unix_nanos(),
        now: clock.now(),
        disk: Disk::default(),
        worker: Worker::at_once(), // a source has no jobs
    };
    let session = Source::new(config, &host, events)?;
    Ok((session, uplink))
}

/// Receives one session from the group. Returns when all content is verified and at its final location.
///
/// # Errors
/// If no session was announced, the source became silent or ended early, or the content cannot be written; see [`Error::class`].
pub fn receive(
    config: ReceiveConfig,
    events: &mut dyn FnMut(Event),
    stop: &Stop,
) -> Result<ReceiveReport, Error> {
    let clock = Clock::start();
    let (mut session, mut groups) = open_receiver(config, &clock, events)?;
    run_one(session.endpoint(), &mut groups, &clock, events, stop)?;
    groups.explain(|| session.report())
}

/// Same as [`receive`], on tokio's runtime.
///
/// # Errors
/// Same as [`receive`].
#[cfg(feature = "tokio")]
pub async fn receive_async(
    config: ReceiveConfig,
    events: &mut (dyn FnMut(Event) + Send),
    stop: &Stop,
) -> Result<ReceiveReport, Error> {
    let clock = Clock::start();
    let (mut session, mut groups) = open_receiver(config, &clock, events)?;
    crate::run::tokio::run_one(session.endpoint(), &mut groups, &clock, events, stop).await?;
    groups.explain(|| session.report())
}

/// Opens a receiver and its sockets.
///
/// # Errors
/// Same as [`receive`].
pub(crate) fn open_receiver(
    config: ReceiveConfig,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<(Receiver, ReceiverSockets), Error> {
    let random = random();
    if config.replay_policy != ReplayPolicy::Clock && !config.group.ip().is_multicast() {
        return Err(Error::Config(ConfigError::HostAsGroup { group: config.group }));
    }
    let listening = Listening {
        group: config.group,
        interface: config.interface.clone(),
        source: config.source,
        idle_timeout: config.idle_timeout,
        buffer: config.buffer,
        parents: &config.parents,
        invited: config.listen,
    };
    let groups = listening.open(events)?;
    let directory = match &config.destination {
        Destination::Directory(out) => Some(out.clone()),
        _ => None,
    };
    let host = Host {
        random,
        local: config.group,
        datagram: 0,
        symbols: 0,
        unix_nanos: clock.unix_nanos(),
        now: clock.now(),
        disk: Disk::default(),
        worker: own_threads(directory),
    };
    Ok((Receiver::new(config, &host), groups))
}
