//! Dependencies of the folders of a crate: circles among the folders, and uses of the host's operating system.

use super::circles::{expand_all, resolve};
use super::code::{self, Module};
use super::scan::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Sibling folders that use one another in a circle. Such folders can only be understood together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knot {
    /// Names of the crate and the folders, as in `transport: members, receiver`.
    pub folders: String,
    /// Number of references between these folders.
    pub uses: usize,
}

/// Returns the knots of a crate at every level of modules. A module includes its submodules. A circle of files without a folder
/// is not a knot; `circles` lists it.
pub fn knots(krate: &str, sources: &[Source]) -> Vec<Knot> {
    let files = code::files(krate, sources);
    // References between modules with the same parent.
    let mut uses: BTreeMap<Module, BTreeMap<(&str, &str), usize>> = BTreeMap::new();
    for (from, code) in &files {
        for to in expand_all(code).iter().filter_map(|path| resolve(from, path, &files)) {
            let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                *uses.entry(from[..common].to_vec()).or_default().entry((a, b)).or_default() += 1;
            }
        }
    }
    let mut found = Vec::new();
    for (parent, uses) in &uses {
        let names: BTreeSet<&str> = uses.keys().flat_map(|(a, b)| [*a, *b]).collect();
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            names.iter().map(|name| (*name, reached(name, uses))).collect();
        let circles: BTreeSet<BTreeSet<&str>> = names
            .iter()
            .filter(|name| reach[**name].contains(**name))
            .map(|name| reach[name].iter().copied().filter(|other| reach[other].contains(name)).collect())
            .collect();
        for circle in circles {
            let path = |name: &str| [parent.clone(), vec![name.to_owned()]].concat();
            let is_folder = |name: &&str| {
                let path = path(name);
                files.keys().any(|file| file.len() > path.len() && file.starts_with(&path))
            };
            if circle.iter().any(is_folder) {
                let within = |(a, b): &(&str, &str)| circle.contains(a) && circle.contains(b);
                let names: Vec<String> = circle.iter().map(|name| path(name).join("/")).collect();
                let uses = uses.iter().filter(|(pair, _)| within(pair)).map(|(_, count)| count).sum();
                found.push(Knot { folders: format!("{krate}: {}", names.join(", ")), uses });
            }
        }
    }
    found
}

fn reached<'a>(from: &'a str, uses: &BTreeMap<(&'a str, &'a str), usize>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut rest = vec![from];
    while let Some(at) = rest.pop() {
        let next = uses.keys().filter(|(a, _)| *a == at).map(|(_, b)| *b);
        rest.extend(next.filter(|to| found.insert(*to)));
    }
    found
}

/// Number of uses of the operating system in code. A state machine leaves these uses to its driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostUses {
    /// Uses of files: paths through a module `fs`, and opened files.
    pub files: usize,
    /// Uses of threads: paths through a module `thread`.
    pub threads: usize,
    /// Readings of a clock: `Instant::now`, `SystemTime::now`.
    pub clocks: usize,
    /// Started processes: `Command`.
    pub processes: usize,
    /// Conditions on a cargo feature, which create variants of the code.
    pub features: usize,
}

impl HostUses {
    fn of(code: &str) -> HostUses {
        let mut found = HostUses::default();
        for path in code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let parts: Vec<&str> = path.split("::").collect();
            let has = |a: &str, names: &[&str]| parts.windows(2).any(|w| w[0] == a && names.contains(&w[1]));
            let through = |name: &str| parts.len() > 1 && parts.contains(&name);
            let opened = ["open", "create", "create_new", "options"];
            found.files += usize::from(through("fs") || has("File", &opened) || has("OpenOptions", &["new"]));
            found.threads += usize::from(through("thread"));
            found.clocks += usize::from(has("Instant", &["now"]) || has("SystemTime", &["now"]));
            found.processes += usize::from(has("process", &["Command"]) || has("Command", &["new"]));
        }
        found.features = code.split_whitespace().collect::<String>().matches("feature=\"").count();
        found
    }

    /// Returns the numbers in the order of the columns of `host-uses.txt`.
    pub fn numbers(self) -> [usize; 5] {
        [self.files, self.threads, self.clocks, self.processes, self.features]
    }
}

/// Returns the uses of each folder directly below a crate's `src`. Folders without uses are omitted. Files in `src` itself count
/// as `.`.
pub fn host_uses(krate: &str, sources: &[Source]) -> BTreeMap<String, HostUses> {
    let files = code::files(krate, sources);
    let mut found: BTreeMap<String, HostUses> = BTreeMap::new();
    for (module, code) in &files {
        let first = module.first();
        let is_folder = files.keys().any(|file| file.len() > 1 && file.first() == first);
        let folder = first.filter(|_| is_folder).map_or(".", String::as_str);
        let uses = HostUses::of(code);
        let sum = found.entry(format!("{krate}/{folder}")).or_default();
        sum.files += uses.files;
        sum.threads += uses.threads;
        sum.clocks += uses.clocks;
        sum.processes += uses.processes;
        sum.features += uses.features;
    }
    found.retain(|_, uses| *uses != HostUses::default());
    found
}

