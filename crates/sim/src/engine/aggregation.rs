//! Nodes that pass on one loss report about a packet, and drop the others (seed 000, 2.2.3).
//!
//! What a node remembers belongs to the link that its reports leave by: all reports of a session leave by the same one, and
//! a link sees what enters it in order of time, however events are executed.

use super::Engine;
use crate::frame::{Body, Frame};
use faircast_core::packet::{Content, Seq};
use std::collections::{BTreeMap, VecDeque};

/// What a node remembers of the loss reports that it has passed on.
#[derive(Debug, Default)]
pub struct Aggregator {
    /// How long a report keeps others back, in nanoseconds.
    hold: u64,
    /// By session and packet: until when.
    known: BTreeMap<(u32, u64), u64>,
    /// The same in the order in which they end.
    ends: VecDeque<(u64, (u32, u64))>,
}

impl Aggregator {
    pub fn new(hold: u64) -> Aggregator {
        Aggregator { hold, ..Aggregator::default() }
    }

    /// The part of these packets that nothing was said about yet, from the first to the last of them; they are known
    /// from now on.
    fn news(&mut self, session: u32, now: u64, first: u64, count: u16) -> Option<(u64, u16)> {
        while let Some(&(end, key)) = self.ends.front()
            && end <= now
        {
            self.ends.pop_front();
            self.known.remove(&key);
        }
        let mut news: Option<(u64, u64)> = None;
        for seq in first..first.saturating_add(u64::from(count)) {
            if self.known.contains_key(&(session, seq)) {
                continue;
            }
            let until = now.saturating_add(self.hold);
            self.known.insert((session, seq), until);
            self.ends.push_back((until, (session, seq)));
            news = Some((news.map_or(seq, |(from, _)| from), seq));
        }
        news.map(|(from, to)| (from, (to - from + 1) as u16))
    }
}

impl Engine {
    /// Whether the node before this link passes a report on, perhaps with less in it.
    #[cold]
    pub(super) fn lets_through(&mut self, link: u32, now: u64, frame: &mut Frame) -> bool {
        let Some(node) = self.aggregators.get_mut(&link) else { return true };
        let Body::Report(report) = &mut frame.body else { return true };
        let Content::Lost { first, count, .. } = &mut report.content else { return true };
        match node.news(frame.flow, now, first.0, *count) {
            Some((from, packets)) => {
                (*first, *count) = (Seq(from), packets);
                true
            }
            None => {
                self.records.aggregated(self.sessions[frame.flow as usize].flow);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_report_about_a_packet_passes_and_later_ones_do_not() {
        let mut node = Aggregator::new(100);
        assert_eq!(node.news(0, 10, 7, 1), Some((7, 1)));
        assert_eq!(node.news(0, 20, 7, 1), None);
        assert_eq!(node.news(1, 20, 7, 1), Some((7, 1)), "another session");
    }

    #[test]
    fn a_report_that_says_something_new_is_cut_down_to_that() {
        let mut node = Aggregator::new(100);
        assert_eq!(node.news(0, 10, 5, 2), Some((5, 2)));
        assert_eq!(node.news(0, 11, 4, 5), Some((4, 5)), "new at both ends");
        assert_eq!(node.news(0, 12, 6, 4), Some((9, 1)));
        assert_eq!(node.news(0, 13, 4, 6), None);
    }

    #[test]
    fn after_a_while_the_same_packet_is_news_again_and_nothing_is_kept_for_ever() {
        let mut node = Aggregator::new(100);
        assert_eq!(node.news(0, 10, 7, 1), Some((7, 1)));
        assert_eq!(node.news(0, 109, 7, 1), None);
        assert_eq!(node.news(0, 110, 7, 1), Some((7, 1)));
        assert_eq!(node.news(0, 1000, 8, 1), Some((8, 1)));
        assert_eq!((node.known.len(), node.ends.len()), (1, 1));
    }
}
