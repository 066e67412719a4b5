//! Receivers that receive the session but refuse to join it. A refusal may be unsealed, and thus forged. It has no effect except
//! a report to the user.

use crate::config::RequiredHost;
use crate::event::{Event, IncompleteReceiver};
use faircast_wire::parse::VERSION;
use faircast_wire::{KeyId, Name, OpenError, ParseError, Refusal, RefusalReason};
use humantime::format_rfc3339_seconds;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, UNIX_EPOCH};

/// Maximum number of hosts named.
const NAMED: usize = 16;

/// Number of packets that fail to open after which a host is reported.
const UNOPENED: u32 = 3;

/// Maximum number of hosts for which packets that fail to open are counted.
const COUNTED: usize = 64;

/// Hosts with reported refusals.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    named: Vec<(IpAddr, ReportedRefusal)>,
    /// Hosts that have sent a refusal, with its reason.
    refused: Vec<(IpAddr, IncompleteReceiver)>,
    more_reported: bool,
    unopened: Vec<(IpAddr, u32)>,
}

/// Kind of a reported problem of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportedRefusal {
    Refuses(RefusalReason),
    Version(u8),
    DoesNotOpen,
}

impl Refusals {
    /// Whether any refusal has been reported.
    pub(super) fn any(&self) -> bool {
        !self.named.is_empty()
    }

    /// Returns the event for a refusal of this session; `None` if it was reported before. The session is sealed under `key`, and
    /// `unix_secs` is the current time.
    pub(super) fn on_refusal(
        &mut self,
        refusal: &Refusal,
        from: SocketAddr,
        key: Option<KeyId>,
        unix_secs: u64,
    ) -> Option<Event> {
        let ip = from.ip().to_canonical();
        if let Some(instead) = self.instead_of(ip, ReportedRefusal::Refuses(refusal.reason)) {
            return instead.map(Event::warning);
        }
        let host = refusal.host.as_str();
        let until = refusal.seconds.map(|seconds| unix_secs.saturating_add(seconds.into()));
        let why = why(refusal, key, until);
        let reason = short(refusal, until);
        self.refused.push((ip, IncompleteReceiver { host: host.to_owned(), reason }));
        if refusal.reason == RefusalReason::Busy {
            let text = |name: &Name| Some(name.to_string()).filter(|name| !name.is_empty());
            let (source, content) = (text(&refusal.source), text(&refusal.content));
            let done = refusal.seconds == Some(0);
            let until = until.and_then(|secs| UNIX_EPOCH.checked_add(Duration::from_secs(secs)));
            return Some(Event::Busy { host: host.to_owned(), address: from, source, content, until, done });
        }
        Some(Event::warning(format!("{host} ({ip}) receives this session but does not join it: {why}")))
    }

    /// Returns the newest refusal of each host that is not in `listed`.
    pub(super) fn besides(&self, listed: &[RequiredHost]) -> Vec<&IncompleteReceiver> {
        let mut newest: Vec<&IncompleteReceiver> = Vec::new();
        for (ip, refused) in self.refused.iter().rev() {
            let is_known = newest.iter().any(|one| one.host == refused.host)
                || listed.iter().any(|required| required.is(&refused.host, *ip));
            if !is_known {
                newest.push(refused);
            }
        }
        newest.reverse();
        newest
    }

    /// Returns the newest refusal of a required host.
    pub(super) fn of(&self, required: &RequiredHost) -> Option<&IncompleteReceiver> {
        let newest = self.refused.iter().rev().find(|(ip, refused)| required.is(&refused.host, *ip));
        newest.map(|(_, refused)| refused)
    }

    /// Returns a warning about a packet that cannot be read; `None` if there is nothing to report.
    pub(super) fn on_unopened(&mut self, error: &OpenError, from: SocketAddr) -> Option<String> {
        let ip = from.ip().to_canonical();
        match error {
            OpenError::Parse(ParseError::Version(version)) => {
                if let Some(instead) = self.instead_of(ip, ReportedRefusal::Version(*version)) {
                    return instead;
                }
                Some(format!(
                    "{ip} uses version {version} of the packet format, and this program uses version {VERSION}: update the older program"
                ))
            }
            OpenError::Forged | OpenError::Unsealed(_) | OpenError::NeedsKey(_) if self.comes_often(ip) => {
                if let Some(instead) = self.instead_of(ip, ReportedRefusal::DoesNotOpen) {
                    return instead;
                }
                let why = match error {
                    OpenError::Unsealed(_) => {
                        "they are not sealed, but this session is: check that this host has the key"
                    }
                    OpenError::NeedsKey(_) => {
                        "they are sealed, but this session is not: send with the key of that host"
                    }
                    _ => "check that this host has the same key; otherwise another host forges the packets",
                };
                Some(format!("packets from {ip} cannot be decrypted: {why}"))
            }
            _ => None,
        }
    }

