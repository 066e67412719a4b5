//! Aggregation of acknowledgements (paper 002, 3.2). Routers, designated receivers and the source use the same rules.

use crate::packet::{Echo, ReportContent, Seq, ShortId};
use crate::time::{Span, Time};

/// Acknowledged progress of a part of the tree. As in the thesis, packets are numbered from 1 here; 0 means no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aggregate {
    /// "LostSeq": the highest packet that was lost.
    pub lost: u64,
    /// "AckSeq": the newest packet received; of several receivers, the lowest of their newest packets.
    pub newest: u64,
    /// "Rcv_id": the receiver with this minimum.
    pub of: Option<ShortId>,
    /// Time for which the receiver delayed the acknowledgement of this packet. The thesis uses "TimeStamp" instead; here the
    /// source itself stores the sending time.
    pub hold: Span,
}

impl Aggregate {
    /// The entry of a child that has not reported yet.
    const NONE: Aggregate = Aggregate { lost: 0, newest: 0, of: None, hold: Span::MAX };

    /// Returns the progress that a report states; `None` for a report of another kind.
    pub fn reported_by(content: &ReportContent) -> Option<Aggregate> {
        let ReportContent::Newest { echo, past_lost, of } = *content else { return None };
        Some(Aggregate { lost: past_lost.0, newest: echo.seq.0.saturating_add(1), of, hold: echo.hold })
    }

    /// Returns a report of this progress. The report gives no round-trip sample if no receiver has acknowledged a packet.
    pub fn content(&self) -> ReportContent {
        let hold = if self.of.is_some() { self.hold } else { Span::MAX };
        let echo = Echo { seq: Seq(self.newest.saturating_sub(1)), hold };
        ReportContent::Newest { echo, past_lost: Seq(self.lost), of: self.of }
    }
}

/// The entry of each child, and the latest forwarded aggregate.
#[derive(Debug, Clone)]
pub(crate) struct Aggregator<K> {
    /// Children, sorted by key.
    children: Vec<(K, Child)>,
    /// No child has been silent since before this time.
    heard_since: Time,
    up: Aggregate,
    /// Number of reports so far. It shows which child reported last.
    turn: u64,
    /// Smoothed time between two packets, in seconds, measured by the acknowledgements.
    interval: f64,
    progress: (u64, Time),
    /// If a few packets are acknowledged together: the time of the latest forwarded aggregate, and the deadline of the next
    /// aggregate. Otherwise `None`.
    thinned: Option<(Time, Time)>,
}

#[derive(Debug, Clone, Copy)]
struct Child {
    kept: Aggregate,
    received_at: Time,
    turn: u64,
}

/// Maximum number of children with an entry. Beyond it, the child that has been silent for the longest time is removed.
const MAX_CHILDREN: usize = 4096;
/// Two durations: a time, and the time of a number of packets. A child is removed if it is silent for three times the longer
/// duration while other children make progress.
// Paper gap: 3.2 leaves the removal of a child to the soft state of multicast routing.
const PATIENCE: (Span, f64) = (Span::from_secs(1), 8.0);
const PATIENCES: u64 = 3;
/// If a few packets are acknowledged together, an aggregate is forwarded after `FEW` packets or after `SPACING`.
const FEW: u64 = 4;
const SPACING: Span = Span::from_millis(1);
/// Gain of the mean time between packets.
const INTERVAL_GAIN: f64 = 0.125;

impl<K: Ord + Copy> Aggregator<K> {
    /// Creates an aggregator without children.
    pub fn new() -> Aggregator<K> {
        Aggregator {
            children: Vec::new(),
            heard_since: Time::ZERO,
            up: Aggregate::NONE,
            turn: 0,
            interval: 0.0,
            progress: (0, Time::ZERO),
            thinned: None,
        }
    }

    /// Makes the aggregator acknowledge a few packets together, as its children do. The reported hold time then includes the time
    /// that a child's report has waited until it became the minimum. If every receiver acknowledges each packet, as in the paper,
    /// the hold time is zero.
    pub fn thin(&mut self) {
        self.thinned.get_or_insert((Time::ZERO, Time::NEVER));
    }

    /// Returns the time of the next call of [`Aggregator::on_deadline`].
    pub fn deadline(&self) -> Time {
        self.thinned.map_or(Time::NEVER, |(_, at)| at)
    }

    /// Returns the delayed aggregate, if its deadline has passed.
    pub fn on_deadline(&mut self, now: Time) -> Option<Aggregate> {
        if now < self.deadline() { None } else { self.thinned_news(now) }
    }

