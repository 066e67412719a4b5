//! Changes to the text of a scenario before the text is parsed: by the user (`--set`), for comparisons, and for quick runs.
//!
//! The result is again a text, so the stored text is exactly the text of the scenario that was run.

use toml_edit::{DocumentMut, InlineTable, Item, TableLike, TomlError, Value};

/// Reason why a change cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not TOML.
    #[error("the scenario is not TOML: {0}")]
    NotToml(String),
    /// A part of the path does not exist.
    #[error(
        "the path `{path}` does not exist: `{part}` was not found; a path consists of names of keys, the `name` of a flow, and the number (from 1) of any other table in a list, as in `flow.multicast.scheme` or `link.1.delay`"
    )]
    Nowhere {
        /// The path as given.
        path: String,
        /// The part that does not exist.
        part: String,
    },
}

/// Treatment of a missing table on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// A missing table is created.
    Made,
    /// A missing table is an error.
    Named,
}

/// The text of a scenario, and changes to it. Comments and the order of keys do not change.
#[derive(Debug, Clone)]
pub struct Edit {
    document: DocumentMut,
}

impl Edit {
    /// Parses the text of a scenario.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn of(text: &str) -> Result<Edit, EditError> {
        text.parse()
            .map(|document| Edit { document })
            .map_err(|error: TomlError| EditError::NotToml(error.message().to_owned()))
    }

    /// Sets a key. A value that is not TOML becomes a string. Missing tables on the path are created.
    ///
    /// # Errors
    /// If the path does not exist.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), EditError> {
        let value = value.trim().parse().unwrap_or_else(|_| Value::from(value));
        let (table, key) = self.table(path, Missing::Made)?;
        match table.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => replace(old, value),
            None => drop(table.insert(key, Item::Value(value))),
        }
        Ok(())
    }

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// If the path does not exist.
    pub fn remove(&mut self, path: &str) -> Result<(), EditError> {
        let (table, key) = self.table(path, Missing::Named)?;
        table.remove(key);
        Ok(())
    }

    /// Removes each table of a list unless `keep` accepts the table's text of `key`.
    pub fn retain(&mut self, list: &str, key: &str, keep: impl Fn(&str) -> bool) {
        match self.document.get_mut(list) {
            Some(Item::ArrayOfTables(tables)) => tables.retain(|table| keep(text(table, key))),
            Some(Item::Value(Value::Array(items))) => {
                items.retain(|item| item.as_inline_table().is_none_or(|table| keep(text(table, key))));
            }
            _ => {}
        }
    }

    /// Multiplies all times of a scenario by `factor`: duration, windows, starts, stops, changes and timetables. Only times in
    /// seconds, such as `"200 s"` or `"0.5 s"`, are changed.
    pub fn shorten(&mut self, factor: f64) {
        const TOP: &[&str] = &["duration", "warmup"];
        const FLOW: &[&str] = &["start", "stop", "join", "leave", "settle", "mute_after"];
        let root = self.document.as_table_mut();
        scale(root, TOP, factor);
        for flow in list(root, "flow") {
            scale(flow, FLOW, factor);
            list(flow, "expected").into_iter().for_each(|line| scale(line, &["from"], factor));
        }
        list(root, "window").into_iter().for_each(|window| scale(window, &["from", "to"], factor));
        list(root, "change").into_iter().for_each(|change| scale(change, &["at"], factor));
    }

    /// Replaces the names of trace files by the contents of the files, which `read` returns for each name.
    ///
    /// # Errors
    /// The error of the first file that cannot be read.
    pub fn read_traces<E>(&mut self, mut read: impl FnMut(&str) -> Result<String, E>) -> Result<(), E> {
        for (tables, key, named) in [("flow", "trace", "trace_file"), ("change", "rates", "rates_file")] {
            for table in list(self.document.as_table_mut(), tables) {
                if let Some(name) = table.get(named).and_then(Item::as_str).map(str::to_owned) {
                    let text = read(&name)?;
                    table.remove(named);
                    table.insert(key, Item::Value(Value::from(text)));
                }
            }
        }
        Ok(())
    }

    /// Returns name and kind of each flow.
    pub fn flows(&self) -> Vec<(String, String)> {
        let flows: Vec<&dyn TableLike> = match self.document.get("flow") {
            Some(Item::ArrayOfTables(tables)) => tables.iter().map(|table| table as &dyn TableLike).collect(),
            Some(Item::Value(Value::Array(items))) => {
                items.iter().filter_map(Value::as_inline_table).map(|table| table as &dyn TableLike).collect()
            }
            _ => Vec::new(),
        };
        flows.iter().map(|flow| (text(*flow, "name").to_owned(), text(*flow, "kind").to_owned())).collect()
    }

    /// Returns the changed text.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Returns the table that contains the last key of a path, and this key.
    fn table<'a>(
        &'a mut self,
        path: &'a str,
        missing: Missing,
    ) -> Result<(&'a mut dyn TableLike, &'a str), EditError> {
        let (parents, key) = path.rsplit_once('.').map_or(("", path), |(parents, key)| (parents, key));
        let nowhere = |part: &str| EditError::Nowhere { path: path.to_owned(), part: part.to_owned() };
        let mut at: &mut dyn TableLike = self.document.as_table_mut();
        let mut parts = parents.split('.').filter(|part| !part.is_empty());
        while let Some(part) = parts.next() {
            at = match at.get(part) {
                Some(item) if item.is_array_of_tables() || item.is_array() => {
                    let which = parts.next().ok_or_else(|| nowhere(key))?;
                    member(list(at, part), which).ok_or_else(|| nowhere(which))?
                }
                None if missing == Missing::Made => {
                    at.insert(part, Item::Value(Value::InlineTable(InlineTable::new())));
                    at.get_mut(part).and_then(Item::as_table_like_mut).ok_or_else(|| nowhere(part))?
                }
                _ => at.get_mut(part).and_then(Item::as_table_like_mut).ok_or_else(|| nowhere(part))?,
            };
        }
        Ok((at, key))
    }
}

