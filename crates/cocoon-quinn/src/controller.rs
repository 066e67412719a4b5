//! A congestion controller for quinn that also reduces its window after losses of other connections.

use crate::shared::Shared;
use faircast_core::time::{Span, Time};
use faircast_unicast::cocoon::{MemberId, OwnReaction, Recovery, Verdict, View};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum time after which a loss of another connection is discarded. Usually the loss is discarded after two round-trip times.
const FRESH: Span = Span::from_millis(100);

/// Factory of the controllers for connections to one prefix. [`Cocoon::factory`](crate::Cocoon::factory) returns it.
pub struct CoordinatedFactory {
    shared: Arc<Shared>,
    prefix: IpAddr,
}

impl CoordinatedFactory {
    pub(crate) fn new(shared: Arc<Shared>, prefix: IpAddr) -> Self {
        Self { shared, prefix }
    }
}

impl ControllerFactory for CoordinatedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.shared.inner).build(now, current_mtu);
        Box::new(CoordinatedController::new(&self.shared, self.prefix, inner, now, current_mtu))
    }
}

/// Membership of a connection in a group. It ends when the last clone of its controller is dropped.
struct Seat {
    shared: Arc<Shared>,
    prefix: IpAddr,
    member: MemberId,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.leave(self.prefix, self.member);
    }
}

/// Upper limit, in bytes, that the group sets for the window of the wrapped controller. The limit grows like the window of
/// NewReno.
#[derive(Debug, Clone, Copy)]
struct Ceiling {
    window: u64,
    ssthresh: u64,
    /// Bytes acknowledged in congestion avoidance since the window last grew by one packet.
    acked: u64,
}

impl Ceiling {
    fn grow(&mut self, bytes: u64, mtu: u64) {
        if self.window < self.ssthresh {
            self.window = (self.window + bytes).min(self.ssthresh.max(self.window));
            return;
        }
        self.acked += bytes;
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window += mtu;
        }
    }
}

/// A congestion controller with an upper limit set by the group.
///
/// The window is the smaller of the wrapped controller's window and the ceiling. While the ceiling is smaller, the wrapped
/// controller treats the connection as limited by its application, so that the wrapped window does not grow. The ceiling is
/// removed when the wrapped window is below the ceiling in congestion avoidance, or when the wrapped controller reduces its
/// window itself.
pub struct CoordinatedController {
    inner: Box<dyn Controller>,
    seat: Option<Arc<Seat>>,
    ceiling: Option<Ceiling>,
    mtu: u64,
    in_flight: u64,
    has_data: bool,
    /// Time of the last reduction. Losses of packets sent up to this time cause no further reduction.
    recovery: Option<Instant>,
    recovering: bool,
    /// Shortest round-trip time of the acknowledgements in the packet that is being processed.
    sample: Option<Duration>,
}

impl CoordinatedController {
    fn new(shared: &Arc<Shared>, prefix: IpAddr, inner: Box<dyn Controller>, now: Instant, mtu: u16) -> Self {
        let mut it = Self {
            inner,
            seat: None,
            ceiling: None,
            mtu: mtu.into(),
            in_flight: 0,
            has_data: true,
            recovery: None,
            recovering: false,
            sample: None,
        };
        let Some(joined) = shared.join(prefix, it.view(shared.time(now))) else { return it };
        if let Some(start) = joined.start {
            it.ceiling = start.cwnd.map(|cwnd| Ceiling {
                window: (cwnd as u64).max(it.least()),
                ssthresh: start.ssthresh.map_or(u64::MAX, |it| it as u64),
                acked: 0,
            });
        }
        it.seat = Some(Arc::new(Seat { shared: Arc::clone(shared), prefix, member: joined.member }));
        it
    }

    /// Returns the state of this connection. Packets are numbered by their sending time in nanoseconds, because quinn reports
    /// this time for a lost packet.
    fn view(&self, now: Time) -> View {
        let ssthresh = match (self.ceiling, self.inner.metrics().ssthresh) {
            (Some(ceiling), _) => ceiling.ssthresh,
            (None, Some(ssthresh)) => ssthresh,
            (None, None) => u64::MAX,
        };
        let mss = u32::try_from(self.mtu).unwrap_or(u32::MAX);
        let nxt = now.as_nanos() + 1;
        View {
            flight: self.in_flight as f64,
            has_data: self.has_data,
            recovery: if self.recovering { Recovery::Fast } else { Recovery::None },
            ..View::in_bytes(0, nxt, mss, self.window(), ssthresh)
        }
    }

