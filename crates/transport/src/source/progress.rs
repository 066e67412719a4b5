//! How a source session goes, once a second, and how it ended.

use super::{Phase, SourceSession, feedback};
use crate::error::Error;
use crate::event::{Event, IncompleteReceiver, Limit, Progress, SendReport, Subscription};
use crate::members::{MemberRecord, Pace};
use faircast_core::node::Source as _;
use faircast_core::packet::Layer;
use faircast_core::time::{Span, Time};

/// A window that holds the source for so much of a second limits the rate; an application that uses less than this part of
/// it does.
const HELD_PART: Span = Span::from_millis(100);

const USED_PART: f64 = 0.8;

/// A relay that is done while some of those below it are not complete.
fn below(member: &MemberRecord) -> Option<IncompleteReceiver> {
    let (all, done) = (member.receivers, member.receivers_done);
    let is_done = member.state == faircast_wire::MemberState::Done;
    (is_done && done < all).then(|| IncompleteReceiver {
        host: member.host.clone(),
        reason: format!("{} of the {all} receivers below this relay are incomplete", all - done),
    })
}

impl SourceSession {
    /// How it ended.
    pub(crate) fn report(mut self) -> Result<SendReport, Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let started = self.clocks.started.unwrap_or(self.clocks.finished);
        let seconds = self.clocks.finished.since(started).as_secs_f64();
        let amounts = self.delivery.amounts();
        let bytes = amounts.content_bytes;
        let host = |member: &MemberRecord| member.host.clone();
        let expected = u64::from(self.setup.expect.unwrap_or(0));
        // A relay that has vanished is nobody's loss when as many are done as were expected.
        let is_missed =
            |member: &MemberRecord| !member.is_relay || expected == 0 || self.members.verified() < expected;
        let replaced = self.members.replaced();
        let twice = replaced.iter().filter_map(|id| self.members.get(*id));
        let receivers =
            self.members.receivers() - twice.map(|member| u64::from(member.counted())).sum::<u64>();
        let mut incomplete: Vec<_> = self
            .members
            .iter()
            .filter(|(_, member)| {
                member.state != faircast_wire::MemberState::Done && member.pace != Pace::Dropped
            })
            .filter(|(id, member)| !replaced.contains(id) && is_missed(member))
            .map(|(_, member)| IncompleteReceiver { host: host(member), reason: feedback::reason(member) })
            .collect();
        incomplete.extend(self.members.iter().filter_map(|(_, member)| below(member)));
        let verified = self.members.verified();
        let dropped = self.members.with_pace(Pace::Dropped).count() as u64;
        Ok(SendReport {
            ok: incomplete.is_empty() && verified > 0 && verified + dropped >= expected,
            receivers,
            missing: expected.saturating_sub(receivers),
            verified,
            bytes,
            seconds,
            start_seconds: started.as_secs_f64(),
            goodput_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            layers: self.source.layers(),
            repair_ratio: amounts.sent_symbols as f64 / amounts.content_symbols.max(1) as f64,
            packets: self.counts.packets,
            cuts: self.source.observe().cuts,
            advice: if incomplete.is_empty() { None } else { self.advice() },
            incomplete,
            slow: self.slow_named.iter().filter_map(|id| self.members.get(*id)).map(host).collect(),
            refused: self.counts.refused,
            streams: self.delivery.streams(),
            relays: self.members.relays(),
            hosts: Vec::new(),
        })
    }

    pub(super) fn tell_progress(&mut self, now: Time) {
        let seen = self.source.observe();
        let bytes = self.counts.wire_bytes - self.counts.wire_bytes_last;
        self.counts.wire_bytes_last = self.counts.wire_bytes;
        let representative =
            seen.limiting.and_then(|id| self.members.get(id)).map(|member| member.host.clone());
        let limit = self.limit(bytes, now);
        let amounts = self.delivery.amounts();
        let total = amounts.content_bytes;
        self.events.push_back(Event::Progress(Progress {
            seconds: now.as_secs_f64(),
            bytes: amounts.sent_bytes.min(total),
            total_bytes: self.delivery.status().blocks.map(|_| total),
            rate_bps: bytes as f64 * 8.0,
            allowed_bps: Some(seen.rate.bps()),
            rtt_ms: Some(seen.rtt.as_secs_f64() * 1e3),
            loss: f64::from(self.members.iter().map(|(_, member)| member.loss).fold(0.0, f32::max)),
            representative,
            receivers: self.members.receivers(),
            verified: self.members.verified(),
            layers: self.layers_on(),
            limited_by: limit.as_ref().map(|(limit, _)| *limit),
            window_of: limit.and_then(|(_, host)| host),
            relays: self.members.relays(),
        }));
    }

    /// What limited the rate over the last second, in which so many bytes left.
    fn limit(&mut self, bytes: u64, now: Time) -> Option<(Limit, Option<String>)> {
        let (held, by) = self.windows.take_held(now);
        if self.layers() > 1 || !matches!(self.phase, Phase::Sending) {
            return None;
        }
        let allowed = self.source.observe().rate;
        let host = by.and_then(|id| self.members.get(id)).map(|member| member.host.clone());
        Some(match host {
            Some(host) if held >= HELD_PART => (Limit::Window, Some(host)),
            _ if (bytes as f64) * 8.0 < allowed.bps() * USED_PART => (Limit::Application, None),
            _ if self.setup.max.is_some_and(|max| allowed.bps() >= max.bps()) => (Limit::Max, None),
            _ => (Limit::Congestion, None),
        })
    }

    /// How many of a layered session's layers send.
    pub(super) fn layers_on(&self) -> Option<Subscription> {
        let of = self.layers();
        let is_on = |layer: &u8| self.source.layer_rate(Layer(*layer)).bps() > 0.0;
        (of > 1).then(|| Subscription { joined: (0..of).filter(is_on).count() as u8, of })
    }
}
