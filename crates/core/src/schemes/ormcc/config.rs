//! Parameters of ORMCC, with the seed's symbols and values.

use crate::rate::bounds::{Bounds, Guard};
use crate::rate::pacer::CatchUp;
use crate::rate::start::Doubling;
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};

/// Everything that can be chosen. [`Config::seed`] reproduces the thesis, [`Config::transport`] is for real networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Packet size "s" in bytes, as it counts on the link.
    pub packet_size: u16,
    /// Decrease factor "beta" (seed 000, 3.1.5).
    pub beta: f64,
    /// Round-trip time assumed before the first sample (seed 000, 3.3).
    pub initial_rtt: Span,
    /// No round-trip time counts as shorter than this when the rate is controlled.
    pub shortest_rtt: Span,
    /// How long the largest round-trip time is remembered; `None` for ever, as in the seed.
    // Seed gap: 3.1.4 spreads reports over the largest round-trip time ever seen, so one hiccup of one host would slow
    // every election for the rest of a session. `Config::transport` forgets after 5 to 10 s.
    pub rtt_max_memory: Option<Span>,
    /// Gain of the receiver's mean throughput at congestion, "alpha".
    pub alpha_receiver: f64,
    /// Gain of the source's mean and deviation of it.
    pub alpha_source: f64,
    /// Over how long throughput at congestion is measured (seed 000, 3.1.1, footnote 9).
    pub trac_window: Span,
    /// The law of the delay of other receivers' reports (seed 000, 3.1.4).
    pub delay_law: TruncatedExponential,
    /// What the source compares before it changes the representative.
    pub switch_on: SwitchOn,
    /// What becomes of the statistics when the representative changes.
    pub across_switch: AcrossSwitch,
    // Seed gap: appendix B.2 sends a report at each loss, which at 100,000 packets a second is a flood that the source
    // ignores but for one per round-trip time. `Config::transport` sends at most eight.
    /// The representative sends at most this many reports per largest round-trip time; `None` for one at each loss,
    /// as in the seed.
    pub reports_per_rtt: Option<u16>,
    /// How the session starts.
    pub start: Start,
    /// Lowest and highest rate.
    pub bounds: Bounds,
    /// Whether a rate that is not used is frozen and an idle source slows down.
    pub idle_guard: Guard,
    /// Whether the rate falls while no receiver gives any sign of life.
    pub silent_group_guard: Guard,
    /// How far a late host may catch up.
    pub catch_up: CatchUp,
    /// For how many packets the source remembers when they left.
    pub history_packets: usize,
}

/// What the source compares with the representative's mean less its deviation.
// Seed gap: appendix B.1 compares the sample, 3.1.2 speaks of averages. The receiver has already compared its average;
// comparing the sample gives a fairer rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchOn {
    /// The report's own sample.
    Sample,
    /// The reporting receiver's mean.
    Average,
}

/// The representative's statistics at a change.
// Seed gap: appendix B.1 says "update" where the representative changes, which would mix two receivers' statistics.
// Here they begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcrossSwitch {
    /// The new receiver's sample is the mean.
    Restart,
    /// The sample updates the old receiver's statistics (the letter of the seed).
    Continue,
}

/// How a session starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// One packet per round-trip time, then additive increase: the seed.
    Linear,
    /// In rounds that double the rate.
    Doubling(Doubling),
}

impl Config {
    /// The thesis: linear start, beta 0.75, packets of 1000 bytes, never silenced by a silent group.
    pub fn seed() -> Config {
        let (packet_size, initial_rtt) = (1000, Span::from_millis(100));
        let slowest = Rate::of(u64::from(packet_size), initial_rtt * 10);
        Config {
            packet_size,
            beta: 0.75,
            initial_rtt,
            shortest_rtt: Span::from_micros(100),
            rtt_max_memory: None,
            alpha_receiver: 0.125,
            alpha_source: 0.125,
            trac_window: Span::from_secs(1),
            delay_law: TruncatedExponential::default(),
            switch_on: SwitchOn::Sample,
            across_switch: AcrossSwitch::Restart,
            reports_per_rtt: None,
            start: Start::Linear,
            bounds: Bounds { min: slowest, max: Rate::UNLIMITED },
            idle_guard: Guard::On,
            silent_group_guard: Guard::Off,
            catch_up: CatchUp::default(),
            history_packets: 4096,
        }
    }

    /// A sender on a real network: beta 0.85, doubling start, all guards, at least a packet per 8 s.
    ///
    /// The thesis lowers beta to 0.65 at user level because coarse timers made its packets burstier than TCP's (seed 000,
    /// 3.1.5). Ours are paced by high-resolution timers and so are smoother than TCP's bursts: at a full drop-tail
    /// queue they lose more often, and beta has to go the other way. 0.85 is what shares evenly with kernel Reno
    /// (`bench/RESULTS.md`).
    pub fn transport(packet_size: u16) -> Config {
        let slowest = Rate::of(u64::from(packet_size), Span::from_secs(8));
        Config {
            packet_size,
            beta: 0.85,
            shortest_rtt: Span::from_millis(1),
            rtt_max_memory: Some(Span::from_secs(5)),
            reports_per_rtt: Some(8),
            start: Start::Doubling(Doubling::default()),
            bounds: Bounds { min: slowest, max: Rate::UNLIMITED },
            silent_group_guard: Guard::On,
            history_packets: 1 << 19,
            ..Config::seed()
        }
    }

    /// The rate of the first packets.
    // Seed gap: 3.1.5 leaves the initial rate open. Here it is a packet per assumed round-trip time.
    pub fn initial_rate(&self) -> Rate {
        let rate = match self.start {
            Start::Linear => Rate::of(u64::from(self.packet_size), self.initial_rtt),
            Start::Doubling(doubling) => doubling.initial_rate(self.initial_rtt, self.packet_size),
        };
        self.bounds.clamp(rate)
    }
}
