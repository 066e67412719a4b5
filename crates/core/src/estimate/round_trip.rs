//! Round-trip times to one receiver, for states, reports and traces. The schemes have their own estimates.

use crate::packet::{Cause, Knows, ReportContent};
use crate::time::Span;

/// The round-trip time to a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoundTrip {
    least: Option<Span>,
    /// Sum and number of the samples of congestion reports.
    congested: (Span, u32),
}

impl RoundTrip {
    /// Returns the least sample: the path without queues.
    pub const fn least(&self) -> Option<Span> {
        self.least
    }

    /// Returns the mean at congestion. It exceeds the least sample by the delay of a full queue if congestion fills a queue.
    pub fn congested(&self) -> Option<Span> {
        let (sum, count) = self.congested;
        (count > 0).then(|| sum / u64::from(count))
    }

    /// Adds a sample. `content` is the content of the scheme's report that gave the sample, if any.
    pub fn add(&mut self, sample: Span, content: Option<&ReportContent>) {
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        if content.is_some_and(is_of_congestion) && self.congested.1 < u32::MAX {
            self.congested = (self.congested.0 + sample, self.congested.1 + 1);
        }
    }
}

/// Whether a report states a loss or a mark that its echo revealed, or a rate that follows from losses.
const fn is_of_congestion(content: &ReportContent) -> bool {
    match content {
        ReportContent::Congested { cause, .. } | ReportContent::Averaged { cause, .. } => {
            matches!(cause, Cause::Loss | Cause::Mark)
        }
        ReportContent::Calculated { knows, .. } => knows.has(Knows::LOSS),
        ReportContent::Lost { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Echo, Seq};

    #[test]
    fn congested_round_trips_are_averaged_apart_from_the_least() {
        let mut round_trip = RoundTrip::default();
        assert_eq!((round_trip.least(), round_trip.congested()), (None, None));
        let echo = Echo { seq: Seq(1), hold: Span::ZERO };
        let lost = ReportContent::Lost { echo, first: Seq(0), count: 1, loss: 0.0 };
        let rate = |knows| ReportContent::Calculated { echo, rate: 1e6, stamp: 0, round: 0, knows };
        let (early, late) = (rate(Knows::RTT), rate(Knows::RTT.with(Knows::LOSS)));
        let (none, alive) = (None, Some(&ReportContent::Alive { echo }));
        for (millis, content) in
            [(30, none), (20, alive), (70, Some(&early)), (60, Some(&lost)), (40, Some(&late))]
        {
            round_trip.add(Span::from_millis(millis), content);
        }
        assert_eq!(round_trip.least(), Some(Span::from_millis(20)));
        assert_eq!(round_trip.congested(), Some(Span::from_millis(50)));
    }
}
