//! Traces of sessions: their format, and the courses of sessions that they describe.
//!
//! | module | contents |
//! |---|---|
//! | `format` | the records |
//! | `read` | reading of traces, damaged ones included |
//! | `story` `course` | the sessions of a trace, and their progress by seconds |

mod course;
mod format;
mod read;
mod story;

pub use course::progress;
#[cfg_attr(
    not(any(feature = "tracing", feature = "simulator", test)),
    expect(unused_imports, reason = "traces are only read")
)]
pub use format::{Event, header};
pub use read::About;
pub use story::{Cut, Member, Sample, Session, Story};
