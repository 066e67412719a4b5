//! Parameters of RACCOOM, with the seed's symbols and values.

use super::law::{Gains, Law};
use crate::rate::{Bounds, Sending};
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};

/// Everything that can be chosen. [`Config::published`] is the thesis, [`Config::transport`] is for real networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// The rate of the first packets where the session starts linearly; `None` for a packet per assumed round-trip time.
    pub first_rate: Option<Rate>,
    /// How the rate follows what is queued.
    pub law: Law,
    /// Gain of the distance to the wanted queue; `None` for the law's own.
    pub k1: Option<f64>,
    /// Gain of its integral.
    pub k2: f64,
    /// Half of the dead zone around the wanted queue, in packets, "Delta"; `None` for the law's own.
    pub delta: Option<f64>,
    /// What the wanted queue is for.
    pub aim: Aim,
    /// Share in units of a session of weight 1.
    pub weight: f64,
    /// Wanted queue of a session of weight 1, in packets, "E".
    pub queue: f64,
    /// For so many former targets the shortest round-trip time is remembered.
    pub table: u8,
    /// After so long without a sight of the empty path the source sends more slowly for a moment; `None` for never.
    pub probe: Option<Span>,
    /// The part of the accumulated rate at which it sends then.
    pub probe_part: f64,
    /// Least and first acknowledgement time-out.
    pub shortest_rto: Span,
    /// Before the first round-trip sample.
    pub first_rto: Span,
    /// No time-out is longer, however often it was doubled.
    pub longest_rto: Span,
    /// Who acknowledges what.
    pub answers: Answers,
    /// Where few answer: the target acknowledges every so many packets, the first one after a millisecond at once.
    pub ack_every: u8,
    /// Where few answer: so many others acknowledge in a second, all together.
    pub others: f64,
    /// Where few answer: another receiver becomes the target when its round trip is longer by this factor.
    pub hysteresis: f64,
    /// Where few answer: the law of the delay of reports of losses, and of answers to the start-up.
    pub delay_law: TruncatedExponential,
}

/// What the wanted queue is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// A share in proportion to the weight (seed 002, 3.6).
    Weighted,
    /// As much as a TCP flow with the same losses (3.7).
    Friendly,
}

/// Who acknowledges what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Every receiver every packet: the thesis, for networks whose routers or designated receivers aggregate.
    All,
    /// The target each packet, others now and then and at losses that no cut has answered.
    // Seed gap: the thesis has no answer to a large group without aggregation.
    Few,
}

/// Gains of the laws.
const STEADY_K1: f64 = 0.5;
const PRINTED_K1: f64 = 4.0;
const STEADY_DELTA: f64 = 0.5;
const PRINTED_DELTA: f64 = 2.0;
/// Packets per second at the lowest rate.
const LEAST_PACKETS: Span = Span::from_secs(5);

impl Config {
    /// The thesis: packets of 500 bytes, 5000 bytes/s at first, the equations as printed (seed 002, 3.9). They oscillate: the law that
    /// stands is [`Law::Steady`].
    // Seed gap: 3.9 prints k1 = 4 and k2 = 0.25, and alpha = 2, beta = 6 for E = 4.
    pub fn published() -> Config {
        let sending = Sending::published().with_packet_size(500);
        let bounds = Bounds { min: Rate::of(500, LEAST_PACKETS), max: sending.bounds.max };
        Config {
            sending: Sending { bounds, ..sending },
            first_rate: Some(Rate::from_bps(40_000.0)),
            law: Law::Printed,
            k1: None,
            k2: 0.25,
            delta: None,
            aim: Aim::Weighted,
            weight: 1.0,
            queue: 4.0,
            table: 0,
            probe: None,
            probe_part: 0.5,
            shortest_rto: Span::from_millis(200),
            first_rto: Span::from_secs(3),
            longest_rto: Span::from_secs(64),
            answers: Answers::All,
            ack_every: 1,
            others: 50.0,
            hysteresis: 1.1,
            delay_law: TruncatedExponential::default(),
        }
    }

    /// A real network: the law that stands, the queue of a TCP flow, start by doubling, looks for the shortest round trip,
    /// and acknowledgements of few.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            first_rate: None,
            law: Law::Steady,
            aim: Aim::Friendly,
            table: 64,
            probe: Some(Span::from_secs(10)),
            first_rto: Span::from_secs(1),
            longest_rto: Span::from_secs(1),
            answers: Answers::Few,
            ack_every: 4,
            ..Config::published()
        }
    }

    /// What the law needs.
    pub(super) fn gains(&self) -> Gains {
        let (k1, delta) = match self.law {
            Law::Steady => (STEADY_K1, STEADY_DELTA),
            Law::Printed => (PRINTED_K1, PRINTED_DELTA),
            Law::Seconds => (PRINTED_K1, STEADY_DELTA),
        };
        let (k1, delta) = (self.k1.unwrap_or(k1), self.delta.unwrap_or(delta));
        Gains { law: self.law, k1, k2: self.k2, delta }
    }
}
