//! Finds source files, and the citations and paper gaps in their comments.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository.
pub struct Source {
    /// Path relative to the root of the repository.
    pub path: PathBuf,
    /// Content of the file.
    pub text: String,
}

/// A section of a paper.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Section {
    /// Number of the paper.
    pub paper: String,
    /// Number of the section.
    pub id: String,
}

impl Section {
    pub fn new(paper: &str, id: &str) -> Section {
        Section { paper: paper.into(), id: id.into() }
    }

    /// Returns whether this section is `outer` or one of its subsections.
    pub fn lies_in(&self, outer: &Section) -> bool {
        let below = self.id.strip_prefix(&outer.id);
        self.paper == outer.paper && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "paper {}, {}", self.paper, self.id)
    }
}

/// Returns all files below `root` with one of these extensions or names, except for build output.
pub fn sources(root: &Path, kinds: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    let mut rest = vec![root.to_path_buf()];
    while let Some(dir) = rest.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.expect("a listed entry can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                if !["target", ".git", "node_modules"].contains(&name.as_str()) {
                    rest.push(path);
                }
                continue;
            }
            let kind = path.extension().map_or(name, |kind| kind.to_string_lossy().into_owned());
            if kinds.contains(&kind.as_str()) {
                let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
                let path = path.strip_prefix(root).expect("the walk began at the root").to_path_buf();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Returns the sections that a text cites: `paper 000, 3.1.5`, `paper 000, appendix B.1`, `paper 000, 3.1.2 and 3.1.3`.
pub fn citations(text: &str) -> Vec<Section> {
    let text = joined(text);
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, _) in lower.match_indices("paper 00") {
        let paper = &text[at + 6..text.len().min(at + 9)];
        if paper.len() < 3 || !paper.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let mut rest = &text[at + 9..];
        while let Some((id, after)) = next_section(rest) {
            found.push(Section::new(paper, id));
            rest = after;
        }
    }
    found
}

/// Returns the section number after a separator, and the text after the number.
fn next_section(text: &str) -> Option<(&str, &str)> {
    let text =
        [", and ", ", ", " and ", " to ", "; "].iter().find_map(|separator| text.strip_prefix(separator))?;
    let words = ["appendix ", "chapter ", "section ", "sections ", "App. ", "ch. "];
    let text = words.iter().find_map(|word| text.strip_prefix(word)).unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len());
    let id = text[..end].trim_end_matches('.');
    let mut parts = id.split('.');
    let first = parts.next()?;
    let chapter = matches!(first.as_bytes(), [b'A'..=b'Z' | b'0'..=b'9']);
    let numbered = parts.all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    (chapter && numbered).then(|| (id, &text[id.len()..]))
}

/// Returns the texts of all `Paper gap:` comments of a file, each in one line.
pub fn gaps(text: &str) -> Vec<String> {
    let marker = concat!("Paper ", "gap:");
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((_, first)) = line.split_once(marker) else { continue };
        let mut cited_text = first.trim().to_string();
        while let Some(more) = lines.peek().and_then(|line| comment(line)) {
            if more.is_empty() || more.contains(marker) {
                break;
            }
            cited_text.push(' ');
            cited_text.push_str(more);
            lines.next();
        }
        found.push(cited_text.trim_end_matches("*/").trim().to_string());
    }
    found
}

/// Returns whether the code of a file, without its comments, names a crate: `name::`, `use name;` or `use name as`.
pub fn names_crate(text: &str, name: &str) -> bool {
    let code = text.lines().filter(|line| comment(line).is_none());
    code.flat_map(|line| line.match_indices(name).map(move |(at, _)| (&line[..at], &line[at + name.len()..])))
        .any(|(before, after)| {
            let inside = |c: char| c.is_alphanumeric() || c == '_';
            let used = before.ends_with("use ") && (after.starts_with(';') || after.starts_with(" as "));
            !before.ends_with(inside) && (after.starts_with("::") || used)
        })
}

/// A string literal.
pub struct Literal {
    /// Line number of the beginning.
    pub line: usize,
    /// Byte offset of the beginning.
    pub at: usize,
    /// Text of the literal, with escapes unprocessed.
    pub text: String,
}

