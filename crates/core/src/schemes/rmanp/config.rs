//! Parameters of RMANP, with the seed's symbols and values.

use super::exclusion::Exclusion;
use crate::rate::{Bounds, Sending};
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};

/// Everything that can be chosen at source and receivers. [`Config::published`] is the paper, [`Config::transport`] is for real
/// networks. Active routers have parameters of their own ([`crate::routers::rmanp::Config`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// The least rate that the application accepts, "Rm", which is also the first one.
    pub least: Rate,
    /// Part of the rate at which a lost packet was sent that is asked for, "Da".
    pub decrease: f64,
    /// Part of the least rate that the rate grows by with each packet acknowledged, "Is".
    pub increase: f64,
    /// Who sends again what is lost.
    pub repair: Repair,
    /// Who says what, and when.
    pub answers: Answers,
    /// Where a receiver begins.
    pub begin: Begin,
    /// Packets that are sent and not acknowledged, at most; `None` for any number.
    pub outstanding: Option<u16>,
    /// A receiver signals congestion when it has asked so often for a packet.
    pub requests: u8,
    /// Receivers that ask for less than the least rate so often in so long are excluded; never when 0.
    pub exclude: u8,
    /// In this time.
    pub exclude_within: Span,
    /// Who has not been heard for so long holds nobody back.
    pub silence: Span,
    /// Shortest acknowledgement time-out.
    pub shortest_rto: Span,
    /// Before the first round-trip sample.
    pub first_rto: Span,
    /// No time-out is longer, however often it was doubled.
    pub longest_rto: Span,
    /// Where few answer: so many receivers acknowledge in a second, all together.
    pub answers_per_second: f64,
    /// Where few answer: the law of the delay of congestion indications, and of answers to the start-up.
    pub delay_law: TruncatedExponential,
}

/// Who sends again what is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Source and active routers, under the old numbers: the paper.
    Tree,
    /// A delivery beside the scheme, under new numbers. Active routers send again what they have; what they have not never comes, and
    /// nobody waits for it.
    Session,
}

/// Who says what, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Every receiver acknowledges each packet and tells of each loss at once: the paper, whose active routers make one of many.
    All,
    /// As many as the source can hear, until an active router says that it listens.
    // Seed gap: the paper has no answer to a large group without active routers.
    Few,
}

/// Where a receiver begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// With the first packet that it hears.
    Here,
    /// With the first packet of the session, whatever it has missed.
    AtStart,
}

impl Config {
    /// The paper: packets of 1057 bytes, 16 kb/s at first (seed 003, 3).
    pub fn published() -> Config {
        let sending = Sending::published().with_packet_size(1057);
        let least = Rate::from_bps(16_000.0);
        Config {
            sending: Sending { bounds: Bounds { min: least, max: sending.bounds.max }, ..sending },
            least,
            decrease: 0.8,
            increase: 0.005,
            repair: Repair::Tree,
            answers: Answers::All,
            begin: Begin::Here,
            outstanding: Some(100),
            // Seed gap: "a certain threshold".
            requests: 3,
            exclude: 5,
            exclude_within: Span::from_secs(10),
            silence: Span::from_secs(3),
            // Seed gap: the time-out is named and not defined.
            shortest_rto: Span::from_secs(1),
            first_rto: Span::from_secs(3),
            longest_rto: Span::from_secs(64),
            answers_per_second: 50.0,
            delay_law: TruncatedExponential::default(),
        }
    }

    /// A real network: delivery repairs, few answer, nobody is excluded, the rate starts by doubling and then grows by 800 bit/s with each
    /// packet, e-fold in 15 s with packets of 1,500 bytes.
    // Seed gap: with the paper's values the rate grows e-fold in 106 s, whatever it is.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            increase: 0.05,
            repair: Repair::Session,
            answers: Answers::Few,
            outstanding: None,
            exclude: 0,
            first_rto: Span::from_secs(1),
            longest_rto: Span::from_secs(1),
            ..Config::published()
        }
    }

    /// When a receiver is excluded; `None` for never.
    pub(super) const fn exclusion(&self) -> Option<Exclusion> {
        match self.exclude {
            0 => None,
            count => Some(Exclusion { count, within: self.exclude_within }),
        }
    }
}
