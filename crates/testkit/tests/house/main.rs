//! Rules of this repository that the compiler does not check.

mod book;
mod circles;
mod code;
mod folders;
mod formats;
mod language;
mod messages;
mod papers;
mod scan;

use papers::Papers;
use scan::{Source, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages of this repository that each package may depend on, except in its tests.
const MAY_USE: [(&str, &[&str]); 27] = [
    ("faircast-core", &[]),
    ("faircast-unicast", &["faircast-core"]),
    ("faircast-aqm", &["faircast-core"]),
    ("faircast-topology", &["faircast-core", "faircast-aqm"]),
    ("faircast-sim", &["faircast-core", "faircast-unicast", "faircast-aqm", "faircast-topology"]),
    (
        "faircast-experiments",
        &[
            "faircast-core",
            "faircast-unicast",
            "faircast-aqm",
            "faircast-topology",
            "faircast-sim",
            "faircast-wire",
        ],
    ),
    ("faircast-python", &["faircast", "faircast-aqm", "faircast-core", "faircast-experiments"]),
    ("faircast-emulator", &["faircast-core", "faircast-aqm", "faircast-topology"]),
    ("faircast-wire", &["faircast-core"]),
    ("faircast-fec", &[]),
    ("faircast-object", &["faircast-fec"]),
    ("faircast-host", &["faircast-object"]),
    ("faircast-net", &[]),
    (
        "faircast-transport",
        &[
            "faircast-core",
            "faircast-wire",
            "faircast-fec",
            "faircast-object",
            "faircast-host",
            "faircast-net",
        ],
    ),
    (
        "faircast-driver",
        &["faircast-core", "faircast-wire", "faircast-host", "faircast-net", "faircast-transport"],
    ),
    (
        "faircast-pgm",
        &["faircast-core", "faircast-wire", "faircast-net", "faircast-transport", "faircast-driver"],
    ),
    ("faircast-norm", &["faircast-core", "faircast-transport", "faircast-driver"]),
    ("faircast-udpcast", &["faircast-core", "faircast-net", "faircast-transport", "faircast-driver"]),
    (
        "faircast-flute",
        &[
            "faircast-core",
            "faircast-wire",
            "faircast-fec",
            "faircast-net",
            "faircast-transport",
            "faircast-driver",
        ],
    ),
    (
        "faircast",
        &[
            "faircast-core",
            "faircast-wire",
            "faircast-fec",
            "faircast-net",
            "faircast-transport",
            "faircast-driver",
            "faircast-pgm",
            "faircast-flute",
            "faircast-udpcast",
            "faircast-norm",
            // Used only with cargo features.
            "faircast-unicast",
            "faircast-aqm",
            "faircast-sim",
            "faircast-experiments",
        ],
    ),
    (
        "faircast-cli",
        &[
            "faircast",
            "faircast-core",
            "faircast-unicast",
            "faircast-aqm",
            "faircast-wire",
            "faircast-fec",
            "faircast-sim",
            "faircast-experiments",
            "faircast-net",
            "faircast-transport",
            "faircast-topology",
            "faircast-emulator",
        ],
    ),
    ("faircast-testkit", &["faircast-core", "faircast-emulator"]),
    ("faircast-simnet", &["faircast-core"]),
    (
        "faircast-vopr",
        &["faircast-core", "faircast-wire", "faircast-net", "faircast-transport", "faircast-simnet"],
    ),
    ("faircast-cocoon-bpf", &["faircast-core", "faircast-unicast"]),
    ("faircast-cocoon-quinn", &["faircast-core", "faircast-unicast"]),
    ("faircast-validation", &["faircast-core", "faircast-unicast", "faircast-aqm", "faircast-sim"]),
];

/// Packages outside of the workspace, because their dependencies would slow every build. The comment of each entry names these
/// dependencies.
const APART: [&str; 2] = [
    "crates/cocoon-bpf",   // libelf's development files
    "crates/cocoon-quinn", // quinn with tokio and rustls
];

/// Crates without clocks, threads, sockets and hash maps. An identical `clippy.toml` in each of these crates enforces this rule.
const CLOCKLESS: [&str; 10] =
    ["core", "unicast", "aqm", "topology", "wire", "fec", "object", "sim", "experiments", "simnet"];

/// Maximum length of a source file, in lines.
const MAX_LINES: usize = 800;

/// Returns the root of the repository. The variable is read at run time: the build of another checkout may be reused.
fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../..")
        .canonicalize()
        .expect("the package lies two levels deep")
}

