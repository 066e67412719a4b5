//! Comparison of the kernel's decisions with the coordinator's decisions, by replaying traces of `faircast-cocoon trace`.
//!
//! The programs in `crates/cocoon-bpf/bpf` are called by the kernel. They implement the same rules as the coordinator, in another
//! language and in whole packets. The traces contain their decisions on connections between network namespaces
//! (`bench/cocoon/trace`). For each decision, the test passes the kernel's numbers to the [`Coordinator`] and requires the same
//! result, rounded down to whole packets.

use faircast_core::time::Time;
use faircast_unicast::cocoon::{Config, Coordinator, MemberId, OwnReaction, Recovery, View};
use std::collections::BTreeMap;

const TRACES: [(&str, &str); 2] = [
    ("downloads", include_str!("cocoon_kernel/downloads.csv")),
    ("overload", include_str!("cocoon_kernel/overload.csv")),
];

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u64 = 0x7fff_ffff;

/// Number that stands for `una`. Sequence numbers in traces have 32 bits and wrap; the coordinator's numbers have 64 bits.
const BASE: u64 = 1 << 33;

/// One traced decision.
struct Event<'a> {
    trace: &'a str,
    line: usize,
    kind: &'a str,
    fields: BTreeMap<&'a str, u64>,
}

impl Event<'_> {
    fn get(&self, name: &str) -> u64 {
        self.fields[name]
    }

    /// Returns a sequence number of 64 bits, computed from its distance to `una`.
    fn sequence(&self, name: &str) -> u64 {
        let distance = (self.get(name) as u32).wrapping_sub(self.get("una") as u32) as i32;
        BASE.wrapping_add_signed(distance.into())
    }

    /// Returns the view of the connection before the decision.
    fn view(&self) -> View {
        let recovery = match self.get("state") {
            2 | 3 => Recovery::Fast,
            4 => Recovery::Timeout,
            _ => Recovery::None,
        };
        View {
            flight: self.get("flight") as f64,
            recovery,
            ..View::in_packets(BASE, self.sequence("nxt"), self.get("cwnd_before") as f64, self.threshold())
        }
    }

    fn threshold(&self) -> f64 {
        threshold(self.get("ssthresh_before"))
    }

    fn at(&self) -> String {
        format!("{}.csv, line {}", self.trace, self.line)
    }
}

fn threshold(packets: u64) -> f64 {
    if packets >= INFINITE { f64::INFINITY } else { packets as f64 }
}

/// Returns the window in whole packets, as the kernel counts them.
fn whole(window: f64) -> u64 {
    if window.is_finite() { window as u64 } else { INFINITE }
}

fn events() -> Vec<Event<'static>> {
    let mut all = Vec::new();
    for (trace, text) in TRACES {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().expect("a trace has a line of names").split(',').collect();
        for (number, line) in lines.enumerate() {
            let words: Vec<&str> = line.split(',').collect();
            let pairs = names.iter().zip(&words).filter(|(name, _)| **name != "kind");
            let fields = pairs.map(|(name, word)| (*name, word.parse().expect("a number"))).collect();
            let at = names.iter().position(|name| *name == "kind").expect("a trace has kinds");
            all.push(Event { trace, line: number + 2, kind: words[at], fields });
        }
    }
    all
}

/// Returns all decisions of one kind. Fails if there are fewer than `least` of them, because too few decisions prove nothing.
fn of_kind(kind: &str, least: usize) -> Vec<Event<'static>> {
    let found: Vec<_> = events().into_iter().filter(|event| event.kind == kind).collect();
    assert!(found.len() >= least, "only {} events of kind {kind}", found.len());
    found
}

/// Creates a group whose only member has this view.
fn group_of_one(view: View) -> (Coordinator, MemberId) {
    let mut coordinator = Coordinator::new(Config::published());
    let group = coordinator.open_group().expect("there is room");
    let member = coordinator.join(group, view).expect("there is room").member;
    (coordinator, member)
}

fn one_more(coordinator: &mut Coordinator, beside: MemberId, view: View) -> (MemberId, Option<(u64, u64)>) {
    let group = coordinator.group_of(beside).expect("it has not left");
    let joined = coordinator.join(group, view).expect("there is room");
    let start = joined.start.map(|start| {
        let both = start.cwnd.zip(start.ssthresh).expect("a start sets both");
        (whole(both.0), whole(both.1))
    });
    (joined.member, start)
}

const NOW: Time = Time::from_nanos(1_000_000_000);

