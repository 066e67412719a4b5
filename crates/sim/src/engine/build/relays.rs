//! Construction of the relays of a network.

use super::super::check::SimError;
use super::super::relays::{RelayAgent, SessionSource};
use super::Builder;
use crate::clock::Clock;
use crate::network::Flow;
use faircast_core::packet::ReceiverId;

impl Builder<'_> {
    /// Turns members that are sources of other sessions into relays.
    pub(in crate::engine) fn put_up_relays(&mut self) -> Result<(), SimError> {
        for (above, member, below, spec) in &self.network.relays {
            let (Some(up), Some(down)) = (self.session_of(above.0), self.session_of(below.0)) else {
                return Err(SimError::NoRelay {
                    flow: below.0,
                    member: *member,
                    why: "one of the two flows is not a session",
                });
            };
            let Some(Flow::Session(upper, _)) = self.network.flows.get(above.0 as usize) else { continue };
            let node = upper.members.get(*member as usize).map(|member| member.node.0);
            if node != Some(self.sessions[down].host) || up == down {
                let why = "the downstream session must start at the node of this member";
                return Err(SimError::NoRelay { flow: below.0, member: *member, why });
            }
            if self.network.clock(below.0 as usize) != Clock::default() {
                let why = "relays cannot have clock errors";
                return Err(SimError::NoRelay { flow: below.0, member: *member, why });
            }
            let me = ReceiverId::new(u64::from(*member) + 1).expect("members are numbered from one");
            let agent = RelayAgent { relay: spec.relay(me), above: (up as u32, *member) };
            self.sessions[down].source = SessionSource::Relay(agent);
            let extra = &mut self.sessions[up].members[*member as usize].extra;
            extra.get_or_insert_default().relay = Some(down as u32);
        }
        Ok(())
    }

    fn session_of(&self, flow: u32) -> Option<usize> {
        self.sessions.iter().position(|session| session.flow == flow)
    }
}
