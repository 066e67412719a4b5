//! The part of a relay process that relays one session: a given session, or the next one that the process finds. It creates the
//! upstream endpoint, and an endpoint for each branch and each served host.

use super::{Agent, AgentChild, ExitSetup, Hop, HopExit, Node};
use crate::config::{FilePolicy, span, spread_within};
use crate::datagram::overhead;
use crate::endpoint::Endpoint;
use crate::object::gather::spill::SpillFile;
use crate::object::host::disk::Disk;
use crate::relay::{
    Branch, BranchSetup, Child, RelayConfig, RelayHandle, RelayRole, RelaySource, SessionHandle, Upstream,
};
use crate::worker::Worker;
use crate::{Destination, Durability, Output, OverwritePolicy, ReplayPolicy, SessionFilter, receiver};
use faircast_core::packet::ReceiverId;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use faircast_wire::ReceiverCodec;
use std::net::SocketAddr;

/// A session at a relay.
#[derive(Debug)]
pub struct RelaySession {
    config: RelayConfig,
    role: Role,
    shared: SessionHandle,
    id: ReceiverId,
    random: [u64; 4],
}

/// The relay's role in the session, with its node.
#[derive(Debug)]
enum Role {
    Repeater,
    Agent(Node<Agent>),
    Hop(Node<Hop>),
}

/// Number, addresses and limits of a branch.
#[derive(Debug, Clone, Copy)]
pub struct BranchPlace {
    /// Number of the branch.
    pub place: usize,
    /// Destination of packets: a group or host.
    pub to: SocketAddr,
    /// Local address and port from which packets are sent.
    pub local: SocketAddr,
    /// Time to live of packets.
    pub ttl: u8,
    /// Maximum rate.
    pub max: Option<Rate>,
    /// Random numbers for the branch.
    pub random: [u64; 2],
}

/// A host that has attached by unicast.
#[derive(Debug, Clone)]
pub struct ServedHost {
    /// Number of the host's branch.
    pub place: usize,
    /// Address and port of the host.
    pub address: SocketAddr,
    /// Local address and port to which the host has sent, and from which it is answered.
    pub local: SocketAddr,
    id: ReceiverId,
}

impl RelaySession {
    /// Creates a session of this process with these random numbers. `branches` is the number of configured branches. `room`
    /// stores the symbols that do not fit in memory.
    pub fn new(
        config: &RelayConfig,
        handle: &RelayHandle,
        branches: usize,
        random: [u64; 4],
        room: Option<SpillFile>,
    ) -> RelaySession {
        let id = ReceiverId::new(u64::from(random[0] as u32 | 1)).expect("an odd number is not zero");
        let (process, key) = (handle.clone(), config.key.clone());
        let role = match config.role {
            RelayRole::Repeater => Role::Repeater,
            RelayRole::Router(kind) => Role::Hop(Node::new(Hop::new(id, kind, key, random[3]))),
            RelayRole::Agent => {
                handle.be_agent();
                let [boot, seed, ..] = handle.draw();
                Role::Agent(Node::new(Agent::new(id, boot, key, seed)))
            }
        };
        let shared = match &role {
            Role::Repeater => SessionHandle::new(process, branches, config.memory, room),
            Role::Agent(agent) => SessionHandle::of_mode(process, agent.mode(), 0),
            Role::Hop(hop) => SessionHandle::of_mode(process, hop.mode(), branches),
        };
        if config.paced {
            shared.hold_above(config.memory as u64 / 2);
        }
        handle.add_own_id(id);
        RelaySession { config: config.clone(), role, shared, id, random }
    }