    /// Counts a packet of this host that failed to open; returns whether the host is to be reported now.
    fn comes_often(&mut self, ip: IpAddr) -> bool {
        if let Some((_, count)) = self.unopened.iter_mut().find(|(known, _)| *known == ip) {
            *count += 1;
            return *count == UNOPENED;
        }
        if self.unopened.len() < COUNTED {
            self.unopened.push((ip, 1));
        }
        false
    }

    /// Returns `None` if the refusal is to be reported. Otherwise returns the message that replaces the report: none if the
    /// refusal was reported before, and one line for all hosts beyond the maximum.
    fn instead_of(&mut self, ip: IpAddr, reported: ReportedRefusal) -> Option<Option<String>> {
        if self.named.contains(&(ip, reported)) {
            return Some(None);
        }
        if self.named.len() == NAMED {
            let is_news = !std::mem::replace(&mut self.more_reported, true);
            return Some(is_news.then(|| "more hosts receive this session but do not join it".to_owned()));
        }
        self.named.push((ip, reported));
        None
    }
}

/// Returns the reason of a refusal in a few words.
fn short(refusal: &Refusal, until: Option<u64>) -> String {
    match refusal.reason {
        RefusalReason::NoKey => "it has no key".to_owned(),
        RefusalReason::OtherKey => format!("it has another key ({})", refusal.key),
        RefusalReason::Unsealed => format!("it has a key ({}), but this session is not sealed", refusal.key),
        RefusalReason::Unsigned => "it accepts signed content only".to_owned(),
        RefusalReason::OtherSigner => "it does not know the public key of this source".to_owned(),
        RefusalReason::WrongSignature => "the signature is wrong".to_owned(),
        RefusalReason::UnknownScheme => "it does not know this congestion control".to_owned(),
        RefusalReason::Senseless | RefusalReason::OtherVersion => "it has another version".to_owned(),
        RefusalReason::NotAccepted => "it does not accept this session".to_owned(),
        RefusalReason::Busy => busy(refusal, until),
    }
}

/// Returns the reason of a refusal, with advice. The session is sealed under `key`; a busy receiver is busy until `until`, in
/// seconds since 1970.
fn why(refusal: &Refusal, key: Option<KeyId>, until: Option<u64>) -> String {
    let ours = key.map_or_else(String::new, |key| format!(" ({key})"));
    match refusal.reason {
        RefusalReason::NoKey => format!("it has no key; give it this session's{ours}"),
        RefusalReason::OtherKey => {
            format!("it has another key ({}) than this session's{ours}", refusal.key)
        }
        RefusalReason::Unsealed => {
            format!(
                "it has a key ({}), but this session is not sealed: start the source with that key",
                refusal.key
            )
        }
        RefusalReason::Unsigned => "it accepts signed content only".to_owned(),
        RefusalReason::OtherSigner => "it does not know the public key of this source".to_owned(),
        RefusalReason::WrongSignature => {
            "the signature is wrong: a host on the path has changed the announcement".to_owned()
        }
        RefusalReason::UnknownScheme => {
            "its version of faircast does not know this congestion control: update it".to_owned()
        }
        RefusalReason::Senseless => {
            "its version of faircast cannot read the announcement: update it".to_owned()
        }
        RefusalReason::NotAccepted => {
            "its rules do not accept sessions from a source of this name, or of this size".to_owned()
        }
        RefusalReason::Busy => busy(refusal, until),
        RefusalReason::OtherVersion => {
            "it reports that this session uses another version of the packet format".to_owned()
        }
    }
}

