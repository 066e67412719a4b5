//! A gate for UDP under COCOON. The window of the virtual connection limits all UDP flows to one destination.
//!
//! Local programs send to the gate instead of the destination. The packets from one local address form a flow. Flows send in turn
//! (paper 002, 4.5, rule 2), and each flow queues at most [`BACKLOG`] packets. A packet from the destination is forwarded to the
//! flow that it answers.

use crate::regulator::{Opening, Regulator};
use crate::{CocoonError, Loaded, Place, own_netns};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of packets in the queue of a flow. Further packets are dropped.
pub const BACKLOG: usize = 64;

/// Maximum number of flows of a gate. Packets of further flows are dropped.
pub const MAX_FLOWS: usize = 256;

/// Duration of silence after which a flow is removed.
const FORGET: Duration = Duration::from_secs(10);

/// Interval between readings of the group's state while packets wait.
const LOOK: Duration = Duration::from_millis(1);

/// Counters of packets through a gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct GateCounters {
    /// Number of sent packets.
    pub sent: u64,
    /// Number of bytes in the sent packets.
    pub bytes: u64,
    /// Number of packets dropped because the queue of a flow was full or there were too many flows.
    pub dropped: u64,
    /// Maximum number of simultaneous flows.
    pub flows: usize,
}

struct Flow {
    from: SocketAddr,
    out: UdpSocket,
    waiting: VecDeque<Vec<u8>>,
    received: Instant,
}

/// Forwards UDP packets from `listen` to `to` until `stop` is set. The packets are limited by the window of the group to which
/// `to` belongs in this network namespace.
///
/// # Errors
/// Fails if no congestion control is loaded at `place`, or a socket cannot be opened.
pub fn run(
    place: &Place,
    listen: SocketAddr,
    to: SocketAddr,
    opening: Opening,
    stop: &AtomicBool,
) -> Result<GateCounters, CocoonError> {
    let loaded = Loaded::find(place)?;
    let netns = own_netns()?;
    let socket = UdpSocket::bind(listen).map_err(|source| CocoonError::Socket {
        what: "listen on",
        address: listen,
        source,
    })?;
    let failed = |source| CocoonError::Socket { what: "listen on", address: listen, source };
    socket.set_read_timeout(Some(LOOK)).map_err(failed)?;
    let mut gate = Gate { to, flows: Vec::new(), turn: 0, passed: GateCounters::default() };
    let mut regulator = Regulator::new(opening);
    let begin = Instant::now();
    let mut packet = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        // Waits up to a millisecond for the first packet. Then reads further packets that have already arrived, up to `BACKLOG`
        // packets in total.
        let mut blocking = true;
        for _ in 0..BACKLOG {
            match socket.recv_from(&mut packet) {
                Ok((length, from)) => gate.take(from, &packet[..length]),
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    break;
                }
                Err(source) => return Err(failed(source)),
            }
            if blocking {
                blocking = false;
                socket.set_nonblocking(true).map_err(failed)?;
            }
        }
        if !blocking {
            socket.set_nonblocking(false).map_err(failed)?;
        }
        gate.forget();
        let group = loaded.group(&loaded.key_of(to.ip(), netns)?)?;
        regulator.observe(begin.elapsed(), gate.flows.len(), group.as_ref());
        while regulator.may_send() {
            let Some(bytes) = gate.send_next() else { break };
            regulator.sent(bytes);
        }
        gate.answer(&socket, &mut packet);
    }
    Ok(gate.passed)
}

struct Gate {
    to: SocketAddr,
    flows: Vec<Flow>,
    /// Index of the flow that sends next.
    turn: usize,
    passed: GateCounters,
}

impl Gate {
    /// Queues a packet of a local program.
    fn take(&mut self, from: SocketAddr, packet: &[u8]) {
        let at = match self.flows.iter().position(|flow| flow.from == from) {
            Some(at) => at,
            None => match self.new_flow(from) {
                Some(at) => at,
                None => {
                    self.passed.dropped += 1;
                    return;
                }
            },
        };
        let flow = &mut self.flows[at];
        flow.received = Instant::now();
        if flow.waiting.len() >= BACKLOG {
            self.passed.dropped += 1;
        } else {
            flow.waiting.push_back(packet.to_vec());
        }
    }

    fn new_flow(&mut self, from: SocketAddr) -> Option<usize> {
        if self.flows.len() >= MAX_FLOWS {
            return None;
        }
        let any: IpAddr = match self.to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let out = UdpSocket::bind((any, 0)).ok()?;
        out.connect(self.to).ok()?;
        out.set_nonblocking(true).ok()?;
        self.flows.push(Flow { from, out, waiting: VecDeque::new(), received: Instant::now() });
        self.passed.flows = self.passed.flows.max(self.flows.len());
        Some(self.flows.len() - 1)
    }

    /// Removes flows that have no queued packets and have been silent for [`FORGET`].
    fn forget(&mut self) {
        self.flows.retain(|flow| !flow.waiting.is_empty() || flow.received.elapsed() < FORGET);
    }

    /// Sends the next packet of the flow whose turn it is. Returns the packet's length in bytes, or `None` if no packet waits.
    fn send_next(&mut self) -> Option<usize> {
        for step in 0..self.flows.len() {
            let at = (self.turn + step) % self.flows.len();
            let flow = &mut self.flows[at];
            let Some(packet) = flow.waiting.pop_front() else { continue };
            self.turn = at + 1;
            // A packet that the network refuses counts as lost.
            if flow.out.send(&packet).is_ok() {
                self.passed.sent += 1;
                self.passed.bytes += packet.len() as u64;
            }
            return Some(packet.len());
        }
        None
    }

    /// Forwards packets from the destination to the local programs.
    fn answer(&mut self, socket: &UdpSocket, packet: &mut [u8]) {
        for flow in &mut self.flows {
            for _ in 0..BACKLOG {
                let Ok(length) = flow.out.recv(packet) else { break };
                flow.received = Instant::now();
                let _ = socket.send_to(&packet[..length], flow.from);
            }
        }
    }
}
