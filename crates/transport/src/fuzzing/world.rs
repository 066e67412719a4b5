//! A fuzzed world in virtual time: a source, a receiver, and the nodes between them. The fuzzers of relays and layers use it.
//!
//! ```text
//!   SOURCE -- group --> RELAY (above | BRANCH, children) -- group --> RECEIVER
//! ```
//!
//! Each datagram takes 3 ms. The calls and datagrams of the endpoints are counted, and limited in proportion to the elapsed time.

use super::hostile::{Hostile, Pool};
use super::nodes::{RelayHost, Setting};
use super::places::{RECEIVER, RELAY, SOURCE};
use crate::endpoint::{Backlog, Datagram, Endpoint, HostEvent};
use crate::receiver::ReceiverSession;
use crate::source::SourceSession;
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use std::collections::VecDeque;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// The delay of a datagram.
const DELAY: Span = Span::from_millis(3);

/// Limit of the number of datagrams sent by all endpoints together: a constant, and the allowed increase per millisecond.
/// `MAX_TURNS` limits the number of requested calls in the same form. Sources and branches have 1 Mbit/s.
const MAX_SENT: (u64, u64) = (1_500, 16);
const MAX_TURNS: (u64, u64) = (3_000, 32);

/// Maximum number of datagrams in flight; others are lost.
const MAX_FLIGHTS: usize = 4_096;

/// Maximum total time without any datagram after which the content must still arrive; the idle timeout is 30 s.
const MAX_OUTAGE: Span = Span::from_secs(8);

/// The treatment of datagrams in a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DatagramAction {
    Arrive,
    Lose,
}

struct Flight {
    at: Time,
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// The endpoints, the network between them, and the attacker.
pub(super) struct World {
    pub(super) now: Time,
    pub(super) setting: Setting,
    pub(super) source: SourceSession,
    pub(super) relay: Option<RelayHost>,
    pub(super) receiver: ReceiverSession,
    pub(super) hostile: Hostile,
    flights: VecDeque<Flight>,
    content: Vec<u8>,
    out: PathBuf,
    /// Whether no host may have accepted a forged datagram. If so, the content must arrive.
    pub(super) faithful: bool,
    lost: Span,
    /// Number of restarted processes.
    processes: u64,
}

impl World {
    pub(super) fn new(setting: Setting, scratch: &Path, correct: fn(&mut [u8])) -> World {
        let content: Vec<u8> = (0..12_000u32).map(|at| (at * at / 7) as u8).collect();
        let (file, out) = (scratch.join("content"), scratch.join("out"));
        if !file.exists() {
            fs::write(&file, &content).expect("the scratch directory can be written");
        }
        fs::create_dir_all(&out).expect("the scratch directory can be written");
        World {
            now: Time::ZERO,
            source: setting.source(&file),
            relay: setting.relay(0, Time::ZERO),
            receiver: setting.receiver(0, &out, Time::ZERO),
            hostile: Hostile::new(setting.key.clone(), correct),
            faithful: setting.promises(content.len()),
            setting,
            flights: VecDeque::new(),
            content,
            out,
            lost: Span::ZERO,
            processes: 0,
        }
    }

    fn endpoints(&mut self) -> Vec<(SocketAddr, &mut dyn Endpoint)> {
        let mut all: Vec<(SocketAddr, &mut dyn Endpoint)> = vec![(SOURCE, &mut self.source)];
        all.extend(self.relay.iter_mut().flat_map(RelayHost::endpoints));
        all.push((RECEIVER, &mut self.receiver));
        all.retain(|(_, endpoint)| !endpoint.is_finished());
        all
    }

    /// Runs all due work. Returns the number of sent datagrams.
    fn drive(&mut self, fate: DatagramAction) -> u64 {
        let (now, mut sent, mut out) = (self.now, Vec::new(), Vec::new());
        for (from, endpoint) in self.endpoints() {
            if endpoint.poll_timeout(now) <= now {
                endpoint.handle_timeout(now);
            }
            for _ in 0..64 {
                let Some(transmit) = endpoint.poll_transmit(now, &mut out) else { break };
                sent.extend(
                    out.chunks(transmit.segment.max(1)).map(|bytes| (from, transmit.to, bytes.to_vec())),
                );
            }
            while endpoint.poll_event().is_some() {}
        }
        if let Some(relay) = &mut self.relay {
            relay.grow(now);
        }
        let count = sent.len() as u64;
        for (from, to, bytes) in sent {
            self.hostile.record(Pool::of(from, to), &bytes);
            if fate == DatagramAction::Arrive && self.flights.len() < MAX_FLIGHTS {
                self.flights.push_back(Flight { at: now + DELAY, from, to, bytes });
            }
        }
        count
    }

    fn next_timeout(&mut self) -> Time {
        let now = self.now;
        let wakes = self.endpoints().into_iter().map(|(_, endpoint)| endpoint.poll_timeout(now));
        wakes.fold(Time::NEVER, Time::min)
    }

