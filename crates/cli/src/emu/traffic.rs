//! TCP and UDP flows over the kernel's protocols. The sockets are on the emulated hosts, the threads in this process.

use crate::failure::Failure;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use faircast_emulator::{Namespace, sandbox};
use faircast_experiments::scenario::{RealFlow, Supply, Traffic};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes of the header of TCP without options, and of the options that carry times.
const TCP_HEADER: u16 = 20;
const TCP_TIMES: u16 = 12;
/// Bytes of the header of UDP.
const UDP_HEADER: u16 = 8;
/// Interval at which a waiting flow looks for its end.
const TURN: Duration = Duration::from_millis(50);
/// A sender of datagrams that is later than this skips packets.
const MAX_BEHIND: Span = Span::from_millis(100);

/// Returns the bytes of the header of IP in packets to an address.
const fn ip_header(to: IpAddr) -> u16 {
    if to.is_ipv6() { 40 } else { 20 }
}

/// Returns the bytes of the headers of IP and UDP in packets to an address.
pub const fn udp_headers(to: IpAddr) -> u16 {
    ip_header(to) + UDP_HEADER
}

/// The sockets of a flow before its start.
#[derive(Debug)]
pub struct Prepared {
    flow: RealFlow,
    seed: u64,
    socket: Socket,
    /// Keeps the address of the receiver in use.
    receiver: Receiver,
}

#[derive(Debug)]
enum Socket {
    Tcp(OwnedFd, SocketAddr, Namespace),
    Udp(UdpSocket),
}

#[derive(Debug)]
enum Receiver {
    Tcp(TcpListener),
    /// Its buffer fills up: the emulation counts the packets.
    Udp(UdpSocket),
}

/// The end of a flow's host: its namespace and address.
#[derive(Debug)]
pub struct End<'a> {
    pub namespace: &'a Namespace,
    pub address: IpAddr,
}

/// Opens the sockets of a flow, which is no session.
///
/// # Errors
/// When the kernel does not have the congestion control.
pub fn prepare(
    flow: &RealFlow,
    from: &End<'_>,
    to: &End<'_>,
    port: u16,
    seed: u64,
) -> Result<Prepared, Failure> {
    let goal = SocketAddr::new(to.address, port);
    let inside =
        |source: io::Error| Failure::System { what: format!("make the flow {}", flow.group), source };
    let (socket, receiver) = match &flow.traffic {
        Traffic::Tcp { congestion, .. } => {
            let listener =
                to.namespace.inside(|| TcpListener::bind(goal)).map_err(inside)?.map_err(inside)?;
            let Ok(socket) =
                from.namespace.inside(|| open(congestion, flow.packet, to.address)).map_err(inside)?
            else {
                let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
                return Err(Failure::Check(format!(
                    "this kernel has no TCP congestion control `{congestion}` for the flow {}; it has: {}",
                    flow.group,
                    known.unwrap_or_default().trim()
                )));
            };
            (Socket::Tcp(socket, goal, from.namespace.try_clone().map_err(inside)?), Receiver::Tcp(listener))
        }
        Traffic::Datagrams { .. } | Traffic::Session { .. } => {
            let receiver = to.namespace.inside(|| UdpSocket::bind(goal)).map_err(inside)?.map_err(inside)?;
            let open = || {
                UdpSocket::bind((from.address, 0)).and_then(|socket| {
                    socket.connect(goal)?;
                    Ok(socket)
                })
            };
            let socket = from.namespace.inside(open).map_err(inside)?.map_err(inside)?;
            (Socket::Udp(socket), Receiver::Udp(receiver))
        }
    };
    Ok(Prepared { flow: flow.clone(), seed, socket, receiver })
}

/// Opens a socket in the network namespace of the calling thread. The module of a congestion control is loaded on demand.
fn open(congestion: &str, packet: u16, to: IpAddr) -> io::Result<OwnedFd> {
    let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_tcp_congestion(&socket, congestion)?;
    sandbox::limit_segments(&socket, packet.saturating_sub(ip_header(to) + TCP_HEADER).max(88))?;
    Ok(socket)
}

/// Complete transfers: begin, end and number of packets.
pub type Transferred = Vec<(Time, Time, u32)>;

/// A running flow.
#[derive(Debug)]
pub struct Running {
    group: String,
    threads: Vec<JoinHandle<io::Result<Transferred>>>,
}

