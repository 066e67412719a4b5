use super::*;
use faircast_core::packet::{Echo, Seq};
use faircast_core::rng::Rng;
use faircast_wire::{Name, Tree, TreeNode, Words};

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn id(number: u64) -> ReceiverId {
    ReceiverId::new(number).expect("tests number from one")
}

/// Handles a report of receiver `number` on the host named by this letter.
fn report(members: &mut Members, number: u64, host: char, state: MemberState, now: Time) -> Change {
    numbered(members, number, host, (state, u64::MAX), now)
}

/// Returns a report with this reason.
fn because(reason: u8, number: u64, state: MemberState) -> Report {
    Report {
        from: id(number),
        nonce: 0,
        state,
        reason,
        receivers: 1,
        done: 0,
        verified_bytes: 0,
        resumed_bytes: 0,
        blocks_missing: 1,
        rate: 0.0,
        loss: 0.0,
        dropped_local: 0,
        unwritten_bytes: 0,
        activity: faircast_wire::Activity::Network,
        percent: 0,
        echo: Echo { seq: Seq(0), hold: Span::ZERO },
        host: Name::clipped("a"),
        why: Words::default(),
    }
}

/// Handles a report with a message number.
fn numbered(
    members: &mut Members,
    number: u64,
    host: char,
    (state, seq): (MemberState, u64),
    now: Time,
) -> Change {
    let report = Report { host: Name::clipped(&host.to_string()), ..because(0, number, state) };
    members.on_report(&report, seq, SocketAddr::from(([192, 0, 2, host as u8], number as u16)), now)
}

const SPREAD: Span = Span::from_millis(10);
const IDLE_TIMEOUT: Span = Span::from_secs(10);

#[test]
fn restarted_receiver_replaces_its_old_entry() {
    let mut members = Members::default();
    report(&mut members, 1, 'a', MemberState::Joined, at(0));
    report(&mut members, 2, 'a', MemberState::Joined, at(2));
    report(&mut members, 2, 'a', MemberState::Done, at(4));
    assert_eq!(members.expire(at(4), IDLE_TIMEOUT, SPREAD), [id(1)]);
    assert_eq!((members.unfinished(), members.done()), (0, 1));
    assert!(members.replaced().contains(&id(1)));
}

#[test]
fn finished_receiver_counts_once_after_a_restart() {
    let mut members = Members::default();
    report(&mut members, 1, 'a', MemberState::Joined, at(0));
    report(&mut members, 3, 'b', MemberState::Joined, at(0));
    report(&mut members, 1, 'a', MemberState::Done, at(2));
    report(&mut members, 2, 'a', MemberState::Joined, at(4));
    assert_eq!((members.verified(), members.unfinished()), (1, 2));
    report(&mut members, 2, 'a', MemberState::Done, at(6));
    report(&mut members, 1, 'a', MemberState::Done, at(7));
    assert_eq!((members.receivers(), members.verified(), members.unfinished()), (2, 1, 1));
    report(&mut members, 4, 'b', MemberState::Joined, at(7));
    report(&mut members, 4, 'b', MemberState::Done, at(8));
    report(&mut members, 3, 'b', MemberState::Done, at(8));
    assert_eq!(members.verified(), 3, "two receivers may run on a host at the same time");
}

#[test]
fn receiver_that_moves_to_another_parent_leaves_and_may_rejoin() {
    let mut members = Members::default();
    let address = SocketAddr::from(([192, 0, 2, 1], 7));
    let mut reports = |reason, state, seq| {
        let change = members.on_report(&because(reason, 1, state), seq, address, at(0));
        (change, members.count(), members.receivers(), members.at(address.ip()))
    };
    assert_eq!(reports(0, MemberState::Joined, 3), (Change::Joined, 1, 1, 1));
    assert_eq!(reports(MOVED, MemberState::Leaving, 9), (Change::Moved, 0, 0, 0));
    assert_eq!(reports(MOVED, MemberState::Leaving, 10), (Change::None, 0, 0, 0), "it says so twice");
    assert_eq!(
        reports(0, MemberState::Receiving, 8),
        (Change::None, 0, 0, 0),
        "what comes late is of before"
    );
    assert_eq!(reports(0, MemberState::Joined, 20), (Change::Joined, 1, 1, 1));
    assert_eq!(members.unfinished(), 1);
}

#[test]
fn two_live_receivers_of_one_host_are_both_counted() {
    let mut members = Members::default();
    report(&mut members, 1, 'a', MemberState::Joined, at(0));
    report(&mut members, 2, 'a', MemberState::Joined, at(2));
    members.on_sign_of_life(id(1), at(3));
    assert!(members.replaced().is_empty());
    assert!(members.expire(at(7), IDLE_TIMEOUT, SPREAD).is_empty());
    assert_eq!(members.unfinished(), 2);
    assert_eq!(members.expire(at(14), IDLE_TIMEOUT, SPREAD), [id(1), id(2)]);
}

