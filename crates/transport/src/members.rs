//! The source's record of the members of a session.

mod busy;
mod completions;
mod missing;
mod reachability;
mod subtree;
mod tally;
mod turns;

pub use reachability::Mute;
pub(crate) use tally::Tally;
pub use turns::{alive_every, first_turn, onset, stretched};

use crate::membership::{MOVED, RELAYS};
use crate::trace::{Path, Scope};
use faircast_core::estimate::RoundTrip;
use faircast_core::packet::{ReceiverId, ReportContent, Seq};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Activity, Member as Report, MemberState, Receipt, Welcome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;

/// Maximum number of recorded receivers. Further receivers are served but not recorded.
const MAX_MEMBERS: usize = 200_000;

/// Number of congestion reports within [`MemberRecord::SLOW_WINDOW`] after which a receiver counts as slow. All of them must
/// report a rate below the bound.
const SLOW_REPORTS: u8 = 3;

/// Duration of silence after which a receiver counts as restarted, if a receiver of the same name has joined later from the same
/// host.
const REPLACED_AFTER: Span = Span::from_secs(3);

/// Maximum number of moved members that are stored.
const MAX_MOVED: usize = 4_096;

/// Maximum number of relays; further ones are ignored.
const MAX_RELAYS: usize = 4_096;

/// Maximum number of receivers that wait for an answer. Further receivers get no answer until they ask again.
const MAX_ANSWERS: usize = 20_000;

/// Number of status messages that confirm a receiver.
const CONFIRMATIONS: u8 = 2;

/// All members that have reported.
#[derive(Debug, Default)]
pub struct Members {
    known: BTreeMap<ReceiverId, MemberRecord>,
    /// IDs of relays that are not receivers themselves.
    relays: BTreeSet<ReceiverId>,
    /// Completed receivers behind relays.
    completions: completions::Completions,
    /// Number of members at each host.
    hosts: BTreeMap<IpAddr, usize>,
    /// Counts of members and receivers, which are read frequently.
    tally: Tally,
    /// Receivers to answer in the next status messages. An answer to a joining receiver contains the receiver's nonce. An answer
    /// to a completed or leaving receiver has no nonce.
    confirm: VecDeque<(Answer, u8)>,
    /// Number of receivers in `confirm` that wait for their first answer.
    unanswered: usize,
    /// The receivers in `confirm`, for searches.
    confirming: BTreeSet<Answer>,
    /// Number of relays that have reported downstream relays.
    trees: usize,
    /// Members that have moved to another parent, with the number of the message that reported the move. Messages with lower
    /// numbers are outdated.
    moved: BTreeMap<ReceiverId, u64>,
    /// Number of reports since `window_from`, except reports of the state `Receiving`.
    reports: u64,
    window_from: Time,
    /// Minimum time over which feedback is spread.
    floor: Span,
    /// Hosts that have asked to join. The value is the number that the source's next packet had at that time.
    asked: BTreeMap<ReceiverId, Seq>,
    /// Largest number of blocks that a served member lacks, or a larger number.
    most_missing: Option<u32>,
    /// Number of members that send feedback in turns, at the last count.
    speaking: usize,
    scope: Scope,
}

