use super::*;
use crate::ip::tests::{checksum, udp};
use crate::memberships::tests::report;
use crate::plan::Unknown;
use crate::trees::Latencies;
use proptest::prelude::*;

const LEFT: [u8; 4] = [10, 9, 0, 1];
const RIGHT: [u8; 4] = [10, 9, 0, 2];
const GROUP: [u8; 4] = [239, 1, 2, 3];

/// A version of IP: the group, and the address of a host by its number from 0.
type Version = (IpAddr, fn(usize) -> IpAddr);

/// Returns both versions.
fn versions() -> [Version; 2] {
    let address = |host: usize| IpAddr::from([10, 9, 0, host as u8 + 1]);
    let address6 = |host: usize| IpAddr::from([0xfd09, 0, 0, 0, 0, 0, 0, host as u16 + 1]);
    [(GROUP.into(), address), ([0xff3e, 0, 0, 0, 0, 0, 1, 2].into(), address6)]
}

fn net(text: &str) -> Net {
    let plan = EmulationPlan::parse(text).unwrap_or_else(|e| panic!("{e}"));
    Net::new(&plan).unwrap_or_else(|e| panic!("{e}"))
}

fn micros(micros: u64) -> Time {
    Time::ZERO + Span::from_micros(micros)
}

/// Returns all arrivals, as (host, microseconds).
fn arrivals(net: &mut Net) -> Vec<(usize, f64)> {
    let mut all = Vec::new();
    while let Some(delivery) = net.due(Time::NEVER) {
        all.push((delivery.host, delivery.at.as_nanos() as f64 / 1e3));
    }
    assert_eq!(
        (net.on_the_way(), net.packets.free.len()),
        (0, net.packets.slots.len()),
        "a packet was forgotten"
    );
    all
}

fn pair(options: &str) -> Net {
    net(&format!("host left 10.9.0.1\nhost right 10.9.0.2\nlink left right {options}"))
}

/// A bottleneck of 8 Mbit/s (one byte per microsecond) between two routers, with two hosts on each side.
const DUMBBELL: &str = "
    host left 10.9.0.1
    host right 10.9.0.2 groups=all
    host left2 10.9.0.3
    host right2 10.9.0.4
    router west
    router east
    link left west delay=1ms
    link left2 west delay=1ms
    link west east rate=8M delay=10ms queue=droptail,3
    link east right delay=1ms
    link east right2 delay=1ms";

