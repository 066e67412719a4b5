//! Properties that every discipline must have under any load.
//!
//! - Each packet arrives or is lost, and is counted once.
//! - Packets leave at least one transmission time apart.
//! - Only packets that permit marks are marked.
//! - The buffer holds at most its limit.
//! - Equal seeds give equal decisions.
//! - A link that is mostly idle drops no packets.
//! - A silence of a year is skipped without a call per period.
//! - Counts stay consistent when links fail, change and recover.
//!
//! A crate with its own discipline calls [`check`] in a test.

use crate::{Dequeued, Link, LinkSpec, LossCause, OfferResult, QueueSpec, Ticket};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use std::collections::BTreeMap;

/// Checks all properties of a discipline whose buffer holds at most `limit` packets.
///
/// # Panics
/// If the discipline lacks a property; the message names it.
pub fn check(queue: QueueSpec, limit: u32) {
    counts_each_packet_once(queue);
    keeps_transmission_times(queue);
    keeps_its_limit(queue, limit);
    is_deterministic(queue);
    drops_nothing_on_an_idle_link(queue);
    skips_silence(queue);
    survives_changes_of_the_link(queue);
}

/// Returns a link of 1 MB/s.
fn link(queue: QueueSpec, seed: u64) -> Link {
    Link::new(&LinkSpec::new(Rate::from_mbps(8.0), Span::from_millis(3), queue), Rng::new(seed, 1))
}

/// Fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Arrived { at: Time, marked: bool },
    Lost(LossCause),
}

/// A link, its waiting packets and the fates of the other packets.
struct Driver {
    link: Link,
    waiting: BTreeMap<Ticket, usize>,
    ends: BTreeMap<usize, End>,
}

impl Driver {
    fn new(link: Link) -> Driver {
        Driver { link, waiting: BTreeMap::new(), ends: BTreeMap::new() }
    }

    fn end(&mut self, id: usize, end: End) {
        assert_eq!(self.ends.insert(id, end), None, "packet {id} ends once");
    }

    fn advance(&mut self, now: Time) {
        while let Some(news) = self.link.dequeue(now) {
            let (ticket, end) = match news {
                Dequeued::Arrives { ticket, at, marked } => (ticket, End::Arrived { at, marked }),
                Dequeued::Lost { ticket, cause } => (ticket, End::Lost(cause)),
            };
            let id = self.waiting.remove(&ticket).expect("it waited");
            self.end(id, end);
        }
    }

    fn offer(&mut self, now: Time, id: usize, size: u16, flow: u32, ecn_capable: bool) {
        self.advance(now);
        match self.link.offer(now, size, flow, ecn_capable) {
            OfferResult::Arrives { at, marked } => self.end(id, End::Arrived { at, marked }),
            OfferResult::Queued(ticket) => assert_eq!(self.waiting.insert(ticket, id), None),
            OfferResult::Lost(cause) => self.end(id, End::Lost(cause)),
        }
        self.advance(now);
    }
}

/// Offers bursts, pauses, and packets of several sizes and flows; every third packet may be marked. Returns the maximum number of
/// waiting packets.
fn load(driver: &mut Driver, seed: u64, packets: usize) -> u32 {
    let mut rng = Rng::new(seed, 2);
    let (mut now, mut most) = (Time::ZERO, 0);
    for id in 0..packets {
        let crowded = (id / 2000) % 3 == 1;
        let mean = if crowded { 0.0005 } else { 0.0012 };
        let gap = if rng.chance(0.001) { 3.0 } else { rng.exponential(mean) };
        now += Span::from_secs_f64(gap);
        let size = [1000, 1000, 1000, 400, 1500][rng.below(5) as usize];
        driver.offer(now, id, size, rng.below(6) as u32, id % 3 == 0);
        most = most.max(driver.link.waiting(now).0);
    }
    driver.advance(now + Span::from_secs(100));
    most
}

