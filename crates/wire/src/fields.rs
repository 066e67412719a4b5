//! The field table: the source of `docs/wire.md` and the Wireshark dissector.
//!
//! The table is derived from the same declarations as the codec.

pub use crate::bodies::LAYOUTS as BODIES;
pub use crate::field::{Field, Layout, Names, Shape, flat};
pub use crate::marks::LAYOUTS as MARKS;
pub use crate::reports::LAYOUTS as CONTENTS;
use std::fmt::Write;

/// Returns the Wireshark dissector. Save it as `faircast.lua` and run `wireshark -X lua_script:faircast.lua`.
pub fn dissector_lua() -> String {
    let mut table = String::new();
    for (name, layouts) in [("bodies", BODIES), ("marks", MARKS), ("contents", CONTENTS)] {
        table += &format!("local {name} = {{\n");
        for Layout { name, number, fields, bits, .. } in layouts {
            let bits = if bits.is_empty() { String::new() } else { format!("bits = {}, ", lua_names(bits)) };
            table += &format!("  [{number}] = {{ name = {name:?}, {bits}fields = {{\n");
            lua_fields(&mut table, fields, "    ");
            table += "  } },\n";
        }
        table += "}\n";
    }
    include_str!("dissector.lua").replace("-- @TABLES@\n", &table)
}

fn lua_fields(table: &mut String, fields: &'static [Field], indent: &str) {
    for Field { name, shape, meaning } in flat(fields) {
        *table += &format!("{indent}{{ name = {name:?}, meaning = {meaning:?}, ");
        let written = match shape {
            Shape::Uint(len) => format!("shape = \"uint\", len = {len} "),
            Shape::Hex(len) => format!("shape = \"hex\", len = {len} "),
            Shape::Choice(names) => format!("shape = \"choice\", names = {} ", lua_names(names)),
            Shape::Flags(names) => format!("shape = \"flags\", names = {} ", lua_names(names)),
            Shape::Half => "shape = \"half\" ".into(),
            Shape::Float => "shape = \"float\" ".into(),
            Shape::Bytes(len) => format!("shape = \"bytes\", len = {len} "),
            Shape::Address => "shape = \"address\" ".into(),
            Shape::Optional(len) => format!("shape = \"optional\", len = {len} "),
            Shape::Text(_) => "shape = \"text\" ".into(),
            Shape::RareText(_) => "shape = \"rare text\" ".into(),
            Shape::Rare(mark, len) => format!("shape = \"rare\", mark = {mark}, len = {len} "),
            Shape::Count => "shape = \"count\" ".into(),
            Shape::Group(_) => unreachable!("flat lists have no groups"),
            Shape::List(fields) => {
                *table += "shape = \"list\", fields = {\n";
                lua_fields(table, fields, &format!("{indent}  "));
                format!("{indent}}} ")
            }
        };
        *table += &written;
        *table += "},\n";
    }
}

fn lua_names(names: &[(u8, &str)]) -> String {
    let names: Vec<_> = names.iter().map(|(number, name)| format!("[{number}] = {name:?}")).collect();
    format!("{{ {} }}", names.join(", "))
}

/// Returns the text of `docs/wire.md`.
pub fn markdown() -> String {
    let mut page = String::from(include_str!("wire.md"));
    for (marker, heading, layouts) in [
        ("<!-- bodies -->\n", "Kind", BODIES),
        ("<!-- marks -->\n", "Mark", MARKS),
        ("<!-- contents -->\n", "Content", CONTENTS),
    ] {
        let tables: String = layouts.iter().map(|layout| section(heading, layout)).collect();
        page = page.replace(marker, &tables);
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

fn section(heading: &str, layout: &'static Layout) -> String {
    let Layout { name, number, purpose, fields, bits } = layout;
    let mut text = format!("### {heading} {number}: {}\n\n{}.\n\n", name.replace('_', " "), capital(purpose));
    if !bits.is_empty() {
        writeln!(text, "Bits of the packet's `flags`: {}.\n", listed(bits)).expect("a String takes any text");
    }
    if !fields.is_empty() {
        text += "| at | bytes | field | meaning |\n|---:|---:|---|---|\n";
        markdown_rows(&mut text, fields);
        text += "\n";
    }
    text
}

fn markdown_rows(table: &mut String, fields: &'static [Field]) {
    let mut at = Some(0);
    for Field { name, shape, meaning } in flat(fields) {
        let len = shape.fixed_len();
        let plain = len.map_or(String::new(), |len| len.to_string());
        let (bytes, note) = match shape {
            Shape::Uint(_) | Shape::Hex(_) | Shape::Bytes(_) | Shape::Count => (plain, String::new()),
            Shape::Choice(names) | Shape::Flags(names) => (plain, format!(": {}", listed(names))),
            Shape::Half => (plain, "; 16-bit number".into()),
            Shape::Address => (plain, "; 16 bytes of IPv6, or ::ffff: and IPv4; 2 bytes of port".into()),
            Shape::Float => (plain, "; IEEE 754".into()),
            Shape::Optional(len) => {
                (format!("1 or {}", 1 + len), "; a byte 0, or a byte 1 and then the value".into())
            }
            Shape::Group(_) => unreachable!("flat lists have no groups"),
            Shape::Text(_) => ("1 + n".into(), "; a byte n, then n bytes of UTF-8".into()),
            Shape::RareText(_) => {
                ("0 or 2 + n".into(), "; nothing, or a byte 2, a byte n, then n bytes of UTF-8".into())
            }
            Shape::Rare(mark, len) => {
                (format!("0 or {}", 1 + len), format!("; nothing, or a byte {mark} and then the value"))
            }
            Shape::List(entry) => {
                let parts: Vec<_> = flat(entry).map(entry_part).collect();
                let size: usize = entry.iter().filter_map(|part| part.shape.fixed_len()).sum();
                (format!("{size} each"), format!("; each: {}", parts.join(", ")))
            }
        };
        let place = at.map_or(String::new(), |at: usize| at.to_string());
        writeln!(table, "| {place} | {bytes} | `{name}` | {meaning}{note} |")
            .expect("a String takes any text");
        at = at.zip(len).map(|(at, len)| at + len);
    }
}

fn entry_part(part: Field) -> String {
    let len = part.shape.fixed_len().map_or(String::new(), |len| format!(", {len}"));
    format!("{} (`{}`{len})", part.meaning, part.name)
}

fn listed(names: &[(u8, &str)]) -> String {
    let names: Vec<_> = names.iter().map(|(number, name)| format!("{number} {name}")).collect();
    names.join(", ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
