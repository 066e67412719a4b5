//! Members of a session, as the source knows them.

mod busy;
mod completions;
mod reachability;
mod subtree;
mod tally;
mod turns;

pub use reachability::Mute;
pub(crate) use tally::Tally;
pub use turns::{alive_every, first_turn, onset, stretched};

use crate::membership::{MOVED, RELAYS};
use crate::trace::Scope;
use faircast_core::packet::{ReceiverId, Seq};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Activity, Member as Report, MemberState, Receipt, Welcome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// More receivers than this are served but not known by name.
const MAX_MEMBERS: usize = 200_000;

/// Congestion reports within [`MemberRecord::SLOW_WINDOW`] that show a receiver to be slow, without a report of a higher rate between them.
const SLOW_REPORTS: u8 = 3;

/// A receiver that was silent for this duration, and whose host has a newer one of its name, was restarted.
const REPLACED_AFTER: Span = Span::from_secs(3);

/// Maximum number of moved members that are remembered.
const MAX_MOVED: usize = 4_096;

/// More relays than this are not listened to.
const MAX_RELAYS: usize = 4_096;

/// Maximum number of receivers that wait to be answered; the others ask again.
const MAX_ANSWERS: usize = 20_000;

/// Number of status messages in which a receiver is confirmed.
const CONFIRMATIONS: u8 = 2;

/// All receivers that have reported.
#[derive(Debug, Default)]
pub struct Members {
    known: BTreeMap<ReceiverId, MemberRecord>,
    /// Relays, which are no receivers.
    relays: BTreeSet<ReceiverId>,
    /// Receivers behind relays that have everything.
    completions: completions::Completions,
    /// How many there are at each host.
    hosts: BTreeMap<IpAddr, usize>,
    /// Numbers of completed members and of unfinished ones served together, which are read all the time.
    tally: Tally,
    /// Receivers to be answered in the next status messages: joining ones with the number that they have drawn, and joined, completed or
    /// leaving ones.
    confirm: VecDeque<(Answer, u8)>,
    /// How many of them wait for the first time.
    unanswered: usize,
    /// The same, to find them.
    confirming: BTreeSet<Answer>,
    /// Relays that have reported relays behind them.
    trees: usize,
    /// Members that have moved to another parent, and the number of the message that reported it: late messages are from before.
    moved: BTreeMap<ReceiverId, u64>,
    /// Reports since then of unknown members, or ones that wait for an answer.
    reports: u64,
    window_from: Time,
    /// Feedback is spread over at least this.
    floor: Span,
    /// Hosts that have asked to join, and the number of the next packet then.
    asked: BTreeMap<ReceiverId, Seq>,
    /// Members that take turns, as they were counted last.
    speaking: usize,
    scope: Scope,
}

/// One receiver.
#[derive(Debug)]
pub struct MemberRecord {
    /// Host name.
    pub host: String,
    /// Where it reports from.
    pub address: SocketAddr,
    /// Reported state.
    pub state: MemberState,
    /// Why, when it failed.
    pub reason: u8,
    /// When it last sent.
    pub last_received_at: Time,
    /// Blocks that it lacks.
    pub blocks_missing: u32,
    /// Whether it reports for others.
    pub is_relay: bool,
    /// Receivers that it reports for: itself, or a relay's receivers downstream without those reported by number.
    pub receivers: u32,
    /// Those among them that have everything.
    pub receivers_done: u32,
    /// Receivers that a relay has reported by number, and those among them that the source knows.
    named: u32,
    named_known: u32,
    /// Whether the source knows that this receiver is done.
    is_known: bool,
    /// Whether another process has come in its place, and it has been silent since.
    is_replaced: bool,
    /// An earlier process of the same receiver had everything as well, and counts in its place.
    is_again: bool,
    /// Bytes verified.
    pub verified_bytes: u64,
    /// Fraction of packets lost.
    pub loss: f32,
    /// Work of its host, and the part that is done, in percent.
    pub activity: (Activity, u8),
    /// The furthest that this work has been, and since when.
    furthest: (u8, u8),
    pub further_at: Time,
    /// Rate at which it receives, bit/s.
    pub rate: f32,
    /// A relay's report of the relays behind it.
    below: Option<Box<subtree::Subtree>>,
    /// Whether it delays the others, and the action taken.
    pub pace: Pace,
    /// Newest packet of the base layer that it has reported; the congestion control may ask.
    pub echo: Option<Seq>,
    /// When that last was another one.
    pub echo_at: Time,
    /// Whether it sends, and data reaches it.
    pub mute: Mute,
    /// Number of the first packet that left after its first datagram.
    first: Seq,
    /// Whether it has shown that it receives the source: its echo named a packet that left after its first datagram.
    receives: bool,
    slow_reports: u8,
    slow_since: Time,
    /// When its first datagram arrived,
    pub joined_at: Time,
    /// and the bytes that it had verified then, in an earlier run.
    pub resumed_bytes: u64,
    /// When it had everything.
    pub done_at: Option<Time>,
    /// Symbols that it has requested.
    pub asked_symbols: u64,
    /// Reason of its failure, in its own words; empty if it gave no reason.
    pub why: String,
    /// The number of its newest report.
    reported: u64,
}

