//! Sessions over ALC on real sockets and in real time: one thread, one loop, each.

use super::files::Found;
use super::source::{self, Pace};
use super::{AlcReceive, AlcReceiveReport, AlcSend, AlcSendReport, FIXED_LEN, Pacing, TABLE_LEN, receiver};
use crate::config::Content;
use crate::config::span;
use crate::drive::{Clock, opened, random};
use crate::error::Error;
use crate::event::Event;
use crate::outage::{Look, Moves, Outage, Uplink, received as taken};
use faircast_core::packet::Layer;
use faircast_core::rng::Rng;
use faircast_core::time::Time;
use faircast_net::{
    Batch, Choice, GroupOptions, GroupSocket, Injector, Membership, SourceOptions, Waiter, Want, Watch,
    choose,
};
use faircast_wire::alc::{Layering, Rlc};
use faircast_wire::{Spacing, group_of};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The stop flag is looked at this often at least.
const STOP_CHECK: Duration = Duration::from_millis(100);
/// So many packets leave before the clock, the stop flag and what has come are looked at again.
const TURN: usize = 32;
/// Datagrams are no larger than an Ethernet frame carries unless asked for.
const ETHERNET_MTU: usize = 1_500;
const SMALLEST_DATAGRAM: usize = 256;

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
    let paths = match &config.content {
        Content::Paths(paths) => paths,
        Content::Stdin { .. } => return Err(Error::AlcContent { what: "standard input" }),
        Content::Live { .. } | Content::Layers { .. } => {
            return Err(Error::AlcContent { what: "a live stream" });
        }
    };
    let groups = groups(&config)?;
    let options = SourceOptions { ttl: config.ttl, ..SourceOptions::default() };
    // The source's address is a part of the session's name (RFC 5651, 3).
    let mut uplink = Uplink::open(config.group, config.interface, options, config.patience, Moves::Nowhere)?;
    let choice = uplink.choice().clone();
    events(opened(config.group, &choice));
    let overhead = overhead(config.group);
    let datagram = datagram(config.datagram, &choice, overhead)?;
    let cci = if groups.len() > 1 { Rlc::LEN } else { 4 };
    let symbol_size = ((datagram - FIXED_LEN - cci) / 8 * 8) as u16;
    let random = random();
    let tsi = (random[0] as u16).max(1);
    let found = Found::look(paths, config.fec, symbol_size)?;
    found.warnings.iter().for_each(|warning| events(Event::Warning(warning.clone())));
    events(Event::Content {
        transfer: format!("{}/{tsi}", choice.local),
        files: found.objects.len() as u64,
        bytes: Some(found.objects.iter().map(|object| object.oti.transfer_length).sum()),
        resumed_bytes: 0,
    });
    let (pace, layering) =
        pace(config.pacing, (usize::from(symbol_size) + FIXED_LEN + cci + overhead) as u16);
    let setup = source::Setup {
        tsi,
        found,
        pace,
        layering,
        repeat: config.repeat,
        room: (datagram - FIXED_LEN - cci - TABLE_LEN) as u16,
        overhead,
        unix_secs: clock.unix_secs(),
        rng: Rng::new(random[1], 0),
    };
    let mut session = source::AlcSource::new(setup, clock.now());
    run_source(&mut session, &mut uplink, &groups, &clock, events, stop)?;
    Ok(session.report())
}

