//! Access to the filesystem of a host. Every operation uses a descriptor and stays inside an open directory.

pub mod block_device;
pub(crate) mod direct;
pub mod disk;
pub mod quota;
pub mod replace;
pub mod sys;
pub mod tree;
