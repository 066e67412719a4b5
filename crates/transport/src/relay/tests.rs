//! Tests of the contract between the two sides of a relay, without sessions.

use super::*;
use crate::receiver::Relaying as _;
use faircast_core::packet::{Data, Flags, Layer, Mark, Payload, Signal};
use faircast_wire::{Name, TransferId};
use fetches::{MAX_QUEUED, MAX_SYMBOLS};
use proptest::prelude::*;
use registry::Child;

fn packet(block: u32, symbol: u32, payload: &[u8]) -> DataPacket<'_> {
    let data = Data {
        seq: Seq(0),
        sent_at: Time::ZERO,
        rate: 0.0,
        payload: Payload { block, symbol },
        flags: Flags::default(),
        signal: Signal::None,
        mark: Mark::None,
    };
    DataPacket { data, layer: Layer(0), symbols: 4, payload }
}

fn announce(last: u8, hops: u8) -> Announce {
    let place = SocketAddr::from(([10, 0, 0, last], 4000));
    Announce {
        salt: [0; 16],
        unix_secs: 0,
        started: 0,
        source: place,
        parent: place,
        transfer: TransferId([0; 16]),
        stream_len: None,
        manifest_len: 1,
        symbol_size: 8,
        packet_size: 100,
        symbols_per_block: 8,
        first_block: 0,
        next_seq: 0,
        scheme: 1,
        layers: 1,
        options: Name::EMPTY,
        hops,
        spread_ms: 10,
        flags: 0,
        name: Name::EMPTY,
        signer: 0,
        to_hosts: Name::EMPTY,
        series: None,
        dry_run: None,
        signature: None,
    }
}

/// Returns a receiver that has seen packets up to `seen`, but has no symbols.
fn asker(seen: u64) -> Requester<'static> {
    Requester { seen: Seq(seen), held: None, wrong: false }
}

/// Returns a receiver as in `asker`, whose symbols failed verification.
fn finds_wrong(seen: u64) -> Requester<'static> {
    Requester { wrong: true, ..asker(seen) }
}

#[test]
fn relay_refuses_loops_deep_chains_and_duplicate_sessions() {
    let process = RelayHandle::default();
    let [one, two] = [0, 1].map(|_| SessionHandle::new(process.clone(), 1, 1 << 20, None));
    one.announces_from(SocketAddr::from(([10, 0, 0, 9], 4000)));
    assert!(one.may_follow(SessionId(7), &announce(1, 0)));
    assert!(!one.may_follow(SessionId(7), &announce(9, 1)), "that is what it announces itself");
    assert!(!two.may_follow(SessionId(7), &announce(9, 1)), "or another of its sessions");
    assert!(!one.may_follow(SessionId(7), &announce(1, MAX_HOPS)));
    assert!(one.claim(SessionId(7)) && !two.claim(SessionId(7)));
    assert!(!two.may_follow(SessionId(7), &announce(1, 0)));
    one.lock().announce = Some((SessionId(7), announce(1, 0)));
    assert!(one.may_follow(SessionId(7), &announce(2, 3)), "its own session, from another parent");
    one.release();
    assert!(two.claim(SessionId(7)));
}

const RELAY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 5778);

fn branch_to(shared: &SessionHandle, place: usize, to: SocketAddr) -> Branch {
    let setup = BranchSetup {
        me: ReceiverId::new(3).expect("it is not zero"),
        boot: 1,
        key: None,
        to,
        local: RELAY,
        overhead: 28,
        max: None,
        ttl: 1,
        idle_timeout: std::time::Duration::from_secs(10),
        spread: Span::from_millis(10),
        seed: 1,
        receiver_events: crate::config::ReceiverEvents::Off,
        to_host: true,
    };
    Branch::new(shared.clone(), place, setup)
}

