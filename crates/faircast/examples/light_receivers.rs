//! Thousands of receivers in one process that share one socket of the group: `cargo run --example light_receivers -- 1000
//! 239.255.70.13:47013 lo`. Each receiver is the full state machine that [`faircast::Receiver`] runs. It has separate keys,
//! blocks, hashes, requests and reports, and a separate socket for its feedback and for the source's answers. Only the packets of
//! the group are read once for all receivers, so that the kernel does not copy each packet thousands of times. (In
//! `many_receivers`, each receiver has a separate group socket.) The example shows how to drive a [`faircast::Endpoint`]: the
//! loop below is all the code between sockets and sessions.
//!
//! The receivers take a live stream or one file, verify it and store a checksum. At the end, one line of JSON states the outcomes
//! and the checksums. Usage: `light_receivers COUNT GROUP:PORT INTERFACE [KEY-FILE|- [LOSS]]`. Each receiver drops a random share
//! `LOSS` of the packets of the group. `bench/crowd/run` starts several of these processes.

mod common;

use common::{Sum, Summing};
use faircast::config::ReceiveConfig;
use faircast::endpoint::{Datagram, HostEvent};
use faircast::{Destination, KeyRing, Output, SessionFilter};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_net::{
    Batch, Choice, GroupOptions, GroupSocket, Membership, Meta, UnicastOptions, UnicastSocket, choose,
};
use faircast_transport::object::Disk;
use faircast_transport::session::{Host, Receiver};
use faircast_transport::worker::Worker;
use rustix::event::{Timespec, epoll};
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Text in the warning of a receiver that joined after the beginning of a stream.
const TOO_LATE: &str = "arrived too late";

/// Deadlines within this duration are processed together.
const TOGETHER: Span = Span::from_millis(1);

/// Epoll identifier of the group's socket. The identifier of every other socket is the number of its receiver.
const GROUP: u64 = u64::MAX;

struct Light {
    /// The session; `None` after its end.
    session: Option<Receiver>,
    socket: UnicastSocket,
    sum: Arc<Mutex<Sum>>,
    wake: Time,
    rng: Rng,
}

/// All receivers and their shared state.
struct Crowd {
    lights: Vec<Light>,
    origin: Instant,
    /// Share of the group's packets that each receiver drops, 0 to 1.
    loss: f64,
    ended: BTreeMap<String, u64>,
    /// Number of receivers that ended without an error. `incomplete` is the number of these receivers that joined after the
    /// beginning of a stream.
    complete: u64,
    incomplete: u64,
    bytes: Vec<u8>,
}

/// Returns four unpredictable random numbers.
fn random() -> io::Result<[u64; 4]> {
    let mut bytes = [0; 32];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(std::array::from_fn(|at| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]))))
}

fn light(number: usize, config: &ReceiveConfig, choice: &Choice) -> Result<Light, Box<dyn Error>> {
    let sum = Arc::new(Mutex::new(Sum::default()));
    let socket = UnicastSocket::open(choice, &UnicastOptions { receive_buffer: 64 << 10, port: 0 })?;
    let random = random()?;
    let host = Host {
        random,
        local: socket.local_addr(),
        datagram: 0, // unused by a receiver
        symbols: 0,
        unix_nanos: SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64,
        now: Time::ZERO,
        disk: Disk::default(),
        worker: Worker::at_once(),
    };
    let mut config = config.clone();
    config.destination = Destination::Writer(Output::new(Summing(sum.clone())));
    config.host = format!("{}-{number}", std::process::id());
    config.accept = SessionFilter::default(); // clones would share sessions
    let session = Some(Receiver::new(config, &host));
    Ok(Light { session, socket, sum, wake: Time::ZERO, rng: Rng::new(random[3], 1) })
}

impl Crowd {
    fn now(&self) -> Time {
        self.time(Instant::now())
    }

    fn time(&self, instant: Instant) -> Time {
        Time::from_nanos(instant.saturating_duration_since(self.origin).as_nanos() as u64)
    }

    /// Passes a copy of a datagram to one receiver, which decrypts the copy in place.
    fn give(&mut self, number: usize, bytes: &[u8], meta: &Meta, now: Time) {
        let arrived = self.time(meta.received_at).min(now);
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        let light = &mut self.lights[number];
        let Some(session) = &mut light.session else { return };
        let datagram = Datagram { bytes: &mut self.bytes, from: meta.from, ecn: meta.ecn, arrived };
        session.endpoint().handle_datagram(datagram, now);
        light.wake = now;
    }

    /// Passes one datagram of the group to all receivers.
    fn give_all(&mut self, bytes: &[u8], meta: &Meta, now: Time) {
        for number in 0..self.lights.len() {
            if self.loss == 0.0 || !self.lights[number].rng.chance(self.loss) {
                self.give(number, bytes, meta, now);
            }
        }
    }

