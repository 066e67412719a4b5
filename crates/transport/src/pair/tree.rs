//! Trees of relays in virtual time: a source, relays and receivers, each behind its own link.
//!
//! The head of a segment (the source, or a branch of a relay) sends to all hosts attached to it. Answers use the same links in
//! the other direction.

use super::net::{Head, Net, OVERHEAD, Who};
use super::node::{IDLE_TIMEOUT, Offer, ReceiverNode, UNIX_SECS, groups};
use crate::config::Destination;
use crate::endpoint::{Datagram, Endpoint};
use crate::error::Error;
use crate::event::{Event, RelayBelow};
use crate::object::gather::spill::SpillFile;
use crate::object::host::disk::Disk;
use crate::receiver::{self, ReceiverSession};
use crate::relay::{Branch, BranchSetup, RelayHandle, RouterKind, SessionHandle, Upstream};
use crate::tree::{ExitSetup, Hop, HopExit, Node};
use faircast_core::node::RouterSpec;
use faircast_core::packet::{Layer, ReceiverId};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use faircast_simnet::{Link, Site};
use faircast_wire::{GroupKey, ReceiverCodec, SigningKey};
use std::net::SocketAddr;

/// A running relay.
pub(super) struct RelayNode {
    pub(super) shared: SessionHandle,
    pub(super) hop: Option<Node<Hop>>,
    pub(super) handle: RelayHandle,
    pub(super) above: Option<Upstream>,
    pub(super) branches: Vec<Box<dyn Endpoint>>,
    pub(super) address: SocketAddr,
    pub(super) ended: Option<Result<(), Error>>,
    pub(super) events: Vec<(Time, Event)>,
    key: Option<GroupKey>,
    memory: usize,
    in_file: bool,
    /// Kind of the active router, whose branches are exits; `None` for other relays.
    router: Option<RouterKind>,
    /// Options of the router.
    pub(super) options: Option<faircast_core::schemes::rmanp::router::Config>,
    count: usize,
    pub(super) path_rng: Rng,
    rng: Rng,
    name: String,
}

impl RelayNode {
    fn branch_address(&self, branch: usize) -> SocketAddr {
        SocketAddr::new(self.address.ip(), 6000 + branch as u16)
    }

    /// Returns the number of the branch that sends from this address.
    pub(super) fn branch_at(address: SocketAddr) -> usize {
        usize::from(address.port()) - 6000
    }

    pub(super) fn has_branch_at(&self, address: SocketAddr) -> bool {
        (0..self.count).any(|branch| self.branch_address(branch) == address)
    }

    pub(super) fn takes(&self, layer: Layer) -> bool {
        self.above.as_ref().is_some_and(|above| above.groups().len() >= usize::from(layer.0))
    }

