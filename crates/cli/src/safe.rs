//! Safe display of texts from other hosts: sources choose the names of files, and terminals obey control characters.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal interprets the character instead of showing it. Line ends and tabs are excepted: texts contain them only if
/// faircast has written them.
fn is_command(c: char) -> bool {
    faircast::object::is_command(c) && !matches!(c, '\n' | '\t')
}

/// Escapes a name within a line of text, including line ends and tabs.
pub fn name(received: &str) -> Cow<'_, str> {
    escaped(received, faircast::object::is_command)
}

/// Escapes control characters of a text as `\u{1b}` and so on. All text output passes through this function.
pub fn text(received: &str) -> Cow<'_, str> {
    escaped(received, is_command)
}

fn escaped(received: &str, is_command: fn(char) -> bool) -> Cow<'_, str> {
    if !received.contains(is_command) {
        return Cow::Borrowed(received);
    }
    let mut shown = String::with_capacity(received.len() + 16);
    for c in received.chars() {
        match is_command(c) {
            true => _ = write!(shown, "{}", c.escape_unicode()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Escapes the characters that a terminal interprets in a line of JSON, as in `\u001b`. A JSON parser restores the original
/// characters. The characters occur only within JSON strings.
pub fn json(line: &str) -> Cow<'_, str> {
    if !line.contains(is_command) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        match is_command(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(shown, "\\u{unit:04x}")),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_are_escaped() {
        let evil = "a\u{1b}]0;title\u{7}b\u{9b}2J\r\u{202e}gpj.exe\u{7f}";
        let shown = text(evil);
        assert_eq!(shown, "a\\u{1b}]0;title\\u{7}b\\u{9b}2J\\u{d}\\u{202e}gpj.exe\\u{7f}");
        assert!(!shown.contains(is_command));
        assert_eq!(text("a\u{2028}b\u{2029}c\u{85}"), "a\\u{2028}b\\u{2029}c\\u{85}");
        assert_eq!((text("a\nb"), name("a\nb\t")), ("a\nb".into(), "a\\u{a}b\\u{9}".into()));
        for plain in ["", "lab-07: line\n\tnext", "Größe 大小 ◻", "naïve"] {
            assert!(matches!(text(plain), Cow::Borrowed(same) if same == plain));
        }
    }

    #[test]
    fn control_characters_in_json_are_escaped() {
        let evil = "a\u{1b}b\u{9b}2J\u{202e}c\u{7f}\"\\";
        let line = serde_json::to_string(&[evil]).expect("a string is JSON");
        let shown = json(&line);
        assert!(shown.is_ascii() && shown.contains("\\u009b2J\\u202ec\\u007f"), "{shown}");
        let [read] = serde_json::from_str::<[String; 1]>(&shown).expect("still JSON");
        assert_eq!(read, evil);
    }
}
