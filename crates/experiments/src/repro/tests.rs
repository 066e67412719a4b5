use super::*;
use crate::report::page;
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
        let read = |settings| embedded.scenario(settings).expect("it was read just now");
        let (full, quick) = (read(&Settings::default()), read(&quick()));
        assert!(quick.duration(0) < full.duration(0) / 5.0, "{}", entry.id);
        assert!(full.source().starts_with("paper 0"), "{}", entry.id);
        assert!(
            full.about().contains("verything here is ours") || !full.choices().is_empty(),
            "{} says what is a guess",
            entry.id
        );
    }
}

#[test]
fn every_figure_and_table_with_results_has_a_claim() {
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
        let scenario =
            entry.scenario.as_ref().map(|embedded| embedded.scenario(&quick()).expect("it is read"));
        let claims = scenario.map_or(0, |scenario| scenario.claims().len());
        let elsewhere = entry.open.len() + entry.restates.len();
        assert!(claims + elsewhere > 0 || entry.calculation.is_some(), "{}", entry.id);
        assert_eq!(entries().filter(|other| other.id == entry.id).count(), 1, "{}", entry.id);
        assert!(entry.id.starts_with(&entry.document().prefix), "{}", entry.id);
    }
    assert_eq!(find("000/fig-9.9").expect_err("there is none").0, "000/fig-9.9");
}