/// Returns the Rust files of all packages, except for the files of this test.
fn rust_sources() -> Vec<Source> {
    let own = Path::new("crates/testkit/tests/house");
    let all = sources(&root(), &["rs"]);
    all.into_iter().filter(|s| s.path.starts_with("crates") && !s.path.starts_with(own)).collect()
}

/// Returns the files that cite sections of papers: Rust files, and the lists of figures and tables.
fn citing_sources() -> Vec<Source> {
    let lists = Path::new("crates/experiments/src/repro");
    let all = sources(&root(), &["toml"]).into_iter().filter(|s| s.path.starts_with(lists));
    rust_sources().into_iter().chain(all).collect()
}

fn papers() -> Papers {
    Papers::read(&root().join("papers/papers.toml"))
}

fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn every_citation_names_a_section_that_exists() {
    let papers = papers();
    let mut wrong = Vec::new();
    for source in citing_sources() {
        for cited in scan::citations(&source.text) {
            if !papers.has(&cited) {
                wrong.push(format!("{}: {cited}", source.path.display()));
            }
        }
    }
    assert_none("citations of sections that papers/papers.toml does not list", &wrong);
}

#[test]
fn every_implemented_section_is_cited() {
    let papers = papers();
    let mut cited: BTreeSet<_> = citing_sources().iter().flat_map(|s| scan::citations(&s.text)).collect();
    cited.extend(papers.gaps.iter().filter_map(papers::Gap::cites)); // the comments of gaps are checked below
    let uncited: Vec<_> = papers
        .implemented()
        .filter(|section| !cited.iter().any(|c| c.lies_in(section)))
        .map(|section| section.to_string())
        .collect();
    assert_none("sections marked as implemented that no code cites", &uncited);
}

#[test]
fn list_of_paper_sections_is_well_formed() {
    assert_none("papers/papers.toml", &papers().faults());
}

#[test]
fn gaps_in_the_code_match_the_listed_gaps() {
    let listed = papers().gaps;
    let mut unlisted = Vec::new();
    let mut met = vec![false; listed.len()];
    for source in rust_sources() {
        for text in scan::gaps(&source.text) {
            let file = source.path.to_string_lossy();
            let place = listed.iter().position(|gap| gap.file == file && scan::same_start(&gap.text, &text));
            match place {
                Some(place) => met[place] = true,
                None => {
                    unlisted.push(format!("[[gap]]\nfile = \"{file}\"\nsection = \"\"\ntext = {text:?}\n"))
                }
            }
        }
    }
    assert_none("gaps in the code that papers/papers.toml does not list", &unlisted);
    let gone: Vec<_> =
        listed.iter().zip(met).filter(|(_, met)| !met).map(|(gap, _)| gap.to_string()).collect();
    assert_none("listed gaps that the code does not mark", &gone);
}