#[test]
fn receiver_of_another_host_replaces_no_entry() {
    let mut members = Members::default();
    report(&mut members, 1, 'a', MemberState::Joined, at(0));
    report(&mut members, 2, 'b', MemberState::Done, at(2));
    assert!(members.expire(at(9), IDLE_TIMEOUT, SPREAD).is_empty());
    assert!(members.replaced().is_empty());
}

#[test]
fn member_counts_follow_every_state_change() {
    let mut members = Members::default();
    for number in 1..=4 {
        assert_eq!(report(&mut members, number, 'a', MemberState::Joined, at(0)), Change::Joined);
    }
    members.set_pace(id(1), Pace::Deferred);
    members.set_pace(id(2), Pace::Dropped);
    report(&mut members, 3, 'a', MemberState::Failed, at(0));
    assert_eq!((members.unfinished(), members.done()), (1, 0));
    report(&mut members, 4, 'a', MemberState::Done, at(0));
    assert_eq!(report(&mut members, 4, 'a', MemberState::Done, at(0)), Change::None);
    assert_eq!((members.unfinished(), members.done()), (0, 1));
    members.recall();
    assert_eq!((members.unfinished(), members.done()), (1, 1));
    report(&mut members, 1, 'a', MemberState::Done, at(0));
    assert_eq!((members.unfinished(), members.done()), (0, 2));
}

#[test]
fn receiver_counts_as_slow_after_a_second_of_low_rate_reports() {
    let mut members = Members::default();
    report(&mut members, 1, 'a', MemberState::Joined, at(0));
    let (low, bound) = (Rate::from_mbps(10.0), Rate::from_mbps(50.0));
    let mut is_new_burst = |tenths: u64, level| {
        let now = Time::ZERO + Span::from_millis(100) * tenths;
        members.on_congestion(id(1), level, bound, Span::from_secs(1), now)
    };
    assert!((0..10).all(|tenths| !is_new_burst(tenths, low)), "one burst, of something sent before");
    assert!(!is_new_burst(10, bound), "it can do better");
    assert!((11..21).all(|tenths| !is_new_burst(tenths, low)));
    assert!(is_new_burst(21, low));
}

#[test]
fn few_first_reports_are_early_if_the_group_size_is_unknown() {
    let mut rng = Rng::new(1, 1);
    let turns: Vec<Span> = (0..10_000).map(|_| first_turn(SPREAD, &mut rng)).collect();
    let early = turns.iter().filter(|turn| **turn < onset(SPREAD).scaled(0.5)).count();
    assert!((1..100).contains(&early), "{early}");
    assert!(turns.iter().all(|turn| *turn <= SPREAD + onset(SPREAD)));
}

#[test]
fn report_turn_is_rescaled_when_the_spread_changes() {
    let (one, ten) = (Span::from_millis(10), Span::from_millis(100));
    let turn = at(1) + one;
    assert_eq!(stretched(turn, at(1), one, ten), at(1) + ten);
    assert_eq!(stretched(at(1) + ten, at(1), ten, one), turn);
    assert_eq!(stretched(at(0), at(1), one, ten), at(0), "it is due already");
    let (mut turn, mut spread, mut now) = (at(60), Span::from_secs(60), at(0));
    for other in [20, 60].repeat(30) {
        turn = stretched(turn, now, spread, Span::from_secs(other));
        (spread, now) = (Span::from_secs(other), now + Span::from_secs(1));
    }
    assert!(turn <= now, "it comes although the spread goes up and down");
}

#[test]
fn simultaneous_reports_of_members_do_not_raise_the_spread() {
    let mut members = Members::default();
    for number in 1..=2_000 {
        report(&mut members, number, 'a', MemberState::Joined, at(0));
    }
    let spread = |members: &mut Members, millis| members.spread(at(60) + Span::from_millis(millis), SPREAD);
    spread(&mut members, 0);
    assert_eq!(spread(&mut members, 30), Span::from_secs(2));
    for number in 1..=2_000 {
        report(&mut members, number, 'a', MemberState::Receiving, at(60));
    }
    assert_eq!(spread(&mut members, 60), Span::from_secs(2), "their host was away for a moment");
    for number in 2_001..=2_400 {
        report(&mut members, number, 'b', MemberState::Joined, at(60));
    }
    assert!(spread(&mut members, 90) > Span::from_secs(10), "who is not known yet has no turns");
}

#[test]
fn reports_of_a_large_group_are_spread_over_seconds() {
    let mut members = Members::default();
    for number in 1..=5_000 {
        assert_eq!(report(&mut members, number, 'a', MemberState::Joined, at(0)), Change::Joined);
    }
    assert_eq!(members.spread(at(0), SPREAD), Span::from_secs(5));
}