#[test]
fn packet_delay_is_transmission_plus_propagation_time() {
    let mut net = pair("rate=8M delay=10ms");
    assert_eq!(net.enter(micros(5), 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    assert_eq!(net.next(), micros(11_005));
    assert_eq!(net.due(micros(11_004)), None);
    assert_eq!(arrivals(&mut net), [(1, 11_005.0)]);
    let [_, (_, address)] = versions();
    assert_eq!(net.enter(micros(20_000), 1, &udp(address(1), address(0), 0, 1000)), Ok(()));
    assert_eq!(arrivals(&mut net), [(0, 31_000.0)], "the other version, in the other direction");
}

#[test]
fn overhead_adds_transmission_time_but_no_bytes() {
    let mut net = net("overhead 38\nhost left 10.9.0.1\nhost right 10.9.0.2\nlink left right rate=8M");
    let packet = udp(LEFT, RIGHT, 0, 1000);
    assert_eq!(net.enter(Time::ZERO, 0, &packet), Ok(()));
    assert_eq!(net.due(Time::NEVER), Some(Delivery { host: 1, at: micros(1_038), bytes: &packet }));
}

#[test]
fn delays_of_hops_add_up_even_with_a_late_driver() {
    let mut net = net(DUMBBELL);
    for at in [0, 100, 5_000] {
        assert_eq!(net.enter(micros(at), 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    }
    // Each packet takes 1 ms of transmission and 12 ms of propagation over three links. The second packet also waits 900 us for
    // the transmission of the first packet.
    assert_eq!(arrivals(&mut net), [(1, 13_000.0), (1, 14_000.0), (1, 18_000.0)]);
}

#[test]
fn jitter_is_bounded_and_does_not_reorder_packets() {
    let mut net = pair("delay=10ms jitter=2ms");
    for at in 0..500 {
        assert_eq!(net.enter(micros(at * 100), 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    }
    let all = arrivals(&mut net);
    let late: Vec<_> = all.iter().enumerate().map(|(n, (_, at))| at - 10_000.0 - 100.0 * n as f64).collect();
    assert!(late.iter().all(|late| (0.0..=2_000.0).contains(late)), "{late:?}");
    let mean = late.iter().sum::<f64>() / 500.0;
    assert!(
        mean > 1_000.0 && all.is_sorted_by(|a, b| a.1 <= b.1),
        "whoever is late delays those behind it: {mean}"
    );
}

#[test]
fn flows_of_two_hosts_share_the_queue() {
    let mut net = net(DUMBBELL);
    for _ in 0..3 {
        assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
        assert_eq!(net.enter(Time::ZERO, 2, &udp([10, 9, 0, 3], [10, 9, 0, 4], 0, 1000)), Ok(()));
    }
    let all = arrivals(&mut net);
    assert_eq!(all.len(), 3, "the buffer holds three: {all:?}");
    let bottleneck = net.link(4);
    assert_eq!((bottleneck.offered, bottleneck.overflow), (6, 3));
}

#[test]
fn reverse_path_is_a_separate_link() {
    let mut net = pair("rate=8M back rate=80M");
    assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    assert_eq!(net.enter(Time::ZERO, 1, &udp(RIGHT, LEFT, 0, 1000)), Ok(()));
    assert_eq!(arrivals(&mut net), [(0, 100.0), (1, 1_000.0)]);
}

/// A source, three members behind two routers, and a host that is not a member.
const TREE: &str = "
    host source 10.9.0.1 groups=all
    host a 10.9.0.2 groups=239.1.2.3
    host b 10.9.0.3 groups=all
    host c 10.9.0.4 groups=239.1.2.3+239.1.2.4
    host d 10.9.0.5
    router top
    router low
    link source top rate=8M
    link top a delay=5ms
    link top low delay=10ms
    link low b delay=1ms
    link low c delay=2ms
    link low d";

#[test]
fn multicast_is_copied_at_branches_and_reaches_only_members() {
    let mut net = net(TREE);
    assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, GROUP, 0, 1000)), Ok(()));
    assert_eq!(arrivals(&mut net), [(1, 6_000.0), (2, 12_000.0), (3, 13_000.0)]);
    assert_eq!(net.link(4).offered, 1, "one copy for both members behind the second router");
}

#[test]
fn sending_member_does_not_receive_its_own_packets() {
    let mut net = net(TREE);
    assert_eq!(net.enter(Time::ZERO, 2, &udp([10, 9, 0, 3], GROUP, 0, 1000)), Ok(()));
    let hosts: Vec<_> = arrivals(&mut net).iter().map(|(host, _)| *host).collect();
    assert_eq!(hosts, [3, 0, 1]);
}

#[test]
fn packets_to_unlisted_groups_reach_hosts_that_accept_all() {
    let mut net = net(TREE);
    assert_eq!(net.enter(Time::ZERO, 1, &udp([10, 9, 0, 2], [239, 9, 9, 9], 0, 1000)), Ok(()));
    let hosts: Vec<_> = arrivals(&mut net).iter().map(|(host, _)| *host).collect();
    assert_eq!(hosts, [0, 2]);
}

#[test]
fn trees_follow_reports_of_members_by_source() {
    let text = TREE.replace("groups=all", "groups=joined").replace("groups=239.1.2.3", "groups=joined");
    let text = text.replace("+239.1.2.4", "");
    versions().into_iter().for_each(|version| follow_reports(&mut net(&text), version));
}

/// The source has the number 0.
fn follow_reports(net: &mut Net, (group, address): Version) {
    let mut now = Time::ZERO;
    // Sends a packet of the source, and one of `a`. Returns their receivers.
    let mut receivers = |reports: &[(usize, u8, &[usize])]| {
        for (host, kind, sources) in reports {
            let sources: Vec<_> = sources.iter().map(|host| address(*host)).collect();
            assert_eq!(net.enter(now, *host, &report(*kind, group, &sources)), Err(Ignored::LocalOnly));
        }
        [0, 1].map(|source| {
            let packet = udp(address(source), group, 0, 100);
            now += Span::from_secs(1);
            let entered = net.enter(now, source, &packet);
            let hosts: Vec<_> = arrivals(net).iter().map(|(host, _)| *host).collect();
            assert_eq!(entered.is_err(), hosts.is_empty(), "{reports:?} {source} {entered:?} {hosts:?}");
            hosts
        })
    };
    assert_eq!(receivers(&[]), [[], []] as [[usize; 0]; 2]);
    assert_eq!(receivers(&[(2, 4, &[])]), [[2], [2]], "all sources");
    assert_eq!(receivers(&[(3, 5, &[0])]), [vec![2, 3], vec![2]], "only the source");
    assert_eq!(receivers(&[(1, 4, &[])]), [vec![1, 2, 3], vec![2]], "a sender does not receive its own");
    assert_eq!(receivers(&[(2, 3, &[]), (3, 6, &[0])]), [vec![1], vec![]], "both have left");
}

#[test]
fn joins_of_a_group_with_latencies_take_effect_later() {
    let text = TREE.replace("groups=all", "groups=joined").replace("groups=239.1.2.3", "groups=joined");
    let mut plan = EmulationPlan::parse(&text.replace("+239.1.2.4", "")).expect("a sound plan");
    let latencies = Latencies { join: Span::from_secs(10), leave: Span::from_secs(5) };
    plan.latencies.extend(versions().map(|(group, _)| (group, group, latencies)));
    versions().into_iter().for_each(|version| join_later(Net::new(&plan).expect("a sound plan"), version));
}

fn join_later(mut net: Net, (group, address): Version) {
    let report = |net: &mut Net, at, host: usize, kind| {
        let report = report(kind, group, &[]);
        assert_eq!(net.enter(Time::from_secs_f64(at), host, &report), Err(Ignored::LocalOnly));
    };
    let receivers = |net: &mut Net, at| {
        // The result is checked by the receivers: a group that no link carries has no way.
        let _ = net.enter(Time::from_secs_f64(at), 0, &udp(address(0), group, 0, 100));
        arrivals(net).iter().map(|(host, _)| *host).collect::<Vec<_>>()
    };
    report(&mut net, 1.0, 2, 4);
    assert_eq!([2, 3].map(|host| net.has_joined(host, group)), [true, false]);
    net.settle(Time::from_secs_f64(1.5));
    report(&mut net, 1.6, 2, 4); // kernels repeat their reports
    assert_eq!(receivers(&mut net, 2.0), [2], "a join before the beginning is settled");
    report(&mut net, 3.0, 3, 4);
    assert_eq!(receivers(&mut net, 12.9), [2]);
    assert_eq!(receivers(&mut net, 60.0), [2, 3]);
    report(&mut net, 70.0, 2, 3);
    assert_eq!([receivers(&mut net, 74.9), receivers(&mut net, 75.0)], [vec![2, 3], vec![3]]);
}

#[test]
fn groups_without_members_are_pruned_or_flooded() {
    let text = TREE.replace("groups=all", "groups=joined").replace("groups=239.1.2.3", "groups=joined");
    let mut plan = EmulationPlan::parse(&text.replace("+239.1.2.4", "")).expect("a sound plan");
    let other = [239, 5, 5, 5];
    for (unknown, reached) in [(Unknown::Prune, vec![]), (Unknown::Flood, vec![1, 2, 3, 4])] {
        plan.unknown = unknown;
        let mut net = Net::new(&plan).expect("a sound plan");
        let mut receivers = |group: [u8; 4], kind: Option<u8>| {
            if let Some(kind) = kind {
                let report = report(kind, GROUP.into(), &[]);
                assert_eq!(net.enter(Time::ZERO, 2, &report), Err(Ignored::LocalOnly));
            }
            let entered = net.enter(Time::ZERO, 0, &udp(LEFT, group, 0, 100));
            let mut hosts: Vec<_> = arrivals(&mut net).iter().map(|(host, _)| *host).collect();
            hosts.sort_unstable();
            assert_eq!(entered.is_err(), hosts.is_empty(), "{entered:?}");
            hosts
        };
        assert_eq!([receivers(GROUP, None), receivers(other, None)], [reached.clone(), reached.clone()]);
        assert_eq!(receivers(GROUP, Some(4)), [2], "it has a member");
        assert_eq!(receivers(other, None), reached);
        assert_eq!(receivers(GROUP, Some(3)), reached, "the last member has left");
    }
}

#[test]
fn groups_that_no_host_lists_share_a_tree() {
    let mut net = net(TREE);
    for last in 0..200 {
        let group = [239, 7, 7, last];
        assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, group, 0, 100)), Ok(()));
        assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, GROUP, 0, 100)), Ok(()));
    }
    assert_eq!(net.routes.trees(), 2);
}

