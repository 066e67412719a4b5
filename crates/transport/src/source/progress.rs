//! Progress of a source session, once a second, and its report at the end.

use super::{Phase, SourceSession, feedback};
use crate::config::{ReceiverEvents, other_default};
use crate::dry_run::DryRunReport;
use crate::error::{Error, TransferError, must_accept, seconds};
use crate::event::{
    Busy, Condition, Counts, Event, IncompleteReceiver, Joining, Limit, MAX_UNSENT, Progress,
    ReceiverOutcome, ReceiverReport, ReceiverState, SendReport, Subscription,
};
use crate::members::{MemberRecord, Mute, Pace};
use crate::object::Geometry;
use crate::units::mean_rate;
use faircast_core::node::{Observation, Source as _};
use faircast_core::packet::{Layer, ReceiverId};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Activity, MemberState};
use std::collections::BTreeSet;
use std::ops::Range;

/// Minimum fraction of the time for which a window must delay packets to count as the limit of the rate.
const HELD_PART: f64 = 0.1;

/// Fraction of the allowed rate below which the application is the limit.
const USED_PART: f64 = 0.8;

/// Duration without any receiver after which the user gets advice.
const NOBODY_FOR: Span = Span::from_secs(5);

/// Returns a description of a completed relay that has incomplete receivers.
fn below(member: &MemberRecord) -> Option<IncompleteReceiver> {
    let (all, done) = (member.receivers + member.named(), member.receivers_done + member.named());
    let is_done = member.state == MemberState::Done;
    (is_done && done < all).then(|| IncompleteReceiver {
        host: member.host.clone(),
        reason: format!("{} of the {all} receivers downstream of this relay are incomplete", all - done),
    })
}

/// Returns the number of whole seconds from `now` to `at`, rounded up; `None` if `at` is not later.
fn seconds_between(now: Time, at: Time) -> Option<u64> {
    (at > now).then(|| at.since(now).as_nanos().div_ceil(1_000_000_000))
}

/// Returns the condition of a member.
fn condition(member: &MemberRecord) -> Condition {
    match (member.state, member.pace, member.mute) {
        (MemberState::Done, ..) => Condition::Done,
        (MemberState::Failed | MemberState::Leaving, ..) | (_, Pace::Gone, _) => Condition::Failed,
        (_, Pace::Dropped, _) => Condition::Dropped,
        (_, _, Mute::Silent) => Condition::Silent,
        (_, _, Mute::Unreached { .. }) => Condition::Unreached,
        (_, Pace::Deferred, _) => Condition::Deferred,
        (_, Pace::Together, Mute::No | Mute::Stuck) => Condition::Receiving,
    }
}

/// Returns a description of a failed member.
fn incomplete(member: &MemberRecord) -> IncompleteReceiver {
    IncompleteReceiver { host: member.host.clone(), reason: feedback::reason(member) }
}

