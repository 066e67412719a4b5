//! Processing of feedback at the source.

use super::flood::Step;
use super::scheduler::Requester;
use super::window::GivenUp;
use super::{BASE, Pacing, Phase, Serving, SourceSession};
use crate::config::SlowReceiverPolicy;
use crate::event::{Event, RateCut, SlowAction, reasons};
use crate::members::{Change, MemberRecord, Mute, Pace};
use crate::membership::{FLOODED, NOTHING_YET, RELAYS};
use crate::trace::Call;
use faircast_core::node::{Cx, Departure, Observation, Source as _, SourceControl};
use faircast_core::packet::{Cause, Echo, Layer, ReceiverId, Report, ReportContent};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Form, Member as MemberReport, MemberState, Message, Request, Window};
use std::net::SocketAddr;
use std::ops::Range;

/// Maximum number of blocks per request.
const MAX_BLOCKS: u32 = 8192;

/// A receiver counts as slow when it has been congested for this duration at a rate close to the bound of `--slow`.
const SLOW_FOR: Span = Span::from_millis(200);
const NEAR: f64 = 1.25;

/// Minimum duration for which a receiver's window must delay packets before the receiver counts as slow. This duration is longer
/// than a short pause of a host.
const HELD_FOR: Span = Span::from_millis(500);

/// Duration after which a receiver that limits the rate is reported by name.
const NAMED_AFTER: Span = Span::from_secs(2);

/// Returns the requested blocks that exist. Other blocks are left out, because each would cost processing time.
pub(super) fn asked(first: u32, run: u32, end: Option<u32>) -> Range<u32> {
    first..first.saturating_add(run).min(end.unwrap_or(u32::MAX))
}

impl SourceSession {
    /// Processes a receiver's datagram, which arrived at `arrived` (the kernel's time, not after `now`).
    pub(super) fn on_datagram(&mut self, bytes: &mut [u8], from: SocketAddr, arrived: Time, now: Time) {
        // The time for which the datagram waited in queues of this host is not part of the path's delay.
        let waited = now.since(arrived);
        let (seq, mut message) = match self.codec.open(bytes, from) {
            Ok(opened) => opened,
            Err(error) => {
                self.counts.refused.count(&error);
                self.events.extend(self.refusals.on_unopened(&error, from).map(Event::warning));
                return;
            }
        };
        if let Message::Refusal(refusal) = &message {
            let unix_secs = (self.setup.started + now.as_nanos()) / 1_000_000_000;
            self.events.extend(self.refusals.on_refusal(refusal, from, self.codec.key_id(), unix_secs));
            return;
        }
        if !self.is_believed(&message, from, now) {
            self.counts.refused.sender += 1;
            return;
        }
        self.scope.received(&message, now);
        match &mut message {
            Message::Report(report) => {
                let echo = report.content.echo_mut();
                echo.hold = echo.hold + waited;
                self.on_report(*report, now);
            }
            Message::Request(request) => self.on_request(request, from, now),
            Message::Member(member) => {
                member.echo.hold = member.echo.hold + waited;
                self.on_member(member, seq, from, now);
            }
            Message::Window(window) => {
                window.echo.hold = window.echo.hold + waited;
                self.on_window(window, now);
            }
            Message::Data(_)
            | Message::Announce(_)
            | Message::Status(_)
            | Message::Hashes(_)
            | Message::Token(_)
            | Message::Invite(_)
            | Message::Order(_)
            | Message::Refusal(_) => self.counts.refused.unexpected += 1,
            Message::Tree(tree) => self.members.on_tree(tree),
            Message::Verified(verified) => {
                self.members.on_verified(verified);
                self.status_soon(now);
            }
            Message::Receipt(receipt) => self.on_receipt(receipt, now),
            Message::Attach(_) => {} // the child is attached already; it repeats this to stay attached
        }
    }

    /// Whether a message is authentic. A sealed message is always authentic. An unsealed message must come from the address of
    /// its sender, and a member must join before it sends other messages.
    fn is_believed(&self, message: &Message<'_>, from: SocketAddr, now: Time) -> bool {
        let Some(id) = message.from() else { return false };
        if self.codec.form() == Form::Sealed {
            return true;
        }
        let has_joined = self.members.count() == 0 || self.members.knows(id);
        (has_joined || matches!(message, Message::Member(_))) && !self.members.is_elsewhere(id, from, now)
    }