#[test]
fn watched_packets_are_counted_by_host_destination_and_port() {
    let mut net = net(TREE);
    let packet = udp(LEFT, GROUP, 0, 1000);
    let port = u16::from_be_bytes([packet[22], packet[23]]);
    let mine = net.watch(1, GROUP.into(), port);
    let others =
        [(1, GROUP, port + 1), (2, RIGHT, port)].map(|(host, to, port)| net.watch(host, to.into(), port));
    assert_eq!(net.watch(1, GROUP.into(), port), mine, "each is counted once");
    for _ in 0..3 {
        assert_eq!(net.enter(Time::ZERO, 0, &packet), Ok(()));
    }
    arrivals(&mut net);
    let counted = |index: usize| (net.watched()[index].packets, net.watched()[index].bytes);
    assert_eq!((counted(mine), others.map(counted)), ((3, 3_000), [(0, 0); 2]));
}

/// RED that marks or drops almost immediately.
const KEEN: &str = "rate=8M queue=red,limit=100,min=1,max=60,w=0.9,p=1,nowait,ecn";

fn ecn_of_arrivals(net: &mut Net) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(delivery) = net.due(Time::NEVER) {
        assert_eq!(checksum(&delivery.bytes[..20]), 0, "the checksum of a header is wrong");
        all.push(delivery.bytes[1] & 3);
    }
    all
}

