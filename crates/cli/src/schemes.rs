//! `faircast schemes`: the congestion control schemes and their parameters. [`protocols`] describes unicast protocols.

#[cfg(feature = "simulator")]
mod protocols;

use crate::args::Schemes;
use crate::failure::{Failure, Usage, unwritten};
use crate::json;
use faircast_core::schemes::{CATALOGUE, Entry, Scheme};
use faircast_core::spec::Described;
use serde::Serialize;
use std::io::{self, Write};

/// A scheme as JSON.
#[derive(Serialize)]
struct SchemeLine {
    name: &'static str,
    summary: &'static str,
    described_in: &'static str,
    sender: &'static str,
    receiver: &'static str,
    parameters: Vec<Parameter>,
    deviations: &'static [&'static str],
}

/// A parameter as JSON.
#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    /// Permitted values.
    takes: String,
    meaning: &'static str,
    /// Default value on real networks, unless stated otherwise.
    default: String,
    /// Value with `preset=published`.
    published: String,
}

/// Prints all schemes, or one.
///
/// # Errors
/// [`Usage::NoSuchScheme`], or an error when the list cannot be written.
pub fn run(args: &Schemes, out: &mut impl Write) -> Result<(), Failure> {
    let wanted = |entry: &&'static Entry| args.name.as_ref().is_none_or(|name| entry.name == name);
    let entries: Vec<&'static Entry> = CATALOGUE.iter().filter(wanted).collect();
    if let (true, Some(name)) = (entries.is_empty(), &args.name) {
        #[cfg(feature = "simulator")]
        if let Some(entry) = faircast_unicast::CATALOGUE.iter().find(|entry| entry.name == name) {
            let written =
                if args.json { protocols::as_json(entry, out) } else { protocols::as_text(entry, out) };
            return written.map_err(unwritten);
        }
        let schemes = CATALOGUE.iter().map(|entry| entry.name);
        let known = schemes.chain(unicast_protocols()).collect::<Vec<_>>().join(", ");
        return Err(Usage::NoSuchScheme { name: name.clone(), known }.into());
    }
    let written = if args.json { as_json(&entries, out) } else { as_text(&entries, out) };
    written.map_err(unwritten)
}

/// Returns the common parameters of all schemes, then the parameters of this scheme. Each parameter has its values in the two
/// presets.
fn parameters(entry: &'static Entry) -> Vec<Parameter> {
    let preset = |name| -> Scheme {
        format!("{},preset={name}", entry.name).parse().expect("every scheme has both presets")
    };
    let (transport, published) = (preset("transport"), preset("published"));
    let all = transport.common_options().into_iter().chain(transport.own_options());
    let value = |scheme: &Scheme, name, preset: &str| match name {
        "preset" => preset.to_owned(),
        _ => scheme.get(name),
    };
    all.map(|Described { name, takes, meaning, .. }| Parameter {
        name,
        takes,
        meaning,
        default: value(&transport, name, "transport"),
        published: value(&published, name, "published"),
    })
    .collect()
}

fn as_json(entries: &[&'static Entry], out: &mut impl Write) -> io::Result<()> {
    entries.iter().try_for_each(|entry| {
        let Entry { name, summary, source, sender, receiver, deviations, .. } = **entry;
        let parameters = parameters(entry);
        let line =
            SchemeLine { name, summary, described_in: source, sender, receiver, parameters, deviations };
        json::write(out, &line)
    })
}

fn as_text(entries: &[&'static Entry], out: &mut impl Write) -> io::Result<()> {
    for entry in entries {
        writeln!(out, "{}", entry.name)?;
        for (title, text) in [
            ("summary", entry.summary),
            ("described in", entry.source),
            ("source", entry.sender),
            ("receiver", entry.receiver),
        ] {
            reported(out, &format!("  {title:<13} "), text)?;
        }
        writeln!(out, "  {:<15} {:<12} {:<12}", "options", "default", "published")?;
        for Parameter { name, takes, meaning, default, published } in parameters(entry) {
            let text = format!("{meaning} ({takes})");
            reported(out, &format!("    {name:<13} {default:<12} {published:<12} "), &text)?;
        }
        for (number, deviation) in entry.deviations.iter().enumerate() {
            if number == 0 {
                writeln!(out, "  deviations from its description:")?;
            }
            reported(out, "    - ", deviation)?;
        }
        writeln!(out)?;
    }
    writeln!(out, "Select a scheme with --cc, followed by its options: --cc ormcc,beta=0.7")?;
    let protocols = unicast_protocols();
    if protocols.is_empty() {
        return Ok(());
    }
    reported(
        out,
        "",
        &format!(
            "Simulations also have unicast protocols, as in `faircast schemes tcp-sack`: {}",
            protocols.join(", ")
        ),
    )
}

/// Returns the names of the unicast protocols of simulations.
#[cfg(feature = "simulator")]
fn unicast_protocols() -> Vec<&'static str> {
    faircast_unicast::CATALOGUE.iter().map(|entry| entry.name).collect()
}

/// Returns no names: this build has no simulator.
#[cfg(not(feature = "simulator"))]
fn unicast_protocols() -> Vec<&'static str> {
    Vec::new()
}

/// Maximum length of a line of text, in characters.
const WIDTH: usize = 110;

/// Writes a text after `head`. Further lines of the text are indented by the width of `head`.
fn reported(out: &mut impl Write, head: &str, text: &str) -> io::Result<()> {
    let mut line = head.to_owned();
    let indent = head.chars().count();
    for word in text.split_whitespace() {
        let used = line.chars().count();
        if used > indent && used + word.chars().count() > WIDTH {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(indent);
        }
        line.push_str(word);
        line.push(' ');
    }
    writeln!(out, "{}", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: Option<&str>, json: bool) -> Result<String, Failure> {
        let mut out = Vec::new();
        run(&Schemes { name: name.map(str::to_owned), json }, &mut out)?;
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn every_scheme_of_the_core_is_listed_with_its_parameters() {
        let text = listed(None, false).expect("a vector takes everything");
        for entry in CATALOGUE {
            assert!(text.contains(entry.name) && text.contains(entry.source));
            let scheme: Scheme = entry.name.parse().expect("listed");
            assert!(scheme.own_options().iter().all(|option| text.contains(option.name)));
        }
    }

    #[test]
    fn single_scheme_is_listed_and_unknown_name_lists_all_schemes() {
        assert!(listed(Some("ormcc"), true).expect("it exists").starts_with("{\"name\":\"ormcc\","));
        let failure = listed(Some("nosuch"), false).expect_err("it does not exist");
        assert!(
            failure.to_string().contains("ormcc") && failure.to_string().contains("tcp-sack"),
            "{failure}"
        );
        let sack = listed(Some("tcp-sack"), false).expect("it exists");
        assert!(sack.contains("initial-window") && sack.contains("linux2.4"), "{sack}");
    }
}
