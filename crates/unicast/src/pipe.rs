//! For tests: one flow over one bottleneck. The code is short enough to be verified by reading it.

use super::{AnySender, AnySink, Feedback, Protocol, Segment, SegmentFlags, Sender, Sink, tcp};
use faircast_core::node::{Cx, Departure, Effects};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

/// Fate of a packet on its way to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Passes,
    Dropped,
    Marked,
}

/// Decides the fate of the n-th sent packet, counted from 0 without the handshake.
pub(super) type Judge = Box<dyn FnMut(u64, &Segment, &mut Rng) -> Fate>;

/// A flow, its bottleneck and the return path.
pub(super) struct Pipe {
    pub(super) now: Time,
    pub(super) sender: AnySender,
    pub(super) sink: AnySink,
    pub(super) rate: Rate,
    pub(super) delay: Span,
    /// Maximum number of packets in the queue, without the packet in transmission.
    pub(super) waiting_limit: usize,
    pub(super) judge: Judge,
    pub(super) drops: u64,
    pub(super) acks: u64,
    /// If recording is on: times and numbers of all sent packets, in order.
    pub(super) trace: Option<Vec<(Time, u32)>>,
    packet_size: u64,
    entered: u64,
    rng: Rng,
    effects: Effects,
    queue: VecDeque<(Segment, bool)>,
    in_transmission: Option<(Time, Segment, bool)>,
    flying: VecDeque<(Time, Segment, bool)>,
    returning: VecDeque<(Time, Feedback)>,
}

const ACK_SIZE: u64 = 40;

impl Pipe {
    /// Creates a flow of `protocol` with an endless supply, over a link with the given rate and the given delay in each
    /// direction.
    pub(super) fn new(protocol: Protocol, rate: Rate, delay: Span) -> Pipe {
        Pipe::with_seed(protocol, rate, delay, 1)
    }

    /// Like `new`, with another random seed.
    pub(super) fn with_seed(protocol: Protocol, rate: Rate, delay: Span, seed: u64) -> Pipe {
        let packet_size = 1000;
        let protocol = protocol.with_packet_size(packet_size);
        let mut pipe = Pipe {
            now: Time::ZERO,
            sender: protocol.sender(),
            sink: protocol.sink(),
            rate,
            delay,
            waiting_limit: usize::MAX,
            judge: Box::new(|_, _, _| Fate::Passes),
            drops: 0,
            acks: 0,
            trace: None,
            packet_size: u64::from(packet_size),
            entered: 0,
            rng: Rng::new(seed, 1),
            effects: Effects::default(),
            queue: VecDeque::new(),
            in_transmission: None,
            flying: VecDeque::new(),
            returning: VecDeque::new(),
        };
        pipe.sender.supply(u32::MAX, Time::ZERO);
        let mut cx = Cx { now: pipe.now, rng: &mut pipe.rng, effects: &mut pipe.effects };
        pipe.sender.start(&mut cx);
        pipe
    }

