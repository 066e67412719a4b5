//! A scenario file as a tree. Each value has its position in the text.

use super::diagnostic::Diagnostic;
use faircast_core::own;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A value and its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub span: Range<usize>,
    pub value: Value,
}

/// A value of any kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Number(f64),
    Truth(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Range<usize>,
    pub node: Node,
}

impl Node {
    /// Parses TOML.
    pub fn parse(text: &str) -> Result<Node, Vec<Diagnostic>> {
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut wrong: Vec<Diagnostic> = errors
            .iter()
            .map(|error| {
                let span = error.span().unwrap_or(0..0);
                Diagnostic::new(&span, format!("not valid TOML: {}", error.message()), "here")
            })
            .collect();
        let span = document.span();
        let table = Value::Table(entries(document.get_ref(), &mut wrong));
        if wrong.is_empty() { Ok(Node { span, value: table }) } else { Err(wrong) }
    }

    /// Returns the entries of a table.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// Returns the elements of a key's value: those of a list, or the single value; empty if the key is missing.
    pub fn list(&self, key: &str) -> &[Node] {
        self.get(key).map_or(&[], Node::items)
    }

    /// Returns the entries of the table that is a key's value; empty if the key is missing.
    pub fn table(&self, key: &str) -> &[Entry] {
        self.get(key).map_or(&[], Node::entries)
    }

    /// Returns the position of a key's value; an empty range if the key is missing.
    pub fn place(&self, key: &str) -> Range<usize> {
        self.get(key).map_or(0..0, |node| node.span.clone())
    }

