//! Checks of interfaces, routes and sockets.

use super::{Check, Verdict};
use crate::system;
use faircast::config::{DEFAULT_GROUP, DEFAULT_GROUP_V6, RECEIVE_BUFFER, default_group_v6};
use faircast_net::{
    Batch, Choice, Ecn, GroupOptions, GroupSocket, Interface, Membership, NetError, SourceOptions,
    SourceSocket, Waiter, Want, Watch, Why, choose, duplicate,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Payload of a self-test datagram, in bytes. The datagram fits the MTU of every interface that faircast uses.
const PROBE: usize = 256;
/// Number of datagrams of the self-test. Several are needed to detect GSO and GRO.
const PROBES: usize = 8;
/// Minimum receive buffer, in bytes. With less, packets are lost at a few Mbit/s.
const MIN_BUFFER: usize = 64 << 10;
/// Time limit of the self-test.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Describes each interface of this host.
pub fn interfaces() -> Vec<Check> {
    match faircast_net::interfaces() {
        Ok(all) => all.iter().map(interface).collect(),
        Err(error) => vec![failed("interface", &error)],
    }
}

fn interface(interface: &Interface) -> Check {
    let addresses: Vec<String> = interface.addrs.iter().map(IpAddr::to_string).collect();
    let addresses = if addresses.is_empty() { "no address".into() } else { addresses.join(", ") };
    let able = match (interface.up, interface.connected, interface.multicast, interface.loopback) {
        (false, ..) => "down",
        (true, _, _, true) => "this host only",
        (true, false, ..) => "not connected",
        (true, true, true, false) => "multicast",
        (true, true, false, false) => "no multicast",
    };
    let found = format!("{}: {able}, MTU {}, {addresses}", interface.name, interface.mtu);
    Check::new("interface", Verdict::Note, found)
}

/// Checks the interface that a session would use.
pub fn chosen(choice: &Result<Choice, NetError>, group: IpAddr) -> Check {
    let choice = match choice {
        Ok(choice) => choice,
        Err(error) => return failed("choice", error),
    };
    let Choice { chosen, local, alternatives, why } = choice;
    let found = format!("{} from {local}, {why}", chosen.name);
    if *why == Why::Loopback {
        return Check::new("choice", Verdict::Fail, found).advise(what_would_serve(group));
    }
    let found = match group == default_group_v6().ip() {
        true => format!(
            "{found}; the group is {DEFAULT_GROUP_V6}, and hosts with IPv4 have to name it with --group"
        ),
        false => found,
    };
    if !chosen.connected && !chosen.loopback {
        return Check::new(
            "choice",
            Verdict::Fail,
            format!("{found}; {} is not connected (no carrier)", chosen.name),
        )
        .advise("check its cable, the port of the switch, or the wireless network");
    }
    if chosen.mtu < 1_500 {
        return Check::new("choice", Verdict::Note, format!("{found}; its MTU is only {}", chosen.mtu))
            .advise("small datagrams cost CPU time; raise the MTU if the network allows it");
    }
    let names: Vec<&str> = alternatives.iter().map(|other| other.name.as_str()).collect();
    let check = Check::new("choice", Verdict::Ok, found);
    if names.is_empty() { check } else { check.advise(format!("others with --iface: {}", names.join(", "))) }
}

/// Returns advice, with commands, to enable multicast on the first interface other than loopback.
fn what_would_serve(group: IpAddr) -> String {
    let all = faircast_net::interfaces().unwrap_or_default();
    let Some(other) = all.iter().find(|interface| !interface.loopback) else {
        return "this host has no other interface: connect it to a network".to_owned();
    };
    let name = &other.name;
    match (other.up, other.multicast, other.addrs.is_empty()) {
        (false, ..) => format!("ip link set {name} up"),
        (true, false, _) => format!("ip link set {name} multicast on"),
        (true, true, true) => format!("{name} has no address: ip address add ADDRESS/BITS dev {name}"),
        (true, true, false) if group.is_ipv4() => {
            format!(
                "{name} has no IPv4 address: give it one, or name a group of IPv6, --group {DEFAULT_GROUP_V6}"
            )
        }
        (true, true, false) => {
            format!(
                "{name} has no IPv6 address: give it one, or name a group of IPv4, --group {DEFAULT_GROUP}"
            )
        }
    }
}

/// Checks that the routing table has a route to the group.
pub fn route(group: SocketAddr) -> Check {
    let any: IpAddr =
        if group.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let local = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(group)?; // queries the routing table without a packet
        socket.local_addr()
    });
    let refusing = if local.is_err() { super::routes::refusing(group.ip()) } else { None };
    match local {
        Ok(local) => Check::new("route", Verdict::Ok, format!("to {} from {}", group.ip(), local.ip())),
        Err(_) if refusing.is_some() => {
            let route = refusing.unwrap_or_default();
            Check::new("route", Verdict::Fail, format!("a route refuses {}: {route}", group.ip()))
                .advise(format!("ip route del {route}"))
        }
        Err(error) => {
            let command = match group.ip() {
                IpAddr::V4(_) => "ip route add 239.0.0.0/8 dev IFACE",
                IpAddr::V6(_) => "ip -6 route add ff00::/8 dev IFACE table local",
            };
            Check::new("route", Verdict::Warn, format!("no route to {}: {error}", group.ip()))
                .advise(format!("name the interface with --iface, or add a route: {command}"))
        }
    }
}

