//! Entry points of fuzzers, and the tests that replay their stored inputs. Other builds do not have them.

#[cfg(test)]
mod corpus;

pub use crate::journal::fuzz as journal;
pub use crate::manifest::fuzz as manifest;
