//! The receiving end: cumulative, delayed and selective acknowledgements, and the echo of congestion marks.

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
    /// Number in the latest acknowledgement.
    acked: u32,
    selective: bool,
    /// A mark is echoed until the sender reports that it reduced its window (RFC 3168, 6.1.3).
    echoing: bool,
    /// Whether the echo states that the packets which an acknowledgement acknowledges first were marked (RFC 8257,
    /// 3.2).
    exact: bool,
    /// Time to wait for a second packet; zero: it does not wait.
    delay: Span,
    /// When the waiting ends.
    due: Time,
    /// Timestamp to be echoed.
    echo: Time,
    /// Packets beyond `next`; `None` before the first.
    held: Option<Box<OutOfOrder>>,
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
            held: None,
            opening: config.handshake == Handshake::None || config.variant == Variant::Vegas,
        }
    }

    /// The ranges that an acknowledgement reports (RFC 2018, 4).
    fn blocks(&mut self) -> [(u32, u32); 3] {
        self.held.as_deref_mut().map_or([(0, 0); 3], OutOfOrder::newest)
    }

    /// An acknowledgement of all that came in order. A call would cost 26 instructions, as it copies the result.
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
            // Waiting packets are acknowledged with their own mark (RFC 8257, 3.2).
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