    /// Runs all endpoints whose deadline has passed. Sends their packets, and counts the outcomes of finished endpoints.
    fn turn(&mut self, now: Time, out: &mut Vec<u8>) {
        for light in self.lights.iter_mut().filter(|light| light.wake <= now) {
            let Some(session) = &mut light.session else { continue };
            let endpoint = session.endpoint();
            endpoint.handle_timeout(now);
            while let Some(transmit) = endpoint.poll_transmit(now, out) {
                for datagram in out.chunks(transmit.segment) {
                    let _ = light.socket.send_to(datagram, transmit.to); // a failure counts as a loss
                }
            }
            while endpoint.poll_event().is_some() {}
            light.wake = endpoint.poll_timeout(now);
            if !endpoint.is_finished() {
                continue;
            }
            light.wake = Time::NEVER;
            match light.session.take().map(Receiver::report) {
                Some(Err(error)) => *self.ended.entry(error.to_string()).or_default() += 1,
                Some(Ok(report)) => {
                    self.complete += 1;
                    self.incomplete += u64::from(report.warnings.iter().any(|one| one.contains(TOO_LATE)));
                }
                None => self.complete += 1,
            }
        }
    }

    fn notice(&mut self, notice: HostEvent<'_>, now: Time) {
        for session in self.lights.iter_mut().filter_map(|light| light.session.as_mut()) {
            session.endpoint().handle_host_event(notice, now);
        }
    }

    fn run(&mut self, group: &GroupSocket) -> Result<(), Box<dyn Error>> {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&ready, group, epoll::EventData::new_u64(GROUP), epoll::EventFlags::IN)?;
        for (number, light) in self.lights.iter().enumerate() {
            epoll::add(
                &ready,
                &light.socket,
                epoll::EventData::new_u64(number as u64),
                epoll::EventFlags::IN,
            )?;
        }
        let (mut batch, mut out) = (Batch::new(16), Vec::with_capacity(1 << 16));
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 64];
        let mut backlog_at = Time::ZERO;
        while self.lights.iter().any(|light| light.session.is_some()) {
            let wake = self.lights.iter().map(|light| light.wake).min().unwrap_or(Time::NEVER);
            let left = wake.since(self.now()).max(TOGETHER).min(Span::from_secs(1));
            let left = Timespec {
                tv_sec: (left.as_nanos() / 1_000_000_000) as i64,
                tv_nsec: (left.as_nanos() % 1_000_000_000) as i64,
            };
            let count = epoll::wait(&ready, &mut events[..], Some(&left))?;
            for event in &events[..count] {
                let place = event.data.u64();
                if place == GROUP {
                    group.receive(&mut batch)?;
                } else {
                    self.lights[place as usize].socket.receive(&mut batch)?;
                }
                let now = self.now();
                while let Some((bytes, meta)) = batch.take() {
                    match place {
                        GROUP => self.give_all(bytes, meta, now),
                        number => self.give(number as usize, bytes, meta, now),
                    }
                }
            }
            let now = self.now();
            if now >= backlog_at {
                backlog_at = now + Span::from_millis(10);
                let full = group.backlog()?;
                let (used, capacity) = (full.used_bytes as u64, full.capacity_bytes as u64);
                let backlog = faircast::endpoint::Backlog { used, capacity, dropped: full.drops.into() };
                self.notice(HostEvent::Backlog(backlog), now);
            }
            self.turn(now, &mut out);
        }
        Ok(())
    }

    /// Returns the results, as JSON.
    fn reported(&self) -> Result<String, Box<dyn Error>> {
        let mut sums = BTreeMap::new();
        for light in &self.lights {
            *sums.entry(*light.sum.lock().map_err(|_| "a receiver panicked")?).or_insert(0) += 1;
        }
        let sums = sums.iter().map(|(Sum { bytes, fnv }, count)| {
            format!(r#"{{"bytes":{bytes},"fnv":"{fnv:016x}","receivers":{count}}}"#)
        });
        let (count, complete, incomplete) = (self.lights.len(), self.complete, self.incomplete);
        Ok(format!(
            r#"{{"receivers":{count},"complete":{complete},"incomplete":{incomplete},"got":[{}]}}"#,
            sums.collect::<Vec<_>>().join(",")
        ))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let count: usize = args.next().as_deref().unwrap_or("1000").parse()?;
    let group: SocketAddr = args.next().as_deref().unwrap_or("239.255.70.13:47013").parse()?;
    let interface = args.next().unwrap_or_else(|| "lo".to_owned());
    let key = args.next().filter(|path| path != "-");
    let key: Option<KeyRing> =
        key.map(std::fs::read_to_string).transpose()?.map(|text| text.parse()).transpose()?;
    let loss = args.next().as_deref().unwrap_or("0").parse()?;

    let choice = choose(group.ip(), Some(&interface))?;
    let socket = GroupSocket::open(group, Membership::AnySource, &choice, &GroupOptions::default())?;
    let mut config = ReceiveConfig::new(Destination::Writer(Output::new(io::sink())));
    config.group = group;
    config.key = key;
    config.join_timeout = Some(Duration::from_secs(120));
    let mut lights = Vec::with_capacity(count);
    for number in 0..count {
        lights.push(light(number, &config, &choice)?);
    }
    let (origin, ended) = (Instant::now(), BTreeMap::new());
    let mut crowd = Crowd { lights, origin, loss, ended, complete: 0, incomplete: 0, bytes: Vec::new() };
    crowd.run(&socket)?;
    for (error, count) in &crowd.ended {
        eprintln!("{count} receivers: {error}");
    }
    println!("{}", crowd.reported()?);
    Ok(())
}
