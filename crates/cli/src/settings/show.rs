//! `config`: shows the values of options, and their origins.

use super::{NOT_IN_FILES, Setting, files, settings_of};
use crate::args::Cli;
use crate::failure::{Failure, Usage, unwritten};
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

/// Prints the settings of all configuration files. With the words of a command, prints all options of this command.
///
/// # Errors
/// If a configuration file is wrong, or there is no such command.
pub fn run(words: &[String], config: Option<&Path>, out: &mut impl Write) -> Result<(), Failure> {
    let program = Cli::command();
    let files = files::read(config)?;
    let settings = settings_of(&program, &files)?;
    let mut text = String::new();
    for path in config.map_or_else(files::default_paths, |path| vec![path.to_owned()]) {
        let state = if files.iter().any(|file| file.path == path) { "read" } else { "not found" };
        line(&mut text, &format!("# {}: {state}", path.display()));
    }
    let mut command = &program;
    for word in words {
        let found = command.get_subcommands().find(|inner| inner.get_name() == word);
        let known = || command.get_subcommands().map(Command::get_name).collect::<Vec<_>>().join(", ");
        command = found.ok_or_else(|| Usage::NoSuchCommand { name: word.clone(), known: known() })?;
    }
    match words {
        [] => tables(&mut text, &settings),
        _ => options(&mut text, command, words, &settings),
    }
    out.write_all(text.as_bytes()).map_err(unwritten)
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes any text");
}

/// Appends the settings in force, as one table for each command.
fn tables(text: &mut String, settings: &[Setting]) {
    let mut before: Vec<&Setting> = Vec::new();
    for first in settings {
        if before.iter().any(|setting| setting.command == first.command) {
            continue;
        }
        line(text, &format!("\n[{}]", first.command.join(".")));
        for setting in settings.iter().filter(|setting| setting.command == first.command) {
            let is_in_force =
                |other: &&Setting| (&other.command, &other.key) == (&setting.command, &setting.key);
            if !before.iter().any(is_in_force) {
                line(text, &in_force(setting));
                before.push(setting);
            }
        }
    }
}

/// Appends all options of a command: the settings in force, the defaults, and as comments the options without a value.
fn options(text: &mut String, command: &Command, words: &[String], settings: &[Setting]) {
    line(text, &format!("\n[{}]", words.join(".")));
    for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
        let Some(key) = option.get_long().filter(|key| !NOT_IN_FILES.contains(key)) else { continue };
        let is_this = |setting: &&Setting| setting.command == words && setting.key == key;
        line(text, &settings.iter().find(is_this).map_or_else(|| default(key, option), in_force));
    }
}

fn in_force(setting: &Setting) -> String {
    format!("{} = {}  # {}, line {}", setting.key, setting.value, setting.path.display(), setting.line)
}

fn default(key: &str, option: &Arg) -> String {
    let values: Vec<_> = option.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    match (option.get_action().takes_values(), values.as_slice()) {
        (false, _) => format!("{key} = false  # default"),
        (true, [value]) if !value.is_empty() => format!("{key} = {value:?}  # default"),
        _ => format!("# {key} is not set"),
    }
}