#[test]
fn red_marks_ecn_capable_packets() {
    let mut net = pair(KEEN);
    for _ in 0..50 {
        assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, RIGHT, 2, 1000)), Ok(()));
    }
    let marks = ecn_of_arrivals(&mut net);
    let marked = marks.iter().filter(|ecn| **ecn == 3).count() as u64;
    assert!(marks.len() == 50 && marked > 5 && marked == net.link(0).marked, "{marked}");
}

#[test]
fn red_drops_packets_without_ecn() {
    let mut net = pair(KEEN);
    for _ in 0..50 {
        assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    }
    let marks = ecn_of_arrivals(&mut net);
    assert!(
        marks.len() as u64 + net.link(0).early == 50
            && net.link(0).early > 5
            && marks.iter().all(|ecn| *ecn == 0)
    );
}

#[test]
fn fifo_queue_delivers_the_same_packets_as_drop_tail() {
    let through = |queue: &str| {
        let mut net = net(&DUMBBELL.replace("droptail,3", queue));
        let mut all = Vec::new();
        for round in 0..200u64 {
            let now = micros(round * 700);
            if round % 3 == 0 {
                while let Some(delivery) = net.due(now) {
                    all.push((delivery.host, delivery.at));
                }
            }
            let host = [0, 2][(round % 2) as usize];
            let (from, to) = ([10, 9, 0, host as u8 + 1], [10, 9, 0, host as u8 + 2]);
            let size = 500 + (round % 7) as u16 * 100;
            assert_eq!(net.enter(now, host, &udp(from, to, 0, size)), Ok(()));
        }
        while let Some(delivery) = net.due(Time::NEVER) {
            all.push((delivery.host, delivery.at));
        }
        assert_eq!((net.on_the_way(), net.packets.free.len()), (0, net.packets.slots.len()));
        (all, net.link(4))
    };
    let (known, counts) = through("droptail,3");
    assert!(counts.overflow > 10 && known.len() > 50, "{counts:?}");
    assert_eq!(through("fifo,limit=3"), (known, counts));
}

