//! Comparison of queue disciplines under the loads of RFC 7928.
//!
//! | module | contents |
//! |---|---|
//! | [`loads`] | the loads, as scenario texts with the queue as a parameter |
//! | [`mod@bench`] | execution of the loads; for each run, whether the queue was the bottleneck and acted |
//! | [`page`] | results: a page with figures and tables, a table as CSV or Markdown |

pub mod bench;
pub mod loads;
pub mod page;
#[cfg(test)]
mod tests;

pub use bench::{Acted, Bench, BenchError, Row, Settings, bench};
pub use loads::{Load, Set};
