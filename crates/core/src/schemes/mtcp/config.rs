//! Parameters of MTCP. The seed prints few numbers; what it leaves open says so.

use crate::rate::Sending;
use crate::rate::pacer::CatchUp;
use crate::time::Span;

/// Everything that can be chosen. [`Config::published`] is for trees, as in the seed; [`Config::transport`] is for sessions whose
/// delivery repairs losses by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// What the sender compares with the smallest window.
    pub mode: Mode,
    /// Who sends lost packets again.
    pub repair: Repair,
    /// Queued packets below which a window grows in avoidance (Vegas' "alpha"). The paper prints no thresholds. Those of ns-2's
    /// Vegas, 1 and 3 packets, leave a session less than a tenth of the rate of a TCP that fills a FIFO of 50 packets.
    pub alpha: f64,
    /// Queued packets above which it shrinks ("beta").
    pub beta: f64,
    /// Queued packets that end slow start ("gamma").
    pub gamma: f64,
    /// The part of a window that remains when a packet is lost. Open in the paper, which modifies Vegas: Vegas keeps three quarters,
    /// TCP one half.
    pub decrease: f64,
    /// A packet is lost when so many later ones have arrived (TCP's, open in the seed).
    pub duplicates: u8,
    /// Whether a single lost packet closes the window. In the paper of 1999, whose rule is not known; 1998 has none.
    pub loss_filter: LossFilter,
    /// When a node may judge its queues: open in the seed, where each node would do so once per its own round.
    pub rounds: Rounds,
    /// An agent's window is at most twice the session's and so many packets more, the source's own twice that. Open in the seed.
    pub headroom: f64,
    /// New packets that one acknowledgement answers (delayed acknowledgements, TCP's number).
    pub ack_every: u8,
    /// The longest that an acknowledgement waits for a further packet. Open in the seed.
    pub ack_delay: Span,
    /// An agent reports at least so often while packets are outstanding below it. Open; gives figure 3's 200 to 250 ms.
    pub report_every: Span,
    /// An agent reports at once when the smallest window of its part of the tree changed by this part. Open.
    pub report_change: f64,
    /// A packet is late after the mean delay and so many deviations (TCP's four).
    pub deviations: f64,
    /// And at least this. Open in the seed; as in later TCPs.
    pub shortest_slack: Span,
    /// Before there is a delay, it is late after this.
    pub first_timeout: Span,
    /// Time-outs in a row double that slack up to this; `None` for up to 64 times (TCP's). Open in the seed.
    pub longest_slack: Option<Span>,
    /// Which rounds of slow start grow. Vegas' rule is every second one; the seed says nothing else.
    pub slow_start: SlowStart,
    /// For how long the least relative delay is remembered. Open: without an end, clocks that drift would freeze it.
    pub delay_memory: Span,
    /// How often an agent asks a new child for its round-trip time, four times.
    pub poll_first: Span,
    /// And then.
    pub poll_every: Span,
    /// Packets that a node keeps at most. Open: the seed says that buffers are bounded.
    pub store: u32,
    /// Up to this the retransmission window opens by one per acknowledged repair. Open.
    pub repair_threshold: f64,
    /// A child that says nothing for so long while packets leave for it is given up, but not before three of its own time-outs
    /// could have passed. Open.
    pub silence: Span,
    /// Packets leave no faster than this many windows per round, two at once; `None` for at once, as in the paper.
    pub pacing: Option<f64>,
    /// By what persistent congestion of a child is detected, if at all.
    pub localize: Localize,
    /// How it is measured and what follows.
    pub local: Local,
}

/// Congestion localization (seed 001, 3.2). The seed describes it and prints no number: all are open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Local {
    /// Slow starts that a child causes until it is persistently congested.
    pub slow_starts: u8,
    /// Within this time.
    pub within: Span,
    /// A child's queueing delay is high above this,
    pub high: Span,
    /// or above this part of the round-trip time to it, where that is more.
    pub high_part: f64,
    /// For so long.
    pub hold: Span,
    /// It is low below this part of the high one.
    pub low_part: f64,
    /// A moved child comes back after so long with a low delay and without backlog.
    pub recover: Span,
    /// How often nodes look.
    pub check: Span,
    /// A child that came back stays for so long.
    pub again: Span,
}

