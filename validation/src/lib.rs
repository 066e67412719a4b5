//! Comparison of our simulator with runs of ns-2.35 and ns-3.37.
//!
//! `reference/` contains the values that these simulators measured, and descriptions of their networks. This crate runs the same
//! networks in our simulator. Each value is compared with a tolerance that was fixed beforehand, or listed with the reason for
//! not comparing it.
//!
//! | module | content |
//! |---|---|
//! | [`reference`](mod@reference) | parsers of the files, one for each kind of section |
//! | [`case`] | networks and the values measured in them |
//! | [`networks`] | the same networks for our simulator |
//! | [`measure`] | measurements of a run |
//! | [`compare`] | tolerances and verdicts |
//! | [`run`] | all runs of a case, on all processors |
//! | [`page`] | tables for a terminal and for the documentation |

pub mod case;
pub mod compare;
pub mod measure;
pub mod networks;
pub mod page;
pub mod reference;
pub mod run;
