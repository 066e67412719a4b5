//! Changes to a scenario's text before it is read: by hand (`--set`), for comparisons, for quick runs.
//!
//! The result is a text again, so that what is stored beside results is what was run.

use toml::{Table, Value};

/// Why a change cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is no TOML at all.
    #[error("the scenario is not TOML: {0}")]
    NotToml(String),
    /// The path ends before it should.
    #[error(
        "the path `{path}` leads nowhere: there is no `{part}`; write keys by name, flows by their `name`, other \
         tables of a list by their number from 1, as in `flow.multicast.scheme` or `link.1.delay`"
    )]
    Nowhere {
        /// As given.
        path: String,
        /// The part that is not there.
        part: String,
    },
}

/// A scenario's text under change.
#[derive(Debug, Clone)]
pub struct Edit {
    root: Table,
}

impl Edit {
    /// Of this text.
    ///
    /// # Errors
    /// When it is not TOML.
    pub fn of(text: &str) -> Result<Edit, EditError> {
        text.parse()
            .map(|root| Edit { root })
            .map_err(|error: toml::de::Error| EditError::NotToml(error.message().to_owned()))
    }

    /// Set a key; the value is TOML, or else taken as a text.
    ///
    /// # Errors
    /// When the path leads nowhere.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), EditError> {
        let value = parsed(value);
        let (table, key) = self.table(path)?;
        table.insert(key.to_owned(), value);
        Ok(())
    }

    /// Remove a key, if it is there.
    ///
    /// # Errors
    /// When the path leads nowhere.
    pub fn remove(&mut self, path: &str) -> Result<(), EditError> {
        let (table, key) = self.table(path)?;
        table.remove(key);
        Ok(())
    }

    /// Multiply every time of the run by `factor`: its length, windows, starts, stops, changes and timetables, where
    /// they are whole or decimal seconds (`"200 s"`).
    pub fn shorten(&mut self, factor: f64) {
        const TOP: &[&str] = &["duration", "warmup"];
        const FLOW: &[&str] = &["start", "stop", "join", "leave", "settle", "mute_after"];
        scale(&mut self.root, TOP, factor);
        for flow in list(&mut self.root, "flow") {
            scale(flow, FLOW, factor);
            list(flow, "expected").for_each(|line| scale(line, &["from"], factor));
        }
        list(&mut self.root, "window").for_each(|window| scale(window, &["from", "to"], factor));
        list(&mut self.root, "change").for_each(|change| scale(change, &["at"], factor));
    }

    /// The names of the flows, and the kind of each.
    pub fn flows(&self) -> Vec<(String, String)> {
        let flows = self.root.get("flow").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |flow: &Value, key| flow.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        flows.iter().map(|flow| (text(flow, "name"), text(flow, "kind"))).collect()
    }

    /// The changed text.
    pub fn text(&self) -> String {
        self.root.to_string()
    }

    /// The table that holds the last key of a path, and that key.
    fn table<'a>(&'a mut self, path: &'a str) -> Result<(&'a mut Table, &'a str), EditError> {
        let (parents, key) = path.rsplit_once('.').map_or(("", path), |(parents, key)| (parents, key));
        let nowhere = |part: &str| EditError::Nowhere { path: path.to_owned(), part: part.to_owned() };
        let mut at = &mut self.root;
        let mut parts = parents.split('.').filter(|part| !part.is_empty());
        while let Some(part) = parts.next() {
            at = match at.get_mut(part) {
                Some(Value::Table(table)) => table,
                Some(Value::Array(items)) => {
                    let which = parts.next().ok_or_else(|| nowhere(key))?;
                    member(items, which).ok_or_else(|| nowhere(which))?
                }
                _ => return Err(nowhere(part)),
            };
        }
        Ok((at, key))
    }
}

