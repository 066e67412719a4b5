//! Claims of a summary. Such a claim holds if all claims that it summarizes hold; these claims belong to another figure or table.

use super::{Judged, ReproError, ReproOutcome, Restated, Settings, Tolerance, Verdict, find, reproduce};
use crate::run::Progress;

/// Reproduces the summarized entries, and judges the claims of the summary by the claims of these entries.
pub(super) fn judge_all(
    summary: &[Restated],
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Vec<Judged>, ReproError> {
    let settings = Settings { alternatives: 0, ..settings.clone() };
    let mut outcomes: Vec<ReproOutcome> = Vec::new();
    for line in summary {
        if outcomes.iter().all(|outcome| outcome.id != line.entry) {
            let entry = find(&line.entry).expect("a test finds what summaries restate");
            outcomes.push(reproduce(entry, &settings, progress)?.outcome);
        }
    }
    let judged = summary.iter().map(|line| {
        let of = outcomes.iter().find(|outcome| outcome.id == line.entry);
        judge(line, of.expect("it was repeated just now"))
    });
    Ok(judged.collect())
}

/// Judges a claim of a summary. The measured value is the share of the summarized claims that hold.
pub(super) fn judge(line: &Restated, outcome: &ReproOutcome) -> Judged {
    let summed_up = |claim: &&Judged| line.claims.iter().any(|start| claim.name.starts_with(start.as_str()));
    let parts: Vec<&Judged> = outcome.claims.iter().filter(summed_up).collect();
    let count = |verdict| parts.iter().filter(|claim| claim.verdict == verdict).count();
    let (held, chosen) = (count(Verdict::Holds), count(Verdict::Chosen));
    let (contradicted, all) = (count(Verdict::Contradicts), parts.len());
    let share = (held + chosen) as f64 / all as f64;
    let tolerance = Tolerance::Between(Some(1.0), None);
    let mut judged = Judged::measured(line.name.clone(), None, tolerance, &[share]);
    judged.verdict = match judged.verdict {
        Verdict::Holds if chosen > 0 => Verdict::Chosen,
        Verdict::Fails if contradicted > 0 && held + chosen + contradicted == all => Verdict::Contradicts,
        verdict => verdict,
    };
    judged.note = format!(
        "\"{}\" is a word of the document. What is measured is the share that holds of the {} comparisons of {} that it sums up",
        line.name,
        parts.len(),
        line.entry
    );
    judged
}
