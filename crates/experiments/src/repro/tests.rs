use super::*;
use crate::run::Silent;

fn quick() -> Settings {
    Settings { seeds: Some(vec![1]), pace: Pace::Quick, ..Settings::default() }
}

#[test]
fn every_embedded_scenario_can_be_read_in_full_and_quick_form() {
    for entry in entries() {
        let Some(embedded) = &entry.scenario else { continue };
        if let Err(wrong) = Scenario::parse(embedded.text, embedded.file) {
            panic!("{}: {wrong}", entry.id);
        }
        let (full, quick) = (embedded.scenario(&Settings::default()), embedded.scenario(&quick()));
        assert!(quick.duration(0) < full.duration(0) / 5.0, "{}", entry.id);
        assert!(full.source().starts_with("seed 0"), "{}", entry.id);
        assert!(
            full.about().contains("Ours") || full.about().contains("all but"),
            "{} says what is a guess",
            entry.id
        );
    }
}

#[test]
fn every_figure_and_table_with_results_has_an_entry_that_claims_something() {
    for name in [
        "2.5", "2.6", "2.7", "2.10", "2.12", "2.13", "2.14", "2.15", "2.16", "2.18", "2.19", "5.8", "5.10",
        "5.12",
    ] {
        assert!(find(&format!("000/fig-{name}")).is_ok(), "{name}");
    }
    for name in ["fig-5.14", "table-5.1", "fig-5.15", "fig-D.3", "fig-D.4", "table-D.1", "fig-D.6", "fig-D.8"]
    {
        assert!(find(&format!("000/{name}")).is_ok(), "{name}");
    }
    for name in
        ["fig-3.3", "fig-3.4", "fig-3.5", "fig-3.6", "fig-3.7", "fig-3.8", "fig-3.9", "fig-3.10", "fig-3.11"]
    {
        assert!(find(&format!("000/{name}")).is_ok(), "{name}");
    }
    for name in
        ["fig-3.12", "fig-3.13", "fig-3.14", "fig-3.15", "fig-3.16", "table-3.1", "table-3.2", "table-3.3"]
    {
        assert!(find(&format!("000/{name}")).is_ok(), "{name}");
    }
    for name in ["fig-4.5", "fig-4.7", "fig-4.9", "fig-4.11", "fig-4.13", "table-4.2", "table-4.3"] {
        assert!(find(&format!("000/{name}")).is_ok(), "{name}");
    }
    for entry in entries() {
        let claims = entry.scenario.as_ref().map_or(0, |embedded| embedded.scenario(&quick()).claims().len());
        assert!(claims + entry.open.len() > 0 || entry.calculation.is_some(), "{}", entry.id);
        assert_eq!(entries().filter(|other| other.id == entry.id).count(), 1, "{}", entry.id);
    }
    assert_eq!(find("000/fig-9.9").expect_err("there is none").0, "000/fig-9.9");
}

#[test]
fn every_entry_runs_quickly_and_all_its_claims_have_values() {
    for entry in entries() {
        let done = reproduce(entry, &quick(), &Silent).expect("it runs");
        let measured = done.outcome.claims.len() - entry.open.len();
        for claim in &done.outcome.claims[..measured] {
            assert!(claim.measured.is_some_and(f64::is_finite), "{}: {} has no value", entry.id, claim.name);
        }
        assert!(done.outcome.claims[measured..].iter().all(|claim| claim.verdict == Verdict::Open));
        for (name, figure) in &done.figures {
            let svg = figure.svg();
            assert!(svg.contains("<path") || svg.contains("<rect x"), "{} {name} is empty", entry.id);
            assert!(!svg.contains("NaN"), "{} {name}", entry.id);
        }
    }
}

#[test]
fn a_reproduction_is_the_same_each_time_and_with_any_number_of_threads() {
    let entry = find("000/fig-3.10").expect("it exists");
    let settings = |threads| Settings {
        seeds: Some(vec![1, 2]),
        threads: NonZeroUsize::new(threads),
        pace: Pace::Quick,
    };
    let one = reproduce(entry, &settings(1), &Silent).expect("it runs");
    let two = reproduce(entry, &settings(2), &Silent).expect("it runs");
    assert_eq!(one.outcome, two.outcome);
    let svg = |done: &Reproduction| done.figures[0].1.svg();
    assert_eq!(svg(&one), svg(&two));
}