/// What the sender compares with the smallest window of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The most packets that are under way to any node of the tree (the paper of 1999: the transit window).
    Transit,
    /// What its own children have not acknowledged (the seed): near children let it run ahead of far ones.
    Own,
}

/// Who sends lost packets again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Their parent in the tree, under their old numbers (the seed).
    Tree,
    /// The session's own delivery, under new numbers: a lost packet is never waited for.
    Session,
}

/// Whether a single lost packet closes the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossFilter {
    /// It does.
    Off,
    /// Only when a second one is lost in the same round or the next one.
    On,
}

/// Which rounds of slow start grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowStart {
    /// Every second one: the queues of the rounds between are measured with a window that holds still (Vegas).
    EverySecond,
    /// All (RFC 5681, 3.1).
    Every,
}

/// When a node may judge its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// At most once per round of the whole tree: a near child would else make it act many times before anything comes of it.
    Tree,
    /// Once its own children have acknowledged what was out.
    Own,
}

/// By what persistent congestion of a child is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Localize {
    /// Not at all.
    Off,
    /// By slow starts that it causes.
    SlowStarts,
    /// By its queueing delay.
    Delay,
    /// By either.
    Either,
}

impl Config {
    /// What is waited beyond a delay after so many doublings of `slack`.
    pub(super) fn doubled(&self, slack: Span, times: u32) -> Span {
        let long = slack * u64::from(times);
        self.longest_slack.map_or(long, |longest| long.min(longest.max(slack)))
    }

    /// The seed, with what it leaves open as the fields say.
    pub fn published() -> Config {
        let sending = Sending::published();
        Config {
            sending: Sending { catch_up: CatchUp { packets: 2, span: Span::ZERO }, ..sending },
            mode: Mode::Transit,
            repair: Repair::Tree,
            alpha: 6.0,
            beta: 12.0,
            gamma: 6.0,
            decrease: 0.75,
            duplicates: 3,
            loss_filter: LossFilter::Off,
            rounds: Rounds::Tree,
            headroom: 16.0,
            ack_every: 2,
            ack_delay: Span::from_millis(100),
            report_every: Span::from_millis(250),
            report_change: 0.2,
            deviations: 4.0,
            shortest_slack: Span::from_millis(200),
            first_timeout: Span::from_secs(3),
            longest_slack: None,
            slow_start: SlowStart::EverySecond,
            delay_memory: Span::from_secs(300),
            poll_first: Span::from_secs(1),
            poll_every: Span::from_secs(5),
            store: 512,
            repair_threshold: 16.0,
            silence: Span::from_secs(30),
            pacing: None,
            localize: Localize::Either,
            local: Local {
                slow_starts: 3,
                within: Span::from_secs(30),
                high: Span::from_millis(100),
                high_part: 0.5,
                hold: Span::from_secs(5),
                low_part: 0.25,
                recover: Span::from_secs(10),
                check: Span::from_millis(500),
                again: Span::from_secs(30),
            },
        }
    }

    /// A real network: the session's delivery repairs, nobody is moved but by agents below the source, and a first timeout of 1 s as in
    /// RFC 6298, 2.1. Packets are paced, thresholds are those of ns-2's Vegas, and a loss halves the window as in TCP. After an interruption the first packet leaves within a second, and every round of slow start grows; a receiver
    /// that is silent for a second holds nobody.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            repair: Repair::Session,
            alpha: 1.0,
            beta: 3.0,
            gamma: 1.0,
            decrease: 0.5,
            pacing: Some(2.0),
            localize: Localize::Off,
            first_timeout: Span::from_secs(1),
            longest_slack: Some(Span::from_secs(1)),
            slow_start: SlowStart::Every,
            silence: Span::from_secs(1),
            ..Config::published()
        }
    }
}