/// The record of one member.
#[derive(Debug)]
pub struct MemberRecord {
    /// Host name.
    pub host: String,
    /// Address from which it reports.
    pub address: SocketAddr,
    /// Reported state.
    pub state: MemberState,
    /// Reason of its failure.
    pub reason: u8,
    /// Time at which it last sent.
    pub last_received_at: Time,
    /// Number of missing blocks.
    pub blocks_missing: u32,
    /// Whether the member is a relay, which reports for other receivers.
    pub is_relay: bool,
    /// Number of receivers that the member reports for. A receiver: 1. A relay: its downstream receivers, except those reported
    /// by ID.
    pub receivers: u32,
    /// Number of completed receivers among these.
    pub receivers_done: u32,
    /// Number of receivers that the relay has reported by ID. `named_known` is the number of these receivers whose completion the
    /// source knows.
    named: u32,
    named_known: u32,
    /// Whether the source knows that this receiver has completed.
    is_known: bool,
    /// Whether another process has replaced this process, which has been silent since then.
    is_replaced: bool,
    /// Whether an earlier process of the same receiver has also completed. The earlier process is then counted in place of this
    /// one.
    is_again: bool,
    /// Number of verified bytes.
    pub verified_bytes: u64,
    /// Number of datagrams that its host has dropped.
    pub dropped_local: u32,
    /// Number of bytes that wait for its disk or its reader.
    pub unwritten_bytes: u64,
    /// Fraction of packets lost.
    pub loss: f32,
    /// Present work of the member's host, and the progress of this work in percent.
    pub activity: (Activity, u8),
    /// Greatest progress of this work so far; `further_at` is the time at which this progress was reached.
    furthest: (u8, u8),
    pub further_at: Time,
    /// Rate at which it receives, bit/s.
    pub rate: f32,
    /// A relay's report of its downstream relays.
    below: Option<Box<subtree::Subtree>>,
    /// Whether the member delays other receivers, and the action taken.
    pub pace: Pace,
    /// Newest packet of the base layer that the member has reported, for the congestion control.
    pub echo: Option<Seq>,
    /// Time at which `echo` last changed.
    pub echo_at: Time,
    /// Whether the member still sends, and whether data reaches it.
    pub mute: Mute,
    /// Number of the first packet that the source sent after this member's first datagram.
    first: Seq,
    /// Whether the member has shown that it receives the source: the member's echo named a packet that was sent after the
    /// member's first datagram.
    receives: bool,
    slow_reports: u8,
    slow_since: Time,
    /// Arrival time of its first datagram.
    pub joined_at: Time,
    /// Number of verified bytes from an earlier run.
    pub resumed_bytes: u64,
    /// Time of its completion.
    pub done_at: Option<Time>,
    /// Number of symbols that it has requested.
    pub asked_symbols: u64,
    /// Its round-trip time.
    pub round_trip: RoundTrip,
    /// Reason for the member's failure, as stated by the member; empty if unknown.
    pub why: String,
    /// Number of its newest report.
    reported: u64,
}

/// The treatment of a receiver, which depends on its speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It is served together with other receivers.
    Together,
    /// The receiver is served after the other receivers have completed.
    Deferred,
    /// It is not served any longer.
    Dropped,
    /// It has stopped sending.
    Gone,
}

/// A receiver to answer, and the nonce of the receiver's query or join message.
type Answer = (ReceiverId, Option<u16>);

/// Effect of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// No change that must be reported.
    None,
    /// It has joined.
    Joined,
    /// It has completed.
    Done,
    /// It has failed or left.
    Failed,
    /// The member has moved to another parent, and is not a member here any longer.
    Moved,
}