    /// Creates the endpoint that receives the upstream session; `unix_secs` is the present time in seconds since 1970.
    pub fn above(&self, source: &RelaySource, unix_secs: u64, now: Time) -> Upstream {
        let (config, id, random) = (&self.config, self.id, self.random);
        let setup = receiver::Setup {
            codec: ReceiverCodec::of_relay(config.key.as_ref(), id, random[1]),
            id,
            nonce: (random[0] >> 32) as u16,
            seed: random[2],
            scheme_rng: Rng::new(random[2], 0),
            reordering: receiver::REORDERING,
            host: config.host.clone(),
            temporary: std::env::temp_dir(),
            destination: Destination::Writer(Output::new(std::io::sink())),
            layers_to: Vec::new(),
            durability: Durability::Fast,
            files: FilePolicy { overwrite: OverwritePolicy::Accept, ..FilePolicy::default() },
            verify: None,
            sign_receipts: None,
            only: source.only,
            overhead: overhead(source.group),
            join_timeout: None,
            idle_timeout: span(config.idle_timeout),
            group: source.group,
            replay_policy: ReplayPolicy::Answer,
            unix_secs,
            memory: receiver::INCOMPLETE,
            parents: source.parents.clone(),
            invited: false,
            accept: SessionFilter::default(),
            worker: Worker::at_once(), // a relay writes no files
            disk: Disk::default(),
            relay: Some(Box::new(self.shared.clone())),
        };
        Upstream::new(receiver::ReceiverSession::new(setup, now), self.shared.clone())
    }

    /// Creates the endpoint of a branch.
    pub fn branch(&self, at: BranchPlace) -> Box<dyn Endpoint + Send> {
        let BranchPlace { place, to, local, ttl, max, random: [boot, seed] } = at;
        self.shared.announces_from(local);
        if let Role::Hop(hop) = &self.role {
            let setup = ExitSetup { boot, local, overhead: overhead(to) };
            let exit = hop.with(|hop| hop.add_exit(setup));
            return Box::new(HopExit::new(self.shared.clone(), hop.clone(), place, exit, to));
        }
        let is_group = to.ip().is_multicast();
        // With a single host, feedback need not be spread over time as in a group.
        let spread = spread_within(if is_group { ttl } else { 1 });
        let setup = BranchSetup {
            me: self.id,
            boot,
            key: self.config.key.clone(),
            to,
            local,
            overhead: overhead(to),
            max,
            ttl,
            idle_timeout: self.config.idle_timeout,
            spread,
            seed,
            receiver_events: self.config.receiver_events,
            to_host: !is_group,
        };
        Box::new(Branch::new(self.shared.clone(), place, setup))
    }

    /// Returns the hosts that have attached since the last call.
    pub fn new_hosts(&self) -> Vec<ServedHost> {
        let host = |child: Child| {
            let Child { address, local, id, .. } = child;
            ServedHost { place: self.shared.add_branch(&child), address, local, id }
        };
        self.shared.new_children().into_iter().map(host).collect()
    }

    /// Creates the endpoint that serves a host from `local`. `draw` returns random numbers.
    pub fn serve(
        &self,
        host: &ServedHost,
        local: SocketAddr,
        draw: impl FnOnce() -> [u64; 4],
    ) -> Box<dyn Endpoint + Send> {
        let &ServedHost { place, address, id, .. } = host;
        if let Role::Agent(agent) = &self.role {
            return Box::new(AgentChild::new(self.shared.clone(), agent.clone(), place, id, address));
        }
        let [boot, seed, ..] = draw();
        self.branch(BranchPlace { place, to: address, local, ttl: 1, max: None, random: [boot, seed] })
    }

    /// Frees the place of a host that could not be served.
    pub fn not_served(&self, host: &ServedHost) {
        self.shared.not_served(host.place, host.address);
    }

    /// Whether the relay is an agent inside sessions.
    pub const fn is_agent(&self) -> bool {
        matches!(self.role, Role::Agent(_))
    }

    /// Whether the relay is an active router.
    pub const fn is_hop(&self) -> bool {
        matches!(self.role, Role::Hop(_))
    }

    /// Returns the address and port from which the session is received.
    pub fn parent(&self) -> Option<SocketAddr> {
        self.shared.parent()
    }

    /// Releases the session, so that this process may join it again.
    pub fn release(&self) {
        self.shared.release();
    }
}

impl Drop for RelaySession {
    fn drop(&mut self) {
        self.shared.process().remove_own_id(self.id);
    }
}
