//! Emulated links between network namespaces. The tests check results with wide time margins. The benchmarks measure exact times.

use faircast_core::time::Span;
use faircast_emulator::{EmulationPlan, Latencies};
use faircast_testkit::{Congestion, EmulatedLab, KitError, Node, TcpFlow, require_root};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 70, 2);
const SOON: Duration = Duration::from_secs(20);

fn must<T>(result: Result<T, KitError>) -> T {
    result.unwrap_or_else(|e| panic!("{e}"))
}

fn socket(node: &Node, at: (Ipv4Addr, u16)) -> UdpSocket {
    let socket = must(node.inside(|| UdpSocket::bind(at).expect("the port is free in a new namespace")));
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("not zero");
    socket
}

fn member(node: &Node) -> UdpSocket {
    let socket = socket(node, (GROUP, 5777));
    socket.join_multicast_v4(&GROUP, &node.ipv4()).expect("the host has this address");
    socket
}

/// Needs a kernel: TUN devices.
#[test]
fn packets_are_delayed_by_their_links() {
    let Some(root) = require_root() else { return };
    let lab =
        must(EmulatedLab::start(&root, "host a\nhost b\nrouter r\nlink a r delay=30ms\nlink r b delay=20ms"));
    let (a, b) = (lab.host("a"), lab.host("b"));
    let (from, to) = (socket(a, (a.ipv4(), 4000)), socket(b, (b.ipv4(), 4000)));
    let mut round_trips = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        from.send_to(b"there", (b.ipv4(), 4000)).expect("there is a route");
        let (_, back) = to.recv_from(&mut [0; 16]).expect("it arrives");
        to.send_to(b"back", back).expect("there is a route");
        from.recv_from(&mut [0; 16]).expect("it arrives");
        round_trips.push(begin.elapsed());
    }
    let least = round_trips.iter().min().expect("there were five");
    assert!(*least >= Duration::from_millis(100), "{round_trips:?}");
    assert!(*least < Duration::from_millis(150), "five in a row were late: {round_trips:?}");
}

/// Needs a kernel: Linux' TCP through TUN devices.
#[test]
fn tcp_flow_gets_the_capacity_of_the_link() {
    let Some(root) = require_root() else { return };
    let text = "host a\nhost b\nlink a b rate=10M delay=10ms queue=droptail,40";
    let flow = TcpFlow::new(Congestion::Reno, Duration::from_secs(5));
    for flow in [flow, flow.over_ipv6()] {
        let lab = must(EmulatedLab::start(&root, text));
        let result = must(flow.run(lab.host("a"), lab.host("b")));
        let report = must(lab.stop());
        assert!((7e6..9.8e6).contains(&result.goodput_bps), "{result:?}; {report}");
        let (_, forth) = &report.links[0];
        assert!(forth.overflow > 0 && forth.accepted_bytes < 10_500_000, "{report}");
    }
}

/// Needs a kernel: TUN devices.
#[test]
fn burst_is_sent_at_the_rate_of_the_link() {
    let Some(root) = require_root() else { return };
    let lab = must(EmulatedLab::start(&root, "host a\nhost b\nlink a b rate=1M queue=droptail,100"));
    let (a, b) = (lab.host("a"), lab.host("b"));
    let (from, to) = (socket(a, (a.ipv4(), 4000)), socket(b, (b.ipv4(), 4000)));
    let begin = Instant::now();
    for _ in 0..100 {
        from.send_to(&[0; 1222], (b.ipv4(), 4000)).expect("there is a route"); // 10 ms each with its headers
    }
    for _ in 0..100 {
        to.recv_from(&mut [0; 1500]).expect("the buffer holds all");
    }
    assert!(begin.elapsed() >= Duration::from_millis(990), "{:?}", begin.elapsed());
}

/// Needs a kernel: multicast through TUN devices.
#[test]
fn multicast_datagram_is_copied_to_every_member() {
    let Some(root) = require_root() else { return };
    let text = "host source\nhost a groups=239.255.70.2\nhost b groups=all\nhost c groups=all\nhost d\nrouter r\nrouter s
        link source r rate=10M\nlink r a delay=5ms\nlink r s delay=5ms\nlink s b\nlink s c delay=3ms\nlink s d";
    let lab = must(EmulatedLab::start(&root, text));
    let source = lab.host("source");
    let members = ["a", "b", "c"].map(|name| member(lab.host(name)));
    let speaker = socket(source, (source.ipv4(), 0));
    speaker.set_multicast_ttl_v4(1).expect("1 is a time to live");
    speaker.send_to(b"to all", (GROUP, 5777)).expect("there is a multicast route");
    for member in &members {
        let mut bytes = [0; 16];
        let (length, from) = member.recv_from(&mut bytes).expect("it arrives");
        assert_eq!((&bytes[..length], from.ip()), (&b"to all"[..], source.address()));
    }
    let report = must(lab.stop());
    let offered: Vec<_> = report.links.iter().map(|(name, counts)| (name.as_str(), counts.offered)).collect();
    assert!(offered.contains(&("r>s", 1)) && offered.contains(&("s>d", 0)), "{report}");
}

