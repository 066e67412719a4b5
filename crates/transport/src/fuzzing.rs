//! Entry points of the fuzzers, and tests that replay stored inputs. Other builds do not contain this module.

#[cfg(test)]
mod corpus;
mod hostile;
mod nodes;
mod places;
mod world;

use crate::config::{Destination, SlowReceiverPolicy};
use crate::endpoint::{Backlog, Endpoint, HostEvent};
use crate::object::ObjectStream;
use crate::receiver;
use crate::source::{self, block_source::BlockSource, scheduler::of_blocks};
use crate::step_driver::{give, give_with};
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_net::Ecn;
use faircast_wire::{Form, ReceiverCodec, SourceCodec, Spacing, data_header_len};
use hostile::Order;
use nodes::Setting;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use world::World;

const SESSION: SessionId = SessionId(0xfa1c_a570);
const SALT: [u8; 16] = [7; 16];
const UNIX_SECS: u64 = 1_790_000_000;
const DATAGRAM: usize = 400;
/// Symbol sizes in bytes and block sizes in symbols. Three bits of the first byte select an entry; the first entry is the
/// default.
const GEOMETRIES: [(u16, u16); 8] =
    [(64, 8), (64, 1), (40, 2), (48, 100), (200, 3), (64, 64), (256, 1), (56, 5)];
/// IP and UDP headers.
const OVERHEAD: usize = 28;
const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 5777);
const RECEIVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 5777);
const STRANGER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)), 5777);
const GROUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 70, 1)), 5777);

/// Maximum number of steps; longer inputs would find no further errors.
const MAX_STEPS: usize = 64;

/// Maximum number of datagrams that are sent in one step.
const MAX_DATAGRAMS: usize = 64;

