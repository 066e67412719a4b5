//! LE-SBCC's receiver: reports losses, and performs no congestion control.

use super::config::{Config, Echoes};
use crate::node::{Cx, Effect};
use crate::packet::{Arrival, Cause, Data, Echo, Flags, Layer, ReceiverId, Report, ReportContent, Seq};
use crate::rate::StartUpReceiver;
use crate::suppress::TruncatedExponential;
use crate::time::{Span, Time};

/// A receiver of an LE-SBCC session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    echoes: Echoes,
    backoff: Span,
    spacing: Span,
    law: TruncatedExponential,
    layer: Layer,
    start_up: StartUpReceiver,
    round: RoundLength,
    waiting: [Option<Waiting>; MAX_WAITING],
    /// Earliest time of the next report.
    open_at: Time,
    suppressed: u32,
}

/// A delayed loss report.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    at: Time,
    event_at: Time,
    event: Event,
}

/// The losses that an arrival revealed.
#[derive(Debug, Clone, Copy)]
struct Event {
    /// The packet whose arrival revealed the losses.
    revealing: Seq,
    /// Number of packets lost just before the revealing packet; zero if the packet is not about a loss but carries a congestion
    /// mark.
    lost: u16,
}

/// Measurement of the duration of a start-up round of the source. Packets do not state this duration, which is about a round-trip
/// time.
#[derive(Debug, Clone, Copy)]
struct RoundLength {
    rate: f32,
    /// Start of the measured round; `None` once the length is known.
    since: Option<Time>,
    length: Span,
}

/// Maximum number of delayed reports. A further report makes the receiver send the report with the earliest deadline.
const MAX_WAITING: usize = 4;
/// Minimum and maximum assumed length of a round.
const ROUNDS: (Span, Span) = (Span::from_millis(1), Span::from_secs(2));

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        Receiver {
            me,
            echoes: config.echoes,
            backoff: config.backoff,
            spacing: config.spacing,
            law: config.delay_law,
            layer: Layer::default(),
            start_up: StartUpReceiver::default(),
            round: RoundLength { rate: f32::NAN, since: None, length: config.sending.initial_rtt },
            waiting: [None; MAX_WAITING],
            open_at: Time::ZERO,
            suppressed: 0,
        }
    }

    /// Sends one report of all losses that an arrival revealed, at once or after a delay.
    fn on_event(&mut self, event: Event, cx: &mut Cx<'_>) {
        let now = cx.now;
        if self.spacing > Span::ZERO && self.waiting[0].is_some() {
            // The pending report informs the source that packets were lost in this round trip.
            self.suppressed = self.suppressed.saturating_add(1);
            return;
        }
        let delay = self.backoff.scaled(if self.backoff > Span::ZERO { cx.rng.unit() } else { 0.0 });
        let waiting = Waiting { at: (now + delay).max(self.open_at), event_at: now, event };
        if waiting.at <= now {
            self.report(waiting, cx);
            return;
        }
        if let Some(first) = self.waiting[MAX_WAITING - 1].and(self.waiting[0]) {
            self.take_first();
            self.report(first, cx);
        }
        self.insert(waiting);
    }

    /// Inserts a report in the order of the deadlines; unused entries are at the end.
    fn insert(&mut self, waiting: Waiting) {
        let later = |other: &Option<Waiting>| other.is_none_or(|other| other.at > waiting.at);
        let place = self.waiting.iter().position(later).unwrap_or(MAX_WAITING - 1);
        self.waiting[place..].rotate_right(1);
        self.waiting[place] = Some(waiting);
    }

    fn take_first(&mut self) {
        self.waiting[0] = None;
        self.waiting.rotate_left(1);
    }

    fn report(&mut self, Waiting { event_at, event, .. }: Waiting, cx: &mut Cx<'_>) {
        self.open_at = cx.now + self.spacing;
        let Event { revealing, lost } = event;
        let first = Seq(revealing.0.saturating_sub(u64::from(lost)));
        let echo = match self.echoes {
            Echoes::Lost => Echo { seq: first, hold: Span::ZERO },
            Echoes::Revealing => Echo { seq: revealing, hold: cx.now.since(event_at) },
        };
        let content = match lost {
            // The marked packet itself has arrived, so it needs no repair.
            0 => ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Mark },
            _ => ReportContent::Lost { echo, first, count: lost, loss: 0.0 },
        };
        self.send(content, cx);
    }

    fn send(&self, content: ReportContent, cx: &mut Cx<'_>) {
        cx.effects.push(Effect::Report(Report { from: self.me, layer: self.layer, content }));
    }

    /// Handles a packet of the source's start-up.
    #[inline(never)]
    fn on_start_up(&mut self, data: &Data, arrival: Arrival, cx: &mut Cx<'_>) {
        if data.flags.has(Flags::STARTING) {
            self.round.on_data(data, cx.now);
        }
        self.start_up.on_data(data, arrival, self.round.length, self.law, cx);
    }
}

impl RoundLength {
    fn on_data(&mut self, data: &Data, now: Time) {
        if data.rate != self.rate {
            (self.rate, self.since) = (data.rate, Some(now));
        }
        if data.flags.has(Flags::ROUND_END)
            && let Some(since) = self.since.take()
        {
            self.length = now.since(since).clamp(ROUNDS.0, ROUNDS.1);
        }
    }
}

impl crate::node::Receiver for Receiver {
    #[inline]
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if self.deadline() <= cx.now {
            self.on_deadline(cx);
        }
        self.layer = layer;
        if (data.flags.has(Flags::STARTING) || self.start_up.is_active()) && !arrival.late {
            self.on_start_up(data, arrival, cx);
        }
        if arrival.lost > 0 || arrival.marked {
            let lost = arrival.lost.min(u32::from(u16::MAX)) as u16;
            self.on_event(Event { revealing: data.seq, lost }, cx);
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        let report = self.waiting[0].map_or(Time::NEVER, |waiting| waiting.at);
        report.min(self.start_up.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        while let Some(due) = self.waiting[0].filter(|waiting| waiting.at <= cx.now) {
            self.take_first();
            self.report(due, cx);
        }
        if let Some(content) = self.start_up.take_due(cx.now) {
            self.send(content, cx);
        }
    }

    /// A leaving receiver sends nothing; the count of its loss events at the source decays.
    fn on_leave(&mut self, _cx: &mut Cx<'_>) {
        self.waiting = [None; MAX_WAITING];
        self.start_up.cancel();
    }

    fn suppressed(&self) -> u32 {
        self.suppressed
    }
}