/// Describes the session of a busy receiver and its estimated end, or states that the receiver has just received that session.
fn busy(refusal: &Refusal, until: Option<u64>) -> String {
    let what = match (refusal.source.as_str(), refusal.content.as_str()) {
        ("", _) => "another session".to_owned(),
        (source, "") => format!("another session, of {source}"),
        (source, content) => format!("{source}'s {content}"),
    };
    if refusal.seconds == Some(0) {
        return format!("it has just received {what}; start a receiver there again");
    }
    let until = until.map(|until| UNIX_EPOCH + Duration::from_secs(until));
    let until =
        until.map_or_else(String::new, |until| format!(" until about {}", format_rfc3339_seconds(until)));
    format!("it is receiving {what}{until}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::ReceiverId;
    use faircast_wire::Name;

    #[test]
    fn refusal_warnings_name_each_host_once_up_to_a_limit() {
        let mut refusals = Refusals::default();
        let id = ReceiverId::new(7).expect("not 0");
        let refusal = Refusal::new(id, RefusalReason::OtherKey, KeyId(0xabcd), Name::clipped("b7"));
        let from = |host: u8, port: u16| SocketAddr::from(([10, 0, 0, host], port));
        let mut reported: Vec<String> = Vec::new();
        for round in 0..3 {
            for host in 1..=200 {
                let event = refusals.on_refusal(&refusal, from(host, 1_000 + round), Some(KeyId(1)), 0);
                reported.extend(event.map(|event| match event {
                    Event::Warning { message, .. } => message,
                    other => panic!("{other:?}"),
                }));
            }
        }
        assert_eq!(reported.len(), NAMED + 1);
        assert!(reported[0].starts_with("b7 (10.0.0.1) receives this session"), "{}", reported[0]);
        assert!(reported[0].contains("0000abcd") && reported[0].contains("00000001"), "{}", reported[0]);
    }

    #[test]
    fn busy_host_is_reported_with_its_session_and_estimated_end() {
        let mut refusals = Refusals::default();
        let id = ReceiverId::new(7).expect("not 0");
        let (source, content) = (Name::clipped("lab1"), Name::clipped("image"));
        let busy = Refusal::new(id, RefusalReason::Busy, KeyId(0), Name::clipped("pc1"));
        let busy = Refusal { source, content, seconds: Some(90), ..busy };
        let from = SocketAddr::from(([10, 0, 0, 1], 9));
        let reported = refusals.on_refusal(&busy, from, None, 1_000_000_000).expect("it is news");
        let (host, source, content) = ("pc1".to_owned(), Some("lab1".to_owned()), Some("image".to_owned()));
        let until = Some(UNIX_EPOCH + Duration::from_secs(1_000_000_090));
        assert_eq!(reported, Event::Busy { host, address: from, source, content, until, done: false });
        let refused = refusals.of(&RequiredHost::new("PC1")).expect("it is known");
        assert_eq!(refused.reason, "it is receiving lab1's image until about 2001-09-09T01:48:10Z");
        assert!(refusals.of(&RequiredHost::new("pc2")).is_none());
    }

    #[test]
    fn unreadable_packets_are_reported_once_per_host() {
        let mut refusals = Refusals::default();
        let from = |host: u8| SocketAddr::from(([10, 0, 0, host], 9));
        let version = OpenError::Parse(ParseError::Version(2));
        let reported = refusals.on_unopened(&version, from(1)).expect("it is news");
        assert!(
            reported
                .contains("10.0.0.1 uses version 2 of the packet format, and this program uses version 3")
                && reported.contains("update the older program"),
            "{reported}"
        );
        assert_eq!(refusals.on_unopened(&version, from(1)), None);
        let reported: Vec<String> =
            (0..50).filter_map(|_| refusals.on_unopened(&OpenError::Forged, from(2))).collect();
        assert!(
            reported.len() == 1 && reported[0].contains("from 10.0.0.2 cannot be decrypted"),
            "{reported:?}"
        );
        let many = (0..200).flat_map(|host| [version_of(host), version_of(host)]);
        let reported = many.filter_map(|(error, from)| refusals.on_unopened(&error, from)).count();
        assert_eq!(reported, NAMED - 2 + 1, "and one line for the others");
    }

    fn version_of(host: u8) -> (OpenError, SocketAddr) {
        (OpenError::Parse(ParseError::Version(1)), SocketAddr::from(([10, 0, 1, host], 9)))
    }
}
