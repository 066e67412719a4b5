//! Where content comes from and goes to besides paths and memory: anything that reads or writes.

use crate::system::Monotonic;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Something that content is read from, in a thread of its own. A clone is the same one: the first session that reads it
/// has it, others find it empty.
#[derive(Clone)]
pub struct Input(Arc<Once<dyn Read + Send>>);

/// Something that content is written to, in a thread of its own: whoever reads its other end may be slow, and the source
/// then sends as fast as that. A clone is the same one, and the first session that writes has it.
#[derive(Clone)]
pub struct Output(Arc<Once<dyn Write + Send>>);

/// A value that is taken once, with its name for users.
struct Once<T: ?Sized> {
    name: PathBuf,
    value: Mutex<Option<Box<T>>>,
    /// Used in the session's thread, with this clock: it never waits.
    polled: Option<Monotonic>,
}

impl<T: ?Sized> Once<T> {
    fn new(value: Box<T>, polled: Option<Monotonic>) -> Arc<Once<T>> {
        Arc::new(Once { name: "-".into(), value: Mutex::new(Some(value)), polled })
    }

    fn take(&self) -> Option<Box<T>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Input {
    /// Read from this, to its end.
    pub fn new(reader: impl Read + Send + 'static) -> Input {
        Input(Once::new(Box::new(reader), None))
    }

    /// Read from this in the session's thread. It never waits: `WouldBlock` means that it has nothing now.
    pub fn polling(reader: impl Read + Send + 'static, time: Monotonic) -> Input {
        Input(Once::new(Box::new(reader), Some(time)))
    }

    /// The clock of a polled input.
    pub fn polled(&self) -> Option<Monotonic> {
        self.0.polled.clone()
    }

    /// Its name in errors.
    pub fn name(&self) -> PathBuf {
        self.0.name.clone()
    }

    /// The reader; an empty one when it was taken before.
    pub fn take(&self) -> Box<dyn Read + Send> {
        self.0.take().unwrap_or_else(|| Box::new(io::empty()))
    }
}

impl Output {
    /// Write to this.
    pub fn new(writer: impl Write + Send + 'static) -> Output {
        Output(Once::new(Box::new(writer), None))
    }

    /// Write to this in the session's thread. It never waits: `WouldBlock` means that it takes nothing now, and it takes everything
    /// after a flush.
    pub fn polling(writer: impl Write + Send + 'static) -> Output {
        Output(Once::new(Box::new(writer), Some(Monotonic::default())))
    }

    /// Whether it is written in the session's thread.
    pub fn is_polled(&self) -> bool {
        self.0.polled.is_some()
    }

    /// The writer; one that fails when it was taken before.
    pub fn take(&self) -> Box<dyn Write + Send> {
        self.0.take().unwrap_or_else(|| Box::new(TakenOutput))
    }
}

/// An output that another session has taken.
struct TakenOutput;

impl Write for TakenOutput {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("another session has this output"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Input")
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

impl PartialEq for Input {
    fn eq(&self, other: &Input) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Output {
    fn eq(&self, other: &Output) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_read_once_and_an_output_is_written_by_one() {
        let input = Input::new(&b"abc"[..]);
        let read = |input: &Input| io::read_to_string(input.take()).expect("memory can be read");
        assert_eq!((read(&input.clone()), read(&input)), ("abc".into(), String::new()));
        let output = Output::new(io::sink());
        output.take().write_all(b"abc").expect("the sink takes all");
        assert!(output.take().write_all(b"abc").is_err());
        assert!(output == output.clone() && output != Output::new(io::sink()));
    }
}
