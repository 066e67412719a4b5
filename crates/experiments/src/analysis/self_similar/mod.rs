//! Self-similar traffic (paper 002, 5.2): series with long memory are made, their Hurst parameter is estimated, and how well
//! they can be predicted is computed.
//!
//! | module | what it holds |
//! |---|---|
//! | [`fgn`] | fractional Gaussian noise by Davies' and Harte's method |
//! | [`hurst`] | estimators of the Hurst parameter: R/S, variance-time, Whittle, local Whittle, wavelets |
//! | [`prediction`] | the least error of predictors of such series (figure 5.2) |
//!
//! The Hurst parameter `H` is 0.5 for independent values and nears 1 for the longest memory.

pub mod fgn;
pub mod hurst;
pub mod prediction;

mod fourier;
mod gamma;
