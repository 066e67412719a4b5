use super::*;
use crate::sim::args::Running;
use std::path::PathBuf;

fn reported(command: SimCommand) -> Result<String, Failure> {
    let (mut out, stop) = (Vec::new(), AtomicBool::new(false));
    run(command, &mut out, &stop)?;
    Ok(String::from_utf8(out).expect("text"))
}

fn new_in(directory: &Path, name: &str, like: Option<&str>, force: bool) -> Result<String, Failure> {
    let out = Some(directory.join(name).with_extension("toml"));
    let template = Some(like.unwrap_or("dumbbell").to_owned());
    reported(SimCommand::New(SimNew { template, out, force, ..SimNew::default() }))
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn short_run(file: PathBuf, out: PathBuf) -> SimRun {
    SimRun {
        file,
        plot: true,
        curves: Vec::new(),
        metrics: Vec::new(),
        pdf: false,
        out: Some(out),
        running: Running { seeds: None, threads: None, max_memory: 1 << 30 },
        until: Vec::new(),
        max_seeds: 1000,
        shard: None,
        pcap: false,
        trace: None,
        flent: None,
        #[cfg(feature = "page")]
        page: None,
        set: vec![("duration".into(), "30 s".into())],
        json: false,
        quiet: true,
    }
}

#[test]
fn new_scenario_passes_the_check_and_is_not_overwritten() {
    let place = place();
    let printed = new_in(place.path(), "lab", None, false).expect("it is written");
    assert!(printed.contains("faircast sim run") && printed.contains("lab.toml"), "{printed}");
    let files = vec![place.path().join("lab.toml")];
    let printed = reported(SimCommand::Check(SimCheck { files, json: false, max_memory: 1 << 30 }))
        .expect("it is good");
    assert!(printed.contains("good; ") && printed.contains("seeds"), "{printed}");
    assert!(new_in(place.path(), "lab", None, false).is_err());
    assert!(new_in(place.path(), "lab", Some("star"), true).is_ok());
    assert!(new_in(place.path(), "other", Some("nosuch"), false).is_err());
}

#[test]
fn new_scenario_without_an_output_file_is_printed() {
    let typed = SimNew { template: Some("star".to_owned()), ..SimNew::default() };
    let text = reported(SimCommand::New(typed)).expect("it is printed");
    assert!(Scenario::parse(&text, "star.toml").is_ok(), "{text}");
}

#[test]
fn selected_curves_are_drawn_and_unknown_flows_are_refused() {
    let place = place();
    new_in(place.path(), "lab", None, false).expect("it is written");
    let out = place.path().join("results");
    let run = |curves: &str| {
        let curves = curves.split(',').map(|curve| curve.parse().expect("any text is a curve")).collect();
        let typed = short_run(place.path().join("lab.toml"), out.clone());
        reported(SimCommand::Run(SimRun { curves, pdf: true, plot: false, ..typed }))
    };
    let refused = run("nosuch:leaf1").expect_err("there is no such flow").to_string();
    assert!(refused.contains("no curve nosuch:leaf1; choose one of multicast, tcp"), "{refused}");
    assert!(!out.exists(), "nothing was run");
    let printed = run("multicast:leaf1,tcp").unwrap_or_else(|failure| panic!("{failure}"));
    assert!(
        printed.contains("curves.svg") && printed.contains("curves.pdf") && !printed.contains("averages.svg"),
        "{printed}"
    );
    assert!(std::fs::read(out.join("curves.pdf")).is_ok_and(|pdf| pdf.starts_with(b"%PDF-")));
    let unknown = run("multicast:leaf5").expect_err("TCP's receiver").to_string();
    assert!(unknown.contains("multicast:leaf4"), "{unknown}");
}

#[test]
fn run_prints_every_group_rate_and_the_names_of_its_files() {
    let place = place();
    new_in(place.path(), "lab", None, false).expect("it is written");
    let out = place.path().join("results");
    let printed = reported(SimCommand::Run(short_run(place.path().join("lab.toml"), out.clone())));
    let printed = printed.unwrap_or_else(|failure| panic!("{failure}"));
    for word in ["multicast", "tcp", "mean rate", "wrote ", "metrics.csv", "averages.svg", "left->right"] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    for name in [
        "metrics.csv",
        "rates.csv",
        "scenario.toml",
        "manifest.json",
        "run.json",
        "averages.svg",
        "queues.svg",
    ] {
        assert!(out.join(name).is_file(), "{name}");
    }
    let stored = std::fs::read_to_string(out.join("scenario.toml")).expect("it was written");
    assert!(stored.contains("30 s"), "what is stored is what was run: {stored}");
}

#[test]
fn packet_capture_without_a_tapped_link_is_refused() {
    let place = place();
    new_in(place.path(), "lab", None, false).expect("it is written");
    let mut run = short_run(place.path().join("lab.toml"), place.path().join("results"));
    run.pcap = true;
    let failure = reported(SimCommand::Run(run)).expect_err("no link is tapped");
    assert!(failure.to_string().contains("taps"), "{failure}");
}

#[test]
fn setting_with_unknown_key_or_invalid_value_is_a_usage_error() {
    let place = place();
    new_in(place.path(), "lab", None, false).expect("it is written");
    let changes = [("flow.nosuch.scheme".to_owned(), "ormcc".to_owned())];
    let error = running::read(&place.path().join("lab.toml"), &changes, 1 << 30).expect_err("no such flow");
    assert!(error.to_string().contains("`flow.nosuch.scheme` does not exist"), "{error}");
    let error = running::read(&place.path().join("lab.toml"), &[("durration".into(), "3".into())], 1 << 30);
    assert!(matches!(error, Err(SimUsage::ScenarioWrong { mistakes: 1, .. })));
}

#[test]
fn shards_of_a_run_are_merged_only_if_all_are_present() {
    let place = place();
    new_in(place.path(), "lab", None, false).expect("it is written");
    let mut parts = Vec::new();
    for part in ["1/2", "2/2"] {
        let out = place.path().join(part.replace('/', "of"));
        let mut run = short_run(place.path().join("lab.toml"), out.clone());
        (run.plot, run.shard) = (false, Some(part.parse().expect("a shard")));
        reported(SimCommand::Run(run)).expect("it runs");
        parts.push(out);
    }
    let out = place.path().join("whole");
    let printed =
        reported(SimCommand::Merge(SimMerge { parts: parts.clone(), out: out.clone() })).expect("they fit");
    assert!(printed.starts_with("3 runs from 2 parts"), "{printed}");
    assert!(out.join("metrics.csv").is_file());
    let alone = reported(SimCommand::Merge(SimMerge { parts: parts[..1].to_vec(), out }));
    assert!(alone.expect_err("a part is missing").to_string().contains("missing"));
}

#[test]
fn trace_of_a_run_explains_its_rate() {
    let place = place();
    new_in(place.path(), "lab", None, false).expect("it is written");
    let (file, trace) = (place.path().join("lab.toml"), place.path().join("lab.sqlog"));
    let typed =
        SimRun { plot: false, trace: Some(trace.clone()), ..short_run(file, place.path().join("out")) };
    reported(SimCommand::Run(typed)).expect("it runs");
    let show = |at: Option<u64>| {
        let typed = crate::args::TraceShow {
            file: trace.clone(),
            at: at.map(std::time::Duration::from_secs),
            session: None,
            out: None,
        };
        let mut out = Vec::new();
        crate::trace::show(&typed, &mut out).expect("it is a trace");
        String::from_utf8(out).expect("text")
    };
    let course = show(None);
    assert!(
        course.contains("multicast (source, ormcc,preset=published): ")
            && course.contains("congestion on the path to leaf"),
        "{course}"
    );
    let moment = show(Some(20));
    for words in [
        "The limit was congestion on the path to leaf",
        "The last cut was ",
        "links lost packets: ",
        "The queue at the bottleneck had ",
    ] {
        assert!(moment.contains(words), "{words}\n{moment}");
    }
}

#[test]
#[cfg(feature = "page")]
fn page_of_results_is_served_when_the_runs_have_finished() {
    use crate::page::tests::{ask_at, browsed};
    let mut printed = Vec::new();
    let live = super::live::Live::of_results(([127, 0, 0, 1], 0).into(), "compare", true, &mut printed);
    let live = live.expect("loopback has free ports");
    let line: serde_json::Value = serde_json::from_slice(&printed).expect("one line");
    let url = line["url"].as_str().expect("an address");
    let at = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).expect("no token");
    let at = at.parse().expect("an address");
    let (head, waiting) = ask_at(at, "GET / HTTP/1.1\r\nHost: localhost");
    assert!(
        waiting.contains("The runs are not finished") && waiting.contains("http-equiv=\"refresh\""),
        "{waiting}"
    );
    assert!(head.contains("default-src 'none'; style-src 'unsafe-inline'"), "{head}");
    let html = faircast_experiments::report::html::page("Results", "<h1>ORMCC &lt;b&gt;</h1>");
    live.show_results(html.clone(), &AtomicBool::new(false));
    assert_eq!(ask_at(at, "GET / HTTP/1.1\r\nHost: localhost").1, html);
    assert!(ask_at(at, "GET /state HTTP/1.1\r\nHost: localhost").0.starts_with("http/1.1 404"));
    assert!(ask_at(at, "GET / HTTP/1.1\r\nHost: attacker.example").0.starts_with("http/1.1 403"));
    let Some(dom) = browsed(url) else { return };
    assert!(dom.contains("<h1>ORMCC &lt;b&gt;</h1>"), "{dom}");
}

