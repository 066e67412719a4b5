//! Functions for the calculations of the papers about the schemes. The results are used for figures and as reference values for
//! the simulator.
//!
//! | module | contents |
//! |---|---|
//! | [`loss_events`] | lost packets per loss event (paper 000, 2.2.1.3) |
//! | [`filters`] | number of reports that pass LE-SBCC's filters (paper 000, 2.1.1) |
//! | [`representative`] | ORMCC: choice of the representative, fairness to TCP, number of reports (paper 000, appendix C) |
//! | [`tcp`] | rate of TCP |
//! | [`delays`] | number of early answers with random delays |
//! | [`layers`] | rate of RLC, and means over its layers (paper 004) |
//! | [`self_similar`] | self-similar traffic: samples, Hurst parameters, predictions (paper 002, 5.2) |
//!
//! Rates are [`Rate`](faircast_core::time::Rate)s; other quantities have the units of the formulas. No scheme depends on this
//! module.

pub mod delays;
pub mod filters;
pub mod layers;
pub mod loss_events;
pub mod representative;
pub mod self_similar;
pub mod tcp;
