//! The receiver part of the scheme for one host. It runs at the source, because the host's program has no such part.
//!
//! An answer of the host shows which transmissions have arrived, but not when. A transmission counts as arrived when an answer to
//! it would have arrived at the source: one round-trip time after it was sent. Between two answered questions the round-trip time
//! changes evenly. So the receiver part has the source's clock, and its reports travel in no time.

use super::copies::Copy;
use faircast_core::node::{Cx, Effect, Effects, Receiver as _};
use faircast_core::packet::{Arrival, Echo, Layer, ReceiverId, Report, ReportContent, Seq};
use faircast_core::rng::Rng;
use faircast_core::schemes::{AnyReceiver, Scheme};
use faircast_core::time::{Span, Time};

const BASE: Layer = Layer(0);
/// Maximum number of expired deadlines of the receiver part that are handled before one arrival.
const MAX_DEADLINES: usize = 8;

/// The receiver part for one host.
#[derive(Debug)]
pub(super) struct Shadow {
    me: ReceiverId,
    receiver: AnyReceiver,
    /// Time of the latest call of the receiver part.
    clock: Time,
    /// The newest answered question that gave a sample.
    sample: Option<Sample>,
    /// Number of lost transmissions since the newest arrival.
    lost: u32,
    /// The newest arrival since the latest [`Shadow::finish`].
    newest: Option<(Seq, Time)>,
    effects: Effects,
}

/// The round-trip time of a question.
#[derive(Debug, Clone, Copy)]
struct Sample {
    departed: Time,
    rtt: Span,
}

/// Round-trip times of the transmissions between two questions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    before: Sample,
    after: Sample,
}

impl Path {
    /// Returns the round-trip time of a transmission.
    fn rtt(&self, sent_at: Time) -> Span {
        let (before, after) = (self.before, self.after);
        let whole = after.departed.since(before.departed).as_secs_f64();
        if whole <= 0.0 {
            return after.rtt;
        }
        let part = (sent_at.since(before.departed).as_secs_f64() / whole).min(1.0);
        before.rtt.scaled(1.0 - part) + after.rtt.scaled(part)
    }
}

/// The reports of receiver parts that are to be passed to the source, or the effect that a receiver part must not request.
pub(super) type Reports = Vec<Result<Report, Effect>>;

impl Shadow {
    pub(super) fn new(scheme: &Scheme, me: ReceiverId) -> Shadow {
        Shadow {
            me,
            receiver: scheme.receiver(me),
            clock: Time::ZERO,
            sample: None,
            lost: 0,
            newest: None,
            effects: Effects::new(),
        }
    }

    /// Begins the handling of an answer to a question. `departed` is the time at which the question was sent; `None` if it is not
    /// known which question was answered.
    pub(super) fn on_answer(&mut self, departed: Option<Time>, now: Time) -> Path {
        let sample = departed.map(|departed| Sample { departed, rtt: now.since(departed) });
        let after = sample.or(self.sample).unwrap_or(Sample { departed: now, rtt: Span::ZERO });
        let before = self.sample.unwrap_or(after);
        self.sample = Some(after);
        Path { before, after }
    }

    /// Handles a transmission whose fate an answer has shown.
    pub(super) fn on_copy(
        &mut self,
        copy: &Copy,
        has_arrived: bool,
        path: Path,
        (now, rng): (Time, &mut Rng),
        reports: &mut Reports,
    ) {
        if !has_arrived {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        let sent_at = copy.data.sent_at;
        let at = (sent_at + path.rtt(sent_at)).min(now).max(self.clock);
        self.run_deadlines(at, (now, rng), reports);
        let arrival = Arrival { size: copy.size, lost: std::mem::take(&mut self.lost), ..Arrival::default() };
        let mut cx = Cx { now: at, rng, effects: &mut self.effects };
        self.receiver.on_data(&copy.data, BASE, arrival, &mut cx);
        self.clock = at;
        self.newest = Some((copy.data.seq, at));
        self.collect(now, reports);
    }

    /// Ends the handling of an answer: runs expired deadlines, and reports a sign of life.
    pub(super) fn finish(&mut self, now: Time, rng: &mut Rng, reports: &mut Reports) {
        self.run_deadlines(now, (now, rng), reports);
        if let Some((seq, at)) = self.newest.take() {
            let content = ReportContent::Alive { echo: Echo { seq, hold: now.since(at) } };
            reports.push(Ok(Report { from: self.me, layer: BASE, content }));
        }
    }

    fn run_deadlines(&mut self, until: Time, (now, rng): (Time, &mut Rng), reports: &mut Reports) {
        for _ in 0..MAX_DEADLINES {
            let deadline = self.receiver.deadline();
            if deadline > until {
                break;
            }
            self.clock = self.clock.max(deadline);
            self.receiver.on_deadline(&mut Cx { now: self.clock, rng, effects: &mut self.effects });
            self.collect(now, reports);
        }
    }

    /// Collects the effects of a call. The time since the call is added to the time for which a receiver has held a packet.
    fn collect(&mut self, now: Time, reports: &mut Reports) {
        let late = now.since(self.clock);
        reports.extend(self.effects.drain().map(|effect| match effect {
            Effect::Report(mut report) => {
                let hold = &mut report.content.echo_mut().hold;
                *hold = Span::from_nanos(hold.as_nanos().saturating_add(late.as_nanos()));
                Ok(report)
            }
            other => Err(other),
        }));
    }
}
