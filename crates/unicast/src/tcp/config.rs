//! Configuration of a TCP connection, and its presets.

use faircast_core::time::Span;

/// The congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Slow start after every loss.
    Tahoe,
    /// Fast recovery, which ends at the first acknowledgement of new data (RFC 2581).
    Reno,
    /// Fast recovery, which continues after partial acknowledgements (RFC 6582).
    NewReno,
    /// Recovery by selective acknowledgements (RFC 6675).
    Sack,
    /// Avoidance of loss by observing the round-trip time.
    Vegas,
    /// The window is a cubic function of time (RFC 9438). This variant and the following ones recover from losses like
    /// [`Variant::Sack`].
    Cubic,
    /// The window is reduced in proportion to the share of marked packets (RFC 8257).
    Dctcp,
    /// DCTCP for the Internet (draft-briscoe-iccrg-prague-congestion-control): packets carry ECT(1) and are paced. If the
    /// round-trip time is short, the rate does not depend on it.
    Prague,
    /// Rate and window are computed from a model of the path (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
}

impl Variant {
    /// Returns whether losses are found by selective acknowledgements.
    pub const fn is_selective(self) -> bool {
        !matches!(self, Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Vegas)
    }

    /// Returns whether the receiver echoes the mark of each packet separately (RFC 8257, 3.2).
    pub const fn echoes_exactly(self) -> bool {
        matches!(self, Variant::Dctcp | Variant::Prague)
    }
}

/// Source of round-trip samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// One packet at a time is timed; a retransmission is never timed (Karn).
    OnePacket,
    /// Every acknowledgement echoes a timestamp (RFC 7323, 4).
    Timestamps,
}

/// Limit of the doubling of the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// 64 times the timeout.
    SixtyFour,
    /// [`Config::max_rto`] (RFC 6298, 5.5).
    ToMaxRto,
}

/// Quantity that is halved at a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halving {
    /// The window.
    Window,
    /// The window; after a mark at least two packets remain, as in Linux.
    LeastTwo,
    /// The window in whole packets, rounded down.
    WholeWindow,
    /// The packets in flight (RFC 5681, equation 4).
    Flight,
}

/// Control of a recovery by selective acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// A count of the packets in the pipe. Every hole counts as lost (ns-2's `Sack1`; Fall and Floyd 1996).
    PipeCount,
    /// The scoreboard decides which packets are in the pipe and which are lost (RFC 6675).
    Scoreboard,
}

/// Way in which the window is reduced during a recovery that the scoreboard controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shrinking {
    /// No packet is sent until half of the outstanding packets have arrived or are lost (RFC 6675).
    AtOnce,
    /// The number of sent packets is proportional to the number of arrivals, so sending never pauses (RFC 6937, with its
    /// slow-start bound; Linux since 3.2).
    Proportional,
}

/// Maximum window after an idle time that is longer than the retransmission timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// One packet.
    OnePacket,
    /// At most the initial window (RFC 5681, 4.1).
    InitialWindow,
}

/// Acknowledgements without new data that count as duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// Acknowledgements that arrive while packets are outstanding (RFC 5681, 2).
    Outstanding,
    /// All acknowledgements without new data. A duplicate caused by a packet that arrived twice then allows a new packet. This
    /// applies even if marks have reduced the window below one packet; the sender would otherwise wait for its timeout.
    All,
}

/// Duplicate acknowledgements that inflate the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inflation {
    /// Duplicates during a fast recovery.
    InRecovery,
    /// All duplicates from the third on, even if the third duplicate was not allowed to start a fast retransmit.
    Always,
}

/// Packets that may carry "congestion window reduced" (CWR).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CwrOn {
    /// New data only (RFC 3168, 6.1.2).
    NewData,
    /// New data, and retransmissions of the newest packet. ns-2 with `SetCWRonRetransmit_ false` treats such a retransmission as
    /// new data. It occurs after a timeout with a window of one packet.
    Latest,
    /// The next packet of any kind.
    AnyPacket,
}

/// Effect of a timeout after a mark, and of a mark after a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterMark {
    /// The second event does not change the slow-start threshold until all packets that were outstanding at the first are
    /// acknowledged (RFC 3168, 6.1.2; Linux).
    WithinWindow,
    /// A timeout does not change the threshold until another event changes the window (ns-2's `CWND_ACTION_ECN`). A mark after a
    /// timeout always changes it.
    Always,
}

/// Opening of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Data immediately.
    None,
    /// Data after a SYN and its acknowledgement. As in ns-2, Vegas sends no SYN, but starts with one packet.
    Syn,
}

/// A feature that is off or on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Off.
    Off,
    /// On.
    On,
}

/// Number of packets that an acknowledgement represents when the window grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// One packet, however many packets are acknowledged. With delayed acknowledgements the window therefore grows half as fast.
    Acknowledgements,
    /// The number of newly acknowledged packets (RFC 3465, without its limit), as in Linux.
    Packets,
}

