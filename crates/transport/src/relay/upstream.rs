//! The upstream session as an endpoint of a relay: a receiver that notifies the branches of the end of the session.

use super::SessionHandle;
use crate::endpoint::{Datagram, Endpoint, HostEvent, Transmit};
use crate::error::Error;
use crate::event::{Event, ReceiveReport};
use crate::receiver::ReceiverSession;
use faircast_core::time::{Span, Time};
use std::net::SocketAddr;

/// Endpoint of a relay that receives a session from upstream.
pub struct Upstream {
    session: ReceiverSession,
    shared: SessionHandle,
}

impl Upstream {
    /// Creates the endpoint; `session` passes its content to `shared`.
    pub(crate) fn new(session: ReceiverSession, shared: SessionHandle) -> Upstream {
        Upstream { session, shared }
    }

    /// Returns the report of the finished session.
    ///
    /// # Errors
    /// If the session has failed.
    pub fn report(self) -> Result<ReceiveReport, Error> {
        self.session.report()
    }

    fn report_end(&mut self) {
        if self.session.is_finished() {
            self.shared.end(self.session.is_lost());
        }
    }
}

impl Endpoint for Upstream {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        self.session.handle_datagram(datagram, now);
        if self.session.silence(now) == Some(Span::ZERO) {
            self.shared.note_received(now);
        }
        self.report_end();
    }

    fn handle_timeout(&mut self, now: Time) {
        self.session.handle_timeout(now);
        self.report_end();
    }

    fn handle_host_event(&mut self, notice: HostEvent<'_>, now: Time) {
        self.session.handle_host_event(notice, now);
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        self.session.poll_transmit(now, out)
    }

    fn poll_timeout(&self, now: Time) -> Time {
        self.session.poll_timeout(now)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.session.poll_event()
    }

    fn groups(&self) -> &[SocketAddr] {
        self.session.groups()
    }

    fn receives_group(&self) -> bool {
        self.session.receives_group()
    }

    fn accepts(&mut self, now: Time) -> bool {
        let accepts = self.session.accepts(now);
        if !accepts {
            self.shared.note_received(now); // received packets are not read yet
        }
        accepts
    }

    fn silence(&self, now: Time) -> Option<Span> {
        self.session.silence(now)
    }

    fn stop(&mut self, now: Time) {
        self.session.stop(now);
        self.report_end();
    }

    fn is_finished(&self) -> bool {
        self.session.is_finished()
    }
}
