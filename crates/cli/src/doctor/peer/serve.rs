//! `doctor --serve`: answers other hosts that test the network between them and this host.

use super::answering::{Answer, Answering, GROUP_PROBES, MAX_SIZE, Own, opened};
use super::sockets::{Ear, Mouth, other, paced};
use crate::failure::Failure;
use faircast_net::{Choice, Port};
use faircast_wire::doctor::{Key, Kind, Message};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum duration of one wait for a datagram.
const LOOK: Duration = Duration::from_millis(100);
/// Interval of datagrams to the group.
pub const GROUP_INTERVAL: Duration = Duration::from_millis(20);

/// Parameters of the serving host.
pub struct Served<'a> {
    /// UDP port of the serving host.
    pub port: u16,
    /// The group to test. `choice` is its interface.
    pub group: SocketAddr,
    pub choice: &'a Choice,
    pub ttl: u8,
    pub keys: Vec<Key>,
    /// Assumed lead of this host's clock, in seconds, for tests.
    pub clock_ahead: i64,
}

/// Answers until stopped. `reported` is called for each host that starts a test.
///
/// # Errors
/// When the sockets cannot be opened.
pub fn serve(
    served: &Served<'_>,
    stop: &AtomicBool,
    reported: &mut dyn FnMut(String),
) -> Result<(), Failure> {
    let mut mouth = Mouth::open(served.group, served.choice, served.ttl, Port::Fixed(served.port))
        .map_err(Failure::from)?;
    let mut ear = Ear::open(served.group, served.choice).map_err(Failure::from)?;
    let own = Own { mtu: served.choice.chosen.mtu.into(), buffer: ear.buffer() as u64 };
    let (mut answering, begun) = (Answering::new(secret()?, own), Instant::now());
    reported(format!(
        "this host answers at {} and in the group {}; stop with Ctrl-C",
        mouth.local(),
        served.group
    ));
    let (mut bytes, mut out) = (vec![0; MAX_SIZE as usize], Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let came = mouth.next(Instant::now() + LOOK, &mut bytes).map_err(Failure::from)?;
        let Some((len, from, at)) = came else { continue };
        let Some((key, message)) = opened(&bytes[..len], &served.keys) else { continue };
        let (key, now) = (&served.keys[key], at.saturating_duration_since(begun));
        if message.kind == Kind::Count {
            ear.wait_for(&served.keys, |echoed, from| answering.received_in_group(&echoed, from, now))
                .map_err(Failure::from)?;
        }
        let answer = answering.answer(&message, len, from, now, unix_nanos(served.clock_ahead));
        if let Answer::Say(Message { kind: Kind::Ready, step: 0, .. }, _) = answer {
            reported(format!("{from} tests the network to this host"));
        }
        let mut send = |message: &Message, len, to| {
            message.encode(key, len, &mut out);
            mouth.send(&out, to)
        };
        let sent = match answer {
            Answer::Silence => Ok(()),
            Answer::Say(message, len) => send(&message, len, from),
            Answer::Train { first, count, len, interval } => {
                paced(count, interval, |number| send(&Message { number, ..first }, len, from))
            }
            Answer::ToGroup(message, count) => {
                debug_assert!(count <= GROUP_PROBES);
                paced(count, GROUP_INTERVAL.as_nanos() as u64, |_| send(&message, 0, served.group))
            }
        };
        sent.map_err(|error| Failure::system("answer another doctor")(other(error)))?;
    }
    Ok(())
}

/// Returns the time since 1970 on this host, plus `ahead` seconds, in nanoseconds.
pub fn unix_nanos(ahead: i64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    now.saturating_add_signed(ahead.saturating_mul(1_000_000_000))
}

/// Returns a random secret.
fn secret() -> Result<[u8; 32], Failure> {
    let key = faircast_wire::GroupKey::generate()
        .map_err(|error| Failure::system("draw a random number")(io::Error::other(error.to_string())))?;
    Ok(blake3::derive_key("faircast 2026 doctor: tokens", key.to_line().as_bytes()))
}
