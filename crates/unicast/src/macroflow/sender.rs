//! The sender of all connections of a macroflow.

use super::connection::{Connection, OutstandingPacket, Phase};
use super::{Config, FastStart, Law};
use crate::tcp::{self, Handshake, Smoothed};
use crate::{Ack, Segment, SegmentFlags, SenderView};
use faircast_core::time::{Rate, Span, Time};

/// Duplicates that indicate a loss (RFC 5681, 3.2).
const DUPLICATES: u32 = 3;

/// The sending end of connections to one host.
#[derive(Debug, Clone)]
pub struct Macroflow {
    config: Config,
    tcp: tcp::Config,
    connections: Vec<Connection>,
    /// Index of the connection whose turn it is.
    turn: usize,
    window: f64,
    threshold: f64,
    /// Number of the latest packet.
    number: u64,
    /// Number of the latest packet sent before the latest reduction. Losses up to this packet cause no further reduction.
    recover: u64,
    smoothed: Smoothed,
    measured: bool,
    /// Mean round-trip time, in nanoseconds; 0 before the first sample.
    mean: u64,
    backoff: u32,
    expires: Time,
    /// Time of the latest sending.
    latest: Time,
    /// Earliest time at which the next packet may be sent, if packets are spaced.
    next_at: Time,
}

impl Macroflow {
    /// Creates a macroflow of `connections` connections. `tcp` sets the timers and the initial window.
    pub fn new(config: Config, tcp: tcp::Config, connections: usize) -> Macroflow {
        Macroflow {
            config,
            connections: (0..connections).map(|_| Connection::new()).collect(),
            turn: 0,
            window: f64::from(tcp.initial_window),
            threshold: f64::from(tcp.receiver_window),
            number: 0,
            recover: 0,
            smoothed: Smoothed::default(),
            measured: false,
            mean: 0,
            backoff: 0,
            expires: Time::NEVER,
            latest: Time::ZERO,
            next_at: Time::ZERO,
            tcp,
        }
    }

    /// Opens a connection that will send `packets` packets; [`u32::MAX`] means an endless supply.
    pub fn open(&mut self, connection: usize, packets: u32, now: Time) {
        if self.in_network() == 0 && self.number > 0 {
            self.after_pause(now);
        } else if self.number > 0 && self.config.law == Law::Integrated {
            self.window += 1.0; // ns-2's `fixedIw_` off
        }
        let syn = self.tcp.handshake == Handshake::Syn;
        let it = &mut self.connections[connection];
        *it = Connection::new();
        (it.supply, it.phase) = (packets, if syn { Phase::SynReady } else { Phase::Open });
    }

    /// Sets the total number of packets of an open connection; [`u32::MAX`] means an endless supply. The total is at least the
    /// number of packets already sent.
    pub fn supply(&mut self, connection: usize, packets: u32, now: Time) {
        let had = self.connections[connection].max();
        if packets > had && self.number > 0 && self.in_network() == 0 {
            self.after_pause(now);
        }
        self.connections[connection].supply = packets.max(had);
    }

    /// Closes a connection: it sends no more packets.
    pub fn close(&mut self, connection: usize) {
        let it = &mut self.connections[connection];
        let counts = it.counts;
        *it = Connection { counts, ..Connection::new() };
        self.stop_timer_if_idle();
    }

    /// Adapts the window after a pause: a period without outstanding packets since the latest transmission.
    fn after_pause(&mut self, now: Time) {
        let pause = now.since(self.latest);
        let timeout = self.timeout();
        if pause < timeout {
            return;
        }
        match (self.config.law, self.config.fast_start) {
            (_, FastStart::On) => {
                let slow_start = self.window < self.threshold;
                self.window = (if slow_start { self.window / 2.0 } else { self.window - 1.0 }).max(1.0);
            }
            (Law::Manager, FastStart::Off) => {
                let times = pause.as_nanos() / timeout.as_nanos().max(1);
                self.window = (self.window / 2f64.powi(times.min(64) as i32)).max(1.0);
            }
            (Law::Integrated, FastStart::Off) => self.window = 1.0,
        }
        self.backoff = 0;
    }

    /// Returns the retransmission timeout.
    fn timeout(&self) -> Span {
        let tick = self.tcp.tick.as_nanos().max(1);
        let base = if self.measured {
            Span::from_nanos((self.smoothed.timeout_ticks().max(0) as u64).saturating_mul(tick))
        } else {
            self.tcp.initial_rto
        };
        let doubled = base.max(self.tcp.min_rto).as_nanos().saturating_mul(1 << self.backoff.min(12));
        Span::from_nanos(doubled).min(self.tcp.max_rto).max(self.tcp.tick * 2)
    }