#[test]
fn newer_report_of_the_receiver_replaces_a_forged_state() {
    let mut members = Members::default();
    let now = Time::ZERO + Span::from_secs(1);
    let say = |members: &mut Members, state, seq| numbered(members, 1, 'a', (state, seq), now);
    assert_eq!(say(&mut members, MemberState::Joined, 1), Change::Joined);
    assert_eq!(say(&mut members, MemberState::Done, 7), Change::Done);
    assert_eq!((members.done(), members.unfinished()), (1, 0));
    assert_eq!(say(&mut members, MemberState::Receiving, 6), Change::None, "it was overtaken on the way");
    assert_eq!(members.done(), 1);
    assert_eq!(say(&mut members, MemberState::Receiving, 8), Change::None);
    assert_eq!((members.done(), members.unfinished()), (0, 1));
    assert_eq!(say(&mut members, MemberState::Done, 9), Change::Done);
    assert_eq!((members.done(), members.unfinished()), (1, 0));
}

#[test]
fn member_is_counted_at_its_latest_address() {
    let mut members = Members::default();
    let at = |secs| Time::ZERO + Span::from_secs(secs);
    report(&mut members, 1, 'a', MemberState::Joined, at(1));
    let [here, there] = ['a', 'b'].map(|host| SocketAddr::from(([192, 0, 2, host as u8], 1)));
    assert!(!members.is_elsewhere(id(1), here, at(1)));
    assert!(members.is_elsewhere(id(1), there, at(2)));
    assert!(!members.is_elsewhere(id(1), there, at(5)), "it has been silent: its address may have changed");
    assert!(!members.is_elsewhere(id(2), there, at(1)), "nobody knows where it is");
    report(&mut members, 1, 'b', MemberState::Receiving, at(5));
    assert_eq!((members.at(here.ip()), members.at(there.ip())), (0, 1));
}

#[test]
fn receiver_that_asks_to_join_is_answered_but_not_counted() {
    let mut members = Members::default();
    assert_eq!(report(&mut members, 3, 'a', MemberState::Asking, Time::ZERO), Change::None);
    assert_eq!(members.count(), 0);
    let (confirmed, welcomed) = members.take_confirmations(1_000);
    assert_eq!((confirmed.len(), welcomed), (0, vec![Welcome { id: id(3), nonce: 0 }]));
}

#[test]
fn memory_for_pending_answers_is_bounded() {
    let mut members = Members::default();
    for number in 0..50_000 {
        report(&mut members, number + 1, 'a', MemberState::Asking, Time::ZERO);
    }
    assert_eq!((members.confirm.len(), members.confirming.len()), (MAX_ANSWERS, MAX_ANSWERS));
    let mut answered = BTreeSet::new();
    while members.has_confirmations() {
        let (_, welcomed) = members.take_confirmations(1_400);
        assert!(welcomed.len() <= 1_400 / 6);
        answered.extend(welcomed.iter().map(|welcome| welcome.id));
    }
    assert_eq!(answered.len(), MAX_ANSWERS);
}

#[test]
fn count_of_unanswered_requests_matches_the_queue() {
    let mut members = Members::default();
    let plainly = |members: &Members| members.confirm.iter().any(|(_, times)| *times == CONFIRMATIONS);
    for number in 0..200_u32 {
        report(&mut members, u64::from(number) % 60 + 1, 'a', MemberState::Asking, Time::ZERO);
        assert_eq!(members.has_confirmations(), plainly(&members));
        members.take_confirmations((number % 7 * 6) as usize);
        assert_eq!(members.has_confirmations(), plainly(&members));
    }
    // All 20,000 receivers have been answered once. A report would take 20 us if it scanned all of them.
    (0..20_000)
        .for_each(|number| _ = report(&mut members, number + 100, 'a', MemberState::Asking, Time::ZERO));
    while members.has_confirmations() {
        members.take_confirmations(1_400);
    }
    assert!(members.confirm.len() > 1_000 && members.unanswered == 0);
}

#[test]
fn relay_whose_only_receiver_failed_adds_no_completion() {
    let mut members = Members::default();
    let report_of = |state, done| Report { done, ..because(RELAYS, 1, state) };
    let place = SocketAddr::from(([192, 0, 2, 1], 1));
    members.on_report(&report_of(MemberState::Receiving, 0), 1, place, at(0));
    members.on_report(&report_of(MemberState::Done, 0), 2, place, at(1));
    assert_eq!((members.receivers(), members.verified()), (1, 0));
    members.on_report(&report_of(MemberState::Done, 1), 3, place, at(2));
    assert_eq!((members.receivers(), members.verified()), (1, 1));
}

