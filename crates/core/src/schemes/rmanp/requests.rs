//! Missing packets and the times of their requests, for receivers and for active routers (paper 003, 2.1).

use crate::time::{Span, Time};
use std::ops::Range;

/// Missing packets, sorted by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    list: Vec<Missing>,
    /// Smoothed time from the first request of a packet to its arrival, in seconds. The time includes the queueing of repairs,
    /// because an earlier second request would not help.
    rtt: Option<f64>,
    /// Time of the earliest next request.
    due: Option<Time>,
}

#[derive(Debug, Clone, Copy)]
struct Missing {
    seq: u64,
    /// Time of the next request; [`Time::NEVER`] while the packet may be late instead of lost.
    at: Time,
    /// Time of the first request; valid if `is_asked`.
    asked_at: Time,
    is_asked: bool,
    asked: u8,
    /// Whether an upstream router has reported this gap.
    is_reported: bool,
}

/// Treatment of a packet that was requested the maximum number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The count restarts, and the packet is requested again.
    AskAgain,
    /// The packet is not requested again.
    GiveUp,
}

/// Minimum time between two requests of the same packet: "max(0.5 s, 1.5 srtt)".
// Paper gap: the paper does not define the time to wait for a repair.
pub(crate) const RETRY: Span = Span::from_millis(500);
const RETRY_RTTS: f64 = 1.5;
const MAX_RETRY: f64 = 10.0;
const GAIN: f64 = 0.125;
/// Delay of requests that exceed the limit of one call.
const NEXT_CALL: Span = Span::from_millis(1);

impl Requests {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the lowest missing packet.
    pub(crate) fn first(&self) -> Option<u64> {
        self.list.first().map(|missing| missing.seq)
    }

    fn place(&self, seq: u64) -> Result<usize, usize> {
        self.list.binary_search_by_key(&seq, |missing| missing.seq)
    }

    /// Returns the time of the earliest next request.
    pub(crate) fn due(&self) -> Time {
        self.due.unwrap_or(Time::NEVER)
    }

    fn look(&mut self) {
        self.due = self.list.iter().map(|missing| missing.at).min().filter(|at| !at.is_never());
    }

    /// Adds missing packets, whose numbers are above those of all earlier missing packets. Only the newest `most` packets are
    /// stored.
    pub(crate) fn note(&mut self, range: Range<u64>, is_reported: bool, most: usize) {
        let first = range.start.max(range.end.saturating_sub(most as u64));
        let (at, asked_at) = (Time::NEVER, Time::ZERO);
        self.list.extend((first..range.end).map(|seq| Missing {
            seq,
            at,
            asked_at,
            is_asked: false,
            asked: 0,
            is_reported,
        }));
        if self.list.len() > most {
            self.list.drain(..self.list.len() - most);
            self.look();
        }
    }

    /// Declares the first `count` possibly late packets lost and schedules their requests. Returns whether one of these packets
    /// is in an unreported gap.
    pub(crate) fn declare(&mut self, count: u32, now: Time) -> bool {
        let late = self.list.iter_mut().filter(|missing| missing.at.is_never());
        let mut is_news = false;
        for missing in late.take(count as usize) {
            missing.at = now;
            is_news |= !missing.is_reported;
        }
        self.look();
        is_news
    }

    /// Schedules a request for this packet, unless `most` packets are stored.
    pub(crate) fn ask(&mut self, seq: u64, most: usize, now: Time) {
        if let Err(place) = self.place(seq)
            && self.list.len() < most
        {
            let (asked_at, is_asked) = (Time::ZERO, false);
            self.list
                .insert(place, Missing { seq, at: now, asked_at, is_asked, asked: 0, is_reported: true });
            self.look();
        }
    }

