//! Round-trip times of members, for states and reports. The congestion control has its own estimates.

use super::Members;
use faircast_core::packet::{Cause, ReceiverId, ReportContent};
use faircast_core::time::Span;

/// The round-trip time to a member.
#[derive(Debug, Clone, Copy, Default)]
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

    fn add(&mut self, sample: Span, congested: bool) {
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        if congested && self.congested.1 < u32::MAX {
            self.congested = (self.congested.0 + sample, self.congested.1 + 1);
        }
    }
}

impl Members {
    /// Stores a sample of a member's round-trip time. `content` is the content of the scheme's report that gave the sample, if any.
    pub fn on_round_trip(&mut self, from: ReceiverId, sample: Span, content: Option<&ReportContent>) {
        if let Some(member) = self.known.get_mut(&from) {
            member.round_trip.add(sample, content.is_some_and(is_of_congestion));
        }
    }
}

/// Whether a report states a loss or a mark that its echo revealed.
const fn is_of_congestion(content: &ReportContent) -> bool {
    matches!(
        content,
        ReportContent::Congested { cause: Cause::Loss | Cause::Mark, .. }
            | ReportContent::Averaged { cause: Cause::Loss | Cause::Mark, .. }
            | ReportContent::Lost { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congested_round_trips_are_averaged_apart_from_the_least() {
        let mut round_trip = RoundTrip::default();
        assert_eq!((round_trip.least(), round_trip.congested()), (None, None));
        for (millis, congested) in [(30, false), (20, false), (60, true), (40, true)] {
            round_trip.add(Span::from_millis(millis), congested);
        }
        assert_eq!(round_trip.least(), Some(Span::from_millis(20)));
        assert_eq!(round_trip.congested(), Some(Span::from_millis(50)));
    }
}
