//! Readers and writers of a program, as input and output of a session in place of paths and memory.

use crate::system::Monotonic;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A reader of content. A separate thread reads from it, unless the input is polled. Clones share the reader: the first session
/// that takes the reader gets the content, and later sessions find an empty input.
#[derive(Clone)]
pub struct Input(Arc<Once<dyn Read + Send>>);

/// A writer of content. A separate thread writes to it, unless the output is polled. If the program at the other end reads
/// slowly, the source sends more slowly. Clones share the writer: only the first session that takes the writer can write.
#[derive(Clone)]
pub struct Output(Arc<Once<dyn Write + Send>>);

/// A value that can be taken once, and a name of this value for users.
struct Once<T: ?Sized> {
    name: PathBuf,
    value: Mutex<Option<Box<T>>>,
    /// The clock of a polled value; `None` for any other value. A polled value is used in the session's thread and never blocks.
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
    /// Creates an input that is read to its end.
    pub fn new(reader: impl Read + Send + 'static) -> Input {
        Input(Once::new(Box::new(reader), None))
    }

    /// Creates an input that is read in the session's thread. `reader` must not block: it returns `WouldBlock` if no bytes are
    /// available now.
    pub fn polling(reader: impl Read + Send + 'static, time: Monotonic) -> Input {
        Input(Once::new(Box::new(reader), Some(time)))
    }

    /// Returns the clock of a polled input.
    pub fn polled(&self) -> Option<Monotonic> {
        self.0.polled.clone()
    }

    /// Returns the name for error messages.
    pub fn name(&self) -> PathBuf {
        self.0.name.clone()
    }

    /// Returns the reader; an empty reader if the reader was taken before.
    pub fn take(&self) -> Box<dyn Read + Send> {
        self.0.take().unwrap_or_else(|| Box::new(io::empty()))
    }
}

impl Output {
    /// Creates an output that writes to `writer`.
    pub fn new(writer: impl Write + Send + 'static) -> Output {
        Output(Once::new(Box::new(writer), None))
    }

    /// Creates an output that is written in the session's thread. `writer` must not block: it returns `WouldBlock` if it accepts
    /// no bytes now. After a flush it must accept all bytes.
    pub fn polling(writer: impl Write + Send + 'static) -> Output {
        Output(Once::new(Box::new(writer), Some(Monotonic::default())))
    }

    /// Returns whether the output is written in the session's thread.
    pub fn is_polled(&self) -> bool {
        self.0.polled.is_some()
    }

    /// Returns the writer; a writer that always fails if the writer was taken before.
    pub fn take(&self) -> Box<dyn Write + Send> {
        self.0.take().unwrap_or_else(|| Box::new(TakenOutput))
    }
}

/// An output that another session has taken.
struct TakenOutput;

impl Write for TakenOutput {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("another session already writes to this output"))
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
    fn input_and_output_can_be_taken_only_once() {
        let input = Input::new(&b"abc"[..]);
        let read = |input: &Input| io::read_to_string(input.take()).expect("memory can be read");
        assert_eq!((read(&input.clone()), read(&input)), ("abc".into(), String::new()));
        let output = Output::new(io::sink());
        output.take().write_all(b"abc").expect("the sink takes all");
        assert!(output.take().write_all(b"abc").is_err());
        assert!(output == output.clone() && output != Output::new(io::sink()));
    }
}
