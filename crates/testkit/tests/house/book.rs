//! Checks that links in pages are valid and that the book lists all pages.

use crate::scan::{self, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Folders of `docs` whose `README.md` lists their pages. The book's list contains only the `README.md` of such a folder.
const LISTED_BY_README: [&str; 2] = ["decisions", "decisions/deps"];

/// Pages and folders of `docs` whose words are not counted: generated pages, and the archive of decisions, which is not edited.
const NOT_PROSE: [&str; 5] = ["cli.md", "decisions", "json.md", "validation.md", "wire.md"];

/// Marker at the end of the prose of a page whose remainder is generated.
const GENERATED_FROM_HERE: &str = "<!-- The code generates the rest of this page";

/// Counts the words of the book's prose. Only words with a letter count. Blocks of code are skipped.
pub fn words_of_prose(pages: &[Source]) -> usize {
    let docs = pages.iter().filter_map(|page| Some((page.path.strip_prefix("docs").ok()?, &page.text)));
    let written = docs.filter(|(path, _)| !NOT_PROSE.iter().any(|part| path.starts_with(part)));
    let words = |text: &str| {
        let own = text.split(GENERATED_FROM_HERE).next().unwrap_or_default();
        let lines = prose(own).flat_map(|(_, line)| line.split_whitespace());
        lines.filter(|word| word.chars().any(char::is_alphabetic)).count()
    };
    written.map(|(_, text)| words(text)).sum()
}

/// Returns the faults of the book's list: pages of `docs` that are not in the list, repeated pages, and pages that do not exist.
pub fn faults_of_the_list(docs: &Path, pages: &[Source]) -> Vec<String> {
    let list = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("the book has a list");
    let mut listed = BTreeMap::new();
    for link in links(&list) {
        *listed.entry(link.to).or_insert(0) += 1;
    }
    let mut faults = Vec::new();
    for page in pages.iter().filter_map(|page| page.path.strip_prefix("docs").ok()) {
        if let Some(folder) =
            LISTED_BY_README.into_iter().find(|folder| page.parent() == Some(Path::new(folder)))
            && !page.ends_with("README.md")
        {
            let readme = Path::new("docs").join(folder).join("README.md");
            let name = page.file_name().expect("a page is a file").to_string_lossy();
            let listing = pages.iter().find(|page| page.path == readme);
            if !listing.is_some_and(|listing| links(&listing.text).iter().any(|link| link.to == name)) {
                faults.push(format!("{} needs a link to {name}", readme.display()));
            }
            continue;
        }
        let page = page.to_string_lossy();
        if page != "SUMMARY.md" && listed.remove(&*page) != Some(1) {
            faults.push(format!("docs/SUMMARY.md needs one line: - [TITLE]({page})"));
        }
    }
    faults.extend(listed.keys().map(|page| format!("docs/SUMMARY.md: there is no {page}")));
    faults
}

/// Returns the links to missing files of the repository or to missing headings.
pub fn broken_links(root: &Path, pages: &[Source]) -> Vec<String> {
    let anchors: BTreeMap<&Path, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_path(), anchors(&page.text))).collect();
    let mut broken = Vec::new();
    for page in pages {
        for Link { to, line } in links(&page.text) {
            let (path, anchor) = to.split_once('#').unwrap_or((&to, ""));
            if path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            let directory = page.path.parent().unwrap_or(Path::new(""));
            let target = if path.is_empty() { page.path.clone() } else { resolved(&directory.join(path)) };
            let has_anchor = || {
                anchor.is_empty()
                    || anchors.get(target.as_path()).is_none_or(|anchors| anchors.contains(anchor))
            };
            if !root.join(&target).exists() || !has_anchor() {
                broken.push(format!("{}:{line}: {to}", page.path.display()));
            }
        }
    }
    broken
}

