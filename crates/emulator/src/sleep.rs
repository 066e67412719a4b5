//! Sleep between arrivals, and the delay with which the kernel ends it.
//!
//! A sleep ends before the next arrival, and the thread polls the clock for the rest. The time between the two is the usual delay
//! of a wake-up: a few microseconds on a busy processor, and hundreds on one that sleeps deeply.

use faircast_core::time::{Span, Time};
use std::fs::File;
use std::io::Write;

/// Minimum and maximum time between the end of a sleep and the next arrival. On links of 100 Mbit/s a thread that always stays
/// awake would take a whole processor, and the kernel stops real-time threads for 50 ms of each second.
const EARLIEST: Span = Span::from_micros(300);
const LATEST: Span = Span::from_micros(15);
/// Maximum duration of sleep. After it, the thread checks for a request to stop.
const NAP: Span = Span::from_millis(20);
/// Duration of a wait after which the thread has slept.
const SLEPT: Span = Span::from_micros(20);
/// Time without sleep after which the thread pauses, and duration of the pause. Packets of a pause are processed together, which
/// takes less time, so that the emulation does not need a whole processor at high rates. The time excludes the polling before an
/// arrival.
const SHIFT: Span = Span::from_micros(50);
const PAUSE: Span = Span::from_micros(80);

/// Durations of sleep, from the delays of earlier wake-ups.
#[derive(Debug)]
pub(crate) struct Sleep {
    /// Mean delay of wake-ups and its mean deviation, as of a round-trip time (RFC 6298, 2).
    mean: Span,
    deviation: Span,
    awake_since: Time,
}

impl Sleep {
    pub(crate) fn new() -> Sleep {
        Sleep { mean: LATEST, deviation: Span::ZERO, awake_since: Time::ZERO }
    }

    /// States that the thread is awake since this time.
    pub(crate) fn awake(&mut self, now: Time) {
        self.awake_since = now;
    }

    /// Returns the time between the end of a sleep and the next arrival.
    fn margin(&self) -> Span {
        (self.mean + self.deviation * 2).max(LATEST).min(EARLIEST)
    }

    /// Returns the duration of a pause that is due at this time.
    pub(crate) fn pause(&self, now: Time) -> Option<Span> {
        (now.since(self.awake_since) > SHIFT + self.margin()).then_some(PAUSE)
    }

    /// Returns how long the thread may sleep at this time before the next event. Zero: the thread polls.
    pub(crate) fn until(&self, next: Time, now: Time) -> Span {
        next.since(now + self.margin()).min(NAP)
    }

    /// Records a wait. `asked` is its planned duration, and `is_whole` states that no packet ended it. Returns whether the thread
    /// has slept.
    pub(crate) fn ended(&mut self, asked: Span, is_whole: bool, began: Time, now: Time) -> bool {
        let took = now.since(began);
        if took <= SLEPT {
            return false;
        }
        self.awake_since = now;
        if is_whole && asked > Span::ZERO {
            let delay = Span::from_nanos(took.as_nanos().saturating_sub(asked.as_nanos())).min(EARLIEST);
            let difference = Span::from_nanos(self.mean.as_nanos().abs_diff(delay.as_nanos()));
            self.deviation = (self.deviation * 3 + difference) / 4;
            self.mean = (self.mean * 7 + delay) / 8;
        }
        true
    }
}

/// A request that idle processors stay awake, so that a packet or a timer is noticed at once (`Documentation/power/pm_qos_interface.rst`
/// of Linux). It stands while packets are carried.
#[derive(Debug)]
pub(crate) struct Alertness {
    file: Option<File>,
    last: Time,
    is_on: bool,
}

impl Alertness {
    /// Time without packets after which the request is withdrawn.
    const IDLE: Span = Span::from_secs(2);
    /// Maximum latency of a wake-up in microseconds, without a request: the kernel's default.
    const ANY: i32 = 2_000_000_000;

    /// Opens the kernel's device. Without the right to do so, requests have no effect.
    pub(crate) fn new() -> Alertness {
        let file = File::options().write(true).open("/dev/cpu_dma_latency").ok();
        let mut made = Alertness { file, last: Time::ZERO, is_on: true };
        made.set(false);
        made
    }

    fn set(&mut self, on: bool) {
        if self.is_on == on {
            return;
        }
        self.is_on = on;
        let latency = if on { 0 } else { Alertness::ANY };
        // A failure leaves processors as they are: packets are later, which the report states.
        let _ = self.file.as_mut().map(|file| file.write_all(&latency.to_ne_bytes()));
    }

    /// Makes or withdraws the request. `carries` states that packets were carried since the last call.
    pub(crate) fn update(&mut self, carries: bool, now: Time) {
        if carries {
            self.last = now;
        }
        self.set(carries || self.is_on && now.since(self.last) < Alertness::IDLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    #[test]
    fn sleep_ends_earlier_after_late_wake_ups_and_later_after_prompt_ones() {
        let mut sleep = Sleep::new();
        let next = Time::ZERO + MS * 10;
        let before = |margin: Span| (next - margin).since(Time::ZERO);
        assert_eq!(sleep.until(next, Time::ZERO), before(LATEST));
        let wakes = |sleep: &mut Sleep, micros, times| {
            for _ in 0..times {
                assert!(sleep.ended(MS, true, Time::ZERO, Time::ZERO + MS + Span::from_micros(micros)));
            }
        };
        wakes(&mut sleep, 120, 40);
        let left = next.since(Time::ZERO + sleep.until(next, Time::ZERO));
        assert!((Span::from_micros(115)..Span::from_micros(130)).contains(&left), "{left:?}");
        wakes(&mut sleep, 40_000, 40);
        assert_eq!(sleep.until(next, Time::ZERO), before(EARLIEST), "bounded");
        wakes(&mut sleep, 3, 60);
        assert_eq!(sleep.until(next, Time::ZERO), before(LATEST));
    }

    #[test]
    fn processors_stay_awake_until_two_seconds_after_the_last_packet() {
        let mut alertness = Alertness { file: None, last: Time::ZERO, is_on: false };
        let on_at = |alertness: &mut Alertness, carries, millis| {
            alertness.update(carries, Time::ZERO + MS * millis);
            alertness.is_on
        };
        let calls =
            [(false, 5_000), (true, 6_000), (false, 7_999), (true, 7_999), (false, 9_998), (false, 9_999)];
        let states = calls.map(|(carries, millis)| on_at(&mut alertness, carries, millis));
        assert_eq!(states, [false, true, true, true, true, false]);
    }

    #[test]
    fn thread_pauses_if_it_had_no_sleep_for_long() {
        let mut sleep = Sleep::new();
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        sleep.awake(at(1_000));
        assert_eq!(sleep.pause(at(1_060)), None);
        assert_eq!(sleep.pause(at(1_070)), Some(PAUSE));
        assert!(!sleep.ended(Span::ZERO, true, at(1_060), at(1_065)), "a poll is no sleep");
        assert_eq!(sleep.pause(at(1_070)), Some(PAUSE));
        assert!(sleep.ended(PAUSE, true, at(1_070), at(1_155)));
        assert_eq!(sleep.pause(at(1_200)), None);
    }
}
