//! Configuration files: options of the commands, as tables of TOML. Their keys and values are translated into arguments and checked
//! by the definition of the command line.

mod files;
mod show;

use crate::args::Cli;
use crate::failure::{Failure, Usage};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, Parser};
use files::ConfigFile;
pub use show::run;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml_edit::{Item, TableLike, Value};

/// Options that have no effect in a file.
const NOT_IN_FILES: [&str; 3] = ["config", "help", "version"];

/// A setting of a configuration file.
#[derive(Debug, Clone, PartialEq)]
struct Setting {
    /// Words of the command, as in `sim run`.
    command: Vec<String>,
    /// Long name of the option.
    key: String,
    /// Arguments with the same meaning.
    arguments: Vec<OsString>,
    /// Value as the file states it.
    value: String,
    path: PathBuf,
    line: usize,
}

/// Parses a command line, with the options of configuration files. Ends the process if the command line is wrong, or asks for help.
///
/// # Errors
/// [`Usage`] if a configuration file is wrong.
pub fn parse(words: Vec<OsString>) -> Result<Cli, Failure> {
    let names_file = words.iter().any(|word| word.as_encoded_bytes().starts_with(b"--config"));
    if !names_file && !files::default_paths().iter().any(|path| path.exists()) {
        return Ok(Cli::parse_from(words));
    }
    let program = Cli::command();
    // With an error in the options, the parser returns the options before it.
    let Ok(given) = program.clone().ignore_errors(true).try_get_matches_from(&words) else {
        return Ok(Cli::parse_from(words));
    };
    let files = files::read(chosen(&given))?;
    let settings = settings_of(&program, &files)?;
    let (words, used) = completed(&program, words, &given, &settings)?;
    Cli::try_parse_from(words).map_err(|error| {
        if !error.use_stderr() || used.is_empty() {
            error.exit();
        }
        // An error is ignored, because the exit code reports the failure, too.
        let _ = error.print();
        let from = |setting: &&Setting| {
            format!("--{} ({}, line {})", setting.key, setting.path.display(), setting.line)
        };
        eprintln!(
            "\nOptions from configuration files: {}",
            used.iter().map(from).collect::<Vec<_>>().join(", ")
        );
        std::process::exit(error.exit_code())
    })
}

/// Returns the file of `--config`. The option may stand before or behind the words of the command.
fn chosen(given: &ArgMatches) -> Option<&Path> {
    let here = given.try_get_one::<PathBuf>("config").ok().flatten().map(PathBuf::as_path);
    here.or_else(|| given.subcommand().and_then(|(_, inner)| chosen(inner)))
}

/// Returns the settings of all files. Those of the last file come first, because they have priority.
fn settings_of(program: &Command, files: &[ConfigFile]) -> Result<Vec<Setting>, Usage> {
    let mut settings = Vec::new();
    for file in files.iter().rev() {
        collect(file, file.document.as_table(), program, &mut Vec::new(), &mut settings)?;
    }
    Ok(settings)
}

/// Collects the settings of a table, which belongs to this command.
fn collect(
    file: &ConfigFile,
    table: &dyn TableLike,
    command: &Command,
    words: &mut Vec<String>,
    settings: &mut Vec<Setting>,
) -> Result<(), Usage> {
    for (key, item) in table.iter() {
        let line = file.line_of(table, key);
        let wrong = |reason| Usage::Setting { path: file.path.clone(), line, reason };
        match (command.find_subcommand(key), item.as_table_like()) {
            (Some(inner), Some(table)) => {
                words.push(key.to_owned());
                collect(file, table, inner, words, settings)?;
                words.pop();
            }
            (_, Some(_)) => return Err(wrong(no_such_command(command, key))),
            (_, None) if words.is_empty() => {
                return Err(wrong(format!(
                    "`{key}` is in no table; write it below the name of a command, as in [send]"
                )));
            }
            (_, None) => {
                let arguments = arguments_of(command, key, item).map_err(wrong)?;
                let (command, value) = (words.clone(), item.to_string().trim().to_owned());
                settings.push(Setting {
                    command,
                    key: key.to_owned(),
                    arguments,
                    value,
                    path: file.path.clone(),
                    line,
                });
            }
        }
    }
    Ok(())
}

fn no_such_command(command: &Command, name: &str) -> String {
    let similar = suggestion(command, name, ContextKind::SuggestedSubcommand);
    format!(
        "there is no command `{name}`{}",
        similar.unwrap_or_else(|| "; `faircast help` lists the commands".to_owned())
    )
}

/// Returns the similar name that the parser of the command line suggests.
fn suggestion(command: &Command, word: &str, kind: ContextKind) -> Option<String> {
    let error = command.clone().try_get_matches_from([command.get_name(), word]).err()?;
    let similar = match error.get(kind)? {
        ContextValue::String(one) => one.as_str(),
        ContextValue::Strings(several) => several.first()?,
        _ => return None,
    };
    Some(format!("; a similar name is `{}`", similar.trim_start_matches("--")))
}

