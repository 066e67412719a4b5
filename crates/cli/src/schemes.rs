//! `faircast schemes`: the congestion control schemes and their parameters.

use crate::args::Schemes;
use crate::failure::{Failure, Usage, unwritten};
use crate::json;
use faircast_core::schemes::{CATALOGUE, Entry};
use serde::Serialize;
use std::io::{self, Write};

/// A scheme as JSON.
#[derive(Serialize)]
struct SchemeLine {
    name: &'static str,
    summary: &'static str,
    described_in: &'static str,
    parameters: Vec<Parameter>,
}

/// A parameter as JSON.
#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    meaning: &'static str,
}

/// List all schemes, or one.
///
/// # Errors
/// [`Usage::NoSuchScheme`], or that the list cannot be written.
pub fn run(args: &Schemes, out: &mut impl Write) -> Result<(), Failure> {
    let wanted = |entry: &&Entry| args.name.as_ref().is_none_or(|name| entry.name == name);
    let entries: Vec<&Entry> = CATALOGUE.iter().filter(wanted).collect();
    if let (true, Some(name)) = (entries.is_empty(), &args.name) {
        let known = CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        return Err(Usage::NoSuchScheme { name: name.clone(), known }.into());
    }
    let told = if args.json { as_json(&entries, out) } else { as_text(&entries, out) };
    told.map_err(unwritten)
}

fn as_json(entries: &[&Entry], out: &mut impl Write) -> io::Result<()> {
    entries.iter().try_for_each(|entry| {
        let parameters = entry.options.iter().map(|&(name, meaning)| Parameter { name, meaning }).collect();
        let Entry { name, summary, source, .. } = **entry;
        json::write(out, &SchemeLine { name, summary, described_in: source, parameters })
    })
}

fn as_text(entries: &[&Entry], out: &mut impl Write) -> io::Result<()> {
    for entry in entries {
        writeln!(out, "{:<10} {}", entry.name, entry.summary)?;
        writeln!(out, "{:<10} described in {}", "", entry.source)?;
        for (name, meaning) in entry.options {
            writeln!(out, "{:<10}   {name:<14} {meaning}", "")?;
        }
    }
    let example = entries.first().and_then(|entry| Some((entry.name, entry.options.get(1)?.0)));
    match example {
        Some((scheme, option)) => {
            writeln!(out, "\nUse one with --cc, options behind commas: --cc {scheme},{option}=VALUE")
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: Option<&str>, json: bool) -> Result<String, Failure> {
        let mut out = Vec::new();
        run(&Schemes { name: name.map(str::to_owned), json }, &mut out)?;
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn every_scheme_of_the_core_is_listed_with_its_parameters() {
        let text = told(None, false).expect("a vector takes everything");
        for entry in CATALOGUE {
            assert!(text.contains(entry.name) && text.contains(entry.summary));
            assert!(entry.options.iter().all(|(name, _)| text.contains(name)));
        }
    }

    #[test]
    fn one_scheme_can_be_asked_for_and_an_unknown_one_names_the_others() {
        assert!(told(Some("ormcc"), true).expect("it exists").starts_with("{\"name\":\"ormcc\","));
        let failure = told(Some("nosuch"), false).expect_err("it does not exist");
        assert!(failure.to_string().contains("ormcc"), "{failure}");
    }
}