    fn on_member(&mut self, report: &MemberReport, seq: u64, from: SocketAddr, now: Time) {
        let change = self.members.on_report(report, seq, from, now);
        if matches!(report.state, MemberState::Asking | MemberState::Relaying) {
            self.members.on_asking(report.from, self.next_seqs[0]);
            if let Phase::Gathering { last_received } = &mut self.phase {
                *last_received = now; // the host will join soon
            }
            return self.status_soon(now);
        }
        let receiver = report.from;
        let host = report.host.as_str().to_owned();
        if change != Change::None {
            self.roll.on_joined(&host, from.ip());
        }
        match change {
            Change::None => {}
            Change::Joined => {
                if let Phase::Gathering { last_received } = &mut self.phase {
                    *last_received = now;
                }
                if matches!(self.phase, Phase::Sending) {
                    self.scheduler.welcome();
                }
                self.events.push_back(Event::Joined { receiver: Some(receiver), host, address: from });
            }
            Change::Done => {
                self.windows.forget(report.from);
                // A relay reports completion repeatedly, whenever its receivers complete, and continues to serve others.
                if report.reason != RELAYS {
                    self.events.push_back(Event::Left { receiver, host, verified: true, reason: None });
                }
            }
            Change::Moved => {
                self.windows.forget(report.from);
                self.control(SourceControl::Forget(report.from), now);
                let reason = Some("it continues with another parent".to_owned());
                self.events.push_back(Event::Left { receiver, host, verified: false, reason });
            }
            Change::Failed => {
                self.windows.forget(report.from);
                self.control(SourceControl::Forget(report.from), now);
                let reason = self.members.get(report.from).map(reason);
                self.events.push_back(Event::Left { receiver, host, verified: false, reason });
            }
        }
        let echo = (report.echo.seq < self.next_seqs[0]).then_some(report.echo.seq);
        // An echo of a packet that was never sent is forged.
        if echo.is_some() || report.echo.seq == NOTHING_YET.seq {
            self.on_echo(report.from, echo, now);
        }
        if echo.is_some() {
            self.time_round_trip(report.from, report.echo, None, now);
        }
        if echo.is_some() && self.is_heard(report.from) {
            let alive = Report {
                from: report.from,
                layer: Layer(0),
                content: ReportContent::Alive { echo: report.echo },
            };
            self.pass_on(&alive, now);
        }
        if change == Change::Done {
            self.control(SourceControl::Forget(report.from), now);
        }
        if report.state == MemberState::Receiving && report.reason == FLOODED && self.layers() > 1 {
            self.on_flooded(report.from, f64::from(report.loss), now);
        }
        if change != Change::None {
            self.control(SourceControl::Members(self.members.counted_on()), now);
        }
        if self.members.has_confirmations() {
            self.status_soon(now);
        }
    }

    /// Processes a complaint: the receiver has joined only the base layer, and loses packets while enhancement layers are sent.
    fn on_flooded(&mut self, from: ReceiverId, loss: f64, now: Time) {
        if !matches!(self.phase, Phase::Sending) {
            return;
        }
        let (total, base) = (self.source.observe().rate, self.source.layer_rate(BASE));
        let was_limited = self.flood.limit().is_usable();
        match self.flood.on_complaint(from, loss, total, base, now) {
            Step::Nothing => return,
            Step::Limit(rate) if !was_limited => {
                let host =
                    self.members.get(from).map_or_else(|| from.to_string(), |member| member.host.clone());
                self.events.push_back(Event::warning(format!(
                    "{host} has joined only the base layer and loses {:.0} % of it: the network carries all layers to {host}, or its link is too slow even for the base layer. All layers together are now limited to {:.1} Mbit/s. Switch on IGMP \
                     snooping (IPv6: MLD snooping) with a querier on the switch",
                    loss * 100.0,
                    rate.bps() / 1e6
                )));
            }
            Step::Limit(_) | Step::NotFlooded => {}
        }
        self.bound_rate(now);
    }

