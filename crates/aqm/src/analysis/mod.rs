//! Models for the design of queue disciplines: functions that compute gains, margins and figures.
//!
//! | module | what it computes |
//! |---|---|
//! | [`control`] | designs of PI and RED by rules, and stability margins of loops |
//! | [`sfc`] | SFC's model of TCP, its equilibrium and its stable gains (paper 002, chapter 6) |

pub mod control;
pub mod sfc;