/// Checks that each packet arrives or is lost, and that only packets that permit marks are marked.
fn counts_each_packet_once(queue: QueueSpec) {
    for seed in 0..4 {
        let mut driver = Driver::new(link(queue, seed));
        load(&mut driver, seed, 12_000);
        assert!(driver.waiting.is_empty() && driver.ends.len() == 12_000, "{queue}");
        let count =
            |wanted: &dyn Fn(&End) -> bool| driver.ends.values().filter(|end| wanted(end)).count() as u64;
        let counts = driver.link.counts();
        assert_eq!(counts.offered, 12_000, "{queue}");
        assert_eq!(count(&|end| matches!(end, End::Arrived { .. })), counts.accepted, "{queue}");
        assert_eq!(count(&|end| matches!(end, End::Arrived { marked: true, .. })), counts.marked, "{queue}");
        assert_eq!(count(&|end| matches!(end, End::Lost(_))), counts.overflow + counts.early, "{queue}");
        assert!(queue.marks() || counts.marked == 0, "{queue} marks nothing");
        let wrong = driver
            .ends
            .iter()
            .find(|(id, end)| matches!(end, End::Arrived { marked: true, .. }) && *id % 3 != 0);
        assert_eq!(wrong, None, "{queue}: marks go to those that allow them");
    }
}

/// Checks that packets leave at least one transmission time apart.
fn keeps_transmission_times(queue: QueueSpec) {
    let mut driver = Driver::new(link(queue, 7));
    load(&mut driver, 7, 6000);
    let mut times: Vec<Time> = driver
        .ends
        .values()
        .filter_map(|end| if let End::Arrived { at, .. } = end { Some(*at) } else { None })
        .collect();
    times.sort();
    let near = times.windows(2).map(|pair| pair[1].since(pair[0])).min().expect("packets arrive");
    assert!(near >= Span::from_micros(400), "{queue}: {near:?}, but 400 bytes take 0.4 ms");
}

/// Checks that packets wait, and at most this number.
fn keeps_its_limit(queue: QueueSpec, limit: u32) {
    let mut driver = Driver::new(link(queue, 3));
    let most = load(&mut driver, 3, 12_000);
    assert!((1..=limit).contains(&most), "{queue}: {most}");
}

/// Checks that equal seeds give equal decisions.
fn is_deterministic(queue: QueueSpec) {
    let ends = |seed| {
        let mut driver = Driver::new(link(queue, seed));
        load(&mut driver, 5, 6000);
        driver.ends
    };
    assert!(ends(1) == ends(1), "{queue}");
}

/// Checks that no packet is dropped if one arrives every 10 ms and takes a millisecond.
fn drops_nothing_on_an_idle_link(queue: QueueSpec) {
    let mut driver = Driver::new(link(queue, 1));
    for id in 0..3000 {
        driver.offer(Time::ZERO + Span::from_millis(10 * id as u64), id, 1000, id as u32 % 3, true);
    }
    let lost = driver.ends.values().filter(|end| matches!(end, End::Lost(_))).count();
    assert_eq!(lost, 0, "{queue}");
}

/// Checks that a silence of a year is skipped, and that a packet after it arrives.
fn skips_silence(queue: QueueSpec) {
    let mut driver = Driver::new(link(queue, 1));
    load(&mut driver, 1, 2000);
    let from = Time::from_secs_f64(1000.0);
    // The second packet follows a silence in which all probabilities fall to zero, the third packet a silence of a year.
    for (id, after) in [(5000, 0.0), (5001, 2000.0), (5002, 32e6)] {
        driver.offer(from + Span::from_secs_f64(after), id, 1000, 0, true);
    }
    driver.advance(from + Span::from_secs_f64(33e6));
    assert!(matches!(driver.ends[&5002], End::Arrived { .. }), "{queue}");
}