/// Parameters of a connection, for both endpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Congestion control.
    pub variant: Variant,
    /// Bytes of a packet on the link, used only to compute a rate.
    pub packet_size: u16,
    /// Congestion window at the start, in packets.
    pub initial_window: u32,
    /// The receiver's window, in packets.
    pub receiver_window: u32,
    /// Maximum number of packets sent on one acknowledgement.
    pub max_burst: u32,
    /// Granularity of the clock that measures round-trip times; must exceed zero.
    pub tick: Span,
    /// Timeout before the first sample.
    pub initial_rto: Span,
    /// Minimum timeout, before it is doubled.
    pub min_rto: Span,
    /// Maximum timeout.
    pub max_rto: Span,
    /// Maximum time for which a receiver waits for a second packet before it acknowledges the first; `None` means that it does
    /// not wait.
    pub delayed_ack: Option<Span>,
    /// Maximum random delay before the sender sends new packets that the window allows; retransmissions are sent immediately. At
    /// drop-tail queues, flows with equal round-trip times can run in lockstep; the delay prevents this (ns-2's `overhead_`).
    pub jitter: Span,
    /// Source of round-trip samples.
    pub samples: Samples,
    /// Limit of the doubling of the timeout.
    pub backoff: Backoff,
    /// Number of packets that an acknowledgement represents when the window grows.
    pub counting: Counting,
    /// Quantity that is halved at a loss.
    pub halving: Halving,
    /// Control of a recovery by selective acknowledgements.
    pub recovery: Recovery,
    /// Way in which the window is reduced during a recovery that the scoreboard controls.
    pub shrinking: Shrinking,
    /// Window after an idle time.
    pub idle: Idle,
    /// Acknowledgements that count as duplicates, except in recoveries by selective acknowledgements, which have their own rule.
    pub duplicates: Duplicates,
    /// Duplicates that inflate the window.
    pub inflation: Inflation,
    /// Packets that may carry CWR.
    pub cwr_on: CwrOn,
    /// Period after a mark during which a timeout does not change the slow-start threshold.
    pub after_mark: AfterMark,
    /// Opening of the connection.
    pub handshake: Handshake,
    /// Whether a new packet is sent on each of the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: Switch,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: Switch,
    /// Whether CUBIC's first slow start ends when the round-trip time grows (HyStart++; RFC 9406).
    pub hystart: Switch,
    /// Whether a CUBIC flow makes room for other flows when its window is lower than before the preceding reduction (RFC 9438,
    /// 4.7).
    pub fast_convergence: Switch,
    /// Exponent n of the weight `g` = 2^-n in DCTCP and Prague: the weight of the latest share of marked packets in the mean (RFC
    /// 8257, 4.1).
    pub gain_shift: u8,
}

/// A limit of the window that no simulation reaches, in packets.
const AMPLE_WINDOW: u32 = 1_000_000;

impl Config {
    /// Returns the defaults of ns-2.35. They have applied since January 2010.
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

    /// Returns the rules and timers of ns-2 before May 2001, but with a practically unlimited window. In ns-2, the default limit
    /// was 20 packets ([`Config::ns21b7a`]). Chapter 2 of paper 000 cannot have used this limit: 20 packets of 560 bytes per
    /// round trip of 280 ms are less than the rate that the chapter reports.
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

    /// Returns the values that a script without settings gets in ns-2.1b7a (October 2000) and similar releases:
    /// [`Config::ns2001`] with the default limit `window_ 20`. As in ns-2, packets have 1000 bytes, and there are no delayed
    /// acknowledgements and no jitter (`overhead_ 0`). Paper 000, 3.3, names this release.
    pub const fn ns21b7a(variant: Variant) -> Config {
        Config { receiver_window: 20, ..Config::ns2001(variant) }
    }

    /// Returns the values of a script without settings under ns-2.26 (February 2003). The window is 20 packets, the initial window 2
    /// (since 2001). The clock has 10 ms (since March 2002), and timeouts last at least a second (from May 2001 to 2004).
    pub const fn ns226(variant: Variant) -> Config {
        Config {
            receiver_window: 20,
            min_rto: Span::from_secs(1),
            limited_transmit: Switch::Off,
            ..Config::ns235(variant)
        }
    }

    /// Returns the values of the standards: RFCs 5681, 6298, 3042, 3390 and 7323.
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

    /// Returns values close to the defaults of Linux. The initial window is ten packets (RFC 6928). A receiver acknowledges every
    /// second packet, or after 40 ms. An acknowledgement counts as the number of packets that it acknowledges. After a loss, the
    /// window is reduced gradually (RFC 6937). The minimum timeout is 0.2 s.
    pub const fn linux(variant: Variant) -> Config {
        Config {
            initial_window: 10,
            min_rto: Span::from_millis(200),
            delayed_ack: Some(Span::from_millis(40)),
            counting: Counting::Packets,
            halving: Halving::LeastTwo,
            shrinking: Shrinking::Proportional,
            ..Config::rfc(variant)
        }
    }

    /// Returns values close to Linux 2.4 (2001 to 2003; RedHat 7.1 had 2.4.2), after Sarolahti and Kuznetsov, "Congestion control
    /// in Linux TCP" (2002). The initial window is two packets, and the clock ticks every 10 ms. Each acknowledgement counts as
    /// one packet. A receiver waits for a second packet for 40 ms. Timeouts are 0.2 to 120 s, and 3 s before the first sample.
    /// Three features are not modelled: receive windows, rate halving, and quick acknowledgements at the start.
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
