//! A link whose discipline holds packets.

use super::{
    Decides, Dequeued, FullState, Link, LinkCounts, LossCause, OfferResult, Record, Rest, Shift, State,
    Waiting, streak_at, transmission,
};
use crate::discipline::{Decision, DropCause, Ecn, Offer};
use crate::loss::Loss;
use crate::qdisc::{Dropped, Qdisc, Ticket};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

/// The discipline, and the link's own state of the waiting packets.
#[derive(Debug)]
pub(super) struct Queue {
    qdisc: Box<dyn Qdisc>,
    /// The waiting packets, by ticket.
    held: Vec<QueuedPacket>,
    free: Vec<u32>,
    /// Pending reports to the driver.
    news: VecDeque<Dequeued>,
    /// Number of waiting packets. This number and the discipline's next timer are cached, because every packet needs them.
    waiting: u32,
    timer: Time,
    sending: Option<Sending>,
    last_arrival: Time,
    /// Time of the latest event.
    latest: Time,
    /// Beginning of the latest idle time that was reported to the discipline.
    reported_idle: Time,
    departed_bytes: u64,
    counts: LinkCounts,
    // Reused buffer for the packets that the discipline drops.
    dropped: Vec<Dropped>,
    lost: Vec<Ticket>,
}

/// A packet that waits.
#[derive(Debug, Clone, Copy)]
struct QueuedPacket {
    /// Propagation delay that applied when the packet arrived at the link.
    delay: Span,
    flow: u32,
    size: u16,
    /// Whether it was marked at its arrival.
    marked: bool,
}

/// Fields of the link that a transmission changes.
struct Transmitter<'a> {
    free_at: &'a mut Time,
    streak: &'a mut u8,
    byte_time: u64,
}

/// The latest packet whose transmission began.
#[derive(Debug, Clone, Copy)]
struct Sending {
    packet: Waiting,
    /// Arrival time of the packet before.
    before: Time,
    fate: Dequeued,
}

impl Queue {
    pub fn new(qdisc: Box<dyn Qdisc>) -> Queue {
        Queue {
            waiting: qdisc.backlog().0,
            timer: qdisc.timer(),
            qdisc,
            held: Vec::new(),
            free: Vec::new(),
            news: VecDeque::new(),
            sending: None,
            last_arrival: Time::ZERO,
            latest: Time::ZERO,
            reported_idle: Time::ZERO,
            departed_bytes: 0,
            counts: LinkCounts::default(),
            dropped: Vec::new(),
            lost: Vec::new(),
        }
    }

    pub fn set_rate(&mut self, rate: Rate) {
        self.qdisc.set_rate(rate);
        self.timer = self.qdisc.timer();
    }

    pub fn backlog(&self) -> (u32, u64) {
        self.qdisc.backlog()
    }

    pub const fn counts(&self) -> LinkCounts {
        self.counts
    }

    pub fn departed_bytes(&self, now: Time) -> u64 {
        self.departed_bytes - u64::from(self.in_transmission(now))
    }

    fn in_transmission(&self, now: Time) -> u16 {
        self.sending.filter(|sending| sending.packet.ends > now).map_or(0, |sending| sending.packet.size)
    }

    /// Returns the time of the next report of a packet if the transmitter is free from `free_at` on.
    #[inline]
    fn next(&self, free_at: Time) -> Time {
        if !self.news.is_empty() {
            self.latest
        } else if self.waiting > 0 {
            free_at.max(self.latest)
        } else {
            Time::NEVER
        }
    }

    #[inline]
    fn run_timers(&mut self, now: Time) {
        debug_assert_eq!(self.timer, self.qdisc.timer(), "packets do not move the timer");
        while self.timer <= now {
            self.qdisc.on_timer(self.timer);
            if self.waiting == 0 {
                self.qdisc.on_silence(now);
            }
            self.timer = self.qdisc.timer();
        }
    }

    fn hold(&mut self, held: QueuedPacket) -> Ticket {
        match self.free.pop() {
            Some(place) => {
                self.held[place as usize] = held;
                Ticket(place)
            }
            None => {
                self.held.push(held);
                Ticket(self.held.len() as u32 - 1)
            }
        }
    }

