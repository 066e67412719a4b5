//! Controlled delay (RFC 8289): packets are dropped or marked at departure, if their delays are too long.
//!
//! After delays have exceeded the target for a whole interval, a packet is dropped. The times between further drops shrink with
//! the square root of the number of drops, until the delay of a packet is below the target.

use crate::discipline::{Decision, DropCause, Offer};
use crate::limit::{self, Limit};
use crate::qdisc::{Dropped, PacketQueue, Qdisc, Queued, Sent, Ticket};
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Acceptable time in the queue (TARGET).
        target: Span = Span::from_millis(5)
            => seconds["target", NumberRange::up_to(1.0), "acceptable time in the queue"];
        /// Duration for which delays may exceed the target before the first drop; about the longest usual round-trip time
        /// (INTERVAL).
        interval: Span = Span::from_millis(100)
            => seconds["interval", NumberRange::up_to(100.0), "time above the target before the first drop"];
        /// Buffer, without the packet in transmission.
        limit: Limit = Limit::Packets(1000)
            => option[limit::option!("buffer, without the packet in transmission")];
        /// Queue length in bytes up to which no packet is dropped. 0 means the size of the largest packet so far, as in the RFC
        /// and Linux.
        keep: u32 = 0
            => whole["keep", 0, 1_000_000,
                "size of a queue, in bytes, below which no packet is dropped; 0: the largest packet"];
        /// Whether CoDel marks ECN-capable packets instead of dropping them.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    /// Values of RFC 8289, section 4; a buffer of 1000 packets, as in Linux.
    impl Default;

    impl Tabled for Config as "codel" {
        type Built = Box<dyn Qdisc>;

        fn fits(&self) -> Result<(), String> {
            below(self.target, self.interval)
        }

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Qdisc> {
            Box::new(Codel::new(*self))
        }
    }
}

/// Checks that the target is below the interval.
pub(crate) fn below(target: Span, interval: Span) -> Result<(), String> {
    if target < interval {
        return Ok(());
    }
    let (target, interval) = (target.as_secs_f64(), interval.as_secs_f64());
    Err(format!("target is {target} s, but must be below interval, {interval} s"))
}

/// The discipline's state. The names in brackets are those of the RFC.
#[derive(Debug)]
pub struct Codel {
    config: Config,
    packets: PacketQueue,
    /// The largest packet so far, in bytes (MAXPACKET).
    largest: u16,
    /// Time at which delays will have exceeded the target for an interval; `None` while delays are below the target
    /// (first_above_time_).
    above_from: Option<Time>,
    /// Time of the next drop (drop_next_).
    drop_next: Time,
    /// Number of drops, which determines the time between drops (count_). `last_count` is this number at the beginning of the
    /// dropping state (lastcount_).
    count: u32,
    last_count: u32,
    state: State,
    /// Size of the latest sent packet, in bytes.
    latest_size: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Dropping,
}

/// The oldest packet, already removed from the queue, and whether this packet may be dropped.
struct Head {
    packet: Queued,
    may_drop: bool,
}

impl Codel {
    /// Creates an empty queue.
    pub fn new(config: Config) -> Codel {
        Codel {
            config,
            packets: PacketQueue::default(),
            largest: 0,
            above_from: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            state: State::Idle,
            latest_size: 0,
        }
    }

    /// Removes the oldest packet (dodequeue).
    fn take(&mut self, now: Time) -> Option<Head> {
        let Some(packet) = self.packets.pop() else {
            self.above_from = None;
            return None;
        };
        let sojourn = now.since(packet.since);
        let (_, left) = self.packets.backlog();
        if sojourn < self.config.target || left <= self.kept() {
            self.above_from = None;
            return Some(Head { packet, may_drop: false });
        }
        let above_from = *self.above_from.get_or_insert(now + self.config.interval);
        Some(Head { packet, may_drop: now >= above_from })
    }

    /// Returns the queue length in bytes up to which no packet is dropped.
    fn kept(&self) -> u64 {
        if self.config.keep > 0 { u64::from(self.config.keep) } else { u64::from(self.largest) }
    }

    /// Returns the time of the drop that follows a drop at `from` (control_law).
    fn next_after(&self, from: Time) -> Time {
        from + Span::from_secs_f64(self.config.interval.as_secs_f64() / f64::from(self.count.max(1)).sqrt())
    }

    /// Enters the dropping state. If the previous dropping state ended recently, drops continue at the rate of that state.
    fn begin_dropping(&mut self, now: Time) {
        self.state = State::Dropping;
        let since_last = self.count.saturating_sub(self.last_count);
        let is_recent = now.since(self.drop_next) < self.config.interval * 16;
        self.count = if since_last > 1 && is_recent { since_last } else { 1 };
        self.drop_next = self.next_after(now);
        self.last_count = self.count;
    }

    fn may_mark(&self, packet: &Queued) -> bool {
        self.config.ecn && packet.ecn.may_be_marked()
    }

    /// Removes the oldest packet to make room.
    pub(crate) fn lose_oldest(&mut self) -> Option<Queued> {
        self.packets.pop()
    }

    /// Size of the latest sent packet, in bytes.
    pub(crate) const fn latest_size(&self) -> u16 {
        self.latest_size
    }
}

impl Qdisc for Codel {
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        _rng: &mut Rng,
        _dropped: &mut Vec<Dropped>,
    ) -> Decision {
        let (packets, bytes) = self.packets.backlog();
        if !self.config.limit.has_room(packets, bytes, offer.size) {
            return Decision::Drop(DropCause::Overflow);
        }
        self.largest = self.largest.max(offer.size);
        self.packets.push(Queued::new(offer, ticket));
        Decision::Accept
    }

    fn dequeue(&mut self, now: Time, _rng: &mut Rng, dropped: &mut Vec<Dropped>) -> Option<Sent> {
        let mut head = self.take(now);
        let mut marked = false;
        if self.state == State::Dropping {
            while let Some(Head { packet, may_drop: true }) = head
                && now >= self.drop_next
            {
                self.count = self.count.saturating_add(1);
                if self.may_mark(&packet) {
                    marked = true;
                    self.drop_next = self.next_after(self.drop_next);
                    break;
                }
                dropped.push(Dropped { ticket: packet.ticket, cause: DropCause::Early });
                head = self.take(now);
                if head.as_ref().is_some_and(|head| head.may_drop) {
                    self.drop_next = self.next_after(self.drop_next);
                }
            }
            if !head.as_ref().is_some_and(|head| head.may_drop) {
                self.state = State::Idle;
            }
        } else if let Some(Head { packet, may_drop: true }) = head {
            marked = self.may_mark(&packet);
            if !marked {
                dropped.push(Dropped { ticket: packet.ticket, cause: DropCause::Early });
                head = self.take(now);
            }
            self.begin_dropping(now);
        }
        let Head { packet, .. } = head?;
        self.latest_size = packet.size;
        Some(Sent { ticket: packet.ticket, marked })
    }

    fn backlog(&self) -> (u32, u64) {
        self.packets.backlog()
    }

    fn flush(&mut self, lost: &mut Vec<Ticket>) {
        self.packets.flush(lost);
    }
}

#[cfg(test)]
mod tests;