/// Results of the self-test.
#[derive(Debug, PartialEq, Eq)]
struct SelfTest {
    datagrams: usize,
    cut_by_kernel: bool,
    joined_by_kernel: bool,
}

/// Sends datagrams to a group through an interface, and receives these datagrams. No datagram leaves the host.
fn receive_own_multicast(choice: &Choice, group: SocketAddr) -> Result<SelfTest, NetError> {
    let ear = GroupSocket::open(group, Membership::AnySource, choice, &GroupOptions::default())?;
    let options = SourceOptions { ttl: 0, ect: Ecn::NotEct, ..SourceOptions::default() };
    let mouth = SourceSocket::open(group, choice, &options)?;
    let word: Vec<u8> = system::random().to_be_bytes().repeat(PROBE / 8);
    // The loop below counts fewer datagrams if a full queue drops some.
    let _outcome = mouth.send_batch(&word.repeat(PROBES), PROBE)?;
    let mut received = SelfTest { datagrams: 0, cut_by_kernel: false, joined_by_kernel: false };
    let (mut batch, mut waiter) = (Batch::new(PROBES), Waiter::new());
    let end = Instant::now() + TIMEOUT;
    while received.datagrams < PROBES && Instant::now() < end {
        waiter.wait(&[Watch::new(&ear, Want::Readable)], Some(end))?;
        ear.receive(&mut batch)?;
        for (bytes, meta) in batch.segments().filter(|(bytes, _)| **bytes == *word) {
            debug_assert_eq!(bytes.len(), PROBE);
            received.datagrams += 1;
            received.joined_by_kernel |= meta.segment > 0;
        }
    }
    received.cut_by_kernel = mouth.segments_in_kernel();
    Ok(received)
}

/// Tests multicast between programs of this host.
pub fn on_loopback(like: IpAddr) -> Check {
    match choose(like, Some("lo"))
        .and_then(|choice| receive_own_multicast(&choice, system::random_group(like)))
    {
        Ok(SelfTest { datagrams: 0, .. }) => silent("loopback", "lo"),
        Ok(received) => Check::new("loopback", Verdict::Ok, came_back(&received, "lo")),
        Err(NetError::NoMulticastRoute { .. }) if like.is_ipv6() => Check::new(
            "loopback",
            Verdict::Note,
            "lo carries no IPv6 multicast, as is usual",
        )
        .advise(
            "only needed between programs of one host: ip -6 route add multicast ff00::/8 dev lo table local",
        ),
        Err(error) => failed("loopback", &error),
    }
}

/// Tests multicast on the interface that a session would use. Also tests GSO and GRO, which save most of a session's CPU time. No
/// packet of the test leaves this host.
pub fn on_chosen(group: SocketAddr, choice: &Choice) -> Vec<Check> {
    let name = &choice.chosen.name;
    match receive_own_multicast(choice, group) {
        Ok(SelfTest { datagrams: 0, .. }) => {
            let found = format!("no datagram to {group} came back over {name}");
            vec![Check::new("self-test", Verdict::Fail, found)]
        }
        Ok(received) => {
            let test = Check::new("self-test", Verdict::Ok, came_back(&received, name)).advise(
                "this tested only this host; for the network: `faircast recv` there, `faircast send FILE` here",
            );
            vec![test, offload(&received)]
        }
        Err(error) => vec![failed("self-test", &error)],
    }
}

fn silent(check: &'static str, interface: &str) -> Check {
    Check::new(check, Verdict::Fail, format!("no datagram came back over {interface}"))
        .advise("a packet filter drops multicast; look at `nft list ruleset` or `iptables -L -v`")
}

fn offload(received: &SelfTest) -> Check {
    match (received.cut_by_kernel, received.joined_by_kernel) {
        (true, true) => Check::new("offload", Verdict::Ok, "the kernel cuts and joins datagrams (GSO, GRO)"),
        (true, false) => Check::new("offload", Verdict::Note, "GSO works; GRO was not seen in the self-test"),
        (false, _) => Check::new(
            "offload",
            Verdict::Warn,
            "no GSO: each datagram needs a separate system call, which costs CPU time",
        )
        .advise(
            "Linux 4.18 and newer support GSO if the interface computes checksums (ethtool -K IFACE tx on)",
        ),
    }
}

