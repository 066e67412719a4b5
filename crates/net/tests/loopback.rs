//! Tests with real sockets on one host; no privileges are needed.
//!
//! Tests of IPv4 use the loopback interface. IPv6 has no multicast route on loopback. Tests of IPv6 therefore use a real
//! interface with a hop limit of 0, which keeps packets on the host. Without such an interface, they are skipped.

use faircast_net::*;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Size of a datagram, which fits the smallest MTU of IPv6 (1,280 bytes).
const SEGMENT: usize = 1200;
const BATCH: usize = 44;

/// Returns a group. Each test has a different group, so that tests can run in parallel.
fn group(last: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([239, 255, 77, last]), port)
}

fn group_v6(last: u16, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([0xff12, 0, 0, 0, 0, 0, 0x77, last]), port)
}

fn place(group: SocketAddr) -> Choice {
    let name = if group.is_ipv4() { "lo".to_owned() } else { interface_v6().expect("was asked for before") };
    choose(group.ip(), Some(&name)).expect("the interface exists")
}

/// Returns an interface that carries IPv6 multicast.
fn interface_v6() -> Option<String> {
    let able = |i: &Interface| i.up && i.multicast && !i.loopback && i.addrs.iter().any(IpAddr::is_ipv6);
    interfaces().expect("this host lists its interfaces").into_iter().find(able).map(|i| i.name)
}

/// Returns a group of each address family. Without an interface that carries IPv6, returns only the IPv4 group; in CI this is an
/// error.
fn both(last: u8, port: u16) -> Vec<SocketAddr> {
    if interface_v6().is_some() {
        return vec![group(last, port), group_v6(last.into(), port + 100)];
    }
    assert!(std::env::var_os("CI").is_none(), "CI needs an interface with an IPv6 address");
    println!("skipped for IPv6: no interface carries it");
    vec![group(last, port)]
}

fn source(group: SocketAddr) -> SourceSocket {
    source_with(group, &SourceOptions::default())
}

fn source_with(group: SocketAddr, options: &SourceOptions) -> SourceSocket {
    let options = SourceOptions { ttl: 0, ..options.clone() };
    SourceSocket::open(group, &place(group), &options).expect("a source opens")
}

fn receiver(group: SocketAddr) -> GroupSocket {
    join(group, Membership::AnySource)
}

fn join(group: SocketAddr, membership: Membership) -> GroupSocket {
    let options = GroupOptions { receive_buffer: 4 << 20 };
    GroupSocket::open(group, membership, &place(group), &options).expect("a receiver joins")
}

/// Returns `count` datagrams of `SEGMENT` bytes. All bytes of a datagram have the datagram's number as value.
fn numbered(count: usize) -> Vec<u8> {
    (0..count).flat_map(|n| [n as u8; SEGMENT]).collect()
}

/// Receives until `expected` datagrams have arrived, or for a limited time; returns the datagrams.
fn collect(socket: &GroupSocket, expected: usize) -> Vec<(Vec<u8>, Meta)> {
    let (mut batch, mut waiter, mut got) = (Batch::new(8), Waiter::new(), Vec::new());
    let timeout = if expected == 0 { Duration::from_millis(100) } else { Duration::from_secs(5) };
    let end = Instant::now() + timeout;
    while Instant::now() < end && (expected == 0 || got.len() < expected) {
        waiter.wait(&[Watch::new(socket, Want::Readable)], Some(end)).expect("waits");
        socket.receive(&mut batch).expect("receives");
        got.extend(batch.segments().map(|(bytes, meta)| (bytes.to_vec(), meta)));
    }
    got
}

#[test]
fn batch_sent_in_one_call_arrives_as_separate_datagrams() {
    for group in both(1, 47001) {
        let (source, receiver) = (source(group), receiver(group));
        let bytes = numbered(BATCH);
        let sent = source.send_batch(&bytes[..bytes.len() - 400], SEGMENT).expect("sends");
        assert_eq!(sent, SendOutcome::Sent);
        assert!(source.segments_in_kernel(), "this interface segments");
        let got = collect(&receiver, BATCH);
        assert_eq!(got.len(), BATCH);
        for (n, (part, meta)) in got.iter().enumerate() {
            let len = if n + 1 == BATCH { SEGMENT - 400 } else { SEGMENT };
            assert_eq!((part.len(), part[0], part[len - 1]), (len, n as u8, n as u8));
            assert_eq!((meta.from, meta.to), (source.local_addr(), group.ip()));
        }
        assert!(got[BATCH - 1].1.segment > 0, "the datagrams came coalesced");
    }
}

