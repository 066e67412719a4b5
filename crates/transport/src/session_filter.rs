//! Selection of sessions by a permanent receiver, which receives one session after another, or several at the same time. It never
//! receives the same session twice.

use crate::places::{OccupiedPlace, Standing, Vacancy, room_for};
use crate::system::Monotonic;
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_wire::{Announce, TransferId};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size of a manifest that is always accepted, in bytes. The memory for the manifest's entries is checked later, when the entries
/// are known.
const LITTLE_MANIFEST: u64 = 64 << 10;

/// Maximum number of ended sessions that are recorded.
const REMEMBERED: usize = 256;

/// A filter of the sessions to receive; the default filter accepts all sessions. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Accepted host names of sources, as patterns in which `*` stands for any characters. If empty, all host names are accepted.
    pub names: Vec<String>,
    /// Maximum size of the content of a session, in bytes. Sessions that announce a larger size, or no size, are not accepted.
    /// Live streams are accepted, but end with an error when they exceed this limit.
    pub most_bytes: Option<u64>,
    /// Maximum number of sessions that all clones together receive at the same time; `None`: unlimited.
    pub places: Option<usize>,
    shared: Arc<Mutex<Shared>>,
}

/// State shared by the receivers whose filters are clones of the same [`SessionFilter`].
#[derive(Debug, Default)]
struct Shared {
    time: Monotonic,
    ended: VecDeque<SessionId>,
    /// The sessions in which these receivers take part now.
    taken: Vec<JoinedSession>,
    /// Whether one of these receivers waits for a session.
    one_waits: bool,
}

/// A session in which a receiver takes part.
#[derive(Debug)]
struct JoinedSession {
    session: SessionId,
    transfer: TransferId,
    by: ReceiverId,
    /// The address of the session's source, and the proof that the source has given.
    source: OccupiedPlace,
}

/// A receiver's participation in a session, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    shared: Arc<Mutex<Shared>>,
    session: SessionId,
    by: ReceiverId,
}

impl Claim {
    fn is_of(&self, taken: &JoinedSession) -> bool {
        (taken.session, taken.by) == (self.session, self.by)
    }

    /// Whether another session has taken the place of this session.
    pub(crate) fn is_lost(&self) -> bool {
        !lock(&self.shared).taken.iter().any(|taken| self.is_of(taken))
    }

    /// Records that content has arrived from the source.
    pub(crate) fn brings_content(&self) {
        let mut shared = lock(&self.shared);
        if let Some(taken) = shared.taken.iter_mut().find(|taken| self.is_of(taken)) {
            taken.source.standing = taken.source.standing.max(Standing::TakesPart);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.shared).taken.retain(|taken| !self.is_of(taken));
    }
}

impl Shared {
    /// Returns the place for a session whose source has this address. The present place of receiver `by` counts as free.
    fn room_for(&self, host: IpAddr, by: Option<ReceiverId>, places: Option<usize>) -> Vacancy {
        let Some(most) = places else { return Vacancy::Free };
        let held: Vec<OccupiedPlace> = self.others(by).map(|taken| taken.source).collect();
        room_for(host, &held, most, self.time.now())
    }