/// Attaches process `number` from this address, and sends the relay's token back to the relay. Returns whether the relay grants
/// service.
fn asks(shared: &SessionHandle, number: u64, from: SocketAddr) -> bool {
    let id = ReceiverId::new(10 + number).expect("it is not zero");
    let mut attach =
        faircast_wire::Attach { from: id, token: [0; 16], invitation: 0, relay: false, host: Name::EMPTY };
    let reported = shared.at_port(&attach, (from, RELAY)).expect("it is told to say it again");
    let Ok((_, faircast_wire::Message::Token(token))) =
        faircast_wire::parse(&reported, &faircast_wire::Newest::default())
    else {
        panic!("no token");
    };
    attach.token = token.token;
    shared.at_port(&attach, (from, RELAY)).is_some()
}

/// The host attaches with a different ID each time. Each ID counts as a different process, and the earlier process loses its
/// place.
#[test]
fn host_gets_no_extra_places_by_changing_its_receiver_id() {
    let shared = SessionHandle::new(RelayHandle::default(), 0, 1 << 20, None);
    shared.take_children(2, Default::default());
    shared.lock().announce = Some((SessionId(7), announce(1, 0)));
    let mut branches: Vec<Branch> = Vec::new();
    for number in 0..10_000_u64 {
        asks(&shared, number, SocketAddr::from(([10, 0, 1, (number % 3) as u8], 5778)));
        let place = |(place, _, address)| branch_to(&shared, place, address);
        branches.extend(shared.grown().into_iter().map(place));
        branches.retain(|branch| !crate::endpoint::Endpoint::is_finished(branch));
        assert!(branches.len() <= 4, "{} branches", branches.len());
        assert!(shared.places() <= 6, "{} places after {number}", shared.places());
        assert!(shared.lock().served.len() <= 4, "{} hosts", shared.lock().served.len());
    }
    assert!(!branches.is_empty(), "nobody was ever served");
}

/// Attaches one host repeatedly from 32 ports, although there are only 16 places. Returns for each of five other hosts whether it
/// gets a place.
fn crowded(shown: crate::places::Standing, take_part: bool) -> Vec<bool> {
    let shared = SessionHandle::new(RelayHandle::default(), 0, 1 << 20, None);
    shared.take_children(16, shown);
    shared.lock().announce = Some((SessionId(7), announce(1, 0)));
    assert!(shared.claim(SessionId(7)));
    let crowd = |number: u64| SocketAddr::from(([10, 0, 1, 1], 5_000 + number as u16));
    let mut branches: Vec<Branch> = Vec::new();
    let take_in = |branches: &mut Vec<Branch>| {
        let place = |(place, _, address)| branch_to(&shared, place, address);
        branches.extend(shared.grown().into_iter().map(place));
        branches.retain(|branch| !crate::endpoint::Endpoint::is_finished(branch));
    };
    let press = |branches: &mut Vec<Branch>| {
        for number in 0..32 {
            asks(&shared, number, crowd(number));
            take_in(branches);
            if take_part {
                shared.process.note_served(crowd(number));
            }
        }
    };
    press(&mut branches);
    let others = [2, 3, 4, 5, 6].map(|last| SocketAddr::from(([10, 0, 1, last], 5778)));
    let served = others.iter().zip(100..).map(|(other, number)| {
        let is_served = asks(&shared, number, *other);
        take_in(&mut branches);
        press(&mut branches);
        assert!(branches.len() <= 16, "{}", branches.len());
        assert_eq!(is_served, branches.iter().any(|branch| branch.serves(*other)));
        shared.process.note_served(*other);
        is_served
    });
    served.collect()
}

#[test]
fn host_without_the_key_cannot_fill_all_places_from_many_ports() {
    use crate::places::Standing::{HasKey, TakesPart};
    assert_eq!(crowded(HasKey, false), [true; 5], "no key was shown");
    assert_eq!(crowded(TakesPart, false), [true; 5]);
    assert_eq!(crowded(TakesPart, true), [true, true, true, true, false], "a quarter is for others");
    assert_eq!(crowded(HasKey, true), [false; 5], "children with the key stay");
}