#[test]
fn crates_have_only_allowed_dependencies() {
    let mut wrong = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().expect("cargo names every package");
        let Some((_, allowed)) = MAY_USE.iter().find(|(package, _)| *package == name) else {
            wrong.push(format!("{name} has no line in MAY_USE"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("cargo lists dependencies") {
            let used = dependency["name"].as_str().expect("a dependency has a name");
            let ours = used == "faircast" || used.starts_with("faircast-");
            let in_tests = dependency["kind"].as_str() == Some("dev");
            if ours && !in_tests && !allowed.contains(&used) {
                wrong.push(format!("{name} uses {used}"));
            }
        }
    }
    assert_none("dependencies that point the wrong way", &wrong);
}

/// Known circles. A new circle is an error, and so is a listed circle that no longer exists.
const CIRCLES: &[&str] = &[];

/// Crates that other crates depend on.
const LIBRARIES: [&str; 20] = [
    "core",
    "unicast",
    "aqm",
    "topology",
    "wire",
    "fec",
    "object",
    "host",
    "net",
    "sim",
    "transport",
    "driver",
    "pgm",
    "flute",
    "udpcast",
    "norm",
    "faircast",
    "emulator",
    "experiments",
    "cocoon-quinn",
];

/// Crates that are programs only.
const PROGRAMS: [&str; 2] = ["cli", "cocoon-bpf"];

#[test]
fn no_new_circular_references_between_files_exist() {
    let sources = rust_sources();
    let crates = LIBRARIES.iter().chain(&PROGRAMS);
    let found: Vec<String> = crates.flat_map(|krate| circles::circles(krate, &sources)).collect();
    let new: Vec<String> =
        found.iter().filter(|circle| !CIRCLES.contains(&circle.as_str())).cloned().collect();
    assert_none("files that name one another in a circle; move what both need into a file of its own", &new);
    let gone = CIRCLES.iter().filter(|circle| !found.iter().any(|other| other == *circle));
    assert_none(
        "circles that are gone: take them off the list",
        &gone.map(|circle| (*circle).to_owned()).collect::<Vec<_>>(),
    );
}

/// Known circles of folders, with the number of references within each circle. The numbers may only decrease.
const KNOTS: &[(&str, usize)] = &[];

#[test]
fn no_new_circular_uses_between_folders_exist() {
    let sources = rust_sources();
    let found = LIBRARIES.iter().chain(&PROGRAMS).flat_map(|krate| folders::knots(krate, &sources));
    let found: BTreeMap<_, _> = found.map(|knot| (knot.folders, knot.uses)).collect();
    let record = KNOTS.iter().map(|(folders, uses)| ((*folders).to_owned(), *uses)).collect();
    assert_none(
        "folders that use one another in a circle",
        &folders::against_record("uses", &found, &record),
    );
}

/// Record of the uses of the operating system in library code, by folder. State machines have no such uses. The recorded numbers
/// may only decrease.
const HOST_USES: &str = include_str!("host-uses.txt");

/// Columns of [`HOST_USES`] after the folder.
const HOST_COLUMNS: [&str; 5] = ["files", "threads", "clocks", "processes", "features"];

#[test]
fn host_uses_of_libraries_match_the_record() {
    let sources = rust_sources();
    let mut found = BTreeMap::new();
    for (folder, uses) in LIBRARIES.iter().flat_map(|krate| folders::host_uses(krate, &sources)) {
        for (column, number) in HOST_COLUMNS.iter().zip(uses.numbers()) {
            found.insert(format!("{folder} {column}"), number);
        }
    }
    let mut record = BTreeMap::new();
    for line in HOST_USES.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let folder = words.next().expect("a line begins with its folder");
        let numbers: Vec<usize> = words.map(|word| word.parse().expect("a number")).collect();
        assert_eq!(numbers.len(), HOST_COLUMNS.len(), "{line}");
        record.extend(
            HOST_COLUMNS.iter().zip(numbers).map(|(column, number)| (format!("{folder} {column}"), number)),
        );
    }
    assert_none(
        "uses of the host that are not as in crates/testkit/tests/house/host-uses.txt",
        &folders::against_record("uses", &found, &record),
    );
}

/// Crates of the foreign formats.
const FORMATS: [&str; 4] = ["pgm", "flute", "udpcast", "norm"];

/// Number of lines of production code in each crate that name a foreign format, without the crates of the formats. A new format
/// adds one line to the list in the crate `faircast`. The other numbers may only decrease.
const NAMED_FORMATS: &[(&str, usize)] = &[("core", 5), ("object", 1), ("faircast", 4), ("cli", 4)];

#[test]
fn mentions_of_formats_outside_their_crates_match_the_record() {
    let sources = rust_sources();
    let crates = LIBRARIES.iter().chain(&PROGRAMS).filter(|krate| !FORMATS.contains(krate));
    let (mut found, mut lines) = (BTreeMap::new(), Vec::new());
    for krate in crates {
        let named = formats::lines_that_name_one(krate, &sources);
        found.insert(*krate, named.len());
        lines.extend(named);
    }
    let record = NAMED_FORMATS.iter().copied().collect();
    let mut wrong = folders::against_record("lines that name a format", &found, &record);
    if !wrong.is_empty() {
        wrong.extend(lines);
    }
    assert_none("formats named outside of their crates", &wrong);
}

/// Tests that run in network namespaces.
const BETWEEN_NAMESPACES: [&str; 4] = [
    "crates/cli/tests/net",
    "crates/net/tests/namespaces.rs",
    "crates/testkit/tests/lab.rs",
    "crates/testkit/tests/emulated.rs",
];

#[test]
fn tests_in_namespaces_state_why_they_need_a_kernel() {
    let mut silent = Vec::new();
    for source in rust_sources() {
        if !BETWEEN_NAMESPACES.iter().any(|place| source.path.starts_with(place)) {
            continue;
        }
        for (at, _) in source.text.match_indices("\n#[test]\n") {
            let (before, after) = source.text.split_at(at);
            if !before.lines().next_back().is_some_and(|line| line.starts_with("/// Needs a kernel: ")) {
                let name = after.lines().find(|line| line.starts_with("fn ")).unwrap_or_default();
                silent.push(format!("{}: {name}", source.path.display()));
            }
        }
    }
    assert_none(
        "tests between namespaces without a last comment line `/// Needs a kernel: reason.`",
        &silent,
    );
}

#[test]
fn every_dependency_is_used() {
    let all = sources(&root(), &["rs"]);
    let mut unused = Vec::new();
    for package in packages() {
        let manifest = package["manifest_path"].as_str().expect("every package has a manifest");
        let directory = Path::new(manifest).parent().expect("a manifest lies in a directory").canonicalize();
        let directory = directory.expect("cargo has read it");
        let own = directory.strip_prefix(root()).expect("packages lie in the workspace");
        for dependency in package["dependencies"].as_array().expect("cargo lists dependencies") {
            let name = dependency["name"].as_str().expect("a dependency has a name");
            let in_tests = dependency["kind"].as_str() == Some("dev");
            // A test dependency may be used only in the directory `fuzz`, because tests replay inputs of the fuzzer with the code
            // in this directory.
            let may_use = |source: &&Source| match in_tests {
                true => source.path.starts_with(own) || source.path.starts_with("fuzz"),
                false => source.path.starts_with(own.join("src")) && !source.path.ends_with("tests.rs"),
            };
            let crate_name = if name == "md-5" { "md5".to_owned() } else { name.replace('-', "_") };
            if !all.iter().filter(may_use).any(|source| scan::names_crate(&source.text, &crate_name)) {
                unused.push(format!("{}: {name}", own.join("Cargo.toml").display()));
            }
        }
    }
    assert_none("dependencies that nothing uses, or only tests", &unused);
}

#[test]
fn published_packages_have_the_fields_that_registries_require() {
    let mut wrong = Vec::new();
    for package in packages() {
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let has = |key: &str| match &package[key] {
            serde_json::Value::Array(words) => (1..=5).contains(&words.len()),
            value => value.as_str().is_some_and(|text| !text.is_empty()),
        };
        let keys =
            ["description", "license", "repository", "readme", "rust_version", "keywords", "categories"];
        let lacks = keys.iter().filter(|key| !has(key));
        wrong.extend(lacks.map(|key| format!("{}: {key}", package["name"])));
    }
    assert_none("packages without what registries want to know; or `publish = false`", &wrong);
}

#[test]
fn clippy_forbids_clocks_in_every_clockless_crate() {
    let read = |name: &str| std::fs::read_to_string(root().join("crates").join(name).join("clippy.toml"));
    let model = read("core").expect("the core forbids clocks");
    let wrong = CLOCKLESS.iter().filter(|name| read(name).ok().as_ref() != Some(&model));
    let wrong: Vec<_> = wrong.map(|name| format!("crates/{name}/clippy.toml")).collect();
    assert_none("files that are not as crates/core/clippy.toml", &wrong);
}

#[test]
fn readme_states_the_rust_version_of_the_workspace() {
    let packages = packages();
    let promised = packages[0]["rust_version"].as_str().expect("every package promises a version");
    let readme = std::fs::read_to_string(root().join("README.md")).expect("there is one");
    assert!(readme.contains(&format!("Rust {promised} or newer")), "README.md does not say Rust {promised}");
}

#[test]
fn no_source_file_is_too_long() {
    let all = sources(&root(), &["rs", "py", "sh", "c", "h"]);
    assert!(all.len() > 20, "the walk found only {} files", all.len());
    let long: Vec<_> = all
        .iter()
        .filter(|s| s.text.lines().count() > MAX_LINES)
        .map(|s| format!("{}: {} lines", s.path.display(), s.text.lines().count()))
        .collect();
    assert_none("files over 800 lines", &long);
}

#[test]
fn no_file_contains_a_machine_specific_path() {
    let needles =
        [concat!("/wo", "rk/"), concat!("/tmp/", "target"), concat!("/root", "/."), concat!("/fa", "rm/")];
    let text_files = ["rs", "toml", "md", "py", "sh", "c", "h", "csv", "json", "yml", "run", "Makefile"];
    let mut found = Vec::new();
    for source in sources(&root(), &text_files) {
        for (number, line) in source.text.lines().enumerate() {
            if needles.iter().any(|needle| line.contains(needle)) {
                found.push(format!("{}:{}", source.path.display(), number + 1));
            }
        }
    }
    assert_none("paths of one machine", &found);
}

/// Crates that other programs embed. Their messages do not use the words of the command line.
const EMBEDDED: [&str; 17] = [
    "core",
    "unicast",
    "aqm",
    "topology",
    "wire",
    "fec",
    "object",
    "host",
    "net",
    "transport",
    "driver",
    "pgm",
    "flute",
    "udpcast",
    "norm",
    "faircast",
    "cocoon-quinn",
];

#[test]
fn libraries_mention_no_command_line_option() {
    let ours =
        |source: &Source| EMBEDDED.iter().any(|name| source.path.starts_with(format!("crates/{name}/src")));
    let is_test = |source: &Source| {
        source.path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "pair")
    };
    let mut found = Vec::new();
    for source in rust_sources().iter().filter(|source| ours(source) && !is_test(source)) {
        for literal in scan::strings(&source.text) {
            if scan::names_flag(&literal.text) {
                found.push(format!("{}:{}: {}", source.path.display(), literal.line, literal.text));
            }
        }
    }
    assert_none("flags of the command line in the words of a library", &found);
}