/// Returns the table of a list whose `name` is `which`, or whose number, counted from 1, is `which`.
fn member<'a>(mut tables: Vec<&'a mut dyn TableLike>, which: &str) -> Option<&'a mut dyn TableLike> {
    let named = |table: &&mut dyn TableLike| text(*table, "name") == which;
    let place = tables.iter().position(named).or_else(|| which.parse::<usize>().ok()?.checked_sub(1))?;
    (place < tables.len()).then(|| tables.swap_remove(place))
}

/// Returns the tables of a list, which is written either as `[[list]]` or as an array of inline tables.
fn list<'a>(table: &'a mut dyn TableLike, key: &str) -> Vec<&'a mut dyn TableLike> {
    match table.get_mut(key) {
        Some(Item::ArrayOfTables(tables)) => {
            tables.iter_mut().map(|table| table as &mut dyn TableLike).collect()
        }
        Some(Item::Value(Value::Array(items))) => {
            let tables = items.iter_mut().filter_map(Value::as_inline_table_mut);
            tables.map(|table| table as &mut dyn TableLike).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the text of a key, or an empty text.
fn text<'a>(table: &'a dyn TableLike, key: &str) -> &'a str {
    table.get(key).and_then(Item::as_str).unwrap_or_default()
}

/// Replaces a value and preserves the spaces and comments around the value.
fn replace(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}

