//! Tolerances and verdicts of the comparison.
//!
//! The tolerances were fixed before the first comparison and must not be widened. A value outside its tolerance is a fault of our
//! simulator, or the case states a reason.

use crate::case::{Case, Rule, Value};
use crate::measure::Values;
use crate::reference::Failure;

/// Comparison of one quantity of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Name of the quantity.
    pub quantity: String,
    /// Our measurement.
    pub ours: Ours,
    /// Value of the reference.
    pub theirs: Value,
    /// Value of the same simulator with other random seeds. If it exists, it decides instead of the reference.
    pub again: Option<Value>,
    /// Rule for judging the value.
    pub judged: Judged,
    /// Known reason for a value outside the tolerance.
    pub explained: Option<String>,
}

/// Value of our runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ours {
    /// Mean over the runs that have the value. `None` if no run has it, such as a ratio to zero.
    pub mean: Option<f64>,
    /// Standard deviation over these runs.
    pub deviation: f64,
    /// Number of runs without the value.
    pub without: u32,
}

/// Rule for judging a quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judged {
    /// Permitted differences from the reference and from the runs with other random seeds.
    Within(f64, f64),
    /// No judgement, with the reason.
    Not(&'static str),
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Inside,
    /// Outside the tolerance for a stated reason.
    Explained,
    /// Outside the tolerance without a stated reason.
    Outside,
    /// No verdict; the value is only shown.
    Beside,
}

impl Ours {
    /// Summarises runs. Runs without the value have the element `None`.
    fn of(runs: &[Option<f64>]) -> Ours {
        let there: Vec<f64> = runs.iter().flatten().copied().collect();
        let without = (runs.len() - there.len()) as u32;
        if there.is_empty() {
            return Ours { mean: None, deviation: 0.0, without };
        }
        let value = Value::of(&there);
        Ours { mean: Some(value.mean()), deviation: value.deviation(), without }
    }

    fn is_within(&self, allowed: f64, of: Value) -> bool {
        // Permits rounding of the reference's last digit.
        let slack = 1e-9 * of.mean().abs().max(1.0);
        let near = |mean: f64| (mean - of.mean()).abs() <= allowed + slack;
        self.without == 0 && self.mean.is_some_and(near)
    }
}

impl Line {
    /// Returns the value that decides.
    pub fn deciding(&self) -> Value {
        self.again.unwrap_or(self.theirs)
    }

    /// Returns the permitted difference from the deciding value; `None` if the value is not judged.
    pub const fn allowed(&self) -> Option<f64> {
        match (self.judged, self.again) {
            (Judged::Not(_), _) => None,
            (Judged::Within(allowed, _), None) | (Judged::Within(_, allowed), Some(_)) => Some(allowed),
        }
    }

    /// Returns whether our value is within the tolerance of the reference itself, regardless of other random seeds.
    pub fn is_near_reference(&self) -> bool {
        matches!(self.judged, Judged::Within(allowed, _) if self.ours.is_within(allowed, self.theirs))
    }

    /// Returns the verdict on our value.
    pub fn verdict(&self) -> Verdict {
        match self.allowed() {
            None => Verdict::Beside,
            Some(allowed) if self.ours.is_within(allowed, self.deciding()) => Verdict::Inside,
            Some(_) if self.explained.is_some() => Verdict::Explained,
            Some(_) => Verdict::Outside,
        }
    }
}