/// Whether a receiver keeps up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It is served with the others.
    Together,
    /// It is served when the others are done.
    Deferred,
    /// It is not served.
    Dropped,
    /// It does not send any longer.
    Gone,
}

/// A receiver to answer, and the number in its question or its join.
type Answer = (ReceiverId, Option<u16>);

/// Effect of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing worth telling.
    None,
    /// It is new.
    Joined,
    /// It has everything now.
    Done,
    /// It has given up or left.
    Failed,
    /// It has moved to another parent, and is not a member here any longer.
    Moved,
}

impl Members {
    /// Events of members are traced in this scope.
    pub(crate) fn trace_in(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// A receiver reports its state, in its message of this number.
    pub fn on_report(&mut self, report: &Report, seq: u64, address: SocketAddr, now: Time) -> Change {
        let change = self.take_report(report, seq, address, now);
        let (id, host) = (report.from, report.host.as_str());
        match change {
            Change::None => {}
            Change::Joined => self.scope.joined(id, host, address, now),
            Change::Done => self.scope.left(id, host, "done", now),
            Change::Moved => self.scope.left(id, host, "moved", now),
            Change::Failed if report.why.as_str().is_empty() => self.scope.left(id, host, "left", now),
            Change::Failed => self.scope.left(id, host, report.why.as_str(), now),
        }
        change
    }

    fn take_report(&mut self, report: &Report, seq: u64, address: SocketAddr, now: Time) -> Change {
        // Known members have turns already, however many come together from a busy host.
        self.reports += u64::from(report.state != MemberState::Receiving);
        if report.state == MemberState::Relaying && self.relays.len() < MAX_RELAYS {
            self.relays.insert(report.from);
        }
        if matches!(report.state, MemberState::Asking | MemberState::Relaying) {
            self.answer(report);
            return Change::None;
        }
        if self.moved.get(&report.from).is_some_and(|number| seq <= *number) {
            return Change::None; // overtaken on the way
        }
        self.moved.remove(&report.from);
        if report.state == MemberState::Leaving && report.reason == MOVED {
            return self.move_on(report.from, seq);
        }
        let is_again = self.is_done_again(report, address.ip(), now);
        let is_new = !self.known.contains_key(&report.from);
        if is_new {
            if self.known.len() >= MAX_MEMBERS {
                return Change::None;
            }
            let member = MemberRecord::new(report, seq, address, now);
            self.tally.count(&member);
            self.known.insert(report.from, member);
            self.replace_relay(report.from);
            *self.hosts.entry(address.ip()).or_default() += 1;
        }
        let Some(member) = self.known.get_mut(&report.from) else { return Change::None };
        if seq < member.reported {
            return Change::None; // overtaken on the way
        }
        let is_newer = seq > member.reported;
        member.reported = seq;
        // It withdraws a report that somebody else has forged in its name.
        let takes_back = member.state == MemberState::Done && report.state == MemberState::Receiving;
        let was_finished = member.is_finished() && !is_new && !takes_back;
        let had_number = member.has_number() && !is_new && !takes_back;
        self.tally.discount(member);
        member.last_received_at = now;
        member.is_replaced &= !is_newer;
        if member.address.ip() != address.ip() {
            self.hosts.entry(member.address.ip()).and_modify(|count| *count = count.saturating_sub(1));
            *self.hosts.entry(address.ip()).or_default() += 1;
        }
        member.address = address;
        member.reason = report.reason;
        member.is_relay |= report.reason == RELAYS;
        member.is_again = (member.is_again || is_again) && !takes_back;
        (member.receivers, member.receivers_done) = match member.is_again {
            true => (0, 0),
            false => spoken_for(report, member.is_relay),
        };
        member.blocks_missing = report.blocks_missing;
        member.verified_bytes = report.verified_bytes;
        member.rate = sensible(report.rate);
        if member.activity.0 == Activity::Verifying {
            member.resumed_bytes = report.verified_bytes;
        }
        member.activity = (report.activity, report.percent);
        let work = (report.activity as u8, report.percent);
        if work > member.furthest {
            (member.furthest, member.further_at) = (work, now);
        }
        member.loss = if report.loss.is_finite() { report.loss.clamp(0.0, 1.0) } else { 0.0 };
        if member.mute == Mute::Silent {
            member.mute = Mute::No;
        }
        if member.pace == Pace::Gone && member.mute == Mute::No {
            member.pace = Pace::Together;
        }
        if !was_finished {
            member.state = report.state;
            let is_done = report.state == MemberState::Done;
            member.done_at = is_done.then(|| member.done_at.unwrap_or(now));
            if !report.why.as_str().is_empty() {
                report.why.as_str().clone_into(&mut member.why);
            }
        }
        self.tally.count(member);
        if member.has_number() && !had_number {
            self.on_own_number(report.from);
        }
        self.answer(report);
        match report.state {
            _ if was_finished => Change::None,
            MemberState::Done => Change::Done,
            MemberState::Failed | MemberState::Leaving => Change::Failed,
            _ if is_new => Change::Joined,
            _ => Change::None,
        }
    }

    /// Whether a completed receiver is a later process of one that had everything and ended. It counts once, by its first number: a relay
    /// has reported that number to its parent.
    fn is_done_again(&self, report: &Report, address: IpAddr, now: Time) -> bool {
        let known = self.known.get(&report.from);
        let is_news = report.state == MemberState::Done && !known.is_some_and(MemberRecord::is_finished);
        let is_relay = report.reason == RELAYS || known.is_some_and(|member| member.is_relay);
        if !is_news || is_relay || self.at(address) <= usize::from(known.is_some()) {
            return false;
        }
        let joined_at = known.map_or(now, |member| member.joined_at);
        let is_earlier = |(id, member): (&ReceiverId, &MemberRecord)| {
            *id != report.from
                && member.state == MemberState::Done
                && member.last_received_at < joined_at
                && !member.is_relay
                && member.address.ip() == address
                && member.host == report.host.as_str()
        };
        self.known.iter().any(is_earlier)
    }

    /// A member has another parent now.
    fn move_on(&mut self, id: ReceiverId, seq: u64) -> Change {
        if self.moved.len() >= MAX_MOVED {
            self.moved.pop_first();
        }
        self.moved.insert(id, seq);
        self.relays.remove(&id);
        self.forget_numbers(id);
        let Some(member) = self.known.remove(&id) else { return Change::None };
        self.tally.discount(&member);
        self.trees -= usize::from(member.below.is_some());
        self.hosts.entry(member.address.ip()).and_modify(|count| *count = count.saturating_sub(1));
        Change::Moved
    }

    /// Schedules an answer to a receiver that asks, has joined, is done or leaves.
    fn answer(&mut self, report: &Report) {
        let nonce = match report.state {
            MemberState::Receiving => return,
            MemberState::Asking | MemberState::Joined | MemberState::Relaying => Some(report.nonce),
            MemberState::Done if self.is_to_wait(report.from) => return,
            MemberState::Done | MemberState::Failed | MemberState::Leaving => None,
        };
        self.answer_with((report.from, nonce));
    }

    /// Schedules a confirmation that this receiver is known to be done.
    fn confirm(&mut self, id: ReceiverId) {
        self.answer_with((id, None));
    }

    /// Schedules the acknowledgement of a receipt to the sender of the message with this number.
    pub fn acknowledge(&mut self, from: ReceiverId, nonce: u16) {
        self.answer_with((from, Some(nonce)));
    }

    /// Whether this receipt may come from its sender: a member that is not a relay signs for itself alone.
    pub fn may_sign(&self, receipt: &Receipt) -> bool {
        let member = self.known.get(&receipt.from);
        member.is_some_and(|member| member.is_relay || receipt.receiver == receipt.from)
    }

    fn answer_with(&mut self, answer: Answer) {
        if self.confirm.len() < MAX_ANSWERS && self.confirming.insert(answer) {
            self.confirm.push_back((answer, CONFIRMATIONS));
            self.unanswered += 1;
        }
    }

    /// Whether a packet in the name of this receiver comes from another address, while the receiver still sends from its own.
    pub fn is_elsewhere(&self, from: ReceiverId, address: SocketAddr, now: Time) -> bool {
        let bound = |member: &MemberRecord| {
            let quiet = REPLACED_AFTER.max(self.floor * 4);
            member.address != address && now.since(member.last_received_at) < quiet
        };
        self.known.get(&from).is_some_and(bound)
    }

    /// Any other packet of a receiver: it is alive.
    pub fn on_sign_of_life(&mut self, from: ReceiverId, now: Time) {
        if let Some(member) = self.known.get_mut(&from) {
            member.last_received_at = now;
            if member.mute == Mute::Silent {
                self.tally.update(member, |member| member.mute = Mute::No);
            }
        }
    }

    /// Handles a receiver's report of congestion at `level`, while no more than about `bound` was sent. Returns whether it is too slow for
    /// `bound`: the congestion lasts for `least`, longer than earlier, faster packets take to drain.
    pub fn on_congestion(
        &mut self,
        from: ReceiverId,
        level: Rate,
        bound: Rate,
        least: Span,
        now: Time,
    ) -> bool {
        let Some(member) = self.known.get_mut(&from) else { return false };
        if level.bps() >= bound.bps() {
            member.slow_reports = 0;
            return false;
        }
        if member.slow_reports == 0 || now.since(member.slow_since) > MemberRecord::SLOW_WINDOW {
            (member.slow_reports, member.slow_since) = (0, now);
        }
        member.slow_reports = member.slow_reports.saturating_add(1);
        let lasting = now.since(member.slow_since) >= least;
        lasting && member.slow_reports >= SLOW_REPORTS && member.pace == Pace::Together
    }

    /// Set how a receiver is served.
    pub fn set_pace(&mut self, id: ReceiverId, pace: Pace) {
        if let Some(member) = self.known.get_mut(&id) {
            self.tally.update(member, |member| (member.pace, member.slow_reports) = (pace, 0));
        }
    }

    /// All deferred receivers are served from now on.
    pub fn recall(&mut self) {
        for member in self.known.values_mut().filter(|member| member.pace == Pace::Deferred) {
            self.tally.update(member, |member| member.pace = Pace::Together);
        }
    }

    /// A receiver by id.
    pub fn get(&self, id: ReceiverId) -> Option<&MemberRecord> {
        self.known.get(&id)
    }

    /// Whether this receiver or relay has joined.
    pub fn knows(&self, id: ReceiverId) -> bool {
        self.known.contains_key(&id) || self.relays.contains(&id)
    }

    /// All receivers.
    pub fn iter(&self) -> impl Iterator<Item = (ReceiverId, &MemberRecord)> {
        self.known.iter().map(|(id, member)| (*id, member))
    }

    /// Returns the receivers that are deferred or dropped, and which of both. A status names them, and several statuses leave per report,
    /// so members are not scanned when all are served together.
    pub fn set_aside(&self) -> impl Iterator<Item = (ReceiverId, Pace)> {
        let among = if self.tally.set_aside > 0 { self.known.len() } else { 0 };
        let all = self.known.iter().take(among);
        all.filter(|(_, member)| member.is_set_aside()).map(|(id, member)| (*id, member.pace))
    }

    /// The receivers served in this way.
    pub fn with_pace(&self, pace: Pace) -> impl Iterator<Item = (ReceiverId, &MemberRecord)> {
        self.iter().filter(move |(_, member)| member.pace == pace)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// How many there are at this host.
    pub fn at(&self, host: IpAddr) -> usize {
        self.hosts.get(&host).copied().unwrap_or(0)
    }

    /// The numbers of receivers and members.
    pub(crate) const fn tally(&self) -> Tally {
        self.tally
    }

    /// How many receivers there are, those behind relays included.
    pub fn receivers(&self) -> u64 {
        self.tally.receivers
    }

    /// How many of them have everything.
    pub fn verified(&self) -> u64 {
        self.tally.done
    }

    /// How many members have everything.
    pub fn done(&self) -> usize {
        self.tally.members_done as usize
    }

    /// How many of those served together do not have everything yet.
    pub fn unfinished(&self) -> usize {
        self.tally.unfinished as usize
    }

    /// Returns how many unfinished members served together send and are reached.
    pub fn answering(&self) -> usize {
        self.tally.answering as usize
    }

    /// Returns how many of those have shown that they receive the source.
    pub fn counted_on(&self) -> usize {
        self.tally.counted_on as usize
    }

    /// Returns earlier records of restarted receivers, which have a new ID each time. Another receiver of the same name joined from the
    /// same address; the earlier one has been silent since, or both have everything.
    pub fn replaced(&self) -> BTreeSet<ReceiverId> {
        let mut newest: BTreeMap<(&str, IpAddr), Time> = BTreeMap::new();
        for member in self.known.values() {
            let joined = newest.entry((&member.host, member.address.ip())).or_insert(member.joined_at);
            *joined = (*joined).max(member.joined_at);
        }
        let is_replaced = |member: &MemberRecord| {
            let joined = newest.get(&(member.host.as_str(), member.address.ip()));
            let has_ended = member.is_replaced || member.state != MemberState::Done;
            member.is_again || has_ended && joined.is_some_and(|joined| *joined > member.last_received_at)
        };
        self.iter().filter(|(_, member)| is_replaced(member)).map(|(id, _)| id).collect()
    }

    /// Receivers to confirm, and such to welcome, in a status message that has room for `room` bytes of them.
    pub fn take_confirmations(&mut self, room: usize) -> (Vec<ReceiverId>, Vec<Welcome>) {
        let count = (room / 6).min(self.confirm.len());
        let (mut confirmed, mut welcomed) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            let Some((answer, times)) = self.confirm.pop_front() else { break };
            self.unanswered -= usize::from(times == CONFIRMATIONS);
            match answer {
                (id, None) => confirmed.push(id),
                (id, Some(nonce)) => welcomed.push(Welcome { id, nonce }),
            }
            if times > 1 {
                self.confirm.push_back((answer, times - 1));
            } else {
                self.confirming.remove(&answer);
            }
        }
        (confirmed, welcomed)
    }

    /// Whether a receiver waits for its first confirmation.
    pub const fn has_confirmations(&self) -> bool {
        self.unanswered > 0
    }

    /// Whether a receiver is to be confirmed, for the first time or again.
    pub fn has_any_confirmation(&self) -> bool {
        !self.confirm.is_empty()
    }
}

/// Limits a reported rate to possible values.
fn sensible(rate: f32) -> f32 {
    if rate.is_finite() { rate.max(0.0) } else { 0.0 }
}

/// Returns how many receivers it reports for, and how many of them are done: a relay's report, within possible values. Others report for
/// themselves alone; a relay is done, too, when the only receiver downstream has failed.
fn spoken_for(report: &Report, is_relay: bool) -> (u32, u32) {
    let receivers = report.receivers.min(if is_relay { MAX_MEMBERS as u32 } else { 1 });
    let is_done = report.state == MemberState::Done;
    (receivers, if is_relay { report.done.min(receivers) } else { receivers.min(u32::from(is_done)) })
}

impl MemberRecord {
    /// Returns the receivers that count as its own: those of a relay that is gone have moved, or are missing.
    pub fn counted(&self) -> u32 {
        let has_left = self.pace == Pace::Gone || self.is_mute() && !self.is_finished();
        if self.is_replaced || self.is_relay && has_left {
            self.verified()
        } else {
            self.receivers + self.named
        }
    }

