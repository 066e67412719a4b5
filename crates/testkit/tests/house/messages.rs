//! Messages that a user can see: string literals of at least three words in production code, and texts of errors.
//!
//! `messages.txt` lists the messages by file. A reviewer can read all messages in this list, and a diff shows each new message.
//! `FAIRCAST_BLESS=1` writes the list.

use crate::scan::{Source, strings};
use std::fmt::Write;

/// Crates whose string literals reach a user. In other crates only texts of errors reach a user.
const SPEAKING: [&str; 11] =
    ["cli", "cocoon-bpf", "driver", "faircast", "flute", "host", "net", "object", "pgm", "transport", "wire"];

/// Parts of statements whose literals are not messages for users: messages for developers, and help texts, which `docs/cli.md`
/// lists.
const INTERNAL: [&str; 12] = [
    "assert",
    "panic!(",
    "unreachable!(",
    "expect(",
    "#[arg(",
    "#[command(",
    "#[cfg",
    "#[doc",
    "#[group(",
    "trace::",
    "include_",
    "env!(",
];

/// Minimum number of words of a message.
const MIN_WORDS: usize = 3;

/// Returns the list of all messages by file.
pub fn list(sources: &[Source]) -> String {
    let mut all = String::new();
    for source in sources {
        let path = source.path.to_string_lossy();
        let Some((name, file)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let is_test = file.split(['/', '.']).any(|part| ["tests", "pair", "fuzzing", "kit"].contains(&part));
        if is_test || name == "testkit" {
            continue;
        }
        let found: Vec<String> = messages(&source.text, SPEAKING.contains(&name)).collect();
        if !found.is_empty() {
            writeln!(all, "\n## {path}").expect("text has room");
            found.iter().for_each(|message| writeln!(all, "{message}").expect("text has room"));
        }
    }
    all
}

/// Returns the messages of a file, one line each: all literals, or only the texts of errors.
fn messages(text: &str, all: bool) -> impl Iterator<Item = String> {
    strings(text).into_iter().filter_map(move |literal| {
        let statement = text[..literal.at].rsplit([';', '{', '}']).next().unwrap_or_default();
        let is_error = statement.contains("#[error(");
        if !is_error && (!all || INTERNAL.iter().any(|word| statement.contains(word))) {
            return None;
        }
        let line: Vec<&str> = literal.text.split_whitespace().filter(|word| *word != "\\").collect();
        let words = line.iter().filter(|word| word.chars().any(char::is_alphabetic)).count();
        (is_error || words >= MIN_WORDS).then(|| line.join(" "))
    })
}

#[test]
fn user_messages_are_found_among_other_literals() {
    let text = concat!(
        "#[error(\"no {0}\")]\nA(u8),\nlet a = \"cannot read \\\n    {path}\";\nb.expect(\"it is there now\");\n",
        "assert!(c, \"not for a user\"); let d = \"one two\";"
    );
    assert_eq!(messages(text, true).collect::<Vec<_>>(), ["no {0}", "cannot read {path}"]);
    assert_eq!(messages(text, false).collect::<Vec<_>>(), ["no {0}"]);
}
