//! Pending messages of a receiver.

use faircast_core::packet::SessionId;
use faircast_core::time::Time;
use faircast_wire::Message;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The datagrams to be sent to the source.
#[derive(Default)]
pub(super) struct Outbox {
    pub waiting: VecDeque<Waiting>,
    /// Whether feedback is suppressed, because the network carries none.
    pub is_muted: bool,
    /// Whether the next message must be a membership message, because the source refuses other messages of a host that has not
    /// joined.
    pub joins_first: bool,
}

/// A pending message. It is sent after all received packets have been processed, which may take some time.
pub(super) struct Waiting {
    pub session: SessionId,
    pub message: Message<'static>,
    /// Destination; `None`: the source that is followed.
    pub to: Option<SocketAddr>,
    /// Hop limit of a message to a group.
    pub hops: Option<u8>,
    pub since: Time,
}

impl Outbox {
    /// Adds a message about the present state.
    pub fn add(&mut self, session: SessionId, message: Message<'static>, now: Time) {
        let is_early = self.joins_first && !matches!(message, Message::Member(_));
        if !self.is_muted && !is_early {
            self.waiting.push_back(Waiting { session, message, to: None, hops: None, since: now });
        }
    }

    /// Adds a message for `to` instead of the followed source.
    pub fn add_to(&mut self, session: SessionId, message: Message<'static>, to: SocketAddr, now: Time) {
        self.add_within(session, message, to, None, now);
    }

    /// Adds a message for `to`, optionally a group within this number of hops.
    pub fn add_within(
        &mut self,
        session: SessionId,
        message: Message<'static>,
        to: SocketAddr,
        hops: Option<u8>,
        now: Time,
    ) {
        if !self.is_muted {
            self.waiting.push_back(Waiting { session, message, to: Some(to), hops, since: now });
        }
    }
}

impl Waiting {
    /// Adds the waiting time until `now` to the echo's hold time, so that it is not part of the measured round-trip time.
    pub fn hold_until(&mut self, now: Time) {
        let waited = now.since(self.since);
        let echo = match &mut self.message {
            Message::Report(report) => report.content.echo_mut(),
            Message::Member(member) => &mut member.echo,
            Message::Request(request) => &mut request.echo,
            Message::Window(window) => &mut window.echo,
            Message::Data(_)
            | Message::Announce(_)
            | Message::Status(_)
            | Message::Hashes(_)
            | Message::Refusal(_)
            | Message::Attach(_)
            | Message::Token(_)
            | Message::Invite(_)
            | Message::Tree(_)
            | Message::Verified(_)
            | Message::Order(_)
            | Message::Receipt(_) => return,
        };
        echo.hold = echo.hold + waited;
    }
}