/// Returns the permitted difference as a fraction of the reference; `None` for a quantity without a tolerance under this rule.
fn share(rule: Rule, quantity: &str) -> Option<f64> {
    // The minimum and maximum over the links of a star have the tolerance of their quantity. Deviations have a tolerance of their
    // own.
    let (quantity, extreme) = match quantity.rsplit_once(' ') {
        Some((of, "min" | "max")) if of != "window" && of != "queue" => (of, false),
        Some((_, "sd")) => (quantity, true),
        _ => (quantity, false),
    };
    match (rule, quantity) {
        (Rule::Deterministic, "goodput" | "all goodput" | "acked" | "all sent") => Some(0.005),
        (Rule::Deterministic, "window mean" | "window min" | "window max") => Some(0.03),
        (Rule::Deterministic, "queue mean") => Some(0.05),
        (Rule::Deterministic, "queue sd") => Some(0.15),
        (Rule::Deterministic, _) => Some(0.1),
        (Rule::Random, _) if extreme => Some(0.15),
        (
            Rule::Random,
            "utilisation" | "goodput" | "queue mean" | "queue p95" | "queue max" | "arrivals" | "fairness"
            | "first rate" | "second rate" | "first share" | "flows sent" | "ratio" | "TCP goodput"
            | "multicast rate" | "window mean",
        ) => Some(0.05),
        (Rule::Random, _) => Some(0.15),
        (Rule::OtherTcp, "queue mean") => Some(0.05),
        (Rule::OtherTcp, "utilisation") => Some(0.005),
        (Rule::OtherTcp, "loss") => Some(0.2),
        (Rule::OtherTcp, "cuts per flow") => Some(0.3),
        (Rule::OtherTcp, _) => None,
        (Rule::OtherTcpOnce, _) => share(Rule::OtherTcp, quantity).map(|share| share.max(0.1)),
    }
}

/// Returns the permitted difference from a value.
fn allowed(rule: Rule, quantity: &str, of: Value) -> Option<f64> {
    let share = share(rule, quantity)? * of.mean().abs();
    match rule {
        Rule::Deterministic | Rule::Random => Some(share.max(3.0 * of.deviation())),
        Rule::OtherTcp | Rule::OtherTcpOnce => Some(share),
    }
}

