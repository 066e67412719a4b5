//! A limit on the number of bytes that a session of unknown length may write. Bytes beyond the limit are not written.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of bytes that may still be written; all clones share this number.
#[derive(Debug, Clone, Default)]
pub struct Quota(Option<RemainingBytes>);

#[derive(Debug, Clone)]
struct RemainingBytes {
    most: u64,
    bytes: Arc<AtomicU64>,
}

/// The session has sent more bytes than the user allows.
#[derive(Debug, thiserror::Error)]
#[error("the session exceeds its limit of {0} bytes; only the bytes up to the limit are stored")]
struct TooMuch(u64);

impl Quota {
    /// Creates a quota of `most` bytes in total; `None` is unlimited.
    pub fn new(most: Option<u64>) -> Quota {
        Quota(most.map(|most| RemainingBytes { most, bytes: Arc::new(AtomicU64::new(most)) }))
    }

    /// Deducts `bytes` from the quota, or the remaining number if it is smaller. Returns the deducted number.
    ///
    /// # Errors
    /// Fails when the quota is used up.
    fn take(&self, bytes: usize) -> io::Result<usize> {
        let Some(RemainingBytes { most, bytes: left }) = &self.0 else { return Ok(bytes) };
        let wanted = bytes as u64;
        let update = |left: u64| Some(left.saturating_sub(wanted));
        let before =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).unwrap_or_else(|left| left);
        if before == 0 && wanted > 0 {
            return Err(io::Error::other(TooMuch(*most)));
        }
        Ok(wanted.min(before) as usize)
    }

    /// Takes all of these bytes from the quota.
    ///
    /// # Errors
    /// Fails when the bytes do not fit.
    pub fn spend(&self, bytes: usize) -> io::Result<()> {
        let room = self.take(bytes)?;
        if room < bytes {
            self.give_back(room);
            return Err(io::Error::other(TooMuch(self.0.as_ref().map_or(0, |left| left.most))));
        }
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        if let Some(left) = &self.0 {
            left.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Returns a writer whose bytes are deducted from the quota. A write fails when the quota is used up.
    #[must_use]
    pub fn limit(&self, to: Box<dyn Write + Send>) -> Box<dyn Write + Send> {
        match &self.0 {
            None => to,
            Some(_) => Box::new(Limited { to, quota: self.clone() }),
        }
    }
}

struct Limited {
    to: Box<dyn Write + Send>,
    quota: Quota,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.quota.take(bytes.len())?;
        let written = self.to.write(&bytes[..room]).inspect_err(|_| self.quota.give_back(room))?;
        self.quota.give_back(room - written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// A writer that takes three bytes at a time.
    #[derive(Clone, Default)]
    struct Slow(Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let some = bytes.len().min(3);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(&bytes[..some]);
            Ok(some)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn writers_share_a_quota_and_the_excess_is_not_written() {
        let (quota, one, other) = (Quota::new(Some(20)), Slow::default(), Slow::default());
        let mut writers = [&one, &other].map(|slow| quota.limit(Box::new(slow.clone())));
        writers[0].write_all(&[1; 11]).expect("there is room");
        let error = writers[1].write_all(&[2; 11]).expect_err("two bytes too many");
        assert!(error.to_string().contains("its limit of 20 bytes"), "{error}");
        writers[0].write_all(&[1]).expect_err("there is no room");
        writers[0].write_all(&[]).expect("nothing needs none");
        assert_eq!([one, other].map(|slow| slow.0.lock().expect("nobody panics").len()), [11, 9]);
    }

    #[test]
    fn bytes_that_exceed_the_quota_are_refused_and_not_deducted() {
        let quota = Quota::new(Some(10));
        quota.spend(6).expect("there is room");
        quota.spend(5).expect_err("one too many");
        quota.spend(4).expect("nothing was spent of those");
        quota.clone().spend(1).expect_err("a clone has no other room");
    }

    #[test]
    fn unlimited_quota_admits_all_bytes() {
        let slow = Slow::default();
        Quota::new(None).limit(Box::new(slow.clone())).write_all(&[1; 1_000]).expect("there is room");
        assert_eq!(slow.0.lock().expect("nobody panics").len(), 1_000);
    }
}