/// Fuzzes an unsealed session of a source and a receiver. The network between them loses, changes and forges datagrams. If the
/// network only loses datagrams, the file must arrive unchanged.
///
/// The first byte selects the source's policy for slow receivers (bits 0 and 1), the geometry (bits 2 to 4) and the scheme (bits
/// 5 to 7). The remaining input is a series of steps. A step consists of a mode byte, a length byte, and as many bytes as the
/// length states. Bits of the mode:
///
/// | bits | meaning |
/// |---|---|
/// | 0, 1 | 0: a datagram to the source; 1: a datagram to the receiver; 2: both endpoints run, and the bytes change the first datagram of each; 3: both endpoints run, and all datagrams are lost |
/// | 2, 3, 4 | time that passes: 1 ms, 2 ms, 4 ms ... 128 ms |
/// | 5 | the datagram comes from an unknown address |
/// | 6 | `correct` is not applied to the datagram |
/// | 7 | congestion: packets are marked, and the socket's buffer is half full |
///
/// `correct` corrects the checksum of a datagram. `scratch` is an empty directory, or the directory of an earlier call.
pub fn sessions(input: &[u8], scratch: &Path, correct: fn(&mut [u8])) {
    let Some((&setup, mut rest)) = input.split_first() else { return };
    let out = scratch.join("out");
    let content: Vec<u8> = (0..3_000u32).map(|at| (at * at / 7) as u8).collect();
    let file = scratch.join("content");
    if !file.exists() {
        fs::write(&file, &content).expect("the scratch directory can be written");
    }
    let slow = match setup & 3 {
        1 => SlowReceiverPolicy::Floor(Rate::from_bps(1e6)),
        2 => SlowReceiverPolicy::Drop(Rate::from_bps(1e6)),
        _ => SlowReceiverPolicy::Follow,
    };
    let mut network = Network {
        source: source(&file, slow, setup),
        receiver: receiver(&out),
        now: Time::ZERO,
        out: Vec::new(),
        correct,
        faithful: true,
    };
    for _ in 0..MAX_STEPS {
        let Some((&[mode, len], after)) = rest.split_first_chunk() else { break };
        let (bytes, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        network.step(mode, bytes);
    }
    if network.faithful && slow == SlowReceiverPolicy::Follow {
        network.finish();
        assert_eq!(fs::read(out.join("content")).expect("it was received"), content);
    }
    drop(network);
    fs::remove_dir_all(&out).expect("the scratch directory can be written");
}

fn source(file: &Path, slow: SlowReceiverPolicy, setup: u8) -> source::SourceSession {
    let (symbol, symbols) = GEOMETRIES[usize::from(setup >> 2 & 7)];
    let object =
        ObjectStream::open(&[file.to_path_buf()], symbol, symbols).expect("a small file can be read");
    let scheme = ["", "pgmcc", "tfmcc", "le-sbcc", "mca", "mca-plus", "ormcc", "ormcc,policy=equation"]
        [usize::from(setup >> 5)];
    let scheme: Scheme = if setup >> 5 == 0 {
        Scheme::from_number(1).expect("the first scheme")
    } else {
        scheme.parse().expect("a scheme of the catalogue")
    };
    let packet = usize::from(symbol) + data_header_len(&scheme.mark(), Form::Open) + OVERHEAD;
    let setup = source::Setup {
        codec: SourceCodec::new(SESSION, None, SALT),
        salt: SALT,
        groups: vec![GROUP],
        scheme: scheme.with_packet_size(packet as u16),
        spacing: Spacing::Address,
        scheduler: of_blocks(BlockSource::files(object), scheme.layers()),
        sign: None,
        receipts: None,
        rng: Rng::new(1, 0),
        name: "source".to_owned(),
        datagram: DATAGRAM,
        overhead: OVERHEAD,
        slow,
        one_way: None,
        min: None,
        max: None,
        day_limits: None,
        expect: None,
        to_hosts: faircast_wire::Name::EMPTY,
        series: None,
        dry_run: None,
        required: Vec::new(),
        join_timeout: Duration::from_secs(30),
        not_before: Time::ZERO,
        start: crate::config::StartNow::default(),
        ttl: 1,
        idle_timeout: Duration::from_secs(30),
        spread: Span::from_millis(10),
        local: SOURCE,
        receiver_events: crate::config::ReceiverEvents::Off,
        started: UNIX_SECS * 1_000_000_000,
    };
    source::SourceSession::new(setup, Time::ZERO)
}

fn receiver(out: &Path) -> receiver::ReceiverSession {
    let id = ReceiverId::new(5).expect("five is not zero");
    let codec = ReceiverCodec::new(&[], id, 0xb007);
    fs::create_dir_all(out).expect("the scratch directory can be written");
    let destination = Destination::Directory(out.to_path_buf());
    let setup = receiver::Setup::plain(codec, id, 2, destination, (GROUP, UNIX_SECS));
    receiver::ReceiverSession::new(setup, Time::ZERO)
}

struct Network {
    source: source::SourceSession,
    receiver: receiver::ReceiverSession,
    now: Time,
    out: Vec<u8>,
    correct: fn(&mut [u8]),
    /// Whether no datagram was changed or forged.
    faithful: bool,
}

/// The treatment of datagrams in a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DatagramAction<'a> {
    Change(&'a [u8]),
    Lose,
}

fn ecn(marked: bool) -> Ecn {
    if marked { Ecn::Ce } else { Ecn::NotEct }
}

impl Network {
    fn step(&mut self, mode: u8, bytes: &[u8]) {
        self.now += Span::from_millis(1 << (mode >> 2 & 7));
        let marked = mode & 0x80 != 0;
        match mode & 3 {
            2 => self.run(DatagramAction::Change(bytes), marked),
            3 => self.run(DatagramAction::Lose, marked),
            to => {
                self.faithful = false;
                let mut datagram = bytes.to_vec();
                if mode & 0x40 == 0 {
                    (self.correct)(&mut datagram);
                }
                let stranger = mode & 0x20 != 0;
                if to == 0 {
                    let from = if stranger { STRANGER } else { RECEIVER };
                    give(&mut self.source, &mut datagram, from, self.now);
                } else {
                    let from = if stranger { STRANGER } else { SOURCE };
                    give_with(&mut self.receiver, &mut datagram, from, ecn(marked), self.now);
                }
            }
        }
    }

    /// Runs both endpoints at the present time.
    fn run(&mut self, fate: DatagramAction<'_>, marked: bool) {
        let (now, correct) = (self.now, self.correct);
        let mut faithful = true;
        let mut pass = |datagram: &[u8], count: usize| match fate {
            DatagramAction::Lose => None,
            DatagramAction::Change(bytes) => {
                let mut datagram = datagram.to_vec();
                if count == 0 && bytes.iter().take(datagram.len()).any(|&byte| byte != 0) {
                    datagram.iter_mut().zip(bytes).for_each(|(byte, change)| *byte ^= change);
                    correct(&mut datagram);
                    faithful = false;
                }
                Some(datagram)
            }
        };
        self.source.handle_timeout(now);
        let mut count = 0;
        while count < MAX_DATAGRAMS {
            let Some(outgoing) = self.source.poll_transmit(now, &mut self.out) else { break };
            assert!(outgoing.segment <= DATAGRAM, "{} bytes", outgoing.segment);
            for datagram in self.out.chunks(outgoing.segment) {
                if let Some(mut datagram) = pass(datagram, count) {
                    give_with(&mut self.receiver, &mut datagram, SOURCE, ecn(marked), now);
                }
                count += 1;
            }
        }
        let (used, dropped) = if marked { (1 << 19, 1) } else { (0, 0) };
        let backlog = Backlog { used, capacity: 1 << 20, dropped };
        self.receiver.handle_host_event(HostEvent::Backlog(backlog), now);
        self.receiver.handle_timeout(now);
        let mut feedback = Vec::new();
        while self.receiver.poll_transmit(now, &mut self.out).is_some() {
            feedback.push(self.out.clone());
        }
        for (count, datagram) in feedback.iter().enumerate() {
            if let Some(mut datagram) = pass(datagram, count) {
                give(&mut self.source, &mut datagram, RECEIVER, now);
            }
        }
        while self.source.poll_event().is_some() || self.receiver.poll_event().is_some() {}
        self.faithful &= faithful;
    }

    /// Runs without losses, and checks that both endpoints end successfully.
    fn finish(&mut self) {
        for _ in 0..100_000 {
            if self.source.is_finished() && self.receiver.is_finished() {
                return;
            }
            // Endpoints that have ended are not called.
            let wake_of =
                |one: &dyn Endpoint| if one.is_finished() { Time::NEVER } else { one.poll_timeout(self.now) };
            let wake = wake_of(&self.source).min(wake_of(&self.receiver));
            self.now = wake.max(self.now + Span::from_micros(100));
            self.run(DatagramAction::Change(&[]), false);
        }
        panic!("not done after {}", self.now.since(Time::ZERO));
    }
}

/// Fuzzes relays, agents and active routers between a hostile parent and hostile children. One child may have the key.
///
/// Two bytes define the world (`Setting::of`). The remaining input is a series of steps. A step consists of a mode byte and its
/// arguments.
///
/// | bits of the mode | meaning |
/// |---|---|
/// | 0 to 2 | 0: no faults; 1: all datagrams are lost; 2 to 5: a datagram arrives at the relay from upstream, at the relay from downstream, at the source, at the receiver; 6: a host attaches at the relay's port; 7: a process is restarted, a host event occurs, or the relay is stopped (selected by the next byte) |
/// | 3 to 5 | time that passes afterwards: 0, 2, 10, 50, 200, 1000, 3000 or 11,000 ms |
/// | 6 | the datagram comes from an unknown address and is sealed as by a relay; otherwise it has the expected sender's address |
/// | 7 | the changed datagram is sent as it is, without a corrected checksum and without encryption |
///
/// A datagram is described by four arguments: the observed datagram to change (`hostile::Order`), the position of the change, its
/// length, and the new bytes.
///
/// The content must arrive if no host may have accepted a forged datagram. In sealed sessions, a host accepts a forged datagram
/// only if the attacker has encrypted it again. `scratch` is the same as for [`sessions`].
pub fn relays(input: &[u8], scratch: &Path, correct: fn(&mut [u8])) {
    hostile_world(input, scratch, correct, false);
}

/// Fuzzes schemes with layers (rlc, gmcc, smcc) like [`relays`]. There is a relay between source and receiver, or none.
pub fn layers(input: &[u8], scratch: &Path, correct: fn(&mut [u8])) {
    hostile_world(input, scratch, correct, true);
}

/// The durations of a step, in milliseconds.
const WAITS: [u64; 8] = [0, 2, 10, 50, 200, 1_000, 3_000, 11_000];

fn hostile_world(input: &[u8], scratch: &Path, correct: fn(&mut [u8]), layered: bool) {
    let Some((setup, mut rest)) = input.split_first_chunk() else { return };
    let mut world = World::new(Setting::of(*setup, layered), scratch, correct);
    if world.setting.is_joined {
        world.run(Span::from_secs(1), world::DatagramAction::Arrive);
    }
    for _ in 0..MAX_STEPS {
        let Some((&mode, after)) = rest.split_first() else { break };
        rest = after;
        let mut fate = world::DatagramAction::Arrive;
        match mode & 7 {
            0 => {}
            1 => fate = world::DatagramAction::Lose,
            way @ 2..=5 => rest = come(&mut world, mode, way, rest),
            other => {
                let Some((&which, after)) = rest.split_first() else { break };
                rest = after;
                act(&mut world, other, which);
            }
        }
        world.run(Span::from_millis(WAITS[usize::from(mode >> 3 & 7)]), fate);
    }
    world.finish();
}

/// Makes and delivers a datagram. Returns the remaining input.
fn come<'a>(world: &mut World, mode: u8, way: u8, input: &'a [u8]) -> &'a [u8] {
    let Some((&[pick, offset, len], rest)) = input.split_first_chunk() else { return &[] };
    let (change, rest) = rest.split_at(usize::from(len).min(rest.len()));
    let (is_stranger, is_raw) = (mode & 0x40 != 0, mode & 0x80 != 0);
    let order = Order { pick, offset, change, is_raw };
    let is_down = matches!(way, 2 | 5);
    if let Some((mut bytes, counts)) = world.hostile.make(order, is_down, is_stranger) {
        world.faithful &= !counts;
        let relay_below = if world.setting.kind.has_group() { places::BRANCH } else { places::RELAY };
        let (from, to) = match way {
            2 => (places::SOURCE, places::RELAY),
            3 => (places::RECEIVER, relay_below),
            4 => (places::RELAY, places::SOURCE),
            _ if world.setting.kind.is_received_downstream() => (places::SOURCE, places::RECEIVER),
            _ => (relay_below, places::RECEIVER),
        };
        world.arrive(if is_stranger { places::STRANGER } else { from }, to, &mut bytes);
    }
    rest
}

/// Applies an event to a host.
fn act(world: &mut World, what: u8, which: u8) {
    if what == 6 {
        if let (Some(relay), Some(id)) = (&mut world.relay, ReceiverId::new(u64::from(which & 15) + 2)) {
            let from = if which & 0x10 == 0 { places::STRANGER } else { places::RECEIVER };
            let from = SocketAddr::new(from.ip(), from.port() + u16::from(which >> 6));
            world.faithful &= which & 0x10 == 0;
            relay.attach(from, id);
        }
        return;
    }
    match which & 3 {
        0 => world.restart_relay((which >> 2).into()),
        1 => world.restart_receiver((which >> 2).into()),
        2 => world.notice(which >> 2),
        _ => world.stop_relay(),
    }
}
