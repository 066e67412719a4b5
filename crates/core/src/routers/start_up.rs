//! Answers to the rounds of a source's doubling start-up ([`crate::rate::start`]). A router forwards only answers with new
//! information.

use crate::packet::{ReportContent, Seq};

/// The forwarded answers to the latest round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answers {
    /// The packet that ended the round, with the lowest rate and the highest loss reported for the round.
    round: Option<(Seq, f32, f32)>,
}

impl Answers {
    /// Returns whether a router forwards an answer: it forwards the first answer to a round, and any later answer with a lower
    /// rate or a higher loss. `None` for reports of another kind.
    pub fn lets_through(&mut self, content: &ReportContent) -> Option<bool> {
        let ReportContent::Received { echo, rate, loss } = *content else { return None };
        let is_news = match self.round {
            Some((seq, ..)) if echo.seq < seq => false,
            Some((seq, least, most)) if echo.seq == seq => rate < least || loss > most,
            _ => {
                self.round = Some((echo.seq, f32::INFINITY, 0.0));
                true
            }
        };
        if let Some((_, least, most)) = self.round.as_mut().filter(|_| is_news) {
            (*least, *most) = (least.min(rate), most.max(loss));
        }
        Some(is_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Echo;
    use crate::time::Span;

    #[test]
    fn later_reports_of_a_round_are_forwarded_only_if_worse() {
        let mut answers = Answers::default();
        let stated = |seq, rate, loss| {
            let echo = Echo { seq: Seq(seq), hold: Span::ZERO };
            ReportContent::Received { echo, rate, loss }
        };
        let reported =
            [(9, 5e6, 0.0), (9, 6e6, 0.0), (9, 5e6, 0.0), (9, 4e6, 0.0), (9, 7e6, 0.1), (9, 7e6, 0.1)];
        let passed = reported.map(|(seq, rate, loss)| answers.lets_through(&stated(seq, rate, loss)));
        assert_eq!(passed, [true, false, false, true, true, false].map(Some));
        assert_eq!(answers.lets_through(&stated(20, 9e6, 0.0)), Some(true), "another round");
        assert_eq!(answers.lets_through(&stated(9, 1e6, 0.5)), Some(false), "and one that is over");
        let alive = ReportContent::Alive { echo: Echo { seq: Seq(1), hold: Span::ZERO } };
        assert_eq!(answers.lets_through(&alive), None);
    }
}
