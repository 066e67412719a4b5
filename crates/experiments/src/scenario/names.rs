//! Names of nodes. Rows such as `leaf1` ... `leaf1000000` are stored as a prefix and a count.

use std::collections::BTreeMap;

/// The names of all nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    rows: Vec<Row>,
    singles: BTreeMap<String, u32>,
    nodes: u32,
}

/// A row of nodes `prefix1`, `prefix2`, ...; `first` is the first node.
#[derive(Debug, Clone)]
struct Row {
    prefix: String,
    /// The number that follows the prefix in the name of the first node.
    number: u32,
    first: u32,
    count: u32,
}

/// Reason why a pattern matches no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// No node has this name. The string is the most similar name.
    Unknown(Option<String>),
    /// The row has no node with this number. The string is the range of the row.
    Beyond(String),
    /// `[a-b]` does not contain two numbers.
    BadRange,
}

/// Maximum number of nodes.
pub(crate) const MAX: u64 = 1 << 28;

impl Names {
    /// Returns the number of nodes.
    pub fn len(&self) -> u32 {
        self.nodes
    }

    /// Adds a row of `count` nodes, numbered from `number` on. Returns the first node.
    pub fn row(&mut self, prefix: &str, number: u32, count: u32) -> u32 {
        let first = self.nodes;
        self.rows.push(Row { prefix: prefix.to_owned(), number, first, count });
        self.nodes += count;
        first
    }

    /// Adds one node and returns it.
    pub fn single(&mut self, name: &str) -> u32 {
        self.singles.insert(name.to_owned(), self.nodes);
        self.nodes += 1;
        self.nodes - 1
    }

    /// Returns the name of a node.
    pub fn name(&self, node: u32) -> String {
        let row = self.rows.iter().find(|row| (row.first..row.first + row.count).contains(&node));
        match row {
            Some(row) => format!("{}{}", row.prefix, row.number + (node - row.first)),
            None => {
                let single = self.singles.iter().find(|(_, known)| **known == node);
                single.map_or_else(|| format!("node{node}"), |(name, _)| name.clone())
            }
        }
    }

    /// Returns the node with exactly this name.
    pub fn exact(&self, name: &str) -> Option<u32> {
        if let Some(node) = self.singles.get(name) {
            return Some(*node);
        }
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[prefix.len()..];
        if digits.starts_with('0') && digits.len() > 1 {
            return None;
        }
        let number: u32 = digits.parse().ok()?;
        // If a prefix contains digits, a dot follows them, as in `r1.`. A name can therefore be split in only one way.
        let row = self
            .rows
            .iter()
            .find(|row| row.prefix == prefix && number >= row.number && number - row.number < row.count)?;
        Some(row.first + (number - row.number))
    }

    /// Returns the nodes that [`Self::find`] returns. Makes no suggestions on failure.
    pub fn existing(&self, pattern: &str) -> Option<Vec<u32>> {
        match pattern.contains(['*', '[']) {
            true => self.find(pattern).ok(),
            false => self.exact(pattern).map(|node| vec![node]),
        }
    }

    /// Returns the nodes that match a pattern, in order. Examples of patterns are `leaf3`, `leaf*`, `leaf[1-16]` and `*`.
    pub fn find(&self, pattern: &str) -> Result<Vec<u32>, Nothing> {
        let mut found = Vec::new();
        match brackets(pattern) {
            Brackets::None if !pattern.contains('*') => found.extend(self.exact(pattern)),
            Brackets::None => self.find_glob(pattern, &mut found),
            Brackets::Bad => return Err(Nothing::BadRange),
            Brackets::Range { before, from, to, after } => {
                for number in from..=to {
                    let name = format!("{before}{number}{after}");
                    if name.contains('*') {
                        self.find_glob(&name, &mut found);
                    } else {
                        found.push(self.exact(&name).ok_or_else(|| self.unknown(&name))?);
                    }
                }
            }
        }
        if found.is_empty() { Err(self.unknown(pattern)) } else { Ok(found) }
    }

    fn find_glob(&self, pattern: &str, found: &mut Vec<u32>) {
        let stem = pattern.strip_suffix('*').filter(|stem| !stem.contains('*'));
        let before = found.len();
        for row in &self.rows {
            if stem.is_some_and(|stem| row.prefix.starts_with(stem)) {
                found.extend(row.first..row.first + row.count);
            } else if starts_alike(pattern, &row.prefix) {
                let nodes =
                    (0..row.count).filter(|i| glob(pattern, &format!("{}{}", row.prefix, row.number + i)));
                found.extend(nodes.map(|i| row.first + i));
            }
        }
        found.extend(self.singles.iter().filter(|(name, _)| glob(pattern, name)).map(|(_, node)| *node));
        found[before..].sort_unstable();
    }