    pub(super) fn on_datagram(&mut self, bytes: &mut [u8], (from, to): (SocketAddr, SocketAddr), now: Time) {
        let datagram = Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now };
        if !to.ip().is_multicast() {
            if let Some(branch) = self.branches.get_mut(RelayNode::branch_at(to)) {
                branch.handle_datagram(datagram, now);
            }
        } else if let Some(above) = &mut self.above {
            above.handle_datagram(datagram, now);
        }
    }

    /// Starts the process.
    pub(super) fn start(&mut self, now: Time) {
        let id = ReceiverId::new(u64::from(self.rng.bits() as u32 | 1)).expect("an odd number is not zero");
        let hop = self.key.as_ref().map(GroupKey::hop);
        let codec = ReceiverCodec::of_relay(hop.as_ref(), id, self.rng.bits());
        self.handle = RelayHandle::default();
        let file = || tempfile::tempfile().expect("a temporary file");
        let room =
            self.in_file.then(|| SpillFile { disk: Disk::default(), file: file(), path: "cache".into() });
        let seed = self.rng.bits();
        self.shared = match self.router {
            Some(kind) => {
                let mut mode = Hop::new(id, kind, hop.clone(), seed);
                mode.routers = self.options.map(|options| -> Box<dyn RouterSpec> { Box::new(options) });
                let mode = self.hop.insert(Node::new(mode)).mode();
                SessionHandle::of_mode(self.handle.clone(), mode, self.count)
            }
            None => SessionHandle::new(self.handle.clone(), self.count, self.memory, room),
        };
        let destination = Destination::Directory(std::env::temp_dir());
        let setup = receiver::Setup {
            host: self.name.clone(),
            idle_timeout: Span::from_nanos(IDLE_TIMEOUT.as_nanos() as u64),
            relay: Some(Box::new(self.shared.clone())),
            ..receiver::Setup::plain(codec, id, seed, destination, (groups(1)[0], UNIX_SECS))
        };
        let session = ReceiverSession::new(setup, now);
        self.above = Some(Upstream::new(session, self.shared.clone()));
        self.branches = (0..self.count)
            .map(|branch| -> Box<dyn Endpoint> {
                if self.router.is_some() {
                    return self.exit(branch);
                }
                let setup = BranchSetup {
                    me: id,
                    boot: self.rng.bits(),
                    key: hop.clone(),
                    to: groups(1)[0],
                    local: self.branch_address(branch),
                    overhead: OVERHEAD,
                    max: None,
                    ttl: 1,
                    idle_timeout: IDLE_TIMEOUT,
                    spread: Span::from_millis(10),
                    seed: self.rng.bits(),
                    receiver_events: crate::config::ReceiverEvents::Off,
                    to_host: false,
                };
                Box::new(Branch::new(self.shared.clone(), branch, setup))
            })
            .collect();
        self.ended = None;
    }

    /// Creates an exit of an active router.
    fn exit(&mut self, branch: usize) -> Box<dyn Endpoint> {
        let (boot, local) = (self.rng.bits(), self.branch_address(branch));
        self.shared.announces_from(local);
        let setup = ExitSetup { boot, local, overhead: OVERHEAD };
        let hop = self.hop.clone().expect("it is a hop");
        let exit = hop.with(|hop| hop.add_exit(setup));
        Box::new(HopExit::new(self.shared.clone(), hop, branch, exit, groups(1)[0]))
    }

    /// Runs all pending work, and appends the sent datagrams with their senders and destinations to `sent`.
    pub(super) fn drive(&mut self, now: Time, sent: &mut Vec<((SocketAddr, SocketAddr), Vec<u8>)>) {
        let addresses: Vec<SocketAddr> = (0..self.count).map(|branch| self.branch_address(branch)).collect();
        let mut out = Vec::new();
        for turn in 0.. {
            assert!(turn < 100_000, "{} does not let time pass at {now:?}", self.name);
            let mut again = false;
            if let Some(above) = &mut self.above {
                above.handle_timeout(now);
                while let Some(transmit) = above.poll_transmit(now, &mut out) {
                    sent.push(((self.address, transmit.to), out.clone()));
                }
                self.events.extend(std::iter::from_fn(|| above.poll_event()).map(|event| (now, event)));
                if above.is_finished() {
                    self.ended = self.above.take().map(|above| above.report().map(drop));
                }
            }
            for (place, branch) in self.branches.iter_mut().enumerate() {
                branch.handle_timeout(now);
                if let Some(transmit) = branch.poll_transmit(now, &mut out) {
                    let way = (addresses[place], transmit.to);
                    sent.extend(out.chunks(transmit.segment).map(|bytes| (way, bytes.to_vec())));
                    again = true;
                }
                self.events.extend(std::iter::from_fn(|| branch.poll_event()).map(|event| (now, event)));
                again |= !branch.is_finished() && branch.poll_timeout(now) <= now;
            }
            // The branches may have news for the parent.
            again |= self.above.as_ref().is_some_and(|above| above.poll_timeout(now) <= now);
            if !again {
                return;
            }
        }
    }

    pub(super) fn next_timeout(&self, now: Time) -> Time {
        let above = self.above.as_ref().map_or(Time::NEVER, |above| above.poll_timeout(now));
        let open = self.branches.iter().filter(|branch| !branch.is_finished());
        open.map(|branch| branch.poll_timeout(now)).fold(above, Time::min)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.above.is_none() && self.branches.iter().all(|branch| branch.is_finished())
    }
}

