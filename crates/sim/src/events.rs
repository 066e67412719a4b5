//! Events of a run, in order of time.
//!
//! With [`Options::events`](crate::Options::events), the engine records each event with the simulated time of the affected host
//! or link, even if the engine computes this host or link ahead. [`Engine::take_events`](crate::Engine::take_events) returns the
//! complete events in order of time.

use crate::network::{FlowId, LinkId};
use faircast_aqm::LossCause;
use faircast_core::time::{Rate, Time};

/// A recorded event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// Time of the event.
    pub at: Time,
    /// Kind and details of the event.
    pub what: Happening,
}

/// Cause of a cut of a session's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutCause {
    /// The rate before the event.
    pub before: Rate,
    /// Reason in one word: [`ReportContent::reason`](faircast_core::packet::ReportContent::reason), or `deadline`.
    pub reason: &'static str,
    /// Member number of the receiver whose report caused the cut.
    pub member: Option<u32>,
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Happening {
    /// A receiver joined a session.
    Joined {
        /// The session.
        flow: FlowId,
        /// The receiver's member number.
        member: u32,
    },
    /// A receiver left a session.
    Left {
        /// The session.
        flow: FlowId,
        /// The receiver's member number.
        member: u32,
    },
    /// A source or sender started.
    Started {
        /// The session or unicast flow.
        flow: FlowId,
    },
    /// A session's start-up ended.
    StartUpEnded {
        /// The session.
        flow: FlowId,
        /// The rate after the event.
        rate: Rate,
    },
    /// A source cut its rate, or a sender cut its window.
    Cut {
        /// The session or unicast flow.
        flow: FlowId,
        /// The rate after the event.
        rate: Rate,
        /// Cause of a session's cut; `None` for a unicast flow.
        cause: Option<CutCause>,
    },
    /// The representative or limiting receiver changed.
    Follows {
        /// The session.
        flow: FlowId,
        /// The new representative or limiting receiver; `None` for no receiver.
        member: Option<u32>,
    },
    /// A receiver changed its number of layers.
    Subscribed {
        /// The session.
        flow: FlowId,
        /// The member.
        member: u32,
        /// The highest layer after the event.
        layer: u8,
    },
    /// A transfer is complete: all its packets were acknowledged.
    Transferred {
        /// The flow.
        flow: FlowId,
        /// Number of packets of the transfer.
        packets: u32,
        /// Start time of the transfer.
        began: Time,
    },
    /// A source or sender stopped.
    Stopped {
        /// The session or unicast flow.
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
        /// Cause of the loss.
        cause: LossCause,
    },
}

impl Event {
    /// Returns a sort key. The order of simultaneous events does not depend on the order of their computation.
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
