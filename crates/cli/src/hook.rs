//! `--on-complete`: a command that runs after a complete session.

use crate::failure::Failure;
use faircast::Event;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};

/// Fields of events and reports that become variables, as in `FAIRCAST_BYTES`.
const FIELDS: [&str; 6] = ["transfer", "files", "bytes", "seconds", "receivers", "verified"];

/// A command and its environment variables. The shell gets values from the network only as variables, so that no name of a file or host
/// can become a part of the command.
#[derive(Debug, Clone)]
pub struct Hook {
    command: OsString,
    is_receiver: bool,
    variables: BTreeMap<String, OsString>,
}

impl Hook {
    /// Creates a hook of a source.
    pub fn of_source(command: OsString) -> Hook {
        Hook { command, is_receiver: false, variables: BTreeMap::new() }
    }

    /// Creates a hook of a receiver that writes into a directory, or to its standard output.
    pub fn of_receiver(command: OsString, directory: Option<&Path>) -> Hook {
        let out = directory.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let variables = out.into_iter().map(|path| ("FAIRCAST_OUT".to_owned(), path.into_os_string()));
        Hook { command, is_receiver: true, variables: variables.collect() }
    }

    /// Records what an event states about the session.
    pub fn note_event(&mut self, event: &Event) {
        match event {
            Event::Joined { host, address, .. } if self.is_receiver => {
                self.set("source", host);
                self.set("source_address", address.ip());
            }
            Event::Content { .. } => self.note(event),
            Event::Numbered { number, name, .. } => {
                self.set("number", number);
                name.iter().for_each(|name| self.set("name", name));
            }
            _ => {}
        }
    }

    /// Records the fields of a report or event that a hook gets.
    fn note(&mut self, report: &impl Serialize) {
        let Ok(Value::Object(fields)) = serde_json::to_value(report) else { return };
        for name in FIELDS {
            match fields.get(name) {
                Some(Value::String(text)) => self.set(name, text),
                Some(value @ Value::Number(_)) => self.set(name, value),
                _ => {}
            }
        }
    }

    /// Returns the hook with the fields of the session's report; `None` if the session is incomplete or was a dry run.
    pub fn after(hook: Option<Hook>, complete: Option<&impl Serialize>) -> Option<Hook> {
        let (mut hook, report) = (hook?, complete?);
        let is_dry = |fields: Value| fields.get("dry_run").is_some_and(|result| !result.is_null());
        if serde_json::to_value(report).is_ok_and(is_dry) {
            return None;
        }
        hook.note(report);
        Some(hook)
    }

    fn set(&mut self, name: &str, value: impl ToString) {
        // An environment variable cannot have a zero byte.
        let value = value.to_string().replace('\0', " ");
        self.variables.insert(format!("FAIRCAST_{}", name.to_uppercase()), value.into());
    }

    /// Runs the command and waits for its end. Its output goes to standard error, because standard output has content or JSON.
    ///
    /// # Errors
    /// If the shell cannot be started, or the command fails.
    pub fn run(&self) -> Result<(), Failure> {
        let failed =
            |source| Failure::System { what: "complete the command of `--on-complete`".into(), source };
        let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
        let mut shell = Command::new("/bin/sh");
        shell.args([OsStr::new("-c"), &self.command]).envs(&self.variables);
        let status = shell.stdin(Stdio::null()).stdout(stderr).status().map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(failed(io::Error::other(status.to_string()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    #[test]
    fn names_from_the_network_are_no_part_of_the_command() {
        let directory = tempfile::tempdir().expect("a directory");
        let out = directory.path().join("o u t");
        fs::create_dir(&out).expect("it is created");
        let command = r#"printf '%s\n' "$FAIRCAST_SOURCE" "$FAIRCAST_BYTES" "$FAIRCAST_TRANSFER" > "$FAIRCAST_OUT/said""#;
        let mut hook = Hook::of_receiver(command.into(), Some(&out));
        let evil = "'; touch \"$FAIRCAST_OUT/evil\"; `touch evil`\0";
        let address = "192.0.2.1:5777".parse().expect("an address");
        hook.note_event(&Event::Joined { receiver: None, host: evil.to_owned(), address });
        hook.note(&json!({ "bytes": 7, "transfer": "$(touch \"$FAIRCAST_OUT/evil\")", "other": "no" }));
        hook.run().expect("it runs");
        let said = fs::read_to_string(out.join("said")).expect("it was written");
        assert_eq!(said, format!("{}\n7\n$(touch \"$FAIRCAST_OUT/evil\")\n", evil.replace('\0', " ")));
        assert!(!out.join("evil").exists());
    }

    #[test]
    fn failed_commands_are_errors_with_their_status() {
        let error = Hook::of_source("exit 3".into()).run().expect_err("it fails").to_string();
        assert!(error.contains("--on-complete") && error.contains("exit status: 3"), "{error}");
    }
}
