//! Sessions of several layers: the subscriptions of members, and the layers that links carry.
//!
//! Every branch of such a session has a gate for each layer. A member that needs a layer requests it at the gate of its last hop.
//! A gate that opens requests the layer at the next gate towards the source. A gate without requests closes after a delay. Gates
//! open and close at entries of the calendar. All links before the last hops are therefore processed in the order of the calendar,
//! and never ahead of it. A host behind a last hop may run ahead, because its requests are entries of the calendar, too.

use super::Island;
use super::bundles::Logged;
use super::nanos::{NEVER, time};
use crate::calendar::{Calendar, Class, Entry};
use crate::events::Happening;
use crate::network::FlowId;
use crate::routes::{Branch, NONE};
use faircast_core::delivery::gaps::InOrder;
use faircast_core::node::{Cx, Receiver as _};
use faircast_core::packet::{Arrival, Layer};
use faircast_core::time::Time;

/// Bit in the number of a calendar entry that belongs to a gate instead of a change of a link.
pub const GATE: u32 = 1 << 31;
/// Bit in the number of a calendar entry that belongs to a joining member. With [`GATE`], the entry changes the request of the
/// member at the gate.
pub const ENTRANCE: u32 = 1 << 30;

/// A layer on a branch.
#[derive(Debug, Clone, Copy)]
struct Gate {
    /// Time at which the gate will open; [`NEVER`] if it is not going to open.
    opens: u64,
    /// Time at which the gate will close; later than `opens` if both are pending.
    closes: u64,
    /// The gate of the same layer on the next branch towards the source; [`NONE`] at the source.
    parent: u32,
    /// Number of requests for the layer: one for each next gate downstream that requests it and, at a last hop, one for the
    /// member.
    wanted: u32,
    /// Index of the session's latencies.
    latencies: u32,
    state: State,
    /// Whether the member at this last hop requests the layer.
    is_requested: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Shut,
}

/// All gates of a network.
#[derive(Debug, Clone, Default)]
pub struct MulticastForwarding {
    gates: Vec<Gate>,
    /// By layered session: time until a router forwards a requested layer, and time until it stops forwarding a released layer,
    /// nanoseconds.
    latencies: Vec<(u64, u64)>,
    /// Session and member of each join after the beginning of the run.
    entrances: Vec<(u32, u32)>,
    until: u64,
}

impl MulticastForwarding {
    pub fn new(until: u64) -> MulticastForwarding {
        MulticastForwarding { until, ..MulticastForwarding::default() }
    }

    /// Creates gates for `layers` layers on all branches from number `first` upwards, which are the branches of a session.
    pub fn build(&mut self, branches: &mut [Branch], first: u32, layers: u8, join: u64, leave: u64) {
        let latencies = self.latencies.len() as u32;
        self.latencies.push((join, leave));
        let gate = Gate {
            opens: NEVER,
            closes: NEVER,
            parent: NONE,
            wanted: 0,
            latencies,
            state: State::Shut,
            is_requested: false,
        };
        for branch in &mut branches[first as usize..] {
            branch.gates = self.gates.len() as u32;
            self.gates.resize(self.gates.len() + usize::from(layers), gate);
        }
        debug_assert!(self.gates.len() < ENTRANCE as usize, "numbers of gates leave room for two bits");
        for number in first as usize..branches.len() {
            let Branch { children, gates, .. } = branches[number];
            for child in &branches[children.0 as usize..children.1 as usize] {
                for layer in 0..u32::from(layers) {
                    self.gates[(child.gates + layer) as usize].parent = gates + layer;
                }
            }
        }
    }

    /// Opens a gate and all gates between it and the source at the beginning of the run, for the member at the gate.
    pub fn open_at_start(&mut self, mut number: u32) {
        self.gates[number as usize].is_requested = true;
        while let Some(gate) = self.gates.get_mut(number as usize) {
            gate.wanted += 1;
            if gate.wanted > 1 {
                return;
            }
            gate.state = State::Open;
            number = gate.parent;
        }
    }

    /// Schedules the join of a member after the beginning of the run.
    pub fn add_entrance(&mut self, session: u32, member: u32, at: u64, calendar: &mut Calendar) {
        if at <= self.until {
            calendar.push(Entry::new(at, Class::Change, ENTRANCE | self.entrances.len() as u32));
            self.entrances.push((session, member));
        }
    }

    /// Returns the session and member of a calendar entry for a join.
    pub fn entrance(&self, number: u32) -> (u32, u32) {
        self.entrances[(number & !ENTRANCE) as usize]
    }