/// Needs a kernel: MLD, and multicast over IPv6 through TUN devices.
#[test]
fn ipv6_group_reaches_a_host_from_its_join_to_its_leave() {
    const GROUP_6: Ipv6Addr = Ipv6Addr::new(0xff3e, 0, 0, 0, 0, 0, 0x70, 2);
    let Some(root) = require_root() else { return };
    let text = "host source\nhost a groups=joined\nhost b groups=joined\nrouter r
        link source r\nlink r a delay=5ms\nlink r b delay=5ms";
    let mut plan = EmulationPlan::parse(text).expect("a sound plan");
    let latencies = Latencies { join: Span::from_millis(300), leave: Span::from_millis(100) };
    plan.latencies.push((GROUP_6.into(), GROUP_6.into(), latencies));
    let lab = must(EmulatedLab::of(&root, plan));
    let socket = |name: &str, port: u16| {
        let bind = || UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).expect("the port is free");
        let socket = must(lab.host(name).inside(bind));
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("not zero");
        socket
    };
    let (speaker, a, b) = (socket("source", 0), socket("a", 5777), socket("b", 5777));
    let (mut sent, mut bytes) = (0, [0; 16]);
    let mut arrives = |at: &UdpSocket| {
        sent += 1;
        speaker.send_to(b"to all", (GROUP_6, 5777)).expect("there is a multicast route");
        at.recv_from(&mut bytes).is_ok()
    };
    assert!(!arrives(&a), "nobody has joined");
    for (member, links) in [(&a, 2), (&b, 1)] {
        let begin = Instant::now();
        member.join_multicast_v6(&GROUP_6, 0).expect("there is a multicast route");
        while !arrives(member) {
            assert!(begin.elapsed() < SOON, "the group does not reach its member");
        }
        let least = Duration::from_millis(300) * links;
        assert!(begin.elapsed() >= least, "each link has its latency: {:?}", begin.elapsed());
    }
    a.leave_multicast_v6(&GROUP_6, 0).expect("it is a member");
    let begin = Instant::now();
    let mut later = 0;
    while later < 50 {
        assert!(begin.elapsed() < SOON, "the group does not reach its member");
        later += u32::from(arrives(&b) && begin.elapsed() > Duration::from_secs(1));
    }
    let report = must(lab.stop());
    let offered = |name: &str| report.links.iter().find(|(link, _)| link == name).map(|(_, it)| it.offered);
    assert!(offered("r>a") < Some(sent - 50) && offered("r>b") >= Some(50), "{sent} sent: {report}");
}

/// Needs a kernel: ECN of Linux' TCP.
#[test]
fn red_marks_packets_of_a_tcp_flow_that_negotiated_ecn() {
    let Some(root) = require_root() else { return };
    let text = "host a\nhost b\nlink a b rate=10M delay=10ms queue=red,limit=100,min=5,max=30,w=0.02,p=0.1,ecn back queue=droptail,100";
    let lab = must(EmulatedLab::start(&root, text));
    for name in ["a", "b"] {
        must(lab.host(name).run("sysctl", &["-qw", "net.ipv4.tcp_ecn=1"], SOON));
    }
    let flow = TcpFlow::new(Congestion::Reno, Duration::from_secs(5));
    let result = must(flow.run(lab.host("a"), lab.host("b")));
    let seen = must(lab.host("b").run("cat", &["/proc/net/netstat"], SOON)).stdout;
    let report = must(lab.stop());
    assert!(report.links[0].1.marked > 3, "{result:?}; {report}");
    assert!(netstat(&seen, "InCEPkts") > 3, "the receiver's kernel saw no marks: {seen}");
    assert!(result.goodput_bps > 6e6, "{result:?}; {report}");
}

/// Needs a kernel: TUN devices take long packets apart and together, and Linux' TCP verifies their checksums.
#[test]
fn packets_that_arrive_together_reach_tcp_as_one() {
    let Some(root) = require_root() else { return };
    let text = "host a\nhost b\nlink a b delay=5ms";
    let flow = TcpFlow::new(Congestion::Reno, Duration::from_secs(1));
    for flow in [flow, flow.over_ipv6()] {
        let lab = must(EmulatedLab::shared(&root, text));
        let result = must(flow.run(lab.host("a"), lab.host("b")));
        let seen = must(lab.host("b").run("cat", &["/proc/net/snmp"], SOON)).stdout;
        let report = must(lab.stop());
        let (packets, taken) = (report.links[0].1.accepted, counter(&seen, "Tcp:", "InSegs"));
        assert!(packets > 2_000 && taken > 0 && taken < packets * 3 / 4, "{taken}: {result:?}; {report}");
        let faults = (counter(&seen, "Tcp:", "InCsumErrors"), report.entries.too_long, report.refused);
        assert_eq!(faults, (0, 0, 0));
    }
}

/// Returns a counter of `IpExt` in `/proc/net/netstat`.
fn netstat(text: &str, name: &str) -> u64 {
    counter(text, "IpExt:", name)
}

/// Returns a counter of a group in a file of `/proc/net`.
fn counter(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(other, _)| *other == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}