fn came_back(received: &SelfTest, interface: &str) -> String {
    format!("{} of {PROBES} datagrams came back over {interface}", received.datagrams)
}

/// Checks that no other host uses this host's source address.
pub fn address(choice: &Choice) -> Option<Check> {
    let local = choice.local;
    let name = &choice.chosen.name;
    match duplicate(choice) {
        Ok(Some((address, other))) => Some(
            Check::new(
                "address",
                Verdict::Fail,
                format!("another host has {address} of {name}, too: {other}"),
            )
            .advise("give one of the two hosts another address; until then, each host receives packets for the other host"),
        ),
        Ok(None) if local.is_ipv4() => {
            Some(Check::new("address", Verdict::Ok, format!("no other host has {local}")))
        }
        // Without ARP, or without permission to probe, the result is unknown.
        Ok(None) | Err(_) => None,
    }
}

/// Checks that the socket buffers have the size that faircast requests.
pub fn buffers(like: IpAddr, choice: &Choice) -> Vec<Check> {
    let asked = GroupOptions { receive_buffer: RECEIVE_BUFFER };
    let group = system::random_group(like);
    let granted =
        GroupSocket::open(group, Membership::AnySource, choice, &asked).map(|socket| socket.receive_buffer());
    let receive = match granted {
        Ok(granted) => to_receive(granted.granted, granted.asked),
        Err(error) => failed("buffers", &error),
    };
    let wanted = SourceOptions::default().send_buffer;
    let limit = std::fs::read_to_string("/proc/sys/net/core/wmem_max").ok();
    let send = limit.and_then(|limit| limit.trim().parse::<usize>().ok()).map(|limit| {
        if limit >= wanted {
            Check::new("buffers", Verdict::Ok, format!("up to {} to send", kib(limit)))
        } else {
            Check::new("buffers", Verdict::Warn, format!("{} to send, {} needed", kib(limit), kib(wanted)))
                .advise(format!("sysctl -w net.core.wmem_max={wanted}"))
        }
    });
    std::iter::once(receive).chain(send).collect()
}

/// Checks whether the granted receive buffer of `granted` bytes is large enough. `asked` is the requested size.
fn to_receive(granted: usize, asked: usize) -> Check {
    if granted >= asked {
        return Check::new("buffers", Verdict::Ok, format!("{} to receive", kib(granted)));
    }
    let found = format!("{} to receive, {} needed", kib(granted), kib(asked));
    let verdict = if granted < MIN_BUFFER { Verdict::Fail } else { Verdict::Warn };
    Check::new("buffers", verdict, found).advise(format!(
        "sysctl -w net.core.rmem_max={asked}\nand the same line in /etc/sysctl.d/, for the next start"
    ))
}

fn kib(bytes: usize) -> String {
    format!("{} KiB", bytes / 1_024)
}

fn failed(check: &'static str, error: &NetError) -> Check {
    if let NetError::BufferTooSmall { granted, .. } = error {
        return Check { check, ..to_receive(*granted, RECEIVE_BUFFER) };
    }
    let message = error.to_string();
    let (found, advice) = match message.split_once("; ").or_else(|| message.split_once(": ")) {
        Some((found, advice)) => (found.to_owned(), Some(advice.to_owned())),
        None => (message, None),
    };
    Check { check, verdict: Verdict::Fail, found, advice, measured: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_receives_its_own_multicast_over_loopback() {
        let like = IpAddr::from([239, 255, 1, 1]);
        let lo = choose(like, Some("lo")).expect("every host has lo");
        let received = receive_own_multicast(&lo, system::random_group(like)).expect("lo carries multicast");
        assert_eq!(received.datagrams, PROBES);
    }

    #[test]
    fn small_receive_buffer_causes_a_warning_and_tiny_one_an_error() {
        let verdicts = [10_000, MIN_BUFFER, RECEIVE_BUFFER].map(|granted| {
            let check = to_receive(granted, RECEIVE_BUFFER);
            let command = check.advice.as_deref().and_then(|advice| advice.lines().next());
            let raises = command == Some("sysctl -w net.core.rmem_max=16777216");
            assert_eq!(raises, granted < RECEIVE_BUFFER, "{check:?}");
            check.verdict
        });
        assert_eq!(verdicts, [Verdict::Fail, Verdict::Warn, Verdict::Ok]);
    }

    #[test]
    fn check_of_an_unknown_interface_lists_existing_interfaces() {
        let choice = choose(IpAddr::from([239, 255, 1, 1]), Some("nosuch0"));
        let check = chosen(&choice, IpAddr::from([239, 255, 1, 1]));
        assert_eq!(check.verdict, Verdict::Fail);
        assert!(check.advice.expect("it lists the others").contains("lo"), "{}", check.found);
    }
}