#[test]
fn source_files_contain_no_stubs() {
    let needles =
        [concat!("to", "do!("), concat!("unimpl", "emented!("), concat!("FIX", "ME"), concat!("TO", "DO")];
    let mut found = Vec::new();
    for source in sources(&root(), &["rs", "py", "sh", "c", "Makefile", "run"]) {
        for (number, line) in source.text.lines().enumerate() {
            if needles.iter().any(|needle| line.contains(needle)) {
                found.push(format!("{}:{}: {}", source.path.display(), number + 1, line.trim()));
            }
        }
    }
    assert_none("stubs", &found);
}

/// Returns the packages inside and outside of the workspace, as `cargo metadata` describes them.
fn packages() -> Vec<serde_json::Value> {
    let manifests = ["."].into_iter().chain(APART);
    manifests.flat_map(|directory| packages_in(&root().join(directory).join("Cargo.toml"))).collect()
}

fn packages_in(manifest: &Path) -> Vec<serde_json::Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline", "--manifest-path"])
        .arg(manifest)
        .output()
        .expect("cargo runs this test, so it can be started");
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    let all: serde_json::Value = serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON");
    all["packages"].as_array().expect("cargo metadata has packages").clone()
}

#[test]
fn book_lists_every_page_once() {
    let faults = book::faults_of_the_list(&root().join("docs"), &book::pages(&root()));
    assert_none("pages that are not in the book's list, or lines of it without a page", &faults);
}