    /// Raises the limit of all layers if no receiver has complained for a while.
    pub(super) fn limit_less(&mut self, now: Time) {
        if self.flood.grow(self.source.observe().rate, now) {
            self.bound_rate(now);
        }
    }

    fn on_request(&mut self, request: &Request, place: SocketAddr, now: Time) {
        self.members.on_sign_of_life(request.from, now);
        if self.request_rate.on_request(request.from, self.members.count(), self.rtt_max(), now) {
            self.status_soon(now); // there are too many requests
        }
        if !self.is_served(request.from) || self.asks_in_vain(request.from) {
            return;
        }
        let mut scheduled = false;
        let end = self.scheduler.status().blocks;
        for need in &request.needs {
            let run = u32::from(need.run).min(MAX_BLOCKS);
            let (from, seen, wrong) = (request.from, request.echo.seq, need.wrong);
            let asker = |held| Requester { seen, held, wrong };
            if need.symbols == 0 {
                match &mut self.pages {
                    Some(pages) => pages.request(need.first, run, &*self.scheduler, now),
                    None => self.scheduler.request_pages(need.first, run, &asker(None)),
                }
                continue;
            }
            for block in asked(need.first, run, end) {
                let all = self.scheduler.symbols_of(block);
                // A block that failed verification is sent again as a whole.
                let cost = if wrong { all } else { need.symbols.min(all) };
                if !self.may_ask_for(from, place, cost) {
                    self.counts.refused.implausible += 1;
                    return;
                }
                let held = request.held.iter().find(|held| held.block == block);
                if self.scheduler.request(block, need.symbols, &asker(held)) {
                    self.budget.spend(place.ip(), cost);
                    self.members.on_asked(from, cost.into());
                    scheduled = true;
                }
            }
        }
        if scheduled && self.members.count() > 1 {
            self.status_soon(now);
        }
    }

    fn on_report(&mut self, report: Report, now: Time) {
        self.members.on_sign_of_life(report.from, now);
        if !self.is_served(report.from) {
            return;
        }
        // An echo of number 0 is valid even if the layer has sent no packet: it means that the receiver has none.
        let sent = self.next_seqs.get(usize::from(report.layer.0)).map(|next| next.0.max(1));
        if sent.is_none_or(|next| report.content.echo().seq.0 >= next) {
            self.counts.refused.implausible += 1;
            return;
        }
        if report.layer == BASE {
            let (echo, next) = (report.content.echo().seq, self.next_seqs[0]);
            self.members.on_answer(report.from, (echo < next).then_some(echo), next, now);
            self.time_round_trip(report.from, report.content.echo(), Some(&report.content), now);
        }
        if !self.is_heard(report.from) {
            return;
        }
        if let (SlowReceiverPolicy::Floor(bound) | SlowReceiverPolicy::Drop(bound), Serving::Together) =
            (self.setup.slow, self.serving)
            && let ReportContent::Congested { mean, cause: Cause::Loss | Cause::Mark, .. } = report.content
        {
            // A receiver is slow only if the source already sends at a rate near the bound, which excludes slow start.
            let level = Rate::from_bps(f64::from(mean));
            let least = SLOW_FOR.max(self.rtt_max() * 4);
            let sent_slowly = self.source.observe().rate.bps() <= bound.bps() * NEAR;
            if sent_slowly && self.members.on_congestion(report.from, level, bound, least, now) {
                self.set_aside(report.from, level, now);
                return;
            }
        }
        self.pass_on(&report, now);
        // In a session with several layers, no receiver limits the rate of the group. The policy `follow` allows a slow receiver
        // any effect; the other policies bound its effect.
        if self.layers() == 1 && self.setup.slow == SlowReceiverPolicy::Follow {
            self.name_the_limiting(now);
        }
    }

    /// Takes a sample of a receiver's round-trip time from an echo that arrives now.
    fn time_round_trip(&mut self, from: ReceiverId, echo: Echo, content: Option<&ReportContent>, now: Time) {
        if let Some(sample) = self.source.round_trip(echo, now) {
            self.members.on_round_trip(from, sample, content);
        }
    }