    fn unknown(&self, name: &str) -> Nothing {
        // Rows are compared by their prefix, without the number.
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '*' | '[' | ']' | '-'));
        let prefixes = self.rows.iter().map(|row| row.prefix.as_str()).filter(|prefix| *prefix != stem);
        let row = super::diagnostic::nearest(stem, prefixes).map(|prefix| format!("{prefix}*"));
        let single =
            super::diagnostic::nearest(name, self.singles.keys().map(String::as_str)).map(str::to_owned);
        let near = single.or(row);
        let too_far = self.rows.iter().find_map(|row| {
            let number: u32 = name.strip_prefix(&row.prefix)?.parse().ok()?;
            (number >= row.number + row.count)
                .then(|| format!("{0}{1} to {0}{2}", row.prefix, row.number, row.number + row.count - 1))
        });
        too_far.map_or(Nothing::Unknown(near), Nothing::Beyond)
    }

    /// Returns patterns that match the known nodes, for messages.
    pub fn known(&self) -> String {
        let row = |row: &Row| match row.count {
            1 => format!("{}{}", row.prefix, row.number),
            count => format!("{}[{}-{}]", row.prefix, row.number, row.number + count - 1),
        };
        let mut all: Vec<String> = self.rows.iter().filter(|row| row.count > 0).map(row).collect();
        all.extend(self.singles.keys().cloned());
        if all.len() > 8 {
            all.truncate(8);
            all.push("...".into());
        }
        all.join(", ")
    }
}

pub(crate) enum Brackets<'a> {
    None,
    Bad,
    Range { before: &'a str, from: u32, to: u32, after: &'a str },
}

/// Returns the first `[a-b]` of a pattern.
pub(crate) fn brackets(pattern: &str) -> Brackets<'_> {
    let Some((before, rest)) = pattern.split_once('[') else {
        return if pattern.contains(']') { Brackets::Bad } else { Brackets::None };
    };
    let parts = rest.split_once(']').and_then(|(range, after)| Some((range.split_once('-')?, after)));
    let Some(((from, to), after)) = parts else { return Brackets::Bad };
    match (from.trim().parse(), to.trim().parse()) {
        (Ok(from), Ok(to)) if from <= to && u64::from(to) < MAX && !after.contains(['[', ']']) => {
            Brackets::Range { before, from, to, after }
        }
        _ => Brackets::Bad,
    }
}

/// Returns whether the literal part of `pattern` is a prefix of `prefix`, or `prefix` is a prefix of the literal part.
fn starts_alike(pattern: &str, prefix: &str) -> bool {
    let literal = pattern.split('*').next().unwrap_or_default();
    let shared = literal.len().min(prefix.len());
    literal.as_bytes()[..shared] == prefix.as_bytes()[..shared]
}

/// Returns whether `name` matches a pattern in which `*` stands for any characters.
fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            match rest.find(middle) {
                Some(at) => rest = &rest[at + str::len(middle)..],
                None => return false,
            }
        }
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        names.single("hub");
        names.row("src", 1, 2);
        names.row("leaf", 1, 12);
        names.row("leaf0.", 1, 2);
        names
    }

    #[test]
    fn numbered_nodes_are_found_by_pattern_and_number() {
        let names = names();
        assert_eq!(names.find("leaf3"), Ok(vec![5]));
        assert_eq!(names.find("leaf[2-4]"), Ok(vec![4, 5, 6]));
        assert_eq!(names.find("leaf1*"), Ok(vec![3, 12, 13, 14]));
        assert_eq!(names.find("leaf*").map(|found| found.len()), Ok(14));
        assert_eq!(names.find("leaf0.*"), Ok(vec![15, 16]));
        assert_eq!(names.find("*").map(|found| found.len()), Ok(17));
        assert_eq!(names.find("h*b"), Ok(vec![0]));
    }

    #[test]
    fn every_node_is_found_by_its_name() {
        let names = names();
        for node in 0..names.len() {
            assert_eq!(names.exact(&names.name(node)), Some(node));
        }
    }

    #[test]
    fn unknown_name_is_refused_with_a_suggestion() {
        let names = names();
        assert_eq!(names.find("leaf13"), Err(Nothing::Beyond("leaf1 to leaf12".into())));
        assert_eq!(names.find("hup"), Err(Nothing::Unknown(Some("hub".into()))));
        assert_eq!(names.find("leaf[4-2]"), Err(Nothing::BadRange));
        assert!(matches!(names.find("leaf01"), Err(Nothing::Unknown(_))), "a number has no leading zeros");
    }
}