#[test]
fn receivers_behind_a_restarted_relay_count_once() {
    let mut members = Members::default();
    let place = SocketAddr::from(([192, 0, 2, 1], 1));
    let report_of =
        |number, (receivers, done), state| Report { receivers, done, ..because(RELAYS, number, state) };
    let node = |receivers| TreeNode {
        level: 0,
        receivers,
        done: receivers,
        rate: 1e6,
        address: SocketAddr::from(([192, 0, 2, 2], 1)),
        host: TreeNode::cut("below"),
    };
    members.on_report(&report_of(1, (0, 0), MemberState::Joined), 1, place, at(0));
    members.on_tree(&Tree { from: id(1), first: 0, count: 1, relays: vec![node(2)] });
    // Three receivers: two behind another relay, and one attached directly.
    members.on_report(&report_of(1, (3, 3), MemberState::Done), 2, place, at(1));
    assert_eq!((members.receivers(), members.verified()), (3, 3));
    members.on_report(&report_of(2, (0, 0), MemberState::Joined), 1, place, at(4));
    members.on_report(&report_of(2, (2, 2), MemberState::Done), 2, place, at(5));
    assert_eq!(
        (members.receivers(), members.verified()),
        (3, 3),
        "the relay behind it goes on below the new process"
    );
    members.on_tree(&Tree { from: id(1), first: 0, count: 1, relays: vec![node(3)] });
    assert_eq!(
        (members.receivers(), members.verified()),
        (2, 2),
        "the counts follow what is told of those behind"
    );
    members.on_report(&report_of(1, (3, 3), MemberState::Done), 3, place, at(6));
    assert_eq!(
        (members.receivers(), members.verified()),
        (5, 5),
        "the first one lives: there are two relays"
    );
    members.on_report(&report_of(2, (2, 2), MemberState::Done), 3, place, at(9));
    members.expire(at(10), IDLE_TIMEOUT, SPREAD);
    assert_eq!((members.receivers(), members.verified()), (2, 2), "that was a message that was late");
}

#[test]
fn expired_process_of_a_restarted_receiver_is_not_counted() {
    let mut members = Members::default();
    report(&mut members, 1, 'a', MemberState::Joined, at(0));
    report(&mut members, 2, 'a', MemberState::Joined, at(2));
    assert_eq!(members.receivers(), 2, "both may live");
    assert_eq!(members.expire(at(4), IDLE_TIMEOUT, SPREAD), [id(1)]);
    assert_eq!(members.receivers(), 1);
    report(&mut members, 1, 'a', MemberState::Receiving, at(5));
    assert_eq!(members.receivers(), 1, "a message that was late");
    numbered(&mut members, 3, 'b', (MemberState::Joined, 1), at(5));
    assert_eq!(members.receivers(), 2);
}

/// Handles an echo of packet `before` - 1; the next packet has the number `next`.
fn has(members: &mut Members, number: u64, before: u64, next: u64, now: Time) {
    report(members, number, 'a', MemberState::Receiving, now);
    members.on_echo(id(number), Some(Seq(before - 1)), Seq(next), Seq(0), Seq(0), now);
}

#[test]
fn only_members_that_receive_the_source_get_report_turns() {
    let mut members = Members::default();
    for number in 1..=100 {
        has(&mut members, number, 50, 50, at(0));
        has(&mut members, number, 50, 60, at(1));
    }
    assert_eq!((members.speaking(), members.counted_on(), members.unfinished()), (0, 0, 100));
    has(&mut members, 1, 51, 60, at(2));
    assert_eq!((members.speaking(), members.counted_on()), (1, 1));
    members.on_asking(id(101), Seq(70));
    has(&mut members, 101, 71, 80, at(2));
    assert_eq!((members.speaking(), members.counted_on()), (2, 2), "a packet has come since it asked");
    members.count_speaking(at(4));
    assert_eq!(members.speaking(), 2);
    members.count_speaking(at(5));
    assert_eq!(members.speaking(), 0, "they say nothing any more");
    has(&mut members, 1, 81, 90, at(6));
    members.count_speaking(at(6));
    assert_eq!(members.speaking(), 1);
}

#[test]
fn number_of_stored_join_requests_is_bounded() {
    let mut members = Members::default();
    for number in 1..=100_000 {
        members.on_asking(id(number), Seq(number));
        assert!(members.asked.len() <= 20_000);
    }
}

#[test]
fn receiver_cannot_report_for_other_receivers() {
    let mut members = Members::default();
    let place = SocketAddr::from(([192, 0, 2, 1], 1));
    let report_of = |state| Report { receivers: 9, done: 9, ..because(0, 1, state) };
    members.on_report(&report_of(MemberState::Receiving), 1, place, at(0));
    assert_eq!((members.receivers(), members.verified()), (1, 0));
    members.on_report(&report_of(MemberState::Done), 2, place, at(1));
    assert_eq!((members.receivers(), members.verified()), (1, 1));
}
