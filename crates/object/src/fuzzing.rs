//! Entry points of fuzzers, and the tests that replay their stored inputs. They exist only in builds for fuzzing and tests.

#[cfg(test)]
mod corpus;

pub use crate::journal::fuzz as journal;
pub use crate::manifest::fuzz as manifest;
