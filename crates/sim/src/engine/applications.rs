//! Application data of unicast flows: transfers, on and off periods, and traces.

use super::Island;
use super::agents::{SenderKind, Talks};
use super::counters::after;
use super::nanos::{NEVER, time};
use crate::routes::NONE;
use crate::traffic::{ApplicationData, Law, TraceId};
use faircast_core::node::Cx;
use faircast_core::rng::Rng;
use faircast_core::time::Span;

impl Island {
    /// Starts a flow.
    pub(super) fn open(&mut self, number: u32, now: u64) {
        let it = &mut self.senders[number as usize];
        let packets = match it.rest.application.supply {
            ApplicationData::Endless => u32::MAX,
            ApplicationData::Packets(packets) => packets,
            ApplicationData::OnOff { on, .. } => {
                it.rest.application.next = now + on.span(&mut it.rng).as_nanos().max(1);
                u32::MAX
            }
            ApplicationData::Trace(trace) => {
                let first = self.traces.get(trace.0 as usize).and_then(|trace| trace.first());
                it.rest.application.next =
                    first.map_or(NEVER, |(after, _)| now.saturating_add(after.as_nanos()));
                0
            }
            ApplicationData::Transfers { packets, .. } => transfer_size(packets, &mut it.rng),
        };
        self.connect(number, packets, now);
    }

    /// Opens a connection.
    fn connect(&mut self, number: u32, packets: u32, now: u64) {
        let it = &mut self.senders[number as usize];
        it.rest.application.talks = Talks::On;
        it.rest.application.transfer = (packets, now);
        if it.membership != NONE {
            self.join(number, packets, now);
        }
        let it = &mut self.senders[number as usize];
        match &mut it.kind {
            SenderKind::Controlled(sender) => {
                sender.supply(packets, time(now));
                sender.start(&mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects });
            }
            SenderKind::Datagrams { next, .. } => *next = now,
            SenderKind::Shared => {}
        }
    }

    /// Ends the application's on or off period, or its pause between transfers.
    pub(super) fn application_turns(&mut self, number: u32, now: u64) {
        let it = &mut self.senders[number as usize];
        let application = &mut it.rest.application;
        application.next = NEVER;
        match application.supply {
            ApplicationData::OnOff { on, off } => {
                let (talks, law, packets) = if application.talks == Talks::On {
                    (Talks::Off, off, 0)
                } else {
                    (Talks::On, on, u32::MAX)
                };
                application.talks = talks;
                application.next = now + law.span(&mut it.rng).as_nanos().max(1);
                match &mut it.kind {
                    SenderKind::Controlled(sender) => sender.supply(packets, time(now)),
                    SenderKind::Datagrams { next, .. } => *next = (*next).max(now),
                    SenderKind::Shared => self.supply_shared(number, packets, now),
                }
            }
            ApplicationData::Transfers { packets, .. } => {
                let packets = transfer_size(packets, &mut it.rng);
                it.generation = it.generation.wrapping_add(1);
                if let SenderKind::Shared = it.kind {
                    (it.cuts, it.rest.timeouts) = (0, 0);
                    let view = self.observe_shared(number);
                    let it = &mut self.senders[number as usize];
                    it.rest.before = after(&it.rest.before, view);
                } else if let (SenderKind::Controlled(sender), Some(protocol)) =
                    (&mut it.kind, &it.rest.protocol)
                {
                    it.rest.before = after(&it.rest.before, sender.observe());
                    it.cuts = 0;
                    sender.replace(protocol.sender());
                }
                self.connect(number, packets, now);
            }
            ApplicationData::Trace(trace) => self.read_trace(number, trace, now),
            ApplicationData::Endless | ApplicationData::Packets(_) => {}
        }
    }

    /// Gives the sender the packets that the application's trace supplies up to `now`.
    fn read_trace(&mut self, number: u32, trace: TraceId, now: u64) {
        let it = &mut self.senders[number as usize];
        let Some(trace) = self.traces.get(trace.0 as usize) else { return };
        let application = &mut it.rest.application;
        let (_, began) = application.transfer;
        let at = |after: Span| began.saturating_add(after.as_nanos());
        while let Some(&(after, packets)) = trace.get(application.entry as usize) {
            if at(after) > now {
                application.next = at(after);
                break;
            }
            application.transfer.0 = packets;
            application.entry += 1;
        }
        let packets = application.transfer.0;
        match &mut it.kind {
            SenderKind::Controlled(sender) => sender.supply(packets, time(now)),
            SenderKind::Datagrams { next, .. } => *next = (*next).max(now),
            SenderKind::Shared => self.supply_shared(number, packets, now),
        }
    }

    /// Ends a transfer after all its packets were acknowledged. The application pauses before the next transfer.
    pub(super) fn finish_transfer(&mut self, number: u32, now: u64) {
        let it = &self.senders[number as usize];
        if it.rest.application.talks == Talks::Off {
            return;
        }
        let acked = match &it.kind {
            SenderKind::Controlled(sender) => sender.observe().acked,
            SenderKind::Shared => self.shared_acked(number),
            SenderKind::Datagrams { .. } => return,
        };
        let it = &mut self.senders[number as usize];
        let application = &mut it.rest.application;
        let (packets, began) = application.transfer;
        if acked < u64::from(packets) {
            return;
        }
        application.talks = Talks::Off;
        self.records.transfer(it.flow, began, now, packets);
        if let ApplicationData::Transfers { pause, .. } = application.supply {
            application.next = now + pause.span(&mut it.rng).as_nanos().max(1);
        }
        it.find_other();
        if it.membership != NONE {
            self.leave(number);
        }
    }
}

/// Draws the number of packets of a transfer.
fn transfer_size(packets: Law, rng: &mut Rng) -> u32 {
    packets.draw(rng).round().clamp(1.0, 1e9) as u32
}
