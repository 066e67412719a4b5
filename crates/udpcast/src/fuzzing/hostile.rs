//! Sessions with hostile peers, and random inputs of the fuzz targets.

use super::*;
use crate::codec::{self, ConnectReply, Map, Message, ReqAck};
use faircast_transport::step_driver::take_all;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_messages_cause_no_panic(steps in prop::collection::vec((any::<u8>(), 0u8..13, prop::collection::vec(any::<u8>(), 0..40)), 0..30)) {
        let mut input = Vec::new();
        for (mode, opcode, rest) in steps {
            input.extend([mode & !8, rest.len() as u8 + 2, if opcode == 12 { 5 } else { mode }, opcode % 12]);
            input.extend(rest);
        }
        super::receiver(&input);
        super::source(&input);
    }
}

fn receiver_with_a_sender() -> UdpcastReceiver {
    let mut receiver = receiver_session();
    let mut reply = [0, 7, 0, 0, 0, 0, 0, 3, 0, 0, 0, 128, 0, 0, 0, 9, 234, 0, 0, 1];
    give(&mut receiver, &mut reply, SENDER.into(), Time::ZERO);
    receiver
}

fn tell(session: &mut dyn Endpoint, message: &Message<'_>, from: SocketAddr, now: Time) {
    let mut bytes = Vec::new();
    codec::encode(&mut bytes, message);
    give(session, &mut bytes, from, now);
}

#[test]
fn impossible_slice_sizes_end_a_receiver_with_an_error() {
    for sizes in [[u32::MAX, 1], [1_000, 999]] {
        let mut receiver = receiver_with_a_sender();
        for slice_bytes in sizes {
            let question = ReqAck { slice: 0, slice_bytes, poll: 0, ready: Map::EMPTY };
            tell(&mut receiver, &Message::ReqAck(question), SENDER.into(), Time::ZERO);
        }
        take_all(&mut receiver, Time::ZERO);
        assert!(receiver.is_finished());
        let error = receiver.report().expect_err("the sizes contradict each other").to_string();
        assert!(error.contains("contradictory messages"), "{error}");
    }
}

#[test]
fn receiver_stores_at_most_two_slices_of_blocks_of_one_frame() {
    let mut receiver = receiver_session();
    let reply = |block_size| {
        let group = Ipv4Addr::new(234, 0, 0, 1);
        Message::ConnectReply(ConnectReply { client: 3, block_size, capabilities: 9, group })
    };
    tell(&mut receiver, &reply(60_000), SENDER.into(), Time::ZERO);
    assert!(receiver.groups().is_empty(), "the data group is joined despite blocks of 60,000 bytes");
    tell(&mut receiver, &reply(8_900), SENDER.into(), Time::ZERO);
    take_all(&mut receiver, Time::ZERO);
    for slice in 0..100 {
        let question = ReqAck { slice, slice_bytes: 8_900 * 1_024, poll: 0, ready: Map::EMPTY };
        tell(&mut receiver, &Message::ReqAck(question), SENDER.into(), Time::ZERO);
        assert_eq!(take_all(&mut receiver, Time::ZERO).len(), usize::from(slice < 2), "slice {slice}");
    }
}

#[test]
fn endless_requests_do_not_prevent_the_start() {
    let mut source = source_session("ormcc", 1_000);
    let host = |n: u8| SocketAddr::from((Ipv4Addr::new(10, 0, 1, n), 9000));
    let request = Message::ConnectReq { capabilities: 9, receive_buffer: 0 };
    tell(&mut source, &request, host(1), Time::ZERO);
    let mut now = Time::ZERO;
    let is_question = |(bytes, _): &(Vec<u8>, _)| matches!(codec::parse(bytes), Ok(Message::ReqAck(_)));
    while !take_all(&mut source, now).iter().any(is_question) {
        assert!(now < Time::ZERO + Span::from_secs(15), "it does not start");
        tell(&mut source, &request, host(2), now);
        now += Span::from_millis(100);
        source.handle_timeout(now);
    }
}

