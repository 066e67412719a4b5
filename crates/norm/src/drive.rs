//! Sessions over NORM on real sockets.

use crate::codec::NodeId;
use crate::error::NormError;
use crate::files::Files;
use crate::{NormReceive, NormReceiveReport, NormSend, NormSendReport, format, source};
use faircast_core::rng::Rng;
use faircast_driver::format::{Host, bounds, random, span};
use faircast_driver::{Configuration, Stop};
use faircast_transport::config::Content;
use faircast_transport::error::Error;
use faircast_transport::event::Event;
use std::net::IpAddr;

/// Minimum length of a symbol, in bytes.
const MIN_SEGMENT: usize = 64;

/// Sends files to all receivers that answer. The session ends when all of them have acknowledged all content.
impl Configuration for NormSend {
    type Report = NormSendReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Content { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<NormSendReport, Error> {
        let mut host = Host::new(events, stop);
        let Content::Paths(paths) = &self.content else {
            return Err(NormError::Content { what: self.content.kind() }.into());
        };
        if self.scheme.name() != format::SCHEME {
            return Err(NormError::Scheme { scheme: self.scheme.name() }.into());
        }
        // Receivers send feedback to the group or to this host, in both cases to the port of the group.
        let sockets = host.source_everywhere(&self.place, self.place.group.port())?;
        let (datagram, overhead) = (sockets.datagram, sockets.overhead);
        let header = self.fec.data_header_len();
        let least = header + MIN_SEGMENT;
        if datagram < least {
            return Err(NormError::Datagram { datagram, least }.into());
        }
        let segment = datagram - header;
        let (files, warnings) = Files::look(paths, self.fec, segment)?;
        warnings.into_iter().for_each(|warning| host.emit(Event::warning(warning)));
        let random = random();
        let node = node(sockets.local, random[0]);
        host.content(format!("norm-{}", sockets.local), files.objects.len(), Some(files.bytes()));
        let scheme = self.scheme.with_packet_size((datagram + overhead) as u16);
        let setup = source::Setup {
            group: self.place.group,
            node,
            instance: (random[1] as u16).max(1),
            overhead,
            bounds: bounds(&scheme, self.min, self.max),
            scheme,
            rng: Rng::new(random[2], 0),
            files,
            expect: self.expect,
            join_timeout: span(self.join_timeout),
            unix_secs: host.unix_secs(),
            receiver_events: self.place.receiver_events,
        };
        let session = source::NormSource::new(setup, host.now());
        sockets.run(session, host)
    }
}

impl Configuration for NormReceive {
    type Report = NormReceiveReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Opened { .. })
    }

    fn run(self, _events: &mut dyn FnMut(Event), _stop: &Stop) -> Result<NormReceiveReport, Error> {
        match self {}
    }
}

/// Returns the node number of a host: its IPv4 address, as libnorm's default, or a random number.
fn node(local: IpAddr, random: u64) -> NodeId {
    match local {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(_) => (random as NodeId).clamp(1, NodeId::MAX - 1),
    }
}
