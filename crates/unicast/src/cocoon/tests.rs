//! Tests of the chapter's rules, with numbers computed by hand.

use super::*;
use crate::rtt::RttEstimate;
use faircast_core::time::{Span, Time};

const NOW: Time = Time::from_nanos(1_000_000_000);

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Returns the view of a member with `flight` packets in flight, the first of which has number 100. The window is equal to
/// `flight`, at least 1.
fn with(flight: u32) -> View {
    View { cwnd: f64::from(flight).max(1.0), ..View::in_packets(100, 100 + u64::from(flight), 1.0, 64.0) }
}

fn together<const N: usize>(config: Config, views: [View; N]) -> (Coordinator, GroupId, [MemberId; N]) {
    let mut it = Coordinator::new(Config {
        start: if config.start == Start::Reference { Start::Alone } else { config.start },
        ..config
    });
    let group = it.open_group().expect("there is room");
    let members = views.map(|view| it.join(group, view).expect("there is room").member);
    (it, group, members)
}

fn verdicts(it: &mut Coordinator) -> Vec<(MemberId, Verdict)> {
    std::iter::from_fn(|| it.next_verdict()).collect()
}

#[test]
fn cuts_match_every_case_of_figure_4_2() {
    // (f, F_j, cwnd_j, ssthresh_j): data in flight of the member with the loss and of the other member, then the new window and
    // threshold of the other member. Before the loss, cwnd_j = F_j and ssthresh_j = 64.
    let cases = [
        (10, 10, Some(10.0), 10.0), // equal: no cut, but no slow start
        (10, 15, Some(10.0), 10.0), // below 2 f: to f
        (10, 20, Some(10.0), 10.0), // 2 f: half is f
        (10, 24, Some(12.0), 12.0), // above: half, as if it had lost
        (10, 9, Some(9.0), 5.0),    // from f/2 to f: nothing before the next acknowledgement
        (10, 5, Some(5.0), 5.0),    // f/2 is still in there
        (10, 4, None, 5.0),         // below f/2: only the threshold
        (10, 0, None, 5.0),         // nothing out
        (2, 1, Some(1.0), 2.0),     // never below two segments
        (2, 0, None, 2.0),
    ];
    for (f, out, cwnd, ssthresh) in cases {
        let (mut it, _, [first, second]) = together(Config::published(), [with(f), with(out)]);
        let own = it.on_loss(first, with(f), 100, NOW);
        let half = (f64::from(f) / 2.0).max(2.0);
        assert_eq!(own, OwnReaction::Cut { cwnd: half, ssthresh: half });
        let (member, verdict) = it.next_verdict().expect("the other one is told");
        assert_eq!((member, verdict.cwnd, verdict.ssthresh), (second, cwnd, Some(ssthresh)), "{f} {out}");
        assert_eq!(it.next_verdict(), None);
    }
}

#[test]
fn windows_in_bytes_are_cut_like_windows_in_packets() {
    let bytes = |out: u64| View::in_bytes(5000, 5000 + out * 1200, 1200, out * 1200, u64::MAX);
    let (mut it, _, [first, _]) = together(Config::published(), [bytes(10), bytes(1)]);
    assert_eq!(it.on_loss(first, bytes(2), 5000, NOW), OwnReaction::Cut { cwnd: 2400.0, ssthresh: 2400.0 });
    let (_, verdict) = it.next_verdict().expect("the other one is told");
    assert_eq!((verdict.cwnd, verdict.ssthresh), (Some(1200.0), Some(2400.0)));
}

#[test]
fn losses_of_three_members_in_one_round_trip_cause_one_reaction() {
    let (mut it, _, [a, b, c]) = together(Config::published(), [with(10), with(12), with(4)]);
    assert!(matches!(it.on_loss(a, with(10), 103, NOW), OwnReaction::Cut { .. }));
    assert_eq!(verdicts(&mut it).len(), 2);
    assert_eq!(it.on_loss(b, with(10), 105, NOW), OwnReaction::Covered);
    assert_eq!(it.on_loss(c, with(4), 102, NOW), OwnReaction::Covered);
    assert_eq!(it.on_loss(a, with(10), 108, NOW), OwnReaction::Covered);
    assert_eq!(verdicts(&mut it), []);
    assert_eq!((it.counters().reactions, it.counters().covered), (1, 3));
    // The loss of the first packet sent after the reduction counts as new congestion.
    let later = View::in_packets(112, 120, 8.0, 8.0);
    assert!(matches!(it.on_loss(b, later, 112, NOW), OwnReaction::Cut { .. }));
}

