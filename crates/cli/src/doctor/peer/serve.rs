//! `doctor --serve`: answers other hosts that test the network to this one.

use super::answering::{Answer, Answering, GROUP_PROBES, MOST_SIZE, Own, opened};
use super::sockets::{Group, is_of_one_datagram, paced, talk};
use crate::failure::Failure;
use faircast_net::Choice;
use faircast_wire::doctor::{Key, Kind, Message};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long one look at the socket lasts at most.
const LOOK: Duration = Duration::from_millis(100);
/// Between datagrams to the group.
pub const GROUP_INTERVAL: Duration = Duration::from_millis(20);

/// What a doctor that serves needs.
pub struct Served<'a> {
    /// Where it is asked.
    pub at: SocketAddr,
    /// The group that is tested, and the interface that hears it.
    pub group: SocketAddr,
    pub choice: &'a Choice,
    pub ttl: u8,
    pub keys: Vec<Key>,
    /// What this host's clock is taken to be ahead, in seconds, for tests.
    pub clock_ahead: i64,
}

/// Answer until stopped; `told` says who begins a test.
///
/// # Errors
/// When the sockets cannot be had.
pub fn serve(served: &Served<'_>, stop: &AtomicBool, told: &mut dyn FnMut(String)) -> Result<(), Failure> {
    let socket = talk(served.at)
        .map_err(Failure::system("listen for other doctors (is a relay at this port? --serve PORT)"))?;
    socket.set_read_timeout(Some(LOOK)).map_err(Failure::system("listen for other doctors"))?;
    let mut group = Group::open(served.group, served.choice, served.ttl).map_err(Failure::from)?;
    let own = Own { mtu: served.choice.chosen.mtu.into(), buffer: group.buffer() as u64 };
    let (mut answering, begun) = (Answering::new(secret()?, own), Instant::now());
    told(format!("answers at {} and in {}; stop it with Ctrl-C", served.at, served.group));
    let (mut bytes, mut out) = (vec![0; MOST_SIZE as usize], Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let (len, from) = match socket.recv_from(&mut bytes) {
            Ok(came) => came,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => continue,
            Err(e) if e.kind() == io::ErrorKind::Interrupted || is_of_one_datagram(&e) => continue,
            Err(e) => return Err(Failure::system("hear other doctors")(e)),
        };
        let Some((key, message)) = opened(&bytes[..len], &served.keys) else { continue };
        let (key, now) = (&served.keys[key], begun.elapsed());
        if message.kind == Kind::Count {
            group
                .hear(&served.keys, |heard, from| answering.heard_in_group(&heard, from, now))
                .map_err(Failure::from)?;
        }
        let answer = answering.answer(&message, len, from, now, unix_nanos(served.clock_ahead));
        if let Answer::Say(Message { kind: Kind::Ready, step: 0, .. }, _) = answer {
            told(format!("{from} tests the network to this host"));
        }
        let mut send = |message: &Message, len| {
            message.encode(key, len, &mut out);
            match socket.send_to(&out, from) {
                Err(e) if !is_of_one_datagram(&e) => Err(e),
                _ => Ok(()),
            }
        };
        let sent = match answer {
            Answer::Silence => Ok(()),
            Answer::Say(message, len) => send(&message, len),
            Answer::Train { first, count, len, interval } => {
                paced(count, interval, |number| send(&Message { number, ..first }, len))
            }
            Answer::ToGroup(message, count) => {
                debug_assert!(count <= GROUP_PROBES);
                message.encode(key, 0, &mut out);
                paced(count, GROUP_INTERVAL.as_nanos() as u64, |_| {
                    group.send(&out).map_err(|error| io::Error::other(error.to_string()))
                })
            }
        };
        sent.map_err(Failure::system("answer another doctor"))?;
    }
    Ok(())
}

/// Nanoseconds since 1970, as this host has it.
pub fn unix_nanos(ahead: i64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    now.saturating_add_signed(ahead.saturating_mul(1_000_000_000))
}

/// What nobody else knows.
fn secret() -> Result<[u8; 32], Failure> {
    let key = faircast_wire::GroupKey::generate()
        .map_err(|error| Failure::system("draw a random number")(io::Error::other(error.to_string())))?;
    Ok(blake3::derive_key("faircast 2026 doctor: tokens", key.to_line().as_bytes()))
}