impl SourceSession {
    /// Returns the report of the finished session.
    pub(crate) fn report(mut self) -> Result<SendReport, Error> {
        let stopped = match self.failure.take() {
            None => false,
            Some(Error::Transfer(TransferError::Stopped)) => true,
            Some(error) => return Err(error),
        };
        let finished = self.clocks.finished;
        let started = self.clocks.started.unwrap_or(finished);
        let idle_since = self.clocks.idle_since.unwrap_or(finished).min(finished);
        let sending = self.sending(finished);
        let amounts = self.scheduler.amounts();
        let bytes = amounts.content_bytes;
        let expected = u64::from(self.setup.expect.unwrap_or(0));
        let replaced = self.members.replaced();
        let twice = replaced.iter().filter_map(|id| self.members.get(*id));
        let receivers = self.members.receivers()
            - twice.map(|member| u64::from(member.counted() - member.verified())).sum::<u64>();
        let verified = self.members.verified();
        let missing = expected.saturating_sub(receivers);
        let (each, unsigned) = self.each(&replaced, missing);
        let with = |outcome| each.iter().filter(move |one: &&ReceiverReport| one.outcome == outcome);
        let names = |outcome| with(outcome).map(|one| one.host.clone()).collect::<Vec<_>>();
        let named = |outcome| with(outcome).map(ReceiverReport::incomplete);
        let incomplete: Vec<_> =
            named(ReceiverOutcome::Incomplete).filter(|one| !unsigned.contains(&one.host)).collect();
        // Receivers count withdrawn files as verified, so the number of moved bytes is limited to the bytes of the content.
        let moved_bytes = if verified > 0 { self.moved_bytes(bytes) } else { self.max_moved() }.min(bytes);
        let receipts = self.receipts_report(&replaced);
        let signed = receipts.as_ref().is_none_or(|receipts| receipts.without_receipt.is_empty());
        let (dropped, absent) = (names(ReceiverOutcome::Dropped), names(ReceiverOutcome::Absent));
        let refused_hosts: Vec<_> = named(ReceiverOutcome::Refused).collect();
        let host = |member: &MemberRecord| member.host.clone();
        let lacking = [incomplete.len(), dropped.len(), absent.len(), refused_hosts.len()];
        let rounds = self.setup.one_way.map_or(0, |_| self.scheduler.rounds());
        let is_expected = match self.setup.one_way {
            Some(_) => rounds > 0,
            None => verified > 0 && verified >= expected,
        };
        let everybody = lacking == [0; 4] && signed && !stopped;
        Ok(SendReport {
            stopped,
            waited: finished.since(idle_since).into(),
            ok: everybody && is_expected && self.scheduler.unsent().is_empty(),
            unsent: self.scheduler.unsent().iter().take(MAX_UNSENT).cloned().collect(),
            unsent_count: self.scheduler.unsent().len() as u64,
            dropped,
            absent,
            refused_hosts,
            moved_bytes,
            rounds,
            receivers,
            missing,
            verified,
            bytes,
            duration: sending.into(),
            until_data: started.since(Time::ZERO).into(),
            goodput: mean_rate(moved_bytes, sending),
            layers: self.source.layers(),
            repair_ratio: self.repair_ratio(),
            packets: self.counts.packets,
            packet_bytes: self.packet_bytes() as u64,
            cuts: self.source.observe().cuts,
            advice: if incomplete.is_empty() { None } else { self.advice() },
            incomplete,
            slow: self.slow_named.iter().filter_map(|id| self.members.get(*id)).map(host).collect(),
            refused: self.counts.refused.total(),
            refused_by: self.counts.refused,
            streams: self.scheduler.streams(),
            relays: self.members.relays(),
            hosts: Vec::new(),
            signed: receipts.as_ref().map_or(0, |receipts| receipts.good),
            receipts,
            each,
            dry_run: self.dry_run_report(),
        })
    }

    /// Returns the time from the first data packet to completion at all receivers, or to the end of the session.
    pub(super) fn sending(&self, finished: Time) -> Span {
        let idle_since = self.clocks.idle_since.unwrap_or(finished).min(finished);
        idle_since.since(self.clocks.started.unwrap_or(finished))
    }

    /// Returns the number of symbols sent on all layers, divided by the number of symbols of the content.
    pub(super) fn repair_ratio(&self) -> f64 {
        let amounts = self.scheduler.amounts();
        amounts.sent_symbols as f64 / amounts.content_symbols.max(1) as f64
    }

    /// Returns the size of a datagram with a symbol, IP and UDP headers included.
    pub(super) const fn packet_bytes(&self) -> usize {
        self.setup.datagram + self.setup.overhead
    }

    /// Returns the result of a dry run.
    fn dry_run_report(&self) -> Option<DryRunReport> {
        let whole = Geometry { stream_len: Some(self.setup.dry_run?), ..self.scheduler.geometry() };
        let len_of = |blocks: Range<u32>| {
            blocks.map(|block| u64::from(whole.symbols(block)) * u64::from(whole.symbol_size)).sum()
        };
        let (union, list) = (self.comparisons.union(&whole), len_of(0..whole.manifest_blocks()));
        // Layers carry all blocks until every receiver is complete.
        let needed_bytes = if self.layers() > 1 && union > list { len_of(0..whole.blocks()?) } else { union };
        let packets = needed_bytes / u64::from(whole.symbol_size);
        let on_the_wire = packets * u64::from(self.setup.scheme.sending().packet_size);
        Some(DryRunReport {
            bytes: self.setup.dry_run? - u64::from(whole.manifest_len),
            compared: self.comparisons.count(),
            needed_bytes,
            duration: self.max_rate().map(|max| max.span_of(on_the_wire).into()),
        })
    }