impl Net {
    /// Lets the relay store blocks in a file if they do not fit in memory.
    fn cached_in_file(&mut self, relay: usize) {
        self.relays[relay].in_file = true;
    }

    /// Adds a relay with `memory` bytes of cache and `branches` branches, attached to `to` by this link.
    pub(super) fn relay(&mut self, to: Head, branches: usize, memory: usize, link: Link) -> usize {
        let at = self.relays.len();
        self.relays.push(RelayNode {
            shared: SessionHandle::new(RelayHandle::default(), branches, memory, None),
            hop: None,
            handle: RelayHandle::default(),
            above: None,
            branches: Vec::new(),
            address: SocketAddr::from(([10, 2, 0, 1 + at as u8], 5779)),
            ended: None,
            events: Vec::new(),
            key: self.sources[0].offer.key.clone(),
            memory,
            in_file: false,
            router: None,
            options: None,
            count: branches,
            path_rng: Rng::new(self.seed, 1 << 35 | at as u64),
            rng: Rng::new(self.seed, 1 << 36 | at as u64),
            name: format!("relay{at}"),
        });
        self.attach(Who::Relay(at), to, link);
        at
    }

    /// Adds an active router with `exits` exits, attached to `to` by this link.
    pub(super) fn hop(&mut self, to: Head, kind: RouterKind, exits: usize, link: Link) -> usize {
        let at = self.relay(to, exits, 0, link);
        self.relays[at].router = Some(kind);
        at
    }

    /// Adds `count` receivers, each attached to `to` by its own link.
    pub(super) fn behind(&mut self, to: Head, count: usize, link: Link) {
        for _ in 0..count {
            let at = self.place_receiver();
            self.attach(Who::Receiver(at), to, link);
        }
    }

    /// Adds a receiver that has no link and is not started.
    pub(super) fn place_receiver(&mut self) -> usize {
        let at = self.receivers.len();
        let dir = self.dir.path().join(format!("out{at}"));
        let key = self.sources[0].offer.key.clone();
        self.receivers.push(ReceiverNode::new(self.seed, at, 0, dir, key));
        at
    }

    /// Attaches a host to a head by an additional link. The link loses only multicast packets.
    pub(super) fn attach(&mut self, who: Who, to: Head, link: Link) {
        let mut site = Site::new(vec![to], link, link.sound());
        site.members.push(who);
        self.network.site(site);
    }

    /// Kills the relay's process.
    pub(super) fn kill_relay(&mut self, relay: usize) {
        let node = &mut self.relays[relay];
        (node.above, node.ended) = (None, Some(Ok(())));
        node.branches.clear();
    }

    /// Checks that all receivers have all content, and that the source has confirmed them.
    pub(super) fn assert_everybody_has_all(&self) {
        let report = self.sources[0].report();
        assert_eq!(report.verified, self.receivers.len() as u64, "{report:?}");
        self.assert_all_verified(0, 0..self.receivers.len());
    }
}

const MEMORY: usize = 64 << 20;

pub(super) fn branch(relay: usize, branch: usize) -> Head {
    Head::Branch { relay, branch }
}

/// Returns all schemes that run at one rate.
pub(super) fn schemes() -> impl Iterator<Item = &'static str> {
    let all = faircast_core::schemes::CATALOGUE.iter();
    let at_one_rate =
        |name: &str| name.parse::<faircast_core::schemes::Scheme>().expect("a scheme").layers() <= 1;
    all.map(|entry| entry.name).filter(move |name| at_one_rate(name))
}

#[test]
fn relay_forwards_a_session_with_every_scheme() {
    for name in schemes() {
        let mut tree = Net::of(21, Offer::bytes(3_000_000).by(name).expect(3).at_most_mbps(20.0));
        let relay = tree.relay(Head::Source(0), 1, MEMORY, Link::millis(5).mbps(50.0).fifo(100_000));
        tree.behind(branch(relay, 0), 3, Link::millis(3).mbps(40.0).fifo(100_000).losing(0.001));
        tree.start();
        tree.run_to_end(Span::from_secs(600));
        tree.assert_everybody_has_all();
        println!("{name}: {:.1} s, {} answers", tree.now.as_secs_f64(), tree.sources[0].received);
    }
}