/// Compares the means over our runs with the values of a case. `holds` returns whether a reason of this case is valid.
///
/// # Errors
/// Fails if the case has a value that our runs do not measure.
pub fn compare(
    case: &Case,
    runs: &[Values],
    holds: &dyn Fn(&crate::case::Reason, &str) -> bool,
) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for given in &case.values {
        let quantity = given.quantity.as_str();
        let again = case.again.as_ref().and_then(|again| again.values.get(quantity)).copied();
        let judged = match (given.left, again) {
            (Some(why), None) => Judged::Not(why),
            _ => {
                let missing = || Failure::Quantity { case: case.name.clone(), quantity: quantity.to_owned() };
                let near = allowed(case.rule, quantity, given.value).ok_or_else(missing)?;
                let other = again.and_then(|again| allowed(case.rule, quantity, again)).unwrap_or(near);
                Judged::Within(near, other)
            }
        };
        let values: Vec<Option<f64>> = runs.iter().filter_map(|run| run.get(quantity)).copied().collect();
        if values.len() < runs.len() && !matches!(judged, Judged::Not(_)) {
            return Err(Failure::Quantity { case: case.name.clone(), quantity: quantity.to_owned() });
        }
        let reason = |reason: &&crate::case::Reason| {
            reason.quantities.iter().any(|it| it == quantity) && holds(reason, quantity)
        };
        lines.push(Line {
            quantity: quantity.to_owned(),
            ours: Ours::of(&values),
            theirs: given.value,
            again,
            judged,
            explained: case.reasons.iter().find(reason).map(|reason| reason.why.clone()),
        });
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Given, Reason};

    fn case(rule: Rule, quantity: &str, value: Value) -> Case {
        Case {
            name: "a case".into(),
            rows: vec![0],
            runs: 3,
            rule,
            window_s: (0.0, 1.0),
            network: Err("none".into()),
            values: vec![Given { quantity: quantity.into(), value, left: None }],
            again: None,
            reasons: Vec::new(),
        }
    }

    fn run(quantity: &str, value: Option<f64>) -> Values {
        [(quantity.to_owned(), value)].into()
    }

    fn line(ours: Option<f64>, theirs: f64, allowed: f64) -> Line {
        Line {
            quantity: "loss".into(),
            ours: Ours { mean: ours, deviation: 0.0, without: u32::from(ours.is_none()) },
            theirs: Value::Single(theirs),
            again: None,
            judged: Judged::Within(allowed, allowed),
            explained: None,
        }
    }

    fn allowance(rule: Rule, quantity: &str, theirs: Value) -> Option<f64> {
        let lines = compare(&case(rule, quantity, theirs), &[run(quantity, Some(1.0))], &|_, _| true);
        lines.expect("it is measured")[0].allowed()
    }

    #[test]
    fn tolerance_is_the_maximum_of_three_deviations_and_a_share() {
        assert_eq!(allowance(Rule::Random, "loss", Value::Spread(100.0, 1.0)), Some(15.0));
        assert_eq!(allowance(Rule::Random, "loss", Value::Spread(100.0, 10.0)), Some(30.0));
        assert_eq!(allowance(Rule::Random, "queue mean", Value::Spread(100.0, 1.0)), Some(5.0));
        assert_eq!(allowance(Rule::Random, "loss min", Value::Single(100.0)), Some(15.0));
        assert_eq!(allowance(Rule::Random, "utilisation max", Value::Single(100.0)), Some(5.0));
        assert_eq!(allowance(Rule::Deterministic, "goodput", Value::Single(100.0)), Some(0.5));
    }

    #[test]
    fn only_the_share_is_tolerated_for_another_tcp() {
        assert_eq!(allowance(Rule::OtherTcp, "queue mean", Value::Spread(100.0, 9.0)), Some(5.0));
        assert_eq!(allowance(Rule::OtherTcp, "utilisation", Value::Spread(100.0, 9.0)), Some(0.5));
        assert_eq!(allowance(Rule::OtherTcpOnce, "utilisation", Value::Single(100.0)), Some(10.0));
    }

    #[test]
    fn values_outside_the_tolerance_are_reported_unless_explained() {
        assert_eq!(line(Some(1.1), 1.0, 0.2).verdict(), Verdict::Inside);
        assert_eq!(line(Some(1.3), 1.0, 0.2).verdict(), Verdict::Outside);
        let explained = Line { explained: Some("why".into()), ..line(Some(1.3), 1.0, 0.2) };
        assert_eq!(explained.verdict(), Verdict::Explained);
    }

    #[test]
    fn missing_value_is_outside_the_tolerance() {
        assert_eq!(line(None, 1.0, 0.2).verdict(), Verdict::Outside);
        let partly = [run("ratio", Some(2.0)), run("ratio", None)];
        let lines = compare(&case(Rule::Random, "ratio", Value::Single(2.0)), &partly, &|_, _| true);
        let line = lines.expect("it is measured").remove(0);
        assert_eq!((line.ours.mean, line.ours.without), (Some(2.0), 1));
        assert_eq!(line.verdict(), Verdict::Outside);
    }

    #[test]
    fn values_of_other_seeds_determine_the_verdict() {
        let near = Line { again: Some(Value::Single(1.3)), ..line(Some(1.3), 1.0, 0.2) };
        assert_eq!((near.verdict(), near.is_near_reference()), (Verdict::Inside, false));
        let far = Line { again: Some(Value::Single(2.0)), ..line(Some(1.0), 1.0, 0.2) };
        assert_eq!((far.verdict(), far.is_near_reference()), (Verdict::Outside, true));
    }

    #[test]
    fn reason_that_does_not_hold_explains_nothing() {
        let mut case = case(Rule::Random, "loss", Value::Single(1.0));
        case.reasons.push(Reason {
            case: case.name.clone(),
            quantities: vec!["loss".into()],
            why: "ties".into(),
            shown_by: None,
        });
        let verdict = |holds: bool| {
            let lines = compare(&case, &[run("loss", Some(2.0))], &|_, _| holds);
            lines.expect("it is measured")[0].verdict()
        };
        assert_eq!((verdict(true), verdict(false)), (Verdict::Explained, Verdict::Outside));
    }

    #[test]
    fn unmeasured_quantity_is_an_error() {
        let case = case(Rule::Random, "colour", Value::Single(1.0));
        assert!(matches!(compare(&case, &[Values::new()], &|_, _| true), Err(Failure::Quantity { .. })));
    }
}