    /// Returns the expected hosts that are not members: the absent required hosts. If `missing` is larger than their number, also
    /// returns the hosts that have refused to join.
    fn strangers(&self, missing: u64) -> Vec<ReceiverReport> {
        let refused =
            |one: &IncompleteReceiver| ReceiverReport::refused(one.host.clone(), one.reason.clone());
        let absent = self.roll.absent();
        let named = absent.iter().map(|required| match self.refusals.of(required) {
            Some(one) => ReceiverReport { host: required.to_string(), ..refused(one) },
            None => ReceiverReport::absent(required.to_string()),
        });
        let mut each: Vec<ReceiverReport> = named.collect();
        if missing > each.len() as u64 {
            let is_member =
                |one: &IncompleteReceiver| self.members.iter().any(|(_, member)| member.host == one.host);
            let others = self.refusals.besides(absent).into_iter().filter(|one| !is_member(one));
            let others: Vec<_> = others.map(refused).collect();
            each.extend(others);
        }
        each
    }

    /// Returns the expected hosts, when no receiver has joined.
    pub(super) fn not_here(&self) -> Vec<ReceiverReport> {
        let mut each = self.strangers(u64::MAX);
        each.sort_by(|one, other| one.host.cmp(&other.host));
        each
    }

    /// Returns the outcome of each receiver, relay and absent required host, sorted by host name. The restarted members
    /// (`replaced`) are left out. Also returns the names of the hosts that lack only a receipt.
    fn each(&self, replaced: &BTreeSet<ReceiverId>, missing: u64) -> (Vec<ReceiverReport>, BTreeSet<String>) {
        let mut unsigned = BTreeSet::new();
        // If the expected number of receivers have completed, an incomplete relay is not reported, because its children may have
        // moved.
        let expected = u64::from(self.setup.expect.unwrap_or(0));
        let all_are_done = expected > 0 && self.members.verified() >= expected;
        let is_missed =
            |member: &MemberRecord| !member.is_relay || !all_are_done || member.state == MemberState::Done;
        let finished = self.clocks.finished;
        let started = self.clocks.started.unwrap_or(finished);
        let speaking = self.members.iter().filter(|(id, member)| !replaced.contains(id) && is_missed(member));
        let present = speaking.map(|(id, member)| {
            let lacks = self.lacks_receipt(id, member).filter(|_| member.has_all());
            let outcome = match member.pace {
                _ if lacks.is_some() => {
                    unsigned.insert(member.host.clone());
                    ReceiverOutcome::Incomplete
                }
                _ if member.has_all() && below(member).is_none() => ReceiverOutcome::Verified,
                Pace::Dropped => ReceiverOutcome::Dropped,
                _ => ReceiverOutcome::Incomplete,
            };
            let until = member.done_at.unwrap_or(finished);
            let receiving = until.since(started.max(member.joined_at));
            let moved = member.verified_bytes.saturating_sub(member.resumed_bytes);
            let why = || below(member).map_or_else(|| feedback::reason(member), |below| below.reason);
            let why = || lacks.unwrap_or_else(why);
            ReceiverReport {
                host: member.host.clone(),
                address: Some(member.address),
                outcome,
                receivers: member.counted().into(),
                verified_bytes: member.verified_bytes,
                resumed_bytes: member.resumed_bytes,
                duration: receiving.into(),
                rate: mean_rate(moved, receiving),
                loss: f64::from(member.loss),
                rtt: member.round_trip.least().map(Into::into),
                congested_rtt: member.round_trip.congested().map(Into::into),
                joined: member.joined_at.since(started).into(),
                repair_symbols: member.asked_symbols,
                reason: (outcome != ReceiverOutcome::Verified).then(why),
                receipt: self.receipts.of(id),
            }
        });
        let mut each: Vec<ReceiverReport> = present.collect();
        each.extend(self.strangers(missing));
        each.sort_by(|one, other| (&one.host, one.address).cmp(&(&other.host, other.address)));
        (each, unsigned)
    }