#[test]
fn covers_cut_option_moves_watermarks_only_of_cut_members() {
    let config = Config { covers: Covers::CutMembers, ..Config::published() };
    let (mut it, _, [a, small, large]) = together(config, [with(10), with(2), with(12)]);
    it.on_loss(a, with(10), 100, NOW);
    assert_eq!(it.on_loss(large, with(10), 101, NOW), OwnReaction::Covered);
    assert_eq!(it.on_loss(small, with(2), 101, NOW), OwnReaction::Cut { cwnd: 2.0, ssthresh: 2.0 });
}

#[test]
fn cut_in_fast_recovery_sets_the_window_to_the_threshold() {
    let recovering = View { recovery: Recovery::Fast, cwnd: 15.0, ..with(20) };
    let (mut it, _, [first, _]) = together(Config::published(), [with(12), recovering]);
    it.on_loss(first, with(12), 100, NOW);
    let (_, verdict) = it.next_verdict().expect("the other one is told");
    assert_eq!((verdict.cwnd, verdict.ssthresh), (Some(12.0), Some(12.0)));
}

#[test]
fn timeout_halves_other_windows_unless_they_are_smaller() {
    let (mut it, _, [first, ..]) = together(Config::published(), [with(4), with(10), with(4), with(3)]);
    let own = it.on_timeout(first, with(4), 100, at(500), NOW);
    assert_eq!(own, OwnReaction::Cut { cwnd: 1.0, ssthresh: 2.0 });
    let reported: Vec<_> = verdicts(&mut it).iter().map(|(_, it)| (it.cwnd, it.ssthresh)).collect();
    // Members are visited from the newest on.
    assert_eq!(reported, [(None, Some(2.0)), (Some(2.0), Some(2.0)), (Some(5.0), Some(5.0))]);
}

#[test]
fn timeout_makes_members_with_older_packets_resend_once() {
    let sent = |millis: u64| View { una_sent_at: at(millis), ..with(5) };
    let late = View { recovery: Recovery::Timeout, ..sent(350) };
    for (again, times) in [(Again::All, 2), (Again::NotTimedOut, 1), (Again::Nobody, 0)] {
        let config = Config { again, ..Config::published() };
        let views = [sent(400), sent(300), sent(450), late, View { una_sent_at: Time::NEVER, ..with(0) }];
        let (mut it, _, [first, ..]) = together(config, views);
        it.on_timeout(first, sent(400), 100, at(400), NOW);
        assert_eq!(verdicts(&mut it).iter().filter(|(_, it)| it.send_again).count(), times);
        // A second timeout of the same packet is below the watermark.
        assert_eq!(it.on_timeout(first, sent(1000), 100, at(1000), at(2000)), OwnReaction::Covered);
        assert_eq!(verdicts(&mut it), []);
    }
}

#[test]
fn new_member_begins_with_half_of_the_smallest_member_window() {
    let cases = [
        // cwnd_r, ssthresh_r -> cwnd_k, ssthresh_k
        (10.0, 64.0, 5.0, 10.0), // in slow start
        (10.0, 6.0, 5.0, 6.0),   // in congestion avoidance: slow start ends after one round trip
        (1.0, 2.0, 1.0, 2.0),
    ];
    for (cwnd, ssthresh, mine, threshold) in cases {
        let mut it = Coordinator::new(Config::published());
        let group = it.open_group().expect("there is room");
        let new = View::in_packets(0, 0, 2.0, f64::INFINITY);
        let Joined { member: first, start } = it.join(group, new).expect("there is room");
        assert_eq!(start, None);
        let member = it.join(group, View { cwnd: 30.0, ..new }).expect("there is room").member;
        it.on_transmit(member, View::in_packets(5, 15, cwnd, ssthresh));
        let idle = it.join(group, View { has_data: false, ..new }).expect("there is room").member;
        it.on_transmit(idle, View { has_data: false, ..new });
        it.leave(first);
        let start = it.join(group, new).expect("there is room").start.expect("one sends");
        assert_eq!((start.cwnd, start.ssthresh), (Some(mine), Some(threshold)));
    }
}

