//! The hosts of a fuzzed world.

use super::places::{BRANCH, RELAY, SOURCE};
use crate::config::{Destination, SlowReceiverPolicy};
use crate::endpoint::{Datagram, Endpoint};
use crate::object::ObjectStream;
use crate::object::gather::spill::SpillFile;
use crate::object::host::disk::Disk;
use crate::receiver::{self, ReceiverSession};
use crate::relay::{Branch, BranchSetup, RelayHandle, RouterKind, SessionHandle, Upstream};
use crate::source::{self, SourceSession, block_source::BlockSource, scheduler::of_blocks};
use crate::tree::{Agent, AgentChild, ExitSetup, Hop, HopExit, Node};
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_net::Ecn;
use faircast_wire::{
    Attach, Form, GroupKey, Kind as Wire, Message, Name, Newest, ReceiverCodec, SourceCodec, Spacing,
    data_header_len, parse, peek,
};
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

pub(super) const SESSION: SessionId = SessionId(0xfa1c_a570);
pub(super) const SALT: [u8; 16] = [7; 16];
const UNIX_SECS: u64 = 1_790_000_000;
/// IP and UDP headers.
const OVERHEAD: usize = 28;
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of children that a relay serves by unicast.
const MAX_CHILDREN: usize = 4;

/// The node between source and receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No node.
    Direct,
    /// A relay with a branch to a group.
    Repeater,
    /// A relay that has a branch to a group, and extends its memory by a file.
    Spilling,
    /// A relay that serves the receiver by unicast, at the receiver's request.
    Unicast,
    Agent,
    Hop(RouterKind),
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::Direct,
        Kind::Repeater,
        Kind::Spilling,
        Kind::Unicast,
        Kind::Agent,
        Kind::Hop(RouterKind::Raccoom),
        Kind::Hop(RouterKind::Rmanp),
        Kind::Repeater,
    ];

    /// Whether the receiver listens to the source's own group.
    pub(super) const fn is_received_downstream(self) -> bool {
        matches!(self, Kind::Direct | Kind::Agent)
    }

    /// Whether the relay has a downstream group.
    pub(super) const fn has_group(self) -> bool {
        matches!(self, Kind::Repeater | Kind::Spilling | Kind::Hop(_))
    }

    /// Whether the receiver attaches at the relay's port.
    pub(super) const fn is_by_unicast(self) -> bool {
        matches!(self, Kind::Unicast | Kind::Agent)
    }
}

/// The configuration of a world.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) kind: Kind,
    pub(super) key: Option<GroupKey>,
    pub(super) scheme: Scheme,
    cut: (u16, u16),
    /// Size of the relay's cache, in bytes.
    pub(super) memory: usize,
    /// Whether the first second is free of faults.
    pub(super) is_joined: bool,
}

impl Setting {
    /// Reads the configuration from two bytes. First byte: bits 0 to 2 select the node between source and receiver, bit 3 selects
    /// encryption. Bits 4 to 7 select the scheme, unless the node determines it. Second byte: bits 0 to 2 select the geometry,
    /// bits 3 and 4 the relay's memory, and bit 5 whether the first second is without faults. If `layered` is set, the scheme has
    /// layers, and the node is a repeater or absent.
    pub(super) fn of([first, second]: [u8; 2], layered: bool) -> Setting {
        let free = [
            "ormcc",
            "tfmcc",
            "pgmcc",
            "le-sbcc",
            "mca",
            "mca-plus",
            "rlc,base=100000",
            "gmcc",
            "smcc",
            "ormcc,policy=equation",
            "mtcp",
            "ormcc",
            "raccoom",
            "rmanp",
            "tfmcc",
            "rlc",
        ];
        let kind = match layered {
            true => [Kind::Direct, Kind::Repeater, Kind::Spilling, Kind::Direct][usize::from(first & 3)],
            false => Kind::ALL[usize::from(first & 7)],
        };
        let scheme = match kind {
            Kind::Agent => "mtcp",
            Kind::Hop(kind) => kind.scheme(),
            _ if layered => free[6 + usize::from(first >> 4) % 3],
            _ => free[usize::from(first >> 4)],
        };
        let cut = [(360, 8), (360, 1), (400, 2), (320, 20), (448, 3), (360, 32), (440, 1), (328, 5)];
        Setting {
            kind,
            key: (first & 8 != 0).then(|| GroupKey::from_bytes([9; 32])),
            scheme: scheme.parse().expect("a scheme of the catalogue"),
            cut: cut[usize::from(second & 7)],
            memory: [1 << 16, 0, 2_000, 6_000][usize::from(second >> 3 & 3)],
            is_joined: second & 0x20 != 0,
        }
    }