    /// Processes a window. For the scheme, it is only a sign of life, because windows are not congestion control.
    fn on_window(&mut self, window: &Window, now: Time) {
        self.members.on_sign_of_life(window.from, now);
        let known = self.members.get(window.from).is_some_and(|member| !member.is_finished());
        if !known || self.layers() > 1 || !self.is_served(window.from) || !self.is_heard(window.from) {
            return;
        }
        if !self.windows.on_window(window, self.next_seqs[0], now) {
            self.counts.refused.implausible += 1;
            return;
        }
        let alive = Report {
            from: window.from,
            layer: Layer(0),
            content: ReportContent::Alive { echo: window.echo },
        };
        self.pass_on(&alive, now);
    }

    /// Finds the receiver whose window delays the next packet. Gives up receivers whose windows have delayed packets for too
    /// long.
    pub(super) fn watch_windows(&mut self, now: Time) {
        let next = self.next_seqs[0];
        let wants = matches!(self.source.departure(Layer(0)), Departure::At(at) if at <= now);
        if self.layers() > 1 || !wants || self.scheduler.is_idle() {
            return;
        }
        let was_asked = self.windows.ask_at() <= now;
        while let Some(given_up) = self.windows.hold(next, now) {
            if let GivenUp::Stalled(id) = given_up {
                self.name(id, Rate::ZERO, SlowAction::Follow);
            }
        }
        if !was_asked {
            self.clocks.status_at = self.clocks.status_at.min(self.windows.ask_at());
        }
        self.look_at_the_holder(now);
    }

    /// Treats a receiver as congested if its window limits the rate of the group to less than the bound of `--slow`.
    fn look_at_the_holder(&mut self, now: Time) {
        let size = (self.setup.datagram + self.setup.overhead) as u64;
        let Some((id, span, level)) = self.windows.holding(size, now) else { return };
        match (self.setup.slow, self.serving) {
            (SlowReceiverPolicy::Floor(bound) | SlowReceiverPolicy::Drop(bound), Serving::Together) => {
                if span >= HELD_FOR && level.bps() < bound.bps() {
                    self.set_aside(id, level, now);
                }
            }
            (SlowReceiverPolicy::Follow, _) => self.name_followed(id, span, level),
            // Deferred receivers delay no other receivers.
            (SlowReceiverPolicy::Floor(_) | SlowReceiverPolicy::Drop(_), Serving::Deferred) => {}
        }
    }

    /// Reports a receiver that has limited the group for `span`.
    fn name_followed(&mut self, id: ReceiverId, span: Span, level: Rate) {
        let alone = self.members.count() < 2;
        if span >= NAMED_AFTER && !alone && !self.followed_named.contains(&id) {
            self.name(id, level, SlowAction::Follow);
        }
    }

    fn pass_on(&mut self, report: &Report, now: Time) {
        self.call_scheme(Call::Report(report), now, |source, cx| source.on_report(report, cx));
    }