/// The group of each layer.
fn groups(config: &AlcSend) -> Result<Vec<SocketAddr>, Error> {
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

fn overhead(group: SocketAddr) -> usize {
    if group.is_ipv4() { 28 } else { 48 }
}

fn datagram(asked: Option<u16>, choice: &Choice, overhead: usize) -> Result<usize, Error> {
    let largest = (choice.chosen.mtu as usize).saturating_sub(overhead).min(65_000);
    if largest < SMALLEST_DATAGRAM {
        return Err(Error::MtuTooSmall { interface: choice.chosen.name.clone(), mtu: choice.chosen.mtu });
    }
    let datagram = asked.map_or(largest.min(ETHERNET_MTU - overhead), usize::from);
    if !(SMALLEST_DATAGRAM..=largest).contains(&datagram) {
        return Err(Error::DatagramSize { datagram: datagram as u16, largest: largest as u16 });
    }
    Ok(datagram)
}

fn run_source(
    session: &mut source::AlcSource,
    uplink: &mut Uplink,
    groups: &[SocketAddr],
    clock: &Clock,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let (mut batch, mut waiter) = (Batch::new(1), Waiter::new());
    let mut out = Vec::with_capacity(1 << 16);
    loop {
        if stop.load(Ordering::Relaxed) {
            session.stop();
        }
        // Nobody has anything to say to this socket; what comes is taken so that it does not wake us again.
        uplink.look(events)?;
        uplink.receive(&mut batch)?;
        for _ in 0..TURN {
            let now = clock.now();
            session.on_time(now);
            if uplink.holds() {
                break;
            }
            let Some(layer) = session.next(now, &mut out)? else { break };
            uplink.send(&out, out.len(), groups[usize::from(layer.0)], &mut waiter, events)?;
        }
        session.take_events().into_iter().for_each(&mut *events);
        if session.is_over() {
            return Ok(());
        }
        let wake = session.wake_at();
        let now = clock.now();
        if wake > now || uplink.holds() {
            let until = if wake > now { clock.instant(wake) } else { Instant::now() + STOP_CHECK };
            uplink.wait(&mut waiter, until.min(Instant::now() + STOP_CHECK))?;
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
    let choice = choose(config.group.ip(), config.interface.as_deref())?;
    let random = random();
    let mut outage = Outage::of_listener(config.group.ip(), config.interface, config.silence);
    let mut channels = Channels {
        membership: config.source.map_or(Membership::AnySource, Membership::OnlyFrom),
        options: GroupOptions { receive_buffer: config.buffer },
        group: config.group,
        choice,
        sockets: Vec::new(),
        dropped: 0,
    };
    channels.join(Layer(0), Spacing::Address)?;
    events(opened(config.group, &channels.choice));
    if let Some(warning) = channels.sockets[0].receive_buffer().warning() {
        events(Event::Warning(warning));
    }
    let setup = receiver::Setup {
        group: config.group,
        only: config.source,
        out: config.out,
        wait: config.wait.map(span),
        silence: span(config.silence),
        overhead: overhead(config.group),
        unix_secs: clock.unix_secs(),
        random: random[0],
    };
    let mut session = receiver::AlcReceiver::new(setup, clock.now())?;
    let injector = config.faults.map(|faults| Injector::new(faults, random[1]));
    let run = run_receiver(&mut session, &mut channels, &mut outage, &clock, injector, events, stop);
    session.dropped(channels.leave()?);
    // A report cleans up too, so it comes before the error.
    let report = session.report();
    run?;
    outage.explains(report)
}

fn run_receiver(
    session: &mut receiver::AlcReceiver,
    channels: &mut Channels,
    outage: &mut Outage,
    clock: &Clock,
    mut injector: Option<Injector>,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let (mut batch, mut waiter) = (Batch::new(8), Waiter::new());
    loop {
        if stop.load(Ordering::Relaxed) {
            session.stop();
        }
        if let Look::Other(choice) = outage.look(&channels.choice, true, events)? {
            outage.moved(&channels.choice, &choice, events);
            channels.leave()?;
            channels.choice = *choice;
        }
        let (mut received, mut failed) = (0, Ok(()));
        for socket in &channels.sockets {
            received += taken(socket.receive(&mut batch))?;
            let now = clock.now();
            batch.deliver(injector.as_mut(), |bytes, meta| {
                if failed.is_ok() {
                    failed =
                        session.on_datagram(bytes, meta.from.ip(), clock.time(meta.received_at).min(now));
                }
            });
        }
        failed?;
        session.on_time(clock.now());
        let (level, spacing) = session.subscription();
        match channels.join(level, spacing) {
            Err(Error::Net(error)) => outage.failed(error, events)?,
            joined => joined?,
        }
        session.take_events().into_iter().for_each(&mut *events);
        if session.is_over() {
            return Ok(());
        }
        if received == 0 {
            let until = outage.until(clock.instant(session.wake_at()).min(Instant::now() + STOP_CHECK));
            let watches: Vec<Watch<'_>> =
                channels.sockets.iter().map(|socket| Watch::new(socket, Want::Readable)).collect();
            waiter.wait(&watches, Some(until))?;
        }
    }
}

/// The groups of the layers that are joined, the lowest first.
struct Channels {
    membership: Membership,
    options: GroupOptions,
    group: SocketAddr,
    choice: Choice,
    sockets: Vec<GroupSocket>,
    /// Datagrams that the buffers of sockets that were closed since had dropped.
    dropped: u64,
}

impl Channels {
    /// Be in the groups up to this layer and in no other; layers are left from the top.
    fn join(&mut self, top: Layer, spacing: Spacing) -> Result<(), Error> {
        while self.sockets.len() > usize::from(top.0) + 1 {
            self.pop()?;
        }
        while self.sockets.len() <= usize::from(top.0) {
            let layer = self.sockets.len() as u8;
            let group = match layer {
                0 => self.group,
                _ => group_of(self.group, Layer(layer), spacing)
                    .ok_or(Error::AlcLayer { layer, group: self.group })?,
            };
            self.sockets.push(GroupSocket::open(group, self.membership, &self.choice, &self.options)?);
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<(), Error> {
        if let Some(socket) = self.sockets.pop() {
            self.dropped += u64::from(socket.backlog()?.drops);
            socket.leave()?;
        }
        Ok(())
    }

    /// Leave all; how many datagrams the buffers dropped.
    fn leave(&mut self) -> Result<u64, Error> {
        while !self.sockets.is_empty() {
            self.pop()?;
        }
        Ok(self.dropped)
    }
}