    /// Applies losses of other connections, then reports the state of this connection.
    fn sync(&mut self, now: Instant, acked: u64) {
        let Some(seat) = self.seat.clone() else { return };
        let at = seat.shared.time(now);
        let mut state = seat.shared.lock();
        if let Some(verdict) = state.coordinator.take_verdict(seat.member) {
            let rtt = state.coordinator.round_trip(seat.member).map_or(Span::ZERO, |it| it.mean);
            if at.since(verdict.at) <= (rtt * 2).max(FRESH) {
                self.obey(&verdict);
            }
        }
        let view = self.view(at);
        match acked {
            0 => state.coordinator.on_transmit(seat.member, view),
            _ => state.coordinator.on_ack(seat.member, view, acked as f64),
        }
    }

    fn obey(&mut self, verdict: &Verdict) {
        let window = self.window();
        let asked = verdict.cwnd.map_or(window, |cwnd| (cwnd as u64).max(self.least()).min(window));
        let ssthresh = verdict.ssthresh.map_or(u64::MAX, |it| it as u64);
        if asked < window || ssthresh < u64::MAX {
            self.ceiling = Some(Ceiling { window: asked, ssthresh, acked: 0 });
        }
    }

    /// Returns the minimum window: two packets (RFC 9002, 7.2). With a smaller window quinn would send nothing.
    // Paper gap: a window may be one packet in 4.4 and after a cut; in QUIC it is two, the least that RFC 9002 allows.
    fn least(&self) -> u64 {
        2 * self.mtu
    }

    /// Returns whether the ceiling limits the window.
    fn is_capped(&self) -> bool {
        self.ceiling.is_some_and(|it| it.window < self.inner.window())
    }

    fn lose_ceiling(&mut self) {
        let in_avoidance = self.inner.metrics().ssthresh.is_some_and(|it| self.inner.window() >= it);
        if in_avoidance && !self.is_capped() {
            self.ceiling = None;
        }
    }
}

impl Controller for CoordinatedController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.in_flight += bytes;
        self.inner.on_sent(now, bytes, last_packet_number);
        self.sync(now, 0);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let waited = now.saturating_duration_since(sent);
        self.sample = Some(self.sample.map_or(waited, |it| it.min(waited)));
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.has_data = !app_limited;
        let answered = self.recovery.is_some_and(|it| sent <= it);
        self.recovering &= answered;
        self.inner.on_ack(now, sent, bytes, app_limited || self.is_capped(), rtt);
        if let Some(ceiling) = &mut self.ceiling
            && !app_limited
            && !answered
        {
            ceiling.grow(bytes, self.mtu);
        }
        self.lose_ceiling();
        self.sync(now, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.in_flight = in_flight;
        self.has_data = !app_limited;
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
        let sample = self.sample.take();
        if let (Some(seat), Some(rtt)) = (&self.seat, sample) {
            let nanos = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX);
            seat.shared.lock().coordinator.on_rtt_sample(seat.member, Span::from_nanos(nanos));
        }
        self.sync(now, 0);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.sync(now, 0);
        let own = self.seat.as_ref().map(|seat| {
            let at = seat.shared.time(now);
            let (view, lost) = (self.view(at), seat.shared.time(sent));
            let coordinator = &mut seat.shared.lock().coordinator;
            match is_persistent {
                true => coordinator.on_timeout(seat.member, view, lost.as_nanos(), lost, at),
                false => coordinator.on_loss(seat.member, view, lost.as_nanos(), at),
            }
        });
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        // Persistent congestion reduces the window of every controller to the minimum, even after an earlier reduction.
        if is_persistent || own != Some(OwnReaction::Covered) {
            self.inner.on_congestion_event(now, sent, is_persistent, lost_bytes);
            if let Some(OwnReaction::Cut { cwnd, .. }) = own {
                let cwnd = (cwnd as u64).max(self.least());
                // The wrapped controller reduced its own window, but the ceiling may be even lower. Therefore the ceiling is
                // reduced as well.
                self.ceiling = self.is_capped().then_some(Ceiling { window: cwnd, ssthresh: cwnd, acked: 0 });
            }
            (self.recovery, self.recovering) = (Some(now), true);
        }
        self.sync(now, 0);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        let inner = self.inner.window();
        self.ceiling.map_or(inner, |it| it.window.min(inner).max(self.least()))
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        metrics.congestion_window = self.window();
        if let Some(ceiling) = self.ceiling {
            metrics.ssthresh = Some(ceiling.ssthresh);
        }
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), seat: self.seat.clone(), ..*self })
    }

    fn initial_window(&self) -> u64 {
        self.ceiling.map_or(self.inner.initial_window(), |it| it.window.min(self.inner.initial_window()))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
