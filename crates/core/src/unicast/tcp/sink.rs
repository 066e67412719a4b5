//! The receiving end: cumulative, delayed and selective acknowledgements, and the echo of congestion marks.

use super::config::{Config, Handshake, Variant};
use crate::node::Cx;
use crate::time::{Span, Time};
use crate::unicast::{Ack, Feedback, Segment, SegmentFlags};

/// A TCP receiver.
#[derive(Debug, Clone)]
pub struct Sink {
    /// Next packet expected.
    next: u32,
    /// Highest packet received, plus 1.
    end: u32,
    /// What the latest acknowledgement said.
    acked: u32,
    selective: bool,
    /// A mark is echoed until the sender says that it reduced its window (RFC 3168, 6.1.3).
    echoing: bool,
    /// What is echoed is whether the packets that an acknowledgement acknowledges first were marked (RFC 8257, 3.2).
    exact: bool,
    /// How long to wait for a second packet; zero for not at all.
    delay: Span,
    /// When the waiting ends.
    due: Time,
    /// Timestamp to be echoed.
    echo: Time,
    /// Packets beyond `next`, `from..to`; the one with the newest arrival first (RFC 2018, 4).
    ranges: Vec<(u32, u32)>,
    /// The first packet is data and is acknowledged at once, as a SYN would be.
    opening: bool,
}

const _: () = assert!(size_of::<Sink>() <= 128);

impl Sink {
    /// A receiver that waits for its first packet.
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
            ranges: Vec::new(),
            opening: config.handshake == Handshake::None || config.variant == Variant::Vegas,
        }
    }

    fn ack(&mut self, syn: bool) -> Feedback {
        self.due = Time::NEVER;
        self.acked = self.next;
        let mut blocks = [(0, 0); 3];
        if self.selective {
            for (block, range) in blocks.iter_mut().zip(&self.ranges) {
                *block = *range;
            }
        }
        Feedback::Ack(Ack { next: self.next, echo: self.echo, blocks, ece: self.echoing, syn })
    }

    /// Packet `seq` fills the left edge: what follows it may already be there.
    fn advance(&mut self) {
        self.next += 1;
        if !self.ranges.is_empty() {
            let next = self.next;
            if let Some(index) = self.ranges.iter().position(|range| range.0 == next) {
                self.next = self.ranges.remove(index).1;
            }
        }
    }

    /// Packet `seq` is beyond the left edge.
    fn keep(&mut self, seq: u32) {
        let mut new = (seq, seq + 1);
        self.ranges.retain(|&(from, to)| {
            let touches = from <= new.1 && new.0 <= to;
            if touches {
                new = (new.0.min(from), new.1.max(to));
            }
            !touches
        });
        self.ranges.insert(0, new);
    }
}

impl crate::unicast::Sink for Sink {
    fn on_segment(&mut self, segment: &Segment, marked: bool, cx: &mut Cx<'_>) -> Option<Feedback> {
        if segment.flags.has(SegmentFlags::SYN) {
            self.echo = self.echo.max(segment.sent_at);
            return Some(self.ack(true));
        }
        let mut before = None;
        if self.exact {
            // What waits is acknowledged with what it was (RFC 8257, 3.2).
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
            self.advance();
        } else if seq > self.next {
            self.keep(seq);
        }
        // Only a packet in order, with nothing missing or waiting, may wait for a second one (RFC 5681, 4.2).
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