#[test]
fn rust_code_of_tutorials_matches_the_examples() {
    let examples: Vec<Source> = rust_sources()
        .into_iter()
        .filter(|source| source.path.starts_with("crates/faircast/examples"))
        .collect();
    assert!(examples.len() > 3, "the walk found only {} examples", examples.len());
    assert_none("code that no example has", &book::code_without_example(&book::pages(&root()), &examples));
}

#[test]
fn prose_of_the_book_has_at_most_60_000_words() {
    let words = book::words_of_prose(&book::pages(&root()));
    println!("{words} words");
    assert!(
        (10_000..=60_000).contains(&words),
        "{words} words: shorten pages of docs, or link instead of repeating"
    );
}

#[test]
fn every_link_leads_to_an_existing_file_and_heading() {
    let pages = book::pages(&root());
    assert!(pages.len() > 100, "the walk found only {} pages", pages.len());
    assert_none("links that lead nowhere", &book::broken_links(&root(), &pages));
}

#[test]
fn every_documented_bound_has_a_test() {
    let is_name = |word: &str| word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let sources = rust_sources();
    for (page, least) in [("docs/limits.md", 20), ("docs/threats.md", 20), ("docs/reliability.md", 8)] {
        let text = std::fs::read_to_string(root().join(page)).expect("the page is there");
        let promised: Vec<&str> = text.split('`').filter(|word| is_name(word)).collect();
        assert!(promised.len() > least, "{page}: {promised:?}");
        let missing: Vec<&&str> = promised
            .iter()
            .filter(|name| !sources.iter().any(|source| source.text.contains(&format!("fn {name}("))))
            .collect();
        assert!(missing.is_empty(), "{page} names tests that there are not: {missing:?}");
    }
}

