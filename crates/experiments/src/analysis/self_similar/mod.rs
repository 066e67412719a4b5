//! Self-similar traffic (paper 002, 5.2): generation of series with long memory, estimation of their Hurst parameter, and the
//! accuracy of predictions.
//!
//! | module | contents |
//! |---|---|
//! | [`fgn`] | fractional Gaussian noise by Davies' and Harte's method |
//! | [`hurst`] | estimators of the Hurst parameter: R/S, variance-time, Whittle, local Whittle, wavelets |
//! | [`prediction`] | the minimum error of predictors of such series (figure 5.2) |
//!
//! The Hurst parameter `H` is 0.5 for independent values and approaches 1 for the longest memory.

pub mod fgn;
pub mod hurst;
pub mod prediction;

mod fourier;
mod gamma;
