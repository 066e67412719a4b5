//! Advice about the size of the receive buffer on this host.

use crate::units;
use faircast::config::RECEIVE_BUFFER;
use faircast_net::{Granted, UnicastOptions, UnicastSocket, choose};
use std::net::{IpAddr, Ipv4Addr};

/// An arbitrary IPv4 group, for the choice of the loopback interface.
const ANY_GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 0, 1));

/// Returns the receive buffer size that the system grants this process.
fn granted() -> Option<Granted> {
    let lo = choose(ANY_GROUP, Some("lo")).ok()?;
    let options = UnicastOptions { receive_buffer: RECEIVE_BUFFER, port: 0 };
    UnicastSocket::open(&lo, &options).ok().map(|socket| socket.receive_buffer())
}

/// Returns a warning, with advice, about packets that this host's socket buffer has dropped.
pub fn dropped(packets: u64) -> String {
    dropped_by(packets, granted())
}

fn dropped_by(packets: u64, granted: Option<Granted>) -> String {
    let packets = units::count(packets, "packet");
    match granted {
        Some(Granted { asked, granted }) if granted < asked => format!(
            "the socket buffer of this host dropped {packets}, because it has only {} of {} KiB; raise the limit with `sysctl -w net.core.rmem_max={asked}`",
            granted / 1024,
            asked / 1024
        ),
        _ => format!(
            "the socket buffer of this host dropped {packets} although it has the requested size: this host processes data more slowly than the data arrives; check its processor, its disk, and the program that reads the output"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_is_advised_only_for_a_buffer_below_the_requested_size() {
        let asked = RECEIVE_BUFFER;
        let small = dropped_by(3, Some(Granted { asked, granted: 212_992 }));
        assert!(small.contains("208 of 16384 KiB") && small.contains("rmem_max=16777216"), "{small}");
        let whole = dropped_by(3, Some(Granted { asked, granted: asked }));
        assert!(whole.contains("dropped 3 packets") && !whole.contains("rmem_max"), "{whole}");
        assert!(granted().is_some(), "it is measured");
    }
}
