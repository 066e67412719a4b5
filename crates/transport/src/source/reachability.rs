//! Reachability of receivers, in both directions.
//!
//! A member answers announcements, and its echo (the number of its newest packet) shows whether data reaches it. If a member is
//! silent or unreached, a warning names the member, and the source waits for it. Meanwhile the congestion control does not expect
//! answers from this member. After the idle timeout, the source gives the member up.

use super::{Phase, SourceSession};
use crate::event::{Advice, Event, LOOK_AT_PATH, Setting};
use crate::members::{MemberRecord, Mute};
use faircast_core::node::SourceControl;
use faircast_core::packet::{ReceiverId, Seq};
use faircast_core::time::{Span, Time};
use std::collections::VecDeque;

/// Duration within which a sent packet must reach a receiver. A receiver whose newest packet is older is unreached.
const UNREACHED_AFTER: Span = Span::from_secs(5);

/// Fraction of the idle timeout (5 s of a minute) after which a silent receiver is named in a warning. From then on, the
/// congestion control does not expect its answers.
const NAMED_AFTER: f64 = 1.0 / 12.0;

/// Minimum duration of silence after which a receiver is named. Receivers report once a second, so the loss of a few reports
/// names no receiver.
const SOONEST: Span = Span::from_secs(5);

/// Maximum number of receivers named at once.
const MAX_NAMED: usize = 3;

/// Departure times of packets of the base layer, sampled once a second.
#[derive(Debug, Default)]
pub(super) struct SendTimes(VecDeque<(Time, Seq)>);

impl SendTimes {
    /// Records that at time `now`, the next packet has the number `next`.
    pub(super) fn sample(&mut self, now: Time, next: Seq) {
        self.0.push_back((now, next));
        while self.0.len() > 2 && now.since(self.0[1].0) >= UNREACHED_AFTER {
            self.0.pop_front();
        }
    }

    /// Returns the packet number below which all packets were sent at least `span` before `now`.
    fn before(&self, now: Time, span: Span) -> Seq {
        let old = self.0.iter().rev().find(|(at, _)| now.since(*at) >= span);
        old.map_or(Seq(0), |(_, next)| *next)
    }
}

impl SourceSession {
    /// Handles the newest packet number that a member reports; `None` if the member has received no packet.
    pub(super) fn on_echo(&mut self, from: ReceiverId, echo: Option<Seq>, now: Time) {
        let long_gone = self.left.before(now, UNREACHED_AFTER);
        let recent = self.left.before(now, Span::from_secs(1));
        if let Some(seq) = echo
            && self.bursts.on_echo(seq, self.next_seqs[0])
        {
            self.report_bursts();
        }
        if self.members.on_echo(from, echo, self.next_seqs[0], long_gone, recent, now) {
            self.report_answering(now);
        }
    }

    /// Finds silent and unreached members; called once a second.
    pub(super) fn look_for_reach(&mut self, now: Time) {
        self.left.sample(now, self.next_seqs[0]);
        self.members.count_speaking(now);
        if !matches!(self.phase, Phase::Sending) {
            return;
        }
        let spread = self.members.spread(now, self.setup.spread);
        let idle_timeout = self.setup.idle_timeout.max(spread * 4);
        let soonest = SOONEST.min(idle_timeout.scaled(0.5)).max(spread * 4);
        let silent_after = idle_timeout.scaled(NAMED_AFTER).max(soonest);
        let muted = self.members.mute(now, silent_after);
        for id in muted.silent.iter().chain(&muted.unreached) {
            self.control(SourceControl::Forget(*id), now);
        }
        let waits = format!("waiting up to {} s for this to change", self.setup.idle_timeout.as_secs_f64());
        if !muted.silent.is_empty() {
            let who = self.named(&muted.silent, ("has", "have"));
            let message = format!("{who} been silent for {silent_after}; {waits}");
            self.events.push_back(Event::warning_of(Setting::Timeout, message));
        }
        if !muted.unreached.is_empty() {
            let who = self.named(&muted.unreached, ("answers", "answer"));
            let symbol = usize::from(self.scheduler.geometry().symbol_size);
            let bytes = symbol + self.header + self.setup.overhead;
            let message = format!(
                "{who}, but no data arrives there: packets of {bytes} bytes are lost on the path; {waits}; {LOOK_AT_PATH}"
            );
            self.events.push_back(Event::warning_of(Setting::Datagram, message));
        }
        if self.bursts.on_unreached(!muted.unreached.is_empty(), self.members.unreached(), now) {
            self.report_bursts();
        }
        self.give_up(now, idle_timeout, spread);
        self.leave_out_stuck(silent_after, idle_timeout, now);
        self.report_answering(now);
    }

