//! Towards an agent's own parent: a receiver's delivery that keeps no content, and speaks for the children.

use super::super::Shared;
use crate::config::Durability;
use crate::error::Error;
use crate::object::Geometry;
use crate::receiver::block_sink::{Done, Ending};
use crate::receiver::delivery::{Delivery, Progressed, SymbolCounts};
use crate::receiver::trust::Trust;
use faircast_core::packet::SessionId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{Announce, DataPacket, Status, TreeNode};

/// An agent with nobody below waits so long for somebody before it says that it needs nothing.
const LINGER: Span = Span::from_secs(2);

/// What an agent makes of a session's content: nothing.
pub(crate) struct AgentAbove {
    shared: Shared,
    geometry: Geometry,
    since: Option<Time>,
    now: Time,
    symbols: u64,
    wanted: Vec<(u32, u16)>,
}

impl AgentAbove {
    pub(crate) fn new(
        shared: Shared,
        session: SessionId,
        announce: Announce,
        geometry: Geometry,
    ) -> AgentAbove {
        {
            let mut passing = shared.lock();
            passing.announce = Some((session, announce));
            passing.blocks = geometry.blocks();
        }
        AgentAbove { shared, geometry, since: None, now: Time::ZERO, symbols: 0, wanted: Vec::new() }
    }

    fn at(&mut self, now: Time) {
        self.now = now;
        self.since.get_or_insert(now);
    }

    fn receivers_below(&self) -> super::Standing {
        self.shared.with_agent(|agent| agent.standing()).unwrap_or_default()
    }
}

impl Delivery for AgentAbove {
    fn on_symbol(&mut self, packet: &DataPacket<'_>, now: Time, _: &mut Rng) -> Result<Progressed, Error> {
        self.at(now);
        self.symbols += 1;
        let block = packet.data.payload.block;
        let mut passing = self.shared.lock();
        if passing.blocks.is_none_or(|blocks| block < blocks) && block < u32::MAX {
            passing.passed = passing.passed.max(block);
        }
        Ok(Progressed::No)
    }

    fn on_status(&mut self, status: &Status, now: Time, _: &mut Rng) {
        self.at(now);
        let mut passing = self.shared.lock();
        passing.passed = passing.passed.max(status.complete_to);
        passing.blocks = status.blocks.or(passing.blocks);
    }

    fn on_announce(&mut self, announce: &Announce) {
        if let Some((_, known)) = &mut self.shared.lock().announce {
            *known = *announce;
        }
    }

    /// Children follow what their source begins anew by themselves.
    fn restart(&mut self, _: Time, _: Option<Trust>) -> Result<(), Error> {
        Err(Error::SourceRestarted)
    }

    /// An agent goes on for those who come late, until its source ends.
    fn is_complete(&self) -> bool {
        false
    }

    fn finish(&mut self, _: u32, _: [u8; 32], _: Durability, _: Time) -> Result<Ending, Error> {
        Ok(Ending::Done(Done::default()))
    }

    fn deadline(&self) -> Time {
        let due = |agent: &mut super::Agent| agent.serving.as_ref().map(|serving| serving.needs.deadline());
        self.shared.with_agent(due).flatten().unwrap_or(Time::NEVER)
    }

    fn due(&mut self, now: Time, _: &mut Rng) -> &[(u32, u16)] {
        self.at(now);
        let wanted = &mut self.wanted;
        wanted.clear();
        self.shared.with_agent(|agent| {
            if let Some(serving) = &mut agent.serving {
                serving.needs.take_due(now, wanted);
            }
        });
        &self.wanted
    }

    fn receivers(&self) -> Option<(u32, u32)> {
        let (standing, told) = (self.receivers_below(), |count: u64| count.min(u64::from(u32::MAX)) as u32);
        Some((told(standing.receivers), told(standing.done)))
    }

    fn tree(&self) -> Vec<TreeNode> {
        let relays = self.shared.with_agent(|agent| agent.relays()).unwrap_or_default();
        relays.iter().take(crate::event::RelayBelow::MOST).map(crate::event::RelayBelow::node).collect()
    }

    fn needs_nothing(&self) -> bool {
        let standing = self.receivers_below();
        let nobody = standing.receivers == 0 && self.now.since(self.since.unwrap_or(self.now)) < LINGER;
        let passing = self.shared.lock();
        let all_passed = passing.blocks.is_some_and(|blocks| passing.passed >= blocks);
        all_passed && standing.unfinished == 0 && !nobody
    }

    fn missing(&self) -> u32 {
        let passing = self.shared.lock();
        passing.blocks.map_or(u32::MAX, |blocks| blocks.saturating_sub(passing.passed))
    }

    fn gathered_bytes(&self) -> u64 {
        self.symbols * u64::from(self.geometry.symbol_size)
    }

    fn verified_bytes(&self) -> u64 {
        0 // it verifies nothing
    }

    fn content_bytes(&self) -> Option<u64> {
        let manifest = u64::from(self.geometry.manifest_len);
        self.geometry.stream_len.map(|len| len.saturating_sub(manifest))
    }

    fn symbols(&self) -> SymbolCounts {
        SymbolCounts { received: self.symbols, needed: self.symbols, decoded: 0 }
    }
}
