//! Sessions over PGM on real sockets.

use super::delivery::Delivery;
use super::feed::{self, Feed, Got, Input};
use super::missing::Patience;
use super::{
    Framing, Messages, PgmReceive, PgmReceiveReport, PgmSend, PgmSendReport, ipv4, receiver, source,
};
use crate::config::span;
use crate::config::{Content, Destination};
use crate::datagram;
use crate::driver::{Clock, Groups, Moves, Outage, Uplink, random, run_one, tell_opened};
use crate::error::{Error, Unlayered};
use crate::event::{Event, Setting};
use crate::quota::Quota;
use crate::source::pipe::Pipe;
use faircast_core::packet::Mark;
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::Wire;
use faircast_net::{GroupOptions, GroupSocket, Membership, Port, SourceOptions, choose};
use faircast_wire::pgm::{DATA_HEADER_LEN, Gsi, Options, PgmccData, Said, Stamp, Tsi, data_len};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a pipe has is sent after this, even if more would fit a packet.
const PIPE_PATIENCE: Duration = Duration::from_millis(5);

/// Send one file or stream to everybody who receives the group. Returns when nothing has been missing
/// anywhere for the time asked for.
///
/// # Errors
/// When the session cannot start or the content cannot be read; see [`Error::class`].
pub fn send(
    config: PgmSend,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<PgmSendReport, Error> {
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
    config: PgmSend,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<(source::PgmSource, Uplink), Error> {
    let group = ipv4(config.group.ip())?;
    let (input, total) = input(&config.content)?;
    // NAKs come to this port of this host: receivers do not look where data came from.
    let port = Port::Fixed(config.options.nak_port.unwrap_or(config.group.port()));
    let options = SourceOptions { ttl: config.ttl, port, ..SourceOptions::default() };
    // The source's address is in its packets, and receivers send NAKs there.
    let mut uplink = Uplink::open(config.group, config.interface, options, config.patience, Moves::Nowhere)?;
    let local = ipv4(uplink.choice().local)?;
    tell_opened(config.group, uplink.choice(), events);
    uplink.warning().into_iter().for_each(|warning| events(Event::warning(warning)));
    let datagram = datagram::largest(config.datagram, uplink.choice(), config.group)?;
    let room = feed::room(datagram, options_len(config.scheme.mark()));
    check_messages(config.options.framing, config.options.messages, room)?;
    if config.scheme.layers() > 1 {
        return Err(Error::NotInLayers { what: Unlayered::Pgm, scheme: config.scheme.name() });
    }
    let random = random();
    let gsi = random[0].to_le_bytes();
    let tsi = Tsi { gsi: Gsi(std::array::from_fn(|at| gsi[at])), port: random[1] as u16 };
    events(Event::Content {
        transfer: tsi.to_string(),
        files: 1,
        links: 0,
        directories: 0,
        bytes: total,
        resumed_bytes: 0,
    });
    if !config.scheme.works_over(Wire::Pgm) {
        let message = format!(
            "{} hears nothing from receivers that are not faircast's: use le-sbcc for OpenPGM and ZeroMQ",
            config.scheme.name()
        );
        events(Event::warning_of(Setting::Scheme, message));
    }
    let scheme = config.scheme.without_answers().with_packet_size((datagram + source::OVERHEAD) as u16);
    let own = scheme.bounds();
    let min = config.min.map_or(own.min, |min| min.max(own.min));
    let bounds = Bounds { min, max: config.max.unwrap_or(own.max).max(min) };
    let setup = source::Setup {
        tsi,
        data_port: config.options.data_port.unwrap_or(config.group.port()),
        local,
        group,
        to: config.group,
        source: scheme.source(),
        scheme_number: scheme.number(),
        bounds,
        rng: Rng::new(random[2], 0),
        feed: Feed::new(input, config.options.framing, config.options.messages, room),
        room,
        window: config.window,
        linger: span(config.linger),
        first: 0,
        total,
    };
    uplink.inject(config.faults, random[3]);
    Ok((source::PgmSource::new(setup, clock.now()), uplink))
}

/// Receive one session from the group. Returns when the source has said its end and nothing is missing any more.
///
/// # Errors
/// When no session was heard, the source fell silent, or the content cannot be written; see [`Error::class`].
pub fn receive(
    config: PgmReceive,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<PgmReceiveReport, Error> {
    let clock = Clock::start();
    let (mut session, mut groups) = open_receiver(config, &clock, events)?;
    run_one(&mut session, &mut groups, &clock, events, stop)?;
    groups.explain(session.report())
}

/// A receiver and its socket.
///
/// # Errors
/// As [`receive`].
pub(crate) fn open_receiver(
    config: PgmReceive,
    clock: &Clock,
    events: &mut dyn FnMut(Event),
) -> Result<(receiver::PgmReceiver, Groups), Error> {
    let group = ipv4(config.group.ip())?;
    let choice = choose(config.group.ip(), config.interface.as_deref())?;
    let outage = Outage::of_listener(config.group.ip(), config.interface, config.silence);
    let local = ipv4(choice.local)?;
    let membership = config.source.map_or(Membership::AnySource, Membership::OnlyFrom);
    let options = GroupOptions { receive_buffer: config.buffer };
    let socket = GroupSocket::open(config.group, membership, &choice, &options)?;
    tell_opened(config.group, &choice, events);
    if let Some(warning) = socket.receive_buffer().warning() {
        events(Event::warning(warning));
    }
    let random = random();
    let setup = receiver::Setup {
        group: SocketAddrV4::new(group, config.group.port()),
        local,
        data_port: config.options.data_port.unwrap_or(config.group.port()),
        nak_port: config.options.nak_port.unwrap_or(config.group.port()),
        only: config.source,
        wait: config.wait.map(span),
        silence: span(config.silence),
        patience: Patience::default(),
        most_held: super::receiver::MOST_HELD,
        rng: Rng::new(random[0], 0),
    };
    let (framing, messages) = (config.options.framing, config.options.messages);
    let destination = config.destination.clone();
    let quota = Quota::new(config.most);
    let open = Box::new(move |tsi| {
        output(&destination, tsi).map(|to| Delivery::new(quota.limit(to), framing, messages))
    });
    let groups = Groups::new(socket, outage, config.faults.map(|faults| (faults, random[1])));
    Ok((receiver::PgmReceiver::new(setup, open, clock.now()), groups))
}

/// Bytes of the options that a scheme with this kind of mark has in each data packet.
fn options_len(mark: Mark) -> usize {
    let stamp = Stamp {
        scheme: 0,
        seq: 0,
        micros: 0,
        rate: 0.0,
        flags: Default::default(),
        signal: Default::default(),
        mark,
    };
    let acker = PgmccData { stamp: 0, acker: Ipv4Addr::UNSPECIFIED.into() };
    let options = Options {
        said: (mark != Mark::None).then_some(Said::Stamp(stamp)),
        pgmcc_data: matches!(mark, Mark::Acker { .. }).then_some(acker),
        ..Options::default()
    };
    data_len(&options, 0) - DATA_HEADER_LEN
}

fn check_messages(framing: Framing, messages: Option<Messages>, room: usize) -> Result<(), Error> {
    let most = match framing {
        Framing::None => feed::most_unit(room),
        Framing::Zmq => usize::MAX,
    };
    match messages {
        Some(Messages::Sized(size)) if size == 0 || size > most => Err(Error::PgmMessage { size, most }),
        _ => Ok(()),
    }
}

/// The content, and its length if it has one.
fn input(content: &Content) -> Result<(Box<dyn Input>, Option<u64>), Error> {
    match content {
        Content::Paths(paths) => {
            let [path] = paths.as_slice() else {
                return Err(Error::PgmContent { what: format!("{} paths", paths.len()) });
            };
            let file = File::open(path).map_err(|error| unreadable(path, error))?;
            let known = file.metadata().map_err(|error| unreadable(path, error))?;
            if known.is_dir() {
                return Err(Error::PgmContent { what: format!("the directory {}", path.display()) });
            }
            Ok((Box::new(Whole(file)), known.is_file().then_some(known.len())))
        }
        Content::Memory(files) => {
            let [file] = files.as_slice() else {
                return Err(Error::PgmContent { what: format!("{} files", files.len()) });
            };
            let (bytes, len) = (io::Cursor::new(std::sync::Arc::clone(&file.bytes)), file.bytes.len());
            Ok((Box::new(Whole(bytes)), Some(len as u64)))
        }
        Content::Reader { input, .. } | Content::Live { input, .. } => {
            Ok((Box::new(Live(Pipe::of(input).0)), None))
        }
        Content::Layers { .. } => Err(Error::PgmContent { what: "streams in layers".to_owned() }),
    }
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::Object(crate::object::ObjectError::io(path, "read the file", error))
}

/// A file, on the disk or in memory.
struct Whole<R>(R);

impl<R: Read + Send> Input for Whole<R> {
    fn read(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<Got> {
        let read = (&mut self.0).take(most as u64).read_to_end(into)?;
        Ok(if read == 0 { Got::End } else { Got::Bytes })
    }
}

/// What comes as it comes.
struct Live(Pipe);

impl Input for Live {
    fn read(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<Got> {
        match self.0.take(most, PIPE_PATIENCE) {
            Ok(Some(bytes)) => {
                into.extend_from_slice(&bytes);
                Ok(Got::Bytes)
            }
            Ok(None) => Ok(if self.0.is_drained() { Got::End } else { Got::NotYet }),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// Where content goes.
fn output(destination: &Destination, tsi: Tsi) -> Result<Box<dyn Write + Send>, Error> {
    match destination {
        Destination::Writer(output) => Ok(Box::new(BufWriter::new(output.take()))),
        Destination::Memory(memory) => Ok(Box::new(memory.stream(format!("pgm-{tsi}")))),
        Destination::Directory(directory) => {
            let path: PathBuf = directory.join(format!("pgm-{tsi}"));
            let made = std::fs::create_dir_all(directory).and_then(|()| crate::object::replace(&path));
            let file = made.map_err(|error| {
                Error::Object(crate::object::ObjectError::io(&path, "make the file", error))
            })?;
            Ok(Box::new(BufWriter::with_capacity(1 << 16, file)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::schemes::{CATALOGUE, Scheme};

    #[test]
    fn options_of_every_scheme_leave_room() {
        for entry in CATALOGUE {
            let scheme: Scheme = entry.name.parse().expect("its own name");
            assert!(options_len(scheme.mark()) <= 64, "{}", entry.name);
        }
        assert_eq!(options_len(Mark::None), 0);
    }
}
