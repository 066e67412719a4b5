//! Sessions whose members form a tree (schemes with agents). Members report to their parents. Parents repair losses of their
//! children and send them orders, for example to change to another group.
//!
//! The source's data uses the session's multicast tree. Every parent has a multicast tree to its children, with two groups:
//! children that also receive the source's data, and the local group. The members of each group are decided during the run. All
//! branches therefore have gates ([`super::layers`]), and all packets are processed in the order of the calendar.

use super::Island;
use super::build::{Builder, Paths};
use super::bundles::Logged;
use super::check::SimError;
use super::layers::MulticastForwarding;
use super::membership_schedule::MembershipSchedule;
use super::nanos::{NEVER, time};
use super::tree_nodes::{ParentPath, ReceivedPackets, SessionTree, TreeNode};
use crate::calendar::Calendar;
use crate::frame::{Body, Frame};
use crate::network::{SessionExtras, SessionSpec};
use crate::outcome::TreeOutcome;
use crate::routes::{Hop, NONE};
use faircast_aqm::Ecn;
use faircast_core::node::{Cx, Effect, Receiver as _, SourceControl, To};
use faircast_core::packet::{
    self, Arrival, Flags, Layer, Order, OrderContent, Packet, ReceiverId, Report, ReportContent, Seq, Signal,
};
use std::sync::Arc;

/// Relative change of a window at which the trace of the window gets a new value.
const CHANGE: f64 = 0.01;

impl Island {
    /// Delivers a report to a member's parent. Returns `None` when the parent is the source.
    pub(super) fn deliver_to_parent(
        &mut self,
        session: u32,
        epoch: u8,
        now: u64,
        report: &Report,
    ) -> Option<()> {
        let it = &mut self.sessions[session as usize];
        let tree = it.tree.as_mut()?;
        let member = (report.from.get() - 1) as usize;
        let Some(place) = tree.places.get(member).filter(|place| place.epoch == epoch) else {
            return Some(());
        };
        let parent = place.ways[place.way].parent;
        if parent == NONE {
            return None;
        }
        self.run_timers_of(session, parent, now);
        let it = &mut self.sessions[session as usize];
        let tree = it.tree.as_mut()?;
        let node = &mut it.members[parent as usize];
        let place = &mut tree.places[parent as usize];
        if !place.is_there {
            return Some(());
        }
        tree.outcome.reports += 1;
        if let Some(agent) = &mut place.agent {
            agent.on_report(
                report,
                &mut Cx { now: time(now), rng: &mut node.rng, effects: &mut self.effects },
            );
        }
        self.after_call(session, parent, now);
        Some(())
    }

    fn run_timers_of(&mut self, session: u32, member: u32, now: u64) {
        let host = self.sessions[session as usize].members[member as usize].host;
        if self.hosts[host as usize].next <= now {
            self.run_timers(host, now);
        }
    }

    /// Delivers data to a member of a tree.
    #[inline(never)]
    pub(super) fn deliver_in_tree(&mut self, session: u32, number: u32, packet: &Logged) {
        let &Logged { at: now, data, size, marked, .. } = packet;
        self.run_timers_of(session, number, now);
        let it = &mut self.sessions[session as usize];
        let (Some(tree), member) = (&mut it.tree, &it.members[number as usize]) else { return };
        let place = &mut tree.places[number as usize];
        let is_local = data.signal == Signal::Local;
        let is_of_source = !is_local && !data.flags.has(Flags::REPAIR);
        // The member may have left the group while the packet was in transit.
        let is_mine = if is_of_source { place.group == 0 } else { !is_local || place.group != 0 };
        if now < member.join || now >= member.leave || !place.is_there || !is_mine {
            return;
        }
        self.arrivals += 1;
        if member.meter.is_over(now) {
            self.turn_member(session, number, now);
        }
        let it = &mut self.sessions[session as usize];
        let (Some(tree), member) = (&mut it.tree, &mut it.members[number as usize]) else { return };
        let place = &mut tree.places[number as usize];
        let arrival = Arrival { size, marked, ..member.gaps.on_arrival(data.seq) };
        if place.seen.note(data.seq.0) {
            member.count(now, data.seq.0, size);
            member.meter.bytes += u64::from(size);
        } else {
            tree.outcome.duplicates += 1;
        }
        let cx = &mut Cx { now: time(now), rng: &mut member.rng, effects: &mut self.effects };
        match &mut place.agent {
            Some(agent) => agent.on_data(&data, Layer(0), arrival, cx),
            None => member.receiver.on_data(&data, Layer(0), arrival, cx),
        }
        self.after_call(session, number, now);
    }

