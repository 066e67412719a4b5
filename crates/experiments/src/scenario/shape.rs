//! The shape of scenario files: tables of keys, from which the checks of files, the JSON Schema and the reference in
//! `docs/scenarios.md` are derived.

use super::diagnostic::{Diagnostic, meant, nearest};
use super::syntax::{Node, Value};
use super::units::{self, LawOf};
use faircast_core::schemes::{self, Scheme};
use faircast_unicast::Protocol;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;

/// A table of a scenario file.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Name in messages and in the reference.
    pub name: &'static str,
    /// Description, in one or two sentences.
    pub about: &'static str,
    /// The keys of the table, in the order of the reference.
    pub fields: &'static [Field],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    pub takes: Takes,
    pub need: Need,
    pub about: &'static str,
}

/// Whether a key is required.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Need {
    Required,
    Optional,
    /// Value if the key is missing, in the syntax of a scenario file.
    Default(&'static str),
}

/// Kind of value that a key takes.
#[derive(Debug)]
pub(crate) enum Takes {
    Text,
    Words(&'static [&'static str]),
    Whole,
    Number,
    Share,
    Time,
    Rate,
    Size,
    Law(LawOf),
    /// A time, a list of times that are used in turn, or a range `"a .. b"` from which times are drawn at random.
    Times,
    Rates,
    /// Clock errors: a value, a list or a range, with the same meaning as for times.
    ClockErrors,
    /// A name or pattern of nodes or links, or a list of them.
    Names,
    /// A name or pattern of nodes or links, or a list, which may be empty.
    NamesOrNone,
    /// Numbers or texts.
    Labels,
    /// A metric or a list of them.
    Metrics,
    /// Numbers, rates or metrics.
    Abscissas,
    /// A multicast scheme and its options.
    Scheme,
    /// A buffer limit, or a discipline as text.
    Queue,
    /// A probability, or a loss model as text.
    Loss,
    /// Function of a router, and its options.
    Router,
    /// Trace of the transmissions of a source, line by line.
    SendTrace,
    /// Trace of the rates of a link over time, line by line.
    RateTrace,
    /// A network, line by line.
    Network,
    /// Number of seeds, or a list of seeds.
    Seeds,
    /// The axes of a sweep.
    Axes(&'static Shape),
    /// A list of values of any kind.
    Values,
    /// A point of the sweep: a number or text for each axis.
    Place,
    /// Paths of the keys to change, each with the new value.
    Changes,
    Table(&'static Shape),
    Tables(&'static Shape),
    /// A list of tables, one for each level. If the list is shorter than the number of levels, its last table is repeated.
    Levels(&'static Shape),
    Wholes,
    /// A table whose `kind` determines its shape.
    Kinds(&'static Kinds),
    /// A list of tables whose `kind` determines their shape.
    KindTables(&'static Kinds),
}

/// Tables whose `kind` determines their shape.
#[derive(Debug)]
pub(crate) struct Kinds {
    /// The shape for each `kind`.
    pub shapes: &'static [(&'static str, &'static Shape)],
    /// The shape for unicast protocols as `kind`.
    pub protocol: Option<&'static Shape>,
}

impl Kinds {
    /// Returns the shape for a `kind`.
    pub fn shape(&self, kind: &str) -> Result<&'static Shape, String> {
        if let Some((_, shape)) = self.shapes.iter().find(|(name, _)| *name == kind) {
            return Ok(shape);
        }
        let names: Vec<_> = self.shapes.iter().map(|(name, _)| *name).collect();
        match self.protocol {
            Some(shape) => kind.parse::<Protocol>().map(|_| shape).map_err(|error| {
                let protocols = faircast_unicast::CATALOGUE.iter().map(|entry| entry.name);
                let name = kind.split(',').next().unwrap_or_default();
                let known: Vec<_> = names.iter().copied().chain(protocols).collect();
                if known.contains(&name) { error.to_string() } else { meant(name, &known) }
            }),
            None => Err(meant(kind, &names)),
        }
    }
}

/// Checks a table: unknown and missing keys, and every value.
pub(crate) fn check(node: &Node, shape: &Shape, wrong: &mut Vec<Diagnostic>) {
    if !matches!(node.value, Value::Table(_)) {
        let message = format!("{} must be a table, not {}", shape.name, node.what());
        wrong.push(Diagnostic::new(&node.span, message, "not a table"));
        return;
    }
    for entry in node.entries() {
        match shape.fields.iter().find(|field| field.name == entry.key) {
            Some(field) => check_value(&entry.key, &entry.node, &field.takes, wrong),
            None => {
                let known: Vec<_> = shape.fields.iter().map(|field| field.name).collect();
                let message = format!("{} has no key `{}`", shape.name, entry.key);
                wrong.push(
                    Diagnostic::new(&entry.key_span, message, "unknown").help(meant(&entry.key, &known)),
                );
            }
        }
    }
    for field in shape.fields.iter().filter(|field| matches!(field.need, Need::Required)) {
        if node.get(field.name).is_none() {
            let message = format!("{} needs `{}`: {}", shape.name, field.name, field.about);
            wrong.push(Diagnostic::new(&node.span, message, format!("`{}` is missing", field.name)));
        }
    }
}

fn refuse(node: &Node, key: &str, wanted: &str, wrong: &mut Vec<Diagnostic>) {
    let message = format!("`{key}` takes {wanted}");
    let label = match &node.value {
        Value::Text(_) => "not understood".to_owned(),
        Value::Number(_) => "not this number".to_owned(),
        _ => format!("this is {}", node.what()),
    };
    wrong.push(Diagnostic::new(&node.span, message, label));
}

fn check_value(key: &str, node: &Node, takes: &Takes, wrong: &mut Vec<Diagnostic>) {
    let fits = match takes {
        Takes::Text => node.text().is_some(),
        Takes::Words(words) => return check_word(key, node, words, wrong),
        Takes::Whole => units::whole(node).is_some(),
        Takes::Number => node.number().is_some_and(f64::is_finite),
        Takes::Share => units::share(node).is_some(),
        Takes::Time => units::time(node).is_some(),
        Takes::Rate => units::rate(node).is_some(),
        Takes::Size => units::size(node).is_some_and(|size| (1.0..=65535.0).contains(&size)),
        Takes::Law(of) => units::law(node, *of).is_some(),
        Takes::Times => many(node, units::time),
        Takes::Rates => many(node, units::rate),
        Takes::ClockErrors => many(node, units::clock_error),
        Takes::Names => node.items().iter().all(|item| item.text().is_some()) && !node.items().is_empty(),
        Takes::NamesOrNone => node.items().iter().all(|item| item.text().is_some()),
        Takes::Metrics => node.items().iter().all(|item| item.text().is_some()) && !node.items().is_empty(),
        Takes::Abscissas | Takes::Labels => matches!(&node.value, Value::List(items)
            if items.iter().all(|item| matches!(item.value, Value::Text(_) | Value::Number(_)))),
        Takes::Seeds => {
            units::whole(node).is_some_and(|count| (1..=100_000).contains(&count)) || wholes(node)
        }
        Takes::Wholes => wholes(node),
        Takes::Axes(axis) => return check_axes(node, axis, wrong),
        Takes::Values => matches!(&node.value, Value::List(items) if !items.is_empty()),
        Takes::Place => {
            matches!(&node.value, Value::Table(entries)
                if entries.iter().all(|e| matches!(e.node.value, Value::Text(_) | Value::Number(_))))
        }
        Takes::Changes => matches!(&node.value, Value::Table(entries) if !entries.is_empty()),
        Takes::Scheme => return check_scheme(node, wrong),
        Takes::Queue => return explain(node, key, units::queue(node), takes, wrong),
        Takes::Loss => return explain(node, key, units::loss(node), takes, wrong),
        Takes::Router => return explain(node, key, units::router(node), takes, wrong),
        Takes::SendTrace => return explain(node, key, units::sends(node), takes, wrong),
        Takes::RateTrace => return explain(node, key, units::rates(node), takes, wrong),
        Takes::Network => return explain(node, key, units::network(node), takes, wrong),
        Takes::Table(shape) => return check(node, shape, wrong),
        Takes::Tables(shape) | Takes::Levels(shape) => {
            return node.items().iter().for_each(|item| check(item, shape, wrong));
        }
        Takes::Kinds(kinds) => return check_kinds(node, kinds, wrong),
        Takes::KindTables(kinds) => {
            return node.items().iter().for_each(|item| check_kinds(item, kinds, wrong));
        }
    };
    if !fits {
        refuse_value(node, key, takes, wrong);
    }
}

/// Reports an invalid value. If a number has no unit, the message suggests units.
fn refuse_value(node: &Node, key: &str, takes: &Takes, wrong: &mut Vec<Diagnostic>) {
    let units = match takes {
        Takes::Time | Takes::Times | Takes::Law(LawOf::Times) => ["ms", "s"],
        Takes::Rate | Takes::Rates => ["kbit/s", "Mbit/s"],
        Takes::Queue => ["packets", "kB"],
        _ => return refuse(node, key, takes.wanted(), wrong),
    };
    let bare = node.items().iter().find_map(|item| units::bare(item).map(|number| (item, number)));
    let Some((item, number)) = bare else { return refuse(node, key, takes.wanted(), wrong) };
    let [one, other] = units.map(|unit| format!("`\"{number} {unit}\"`"));
    let diagnostic = Diagnostic::new(&item.span, format!("`{key} = {number}` has no unit"), "of which unit?");
    wrong.push(diagnostic.help(format!("write {one} or {other}")));
}

/// Reports an invalid value with the error of the parser for this kind of value.
fn explain<T>(
    node: &Node,
    key: &str,
    read: Result<T, Option<String>>,
    takes: &Takes,
    wrong: &mut Vec<Diagnostic>,
) {
    match read {
        Ok(_) => {}
        Err(Some(error)) => {
            let help = format!("`{key}` takes {}", takes.wanted());
            wrong.push(Diagnostic::new(&node.span, error, "not understood").help(help));
        }
        Err(None) => refuse_value(node, key, takes, wrong),
    }
}

fn wholes(node: &Node) -> bool {
    matches!(&node.value, Value::List(items) if !items.is_empty() && items.iter().all(|i| units::whole(i).is_some()))
}

/// Returns whether the value is a number, a list of numbers, or a range.
fn many(node: &Node, read: fn(&Node) -> Option<f64>) -> bool {
    match range(node, read) {
        Some(range) => range.is_some(),
        None => !node.items().is_empty() && node.items().iter().all(|item| read(item).is_some()),
    }
}

/// Reads a range. Returns `None` if the value is not a range, and `Some(None)` if the range is invalid.
pub(crate) fn range(node: &Node, read: fn(&Node) -> Option<f64>) -> Option<Option<(f64, f64)>> {
    let (low, high) = node.text()?.split_once("..")?;
    let part =
        |text: &str| read(&Node { span: node.span.clone(), value: Value::Text(text.trim().to_owned()) });
    let ends = part(low).zip(part(high));
    Some(ends.filter(|(low, high)| low <= high && high.is_finite()))
}

fn check_word(key: &str, node: &Node, words: &[&str], wrong: &mut Vec<Diagnostic>) {
    match node.text() {
        Some(text) if words.contains(&text) => {}
        Some(text) => {
            let message = format!("`{key}` cannot be \"{text}\"");
            wrong.push(Diagnostic::new(&node.span, message, "unknown").help(meant(text, words)));
        }
        None => refuse(node, key, &format!("one of: {}", words.join(", ")), wrong),
    }
}

fn check_scheme(node: &Node, wrong: &mut Vec<Diagnostic>) {
    let Some(text) = node.text() else {
        return refuse(node, "scheme", Takes::Scheme.wanted(), wrong);
    };
    if let Err(error) = text.parse::<Scheme>() {
        let diagnostic = Diagnostic::new(&node.span, error.to_string(), "not a scheme");
        let name = text.split(',').next().unwrap_or_default();
        let near = nearest(name, schemes::CATALOGUE.iter().map(|entry| entry.name));
        wrong.push(match near.filter(|near| *near != name) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
    }
}

fn check_kinds(node: &Node, kinds: &Kinds, wrong: &mut Vec<Diagnostic>) {
    let Some(kind) = node.get("kind") else {
        let names: Vec<_> = kinds.shapes.iter().map(|(name, _)| *name).collect();
        let message = format!("`kind` is missing; it is one of: {}", names.join(", "));
        wrong.push(Diagnostic::new(&node.span, message, "of which kind?"));
        return;
    };
    let Some(text) = kind.text() else {
        return refuse(kind, "kind", "a text", wrong);
    };
    match kinds.shape(text) {
        Ok(shape) => check(node, shape, wrong),
        Err(help) => {
            let message = format!("there is no kind \"{text}\" here");
            wrong.push(Diagnostic::new(&kind.span, message, "unknown").help(help));
        }
    }
}

fn check_axes(node: &Node, axis: &Shape, wrong: &mut Vec<Diagnostic>) {
    if !matches!(node.value, Value::Table(_)) {
        return refuse(node, "sweep", Takes::AXES, wrong);
    }
    for entry in node.entries() {
        match &entry.node.value {
            Value::Table(_) => check(&entry.node, axis, wrong),
            _ => check_value(&entry.key, &entry.node, &Takes::Values, wrong),
        }
    }
}

impl Takes {
    const AXES: &str = "a table: axis = [value, value, ...]";

    /// Returns the expected kind of value, in words.
    pub fn wanted(&self) -> &'static str {
        match self {
            Takes::Text => "a text",
            Takes::Words(_) => "a word",
            Takes::Whole => units::WHOLE,
            Takes::Number => "a number",
            Takes::Share => units::SHARE,
            Takes::Time => units::TIME,
            Takes::Rate => units::RATE,
            Takes::Size => units::SIZE,
            Takes::Law(_) => units::LAW,
            Takes::Times => {
                "a time such as \"50 ms\", a list of times (used in turn), or \"10 ms .. 100 ms\" (drawn at random)"
            }
            Takes::Rates => {
                "a rate such as \"1.5 Mbit/s\", of at most \"1000 Tbit/s\", a list of rates (used in turn), or \"1 Mbit/s .. 2 Mbit/s\" (drawn at random)"
            }
            Takes::ClockErrors => units::CLOCK_ERRORS,
            Takes::NamesOrNone => "a name or a pattern, or a list of them, which may be empty",
            Takes::Labels => "a list of numbers or texts",
            Takes::Metrics => "a list of metrics such as \"multicast.rate\"",
            Takes::Abscissas => {
                "a list of numbers, of rates such as \"1 Mbit/s\", or of metrics, one for each of `of`"
            }
            Takes::Names => {
                "a name or a pattern such as \"leaf3\", \"leaf*\" or \"leaf[1-16]\", or a list of them"
            }
            Takes::Scheme => "a scheme such as \"ormcc\" or \"ormcc,beta=0.65\"",
            Takes::Queue => units::QUEUE,
            Takes::Loss => units::LOSS,
            Takes::Router => units::ROUTER,
            Takes::SendTrace => "lines of `seconds,bytes`",
            Takes::RateTrace => "lines of `seconds,bit/s`, or of milliseconds as in traces of Mahimahi",
            Takes::Network => units::NETWORK,
            Takes::Seeds => {
                "a number of seeds (1 to 100000; the seeds are then 1, 2, 3, ...), or a list of seeds"
            }
            Takes::Axes(_) => Takes::AXES,
            Takes::Values => "a list of values",
            Takes::Place => "a table with a number or text for each axis of the sweep",
            Takes::Changes => "a table of paths of keys and their values",
            Takes::Wholes => "a list of whole numbers",
            Takes::Table(_) | Takes::Kinds(_) => "a table",
            Takes::Tables(_) | Takes::Levels(_) | Takes::KindTables(_) => "tables",
        }
    }

    fn schema(&self) -> Json {
        let or_list =
            |one: Json| json!({"anyOf": [one.clone(), {"type": "array", "items": one, "minItems": 1}]});
        let quantity = json!({"type": ["string", "number"]});
        let text = json!({"type": "string"});
        let time = json!({"anyOf": [text, {"const": 0}]});
        match self {
            Takes::Text
            | Takes::Scheme
            | Takes::Router
            | Takes::Network
            | Takes::SendTrace
            | Takes::RateTrace => {
                json!({"type": "string"})
            }
            Takes::Words(words) => json!({"enum": words}),
            Takes::Whole => json!({"type": "integer", "minimum": 0}),
            Takes::Number => json!({"type": "number"}),
            Takes::Share | Takes::Size | Takes::Law(LawOf::Counts) | Takes::Loss => quantity,
            Takes::Time => time,
            Takes::Rate | Takes::Queue | Takes::Law(LawOf::Times) => text,
            Takes::Times => or_list(time),
            Takes::Rates => or_list(text),
            Takes::ClockErrors => or_list(quantity),
            Takes::Names | Takes::Metrics => or_list(json!({"type": "string"})),
            Takes::NamesOrNone => {
                json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
            }
            Takes::Labels | Takes::Abscissas => {
                json!({"type": "array", "items": {"type": ["string", "number"]}})
            }
            Takes::Seeds => or_list(json!({"type": "integer", "minimum": 0})),
            Takes::Wholes => {
                json!({"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1})
            }
            Takes::Axes(axis) => json!({"type": "object", "additionalProperties": {"anyOf": [
                {"type": "array", "minItems": 1}, axis.schema()]}}),
            Takes::Values => json!({"type": "array", "minItems": 1}),
            Takes::Place => json!({"type": "object", "additionalProperties": {"type": ["string", "number"]}}),
            Takes::Changes => json!({"type": "object", "minProperties": 1}),
            Takes::Table(shape) => shape.schema(),
            Takes::Tables(shape) | Takes::Levels(shape) => json!({"type": "array", "items": shape.schema()}),
            Takes::Kinds(kinds) => kinds.schema(),
            Takes::KindTables(kinds) => json!({"type": "array", "items": kinds.schema()}),
        }
    }
}

impl Kinds {
    fn schema(&self) -> Json {
        let named = self.shapes.iter().map(|(kind, shape)| {
            let mut schema = shape.schema();
            schema["properties"]["kind"]["const"] = json!(kind);
            schema
        });
        let names: Vec<_> = self.shapes.iter().map(|(kind, _)| *kind).collect();
        let protocol = self.protocol.iter().map(|shape| {
            let mut schema = shape.schema();
            schema["properties"]["kind"]["not"] = json!({"enum": names});
            schema
        });
        json!({"oneOf": named.chain(protocol).collect::<Vec<_>>()})
    }
}

impl Shape {
    /// Returns the JSON Schema of the key.
    pub fn schema(&self) -> Json {
        let mut properties = Map::new();
        for field in self.fields {
            let mut schema = field.takes.schema();
            schema["description"] = json!(field.about);
            if let Need::Default(default) = field.need {
                schema["description"] = json!(format!("{} Default: {default}.", field.about));
            }
            properties.insert(field.name.to_owned(), schema);
        }
        let required: Vec<_> =
            self.fields.iter().filter(|f| matches!(f.need, Need::Required)).map(|f| f.name).collect();
        json!({
            "type": "object",
            "description": self.about,
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    /// Writes the key's part of the reference.
    pub fn reference(&self, out: &mut String) {
        writeln!(
            out,
            "### {}\n\n{}\n\n| key | takes | default | |\n|---|---|---|---|",
            self.name, self.about
        )
        .expect("a string takes all that is written");
        for field in self.fields {
            let default = match field.need {
                Need::Required => "required".to_owned(),
                Need::Optional => String::new(),
                Need::Default(default) => format!("`{default}`"),
            };
            let takes = match &field.takes {
                Takes::Words(words) => words.join(" \\| "),
                Takes::Table(shape) => format!("table: {}", shape.name),
                Takes::Tables(shape) | Takes::Levels(shape) => format!("list of tables: {}", shape.name),
                Takes::Kinds(_) | Takes::KindTables(_) => "depends on the kind, see below".to_owned(),
                other => other.wanted().to_owned(),
            };
            writeln!(out, "| `{}` | {takes} | {default} | {} |", field.name, field.about)
                .expect("a string takes all that is written");
        }
        out.push('\n');
    }
}
