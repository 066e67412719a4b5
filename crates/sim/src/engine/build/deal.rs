//! Distribution of a network among the islands of a plan.
//!
//! Links, hosts, flows, hops and branches have the same numbers in all islands. An island has the state of its own links and
//! agents, and small places for the others. Members are numbered by island.

use super::{Builder, Place, Precomputed, Stream, stream};
use crate::calendar::{Calendar, Entry};
use crate::engine::Island;
use crate::engine::agents::{Agent, SenderAgent, SenderKind, SenderRest, SessionAgent, SinkAgent};
use crate::engine::check::SimError;
use crate::engine::islands::plan::Plan;
use crate::engine::links::SimLink;
use crate::engine::nanos::NEVER;
use crate::engine::relays::SessionSource;
use crate::network::PacketTransform;
use crate::routes::NONE;
use faircast_topology::FREE;
use std::mem::{replace, take};
use std::sync::Arc;

impl Builder<'_> {
    /// Builds the islands of this plan.
    pub(in crate::engine) fn islands(
        mut self,
        plan: &Plan,
        mut passage: Option<Box<dyn PacketTransform>>,
    ) -> Result<Vec<Island>, SimError> {
        let (network, seed) = (self.network, self.network.seed);
        let mut links = self.links();
        let structure = self.structure(&links, plan);
        let bundles = self.decide_what_is_eager(&structure, &mut links);
        let mut inboxes = self.put_up_inboxes(&structure, &links);
        let random = |node| stream(seed, Stream::Router, u64::from(node), 0);
        let routers: Vec<_> = (0..plan.count).map(|_| self.put_up_routers(random)).collect();
        let of_link = routers[0].1.iter().zip(0..);
        let routed = || of_link.clone().filter(|(router, _)| **router != NONE).map(|(_, link)| link);
        routed().for_each(|link| links[link as usize].filter());
        let feeders = self.feeders(&structure, &links, routed(), &mut inboxes);
        drop(structure);
        let mut all = Precomputed { links, bundles, inboxes, feeders };
        let mut entries = Vec::new();
        while let Some(entry) = self.calendar.pop(NEVER) {
            entries.push(entry);
        }
        let mut islands = Vec::with_capacity(plan.count);
        for (me, routers) in (0..).zip(routers) {
            let mut part = self.part(plan, me, &entries);
            let mut precomputed = all.part(plan, me);
            let border = part.put_up_border(plan, me, &mut precomputed.bundles);
            if !plan.is_whole() {
                part.number_members(plan, me);
            }
            let mut island = part.finish(Place { plan, me, border }, precomputed, routers, passage.take());
            if me == 0 {
                island.note_memberships(network);
            }
            island.coordinate(network)?;
            islands.push(island);
        }
        Ok(islands)
    }

    /// Takes the part of an island. Called once for each island, in order.
    fn part(&mut self, plan: &Plan, me: u32, entries: &[Entry]) -> Self {
        let is_last = plan.is_last(me);
        let has_host = |host: u32| plan.of_node(host) == me;
        let mut part = Builder {
            network: self.network,
            options: self.options,
            hops: share(&mut self.hops, is_last),
            branches: share(&mut self.branches, is_last),
            gates: share(&mut self.gates, is_last),
            calendar: Calendar::default(),
            sessions: deal(&mut self.sessions, is_last, |it| it.part(has_host)),
            senders: deal(&mut self.senders, is_last, |it| it.part(has_host)),
            sinks: deal(&mut self.sinks, is_last, |it| it.part(has_host)),
            agents: self.agents.extract_if(.., |(node, _)| has_host(*node)).collect(),
            seeing: share(&mut self.seeing, is_last),
        };
        for entry in entries {
            let (session, _) = part.gates.entrance(entry.number());
            if has_host(part.sessions[session as usize].host) {
                part.calendar.push(*entry);
            }
        }
        part
    }

    /// Replaces the numbers of members by those of their places in this island.
    fn number_members(&mut self, plan: &Plan, me: u32) {
        // Places of the members of all sessions in this island, and the first one of each session.
        let mut first = Vec::with_capacity(self.sessions.len());
        let mut places = Vec::new();
        for session in &self.sessions {
            first.push(places.len());
            let mut count = 0;
            places.extend(self.network.members(session.flow).iter().map(|member| {
                let is_mine = plan.of_node(member.node.0) == me;
                count += u32::from(is_mine);
                if is_mine { count - 1 } else { NONE }
            }));
        }
        let place = |session: u32, member: u32| places[first[session as usize] + member as usize];
        for branch in self.branches.iter_mut().filter(|branch| branch.member != NONE) {
            branch.member = place(branch.session, branch.member);
        }
        for (_, agent) in &mut self.agents {
            if let Agent::Member { session, member } = agent {
                *member = place(*session, *member);
            }
        }
        for session in &mut self.sessions {
            if let Some(relay) = session.source.relay() {
                relay.above.1 = place(relay.above.0, relay.above.1);
            }
        }
    }
}