/// Returns the ratio of sent symbols to content symbols at the source.
fn overhead_of(tree: &Net) -> f64 {
    tree.sources[0].report().repair_ratio
}

#[test]
fn relay_tree_forwards_a_sealed_and_signed_session() {
    let (key, signer) = (GroupKey::generate().expect("random"), SigningKey::generate().expect("random"));
    let offer = Offer::bytes(4_000_000).expect(8).at_most_mbps(20.0).sealed(key).signed(signer.clone());
    let mut tree = Net::of(22, offer);
    let link = || Link::millis(4).mbps(40.0).fifo(80_000).losing(0.005);
    let top = tree.relay(Head::Source(0), 2, MEMORY, link());
    let left = tree.relay(branch(top, 0), 1, MEMORY, link());
    let right = tree.relay(branch(top, 1), 1, MEMORY, link());
    tree.behind(branch(left, 0), 4, link());
    tree.behind(branch(right, 0), 3, link());
    tree.behind(Head::Source(0), 1, link());
    tree.receivers.iter_mut().for_each(|node| node.verify = Some(signer.verify_key().into()));
    tree.start();
    tree.run_to_end(Span::from_secs(300));
    tree.assert_everybody_has_all();
}

#[test]
fn relay_forwards_layered_sessions_to_all_receivers() {
    let all = faircast_core::schemes::CATALOGUE.iter().map(|entry| entry.name);
    let mut in_layers = 0;
    for name in all.filter(|name| schemes().all(|other| other != *name)) {
        let mut tree = Net::of(32, Offer::bytes(3_000_000).by(name).expect(4));
        let relay = tree.relay(Head::Source(0), 1, MEMORY, Link::millis(5).mbps(20.0).fifo(100_000));
        tree.behind(branch(relay, 0), 3, Link::millis(3).mbps(10.0).fifo(60_000).losing(0.002));
        tree.behind(Head::Source(0), 1, Link::millis(4).mbps(5.0).fifo(60_000));
        tree.start();
        tree.run_to_end(Span::from_secs(600));
        tree.assert_everybody_has_all();
        println!("{name}: {:.1} s, {} answers", tree.now.as_secs_f64(), tree.sources[0].received);
        in_layers += 1;
    }
    assert!(in_layers >= 3, "{in_layers}");
}

#[test]
fn relay_warns_if_layers_exceed_its_memory() {
    let mut tree = Net::of(33, Offer::bytes(3_000_000).by("rlc").expect(1));
    let relay = tree.relay(Head::Source(0), 1, 1 << 20, Link::millis(5).mbps(20.0).fifo(100_000));
    tree.behind(branch(relay, 0), 1, Link::millis(3).mbps(10.0).fifo(60_000));
    tree.start();
    tree.run_to_end(Span::from_secs(600));
    tree.assert_everybody_has_all();
    let says = |(_, event): &(Time, Event)| matches!(event, Event::Warning { message, .. } if message.contains("more memory"));
    assert_eq!(tree.relays[relay].events.iter().filter(|event| says(event)).count(), 1, "once");
}

#[test]
fn source_lists_every_relay_with_its_progress() {
    let mut tree = Net::of(31, Offer::bytes(8_000_000).expect(4).at_most_mbps(16.0));
    let link = || Link::millis(4).mbps(40.0).fifo(80_000).losing(0.005);
    let top = tree.relay(Head::Source(0), 1, MEMORY, link());
    let middle = tree.relay(branch(top, 0), 2, MEMORY, link());
    let last = tree.relay(branch(middle, 0), 1, MEMORY, link());
    tree.behind(branch(last, 0), 3, link());
    tree.behind(branch(middle, 1), 1, link());
    tree.start();
    tree.run_to_end(Span::from_secs(300));
    tree.assert_everybody_has_all();
    let mut reported = tree.sources[0].events.iter().filter_map(|(_, event)| match event {
        Event::Progress(progress) => Some(&progress.relays),
        _ => None,
    });
    let shape = |relays: &[RelayBelow]| {
        let one = |relay: &RelayBelow| (relay.depth, relay.host.clone(), relay.receivers);
        relays.iter().map(one).collect::<Vec<_>>()
    };
    let whole = [(1, "relay0", 4), (2, "relay1", 4), (3, "relay2", 3)];
    let whole = whole.map(|(depth, host, all)| (depth, host.to_owned(), all));
    let last = reported.rfind(|relays| shape(relays) == whole).expect("it was told of all of them");
    assert!(last.iter().all(|relay| relay.rate.bps() > 1e5 && relay.done <= relay.receivers), "{last:?}");
    let addresses: Vec<_> = last.iter().map(|relay| relay.address).collect();
    assert_eq!(addresses, tree.relays.iter().map(|relay| relay.address).collect::<Vec<_>>());
}