    /// Returns the aggregate to be forwarded now, if any. If a few packets are acknowledged together, only a loss is forwarded at
    /// once.
    fn thinned_news(&mut self, now: Time) -> Option<Aggregate> {
        let Some((passed_at, _)) = self.thinned else { return self.news() };
        let (all, before) = (self.compose(), self.up);
        let is_due = all.lost > before.lost
            || all.newest >= before.newest.saturating_add(FEW)
            || now.since(passed_at) >= SPACING;
        if !is_due {
            let waits = all.newest > before.newest || all.of != before.of;
            self.thinned = Some((passed_at, if waits { passed_at + SPACING } else { Time::NEVER }));
            return None;
        }
        self.thinned = Some((passed_at, Time::NEVER));
        let up = self.news()?;
        self.thinned = Some((now, Time::NEVER));
        Some(Aggregate { hold: up.hold + self.waited(&up, now), ..up })
    }

    /// Returns the number of children.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    fn place(&self, child: K) -> Result<usize, usize> {
        self.children.binary_search_by(|(key, _)| key.cmp(&child))
    }

    /// Adds a child that has not reported yet. Until its first report, the child has the progress of the aggregate (paper 002,
    /// 3.2).
    pub fn join(&mut self, child: K, now: Time) {
        self.place_or_new(child, now);
    }

    /// Returns the index of a child, which is added if necessary.
    fn place_or_new(&mut self, child: K, now: Time) -> usize {
        let mut place = match self.place(child) {
            Ok(place) => return place,
            Err(place) => place,
        };
        if self.children.len() >= MAX_CHILDREN
            && let Some((silent, _)) =
                self.children.iter().enumerate().min_by_key(|(_, (_, child))| child.received_at)
        {
            self.children.remove(silent);
            place -= usize::from(silent < place);
        }
        let kept = Aggregate { newest: self.up.newest, ..Aggregate::NONE };
        self.children.insert(place, (child, Child { kept, received_at: now, turn: self.turn }));
        place
    }

    /// Removes a child; returns the resulting aggregate to be forwarded.
    pub fn leave(&mut self, child: K) -> Option<Aggregate> {
        self.children.remove(self.place(child).ok()?);
        self.news_without_sample()
    }

    /// Removes all children that satisfy `is_gone`; returns the resulting aggregate to be forwarded.
    pub fn leave_all(&mut self, is_gone: impl Fn(&K) -> bool) -> Option<Aggregate> {
        let before = self.children.len();
        self.children.retain(|(child, _)| !is_gone(child));
        if self.children.len() == before { None } else { self.news_without_sample() }
    }

    /// Returns the aggregate to be forwarded after a child was removed. It gives no round-trip sample, because the age of the
    /// other children's reports is unknown.
    fn news_without_sample(&mut self) -> Option<Aggregate> {
        let up = self.news()?;
        Some(if self.thinned.is_some() { Aggregate { hold: Span::MAX, ..up } } else { up })
    }

    /// Removes a child. The resulting change is forwarded with the next report of another child.
    pub fn remove(&mut self, child: K) {
        if let Ok(place) = self.place(child) {
            self.children.remove(place);
        }
    }

    /// Handles a child's report about its part of the tree; returns the aggregate to be forwarded.
    pub fn on_report(&mut self, child: K, reported: Aggregate, now: Time) -> Option<Aggregate> {
        let place = self.place_or_new(child, now);
        self.turn += 1;
        let turn = self.turn;
        let (_, kept) = &mut self.children[place];
        kept.received_at = now;
        // The progress of a receiver never decreases, so of a late or duplicate report only a loss counts.
        let is_stale =
            kept.kept.of == reported.of && reported.newest < kept.kept.newest || reported.of.is_none();
        kept.kept = if is_stale {
            Aggregate { lost: kept.kept.lost.max(reported.lost), ..kept.kept }
        } else {
            kept.turn = turn;
            Aggregate { lost: kept.kept.lost.max(reported.lost), ..reported }
        };
        self.measure(reported.newest, now);
        self.expire(now);
        self.thinned_news(now)
    }

    /// Returns the age of the report that determines this aggregate.
    fn waited(&self, up: &Aggregate, now: Time) -> Span {
        let same = |child: &&Child| (child.kept.of, child.kept.newest) == (up.of, up.newest);
        let spoke = self.entries().filter(same).max_by_key(|child| child.turn);
        spoke.map_or(Span::ZERO, |child| now.since(child.received_at))
    }

    /// Updates the time between packets from the progress of acknowledgements.
    fn measure(&mut self, newest: u64, now: Time) {
        let (before, at) = self.progress;
        if newest <= before {
            return;
        }
        if before > 0 && now > at {
            let interval = now.since(at).as_secs_f64() / (newest - before) as f64;
            let gain = if self.interval == 0.0 { 1.0 } else { INTERVAL_GAIN };
            self.interval += gain * (interval - self.interval);
        }
        self.progress = (newest, now);
    }

    /// Removes children that are silent while other children make progress.
    fn expire(&mut self, now: Time) {
        let patience = PATIENCE.0.max(Span::from_secs_f64(PATIENCE.1 * self.interval)) * PATIENCES;
        if now.since(self.heard_since) <= patience {
            return;
        }
        let reached = self.progress.0;
        self.children
            .retain(|(_, child)| now.since(child.received_at) <= patience || child.kept.newest >= reached);
        self.heard_since = self.entries().map(|child| child.received_at).min().unwrap_or(now);
    }

    fn entries(&self) -> impl Iterator<Item = &Child> {
        self.children.iter().map(|(_, child)| child)
    }

    /// Returns the progress common to all children.
    fn compose(&self) -> Aggregate {
        let lost = self.entries().map(|child| child.kept.lost).max().unwrap_or(0);
        let Some(newest) = self.entries().map(|child| child.kept.newest).min() else {
            return Aggregate { lost, ..self.up };
        };
        let least = || self.entries().filter(|child| child.kept.newest == newest);
        // Paper gap: 3.2 does not state which id is forwarded if several children have the minimum. Here it is the id forwarded
        // before; otherwise equal receivers would alternate, and every acknowledgement would be forwarded. Without such a child
        // it is the child that reported last.
        let same = least().filter(|child| child.kept.of == self.up.of).max_by_key(|child| child.turn);
        let chosen = same.or_else(|| least().max_by_key(|child| child.turn));
        let kept = chosen.map_or(Aggregate::NONE, |child| child.kept);
        Aggregate { lost, newest, ..kept }
    }

    /// Returns the aggregate to be forwarded, by the rule of 3.2.
    // Paper gap: an entry without a receiver, of a child that joined and has not reported, is forwarded only with a new loss.
    fn news(&mut self) -> Option<Aggregate> {
        let now = self.compose();
        let before = self.up;
        let lost = now.lost > before.lost;
        let is_news = match now.of {
            None => lost,
            of => of != before.of || lost || now.newest > before.newest,
        };
        if !is_news {
            return None;
        }
        // If the minimum is the entry of a child that has not reported yet, a loss must not remove the target.
        self.up = match now.of {
            None => Aggregate { lost: now.lost, ..before },
            Some(_) => now,
        };
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ReceiverId;

    fn id(number: u64) -> Option<ShortId> {
        ReceiverId::new(number).and_then(ShortId::of)
    }

    fn ack(of: u64, newest: u64, lost: u64) -> Aggregate {
        Aggregate { lost, newest, of: id(of), hold: Span::ZERO }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn two() -> Aggregator<u8> {
        let mut router = Aggregator::new();
        (1..=2).for_each(|child| router.join(child, at(0)));
        router
    }

    /// Example 3.1: round-trip times of 8 and 10 packet intervals; the router forwards the progress of R2.
    #[test]
    fn report_of_the_more_distant_receiver_is_forwarded() {
        let mut router = two();
        let mut passed = Vec::new();
        for k in 6..14u64 {
            let from_1 = router.on_report(1, ack(1, k - 5, 0), at(k));
            let from_2 = (k >= 8).then(|| router.on_report(2, ack(2, k - 7, 0), at(k))).flatten();
            passed.push((k, from_1.or(from_2).map(|up| (up.newest, up.of))));
        }
        let expected: Vec<_> = (6..14).map(|k| (k, (k >= 8).then(|| (k - 7, id(2))))).collect();
        assert_eq!(passed, expected);
    }

    #[test]
    fn loss_of_any_receiver_is_forwarded_immediately_and_only_once() {
        let mut router = two();
        router.on_report(1, ack(1, 5, 0), at(0));
        router.on_report(2, ack(2, 3, 0), at(0));
        let up = router.on_report(1, ack(1, 7, 6), at(1)).expect("a loss is news");
        assert_eq!((up.lost, up.newest, up.of), (6, 3, id(2)));
        assert_eq!(router.on_report(1, ack(1, 8, 6), at(2)), None, "it stays in later acknowledgements");
    }

    #[test]
    fn equal_receivers_cause_one_forwarded_report_per_packet() {
        let mut router = two();
        let mut passed = 0;
        for n in 1..100 {
            passed += u32::from(router.on_report(1, ack(1, n, 0), at(n)).is_some());
            passed += u32::from(router.on_report(2, ack(2, n, 0), at(n)).is_some());
        }
        assert_eq!(passed, 99, "one for each packet");
    }

    #[test]
    fn a_new_receiver_delays_no_acks_before_its_first_report() {
        let mut router = two();
        (1..=2).for_each(|child| _ = router.on_report(child, ack(child.into(), 9, 0), at(0)));
        router.join(3, at(1));
        assert_eq!(router.compose().newest, 9);
        // The entry of the new child, which has not reported yet, is the minimum now. It is forwarded only together with a loss.
        assert_eq!(router.on_report(1, ack(1, 10, 0), at(2)), None);
        router.on_report(2, ack(2, 10, 0), at(2));
        let lost = router.on_report(1, ack(1, 12, 11), at(3)).expect("a loss");
        assert_eq!((lost.of, lost.lost), (None, 11));
        assert_eq!(router.on_report(3, ack(3, 12, 0), at(4)).map(|up| up.newest), Some(10));
    }

    #[test]
    fn a_departed_receiver_no_longer_delays_acks() {
        let mut router = two();
        router.on_report(1, ack(1, 9, 0), at(0));
        router.on_report(2, ack(2, 4, 0), at(0));
        assert_eq!(router.leave(2).map(|up| (up.newest, up.of)), Some((9, id(1))));
        assert_eq!(router.leave(2), None);
    }

    #[test]
    fn silent_receiver_expires_if_other_receivers_are_active() {
        let mut router = two();
        router.on_report(2, ack(2, 1, 0), at(0));
        for n in 1..=30 {
            router.on_report(1, ack(1, n, 0), at(100 * n));
        }
        assert_eq!(router.len(), 2, "three seconds are not over");
        let up = router.on_report(1, ack(1, 31, 0), at(3100)).expect("the other one is gone");
        assert_eq!((up.newest, up.of, router.len()), (31, id(1), 1));
    }

    #[test]
    fn thinned_reports_state_their_delay() {
        let run = |thins: bool| {
            let mut router = two();
            if thins {
                router.thin();
            }
            router.on_report(1, ack(1, 4, 0), at(10));
            router.on_report(2, ack(2, 2, 0), at(11));
            // The second child advances, so the first child's report, which is 20 ms old, becomes the minimum.
            router.on_report(2, ack(2, 8, 0), at(30)).map(|up| (up.newest, up.of, up.hold))
        };
        assert_eq!(run(true), Some((4, id(1), Span::from_millis(20))));
        assert_eq!(run(false), Some((4, id(1), Span::ZERO)));
    }

    #[test]
    fn thinned_acks_are_aggregated_and_the_last_is_forwarded() {
        let mut router = two();
        router.thin();
        let (mut passed, mut last) = (0, 0);
        let micros = |n: u64| Time::ZERO + Span::from_micros(n);
        for n in 1..=402 {
            for child in 1..=2 {
                let up = router.on_report(child, ack(child.into(), n, 0), micros(100 * n));
                (passed, last) = (passed + u32::from(up.is_some()), up.map_or(last, |up| up.newest));
            }
        }
        assert!((95..=110).contains(&passed), "{passed} of 402");
        assert!(last < 402 && !router.deadline().is_never(), "{last}");
        assert_eq!(router.on_deadline(micros(40_200)), None, "not yet");
        assert_eq!(router.on_deadline(router.deadline()).map(|up| up.newest), Some(402));
        assert!(router.deadline().is_never());
        let lost = router.on_report(1, ack(1, 403, 402), micros(40_300)).expect("a loss does not wait");
        assert_eq!(lost.lost, 402);
    }

    #[test]
    fn late_and_duplicate_reports_do_not_lower_the_aggregate() {
        let mut router = two();
        for n in [1, 2, 3, 4, 5, 3, 5, 2] {
            router.on_report(1, ack(1, n, 0), at(n));
            router.on_report(2, ack(2, n, 0), at(n));
        }
        assert_eq!(router.compose().newest, 5);
        assert_eq!(router.on_report(1, ack(1, 2, 7), at(9)).map(|up| (up.newest, up.lost)), Some((5, 7)));
    }
}
