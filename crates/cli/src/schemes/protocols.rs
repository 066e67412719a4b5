//! `faircast schemes tcp-sack`: the unicast protocols of simulations, with every option and preset.

use super::reported;
use crate::json;
use faircast_core::spec::Described;
use faircast_unicast::{Entry, Protocol};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A protocol as JSON.
#[derive(Serialize)]
struct ProtocolLine {
    name: &'static str,
    summary: &'static str,
    described_in: &'static str,
    /// The default preset.
    preset: Option<String>,
    parameters: Vec<Parameter>,
}

/// A parameter as JSON.
#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    takes: String,
    meaning: &'static str,
    default: String,
    /// The parameter's value in each preset.
    presets: BTreeMap<String, String>,
}

/// A protocol, and its values in each preset.
struct Listed {
    entry: Entry,
    usual: Protocol,
    presets: Vec<(String, Protocol)>,
}

impl Listed {
    fn of(entry: &Entry) -> Listed {
        let usual: Protocol = entry.name.parse().expect("every protocol of the catalogue can be read");
        let with = |preset: String| {
            let protocol = format!("{},preset={preset}", entry.name).parse();
            (preset, protocol.expect("every preset that an option lists can be read"))
        };
        Listed { entry: *entry, usual, presets: usual.presets().into_iter().map(with).collect() }
    }

    /// Returns the default preset.
    fn preset(&self) -> Option<&str> {
        let same = self.presets.iter().find(|(_, protocol)| *protocol == self.usual);
        same.map(|(preset, _)| preset.as_str())
    }

    fn default(&self, option: &str) -> String {
        match option {
            "preset" => self.preset().unwrap_or_default().to_owned(),
            _ => self.usual.get(option),
        }
    }
}

/// Prints the protocol as one JSON object.
///
/// # Errors
/// When the output cannot be written.
pub fn as_json(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    let listed = Listed::of(entry);
    let Entry { name, summary, source } = listed.entry;
    let parameter = |Described { name, takes, meaning, .. }: Described| {
        let presets = listed.presets.iter().filter(|_| name != "preset");
        let presets = presets.map(|(preset, protocol)| (preset.clone(), protocol.get(name))).collect();
        Parameter { name, takes, meaning, default: listed.default(name), presets }
    };
    let parameters = listed.usual.options().into_iter().map(parameter).collect();
    let preset = listed.preset().map(str::to_owned);
    json::write(out, &ProtocolLine { name, summary, described_in: source, preset, parameters })
}

/// Prints the protocol as text.
///
/// # Errors
/// When the output cannot be written.
pub fn as_text(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    let listed = Listed::of(entry);
    writeln!(out, "{}", entry.name)?;
    reported(out, &format!("  {:<13} ", "what"), entry.summary)?;
    reported(out, &format!("  {:<13} ", "described in"), entry.source)?;
    writeln!(out, "  {:<18} default", "options")?;
    for Described { name, takes, meaning, .. } in listed.usual.options() {
        reported(
            out,
            &format!("    {name:<16} {:<12} ", listed.default(name)),
            &format!("{meaning} ({takes})"),
        )?;
    }
    if !listed.presets.is_empty() {
        let row = |name: &str, values: Vec<&str>| {
            let cells: String = values.iter().map(|value| format!(" {value:<12}")).collect();
            format!("    {name:<16}{cells}").trim_end().to_owned()
        };
        writeln!(out, "  values with each preset")?;
        writeln!(out, "{}", row("preset", listed.presets.iter().map(|(name, _)| name.as_str()).collect()))?;
        for option in listed.usual.options().into_iter().filter(|option| option.name != "preset") {
            let values: Vec<String> =
                listed.presets.iter().map(|(_, protocol)| protocol.get(option.name)).collect();
            writeln!(out, "{}", row(option.name, values.iter().map(String::as_str).collect()))?;
        }
    }
    writeln!(out, "\nIn scenarios: kind = \"{},OPTION=VALUE,...\"", entry.name)
}

