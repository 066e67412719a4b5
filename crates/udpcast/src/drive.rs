//! Sessions with udpcast on real sockets.

use crate::codec::{DATA_HEADER_LEN, MAP_LEN};
use crate::error::UdpcastError;
use crate::feed::Feed;
use crate::rendezvous::{Gathering, addresses};
use crate::{
    SCHEMES, UdpcastReceive, UdpcastReceiveReport, UdpcastSend, UdpcastSendReport, receiver, source,
};
use faircast_core::rng::Rng;
use faircast_driver::format::{Host, Pipe, Quota, bounds, random, span};
use faircast_driver::{Configuration, Stop};
use faircast_net::choose;
use faircast_transport::config::{Content, Pacing, default_group};
use faircast_transport::ends::Input;
use faircast_transport::error::Error;
use faircast_transport::event::Event;
use faircast_transport::object::ObjectError;
use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// Minimum size of a datagram, in bytes: a question about blocks.
const MIN_DATAGRAM: usize = DATA_HEADER_LEN + MAP_LEN;

/// Sends one file or stream to all receivers that join. The session ends when all of them have confirmed all content.
impl Configuration for UdpcastSend {
    type Report = UdpcastSendReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Content { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<UdpcastSendReport, Error> {
        let mut host = Host::new(events, stop);
        let mut place = self.place;
        let port = place.group.port();
        ipv4(place.group.ip())?;
        let sender_port = port.checked_add(1).ok_or(UdpcastError::Port(port))?;
        if !SCHEMES.contains(&self.scheme.name()) {
            return Err(UdpcastError::Scheme { scheme: self.scheme.name() }.into());
        }
        let (input, total) = input(&self.content)?;
        if place.group.ip() == default_group().ip() {
            let choice = choose(place.group.ip(), place.interface.as_deref())?;
            place.group.set_ip(default_data_group(ipv4(choice.local)?).into());
        }
        let sockets = host.source_everywhere(&place, sender_port)?;
        let (local, datagram) = (ipv4(sockets.local)?, sockets.datagram);
        if datagram < MIN_DATAGRAM {
            return Err(UdpcastError::Datagram { datagram, least: MIN_DATAGRAM }.into());
        }
        let group = ipv4(place.group.ip())?;
        host.content(format!("udpcast-{local}"), 1, total);
        let scheme = self.scheme.with_packet_size((datagram + source::OVERHEAD) as u16);
        let block_size = (datagram - DATA_HEADER_LEN) as u16;
        let setup = source::Setup {
            group: SocketAddrV4::new(group, port),
            rendezvous: addresses(local, self.rendezvous)?,
            bounds: bounds(&scheme, self.min, self.max),
            scheme,
            rng: Rng::new(random()[0], 0),
            feed: Feed::new(input, block_size.into()),
            block_size,
            gathering: Gathering {
                expect: self.expect,
                first: self.join_timeout.map(span),
                min: span(self.min_wait),
                max: self.max_wait.map(span),
            },
            idle_timeout: span(place.idle_timeout),
            total,
            receiver_events: place.receiver_events,
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
        let place = self.place;
        let port = place.group.port();
        ipv4(place.group.ip())?;
        port.checked_add(1).ok_or(UdpcastError::Port(port))?;
        let sockets = host.receiver_everywhere(&place, port)?;
        let setup = receiver::Setup {
            port,
            rendezvous: addresses(ipv4(sockets.local)?, self.rendezvous)?,
            group: place.group,
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
fn input(content: &Content) -> Result<(Pipe, Option<u64>), Error> {
    let unfit = |what| Err(UdpcastError::Content { what }.into());
    match content {
        Content::Paths(paths) => {
            let [path] = paths.as_slice() else { return unfit(format!("{} paths", paths.len())) };
            let known = path.metadata().map_err(|error| ObjectError::io(path, "read the file", error))?;
            if known.is_dir() {
                return unfit(format!("the directory {}", path.display()));
            }
            Ok((Pipe::open(path, Pacing::Waits)?, known.is_file().then_some(known.len())))
        }
        Content::Memory(files) => {
            let [file] = files.as_slice() else { return unfit(format!("{} files", files.len())) };
            let len = file.bytes.len() as u64;
            Ok((Pipe::read(&Input::new(Cursor::new(Arc::clone(&file.bytes)))), Some(len)))
        }
        Content::Reader { input, .. } => Ok((Pipe::read(input), None)),
        other => unfit(other.kind().to_owned()),
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