    /// Makes a call to the TCP sender, as a coordinator would, and then sends all packets that the sender allows.
    pub(super) fn coordinate<T>(&mut self, call: impl FnOnce(&mut tcp::Sender, &mut Cx<'_>) -> T) -> T {
        let AnySender::Tcp(sender) = &mut self.sender else { panic!("only TCP has a window") };
        let mut cx = Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        let answer = call(sender, &mut cx);
        self.send_all();
        answer
    }

    /// Returns the number of packets in the queue and in transmission.
    pub(super) fn queued(&self) -> usize {
        self.queue.len() + usize::from(self.in_transmission.is_some())
    }

    /// Loses packets independently at random.
    pub(super) fn lose_at_random(&mut self, probability: f64) {
        let fate = move |lost| if lost { Fate::Dropped } else { Fate::Passes };
        self.judge = Box::new(move |_, _, rng| fate(rng.chance(probability)));
    }

    /// Loses these packets at their first transmission.
    pub(super) fn lose_once(&mut self, lost: &[u32]) {
        let mut lost = lost.to_vec();
        self.judge = Box::new(move |_, segment, _| {
            let index = lost.iter().position(|seq| *seq == segment.seq);
            index.map_or(Fate::Passes, |index| {
                lost.remove(index);
                Fate::Dropped
            })
        });
    }

    /// Runs until this moment; calls `sample` every `step`.
    pub(super) fn run_sampled(&mut self, until: Time, step: Span, mut sample: impl FnMut(&Pipe)) {
        let mut next = self.now + step;
        while next <= until {
            self.run_until(next);
            sample(self);
            next += step;
        }
    }

    /// Runs until this moment.
    pub(super) fn run_until(&mut self, until: Time) {
        self.send_all();
        loop {
            let next = self.next_event();
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            self.happen();
            self.send_all();
        }
    }

    fn next_event(&self) -> Time {
        let departure = match self.sender.departure() {
            Departure::At(time) => time,
            Departure::AfterReport => Time::NEVER,
        };
        [
            departure,
            self.sender.deadline(),
            self.sink.deadline(),
            self.in_transmission.as_ref().map_or(Time::NEVER, |(at, ..)| *at),
            self.flying.front().map_or(Time::NEVER, |(at, ..)| *at),
            self.returning.front().map_or(Time::NEVER, |(at, _)| *at),
        ]
        .into_iter()
        .min()
        .expect("six moments")
    }

    fn happen(&mut self) {
        let now = self.now;
        let mut cx = Cx { now, rng: &mut self.rng, effects: &mut self.effects };
        if let Some((at, segment, marked)) = self.in_transmission.take_if(|(at, ..)| *at <= now) {
            self.flying.push_back((at + self.delay, segment, marked));
            if let Some((segment, marked)) = self.queue.pop_front() {
                self.transmit(segment, marked);
            }
        } else if self.flying.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, segment, marked) = self.flying.pop_front().expect("there is one");
            let feedback = self.sink.on_segment(&segment, marked, &mut cx);
            self.answer(feedback);
        } else if self.returning.front().is_some_and(|(at, _)| *at <= now) {
            let (_, feedback) = self.returning.pop_front().expect("there is one");
            self.sender.on_feedback(&feedback, &mut cx);
        } else if self.sender.deadline() <= now {
            self.sender.on_deadline(&mut cx);
        } else if self.sink.deadline() <= now {
            let feedback = self.sink.on_deadline(&mut cx);
            self.answer(feedback);
        }
    }

    fn answer(&mut self, feedback: Option<Feedback>) {
        if let Some(feedback) = feedback {
            self.acks += 1;
            let at = self.now + self.rate.span_of(ACK_SIZE) + self.delay;
            self.returning.push_back((at, feedback));
        }
    }

    fn send_all(&mut self) {
        while matches!(self.sender.departure(), Departure::At(time) if time <= self.now) {
            let mut cx = Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
            let segment = self.sender.on_departure(&mut cx);
            self.enter(segment);
        }
    }

    fn enter(&mut self, segment: Segment) {
        let mut fate = Fate::Passes;
        if !segment.flags.has(SegmentFlags::SYN) {
            if let Some(trace) = &mut self.trace {
                trace.push((self.now, segment.seq));
            }
            fate = (self.judge)(self.entered, &segment, &mut self.rng);
            self.entered += 1;
        }
        let full = self.in_transmission.is_some() && self.queue.len() >= self.waiting_limit;
        if full || fate == Fate::Dropped {
            self.drops += 1;
        } else if self.in_transmission.is_some() {
            self.queue.push_back((segment, fate == Fate::Marked));
        } else {
            self.transmit(segment, fate == Fate::Marked);
        }
    }

    fn transmit(&mut self, segment: Segment, marked: bool) {
        let size = if segment.flags.has(SegmentFlags::SYN) { ACK_SIZE } else { self.packet_size };
        self.in_transmission = Some((self.now + self.rate.span_of(size), segment, marked));
    }
}
