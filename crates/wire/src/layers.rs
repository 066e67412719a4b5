//! Groups of the layers of a session: one multicast group per layer, in order from the session's own group.

use faircast_core::packet::Layer;
use std::net::{IpAddr, SocketAddr};

/// Spacing of the layers' groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// Layer `n` has the session's group address plus `n` and the same port. Routers see which layers a host has joined.
    #[default]
    Address,
    /// Layer `n` has the session's port plus `n` and the same address: for networks that permit one group only. A host that joins
    /// one layer receives all layers.
    Port,
}

/// Returns the group of a layer; `None` if its address or port would exceed the range of addresses or ports. The base layer of a
/// session without feedback may have the address of one host instead of a group.
pub fn group_of(session: SocketAddr, layer: Layer, spacing: Spacing) -> Option<SocketAddr> {
    let mut group = session;
    match (spacing, session.ip()) {
        (Spacing::Port, _) => group.set_port(session.port().checked_add(layer.0.into())?),
        (Spacing::Address, IpAddr::V4(base)) => {
            let address = u32::from(base).checked_add(layer.0.into())?;
            group.set_ip(IpAddr::V4(address.into()));
        }
        (Spacing::Address, IpAddr::V6(base)) => {
            let address = u128::from(base).checked_add(layer.0.into())?;
            group.set_ip(IpAddr::V6(address.into()));
        }
    }
    (layer.0 == 0 || group.ip().is_multicast()).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(session: &str, layer: u8, spacing: Spacing) -> Option<String> {
        let session = session.parse().expect("an address");
        group_of(session, Layer(layer), spacing).map(|group| group.to_string())
    }

    #[test]
    fn layers_have_consecutive_addresses_or_ports() {
        let (by_address, by_port) = (Spacing::Address, Spacing::Port);
        assert_eq!(group("239.255.70.1:5777", 0, by_address).as_deref(), Some("239.255.70.1:5777"));
        assert_eq!(group("239.255.70.254:5777", 3, by_address).as_deref(), Some("239.255.71.1:5777"));
        assert_eq!(group("239.255.70.1:5777", 3, by_port).as_deref(), Some("239.255.70.1:5780"));
        assert_eq!(group("192.0.2.7:5777", 0, by_address).as_deref(), Some("192.0.2.7:5777"));
        assert_eq!(group("192.0.2.7:5777", 1, by_address), None);
        assert_eq!(group("[ff15::ffff]:5777", 1, by_address).as_deref(), Some("[ff15::1:0]:5777"));
    }

    #[test]
    fn layers_beyond_the_last_address_or_port_have_no_group() {
        assert_eq!(group("239.255.255.255:5777", 1, Spacing::Address), None);
        assert_eq!(group("239.255.70.1:65535", 1, Spacing::Port), None);
    }
}
