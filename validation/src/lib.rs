//! Compares the simulator with runs of ns-2.35 and ns-3.37.
//!
//! `reference/` holds what they measured in networks that are described there. Here the same networks are built and run, the
//! same is measured, and every value is compared with a tolerance that was fixed beforehand, or listed with the reason why not.
//!
//! | module | what it holds |
//! |---|---|
//! | [`reference`](mod@reference) | the files, section by section |
//! | [`case`] | the networks and what was measured in them |
//! | [`networks`] | the same networks for our simulator |
//! | [`measure`] | what is measured of a run |
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
