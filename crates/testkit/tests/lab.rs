//! Tests of the kit: a lab matches its plan.

use faircast_testkit::{
    Bottleneck, Capture, Company, Congestion, Damage, Forwarding, Lab, Link, Membership, Node, Offloads,
    Sampler, TcpFlow, fields, require_root, run, write_csv,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 70, 1);
const SOON: Duration = Duration::from_secs(10);

fn member(node: &Node) -> UdpSocket {
    let address = node.ipv4();
    node.inside(move || {
        let socket = UdpSocket::bind((GROUP, 5777)).expect("the port is free in a new namespace");
        socket.join_multicast_v4(&GROUP, &address).expect("the host has this address");
        socket.set_read_timeout(Some(Duration::from_secs(2))).expect("not zero");
        socket
    })
    .expect("the namespace exists")
}

fn speaker(node: &Node) -> UdpSocket {
    node.inside(|| UdpSocket::bind("0.0.0.0:0").expect("some port is free")).expect("the namespace exists")
}

/// Needs a kernel: namespaces joined by a bridge.
#[test]
fn two_hosts_reach_each_other() {
    let Some(root) = require_root() else { return };
    let lab = Lab::plan().company(Company::Shared).build(&root).unwrap_or_else(|e| panic!("{e}"));
    for target in [lab.receiver(0).ipv4().to_string(), lab.receiver(0).ipv6().to_string()] {
        let pinged = lab.sender().run("ping", &["-c", "1", "-W", "2", &target], SOON);
        assert!(pinged.is_ok(), "{pinged:?}");
    }
}

/// Needs a kernel: a bridge copies multicast.
#[test]
fn multicast_datagram_reaches_every_receiver() {
    let Some(root) = require_root() else { return };
    let lab =
        Lab::plan().company(Company::Shared).receivers(4).build(&root).unwrap_or_else(|e| panic!("{e}"));
    let members: Vec<_> = lab.receivers().iter().map(member).collect();
    speaker(lab.sender()).send_to(b"to all", (GROUP, 5777)).expect("there is a multicast route");
    for (member, node) in members.iter().zip(lab.receivers()) {
        let mut bytes = [0; 16];
        let (length, from) =
            member.recv_from(&mut bytes).unwrap_or_else(|e| panic!("{}: {e}", node.namespace()));
        assert_eq!((&bytes[..length], from.ip()), (&b"to all"[..], lab.sender().address()));
    }
}

/// Needs a kernel: TAP devices carry frames between a host and a bridge.
#[test]
fn damage_plan_applies_to_one_host_only() {
    const SENT: u32 = 2_000;
    let Some(root) = require_root() else { return };
    let damage = Damage { loss: 0.2, duplicate: 0.1, reorder: 0.05, corrupt: 0.1 };
    let plan = Lab::plan().company(Company::Shared).receivers(2).damage([0], damage);
    let lab = plan.build(&root).unwrap_or_else(|e| panic!("{e}"));
    let [harmed, other] = [0, 1].map(|at| member(lab.receiver(at)));
    harmed.set_nonblocking(true).expect("it is a socket");
    let speaker = speaker(lab.sender());
    let mut bytes = [0; 64];
    let mut got = Vec::new();
    let mut drain = |got: &mut Vec<Vec<u8>>| {
        while let Ok(length) = harmed.recv(&mut bytes) {
            got.push(bytes[..length].to_vec());
        }
    };
    for number in 0..SENT {
        let content = number.to_be_bytes().repeat(8);
        speaker.send_to(&content, (GROUP, 5777)).expect("there is a multicast route");
        let mut whole = [0; 64];
        let length = other.recv(&mut whole).unwrap_or_else(|e| panic!("the other host lacks {number}: {e}"));
        assert_eq!(&whole[..length], content);
        let end = Instant::now() + SOON;
        while lab.damaged(lab.receiver(0)).seen <= u64::from(number) {
            assert!(Instant::now() < end, "{number} has not come to the link");
            std::thread::sleep(Duration::from_micros(50));
        }
        drain(&mut got);
    }
    let end = Instant::now() + SOON;
    let tally = loop {
        let tally = lab.damaged(lab.receiver(0));
        drain(&mut got);
        if (tally.seen, got.len() as u64) == (SENT.into(), tally.seen - tally.lost + tally.duplicated) {
            break tally;
        }
        assert!(Instant::now() < end, "{} datagrams after {tally:?}", got.len());
        std::thread::sleep(Duration::from_millis(10));
    };
    let around = |part: f64| part * 0.85 * f64::from(SENT) * 0.7..part * 0.85 * f64::from(SENT) * 1.3;
    for (part, count) in [
        (damage.loss, tally.lost),
        (damage.duplicate, tally.duplicated),
        (damage.reorder, tally.reordered),
        (damage.corrupt, tally.corrupted),
    ] {
        assert!(around(part).contains(&(count as f64)), "{part}: {tally:?}");
    }
    // A corrupted datagram reaches the program because the injector corrects the checksum.
    let is_whole = |content: &Vec<u8>| content.chunks(4).all(|part| part == &content[..4]);
    let changed = got.iter().filter(|content| !is_whole(content)).count() as u64;
    assert!(
        (tally.corrupted * 9 / 10..=tally.corrupted * 12 / 10).contains(&changed),
        "{changed}: {tally:?}"
    );
    let numbers = got.iter().map(|content| &content[..4]).collect::<Vec<_>>();
    assert!(!numbers.is_sorted(), "none overtook another: {tally:?}");
}

