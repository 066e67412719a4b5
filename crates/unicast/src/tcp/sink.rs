//! The receiver: cumulative, delayed and selective acknowledgements, and the echo of congestion marks.

use super::config::{Config, Handshake, Variant};
use super::out_of_order::OutOfOrder;
use crate::{Ack, Feedback, Segment, SegmentFlags};
use faircast_core::node::Cx;
use faircast_core::time::{Span, Time};

/// A TCP receiver.
#[derive(Debug, Clone)]
pub struct Sink {
    /// Next packet expected.
    next: u32,
    /// Highest packet received, plus 1.
    end: u32,
    /// Packet number in the latest acknowledgement.
    acked: u32,
    selective: bool,
    /// Whether acknowledgements echo a mark. The echo lasts until the sender reports that it has reduced its window (RFC 3168,
    /// 6.1.3).
    echoing: bool,
    /// Whether the echo states exactly if the newly acknowledged packets were marked (RFC 8257, 3.2).
    exact: bool,
    /// Maximum time for which an acknowledgement waits for a second packet; zero means no wait.
    delay: Span,
    /// End of the wait.
    due: Time,
    /// Timestamp to be echoed.
    echo: Time,
    /// Packets with numbers beyond `next`; `None` before the first such packet arrives.
    held: Option<Box<OutOfOrder>>,
    /// Whether the next packet opens the connection without a SYN and is therefore acknowledged immediately.
    opening: bool,
}

const _: () = assert!(size_of::<Sink>() <= 128);

impl Sink {
    /// Creates a receiver that waits for its first packet.
    pub fn new(config: &Config) -> Sink {
        Sink {
            next: 0,
            end: 0,
            acked: 0,
            selective: config.variant.is_selective(),
            echoing: false,
            exact: config.variant.echoes_exactly(),
            delay: config.delayed_ack.unwrap_or(Span::ZERO),
            due: Time::NEVER,
            echo: Time::ZERO,
            held: None,
            opening: config.handshake == Handshake::None || config.variant == Variant::Vegas,
        }
    }

    /// Returns the ranges that the next acknowledgement reports (RFC 2018, 4).
    fn blocks(&mut self) -> [(u32, u32); 3] {
        self.held.as_deref_mut().map_or([(0, 0); 3], OutOfOrder::newest)
    }

    /// Returns an acknowledgement of all packets before the first missing one. The function is inlined because a call would cost
    /// 26 instructions to copy the result.
    #[inline(always)]
    fn ack(&mut self, syn: bool) -> Feedback {
        self.due = Time::NEVER;
        self.acked = self.next;
        let blocks = if self.selective { self.blocks() } else { [(0, 0); 3] };
        Feedback::Ack(Ack { next: self.next, echo: self.echo, blocks, ece: self.echoing, syn })
    }
}

impl crate::Sink for Sink {
    fn on_segment(&mut self, segment: &Segment, marked: bool, cx: &mut Cx<'_>) -> Option<Feedback> {
        if segment.flags.has(SegmentFlags::SYN) {
            self.echo = self.echo.max(segment.sent_at);
            return Some(self.ack(true));
        }
        let mut before = None;
        if self.exact {
            // Before the echo changes, the packets that wait for an acknowledgement are acknowledged with the present echo (RFC
            // 8257, 3.2).
            if marked != self.echoing && !self.due.is_never() {
                before = Some(self.ack(false));
            }
            self.echoing = marked;
        } else {
            if segment.flags.has(SegmentFlags::CWR) {
                self.echoing = false;
            }
            self.echoing |= marked;
        }
        let seq = segment.seq;
        if seq <= self.acked && segment.sent_at >= self.echo {
            self.echo = segment.sent_at; // RFC 7323, 4.3
        }
        let fills_gap = seq + 1 < self.end;
        self.end = self.end.max(seq + 1);
        if seq == self.next {
            self.next += 1;
            if fills_gap && let Some(end) = self.held.as_deref_mut().and_then(|held| held.take_from(seq + 1))
            {
                self.next = end;
            }
        } else if seq > self.next {
            let held = self.held.get_or_insert_default();
            let range = held.add(seq);
            if self.selective {
                held.report(range);
            }
        }
        // An acknowledgement may wait for a second packet only if the arrived packet is in order and fills no gap (RFC 5681,
        // 4.2).
        let in_order = seq + 1 == self.next && !fills_gap;
        let first = std::mem::take(&mut self.opening);
        if self.delay > Span::ZERO && self.due.is_never() && in_order && !first {
            self.due = cx.now + self.delay;
            return before;
        }
        Some(self.ack(false))
    }

    fn deadline(&self) -> Time {
        self.due
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) -> Option<Feedback> {
        (cx.now >= self.due).then(|| self.ack(false))
    }

    fn delivered(&self) -> u64 {
        u64::from(self.next)
    }
}