    /// Calls the scheme, which may cut its rate.
    pub(super) fn call_scheme(
        &mut self,
        why: Call<'_>,
        now: Time,
        call: impl FnOnce(&mut Pacing, &mut Cx<'_>),
    ) {
        let before = self.source.observe();
        call(&mut self.source, &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
        self.look_for_changes(&before, why, now);
        self.refuse_effects(now);
    }

    /// Sends a control command to the scheme, which may cut its rate.
    pub(super) fn control(&mut self, control: SourceControl, now: Time) {
        let before = self.source.observe();
        self.source.control(control, now);
        self.look_for_changes(&before, Call::Control, now);
    }

    /// Records a cut if the scheme has cut its rate since `before`, and a change of the receiver that it follows.
    fn look_for_changes(&mut self, before: &Observation, why: Call<'_>, now: Time) {
        let seen = self.source.observe();
        let host = |id: Option<ReceiverId>| Some(self.members.get(id?)?.host.as_str());
        if seen.limiting != before.limiting {
            self.scope.follows(before, &seen, host(seen.limiting), now);
        }
        if seen.cuts == before.cuts {
            return;
        }
        let host = host(why.receiver().or(seen.limiting));
        self.scope.cut(before, &seen, why, host, now);
        if self.cuts.len() < RateCut::LISTED {
            self.cuts.push(RateCut {
                at: now.since(Time::ZERO).into(),
                from: before.rate,
                to: seen.rate,
                host: host.map(str::to_owned),
                cause: why.reason(),
            });
        }
    }

    /// Whether the congestion control uses the reports of a member. After the session has started to send, a member must first
    /// prove that it receives packets of the source.
    fn is_heard(&self, id: ReceiverId) -> bool {
        matches!(self.phase, Phase::Gathering { .. }) || self.members.receives(id) != Some(false)
    }

    fn is_served(&self, id: ReceiverId) -> bool {
        self.members.get(id).is_none_or(|member| matches!(member.pace, Pace::Together | Pace::Gone))
    }

    /// Defers or drops a receiver that is too slow for the group.
    pub(super) fn set_aside(&mut self, id: ReceiverId, level: Rate, now: Time) {
        let (pace, action) = match self.setup.slow {
            SlowReceiverPolicy::Drop(_) => (Pace::Dropped, SlowAction::Dropped),
            _ => (Pace::Deferred, SlowAction::Deferred),
        };
        self.members.set_pace(id, pace);
        self.windows.forget(id);
        self.control(SourceControl::StartAgain, now);
        self.control(SourceControl::Members(self.members.counted_on()), now);
        self.scheduler.clear_requests();
        self.name(id, level, action);
        self.status_soon(now);
    }

    /// Serves the deferred receivers at their own rate, after all other receivers are done.
    pub(super) fn serve_deferred(&mut self, now: Time) {
        self.serving = Serving::Deferred;
        self.members.recall();
        self.bound_rate(now);
        self.control(SourceControl::StartAgain, now);
        self.control(SourceControl::Members(self.members.counted_on()), now);
        self.status_soon(now);
    }

    /// Names the receiver that limits the group, under the policy `follow`.
    fn name_the_limiting(&mut self, now: Time) {
        let seen = self.source.observe();
        let Some(id) = seen.limiting else {
            self.followed = None;
            return;
        };
        match self.followed {
            Some((followed, since)) if followed == id => {
                self.name_followed(id, now.since(since), seen.level.unwrap_or(seen.rate));
            }
            _ => self.followed = Some((id, now)),
        }
    }

    fn name(&mut self, id: ReceiverId, level: Rate, action: SlowAction) {
        let Some(member) = self.members.get(id) else { return };
        if action != SlowAction::Follow && !self.slow_named.contains(&id) {
            self.slow_named.push(id);
        }
        self.events.push_back(Event::SlowReceiver {
            receiver: id,
            host: member.host.clone(),
            rate: level,
            action,
        });
        if action == SlowAction::Follow {
            self.followed_named.push(id);
        }
    }
}

/// Returns the reason why a receiver is incomplete, in words.
pub(super) fn reason(member: &MemberRecord) -> String {
    let words = match (member.pace, member.state, member.reason) {
        _ if super::reachability::is_unreached(member) => "it sends feedback, but no data reaches it",
        _ if member.mute == Mute::Stuck => "it sends feedback, but it is incomplete and makes no progress",
        (Pace::Dropped, ..) => "dropped: too slow",
        (Pace::Gone, ..) => "silent",
        (_, _, crate::membership::REASON_DISK_FULL) => reasons::DISK_FULL,
        (_, _, crate::membership::REASON_PERMISSION) => reasons::PERMISSION,
        (_, _, crate::membership::REASON_OLDER) => reasons::OLDER,
        (_, _, crate::membership::REASON_OTHER_SOURCE) => reasons::OTHER_SOURCE,
        (_, _, crate::membership::REASON_CONTENT) => "the received content differs from that of the source",
        (_, MemberState::Leaving, _) => "the receiver was stopped",
        (_, MemberState::Failed, _) => "it failed",
        _ => "incomplete when the session ended",
    };
    match member.state {
        MemberState::Failed if !member.why.is_empty() && !super::reachability::is_unreached(member) => {
            format!("{words}: {}", member.why)
        }
        _ => words.to_owned(),
    }
}