    #[inline]
    pub fn is_open(&self, number: u32) -> bool {
        self.gates[number as usize].state == State::Open
    }

    /// Schedules a change of a member's request at the gate of its last hop: a request, or its withdrawal. It takes effect after all
    /// packets that arrive at `now`.
    fn schedule_request(&self, number: u32, now: u64, calendar: &mut Calendar) {
        note(ENTRANCE | number, now + 1, self.until, calendar);
    }

    /// Changes the request of a member, which decided this at `since`.
    fn change_request(&mut self, number: u32, since: u64, now: u64, calendar: &mut Calendar) {
        let gate = &mut self.gates[number as usize];
        gate.is_requested = !gate.is_requested;
        if gate.is_requested {
            self.ask_since(number, since, now, calendar);
        } else {
            self.release_since(number, since, now, calendar);
        }
    }

    /// Requests the layer of a gate for a downstream node.
    pub fn ask(&mut self, number: u32, now: u64, calendar: &mut Calendar) {
        self.ask_since(number, now, now, calendar);
    }

    fn ask_since(&mut self, number: u32, since: u64, now: u64, calendar: &mut Calendar) {
        let gate = &mut self.gates[number as usize];
        gate.wanted += 1;
        if gate.wanted > 1 {
            return;
        }
        gate.closes = NEVER;
        if gate.state == State::Shut && gate.opens == NEVER {
            gate.opens = since.saturating_add(self.latencies[gate.latencies as usize].0).max(now);
            note(number, gate.opens, self.until, calendar);
        }
    }

    /// Withdraws the request of a downstream node for the layer of a gate.
    pub fn release(&mut self, number: u32, now: u64, calendar: &mut Calendar) {
        self.release_since(number, now, now, calendar);
    }

    fn release_since(&mut self, number: u32, since: u64, now: u64, calendar: &mut Calendar) {
        let gate = &mut self.gates[number as usize];
        gate.wanted -= 1;
        if gate.wanted > 0 {
            return;
        }
        gate.closes = since.saturating_add(self.latencies[gate.latencies as usize].1).max(now);
        if gate.state == State::Shut && gate.closes <= gate.opens {
            (gate.opens, gate.closes) = (NEVER, NEVER);
            return;
        }
        note(number, gate.closes, self.until, calendar);
    }

    /// Opens or closes a gate at an entry of the calendar.
    fn turn(&mut self, number: u32, now: u64, calendar: &mut Calendar) {
        let gate = &mut self.gates[number as usize];
        let parent = gate.parent;
        if gate.opens == now {
            (gate.opens, gate.state) = (NEVER, State::Open);
            if parent != NONE {
                self.ask(parent, now, calendar);
            }
        } else if gate.closes == now {
            (gate.closes, gate.state) = (NEVER, State::Shut);
            if parent != NONE {
                self.release(parent, now, calendar);
            }
        }
    }
}

fn note(gate: u32, at: u64, until: u64, calendar: &mut Calendar) {
    if at <= until {
        calendar.push(Entry::new(at, Class::Change, GATE | gate));
    }
}

/// Subscription of a member of a layered session.
#[derive(Debug)]
pub struct Subscription {
    /// Highest subscribed layer.
    level: u8,
    /// Gate of the base layer at the member's last hop; the gates of the other layers follow.
    gates: u32,
    /// Gaps in the packet numbers of the layers above the base layer. The base layer uses the gaps of the member.
    gaps: Box<[InOrder]>,
    /// Packets found lost during earlier subscriptions to the layers.
    lost_before: u64,
    /// Times of changes, and the highest layer after each change.
    pub changes: Vec<(Time, u8)>,
}

impl Subscription {
    pub fn new(gates: u32, layers: u8) -> Subscription {
        Subscription {
            level: 0,
            gates,
            gaps: vec![InOrder::default(); usize::from(layers) - 1].into_boxed_slice(),
            lost_before: 0,
            changes: Vec::new(),
        }
    }

    /// Returns the number of packets of the layers above the base layer that were found lost.
    pub fn lost(&self) -> u64 {
        self.lost_before + self.gaps.iter().map(InOrder::lost).sum::<u64>()
    }

    /// Restarts a layer above the base layer.
    fn restart(&mut self, layer: u8) {
        self.lost_before += std::mem::take(&mut self.gaps[usize::from(layer) - 1]).lost();
    }

    /// Sets the highest layer. Returns whether it changed.
    fn set(&mut self, level: u8, now: u64) -> bool {
        let is_new = level != self.level;
        if is_new {
            self.level = level;
            self.changes.push((time(now), level));
        }
        is_new
    }
}