    /// Removes an arrived packet. Returns whether it was missing.
    pub(crate) fn fill(&mut self, seq: u64, now: Time) -> bool {
        let Ok(place) = self.place(seq) else { return false };
        let missing = self.list.remove(place);
        if missing.is_asked {
            let sample = now.since(missing.asked_at).as_secs_f64();
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt + GAIN * (sample - rtt)));
        }
        self.look();
        true
    }

    fn retry(&self) -> Span {
        let rtt = self.rtt.unwrap_or(0.0).min(MAX_RETRY);
        Span::from_secs_f64(rtt * RETRY_RTTS).max(RETRY)
    }

    /// Calls `ask` for at most `ranges` ranges of packets whose requests are due; further ranges wait for the next call. Returns
    /// whether a packet had already been requested `max_asked` times.
    pub(crate) fn take_due(
        &mut self,
        now: Time,
        ranges: usize,
        max_asked: u8,
        overdue: Overdue,
        mut ask: impl FnMut(Range<u64>),
    ) -> bool {
        if self.due() > now {
            return false;
        }
        let retry = self.retry();
        let (mut run, mut left, mut is_overdue): (Option<Range<u64>>, usize, bool) = (None, ranges, false);
        self.list.retain_mut(|missing| {
            if missing.at > now {
                return true;
            }
            if missing.asked >= max_asked {
                is_overdue = true;
                if overdue == Overdue::GiveUp {
                    return false;
                }
                missing.asked = 0;
            }
            let follows = run.as_ref().is_some_and(|run| run.end == missing.seq);
            if !follows && left == 0 {
                missing.at = now + NEXT_CALL;
                return true;
            }
            if follows {
                run = run.take().map(|run| run.start..missing.seq + 1);
            } else {
                left -= 1;
                if let Some(done) = run.replace(missing.seq..missing.seq + 1) {
                    ask(done);
                }
            }
            missing.asked += 1;
            missing.at = now + retry;
            if !missing.is_asked {
                (missing.asked_at, missing.is_asked) = (now, true);
            }
            true
        });
        if let Some(done) = run {
            ask(done);
        }
        self.look();
        is_overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    fn due(requests: &mut Requests, now: f64, ranges: usize) -> (Vec<Range<u64>>, bool) {
        let mut asked = Vec::new();
        let overdue = requests.take_due(at(now), ranges, 3, Overdue::AskAgain, |range| asked.push(range));
        (asked, overdue)
    }

    #[test]
    fn missing_packets_are_requested_in_ranges_and_again_later() {
        let mut requests = Requests::default();
        requests.note(4..6, false, 100);
        requests.note(9..10, true, 100);
        assert!(requests.due().is_never(), "they may just be late");
        assert!(requests.declare(3, at(1.0)));
        assert_eq!(due(&mut requests, 1.0, 2).0, [4..6, 9..10]);
        assert!(requests.fill(5, at(1.1)) && !requests.fill(5, at(1.1)));
        assert_eq!(requests.due(), at(1.5));
        assert_eq!(due(&mut requests, 1.5, 1).0, std::slice::from_ref(&(4..5)), "one range has room");
        assert_eq!(due(&mut requests, 1.6, 1).0, std::slice::from_ref(&(9..10)));
    }

    #[test]
    fn packet_is_reported_as_overdue_after_repeated_requests() {
        let mut requests = Requests::default();
        requests.ask(7, 100, at(0.0));
        let mut now = 0.0;
        for turn in 0..4 {
            let (asked, overdue) = due(&mut requests, now, 2);
            assert_eq!((asked.len(), overdue), (1, turn == 3));
            now += 0.5;
        }
        while requests.len() > 0 {
            requests.take_due(at(now), 2, 3, Overdue::GiveUp, |_| ());
            now += 0.5;
        }
        assert!((3.0..4.0).contains(&now), "{now}");
    }

    #[test]
    fn request_interval_grows_with_the_round_trip_time() {
        let mut requests = Requests::default();
        requests.ask(1, 100, at(0.0));
        due(&mut requests, 0.0, 2);
        assert!(requests.fill(1, at(1.0)));
        requests.ask(2, 100, at(2.0));
        due(&mut requests, 2.0, 2);
        assert_eq!(requests.due(), at(3.5));
    }

    #[test]
    fn only_the_newest_missing_packets_are_stored() {
        let mut requests = Requests::default();
        requests.note(0..1_000_000_000_000, false, 10);
        assert_eq!((requests.len(), requests.first()), (10, Some(999_999_999_990)));
    }
}
