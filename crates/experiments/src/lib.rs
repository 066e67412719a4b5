//! Scenarios, results, statistics and plots: the papers' figures and tables as executable scenario files.

pub mod analysis;
pub mod aqm;
pub mod edit;
pub mod figures;
pub mod plot;
pub mod report;
pub mod repro;
pub mod results;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod table;