impl Running {
    /// Waits for the threads, after `stop` was set. Returns the complete transfers.
    ///
    /// # Errors
    /// When a connection broke off before the end of the run.
    pub fn join(self) -> Result<Transferred, Failure> {
        let join = |thread: JoinHandle<io::Result<Transferred>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let ended: Vec<io::Result<Transferred>> = self.threads.into_iter().map(join).collect();
        let ended: io::Result<Vec<Transferred>> = ended.into_iter().collect();
        let ended = ended.map(|transfers| transfers.concat());
        ended.map_err(|error| Failure::Check(format!("the flow {} broke off: {error}", self.group)))
    }
}

/// Times of a run.
#[derive(Debug, Clone)]
pub struct Clock {
    pub begin: Instant,
    pub end: Time,
    pub stop: Arc<AtomicBool>,
}

impl Clock {
    /// Returns the time since the beginning of the run.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.now() >= self.end
    }

    /// Sleeps until a time. Returns false if the run is over before.
    fn sleep_until(&self, at: Time) -> bool {
        while !self.is_over() {
            match Duration::from_nanos(at.since(self.now()).as_nanos()) {
                Duration::ZERO => return true,
                left => thread::sleep(left.min(TURN)),
            }
        }
        false
    }
}

impl Prepared {
    /// Starts the flow: it waits for its start itself.
    pub fn start(self, clock: &Clock) -> Running {
        let Prepared { flow, seed, socket, receiver } = self;
        let (group, mut threads) = (flow.group.clone(), Vec::new());
        match receiver {
            Receiver::Tcp(listener) => {
                let clock = clock.clone();
                threads.push(thread::spawn(move || take(&listener, &clock).map(|()| Vec::new())));
            }
            Receiver::Udp(socket) => {
                let clock = clock.clone();
                threads.push(thread::spawn(move || {
                    while !clock.is_over() {
                        thread::sleep(TURN);
                    }
                    drop(socket);
                    Ok(Vec::new())
                }));
            }
        }
        let clock = clock.clone();
        threads.push(thread::spawn(move || {
            let mut transferred = Vec::new();
            let sent = transmit(socket, &flow, seed, &clock, &mut transferred);
            // At the end of the run both ends close their sockets, in any order.
            if clock.is_over() { Ok(transferred) } else { sent.map(|()| transferred) }
        }));
        Running { group, threads }
    }
}

/// Sends the data of a flow from its start on.
fn transmit(
    socket: Socket,
    flow: &RealFlow,
    seed: u64,
    clock: &Clock,
    transferred: &mut Transferred,
) -> io::Result<()> {
    match (socket, &flow.traffic) {
        (Socket::Tcp(socket, goal, namespace), Traffic::Tcp { supply, congestion, .. }) => {
            if !clock.sleep_until(flow.start) {
                return Ok(());
            }
            let payload = flow.packet.saturating_sub(ip_header(goal.ip()) + TCP_HEADER + TCP_TIMES).max(1);
            let Supply::Transfers(transfers) = supply else {
                net::connect(&socket, &goal)?;
                return write(&mut TcpStream::from(socket), supply, flow, payload, clock);
            };
            // This thread has no other use.
            namespace.enter()?;
            let mut socket = Some(socket);
            for (packets, pause) in transfers.clone() {
                let begin = clock.now();
                let socket = socket.take().map_or_else(|| open(congestion, flow.packet, goal.ip()), Ok)?;
                net::connect(&socket, &goal)?;
                let mut stream = TcpStream::from(socket);
                write(&mut stream, &Supply::Packets(packets), flow, payload, clock)?;
                read(&mut stream, clock)?; // the receiver closes when it has everything
                let end = clock.now();
                if clock.is_over() || end >= flow.stop {
                    return Ok(());
                }
                transferred.push((begin, end, packets));
                if !clock.sleep_until((end + pause).min(flow.stop)) {
                    return Ok(());
                }
            }
            Ok(())
        }
        (Socket::Udp(socket), Traffic::Datagrams { rate, jitter, supply }) => {
            sandbox::precede(); // without this right the flow is late on a busy machine
            let mut pace = Pace::new(*rate, *jitter, flow.packet, Rng::new(seed, 1));
            send(&socket, supply, flow, &mut pace, clock)
        }
        _ => Ok(()),
    }
}

