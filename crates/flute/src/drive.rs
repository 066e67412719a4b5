//! Sessions over ALC on real sockets.

use crate::codec::{Layering, Rlc};
use crate::error::AlcError;
use crate::files::Found;
use crate::source::{self, Pace};
use crate::{AlcReceive, AlcReceiveReport, AlcSend, AlcSendReport, FIXED_LEN, Pacing, TABLE_LEN, receiver};
use faircast_core::packet::Layer;
use faircast_core::rng::Rng;
use faircast_core::time::Time;
use faircast_driver::format::{Host, random, span};
use faircast_driver::{Configuration, Stop};
use faircast_transport::config::Content;
use faircast_transport::error::Error;
use faircast_transport::event::Event;
use faircast_wire::{Spacing, group_of};
use std::net::SocketAddr;

/// Sends files and trees to all receivers of the group, the requested number of times. Receivers send no feedback, so the source
/// does not know the number of complete receivers.
impl Configuration for AlcSend {
    type Report = AlcSendReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Content { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<AlcSendReport, Error> {
        let mut host = Host::new(events, stop);
        let Content::Paths(paths) = &self.content else {
            return Err(AlcError::Content { what: self.content.kind() }.into());
        };
        let groups = layer_groups(self.place.group, &self.pacing)?;
        // The source's address is a part of the session's identity (RFC 5651, 3).
        let sockets = host.source(&self.place, None)?;
        let (datagram, overhead) = (sockets.datagram, sockets.overhead);
        let cci = if groups.len() > 1 { Rlc::LEN } else { 4 };
        let symbol_size = ((datagram - FIXED_LEN - cci) / 8 * 8) as u16;
        let random = random();
        let tsi = (random[0] as u16).max(1);
        let found = Found::look(paths, self.fec, symbol_size)?;
        found.warnings.iter().for_each(|warning| host.emit(Event::warning(warning.clone())));
        let bytes = found.objects.iter().map(|object| object.oti.transfer_length).sum();
        host.content(format!("{}/{tsi}", sockets.local), found.objects.len(), Some(bytes));
        let (pace, layering) =
            pace(self.pacing, (usize::from(symbol_size) + FIXED_LEN + cci + overhead) as u16);
        let setup = source::Setup {
            tsi,
            groups,
            found,
            pace,
            layering,
            repeat: self.repeat,
            room: (datagram - FIXED_LEN - cci - TABLE_LEN) as u16,
            overhead,
            unix_secs: host.unix_secs(),
            rng: Rng::new(random[1], 0),
        };
        let session = source::AlcSource::new(setup, host.now());
        sockets.run(session, host)
    }
}

/// Receives the files of one session, until all files of a complete table have arrived, or the session ends.
impl Configuration for AlcReceive {
    type Report = AlcReceiveReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Opened { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<AlcReceiveReport, Error> {
        let mut host = Host::new(events, stop);
        let (place, random) = (self.place, random());
        let sockets = host.receiver(&place)?;
        host.tidy(&self.out, self.keep_partial);
        let setup = receiver::Setup {
            group: place.group,
            only: place.source,
            out: self.out,
            names: self.names,
            most: self.most,
            join_timeout: place.join_timeout.map(span),
            idle_timeout: span(place.idle_timeout),
            overhead: sockets.overhead,
            unix_secs: host.unix_secs(),
            random: random[0],
        };
        let session = receiver::AlcReceiver::new(setup, host.now())?;
        sockets.run(session, host)
    }
}

/// Returns the group of each layer.
fn layer_groups(group: SocketAddr, pacing: &Pacing) -> Result<Vec<SocketAddr>, Error> {
    let (layers, spacing) = match pacing {
        Pacing::Fixed(_) => (1, Spacing::Address),
        Pacing::Layered { scheme, spacing } => (scheme.layers().max(1), *spacing),
    };
    let of = |layer| group_of(group, Layer(layer), spacing).ok_or(AlcError::Layer { layer, group }.into());
    match layers {
        // A session with a single layer reports an invalid group itself.
        1 => Ok(vec![group]),
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