    fn sample(&mut self, sent: Time, now: Time) {
        let tick = self.tcp.tick.as_nanos().max(1);
        let span = now.since(sent).as_nanos();
        let ticks = (span + sent.as_nanos() % tick) / tick;
        self.smoothed.add(ticks.clamp(1, 1 << 50) as i64);
        self.mean = if self.measured { (7 * self.mean + span) / 8 } else { span };
        self.measured = true;
    }

    /// Returns whether the window allows one more packet.
    fn has_room(&self) -> bool {
        self.window >= f64::from(self.in_network()) + 1.0
    }

    /// Returns the estimated number of the macroflow's packets in the network (ns-2's `ownd_`).
    fn in_network(&self) -> u32 {
        self.connections.iter().map(Connection::in_network).sum()
    }

    fn whose_turn(&self) -> Option<usize> {
        let count = self.connections.len();
        let window = self.tcp.receiver_window;
        let mut all = (self.turn..self.turn + count).map(|at| at % count);
        // A SYN does not wait for the window.
        let has_room = self.has_room();
        all.find(|at| {
            let it = &self.connections[*at];
            it.phase == Phase::SynReady || has_room && it.has_something(window)
        })
    }

    /// Returns the time at which the next packet may be sent. [`Time::ZERO`] means immediately; [`Time::NEVER`] means that
    /// another event must occur first.
    pub fn departure(&self) -> Time {
        match self.whose_turn() {
            None => Time::NEVER,
            Some(_) if self.config.law == Law::Manager => self.next_at,
            Some(_) => Time::ZERO,
        }
    }

    /// If a packet may be sent now, returns the packet and its connection.
    pub fn next(&mut self, now: Time) -> Option<(usize, Segment)> {
        if self.departure() > now {
            return None;
        }
        let at = self.whose_turn()?;
        self.turn = (at + 1) % self.connections.len();
        self.latest = now;
        let expires = now + self.timeout();
        let it = &mut self.connections[at];
        let own = self.config.law == Law::Manager || it.phase == Phase::SynReady;
        let timer = if own { &mut it.expires } else { &mut self.expires };
        *timer = if timer.is_never() { expires } else { *timer };
        if it.phase == Phase::SynReady {
            (it.phase, it.syn_at) = (Phase::SynSent, now);
            return Some((at, Segment { seq: 0, flags: SegmentFlags::SYN, sent_at: now, rtt: Span::ZERO }));
        }
        self.number += 1;
        let out = OutstandingPacket { number: self.number, sent_at: now, later: 0, lost: false };
        let mut flags = SegmentFlags::default();
        let place = if it.lost > 0 { it.out.iter().position(|out| out.lost) } else { None };
        let place = match place {
            Some(place) => {
                it.out[place] = out;
                it.lost -= 1;
                it.counts.again += 1;
                flags = SegmentFlags::AGAIN;
                place as u32
            }
            None => {
                it.out.push_back(out);
                it.out.len() as u32 - 1
            }
        };
        it.counts.sent += 1;
        let seq = it.una + place;
        if self.config.law == Law::Manager && self.mean > 0 {
            let gap = Span::from_nanos((self.mean as f64 / self.window.max(1.0)) as u64);
            self.next_at = self.next_at.max(now) + gap;
        }
        Some((at, Segment { seq, flags, sent_at: now, rtt: Span::ZERO }))
    }

    /// Processes an acknowledgement for this connection.
    pub fn on_feedback(&mut self, connection: usize, ack: &Ack, now: Time) {
        let it = &mut self.connections[connection];
        match it.phase {
            Phase::Open if ack.next <= it.max() && !ack.syn => {}
            Phase::SynSent | Phase::SynReady if ack.syn => {
                it.phase = Phase::Open;
                let sent = it.syn_at;
                self.sample(sent, now);
                self.backoff = 0;
                self.connections[connection].expires = Time::NEVER;
                return;
            }
            _ => return,
        }
        if ack.next > it.una {
            self.on_advance(connection, ack, now);
        } else if ack.next == it.una && !it.out.is_empty() {
            self.on_duplicate(connection);
        }
        if self.config.law == Law::Integrated {
            self.note_later(connection, ack.echo);
        }
        self.stop_timer_if_idle();
    }

    fn on_advance(&mut self, connection: usize, ack: &Ack, now: Time) {
        let it = &mut self.connections[connection];
        it.acknowledge(ack.next);
        it.duplicates = 0;
        it.counts.acked = u64::from(it.una);
        let partial = it.una < it.recover && !it.out.is_empty();
        if partial {
            // The acknowledgement ends before packet `recover`, so the first unacknowledged packet was also lost.
            it.lose(0);
        }
        self.sample(ack.echo, now);
        self.backoff = 0;
        self.restart_timer(connection, now);
        if !partial {
            let step = if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
            self.window += step;
        }
    }