    /// Returns the number of content bytes that this session has transferred, given the number of bytes `sent`. If all receivers
    /// resumed, returns the largest number of bytes that a receiver has verified in this session, at most the bytes of all symbols.
    fn moved_bytes(&self, sent: u64) -> u64 {
        if !self.resumes {
            return sent;
        }
        let symbols = self.scheduler.amounts().sent_symbols;
        self.max_moved().min(symbols * u64::from(self.scheduler.geometry().symbol_size))
    }

    /// Returns the largest number of bytes that any receiver has verified in this session.
    fn max_moved(&self) -> u64 {
        let got =
            |(_, member): (_, &MemberRecord)| member.verified_bytes.saturating_sub(member.resumed_bytes);
        self.members.iter().map(got).max().unwrap_or(0)
    }

    /// Returns the smallest number of bytes verified by a receiver that is served with the group.
    fn least_verified(&self) -> u64 {
        self.members.with_pace(Pace::Together).map(|(_, member)| member.verified_bytes).min().unwrap_or(0)
    }

    /// Returns the state of joining before the start.
    fn joining(&self, now: Time) -> Option<Joining> {
        if self.begins_at().is_some() || !matches!(self.phase, Phase::Gathering { .. }) {
            return None;
        }
        let has_failed = |member: &MemberRecord| member.is_finished() && !member.has_all();
        let failed: Vec<_> = self.members.iter().filter(|(_, member)| has_failed(member)).collect();
        let lost = failed.iter().map(|(_, member)| u64::from(member.receivers)).sum::<u64>();
        let named = failed.iter().take(Joining::NAMED);
        Some(Joining {
            joined: self.members.receivers().saturating_sub(lost),
            expected: self.setup.expect.map(u64::from),
            absent: self.roll.absent().iter().take(Joining::NAMED).map(ToString::to_string).collect(),
            failed: named.map(|(_, member)| incomplete(member)).collect(),
            seconds_to_start: seconds_between(now, self.setup.not_before),
        })
    }

    /// Reports, with advice, that no receiver joins. Does nothing if the reason is known, or if packets do not leave this host.
    pub(super) fn report_no_receiver(&mut self, now: Time) {
        let waits = self.begins_at().is_none()
            && matches!(self.phase, Phase::Gathering { .. })
            && now >= Time::ZERO + NOBODY_FOR;
        let is_known = self.nobody_reported || self.refusals.any() || self.setup.local.ip().is_loopback();
        if !waits || is_known || self.members.count() > 0 {
            return;
        }
        self.nobody_reported = true;
        let group = self.setup.groups[0];
        let other = other_default(group).map(|other| format!("; {other}")).unwrap_or_default();
        self.events.push_back(Event::warning(format!(
            "no receiver has joined within {}: check that a receiver runs, with the same group ({group}) and the same key. {}, and receivers must accept UDP on port {}. Otherwise check the interface, and whether a switch snoops IGMP without a querier{other}",
            seconds(NOBODY_FOR.as_secs_f64()),
            must_accept(self.setup.local.port()),
            group.port()
        )));
    }