impl Members {
    /// Sets the scope in which events of members are traced.
    pub(crate) fn trace_in(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// Handles a receiver's report of its state; `seq` is the number of the message.
    pub fn on_report(&mut self, report: &Report, seq: u64, address: SocketAddr, now: Time) -> Change {
        let change = self.take_report(report, seq, address, now);
        let (id, host) = (report.from, report.host.as_str());
        let reason = match change {
            Change::None => return change,
            Change::Joined => {
                self.scope.joined(id, host, address, now);
                return change;
            }
            Change::Done => "done",
            Change::Moved => "moved",
            Change::Failed if report.why.as_str().is_empty() => "left",
            Change::Failed => report.why.as_str(),
        };
        self.scope.left(id, host, reason, self.known.get(&id).map(MemberRecord::path), now);
        change
    }

    /// Stores a sample of a member's round-trip time. `content` is the content of the scheme's report that gave the sample, if any.
    pub fn on_round_trip(&mut self, from: ReceiverId, sample: Span, content: Option<&ReportContent>) {
        if let Some(member) = self.known.get_mut(&from) {
            member.round_trip.add(sample, content);
        }
    }

    fn take_report(&mut self, report: &Report, seq: u64, address: SocketAddr, now: Time) -> Change {
        // Members in the state `Receiving` already report in turns, even if many of them report together from a busy host.
        self.reports += u64::from(report.state != MemberState::Receiving);
        if report.state == MemberState::Relaying && self.relays.len() < MAX_RELAYS {
            self.relays.insert(report.from);
        }
        if matches!(report.state, MemberState::Asking | MemberState::Relaying) {
            self.answer(report);
            return Change::None;
        }
        if self.moved.get(&report.from).is_some_and(|number| seq <= *number) {
            return Change::None; // overtaken by a later report
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
            return Change::None; // overtaken by a later report
        }
        let is_newer = seq > member.reported;
        member.reported = seq;
        // The receiver withdraws a report that another host had forged in the receiver's name.
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
        if !was_finished {
            member.state = report.state;
            let is_done = report.state == MemberState::Done;
            member.done_at = is_done.then(|| member.done_at.unwrap_or(now));
            if !report.why.as_str().is_empty() {
                report.why.as_str().clone_into(&mut member.why);
            }
        }
        (member.receivers, member.receivers_done) = match member.is_again {
            true => (0, 0),
            false => spoken_for(report, member.state, member.is_relay),
        };
        member.blocks_missing = report.blocks_missing;
        member.verified_bytes = report.verified_bytes;
        member.resumed_bytes = report.resumed_bytes;
        member.dropped_local = report.dropped_local;
        member.unwritten_bytes = report.unwritten_bytes;
        member.rate = sensible(report.rate);
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
        self.tally.count(member);
        self.most_missing = self.most_missing.max(member.missing());
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

    /// Whether this report states the completion of a receiver whose earlier process has already completed. The receiver counts
    /// once, with its first ID, because a relay has reported that ID to its parent.
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

    /// Removes a member that has moved to another parent.
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

    /// Schedules an answer to a receiver that asks to join, has joined, has completed or leaves.
    fn answer(&mut self, report: &Report) {
        let nonce = match report.state {
            MemberState::Receiving => return,
            MemberState::Asking | MemberState::Joined | MemberState::Relaying => Some(report.nonce),
            MemberState::Done if self.is_to_wait(report.from) => return,
            MemberState::Done | MemberState::Failed | MemberState::Leaving => None,
        };
        self.answer_with((report.from, nonce));
    }

    /// Schedules a confirmation of this receiver's completion.
    fn confirm(&mut self, id: ReceiverId) {
        self.answer_with((id, None));
    }

    /// Schedules the acknowledgement of a receipt; `nonce` is the number of the receipt's message.
    pub fn acknowledge(&mut self, from: ReceiverId, nonce: u16) {
        self.answer_with((from, Some(nonce)));
    }

    /// Whether the sender may submit this receipt: a member that is not a relay may sign only for itself.
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

    /// Whether a packet in the name of this receiver was sent from another address, while the receiver still sends from its own
    /// address.
    pub fn is_elsewhere(&self, from: ReceiverId, address: SocketAddr, now: Time) -> bool {
        let bound = |member: &MemberRecord| {
            let quiet = REPLACED_AFTER.max(self.floor * 4);
            member.address != address && now.since(member.last_received_at) < quiet
        };
        self.known.get(&from).is_some_and(bound)
    }

    /// Records a sign of life: a receiver has sent a packet other than a report.
    pub fn on_sign_of_life(&mut self, from: ReceiverId, now: Time) {
        if let Some(member) = self.known.get_mut(&from) {
            member.last_received_at = now;
            if member.mute == Mute::Silent {
                self.tally.update(member, |member| member.mute = Mute::No);
            }
        }
    }

    /// Handles a receiver's congestion report, which states that the path allows the rate `level`. Returns whether the receiver
    /// is too slow for the rate `bound`: for at least `least`, its reports have stated lower rates. `least` must exceed the time
    /// in which queues drain after a higher rate. Call this only if the source sends at about `bound` or less.
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

    /// Sets the treatment of a receiver.
    pub fn set_pace(&mut self, id: ReceiverId, pace: Pace) {
        if let Some(member) = self.known.get_mut(&id) {
            self.tally.update(member, |member| (member.pace, member.slow_reports) = (pace, 0));
        }
    }

    /// Serves all deferred receivers from now on.
    pub fn recall(&mut self) {
        for member in self.known.values_mut().filter(|member| member.pace == Pace::Deferred) {
            self.tally.update(member, |member| member.pace = Pace::Together);
        }
    }

    /// Returns a member by its ID.
    pub fn get(&self, id: ReceiverId) -> Option<&MemberRecord> {
        self.known.get(&id)
    }

    /// Whether this receiver or relay has joined.
    pub fn knows(&self, id: ReceiverId) -> bool {
        self.known.contains_key(&id) || self.relays.contains(&id)
    }

    /// Returns all members.
    pub fn iter(&self) -> impl Iterator<Item = (ReceiverId, &MemberRecord)> {
        self.known.iter().map(|(id, member)| (*id, member))
    }

    /// Returns the members after `last`, in the order of their IDs.
    pub fn after(&self, last: Option<ReceiverId>) -> impl Iterator<Item = (ReceiverId, &MemberRecord)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.known.range((from, Bound::Unbounded)).map(|(id, member)| (*id, member))
    }

    /// Returns the deferred and dropped receivers with their treatment. Each status lists these receivers, and several statuses
    /// are sent per report. So members are not scanned if no receiver is deferred or dropped.
    pub fn set_aside(&self) -> impl Iterator<Item = (ReceiverId, Pace)> {
        let among = if self.tally.set_aside > 0 { self.known.len() } else { 0 };
        let all = self.known.iter().take(among);
        all.filter(|(_, member)| member.is_set_aside()).map(|(id, member)| (*id, member.pace))
    }

    /// Returns the members with this treatment.
    pub fn with_pace(&self, pace: Pace) -> impl Iterator<Item = (ReceiverId, &MemberRecord)> {
        self.iter().filter(move |(_, member)| member.pace == pace)
    }

    /// Returns the number of members.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Returns the number of members at this host.
    pub fn at(&self, host: IpAddr) -> usize {
        self.hosts.get(&host).copied().unwrap_or(0)
    }

    /// Returns the counts of receivers and members.
    pub(crate) const fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the number of receivers, including those behind relays.
    pub fn receivers(&self) -> u64 {
        self.tally.receivers
    }

    /// Returns the number of completed receivers, including those behind relays.
    pub fn verified(&self) -> u64 {
        self.tally.done
    }

    /// Returns the number of completed members.
    pub fn done(&self) -> usize {
        self.tally.members_done as usize
    }

    /// Returns the number of incomplete members that are neither deferred nor dropped.
    pub fn unfinished(&self) -> usize {
        self.tally.unfinished as usize
    }

    /// Returns the number of unfinished members that still send and are reached by data.
    pub fn answering(&self) -> usize {
        self.tally.answering as usize
    }

    /// Returns the number of answering members that have shown that they receive the source.
    pub fn counted_on(&self) -> usize {
        self.tally.counted_on as usize
    }

    /// Returns the earlier records of restarted receivers. A restarted receiver has a new ID, but the same name and address.
    /// Either the earlier process has been silent since the later one joined, or both processes have completed.
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

    /// Returns the receivers to confirm and the receivers to welcome, as many as fit `room` bytes of a status message.
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

    /// Whether a receiver waits for its first answer.
    pub const fn has_confirmations(&self) -> bool {
        self.unanswered > 0
    }

    /// Whether a receiver waits for a first answer, or for the repetition of an answer.
    pub fn has_any_confirmation(&self) -> bool {
        !self.confirm.is_empty()
    }
}

/// Limits a reported rate to possible values.
fn sensible(rate: f32) -> f32 {
    if rate.is_finite() { rate.max(0.0) } else { 0.0 }
}

/// Returns the number of receivers that a member reports for, and the number of completed receivers among them. A receiver counts by
/// its recorded state: one that reports its completion and then leaves has completed. Impossible values of a relay are reduced to
/// possible ones. The state of a relay is not used: a relay is also `Done` if its only downstream receiver has failed.
fn spoken_for(report: &Report, state: MemberState, is_relay: bool) -> (u32, u32) {
    let receivers = report.receivers.min(if is_relay { MAX_MEMBERS as u32 } else { 1 });
    let is_done = state == MemberState::Done;
    (receivers, if is_relay { report.done.min(receivers) } else { receivers.min(u32::from(is_done)) })
}

impl MemberRecord {
    /// Returns the number of receivers counted for this member. If the member is replaced, or is a relay that is gone or
    /// unreachable, its incomplete receivers are not counted: they have moved or are missing.
    pub fn counted(&self) -> u32 {
        let has_left = self.pace == Pace::Gone || self.is_mute() && !self.is_finished();
        if self.is_replaced || self.is_relay && has_left {
            self.verified()
        } else {
            self.receivers + self.named
        }
    }

