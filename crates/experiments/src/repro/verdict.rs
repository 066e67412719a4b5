//! Verdicts about claims.

use crate::plot::scale::short;
use crate::stats::Estimate;
use serde::{Serialize, Serializer};

/// The verdict about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The 95 % interval of the measured value is inside the range that was set before the measurement.
    Holds,
    /// The claim holds with a value that the paper leaves open and that was chosen with knowledge of the published numbers; with
    /// another possible value it does not hold, or was not tried.
    Chosen,
    /// The claim fails and cannot hold, because the paper contradicts itself.
    Contradicts,
    /// The interval crosses a limit of the range: the runs do not decide the claim.
    Undecided,
    /// The interval is outside the range.
    Fails,
    /// There is no measurement, because a feature is missing.
    Open,
}

impl Verdict {
    /// All verdicts, the best first.
    pub const ALL: [Verdict; 6] = [
        Verdict::Holds,
        Verdict::Chosen,
        Verdict::Undecided,
        Verdict::Contradicts,
        Verdict::Fails,
        Verdict::Open,
    ];

    /// Verdicts of which the first that a part has is the verdict of the whole.
    pub(super) const WORST: [Verdict; 6] = [
        Verdict::Fails,
        Verdict::Open,
        Verdict::Contradicts,
        Verdict::Undecided,
        Verdict::Chosen,
        Verdict::Holds,
    ];

    /// Returns the verdict as a word.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Chosen => "holds with a choice of ours",
            Verdict::Undecided => "undecided",
            Verdict::Contradicts => "contradicts itself",
            Verdict::Fails => "fails",
            Verdict::Open => "open",
        }
    }
}

/// The range of measured values for which a claim holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// Values whose difference from the published value is at most this share of the published value.
    Relative(f64),
    /// Values between two limits, each optional.
    Between(Option<f64>, Option<f64>),
}

/// Serialized as a number, or as the lowest and the highest value.
impl Serialize for Tolerance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Tolerance::Relative(part) => part.serialize(serializer),
            Tolerance::Between(low, high) => [low, high].serialize(serializer),
        }
    }
}

impl Tolerance {
    /// Describes the tolerance for readers: `±20 %`, `0.7 to 1.4`, `at least 0.6`.
    pub fn words(&self) -> String {
        match *self {
            Tolerance::Relative(part) => format!("\u{b1}{} %", short(part * 100.0).trim_end_matches(".0")),
            Tolerance::Between(Some(low), Some(high)) => format!("{} to {}", short(low), short(high)),
            Tolerance::Between(Some(low), None) => format!("at least {}", short(low)),
            Tolerance::Between(None, Some(high)) => format!("at most {}", short(high)),
            Tolerance::Between(None, None) => "-".into(),
        }
    }

    /// Returns whether the claim holds with the measured value.
    pub fn accepts(&self, published: Option<f64>, measured: f64) -> bool {
        let (low, high) = self.limits(published);
        measured >= low && measured <= high
    }

    /// Returns the smallest and the largest value with which the claim holds.
    pub fn limits(&self, published: Option<f64>) -> (f64, f64) {
        let (low, high) = match (*self, published) {
            (Tolerance::Relative(part), Some(value)) => {
                (Some(value - part * value.abs()), Some(value + part * value.abs()))
            }
            (Tolerance::Relative(_), None) => (None, None),
            (Tolerance::Between(low, high), _) => (low, high),
        };
        (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY))
    }

    /// Returns half the width of the range over its middle; `None` for a range with one limit.
    pub fn half_width(&self, published: Option<f64>) -> Option<f64> {
        let (low, high) = self.limits(published);
        (low.is_finite() && high.is_finite()).then(|| (high - low) / (high + low).abs())
    }

    /// Judges an estimated value: it holds or fails only if the whole interval is on one side.
    fn judge(&self, published: Option<f64>, estimate: &Estimate) -> Verdict {
        let ((least, most), (low, high)) = (estimate.interval(), self.limits(published));
        if least >= low && most <= high {
            Verdict::Holds
        } else if most < low || least > high {
            Verdict::Fails
        } else {
            Verdict::Undecided
        }
    }
}