#[test]
fn members_share_an_rtt_estimate_but_not_timeout_backoff() {
    let (mut it, _, [a, b]) = together(Config::published(), [with(4), with(4)]);
    assert_eq!(it.retransmission_timeout(a), None);
    it.on_rtt_sample(a, Span::from_millis(400));
    it.on_rtt_sample(b, Span::from_millis(480));
    let expected = RttEstimate { mean: Span::from_millis(410), deviation: Span::from_millis(170) };
    assert_eq!((it.round_trip(a), it.round_trip(b)), (Some(expected), Some(expected)));
    assert_eq!(it.retransmission_timeout(a), Some(Span::from_millis(1090)));
    it.on_timeout(a, with(4), 100, at(500), NOW);
    it.on_timeout(a, with(4), 100, at(900), NOW);
    assert_eq!(it.retransmission_timeout(a), Some(Span::from_millis(4360)));
    assert_eq!(it.retransmission_timeout(b), Some(Span::from_millis(1090)));
    it.on_ack(a, with(4), 1.0);
    assert_eq!(it.retransmission_timeout(a), Some(Span::from_millis(1090)));
}

#[test]
fn member_receives_rtt_estimates_only_from_other_members() {
    let (mut it, _, [a, b]) = together(Config::published(), [with(4), with(4)]);
    let estimate = RttEstimate { mean: Span::from_millis(50), deviation: Span::from_millis(5) };
    assert_eq!(it.news_of_round_trip(a), None);
    it.set_round_trip(a, estimate);
    assert_eq!((it.news_of_round_trip(a), it.news_of_round_trip(b)), (None, Some(estimate)));
    assert_eq!(it.news_of_round_trip(b), None);
}

#[test]
fn single_member_receives_no_verdicts() {
    let (mut it, _, [only]) = together(Config::published(), [with(10)]);
    assert_eq!(it.on_loss(only, with(10), 100, NOW), OwnReaction::Cut { cwnd: 5.0, ssthresh: 5.0 });
    let later = View::in_packets(112, 120, 8.0, 5.0);
    assert_eq!(it.on_ecn(only, later, NOW), OwnReaction::Cut { cwnd: 4.0, ssthresh: 4.0 });
    assert_eq!(it.next_verdict(), None);
}

#[test]
fn verdicts_that_were_not_taken_are_merged_into_one() {
    let (mut it, _, [a, b, c]) = together(Config::published(), [with(10), with(8), with(20)]);
    it.on_loss(a, with(10), 100, at(10));
    it.on_loss(b, View::in_packets(109, 117, 8.0, 5.0), 109, at(30));
    let verdict = it.take_verdict(c).expect("it was told twice");
    assert_eq!((verdict.cwnd, verdict.at), (Some(10.0), at(30)));
    assert_eq!(it.take_verdict(c), None);
    // A member whose verdict was taken with `take_verdict` is not returned by `next_verdict`.
    assert_eq!(verdicts(&mut it).iter().map(|(member, _)| *member).collect::<Vec<_>>(), [b, a]);
}

#[test]
fn departed_members_neither_receive_nor_cause_verdicts() {
    let (mut it, group, [a, b, c]) = together(Config::published(), [with(10), with(8), with(20)]);
    it.on_loss(a, with(10), 100, NOW);
    it.leave(b);
    assert_eq!(verdicts(&mut it).iter().map(|(member, _)| *member).collect::<Vec<_>>(), [c]);
    assert_eq!(it.members_of(group), 2);
    it.on_loss(b, with(8), 100, NOW);
    assert_eq!(verdicts(&mut it), []);
    let again = it.join(group, with(3)).expect("there is room").member;
    assert_ne!(again, b);
    assert_eq!((it.group_of(b), it.group_of(again)), (None, Some(group)));
}

