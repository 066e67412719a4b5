//! Delivery, which is independent of schemes: gaps in the stream, repairs, and requests.
//!
//! A transfer is cut into blocks of K source symbols. The source sends every block's source symbols once; receivers then request a *count*
//! of further symbols per block, and any repair symbol serves any receiver. [`gaps`] and [`request_scheduler`] are the receiver's side,
//! [`repair_scheduler`] is the source's. Layers work without requests: [`carousel`] keeps sending symbols that no receiver has had yet.

pub mod carousel;
pub mod gaps;
pub mod repair_scheduler;
pub mod request_scheduler;
