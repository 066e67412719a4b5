//! Which sessions a receiver follows that stays: it takes part in one after another, and in none twice.

use faircast_core::packet::SessionId;
use faircast_wire::Announce;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// So many sessions are remembered.
const REMEMBERED: usize = 256;

/// Which sessions are followed; all of them by default. Clones remember the same sessions.
#[derive(Debug, Clone, Default)]
pub struct Accept {
    /// Only those whose sources call themselves like one of these, where `*` stands for anything; empty: all.
    pub names: Vec<String>,
    /// Only those that say how many bytes they have, and have no more than this.
    pub most_bytes: Option<u64>,
    ended: Arc<Mutex<VecDeque<SessionId>>>,
}

impl Accept {
    /// Sources with names like one of these, and content of so many bytes at most.
    #[must_use]
    pub fn new(names: Vec<String>, most_bytes: Option<u64>) -> Accept {
        Accept { names, most_bytes, ..Accept::default() }
    }

    /// Whether what is announced is wanted here.
    pub(crate) fn takes(&self, announce: &Announce) -> bool {
        let fits =
            |most: u64| announce.stream_len.is_some_and(|len| len <= most + u64::from(announce.manifest_len));
        let name = announce.name.as_str();
        self.most_bytes.is_none_or(fits)
            && (self.names.is_empty() || self.names.iter().any(|pattern| is_like(name, pattern)))
    }

    /// A session has ended here, with everything or for a reason of this host's own: it is not followed again.
    pub(crate) fn end(&self, session: SessionId) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() == REMEMBERED {
            ended.pop_front();
        }
        ended.push_back(session);
    }

    /// Whether it has ended here.
    pub(crate) fn has_ended(&self, session: SessionId) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).contains(&session)
    }
}

/// Whether a name fits a pattern, in which `*` stands for any characters.
fn is_like(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            match rest.split_once(before) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_as_in_a_shell() {
        let fits = [
            ("master", "master"),
            ("master", "*"),
            ("master-2", "master*"),
            ("a.lab", "*.lab"),
            ("abcabc", "a*c*c"),
        ];
        fits.iter().for_each(|(name, pattern)| assert!(is_like(name, pattern), "{name} is like {pattern}"));
        let others =
            [("master2", "master"), ("mast", "master*"), ("lab", "*.lab"), ("ab", "a*b*b"), ("", "a*")];
        others
            .iter()
            .for_each(|(name, pattern)| assert!(!is_like(name, pattern), "{name} is not like {pattern}"));
    }

    #[test]
    fn sessions_that_have_ended_are_remembered_by_all_clones_and_not_without_end() {
        let accept = Accept::default();
        (0..=REMEMBERED as u32).for_each(|session| accept.clone().end(SessionId(session)));
        assert!(!accept.has_ended(SessionId(0)) && accept.has_ended(SessionId(REMEMBERED as u32)));
    }
}