/// Returns one line for each difference between values and their record. Values may only decrease, and the record must decrease
/// with them.
pub fn against_record<K: fmt::Display + Ord>(
    what: &str,
    found: &BTreeMap<K, usize>,
    record: &BTreeMap<K, usize>,
) -> Vec<String> {
    let names: BTreeSet<&K> = found.keys().chain(record.keys()).collect();
    let value = |of: &BTreeMap<K, usize>, name: &K| of.get(name).copied().unwrap_or(0);
    let compare = |name: &&K| match (value(found, name), value(record, name)) {
        (now, before) if now > before => {
            Some(format!("{name}: {now} {what}, {before} in the record; find another way"))
        }
        (now, before) if now < before => {
            Some(format!("{name}: {now} {what}, {before} in the record; lower the record to {now}"))
        }
        _ => None,
    };
    names.iter().filter_map(compare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("crates/x/src/{path}").into(),
            text: (*text).to_owned(),
        };
        files.iter().map(source).collect()
    }

    #[test]
    fn folder_circle_through_different_files_is_found() {
        let files = [
            ("a/mod.rs", ""),
            ("a/one.rs", "use crate::b::{One, two::Two};"),
            ("a/two.rs", ""),
            ("b/mod.rs", ""),
            ("b/one.rs", ""),
            ("b/two.rs", "use crate::c::C;"),
            ("c.rs", "fn f() -> crate::a::two::Two {}"),
            ("d.rs", "use crate::a::A;"),
        ];
        assert_eq!(knots("x", &sources(&files)), [Knot { folders: "x: a, b, c".into(), uses: 4 }]);
    }

    #[test]
    fn circle_between_nested_folders_is_found() {
        let files = [
            ("r/mod.rs", "mod a; mod b;"),
            ("r/a/mod.rs", ""),
            ("r/a/one.rs", "use super::super::b::B;"),
            ("r/b.rs", "use super::a::A;"),
        ];
        assert_eq!(knots("x", &sources(&files)), [Knot { folders: "x: r/a, r/b".into(), uses: 2 }]);
    }

    #[test]
    fn uses_of_parents_and_in_single_files_form_no_folder_circle() {
        let files = [
            ("lib.rs", "mod a; use crate::a::one::One;"),
            ("a/mod.rs", "#[cfg(test)]\nmod tests;"),
            ("a/one.rs", "use super::A; use crate::Root;"),
            ("a/tests.rs", "use crate::b::B;"),
            ("b/mod.rs", "use crate::a::A;"),
            ("b/one.rs", "// crate::c\n#[cfg(test)]\nmod tests { use crate::c::C; }"),
            ("c.rs", "use crate::b::B; use crate::d::D;"),
            ("d.rs", "use crate::c::C;"),
        ];
        assert_eq!(knots("x", &sources(&files)), []);
    }

    #[test]
    fn uses_of_files_threads_and_clocks_are_found() {
        let numbers = |code: &str| HostUses::of(code).numbers();
        assert_eq!(
            numbers("use std::fs;\nuse std::fs::{self, File};\nfs::read(rustix::fs::open(p))"),
            [4, 0, 0, 0, 0]
        );
        assert_eq!(
            numbers("File::open(p)?; OpenOptions::new(); let f: File = x.fs(); alc::File::parse()"),
            [2, 0, 0, 0, 0]
        );
        assert_eq!(
            numbers("use std::thread; thread::spawn(f); std::thread::sleep(s); thread(1)"),
            [0, 3, 0, 0, 0]
        );
        assert_eq!(numbers("Instant::now(); std::time::SystemTime::now(); clock.now()"), [0, 0, 2, 0, 0]);
        assert_eq!(
            numbers("use std::process::Command; Command::new(\"\"); process::exit(1)"),
            [0, 0, 0, 2, 0]
        );
        assert_eq!(
            numbers("#[cfg(feature = \"\")]\nif cfg!(not(feature=\"\")) { feature() }"),
            [0, 0, 0, 0, 2]
        );
    }

    #[test]
    fn host_uses_are_summed_by_folder_without_tests() {
        let files = [
            ("lib.rs", "fs::a()"),
            ("a.rs", "fs::a()"),
            ("a/one.rs", "fs::a(); /* fs::b */ f(\"fs::c\"); // fs::d"),
            ("b.rs", "fs::a()\n#[cfg(test)]\nmod tests { fs::b() }"),
            ("c/mod.rs", "fn pure() {}"),
            ("c/d.rs", ""),
        ];
        let found = host_uses("x", &sources(&files));
        let files: Vec<_> = found.iter().map(|(name, uses)| (name.as_str(), uses.files)).collect();
        assert_eq!(files, [("x/.", 2), ("x/a", 2)]);
    }

    #[test]
    fn values_above_and_below_the_record_are_reported() {
        let values = |of: &[(&'static str, usize)]| of.iter().copied().collect::<BTreeMap<_, _>>();
        let found = against_record(
            "uses",
            &values(&[("equal", 2), ("higher", 3), ("lower", 1), ("new", 1)]),
            &values(&[("equal", 2), ("gone", 1), ("higher", 2), ("lower", 2)]),
        );
        assert_eq!(
            found,
            [
                "gone: 0 uses, 1 in the record; lower the record to 0",
                "higher: 3 uses, 2 in the record; find another way",
                "lower: 1 uses, 2 in the record; lower the record to 1",
                "new: 1 uses, 0 in the record; find another way",
            ]
        );
    }
}