/// Returns the string literals of code outside of its tests.
pub fn strings(text: &str) -> Vec<Literal> {
    let code = text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at]);
    let (mut found, mut rest, mut line) = (Vec::new(), code, 1);
    while let Some(first) = rest.chars().next() {
        let at = code.len() - rest.len();
        let raw = rest.strip_prefix('r').map(|after| after.len() - after.trim_start_matches('#').len());
        let raw = raw.filter(|hashes| rest[1 + hashes..].starts_with('"'));
        let len = match (first, raw) {
            (_, Some(hashes)) => {
                let end = format!("\"{}", "#".repeat(hashes));
                let body = &rest[hashes + 2..];
                let len = body.find(&end).unwrap_or(body.len());
                found.push(Literal { line, at, text: body[..len].to_owned() });
                (hashes + 2 + len + end.len()).min(rest.len())
            }
            ('"', _) => {
                let len = 1 + end_of_string(&rest[1..]);
                found.push(Literal { line, at, text: rest[1..len].to_owned() });
                (len + 1).min(rest.len())
            }
            ('/', _) if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            ('\'', _) if rest.starts_with("'\"'") || rest.starts_with("'\\") => 3,
            // Skips the remainder of a name, so that a final `r` does not begin a raw string.
            (c, _) if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
            (other, _) => other.len_utf8(),
        };
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    found
}

/// Returns the position of the closing quote of the string whose content begins at the start of this text.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// Returns whether a text names a flag, as in `--this`.
pub fn names_flag(text: &str) -> bool {
    text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + 2..].chars().next();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '-')
            && after.is_some_and(|c| c.is_ascii_lowercase())
    })
}

/// Returns whether two texts start with the same eight words. If one text is shorter, only its words are compared.
pub fn same_start(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.split_whitespace().take(8), b.split_whitespace().take(8));
    let first = (a.next(), b.next());
    matches!(first, (Some(x), Some(y)) if x == y) && a.zip(b).all(|(x, y)| x == y)
}

/// Returns the text without comment signs and line ends, so that a wrapped sentence is contiguous.
fn joined(text: &str) -> String {
    text.lines().map(|line| comment(line).unwrap_or(line.trim())).collect::<Vec<_>>().join(" ")
}

fn comment(line: &str) -> Option<&str> {
    let cited_text = line.trim_start().strip_prefix("//")?;
    Some(cited_text.trim_start_matches(['/', '!']).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(text: &str) -> Vec<String> {
        citations(text).iter().map(Section::to_string).collect()
    }

    #[test]
    fn citation_is_found_across_a_line_break() {
        assert_eq!(cited("/// As it says (paper 000,\n/// 3.1.5)."), ["paper 000, 3.1.5"]);
    }

    #[test]
    fn appendix_and_list_references_are_citations() {
        assert_eq!(cited("Paper 000, appendix B.1"), ["paper 000, B.1"]);
        assert_eq!(cited("paper 000, 3.1.2 and 3.1.3, which"), ["paper 000, 3.1.2", "paper 000, 3.1.3"]);
    }

    #[test]
    fn paper_or_figure_reference_is_no_section_citation() {
        assert!(cited("paper 000 says; paper 000, figure 3.4; random seed 7").is_empty());
    }

    #[test]
    fn gap_comment_is_read_to_the_end_of_its_paragraph() {
        let text = concat!("x // Paper ", "gap: one\n    // two\n    //\n    // three\n");
        assert_eq!(gaps(text), ["one two"]);
    }

    #[test]
    fn crate_use_is_found_in_code_but_not_in_comments() {
        assert!(names_crate("let x = toml::from_str(y);", "toml"));
        assert!(names_crate("    pub use toml as t;", "toml"));
        assert!(!names_crate("/// See [`toml::Table`].\nuse my_toml::Table;\nlet toml = 1;", "toml"));
    }

    #[test]
    fn strings_are_found_among_comments_and_raw_strings() {
        let text = concat!(
            "let a = \"one \\\" --two\"; // \"no\"\nlet q = '\"';\nlet b = r#\"three\"four\"#;\n",
            "#[cfg(test)]\nmod tests { \"five\" }"
        );
        let found: Vec<_> = strings(text).into_iter().map(|literal| (literal.line, literal.text)).collect();
        assert_eq!(found, [(1, "one \\\" --two".to_owned()), (3, "three\"four".to_owned())]);
    }

    #[test]
    fn command_line_option_consists_of_two_dashes_and_a_word() {
        for flag in ["--key", "give its --key", "(`--datagram 1200`)"] {
            assert!(names_flag(flag), "{flag}");
        }
        for none in ["a -- b", "a--b", "---x", "--"] {
            assert!(!names_flag(none), "{none}");
        }
    }

    #[test]
    fn shortened_gap_text_matches_only_its_own_gap() {
        assert!(same_start("one two", "one two three"));
        assert!(!same_start("one three", "one two three"));
        assert!(!same_start("", "one"));
    }

    #[test]
    fn subsection_belongs_only_to_its_own_section() {
        assert!(Section::new("000", "3.1.5").lies_in(&Section::new("000", "3.1")));
        assert!(!Section::new("002", "3.10").lies_in(&Section::new("002", "3.1")));
    }
}