    const SLOW_WINDOW: Span = Span::from_secs(3);

    fn new(report: &Report, seq: u64, address: SocketAddr, now: Time) -> MemberRecord {
        let is_relay = report.reason == RELAYS;
        let (receivers, receivers_done) = spoken_for(report, is_relay);
        MemberRecord {
            host: report.host.as_str().to_owned(),
            address,
            state: report.state,
            reason: report.reason,
            last_received_at: now,
            is_relay,
            receivers,
            receivers_done,
            named: 0,
            named_known: 0,
            is_known: false,
            is_replaced: false,
            is_again: false,
            blocks_missing: report.blocks_missing,
            verified_bytes: report.verified_bytes,
            loss: 0.0,
            rate: sensible(report.rate),
            activity: (report.activity, report.percent),
            furthest: (report.activity as u8, report.percent),
            further_at: now,
            below: None,
            pace: Pace::Together,
            echo: None,
            echo_at: now,
            mute: Mute::No,
            first: Seq(0),
            receives: false,
            slow_reports: 0,
            slow_since: now,
            joined_at: now,
            resumed_bytes: report.verified_bytes,
            done_at: None,
            asked_symbols: 0,
            why: String::new(),
            reported: seq,
        }
    }

    /// Whether it has everything.
    pub fn has_all(&self) -> bool {
        self.state == MemberState::Done
    }

    fn is_waited_for(&self) -> bool {
        matches!(self.pace, Pace::Together | Pace::Deferred) && !self.is_finished()
    }

    fn is_set_aside(&self) -> bool {
        matches!(self.pace, Pace::Deferred | Pace::Dropped)
    }

    /// Whether it cannot be counted on now.
    fn is_mute(&self) -> bool {
        self.mute != Mute::No
    }

    /// Whether others may wait for its feedback.
    fn counts(&self) -> bool {
        self.receives && !self.is_mute()
    }

    /// Whether nothing more is expected of it.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, MemberState::Done | MemberState::Failed | MemberState::Leaving)
    }
}

#[cfg(test)]
mod tests;