/// The page of a simulation in a browser, from the server and as a file: its numbers equal those of the run.
#[test]
#[cfg(feature = "page")]
fn browser_shows_flows_receivers_and_links_of_a_simulation() {
    use crate::page::tests::browsed;
    use faircast_experiments::scenario::Scenario;
    use serde_json::{Value, json};
    let text = scenario::template("dumbbell").expect("it exists");
    let scenario = Scenario::parse(text, "dumbbell.toml").expect("it is good");
    let mut printed = Vec::new();
    let live = super::live::Live::open(([127, 0, 0, 1], 0).into(), true, &mut printed);
    let live = live.expect("loopback has free ports");
    live.show(&scenario, &AtomicBool::new(false)).expect("it runs");
    let (name, file) = live.file();
    let file = String::from_utf8(file).expect("it is text");
    assert!(name == "page.html" && !file.contains("src=") && !file.contains("{{state}}"), "{file}");
    let (_, state) = file.split_once("id=\"state\">").expect("the state");
    let state: Value = serde_json::from_str(state.split_once("</script>").expect("its end").0).expect("JSON");
    let (session, network) = (&state["sessions"][0], &state["network"]);
    let all_steps = network["steps"].as_array().expect("steps");
    let last = all_steps.last().expect("a step");
    assert_eq!(
        (all_steps.len(), &last["to"], &network["about"]["seconds"]),
        (100, &json!(100.0), &json!(100.0))
    );
    let cuts = |point: &Value| point["cuts"].as_array().map_or(0, Vec::len) as u64;
    let points = session["points"].as_array().expect("points");
    assert_eq!(json!(points.iter().map(cuts).sum::<u64>()), session["progress"]["counts"]["cuts"]);
    let (lost, links) = (|link: &Value| link["all_lost"].as_u64().unwrap_or(0), &last["links"]);
    let lost = links.as_array().expect("links").iter().map(lost).max().expect("a link");
    assert!(lost > 20 && last["groups"][1]["rate_bps"].as_f64().is_some_and(|rate| rate > 1e5), "{last}");

    let scratch = tempfile::tempdir().expect("a temporary directory");
    let path = scratch.path().join(name);
    std::fs::write(&path, &file).expect("the directory is ours");
    let served: Value = serde_json::from_slice(&printed).expect("one line");
    for address in [served["url"].as_str().expect("an address"), &format!("file://{}", path.display())] {
        let Some(dom) = browsed(address) else { return };
        let shown = |text: &str| assert!(dom.contains(text), "{address}: {text}: {dom}");
        shown(" limits the rate of multicast: ");
        shown("Multicast beside one TCP flow: 1:40 of 1:40 simulated, seed 1;");
        let (progress, counts) = (&session["progress"], &session["progress"]["counts"]);
        for (name, of) in
            [("rate_bps", progress), ("allowed_bps", progress), ("bytes", progress), ("cuts", counts)]
        {
            let value = of[name].as_f64().expect("a number");
            shown(&format!("data-name=\"{name}\" data-value=\"{value}\""));
        }
        let most = format!(
            "data-value=\"left-&gt;right\">left-&gt;right</th><td data-name=\"all_lost\" data-value=\"{lost}\""
        );
        shown(&most);
        for receiver in session["receivers"].as_array().expect("receivers") {
            shown(&format!("aria-label=\"{}: ", receiver["host"].as_str().expect("a name")));
        }
        assert_eq!(dom.matches("<canvas").count(), 3, "rate, flows and queues are drawn: {dom}");
    }
}
