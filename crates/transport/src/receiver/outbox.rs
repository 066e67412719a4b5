//! Messages of a receiver that wait to be sent.

use faircast_core::packet::SessionId;
use faircast_core::time::Time;
use faircast_wire::Message;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Datagrams that wait to be sent to the source.
#[derive(Default)]
pub(super) struct Outbox {
    pub waiting: VecDeque<Waiting>,
    /// The source receives nothing: nor does the network between.
    pub is_muted: bool,
    /// The source has to receive a membership message before any other: it refuses all others of a host that has not joined.
    pub joins_first: bool,
}

/// A message that is sent when all received packets are processed, which may take a while.
pub(super) struct Waiting {
    pub session: SessionId,
    pub message: Message<'static>,
    /// `None`: to the source that is followed.
    pub to: Option<SocketAddr>,
    /// The hop limit of a message to a group.
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

    /// Adds a message to another destination than the source that is followed.
    pub fn add_to(&mut self, session: SessionId, message: Message<'static>, to: SocketAddr, now: Time) {
        self.add_within(session, message, to, None, now);
    }

    /// Adds a message, optionally to a group within this number of hops.
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
    /// Holds until now: the time that it waited is not part of a round trip.
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
