//! Division of a network into islands.
//!
//! A packet passes links and hosts. It goes from a link to the next link or host with the delay of the link, and from a host to
//! its first link without delay. A host and the links that it feeds are therefore in one island, and so is everything that shares
//! the state of a router, of layers or of a tree of agents. Any other two neighbours may be in different islands. The least delay
//! between islands is the **lookahead**: no island affects another one earlier.
//!
//! The division estimates the packets per second of each link and host. It aims for equal work, few packets between islands, and
//! few rounds. It affects the speed, but never the outcome.

use super::Builder;
use crate::engine::islands::plan::Plan;
use crate::engine::islands::sets::Sets;
use crate::engine::nanos::NEVER;
use crate::network::Islands;
use crate::routes::NONE;
use faircast_topology::Edge;

/// Packets that go from a link to a link or host.
#[derive(Debug, Clone, Copy)]
struct Passage {
    from: u32,
    to: u32,
    /// Packets per second.
    packets: f64,
}

/// Largest number of islands.
const MOST: usize = 64;
/// Largest number of lookaheads that are tried.
const TRIES: usize = 12;
/// Parts of an island that are kept together at first.
const CLUSTERS: f64 = 6.0;
/// Largest accepted load of an island, relative to the mean.
const TOLERANCE: f64 = 1.03;
/// A division is useless if it leaves more than this part of the time.
const USELESS: f64 = 0.9;
/// Cost of a packet that crosses between islands, in passages of links.
const CROSSING: f64 = 3.0;
/// Cost of a round, in passages of links: on a busy machine, a thread waits for the other.
const ROUND: f64 = 300.0;
/// Work of a packet on a last hop that only one session uses, in passages of links: such hops read packets from a log.
const LOGGED: f64 = 0.15;
/// Packets per second that a receiver's reports contribute, relative to its data.
const REPORTS: f64 = 0.05;

