//! Statements of a paper that are tested at several points, such as "in all simulation runs". A statement is one claim, with the
//! verdict of its worst point.

use super::{Judged, Verdict};
use crate::scenario::{Claim, Scenario};

/// Joins the points of each statement, which are given with its name. Claims with one `statement` are the same statement, and so are
/// all points of a claim.
pub(super) fn fold(judged: impl IntoIterator<Item = (String, Judged)>) -> Vec<Judged> {
    let mut statements: Vec<(String, Vec<Judged>)> = Vec::new();
    for (name, point) in judged {
        match statements.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push(point),
            None => statements.push((name, vec![point])),
        }
    }
    statements.into_iter().map(|(name, points)| join(name, points)).collect()
}

/// Returns the name of the statement that a claim tests.
pub(super) fn name(claim: &Claim, scenario: &Scenario) -> String {
    let namesakes = scenario.claims().iter().filter(|other| other.name == claim.name).count();
    match &claim.statement {
        Some(statement) => statement.clone(),
        None if namesakes == 1 => claim.name.clone(),
        None => {
            let at: Vec<String> = claim.at.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            format!("{} ({})", claim.name, at.join(", "))
        }
    }
}

/// Makes one claim of the points of a statement: the worst verdict, with the value that is farthest from the range.
fn join(name: String, mut points: Vec<Judged>) -> Judged {
    if points.len() == 1 {
        return points.remove(0);
    }
    let rank = |point: &Judged| Verdict::WORST.iter().position(|verdict| *verdict == point.verdict);
    let worst = points.iter().min_by(|a, b| rank(a).cmp(&rank(b)).then(b.excess().total_cmp(&a.excess())));
    let worst = worst.expect("a statement has a point").clone();
    Judged { name, points, ..worst }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repro::Tolerance;

    #[test]
    fn statement_has_the_verdict_of_its_worst_point() {
        let point = |value: f64| {
            let range = Tolerance::Between(None, Some(10.0));
            Judged::measured(format!("at {value}"), None, range, &[value - 1.0, value, value + 1.0])
        };
        let of =
            |values: &[f64]| join("a statement".into(), values.iter().map(|value| point(*value)).collect());
        let all = of(&[2.0, 20.0, 30.0, 10.0]);
        assert_eq!((all.verdict, all.measured), (Verdict::Fails, Some(30.0)), "the farthest of two failures");
        assert_eq!((all.name.as_str(), all.parts().len()), ("a statement", 4));
        let all = of(&[2.0, 10.0, 3.0]);
        assert_eq!((all.verdict, all.measured), (Verdict::Undecided, Some(10.0)));
        let all = of(&[2.0, 4.0, 3.0]);
        assert_eq!((all.verdict, all.measured), (Verdict::Holds, Some(4.0)), "the nearest to the limit");
        let one = of(&[2.0]);
        assert_eq!((one.name.as_str(), one.parts().len(), one.points.len()), ("at 2", 1, 0));
    }
}
