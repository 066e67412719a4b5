//! Runs in steps: snapshots and events during a run.
//!
//! Hosts and links may be ahead of the calendar, and last hops and feeders of inboxes behind it, so their current state must not be read. Instead,
//! snapshots contain values that were recorded with the simulated time of each host and link: bytes per bin, samples of senders
//! and links, and events. When the calendar has reached a time and all last hops have processed their packets, the records up to
//! this time are complete.

use super::agents::ReceiverAgent;
use super::membership_schedule::MembershipSchedule;
use super::{Island, time_of};
use crate::events::{Event, Happening};
use crate::network::{Flow, FlowId, LinkId, Network};
use crate::outcome::{LinkSample, SourceSample};
use crate::snapshot::{FlowSnapshot, LinkSnapshot, MemberSnapshot, Snapshot, SnapshotError};
use faircast_core::time::{Rate, Time};

impl Island {
    /// Returns the state at `at`, which all hosts have reached. Agents of other islands have sent and received nothing.
    ///
    /// # Errors
    /// When `at` is not a multiple of both the bin length and the sampling period.
    pub(super) fn snapshot(&mut self, at: Time) -> Result<Snapshot, SnapshotError> {
        let now = at.as_nanos();
        for (period, every) in [("bin", self.bin), ("sample", self.sample)] {
            if !now.is_multiple_of(every) {
                return Err(SnapshotError::NotKept { at, period });
            }
        }
        let mut flows: Vec<FlowSnapshot> = self
            .records
            .flows
            .iter()
            .map(|flow| {
                let bins = (now / self.bin) as usize;
                let sum = |kept: &[u64]| kept.iter().take(bins).sum();
                let source = flow.samples.binary_search_by_key(&at, SourceSample::at).ok();
                FlowSnapshot {
                    sent_bytes: sum(&flow.sent_bins),
                    received_bytes: sum(&flow.received_bins),
                    source: source.map(|place| flow.samples[place]),
                    members: Vec::new(),
                }
            })
            .collect();
        // Adds the bytes of bins that have ended without a later packet.
        for session in &self.sessions {
            let into = &mut flows[session.flow as usize];
            into.sent_bytes += session.sent_meter.over(now);
            into.received_bytes += session.members.iter().map(|member| member.meter.over(now)).sum::<u64>();
            into.members =
                session.members.iter().filter_map(|member| self.member_snapshot(member, now)).collect();
        }
        for (sender, sink) in self.senders.iter().zip(&self.sinks) {
            let into = &mut flows[sender.flow as usize];
            into.sent_bytes += sender.sent_meter.over(now);
            into.received_bytes += sink.meter.over(now);
        }
        Ok(Snapshot { at, flows, links: self.link_snapshots(at) })
    }

    /// Returns the snapshot of a watched member.
    fn member_snapshot(&self, member: &ReceiverAgent, now: u64) -> Option<MemberSnapshot> {
        let extra = member.extra.as_ref()?;
        let bins: u64 = extra.bins.as_ref()?.iter().take((now / self.bin) as usize).sum();
        // Counts that are not stored yet have not changed since this moment.
        let lost =
            |moment: usize| extra.counts.get(moment).map_or_else(|| member.lost(), |counts| counts.lost);
        let excluded = extra.excluded.filter(|at| *at <= now);
        Some(MemberSnapshot {
            number: member.number,
            received_bytes: bins + member.meter.over(now),
            lost: self.moments.0.binary_search(&now).ok().map(lost),
            excluded: excluded.map(time_of),
        })
    }

    fn link_snapshots(&mut self, at: Time) -> Vec<LinkSnapshot> {
        let probed: Vec<u32> = self.probes.keys().copied().collect();
        probed.iter().for_each(|link| self.sample_link(*link, at.as_nanos()));
        let links = self.probes.iter().filter_map(|(&link, probe)| {
            let place = probe.samples.binary_search_by_key(&at, |sample| sample.at).ok()?;
            let before = place.checked_sub(1).map(|place| probe.samples[place]);
            let sample = probe.samples[place];
            let utilisation = utilisation(before, sample, probe.rates[place]);
            Some(LinkSnapshot { link: LinkId(link), sample, utilisation })
        });
        links.collect()
    }

    /// Returns the events up to `reached` since the last call in order of time.
    pub(super) fn take_events(&mut self, reached: Time) -> Vec<Event> {
        let Some(events) = &mut self.records.events else { return Vec::new() };
        // The stable sort preserves the order of the events of one link or flow.
        events.sort_by_key(Event::order);
        let complete = events.partition_point(|event| event.at <= reached);
        events.drain(..complete).collect()
    }

    /// Processes the pending packets of all last hops, and runs the timers up to `now` that have no calendar entries.
    pub(super) fn catch_up_all(&mut self, now: u64) {
        for bundle in 0..self.bundles.len() as u32 {
            self.flush(bundle);
        }
        self.catch_up_feeders(now);
    }

    /// Records joins and leaves, which are known from the start.
    pub(super) fn note_memberships(&mut self, network: &Network) {
        let Some(events) = &mut self.records.events else { return };
        for (flow, it) in (0..).map(FlowId).zip(&network.flows) {
            let Flow::Session(spec, rare) = it else { continue };
            let stays = MembershipSchedule::of(spec, &rare.as_deref().cloned().unwrap_or_default());
            for member in 0..spec.members.len() as u32 {
                for &(join, leave) in stays.of_member(member as usize) {
                    let joined = (join, Happening::Joined { flow, member });
                    let left = (leave, Happening::Left { flow, member });
                    let within = [joined, left].into_iter().filter(|(at, _)| *at <= self.until);
                    events.extend(within.map(|(at, what)| Event { at: time_of(at), what }));
                }
            }
        }
    }
}

fn utilisation(before: Option<LinkSample>, sample: LinkSample, rate: Rate) -> f64 {
    let Some(before) = before else { return 0.0 };
    let room = rate.bps() / 8.0 * sample.at.since(before.at).as_secs_f64();
    ((sample.departed_bytes - before.departed_bytes) as f64 / room).min(1.0)
}
