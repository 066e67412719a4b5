//! Probing for the shortest round trip: where queues never drain, late joiners never see an empty path.

use crate::time::{Span, Time};

/// The schedule on which the source briefly sends more slowly, and the samples it takes then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probing {
    /// The duration without a round trip near the shortest after which it probes.
    after: Option<Span>,
    /// The beginning of that duration.
    since: Time,
    /// Until when it looks, and the shortest round trip so far.
    looking: Option<(Time, Option<Span>)>,
}

/// The action of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ProbeAction {
    /// Nothing is to be done.
    No,
    /// It begins: send slower until this moment.
    Begins,
    /// It goes on: the law rests.
    Lasts,
    /// It is over, and this is the shortest round trip.
    Over(Option<Span>),
}

/// A round trip up to this times the shortest is one of an empty path.
const NEAR: f64 = 1.01;
/// A look lasts two round trips, at least this.
const MIN: Span = Span::from_millis(200);
const ROUND_TRIPS: u64 = 2;

impl Probing {
    pub const fn new(after: Option<Span>) -> Probing {
        Probing { after, since: Time::ZERO, looking: None }
    }

    /// Restarts the time without a sight of the empty path.
    pub fn restart(&mut self, now: Time) {
        (self.since, self.looking) = (now, None);
    }

    /// An acknowledgement took `rtt`, where `shortest` is the shortest known.
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
    fn probing_starts_if_queues_do_not_drain_and_takes_the_minimum() {
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