    fn report_bursts(&mut self) {
        self.events.push_back(Event::warning(
            "receivers get packets that are sent one at a time, but no packets that are sent in bursts: a host on the path, such as a \
                 kernel that forwards multicast, drops bursts instead of splitting them. From now on, each packet is sent by itself, which \
                 takes more processor time (`ethtool -K <interface> tx-udp-segmentation off` on this host has the same effect)",
        ));
    }

    /// Gives up members that have been silent, or not reached, for the idle timeout.
    fn give_up(&mut self, now: Time, idle_timeout: Span, spread: Span) {
        let gone = self.members.expire(now, idle_timeout, spread);
        let replaced = if gone.is_empty() { Default::default() } else { self.members.replaced() };
        for id in gone {
            self.windows.forget(id);
            self.control(SourceControl::Forget(id), now);
            let Some(member) = self.members.get(id) else { continue };
            let reason = match member.mute {
                Mute::Unreached { .. } => format!("no data has reached it for {idle_timeout}"),
                _ if replaced.contains(&id) => "it was restarted".to_owned(),
                _ => format!("silent for {idle_timeout}"),
            };
            let host = member.host.clone();
            self.events.push_back(Event::Left { receiver: id, host, verified: false, reason: Some(reason) });
        }
    }

    /// Notifies the scheme if the number of members that can be expected to answer has changed.
    fn report_answering(&mut self, now: Time) {
        let answering = self.members.counted_on();
        if self.answering != answering {
            self.answering = answering;
            self.control(SourceControl::Members(answering), now);
        }
    }

    /// Returns the names of these receivers and a verb (the singular `one` or the plural `many`), as the start of a sentence.
    fn named(&self, ids: &[ReceiverId], (one, many): (&str, &str)) -> String {
        let hosts = ids.iter().filter_map(|id| self.members.get(*id)).map(|member| member.host.as_str());
        let mut names: Vec<String> = hosts.take(MAX_NAMED).map(str::to_owned).collect();
        if ids.len() > MAX_NAMED {
            names.push(format!("{} others", ids.len() - MAX_NAMED));
        }
        format!("{} {}", names.join(", "), if ids.len() == 1 { one } else { many })
    }

    /// Whether to ignore the requests of a member, because data does not reach this member. While data is sent for other members,
    /// the data shows when this member is reached again. If all members are unreached, only repairs can show this, so no request
    /// is ignored.
    pub(super) fn asks_in_vain(&self, from: ReceiverId) -> bool {
        self.members.get(from).is_some_and(is_unreached) && self.members.counted_on() > 0
    }

    /// Returns advice for the user if the session ended with incomplete receivers.
    pub(super) fn advice(&self) -> Option<Advice> {
        let lacking = || self.members.iter().map(|(_, member)| member).filter(|member| !member.has_all());
        if lacking().any(is_unreached) {
            return Some(Advice::Path);
        }
        let none_received = self.members.done() == 0 && lacking().all(|member| member.mute == Mute::Silent);
        (none_received && lacking().next().is_some()).then_some(Advice::WayBack)
    }
}

/// Whether a member gave up, or was given up, because no data arrived.
pub(super) fn is_unreached(member: &MemberRecord) -> bool {
    matches!(member.mute, Mute::Unreached { .. }) || member.reason == crate::membership::REASON_NO_DATA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_times_return_the_packet_number_of_a_few_seconds_ago() {
        let mut left = SendTimes::default();
        let at = |second| Time::ZERO + Span::from_secs(second);
        assert_eq!(left.before(at(0), UNREACHED_AFTER), Seq(0));
        (0..100).for_each(|second| left.sample(at(second), Seq(second * 10)));
        assert_eq!(left.before(at(99), UNREACHED_AFTER), Seq(940));
        assert_eq!(left.before(at(99), Span::from_secs(1)), Seq(980));
        assert!(left.0.len() < 10, "{}", left.0.len());
    }
}