/// Returns the Rust code of the tutorials that is not part of an example and therefore is not compiled.
pub fn code_without_example(pages: &[Source], examples: &[Source]) -> Vec<String> {
    let tutorials = pages.iter().filter(|page| page.path.starts_with("docs/tutorials"));
    let blocks =
        tutorials.flat_map(|page| page.text.split("```rust\n").skip(1).map(|rest| (&page.path, rest)));
    let code = blocks.filter_map(|(path, rest)| Some((path, rest.split("```").next()?)));
    let strange = code.filter(|(_, code)| !examples.iter().any(|example| example.text.contains(code)));
    strange
        .map(|(path, code)| format!("{}: {}", path.display(), code.lines().next().unwrap_or_default()))
        .collect()
}

struct Link {
    to: String,
    /// Line number of the link, from 1.
    line: usize,
}

/// Returns the lines of a page outside of fenced blocks, with their numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

/// Returns links of the form `[text](to)` outside of code.
fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let text: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for (at, _) in text.match_indices("](") {
            let rest = &text[at + 2..];
            let to = &rest[..rest.find([')', ' ']).unwrap_or(rest.len())];
            found.push(Link { to: to.to_owned(), line });
        }
    }
    found
}

/// Returns the anchors of the headings of a page: lower-case letters, hyphens for spaces, no punctuation. A repeated heading gets
/// a suffix such as `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let stored = |c: char| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
            _ => None,
        };
        let name: String = title.trim().chars().filter_map(stored).collect();
        let again = (1..).map(|count| format!("{name}-{count}"));
        let free = std::iter::once(name.clone()).chain(again).find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

/// Returns a path without `.` and `..`.
fn resolved(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

/// Returns the pages of the repository. Omits Markdown files in `src`, which are parts of other pages.
pub fn pages(root: &Path) -> Vec<Source> {
    let mut pages = scan::sources(root, &["md"]);
    pages.retain(|page| !page.path.components().any(|part| part.as_os_str() == "src"));
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    #[test]
    fn links_to_missing_files_or_headings_are_found() {
        let pages = [
            page("docs/a.md", "# One thing, and `two`\n[x](b.md#missing) [y](none.md)\n`[z](no.md)`\n"),
            page(
                "docs/b.md",
                "# B\n```text\n[n](gone.md)\n```\n[up](a.md#one-thing-and-two)\n[web](https://a.b)",
            ),
        ];
        let directory = tempfile::tempdir().expect("there is room");
        std::fs::create_dir(directory.path().join("docs")).expect("it is empty");
        for page in &pages {
            std::fs::write(directory.path().join(&page.path), &page.text).expect("there is room");
        }
        let broken = broken_links(directory.path(), &pages);
        assert_eq!(broken, ["docs/a.md:2: b.md#missing", "docs/a.md:2: none.md"]);
    }

    #[test]
    fn pages_and_summary_lines_without_a_counterpart_are_found() {
        let directory = tempfile::tempdir().expect("there is room");
        std::fs::write(directory.path().join("SUMMARY.md"), "- [A](a.md)\n- [B](b.md)\n")
            .expect("there is room");
        let pages = [page("docs/a.md", ""), page("docs/c.md", "")];
        let faults = faults_of_the_list(directory.path(), &pages);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("(c.md)") && faults[1].contains("no b.md"), "{faults:?}");
    }

    #[test]
    fn generated_pages_and_code_do_not_count_as_prose() {
        let pages = [
            page(
                "docs/a.md",
                "# Two words\n```text\ncode here\n```\n| 1 | three |\n<!-- The code generates the rest of this page -->\nx",
            ),
            page("docs/wire.md", "many more words"),
            page("docs/decisions/0001-a.md", "many more words"),
            page("README.md", "many more words"),
        ];
        assert_eq!(words_of_prose(&pages), 3);
    }

    #[test]
    fn decision_without_a_link_in_its_readme_is_reported() {
        let directory = tempfile::tempdir().expect("there is room");
        std::fs::write(directory.path().join("SUMMARY.md"), "- [Archive](decisions/README.md)\n")
            .expect("there is room");
        let pages = [
            page("docs/decisions/README.md", "[1](0001-a.md)\n"),
            page("docs/decisions/0001-a.md", ""),
            page("docs/decisions/0002-b.md", ""),
        ];
        let faults = faults_of_the_list(directory.path(), &pages);
        assert_eq!(faults, ["docs/decisions/README.md needs a link to 0002-b.md"]);
    }
}
