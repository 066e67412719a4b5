//! A router that forwards the first loss report about each packet and drops later ones (paper 000, 2.2.3).

use crate::node::{Cx, Port, Router, RouterControl, RouterObservation, RouterSpec, Verdict};
use crate::packet::{Body, Packet, ReportContent, Seq, SessionId};
use crate::time::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Parameters of the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Duration for which a report suppresses further reports about the same packet.
    pub hold: Span,
}

/// Record of the loss reports that a router has forwarded.
#[derive(Debug)]
pub struct Aggregation {
    hold: Span,
    /// End of the suppression, by session and packet.
    known: BTreeMap<(SessionId, u64), Time>,
    /// The same entries, sorted by their ends.
    ends: VecDeque<(Time, (SessionId, u64))>,
    merged: u64,
}

/// Maximum number of stored packet numbers. Beyond it, the oldest numbers are removed, and reports about these packets are
/// forwarded again.
const MAX: usize = 1 << 20;

impl RouterSpec for Config {
    fn router(&self) -> Box<dyn Router + Send> {
        Box::new(Aggregation::new(self.hold))
    }
}

impl Aggregation {
    /// Creates a router without records.
    pub fn new(hold: Span) -> Aggregation {
        Aggregation { hold, known: BTreeMap::new(), ends: VecDeque::new(), merged: 0 }
    }

    /// Returns the shortest range that contains all packets of a report that no earlier report contained, and records these
    /// packets.
    fn news(&mut self, session: SessionId, now: Time, first: u64, count: u16) -> Option<(u64, u16)> {
        while let Some(&(end, key)) = self.ends.front()
            && (end <= now || self.ends.len() > MAX)
        {
            self.ends.pop_front();
            self.known.remove(&key);
        }
        let mut news: Option<(u64, u64)> = None;
        for seq in first..first.saturating_add(u64::from(count)) {
            if self.known.contains_key(&(session, seq)) {
                continue;
            }
            let until = now + self.hold;
            self.known.insert((session, seq), until);
            self.ends.push_back((until, (session, seq)));
            news = Some((news.map_or(seq, |(from, _)| from), seq));
        }
        news.map(|(from, to)| (from, (to - from + 1) as u16))
    }
}

impl Router for Aggregation {
    fn sees_data(&self) -> bool {
        false
    }

    fn on_report(&mut self, _entry: Port, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Body::Report(report) = &mut packet.body else { return Verdict::Pass };
        let ReportContent::Lost { first, count, .. } = &mut report.content else { return Verdict::Pass };
        match self.news(packet.session, cx.now, first.0, *count) {
            Some((from, packets)) => {
                (*first, *count) = (Seq(from), packets);
                Verdict::Pass
            }
            None => {
                self.merged += 1;
                Verdict::Drop
            }
        }
    }

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _cx: &mut Cx<'_>) {}

    fn control(&mut self, control: RouterControl, _now: Time) {
        let RouterControl::Forget(session) = control else { return };
        self.known.retain(|(of, _), _| *of != session);
        self.ends.retain(|(_, (of, _))| *of != session);
    }

    fn observe(&self) -> RouterObservation {
        RouterObservation { merged: self.merged, entries: self.known.len(), ..RouterObservation::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: SessionId = SessionId(0);

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn router() -> Aggregation {
        Aggregation::new(Span::from_nanos(100))
    }

    #[test]
    fn only_the_first_report_of_a_packet_is_forwarded() {
        let mut router = router();
        assert_eq!(router.news(SESSION, at(10), 7, 1), Some((7, 1)));
        assert_eq!(router.news(SESSION, at(20), 7, 1), None);
        assert_eq!(router.news(SessionId(1), at(20), 7, 1), Some((7, 1)), "another session");
    }

    #[test]
    fn partly_new_report_is_reduced_to_its_new_packets() {
        let mut router = router();
        assert_eq!(router.news(SESSION, at(10), 5, 2), Some((5, 2)));
        assert_eq!(router.news(SESSION, at(11), 4, 5), Some((4, 5)), "new at both ends");
        assert_eq!(router.news(SESSION, at(12), 6, 4), Some((9, 1)));
        assert_eq!(router.news(SESSION, at(13), 4, 6), None);
    }

    #[test]
    fn an_aggregation_entry_expires() {
        let mut router = router();
        assert_eq!(router.news(SESSION, at(10), 7, 1), Some((7, 1)));
        assert_eq!(router.news(SESSION, at(109), 7, 1), None);
        assert_eq!(router.news(SESSION, at(110), 7, 1), Some((7, 1)));
        assert_eq!(router.news(SESSION, at(1000), 8, 1), Some((8, 1)));
        assert_eq!((router.known.len(), router.ends.len()), (1, 1));
    }
}