    /// Returns the elements of a list. If the value is not a list, returns the value itself.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// Returns the text, if the value is a text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if the value is a number.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the kind of this value, in words.
    pub fn what(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a text",
            Value::Number(_) => "a number",
            Value::Truth(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Sets the value at `path` to `with`. A path has the form `a.b.c`. A table in a list is named by its `name`, or by its
    /// number from 1. A missing key is added to its table. The error names the part of the path that does not exist.
    pub fn set(&mut self, path: &str, with: &Node) -> Result<(), String> {
        let (head, rest) = match path.split_once('.') {
            Some((head, rest)) => (head, Some(rest)),
            None => (path, None),
        };
        match &mut self.value {
            Value::Table(entries) => {
                let place = match entries.iter().position(|entry| entry.key == head) {
                    Some(place) => place,
                    None => {
                        let node = Node { span: with.span.clone(), value: Value::Table(Vec::new()) };
                        entries.push(Entry { key: head.to_owned(), key_span: with.span.clone(), node });
                        entries.len() - 1
                    }
                };
                entries[place].node.replace(rest, with)
            }
            Value::List(items) => {
                let named = items.iter().position(|item| item.get("name").and_then(Node::text) == Some(head));
                let numbered = head.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                match named.or(numbered.filter(|number| *number < items.len())) {
                    Some(place) => items[place].replace(rest, with),
                    None => Err(head.to_owned()),
                }
            }
            _ => Err(head.to_owned()),
        }
    }

    /// Returns the value in TOML, on one line.
    pub fn toml(&self) -> String {
        match &self.value {
            Value::Text(text) => toml_edit::Value::from(text.as_str()).to_string(),
            Value::Number(number) => number.to_string(),
            Value::Truth(truth) => truth.to_string(),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(Node::toml).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(entries) => {
                let entry = |entry: &Entry| {
                    format!("{} = {}", toml_edit::Key::new(entry.key.as_str()), entry.node.toml())
                };
                let entries: Vec<String> = entries.iter().map(entry).collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    /// Returns a hash of the tree. Positions and the keys `without` at the root are not included.
    pub fn fingerprint(&self, without: &[&str]) -> blake3::Hash {
        let mut hash = blake3::Hasher::new();
        let entries = self.entries().iter().filter(|entry| !without.contains(&entry.key.as_str()));
        entries.for_each(|entry| {
            text(&mut hash, b'k', &entry.key);
            entry.node.add_to(&mut hash);
        });
        hash.finalize()
    }

    fn add_to(&self, hash: &mut blake3::Hasher) {
        match &self.value {
            Value::Text(value) => {
                text(hash, b't', value);
                own::versions_in(value).iter().for_each(|version| text(hash, b'v', version));
            }
            Value::Number(number) => {
                hash.update(b"n").update(&number.to_bits().to_le_bytes());
            }
            Value::Truth(truth) => {
                hash.update(&[b'b', u8::from(*truth)]);
            }
            Value::List(items) => {
                hash.update(b"[");
                items.iter().for_each(|item| item.add_to(hash));
                hash.update(b"]");
            }
            Value::Table(entries) => {
                hash.update(b"{");
                for entry in entries {
                    text(hash, b'k', &entry.key);
                    entry.node.add_to(hash);
                }
                hash.update(b"}");
            }
        }
    }

    fn replace(&mut self, rest: Option<&str>, with: &Node) -> Result<(), String> {
        match rest {
            Some(rest) => self.set(rest, with),
            None => {
                *self = with.clone();
                Ok(())
            }
        }
    }
}

/// Adds a text with its kind and length to the hash.
fn text(hash: &mut blake3::Hasher, kind: u8, text: &str) {
    hash.update(&[kind]).update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
}

fn entries(table: &DeTable<'_>, wrong: &mut Vec<Diagnostic>) -> Vec<Entry> {
    let entry = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| Entry {
        key: key.get_ref().to_string(),
        key_span: key.span(),
        node: node(value, wrong),
    };
    table.iter().map(entry).collect()
}

fn node(value: &toml::Spanned<DeValue<'_>>, wrong: &mut Vec<Diagnostic>) -> Node {
    let span = value.span();
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Number(number as f64),
            Err(_) => {
                wrong.push(Diagnostic::new(
                    &span,
                    "the whole number is too large",
                    "does not fit in 64 bits",
                ));
                Value::Number(0.0)
            }
        },
        DeValue::Float(number) => Value::Number(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(item, wrong)).collect()),
        DeValue::Table(table) => Value::Table(entries(table, wrong)),
    };
    Node { span, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_position_in_the_text() {
        let text = "a = 1\n[b]\nc = \"x\"\n";
        let tree = Node::parse(text).expect("valid");
        let c = tree.get("b").and_then(|b| b.get("c")).expect("present");
        assert_eq!(&text[c.span.clone()], "\"x\"");
    }

    #[test]
    fn paths_select_tables_by_name_or_number() {
        let mut tree = Node::parse("[[flow]]\nname = \"a\"\n[[flow]]\nname = \"b\"\n").expect("valid");
        let five = Node { span: 0..0, value: Value::Number(5.0) };
        tree.set("flow.b.count", &five).expect("leads somewhere");
        tree.set("flow.1.count", &five).expect("leads somewhere");
        tree.set("new.table", &five).expect("is added");
        let flows = tree.get("flow").expect("present").items().to_vec();
        assert!(flows.iter().all(|flow| flow.get("count") == Some(&five)));
        assert_eq!(tree.get("new").and_then(|new| new.get("table")), Some(&five));
        assert_eq!(tree.set("flow.c.count", &five), Err("c".into()));
    }

    #[test]
    fn fingerprints_depend_on_values_but_not_on_positions() {
        let of = |text: &str| Node::parse(text).expect("valid").fingerprint(&["title"]);
        let one = of("title = \"x\"\na = 1\n[b]\nc = [1, \"2\"]\n");
        assert_eq!(one, of("# more\na   = 1.0\n\n[b]\nc = [ 1, \"2\" ]\n"));
        for other in ["a = 2\n[b]\nc = [1, \"2\"]", "a = 1\n[b]\nc = [1, 2]", "a = 1\n[b]\nd = [1, \"2\"]"] {
            assert_ne!(one, of(other), "{other}");
        }
    }

    #[test]
    fn values_round_trip_as_text() {
        for text in ["\"a b\"", "5", "0.25", "true", "[\"1 Mbit/s\", 2]", "{ a = 1, \"b.c\" = [\"x\"] }"] {
            let read = |text: &str| Node::parse(&format!("key = {text}")).expect("valid");
            let written = read(text).get("key").expect("present").toml();
            assert_eq!(read(&written).fingerprint(&[]), read(text).fingerprint(&[]), "{written}");
        }
    }

    #[test]
    fn several_syntax_errors_are_reported_together() {
        assert!(Node::parse("a = \nb = 1\nc = [\n").expect_err("invalid").len() >= 2);
    }
}
