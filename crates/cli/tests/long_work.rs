//! Tests of the program: long simulations are stopped, resumed, split between machines, and estimated before the first run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

fn faircast(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faircast"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command
}

/// Runs the program in a directory. Returns exit code, standard output and standard error.
fn ended(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = faircast(directory, arguments).output().expect("the binary starts");
    let Output { status, stdout, stderr } = output;
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code().expect("no signal"), text(stdout), text(stderr))
}

/// Returns a directory with a scenario `lab.toml`.
fn lab() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(ended(place.path(), &["sim", "new", "dumbbell", "--out", "lab.toml"]).0, 0);
    place
}

/// Returns the finished runs of a directory of results, with their modification times.
fn finished(results: &Path) -> Vec<(PathBuf, SystemTime)> {
    let list = |directory: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").path()).collect()
    };
    let runs = list(&results.join("runs")).into_iter().flat_map(|code| list(&code));
    let written = |path: PathBuf| {
        let modified = path.metadata().and_then(|about| about.modified()).expect("it is there");
        (path, modified)
    };
    let mut all: Vec<_> = runs.filter(|path| path.extension().is_none()).map(written).collect();
    all.sort();
    all
}

/// Returns names and contents of the result files of a directory, without data that depends on the machine.
fn results(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    let named = entries.map(|entry| (entry.file_name().into_string().expect("UTF-8"), entry.path()));
    let files = named.filter(|(name, path)| path.is_file() && name != "run.json");
    let mut all: Vec<_> = files.map(|(name, path)| (name, std::fs::read(path).expect("a file"))).collect();
    all.sort();
    all
}