/// The value of a claim with an alternative of an open value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// Name of the alternative.
    pub name: String,
    /// The mean over its runs.
    pub measured: f64,
    /// Whether the range of the claim includes the mean.
    pub accepted: bool,
}

/// A claim and its measured value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Name of the claim.
    pub name: String,
    /// The published value; `None` if only the shape of a curve is published.
    pub published: Option<f64>,
    /// The mean over all runs.
    pub measured: Option<f64>,
    /// The 95 % confidence interval of the mean. After a single run, both ends equal the mean.
    pub interval: Option<[f64; 2]>,
    /// The range of values for which the claim holds.
    pub tolerance: Tolerance,
    /// The verdict.
    pub verdict: Verdict,
    /// For a claim that fails: its values with the alternatives of open values. Not part of the JSON if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// The points of a statement that is tested at several points. The values of the statement are those of its worst point. Not part
    /// of the JSON if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Judged>,
    /// Note for the reader; not part of the JSON.
    #[serde(skip)]
    pub note: String,
}

impl Judged {
    /// Judges a claim from one measured value per run.
    pub fn measured(name: String, published: Option<f64>, tolerance: Tolerance, values: &[f64]) -> Judged {
        let estimate = Estimate::of(values);
        if estimate.runs == 0 {
            let note = "no run has this value".into();
            return Judged { verdict: Verdict::Fails, note, ..Judged::open(name, published, tolerance) };
        }
        let (low, high) = estimate.interval();
        let (measured, interval) = (Some(estimate.mean), Some([low, high]));
        let (mut verdict, mut note) = (tolerance.judge(published, &estimate), String::new());
        if estimate.runs < values.len() {
            // The other runs may have no value because they are the extreme ones, such as transfers that did not end.
            verdict = Verdict::Undecided;
            note = format!("{} of {} runs have this value", estimate.runs, values.len());
        }
        Judged { measured, interval, verdict, note, ..Judged::open(name, published, tolerance) }
    }

    /// Judges an order, `a` at most or at least `b`, by the differences of the two values in each run. The measured value remains
    /// their ratio.
    pub fn by_differences(self, pairs: &[(f64, f64)]) -> Judged {
        let order = match self.tolerance {
            Tolerance::Between(None, Some(1.0)) => Tolerance::Between(None, Some(0.0)),
            Tolerance::Between(Some(1.0), None) => Tolerance::Between(Some(0.0), None),
            _ => return self,
        };
        let estimate = Estimate::of(&pairs.iter().map(|(a, b)| a - b).collect::<Vec<_>>());
        if estimate.runs < pairs.len() {
            self
        } else {
            Judged { verdict: order.judge(None, &estimate), ..self }
        }
    }

    /// Returns a claim without a measurement.
    pub fn open(name: String, published: Option<f64>, tolerance: Tolerance) -> Judged {
        let (measured, interval, verdict) = (None, None, Verdict::Open);
        let (tried, points, note) = (Vec::new(), Vec::new(), String::new());
        Judged { name, published, measured, interval, tolerance, verdict, tried, points, note }
    }

    /// Returns the points of a statement, or the claim itself.
    pub fn parts(&self) -> &[Judged] {
        if self.points.is_empty() { std::slice::from_ref(self) } else { &self.points }
    }

    /// Returns how far the measured value is beyond the nearest limit, relative to this limit; negative inside the range.
    pub(super) fn excess(&self) -> f64 {
        let (low, high) = self.tolerance.limits(self.published);
        let beyond = |difference: f64, limit: f64| difference / limit.abs().max(f64::MIN_POSITIVE);
        self.measured.map_or(f64::INFINITY, |value| beyond(low - value, low).max(beyond(value - high, high)))
    }
}

/// Outcome of a reproduction, in the form of the JSON output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReproOutcome {
    /// Identifier of the figure or table.
    pub id: String,
    /// The judged claims.
    pub claims: Vec<Judged>,
}

