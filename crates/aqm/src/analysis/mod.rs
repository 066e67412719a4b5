//! Models for the design of queues, as functions for gains, margins and figures.
//!
//! | module | what it computes |
//! |---|---|
//! | [`control`] | PI and RED by design rules, and how far a loop is from swinging |
//! | [`sfc`] | SFC's model of TCP, its equilibrium and its stable gains (paper 002, chapter 6) |

pub mod control;
pub mod sfc;
