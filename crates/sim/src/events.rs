//! Events of a run, in order.
//!
//! With [`Options::events`](crate::Options::events), the engine writes down what happens by the clock of whom it happens to, also
//! where it computes ahead. [`Engine::take_events`](crate::Engine::take_events) gives what is complete, in order of time.

use crate::network::{FlowId, LinkId};
use faircast_aqm::LossCause;
use faircast_core::time::{Rate, Time};

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// When.
    pub at: Time,
    /// What.
    pub what: Happening,
}

/// The event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Happening {
    /// A receiver of a session joined.
    Joined {
        /// The session.
        flow: FlowId,
        /// Its number among the members.
        member: u32,
    },
    /// A receiver of a session left.
    Left {
        /// The session.
        flow: FlowId,
        /// Its number among the members.
        member: u32,
    },
    /// A source or sender started.
    Started {
        /// Which.
        flow: FlowId,
    },
    /// A session's start-up is over.
    StartUpEnded {
        /// The session.
        flow: FlowId,
        /// The rate from then on.
        rate: Rate,
    },
    /// A source cut its rate or a sender its window.
    Cut {
        /// Which.
        flow: FlowId,
        /// The rate from then on.
        rate: Rate,
    },
    /// The representative or limiting receiver is another one.
    Follows {
        /// The session.
        flow: FlowId,
        /// The member; `None` without one.
        member: Option<u32>,
    },
    /// A receiver takes more layers or fewer.
    Subscribed {
        /// The session.
        flow: FlowId,
        /// The member.
        member: u32,
        /// The highest layer from then on.
        layer: u8,
    },
    /// A transfer is complete: all its packets are acknowledged.
    Transferred {
        /// The flow.
        flow: FlowId,
        /// How many packets it had.
        packets: u32,
        /// When it began.
        began: Time,
    },
    /// A source or sender stopped.
    Stopped {
        /// Which.
        flow: FlowId,
    },
    /// A queue set a packet's congestion mark.
    Marked {
        /// The link.
        link: LinkId,
        /// Flow of the packet.
        flow: FlowId,
    },
    /// A link lost a packet.
    Lost {
        /// The link.
        link: LinkId,
        /// Flow of the packet.
        flow: FlowId,
        /// Where and why.
        cause: LossCause,
    },
}

impl Event {
    /// Events of one moment have an order that does not depend on which was computed first.
    pub(crate) fn order(&self) -> (Time, u8, u32, u32) {
        use Happening as H;
        let (kind, flow, other) = match self.what {
            H::Joined { flow, member } => (0, flow, member),
            H::Left { flow, member } => (1, flow, member),
            H::Started { flow } => (2, flow, 0),
            H::StartUpEnded { flow, .. } => (3, flow, 0),
            H::Cut { flow, .. } => (4, flow, 0),
            H::Follows { flow, .. } => (5, flow, 0),
            H::Subscribed { flow, member, .. } => (6, flow, member),
            H::Transferred { flow, .. } => (7, flow, 0),
            H::Stopped { flow } => (8, flow, 0),
            H::Marked { link, flow } => (9, flow, link.0),
            H::Lost { link, flow, .. } => (10, flow, link.0),
        };
        (self.at, kind, flow.0, other)
    }
}