#[test]
fn kernel_cuts_windows_of_other_members_like_the_coordinator() {
    for event in of_kind("applied", 100) {
        let f = event.get("reference") as f64;
        let lossy = View { flight: f, ..View::in_packets(BASE, BASE + 1, f, f64::INFINITY) };
        let (mut coordinator, loser) = group_of_one(lossy);
        let (other, _) = one_more(&mut coordinator, loser, View::in_packets(BASE, BASE, 1.0, 2.0));
        let view = event.view();
        coordinator.on_transmit(other, view);
        let own = match event.get("of") {
            1 => coordinator.on_loss(loser, lossy, BASE, NOW),
            2 => coordinator.on_timeout(loser, lossy, BASE, NOW, NOW),
            other => panic!("{}: {other} is no kind of cut", event.at()),
        };
        assert!(matches!(own, OwnReaction::Cut { .. }), "{}", event.at());
        let verdict = coordinator.take_verdict(other).expect("the other member is told");
        let cwnd = verdict.cwnd.map_or(event.get("cwnd_before"), whole);
        let ssthresh = verdict.ssthresh.map_or(event.get("ssthresh_before"), whole);
        let kernel =
            (event.get("cwnd_after"), event.get("ssthresh_after"), event.sequence("watermark_after"));
        assert_eq!(kernel, (cwnd, ssthresh, verdict.covered.max(view.nxt)), "{}", event.at());
    }
}

/// Returns the coordinator's decision on a member's own loss or timeout, computed with the kernel's watermark.
fn own(event: &Event<'_>, timeout: bool) -> OwnReaction {
    // The watermark of a new member is its first sequence number, so the member joins with the watermark as `una`.
    let watermark = event.sequence("watermark_before");
    let (mut coordinator, member) = group_of_one(View::in_packets(watermark, watermark, 1.0, 2.0));
    let view = event.view();
    match timeout {
        false => coordinator.on_loss(member, view, BASE, NOW),
        true => coordinator.on_timeout(member, view, BASE, NOW, NOW),
    }
}

#[test]
fn kernel_halves_a_window_after_a_loss_like_the_coordinator() {
    for (kind, least) in [("loss", 20), ("timeout", 1)] {
        for event in of_kind(kind, least) {
            let OwnReaction::Cut { ssthresh, .. } = own(&event, kind == "timeout") else {
                panic!("{}: the coordinator would not have cut", event.at())
            };
            assert_eq!(event.get("ssthresh_after"), whole(ssthresh), "{}", event.at());
            assert_eq!(event.sequence("watermark_after"), event.sequence("nxt"), "{}", event.at());
        }
    }
}

#[test]
fn kernel_ignores_only_losses_that_the_coordinator_covers() {
    for event in of_kind("ignored", 20) {
        assert_eq!(own(&event, false), OwnReaction::Covered, "{}", event.at());
    }
}

#[test]
fn kernel_chooses_initial_windows_like_the_coordinator() {
    let starts = of_kind("start", 20);
    assert!(starts.iter().any(|event| event.get("of") == 0), "no connection began alone");
    for event in starts {
        let new = View::in_packets(BASE, BASE, 10.0, f64::INFINITY);
        let kernel = (event.get("cwnd_after"), event.get("ssthresh_after"));
        if event.get("of") == 0 {
            // The first connection of a group begins with slow start and the kernel's own initial window.
            assert_eq!(kernel, (10, INFINITE), "{}", event.at());
            continue;
        }
        let limit = threshold(event.get("reference_ssthresh"));
        let reference = View::in_packets(BASE, BASE + 1, event.get("reference") as f64, limit);
        let (mut coordinator, member) = group_of_one(reference);
        let (_, start) = one_more(&mut coordinator, member, new);
        assert_eq!(Some(kernel), start, "{}", event.at());
    }
}

#[test]
fn kernel_applies_only_cuts_that_another_member_has_published() {
    let name = |event: &Event<'_>| (event.trace.to_owned(), event.get("group"), event.get("generation"));
    let mut published = BTreeMap::new();
    for event in events() {
        let kind = match event.kind {
            "loss" => 1,
            "timeout" => 2,
            _ => continue,
        };
        published.insert(name(&event), (kind, event.get("flight"), event.get("id")));
    }
    for event in of_kind("applied", 100) {
        let Some((kind, f, from)) = published.get(&name(&event)) else {
            panic!("{}: nobody published this cut", event.at())
        };
        assert_eq!((event.get("of"), event.get("reference")), (*kind, *f), "{}", event.at());
        assert_ne!(event.get("id"), *from, "{}: it applies its own cut", event.at());
    }
}