/// Returns the Rust files and pages of the repository, except for this test's files and the archive of decisions.
fn prose() -> Vec<Source> {
    let others = ["crates/testkit/tests/house", "docs/decisions"].map(Path::new);
    let all = sources(&root(), &["rs", "md"]);
    all.into_iter().filter(|source| others.iter().all(|other| !source.path.starts_with(other))).collect()
}

/// `cargo test -p faircast-testkit --test house language -- --nocapture` prints the counts by crate.
#[test]
fn no_file_exceeds_its_recorded_language_counts() {
    let path = root().join("crates/testkit/tests/house/language.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let (record, prose) = (language::record(&text), prose());
    let (mut worse, mut lower) = (Vec::new(), String::new());
    for source in &prose {
        let name = source.path.to_string_lossy();
        let counts = language::counts(source);
        let most = record.get(&*name).copied().unwrap_or_default();
        if counts.all() > most {
            worse.push(format!("{name}: {} in place of {most} ({counts:?})", counts.all()));
        }
        if counts.all() > 0 {
            lower += &format!("{name} {}\n", counts.all());
        }
    }
    println!("{}", language::table(&prose));
    assert_none("sentences to be read twice (STYLE: subject, verb, object; at most 35 words)", &worse);
    if std::env::var_os("FAIRCAST_BLESS").is_some() {
        let head: String =
            text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, head + &lower).expect("the record is written");
    }
}

#[test]
fn generated_list_of_messages_is_up_to_date() {
    let path = root().join("crates/testkit/tests/house/messages.txt");
    let list = format!(
        "# Messages that a user can see, by file (messages.rs). FAIRCAST_BLESS=1 writes this list.\n{}",
        messages::list(&rust_sources())
    );
    if std::env::var_os("FAIRCAST_BLESS").is_some() {
        std::fs::write(&path, &list).expect("the list is written");
    }
    let record = std::fs::read_to_string(&path).unwrap_or_default();
    let (record, present): (BTreeSet<&str>, BTreeSet<&str>) =
        (record.lines().collect(), list.lines().collect());
    let changed: Vec<_> = record.symmetric_difference(&present).map(|line| (*line).to_owned()).collect();
    assert_none(
        "messages that messages.txt does not list, or that are gone (FAIRCAST_BLESS=1 writes it)",
        &changed,
    );
}
