//! A request to the kernel for prompt wake-ups (PM QoS, `/dev/cpu_dma_latency`).
//!
//! A processor that sleeps deeply, or an idle one of a virtual machine, notices a packet or a timer after hundreds of microseconds.

use crate::sys::LatencyLimit;
use faircast_core::time::{Span, Time};

/// A request that idle processors stay awake. It stands while packets are carried.
#[derive(Debug)]
pub(crate) struct CpuLatency {
    limit: Option<LatencyLimit>,
    last: Time,
    is_on: bool,
}

impl CpuLatency {
    /// Time without packets after which the request is withdrawn.
    const IDLE: Span = Span::from_secs(2);
    /// Maximum latency of a wake-up in microseconds, without a request: the kernel's default.
    const ANY: i32 = 2_000_000_000;

    /// Prepares a request. Without the right to make it, it has no effect.
    pub(crate) fn new() -> CpuLatency {
        let mut made = CpuLatency { limit: LatencyLimit::open().ok(), last: Time::ZERO, is_on: true };
        made.set(false);
        made
    }

    fn set(&mut self, on: bool) {
        if self.is_on == on {
            return;
        }
        self.is_on = on;
        if let Some(limit) = &mut self.limit {
            // A failure leaves processors as they are: packets are later, which the report states.
            let _ = limit.set(if on { 0 } else { CpuLatency::ANY });
        }
    }

    /// Makes or withdraws the request. `carries` states that packets were carried since the last call.
    pub(crate) fn update(&mut self, carries: bool, now: Time) {
        if carries {
            self.last = now;
        }
        self.set(carries || self.is_on && now.since(self.last) < CpuLatency::IDLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    #[test]
    fn request_ends_two_seconds_after_the_last_packet() {
        let mut cpu_latency = CpuLatency { limit: None, last: Time::ZERO, is_on: false };
        let on_at = |cpu_latency: &mut CpuLatency, carries, millis| {
            cpu_latency.update(carries, Time::ZERO + MS * millis);
            cpu_latency.is_on
        };
        let calls =
            [(false, 5_000), (true, 6_000), (false, 7_999), (true, 7_999), (false, 9_998), (false, 9_999)];
        let states = calls.map(|(carries, millis)| on_at(&mut cpu_latency, carries, millis));
        assert_eq!(states, [false, true, true, true, true, false]);
    }
}