/// Sends three packets of 1 ms at once. Returns the arrivals after changes at 1.5 ms, and of a packet that is sent at 2.5 ms after
/// more changes at 2 ms.
fn changed(queue: &str, first: &str, second: &str) -> Vec<f64> {
    let mut net = pair(&format!("rate=8M queue={queue}"));
    for _ in 0..3 {
        assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    }
    let mut times = Vec::new();
    for (at, change) in [(1_500, first), (2_000, second)] {
        while let Some(delivery) = net.due(micros(at)) {
            times.push(delivery.at.as_nanos() as f64 / 1e3);
        }
        net.change(micros(at), 0, change.parse().unwrap_or_else(|error| panic!("{error}")));
    }
    while let Some(delivery) = net.due(micros(2_500)) {
        times.push(delivery.at.as_nanos() as f64 / 1e3);
    }
    assert_eq!(net.enter(micros(2_500), 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    times.extend(arrivals(&mut net).iter().map(|(_, at)| *at));
    times
}

#[test]
fn changes_of_a_link_apply_to_waiting_packets() {
    for queue in ["droptail,10", "fifo,limit=10"] {
        assert_eq!(changed(queue, "rate=4e6", "loss=none"), [1_000.0, 2_000.0, 4_000.0, 6_000.0], "{queue}");
        assert_eq!(changed(queue, "rate=4e6", "rate=8e6"), [1_000.0, 2_000.0, 3_000.0, 4_000.0], "{queue}");
        assert_eq!(changed(queue, "down", "up"), [1_000.0, 3_500.0], "{queue}");
        assert_eq!(changed(queue, "down", "loss=none"), [1_000.0], "{queue}");
        assert_eq!(changed(queue, "up", "loss=bernoulli,1")[..2], [1_000.0, 2_000.0], "{queue}");
        assert_eq!(changed(queue, "up", "delay=0.005")[3..], [9_000.0], "{queue}");
    }
    for wrong in ["rate=0", "rate=x", "delay=-1", "loss=much", "down=1", "away"] {
        assert!(wrong.parse::<Change>().is_err(), "{wrong}");
    }
}

#[test]
fn late_driver_does_not_change_the_timing_of_a_queue() {
    let mut net = pair("rate=8M delay=10ms queue=codel");
    for at in [0, 100, 5_000] {
        assert_eq!(net.enter(micros(at), 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    }
    assert_eq!(net.on_the_way(), 3);
    assert_eq!(arrivals(&mut net), [(1, 11_000.0), (1, 12_000.0), (1, 16_000.0)]);
}

#[test]
fn codel_marks_or_drops_at_departure() {
    for (ecn, marks, drops) in [(0, false, true), (2, true, false)] {
        let mut net = pair("rate=8M queue=codel,target=1ms,interval=20ms,ecn");
        for _ in 0..200 {
            assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, RIGHT, ecn, 1000)), Ok(()));
        }
        let arrived = ecn_of_arrivals(&mut net);
        let counts = net.link(0);
        assert_eq!((counts.marked > 5, counts.early > 5), (marks, drops), "{counts:?}");
        assert_eq!(arrived.len() as u64, 200 - counts.early);
        assert_eq!(arrived.iter().filter(|ecn| **ecn == 3).count() as u64, counts.marked);
    }
}

#[test]
fn fair_queue_loses_no_packet_of_the_slower_host() {
    let mut net = net(&DUMBBELL.replace("droptail,3", "drr,limit=10"));
    for _ in 0..50 {
        assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    }
    for _ in 0..5 {
        assert_eq!(net.enter(Time::ZERO, 2, &udp([10, 9, 0, 3], [10, 9, 0, 4], 0, 1000)), Ok(()));
    }
    let all = arrivals(&mut net);
    assert_eq!(all.iter().filter(|(host, _)| *host == 3).count(), 5, "{all:?}");
    assert_eq!(all.len(), 11, "ten waited, one was being sent");
}

#[test]
fn congestion_mark_in_one_branch_does_not_affect_the_other() {
    let text = format!(
        "host source 10.9.0.1\nhost a 10.9.0.2 groups=all\nhost b 10.9.0.3 groups=all\nrouter r\n\
         link source r\nlink r a {KEEN}\nlink r b"
    );
    let mut net = net(&text);
    for _ in 0..50 {
        assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, GROUP, 1, 1000)), Ok(()));
    }
    let mut marks = [0, 0];
    while let Some(delivery) = net.due(Time::NEVER) {
        marks[delivery.host - 1] += u32::from(delivery.bytes[1] & 3 == 3);
    }
    assert!(marks[0] > 5 && marks[1] == 0, "{marks:?}");
}