impl ReproOutcome {
    /// Returns the number of claims with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims.iter().filter(|claim| claim.verdict == verdict).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(published: Option<f64>, tolerance: Tolerance, values: &[f64]) -> Verdict {
        Judged::measured("c".into(), published, tolerance, values).verdict
    }

    #[test]
    fn verdict_depends_on_the_interval_of_the_mean() {
        let relative = Tolerance::Relative(0.2);
        assert_eq!(verdict(Some(100.0), relative, &[110.0, 111.0, 110.0]), Verdict::Holds);
        assert_eq!(verdict(Some(100.0), relative, &[119.0, 120.0, 118.0]), Verdict::Undecided);
        assert_eq!(verdict(Some(100.0), relative, &[121.0, 122.0, 121.0]), Verdict::Undecided);
        assert_eq!(verdict(Some(100.0), relative, &[125.0, 126.0, 125.0]), Verdict::Fails);
        assert_eq!(verdict(None, Tolerance::Between(Some(0.7), None), &[0.7]), Verdict::Holds);
        assert_eq!(verdict(None, Tolerance::Between(None, Some(0.7)), &[0.8]), Verdict::Fails);
        assert_eq!(verdict(None, Tolerance::Between(None, Some(0.7)), &[f64::NAN]), Verdict::Fails);
    }

    #[test]
    fn claim_is_undecided_if_a_run_has_no_value() {
        let most = Tolerance::Between(None, Some(1.0));
        for values in [[0.5, f64::NAN, 0.5], [2.0, f64::NAN, 2.0]] {
            let judged = Judged::measured("c".into(), None, most, &values);
            assert_eq!((judged.verdict, judged.measured), (Verdict::Undecided, Some(values[0])));
            assert_eq!(judged.note, "2 of 3 runs have this value");
            let pairs = values.map(|value| (value, 1.0));
            assert_eq!(judged.by_differences(&pairs).verdict, Verdict::Undecided);
        }
    }

    #[test]
    fn orders_are_judged_by_differences_of_the_same_run() {
        let order = |tolerance, pairs: &[(f64, f64)]| {
            let ratios: Vec<f64> = pairs.iter().map(|(a, b)| a / b).collect();
            Judged::measured("c".into(), None, tolerance, &ratios).by_differences(pairs).verdict
        };
        let (most, least) = (Tolerance::Between(None, Some(1.0)), Tolerance::Between(Some(1.0), None));
        // The runs differ by a factor of ten, and `a` is lower by 1 to 2 in each.
        let pairs = [(9.0, 10.0), (98.0, 100.0), (49.0, 50.0), (18.0, 20.0)];
        assert_eq!(order(most, &pairs), Verdict::Holds);
        assert_eq!(order(least, &pairs), Verdict::Fails);
        assert_eq!(order(most, &[(9.0, 10.0), (11.0, 10.0), (10.0, 10.0)]), Verdict::Undecided);
        assert_eq!(
            order(most, &[(10.0, 10.0), (12.0, 12.0)]),
            Verdict::Holds,
            "equal values are at most equal"
        );
        let other = Tolerance::Between(None, Some(1.1));
        assert_eq!(order(other, &[(1.0, 1.0)]), Verdict::Holds, "another limit: by the ratio");
    }

    #[test]
    fn json_has_exactly_the_documented_keys() {
        let mut claims = vec![
            Judged::measured("a".into(), Some(2.0), Tolerance::Relative(0.5), &[2.0, 2.0]),
            Judged::open("b".into(), None, Tolerance::Between(Some(1.0), None)),
        ];
        claims[0].note = "not told".into();
        let json = serde_json::to_value(ReproOutcome { id: "000/x".into(), claims }).expect("it has a form");
        let keys: Vec<&str> =
            json["claims"][0].as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(json["id"], "000/x");
        for key in ["name", "published", "measured", "interval", "tolerance", "verdict"] {
            assert!(keys.contains(&key), "{key}");
        }
        assert_eq!(keys.len(), 6);
        assert_eq!(json["claims"][0]["verdict"], "holds");
        assert_eq!(json["claims"][1]["tolerance"], serde_json::json!([1.0, null]));
        assert_eq!(json["claims"][1]["measured"], serde_json::Value::Null);
    }

    #[test]
    fn tolerances_are_stated_in_words() {
        assert_eq!(Tolerance::Relative(0.2).words(), "\u{b1}20 %");
        assert_eq!(Tolerance::Between(Some(0.7), Some(1.4)).words(), "0.700 to 1.40");
        assert_eq!(Tolerance::Between(Some(0.6), None).words(), "at least 0.600");
    }
}