    /// Returns the sessions of other receivers.
    fn others(&self, by: Option<ReceiverId>) -> impl Iterator<Item = &JoinedSession> {
        self.taken.iter().filter(move |taken| Some(taken.by) != by)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionFilter {
    /// Returns a filter for sources whose names match one of these patterns, with content of at most `most_bytes` bytes.
    #[must_use]
    pub fn new(names: Vec<String>, most_bytes: Option<u64>) -> SessionFilter {
        SessionFilter { names, most_bytes, ..SessionFilter::default() }
    }

    /// Whether the filter accepts the announced session.
    pub(crate) fn takes(&self, announce: &Announce) -> bool {
        let manifest = u64::from(announce.manifest_len);
        let fits = |most: u64| match announce.dry_run.or(announce.stream_len) {
            Some(len) => len.saturating_sub(manifest) <= most && manifest <= most.max(LITTLE_MANIFEST),
            None => announce.flags & Announce::LIVE != 0,
        };
        let name = announce.name.as_str();
        self.most_bytes.is_none_or(fits)
            && (self.names.is_empty() || self.names.iter().any(|pattern| is_like(name, pattern)))
    }

    /// Records that a session has ended at this host, by completion or for a local reason. Such a session is not joined again.
    pub(crate) fn end(&self, session: SessionId) {
        let ended = &mut lock(&self.shared).ended;
        if ended.len() == REMEMBERED {
            ended.pop_front();
        }
        ended.push_back(session);
    }

    /// Whether the session has ended at this host.
    pub(crate) fn has_ended(&self, session: SessionId) -> bool {
        lock(&self.shared).ended.contains(&session)
    }

    /// Whether another receiver of this host takes part in the session.
    pub(crate) fn is_anothers(&self, session: SessionId, me: ReceiverId) -> bool {
        lock(&self.shared).taken.iter().any(|taken| taken.session == session && taken.by != me)
    }

    /// Whether this host has a place for a session whose source has this address.
    pub(crate) fn has_place_for(&self, host: IpAddr) -> bool {
        lock(&self.shared).room_for(host, None, self.places) != Vacancy::None
    }

    /// Whether another receiver of this host takes part in a session with this content.
    pub(crate) fn is_anothers_content(&self, transfer: TransferId, me: ReceiverId) -> bool {
        lock(&self.shared).taken.iter().any(|taken| taken.transfer == transfer && taken.by != me)
    }

    /// Claims a session for this receiver; `standing` is the proof that the source's answer has given. Returns `None` if another
    /// receiver takes part in this session, or in another session with the same content. Also returns `None` if the session has
    /// ended here, or if there is no place for it.
    pub(crate) fn claim(
        &self,
        (session, transfer): (SessionId, TransferId),
        by: ReceiverId,
        (host, standing): (IpAddr, Standing),
    ) -> Option<Claim> {
        let mut shared = lock(&self.shared);
        let is_free = shared
            .taken
            .iter()
            .all(|taken| (taken.session != session && taken.transfer != transfer) || taken.by == by);
        if !is_free || shared.ended.contains(&session) {
            return None;
        }
        let other = match shared.room_for(host, Some(by), self.places) {
            Vacancy::Free => None,
            Vacancy::Of(place) => shared.others(Some(by)).nth(place).map(|taken| taken.by),
            Vacancy::None => return None,
        };
        shared.taken.retain(|taken| taken.by != by && Some(taken.by) != other);
        let source = OccupiedPlace { host, since: shared.time.now(), standing };
        shared.taken.push(JoinedSession { session, transfer, by, source });
        Some(Claim { shared: Arc::clone(&self.shared), session, by })
    }

    /// Sets whether a receiver with a clone of this filter waits for a session. While one waits, other receivers do not report to
    /// further sources that this host is busy.
    pub fn one_waits(&self, one_waits: bool) {
        lock(&self.shared).one_waits = one_waits;
    }

    pub(crate) fn does_one_wait(&self) -> bool {
        lock(&self.shared).one_waits
    }
}

/// Whether a host name matches one of these patterns, which are separated by commas. A pattern matches the name in full, or up to its
/// first dot; case is ignored. Without patterns, every name matches.
pub(crate) fn is_one_of(host: &str, patterns: &str) -> bool {
    let host = host.to_lowercase();
    let (short, _) = host.split_once('.').unwrap_or((&host, ""));
    let fits = |pattern: &str| is_like(&host, pattern) || is_like(short, pattern);
    patterns.is_empty() || patterns.to_lowercase().split(',').any(fits)
}

/// Whether a name matches a pattern, in which `*` stands for any characters.
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
    fn pattern_matches_like_a_shell_glob() {
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
    fn host_is_matched_without_case_and_with_or_without_its_domain() {
        for patterns in ["", "lab-*", "office,LAB-07", "lab-07.example.org", "*.example.org", "*"] {
            assert!(is_one_of("Lab-07.example.org", patterns), "{patterns}");
        }
        for patterns in ["lab-0", "office,room-*", ",", "lab-07.example"] {
            assert!(!is_one_of("Lab-07.example.org", patterns), "{patterns}");
        }
    }

    #[test]
    fn session_belongs_to_one_receiver_until_the_receiver_leaves() {
        let accept = SessionFilter::default();
        let me = |number| ReceiverId::new(number).expect("it is not zero");
        let first = accept.claim((SessionId(7), CONTENT), me(1), FROM).expect("it is free");
        assert!(accept.clone().claim((SessionId(7), CONTENT), me(3), FROM).is_none());
        assert!(accept.is_anothers(SessionId(7), me(3)) && !accept.is_anothers(SessionId(7), me(1)));
        let other = accept.claim((SessionId(8), OTHER), me(3), FROM).expect("another session");
        drop(first);
        assert!(accept.claim((SessionId(7), CONTENT), me(5), FROM).is_some(), "it is free again");
        drop(other);
        accept.end(SessionId(8));
        assert!(accept.claim((SessionId(8), OTHER), me(5), FROM).is_none(), "it has ended here");
    }

    const FROM: (IpAddr, Standing) = (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), Standing::Unproved);

    const CONTENT: TransferId = TransferId([1; 16]);
    const OTHER: TransferId = TransferId([2; 16]);

    #[test]
    fn only_one_receiver_of_a_host_owns_each_content() {
        let accept = SessionFilter::default();
        let me = |number| ReceiverId::new(number).expect("it is not zero");
        let first = accept.claim((SessionId(7), CONTENT), me(1), FROM).expect("it is free");
        assert!(
            accept.claim((SessionId(8), CONTENT), me(3), FROM).is_none(),
            "another session with the same content"
        );
        let second = accept.claim((SessionId(8), CONTENT), me(1), FROM).expect("it goes on in that session");
        drop(first);
        assert!(accept.is_anothers_content(CONTENT, me(3)) && !accept.is_anothers_content(CONTENT, me(1)));
        drop(second);
        assert!(!accept.is_anothers_content(CONTENT, me(3)));
    }

    #[test]
    fn sources_of_one_host_do_not_occupy_all_places() {
        let accept = SessionFilter { places: Some(4), ..SessionFilter::default() };
        let me = |number| ReceiverId::new(number).expect("it is not zero");
        let from = |last| (IpAddr::from([10, 0, 0, last]), Standing::Unproved);
        let claim = |number: u32, from| {
            accept.claim((SessionId(number), TransferId([number as u8; 16])), me(number.into()), from)
        };
        let crowd: Vec<Claim> = (1..=3).map(|number| claim(number, from(1)).expect("a place")).collect();
        assert!(claim(4, from(1)).is_none() && !accept.has_place_for(from(1).0), "the same host once more");
        let second = claim(5, from(2)).expect("a place is left");
        assert!(accept.has_place_for(from(3).0));
        let third = claim(6, from(3)).expect("one gives way");
        assert_eq!(crowd.iter().filter(|one| one.is_lost()).count(), 1);
        assert!(!second.is_lost() && !third.is_lost());
        for held in crowd.iter().chain([&second, &third]) {
            held.brings_content();
        }
        assert!(claim(7, from(4)).is_none(), "content comes from all");
        drop(third);
        assert!(claim(8, from(4)).is_some());
    }

    #[test]
    fn clones_share_a_bounded_list_of_ended_sessions() {
        let accept = SessionFilter::default();
        (0..=REMEMBERED as u32).for_each(|session| accept.clone().end(SessionId(session)));
        assert!(!accept.has_ended(SessionId(0)) && accept.has_ended(SessionId(REMEMBERED as u32)));
    }
}
