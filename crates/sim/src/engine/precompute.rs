//! Detection of work that may be computed ahead of the calendar or in batches, from the structure of the network.

use super::build::Builder;
use super::bundles::Bundle;
use super::inboxes::Inboxes;
use super::is_eager;
use super::islands::plan::Plan;
use super::links::SimLink;
use super::nanos::NEVER;
use crate::routes::{ArrivalProcessing, Branch, Hop, NONE};
use faircast_topology::Edge;
use std::collections::BTreeMap;

/// Feeders of a link or node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feeder {
    Nobody,
    Host,
    Link(u32),
    Many,
}

impl Feeder {
    fn add(&mut self, other: Feeder) {
        *self = match *self {
            Feeder::Nobody => other,
            known if known == other => known,
            _ => Feeder::Many,
        };
    }
}

/// The way of a host's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WayOut {
    Nothing,
    /// All packets leave over this link and enter this inbox.
    One {
        link: u32,
        inbox: u32,
    },
    Several,
}

impl WayOut {
    /// Adds packets that leave over a link and then enter an inbox, if any.
    fn add(&mut self, link: u32, inbox: Option<u32>) {
        *self = match (*self, inbox) {
            (WayOut::Nothing, Some(inbox)) => WayOut::One { link, inbox },
            (way, Some(inbox)) if way == (WayOut::One { link, inbox }) => way,
            _ => WayOut::Several,
        };
    }
}

/// Structure of the network around each link and node.
pub(super) struct Structure<'a> {
    plan: &'a Plan,
    feeders: Vec<Feeder>,
    /// By node: the only link over which its agents receive packets.
    only_way_in: Vec<Feeder>,
    has_senders: Vec<bool>,
    /// By link: whether packets must enter the link in the order of the calendar, because the link queues packets or the scenario
    /// changes the link.
    in_order: Vec<bool>,
    /// By link: whether packets go from the link to another island.
    crosses: Vec<bool>,
    /// By link: whether the link queues packets and does not change. Each departure from such a link is an event, at which the
    /// arrival of the packet is known.
    holds: Vec<bool>,
}

/// Smallest number of last hops that justifies a log.
const MIN_BUNDLE: u32 = 4;
/// Smallest lookahead that justifies a log or an inbox, nanoseconds.
const MIN_LOOKAHEAD: u64 = 100_000;

