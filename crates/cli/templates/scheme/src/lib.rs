//! The congestion control `own:my-name`: additive increase, multiplicative decrease at the losses of all receivers.

use faircast_core::field;
use faircast_core::node::{
    Cx, Departure, Effect, Observation, Receiver, Source, SourceControl, Stamp, Tally,
};
use faircast_core::own::OwnFactory;
use faircast_core::packet::{
    Arrival, Data, Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq, Signal,
};
use faircast_core::rate::{Growth, SendController, Sending, StartUpReceiver};
use faircast_core::schemes::own::{SCHEMES, SchemeFactory};
use faircast_core::spec::{self, NumberRange, Opt};
use faircast_core::suppress::TruncatedExponential;
use faircast_core::time::{Rate, Span, Time};

/// Registers the scheme. Call it before scenarios are read.
pub fn register() {
    SCHEMES.register("my-name", Box::new(Factory)).expect("the name is valid");
}

/// Options of the scheme.
#[derive(Debug, Clone, Copy)]
struct Config {
    /// Fraction of the rate that remains after a loss.
    keep: f64,
}

const OPTIONS: &[Opt<Config>] =
    &[Opt::number("keep", NumberRange::of(0.1, 0.95), field!(keep), "part of the rate that remains after a loss")];

impl Config {
    fn read(options: &str) -> Result<Config, String> {
        let mut config = Config { keep: 0.5 };
        spec::configure(&mut config, options, "scheme my-name", &[OPTIONS]).map_err(|error| error.to_string())?;
        Ok(config)
    }
}

#[derive(Debug)]
struct Factory;

impl OwnFactory for Factory {
    // Change the version when the code changes, or else stored runs of the old code are used again.
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn check(&self, options: &str) -> Result<(), String> {
        Config::read(options).map(drop)
    }
}

impl SchemeFactory for Factory {
    fn source(&self, options: &str, sending: &Sending) -> Box<dyn Source + Send> {
        Box::new(AimdSource::new(Config::read(options).expect("checked"), *sending))
    }

    fn receiver(&self, _options: &str, sending: &Sending, me: ReceiverId) -> Box<dyn Receiver + Send> {
        Box::new(LossReceiver { me, start_up: StartUpReceiver::default(), round: sending.initial_rtt })
    }
}

/// The source. The controller numbers and paces the packets, and measures round-trip times.
struct AimdSource {
    config: Config,
    controller: SendController,
    rtt: Span,
    /// Time of the next increase.
    tick_at: Time,
    cut_at: Time,
    cuts: u64,
}

impl AimdSource {
    fn new(config: Config, sending: Sending) -> AimdSource {
        AimdSource {
            config,
            controller: SendController::new(sending),
            rtt: sending.initial_rtt,
            tick_at: Time::NEVER,
            cut_at: Time::ZERO,
            cuts: 0,
        }
    }

    /// Reduces the rate, at most once per round trip.
    fn cut(&mut self, now: Time) {
        self.controller.end_start_up();
        if now >= self.cut_at + self.rtt {
            self.controller.set_rate(self.controller.rate() * self.config.keep, now);
            (self.cut_at, self.cuts) = (now, self.cuts + 1);
        }
    }
}

impl Source for AimdSource {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.controller.start(cx.now);
        self.tick_at = cx.now + self.rtt;
    }

    fn departure(&self, layer: Layer) -> Departure {
        Departure::At(if layer == Layer(0) { self.controller.departure() } else { Time::NEVER })
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        if self.controller.resume(cx.now).is_some() {
            self.tick_at = cx.now + self.rtt;
        }
        let departed = self.controller.depart(size, self.rtt, cx.now);
        let (seq, rate, flags) = (departed.seq, departed.rate, departed.flags);
        Stamp { seq, rate, flags, signal: Signal::None, mark: Mark::None }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from, echo) = (cx.now, report.from, report.content.echo());
        if !self.controller.has_left(echo) || self.controller.is_probed(report, now) {
            return;
        }
        self.controller.on_arrived(echo.seq, now);
        let sample = self.controller.sample(echo, now);
        if let Some(sample) = sample {
            self.rtt = (self.rtt * 7 + sample) / 8;
            self.controller.on_rtt(from, sample, now);
        }
        match (report.content, sample) {
            (ReportContent::Lost { first, .. }, _) if self.controller.is_of_interruption(first) => {}
            (ReportContent::Lost { .. } | ReportContent::Congested { .. }, _) => self.cut(now),
            (ReportContent::Received { rate, loss, .. }, _) => {
                self.controller.on_received(from, echo, Rate::from_bps(f64::from(rate)), loss, now);
            }
            (_, Some(sample)) => self.controller.on_alive(from, sample, now),
            _ => {}
        }
    }

    fn deadline(&self) -> Time {
        if self.controller.is_idle() { self.tick_at } else { self.tick_at.min(self.controller.deadline()) }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline() {
            return;
        }
        if now >= self.tick_at {
            let next = self.tick_at + self.rtt;
            self.tick_at = if next > now { next } else { now + self.rtt };
            if self.controller.watch(self.rtt, now) == Growth::Allowed {
                let step = Rate::of(u64::from(self.controller.config().packet_size), self.rtt);
                self.controller.set_rate(self.controller.rate() + step, now);
            }
        }
        if self.controller.is_idle() {
            self.tick_at = self.controller.rest_until(self.tick_at);
            return;
        }
        self.controller.on_deadline(now);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.controller.control(control, now);
        if control == SourceControl::StartAgain {
            self.controller.start_again(now);
            self.tick_at = now + self.rtt;
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.controller.pace(),
            rtt: self.rtt,
            limiting: None,
            level: None,
            rtt_max: self.controller.rtt_max(),
            cuts: self.cuts,
            tally: Tally { indications: self.cuts, events: self.cuts, followed: self.cuts },
            starting: self.controller.is_starting(),
        }
    }
}

/// The receiver: it reports losses at once, and answers the rounds of a start-up.
struct LossReceiver {
    me: ReceiverId,
    start_up: StartUpReceiver,
    round: Span,
}

impl LossReceiver {
    fn send(&self, content: ReportContent, cx: &mut Cx<'_>) {
        cx.effects.push(Effect::Report(Report { from: self.me, layer: Layer(0), content }));
    }
}

impl Receiver for LossReceiver {
    fn on_data(&mut self, data: &Data, _layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        self.on_deadline(cx);
        if (data.flags.has(Flags::STARTING) || self.start_up.is_active()) && !arrival.late {
            self.start_up.on_data(data, arrival, self.round, TruncatedExponential::new(10.0), cx);
        }
        if arrival.lost > 0 {
            let first = Seq(data.seq.0.saturating_sub(u64::from(arrival.lost)));
            let echo = Echo { seq: data.seq, hold: Span::ZERO };
            let count = arrival.lost.min(1000) as u16;
            self.send(ReportContent::Lost { echo, first, count, loss: 0.0 }, cx);
        }
    }

    fn deadline(&self) -> Time {
        self.start_up.deadline()
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if let Some(content) = self.start_up.take_due(cx.now) {
            self.send(content, cx);
        }
    }
}
