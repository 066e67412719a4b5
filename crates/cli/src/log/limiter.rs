//! The limit of the number of log lines. A session with very many receivers must not fill a disk.

use std::collections::BTreeMap;
use std::time::Duration;

/// Number of lines that a target may write at once, and per second afterwards.
pub const AT_ONCE: u32 = 1_000;
pub const PER_SECOND: u32 = 100;

/// Counts lines by target. Targets are constants of the program, so their number is bounded.
#[derive(Debug, Default)]
pub struct Limiter {
    targets: BTreeMap<&'static str, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// Number of lines that may be written now.
    left: f64,
    filled_at: Duration,
    /// Number of lines that were left out and are not reported yet.
    left_out: u64,
}

impl Limiter {
    /// Whether a line of this target may be written at this time.
    pub fn admits(&mut self, target: &'static str, now: Duration) -> bool {
        let bucket = self.targets.entry(target).or_insert(Bucket {
            left: AT_ONCE.into(),
            filled_at: now,
            left_out: 0,
        });
        let grown = now.saturating_sub(bucket.filled_at).as_secs_f64() * f64::from(PER_SECOND);
        bucket.left = (bucket.left + grown).min(AT_ONCE.into());
        bucket.filled_at = now.max(bucket.filled_at);
        let is_admitted = bucket.left >= 1.0;
        match is_admitted {
            true => bucket.left -= 1.0,
            false => bucket.left_out += 1,
        }
        is_admitted
    }

    /// Returns a target that has room for lines again, and the number of its lines that were left out since the last call. After
    /// the end of the session, `now` is [`Duration::MAX`].
    pub fn take_left_out(&mut self, now: Duration) -> Option<(&'static str, u64)> {
        let has_room = |bucket: &Bucket| {
            now.saturating_sub(bucket.filled_at).as_secs_f64() * f64::from(PER_SECOND) >= 1.0
        };
        let (target, bucket) = self
            .targets
            .iter_mut()
            .find(|(_, bucket)| bucket.left_out > 0 && (bucket.left >= 1.0 || has_room(bucket)))?;
        Some((target, std::mem::take(&mut bucket.left_out)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_its_own_limit_and_its_own_count() {
        let mut limiter = Limiter::default();
        let at = Duration::from_millis;
        let admitted = |limiter: &mut Limiter, target, lines: u32, now| {
            (0..lines).filter(|_| limiter.admits(target, now)).count() as u32
        };
        assert_eq!(admitted(&mut limiter, "join", AT_ONCE + 300, at(0)), AT_ONCE);
        assert_eq!(limiter.take_left_out(at(0)), None, "there is no room yet");
        assert_eq!(admitted(&mut limiter, "cut", 5, at(0)), 5, "the other target is not limited");
        assert_eq!(limiter.take_left_out(at(20)), Some(("join", 300)));
        assert_eq!(limiter.take_left_out(at(20)), None, "it is reported once");
        assert_eq!(admitted(&mut limiter, "join", 500, at(2_000)), 2 * PER_SECOND);
        assert_eq!(limiter.take_left_out(Duration::MAX), Some(("join", 300)));
        assert_eq!(admitted(&mut limiter, "join", 5_000, at(60_000)), AT_ONCE, "the room is bounded");
    }

    #[test]
    fn time_that_goes_back_admits_no_further_lines() {
        let mut limiter = Limiter::default();
        let at = Duration::from_secs;
        let admitted = (0..5_000).filter(|_| limiter.admits("join", at(9)));
        assert_eq!(admitted.count() as u32, AT_ONCE);
        assert!(!limiter.admits("join", at(3)) && !limiter.admits("join", at(9)));
    }
}
