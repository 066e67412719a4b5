//! Counts of hard-to-read patterns in comments, documentation and names of tests, by file.
//!
//! `language.txt` records the count of each file. A count may only decrease, and a new file must have no such pattern.
//! `FAIRCAST_BLESS=1` lowers the record to the present counts.

use crate::scan::Source;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// Maximum number of words in a sentence.
const MAX_WORDS: usize = 35;

/// Maximum number of letters in the name of a test.
const MAX_NAME: usize = 60;

/// First words of sentences that begin with a clause in place of a noun.
const CLAUSES: [&str; 7] = ["What", "Who", "Whoever", "Whatever", "Whichever", "Whose", "Of"];

/// Counts of the patterns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of sentences that begin with a clause in place of a noun.
    pub clauses: usize,
    /// Number of uses of "so many" and similar words instead of a number.
    pub so_many: usize,
    /// Number of uses of "is none".
    pub none: usize,
    /// Number of uses of "tell" instead of report, notify or log.
    pub tell: usize,
    /// Number of sentences with too many words.
    pub long: usize,
    /// Number of test names with too many letters.
    pub names: usize,
}

impl Counts {
    pub fn all(self) -> usize {
        self.clauses + self.so_many + self.none + self.tell + self.long + self.names
    }

    fn add(&mut self, other: Counts) {
        self.clauses += other.clauses;
        self.so_many += other.so_many;
        self.none += other.none;
        self.tell += other.tell;
        self.long += other.long;
        self.names += other.names;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { clauses, so_many, none, tell, long, names } = self;
        write!(f, "{:6} {clauses:7} {so_many:7} {none:4} {tell:4} {long:4} {names:5}", self.all())
    }
}

/// Returns the counts of a Rust or Markdown file.
pub fn counts(source: &Source) -> Counts {
    let is_rust = source.path.extension().is_some_and(|kind| kind == "rs");
    let mut counts = Counts::default();
    let paragraphs = if is_rust { comments(&source.text) } else { paragraphs(&source.text) };
    paragraphs.iter().for_each(|text| counts.add(of_paragraph(text)));
    if is_rust {
        counts.names = test_names(&source.text).filter(|name| name.len() > MAX_NAME).count();
    }
    counts
}

/// Returns a table of the counts, by crate for code and by folder for documentation.
pub fn table(sources: &[Source]) -> String {
    let mut rooms: BTreeMap<String, Counts> = BTreeMap::new();
    for source in sources {
        let mut parts = source.path.components().map(|part| part.as_os_str().to_string_lossy());
        let first = parts.next().unwrap_or_default();
        let room = match (first.as_ref(), parts.next(), parts.next()) {
            ("crates", Some(name), _) => name.into_owned(),
            (_, Some(_), _) => first.into_owned(),
            _ => ".".to_owned(),
        };
        rooms.entry(room).or_default().add(counts(source));
    }
    let mut all = Counts::default();
    let mut table = format!("{:14} {:>6} clauses so many none tell long names\n", "", "all");
    for (room, counts) in rooms {
        all.add(counts);
        writeln!(table, "{room:14} {counts}").expect("text has room");
    }
    writeln!(table, "{:14} {all}", "all").expect("text has room");
    table
}

/// Returns the counts of a record by path.
pub fn record(text: &str) -> BTreeMap<&str, usize> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(path, count)| Some((path, count.parse().ok()?)))
        .collect()
}

/// Returns the names of functions with the attribute `#[test]`.
fn test_names(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[test]").skip(1).filter_map(|rest| {
        let (_, rest) = rest.split_once("fn ")?;
        rest.split('(').next()
    })
}

/// Returns the comments of a Rust file, each as one text, without code examples.
fn comments(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut is_code = false;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("//") else {
            is_code = false;
            all.push(String::new());
            continue;
        };
        take_line(&mut all, &mut is_code, comment.trim_start_matches(['/', '!']).trim());
    }
    all
}

/// Returns the paragraphs, list items and table cells of a page, without blocks of code.
fn paragraphs(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut is_code = false;
    text.lines().for_each(|line| take_line(&mut all, &mut is_code, line.trim()));
    all
}

