//! The source's session as an endpoint.

use super::{Phase, SourceSession};
use crate::endpoint::{Datagram, Endpoint, HostEvent, Transmit};
use crate::error::{Error, TransferError};
use crate::event::Event;
use faircast_core::time::Time;

impl Endpoint for SourceSession {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        if self.setup.one_way.is_some() {
            return; // a session without feedback ignores all packets
        }
        self.on_datagram(datagram.bytes, datagram.from, datagram.arrived, now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.on_time(now);
    }

    fn handle_host_event(&mut self, notice: HostEvent<'_>, now: Time) {
        if let HostEvent::NetworkChanged { local } = notice {
            self.announce_soon(local, now);
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        self.next(now, out)
    }

    fn poll_timeout(&self, now: Time) -> Time {
        self.next_timeout(now)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn stop(&mut self, now: Time) {
        match self.setup.one_way {
            Some(_) if self.scheduler.rounds() > 0 => self.close(now),
            _ => self.fail(Error::Transfer(TransferError::Stopped), now),
        }
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Over
    }
}