    /// Advances the time by `span`.
    pub(super) fn run(&mut self, span: Span, fate: DatagramAction) {
        if fate == DatagramAction::Lose {
            self.lost = self.lost + span;
            // After two seconds without children, a relay may end.
            self.faithful &= self.lost <= MAX_OUTAGE && (self.setting.is_joined || self.relay.is_none());
        }
        let (until, millis) = (self.now + span, span.as_nanos() / 1_000_000);
        let (mut sent, mut turns) = (0, 0);
        loop {
            sent += self.drive(fate);
            turns += 1;
            assert!(
                sent <= MAX_SENT.0 + MAX_SENT.1 * millis,
                "{sent} datagrams in {span}: {}",
                self.describe()
            );
            assert!(
                turns <= MAX_TURNS.0 + MAX_TURNS.1 * millis,
                "{turns} turns in {span}: {}",
                self.describe()
            );
            let arrival = self.flights.front().map_or(Time::NEVER, |flight| flight.at);
            let next = self.next_timeout().min(arrival).max(self.now + Span::from_micros(10));
            if next > until {
                break;
            }
            self.now = next;
            while self.flights.front().is_some_and(|flight| flight.at <= next)
                && let Some(mut flight) = self.flights.pop_front()
            {
                self.arrive(flight.from, flight.to, &mut flight.bytes);
            }
        }
        self.now = until;
        if let Some(relay) = &self.relay {
            relay.assert_bounded(&self.setting);
        }
    }

    /// Delivers a datagram to the receiving hosts.
    pub(super) fn arrive(&mut self, from: SocketAddr, to: SocketAddr, bytes: &mut [u8]) {
        let (now, kind) = (self.now, self.setting.kind);
        if to.ip().is_multicast() {
            let IpAddr::V4(address) = to.ip() else { return };
            let layer = usize::from(address.octets()[3]).saturating_sub(1);
            let of_source = from.ip() == SOURCE.ip();
            if of_source && let Some(relay) = self.relay.as_mut().filter(|relay| relay.receives(layer)) {
                relay.give_above(from, &mut bytes.to_vec(), now);
            }
            let receives = if of_source { kind.is_received_downstream() } else { kind.has_group() };
            let is_wanted = kind.is_received_downstream() || !kind.is_by_unicast();
            let has_joined = self.receiver.groups().len() >= layer;
            let in_group = !kind.is_by_unicast() || self.receiver.receives_group();
            if receives && is_wanted && has_joined && in_group {
                give(&mut self.receiver, from, bytes, now);
            }
        } else if to == SOURCE {
            give(&mut self.source, from, bytes, now);
        } else if to == RECEIVER {
            give(&mut self.receiver, from, bytes, now);
        } else if let Some((bytes, to)) =
            self.relay.as_mut().and_then(|relay| relay.give(from, to, bytes, now))
        {
            self.flights.push_back(Flight { at: now + DELAY, from: RELAY, to, bytes });
        }
    }

    /// Ends the relay's process and starts another one.
    pub(super) fn restart_relay(&mut self, number: u64) {
        // The receiver may still need a source that has completed and ended.
        self.faithful &= !self.source.is_finished();
        if self.relay.is_some() {
            // Each process draws different random numbers.
            self.processes += 1;
            self.relay = self.setting.relay(self.processes << 6 | number, self.now);
        }
    }

    /// Ends the receiver's process and starts another one in the same directory.
    pub(super) fn restart_receiver(&mut self, number: u64) {
        if !self.receiver.is_finished() {
            self.faithful = false;
            self.receiver = self.setting.receiver(1 + number, &self.out, self.now);
        }
    }

    /// Changes the network or the load of the hosts.
    pub(super) fn notice(&mut self, which: u8) {
        let now = self.now;
        let backlog = Backlog { used: 1 << 19, capacity: 1 << 20, dropped: u64::from(which) };
        let notice = match which & 3 {
            0 => HostEvent::NetworkChanged { local: None },
            1 => HostEvent::Backlog(backlog),
            2 => HostEvent::Drained,
            _ => HostEvent::JoinFailed { place: 0, why: &"its port is taken" },
        };
        self.faithful &= which & 3 != 3;
        self.endpoints().into_iter().for_each(|(_, endpoint)| endpoint.handle_host_event(notice, now));
    }

    /// Asks the relay to end.
    pub(super) fn stop_relay(&mut self) {
        let now = self.now;
        self.faithful = false;
        if let Some(relay) = &mut self.relay {
            relay.endpoints().into_iter().for_each(|(_, endpoint)| endpoint.stop(now));
        }
    }

    /// Returns a readable description of the state.
    fn describe(&self) -> String {
        let World { now, setting, source, relay, receiver, .. } = self;
        let relay = relay.as_ref().and_then(|relay| relay.shared.status());
        let (source, receiver) = (source.is_finished(), receiver.is_finished());
        format!("at {now:?}, source over: {source}, receiver over: {receiver}, relay {relay:?}, {setting:?}")
    }

    /// Ends the attack. If no host may have accepted a forged datagram, checks that the content arrives.
    pub(super) fn finish(mut self) {
        if self.faithful {
            for _ in 0..240 {
                if self.source.is_finished() && self.receiver.is_finished() {
                    break;
                }
                self.run(Span::from_secs(1), DatagramAction::Arrive);
            }
            let got = fs::read(self.out.join("content"));
            assert!(got.is_ok_and(|got| got == self.content), "it did not arrive: {}", self.describe());
        }
        let World { out, relay, receiver, source, .. } = self;
        drop((relay, receiver, source));
        let _ = fs::remove_dir_all(out);
    }
}

fn give(to: &mut dyn Endpoint, from: SocketAddr, bytes: &mut [u8], now: Time) {
    to.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now }, now);
}