impl Island {
    /// Processes a calendar entry of a gate or of a joining member.
    #[cold]
    pub(super) fn turn(&mut self, number: u32, now: u64) {
        let (gate, calendar) = (number & !(GATE | ENTRANCE), &mut self.calendar);
        if number & GATE != 0 && number & ENTRANCE != 0 {
            return self.gates.change_request(gate, now - 1, now, calendar);
        }
        if number & GATE != 0 {
            return self.gates.turn(gate, now, calendar);
        }
        let (session, member) = self.gates.entrance(number);
        if self.join_tree(session, member, now) {
            return;
        }
        if let Some(it) = self.subscription(session, member) {
            let gate = it.gates;
            self.gates.change_request(gate, now, now, &mut self.calendar);
        }
    }

    fn subscription(&mut self, session: u32, member: u32) -> Option<&mut Subscription> {
        let it = &mut self.sessions[session as usize].members[member as usize];
        it.extra.as_mut()?.subscription.as_mut()
    }

    /// Subscribes a member to exactly the layers from 0 to `to`.
    #[cold]
    pub(super) fn subscribe(&mut self, session: u32, member: u32, now: u64, to: Layer) {
        let top = self.sessions[session as usize].layers - 1;
        let it = &mut self.sessions[session as usize].members[member as usize];
        if now < it.join || now >= it.leave {
            return;
        }
        let Some(it) = it.extra.as_mut().and_then(|extra| extra.subscription.as_mut()) else { return };
        let (from, to) = (it.level, to.0.min(top));
        for layer in from + 1..=to {
            it.restart(layer);
            self.gates.schedule_request(it.gates + u32::from(layer), now, &mut self.calendar);
        }
        for layer in (to + 1..=from).rev() {
            self.gates.schedule_request(it.gates + u32::from(layer), now, &mut self.calendar);
        }
        if it.set(to, now) {
            self.note_subscription(session, member, now, to);
        }
    }

    fn note_subscription(&mut self, session: u32, member: u32, now: u64, layer: u8) {
        let flow = FlowId(self.sessions[session as usize].flow);
        self.records.note(now, Happening::Subscribed { flow, member, layer });
    }

    /// Ends the subscription of a member that has left the session. If the member returns, it begins with the base layer.
    #[cold]
    pub(super) fn unsubscribe(&mut self, session: u32, member: u32, now: u64) {
        let layers = self.sessions[session as usize].layers;
        let it = &mut self.sessions[session as usize].members[member as usize];
        let Some(it) = it.extra.as_mut().and_then(|extra| extra.subscription.as_mut()) else { return };
        for layer in (0..=it.level).rev() {
            self.gates.schedule_request(it.gates + u32::from(layer), now, &mut self.calendar);
        }
        (1..layers).for_each(|layer| it.restart(layer));
        if it.set(0, now) {
            self.note_subscription(session, member, now, 0);
        }
    }

    /// Delivers data to a member over a branch with gates.
    pub(super) fn deliver_gated(&mut self, session: u32, number: u32, packet: &Logged) {
        match self.sessions[session as usize].tree {
            Some(_) => self.deliver_in_tree(session, number, packet),
            None => self.deliver_layer(session, number, packet),
        }
    }