/// The table of a list with this `name`, or with this number from 1.
fn member<'a>(items: &'a mut [Value], which: &str) -> Option<&'a mut Table> {
    let named = |item: &Value| item.get("name").and_then(Value::as_str) == Some(which);
    let place = items.iter().position(named).or_else(|| which.parse::<usize>().ok()?.checked_sub(1))?;
    items.get_mut(place)?.as_table_mut()
}

fn list<'a>(table: &'a mut Table, key: &str) -> impl Iterator<Item = &'a mut Table> {
    let items = table.get_mut(key).and_then(Value::as_array_mut).map_or(&mut [][..], Vec::as_mut_slice);
    items.iter_mut().filter_map(Value::as_table_mut)
}

fn scale(table: &mut Table, keys: &[&str], factor: f64) {
    for key in keys {
        let Some(Value::String(text)) = table.get_mut(*key) else { continue };
        let seconds = text.strip_suffix('s').and_then(|number| number.trim().parse::<f64>().ok());
        if let Some(seconds) = seconds {
            *text = format!("{} s", seconds * factor);
        }
    }
}

fn parsed(text: &str) -> Value {
    format!("value = {text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        title = "t"
        duration = "200 s"
        [topology]
        kind = "star"
        leaves = 4
        [[flow]]
        name = "a"
        kind = "session"
        start = "50 s"
        expected = [{ from = "100 s", is = "leaf1" }]
        [[link]]
        from = "x"
        delay = "20 ms"
        [[window]]
        from = "100 s"
        to = "200 s"
    "#;

    fn edit() -> Edit {
        Edit::of(TEXT).expect("it is TOML")
    }

    fn at<'a>(root: &'a Table, path: &[&str]) -> &'a Value {
        let (first, rest) = path.split_first().expect("a path");
        rest.iter().fold(&root[*first], |value, part| match value {
            Value::Array(items) => &items[part.parse::<usize>().expect("a number")],
            value => &value[*part],
        })
    }

    #[test]
    fn keys_are_set_by_name_and_number_as_toml_or_text() {
        let mut edit = edit();
        edit.set("topology.leaves", "100").expect("it is there");
        edit.set("flow.a.scheme", "ormcc,beta=0.6").expect("it is there");
        edit.set("link.1.delay", "\"5 ms\"").expect("it is there");
        edit.remove("flow.a.start").expect("it is there");
        let root: Table = edit.text().parse().expect("it is TOML again");
        assert_eq!(at(&root, &["topology", "leaves"]).as_integer(), Some(100));
        assert_eq!(at(&root, &["flow", "0", "scheme"]).as_str(), Some("ormcc,beta=0.6"));
        assert_eq!(at(&root, &["link", "0", "delay"]).as_str(), Some("5 ms"));
        assert_eq!(at(&root, &["flow", "0"]).get("start"), None);
    }

    #[test]
    fn a_path_that_leads_nowhere_is_named() {
        for (path, part) in [("flow.b.scheme", "b"), ("nosuch.key", "nosuch"), ("link.2.delay", "2")] {
            let error = edit().set(path, "1").expect_err("it is not there");
            assert_eq!(error, EditError::Nowhere { path: path.into(), part: part.into() });
        }
    }

    #[test]
    fn a_shortened_run_has_all_its_times_shortened() {
        let mut edit = edit();
        edit.shorten(0.1);
        let root: Table = edit.text().parse().expect("it is TOML again");
        assert_eq!(root["duration"].as_str(), Some("20 s"));
        assert_eq!(at(&root, &["flow", "0", "start"]).as_str(), Some("5 s"));
        assert_eq!(at(&root, &["flow", "0", "expected", "0", "from"]).as_str(), Some("10 s"));
        assert_eq!(at(&root, &["window", "0", "to"]).as_str(), Some("20 s"));
        assert_eq!(at(&root, &["link", "0", "delay"]).as_str(), Some("20 ms"));
    }

    #[test]
    fn what_is_no_toml_is_refused() {
        assert!(matches!(Edit::of("a = "), Err(EditError::NotToml(_))));
    }
}