#[test]
fn every_entry_runs_and_measures_all_its_claims() {
    let mut all = Vec::new();
    for entry in entries() {
        let mut done = reproduce(entry, &quick(), &Silent).expect("it runs");
        let measured = done.outcome.claims.len() - entry.open.len();
        for claim in &done.outcome.claims[..measured] {
            assert!(claim.measured.is_some_and(f64::is_finite), "{}: {} has no value", entry.id, claim.name);
        }
        assert!(done.outcome.claims[measured..].iter().all(|claim| claim.verdict == Verdict::Open));
        for (name, figure) in &done.figures {
            let svg = figure.svg();
            // The dots of a legend have another radius than the dots of a series.
            let drawn = ["<path", "<rect x", r#"r="3.6""#].iter().any(|mark| svg.contains(mark));
            assert!(drawn, "{} {name} is empty", entry.id);
            assert!(!svg.contains("NaN"), "{} {name}", entry.id);
        }
        if let Some(run) = &mut done.run {
            run.results.tables.clear();
        }
        all.push(done);
    }
    let (overview, pages) = (page::overview(&all, "Report"), page::documents(&all));
    let markdown = page::markdown(&all, "Report");
    for done in &all {
        let html = format!("{}.html", done.entry.document().prefix);
        let page = |name: &str| &pages.iter().find(|page| page.0 == name).expect("the page exists").1;
        assert!(overview.contains(&format!("href=\"{html}\"")), "{html}");
        let path = page::entry_path(&done.entry.id);
        let text = page(&path);
        assert!(page(&html).contains(&format!("<a href=\"{path}\">{}</a>", done.entry.id)), "{path}");
        assert!(text.contains(&done.entry.id) && markdown.contains(&done.entry.id), "{}", done.entry.id);
        for (name, _) in &done.figures {
            let path = page::figure_path(&done.entry.id, name);
            assert!(text.contains("<svg") && markdown.contains(&path), "{path}");
        }
    }
}

#[test]
fn reproduction_does_not_depend_on_the_number_of_threads() {
    let entry = find("000/fig-3.10").expect("it exists");
    let settings = |threads| Settings {
        seeds: Some(vec![1, 2]),
        threads: NonZeroUsize::new(threads),
        pace: Pace::Quick,
        ..Settings::default()
    };
    let one = reproduce(entry, &settings(1), &Silent).expect("it runs");
    let two = reproduce(entry, &settings(2), &Silent).expect("it runs");
    assert_eq!(one.outcome, two.outcome);
    let svg = |done: &Reproduction| done.figures[0].1.svg();
    assert_eq!(svg(&one), svg(&two));
}

#[test]
fn every_alternative_is_a_valid_scenario_that_changes_something() {
    for entry in entries() {
        let Some(embedded) = &entry.scenario else { continue };
        let scenario = embedded.scenario(&Settings::default()).expect("it is read");
        for alternative in scenario.choices().iter().flat_map(|choice| &choice.alternatives) {
            let settings = Settings { set: alternative.set.clone(), ..Settings::default() };
            let other = embedded.scenario(&settings);
            let other = other.unwrap_or_else(|error| panic!("{}, {}: {error}", entry.id, alternative.name));
            assert!(
                (0..other.points().len())
                    .any(|point| other.fingerprint(point) != scenario.fingerprint(point)),
                "{}: {} changes nothing",
                entry.id,
                alternative.name
            );
        }
    }
}

/// A bottleneck with a session. One claim fails, one claim holds, and one value is left open.
const OPEN: &str = r#"
title = "t"
duration = "20 s"
warmup = "5 s"
seeds = 2

[topology]
kind = "dumbbell"
leaves = 1
bottleneck = { rate = "1 Mbit/s" }

[[flow]]
name = "m"
kind = "session"
scheme = "ormcc"
from = "src1"
to = "leaf1"

[[claim]]
name = "a rate"
of = "m.rate"
low = 500000

[[claim]]
name = "a rate that depends"
of = "m.rate"
low = 500000

[[claim]]
name = "more than there is"
of = "m.rate"
low = 2000000
contradicts = "a link of 1 Mbit/s carries no 2 Mbit/s"

[[claim]]
name = "much more than there is"
of = "m.rate"
low = 3000000

[[chosen]]
what = "the link's delay"
value = "20 ms"
when = "after"
why = "Nobody knows."
claims = ["a rate that", "much more"]
alternative = [
    { name = "a slow link", set = { "topology.bottleneck.rate" = "300 kbit/s" } },
    { name = "a list", set = { "topology.bottleneck.rate" = ["200 kbit/s"] } },
]
"#;

#[test]
fn verdicts_distinguish_choices_and_contradictions() {
    let scenario = Scenario::parse(OPEN, "open.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
    let verdicts: Vec<Verdict> = judge(&scenario, &results).iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [Verdict::Holds, Verdict::Chosen, Verdict::Contradicts, Verdict::Fails]);
}

#[test]
fn alternatives_are_run_and_listed_with_the_main_run() {
    let embedded = Embedded { file: "open.toml", text: OPEN, quick: Vec::new(), figures: |_, _| Vec::new() };
    let settings = Settings { alternatives: 1, ..Settings::default() };
    let scenario = embedded.scenario(&settings).expect("it is read");
    let others = alternatives::run_all(&embedded, &scenario, &settings, &Silent).expect("it runs");
    assert_eq!((others.len(), others[0].seeds, others[0].name.as_str()), (2, 1, "a slow link"));
    assert!(others[0].claims[0].measured.expect("it was run") < 300_000.0);
    assert!(others[1].claims[0].measured.expect("it was run") < 200_000.0);
}

#[test]
fn claim_that_holds_with_all_alternatives_is_not_a_choice() {
    let settings = Settings { alternatives: 1, ..Settings::default() };
    let verdict = |text: &'static str| {
        let embedded = Embedded { file: "open.toml", text, quick: Vec::new(), figures: |_, _| Vec::new() };
        let scenario = embedded.scenario(&settings).expect("it is read");
        let others = alternatives::run_all(&embedded, &scenario, &settings, &Silent).expect("it runs");
        let results = run(&scenario, &settings.options(), &Silent).expect("it runs");
        let mut claims = judge(&scenario, &results);
        super::confirm(&mut claims, &scenario, &others);
        claims[1].verdict
    };
    assert_eq!(verdict(OPEN), Verdict::Chosen, "it fails with slow links");
    let faster = OPEN.replace("300 kbit/s", "800 kbit/s").replace("200 kbit/s", "900 kbit/s");
    assert_eq!(verdict(faster.leak()), Verdict::Holds);
}

