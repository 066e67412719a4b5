//! Choice of the network interface for a group.

pub use crate::sys::Interface;

use crate::error::NetError;
use crate::sys;
use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The interface for a group, and the reason of the choice.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The interface.
    pub chosen: Interface,
    /// Address of the interface, which is the source address of packets.
    pub local: IpAddr,
    /// Other interfaces that could carry the group.
    pub alternatives: Vec<Interface>,
    /// Reason of the choice.
    pub why: Why,
}

/// Reason of the choice of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The user has named the interface.
    Asked,
    /// The kernel's route to the group uses this interface.
    Route,
    /// This interface is the only one that can carry multicast.
    OnlyOne,
    /// There is no network: only programs on this host can communicate.
    Loopback,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Asked => "as asked",
            Why::Route => "by the routing table",
            Why::OnlyOne => "the only one that carries multicast",
            Why::Loopback => "without a network, for programs on this host only",
        })
    }
}

/// Returns all network interfaces of this host (of this network namespace), in the kernel's order.
///
/// # Errors
/// [`NetError::System`] when the system does not list them.
pub fn interfaces() -> Result<Vec<Interface>, NetError> {
    sys::interfaces().map_err(NetError::system("listing the network interfaces"))
}

/// Returns the broadcast address of the network of `local`, an address of this host; `None` if the network has none.
///
/// # Errors
/// [`NetError::System`] when the system does not list the interfaces.
pub fn broadcast_of(local: Ipv4Addr) -> Result<Option<Ipv4Addr>, NetError> {
    sys::broadcast_of(local).map_err(NetError::system("listing the network interfaces"))
}

/// Whether sessions of this host can use only IPv6: no multicast interface has an IPv4 address, and at least one has an IPv6
/// address beyond link scope. If `wanted` names an interface, by name or address, the other interfaces do not count.
pub fn is_ipv6_only(wanted: Option<&str>) -> bool {
    interfaces().is_ok_and(|all| without_ipv4(&all, wanted))
}

fn without_ipv4(all: &[Interface], wanted: Option<&str>) -> bool {
    if let Some(address) = wanted.and_then(|wanted| wanted.parse::<IpAddr>().ok()) {
        return address.is_ipv6();
    }
    let counts = |interface: &&Interface| match wanted {
        Some(name) => interface.name == name,
        None => interface.up && interface.multicast && !interface.loopback,
    };
    let addresses = || all.iter().filter(counts).flat_map(|interface| &interface.addrs);
    let is_wide = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if !v6.is_unicast_link_local());
    !addresses().any(IpAddr::is_ipv4) && addresses().any(is_wide)
}

/// Chooses the interface for `group`: the interface `wanted` (a name or an address), if given. Otherwise the interface of the
/// kernel's route to the group, then the only interface that can carry the group, then loopback.
///
/// # Errors
/// When the interface does not exist, is down, has no address of the group's family or carries no multicast;
/// [`NetError::WhichInterface`] if several are equally good.
pub fn choose(group: IpAddr, wanted: Option<&str>) -> Result<Choice, NetError> {
    if !group.is_multicast() {
        return Err(NetError::NotMulticast { address: group });
    }
    let all = interfaces()?;
    match wanted {
        Some(wanted) => asked(&all, group, wanted),
        None => by_itself(&all, group, routed(group)),
    }
}

/// Chooses the interface towards a host: the interface `wanted` (a name or an address), if given, otherwise the interface of the
/// kernel's route.
///
/// # Errors
/// As [`choose`], and [`NetError::NoRoute`] when there is no route.
pub fn choose_towards(host: IpAddr, wanted: Option<&str>) -> Result<Choice, NetError> {
    let all = interfaces()?;
    match wanted {
        Some(wanted) => asked(&all, host, wanted),
        None => towards(&all, host, routed(host)),
    }
}

fn towards(all: &[Interface], host: IpAddr, routed: Option<IpAddr>) -> Result<Choice, NetError> {
    let local = routed.ok_or(NetError::NoRoute { host })?;
    let carrier = all.iter().find(|i| i.addrs.contains(&local));
    let chosen = carrier.ok_or(NetError::NoRoute { host })?;
    Ok(choice(all, host, chosen, local, Why::Route))
}

/// Chooses again after a change, for a session that began on the interface of `before`. Returns the interface with the same name,
/// even if it was created again or has other addresses, and prefers its earlier address. If that interface is not usable and the
/// user has named no interface, returns the interface of the current route.
///
/// # Errors
/// As [`choose`], for the interface of `before`.
pub fn choose_again(group: IpAddr, wanted: Option<&str>, before: &Choice) -> Result<Choice, NetError> {
    again(&interfaces()?, group, wanted, before, || routed(group))
}