/// Checks that counts stay consistent when the link fails, changes and recovers.
fn survives_changes_of_the_link(queue: QueueSpec) {
    let mut driver = Driver::new(link(queue, 2));
    let mut rng = Rng::new(6, 6);
    let mut now = Time::ZERO;
    for id in 0..6000 {
        now += Span::from_secs_f64(rng.exponential(0.0008));
        driver.advance(now);
        match rng.below(1000) {
            0 => {
                let down = driver.link.set_down(now);
                // Packets that would have arrived after `kept_until` are lost.
                for end in driver.ends.values_mut() {
                    if matches!(end, End::Arrived { at, .. } if *at > down.kept_until) {
                        *end = End::Lost(LossCause::Down);
                    }
                }
                driver.advance(now);
            }
            1 | 2 => driver.link.set_up(),
            3 => drop(driver.link.set_rate(now, Rate::from_mbps(0.5 + 16.0 * rng.unit()))),
            4 => driver.link.set_delay(now, Span::from_micros(rng.below(9000))),
            _ => {}
        }
        driver.offer(now, id, 1000, rng.below(6) as u32, id % 2 == 0);
    }
    driver.link.set_up();
    driver.advance(now + Span::from_secs(1000));
    assert_eq!((driver.ends.len(), driver.waiting.len()), (6000, 0), "{queue}");
    assert_eq!(driver.link.counts().offered, 6000, "{queue}");
    assert_eq!(driver.link.waiting(now + Span::from_secs(1000)), (0, 0), "{queue}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every discipline, with its variants and a buffer of 20 packets.
    const ALL: &[&str] = &[
        "droptail,20",
        "fifo,limit=20",
        "fifo,limit=20,drops=front",
        "red,limit=20,min=3,max=9,w=0.1",
        "red,limit=20,min=3,max=9,w=0.1,ecn,adaptive",
        "red,limit=20,bytes,mean=800,min=3,max=9,w=0.1",
        "fred,limit=20,w=0.1",
        "fred,limit=20,w=0.1,ecn",
        "sred,limit=20,list=50",
        "sred,limit=20,list=50,mode=simple,ecn",
        "sred,limit=20,list=50,mode=drcl",
        "blue,limit=20,freeze=10ms",
        "blue,limit=20,freeze=10ms,ecn",
        "sfb,limit=20,size=4,increase=0.1",
        "bred,limit=20",
        "bred,limit=20,ecn",
        "rem,limit=20,target=5,gamma=0.1",
        "rem,limit=20,target=5,gamma=0.1,ecn",
        "rem,limit=20,target=5,gamma=0.1,ecn,marks=departure",
        "pi,limit=20,target=5",
        "pi,ns2,limit=20,target=5,ecn",
        "pi,limit=20,target=5,bytes,flows=3",
        "avq,limit=20,order=ns2",
        "avq,limit=20,order=ns2,ecn",
        "avq,limit=20,ecn",
        "avq,limit=20,packets",
        "paqm,limit=20,target=5",
        "paqm,limit=20,target=5,ecn,solution=clamp,predictor=adaptive",
        "paqm,limit=20,target=5,bytes,solution=literal,b0=0.1,b1=0.25,predictor=last",
        "sfc,limit=20,target=5,k1=0.01",
        "sfc,integral,limit=20,target=5,k1=0.01,ecn",
        "sfc,limit=20,target=5,measured=window:0.05,bias=design",
        "pie,limit=20,burst=0,target=5ms",
        "pie,limit=20,burst=0,target=5ms,ecn,delay=length,even",
        "codel,limit=20",
        "codel,limit=20,ecn",
        "cobalt,limit=20",
        "cobalt,limit=20,ecn,blue=20ms",
        "drr,limit=20",
        "fq_codel,limit=20,queues=8",
        "fq_codel,limit=20,ecn,quantum=300",
        "dualpi2,limit=20,target=5ms",
    ];

    #[test]
    fn conformance_tests_cover_every_discipline() {
        for (form, _) in QueueSpec::known() {
            let name = form.split(['[', ',']).next().expect("a name");
            let there = ALL.iter().any(|text| text.split(',').next() == Some(name));
            assert!(there, "{name} is not held to what all disciplines keep to");
        }
    }

    fn all() -> impl Iterator<Item = (&'static str, QueueSpec)> {
        ALL.iter().map(|text| (*text, text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))))
    }

    #[test]
    fn every_packet_is_delivered_or_lost_and_is_counted_once() {
        all().for_each(|(_, queue)| counts_each_packet_once(queue));
    }

    #[test]
    fn packets_leave_at_least_one_transmission_time_apart() {
        all().for_each(|(_, queue)| keeps_transmission_times(queue));
    }

    #[test]
    fn queued_packets_never_exceed_the_buffer() {
        for (text, queue) in all() {
            // If bytes are counted, a packet of 400 bytes occupies only a part of the unit of 1000 or 800 bytes.
            keeps_its_limit(queue, if text.contains("bytes") { 50 } else { 20 });
        }
    }

    #[test]
    fn equal_seeds_give_equal_decisions() {
        all().for_each(|(_, queue)| is_deterministic(queue));
    }

    #[test]
    fn link_that_is_mostly_idle_drops_no_packets() {
        // Skip a designed bias: with it, SFC drops packets for the configured number of flows, regardless of the real number.
        let idle = all().filter(|(text, _)| !text.contains("bias=design"));
        idle.for_each(|(_, queue)| drops_nothing_on_an_idle_link(queue));
    }

    #[test]
    fn silence_of_a_year_is_skipped_without_a_call_per_period() {
        all().for_each(|(_, queue)| skips_silence(queue));
    }

    #[test]
    fn counts_stay_consistent_when_links_fail_change_and_recover() {
        all().for_each(|(_, queue)| survives_changes_of_the_link(queue));
    }
}
