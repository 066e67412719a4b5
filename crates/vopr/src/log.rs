//! Log of a world: text lines for people, and a digest of all datagrams.

use blake3::Hasher;
use faircast_core::time::Time;
use std::collections::VecDeque;

/// Maximum number of stored lines; older ones are dropped.
const MAX_LINES: usize = 300;

pub(crate) struct Log {
    digest: Hasher,
    pub(crate) lines: VecDeque<String>,
    verbose: bool,
}

impl Log {
    pub(crate) fn new(verbose: bool) -> Log {
        Log { digest: Hasher::new(), lines: VecDeque::new(), verbose }
    }

    /// Logs a line.
    pub(crate) fn say(&mut self, now: Time, words: &str) {
        let line = format!("{:12.6} {words}", now.as_secs_f64());
        if self.verbose {
            eprintln!("{line}");
        }
        if self.lines.len() >= MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Adds a sent datagram to the digest.
    pub(crate) fn trace(&mut self, now: Time, host: usize, bytes: &[u8]) {
        self.digest.update(&now.as_nanos().to_le_bytes());
        self.digest.update(&(host as u32).to_le_bytes());
        self.digest.update(&(bytes.len() as u32).to_le_bytes());
        self.digest.update(bytes);
    }

    /// Returns the digest of all sent datagrams.
    pub(crate) fn fingerprint(&self) -> blake3::Hash {
        self.digest.finalize()
    }
}