    /// Delivers an order of a parent to a member.
    pub(super) fn deliver_order(&mut self, session: u32, now: u64, order: &Order) {
        let number = (order.to.get() - 1) as u32;
        self.run_timers_of(session, number, now);
        self.obey(session, number, now, order);
    }

    fn obey(&mut self, session: u32, number: u32, now: u64, order: &Order) {
        let it = &mut self.sessions[session as usize];
        let (Some(tree), member) = (&mut it.tree, &mut it.members[number as usize]) else { return };
        let place = &mut tree.places[number as usize];
        if !place.is_there {
            return;
        }
        let cx = &mut Cx { now: time(now), rng: &mut member.rng, effects: &mut self.effects };
        match &mut place.agent {
            Some(agent) => agent.on_order(order, cx),
            None => member.receiver.on_order(order, cx),
        }
        self.after_call(session, number, now);
    }

    /// Runs a member's timer, and ends its stay if the time has come.
    pub(super) fn tree_timer(&mut self, session: u32, number: u32, now: u64) {
        let it = &mut self.sessions[session as usize];
        let (Some(tree), member) = (&mut it.tree, &mut it.members[number as usize]) else { return };
        let place = &mut tree.places[number as usize];
        let leaves = member.leave <= now && member.leave != NEVER;
        let cx = &mut Cx { now: time(now), rng: &mut member.rng, effects: &mut self.effects };
        if place.is_there {
            match &mut place.agent {
                Some(agent) => agent.on_deadline(cx),
                // A receiver reports that it leaves; an agent leaves without a message.
                None if leaves => member.receiver.on_leave(cx),
                None => member.receiver.on_deadline(cx),
            }
        }
        self.after_call(session, number, now);
        if leaves {
            self.leave_tree(session, number, now);
        }
        let it = &self.sessions[session as usize];
        let (slot, deadline) = (it.members[number as usize].slot, self.node_deadline(session, number));
        self.sessions[session as usize].members[number as usize].deadline = deadline;
        self.slots[slot as usize].deadline = deadline;
    }

    fn node_deadline(&self, session: u32, number: u32) -> u64 {
        let it = &self.sessions[session as usize];
        let member = &it.members[number as usize];
        let Some(place) = it.tree.as_ref().map(|tree| &tree.places[number as usize]) else { return NEVER };
        match &place.agent {
            _ if !place.is_there => member.leave,
            Some(agent) => agent.deadline().as_nanos().min(member.leave),
            None => member.deadline(),
        }
    }

    /// Carries out the actions of a member after a call, and updates its deadline.
    fn after_call(&mut self, session: u32, number: u32, now: u64) {
        if !self.effects.as_slice().is_empty() {
            self.carry_out_in_tree(session, number, now);
        }
        let it = &mut self.sessions[session as usize];
        if let Some(tree) = &mut it.tree {
            let place = &mut tree.places[number as usize];
            if let Some(windows) = place.agent.as_ref().and_then(|agent| agent.windows())
                && windows.slow_starts > place.slow_starts
            {
                place.slow_starts = windows.slow_starts;
                tree.outcome.slow_starts.push((time(now), number));
            }
        }
        let deadline = self.node_deadline(session, number);
        let member = &mut self.sessions[session as usize].members[number as usize];
        if deadline != member.deadline {
            member.deadline = deadline;
            let (host, slot) = (member.host, member.slot);
            self.set_deadline(host, slot, deadline);
        }
    }

