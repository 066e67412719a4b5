//! Configuration of a TCP connection, and the sets of values that the comparisons use.

use faircast_core::time::Span;

/// Which congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Slow start after every loss.
    Tahoe,
    /// Fast recovery that ends with the first new acknowledgement (RFC 2581).
    Reno,
    /// Fast recovery that outlives partial acknowledgements (RFC 6582).
    NewReno,
    /// Recovery by selective acknowledgements (RFC 6675).
    Sack,
    /// Avoids loss by watching the round-trip time.
    Vegas,
    /// The window is a cubic function of time (RFC 9438); recovery as [`Variant::Sack`], as of those below.
    Cubic,
    /// Marks reduce the window by their share (RFC 8257).
    Dctcp,
    /// DCTCP for the Internet: ECT(1), spaced, of a rate that does not follow short round trips
    /// (draft-briscoe-iccrg-prague-congestion-control).
    Prague,
    /// A model of the path sets rate and window (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
}

impl Variant {
    /// Whether losses are found by selective acknowledgements.
    pub const fn is_selective(self) -> bool {
        !matches!(self, Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Vegas)
    }

    /// Returns whether its receiver echoes for every packet whether it was marked (RFC 8257, 3.2).
    pub const fn echoes_exactly(self) -> bool {
        matches!(self, Variant::Dctcp | Variant::Prague)
    }
}

/// Round-trip samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// One packet at a time is timed, never one that was sent again (Karn).
    OnePacket,
    /// Every acknowledgement echoes a timestamp (RFC 7323, 4).
    Timestamps,
}

/// How far the timeout doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// To 64 times.
    SixtyFour,
    /// To [`Config::max_rto`] (RFC 6298, 5.5).
    ToMaxRto,
}

/// Quantity that is halved at a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halving {
    /// The window.
    Window,
    /// The window in whole packets, rounded down.
    WholeWindow,
    /// The data in flight (RFC 5681, equation 4).
    Flight,
}

/// How selective acknowledgements steer a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// A count of packets in the pipe, and every hole is lost (ns-2's `Sack1`; Fall and Floyd 1996).
    PipeCount,
    /// The scoreboard decides which packets are in the pipe and which are lost (RFC 6675).
    Scoreboard,
}

/// How the window comes down in a recovery that the scoreboard steers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shrinking {
    /// Nothing leaves until half of what was out has left the pipe (RFC 6675).
    AtOnce,
    /// In proportion to what arrives, so that something leaves all the time (RFC 6937, with its slow-start bound), as in Linux
    /// since 3.2.
    Proportional,
}

/// Window after an idle time longer than the retransmission timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// One packet.
    OnePacket,
    /// At most the initial window (RFC 5681, 4.1).
    InitialWindow,
}

/// Which acknowledgements of nothing new are duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// Those that come while packets are out (RFC 5681, 2).
    Outstanding,
    /// All. One for a packet that was sent twice then lets a new one leave although a window below one packet, as marks leave it,
    /// waits for its timeout.
    All,
}

/// Which duplicate acknowledgements inflate the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inflation {
    /// Those of a fast recovery.
    InRecovery,
    /// All from the third on, even where no fast retransmit was allowed.
    Always,
}

/// Which packets may say "congestion window reduced".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CwrOn {
    /// New data only (RFC 3168, 6.1.2).
    NewData,
    /// New data, or the latest packet sent again, which ns-2 with `SetCWRonRetransmit_ false` takes for new: with a window of one
    /// packet that is what a timeout sends.
    Latest,
    /// The next packet, whatever it is.
    AnyPacket,
}

/// When a timeout leaves the slow-start threshold where a mark has set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterMark {
    /// While what was out at the mark is not all acknowledged, as Linux does.
    WithinWindow,
    /// As long as nothing else has changed the window, however long that is (ns-2's `CWND_ACTION_ECN`).
    Always,
}

/// How the connection opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Data at once.
    None,
    /// A SYN and its acknowledgement first. Vegas sends none, as in ns-2, but starts with one packet.
    Syn,
}

/// Something that is off or on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Off.
    Off,
    /// On.
    On,
}

/// Amount that an acknowledgement counts when the window grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// As one packet, however many it acknowledges: with delayed acknowledgements the window grows half as fast.
    Acknowledgements,
    /// As the packets that it acknowledges (RFC 3465, without its limit), as Linux does.
    Packets,
}

/// Parameters of a connection, both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Congestion control.
    pub variant: Variant,
    /// Bytes of a packet on the link; only to report a rate.
    pub packet_size: u16,
    /// Congestion window at the start, in packets.
    pub initial_window: u32,
    /// The receiver's window, in packets.
    pub receiver_window: u32,
    /// Packets sent at most on one acknowledgement.
    pub max_burst: u32,
    /// Granularity of the clock that measures round trips; above zero.
    pub tick: Span,
    /// Timeout before the first sample.
    pub initial_rto: Span,
    /// Lowest timeout, before it is doubled.
    pub min_rto: Span,
    /// Highest timeout.
    pub max_rto: Span,
    /// Time for which receivers wait for a second packet before they acknowledge; `None`: they do not wait.
    pub delayed_ack: Option<Span>,
    /// When a window opens, wait for a random time up to this; what is sent again goes at once. Breaks up the lockstep of drop-tail queues with sources of
    /// equal round trips (ns-2's `overhead_`).
    pub jitter: Span,
    /// Round-trip samples.
    pub samples: Samples,
    /// How far the timeout doubles.
    pub backoff: Backoff,
    /// Amount that an acknowledgement counts.
    pub counting: Counting,
    /// Quantity that is halved at a loss.
    pub halving: Halving,
    /// How selective acknowledgements steer a recovery.
    pub recovery: Recovery,
    /// How the window comes down in such a recovery.
    pub shrinking: Shrinking,
    /// Window after an idle time.
    pub idle: Idle,
    /// Which acknowledgements are duplicates. Recoveries by selective acknowledgements have a rule of their own.
    pub duplicates: Duplicates,
    /// Which duplicates inflate the window.
    pub inflation: Inflation,
    /// Which packets carry CWR.
    pub cwr_on: CwrOn,
    /// Effect of a timeout after a mark on the threshold.
    pub after_mark: AfterMark,
    /// How the connection opens.
    pub handshake: Handshake,
    /// A new packet on each of the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: Switch,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: Switch,
    /// CUBIC's first slow start ends by delay (HyStart++; RFC 9406).
    pub hystart: Switch,
    /// A CUBIC flow whose maximum falls leaves room for others (RFC 9438, 4.7).
    pub fast_convergence: Switch,
    /// DCTCP's and Prague's weight of a round's share of marks is a half to this power (RFC 8257, 4.1, `g`).
    pub gain_shift: u8,
}