#[test]
fn settings_change_existing_keys_and_refuse_unknown_keys() {
    let entry = find("000/fig-3.10").expect("it exists");
    let embedded = entry.scenario.as_ref().expect("it is simulated");
    let set = |key: &str, value: &str| {
        let settings = Settings { set: vec![(key.into(), value.into())], ..Settings::default() };
        embedded.scenario(&settings)
    };
    assert!((set("duration", "107 s").expect("it is there").duration(0) - 107.0).abs() < 1e-9);
    assert!(matches!(set("flow.nobody.count", "7"), Err(ReproError::Edit(_))));
    assert!(matches!(set("duration", "soon"), Err(ReproError::Scenario(_))));
}

#[test]
fn finished_runs_are_stored_and_only_changed_runs_are_repeated() {
    let place = tempfile::tempdir().expect("a directory");
    let kept = || Some(StoredResults::at(place.path()).expect("it can be written"));
    let of = |text: &str| Scenario::parse(text, "open.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let with = |scenario: &Scenario| {
        run(scenario, &RunOptions { kept: kept(), ..RunOptions::default() }, &Silent).expect("it runs")
    };
    let files = || {
        let code = place.path().join(crate::run::stored_results::CODE);
        let mut all: Vec<_> =
            std::fs::read_dir(code).expect("there").map(|file| file.expect("one").path()).collect();
        all.sort();
        all
    };
    let first = with(&of(OPEN));
    let is_same = |a: &Results, b: &Results| (&a.metrics, a.totals) == (&b.metrics, b.totals);
    let fresh = run(&of(OPEN), &RunOptions::default(), &Silent).expect("it runs");
    assert!(is_same(&first, &fresh));
    assert_eq!(files().len(), 2, "one for each seed");
    // An invalid file is rejected; a complete file is used unchanged.
    let [broken, whole] = &files()[..] else { panic!("two files") };
    let (a, b) = (std::fs::read(broken).expect("a file"), std::fs::read(whole).expect("a file"));
    std::fs::write(broken, &a[..a.len() / 2]).expect("written");
    std::fs::write(whole, &a).expect("written");
    let again = with(&of(&OPEN.replace("low = 3000000", "low = 4000000")));
    assert!(!is_same(&first, &again), "the run of the second seed was taken from its file");
    assert!(std::fs::read(broken).expect("a file") == a, "what was broken was run again");
    std::fs::write(whole, &b).expect("written");
    let last = with(&of(OPEN));
    assert!(is_same(&last, &first));
    assert!(
        last.tables
            .iter()
            .map(crate::table::Table::rows)
            .eq(first.tables.iter().map(crate::table::Table::rows))
    );
    // The results for another network are stored in different files.
    with(&of(&OPEN.replace("leaves = 1", "leaves = 2")));
    assert_eq!(files().len(), 4);
    std::fs::create_dir(place.path().join("0123456789abcdef")).expect("made");
    StoredResults::at(place.path()).and_then(|kept| kept.forget_others()).expect("it can be written");
    assert_eq!(std::fs::read_dir(place.path()).expect("there").count(), 1);
}

#[test]
fn chapter_of_an_entry_follows_from_its_id() {
    let chapter = |id| find(id).expect("it exists").chapter();
    assert_eq!(chapter("000/fig-2.10"), "chapter 2");
    assert_eq!(chapter("000/sec-3.3.5"), "chapter 3");
    assert_eq!(chapter("000/fig-D.4"), "appendix D");
    assert_eq!((chapter("004/sec-4"), chapter("faircast/drop-to-zero")), (String::new(), String::new()));
}

