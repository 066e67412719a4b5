//! The interfaces of a session to its host: a clock, random numbers, and readers and writers that may block.
//!
//! Each reader or writer that may block has a separate thread, so that the session's thread never blocks. The session polls how
//! many bytes are available. It hands bytes over to a writer's thread, and polls how many of them are not written yet.
//!
//! | module | contents |
//! |---|---|
//! | [`system`] | the monotonic clock and random numbers |
//! | [`ends`] | readers and writers of a program, in place of files |
//! | [`pipe`] | input of a stream: from a program's reader, a file or a named pipe |
//! | [`layer_output`] | output for the bytes of a layer: to a file or a named pipe |
//! | [`write_behind`] | output to a program's writer, or to a file that jobs write |
//! | [`read_ahead`] | blocks of files that are read and sealed in advance |

pub mod ends;
pub mod layer_output;
pub mod pipe;
pub mod read_ahead;
pub mod system;
pub mod write_behind;