#[test]
fn relay_repairs_losses_of_its_children() {
    let mut tree = Net::of(23, Offer::bytes(8_000_000).by("le-sbcc").expect(6).at_mbps(8.0));
    let relay = tree.relay(Head::Source(0), 1, MEMORY, Link::millis(5));
    tree.behind(branch(relay, 0), 6, Link::millis(5).losing(0.03));
    tree.start();
    tree.run_to_end(Span::from_secs(300));
    tree.assert_everybody_has_all();
    assert!(overhead_of(&tree) < 1.005, "the source repairs nothing: {}", overhead_of(&tree));
}

#[test]
fn slow_branch_does_not_delay_other_branches() {
    let fast = Link::millis(3).mbps(40.0).fifo(100_000);
    let alone = {
        let mut tree = Net::of(24, Offer::bytes(10_000_000).expect(2));
        tree.behind(Head::Source(0), 2, fast);
        tree.start();
        tree.run_to_end(Span::from_secs(300));
        tree.receivers[0].ended_at
    };
    let mut tree = Net::of(24, Offer::bytes(10_000_000).expect(4));
    tree.behind(Head::Source(0), 2, fast);
    let relay = tree.relay(Head::Source(0), 1, 2 << 20, fast);
    tree.behind(branch(relay, 0), 2, Link::millis(3).mbps(4.0).fifo(30_000));
    tree.start();
    let mut most = 0;
    tree.run_until(Span::from_secs(300), |tree| {
        most =
            most.max(tree.relays[relay].handle.status().sessions.first().map_or(0, |one| one.cached_bytes));
        tree.is_finished()
    });
    tree.assert_everybody_has_all();
    let (fast, slow) = (tree.receivers[0].ended_at, tree.receivers[2].ended_at);
    println!(
        "alone {alone:?}, beside a slow branch {fast:?}, behind it {slow:?}; kept {most}, {}",
        overhead_of(&tree)
    );
    assert!(most <= (2 << 20) + 2_000, "memory has a bound: {most}");
    assert!(fast.as_secs_f64() < alone.as_secs_f64() * 1.25, "{fast:?} and {alone:?}");
    assert!(slow.as_secs_f64() < 80e6 / 4e6 * 1.6, "{slow:?}");
}

#[test]
fn cache_file_prevents_delays_by_a_slow_branch() {
    let fast = Link::millis(3).mbps(40.0).fifo(100_000);
    let mut tree = Net::of(29, Offer::bytes(10_000_000).expect(4));
    tree.behind(Head::Source(0), 2, fast);
    let relay = tree.relay(Head::Source(0), 1, 1 << 20, fast);
    tree.cached_in_file(relay);
    tree.behind(branch(relay, 0), 2, Link::millis(3).mbps(4.0).fifo(30_000));
    tree.start();
    let mut most = 0;
    tree.run_until(Span::from_secs(300), |tree| {
        let status = tree.relays[relay].handle.status();
        most = most.max(status.sessions.first().map_or(0, |one| one.cached_bytes));
        tree.is_finished()
    });
    tree.assert_everybody_has_all();
    assert!(most <= (1 << 20) + 2_000, "memory has a bound: {most}");
    assert!(overhead_of(&tree) < 1.02, "the source sends everything once: {}", overhead_of(&tree));
}

