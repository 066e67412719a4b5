//! Probing for the shortest round-trip time. If the queues of a path never drain, only a probe can measure the round-trip time
//! without queueing delay.

use crate::time::{Span, Time};

/// The schedule of probes, in which the source briefly lowers its rate, and the samples of the present probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probing {
    /// A probe starts if for this duration no round-trip time is near the shortest one; `None`: never.
    after: Option<Span>,
    /// Start of that duration.
    since: Time,
    /// End of the present probe, and the shortest round-trip time since the start of the probe.
    looking: Option<(Time, Option<Span>)>,
}

/// The action after a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ProbeAction {
    /// No action.
    No,
    /// A probe starts: the rate is lowered.
    Begins,
    /// The probe continues: the control law is not applied.
    Lasts,
    /// The probe has ended; its shortest round-trip time is this one.
    Over(Option<Span>),
}

/// The queues of a path count as empty if the round-trip time is at most this multiple of the shortest one.
const NEAR: f64 = 1.01;
/// Minimum duration of a probe. A probe lasts two round trips if they are longer.
const MIN: Span = Span::from_millis(200);
const ROUND_TRIPS: u64 = 2;

impl Probing {
    pub const fn new(after: Option<Span>) -> Probing {
        Probing { after, since: Time::ZERO, looking: None }
    }

    /// Cancels the present probe, if any, and restarts the wait for the next one.
    pub fn restart(&mut self, now: Time) {
        (self.since, self.looking) = (now, None);
    }

    /// Handles a sample `rtt` of the round-trip time; `shortest` is the shortest known one.
    pub fn sample(&mut self, rtt: Span, shortest: Span, now: Time) -> ProbeAction {
        if let Some((until, seen)) = &mut self.looking {
            *seen = Some(seen.map_or(rtt, |seen| seen.min(rtt)));
            let (until, seen) = (*until, *seen);
            if now < until {
                return ProbeAction::Lasts;
            }
            self.restart(now);
            return ProbeAction::Over(seen);
        }
        if rtt <= shortest.scaled(NEAR) {
            self.since = now;
        }
        match self.after {
            Some(after) if now.since(self.since) > after => {
                self.looking = Some((now + (rtt * ROUND_TRIPS).max(MIN), None));
                ProbeAction::Begins
            }
            _ => ProbeAction::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probing_finds_the_shortest_rtt_if_queues_do_not_drain() {
        let mut probing = Probing::new(Some(Span::from_secs(10)));
        let (short, long) = (Span::from_millis(100), Span::from_millis(180));
        let at = Time::from_secs_f64;
        assert_eq!(probing.sample(short, short, at(5.0)), ProbeAction::No);
        assert_eq!(probing.sample(long, short, at(14.9)), ProbeAction::No);
        assert_eq!(probing.sample(long, short, at(15.1)), ProbeAction::Begins);
        assert_eq!(probing.sample(long, short, at(15.2)), ProbeAction::Lasts);
        assert_eq!(probing.sample(Span::from_millis(130), short, at(15.3)), ProbeAction::Lasts);
        assert_eq!(probing.sample(long, short, at(15.5)), ProbeAction::Over(Some(Span::from_millis(130))));
        assert_eq!(probing.sample(long, short, at(25.0)), ProbeAction::No, "the time begins anew");
    }
}
