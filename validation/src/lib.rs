//! Compares the simulator with runs of ns-2.35.
//!
//! `ns2.json` holds what ns-2 measured in networks that are described there. Here the same networks are built and run, the
//! same is measured, and every value is compared with a tolerance that was fixed beforehand.
//!
//! | module | what it holds |
//! |---|---|
//! | [`reference`](mod@reference) | the networks and what ns-2 measured |
//! | [`networks`] | the same networks for our simulator |
//! | [`measure`] | what is measured of a run |
//! | [`compare`] | tolerances and verdicts |
//! | [`run`] | all runs of a case, on all processors |
//! | [`page`] | tables for a terminal and for the documentation |

pub mod compare;
pub mod measure;
pub mod networks;
pub mod page;
pub mod reference;
pub mod run;