fn take_line(all: &mut Vec<String>, is_code: &mut bool, line: &str) {
    if line.starts_with("```") {
        *is_code = !*is_code;
        all.push(String::new());
        return;
    }
    if *is_code {
        return;
    }
    let begins =
        line.is_empty() || ["| ", "- ", "* ", "# ", "## ", "### "].iter().any(|mark| line.starts_with(mark));
    if begins {
        all.push(String::new());
    }
    if line.starts_with('|') {
        // Each cell is a separate text.
        all.extend(line.split('|').map(|cell| cell.trim().to_owned()));
        all.push(String::new());
        return;
    }
    let line = line.trim_start_matches(['-', '*', '#', ' ']);
    let last = all.last_mut().expect("there is one");
    if !last.is_empty() {
        last.push(' ');
    }
    last.push_str(line);
}

fn of_paragraph(text: &str) -> Counts {
    let mut counts = Counts::default();
    for sentence in sentences(text) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let begins_with_clause = words.first().is_some_and(|first| CLAUSES.contains(first))
            && words.get(1).is_some_and(|second| second.starts_with(|letter: char| letter.is_lowercase()));
        counts.clauses += usize::from(begins_with_clause);
        counts.long += usize::from(words.len() > MAX_WORDS);
        let plain: Vec<String> = words.iter().map(|word| bare(word)).collect();
        for pair in plain.windows(2) {
            let [first, second] = pair else { continue };
            counts.so_many +=
                usize::from(first == "so" && ["many", "much", "long", "often"].contains(&&**second));
            counts.none += usize::from(["is", "are", "was", "were"].contains(&&**first) && second == "none");
        }
        counts.tell += plain.iter().filter(|word| ["tell", "tells", "told"].contains(&&***word)).count();
    }
    counts
}

/// Returns a word in lower case, without surrounding punctuation; an empty text for code, such as `None`.
fn bare(word: &str) -> String {
    if word.starts_with('`') {
        return String::new();
    }
    word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase()
}

/// Returns the sentences and main clauses of a text. They end with a punctuation mark before a space.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = [".", "?", "!", ";"].iter().filter_map(|mark| rest.find(&format!("{mark} "))).min() {
        found.push(&rest[..=at]);
        rest = rest[at + 1..].trim_start();
    }
    found.push(rest);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn of(name: &str, text: &str) -> Counts {
        counts(&Source { path: PathBuf::from(name), text: text.to_owned() })
    }

    #[test]
    fn patterns_are_counted_in_comments_but_not_in_strings() {
        let text = "/// What is left, in bytes. Of those, so many are none.\n/// The reader is told.\nlet what = \"What is this\";\n";
        let found = of("a.rs", text);
        assert_eq!(found, Counts { clauses: 2, so_many: 1, none: 1, tell: 1, ..Counts::default() });
    }

    #[test]
    fn sentence_ends_only_at_punctuation_before_a_space_or_line_end() {
        let words = |count: usize| vec!["word"; count].join(" ");
        let text = format!("// {}\n// {} 3.1.5\n", words(20), words(15));
        assert_eq!(of("a.rs", &text).long, 1);
        let text = format!("// {}.\n// {}\n", words(20), words(16));
        assert_eq!(of("a.rs", &text).long, 0);
    }

    #[test]
    fn pages_are_checked_by_paragraph_item_and_cell_without_code() {
        let text = "- Who comes late\n\n| Who waits | So many |\n\n```\nWhat is code\n```\nWhatever fails\n";
        let found = of("a.md", text);
        assert_eq!((found.clauses, found.so_many), (3, 1));
    }

    #[test]
    fn long_names_of_tests_are_counted() {
        let name = "n".repeat(MAX_NAME + 1);
        assert_eq!(of("a.rs", &format!("#[test]\nfn {name}() {{}}\n")).names, 1);
        assert_eq!(of("a.rs", &format!("fn {name}() {{}}\n")).names, 0);
    }
}