    fn drop_one(&mut self, cause: DropCause) {
        match cause {
            DropCause::Overflow => self.counts.overflow += 1,
            DropCause::Early => self.counts.early += 1,
        }
    }

    /// Handles the packets that the discipline accepted earlier and has dropped now.
    #[inline]
    fn collect_dropped(&mut self) {
        if !self.dropped.is_empty() {
            self.collect_each();
        }
    }

    #[cold]
    fn collect_each(&mut self) {
        self.waiting -= self.dropped.len() as u32;
        let mut dropped = std::mem::take(&mut self.dropped);
        for Dropped { ticket, cause } in dropped.drain(..) {
            self.drop_one(cause);
            self.counts.accepted -= 1;
            self.counts.accepted_bytes -= u64::from(self.held[ticket.0 as usize].size);
            self.news.push_back(Dequeued::Lost { ticket, cause: LossCause::Queue(cause) });
        }
        self.dropped = dropped;
    }

    /// Sends the packet that the discipline selects; the transmitter must be free. Returns the packet's fate. If reports of
    /// dropped packets are pending, appends the fate to them and returns `None`.
    #[inline]
    fn send_next(
        &mut self,
        now: Time,
        transmitter: Transmitter<'_>,
        loss: Option<&mut Loss>,
        rng: &mut Rng,
    ) -> Option<Dequeued> {
        self.latest = now;
        self.run_timers(now);
        let sent = self.qdisc.dequeue(now, rng, &mut self.dropped);
        self.waiting -= u32::from(sent.is_some());
        self.collect_dropped();
        debug_assert_eq!(self.waiting, self.backlog().0, "it says what waits");
        let Some(sent) = sent else {
            debug_assert_eq!(self.backlog().0, 0, "a discipline sends as long as packets wait");
            return None;
        };
        let QueuedPacket { delay, flow, size, marked } = self.held[sent.ticket.0 as usize];
        let Transmitter { free_at, streak, byte_time } = transmitter;
        *streak = streak_at(now, *free_at, *streak);
        let ends = now + transmission(byte_time, size);
        *free_at = ends;
        let packet = Waiting { begins: now, ends, delay, flow, size };
        let before = self.last_arrival;
        self.last_arrival = packet.arrives_after(before);
        self.departed_bytes += u64::from(size);
        let marked = marked || sent.marked;
        self.counts.marked += u64::from(marked);
        let ticket = sent.ticket;
        let fate = if loss.is_some_and(|loss| loss.strikes(rng)) {
            self.counts.lost += 1;
            Dequeued::Lost { ticket, cause: LossCause::Wire }
        } else {
            Dequeued::Arrives { ticket, at: self.last_arrival, marked }
        };
        self.sending = Some(Sending { packet, before, fate });
        if self.news.is_empty() {
            return Some(fate);
        }
        self.news.push_back(fate);
        None
    }

    /// Drops all packets except those whose transmission ended before `now`. Returns the arrival time of the last packet on the
    /// wire.
    pub fn go_down(&mut self, now: Time) -> Time {
        let in_transmission = self.in_transmission(now);
        if let Some(sending) = self.sending.take().filter(|_| in_transmission > 0) {
            self.counts.lost += u64::from(matches!(sending.fate, Dequeued::Arrives { .. }));
            self.departed_bytes -= u64::from(in_transmission);
            self.last_arrival = sending.before;
        }
        self.qdisc.flush(&mut self.lost);
        self.waiting = 0;
        self.counts.lost += self.lost.len() as u64;
        let lost = self.lost.drain(..).map(|ticket| Dequeued::Lost { ticket, cause: LossCause::Down });
        self.news.extend(lost);
        (self.latest, self.reported_idle) = (now, now);
        self.last_arrival
    }
}

impl Link {
    /// Whether packets are queued, so that the arrival time of a packet is unknown when it is offered.
    pub fn queues(&self) -> bool {
        self.rest.queue().is_some()
    }

    /// Returns the time of the next call of [`Link::dequeue`]; [`Time::NEVER`] while no packet waits.
    #[inline]
    pub fn next_dequeue(&self) -> Time {
        self.rest.queue().map_or(Time::NEVER, |queue| queue.next(self.free_at))
    }