/// Returns the option with this long name.
fn option<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(key) && !NOT_IN_FILES.contains(&key))
}

/// Translates a setting into arguments.
fn arguments_of(command: &Command, key: &str, item: &Item) -> Result<Vec<OsString>, String> {
    let name = command.get_name();
    let Some(arg) = option(command, key) else {
        let similar = suggestion(command, &format!("--{key}"), ContextKind::SuggestedArg);
        let similar = similar.unwrap_or_else(|| format!("; `faircast {name} --help` lists its options"));
        return Err(format!("`{name}` has no option `{key}`{similar}"));
    };
    let takes_values = arg.get_action().takes_values();
    let may_be_alone = !takes_values || arg.get_num_args().is_some_and(|number| number.min_values() == 0);
    let with = |text: &str| OsString::from(format!("--{key}={text}"));
    match item.as_value() {
        Some(Value::Boolean(on)) if may_be_alone => {
            Ok(on.value().then(|| format!("--{key}").into()).into_iter().collect())
        }
        _ if !takes_values => Err(format!("`{key}` is a switch; write true or false")),
        Some(Value::Array(several)) if matches!(arg.get_action(), ArgAction::Append) => {
            let texts: Option<Vec<String>> = several.iter().map(text_of).collect();
            let texts = texts.ok_or_else(|| format!("`{key}` takes a list of texts or numbers"))?;
            Ok(texts.iter().map(|text| with(text)).collect())
        }
        Some(value) => match text_of(value) {
            Some(text) => Ok(vec![with(&text)]),
            None => Err(format!("`{key}` takes one text or number")),
        },
        None => Err(format!("`{key}` takes one text or number")),
    }
}

/// Returns the text of a value; `None` for lists, tables, true and false.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Datetime(time) => Some(time.value().to_string()),
        Value::Boolean(_) | Value::Array(_) | Value::InlineTable(_) => None,
    }
}

/// Adds the settings of the command that apply to its arguments. Returns all arguments, and the settings that were added. Settings
/// do not apply if they are given on the command line or by an earlier setting, conflict with it, or need an option that is missing.
fn completed<'a>(
    program: &Command,
    words: Vec<OsString>,
    given: &ArgMatches,
    settings: &'a [Setting],
) -> Result<(Vec<OsString>, Vec<&'a Setting>), Usage> {
    let (mut inner, mut command, mut names) = (given, program, Vec::new());
    while let Some((name, matches)) = inner.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (inner, command) = (matches, found);
        names.push(name.to_owned());
    }
    let is_given = |key: &str| {
        let source = option(command, key).and_then(|arg| inner.value_source(arg.get_id().as_str()));
        source == Some(ValueSource::CommandLine)
    };
    let mut pending: Vec<&Setting> = Vec::new();
    for setting in settings.iter().filter(|setting| setting.command == names) {
        check_value(command, setting)?;
        if !is_given(&setting.key) && !pending.iter().any(|other| other.key == setting.key) {
            pending.push(setting);
        }
    }
    let at = behind(&words, &names);
    let with = |used: &[&Setting]| {
        let mut words = words.clone();
        let more = used.iter().flat_map(|setting| setting.arguments.iter().cloned());
        words.splice(at..at, more);
        words
    };
    if fits(program, with(&pending)) {
        return Ok((with(&pending), pending));
    }
    let mut used: Vec<&Setting> = Vec::new();
    loop {
        let next = pending.iter().position(|setting| fits(program, with(&[&used[..], &[*setting]].concat())));
        let Some(next) = next else { return Ok((with(&used), used)) };
        used.push(pending.remove(next));
    }
}

/// Returns the position behind the words of the command.
fn behind(words: &[OsString], names: &[String]) -> usize {
    let mut at = 1;
    for name in names {
        while words.get(at).is_some_and(|word| word != name.as_str()) {
            at += if words[at] == "--config" { 2 } else { 1 };
        }
        at += 1;
    }
    at.min(words.len())
}

/// Whether no option conflicts with another one, or needs an option that is missing.
fn fits(program: &Command, words: Vec<OsString>) -> bool {
    let kind = program.clone().try_get_matches_from(words).err().map(|error| error.kind());
    !matches!(kind, Some(ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument))
}

/// Checks the value of a setting.
fn check_value(command: &Command, setting: &Setting) -> Result<(), Usage> {
    let words = [OsString::from(command.get_name())].into_iter().chain(setting.arguments.iter().cloned());
    let Err(error) = command.clone().try_get_matches_from(words) else { return Ok(()) };
    if matches!(error.kind(), ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument) {
        return Ok(()); // other options are missing here
    }
    let text = error.to_string();
    let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    Err(Usage::Setting { path: setting.path.clone(), line: setting.line, reason })
}

#[cfg(test)]
mod tests;
