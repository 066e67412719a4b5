//! Random delays that prevent simultaneous answers of a large group.

mod truncated_exponential;

pub use truncated_exponential::TruncatedExponential;