/// Returns a row of the page for each option: the option, its values, its meaning, and its value in each preset, or the default
/// of a protocol without presets.
#[cfg(test)]
fn rows(listed: &Listed) -> Vec<String> {
    let row = |Described { name, takes, meaning, .. }: Described| {
        let value = |protocol: &Protocol| if name == "preset" { String::new() } else { protocol.get(name) };
        let values: Vec<String> = match &listed.presets[..] {
            [] => vec![listed.default(name)],
            presets => presets.iter().map(|(_, protocol)| value(protocol)).collect(),
        };
        format!("| `{name}` | {} | {meaning} | {} |\n", takes.replace('|', "\\|"), values.join(" | "))
    };
    listed.usual.options().into_iter().map(row).collect()
}

/// Returns a table of the page with these rows.
#[cfg(test)]
fn table(listed: &Listed, rows: &[String]) -> String {
    let presets: Vec<String> = listed.presets.iter().map(|(name, _)| format!("`{name}`")).collect();
    let values = if presets.is_empty() { vec!["default".to_owned()] } else { presets };
    let rule = "---|".repeat(values.len());
    format!("\n| option | takes | meaning | {} |\n|---|---|---|{rule}\n{}", values.join(" | "), rows.concat())
}

/// Returns the page `docs/tcp.md`.
#[cfg(test)]
fn markdown() -> String {
    use std::fmt::Write as _;

    let mut page = String::from(
        "# TCP and other unicast protocols\n\n\
         This page lists the options and presets of all competing flows in scenarios and `faircast compare`: `kind = \"tcp-sack,preset=linux,delack\"`.\n\
         A preset goes first; later options change its values. `faircast schemes tcp-sack` prints the same options.\n\
         `FAIRCAST_BLESS=1 cargo test -p faircast-cli protocols` regenerates this page from the catalogue.\n\n\
         Presets: `ns235` has the values of ns-2.35, `ns2001`, `ns2.1b7a` and `ns2.26` those of ns-2 in 2001, 2000 and 2003, `rfc` those of the current standards,\n\
         `linux` those of Linux, `linux2.4` those of its kernel 2.4. Times are in seconds, windows in packets.\n\
         Without jitter, flows stay synchronized: [phase effects](phase-effects.md).\n",
    );
    let is_tcp = |listed: &Listed| listed.entry.name.starts_with("tcp-");
    let all: Vec<Listed> = faircast_unicast::CATALOGUE.iter().map(Listed::of).collect();
    let tcp = all.iter().find(|listed| is_tcp(listed)).expect("the catalogue has TCP");
    let common = rows(tcp);
    page.push_str("\n## Options of all `tcp-` protocols\n\nThe default is the value of the protocol's default preset.\n");
    page.push_str(&table(tcp, &common));
    for listed in &all {
        let Entry { name, summary, source } = listed.entry;
        write!(page, "\n## `{name}`\n\n{summary} ({source}).").expect("a string takes everything");
        if let Some(preset) = listed.preset() {
            write!(page, " Default preset: `{preset}`.").expect("a string takes everything");
        }
        page.push('\n');
        let shared: &[String] = if is_tcp(listed) { &common } else { &[] };
        let own: Vec<String> = rows(listed).into_iter().filter(|row| !shared.contains(row)).collect();
        if !own.is_empty() {
            page.push_str(&table(listed, &own));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_unicast::CATALOGUE;
    use std::path::Path;

    #[test]
    fn every_protocol_is_listed_with_all_options_and_presets() {
        for entry in CATALOGUE {
            let (mut text, mut json) = (Vec::new(), Vec::new());
            as_text(entry, &mut text).expect("a vector takes everything");
            as_json(entry, &mut json).expect("a vector takes everything");
            let text = String::from_utf8(text).expect("text");
            let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
            let protocol: Protocol = entry.name.parse().expect("listed");
            for option in protocol.options() {
                assert!(
                    text.contains(option.name)
                        && text.contains(option.meaning.split(' ').next().unwrap_or(""))
                );
            }
            assert_eq!(json["parameters"].as_array().map(Vec::len), Some(protocol.options().len()));
            assert!(protocol.presets().iter().all(|preset| text.contains(preset)), "{text}");
        }
    }

    #[test]
    fn generated_protocol_page_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tcp.md");
        if std::env::var_os("FAIRCAST_BLESS").is_some() {
            std::fs::write(&path, markdown()).expect("docs/ is writable");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == markdown(),
            "docs/tcp.md is stale: FAIRCAST_BLESS=1 cargo test -p faircast-cli protocols"
        );
    }
}
