//! Sessions over ALC on real sockets.

use super::files::Found;
use super::source::{self, Pace};
use super::{AlcReceive, AlcReceiveReport, AlcSend, AlcSendReport, FIXED_LEN, Pacing, TABLE_LEN, receiver};
use crate::config::{Content, Destination, span};
use crate::datagram::{self, overhead};
use crate::driver::{Clock, Groups, Moves, Outage, Uplink, random, run_one, tell_opened};
use crate::error::Error;
use crate::event::Event;
use crate::receiver::block_sink::tidied;
use faircast_core::packet::Layer;
use faircast_core::rng::Rng;
use faircast_core::time::Time;
use faircast_net::{GroupOptions, GroupSocket, Membership, SourceOptions, choose};
use faircast_wire::alc::{Layering, Rlc};
use faircast_wire::{Spacing, group_of};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// Send files and trees to everybody who receives the group, as often as asked for. Nobody answers, so nothing is known
/// of who received them.
///
/// # Errors
/// When the session cannot start or a file cannot be read; see [`Error::class`].
pub fn send(
    config: AlcSend,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<AlcSendReport, Error> {
    let clock = Clock::start();
    let (mut session, mut uplink) = open_source(config, &clock, events)?;
    run_one(&mut session, &mut uplink, &clock, events, stop)?;
    session.report()
}

/// A source and its socket.
///
/// # Errors
/// As [`send`].
pub(crate) fn open_source(
    config: AlcSend,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<(source::AlcSource, Uplink), Error> {
    let paths = match &config.content {
        Content::Paths(paths) => paths,
        Content::Memory(_) => return Err(Error::AlcContent { what: "memory" }),
        Content::Reader { .. } => return Err(Error::AlcContent { what: "a stream" }),
        Content::Live { .. } | Content::Layers { .. } => {
            return Err(Error::AlcContent { what: "a live stream" });
        }
    };
    let groups = layer_groups(&config)?;
    let options = SourceOptions { ttl: config.ttl, ..SourceOptions::default() };
    // The source's address is a part of the session's name (RFC 5651, 3).
    let uplink = Uplink::open(config.group, config.interface, options, config.patience, Moves::Nowhere)?;
    let choice = uplink.choice().clone();
    tell_opened(config.group, &choice, events);
    let overhead = overhead(config.group);
    let datagram = datagram::largest(config.datagram, &choice, config.group)?;
    let cci = if groups.len() > 1 { Rlc::LEN } else { 4 };
    let symbol_size = ((datagram - FIXED_LEN - cci) / 8 * 8) as u16;
    let random = random();
    let tsi = (random[0] as u16).max(1);
    let found = Found::look(paths, config.fec, symbol_size)?;
    found.warnings.iter().for_each(|warning| events(Event::warning(warning.clone())));
    events(Event::Content {
        transfer: format!("{}/{tsi}", choice.local),
        files: found.objects.len() as u64,
        links: 0,
        directories: 0,
        bytes: Some(found.objects.iter().map(|object| object.oti.transfer_length).sum()),
        resumed_bytes: 0,
    });
    let (pace, layering) =
        pace(config.pacing, (usize::from(symbol_size) + FIXED_LEN + cci + overhead) as u16);
    let setup = source::Setup {
        tsi,
        groups,
        found,
        pace,
        layering,
        repeat: config.repeat,
        room: (datagram - FIXED_LEN - cci - TABLE_LEN) as u16,
        overhead,
        unix_secs: clock.unix_secs(),
        rng: Rng::new(random[1], 0),
    };
    Ok((source::AlcSource::new(setup, clock.now()), uplink))
}

/// The group of each layer.
fn layer_groups(config: &AlcSend) -> Result<Vec<SocketAddr>, Error> {
    let (layers, spacing) = match &config.pacing {
        Pacing::Fixed(_) => (1, Spacing::Address),
        Pacing::Layered { scheme, spacing } => (scheme.layers().max(1), *spacing),
    };
    let of = |layer| {
        group_of(config.group, Layer(layer), spacing).ok_or(Error::AlcLayer { layer, group: config.group })
    };
    match layers {
        // A single layer says itself what is wrong with its group.
        1 => Ok(vec![config.group]),
        _ => (0..layers).map(of).collect(),
    }
}

fn pace(pacing: Pacing, packet_size: u16) -> (Pace, Option<Layering>) {
    match pacing {
        Pacing::Fixed(rate) => (Pace::Fixed { rate, next: Time::ZERO }, None),
        Pacing::Layered { scheme, spacing } => {
            let layering = Layering { scheme: scheme.to_string(), packet_size, spacing };
            (Pace::Timetable(Box::new(scheme.with_packet_size(packet_size).source())), Some(layering))
        }
    }
}

/// Receive the files of one session. Returns when all files of a complete table are there, or when the session ends.
///
/// # Errors
/// When no session was heard, it ended too early, or files cannot be written; see [`Error::class`].
pub fn receive(
    config: AlcReceive,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<AlcReceiveReport, Error> {
    let clock = Clock::start();
    let (mut session, mut groups) = open_receiver(config, &clock, events)?;
    let run = run_one(&mut session, &mut groups, &clock, events, stop);
    session.dropped(groups.dropped());
    // A report cleans up too, so it comes before the error.
    let report = session.report();
    run?;
    groups.explain(report)
}

/// A receiver and its sockets.
///
/// # Errors
/// As [`receive`].
pub(crate) fn open_receiver(
    config: AlcReceive,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<(receiver::AlcReceiver, Groups), Error> {
    let choice = choose(config.group.ip(), config.interface.as_deref())?;
    let random = random();
    let outage = Outage::of_listener(config.group.ip(), config.interface, config.silence);
    let membership = config.source.map_or(Membership::AnySource, Membership::OnlyFrom);
    let options = GroupOptions { receive_buffer: config.buffer };
    let socket = GroupSocket::open(config.group, membership, &choice, &options)?;
    tell_opened(config.group, &choice, events);
    if let Some(warning) = socket.receive_buffer().warning() {
        events(Event::warning(warning));
    }
    let to = Destination::Directory(config.out.clone());
    tidied(&to, config.unfinished, None).into_iter().for_each(|said| events(Event::warning(said)));
    let setup = receiver::Setup {
        group: config.group,
        only: config.source,
        out: config.out,
        names: config.names,
        most: config.most,
        wait: config.wait.map(span),
        silence: span(config.silence),
        overhead: overhead(config.group),
        unix_secs: clock.unix_secs(),
        random: random[0],
    };
    let session = receiver::AlcReceiver::new(setup, clock.now())?;
    Ok((session, Groups::new(socket, outage, config.faults.map(|faults| (faults, random[1])))))
}