    /// Returns the fate of a queued packet if the fate is decided by `now`. Must be called until the result is `None`. A reported
    /// ticket may be reused. A late call reports each event with its scheduled time.
    pub fn dequeue(&mut self, now: Time) -> Option<Dequeued> {
        let Link { free_at, streak, rest, .. } = self;
        let Rest::Full(full) = rest else { return None };
        let FullState { decides: Decides::Holds(queue), byte_time, rng, rare, .. } = &mut **full else {
            return None;
        };
        let due = queue.next(*free_at);
        if due > now || due.is_never() {
            return None;
        }
        let sent = if queue.news.is_empty() {
            let loss = rare.as_mut().and_then(|rare| rare.loss.as_mut());
            queue.send_next(due, Transmitter { free_at, streak, byte_time: *byte_time }, loss, rng)
        } else {
            None
        };
        let news = match sent {
            Some(fate) => fate,
            None => queue.news.pop_front()?,
        };
        let (Dequeued::Arrives { ticket, .. } | Dequeued::Lost { ticket, .. }) = news;
        queue.free.push(ticket.0);
        Some(news)
    }

    /// Offers a packet to a link that queues.
    pub(super) fn offer_queued(&mut self, now: Time, size: u16, flow: u32, ecn: Ecn) -> OfferResult {
        debug_assert!(self.next_dequeue() > now, "what is due must be taken before the next offer");
        let Link { free_at, delay, rest, .. } = self;
        let full = rest.expand();
        let each = transmission(full.byte_time, size);
        let delay = *delay + full.draw_jitter();
        let FullState { decides: Decides::Holds(queue), rng, state, record, .. } = full else {
            unreachable!("it queues");
        };
        queue.latest = now;
        queue.counts.offered += 1;
        if *state == State::Down {
            queue.counts.lost += 1;
            return OfferResult::Lost(LossCause::Down);
        }
        queue.run_timers(now);
        let is_idle = *free_at <= now;
        if is_idle {
            if *free_at > queue.reported_idle {
                queue.reported_idle = *free_at;
                queue.qdisc.on_idle(*free_at);
            }
            if *record == Record::Number {
                self.each = each;
            }
        }
        let (waiting, waiting_bytes) = queue.backlog();
        let in_transmission = queue.in_transmission(now);
        let idle_since = is_idle.then_some(*free_at);
        let offer = Offer { now, size, flow, ecn, waiting, waiting_bytes, in_transmission, idle_since };
        let ticket = queue.hold(QueuedPacket { delay, flow, size, marked: false });
        let decision = queue.qdisc.enqueue(&offer, ticket, rng, &mut queue.dropped);
        queue.waiting += u32::from(!matches!(decision, Decision::Drop(_)));
        queue.collect_dropped();
        debug_assert_eq!(queue.waiting, queue.backlog().0, "it says what waits");
        if let Decision::Drop(cause) = decision {
            queue.free.push(ticket.0);
            queue.drop_one(cause);
            return OfferResult::Lost(LossCause::Queue(cause));
        }
        queue.held[ticket.0 as usize].marked = decision == Decision::Mark;
        queue.counts.accepted += 1;
        queue.counts.accepted_bytes += u64::from(size);
        OfferResult::Queued(ticket)
    }

    /// Handles a change of the rate. A packet whose transmission begins at this time is sent at the new rate.
    pub(super) fn retime(&mut self, now: Time) -> Shift {
        let mut shift = Shift { moves: Vec::new() };
        let Some(queue) = self.rest.queue() else { return shift };
        let Some(mut sending) = queue.sending.filter(|it| it.packet.begins >= now) else { return shift };
        let packet = &mut sending.packet;
        packet.ends = packet.begins + self.transmission(packet.size);
        self.free_at = packet.ends;
        let Decides::Holds(queue) = &mut self.rest.expand().decides else { return shift };
        let arrival = sending.packet.arrives_after(sending.before);
        shift.moves.push((queue.last_arrival, arrival));
        queue.last_arrival = arrival;
        queue.sending = Some(sending);
        shift
    }
}