fn scale(table: &mut dyn TableLike, keys: &[&str], factor: f64) {
    for key in keys {
        let Some(value) = table.get_mut(key).and_then(Item::as_value_mut) else { continue };
        let seconds = value.as_str().and_then(|text| text.strip_suffix('s')?.trim().parse::<f64>().ok());
        if let Some(seconds) = seconds {
            replace(value, format!("{} s", seconds * factor).into());
        }
    }
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

    fn read(edit: &Edit) -> DocumentMut {
        edit.text().parse().expect("it is TOML again")
    }

    #[test]
    fn keys_of_named_and_numbered_tables_can_be_set_and_removed() {
        let mut edit = edit();
        edit.set("topology.leaves", "100").expect("it is there");
        edit.set("flow.a.scheme", "ormcc,beta=0.6").expect("it is there");
        edit.set("link.1.delay", "\"5 ms\"").expect("it is there");
        edit.remove("flow.a.start").expect("it is there");
        let root = read(&edit);
        assert_eq!(root["topology"]["leaves"].as_integer(), Some(100));
        assert_eq!(root["flow"][0]["scheme"].as_str(), Some("ormcc,beta=0.6"));
        assert_eq!(root["link"][0]["delay"].as_str(), Some("5 ms"));
        assert!(root["flow"][0].get("start").is_none());
    }

    #[test]
    fn edits_preserve_comments_order_and_spaces() {
        let text = "# Figure 1.\ntitle = \"t\"\nsteps=[1,2] # both\n\n# The middle.\n[topology]\nleaves = 4 # few\n\
                    kind = \"star\"\n\n# Ours.\n[[flow]]\nname = \"a\"\n# Late.\nstart = \"1 s\"\n\n[[claim]]\nof = 1\n";
        let mut edit = Edit::of(text).expect("it is TOML");
        assert_eq!(edit.text(), text);
        edit.set("topology.leaves", "100").expect("it is there");
        edit.set("steps", "[3]").expect("it is there");
        edit.set("flow.a.stop", "9 s").expect("the flow is there");
        edit.set("topology.lossy", "{ from = 1 }").expect("the table is there");
        edit.remove("claim").expect("it is there");
        let expected = "# Figure 1.\ntitle = \"t\"\nsteps=[3] # both\n\n# The middle.\n[topology]\nleaves = 100 # few\n\
                        kind = \"star\"\nlossy = { from = 1 }\n\n# Ours.\n[[flow]]\nname = \"a\"\n# Late.\n\
                        start = \"1 s\"\nstop = \"9 s\"\n";
        assert_eq!(edit.text(), expected);
    }

    #[test]
    fn list_of_tables_can_be_replaced_by_an_inline_list() {
        let mut edit = edit();
        edit.set("window", "[{ from = \"1 s\", to = \"2 s\" }]").expect("it is there");
        edit.set("window.1.to", "3 s").expect("it is there");
        edit.set("title", "'b'").expect("it is there");
        let root = read(&edit);
        assert_eq!(root["window"][0]["to"].as_str(), Some("3 s"));
        assert_eq!(root["title"].as_str(), Some("b"));
        assert_eq!(root["flow"][0]["name"].as_str(), Some("a"));
        assert_eq!(edit.flows(), [("a".to_owned(), "session".to_owned())]);
    }

    #[test]
    fn missing_table_is_created_when_a_key_is_set() {
        let mut edit = edit();
        edit.set("probe.events", "on").expect("the table is made");
        edit.set("topology.access.jitter", "2 ms").expect("the table is made");
        let root = read(&edit);
        assert_eq!(root["probe"]["events"].as_str(), Some("on"));
        assert_eq!(root["topology"]["access"]["jitter"].as_str(), Some("2 ms"));
        assert!(edit.remove("nosuch.key").is_err());
    }

    #[test]
    fn invalid_path_is_reported_with_the_part_that_does_not_exist() {
        for (path, part) in [("flow.b.scheme", "b"), ("title.key", "title"), ("link.2.delay", "2")] {
            let error = edit().set(path, "1").expect_err("it is not there");
            assert_eq!(error, EditError::Nowhere { path: path.into(), part: part.into() });
        }
    }

    #[test]
    fn shortening_a_run_scales_all_times() {
        let mut edit = edit();
        edit.shorten(0.1);
        let root = read(&edit);
        assert_eq!(root["duration"].as_str(), Some("20 s"));
        assert_eq!(root["flow"][0]["start"].as_str(), Some("5 s"));
        assert_eq!(root["flow"][0]["expected"][0]["from"].as_str(), Some("10 s"));
        assert_eq!(root["window"][0]["to"].as_str(), Some("20 s"));
        assert_eq!(root["link"][0]["delay"].as_str(), Some("20 ms"));
    }

    #[test]
    fn tables_of_a_list_are_retained_by_the_text_of_a_key() {
        for lines in [
            "router = [{ is = \"a\" }, { is = \"b,c=1\" }]\n",
            "[[router]]\nis = \"a\"\n[[router]]\nis = \"b,c=1\"\n",
        ] {
            let mut edit = Edit::of(lines).expect("it is TOML");
            edit.retain("router", "is", |is| is.starts_with('b'));
            let mut root = read(&edit);
            let left = super::list(root.as_table_mut(), "router");
            assert_eq!((left.len(), text(left[0], "is")), (1, "b,c=1"), "{}", edit.text());
        }
    }

    #[test]
    fn trace_file_key_is_replaced_by_the_text_of_the_file() {
        let text = "[[flow]]\nname = \"a\"\ntrace_file = \"a.csv\"\n[[change]]\nrates_file = \"b\"\n";
        let mut edit = Edit::of(text).expect("it is TOML");
        edit.read_traces(|name| Ok::<_, ()>(format!("of {name}\n0,1"))).expect("all are there");
        let root = read(&edit);
        assert_eq!(root["flow"][0]["trace"].as_str(), Some("of a.csv\n0,1"));
        assert_eq!(root["change"][0]["rates"].as_str(), Some("of b\n0,1"));
        assert!(root["flow"][0].get("trace_file").is_none());
        assert_eq!(Edit::of(text).expect("it is").read_traces(|_| Err::<String, _>("gone")), Err("gone"));
    }

    #[test]
    fn invalid_toml_is_refused() {
        assert!(matches!(Edit::of("a = "), Err(EditError::NotToml(_))));
    }
}