impl Builder<'_> {
    /// Divides the network.
    pub(in crate::engine) fn divide(&self, islands: Islands) -> Plan {
        let parts = match islands {
            Islands::One => return Plan::whole(),
            Islands::IfFaster(parts) | Islands::AtMost(parts) => parts.min(MOST),
        };
        let links = self.network.topology.edges().len();
        let (passages, loads) = self.passages();
        let total: f64 = loads.iter().sum();
        if parts < 2 || total <= 0.0 {
            return Plan::whole();
        }
        let together = self.together(loads.len());
        let delay = |it: &Passage| self.network.topology.edges()[it.from as usize].spec.delay.as_nanos();
        let mut delays: Vec<u64> = passages.iter().map(delay).filter(|delay| *delay > 0).collect();
        delays.sort_unstable();
        delays.dedup();
        let step = delays.len().div_ceil(TRIES).max(1);
        let mut best: Option<(f64, Plan)> = None;
        for least in delays.iter().step_by(step).rev() {
            let mut sets = together.clone();
            passages.iter().filter(|it| delay(it) < *least).for_each(|it| sets.unite(it.from, it.to));
            let (owners, largest) = assign(sets, &passages, &loads, parts);
            let crosses = |it: &&Passage| owners[it.from as usize] != owners[it.to as usize];
            let crossing = passages.iter().filter(crosses);
            let lookahead = crossing.clone().map(delay).min().unwrap_or(NEVER);
            let packets: f64 = crossing.map(|it| it.packets).sum();
            let rounds = 1e9 / lookahead as f64;
            if largest >= total {
                continue;
            }
            let cost = largest + packets * CROSSING / parts as f64 + rounds * ROUND;
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, Plan { owners, links: links as u32, count: parts, lookahead }));
            }
        }
        let is_useful = |cost: f64| matches!(islands, Islands::AtMost(_)) || cost < USELESS * total;
        best.filter(|(cost, _)| is_useful(*cost)).map_or_else(Plan::whole, |(_, plan)| plan)
    }

    /// Returns the sets of links and hosts that must be in one island.
    fn together(&self, all: usize) -> Sets {
        let edges = self.network.topology.edges();
        let links = edges.len() as u32;
        let mut sets = Sets::new(all);
        let mut first_link = |host: u32, link: u32| sets.unite(links + host, link);
        for session in &self.sessions {
            for branch in session.root.0..session.root.1 {
                first_link(session.host, self.branches[branch as usize].link);
            }
            for member in &session.members {
                first_link(member.host, self.hops[member.hop as usize].link);
            }
        }
        for (sender, sink) in self.senders.iter().zip(&self.sinks) {
            first_link(sender.host, self.hops[sender.hop as usize].link);
            if let Some(hop) = self.hops.get(sink.hop as usize) {
                first_link(sink.host, hop.link);
            }
        }
        self.of_trees().for_each(|(host, hop)| first_link(host, hop.link));
        self.scopes().for_each(|(host, branch)| first_link(host, self.branches[branch as usize].link));
        let mut routed: Vec<u32> = self.network.routers.iter().map(|(node, _)| node.0).collect();
        routed.sort_unstable();
        for (number, Edge { from, .. }) in (0..).zip(edges) {
            if routed.binary_search(&from.0).is_ok() {
                first_link(from.0, number);
            }
        }
        // The gates of layers, and the places of a tree of agents, are common to the session.
        let shares = |session: u32| {
            let it = &self.sessions[session as usize];
            it.layers > 1 || it.tree.is_some()
        };
        for branch in self.branches.iter().filter(|branch| shares(branch.session)) {
            let it = &self.sessions[branch.session as usize];
            sets.unite(links + it.host, branch.link);
            if branch.member != NONE {
                sets.unite(branch.link, links + self.end(branch.link));
            }
        }
        // A change of a link may move arrivals, so the link is in the island of its end.
        let mut changed = vec![false; links as usize];
        self.network.changes.iter().for_each(|(_, link, _)| changed[link.0 as usize] = true);
        self.visit(|from, to, _| {
            if changed[from as usize] || edges[from as usize].spec.delay.as_nanos() == 0 {
                sets.unite(from, to);
            }
        });
        sets
    }

    /// Returns for each link whether packets go from there to another island.
    pub(in crate::engine) fn crosses(&self, plan: &Plan) -> Vec<bool> {
        let links = self.network.topology.edges().len() as u32;
        let mut crosses = vec![false; links as usize];
        self.visit(|from, to, _| {
            let end = to.checked_sub(links).map_or_else(|| plan.of_link(to), |node| plan.of_node(node));
            crosses[from as usize] |= plan.of_link(from) != end;
        });
        crosses
    }

    /// Calls `visit` with each link, each link or host to which packets go from there, and the number of the hop or the branch.
    fn visit(&self, mut visit: impl FnMut(u32, u32, Way)) {
        let links = self.network.topology.edges().len() as u32;
        for (number, hop) in (0..).zip(&self.hops) {
            let to = self.hops.get(hop.next as usize).map_or(links + self.end(hop.link), |next| next.link);
            visit(hop.link, to, Way::Hop(number));
        }
        for (number, branch) in (0..).zip(&self.branches) {
            if branch.member != NONE {
                visit(branch.link, links + self.end(branch.link), Way::Branch(number));
            }
            for child in branch.children.0..branch.children.1 {
                visit(branch.link, self.branches[child as usize].link, Way::Branch(number));
            }
        }
    }

    /// Estimates the packets per second that go from each link to the next link or host, and the work of each link and host.
    fn passages(&self) -> (Vec<Passage>, Vec<f64>) {
        let edges = self.network.topology.edges();
        let links = edges.len();
        // Flows share the rate of a link equally.
        let mut users = vec![0.0_f64; links];
        self.branches.iter().for_each(|branch| users[branch.link as usize] += 1.0);
        self.senders.iter().for_each(|it| self.along(it.hop, |_, link| users[link as usize] += 1.0));
        let share = |link: u32, size: u16| {
            let rate = edges[link as usize].spec.rate.bps() / (8.0 * f64::from(size.max(1)));
            rate.min(1e9) / users[link as usize].max(1.0)
        };
        let mut of_session = vec![f64::INFINITY; self.sessions.len()];
        for branch in &self.branches {
            let least = &mut of_session[branch.session as usize];
            *least = least.min(share(branch.link, self.sessions[branch.session as usize].packet_size));
        }
        let mut of_hops = vec![0.0_f64; self.hops.len()];
        let mut loads = vec![0.0_f64; links + self.network.topology.nodes() as usize];
        for (sender, sink) in self.senders.iter().zip(&self.sinks) {
            let mut packets = f64::INFINITY;
            self.along(sender.hop, |_, link| packets = packets.min(share(link, sender.size)));
            self.along(sender.hop, |hop, _| of_hops[hop as usize] += packets);
            self.along(sink.hop, |hop, _| of_hops[hop as usize] += packets);
            loads[links + sender.host as usize] += packets;
            loads[links + sink.host as usize] += packets;
        }
        for (session, packets) in self.sessions.iter().zip(&of_session) {
            for member in &session.members {
                self.along(member.hop, |hop, _| of_hops[hop as usize] += packets * REPORTS);
            }
            loads[links + session.host as usize] += packets;
        }
        let mut passages = Vec::with_capacity(self.hops.len() + self.branches.len());
        self.visit(|from, to, way| {
            let packets = match way {
                Way::Hop(hop) => of_hops[hop as usize],
                Way::Branch(branch) => of_session[self.branches[branch as usize].session as usize],
            };
            passages.push(Passage { from, to, packets });
        });
        for (hop, packets) in self.hops.iter().zip(&of_hops) {
            loads[hop.link as usize] += packets;
        }
        for branch in &self.branches {
            let (link, packets) = (branch.link as usize, of_session[branch.session as usize]);
            let is_logged = branch.member != NONE && users[link] == 1.0;
            let work = if is_logged { packets * LOGGED } else { packets };
            loads[link] += work;
            if branch.member != NONE {
                loads[links + self.end(branch.link) as usize] += work;
            }
        }
        passages.sort_unstable_by_key(|it| (it.from, it.to));
        passages.dedup_by(|next, kept| {
            let same = (next.from, next.to) == (kept.from, kept.to);
            if same {
                kept.packets += next.packets;
            }
            same
        });
        (passages, loads)
    }

    /// Calls `visit` with each hop of a path and its link.
    fn along(&self, mut hop: u32, mut visit: impl FnMut(u32, u32)) {
        while let Some(it) = self.hops.get(hop as usize) {
            visit(hop, it.link);
            hop = it.next;
        }
    }
}