impl Builder<'_> {
    /// Returns the feeder of each link, and the links over which the agents of each host receive packets.
    pub(super) fn structure<'p>(&self, links: &[SimLink], plan: &'p Plan) -> Structure<'p> {
        let nodes = self.network.topology.nodes() as usize;
        let mut feeders = vec![Feeder::Nobody; self.network.topology.edges().len()];
        let mut only_way_in = vec![Feeder::Nobody; nodes];
        let mut has_senders = vec![false; nodes];
        let mut in_order: Vec<bool> = links.iter().map(|it| it.link.queues()).collect();
        for hop in &self.hops {
            match hop.next {
                NONE => only_way_in[self.end(hop.link) as usize].add(Feeder::Link(hop.link)),
                next => feeders[self.hops[next as usize].link as usize].add(Feeder::Link(hop.link)),
            }
        }
        for branch in &self.branches {
            if branch.member != NONE {
                only_way_in[self.end(branch.link) as usize].add(Feeder::Link(branch.link));
            }
            for child in branch.children.0..branch.children.1 {
                feeders[self.branches[child as usize].link as usize].add(Feeder::Link(branch.link));
            }
        }
        for session in &self.sessions {
            has_senders[session.host as usize] = true;
            for branch in session.root.0..session.root.1 {
                feeders[self.branches[branch as usize].link as usize].add(Feeder::Host);
            }
            for member in &session.members {
                feeders[self.hops[member.hop as usize].link as usize].add(Feeder::Host);
            }
        }
        for (sender, sink) in self.senders.iter().zip(&self.sinks) {
            has_senders[sender.host as usize] = true;
            feeders[self.hops[sender.hop as usize].link as usize].add(Feeder::Host);
            if sink.hop != NONE {
                feeders[self.hops[sink.hop as usize].link as usize].add(Feeder::Host);
            }
        }
        for (host, hop) in self.of_trees() {
            has_senders[host as usize] = true;
            feeders[hop.link as usize].add(Feeder::Host);
        }
        for (_, branch) in self.scopes() {
            feeders[self.branches[branch as usize].link as usize].add(Feeder::Host);
        }
        let mut holds = in_order.clone();
        for (_, link, _) in &self.network.changes {
            in_order[link.0 as usize] = true;
            holds[link.0 as usize] = false;
        }
        let crosses = self.crosses(plan);
        Structure { plan, feeders, only_way_in, has_senders, in_order, crosses, holds }
    }

    pub(super) fn decide_what_is_eager(
        &mut self,
        structure: &Structure<'_>,
        links: &mut [SimLink],
    ) -> Vec<Bundle> {
        if !is_eager(self.options.mode) {
            return Vec::new();
        }
        let plan = structure.plan;
        // A host may run ahead of the calendar if all its packets arrive over one link of its island, and no other node feeds the
        // links that the host feeds.
        let from_island =
            |way: &Feeder, island| matches!(way, Feeder::Link(link) if plan.of_link(*link) == island);
        let ways = (0..).zip(&structure.only_way_in);
        let mut may_run_ahead: Vec<bool> =
            ways.map(|(node, way)| from_island(way, plan.of_node(node))).collect();
        // By node: the least delay of its outgoing links. Packets that enter another island must not be late at all.
        let mut way_out = vec![NEVER; self.network.topology.nodes() as usize];
        for (number, Edge { from, spec, .. }) in self.network.topology.edges().iter().enumerate() {
            let feeder = structure.feeders[number];
            let node = from.0 as usize;
            let in_order = structure.in_order[number] && feeder != Feeder::Nobody;
            if (feeder == Feeder::Many || in_order) && self.host_feeds(number as u32, structure) {
                may_run_ahead[node] = false;
            }
            let delay = if structure.crosses[number] { 0 } else { spec.delay.as_nanos() };
            way_out[node] = way_out[node].min(delay);
        }
        // The layers that a branch carries are decided during the run, in the order of the calendar. Sources of several layers
        // therefore follow this order.
        for session in self.sessions.iter().filter(|session| session.layers > 1 || session.tree.is_some()) {
            may_run_ahead[session.host as usize] = false;
        }
        for (host, _) in self.of_trees() {
            may_run_ahead[host as usize] = false;
        }
        let relays =
            self.sessions.iter().filter(|session| session.source.is_relay()).map(|session| session.host);
        for node in self.seeing.iter().copied().chain(relays) {
            may_run_ahead[node as usize] = false;
        }
        // In every cycle of links, at least one link must not process packets at once. A link at a node with senders is such a
        // link, because packets enter the network there by events. A link that queues is another: packets leave this link by
        // events, and hosts that feed the link do not run ahead.
        let at_once = |link: u32| {
            let from = self.network.topology.edges()[link as usize].from.0 as usize;
            let (in_order, holds) = (structure.in_order[link as usize], structure.holds[link as usize]);
            holds || (!in_order && !structure.has_senders[from])
        };
        // A link may process packets ahead of the calendar if only one link feeds it. A link that will change must not process
        // packets before the change, and a link that queues must not process packets before its next departure.
        let feeders = (0..).zip(structure.feeders.iter().zip(&structure.in_order));
        let mut may_be_ahead: Vec<bool> = feeders
            .map(|(link, (feeder, in_order))| from_island(feeder, plan.of_link(link)) && !in_order)
            .collect();
        for (number, Edge { from, .. }) in self.network.topology.edges().iter().enumerate() {
            may_be_ahead[number] &= !self.sees_data(from.0);
        }
        // All packets from one link into another must be treated alike, because otherwise their order could change. If a branch
        // as a whole cannot run ahead, its child branches cannot run ahead either.
        loop {
            let mut kept_back = false;
            for branch in &self.branches {
                let children = branch.children.0..branch.children.1;
                let links = children.map(|child| self.branches[child as usize].link as usize);
                let end = self.end(branch.link) as usize;
                let member = branch.member != NONE;
                // Requests of members for layers are entries of the calendar, so only packets for further links and for nodes of
                // trees must be in the order of the calendar.
                let is_last = branch.children.0 == branch.children.1;
                let layered = branch.gates != NONE
                    && !(is_last && self.sessions[branch.session as usize].tree.is_none());
                if !layered && (!member || may_run_ahead[end]) && links.clone().all(|link| may_be_ahead[link])
                {
                    continue;
                }
                if member {
                    kept_back |= std::mem::replace(&mut may_run_ahead[end], false);
                }
                links.for_each(|link| kept_back |= std::mem::replace(&mut may_be_ahead[link], false));
            }
            if !kept_back {
                break;
            }
        }
        for number in 0..self.hops.len() {
            let Hop { link, next, .. } = self.hops[number];
            let follows = match next {
                NONE => may_run_ahead[self.end(link) as usize],
                next => may_be_ahead[self.hops[next as usize].link as usize],
            };
            if at_once(link) && follows {
                self.hops[number].then = ArrivalProcessing::AtOnce;
            }
        }
        for number in 0..self.branches.len() {
            let branch = &self.branches[number];
            let member = branch.member == NONE || may_run_ahead[self.end(branch.link) as usize];
            let mut children = branch.children.0..branch.children.1;
            let children = children.all(|child| may_be_ahead[self.branches[child as usize].link as usize]);
            if at_once(branch.link) && member && children {
                self.branches[number].then = ArrivalProcessing::AtOnce;
            }
        }
        let mut bundles = Vec::new();
        for number in 0..self.sessions.len() {
            let parts = self.sessions[number].root;
            self.sessions[number].root_bundle =
                self.bundle(number as u32, parts, &way_out, links, &mut bundles);
        }
        for number in 0..self.branches.len() {
            let Branch { children, session, .. } = self.branches[number];
            self.branches[number].bundle = self.bundle(session, children, &way_out, links, &mut bundles);
        }
        bundles
    }

    /// Creates inboxes for links that are fed only by hosts with senders, over links that do not change.
    pub(super) fn put_up_inboxes(&mut self, structure: &Structure<'_>, links: &[SimLink]) -> Inboxes {
        let mut inboxes = Inboxes::new();
        if !is_eager(self.options.mode) {
            return inboxes;
        }
        // By link: the least delay of its feeders; `None` if a feeder excludes an inbox.
        let mut lookahead: Vec<Option<u64>> = structure
            .feeders
            .iter()
            .zip(links)
            .zip(&structure.in_order)
            .map(|((feeder, link), in_order)| {
                (*feeder == Feeder::Many && link.bundled == NONE && !in_order).then_some(NEVER)
            })
            .collect();
        let behind: Vec<bool> = {
            let mut behind = vec![false; self.network.topology.nodes() as usize];
            for (number, link) in links.iter().enumerate() {
                behind[self.end(number as u32) as usize] |= link.bundled != NONE;
            }
            behind
        };
        let pairs = self
            .hops
            .iter()
            .filter(|hop| hop.next != NONE)
            .map(|hop| (hop.link, self.hops[hop.next as usize].link));
        let of_branches = self.branches.iter().flat_map(|branch| {
            (branch.children.0..branch.children.1)
                .map(|child| (branch.link, self.branches[child as usize].link))
        });
        for (feeder, link) in pairs.chain(of_branches) {
            let Edge { from, spec, .. } = &self.network.topology.edges()[feeder as usize];
            let from = from.0 as usize;
            let steady = !structure.in_order[feeder as usize] && structure.has_senders[from] && !behind[from];
            let bound = &mut lookahead[link as usize];
            *bound = bound.filter(|_| steady).map(|bound| bound.min(spec.delay.as_nanos()));
        }
        for branch in self.branches.iter().filter(|branch| branch.gates != NONE) {
            lookahead[branch.link as usize] = None;
        }
        for (number, Edge { from, .. }) in self.network.topology.edges().iter().enumerate() {
            if self.sees_data(from.0) {
                lookahead[number] = None;
            }
        }
        // Agents of the node itself feed a link without delay.
        for (number, Edge { from, .. }) in self.network.topology.edges().iter().enumerate() {
            let node = from.0 as usize;
            if structure.has_senders[node] || structure.only_way_in[node] != Feeder::Nobody {
                lookahead[number] = None;
            }
        }
        // The copies of a multicast packet must either all enter inboxes or all enter links directly.
        let usable = |bound: Option<u64>| bound.filter(|bound| (MIN_LOOKAHEAD..NEVER).contains(bound));
        loop {
            let mut removed = false;
            for branch in &self.branches {
                let links =
                    (branch.children.0..branch.children.1).map(|child| self.branches[child as usize].link);
                let inner =
                    branch.member == NONE && branch.bundle == NONE && branch.then == ArrivalProcessing::Event;
                if inner && links.clone().all(|link| usable(lookahead[link as usize]).is_some()) {
                    continue;
                }
                for link in links {
                    removed |= usable(lookahead[link as usize]).is_some();
                    lookahead[link as usize] = None;
                }
            }
            if !removed {
                break;
            }
        }
        let ids: Vec<u32> =
            lookahead.iter().map(|bound| usable(*bound).map_or(NONE, |bound| inboxes.add(bound))).collect();
        let mut lanes = BTreeMap::new();
        let mut lane = |link, inbox| *lanes.entry((link, inbox)).or_insert_with(|| inboxes.add_lane(inbox));
        for number in 0..self.hops.len() {
            let Hop { link, next, then } = self.hops[number];
            if then == ArrivalProcessing::Event && next != NONE {
                let inbox = ids[self.hops[next as usize].link as usize];
                if inbox != NONE {
                    self.hops[number].then = ArrivalProcessing::Inbox(lane(link, inbox));
                }
            }
        }
        for number in 0..self.branches.len() {
            let Branch { link, children, .. } = self.branches[number];
            for child in children.0..children.1 {
                let inbox = ids[self.branches[child as usize].link as usize];
                if inbox != NONE {
                    self.branches[child as usize].lane = lane(link, inbox);
                    self.branches[number].then = ArrivalProcessing::Inbox(NONE);
                }
            }
        }
        inboxes
    }

    /// Finds the hosts whose packets all enter one inbox, over one link that no other node feeds. Returns their nodes and
    /// their numbers as feeders.
    pub(super) fn feeders(
        &self,
        structure: &Structure<'_>,
        links: &[SimLink],
        routed: impl Iterator<Item = u32>,
        inboxes: &mut Inboxes,
    ) -> Vec<(u32, u32)> {
        let mut ways = vec![WayOut::Nothing; self.network.topology.nodes() as usize];
        for session in &self.sessions {
            let plain = session.layers == 1 && session.tree.is_none() && !session.source.is_relay();
            let root = &self.branches[session.root.0 as usize..session.root.1 as usize];
            for branch in root {
                let children = &self.branches[branch.children.0 as usize..branch.children.1 as usize];
                for lane in children.iter().map(|child| child.lane).chain(children.is_empty().then_some(NONE))
                {
                    let inbox = (plain && lane != NONE).then(|| inboxes.of_lane(lane));
                    ways[session.host as usize].add(branch.link, inbox);
                }
            }
            for member in &session.members {
                self.add_hop(&mut ways, member.host, member.hop, plain, inboxes);
            }
        }
        for (sender, sink) in self.senders.iter().zip(&self.sinks) {
            self.add_hop(&mut ways, sender.host, sender.hop, true, inboxes);
            if sink.hop != NONE {
                self.add_hop(&mut ways, sink.host, sink.hop, true, inboxes);
            }
        }
        let behind_bundles =
            (0..).zip(links).filter(|(_, link)| link.bundled != NONE).map(|(number, _)| self.end(number));
        let of_trees = self.of_trees().map(|(host, _)| host);
        for node in behind_bundles.chain(of_trees).chain(self.seeing.iter().copied()) {
            ways[node as usize] = WayOut::Several;
        }
        for link in routed {
            ways[self.begin(link) as usize] = WayOut::Several;
        }
        let mut found = Vec::new();
        for (node, way) in (0..).zip(ways) {
            if let WayOut::One { link, inbox } = way
                && structure.feeders[link as usize] == Feeder::Host
                && !structure.crosses[link as usize]
            {
                let delay = self.network.topology.edges()[link as usize].spec.delay;
                found.push((node, inboxes.add_feeder(inbox, delay.as_nanos())));
            }
        }
        found
    }

    fn add_hop(&self, ways: &mut [WayOut], host: u32, hop: u32, plain: bool, inboxes: &Inboxes) {
        let Hop { link, then, .. } = self.hops[hop as usize];
        let inbox = match then {
            ArrivalProcessing::Inbox(lane) if plain => Some(inboxes.of_lane(lane)),
            _ => None,
        };
        ways[host as usize].add(link, inbox);
    }

    /// Whether agents of the link's node feed the link.
    fn host_feeds(&self, link: u32, structure: &Structure<'_>) -> bool {
        // For a node without agents, `only_way_in` is `Nobody`.
        let node = self.network.topology.edges()[link as usize].from.0 as usize;
        structure.only_way_in[node] != Feeder::Nobody || structure.has_senders[node]
    }

    fn bundle(
        &mut self,
        session: u32,
        parts: (u32, u32),
        way_out: &[u64],
        links: &mut [SimLink],
        bundles: &mut Vec<Bundle>,
    ) -> u32 {
        if parts.1 - parts.0 < MIN_BUNDLE || self.sees_data(self.begin(self.branches[parts.0 as usize].link))
        {
            return NONE;
        }
        let mut lookahead = NEVER;
        for number in parts.0..parts.1 {
            let branch = &self.branches[number as usize];
            let leaf = branch.member != NONE && branch.children.0 == branch.children.1;
            let link = &links[branch.link as usize];
            let is_simple = branch.gates == NONE && link.bundled == NONE && !link.link.queues();
            if branch.then != ArrivalProcessing::AtOnce || !leaf || !is_simple {
                return NONE;
            }
            let there = self.network.topology.edges()[branch.link as usize].spec.delay.as_nanos();
            lookahead = lookahead.min(there.saturating_add(way_out[self.end(branch.link) as usize]));
        }
        if lookahead < MIN_LOOKAHEAD {
            return NONE;
        }
        let id = bundles.len() as u32;
        for number in parts.0..parts.1 {
            let branch = &mut self.branches[number as usize];
            branch.part_of = id;
            links[branch.link as usize].bundled = number;
        }
        bundles.push(Bundle { session, parts, lookahead, log: Vec::with_capacity(256), written: 0 });
        id
    }
}