#[test]
fn relay_fetches_evicted_blocks_at_the_rate_of_its_branch() {
    let mut tree = Net::of(31, Offer::bytes(20_000_000).expect(1));
    let relay = tree.relay(Head::Source(0), 1, 4 << 20, Link::millis(2).mbps(200.0).fifo(400_000));
    tree.behind(branch(relay, 0), 1, Link::millis(2).mbps(50.0).fifo(100_000));
    tree.start();
    tree.run_to_end(Span::from_secs(300));
    tree.assert_everybody_has_all();
    let (took, overhead) = (tree.receivers[0].ended_at.as_secs_f64(), overhead_of(&tree));
    println!("{took:.1} s, {overhead:.2} of each symbol left the source");
    assert!(overhead > 1.1, "more than the memory holds came at once: {overhead}");
    assert!(took < 160e6 / 50e6 * 2.0, "{took} s");
}

#[test]
fn receivers_behind_relays_barely_add_feedback_at_the_source() {
    let answers = |each: usize| {
        let mut tree =
            Net::of(25, Offer::bytes(4_000_000).by("ormcc").expect(2 * each as u32).at_most_mbps(8.0));
        for _ in 0..2 {
            let relay = tree.relay(Head::Source(0), 1, MEMORY, Link::millis(5).mbps(20.0).fifo(100_000));
            tree.behind(branch(relay, 0), each, Link::millis(3).mbps(20.0).fifo(60_000).losing(0.001));
        }
        tree.start();
        tree.run_to_end(Span::from_secs(300));
        tree.assert_everybody_has_all();
        tree.sources[0].received as f64 / tree.now.as_secs_f64()
    };
    let (few, many) = (answers(1), answers(50));
    assert!(many < few * 1.5, "{few} and {many} a second");
}

#[test]
fn second_relay_replaces_a_dead_relay_without_delay() {
    for name in schemes() {
        let mut tree = Net::of(26, Offer::bytes(6_000_000).by(name).expect(4).at_most_mbps(8.0));
        let link = || Link::millis(4).mbps(30.0).fifo(80_000).losing(0.001);
        let first = tree.relay(Head::Source(0), 1, MEMORY, link());
        let second = tree.relay(Head::Source(0), 1, MEMORY, link());
        tree.behind(branch(first, 0), 2, link());
        tree.behind(branch(second, 0), 2, link());
        // Receivers of the first relay can also reach the second relay, and attach to it when the first relay is silent.
        tree.attach(Who::Receiver(0), branch(second, 0), link());
        tree.attach(Who::Receiver(1), branch(second, 0), link());
        tree.start();
        tree.run_until(Span::from_secs(60), |tree| tree.now > Time::ZERO + Span::from_secs(3));
        tree.kill_relay(first);
        tree.run_to_end(Span::from_secs(300));
        let report = tree.sources[0].report();
        assert_eq!(report.verified, 4, "{name}: {report:?}");
        for node in &tree.receivers {
            assert!(
                node.report().ok && node.has(&tree.sources[0]),
                "{name}: {} has something else",
                node.host
            );
        }
        println!("{name}: over after {:.1} s", tree.now.as_secs_f64());
    }
}

#[test]
fn relay_continues_to_serve_after_a_restart_at_its_address() {
    for name in schemes() {
        let mut tree = Net::of(28, Offer::bytes(6_000_000).by(name).expect(2).at_most_mbps(8.0));
        let link = || Link::millis(4).mbps(30.0).fifo(80_000).losing(0.001);
        let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
        tree.behind(branch(relay, 0), 2, link());
        tree.start();
        tree.run_until(Span::from_secs(60), |tree| tree.now > Time::ZERO + Span::from_secs(3));
        tree.kill_relay(relay);
        tree.run_until(Span::from_secs(60), |tree| tree.now > Time::ZERO + Span::from_millis(3_500));
        tree.start_host(Who::Relay(relay));
        tree.run_to_end(Span::from_secs(300));
        for node in &tree.receivers {
            assert!(
                node.report().ok && node.has(&tree.sources[0]),
                "{name}: {} has something else",
                node.host
            );
        }
        println!("{name}: over after {:.1} s", tree.now.as_secs_f64());
    }
}