    /// Returns the path to the member, for traces.
    fn path(&self) -> Path {
        Path { receivers: self.counted(), loss: self.loss, round_trip: self.round_trip }
    }

    const SLOW_WINDOW: Span = Span::from_secs(3);

    fn new(report: &Report, seq: u64, address: SocketAddr, now: Time) -> MemberRecord {
        let is_relay = report.reason == RELAYS;
        let (receivers, receivers_done) = spoken_for(report, report.state, is_relay);
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
            dropped_local: report.dropped_local,
            unwritten_bytes: report.unwritten_bytes,
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
            resumed_bytes: report.resumed_bytes,
            done_at: None,
            asked_symbols: 0,
            round_trip: RoundTrip::default(),
            why: String::new(),
            reported: seq,
        }
    }

    /// Whether it has completed.
    pub fn has_all(&self) -> bool {
        self.state == MemberState::Done
    }

    fn is_waited_for(&self) -> bool {
        matches!(self.pace, Pace::Together | Pace::Deferred) && !self.is_finished()
    }

    fn is_set_aside(&self) -> bool {
        matches!(self.pace, Pace::Deferred | Pace::Dropped)
    }

    /// Whether it is silent or unreachable now.
    fn is_mute(&self) -> bool {
        self.mute != Mute::No
    }

    /// Whether the session may depend on its feedback.
    fn counts(&self) -> bool {
        self.receives && !self.is_mute()
    }

    /// Whether it has completed, failed or left.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, MemberState::Done | MemberState::Failed | MemberState::Leaving)
    }
}

#[cfg(test)]
mod tests;
