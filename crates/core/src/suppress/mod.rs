//! Random delays that keep a large group from answering at once.

mod truncated_exponential;

pub use truncated_exponential::TruncatedExponential;
