//! Tests of the program: simulations, reproductions, comparisons.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the program in a directory. Returns exit code, standard output and standard error.
fn ended(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_faircast"))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    let Output { status, stdout, stderr } = output;
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code().expect("no signal"), text(stdout), text(stderr))
}

/// The option that serves the page of the results, which ends at once without a terminal.
const PAGE: &[&str] = if cfg!(feature = "page") { &["--page"] } else { &[] };

/// Returns a directory with a scenario `lab.toml`.
fn lab() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (code, out, err) = ended(place.path(), &["sim", "new", "dumbbell", "--out", "lab.toml"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    place
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

#[test]
fn new_scenario_runs_without_options_and_prints_its_files() {
    let place = lab();
    let (code, out, err) = ended(place.path(), &["sim", "run", "lab.toml", "-q"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("multicast") && out.contains("mean rate") && out.contains("into lab-results:"),
        "{out}"
    );
    assert!(place.path().join("lab-results/metrics.csv").is_file());
    assert!(!place.path().join("lab-results/averages.svg").exists(), "figures only with --plot");
}

#[test]
fn same_run_gives_equal_files_with_one_and_two_threads() {
    let place = lab();
    for (out, threads) in [("a", "1"), ("b", "2")] {
        let run = ["sim", "run", "lab.toml", "-q", "--plot", "--set", "duration=30 s", "--threads", threads];
        assert_eq!(ended(place.path(), &[&run[..], &["--out", out]].concat()).0, 0);
    }
    for name in ["averages.svg", "rates.svg", "queues.svg", "metrics.csv", "manifest.json"] {
        let read = |side: &str| std::fs::read(place.path().join(side).join(name)).expect("it was written");
        assert!(read("a") == read("b"), "{name} differs");
    }
}

/// Returns the names of all files in a directory.
fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.map(|it| it.file_name().into_string());
    let mut names: Vec<String> =
        entries.map(|entry| name(entry).expect("an entry").expect("a name in UTF-8")).collect();
    names.sort_unstable();
    names
}

#[test]
fn output_directory_has_only_the_files_of_the_last_run() {
    let place = lab();
    let run = ["sim", "run", "lab.toml", "-q", "--out", "d", "--set", "duration=21 s"];
    let end = |arguments: &[&str]| {
        let (code, _, err) = ended(place.path(), arguments);
        assert!(code < 2, "{err}"); // claims may fail in a short run
    };
    let page: &[&str] = if cfg!(feature = "page") { &["--page"] } else { &[] };
    end(&[&run[..], page, &["--plot", "--set", "probe.events=on"]].concat());
    let directory = place.path().join("d");
    std::fs::write(directory.join("notes.txt"), "mine").expect("it is ours");
    assert!(
        files(&directory).contains(&"rates.svg".into()) && files(&directory).contains(&"events.csv".into())
    );
    assert_eq!(files(&directory).contains(&"page.html".into()), cfg!(feature = "page"));
    end(&run);
    let left = files(&directory);
    assert!(left.contains(&"notes.txt".into()) && left.contains(&"metrics.csv".into()), "{left:?}");
    assert!(
        !left.iter().any(|name| name.ends_with(".svg") || name == "events.csv" || name == "page.html"),
        "{left:?}"
    );

    let compare = ["compare", "--scenario", "lab.toml", "--out", "c", "--seeds", "1", "-q", "--schemes"];
    end(&[&compare[..], &["ormcc,tcp-reno"]].concat());
    end(&[&compare[..], &["tfrc"]].concat());
    let compared = files(&place.path().join("c"));
    assert_eq!(compared, ["1-tfrc", "comparison.json", "comparison.svg", "index.html", "runs"]);
}

#[test]
fn json_output_reports_metrics_claims_and_a_done_line() {
    let place = lab();
    let run = ["sim", "run", "lab.toml", "-q", "--json", "--set", "duration=30 s"];
    let (code, out, _) =
        ended(place.path(), &[&run[..], &["--set", "claim.1.low=0.1", "--set", "claim.1.high=10"]].concat());
    let all = lines(&out);
    assert_eq!(code, 0, "{out}");
    let rate = all.iter().find(|line| line["name"] == "multicast.rate").expect("it is measured");
    assert!(rate["event"] == "metric" && rate["mean"].as_f64() > Some(0.0) && rate["runs"] == 3, "{rate}");
    assert!(all.iter().any(|line| line["event"] == "claim" && line["verdict"] == "holds"), "{out}");
    let done = all.last().expect("a done line");
    assert!(done["event"] == "done" && done["ok"] == true && done["runs"] == 3, "{done}");
}

#[test]
fn failed_claim_causes_exit_code_1() {
    let place = lab();
    let run = ["sim", "run", "lab.toml", "-q", "--set", "duration=30 s", "--set", "claim.1.low=50"];
    let (code, out, err) = ended(place.path(), &[&run[..], &["--set", "claim.1.high=60"]].concat());
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("fails") && err.contains("1 of 1 claim fails"), "{out}{err}");
}

#[test]
fn scenario_mistake_is_shown_with_its_line_and_a_suggestion() {
    let place = lab();
    let path = place.path().join("lab.toml");
    let text = std::fs::read_to_string(&path).expect("it was written");
    std::fs::write(&path, text.replace("warmup", "warmpu")).expect("it is ours");
    let (code, out, err) = ended(place.path(), &["sim", "run", "lab.toml"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    for words in ["`warmpu`", "did you mean", "lab.toml:", "error: lab.toml cannot be run: 1 mistake"] {
        assert!(err.contains(words), "{words}: {err}");
    }
    let (code, out, _) = ended(place.path(), &["sim", "check", "lab.toml", "--json"]);
    let mistakes = lines(&out);
    assert_eq!((code, mistakes.len()), (1, 1));
    assert!(mistakes[0]["line"].as_u64() > Some(1) && mistakes[0]["file"] == "lab.toml", "{out}");
}

#[test]
fn invalid_arguments_cause_exit_code_2_and_a_hint() {
    let place = lab();
    for (arguments, words) in [
        (vec!["sim", "run", "nosuch.toml"], "cannot read the scenario nosuch.toml"),
        (vec!["sim", "new", "dumbbell", "--out", "lab.toml"], "exists"),
        (vec!["sim", "new", "nosuch"], "choose one of dumbbell"),
        (vec!["sim", "run", "lab.toml", "--seeds", "0"], "not a number of seeds"),
        (vec!["sim", "run", "lab.toml", "--shard", "3/2"], "a shard is written as"),
        (vec!["repro", "run", "000/fig-9.9"], "repro list"),
        (vec!["sim", "new", "dumbbell", "--session", "x"], "cannot be used with"),
        (vec!["sim", "new", "--from-trace", "lab.toml"], "lab.toml is not a trace"),
        (vec!["repro", "verify", "000/fig-2.19", "000/fig-9"], "repro list"),
        (vec!["sim", "run", "lab.toml", "--metrics", "tcp.rtt"], "error: lab.toml cannot be run: 1 mistake"),
        (vec!["sim", "run", "lab.toml", "--set", "duration=60"], "error: lab.toml cannot be run: 1 mistake"),
        (vec!["compare", "--schemes", "nosuch", "--scenario", "lab.toml"], "no scheme or protocol `nosuch`"),
        (
            vec!["compare", "--schemes", "ormcc", "--scenario", "lab.toml", "--flow", "x"],
            "its flows are: multicast",
        ),
    ] {
        let (code, out, err) = ended(place.path(), &arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
}

#[test]
fn printed_scenario_schema_is_valid_json() {
    let place = lab();
    let (code, out, _) = ended(place.path(), &["sim", "schema"]);
    let schema: Value = serde_json::from_str(&out).expect("JSON");
    assert!(code == 0 && schema["properties"]["topology"].is_object());
}

#[test]
fn reproduction_reports_its_claims_as_one_json_object() {
    let place = lab();
    let run = ["repro", "run", "000/fig-3.10", "--quick", "--json", "-q", "--out", "fig"];
    let (code, out, err) = ended(place.path(), &[&run[..], PAGE].concat());
    assert_eq!(code, 0, "a quick run decides nothing: {err}");
    let mut all = lines(&out);
    let served = all.extract_if(.., |line| line["event"] == "page");
    assert_eq!(served.count(), PAGE.len(), "{out}");
    assert_eq!((all.len(), &all[0]["id"]), (1, &Value::from("000/fig-3.10")));
    let claims = all[0]["claims"].as_array().expect("a list");
    let points = claims[0]["points"].as_array().expect("the long session has a rate with each scheme");
    assert_eq!(points.len(), 3);
    for claim in claims.iter().filter(|claim| claim["points"].is_null()).chain(points) {
        let mut keys: Vec<&String> = claim.as_object().expect("an object").keys().collect();
        keys.sort();
        assert_eq!(keys, ["interval", "measured", "name", "published", "tolerance", "verdict"]);
        assert!(
            ["holds", "chosen", "undecided", "contradicts", "fails", "open"]
                .contains(&claim["verdict"].as_str().expect("a word"))
        );
        let open = claim["verdict"] == "open";
        assert!(open == claim["measured"].is_null() && open == claim["interval"].is_null(), "{claim}");
    }
    assert!(place.path().join("fig/averages.svg").is_file() && place.path().join("fig/index.html").is_file());
}

#[test]
fn selected_reproductions_have_pages_by_paper_and_figure() {
    let place = lab();
    let ids = ["000/fig-3.4", "000/table-3", "004/fig-7"];
    let verify = ["--quick", "-q", "--seeds", "1", "--out", "report"];
    let (code, out, err) = ended(place.path(), &[&["repro", "verify"], &ids[..], &verify].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("000/fig-3.4") && out.contains("not run") && out.contains("index.html"), "{out}");
    let read =
        |name: &str| std::fs::read_to_string(place.path().join("report").join(name)).expect("it was written");
    let (overview, paper, markdown) = (read("index.html"), read("000.html"), read("report.md"));
    for words in ["000/table-3.2", "Claims that fail", "href=\"000-fig-3.4/index.html\"", "000/table-3.3"] {
        assert!(paper.contains(words), "{words}");
    }
    let table = read("000-table-3.2/index.html");
    for words in ["000/table-3.2", "Published result.", "415.4 kbit/s", "href=\"../000.html\""] {
        assert!(table.contains(words), "{words}");
    }
    for words in ["000/table-3.2", "Claims that fail", "Published result.", "415.4 kbit/s", "000/table-3.3"] {
        assert!(markdown.contains(words), "{words}");
    }
    for words in ["chapter 3", "href=\"000.html\"", "href=\"004.html\"", "Claims that fail"] {
        assert!(overview.contains(words), "{words}");
    }
    let figure = read("000-fig-3.4/index.html");
    assert!(figure.contains("<svg") && !figure.contains("http://localhost"));
    for line in markdown.lines().filter(|line| line.starts_with("![")) {
        let path = line.rsplit_once('(').and_then(|(_, path)| path.strip_suffix(')')).expect("a link");
        assert!(place.path().join("report").join(path).is_file(), "{path}");
    }
}

#[test]
fn list_of_reproductions_is_printed_as_text_and_json() {
    let place = lab();
    let (code, out, _) = ended(place.path(), &["repro", "list", "--json"]);
    let all = lines(&out);
    assert!(code == 0 && all.iter().any(|line| line["id"] == "000/table-3.3" && line["can_be_run"] == true));
    assert!(ended(place.path(), &["repro", "list"]).1.contains("000/table-3.2"));
}

/// Returns a scenario with twenty receivers in a star. `lines` are added to the flow, and `routers` are added after the topology.
fn star(lines: &str, routers: &str) -> String {
    format!(
        "title = \"Twenty receivers\"\nduration = \"5 s\"\n[topology]\nkind = \"star\"\nleaves = 20\n{routers}\n\
         [[flow]]\nname = \"m\"\nkind = \"session\"\nscheme = \"ormcc\"\nfrom = \"src1\"\nto = \"leaf*\"\n{lines}\n"
    )
}

#[test]
fn tree_and_router_schemes_need_a_matching_scenario() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let compare = |schemes: &str, text: String| {
        std::fs::write(place.path().join("star.toml"), text).expect("it is ours");
        ended(place.path(), &["compare", "--schemes", schemes, "--scenario", "star.toml", "-q", "--out", "c"])
    };
    for (scheme, words) in [
        ("ormcc,mtcp", "write `mtcp,repair=tree`"),
        ("ormcc,mtcp,repair=tree", "`mtcp` needs a tree for 20 receivers"),
        ("raccoom", "`raccoom` needs routers"),
        ("rmanp", "is = \"rmanp\""),
    ] {
        let (code, out, err) = compare(scheme, star("", ""));
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(words) && !place.path().join("c").exists(), "{err}");
    }
    let routers =
        ["acknowledgements", "rmanp"].map(|is| format!("[[router]]\nat = \"hub\"\nis = \"{is}\"\n"));
    let (code, out, err) =
        compare("ormcc,mtcp,repair=tree,raccoom,rmanp,tcp-sack", star("fan_out = 4", &routers.concat()));
    assert_eq!(code, 0, "{out}{err}");
    for (directory, has, has_not) in [
        ("1-ormcc", "fan_out", "[[router]]"),
        ("2-mtcp_repair_tree", "fan_out", "[[router]]"),
        ("3-raccoom", "acknowledgements", "is = \"rmanp\""),
        ("4-rmanp", "is = \"rmanp\"", "acknowledgements"),
        ("5-tcp-sack", "tcp-sack", "fan_out"),
    ] {
        let path = place.path().join("c").join(directory).join("scenario.toml");
        let text = std::fs::read_to_string(path).expect("it was run");
        assert!(text.contains(has) && !text.contains(has_not), "{directory}: {text}");
    }
}

#[test]
fn schemes_and_protocols_are_compared_in_one_table() {
    let place = lab();
    let compare = ["compare", "--schemes", "ormcc,beta=0.6,tcp-reno", "--scenario", "lab.toml", "-q"];
    let (code, out, err) = ended(place.path(), &[&compare[..], PAGE].concat());
    assert_eq!(code, 0, "{err}");
    assert_eq!(err.matches("the page: http://127.0.0.1:").count(), PAGE.len(), "{err}");
    for words in ["ormcc,beta=0.6", "tcp-reno", "multicast mean", "tcp mean", "fairness"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(place.path().join("lab-comparison/comparison.svg").is_file());
    let (code, out, _) = ended(place.path(), &[&compare[..], &["--json"]].concat());
    let all = lines(&out);
    assert!(
        code == 0 && all.iter().any(|line| line["scheme"] == "tcp-reno" && line["name"] == "multicast.rate")
    );
}

#[test]
fn scenario_over_the_memory_limit_is_refused() {
    let place = lab();
    let large = ["sim", "run", "lab.toml", "-q", "--set", "topology.leaves=100000000"];
    let (code, _, err) = ended(place.path(), &large);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("8.0 GB are allowed") && err.contains("--max-memory"), "{err}");
    let (code, _, err) = ended(place.path(), &["sim", "check", "lab.toml", "--max-memory", "100k"]);
    assert_eq!(code, 1, "{err}");
    let shorter = ["sim", "run", "lab.toml", "-q", "--set", "duration=30 s", "--max-memory", "1G"];
    assert_eq!(ended(place.path(), &shorter).0, 0);
    let endless = std::fs::File::create(place.path().join("endless.toml")).expect("it is ours");
    endless.set_len(33 << 20).expect("the hole takes no room");
    let (code, _, err) = ended(place.path(), &["sim", "run", "endless.toml"]);
    assert!(code == 2 && err.contains("at most 33554432 bytes"), "{code}: {err}");
}

#[test]
fn emulation_names_parts_without_a_program() {
    let place = lab();
    let scenario = std::fs::read_to_string(place.path().join("lab.toml")).expect("it was written");
    let other = "\n[[flow]]\nname = \"other\"\nkind = \"tfrc\"\nfrom = \"src1\"\nto = \"leaf1\"\n";
    std::fs::write(place.path().join("other.toml"), scenario.clone() + other).expect("it is written");
    let sweep = "\n[sweep]\n\"topology.leaves\" = [8, 9]\n";
    std::fs::write(place.path().join("sweep.toml"), scenario + sweep).expect("it is written");
    let cases: [(&[&str], &str); 6] = [
        (&["other.toml"], "  flow `other`: no program has this protocol"),
        (&["sweep.toml"], "a sweep of 2 points"),
        (&["lab.toml", "--", "nobody:", "true"], "`nobody:` does not name a host"),
        (&["lab.toml", "--", "leaf1:"], "`leaf1:` is followed by no program"),
        (&["none.toml"], "cannot read the scenario none.toml"),
        (&["lab.toml", "--ipv6", "--", "leaf1:", "true"], "--ipv6 is for the flows of the scenario"),
    ];
    let compared: [(&[&str], &str); 2] = [
        (&["compare", "--worlds", "sim,emu", "other.toml"], "  flow `other`: no program has this protocol"),
        (&["compare", "--worlds", "emu", "lab.toml"], "a comparison needs two worlds"),
    ];
    let cases = cases.map(|(arguments, message)| ([&["emu", "run"], arguments].concat(), message));
    for (arguments, message) in
        cases.into_iter().chain(compared.map(|(arguments, message)| (arguments.to_vec(), message)))
    {
        let (code, out, err) = ended(place.path(), &arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
}