#[test]
fn undeliverable_packets_are_counted_by_reason() {
    let mut net = pair("rate=8M");
    let text = |text: &str| -> IpAddr { text.parse().expect("an address") };
    let left = text("fd09::1");
    let cases = [
        (vec![0x60; 40], Ignored::NotIp),
        (udp(LEFT, RIGHT, 0, 1501), Ignored::TooLong),
        (udp(LEFT, [224, 0, 0, 22], 0, 40), Ignored::LocalOnly),
        (udp(LEFT, [255, 255, 255, 255], 0, 40), Ignored::LocalOnly),
        (udp(LEFT, [10, 9, 0, 77], 0, 40), Ignored::NoWay),
        (udp(LEFT, LEFT, 0, 40), Ignored::NoWay),
        (udp(LEFT, GROUP, 0, 40), Ignored::NoWay),
        (udp(left, text("ff02::2"), 0, 60), Ignored::LocalOnly),
        (udp(left, text("fe80::1"), 0, 60), Ignored::LocalOnly),
        (udp(left, text("fd09::77"), 0, 60), Ignored::NoWay),
        (udp(left, text("ff3e::1"), 0, 60), Ignored::NoWay),
    ];
    for (packet, reason) in cases {
        assert_eq!(net.enter(Time::ZERO, 0, &packet), Err(reason));
    }
    let counted = Entries { not_ip: 1, too_long: 1, local_only: 4, no_way: 5, ..Entries::default() };
    assert_eq!(net.entries(), counted);
}

#[test]
fn hosts_do_not_forward_packets() {
    let mut net =
        net("host left 10.9.0.1\nhost mid 10.9.0.3\nhost right 10.9.0.2\nlink left mid\nlink mid right");
    assert_eq!(net.enter(Time::ZERO, 0, &udp(LEFT, RIGHT, 0, 40)), Err(Ignored::NoWay));
}

#[test]
fn plan_without_hosts_or_with_equal_addresses_is_refused() {
    let refusal = |text: &str| {
        Net::new(&EmulationPlan::parse(text).expect("each line is right")).expect_err(text).to_string()
    };
    assert!(refusal("router r").starts_with("there is no host"));
    let same = refusal("host a 10.0.0.1\nhost b 10.0.0.2\nhost c 10.0.0.1");
    assert_eq!(same, "a and c have the same address, 10.0.0.1");
}

