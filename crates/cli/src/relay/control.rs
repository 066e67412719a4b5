//! How a running relay is asked: it listens on a socket of this host and says its status to whoever connects.

use crate::failure::{Failure, Usage};
use faircast::RelayHandle;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, thread};

/// Timeout of an answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The listener of a running relay; its socket goes with it.
pub struct Control {
    path: PathBuf,
}

/// Where a relay listens when nothing else is said.
pub fn default_path() -> PathBuf {
    let dir = env::var_os("XDG_RUNTIME_DIR").map_or_else(|| PathBuf::from("/run"), PathBuf::from);
    dir.join("faircast-relay.sock")
}

impl Control {
    /// Listen here; what a relay left that was killed is replaced.
    ///
    /// # Errors
    /// When another relay listens there, or the socket cannot be made.
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
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that does not read is not waited for.
                let _ = answer(stream, &handle);
            }
        });
        Ok(Control { path: path.to_owned() })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // The next relay removes what is left.
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(mut stream: UnixStream, handle: &RelayHandle) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut text = serde_json::to_vec(&handle.status())?;
    text.push(b'\n');
    stream.write_all(&text)
}

/// Returns the status of the relay that listens here.
///
/// # Errors
/// When there is no relay, or it does not answer.
pub fn ask(path: &Path) -> Result<String, Failure> {
    let fails = |source| Failure::from(Usage::NoRelay { path: path.to_owned(), source });
    let mut stream = UnixStream::connect(path).map_err(fails)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(fails)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(fails)?;
    Ok(text)
}