    /// Delivers data of a layered session to a member. Not inlined, because the registers that this function needs would slow
    /// down its callers.
    #[inline(never)]
    fn deliver_layer(&mut self, session: u32, number: u32, packet: &Logged) {
        let &Logged { at: now, data, size, layer, marked, .. } = packet;
        let host = self.sessions[session as usize].members[number as usize].host;
        if self.hosts[host as usize].next <= now {
            self.run_timers(host, now);
        }
        let mut it = &mut self.sessions[session as usize].members[number as usize];
        let subscription = it.extra.as_ref().and_then(|extra| extra.subscription.as_ref());
        let Some(subscription) = subscription else { return };
        if now < it.join || now >= it.leave || layer.0 > subscription.level {
            return;
        }
        self.arrivals += 1;
        if it.meter.is_over(now) {
            self.turn_member(session, number, now);
            it = &mut self.sessions[session as usize].members[number as usize];
        }
        let Some(extra) = &mut it.extra else { return };
        let Some(subscription) = &mut extra.subscription else { return };
        let gaps = match layer.0.checked_sub(1) {
            None => &mut it.gaps,
            Some(above) => &mut subscription.gaps[usize::from(above)],
        };
        let arrival = Arrival { size, marked, ..gaps.on_arrival(data.seq) };
        it.meter.bytes += u64::from(size);
        if layer == Layer(0) {
            extra.on_data(number, &data, now, &mut self.effects);
        }
        it.count(now, (u64::from(layer.0) << 56) | data.seq.0, size);
        if let Some(below) = it.relay() {
            self.carry_out(session, number, now);
            return self.deliver_to_relay(below, (layer, &data), arrival, now);
        }
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        it.receiver.on_data(&data, layer, arrival, cx);
        self.after_data(session, number, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a chain of three branches with a fork at its end: 0 - 1 - 2 and 3. A join takes 10 ns per router, and a leave takes
    /// 100 ns.
    fn fork() -> (MulticastForwarding, Calendar) {
        let branch = |children| Branch { children, ..Branch::new(0, 0, NONE) };
        let mut branches = [(1, 2), (2, 4), (0, 0), (0, 0)].map(branch);
        let mut gates = MulticastForwarding::new(NEVER);
        gates.build(&mut branches, 0, 1, 10, 100);
        (gates, Calendar::default())
    }

    /// Runs the gates up to `until`. Returns the times at which each gate opened or closed.
    fn run(gates: &mut MulticastForwarding, calendar: &mut Calendar, until: u64) -> Vec<(u64, u32, bool)> {
        let mut turns = Vec::new();
        while let Some(entry) = calendar.pop(until) {
            let gate = entry.number() & !GATE;
            let before = gates.is_open(gate);
            gates.turn(gate, entry.time(), calendar);
            if gates.is_open(gate) != before {
                turns.push((entry.time(), gate, !before));
            }
        }
        turns
    }

    #[test]
    fn join_travels_to_the_first_router_that_has_the_layer() {
        let (mut gates, mut calendar) = fork();
        gates.ask(2, 0, &mut calendar);
        assert_eq!(run(&mut gates, &mut calendar, 1000), [(10, 2, true), (20, 1, true), (30, 0, true)]);
        gates.ask(3, 1000, &mut calendar);
        assert_eq!(run(&mut gates, &mut calendar, 2000), [(1010, 3, true)]);
    }

    #[test]
    fn layer_is_forwarded_until_leave_delay_of_last_member_ends() {
        let (mut gates, mut calendar) = fork();
        gates.open_at_start(2);
        gates.open_at_start(3);
        gates.release(2, 50, &mut calendar);
        assert_eq!(run(&mut gates, &mut calendar, 1000), [(150, 2, false)]);
        gates.release(3, 1000, &mut calendar);
        let turns = [(1100, 3, false), (1200, 1, false), (1300, 0, false)];
        assert_eq!(run(&mut gates, &mut calendar, 2000), turns);
    }

    #[test]
    fn rejoin_within_the_leave_delay_preserves_the_layer() {
        let (mut gates, mut calendar) = fork();
        gates.open_at_start(2);
        gates.release(2, 50, &mut calendar);
        gates.ask(2, 149, &mut calendar);
        assert_eq!(run(&mut gates, &mut calendar, 1000), []);
        assert!(gates.is_open(2));
    }

    #[test]
    fn rejoin_is_complete_at_one_router_if_upstream_is_not_pruned() {
        let (mut gates, mut calendar) = fork();
        gates.open_at_start(2);
        gates.release(2, 0, &mut calendar);
        assert_eq!(run(&mut gates, &mut calendar, 100), [(100, 2, false)]);
        gates.ask(2, 150, &mut calendar);
        assert_eq!(run(&mut gates, &mut calendar, 1000), [(160, 2, true)]);
    }

    #[test]
    fn layer_left_during_its_join_is_pruned_after_the_leave_delay() {
        let (mut gates, mut calendar) = fork();
        gates.ask(2, 0, &mut calendar);
        gates.release(2, 5, &mut calendar);
        let turns = run(&mut gates, &mut calendar, 1000);
        assert_eq!(turns.iter().filter(|turn| turn.2).count(), 3, "{turns:?}");
        assert_eq!(turns[turns.len() - 3..], [(105, 2, false), (205, 1, false), (305, 0, false)]);
    }

    #[test]
    fn rejoin_after_a_withdrawn_join_takes_the_full_join_latency() {
        let branch = Branch { children: (0, 0), ..Branch::new(0, 0, NONE) };
        let (mut gates, mut calendar) = (MulticastForwarding::new(NEVER), Calendar::default());
        gates.build(&mut [branch], 0, 2, 100, 0);
        gates.ask(1, 0, &mut calendar);
        gates.release(1, 50, &mut calendar);
        gates.ask(1, 60, &mut calendar);
        assert_eq!(run(&mut gates, &mut calendar, 1000), [(160, 1, true)]);
        assert!(!gates.is_open(0), "the other layer is none of its business");
    }
}
