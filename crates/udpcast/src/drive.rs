//! Sessions with udpcast on real sockets.

use crate::codec::{DATA_HEADER_LEN, MAP_LEN};
use crate::error::UdpcastError;
use crate::feed::{Feed, Input, ReadResult};
use crate::{
    SCHEMES, UdpcastReceive, UdpcastReceiveReport, UdpcastSend, UdpcastSendReport, port_of, receiver, source,
};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_driver::format::{Host, Pipe, Quota, random, span};
use faircast_driver::{Configuration, Stop};
use faircast_net::{broadcast_of, choose};
use faircast_transport::config::{Content, default_group};
use faircast_transport::error::Error;
use faircast_transport::event::{Event, TransferName};
use faircast_transport::object::ObjectError;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

/// Maximum time for which content from a pipe is awaited in one call.
const PIPE_TIMEOUT: Duration = Duration::ZERO;

/// Minimum size of a datagram, in bytes: a question about blocks.
const MIN_DATAGRAM: usize = DATA_HEADER_LEN + MAP_LEN;

/// Group of all hosts of the network, to which udpcast's programs send when the time to live is larger than 1.
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// Sends one file or stream to all receivers that join. The session ends when all of them have confirmed all content.
impl Configuration for UdpcastSend {
    type Report = UdpcastSendReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Content { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<UdpcastSendReport, Error> {
        let mut host = Host::new(events, stop);
        let mut place = self.place;
        let (is_default, port) = (place.group == default_group(), port_of(place.group));
        place.group.set_port(port);
        ipv4(place.group.ip())?;
        let sender_port = port.checked_add(1).ok_or(UdpcastError::Port(port))?;
        if !SCHEMES.contains(&self.scheme.name()) {
            return Err(UdpcastError::Scheme { scheme: self.scheme.name() }.into());
        }
        let (input, total) = input(&self.content)?;
        if is_default {
            let choice = choose(place.group.ip(), place.interface.as_deref())?;
            place.group.set_ip(default_data_group(ipv4(choice.local)?).into());
        }
        let sockets = host.source_everywhere(&place, sender_port)?;
        let (local, datagram) = (ipv4(sockets.local)?, sockets.datagram);
        if datagram < MIN_DATAGRAM {
            return Err(UdpcastError::Datagram { datagram, least: MIN_DATAGRAM }.into());
        }
        let group = ipv4(place.group.ip())?;
        host.emit(Event::Content {
            transfer: TransferName::Foreign(format!("udpcast-{local}")),
            files: 1,
            links: 0,
            directories: 0,
            bytes: total,
            resumed_bytes: 0,
        });
        let scheme = self.scheme.with_packet_size((datagram + source::OVERHEAD) as u16);
        let own = scheme.bounds();
        let min = self.min.map_or(own.min, |min| min.max(own.min));
        let bounds = Bounds { min, max: self.max.unwrap_or(own.max).max(min) };
        let block_size = (datagram - DATA_HEADER_LEN) as u16;
        let setup = source::Setup {
            group: SocketAddrV4::new(group, port),
            rendezvous: rendezvous(local, self.rendezvous)?,
            scheme,
            bounds,
            rng: Rng::new(random()[0], 0),
            feed: Feed::new(input, block_size.into()),
            block_size,
            expect: self.expect,
            join_timeout: span(self.join_timeout),
            idle_timeout: span(place.idle_timeout),
            total,
        };
        let session = source::UdpcastSource::new(setup, host.now());
        sockets.run(session, host)
    }
}

/// Receives one session. Ends when the sender has announced the end of the content.
impl Configuration for UdpcastReceive {
    type Report = UdpcastReceiveReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Opened { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<UdpcastReceiveReport, Error> {
        let mut host = Host::new(events, stop);
        let mut place = self.place;
        let port = port_of(place.group);
        place.group.set_port(port);
        ipv4(place.group.ip())?;
        port.checked_add(1).ok_or(UdpcastError::Port(port))?;
        let sockets = host.receiver_everywhere(&place, port)?;
        let setup = receiver::Setup {
            port,
            rendezvous: rendezvous(ipv4(sockets.local)?, self.rendezvous)?,
            group: SocketAddr::new(place.group.ip(), port),
            only: place.source,
            join_timeout: place.join_timeout.map(span),
            idle_timeout: span(place.idle_timeout),
            buffer: u32::try_from(place.buffer).unwrap_or(u32::MAX),
        };
        let (destination, quota) = (self.destination, Quota::new(self.most));
        let open = Box::new(move |sender| {
            let to = destination.stream(&format!("udpcast-{sender}"))?;
            Ok(quota.limit(to))
        });
        let session = receiver::UdpcastReceiver::new(setup, open, host.now());
        sockets.run(session, host)
    }
}

/// Returns the addresses at which senders and receivers find one another: the broadcast address of the network, and a configured
/// address or the group of all hosts.
fn rendezvous(local: Ipv4Addr, configured: Option<Ipv4Addr>) -> Result<Vec<Ipv4Addr>, Error> {
    let broadcast = broadcast_of(local)?;
    Ok(broadcast.into_iter().chain([configured.unwrap_or(ALL_HOSTS)]).collect())
}

/// Returns the data group that udpcast derives from the address of the sender.
fn default_data_group(local: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from(0xe800_0000 | u32::from(local) & 0x07ff_ffff)
}

/// Returns the IPv4 address. An IPv6 address is an error, because udpcast supports only IPv4.
fn ipv4(address: IpAddr) -> Result<Ipv4Addr, Error> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(UdpcastError::NeedsIpv4(address).into()),
    }
}