    /// Whether content of this length must arrive if there are no faults. If a relay's memory is too small for a whole block, the
    /// content need not arrive.
    pub(super) fn promises(&self, bytes: usize) -> bool {
        !matches!(self.kind, Kind::Repeater | Kind::Unicast) || self.memory > 2 * bytes
    }

    pub(super) fn source(&self, file: &Path) -> SourceSession {
        let (symbol, symbols) = self.cut;
        let object =
            ObjectStream::open(&[file.to_path_buf()], symbol, symbols).expect("a small file can be read");
        let layers = self.scheme.layers();
        let form = if self.key.is_some() { Form::Sealed } else { Form::Open };
        let datagram = usize::from(symbol) + data_header_len(&self.scheme.mark(), form);
        let setup = source::Setup {
            codec: SourceCodec::new(SESSION, self.key.as_ref(), SALT),
            salt: SALT,
            groups: groups(layers),
            scheme: self.scheme.with_packet_size((datagram + OVERHEAD) as u16),
            spacing: Spacing::Address,
            scheduler: of_blocks(BlockSource::files(object), layers),
            sign: None,
            receipts: None,
            rng: Rng::new(1, 0),
            name: "source".to_owned(),
            datagram,
            overhead: OVERHEAD,
            slow: SlowReceiverPolicy::Follow,
            one_way: None,
            min: None,
            max: Some(Rate::from_mbps(1.0)),
            day_limits: None,
            expect: None,
            to_hosts: Name::EMPTY,
            series: None,
            dry_run: None,
            required: Vec::new(),
            join_timeout: IDLE_TIMEOUT,
            not_before: Time::ZERO,
            start: crate::config::StartNow::default(),
            ttl: 1,
            idle_timeout: IDLE_TIMEOUT,
            spread: Span::from_millis(10),
            local: SOURCE,
            receiver_events: crate::config::ReceiverEvents::Off,
            started: UNIX_SECS * 1_000_000_000,
        };
        SourceSession::new(setup, Time::ZERO)
    }

    pub(super) fn receiver(&self, number: u64, out: &Path, now: Time) -> ReceiverSession {
        let id = ReceiverId::new(5 + number).expect("five and more is not zero");
        let codec = ReceiverCodec::new(self.key.as_slice(), id, 0xb007 + number);
        let parents = if self.kind.is_by_unicast() { vec![RELAY] } else { Vec::new() };
        let destination = Destination::Directory(out.to_path_buf());
        ReceiverSession::new(member(codec, id, (number, parents), destination, None), now)
    }

    /// Returns the relay's process with this number.
    pub(super) fn relay(&self, number: u64, now: Time) -> Option<RelayHost> {
        (self.kind != Kind::Direct).then(|| RelayHost::new(self, number, now))
    }
}

/// Returns the session of a receiver, or the upstream session of a relay.
fn member(
    codec: ReceiverCodec,
    id: ReceiverId,
    (number, parents): (u64, Vec<SocketAddr>),
    destination: Destination,
    relay: Option<SessionHandle>,
) -> receiver::Setup {
    receiver::Setup {
        host: "host".to_owned(),
        idle_timeout: Span::from_nanos(IDLE_TIMEOUT.as_nanos() as u64),
        parents,
        relay: relay.map(|relay| Box::new(relay) as Box<dyn receiver::Relaying>),
        ..receiver::Setup::plain(codec, id, 2 + number, destination, (groups(1)[0], UNIX_SECS))
    }
}

