//! The host of a session, as far as the session knows it: a clock, random numbers, and readers and writers that may wait for somebody else.
//!
//! Each reader and writer that may wait has a thread of its own, so a session never waits for one: it asks what is there, or hands over
//! bytes and asks how many are left.
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
