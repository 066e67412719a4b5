//! Delivery, which is independent of schemes: gaps in the stream, repairs, and requests.
//!
//! A transfer is cut into blocks of K source symbols. The source sends each block's source symbols once. Receivers then request a
//! *number* of further symbols per block, and any repair symbol serves any receiver. The receiver uses [`gaps`] and
//! [`request_scheduler`], the source uses [`repair_scheduler`]. With layers there are no requests: [`carousel`] sends symbols
//! that were not sent before. Without feedback, [`rounds`] sends all blocks several times.

pub mod carousel;
pub mod gaps;
pub mod repair_scheduler;
pub mod request_scheduler;
pub mod rounds;