pub(super) fn groups(layers: u8) -> Vec<SocketAddr> {
    (0..layers.max(1)).map(|layer| SocketAddr::from(([239, 255, 70, 1 + layer], 5777))).collect()
}

/// A process and its sessions refer to each other, so dropping the process must release the sessions explicitly.
impl Drop for RelayHost {
    fn drop(&mut self) {
        self.shared.release();
    }
}

/// A process of a relay.
pub(super) struct RelayHost {
    kind: Kind,
    id: ReceiverId,
    key: Option<GroupKey>,
    pub(super) shared: SessionHandle,
    agent: Option<Node<Agent>>,
    hop: Option<Node<Hop>>,
    above: Upstream,
    below: Option<Box<dyn Endpoint>>,
    children: Vec<(SocketAddr, Box<dyn Endpoint>)>,
    drawn: u64,
}

impl RelayHost {
    fn new(setting: &Setting, number: u64, now: Time) -> RelayHost {
        let (kind, key) = (setting.kind, setting.key.clone());
        let id = ReceiverId::new(1_001 + 2 * number).expect("it is not zero");
        let (hop, handle) = (key.as_ref().map(GroupKey::hop), RelayHandle::default());
        let codec = ReceiverCodec::of_relay(hop.as_ref(), id, 0xb0 + number);
        let (mut agent, mut router) = (None, None);
        let shared = match kind {
            Kind::Agent => {
                handle.be_agent();
                let node = agent.insert(Node::new(Agent::new(id, 0xa0 + number, hop, number)));
                SessionHandle::of_mode(handle, node.mode(), 0)
            }
            Kind::Hop(kind) => {
                let node = router.insert(Node::new(Hop::new(id, kind, hop, number)));
                SessionHandle::of_mode(handle, node.mode(), 1)
            }
            _ => {
                let nameless = || -> std::io::Result<File> {
                    rustix::fs::memfd_create("cache", rustix::fs::MemfdFlags::CLOEXEC)
                        .map(File::from)
                        .map_err(Into::into)
                };
                let room = (kind == Kind::Spilling).then(|| SpillFile {
                    disk: Disk::default(),
                    file: nameless().expect("memory makes a file"),
                    path: "cache".into(),
                });
                SessionHandle::new(handle, usize::from(kind.has_group()), setting.memory, room)
            }
        };
        shared.take_children(MAX_CHILDREN, Default::default());
        let destination = Destination::Writer(crate::Output::new(std::io::sink()));
        let session = member(codec, id, (100 + number, Vec::new()), destination, Some(shared.clone()));
        let above = Upstream::new(ReceiverSession::new(session, now), shared.clone());
        let mut host = RelayHost {
            kind,
            id,
            key,
            shared,
            agent,
            hop: router,
            above,
            below: None,
            children: Vec::new(),
            drawn: number << 8,
        };
        host.below = match kind {
            Kind::Repeater | Kind::Spilling => Some(host.branch(0, groups(1)[0], BRANCH)),
            Kind::Hop(_) => Some(host.exit()),
            _ => None,
        };
        host
    }

    fn branch(&mut self, place: usize, to: SocketAddr, local: SocketAddr) -> Box<dyn Endpoint> {
        self.shared.announces_from(local);
        self.drawn += 1;
        let setup = BranchSetup {
            me: self.id,
            boot: 0xc000 + self.drawn,
            key: self.key.as_ref().map(GroupKey::hop),
            to,
            local,
            overhead: OVERHEAD,
            max: Some(Rate::from_mbps(1.0)),
            ttl: 1,
            idle_timeout: IDLE_TIMEOUT,
            spread: Span::from_millis(10),
            seed: self.drawn,
            receiver_events: crate::config::ReceiverEvents::Off,
            to_host: !to.ip().is_multicast(),
        };
        Box::new(Branch::new(self.shared.clone(), place, setup))
    }