fn again(
    all: &[Interface],
    group: IpAddr,
    wanted: Option<&str>,
    before: &Choice,
    routed: impl FnOnce() -> Option<IpAddr>,
) -> Result<Choice, NetError> {
    // If the user named an address, the interface that has this address now is chosen.
    let named = wanted.filter(|wanted| wanted.parse::<IpAddr>().is_ok());
    if let Some(Ok(choice)) = named.map(|address| asked(all, group, address)) {
        return Ok(choice);
    }
    match asked(all, group, &before.chosen.name) {
        Ok(mut choice) => {
            if choice.chosen.addrs.contains(&before.local) {
                choice.local = before.local;
            }
            Ok(Choice { why: before.why, ..choice })
        }
        Err(error) => {
            let elsewhere = wanted.is_none().then(|| by_itself(all, group, routed()));
            match elsewhere {
                Some(Ok(choice)) if choice.why == Why::Route => Ok(choice),
                _ => Err(error),
            }
        }
    }
}

fn asked(all: &[Interface], group: IpAddr, wanted: &str) -> Result<Choice, NetError> {
    let address = wanted.parse::<IpAddr>().ok();
    let found = all.iter().find(|i| i.name == wanted || address.is_some_and(|a| i.addrs.contains(&a)));
    let Some(chosen) = found else {
        let exist = all.iter().map(|i| i.name.clone()).collect();
        return Err(NetError::NoSuchInterface { wanted: wanted.to_owned(), exist });
    };
    let name = || chosen.name.clone();
    if !chosen.up {
        return Err(NetError::InterfaceDown { name: name() });
    }
    if group.is_multicast() && !chosen.multicast && !chosen.loopback {
        return Err(NetError::NotMulticastCapable { name: name() });
    }
    let preferred = address.filter(|a| a.is_ipv4() == group.is_ipv4());
    let Some(local) = preferred.or_else(|| address_for(chosen, group)) else {
        return Err(NetError::NoAddress { name: name(), group });
    };
    Ok(choice(all, group, chosen, local, Why::Asked))
}

fn by_itself(all: &[Interface], group: IpAddr, routed: Option<IpAddr>) -> Result<Choice, NetError> {
    if !group.is_multicast() {
        return towards(all, group, routed);
    }
    if let Some(local) = routed {
        let carrier = all.iter().find(|i| i.addrs.contains(&local) && can_carry(i, group));
        if let Some(chosen) = carrier {
            return Ok(choice(all, group, chosen, local, Why::Route));
        }
    }
    let mut able = all.iter().filter(|i| can_carry(i, group));
    let (first, second) = (able.next(), able.next());
    if second.is_some() {
        let candidates = all.iter().filter(|i| can_carry(i, group)).map(|i| i.name.clone()).collect();
        return Err(NetError::WhichInterface { group, candidates });
    }
    let (chosen, why) = match first {
        Some(only) => (only, Why::OnlyOne),
        None => {
            let loopback = all.iter().find(|i| i.loopback && i.up);
            (loopback.ok_or(NetError::NoMulticastRoute { group })?, Why::Loopback)
        }
    };
    let local = address_for(chosen, group).ok_or(NetError::NoMulticastRoute { group })?;
    Ok(choice(all, group, chosen, local, why))
}

fn choice(all: &[Interface], group: IpAddr, chosen: &Interface, local: IpAddr, why: Why) -> Choice {
    let alternatives =
        all.iter().filter(|i| i.index != chosen.index && can_carry(i, group)).cloned().collect();
    Choice { chosen: chosen.clone(), local, alternatives, why }
}

fn can_carry(interface: &Interface, group: IpAddr) -> bool {
    interface.up && interface.multicast && !interface.loopback && address_for(interface, group).is_some()
}

/// Returns the interface's address that is the source address of packets to the group. An IPv6 link-local address is returned only
/// if the group has link scope, or if there is no other address.
fn address_for(interface: &Interface, group: IpAddr) -> Option<IpAddr> {
    let mut same = interface.addrs.iter().copied().filter(|a| a.is_ipv4() == group.is_ipv4());
    let wants_link_local = matches!(group, IpAddr::V6(g) if is_link_scope(g));
    let fits = |a: &IpAddr| matches!(a, IpAddr::V6(a) if a.is_unicast_link_local() == wants_link_local);
    if group.is_ipv4() { same.next() } else { same.clone().find(fits).or_else(|| same.next()) }
}