#[test]
fn killed_simulation_resumes_and_yields_identical_files() {
    const RUN: [&str; 11] = [
        "sim",
        "run",
        "lab.toml",
        "--seeds",
        "24",
        "--threads",
        "1",
        "--plot",
        "--set",
        "duration=300 s",
        "--out",
    ];
    let place = lab();
    let directory = place.path().join("d");
    let mut command = faircast(place.path(), &[&RUN[..], &["d"]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    while finished(&directory).len() < 2 {
        assert_eq!(child.try_wait().expect("a child"), None, "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("it runs"); // SIGKILL
    child.wait().expect("a child");
    let before = finished(&directory);
    assert!((2..24).contains(&before.len()), "{before:?}");
    assert!(!directory.join("manifest.json").exists(), "no result is there before all runs are");

    let (code, out, err) = ended(place.path(), &[&RUN[..], &["d"]].concat());
    assert!(code < 2, "{err}"); // a claim may fail
    let stored = format!("{} of 24 runs", before.len());
    assert!(err.contains(&format!("{stored} are already there")) && out.contains(&stored), "{err}{out}");
    assert!(err.contains(&format!("{} runs", 24 - before.len())), "the estimate is about the others: {err}");
    let after = finished(&directory);
    assert!(
        after.len() == 24 && before.iter().all(|run| after.contains(run)),
        "stored runs stay as they are"
    );

    assert!(ended(place.path(), &[&RUN[..], &["whole", "-q"]].concat()).0 < 2);
    let (resumed, whole) = (results(&directory), results(&place.path().join("whole")));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&resumed), names(&whole));
    assert!(names(&whole).contains(&"metrics.csv".into()) && names(&whole).contains(&"rates.svg".into()));
    for ((name, resumed), (_, whole)) in resumed.iter().zip(&whole) {
        assert!(resumed == whole, "{name} differs");
    }
}

#[test]
fn runs_of_one_scenario_are_stored_only_with_option_out() {
    let place = lab();
    let directory = place.path().join("d");
    let run = |more: &[&str]| {
        let common = ["sim", "run", "lab.toml", "--set", "duration=21 s"];
        let (code, _, err) = ended(place.path(), &[&common[..], more].concat());
        assert!(code < 2, "{err}");
        err
    };
    run(&["-q"]);
    assert!(place.path().join("lab-results/metrics.csv").exists());
    assert!(!place.path().join("lab-results/runs").exists(), "nothing is stored without --out");

    assert!(run(&["--out", "d"]).contains("0 of 3 runs are already there"));
    let more = run(&["--out", "d", "--seeds", "5", "--set", "title=Another"]);
    assert!(more.contains("3 of 5 runs are already there"), "no run depends on the title: {more}");
    let first = finished(&directory);

    let other = run(&["--out", "d", "--set", "topology.bottleneck.queue=20 kB"]);
    assert!(
        other.contains("0 of 3 runs are already there") && other.contains("5 runs of another scenario"),
        "{other}"
    );
    let second = finished(&directory);
    assert!(second.len() == 3 && !second.iter().any(|run| first.contains(run)), "{second:?}");

    // A command without `--out` stores no runs. It removes the stored runs of another scenario from the directory of results.
    run(&["-q", "--out", "lab-results"]);
    run(&["-q", "--set", "topology.bottleneck.queue=20 kB"]);
    assert!(!place.path().join("lab-results/runs").exists());
}

#[test]
fn repeated_comparison_simulates_only_new_schemes() {
    let place = lab();
    let compare = |schemes: &str, out: &str| {
        let arguments =
            ["compare", "--scenario", "lab.toml", "--seeds", "2", "--schemes", schemes, "--out", out];
        let (code, table, err) = ended(place.path(), &arguments);
        assert_eq!(code, 0, "{err}");
        let place = place.path().display().to_string();
        (table.lines().filter(|line| !line.contains(&place)).collect::<Vec<_>>().join("\n"), err)
    };
    assert!(compare("ormcc,tcp-reno", "c").1.contains("0 of 4 runs are already there"));
    let (table, err) = compare("tcp-reno,tfrc,ormcc", "c");
    assert!(err.contains("4 of 6 runs are already there") && err.contains("2 runs"), "{err}");
    assert_eq!(finished(&place.path().join("c")).len(), 6);
    let fresh = compare("tcp-reno,tfrc,ormcc", "fresh").0;
    assert_eq!(table, fresh.replace("into fresh", "into c"));
    let (code, _, err) = ended(
        place.path(),
        &["compare", "--scenario", "lab.toml", "--seeds", "2", "--schemes", "tfrc", "--out", "c", "-q"],
    );
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(finished(&place.path().join("c")).len(), 2, "runs of other contenders are removed");
}

#[test]
fn estimate_is_printed_before_the_first_run_but_not_as_json() {
    let place = lab();
    let run = |more: &[&str]| ended(place.path(), &[&["sim", "run", "lab.toml"][..], more].concat()).2;
    let printed = run(&["--threads", "1"]);
    let first = printed.lines().next().unwrap_or_default();
    for part in ["3 runs, 1 at a time: 300 simulated seconds, about ", " packets over links; ", " of memory"]
    {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert_eq!(run(&["-q"]), "");
    assert!(!run(&["--json"]).contains("simulated seconds"));
    let compared = ended(place.path(), &["compare", "--schemes", "ormcc,tfrc", "--scenario", "lab.toml"]).2;
    assert!(compared.starts_with("6 runs") && compared.contains("600 simulated seconds"), "{compared}");
}

#[test]
fn merged_shards_equal_one_run() {
    let place = lab();
    let run = |more: &[&str]| {
        let common = ["sim", "run", "lab.toml", "-q", "--seeds", "5", "--set", "duration=21 s", "--out"];
        assert!(ended(place.path(), &[&common[..], more].concat()).0 < 2);
    };
    for shard in ["1", "2", "3"] {
        run(&[&format!("part-{shard}"), "--shard", &format!("{shard}/3")]);
    }
    run(&["whole"]);
    let (code, out, err) =
        ended(place.path(), &["sim", "merge", "part-1", "part-2", "part-3", "--out", "all"]);
    assert_eq!((code, out.as_str()), (0, "5 runs from 3 parts are in all\n"), "{err}");
    let (merged, whole) = (results(&place.path().join("all")), results(&place.path().join("whole")));
    assert!(merged == whole, "merged results are those of one run");
    let (code, _, err) = ended(place.path(), &["sim", "merge", "part-1", "part-3", "--out", "some"]);
    assert!(code == 1 && err.contains("2 runs still missing"), "{code}: {err}");
}

#[test]
fn reproduction_with_option_plot_draws_its_figures() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let run = ["repro", "run", "000/fig-3.10", "--quick", "-q", "--plot"];
    let (code, out, err) = ended(place.path(), &run);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("into 000-fig-3.10-results"), "{out}");
    let drawn = place.path().join("000-fig-3.10-results/averages.svg");
    assert!(std::fs::read_to_string(drawn).expect("it is drawn").starts_with("<svg"));
    let (code, _, err) =
        ended(place.path(), &["repro", "run", "000/fig-2.10", "-q", "--plot", "--pdf", "--out", "f"]);
    assert_eq!(code, 0, "{err}");
    let names: Vec<String> = results(&place.path().join("f")).into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().any(|name| name.ends_with(".svg")), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with(".pdf")), "{names:?}");
}