/// Needs a kernel: TAP devices carry frames between a host and a bridge.
#[test]
fn damage_to_feedback_does_not_affect_data_and_can_be_ended() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().company(Company::Shared).damage_feedback(Damage::loss(1.0));
    let lab = plan.build(&root).unwrap_or_else(|e| panic!("{e}"));
    let (member, source) = (member(lab.receiver(0)), speaker(lab.sender()));
    source.set_read_timeout(Some(Duration::from_millis(300))).expect("not zero");
    let mut bytes = [0; 16];
    let mut reaches = |text: &[u8]| {
        source.send_to(text, (GROUP, 5777)).expect("there is a multicast route");
        let (_, from) = member.recv_from(&mut bytes).expect("data is not damaged");
        member.send_to(text, from).expect("the source has an address");
        source.recv(&mut bytes).is_ok_and(|length| bytes[..length] == *text)
    };
    assert!(!reaches(b"lost"));
    assert_eq!(lab.damaged(lab.sender()).lost, 1);
    lab.damage(lab.sender(), Damage::default());
    assert!(reaches(b"found"));
}

/// Needs a kernel: Linux' TCP through a token bucket.
#[test]
fn bottleneck_limits_a_tcp_flow_to_its_rate() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().receivers(2).offloads(Offloads::Off).bottleneck(0, Bottleneck::mbps(10.0));
    let lab = plan.build(&root).unwrap_or_else(|e| panic!("{e}"));
    let flow = TcpFlow::new(Congestion::Reno, Duration::from_secs(5));
    let limited = flow.run(lab.sender(), lab.receiver(0)).unwrap_or_else(|e| panic!("{e}"));
    assert!((9e6..11e6).contains(&limited.goodput_bps), "{limited:?}");
    assert!(lab.dropped(0).expect("tbf counts drops") > 0, "a TCP flow fills a queue of 50 kB");
    let free = TcpFlow::new(Congestion::Cubic, Duration::from_secs(1));
    let free = free.run(lab.sender(), lab.receiver(1)).unwrap_or_else(|e| panic!("{e}"));
    assert!(free.goodput_bps > 100e6, "{free:?}");
}

