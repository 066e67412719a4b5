//! Sessions over PGM on real sockets.

use crate::codec::{DATA_HEADER_LEN, Gsi, Options, OwnOption, PgmccData, Stamp, Tsi, data_len};
use crate::content_writer::ContentWriter;
use crate::error::PgmError;
use crate::feed::{self, Feed, Input, ReadResult};
use crate::missing::Timeouts;
use crate::{
    Framing, Messages, PgmReceive, PgmReceiveReport, PgmSend, PgmSendReport, ipv4, receiver, source,
};
use faircast_core::packet::Mark;
use faircast_core::rng::Rng;
use faircast_core::schemes::Wire;
use faircast_driver::format::{Host, Pipe, Quota, bounds, random, span};
use faircast_driver::{Configuration, Stop};
use faircast_transport::config::Content;
use faircast_transport::error::Error;
use faircast_transport::event::{Event, Setting};
use faircast_transport::object::ObjectError;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

/// Maximum time for which content from a pipe waits for more content to fill a packet. Afterwards a partly filled packet is sent.
const PIPE_TIMEOUT: Duration = Duration::from_millis(5);

/// Sends one file or stream to all receivers of the group. The session ends when no packet has been requested for the time
/// [`PgmSend::linger`].
impl Configuration for PgmSend {
    type Report = PgmSendReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Content { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<PgmSendReport, Error> {
        let mut host = Host::new(events, stop);
        let place = self.place;
        let group = ipv4(place.group.ip())?;
        let (input, total) = input(&self.content)?;
        // Receivers send NAKs to this port of this host. They read the host's address from SPMs; the IP source address of data
        // packets does not matter.
        let port = self.options.nak_port.unwrap_or(place.group.port());
        let sockets = host.source(&place, Some(port))?;
        let local = ipv4(sockets.local)?;
        let datagram = sockets.datagram;
        let room = feed::room(datagram, options_len(self.scheme.mark()));
        check_messages(self.options.framing, self.options.messages, room)?;
        if self.scheme.layers() > 1 {
            return Err(PgmError::Layers { scheme: self.scheme.name() }.into());
        }
        let random = random();
        let gsi = random[0].to_le_bytes();
        let tsi = Tsi { gsi: Gsi(std::array::from_fn(|at| gsi[at])), port: random[1] as u16 };
        host.content(tsi.to_string(), 1, total);
        if !self.scheme.works_over(Wire::Pgm) {
            let message = format!(
                "with {}, the source gets no reports from receivers of other programs: use le-sbcc with OpenPGM and ZeroMQ",
                self.scheme.name()
            );
            host.emit(Event::warning_of(Setting::Scheme, message));
        }
        let scheme = self.scheme.without_answers().with_packet_size((datagram + source::OVERHEAD) as u16);
        let setup = source::Setup {
            tsi,
            data_port: self.options.data_port.unwrap_or(place.group.port()),
            local,
            group,
            to: place.group,
            source: scheme.source(),
            scheme_number: scheme.number(),
            bounds: bounds(&scheme, self.min, self.max),
            rng: Rng::new(random[2], 0),
            feed: Feed::new(input, self.options.framing, self.options.messages, room),
            room,
            window: self.window,
            linger: span(self.linger),
            first: 0,
            total,
            receiver_events: place.receiver_events,
        };
        let session = source::PgmSource::new(setup, host.now());
        sockets.run(session, host)
    }
}

/// Receives one session of the group. Ends when the source has announced the end of the session and no packet is missing.
impl Configuration for PgmReceive {
    type Report = PgmReceiveReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Opened { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<PgmReceiveReport, Error> {
        let mut host = Host::new(events, stop);
        let place = self.place;
        let group = ipv4(place.group.ip())?;
        let random = random();
        let sockets = host.receiver(&place)?;
        let setup = receiver::Setup {
            group: SocketAddrV4::new(group, place.group.port()),
            local: ipv4(sockets.local)?,
            data_port: self.options.data_port.unwrap_or(place.group.port()),
            nak_port: self.options.nak_port.unwrap_or(place.group.port()),
            only: place.source,
            join_timeout: place.join_timeout.map(span),
            idle_timeout: span(place.idle_timeout),
            timeouts: Timeouts::default(),
            most_held: receiver::MAX_HELD,
            rng: Rng::new(random[0], 0),
        };
        let (framing, messages) = (self.options.framing, self.options.messages);
        let (destination, quota) = (self.destination, Quota::new(self.most));
        let open = Box::new(move |tsi| {
            let to = destination.stream(&format!("pgm-{tsi}"))?;
            Ok(ContentWriter::new(quota.limit(to), framing, messages))
        });
        let session = receiver::PgmReceiver::new(setup, open, host.now());
        sockets.run(session, host)
    }
}

/// Returns the number of bytes that options take in each data packet, for a scheme whose packets carry `mark`.
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
        extension: (mark != Mark::None).then_some(OwnOption::Stamp(stamp)),
        pgmcc_data: matches!(mark, Mark::Acker { .. }).then_some(acker),
        ..Options::default()
    };
    data_len(&options, 0) - DATA_HEADER_LEN
}