/// Whether a multicast address is of interface-local or link-local scope.
fn is_link_scope(group: Ipv6Addr) -> bool {
    matches!(group.segments()[0] & 0x000f, 1 | 2)
}

/// Returns the source address that the kernel would use for the group, without sending a packet.
fn routed(group: IpAddr) -> Option<IpAddr> {
    let domain = if group.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).ok()?;
    const DISCARD: u16 = 9;
    socket.connect(&SocketAddr::new(group, DISCARD).into()).ok()?;
    let local = socket.local_addr().ok()?.as_socket()?.ip();
    (!local.is_unspecified()).then_some(local)
}

impl Choice {
    /// Chooses the interface of a socket that listens at this address: the interface with this address, or the host's default
    /// interface if the address is unspecified.
    ///
    /// # Errors
    /// When no interface has the address.
    pub(crate) fn of_listener(at: IpAddr) -> Result<Choice, NetError> {
        let all = interfaces()?;
        let chosen = all.iter().find(|interface| interface.addrs.contains(&at));
        let chosen =
            chosen.or_else(|| all.iter().find(|interface| at.is_unspecified() && interface.loopback));
        let Some(chosen) = chosen.cloned() else {
            let exist = all.into_iter().map(|interface| interface.name).collect();
            return Err(NetError::NoSuchInterface { wanted: at.to_string(), exist });
        };
        Ok(Choice { chosen, local: at, alternatives: Vec::new(), why: Why::Asked })
    }