#[test]
fn batch_larger_than_one_call_is_split() {
    let group = group(2, 47002);
    let (source, receiver) = (source(group), receiver(group));
    assert_eq!(source.send_batch(&numbered(150), SEGMENT).expect("sends"), SendOutcome::Sent);
    let got = collect(&receiver, 150);
    assert!(got.iter().enumerate().all(|(n, (part, _))| part[0] == n as u8));
    assert_eq!(got.len(), 150);
}

#[test]
fn same_datagrams_arrive_without_kernel_segmentation() {
    let group = group(3, 47003);
    let (source, receiver) = (source(group), receiver(group));
    source.stop_segments_in_kernel();
    assert_eq!(source.send_batch(&numbered(100), SEGMENT).expect("sends"), SendOutcome::Sent);
    let got = collect(&receiver, 100);
    assert!(got.iter().enumerate().all(|(n, (part, meta))| part[0] == n as u8 && meta.segment == 0));
    assert_eq!(got.len(), 100);
}

#[test]
fn each_of_several_receivers_on_one_host_gets_all_data() {
    for group in both(4, 47004) {
        let (one, other, source) = (receiver(group), receiver(group), source(group));
        assert_eq!(source.send_batch(&numbered(BATCH), SEGMENT).expect("sends"), SendOutcome::Sent);
        assert_eq!((collect(&one, BATCH).len(), collect(&other, BATCH).len()), (BATCH, BATCH));
    }
}

#[test]
fn socket_receives_only_its_own_group_on_a_shared_port() {
    for (here, there) in both(5, 47005).into_iter().zip(both(6, 47005)) {
        let (mine, others, source) = (receiver(here), receiver(there), source(there));
        assert_eq!(source.send_to(b"for the others", there).expect("sends"), SendOutcome::Sent);
        assert_eq!(collect(&others, 1).len(), 1);
        assert_eq!(collect(&mine, 0), []);
    }
}

#[test]
fn only_the_selected_source_is_received() {
    for group in both(7, 47007) {
        let local = place(group).local;
        let stranger: IpAddr =
            if group.is_ipv4() { [127, 0, 0, 9].into() } else { "::9".parse().expect("valid") };
        let (wanted, other) =
            (join(group, Membership::OnlyFrom(local)), join(group, Membership::OnlyFrom(stranger)));
        let source = source(group);
        assert_eq!(source.send_batch(b"hello", 5).expect("sends"), SendOutcome::Sent);
        assert_eq!(collect(&wanted, 1).len(), 1);
        assert_eq!(collect(&other, 0), []);
    }
}

#[test]
fn group_is_not_received_between_leave_and_rejoin() {
    let group = group(8, 47008);
    let (receiver, source) = (receiver(group), source(group));
    receiver.leave().expect("leaves");
    receiver.leave().expect("leaving twice is nothing");
    assert_eq!(source.send_batch(b"unheard", 7).expect("sends"), SendOutcome::Sent);
    assert_eq!(collect(&receiver, 0), []);
    receiver.rejoin().expect("joins again");
    assert_eq!(source.send_batch(b"heard", 5).expect("sends"), SendOutcome::Sent);
    assert_eq!(collect(&receiver, 1)[0].0, b"heard");
}

#[test]
fn ecn_field_is_reported_for_every_datagram() {
    for (n, ect) in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce].into_iter().enumerate() {
        for group in both(10 + n as u8, 47009) {
            let receiver = receiver(group);
            let source = source_with(group, &SourceOptions { ect, dscp: Some(8), ..Default::default() });
            assert_eq!(source.send_batch(&numbered(BATCH), SEGMENT).expect("sends"), SendOutcome::Sent);
            let got = collect(&receiver, BATCH);
            assert!(got.len() == BATCH && got.iter().all(|(_, meta)| meta.ecn == ect), "{ect:?}");
        }
    }
}

