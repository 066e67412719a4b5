//! Random delays of answers, so that the receivers of a large group do not all answer at the same time.

mod truncated_exponential;

pub use truncated_exponential::TruncatedExponential;
