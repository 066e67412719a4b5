//! Checks JSON against `docs/json.schema.json`. Only the features of JSON Schema that this file uses are supported. Also
//! generates the page about the schema.

use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The JSON Schema of the output of sessions.
pub struct Schema(Value);

impl Schema {
    /// Reads the schema from `docs`.
    pub fn read() -> Schema {
        let text = std::fs::read_to_string(docs("json.schema.json")).expect("the schema is there");
        Schema(serde_json::from_str(&text).expect("the schema is JSON"))
    }

    /// Checks that a line conforms to the schema for the output of a session.
    pub fn check_line(&self, line: &Value) -> Result<(), String> {
        self.check(&self.0, line, "")
    }

    /// Checks that a line conforms to the schema for the output of a relay: an event with its session and branch, or only an
    /// error if the relay could not start.
    pub fn check_relay_line(&self, line: &Value) -> Result<(), String> {
        let mut event = line.clone();
        let fields = event.as_object_mut().ok_or("no object")?;
        let place = ["relayed", "branch"].map(|name| fields.remove(name)).iter().flatten().count();
        if place > 0 {
            self.check_as("relayed", line)?;
        } else if !["error", "done", "page"].iter().any(|one| line["event"] == *one) {
            return Err("the relay does not say which session this is about".to_owned());
        }
        self.check_line(&event)
    }

    /// Checks that a value conforms to this definition.
    pub fn check_as(&self, name: &str, value: &Value) -> Result<(), String> {
        self.check(&self.0["$defs"][name], value, "")
    }

    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let rules = schema.as_object().ok_or_else(|| format!("{at}: the schema has no such definition"))?;
        for (rule, asked) in rules {
            let holds = match rule.as_str() {
                "$schema" | "$defs" | "title" | "description" => true,
                "$ref" => {
                    let name = asked.as_str().and_then(|path| path.strip_prefix("#/$defs/"));
                    self.check(&self.0["$defs"][name.unwrap_or_default()], value, at)?;
                    true
                }
                "type" => types(asked).any(|name| is(name, value)),
                "const" => value == asked,
                "enum" => list(asked).contains(value),
                "minimum" => value.as_f64().is_none_or(|number| Some(number) >= asked.as_f64()),
                "oneOf" => list(asked).iter().filter(|one| self.check(one, value, at).is_ok()).count() == 1,
                "anyOf" => list(asked).iter().any(|one| self.check(one, value, at).is_ok()),
                "required" => {
                    list(asked).iter().all(|name| value.get(name.as_str().unwrap_or_default()).is_some())
                }
                "additionalProperties" => match value.as_object() {
                    Some(fields) if *asked == Value::Bool(false) => self.all_known(rules, fields, at)?,
                    _ => true,
                },
                "properties" => {
                    for (name, schema) in asked.as_object().into_iter().flatten() {
                        if let Some(field) = value.get(name) {
                            self.check(schema, field, &format!("{at}/{name}"))?;
                        }
                    }
                    true
                }
                "items" => {
                    for entry in value.as_array().into_iter().flatten() {
                        self.check(asked, entry, &format!("{at}[]"))?;
                    }
                    true
                }
                unknown => return Err(format!("this check knows no rule {unknown:?}")),
            };
            if !holds {
                return Err(format!("{at}: {value} breaks the rule {rule:?}: {asked}"));
            }
        }
        Ok(())
    }

    fn all_known(
        &self,
        rules: &Map<String, Value>,
        fields: &Map<String, Value>,
        at: &str,
    ) -> Result<bool, String> {
        match fields.keys().find(|name| rules["properties"].get(name).is_none()) {
            Some(unknown) => Err(format!("{at}: the field {unknown:?} is in no schema")),
            None => Ok(true),
        }
    }

    /// Returns the page `docs/json.md`.
    pub fn page(&self) -> String {
        let mut page = String::from(
            "# Events of sessions as JSON\n\n\
             Tests check that the commands write what [json.schema.json](json.schema.json) describes, and that this page agrees with it;\n\
             `FAIRCAST_BLESS=1 cargo test -p faircast-cli` writes this page.\n\n\
             With `--json`, `send`, `stream` and `recv` write one JSON object per line to standard output (`recv --stdout`: to\n\
             standard error). `event` names the event; the last one is `done`. With `recv --serve` each session ends with a `done`,\n\
             and `session` numbers them from 1. `faircast relay --json` writes the same events with two more fields,\n\
             [`relayed`](#relayed) and `branch`. Ignore unknown fields: later versions add some, and rename and remove none.\n\
             Unknown numbers are null. Rates are in bit/s.\n",
        );
        let named: Vec<&str> =
            list(&self.0["oneOf"]).iter().filter_map(|one| name_of(&one["$ref"])).collect();
        for name in &named {
            self.section(&mut page, name, &format!("`{}`", name.split("_send").next().unwrap_or(name)));
        }
        page.push_str("\n# The report\n\n`send --report FILE` writes this object at the end of the session. If the name ends in `.xml`, it writes JUnit \
             XML with a test case for each receiver; if it ends in `.html`, a page for browsers with the course of the session.\nUntil then the file is empty.\n");
        self.section(&mut page, "report", "`report`");
        page.push_str("\n# Types of fields\n");
        let parts = self.0["$defs"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        for name in parts.filter(|name| !named.contains(name) && *name != "report") {
            self.section(&mut page, name, &format!("`{name}`"));
        }
        page
    }

    fn section(&self, page: &mut String, name: &str, title: &str) {
        let definition = &self.0["$defs"][name];
        let about = definition["description"].as_str().unwrap_or_default();
        let title = if title.starts_with("`done") { "`done`" } else { title };
        page.push_str(&format!("\n## {title}\n\n{about}\n\n| field | type | meaning |\n|---|---|---|\n"));
        for (field, schema) in definition["properties"].as_object().into_iter().flatten() {
            let meaning = schema["description"].as_str().unwrap_or("Name of the event.");
            page.push_str(&format!("| `{field}` | {} | {meaning} |\n", written(schema)));
        }
    }
}

/// Returns the path of a file in `docs`.
pub fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Returns a type in the notation of the page about the schema.
fn written(schema: &Value) -> String {
    if let Some(name) = name_of(&schema["$ref"]) {
        return format!("[`{name}`](#{name})");
    }
    if !schema["const"].is_null() {
        return format!("`{}`", schema["const"]);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().map(written).collect::<Vec<_>>().join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    let names: Vec<&str> = types(&schema["type"]).collect();
    match names.as_slice() {
        ["array"] => format!("list of {}", written(&schema["items"])),
        names => names.join(" or "),
    }
}

fn name_of(reference: &Value) -> Option<&str> {
    reference.as_str()?.strip_prefix("#/$defs/")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn types(asked: &Value) -> impl Iterator<Item = &str> {
    let one = asked.as_str().into_iter();
    one.chain(list(asked).iter().filter_map(Value::as_str))
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