    fn exit(&mut self) -> Box<dyn Endpoint> {
        self.shared.announces_from(BRANCH);
        let setup = ExitSetup { boot: 0xd000 + self.drawn, local: BRANCH, overhead: OVERHEAD };
        let hop = self.hop.clone().expect("it is a hop");
        let exit = hop.with(|hop| hop.add_exit(setup));
        Box::new(HopExit::new(self.shared.clone(), hop, 0, exit, groups(1)[0]))
    }

    /// Returns all endpoints with their addresses.
    pub(super) fn endpoints(&mut self) -> Vec<(SocketAddr, &mut dyn Endpoint)> {
        let mut all: Vec<(SocketAddr, &mut dyn Endpoint)> = vec![(RELAY, &mut self.above)];
        all.extend(self.below.as_deref_mut().map(|below| (BRANCH, below as &mut dyn Endpoint)));
        all.extend(self.children.iter_mut().map(|(_, child)| (RELAY, &mut **child as &mut dyn Endpoint)));
        all
    }

    /// Creates an endpoint for each host that has attached.
    pub(super) fn grow(&mut self, now: Time) {
        // The loop of the real driver also calls each endpoint once per iteration.
        self.children.iter_mut().for_each(|(_, child)| child.handle_timeout(now));
        self.children.retain(|(_, child)| !child.is_finished());
        for (place, id, address) in self.shared.grown() {
            let child = match &self.agent {
                Some(agent) => {
                    Box::new(AgentChild::new(self.shared.clone(), agent.clone(), place, id, address))
                }
                None => self.branch(place, address, RELAY),
            };
            self.children.push((address, child));
        }
    }

    pub(super) fn receives(&self, layer: usize) -> bool {
        self.above.groups().len() >= layer
    }

    pub(super) fn give_above(&mut self, from: SocketAddr, bytes: &mut [u8], now: Time) {
        self.above.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now }, now);
    }

    /// Delivers a datagram to one of the relay's sockets. Returns the reply of the relay's port, if any.
    pub(super) fn give(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &mut [u8],
        now: Time,
    ) -> Option<(Vec<u8>, SocketAddr)> {
        let datagram = Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now };
        if to == BRANCH {
            if let Some(below) = &mut self.below {
                below.handle_datagram(datagram, now);
            }
            return None;
        }
        let child =
            self.children.iter_mut().find(|(address, child)| *address == from && !child.is_finished());
        if let Some((_, child)) = child {
            child.handle_datagram(datagram, now);
        } else if self.kind.is_by_unicast()
            && peek(datagram.bytes).is_ok_and(|header| header.kind == Wire::Attach)
        {
            let Ok((_, Message::Attach(attach))) = parse(datagram.bytes, &Newest::default()) else {
                return None;
            };
            return self.shared.at_port(&attach, (from, to)).map(|token| (token, from));
        } else {
            self.above.handle_datagram(datagram, now);
        }
        None
    }

    /// Attaches a host that proves its address.
    pub(super) fn attach(&mut self, from: SocketAddr, id: ReceiverId) {
        let host = Name::clipped("stranger");
        let mut attach = Attach { from: id, token: [0; 16], invitation: 0, relay: false, host };
        let Some(reported) = self.shared.at_port(&attach, (from, RELAY)) else { return };
        if let Ok((_, Message::Token(token))) = parse(&reported, &Newest::default()) {
            attach.token = token.token;
            let _ = self.shared.at_port(&attach, (from, RELAY));
        }
    }

    /// Checks that the relay does not cache more than its limit.
    pub(super) fn assert_bounded(&self, setting: &Setting) {
        let places = self.shared.places();
        assert!(places <= 1 + 3 * MAX_CHILDREN, "{places} branches");
        assert!(self.children.len() <= 2 * MAX_CHILDREN, "{} children", self.children.len());
        let Some(status) = self.shared.status() else { return };
        // Blocks stay in the cache while they are sent or read, even beyond the limit.
        let most = setting.memory as u64 + (16 << 10);
        assert!(status.cached_bytes <= most, "{} bytes are kept", status.cached_bytes);
    }
}