/// Needs a kernel: segmentation offload of interfaces.
#[test]
fn without_offloads_no_packet_is_larger_than_the_mtu() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().offloads(Offloads::Off).mtu(1200);
    let lab = plan.build(&root).unwrap_or_else(|e| panic!("{e}"));
    let file = std::env::temp_dir().join(format!("faircast-kit-{}.pcap", std::process::id()));
    let capture =
        Capture::start(lab.receiver(0), "tcp and dst port 5201", &file).unwrap_or_else(|e| panic!("{e}"));
    // This rate is high enough that the kernel would merge segments if offloads were on, and low enough for tshark to capture
    // every packet on a busy machine.
    let flow = TcpFlow::new(Congestion::Reno, Duration::from_secs(1)).at_most(50);
    flow.run(lab.sender(), lab.receiver(0)).unwrap_or_else(|e| panic!("{e}"));
    let file = capture.stop().unwrap_or_else(|e| panic!("{e}"));
    let lengths = fields(&file, "ip.len >= 1200", &["ip.len"]).unwrap_or_else(|e| panic!("{e}"));
    let _ = std::fs::remove_file(&file);
    assert!(lengths.len() > 100, "only {} full packets were seen", lengths.len());
    assert!(lengths.iter().all(|row| row[0] == "1200"), "{:?}", lengths.iter().find(|row| row[0] != "1200"));
}

/// Needs a kernel: byte counters of interfaces.
#[test]
fn sampled_counters_show_the_sent_bytes_over_time() {
    let Some(root) = require_root() else { return };
    let lab = Lab::plan().build(&root).unwrap_or_else(|e| panic!("{e}"));
    let sampler = Sampler::start(lab.sender(), Duration::from_millis(10)).unwrap_or_else(|e| panic!("{e}"));
    let socket = speaker(lab.sender());
    for _ in 0..20 {
        socket.send_to(&[0; 1000], (GROUP, 5777)).expect("there is a multicast route");
        std::thread::sleep(Duration::from_millis(10));
    }
    let samples = sampler.stop().unwrap_or_else(|e| panic!("{e}"));
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    assert!(last.tx_bytes - first.tx_bytes >= 20 * 1042, "{first:?} {last:?}");
    assert!(samples.len() >= 15 && samples.windows(2).all(|pair| pair[0].tx_bytes <= pair[1].tx_bytes));
    let csv = std::env::temp_dir().join(format!("faircast-kit-{}.csv", std::process::id()));
    write_csv(&samples, &csv).unwrap_or_else(|e| panic!("{e}"));
    let text = std::fs::read_to_string(&csv).expect("it was just written");
    let _ = std::fs::remove_file(&csv);
    assert_eq!(text.lines().count(), samples.len() + 1);
}

/// Needs a kernel: a bridge's port goes down.
#[test]
fn link_forwards_packets_only_while_it_is_up() {
    let Some(root) = require_root() else { return };
    let lab = Lab::plan().company(Company::Shared).build(&root).unwrap_or_else(|e| panic!("{e}"));
    let (member, socket) = (member(lab.receiver(0)), speaker(lab.sender()));
    member.set_read_timeout(Some(Duration::from_millis(300))).expect("not zero");
    let mut bytes = [0; 16];
    lab.set_link(0, Link::Down).unwrap_or_else(|e| panic!("{e}"));
    socket.send_to(b"lost", (GROUP, 5777)).expect("the sender's own link is up");
    assert!(member.recv(&mut bytes).is_err());
    lab.set_link(0, Link::Up).unwrap_or_else(|e| panic!("{e}"));
    let arrived = (0..20).find_map(|_| {
        socket.send_to(b"found", (GROUP, 5777)).expect("the sender's own link is up");
        member.recv(&mut bytes).ok()
    });
    assert_eq!(arrived.map(|length| &bytes[..length]), Some(&b"found"[..]));
}