#[test]
fn receive_time_is_between_send_time_and_read_time() {
    let group = group(14, 47014);
    let (receiver, source) = (receiver(group), source(group));
    let before = Instant::now();
    assert_eq!(source.send_batch(b"now", 3).expect("sends"), SendOutcome::Sent);
    std::thread::sleep(Duration::from_millis(30));
    let meta = collect(&receiver, 1)[0].1;
    let slack = Duration::from_millis(5);
    assert!(meta.received_at + slack >= before, "not before it was sent");
    assert!(before.elapsed() - meta.received_at.duration_since(before) >= Duration::from_millis(25));
}

#[test]
fn feedback_reaches_the_source_from_the_receivers_address() {
    for group in both(15, 47015) {
        let (receiver, source) = (receiver(group), source(group));
        assert_eq!(source.send_batch(b"data", 4).expect("sends"), SendOutcome::Sent);
        let from = collect(&receiver, 1)[0].1.from;
        assert_eq!(receiver.send_to(b"report", from).expect("sends"), SendOutcome::Sent);
        let (mut batch, mut waiter) = (Batch::new(1), Waiter::new());
        let end = Instant::now() + Duration::from_secs(5);
        waiter.wait(&[Watch::new(&source, Want::Readable)], Some(end)).expect("waits");
        assert_eq!(source.receive(&mut batch).expect("receives"), 1);
        let (bytes, meta) = batch.segments().next().expect("one datagram");
        assert_eq!((&*bytes, meta.from), (b"report".as_slice(), receiver.feedback().local_addr()));
    }
}

#[test]
fn report_to_a_closed_port_does_not_fail_the_next_report() {
    let group = group(16, 47016);
    let receiver = receiver(group);
    let nobody = SocketAddr::new(place(group).local, 9);
    for _ in 0..5 {
        assert_eq!(receiver.send_to(b"anybody there?", nobody).expect("no error"), SendOutcome::Sent);
    }
}

#[test]
fn backlog_reports_queued_bytes_and_drops() {
    let group = group(17, 47017);
    let options = GroupOptions { receive_buffer: 256 << 10 };
    let receiver = GroupSocket::open(group, Membership::AnySource, &place(group), &options).expect("joins");
    let source = source(group);
    let empty = receiver.backlog().expect("is told");
    assert_eq!((empty.used_bytes, empty.drops), (0, 0));
    let bytes = numbered(BATCH);
    assert_eq!(source.send_batch(&bytes, SEGMENT).expect("sends"), SendOutcome::Sent);
    let some = receiver.backlog().expect("is told");
    assert!(some.used_bytes >= bytes.len() && some.drops == 0, "{some:?}");
    for _ in 0..50 {
        assert_eq!(source.send_batch(&bytes, SEGMENT).expect("sends"), SendOutcome::Sent);
    }
    let full = receiver.backlog().expect("is told");
    assert!(full.drops > 0 && full.fill() > 0.5, "{full:?}");
}

#[test]
fn oversized_datagram_is_an_error_that_states_the_limit() {
    let group = group(18, 47018);
    let source = source(group);
    let error = source.send_batch(&[0; 70_000], 66_000).expect_err("larger than a datagram can be");
    assert!(matches!(error, NetError::TooLarge { size: 66_000, mtu: 65_507 }), "{error}");
    let largest = source.largest_datagram();
    assert_eq!(source.send_batch(&vec![0; largest], largest).expect("sends"), SendOutcome::Sent);
}

#[test]
fn receive_buffer_that_is_too_small_is_refused() {
    let group = group(19, 47019);
    let options = GroupOptions { receive_buffer: 4096 };
    let error = GroupSocket::open(group, Membership::AnySource, &place(group), &options);
    assert!(matches!(error, Err(NetError::BufferTooSmall { granted: 4096, .. })), "{error:?}");
}