/// Accepts the connections of a flow one after another, and reads each.
fn take(listener: &TcpListener, clock: &Clock) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    while !clock.is_over() {
        match listener.accept() {
            Ok((mut stream, _)) => {
                stream.set_nonblocking(false)?;
                read(&mut stream, clock)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a connection to its end.
fn read(stream: &mut TcpStream, clock: &Clock) -> io::Result<()> {
    stream.set_read_timeout(Some(TURN))?;
    let mut buffer = vec![0; 1 << 16];
    while !clock.is_over() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Writes the data of a flow to its connection.
fn write(
    stream: &mut TcpStream,
    supply: &Supply,
    flow: &RealFlow,
    payload: u16,
    clock: &Clock,
) -> io::Result<()> {
    stream.set_write_timeout(Some(TURN))?;
    let buffer = vec![0; 1 << 16];
    let mut put = |until: Time, mut bytes: u64| -> io::Result<()> {
        let until = until.min(flow.stop);
        while bytes > 0 && clock.now() < until && !clock.is_over() {
            let most = usize::try_from(bytes).unwrap_or(usize::MAX).min(buffer.len());
            match stream.write(&buffer[..most]) {
                Ok(written) => bytes -= written as u64,
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    let bytes = |packets: u32| u64::from(packets) * u64::from(payload);
    match supply {
        Supply::Packets(packets) => put(Time::NEVER, bytes(*packets))?,
        Supply::Transfers(_) => unreachable!("each transfer has its own call"),
        Supply::Spans(spans) => {
            for &(from, until) in spans {
                if clock.sleep_until(from) {
                    put(until, u64::MAX)?;
                }
            }
        }
        Supply::Trace(entries) => {
            let mut before = 0;
            for &(after, packets) in entries.iter() {
                if clock.sleep_until(flow.start + after) {
                    put(Time::NEVER, bytes(packets - before))?;
                    before = packets;
                }
            }
        }
    }
    stream.shutdown(std::net::Shutdown::Write)
}

/// Times of datagrams.
struct Pace {
    gap: f64,
    jitter: f64,
    rng: Rng,
    next: Time,
}

impl Pace {
    fn new(rate: Rate, jitter: f64, packet: u16, rng: Rng) -> Pace {
        Pace { gap: f64::from(packet) * 8.0 / rate.bps(), jitter, rng, next: Time::ZERO }
    }

    /// Returns the time of the next packet, not before `from`.
    fn next(&mut self, from: Time) -> Time {
        let at = self.next.max(from);
        let factor = 1.0 + self.jitter * (2.0 * self.rng.unit() - 1.0);
        self.next = at + Span::from_secs_f64(self.gap * factor);
        at
    }
}

/// Sends the datagrams of a flow.
fn send(
    socket: &UdpSocket,
    supply: &Supply,
    flow: &RealFlow,
    pace: &mut Pace,
    clock: &Clock,
) -> io::Result<()> {
    let buffer =
        vec![0; usize::from(flow.packet.saturating_sub(udp_headers(socket.peer_addr()?.ip())).max(1))];
    let mut put = |from: Time, until: Time, packets: u32| -> io::Result<()> {
        let until = until.min(flow.stop);
        for _ in 0..packets {
            let at = pace.next(from);
            if at >= until || !clock.sleep_until(at) {
                return Ok(());
            }
            if clock.now().since(at) > MAX_BEHIND {
                continue;
            }
            match socket.send(&buffer) {
                Ok(_) => {}
                // The device is full, as that of a busy host can be.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    match supply {
        Supply::Packets(packets) => put(flow.start, Time::NEVER, *packets),
        Supply::Transfers(_) => unreachable!("datagrams have no transfers"),
        Supply::Spans(spans) => spans.iter().try_for_each(|&(from, until)| put(from, until, u32::MAX)),
        Supply::Trace(entries) => {
            let mut before = 0;
            entries.iter().try_for_each(|&(after, packets)| {
                let new = packets - std::mem::replace(&mut before, packets);
                put(flow.start + after, Time::NEVER, new)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_keep_their_rate() {
        let mut pace = Pace::new(Rate::from_bps(8e5), 0.0, 1000, Rng::new(1, 1));
        let from = Time::from_secs_f64(2.0);
        let times: Vec<f64> = (0..3).map(|_| pace.next(from).as_secs_f64()).collect();
        assert_eq!(times, [2.0, 2.01, 2.02]);
        assert_eq!(
            pace.next(Time::from_secs_f64(5.0)).as_secs_f64(),
            5.0,
            "an idle sender catches nothing up"
        );
        let mut pace = Pace::new(Rate::from_bps(8e5), 0.5, 1000, Rng::new(1, 1));
        let last = (0..10_001).map(|_| pace.next(Time::ZERO)).last().expect("many").as_secs_f64();
        assert!((last - 100.0).abs() < 1.0, "{last}");
    }
}