    pub(super) fn emit_progress(&mut self, now: Time) {
        let seen = self.source.observe();
        let bytes = self.counts.wire_bytes - self.counts.wire_bytes_last;
        self.counts.wire_bytes_last = self.counts.wire_bytes;
        let representative =
            seen.limiting.and_then(|id| self.members.get(id)).map(|member| member.host.clone());
        let (held, by) = self.windows.held(now);
        let held_now = held.saturating_sub(std::mem::replace(&mut self.counts.held_last, held));
        let limit = self.limit(bytes, (held_now, by), Span::from_secs(1));
        self.trace_limit(limit, bytes, now);
        let holder = limit.and_then(|(_, holder)| holder);
        let is_heard = |member: &&MemberRecord| member.mute != Mute::Silent && member.pace != Pace::Gone;
        let last_received = || self.members.iter().map(|(_, member)| member).filter(is_heard);
        let amounts = self.scheduler.amounts();
        let total = amounts.content_bytes;
        self.events.push_back(Event::Progress(Progress {
            elapsed: now.since(Time::ZERO).into(),
            bytes: if self.resumes {
                self.least_verified().min(total)
            } else {
                amounts.sent_bytes.min(total)
            },
            moved_bytes: self.moved_bytes(amounts.sent_bytes.min(total)),
            total_bytes: self.scheduler.status().blocks.map(|_| total),
            rate: Rate::from_bps(bytes as f64 * 8.0),
            allowed: Some(seen.rate),
            // If no member sends feedback, the measured round-trip time is obsolete.
            rtt: last_received().next().map(|_| seen.rtt.into()),
            loss: f64::from(last_received().map(|member| member.loss).fold(0.0, f32::max)),
            representative,
            receivers: self.members.receivers(),
            verified: self.members.verified(),
            joining: self.joining(now).map(Box::new),
            layers: self.layers_on(),
            limited_by: limit.map(|(limit, _)| limit),
            window_of: holder.and_then(|id| self.members.get(id)).map(|member| member.host.clone()),
            relays: self.members.relays(),
            busy: self.members.busy(),
            cuts: std::mem::take(&mut self.cuts),
            queues: None,
            counts: Some(Box::new(Counts {
                packets: self.counts.packets,
                repairs: self.counts.repairs,
                refused: self.counts.refused.total(),
                refused_by: self.counts.refused,
                cuts: seen.cuts,
                ..Counts::default()
            })),
        }));
        if self.setup.receiver_events == ReceiverEvents::EverySecond {
            self.emit_receivers(&seen, holder);
        }
    }

    /// Reports the states of receivers: of the next ones, if all are more than an event has.
    fn emit_receivers(&mut self, seen: &Observation, holder: Option<ReceiverId>) {
        let state = |(id, member): (ReceiverId, &MemberRecord)| ReceiverState {
            receiver: id,
            host: member.host.clone(),
            address: member.address,
            state: condition(member),
            verified_bytes: member.verified_bytes,
            rate: Rate::from_bps(f64::from(member.rate)),
            loss: f64::from(member.loss),
            rtt: (seen.limiting == Some(id)).then(|| seen.rtt.into()),
            holds: holder == Some(id),
            dropped_local: member.dropped_local.into(),
            unwritten_bytes: member.unwritten_bytes,
            repair_symbols: member.asked_symbols,
            busy: (member.activity.0 != Activity::Network && !member.is_finished())
                .then(|| Busy::new(&member.host, member.activity)),
            receivers: member.counted().into(),
            done: member.verified().into(),
            reason: (condition(member) == Condition::Failed).then(|| feedback::reason(member)),
        };
        let next = self.members.after(self.listed.take()).take(ReceiverState::LISTED);
        let receivers: Vec<_> = next.map(state).collect();
        if receivers.len() == ReceiverState::LISTED {
            self.listed = receivers.last().map(|one| one.receiver);
        }
        if !receivers.is_empty() {
            self.events.push_back(Event::Receivers { receivers });
        }
    }

    /// Returns the factor that limited the rate during the latest `span`, in which `bytes` were sent, and in which windows held the
    /// source for `held`. If it was a window, also returns its receiver.
    pub(super) fn limit(
        &self,
        bytes: u64,
        (held, by): (Span, Option<ReceiverId>),
        span: Span,
    ) -> Option<(Limit, Option<ReceiverId>)> {
        let is_controlled = self.layers() == 1 && self.setup.one_way.is_none();
        if !is_controlled || !matches!(self.phase, Phase::Sending) {
            return None;
        }
        let allowed = self.source.observe().rate;
        let (held, seconds) = (held.as_secs_f64(), span.as_secs_f64());
        let by = by.filter(|id| held >= HELD_PART * seconds && self.members.get(*id).is_some());
        Some(match by {
            Some(_) => (Limit::Window, by),
            _ if (bytes as f64) * 8.0 < allowed.bps() * USED_PART * seconds => (Limit::Application, None),
            _ if self.max_rate().is_some_and(|max| allowed.bps() >= max.bps()) => (Limit::Max, None),
            _ => (Limit::Congestion, None),
        })
    }

    /// Returns the number of active layers of a layered session.
    pub(super) fn layers_on(&self) -> Option<Subscription> {
        let of = self.layers();
        let is_on = |layer: &u8| self.source.layer_rate(Layer(*layer)).bps() > 0.0;
        (of > 1).then(|| Subscription { joined: (0..of).filter(is_on).count() as u8, of })
    }
}
