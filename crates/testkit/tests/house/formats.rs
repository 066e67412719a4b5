//! Finds mentions of a foreign wire format outside of the crate of this format.

use super::code;
use super::scan::Source;

/// Names of formats, as words or parts of identifiers.
const NAMES: [&str; 5] = ["pgm", "alc", "flute", "udpcast", "norm"];

/// Returns the lines of a crate's production code that name a format, in identifiers or strings. Comments do not count.
pub fn lines_that_name_one(krate: &str, sources: &[Source]) -> Vec<String> {
    let modules = code::files(krate, sources);
    let root = format!("crates/{krate}/src/");
    let mut found = Vec::new();
    for source in sources {
        let Some(path) = source.path.to_str().and_then(|path| path.strip_prefix(&root)) else { continue };
        if !modules.contains_key(&code::module(path)) {
            continue;
        }
        let end = source.text.find("#[cfg(test)]\nmod tests {").unwrap_or(source.text.len());
        for (number, line) in source.text[..end].lines().enumerate() {
            let code = line.trim_start();
            if !code.starts_with("//") && names_one(code.split(" // ").next().unwrap_or_default()) {
                found.push(format!("{}:{}: {code}", source.path.display(), number + 1));
            }
        }
    }
    found
}

fn names_one(code: &str) -> bool {
    let words = code.split(|c: char| !c.is_ascii_alphanumeric());
    words.flat_map(parts).any(|part| NAMES.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

/// Returns the parts of an identifier: `AlcSend` has `Alc` and `Send`.
fn parts(word: &str) -> Vec<&str> {
    let bytes = word.as_bytes();
    let begins = |at: &usize| bytes[*at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
    let starts: Vec<usize> = std::iter::once(0).chain((1..word.len()).filter(begins)).collect();
    let ends = starts.iter().skip(1).copied().chain([word.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &word[start..end]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_names_are_found_as_whole_words() {
        for code in ["use x::pgm::Y;", "AlcSend", "const ALC_PREFIX", "\"over FLUTE\"", "is_pgm()"] {
            assert!(names_one(code), "{code}");
        }
        for code in ["pgmcc", "Pgmcc", "calculated", "talc", "Alcove", "fluted"] {
            assert!(!names_one(code), "{code}");
        }
    }

    #[test]
    fn format_names_in_comments_and_tests_are_ignored() {
        let text = "// pgm\nfn a() {} // ALC\nlet pgm = 1;\n#[cfg(test)]\nmod tests { use alc; }\n";
        let source = |path: &str, text: &str| Source {
            path: format!("crates/x/src/{path}").into(),
            text: text.to_owned(),
        };
        let sources = [
            source("lib.rs", "#[cfg(test)]\nmod bench;\nmod a;"),
            source("a.rs", text),
            source("bench.rs", "pgm()"),
        ];
        assert_eq!(lines_that_name_one("x", &sources), ["crates/x/src/a.rs:3: let pgm = 1;"]);
    }
}