/// Waits until the bridge forwards none of these groups to a receiver.
fn forgets(lab: &Lab, receiver: u16, groups: &[IpAddr]) {
    let end = Instant::now() + SOON;
    loop {
        let left = lab.groups(receiver).unwrap_or_else(|e| panic!("{e}"));
        if !left.iter().any(|group| groups.contains(group)) {
            return;
        }
        assert!(Instant::now() < end, "still {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Needs a kernel: a bridge snoops IGMP.
#[test]
fn group_is_forwarded_to_its_members_only() {
    let Some(root) = require_root() else { return };
    let lab = Lab::plan().company(Company::Shared).receivers(2).forwarding(Forwarding::ToMembers);
    let lab = lab.build(&root).unwrap_or_else(|e| panic!("{e}"));
    let (member, socket) = (member(lab.receiver(0)), speaker(lab.sender()));
    let other = Sampler::start(lab.receiver(1), Duration::from_millis(10)).unwrap_or_else(|e| panic!("{e}"));
    member.set_nonblocking(true).expect("it is a socket");
    let mut bytes = [0; 16];
    let arrived = (0..200).any(|_| {
        socket.send_to(b"to members", (GROUP, 5777)).expect("there is a multicast route");
        std::thread::sleep(Duration::from_millis(2));
        member.recv(&mut bytes).is_ok()
    });
    assert!(arrived, "the member got none of 200 datagrams");
    for _ in 0..200 {
        socket.send_to(&[0; 1000], (GROUP, 5777)).expect("there is a multicast route");
    }
    let samples = other.stop().unwrap_or_else(|e| panic!("{e}"));
    let got = samples[samples.len() - 1].rx_packets - samples[0].rx_packets;
    assert!(got < 50, "a host that is no member got {got} packets");
    assert_eq!(lab.groups(0).unwrap_or_else(|e| panic!("{e}")), [IpAddr::V4(GROUP)]);
    assert_eq!(lab.groups(1).unwrap_or_else(|e| panic!("{e}")), [] as [IpAddr; 0]);
}

/// Needs a kernel: a bridge snoops IGMP and MLD.
#[test]
fn each_join_and_leave_is_recorded_once() {
    let Some(root) = require_root() else { return };
    let lab = Lab::plan().company(Company::Shared).receivers(2).forwarding(Forwarding::ToMembers);
    let lab = lab.build(&root).unwrap_or_else(|e| panic!("{e}"));
    let six = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x7101);
    let groups = [IpAddr::V4(GROUP), six.into()];
    let watch = lab.watch_members().unwrap_or_else(|e| panic!("{e}"));
    let members = lab.receiver(1).inside(|| {
        let socket = UdpSocket::bind("[::]:0").expect("some port is free");
        socket.join_multicast_v6(&six, 0).expect("there is a multicast route");
        socket
    });
    let members = (member(lab.receiver(1)), members.unwrap_or_else(|e| panic!("{e}")));
    let end = Instant::now() + SOON;
    while !groups.iter().all(|group| lab.groups(1).unwrap_or_else(|e| panic!("{e}")).contains(group)) {
        assert!(Instant::now() < end, "the router has not heard of both: {:?}", watch.changes());
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(members);
    forgets(&lab, 1, &groups);
    for what in [Membership::Joined, Membership::Left] {
        for group in groups {
            let reported =
                watch.changes().into_iter().filter(|c| (c.group, c.what, c.receiver) == (group, what, 1));
            assert_eq!(reported.count(), 1, "{what:?} {group}: {:?}", watch.changes());
        }
    }
    assert_eq!(watch.count(0, Membership::Joined), 0, "{:?}", watch.changes());
    let changes = watch.stop().unwrap_or_else(|e| panic!("{e}"));
    assert!(changes.windows(2).all(|pair| pair[0].at <= pair[1].at));
}

/// Needs a kernel: processes and namespaces end.
#[test]
fn dropped_task_is_killed_and_dropped_lab_is_removed() {
    let Some(root) = require_root() else { return };
    let lab = Lab::plan().company(Company::Shared).build(&root).unwrap_or_else(|e| panic!("{e}"));
    let task = lab.sender().start("sleep", &["60"]).unwrap_or_else(|e| panic!("{e}"));
    let proc = format!("/proc/{}/comm", task.pid());
    assert_eq!(std::fs::read_to_string(&proc).expect("it runs").trim(), "sleep");
    drop(task);
    assert!(std::fs::metadata(&proc).is_err());
    let namespaces = lab.namespaces().to_vec();
    drop(lab);
    let left = run("ip", &["netns", "list"], SOON).unwrap_or_else(|e| panic!("{e}")).stdout;
    assert!(namespaces.iter().all(|name| !left.contains(name)), "{left}");
}

/// Needs a kernel: a process is killed.
#[test]
fn program_over_its_time_limit_is_killed() {
    let begin = Instant::now();
    let ended = run("sleep", &["60"], Duration::from_millis(200));
    assert!(ended.is_err_and(|e| e.to_string().contains("sleep 60 did not end")));
    assert!(begin.elapsed() < Duration::from_secs(5));
}
