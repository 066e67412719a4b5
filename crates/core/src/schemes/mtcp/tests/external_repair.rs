//! Agents in sessions whose delivery repairs losses: missing packets never arrive under their numbers.

use super::*;
use crate::node::{Effect, Receiver as _, Relay as _, To};
use crate::packet::{Arrival, Body, Flags, Mark, Order, OrderContent};

/// An agent with the settings of a real network, and its driver.
type Driven = Ear<Agent>;

impl Driven {
    fn new() -> Driven {
        Ear::by_hand(Agent::new(id(99), &Config::transport(1500)), Time::from_secs_f64(1.0))
    }

    fn receives(&mut self, seq: u64) -> Vec<Effect> {
        self.now += Span::from_millis(1);
        let data = bench::data(seq, self.now, Mark::Window { window: 20.0, rtt: 0.01 });
        let arrival = Arrival { size: 1500, ..Arrival::default() };
        self.call(|agent, cx| agent.on_data(&data, Layer(0), arrival, cx))
    }

    fn takes(&mut self, report: Report) -> Vec<Effect> {
        self.now += Span::from_millis(1);
        self.call(|agent, cx| agent.on_report(&report, cx))
    }

    fn waits(&mut self, span: Span) -> Vec<Effect> {
        let (end, mut all) = (self.now + span, Vec::new());
        while self.receiver.deadline() <= end {
            self.now = self.now.max(self.receiver.deadline()) + Span::from_millis(1);
            all.extend(self.call(|agent, cx| agent.on_deadline(cx)));
        }
        self.now = self.now.max(end);
        all
    }
}

/// Returns the packets that these effects send, with their destinations.
fn sent(effects: &[Effect]) -> Vec<(To, u64, bool)> {
    let data = effects.iter().filter_map(|effect| match effect {
        Effect::Send { to, packet } => match packet.body {
            Body::Data(data) => Some((*to, data.seq.0, data.flags.has(Flags::REPAIR))),
            _ => None,
        },
        _ => None,
    });
    data.collect()
}

fn orders(effects: &[Effect]) -> Vec<Order> {
    let orders = effects.iter().filter_map(|effect| match effect {
        Effect::Send { packet, .. } => match packet.body {
            Body::Order(order) => Some(order),
            _ => None,
        },
        _ => None,
    });
    orders.collect()
}

/// Returns the lowest awaited packet of the last summary.
fn low(effects: &[Effect]) -> Option<u64> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Report(Report { content: ReportContent::Summary { echo, lag, .. }, .. }) => {
            Some(echo.seq.0 + 1 - u64::from(*lag))
        }
        _ => None,
    })
}

#[test]
fn loss_is_repaired_if_a_parent_has_the_packet() {
    let mut agent = Driven::new();
    let mut all = Vec::new();
    for seq in 0..2 {
        all.extend(agent.receives(seq));
    }
    all.extend(agent.takes(all_up_to(1, 1)));
    // The agent misses packet 5; the child misses packets 5 and 9.
    for seq in (2..20).filter(|seq| *seq != 5) {
        all.extend(agent.receives(seq));
    }
    assert!(agent.receiver.is_missed_by(id(1), Seq(9)));
    all.extend(agent.takes(lacking(1, 19, 15, &[(9, 1), (5, 1)])));
    all.extend(agent.waits(Span::from_millis(50)));
    assert_eq!(sent(&all), [(To::Child(id(1)), 9, true)]);
    assert_eq!(low(&all), Some(20), "what is lost is not on its way to anybody");
    all.clear();
    all.extend(agent.takes(lacking(1, 19, 15, &[(5, 1)])));
    assert!(!agent.receiver.is_missed_by(id(1), Seq(9)));
    for seq in 20..280 {
        all.extend(agent.receives(seq));
    }
    assert_eq!(sent(&all), []);
    assert!(!agent.receiver.is_missed_by(id(1), Seq(5)), "5 is given up");
}

#[test]
fn a_moved_child_gets_all_packets_that_the_parent_has() {
    let mut agent = Driven::new();
    agent.receives(0);
    agent.takes(all_up_to(1, 0));
    agent.takes(all_up_to(2, 0));
    // Packets 10 to 12 and 38 are lost upstream.
    for seq in (1..40).filter(|seq| !(10..13).contains(seq) && *seq != 38) {
        agent.receives(seq);
    }
    agent.takes(lacking(2, 39, 30, &[(38, 1), (10, 3)]));
    agent.receiver.move_child(id(1), agent.now);
    let mut effects = agent.waits(Span::from_millis(1));
    let mut got = [false; 40];
    got[0] = true;
    for _ in 0..200 {
        for order in orders(&effects).into_iter().filter(|order| order.to == id(1)) {
            let echo = Echo { seq: Seq(0), hold: Span::ZERO };
            let content = ReportContent::Answered { echo, number: order.number };
            effects.extend(agent.takes(Report { from: id(1), layer: Layer(0), content }));
            if let OrderContent::Join { group, .. } = order.content {
                assert_eq!(group, 1);
            }
        }
        for (_, seq, _) in sent(&effects) {
            got[seq as usize] = true;
        }
        let newest = got.iter().rposition(|got| *got).expect("the first one") as u64;
        let base = got.iter().position(|got| !*got).unwrap_or(40) as u64;
        let mut holes: Vec<(u64, u16)> = Vec::new();
        for seq in (base..newest).rev().filter(|seq| !got[*seq as usize]) {
            match holes.last_mut() {
                Some((first, count)) if *first == seq + 1 => (*first, *count) = (seq, *count + 1),
                _ => holes.push((seq, 1)),
            }
        }
        effects = agent.takes(lacking(1, newest, (newest + 1 - base) as u16, &holes));
        effects.extend(agent.waits(Span::from_millis(100)));
    }
    let missing: Vec<usize> = (0..40).filter(|seq| !got[*seq]).collect();
    assert_eq!(missing, [10, 11, 12, 38]);
}