/// Opens the content. Returns the input and the content's length, if it has a known length.
fn input(content: &Content) -> Result<(Box<dyn Input>, Option<u64>), Error> {
    match content {
        Content::Paths(paths) => {
            let [path] = paths.as_slice() else {
                return Err(UdpcastError::Content { what: format!("{} paths", paths.len()) }.into());
            };
            let file = File::open(path).map_err(|error| unreadable(path, error))?;
            let known = file.metadata().map_err(|error| unreadable(path, error))?;
            if known.is_dir() {
                return Err(
                    UdpcastError::Content { what: format!("the directory {}", path.display()) }.into()
                );
            }
            Ok((Box::new(Whole(file)), known.is_file().then_some(known.len())))
        }
        Content::Memory(files) => {
            let [file] = files.as_slice() else {
                return Err(UdpcastError::Content { what: format!("{} files", files.len()) }.into());
            };
            let (bytes, len) = (io::Cursor::new(std::sync::Arc::clone(&file.bytes)), file.bytes.len());
            Ok((Box::new(Whole(bytes)), Some(len as u64)))
        }
        Content::Reader { input, .. } => Ok((Box::new(Live(Pipe::read(input))), None)),
        other => Err(UdpcastError::Content { what: other.kind().to_owned() }.into()),
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
    use faircast_core::schemes::CATALOGUE;

    #[test]
    fn schemes_without_reports_over_udpcast_are_refused() {
        for entry in CATALOGUE.iter().filter(|entry| !SCHEMES.contains(&entry.name)) {
            let mut send = UdpcastSend::new(Content::Paths(Vec::new()));
            send.scheme = entry.name.parse().expect("its own name");
            let stop = Stop::new().expect("the test has descriptors left");
            let error = send.run(&mut |_| (), &stop).expect_err("it is refused").to_string();
            assert!(error.contains(entry.name) && error.contains("choose ormcc"), "{error}");
        }
    }

    #[test]
    fn data_group_is_derived_from_the_address_of_the_sender() {
        assert_eq!(default_data_group(Ipv4Addr::new(10, 9, 0, 1)), Ipv4Addr::new(234, 9, 0, 1));
        assert_eq!(default_data_group(Ipv4Addr::new(192, 168, 1, 2)), Ipv4Addr::new(232, 168, 1, 2));
    }
}