#[test]
fn own_relay_limits_its_source_to_the_fastest_branch() {
    let shared = SessionHandle::new(RelayHandle::default(), 2, 64 << 20, None);
    shared.hold_above(10 * 64);
    let mut passing = shared.lock();
    passing.announce = Some((SessionId(1), announce(1, 0)));
    for block in 0..100 {
        passing.on_symbol(&packet(block, 0, &[0; 8]));
    }
    passing.on_status(&Status { complete_to: 100, ..Status::default() });
    assert!(!passing.is_ahead(), "nobody is there");
    for branch in 0..2 {
        passing.branches[branch].tally =
            Tally { receivers: 1, unfinished: 1, answering: 1, ..Tally::default() };
    }
    assert!(passing.is_ahead(), "blocks of 8 symbols of 8 bytes, 100 of them");
    passing.branches[1].schedule.send_on_request();
    assert!(!passing.is_ahead(), "one has no need of them");
    passing.branches[1].tally.answering = 0;
    assert!(passing.is_ahead(), "one that is not heard does not count");
    passing.max_ahead = None;
    assert!(!passing.is_ahead(), "another's source is not held back");
}

#[test]
fn fetches_for_the_requests_of_one_child_are_bounded() {
    let shared = SessionHandle::new(RelayHandle::default(), 1, 64 << 20, None);
    let mut passing = shared.lock();
    for block in 0..3 {
        for symbol in 0..4 {
            assert_ne!(passing.on_symbol(&packet(block, symbol, &[0; 8])), Added::Useless);
        }
    }
    passing.announce = Some((SessionId(1), announce(1, 0)));
    passing.passed = 100_000;
    passing.branches[0].schedule.on_passed(100_000);
    let mut sent = 0;
    for block in 0..200_000 {
        sent += usize::from(passing.request(0, block, u16::MAX, &asker(0)));
    }
    let fetched: usize = passing.fetches.iter().map(|(_, symbols)| usize::from(symbols)).sum();
    assert!(fetched <= MAX_SYMBOLS + 8, "{fetched} symbols");
    assert!(sent <= MAX_SYMBOLS + MAX_QUEUED, "{sent}");
    for page in 0..1_000_000 {
        passing.request_pages(0, page, 1, &asker(0));
    }
    assert!(passing.wanted_pages.len() <= MAX_WANTED_PAGES, "{}", passing.wanted_pages.len());
    let mut needs = Vec::new();
    passing.needs(&mut needs);
    assert!(needs.is_sorted_by(|a, b| a.0 < b.0), "one need for a block, in order");
}

/// An event at a relay.
#[derive(Debug, Clone)]
enum Step {
    Comes { block: u32, symbol: u32, flags: Flags },
    Asks { branch: usize, block: u32, symbols: u16, wrong: bool },
    Leaves { branch: usize, packets: u8 },
    Status { complete_to: u32 },
    Goes { block: u32 },
    Late,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..6_u32, 0..9_u32, prop_oneof![Just(Flags::default()), Just(Flags::REPAIR)])
            .prop_map(|(block, symbol, flags)| Step::Comes { block, symbol, flags }),
        3 => (0..4_usize, 0..6_u32, 1..6_u16, any::<bool>())
            .prop_map(|(branch, block, symbols, wrong)| Step::Asks { branch, block, symbols, wrong }),
        2 => (0..4_usize, 0..20_u8).prop_map(|(branch, packets)| Step::Leaves { branch, packets }),
        1 => (0..7_u32).prop_map(|complete_to| Step::Status { complete_to }),
        1 => (0..6_u32).prop_map(|block| Step::Goes { block }),
        1 => Just(Step::Late),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #[test]
    fn symbols_that_a_branch_waits_for_are_fetched(steps in steps()) {
        let shared = SessionHandle::new(RelayHandle::default(), 1, 1 << 20, None);
        shared.lock().announce = Some((SessionId(1), announce(1, 0)));
        let mut seq = 0;
        for step in steps {
            if matches!(step, Step::Late) && shared.lock().branches.len() < 4 {
                let place = SocketAddr::from(([10, 0, 0, 8], 4000 + shared.lock().branches.len() as u16));
                let id = ReceiverId::new(7).expect("it is not zero");
                shared.add_branch(&Child { address: place, local: place, host: String::new(), id, invitation: 0 });
            }
            let mut passing = shared.lock();
            let branches = passing.branches.len();
            match step {
                Step::Comes { block, symbol, flags } => {
                    passing.passed = passing.passed.max(block);
                    let mut packet = packet(block, symbol, &[0; 8]);
                    packet.data.flags = flags;
                    passing.on_symbol(&packet);
                }
                Step::Asks { branch, block, symbols, wrong } => {
                    passing.request(branch % branches, block, symbols, &Requester { wrong, ..asker(seq) });
                }
                Step::Leaves { branch, packets } => {
                    for _ in 0..packets {
                        let Some(pick) = passing.pick(branch % branches) else { break };
                        passing.sent(branch % branches, pick, Seq(seq));
                        seq += 1;
                    }
                }
                Step::Status { complete_to } => {
                    passing.on_status(&Status { complete_to, ..Status::default() });
                }
                Step::Goes { block } => passing.lose(block),
                Step::Late => {}
            }
            for block in 0..6 {
                let fetched = passing.fetches.iter().find(|(fetched, _)| *fetched == block).map_or(0, |(_, n)| n);
                for branch in &passing.branches {
                    let awaited = branch.schedule.awaited(block);
                    prop_assert!(awaited <= fetched, "block {block}: {awaited} awaited, {fetched} fetched");
                }
            }
        }
    }
}