#[test]
fn request_at_the_end_is_left_to_the_next_session() {
    let mut source = source_session("ormcc", 0);
    let host = SocketAddr::from((Ipv4Addr::new(10, 0, 1, 1), 9000));
    let request = Message::ConnectReq { capabilities: 9, receive_buffer: 0 };
    tell(&mut source, &request, host, Time::ZERO);
    let mut now = Time::ZERO;
    let is_end = |(bytes, _): &(Vec<u8>, _)| matches!(codec::parse(bytes), Ok(Message::ReqAck(_)));
    while !take_all(&mut source, now).iter().any(is_end) {
        now = source.poll_timeout(now);
        source.handle_timeout(now);
    }
    tell(&mut source, &request, host, now);
    assert_eq!(take_all(&mut source, now), []);
    tell(&mut source, &Message::Disconnect, host, now);
    source.handle_timeout(now);
    assert!(source.is_finished() && source.report().expect("it ends").ok);
}

#[test]
fn forged_end_before_the_content_is_not_confirmed() {
    let mut receiver = receiver_with_a_sender();
    take_all(&mut receiver, Time::ZERO);
    let ask = |slice, slice_bytes| Message::ReqAck(ReqAck { slice, slice_bytes, poll: 0, ready: Map::EMPTY });
    tell(&mut receiver, &ask(0, 300), SENDER.into(), Time::ZERO);
    assert_eq!(take_all(&mut receiver, Time::ZERO).len(), 1);
    for slice in [0, 1, 7, u32::MAX / 2] {
        tell(&mut receiver, &ask(slice, 0), SENDER.into(), Time::ZERO);
        assert_eq!(take_all(&mut receiver, Time::ZERO), [], "slice {slice}");
    }
}

#[test]
fn messages_of_other_hosts_do_not_reach_a_session() {
    let mut receiver = receiver_with_a_sender();
    take_all(&mut receiver, Time::ZERO);
    let end = Message::ReqAck(ReqAck { slice: 0, slice_bytes: 0, poll: 0, ready: Map::EMPTY });
    tell(&mut receiver, &end, (Ipv4Addr::new(10, 0, 0, 66), 9001).into(), Time::ZERO);
    assert_eq!(take_all(&mut receiver, Time::ZERO), []);
}

#[test]
fn number_of_receivers_is_bounded() {
    let mut source = source_session("ormcc", 1_000);
    let request = Message::ConnectReq { capabilities: 9, receive_buffer: 0 };
    for number in 0..2_000u32 {
        tell(&mut source, &request, (Ipv4Addr::from(0x0a00_0000 + number), 9000).into(), Time::ZERO);
    }
    let replies = take_all(&mut source, Time::ZERO);
    let refused =
        |bytes: &[u8]| matches!(codec::parse(bytes), Ok(Message::ConnectReply(reply)) if reply.client < 0);
    assert_eq!(replies.iter().filter(|(bytes, _)| refused(bytes)).count(), 2_000 - 1_024);
}

#[test]
fn receiver_without_progress_stops_no_session_forever() {
    let mut source = source_session("ormcc", 300_000);
    let host = |n: u8| SocketAddr::from((Ipv4Addr::new(10, 0, 1, n), 9000));
    let request = Message::ConnectReq { capabilities: 9, receive_buffer: 0 };
    tell(&mut source, &request, host(1), Time::ZERO);
    let (mut now, mut data) = (Time::ZERO, 0u64);
    while !source.is_finished() {
        assert!(now < Time::ZERO + Span::from_secs(120), "it does not end");
        source.handle_timeout(now);
        for (bytes, _) in take_all(&mut source, now) {
            match codec::parse(&bytes) {
                Ok(Message::ReqAck(asked)) if !asked.ready.has(0) => {
                    let (slice, poll) = (asked.slice, asked.poll);
                    let nothing = Message::Retransmit { slice, poll, present: Map::EMPTY };
                    tell(&mut source, &nothing, host(1), now);
                }
                Ok(Message::Data(_)) => data += 1,
                _ => {}
            }
        }
        while source.poll_event().is_some() {}
        now = source.poll_timeout(now).max(now + Span::from_micros(100));
    }
    let report = source.report().expect("it ends");
    assert!(!report.ok && report.incomplete.len() == 1 && data > 50, "{report:?}");
}