impl Precomputed {
    /// Takes the part of an island. Called once for each island, in order.
    fn part(&mut self, plan: &Plan, me: u32) -> Precomputed {
        let is_last = plan.is_last(me);
        let has_link = |link: &u32| plan.of_link(*link) == me;
        let links = if is_last {
            take(&mut self.links)
        } else {
            let (all, free) = ((0..).zip(&mut self.links), Arc::new(FREE));
            let elsewhere = || SimLink::elsewhere(&free);
            all.map(|(link, it)| if has_link(&link) { replace(it, elsewhere()) } else { elsewhere() })
                .collect()
        };
        Precomputed {
            links,
            bundles: share(&mut self.bundles, is_last),
            inboxes: share(&mut self.inboxes, is_last),
            feeders: share(&mut self.feeders, is_last),
        }
    }
}

/// Returns a copy for an island; the last island gets the original.
fn share<T: Clone + Default>(it: &mut T, is_last: bool) -> T {
    if is_last { take(it) } else { it.clone() }
}

/// Returns the parts of all agents for an island; the last island gets what is left.
fn deal<T>(all: &mut Vec<T>, is_last: bool, part: impl FnMut(&mut T) -> T) -> Vec<T> {
    if is_last { take(all) } else { all.iter_mut().map(part).collect() }
}

impl SessionAgent {
    /// Takes the source and the members on these hosts. The rest is in other islands.
    fn part(&mut self, has_host: impl Fn(u32) -> bool) -> SessionAgent {
        let members = self.members.extract_if(.., |member| has_host(member.host)).collect();
        self.members.shrink_to_fit();
        let elsewhere = SessionAgent { members: Vec::new(), ..self.elsewhere() };
        if !has_host(self.host) {
            return SessionAgent { members, ..elsewhere };
        }
        let rest = take(&mut self.members);
        let mine = replace(self, SessionAgent { members: rest, ..elsewhere });
        SessionAgent { members, ..mine }
    }

    /// Returns the session as islands see it that do not have its source.
    fn elsewhere(&self) -> SessionAgent {
        SessionAgent {
            source: SessionSource::Elsewhere,
            rng: self.rng.clone(),
            scheme: Arc::clone(&self.scheme),
            talks: Box::default(),
            present: Box::default(),
            tree: None,
            members: Vec::new(),
            ..*self
        }
    }
}

impl SenderAgent {
    /// Takes the sender if it is on one of these hosts.
    fn part(&mut self, has_host: impl Fn(u32) -> bool) -> SenderAgent {
        let elsewhere = SenderAgent {
            kind: SenderKind::Shared,
            rng: self.rng.clone(),
            rest: Box::new(SenderRest { ..*self.rest }),
            ..*self
        };
        if has_host(self.host) { replace(self, elsewhere) } else { elsewhere }
    }
}

impl SinkAgent {
    /// Takes the sink if it is on one of these hosts.
    fn part(&mut self, has_host: impl Fn(u32) -> bool) -> SinkAgent {
        let elsewhere = SinkAgent { sink: None, rng: self.rng.clone(), delays: None, ..*self };
        if has_host(self.host) { replace(self, elsewhere) } else { elsewhere }
    }
}