    fn on_duplicate(&mut self, connection: usize) {
        let it = &mut self.connections[connection];
        it.duplicates += 1;
        it.one_left();
        let received = it.duplicates + it.out[0].later;
        if received >= DUPLICATES && !it.out[0].lost && it.una >= it.recover {
            self.repair(connection);
        }
    }

    /// Marks the first outstanding packet of a connection as lost, and halves the window if the loss is not covered by the latest
    /// reduction.
    fn repair(&mut self, connection: usize) {
        let it = &mut self.connections[connection];
        let number = it.out[0].number;
        it.lose(0);
        it.recover = it.max();
        if number > self.recover {
            it.counts.cuts += 1;
            self.window = (self.window / 2.0).max(1.0);
            self.threshold = self.window.floor().max(2.0);
            self.recover = self.number;
        }
    }

    /// Records the arrival of a packet that was sent at `echo`. Packets that other connections sent before it are late.
    fn note_later(&mut self, connection: usize, echo: Time) {
        for other in 0..self.connections.len() {
            let it = &mut self.connections[other];
            if other == connection || it.phase != Phase::Open {
                continue;
            }
            let mut late = 0;
            for out in it.out.iter_mut().take_while(|out| out.sent_at < echo) {
                out.later += u32::from(!out.lost);
                late += u32::from(out.later >= DUPLICATES);
            }
            let Some(first) = it.out.front() else { continue };
            let received = it.duplicates + first.later >= DUPLICATES;
            // If only one packet is outstanding, no later packet of the same connection can reveal its loss.
            if received && !first.lost && (it.duplicates > 0 || late >= 2 || it.out.len() == 1) {
                self.repair(other);
            }
        }
    }

    fn restart_timer(&mut self, connection: usize, now: Time) {
        let expires = now + self.timeout();
        let it = &mut self.connections[connection];
        match self.config.law {
            Law::Integrated => self.expires = expires,
            Law::Manager => it.expires = if it.out.is_empty() { Time::NEVER } else { expires },
        }
    }

    fn stop_timer_if_idle(&mut self) {
        if self.connections.iter().all(|it| it.out.is_empty()) {
            self.expires = Time::NEVER;
        }
    }

    /// Returns the time at which [`Macroflow::on_deadline`] must be called.
    pub fn deadline(&self) -> Time {
        self.connections.iter().map(|it| it.expires).fold(self.expires, Time::min)
    }

    /// Checks timers; one may have expired.
    pub fn on_deadline(&mut self, now: Time) {
        for at in 0..self.connections.len() {
            if self.connections[at].expires <= now {
                self.connections[at].counts.timeouts += 1;
                self.backoff += 1;
                let expires = now + self.timeout();
                let it = &mut self.connections[at];
                if it.phase == Phase::SynSent {
                    (it.phase, it.expires) = (Phase::SynReady, Time::NEVER);
                } else {
                    it.expires = expires;
                    self.collapse(at, now);
                }
            }
        }
        if self.expires <= now {
            self.backoff += 1;
            self.expires = now + self.timeout();
            let oldest = |it: &Connection| it.out.iter().map(|out| out.sent_at).min();
            let all = self.connections.iter().enumerate();
            let first = all.filter_map(|(at, it)| oldest(it).map(|sent| (sent, at))).min();
            if let Some((_, first)) = first {
                self.connections[first].counts.timeouts += 1;
                self.collapse(first, now);
            }
        }
    }

    /// Handles the timeout of connection `first`: reduces the window to one packet.
    fn collapse(&mut self, first: usize, now: Time) {
        self.connections[first].counts.cuts += 1;
        self.threshold = (self.window / 2.0).floor().max(2.0);
        self.window = 1.0;
        self.recover = self.number;
        for (at, it) in self.connections.iter_mut().enumerate() {
            if at == first || self.config.law == Law::Integrated {
                it.go_back();
            }
        }
        self.next_at = now;
    }

    /// Returns the number of connections that have lost packets to send again.
    #[cfg(test)]
    pub(super) fn waiting_to_be_sent_again(&self) -> usize {
        self.connections.iter().filter(|it| it.lost > 0).count()
    }

    /// Returns the number of acknowledged packets of a connection.
    pub fn acked(&self, connection: usize) -> u32 {
        self.connections[connection].una
    }

    /// Returns the state of a connection. Window, threshold and round-trip time are common to the macroflow.
    pub fn observe(&self, connection: usize) -> SenderView {
        let rtt = Span::from_nanos(self.mean);
        let bits = self.window * f64::from(self.tcp.packet_size) * 8.0;
        let rate = if rtt == Span::ZERO { 0.0 } else { bits / rtt.as_secs_f64() };
        SenderView {
            window: self.window,
            threshold: self.threshold,
            rtt,
            rate: Rate::from_bps(rate),
            ..self.connections[connection].counts
        }
    }
}