#[test]
fn nothing_is_fetched_after_the_upstream_session_ended() {
    let shared = SessionHandle::new(RelayHandle::default(), 1, 1 << 20, None);
    shared.lock().fetches.want(0, 4);
    assert!(shared.wants_more());
    shared.end(false);
    assert!(!shared.wants_more(), "nobody would fetch it, and whoever waits for that would never wait long");
}

#[test]
fn fetch_answered_with_cached_symbols_ends_and_serves_children() {
    let shared = SessionHandle::new(RelayHandle::default(), 1, 1 << 20, None);
    let mut passing = shared.lock();
    passing.passed = 1;
    (0..4).for_each(|symbol| _ = passing.on_symbol(&packet(0, symbol, &[symbol as u8; 8])));
    while let Some(pick) = passing.pick(0) {
        passing.sent(0, pick, Seq(u64::from(pick.id)));
    }
    assert!(passing.request(0, 0, 1, &asker(3)), "one more than there are, so it is fetched");
    assert!(passing.pick(0).is_none());
    (0..4).for_each(|symbol| _ = passing.on_symbol(&packet(0, symbol, &[symbol as u8; 8])));
    assert!(!passing.fetches.wants(0), "that was the answer");
    assert!(passing.request(0, 0, 4, &asker(3)), "somebody who was started again needs all");
    let leaves = std::iter::from_fn(|| {
        let pick = passing.pick(0)?;
        passing.sent(0, pick, Seq(10 + u64::from(pick.id)));
        Some(pick.id)
    });
    assert_eq!(leaves.count(), 4);
}

/// Sends all waiting symbols of the first branch. Returns the symbols as (block, symbol).
fn leaves(passing: &mut RelayState, seq: &mut u64) -> Vec<(u32, u32)> {
    leaves_on(passing, 0, seq)
}