    /// Records the sending window of a tree's source after a call of the source.
    pub(super) fn trace_window(&mut self, session: u32, now: u64) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return };
        let Some(windows) = it.source.windows() else { return };
        let before = tree.outcome.trace.last().map_or(f64::INFINITY, |(_, window)| *window);
        if !before.is_finite() || (windows.least - before).abs() > CHANGE * before {
            tree.outcome.trace.push((time(now), windows.least));
        }
    }

    /// Records samples of the windows of a tree.
    pub(super) fn sample_windows(&mut self, session: u32, now: u64) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return };
        if let Some(windows) = it.source.windows() {
            tree.outcome.samples.push((time(now), None, windows));
        }
        if tree.places.len() <= MAX_SAMPLED {
            for (member, place) in (0..).zip(&tree.places) {
                if let Some(windows) = place.agent.as_ref().and_then(|agent| agent.windows()) {
                    tree.outcome.samples.push((time(now), Some(member), windows));
                }
            }
        }
    }

    /// Carries out the actions of a node of a tree; [`NONE`] as `from` means the source.
    #[cold]
    pub(super) fn carry_out_in_tree(&mut self, session: u32, from: u32, now: u64) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain() {
            match effect {
                Effect::Report(report) if from != NONE => self.send_up(session, from, now, report),
                Effect::Attend(group) if from != NONE => self.attend(session, from, now, group),
                Effect::Send { to: To::Child(child), packet } => {
                    self.send_down(session, from, child, now, packet)
                }
                Effect::Send { to: To::Group, packet } => self.send_to_children(session, from, now, packet),
                _ => self.refuse("a node of a tree", "requests an action that is not simulated for it"),
            }
        }
        self.effects = effects;
    }

    fn send_up(&mut self, session: u32, from: u32, now: u64, report: Report) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &it.tree else { return };
        let place = &tree.places[from as usize];
        let (at, generation) = (place.ways[place.way].up, place.epoch);
        let member = &mut it.members[from as usize];
        member.reports += 1;
        let is_ack =
            matches!(report.content, ReportContent::Acknowledged { .. } | ReportContent::Summary { .. });
        member.acknowledgements += u32::from(is_ack);
        let (size, body) = (it.report_size, Body::Report(report));
        let frame =
            Frame { flow: session, at, size, generation, ecn: Ecn::NotEct, marked: false, rank: 0, body };
        self.offer_hop(now, frame);
    }

    fn send_down(&mut self, session: u32, from: u32, child: ReceiverId, now: u64, packet: Packet) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return };
        let member = (child.get() - 1) as u32;
        let Some(place) = tree.places.get(member as usize) else { return };
        let way = place.ways[place.way];
        if way.parent != from || !place.is_there {
            return; // it has another parent meanwhile
        }
        let body = match packet.body {
            packet::Body::Order(order) => {
                tree.outcome.orders += 1;
                Body::Order(order)
            }
            packet::Body::Data(data) => {
                tree.outcome.sent += 1;
                let slot = self.store.keep(&data, packet.layer);
                self.store.hold(slot);
                Body::Direct { slot, member }
            }
            packet::Body::Report(_) => return self.refuse("a parent", "reports to a child"),
        };
        let (at, size) = (way.down, packet.size);
        let frame = Frame {
            flow: session,
            at,
            size,
            generation: 0,
            ecn: it.capable.into(),
            marked: false,
            rank: 0,
            body,
        };
        self.offer_hop(now, frame);
    }

    fn send_to_children(&mut self, session: u32, from: u32, now: u64, packet: Packet) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return };
        let packet::Body::Data(data) = packet.body else {
            return self.refuse("a parent", "sends its children a packet that is not data");
        };
        tree.outcome.sent += 1;
        let at = if from == NONE { tree.places.len() } else { from as usize };
        let branches = tree.scopes[at];
        let layer = Layer(packet.layer.0.min(1));
        let packet = Logged { at: now, data, size: packet.size, layer, marked: false, capable: it.capable };
        self.fan_out(branches, NONE, &packet, &mut None);
    }

    /// Changes the group of a member.
    fn attend(&mut self, session: u32, number: u32, now: u64, group: u8) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return };
        let place = &mut tree.places[number as usize];
        if !place.is_there || place.group == group {
            return;
        }
        release(place, &mut self.gates, now, &mut self.calendar);
        place.group = group.min(1);
        ask(place, &mut self.gates, now, &mut self.calendar);
        tree.outcome.changes.push((time(now), number, group));
    }

    /// Adds a late or returning member to the tree. Returns `false` if the session has no tree.
    pub(super) fn join_tree(&mut self, session: u32, number: u32, now: u64) -> bool {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return false };
        let scheme = Arc::clone(&it.scheme);
        if tree.places[number as usize].is_there {
            return true;
        }
        tree.places[number as usize].is_there = true;
        let (parents, below) = (tree.parents_there(), tree.below(number));
        let is_mine = |child: &&u32| {
            let child = &tree.places[**child as usize];
            child.is_there && child.ways[child.nearest(&parents)].parent == number
        };
        let expected = below.iter().filter(is_mine).count();
        let place = &mut tree.places[number as usize];
        place.group = 0;
        place.seen = ReceivedPackets::default();
        place.way = place.nearest(&parents);
        ask(place, &mut self.gates, now, &mut self.calendar);
        if place.agent.is_some() {
            let me = ReceiverId::new(u64::from(number) + 1).expect("members are numbered from one");
            place.agent = scheme.agents().map(|agents| agents.relay(me));
            place.slow_starts = 0;
            if let Some(agent) = &mut place.agent {
                agent.control(SourceControl::Members(expected), time(now));
            }
            below.into_iter().for_each(|child| self.reparent(session, child, now));
        }
        true
    }

    /// Removes a member from the tree. Its children become children of its parent.
    fn leave_tree(&mut self, session: u32, number: u32, now: u64) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return };
        let place = &mut tree.places[number as usize];
        if !place.is_there {
            return;
        }
        release(place, &mut self.gates, now, &mut self.calendar);
        place.is_there = false;
        let parent = place.ways[place.way].parent;
        let is_agent = place.agent.is_some();
        // An agent's last messages do not reach its children, because they have already dropped the agent. If parents wait for
        // all of their children, a leaving receiver must report in its last message that it leaves.
        if is_agent || it.scheme.agents().is_none_or(|agents| agents.speaks_down()) {
            place.epoch = place.epoch.wrapping_add(1);
        }
        let below = tree.below(number);
        let me = ReceiverId::new(u64::from(number) + 1).expect("members are numbered from one");
        let scheme = Arc::clone(&it.scheme);
        it.members[number as usize].leave(&scheme);
        if is_agent {
            self.tell_parent(session, parent, SourceControl::Forget(me), now);
            below.into_iter().for_each(|child| self.reparent(session, child, now));
        }
    }

    fn tell_parent(&mut self, session: u32, parent: u32, what: SourceControl, now: u64) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return };
        match tree.places.get_mut(parent as usize) {
            None => it.source.control(what, time(now)),
            Some(place) => {
                if let Some(agent) = &mut place.agent {
                    agent.control(what, time(now));
                }
            }
        }
    }

    /// Changes a member's parent if another ancestor is now the nearest one present. The member is notified and joins the new
    /// parent.
    fn reparent(&mut self, session: u32, number: u32, now: u64) {
        let it = &mut self.sessions[session as usize];
        let Some(tree) = &mut it.tree else { return };
        let parents = tree.parents_there();
        let place = &mut tree.places[number as usize];
        let (before, way) = (place.ways[place.way].parent, place.nearest(&parents));
        if way == place.way || !place.is_there {
            place.way = way;
            return;
        }
        let me = ReceiverId::new(u64::from(number) + 1).expect("members are numbered from one");
        release(place, &mut self.gates, now, &mut self.calendar);
        (place.way, place.group) = (way, 0);
        ask(place, &mut self.gates, now, &mut self.calendar);
        place.epoch = place.epoch.wrapping_add(1);
        self.tell_parent(session, before, SourceControl::Forget(me), now);
        let content = OrderContent::Join { group: 0, from: Seq(u64::MAX) };
        self.obey(session, number, now, &Order { to: me, number: 0, content });
    }
}