fn check_messages(framing: Framing, messages: Option<Messages>, room: usize) -> Result<(), Error> {
    let most = match framing {
        Framing::None => feed::max_unit(room),
        Framing::Zmq => usize::MAX,
    };
    match messages {
        Some(Messages::Sized(size)) if size == 0 || size > most => {
            Err(PgmError::Message { size, most }.into())
        }
        _ => Ok(()),
    }
}

/// Opens the content. Returns the input and the content's length, if it has a known length.
fn input(content: &Content) -> Result<(Box<dyn Input>, Option<u64>), Error> {
    match content {
        Content::Paths(paths) => {
            let [path] = paths.as_slice() else {
                return Err(PgmError::Content { what: format!("{} paths", paths.len()) }.into());
            };
            let file = File::open(path).map_err(|error| unreadable(path, error))?;
            let known = file.metadata().map_err(|error| unreadable(path, error))?;
            if known.is_dir() {
                return Err(PgmError::Content { what: format!("the directory {}", path.display()) }.into());
            }
            Ok((Box::new(Whole(file)), known.is_file().then_some(known.len())))
        }
        Content::Memory(files) => {
            let [file] = files.as_slice() else {
                return Err(PgmError::Content { what: format!("{} files", files.len()) }.into());
            };
            let (bytes, len) = (io::Cursor::new(std::sync::Arc::clone(&file.bytes)), file.bytes.len());
            Ok((Box::new(Whole(bytes)), Some(len as u64)))
        }
        Content::Reader { input, .. } | Content::Live { input, .. } => {
            Ok((Box::new(Live(Pipe::read(input))), None))
        }
        other => Err(PgmError::Content { what: other.kind().to_owned() }.into()),
    }
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    ObjectError::io(path, "read the file", error).into()
}

/// A file, on the disk or in memory.
struct Whole<R>(R);

impl<R: Read + Send> Input for Whole<R> {
    fn read(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<ReadResult> {
        let read = (&mut self.0).take(most as u64).read_to_end(into)?;
        Ok(if read == 0 { ReadResult::End } else { ReadResult::Bytes })
    }
}

/// Content of a pipe, in order of arrival.
struct Live(Pipe);

impl Input for Live {
    fn read(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<ReadResult> {
        match self.0.take(most, PIPE_TIMEOUT) {
            Ok(Some(bytes)) => {
                into.extend_from_slice(&bytes);
                Ok(ReadResult::Bytes)
            }
            Ok(None) => Ok(if self.0.is_drained() { ReadResult::End } else { ReadResult::NotYet }),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::schemes::{CATALOGUE, Scheme};

    #[test]
    fn pgm_options_of_every_scheme_fit_into_64_bytes() {
        for entry in CATALOGUE {
            let scheme: Scheme = entry.name.parse().expect("its own name");
            assert!(options_len(scheme.mark()) <= 64, "{}", entry.name);
        }
        assert_eq!(options_len(Mark::None), 0);
    }
}