#[test]
fn size_and_number_of_groups_are_limited() {
    let config = Config { max_members: 2, max_groups: 2, ..Config::published() };
    let (mut it, group, [_, b]) = together(config, [with(1), with(1)]);
    assert_eq!(it.join(group, with(1)), Err(CapacityError::Members(2)));
    let second = it.open_group().expect("there is room");
    assert_eq!(it.open_group(), Err(CapacityError::Groups(2)));
    let c = it.join(second, with(1)).expect("there is room").member;
    assert_eq!(it.merge(group, second), Err(CapacityError::Members(2)));
    it.move_member(b, second).expect("there is room");
    assert_eq!(it.move_member(c, group), Ok(()));
    it.close_group(second);
    assert_eq!((it.group_of(b), it.merge(group, second)), (None, Err(CapacityError::Closed)));
}

#[test]
fn loss_in_a_merged_group_cuts_members_of_both_former_groups() {
    let (mut it, group, [a]) = together(Config::published(), [with(10)]);
    let other = it.open_group().expect("there is room");
    let b = it.join(other, with(20)).expect("there is room").member;
    it.on_loss(a, with(10), 100, NOW);
    assert_eq!(verdicts(&mut it), []);
    it.merge(group, other).expect("there is room");
    it.on_loss(a, View::in_packets(110, 118, 8.0, 5.0), 110, NOW);
    assert_eq!(verdicts(&mut it).iter().map(|(member, _)| *member).collect::<Vec<_>>(), [b]);
}

#[test]
fn datagrams_are_limited_by_the_mean_window_of_tcp_members() {
    let (mut it, group, [a, b]) = together(Config::published(), [with(4), with(8)]);
    let sockets = [0, 1].map(|_| it.open_socket(group).expect("there is room"));
    assert_eq!(it.virtual_connection(group), (12.0, 0.0));
    for _ in 0..40 {
        assert!(sockets.map(|socket| it.offer(group, socket, 1.0)).iter().all(|it| *it == Offered::Queued));
    }
    // Datagrams are sent while flight <= window: 13 datagrams of the sockets in turn.
    let left: Vec<_> = std::iter::from_fn(|| it.next_datagram(group, NOW)).collect();
    assert_eq!(left.len(), 13);
    assert!(
        left.chunks(2).all(|pair| pair[0] == sockets[0] && pair.get(1).is_none_or(|it| *it == sockets[1]))
    );
    it.on_ack(a, with(4), 2.0);
    assert_eq!(std::iter::from_fn(|| it.next_datagram(group, NOW)).count(), 2);
    // A loss reduces the window. No datagram is sent until the data in flight fits the window.
    it.on_loss(b, with(8), 100, NOW);
    assert!(it.virtual_connection(group).0 < 12.0);
    it.on_ack(a, with(4), 1.0);
    assert_eq!(it.next_datagram(group, NOW), None);
}

#[test]
fn timeout_stops_datagrams_until_the_member_gets_an_ack() {
    for leaves in [false, true] {
        let (mut it, group, [a, b]) = together(Config::published(), [with(4), with(8)]);
        let socket = it.open_socket(group).expect("there is room");
        assert_eq!(it.offer(group, socket, 1.0), Offered::Queued);
        it.on_timeout(a, with(4), 100, at(400), NOW);
        assert_eq!((it.next_datagram(group, NOW), it.datagram_at(group)), (None, Time::NEVER));
        it.on_ack(b, with(8), 1.0);
        assert_eq!(it.next_datagram(group, NOW), None);
        if leaves {
            it.leave(a);
        } else {
            it.on_ack(a, with(4), 1.0);
        }
        assert_eq!(it.next_datagram(group, NOW), Some(socket));
    }
}

#[test]
fn each_socket_without_tcp_adds_a_default_window() {
    let mut it = Coordinator::new(Config::published());
    let group = it.open_group().expect("there is room");
    let mut windows = Vec::new();
    let sockets = [0; 3].map(|_| {
        let socket = it.open_socket(group).expect("there is room");
        windows.push(it.virtual_connection(group).0);
        socket
    });
    assert_eq!(windows, [2.0, 4.0, 6.0]);
    it.close_socket(group, sockets[0]);
    assert_eq!(it.virtual_connection(group).0, 4.0);
}

