//! The part of a receiver's settings that is used for each packet.

use super::config::{Assumed, Config, Joins, LayerScheme, LeaveNotice, Output};
use super::taf::Rules;
use crate::packet::LayerStates;
use crate::suppress::TruncatedExponential;
use crate::time::Span;

/// The part of the configuration that a receiver uses for each packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) rules: Rules,
    pub(super) output: Output,
    pub(super) window: Span,
    /// Whether representatives acknowledge packets.
    pub(super) acknowledges: bool,
    pub(super) layers: u8,
    pub(super) assumed: Assumed,
    pub(super) joins: Joins,
    pub(super) checks: u8,
    pub(super) rejoin: Span,
    pub(super) farewell: LeaveNotice,
    pub(super) beat: Span,
    pub(super) reports_per_rtt: Option<u16>,
    pub(super) law: TruncatedExponential,
}

impl Settings {
    pub(super) fn new(config: &Config) -> Settings {
        Settings {
            rules: Rules::new(config),
            output: config.output,
            window: config.window,
            acknowledges: config.control == LayerScheme::Pgmcc,
            layers: config.layers.clamp(1, LayerStates::LAYERS),
            assumed: config.assumed,
            joins: config.joins,
            checks: config.checks,
            rejoin: config.rejoin,
            farewell: config.farewell,
            beat: config.min_beat,
            reports_per_rtt: config.reports_per_rtt,
            law: config.delay_law,
        }
    }
}
