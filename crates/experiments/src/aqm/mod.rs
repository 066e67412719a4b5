//! Queues under the scenarios of RFC 7928, and beside each other under the same loads.
//!
//! | module | what it holds |
//! |---|---|
//! | [`loads`] | the loads, as scenario texts with a place for queues |
//! | [`mod@bench`] | runs them, and says of every run whether the queue was the bottleneck and acted |
//! | [`page`] | what came of it: a page with figures and tables, a table as CSV or Markdown |

pub mod bench;
pub mod loads;
pub mod page;
#[cfg(test)]
mod tests;

pub use bench::{Acted, Bench, BenchError, Row, Settings, bench};
pub use loads::{Load, Set};