#[test]
fn port_bound_by_another_socket_is_reported_as_taken() {
    let _held = std::net::UdpSocket::bind("0.0.0.0:47020").expect("the port is free");
    let group = group(20, 47020);
    let error = GroupSocket::open(group, Membership::AnySource, &place(group), &GroupOptions::default());
    assert!(matches!(error, Err(NetError::PortTaken { .. })), "{error:?}");
}

#[test]
fn mixed_address_families_are_refused() {
    let choice = place(group(22, 47022));
    let error = SourceSocket::open(group_v6(22, 47022), &choice, &SourceOptions::default());
    assert!(matches!(error, Err(NetError::MixedFamilies { .. })));
}

#[test]
fn empty_datagrams_do_not_hide_later_ones() {
    let group = group(23, 47023);
    let (receiver, source) = (receiver(group), source(group));
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    for _ in 0..3 {
        stranger.send_to(&[], group).expect("sends");
    }
    assert_eq!(source.send_batch(b"behind", 6).expect("sends"), SendOutcome::Sent);
    let mut batch = Batch::new(1);
    assert_eq!(receiver.receive(&mut batch).expect("receives"), 1);
    assert_eq!(&*batch.segments().next().expect("one datagram").0, b"behind");
}

#[test]
fn layer_socket_has_its_own_group_and_shares_the_feedback_port() {
    for base in both(31, 47261) {
        let mut layer = base;
        layer.set_ip(match base.ip() {
            IpAddr::V4(ip) => IpAddr::from((u32::from(ip) + 1).to_be_bytes()),
            IpAddr::V6(ip) => IpAddr::from((u128::from(ip) + 1).to_be_bytes()),
        });
        let first = receiver(base);
        let beside = first.open_beside(layer).expect("another group joins");
        assert_eq!(first.feedback().local_addr(), beside.feedback().local_addr());
        let source = source(base);
        let sent = source.send_batch_to(&numbered(3), SEGMENT, layer).expect("sends");
        assert_eq!(sent, SendOutcome::Sent);
        assert_eq!(collect(&first, 0).len(), 0, "the other group's packets");
        // Packets received before the group was left can still be read, but no further packets arrive.
        beside.leave().expect("leaves");
        let sent = source.send_batch_to(&numbered(2), SEGMENT, layer).expect("sends");
        assert_eq!(sent, SendOutcome::Sent);
        assert_eq!(collect(&beside, 3).len(), 3);
        assert_eq!(collect(&beside, 0).len(), 0);
    }
}

#[test]
fn receivers_and_one_source_of_a_host_share_the_groups_port() {
    for group in both(60, 17_060) {
        let port = group.port();
        let with = |port| SourceOptions { port, ..SourceOptions::default() };
        let near = receiver(group);
        let first = source_with(group, &with(Port::Preferred(port)));
        assert_eq!(first.local_addr().port(), port, "a receiver of the group leaves the port free");
        let far = receiver(group);
        let second = source_with(group, &with(Port::Preferred(port)));
        assert_ne!(second.local_addr().port(), port);
        let options = SourceOptions { ttl: 0, ..with(Port::Fixed(port)) };
        let third = SourceSocket::open(group, &place(group), &options);
        assert!(matches!(third, Err(NetError::PortTaken { .. })), "{third:?}");
        // Each source receives the answers to its own port, and receivers receive the packets to the group.
        for (number, source) in [&first, &second].into_iter().enumerate() {
            let answer = [number as u8; SEGMENT];
            let _sent = near.send_to(&answer, source.local_addr()).expect("sends");
            let mut batch = Batch::new(8);
            let until = Instant::now() + Duration::from_secs(5);
            Waiter::new().wait(&[Watch::new(source, Want::Readable)], Some(until)).expect("waits");
            assert_eq!(source.receive(&mut batch).expect("receives"), 1);
            let answers: Vec<_> = batch.segments().map(|(bytes, _)| bytes.to_vec()).collect();
            assert_eq!(answers, [answer.to_vec()]);
            let _sent = source.send_batch(&answer, SEGMENT).expect("sends");
        }
        assert_eq!((collect(&near, 2).len(), collect(&far, 2).len()), (2, 2));
    }
}
