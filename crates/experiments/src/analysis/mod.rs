//! The papers' calculations about their schemes, as functions: for figures, and as yardsticks of the simulator.
//!
//! | module | what it answers |
//! |---|---|
//! | [`loss_events`] | how many lost packets make a loss event (paper 000, 2.2.1.3) |
//! | [`filters`] | how many reports LE-SBCC's filters pass (paper 000, 2.1.1) |
//! | [`representative`] | ORMCC: which receiver is followed, fairness to TCP, number of reports (paper 000, appendix C) |
//! | [`tcp`] | how fast TCP goes |
//! | [`delays`] | who answers early when answers are spread |
//! | [`layers`] | how fast RLC goes, and means over its layers (paper 004) |
//! | [`self_similar`] | self-similar traffic: samples, Hurst parameters, predictions (paper 002, 5.2) |
//!
//! Rates here are in the units of the formulas, as [`Rate`](faircast_core::time::Rate) where they are rates. Nothing in the
//! schemes depends on this module.

pub mod delays;
pub mod filters;
pub mod layers;
pub mod loss_events;
pub mod representative;
pub mod self_similar;
pub mod tcp;
