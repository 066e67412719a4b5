//! Access to the file system of a host: every operation by descriptor, below a directory that is open.

pub mod disk;
pub mod quota;
pub mod replace;
pub mod sys;
pub mod tree;