    /// Returns `address` on this interface: an IPv6 address of link scope gets the interface's index as its zone.
    pub(crate) fn here(&self, address: IpAddr, port: u16) -> SocketAddr {
        match address {
            IpAddr::V6(v6) if v6.is_unicast_link_local() || (v6.is_multicast() && is_link_scope(v6)) => {
                SocketAddrV6::new(v6, port, 0, self.chosen.index).into()
            }
            other => SocketAddr::new(other, port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 1, 2, 3));

    fn interface(name: &str, index: u32, addrs: &[&str]) -> Interface {
        let addrs = addrs.iter().map(|a| a.parse().expect("a literal address")).collect();
        let loopback = name == "lo";
        Interface {
            name: name.into(),
            index,
            addrs,
            mtu: 1500,
            up: true,
            connected: true,
            multicast: !loopback,
            loopback,
        }
    }

    fn host() -> Vec<Interface> {
        vec![
            interface("lo", 1, &["127.0.0.1", "::1"]),
            interface("eth0", 2, &["192.0.2.5", "fe80::5", "2001:db8::5"]),
        ]
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("a literal address")
    }

    #[test]
    fn every_interface_has_a_name_an_index_and_an_mtu() {
        let all = interfaces().expect("this host lists its interfaces");
        assert!(!all.is_empty());
        assert!(all.iter().all(|i| !i.name.is_empty() && i.index > 0 && i.mtu >= 68), "{all:?}");
    }

    #[test]
    fn unicast_address_is_refused_as_a_group() {
        let error = choose(ip("192.0.2.1"), None).expect_err("not a group");
        assert!(matches!(error, NetError::NotMulticast { .. }));
        assert_eq!(error.exit_class(), crate::ExitClass::Usage);
    }

    #[test]
    fn error_for_an_unknown_interface_lists_the_existing_ones() {
        let error = asked(&host(), GROUP, "eth7").expect_err("there is none");
        assert!(error.to_string().contains("lo, eth0"), "{error}");
    }

    #[test]
    fn interface_can_be_selected_by_any_of_its_addresses() {
        let choice = asked(&host(), GROUP, "2001:db8::5").expect("exists");
        assert_eq!((choice.chosen.index, choice.local), (2, ip("192.0.2.5")));
    }

    #[test]
    fn interface_that_is_down_is_refused() {
        let mut all = host();
        all[1].up = false;
        assert!(matches!(asked(&all, GROUP, "eth0"), Err(NetError::InterfaceDown { .. })));
    }

    #[test]
    fn interface_without_an_address_of_the_family_is_refused() {
        let all = [interface("eth0", 2, &["fe80::5"])];
        assert!(matches!(asked(&all, GROUP, "eth0"), Err(NetError::NoAddress { .. })));
    }

    #[test]
    fn tunnel_without_multicast_is_refused_and_never_chosen() {
        let mut all = host();
        all.push(interface("wg0", 3, &["10.0.0.1"]));
        all[2].multicast = false;
        assert!(matches!(asked(&all, GROUP, "wg0"), Err(NetError::NotMulticastCapable { .. })));
        let choice = by_itself(&all, GROUP, Some(ip("10.0.0.1"))).expect("eth0 remains");
        assert_eq!((choice.chosen.name.as_str(), choice.why), ("eth0", Why::OnlyOne));
    }

    #[test]
    fn routing_table_selects_among_several_interfaces() {
        let mut all = host();
        all.push(interface("eth1", 3, &["198.51.100.5"]));
        let choice = by_itself(&all, GROUP, Some(ip("198.51.100.5"))).expect("routed");
        assert_eq!((choice.chosen.name.as_str(), choice.why), ("eth1", Why::Route));
        assert_eq!(choice.alternatives[0].name, "eth0");
    }

    #[test]
    fn choice_among_several_interfaces_without_a_route_fails() {
        let mut all = host();
        all.push(interface("eth1", 3, &["198.51.100.5"]));
        let error = by_itself(&all, GROUP, None).expect_err("nothing decides");
        assert!(error.to_string().contains("eth0, eth1"), "{error}");
    }

    #[test]
    fn loopback_is_selected_without_a_network() {
        let choice = by_itself(&host()[..1], GROUP, None).expect("loopback");
        assert_eq!((choice.local, choice.why), (ip("127.0.0.1"), Why::Loopback));
    }

    #[test]
    fn returning_interface_is_recognised_by_its_name() {
        let before = by_itself(&host(), GROUP, None).expect("eth0");
        let renewed =
            [interface("lo", 1, &["127.0.0.1"]), interface("eth0", 9, &["192.0.2.77", "192.0.2.5"])];
        let choice = again(&renewed, GROUP, None, &before, || None).expect("it is back");
        assert_eq!((choice.chosen.index, choice.local), (9, ip("192.0.2.5")), "it has its address still");
        let moved = [interface("lo", 1, &["127.0.0.1"]), interface("eth0", 9, &["198.51.100.7"])];
        let choice =
            again(&moved, GROUP, Some("192.0.2.5"), &before, || None).expect("it has another address");
        assert_eq!((choice.chosen.index, choice.local), (9, ip("198.51.100.7")));
    }

    #[test]
    fn missing_interface_is_replaced_only_if_a_route_uses_another() {
        let before = by_itself(&host(), GROUP, None).expect("eth0");
        let others = [interface("lo", 1, &["127.0.0.1"]), interface("eth1", 3, &["198.51.100.5"])];
        let gone = |wanted, routed| again(&others, GROUP, wanted, &before, || routed);
        assert!(
            matches!(gone(None, None), Err(NetError::NoSuchInterface { .. })),
            "eth1 was never asked for"
        );
        let choice = gone(None, Some(ip("198.51.100.5"))).expect("the group is routed there now");
        assert_eq!(choice.chosen.name, "eth1");
        assert!(gone(Some("eth0"), Some(ip("198.51.100.5"))).is_err(), "the user has said eth0");
        assert!(
            again(&others[..1], GROUP, None, &before, || Some(ip("127.0.0.1"))).is_err(),
            "loopback is no network"
        );
    }

    #[test]
    fn host_without_ipv4_is_recognised_by_its_addresses() {
        let mut all = host();
        assert!(!without_ipv4(&all, None) && without_ipv4(&all, Some("2001:db8::5")));
        all[1].addrs.retain(IpAddr::is_ipv6);
        assert!(without_ipv4(&all, None) && without_ipv4(&all, Some("eth0")));
        assert!(!without_ipv4(&all, Some("lo")) && !without_ipv4(&all, Some("192.0.2.5")));
        all.push(interface("eth1", 3, &["198.51.100.5"]));
        assert!(!without_ipv4(&all, None) && without_ipv4(&all, Some("eth0")));
        // An interface that has only a link-local address may still get an IPv4 address.
        assert!(!without_ipv4(&[interface("eth0", 2, &["fe80::5"])], None));
    }

    #[test]
    fn link_local_address_is_used_for_link_local_groups() {
        let all = host();
        assert_eq!(address_for(&all[1], ip("ff02::99")), Some(ip("fe80::5")));
        assert_eq!(address_for(&all[1], ip("ff15::99")), Some(ip("2001:db8::5")));
        let only_link_local = interface("eth0", 2, &["fe80::5"]);
        assert_eq!(address_for(&only_link_local, ip("ff15::99")), Some(ip("fe80::5")));
    }
}