#[test]
fn reports_contain_published_values_measured_values_and_choices() {
    let entry = find("000/fig-3.10").expect("it exists");
    let mut done = reproduce(entry, &quick(), &Silent).expect("it runs");
    let scenario = Scenario::parse(OPEN, "open.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = run(&scenario, &RunOptions::default(), &Silent).expect("it runs");
    done.outcome.claims = judge(&scenario, &results);
    let claims = done.outcome.claims.clone();
    done.alternatives = vec![Alternative { choice: 0, name: "a slow link".into(), claims, seeds: 1 }];
    list_tries(&mut done.outcome.claims, &scenario, &done.alternatives);
    done.run = Some(Run { scenario, results });
    let all = [done];
    let pages = page::documents(&all);
    assert_eq!(
        pages.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["000.html", "000-fig-3.10/index.html"]
    );
    for text in [page::markdown(&all, "Report"), pages[0].1.clone(), page::overview(&all, "Report")] {
        for words in ["chapter 3", "more than there is"] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
    let markdown = page::markdown(&all, "Report");
    for words in [
        "**Published result.**",
        "**Runs.**",
        "1 holds, 1 holds with a choice of ours, 1 contradicts itself, 1 fails",
        " Other settings: 1, with ",
        "**Our choice.** The link's delay: 20 ms (chosen after",
        "seeds; each alternative: 1.",
        "| claim | accepted | as run | a slow link |",
        "Contradiction: a link of 1 Mbit/s carries no 2 Mbit/s.",
        "| paper 000 | chapter 3 | 4 | 1 | 1 | 0 | 1 | 1 | 0 |",
    ] {
        assert!(markdown.contains(words), "no {words:?} in {markdown}");
    }
}

/// `bench/results/papers.json` has the measured claims.
#[test]
fn figures_with_failing_claims_state_what_was_tried() {
    let measured = include_str!("../../../../bench/results/papers.json");
    let all: Vec<serde_json::Value> = serde_json::from_str(measured).expect("`bench/papers` wrote it");
    for outcome in all {
        let claims = outcome["claims"].as_array().expect("a list");
        let entry = find(outcome["id"].as_str().expect("an id")).expect("it exists");
        let is_explained = !entry.known.is_empty() || claims.iter().all(|claim| claim["verdict"] != "fails");
        assert!(is_explained, "{} has failing claims without `known`", entry.id);
    }
}

#[test]
fn summaries_refer_to_existing_claims() {
    for entry in entries() {
        for line in &entry.restates {
            let of = find(&line.entry).expect("it exists");
            assert!(of.restates.is_empty(), "{} sums up a summary", line.name);
            let scenario = of.scenario.as_ref().expect("simulated").scenario(&quick()).expect("it is read");
            for start in &line.claims {
                assert!(
                    scenario.claims().iter().any(|claim| claim.name.starts_with(start.as_str())),
                    "{start}"
                );
            }
        }
    }
}

#[test]
fn summary_claim_holds_if_all_summarized_claims_hold() {
    let line = Restated { name: "better".into(), entry: "x".into(), claims: vec!["a".into(), "b".into()] };
    let of = |verdicts: [Verdict; 3]| {
        let claims = ["a 1", "b", "c"].into_iter().zip(verdicts).map(|(name, verdict)| {
            let claim = Judged::measured(name.into(), None, Tolerance::Between(None, None), &[1.0]);
            Judged { verdict, ..claim }
        });
        let judged = summary_claims::judge(&line, &ReproOutcome { id: "x".into(), claims: claims.collect() });
        (judged.verdict, judged.measured.expect("two claims"))
    };
    use Verdict::{Chosen, Contradicts, Fails, Holds, Undecided};
    assert_eq!(of([Holds, Holds, Fails]), (Holds, 1.0));
    assert_eq!(of([Holds, Chosen, Fails]), (Chosen, 1.0));
    assert_eq!(of([Fails, Chosen, Holds]), (Fails, 0.5));
    assert_eq!(of([Chosen, Contradicts, Holds]), (Contradicts, 0.5));
    assert_eq!(of([Fails, Contradicts, Holds]), (Fails, 0.0));
    assert_eq!(of([Undecided, Chosen, Fails]), (Undecided, 0.5));
    let none = summary_claims::judge(&line, &ReproOutcome { id: "x".into(), claims: Vec::new() });
    assert_eq!(none.verdict, Fails, "nothing was summed up");
}
