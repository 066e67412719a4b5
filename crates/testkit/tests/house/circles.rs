//! Circular references between the files of a crate. Such files can only be understood together.

use super::code::{Module, module};
use super::scan::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the circles of files of `krate` that refer to one another, each as `crate: file, file`. References between a module
/// and its submodules do not count. Tests do not count.
pub fn circles(krate: &str, sources: &[Source]) -> Vec<String> {
    let root = format!("crates/{krate}/src/");
    let files: BTreeMap<Module, &str> = sources
        .iter()
        .filter_map(|source| Some((source.path.to_str()?.strip_prefix(&root)?, source.text.as_str())))
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| (module(path), text))
        .collect();
    let arrows: BTreeMap<&Module, BTreeSet<&Module>> = files
        .iter()
        .map(|(from, text)| {
            let named = expand_all(&without_comments_and_tests(text));
            let targets = named.iter().filter_map(|path| resolve(from, path, &files));
            (from, targets.filter(|to| !to.starts_with(from) && !from.starts_with(to)).collect())
        })
        .collect();
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        files.keys().map(|from| (from, reached(from, &arrows))).collect();
    let mut found = BTreeSet::new();
    for from in files.keys().filter(|from| reach[*from].contains(from)) {
        let circle = reach[from].iter().filter(|to| reach[**to].contains(&from));
        let names: BTreeSet<String> = circle.map(|to| to.join("/")).collect();
        found.insert(format!("{krate}: {}", names.into_iter().collect::<Vec<_>>().join(", ")));
    }
    found.into_iter().collect()
}

fn is_test(path: &str) -> bool {
    ["tests", "pair", "conformance", "star"]
        .iter()
        .any(|word| path.split(['/', '.']).any(|part| part == *word))
}

fn without_comments_and_tests(text: &str) -> String {
    let code = text.find("#[cfg(test)]\nmod tests").map_or(text, |at| &text[..at]);
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns all paths that begin with `crate`, `self` or `super`. A `use` tree is expanded into single paths.
pub fn expand_all(code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':' && c != '$') {
                expand(&code[at..], &Module::new(), &mut found);
            }
        }
    }
    found
}

/// Expands the path or tree of paths at the beginning of a text. Returns the remainder of the text.
fn expand<'a>(mut text: &'a str, before: &Module, found: &mut Vec<Module>) -> &'a str {
    let mut path = before.clone();
    loop {
        text = text.trim_start();
        if let Some(inner) = text.strip_prefix('{') {
            text = inner;
            loop {
                text = expand(text, &path, found).trim_start();
                match text.strip_prefix(',') {
                    Some(rest) => text = rest,
                    None => return text.strip_prefix('}').unwrap_or(text),
                }
            }
        }
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        if end > 0 {
            path.push(text[..end].to_owned());
        }
        text = &text[end..];
        match text.strip_prefix("::") {
            Some(rest) => text = rest,
            None => break,
        }
    }
    if path.len() > before.len() {
        found.push(path);
    }
    let alias = text.trim_start();
    alias
        .strip_prefix("as ")
        .map_or(text, |rest| rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns the file that a path refers to.
pub fn resolve<'a, T>(from: &Module, path: &[String], files: &'a BTreeMap<Module, T>) -> Option<&'a Module> {
    let (first, rest) = path.split_first()?;
    let mut at = match first.as_str() {
        "crate" => Module::new(),
        "self" => from.clone(),
        _ => from[..from.len().saturating_sub(1)].to_vec(),
    };
    for part in rest {
        if part == "super" {
            at.pop();
            continue;
        }
        at.push(part.clone());
        if !files.contains_key(&at) {
            at.pop();
            break;
        }
    }
    files.get_key_value(&at).map(|(module, _)| module)
}

fn reached<'a>(
    from: &'a Module,
    arrows: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut rest = vec![from];
    while let Some(at) = rest.pop() {
        rest.extend(arrows[at].iter().copied().filter(|to| found.insert(*to)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("crates/x/src/{path}").into(),
            text: (*text).to_owned(),
        };
        circles("x", &files.iter().map(source).collect::<Vec<_>>())
    }

    #[test]
    fn circular_references_between_files_are_found() {
        let circle = [
            ("a.rs", "use crate::{b::{B, self}, c as d};"),
            ("b.rs", "fn f(_: super::a::A) {}"),
            ("c.rs", ""),
        ];
        assert_eq!(of(&circle), ["x: a, b"]);
        let longer =
            [("a/mod.rs", "use super::b::B;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a::A;")];
        assert_eq!(of(&longer), ["x: a, b, c"]);
    }

    #[test]
    fn parent_test_and_comment_references_form_no_circle() {
        let parents = [("a/mod.rs", "use self::b::B;"), ("a/b.rs", "use super::A;")];
        assert!(of(&parents).is_empty());
        let tests = [
            ("a.rs", "use crate::b;"),
            ("b.rs", "// crate::a\n#[cfg(test)]\nmod tests {\n use crate::a;\n}"),
        ];
        assert!(of(&tests).is_empty());
    }
}