/// A hop or a branch.
#[derive(Debug, Clone, Copy)]
enum Way {
    Hop(u32),
    Branch(u32),
}

/// Assigns sets of links and hosts to islands of equal work, with few packets between islands. Returns the islands of all links
/// and hosts, and the work of the largest island.
fn assign(mut sets: Sets, passages: &[Passage], loads: &[f64], parts: usize) -> (Vec<u8>, f64) {
    let all = loads.len();
    let mut of_set = vec![0.0; all];
    (0..all as u32).for_each(|it| of_set[sets.of(it) as usize] += loads[it as usize]);
    let mean = of_set.iter().sum::<f64>() / parts as f64;
    // Passages between sets, the busiest first.
    let mut between: Vec<Passage> = passages
        .iter()
        .map(|it| Passage { from: sets.of(it.from), to: sets.of(it.to), packets: it.packets })
        .filter(|it| it.from != it.to)
        .collect();
    between.sort_by(|a, b| b.packets.total_cmp(&a.packets).then_with(|| (a.from, a.to).cmp(&(b.from, b.to))));
    // Neighbours are united into clusters.
    let mut clusters = sets.clone();
    let mut of_cluster = of_set.clone();
    for it in &between {
        let (a, b) = (clusters.of(it.from), clusters.of(it.to));
        let sum = of_cluster[a as usize] + of_cluster[b as usize];
        if a != b && sum <= mean / CLUSTERS {
            clusters.unite(a, b);
            of_cluster[clusters.of(a) as usize] = sum;
        }
    }
    // The heaviest cluster goes first, to the island with most of its packets among the islands with room.
    let mut order: Vec<u32> = (0..all as u32).filter(|it| clusters.of(*it) == *it).collect();
    order.sort_by(|a, b| of_cluster[*b as usize].total_cmp(&of_cluster[*a as usize]).then(a.cmp(b)));
    let joined = Neighbours::new(all, &between, |it| clusters.of(it));
    let mut work = vec![0.0_f64; parts];
    let mut placed = vec![u8::MAX; all];
    for &it in &order {
        let to = joined.packets(it, parts, |other| placed[other as usize]);
        let load = of_cluster[it as usize];
        let lightest = (0..parts).min_by(|a, b| work[*a].total_cmp(&work[*b])).unwrap_or(0);
        let room = (0..parts).filter(|part| work[*part] + load <= TOLERANCE * mean);
        let best = room.max_by(|a, b| to[*a].total_cmp(&to[*b]).then(work[*b].total_cmp(&work[*a])));
        let best = best.unwrap_or(lightest);
        work[best] += load;
        placed[it as usize] = best as u8;
    }
    let mut island: Vec<u8> = (0..all as u32).map(|it| placed[clusters.of(it) as usize]).collect();
    // Sets move to the island with most of their packets.
    let joined = Neighbours::new(all, &between, |it| it);
    for _ in 0..4 {
        for it in (0..all as u32).filter(|it| sets.of(*it) == *it) {
            let to = joined.packets(it, parts, |other| island[other as usize]);
            let (here, load) = (island[it as usize] as usize, of_set[it as usize]);
            let better =
                (0..parts).filter(|part| to[*part] > to[here] && work[*part] + load <= TOLERANCE * mean);
            if let Some(best) = better.max_by(|a, b| to[*a].total_cmp(&to[*b])) {
                work[here] -= load;
                work[best] += load;
                island[it as usize] = best as u8;
            }
        }
    }
    let owners = (0..all as u32).map(|it| island[sets.of(it) as usize]).collect();
    (owners, work.into_iter().fold(0.0, f64::max))
}