#[test]
fn packet_memory_is_reused() {
    let mut net = pair("rate=8M");
    for round in 0..1_000 {
        let now = micros(round * 10_000);
        while net.due(now).is_some() {}
        assert_eq!(net.enter(now, 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(()));
    }
    assert_eq!(net.packets.slots.len(), 1);
}

proptest! {
    #[test]
    fn deliveries_are_in_order_of_time(
        sent in prop::collection::vec((0..3_000u64, 0..4usize, 0..4usize, 28..1500u16), 1..200),
        step in 1..5_000u64,
    ) {
        let mut net = net(DUMBBELL);
        let address = |host: usize| [10, 9, 0, host as u8 + 1];
        let (mut now, mut last) = (Time::ZERO, Time::ZERO);
        let mut take = |net: &mut Net, until: Time| {
            while let Some(delivery) = net.due(until) {
                assert!(last <= delivery.at && delivery.at <= until);
                last = delivery.at;
            }
        };
        for (gap, from, to, size) in sent {
            now += Span::from_micros(gap);
            if gap % 2 == 0 {
                take(&mut net, now);
            }
            let _ = net.enter(now, from, &udp(address(from), address(to), 0, size));
        }
        while !net.next().is_never() {
            now += Span::from_micros(step);
            take(&mut net, now);
        }
        let lost: u64 = (0..10).map(|link| net.link(link).overflow).sum();
        prop_assert_eq!(net.entries().taken, net.entries().delivered + lost);
    }
}

#[test]
fn tapped_link_shows_each_packet_with_its_fate() {
    for queue in ["droptail,3", "fifo,limit=3"] {
        let mut net = net(&DUMBBELL.replace("droptail,3", queue));
        let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let record = std::sync::Arc::clone(&seen);
        let note = move |tapped: Tapped<'_>| {
            let of = (tapped.link, tapped.bytes.len(), tapped.lost.is_some());
            record.lock().expect("nobody panics").push(of);
        };
        net.tap([4], Box::new(note));
        (0..5).for_each(|_| assert_eq!(net.enter(micros(0), 0, &udp(LEFT, RIGHT, 0, 1000)), Ok(())));
        let arrived = arrivals(&mut net).len();
        let seen = seen.lock().expect("nobody panics");
        let lost = seen.iter().filter(|(.., lost)| *lost).count();
        assert_eq!((seen.len(), seen.len() - lost, arrived), (5, 3, 3), "{queue}");
        assert!(seen.iter().all(|(link, size, _)| (*link, *size) == (4, 1000)), "{seen:?}");
    }
}

#[test]
fn plan_that_exceeds_memory_is_refused_with_the_reason() {
    // 20,000 hosts have 400 million paths, which would take 1.6 GB of memory. The trees of all hosts would also have 400 million
    // nodes in total.
    let mut text = String::from("router r\n");
    (0..20_000).for_each(|host| text += &format!("host h{host}\nlink h{host} r\n"));
    let plan = EmulationPlan::parse(&text).expect("each line is right");
    let refused = Net::new(&plan).expect_err("it is too large").to_string();
    assert!(
        refused.contains("too large: 17.6 GB") && refused.contains("400020000 nodes of trees"),
        "{refused}"
    );
    assert!(refused.ends_with("--max-memory 18G"), "{refused}");
}

#[test]
fn unlimited_queue_is_bounded_by_the_memory_limit() {
    let text = "host left 10.9.0.1\nhost right 10.9.0.2\nlink left right rate=1k";
    let plan = EmulationPlan::parse(text).expect("each line is right");
    let mut net = Net::new(&EmulationPlan { memory: 2_000_000, ..plan }).expect("it fits");
    let packet = udp(LEFT, RIGHT, 0, 1_400);
    let entered = (0..5_000).filter(|_| net.enter(Time::ZERO, 0, &packet).is_ok()).count();
    assert!((800..1_200).contains(&entered) && net.on_the_way() == entered, "{entered}");
    assert_eq!(net.entries().no_room, 5_000 - entered as u64);
    // Packets that have arrived release their memory.
    while net.due(Time::from_secs_f64(1e4)).is_some() {}
    assert_eq!(net.enter(Time::from_secs_f64(1e4), 0, &packet), Ok(()));
}