/// Requests the layers of a member's group at its gates.
fn ask(place: &TreeNode, gates: &mut MulticastForwarding, now: u64, calendar: &mut Calendar) {
    place.gates().into_iter().filter(|gate| *gate != NONE).for_each(|gate| gates.ask(gate, now, calendar));
}

fn release(place: &TreeNode, gates: &mut MulticastForwarding, now: u64, calendar: &mut Calendar) {
    let mine = place.gates().into_iter().filter(|gate| *gate != NONE);
    mine.for_each(|gate| gates.release(gate, now, calendar));
}

/// Largest number of members for which the windows of agents are sampled.
const MAX_SAMPLED: usize = 1000;

impl Builder<'_> {
    /// Creates the tree of a session, and the paths from each member to its parent.
    pub(super) fn put_up_tree(
        &mut self,
        paths: &mut Paths<'_>,
        flow: usize,
        (spec, rare): (&SessionSpec, &SessionExtras),
        stays: &MembershipSchedule,
        root: (u32, u32),
    ) -> Result<Option<Box<SessionTree>>, SimError> {
        let Some(agents) = spec.scheme.agents() else {
            return if rare.parents.is_empty() {
                Ok(None)
            } else {
                Err(SimError::NoAgents { flow, scheme: spec.scheme.name() })
            };
        };
        if rare.parents.is_empty() && !agents.speaks_down() {
            return Ok(None);
        }
        let count = spec.members.len();
        let parents: Vec<u32> = match rare.parents.len() {
            0 => vec![NONE; count],
            _ => rare.parents.iter().map(|parent| parent.unwrap_or(NONE)).collect(),
        };
        check_tree(flow, count, &parents)?;
        let session = self.sessions.len() as u32;
        let (join, leave) = (spec.join_latency.as_nanos(), spec.leave_latency.as_nanos());
        self.gates.build(&mut self.branches, root.0, 1, join, leave);
        let mut families: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (child, parent) in (0..).zip(&parents) {
            if let Some(family) = families.get_mut(*parent as usize) {
                family.push(child);
            }
        }
        let mut places = Vec::with_capacity(count);
        for (member, gate) in (0..count).zip(self.last_hops(root.0, count)) {
            let is_there = stays.of_member(member).iter().any(|&(join, leave)| join == 0 && leave > 0);
            let ways = self.ways_up(paths, flow, spec, stays, &parents, member)?;
            let children = std::mem::take(&mut families[member]);
            places.push(TreeNode {
                ways,
                way: 0,
                epoch: 0,
                gate,
                group: 0,
                is_there,
                agent: None,
                children,
                seen: ReceivedPackets::default(),
                slow_starts: 0,
            });
        }
        let scopes = self.put_up_scopes(paths, flow, spec, session, &mut places)?;
        for (member, place) in (0u64..).zip(&mut places) {
            if !place.children.is_empty() {
                let me = ReceiverId::new(member + 1).expect("members are numbered from one");
                let mut agent = agents.relay(me);
                let there = place
                    .children
                    .iter()
                    .filter(|child| stays.of_member(**child as usize).iter().any(|&(join, _)| join == 0));
                let there = there.count();
                agent.control(SourceControl::Members(there), time(0));
                place.agent = Some(agent);
            }
        }
        let mut tree = SessionTree { places, scopes, outcome: TreeOutcome::default() };
        let there = tree.parents_there();
        for place in &mut tree.places {
            place.way = place.nearest(&there);
            if place.is_there {
                let mine = place.gates().into_iter().filter(|gate| *gate != NONE);
                mine.for_each(|gate| self.gates.open_at_start(gate));
            }
        }
        for member in 0..count {
            for &(join, _) in stays.of_member(member).iter().filter(|(join, _)| *join > 0) {
                self.gates.add_entrance(session, member as u32, join, &mut self.calendar);
            }
        }
        Ok(Some(Box::new(tree)))
    }

    /// Returns for each member the gate of its last branch. Searches only the branches from number `first` upwards.
    fn last_hops(&self, first: u32, members: usize) -> Vec<u32> {
        let mut gates = vec![NONE; members];
        for branch in &self.branches[first as usize..] {
            if let Some(gate) = gates.get_mut(branch.member as usize) {
                *gate = branch.gates;
            }
        }
        gates
    }

    /// Returns the path to a member's parent, followed by paths to further ancestors as long as the preceding ones may be absent.
    fn ways_up(
        &mut self,
        paths: &mut Paths<'_>,
        flow: usize,
        spec: &SessionSpec,
        stays: &MembershipSchedule,
        parents: &[u32],
        member: usize,
    ) -> Result<Vec<ParentPath>, SimError> {
        let (mut ways, mut next) = (Vec::new(), parents[member]);
        let here = spec.members[member].node.0;
        loop {
            let there = spec.members.get(next as usize).map_or(spec.source.0, |parent| parent.node.0);
            let (up, down) = (self.way(paths, flow, here, there)?, self.way(paths, flow, there, here)?);
            ways.push(ParentPath { parent: next, up, down, gates: NONE });
            let Some(&further) = parents.get(next as usize) else { return Ok(ways) };
            if stays.of_member(next as usize) == [(0, NEVER)] {
                return Ok(ways);
            }
            next = further;
        }
    }

    /// Creates the multicast tree from each parent to all members that may become its children.
    fn put_up_scopes(
        &mut self,
        paths: &mut Paths<'_>,
        flow: usize,
        spec: &SessionSpec,
        session: u32,
        places: &mut [TreeNode],
    ) -> Result<Vec<(u32, u32)>, SimError> {
        let count = places.len();
        let mut of_parent: Vec<Vec<u32>> = vec![Vec::new(); count + 1];
        for (member, place) in (0..).zip(places.iter()) {
            for way in &place.ways {
                of_parent[(way.parent as usize).min(count)].push(member);
            }
        }
        let mut scopes = vec![(0, 0); count + 1];
        for (parent, children) in of_parent.iter().enumerate().filter(|(_, children)| !children.is_empty()) {
            let node = spec.members.get(parent).map_or(spec.source, |member| member.node);
            let nodes: Vec<_> = children.iter().map(|child| spec.members[*child as usize].node).collect();
            let root = paths
                .trees
                .add(&mut paths.routes, session, node, &nodes, &mut self.branches)
                .map_err(|child| SimError::NoWay { flow, from: node.0, to: nodes[child].0 })?;
            let (join, leave) = (spec.join_latency.as_nanos(), spec.leave_latency.as_nanos());
            self.gates.build(&mut self.branches, root.0, 2, join, leave);
            for branch in &mut self.branches[root.0 as usize..] {
                if branch.member != NONE {
                    branch.member = children[branch.member as usize];
                    let parent = if parent == count { NONE } else { parent as u32 };
                    let ways = &mut places[branch.member as usize].ways;
                    if let Some(way) = ways.iter_mut().find(|way| way.parent == parent) {
                        way.gates = branch.gates;
                    }
                }
            }
            scopes[parent] = root;
        }
        Ok(scopes)
    }

    /// Returns the hosts of all parents, and the first hops from parents to their children.
    pub(super) fn of_trees(&self) -> impl Iterator<Item = (u32, Hop)> {
        self.sessions.iter().flat_map(move |session| {
            let places = session.tree.iter().flat_map(|tree| &tree.places);
            let ways = places.flat_map(|place| &place.ways);
            ways.flat_map(move |way| {
                let member = session.members.get(way.parent as usize);
                let host = member.map_or(session.host, |member| member.host);
                [(host, self.hops[way.down as usize])]
            })
        })
    }

    /// Returns the branches that start at parents, and the hosts of the parents.
    pub(super) fn scopes(&self) -> impl Iterator<Item = (u32, u32)> {
        self.sessions.iter().flat_map(|session| {
            let scopes = session.tree.iter().flat_map(|tree| tree.scopes.iter().enumerate());
            scopes.flat_map(|(parent, scope)| {
                let host = session.members.get(parent).map_or(session.host, |member| member.host);
                (scope.0..scope.1).map(move |branch| (host, branch))
            })
        })
    }
}

/// Checks that every member has a path to the source in the tree.
fn check_tree(flow: usize, members: usize, parents: &[u32]) -> Result<(), SimError> {
    if parents.len() != members {
        return Err(SimError::BadTree {
            flow,
            member: parents.len().min(members) as u32,
            why: "it has no parent",
        });
    }
    for member in 0..members {
        let (mut next, mut steps) = (parents[member], 0);
        while next != NONE {
            let member = member as u32;
            steps += 1;
            if steps > members {
                return Err(SimError::BadTree { flow, member, why: "it is its own ancestor" });
            }
            next = *parents.get(next as usize).ok_or(SimError::BadTree {
                flow,
                member,
                why: "its parent is not a member",
            })?;
        }
    }
    Ok(())
}