/// Packets between sets, by set.
struct Neighbours {
    /// Index of the first neighbour of each set.
    first: Vec<u32>,
    all: Vec<(u32, f64)>,
}

impl Neighbours {
    fn new(sets: usize, between: &[Passage], mut of: impl FnMut(u32) -> u32) -> Neighbours {
        let ends = between.iter().flat_map(|it| [(it.from, it.to, it.packets), (it.to, it.from, it.packets)]);
        let mut ends: Vec<_> = ends.map(|(a, b, packets)| (of(a), of(b), packets)).collect();
        ends.retain(|(a, b, _)| a != b);
        ends.sort_by_key(|(a, b, _)| (*a, *b));
        let mut first = vec![0; sets + 1];
        ends.iter().for_each(|(a, ..)| first[*a as usize + 1] += 1);
        (0..sets).for_each(|it| first[it + 1] += first[it]);
        Neighbours { first, all: ends.into_iter().map(|(_, b, packets)| (b, packets)).collect() }
    }

    /// Returns the packets between a set and each island.
    fn packets(&self, set: u32, parts: usize, island: impl Fn(u32) -> u8) -> Vec<f64> {
        let mut sums = vec![0.0; parts];
        let (from, to) = (self.first[set as usize], self.first[set as usize + 1]);
        for (other, packets) in &self.all[from as usize..to as usize] {
            if let Some(sum) = sums.get_mut(island(*other) as usize) {
                *sum += packets;
            }
        }
        sums
    }
}
