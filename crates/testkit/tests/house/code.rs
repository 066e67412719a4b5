//! The production code of a crate: its files without comments, strings and tests.

use super::scan::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Path of a module in its crate; empty for the root of the crate.
pub type Module = Vec<String>;

/// Returns the files of `krate` by module, without files that contain only tests.
pub fn files(krate: &str, sources: &[Source]) -> BTreeMap<Module, String> {
    let root = format!("crates/{krate}/src/");
    let (mut files, mut test_modules) = (BTreeMap::new(), BTreeSet::new());
    for source in sources {
        let Some(path) = source.path.to_str().and_then(|path| path.strip_prefix(&root)) else { continue };
        let module = module(path);
        let (code, tests) = without_tests(&without_comments_and_strings(&source.text));
        test_modules.extend(tests.into_iter().map(|name| [module.clone(), vec![name]].concat()));
        files.insert(module, code);
    }
    files.retain(|module, _| !(1..=module.len()).any(|len| test_modules.contains(&module[..len])));
    files
}

/// Returns the module of a file, from its path below `src`.
pub fn module(path: &str) -> Module {
    let mut parts: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// Returns the text without comments and with empty string and character literals.
fn without_comments_and_strings(text: &str) -> String {
    let (mut code, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(first) = rest.chars().next() {
        let raw = rest.strip_prefix('r').map(|after| after.len() - after.trim_start_matches('#').len());
        let raw = raw.filter(|hashes| rest[1 + hashes..].starts_with('"'));
        let (len, stored) = match (first, raw) {
            (_, Some(hashes)) => {
                let end = format!("\"{}", "#".repeat(hashes));
                let body = &rest[hashes + 2..];
                (hashes + 2 + body.find(&end).map_or(body.len(), |at| at + end.len()), "\"\"")
            }
            ('"', _) => (1 + quoted(&rest[1..], '"'), "\"\""),
            ('\'', _) if rest.starts_with("'\\") => (1 + quoted(&rest[1..], '\''), "''"),
            ('\'', _) if rest.chars().nth(2) == Some('\'') => {
                (2 + rest[1..].chars().next().map_or(0, char::len_utf8), "''")
            }
            ('/', _) if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), ""),
            ('/', _) if rest.starts_with("/*") => (rest.find("*/").map_or(rest.len(), |at| at + 2), ""),
            (c, _) if is_word(c) => {
                let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                (len, &rest[..len])
            }
            (other, _) => (other.len_utf8(), &rest[..other.len_utf8()]),
        };
        code.push_str(stored);
        rest = &rest[len..];
    }
    code
}

/// Returns the number of bytes up to the closing quote, including the quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |at| at + 1)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the code without items under `#[cfg(test)]`. Also returns the names of test modules in separate files.
fn without_tests(code: &str) -> (String, Vec<String>) {
    let (mut stored, mut modules, mut rest) = (String::new(), Vec::new(), code);
    while let Some(at) = rest.find("#[cfg(test)]") {
        stored.push_str(&rest[..at]);
        let item = &rest[at + "#[cfg(test)]".len()..];
        let end = end_of_item(item);
        if let Some(module) = item[..end].strip_suffix(';').and_then(|item| item.rsplit_once("mod ")) {
            modules.push(module.1.trim().to_owned());
        }
        rest = &item[end..];
    }
    stored.push_str(rest);
    (stored, modules)
}

/// Returns the end of an item: a semicolon outside of brackets, or the end of the item's block.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && (c == ';' || c == '}') && !code[at + 1..].starts_with(';') {
            return at + 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: format!("crates/x/src/{path}").into(), text: text.to_owned() }
    }

    #[test]
    fn comments_and_contents_of_literals_are_removed() {
        let text = "a(\"b \\\" c\", '\\'', 'd', r#\"e\"f\"#); // g\n/* h */ fn i<'j>() {}";
        assert_eq!(without_comments_and_strings(text), "a(\"\", '', '', \"\"); \n fn i<'j>() {}");
    }

    #[test]
    fn test_items_and_test_files_are_removed() {
        let root = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\npub(crate) use a::{c, d};\n#[cfg(test)]\nmod e { f(); }\ng();";
        let sources = [
            source("lib.rs", root),
            source("a.rs", "#[cfg(test)]\n#[path = \"k\"]\nmod h;\ni();"),
            source("a/h.rs", "fs()"),
            source("b/mod.rs", "fs()"),
            source("b/l.rs", "fs()"),
        ];
        let found = files("x", &sources);
        assert_eq!(found.keys().map(|module| module.join("/")).collect::<Vec<_>>(), ["", "a"]);
        assert_eq!(found[&vec![]].split_whitespace().collect::<String>(), "moda;g();");
        assert_eq!(found[&vec!["a".to_owned()]].trim(), "i();");
    }
}
