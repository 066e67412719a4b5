//! What a session uses of its host: a clock, random numbers, and readers and writers that may block.
//!
//! Each reader and writer that may block has a separate thread, so that a session never blocks: it polls for available bytes, or
//! hands over bytes and polls the number of unwritten bytes.
//!
//! | module | contents |
//! |---|---|
//! | [`system`] | the monotonic clock and random numbers |
//! | [`ends`] | readers and writers of a program, in place of files |
//! | [`pipe`] | reading a stream: from a program's reader, a file or a named pipe |
//! | [`layer_output`] | writing the stream of one layer: to a file or a named pipe |
//! | [`write_behind`] | writing to a program's writer, or to a file by jobs |
//! | [`read_ahead`] | reading and sealing the blocks of files ahead |

pub mod ends;
pub mod layer_output;
pub mod pipe;
pub mod read_ahead;
pub mod system;
pub mod write_behind;