/// No limit that a simulation reaches.
const AMPLE_WINDOW: u32 = 1_000_000;

impl Config {
    /// The defaults of ns-2.35 (January 2010 and later).
    pub const fn ns235(variant: Variant) -> Config {
        Config {
            variant,
            packet_size: 1000,
            initial_window: 2,
            receiver_window: AMPLE_WINDOW,
            max_burst: u32::MAX,
            tick: Span::from_millis(10),
            initial_rto: Span::from_secs(3),
            min_rto: Span::from_millis(200),
            max_rto: Span::from_secs(60),
            delayed_ack: None,
            jitter: Span::ZERO,
            samples: Samples::OnePacket,
            backoff: Backoff::ToMaxRto,
            counting: Counting::Acknowledgements,
            halving: Halving::Window,
            recovery: Recovery::PipeCount,
            shrinking: Shrinking::AtOnce,
            idle: Idle::OnePacket,
            duplicates: Duplicates::All,
            inflation: Inflation::InRecovery,
            cwr_on: CwrOn::AnyPacket,
            after_mark: AfterMark::Always,
            handshake: Handshake::Syn,
            limited_transmit: Switch::On,
            ecn: if variant.echoes_exactly() { Switch::On } else { Switch::Off },
            hystart: Switch::On,
            fast_convergence: Switch::On,
            gain_shift: 4,
        }
    }

    /// The rules and timers of ns-2 before May 2001, without its window: ns-2 limited the window to 20 packets by default
    /// ([`Config::ns21b7a`]), here it is ample. Paper 000's chapter 2 needs it so: 20 packets of 560 bytes over a round trip of
    /// 280 ms are less than the share that it reports.
    pub const fn ns2001(variant: Variant) -> Config {
        Config {
            initial_window: 1,
            tick: Span::from_millis(100),
            initial_rto: Span::from_secs(6),
            min_rto: Span::ZERO,
            backoff: Backoff::SixtyFour,
            halving: Halving::WholeWindow,
            inflation: Inflation::Always,
            cwr_on: CwrOn::Latest,
            handshake: Handshake::None,
            limited_transmit: Switch::Off,
            ..Config::ns235(variant)
        }
    }

    /// Returns the values of a script that sets nothing under ns-2.1b7a (October 2000) and its neighbours:
    /// [`Config::ns2001`] and the default `window_ 20`. Packets of 1000 bytes, no delayed acknowledgements and
    /// no jitter (`overhead_ 0`), as there. Paper 000, 3.3, names this release.
    pub const fn ns21b7a(variant: Variant) -> Config {
        Config { receiver_window: 20, ..Config::ns2001(variant) }
    }

    /// As the standards say: RFC 5681, 6298, 3042, 3390 and 7323.
    pub const fn rfc(variant: Variant) -> Config {
        Config {
            initial_window: 3,
            tick: Span::from_millis(1),
            initial_rto: Span::from_secs(1),
            min_rto: Span::from_secs(1),
            samples: Samples::Timestamps,
            halving: Halving::Flight,
            recovery: Recovery::Scoreboard,
            idle: Idle::InitialWindow,
            duplicates: Duplicates::Outstanding,
            cwr_on: CwrOn::NewData,
            after_mark: AfterMark::WithinWindow,
            ..Config::ns235(variant)
        }
    }

    /// Returns values near to Linux' defaults: ten packets at the start (RFC 6928), acknowledgements of two
    /// packets or after 40 ms, all acknowledged packets counted. The window is halved gradually after a loss
    /// (RFC 6937); timeouts are 0.2 s at least.
    pub const fn linux(variant: Variant) -> Config {
        Config {
            initial_window: 10,
            min_rto: Span::from_millis(200),
            delayed_ack: Some(Span::from_millis(40)),
            counting: Counting::Packets,
            halving: Halving::Window,
            shrinking: Shrinking::Proportional,
            ..Config::rfc(variant)
        }
    }

    /// Returns values near to Linux 2.4 (2001 to 2003; RedHat 7.1 had 2.4.2), after Sarolahti and Kuznetsov,
    /// "Congestion control in Linux TCP" (2002). Two packets at the start, a clock of 10 ms, each
    /// acknowledgement counted once, at least 40 ms of delay for one of two packets. Timeouts of 0.2 to 120 s
    /// and 3 s before the first sample. Its windows, rate halving and quick acknowledgements at the start are
    /// missing.
    pub const fn linux24(variant: Variant) -> Config {
        Config {
            initial_window: 2,
            tick: Span::from_millis(10),
            initial_rto: Span::from_secs(3),
            max_rto: Span::from_secs(120),
            counting: Counting::Acknowledgements,
            shrinking: Shrinking::AtOnce,
            ..Config::linux(variant)
        }
    }
}
