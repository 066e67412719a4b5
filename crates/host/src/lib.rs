//! The interfaces of a session to its host: a clock, random numbers, and readers and writers that may block.
//!
//! Each reader and writer that may block has a separate thread, so that a session never blocks: it polls for available bytes, or
//! hands over bytes and polls the number of unwritten bytes.
//!
//! | module | contents |
//! |---|---|
//! | [`system`] | the monotonic clock and random numbers |
//! | [`ends`] | readers and writers of a program, in place of files |
//! | [`pipe`] | input of a stream: from a program's reader, a file or a named pipe |
//! | [`layer_output`] | output of a stream's layer: to a file or a named pipe |
//! | [`write_behind`] | output to a program's writer, or to a file by jobs |
//! | [`read_ahead`] | advance reading and sealing of the blocks of files |

pub mod ends;
pub mod layer_output;
pub mod pipe;
pub mod read_ahead;
pub mod system;
pub mod write_behind;
