//! Facts about this process and host.

use crate::failure::Failure;
use faircast::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Returns a stop request that SIGINT and SIGTERM set. The second signal ends the process at once.
pub fn stop_by_signal() -> Result<Stop, Failure> {
    let stop = Stop::new()?;
    register(&stop).map_err(Failure::system("watch for signals"))?;
    Ok(stop)
}

fn register(stop: &Stop) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the shutdown must read the flag before the same signal sets the flag.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(stop.flag()))?;
        signal_hook::flag::register(signal, Arc::clone(stop.flag()))?;
        signal_hook::low_level::pipe::register(signal, stop.waker()?)?;
    }
    Ok(())
}

/// Returns a random number, which differs at every call. Not for secrets.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns a random site-local group, which is probably unused. It has the address family of `like` and a port of the dynamic
/// range.
pub fn random_group(like: IpAddr) -> SocketAddr {
    let [a, b, c, d, ..] = random().to_be_bytes();
    let port = 49_152 + u16::from_be_bytes([c, d]) % 16_384;
    let address = match like {
        // 239.255.0.0/16 without .0.x and .255.x, which contain well-known groups (RFC 2365).
        IpAddr::V4(_) => Ipv4Addr::new(239, 255, 1 + a % 254, b).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, u16::from_be_bytes([a, b]), 0xfa1c).into(),
    };
    SocketAddr::new(address, port)
}

/// Returns the user and system time of all threads of this process, in seconds; `None` if the system does not report it.
pub fn cpu_seconds() -> Option<f64> {
    cpu_ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)
        .map(|ticks| ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Returns the sum of fields 14 and 15 of `/proc/PID/stat`. The second field may contain spaces and ends with `)`.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_parsed_after_a_name_with_spaces_and_brackets() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0";
        assert_eq!(cpu_ticks(stat), Some(175));
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
    }

    #[test]
    fn random_group_is_multicast_with_a_dynamic_port() {
        for like in [IpAddr::from([127, 0, 0, 1]), Ipv6Addr::LOCALHOST.into()] {
            let group = random_group(like);
            assert!(group.ip().is_multicast() && group.port() >= 49_152, "{group}");
            assert_eq!(group.is_ipv4(), like.is_ipv4());
        }
    }
}
