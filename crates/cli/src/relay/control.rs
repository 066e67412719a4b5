//! Status of a running relay: the relay listens on a local socket, and sends its status to each program that connects.

use crate::failure::{Failure, Usage};
use faircast::RelayHandle;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, thread};

/// Timeout of an answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The listener of a running relay. Dropping this value removes the socket.
pub struct Control {
    path: PathBuf,
}

/// Returns the default path of the socket.
pub fn default_path() -> PathBuf {
    let dir = env::var_os("XDG_RUNTIME_DIR").map_or_else(|| PathBuf::from("/run"), PathBuf::from);
    dir.join("faircast-relay.sock")
}

impl Control {
    /// Starts to listen at `path`. Replaces the socket that a killed relay has left at this path.
    ///
    /// # Errors
    /// When another relay listens at `path`, or the socket cannot be created.
    pub fn open(path: &Path, handle: RelayHandle) -> Result<Control, Failure> {
        let fails = |source| Failure::from(Usage::RelayControl { path: path.to_owned(), source });
        if UnixStream::connect(path).is_ok() {
            return Err(Usage::RelayRuns(path.to_owned()).into());
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fails(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(fails)?;
        // The thread ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that does not read is ignored.
                let _ = answer(stream, &handle);
            }
        });
        Ok(Control { path: path.to_owned() })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // If the removal fails, the next relay removes the socket.
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(mut stream: UnixStream, handle: &RelayHandle) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut text = serde_json::to_vec(&handle.status())?;
    text.push(b'\n');
    stream.write_all(&text)
}

/// Returns the status of the relay that listens at `path`.
///
/// # Errors
/// When no relay listens, or when the relay does not answer.
pub fn ask(path: &Path) -> Result<String, Failure> {
    let fails = |source| Failure::from(Usage::NoRelay { path: path.to_owned(), source });
    let mut stream = UnixStream::connect(path).map_err(fails)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(fails)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(fails)?;
    Ok(text)
}