fn leaves_on(passing: &mut RelayState, branch: usize, seq: &mut u64) -> Vec<(u32, u32)> {
    let next = || {
        let pick = passing.pick(branch)?;
        passing.sent(branch, pick, Seq(*seq));
        *seq += 1;
        Some((pick.block, pick.id))
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn parent_without_confirmations_gets_the_count_of_completions() {
    let shared = SessionHandle::new(RelayHandle::default(), 1, 1 << 20, None);
    shared.lock().branches[0].tally = Tally { receivers: 3, done: 2, unnamed: 1, ..Tally::default() };
    let done = ReceiverId::new(7).expect("it is not zero");
    let answer = |fresh: &[ReceiverId], now| shared.lock().on_done(0, fresh, now);
    let counts = || shared.receivers();
    assert!(
        !answer(&[done], Time::ZERO).1 && shared.waits_for_confirmations(),
        "no parent has been heard yet"
    );
    assert_eq!(counts(), (3, 1), "of the other one nothing is said that could count twice");
    shared.on_confirmed(false, &[], Time::ZERO);
    assert_eq!(counts(), (3, 2));
    assert!(answer(&[done], Time::ZERO).1 && !shared.waits_for_confirmations());
    shared.on_confirmed(true, &[done], Time::ZERO);
    assert_eq!(answer(&[], Time::ZERO), (vec![done], false));
    assert!(!shared.waits_for_confirmations() && counts() == (3, 1));
    assert!(answer(&[], Time::ZERO + UNFED).1, "the source is not heard");
}

#[test]
fn relay_is_done_only_after_it_counts_confirmed_receivers_once() {
    let shared = SessionHandle::new(RelayHandle::default(), 2, 1 << 20, None);
    let done = ReceiverId::new(7).expect("not zero");
    let complete = Tally { receivers: 1, done: 1, ..Tally::default() };
    let is_done = || {
        let passing = shared.lock();
        passing.needs_nothing(passing.tally(), Time::ZERO, Time::ZERO + LINGER)
    };
    {
        let mut passing = shared.lock();
        (passing.blocks, passing.passed) = (Some(1), 1);
        assert!(passing.on_done(0, &[done], Time::ZERO).0.is_empty());
        passing.branches[0].tally = complete;
    }
    assert!(!is_done(), "the source has not confirmed the receiver");
    shared.on_confirmed(true, &[done], Time::ZERO);
    assert!(shared.receivers() == (1, 0) && !is_done(), "the receiver would be counted by number and by ID");
    {
        let mut passing = shared.lock();
        assert_eq!(passing.on_done(0, &[], Time::ZERO).0, [done]);
        passing.branches[0].tally = Tally { known: 1, ..complete };
        assert!(passing.branches[1].known.is_empty(), "this branch has no completed receivers");
    }
    assert!(shared.receivers() == (0, 0) && is_done());
}

/// Returns a session with this number of blocks of four symbols. All symbols were cached and corrupted, and then sent.
fn wrong_blocks(memory: usize, blocks: u32) -> (SessionHandle, u64) {
    let shared = SessionHandle::new(RelayHandle::default(), 2, memory, None);
    let mut passing = shared.lock();
    passing.announce = Some((SessionId(1), announce(1, 0)));
    for block in 0..blocks {
        (0..4).for_each(|symbol| _ = passing.on_symbol(&packet(block, symbol, &[0xbd; 8])));
    }
    passing.on_status(&Status { complete_to: blocks, blocks: Some(blocks), ..Status::default() });
    passing.branches.iter_mut().for_each(|branch| branch.tally.unfinished = 1);
    let mut seq = 0;
    for branch in 0..2 {
        assert_eq!(leaves_on(&mut passing, branch, &mut seq).len(), 4 * blocks as usize);
    }
    drop(passing);
    (shared, seq)
}

#[test]
fn block_found_wrong_by_a_child_is_fetched_and_replaced() {
    let (shared, mut seq) = wrong_blocks(1 << 20, 1);
    let mut passing = shared.lock();
    for _ in 0..20 {
        assert!(passing.request(0, 0, 4, &asker(seq)));
        assert_eq!(leaves(&mut passing, &mut seq).len(), 4, "it was lost on the way each time");
    }
    assert!(!passing.fetches.wants(0) && !passing.is_wrong(0, 4));
    assert!(passing.request(0, 0, 2, &finds_wrong(seq)));
    assert!(leaves(&mut passing, &mut seq).is_empty(), "what is here is of no use there");
    assert_eq!(passing.fetches.left(0), 4, "all of the block");
    assert!(passing.is_wrong(0, 4), "which is stated above");
    assert!(passing.request(1, 0, 4, &asker(seq)), "others are served meanwhile");
    assert_eq!(leaves_on(&mut passing, 1, &mut seq).len(), 4);
    (4..6).for_each(|symbol| _ = passing.on_symbol(&packet(0, symbol, &[7; 8])));
    assert!(!passing.is_wrong(0, 2), "what comes now is new");
    assert_eq!(leaves(&mut passing, &mut seq), [(0, 4), (0, 5)]);
    let mut bytes = Vec::new();
    assert!((0..2).all(|at| passing.cache.symbol(0, at, &mut bytes) && bytes == [7; 8]));
    assert!(!passing.cache.symbol(0, 2, &mut bytes), "nothing of the wrong ones is left");
    passing.request(0, 0, 2, &finds_wrong(seq - 2));
    assert!(!passing.is_wrong(0, 2), "stated before the new ones came there");
}

#[test]
fn wrong_block_is_fetched_when_the_fetch_limit_allows_it() {
    let (shared, mut seq) = wrong_blocks(24 * 8, 4);
    let mut passing = shared.lock();
    (1..4).for_each(|block| _ = passing.request(0, block, 4, &asker(seq)));
    assert!(!passing.may_fetch(0), "so much waits");
    assert!(passing.request(0, 0, 4, &finds_wrong(seq)));
    assert!(!passing.fetches.wants(0));
    leaves(&mut passing, &mut seq);
    assert!(passing.fetches.wants(0) && passing.is_wrong(0, 4));
}

#[test]
fn forged_requests_cause_at_most_one_fetch_of_each_symbol() {
    let fetched = |by: &Requester<'_>, is_here: bool| {
        let (shared, _) = wrong_blocks(1 << 20, 100);
        let mut passing = shared.lock();
        if !is_here {
            (0..100).for_each(|block| passing.lose(block));
        }
        for _ in 0..10 {
            (0..200).for_each(|block| _ = passing.request(0, block, 4, by));
        }
        passing.fetches.iter().map(|(_, symbols)| usize::from(symbols)).sum::<usize>()
    };
    assert_eq!(fetched(&asker(1_000), true), 0);
    let lacks_everything = fetched(&asker(1_000), false);
    assert_eq!(lacks_everything, 400);
    assert_eq!(fetched(&finds_wrong(1_000), true), lacks_everything);
    assert_eq!(fetched(&finds_wrong(1_000), false), lacks_everything);
}

#[test]
fn request_for_a_wrong_block_is_refused_after_upstream_ended() {
    let (shared, mut seq) = wrong_blocks(1 << 20, 1);
    shared.end(false);
    let mut passing = shared.lock();
    assert!(!passing.request(0, 0, 4, &finds_wrong(seq)));
    assert!(leaves(&mut passing, &mut seq).is_empty(), "so the branch is idle and ends");
    assert!(passing.request(0, 0, 4, &asker(seq)), "others may have lost it");
}

#[test]
fn page_found_wrong_by_a_child_is_fetched_and_replaced() {
    let shared = SessionHandle::new(RelayHandle::default(), 1, 1 << 20, None);
    let mut passing = shared.lock();
    passing.on_status(&Status { complete_to: 20, blocks: Some(20), ..Status::default() });
    let page =
        |first_block, byte| Hashes { first_block, signature: [byte; 64], hashes: vec![[byte; 32]; 10] };
    passing.on_page(&page(0, 1));
    passing.on_page(&page(3, 0xbd));
    for _ in 0..20 {
        while passing.next_page(0).is_some() {}
        passing.request_pages(0, 5, 2, &asker(0));
        assert_eq!(passing.next_page(0), Some(page(3, 0xbd)), "it was lost on the way each time");
        assert!(passing.wanted_pages.is_empty());
    }
    passing.request_pages(0, 5, 1, &finds_wrong(0));
    assert_eq!(passing.next_page(0), None, "what is here is of no use there");
    assert!(passing.is_wrong(5, 0) && passing.fetches.has_more);
    passing.on_page(&page(0, 2));
    assert!(!passing.is_wrong(5, 0));
    assert_eq!(passing.next_page(0), Some(page(0, 2)));
    passing.request_pages(0, 5, 1, &asker(0));
    assert_eq!(passing.next_page(0), Some(page(0, 2)));
}
