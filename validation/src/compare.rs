//! How far ours may be from ns-2's, and whether it is.
//!
//! The tolerances were fixed before the first comparison and are not to be widened: what lies outside is a mistake of
//! ours or has a reason that is stated with the case.

use crate::measure::Values;
use crate::reference::{Case, Failure, Rule, Value};

/// A quantity of a case, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Which quantity.
    pub quantity: String,
    /// What we measured, the mean over our runs.
    pub ours: f64,
    /// Standard deviation over our runs.
    pub deviation: f64,
    /// What ns-2 measured.
    pub theirs: Value,
    /// How far apart they may be.
    pub allowed: f64,
    /// Why they are farther apart, where that is known.
    pub explained: Option<String>,
}

/// What comes of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Inside,
    /// Outside, and the reason is stated.
    Explained,
    /// Outside.
    Outside,
}

impl Line {
    /// Whether ours is close enough.
    pub fn verdict(&self) -> Verdict {
        // A rounding of the reference's last digit is no difference.
        let slack = 1e-9 * self.theirs.mean().abs().max(1.0);
        if (self.ours - self.theirs.mean()).abs() <= self.allowed + slack {
            Verdict::Inside
        } else if self.explained.is_some() {
            Verdict::Explained
        } else {
            Verdict::Outside
        }
    }
}

/// Part of ns-2's value that ours may differ by.
fn share(rule: Rule, quantity: &str) -> f64 {
    match (rule, quantity) {
        (Rule::Deterministic, "goodput" | "acked" | "sent") => 0.005,
        (Rule::Deterministic, "window mean" | "window min" | "window max") => 0.03,
        (Rule::Deterministic, "queue mean") => 0.05,
        (Rule::Deterministic, "queue sd") => 0.15,
        (Rule::Deterministic, _) => 0.1,
        (
            Rule::Random,
            "utilisation" | "goodput" | "queue mean" | "arrivals" | "fairness" | "first rate" | "second rate"
            | "flows sent" | "ratio" | "TCP goodput" | "multicast rate" | "window mean",
        ) => 0.05,
        (Rule::Random, _) => 0.15,
    }
}

/// Compare the means over `runs` of ours with what ns-2 measured.
///
/// # Errors
/// When the case has a value that our runs do not.
pub fn compare(case: &Case, rule: Rule, runs: &[Values]) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for (quantity, theirs) in &case.values {
        // A run in which it is no number (the variation of a group that gets nothing) does not have it.
        let ours: Vec<f64> = runs.iter().filter_map(|run| run.get(quantity.as_str()).copied()).collect();
        if ours.is_empty() {
            return Err(Failure::Quantity { case: case.name.clone(), quantity: quantity.clone() });
        }
        let count = ours.len() as f64;
        let mean = ours.iter().sum::<f64>() / count;
        let squares: f64 = ours.iter().map(|value| (value - mean).powi(2)).sum();
        let allowed = (share(rule, quantity) * theirs.mean().abs()).max(3.0 * theirs.deviation());
        lines.push(Line {
            quantity: quantity.clone(),
            ours: mean,
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
            theirs: *theirs,
            allowed,
            explained: case.explained.get(quantity).cloned(),
        });
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ours: f64, theirs: Value, allowed: f64) -> Line {
        Line { quantity: "loss".into(), ours, deviation: 0.0, theirs, allowed, explained: None }
    }

    fn compared(rule: Rule, quantity: &str, theirs: Value) -> f64 {
        let case = Case {
            name: "a case".into(),
            runs: 3,
            network: None,
            values: [(quantity.to_owned(), theirs)].into(),
            explained: [].into(),
        };
        let quantity = ["loss", "queue mean", "goodput"].into_iter().find(|name| *name == quantity);
        let run: Values = [(quantity.expect("one of these"), 1.0)].into();
        compare(&case, rule, &[run]).expect("it is measured")[0].allowed
    }

    #[test]
    fn the_larger_of_three_deviations_and_a_share_is_allowed() {
        assert_eq!(compared(Rule::Random, "loss", Value::Spread(100.0, 1.0)), 15.0);
        assert_eq!(compared(Rule::Random, "loss", Value::Spread(100.0, 10.0)), 30.0);
        assert_eq!(compared(Rule::Random, "queue mean", Value::Spread(100.0, 1.0)), 5.0);
        assert_eq!(compared(Rule::Deterministic, "goodput", Value::Single(100.0)), 0.5);
    }

    #[test]
    fn what_lies_outside_is_outside_unless_it_is_explained() {
        assert_eq!(line(1.1, Value::Single(1.0), 0.2).verdict(), Verdict::Inside);
        assert_eq!(line(1.3, Value::Single(1.0), 0.2).verdict(), Verdict::Outside);
        let explained = Line { explained: Some("why".into()), ..line(1.3, Value::Single(1.0), 0.2) };
        assert_eq!(explained.verdict(), Verdict::Explained);
        assert_eq!(line(f64::NAN, Value::Single(1.0), 0.2).verdict(), Verdict::Outside);
    }

    #[test]
    fn runs_in_which_a_quantity_is_no_number_do_not_count() {
        let case = Case {
            name: "a case".into(),
            runs: 2,
            network: None,
            values: [("ratio".to_owned(), Value::Single(2.0))].into(),
            explained: [].into(),
        };
        let lines = compare(&case, Rule::Random, &[[("ratio", 2.0)].into(), Values::new()]);
        assert_eq!(lines.expect("one run has it")[0].ours, 2.0);
    }

    #[test]
    fn a_quantity_that_is_not_measured_is_an_error() {
        let case = Case {
            name: "a case".into(),
            runs: 1,
            network: None,
            values: [("colour".to_owned(), Value::Single(1.0))].into(),
            explained: [].into(),
        };
        let run = Values::new();
        assert!(matches!(compare(&case, Rule::Random, &[run]), Err(Failure::Quantity { .. })));
    }
}