#[test]
fn datagrams_without_tcp_are_sent_at_the_default_window_rate() {
    let mut it = Coordinator::new(Config::published());
    let group = it.open_group().expect("there is room");
    let socket = it.open_socket(group).expect("there is room");
    for number in 0..70 {
        let expected = if number < 64 { Offered::Queued } else { Offered::Dropped };
        assert_eq!(it.offer(group, socket, 1.0), expected);
    }
    // Two segments in 0.2 s.
    assert_eq!(it.next_datagram(group, NOW), Some(socket));
    assert_eq!((it.next_datagram(group, NOW), it.datagram_at(group)), (None, at(1100)));
    assert_eq!(it.next_datagram(group, at(1100)), Some(socket));
}

#[test]
fn verdicts_are_valid_despite_invalid_numbers_of_callers() {
    let mut rng = faircast_core::rng::Rng::new(7, 0);
    let (mut it, group, members) = together(Config::published(), [with(4), with(8), with(2)]);
    let wild = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 5.0, f64::NEG_INFINITY];
    let socket = it.open_socket(group).expect("there is room");
    for round in 0..20_000_u64 {
        let pick = |rng: &mut faircast_core::rng::Rng, count: usize| (rng.unit() * count as f64) as usize;
        let mut wild = || wild[pick(&mut rng, wild.len())];
        let view = View { flight: wild(), mss: wild(), cwnd: wild(), ssthresh: wild(), ..with(3) };
        let view = View { una: round * 3, nxt: round, ..view };
        let (newly, size) = (wild(), wild());
        let member = members[pick(&mut rng, 3)];
        match pick(&mut rng, 5) {
            0 => drop(it.on_loss(member, view, round, NOW)),
            1 => drop(it.on_timeout(member, view, round, NOW, NOW)),
            2 => it.on_ack(member, view, newly),
            3 => drop(it.offer(group, socket, size)),
            _ => it.on_transmit(member, view),
        }
        for (_, verdict) in verdicts(&mut it) {
            assert!(verdict.cwnd.is_none_or(|cwnd| cwnd > 0.0 && cwnd.is_finite()), "{verdict:?}");
            assert!(verdict.ssthresh.is_none_or(|it| it > 0.0), "{verdict:?}");
        }
        let (window, flight) = it.virtual_connection(group);
        assert!(
            window.is_finite() && window >= 0.0 && flight >= 0.0 && flight.is_finite(),
            "{window} {flight}"
        );
        it.next_datagram(group, NOW);
    }
}

#[test]
fn new_rfc9040_member_gets_a_share_and_its_loss_cuts_no_other() {
    let mut it = Coordinator::new(Config::rfc9040());
    let group = it.open_group().expect("there is room");
    let new = View::in_packets(0, 0, 3.0, f64::INFINITY);
    let a = it.join(group, new).expect("there is room").member;
    it.on_transmit(a, View { ssthresh: 20.0, ..with(10) });
    let joined = it.join(group, new).expect("there is room");
    assert_eq!(joined.start, Some(rules::Windows { cwnd: Some(5.0), ssthresh: Some(20.0) }));
    let (member, verdict) = it.next_verdict().expect("the first one gives up half");
    assert_eq!((member, verdict.cwnd, verdict.ssthresh), (a, Some(5.0), None));
    it.on_loss(joined.member, with(4), 100, NOW);
    assert_eq!(it.next_verdict(), None);
}

#[test]
fn option_compared_after_halves_all_equal_windows_at_a_loss() {
    let config = Config { compared: Compared::After, ..Config::published() };
    let (mut it, _, [first, _]) = together(config, [with(10), with(10)]);
    it.on_loss(first, with(10), 100, NOW);
    let (_, verdict) = it.next_verdict().expect("the other one is told");
    assert_eq!((verdict.cwnd, verdict.ssthresh), (Some(5.0), Some(5.0)));
}
