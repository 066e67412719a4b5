//! The manual, generated from the definition of the command line: pages, completions, `docs/cli.md`.

use crate::args::Cli;
use crate::failure::{Failure, Usage, unwritten};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::path::Path;

/// Writes the manual page of a command. If `names` is empty, writes the page of `faircast`.
///
/// # Errors
/// When the command does not exist, or the page cannot be written.
pub fn page(names: &[String], out: &mut impl Write) -> Result<(), Failure> {
    let mut all = Cli::command();
    all.build();
    let mut command = &all;
    for name in names {
        let shown = |sub: &&clap::Command| sub.get_name() != "help";
        let known = || {
            command
                .get_subcommands()
                .filter(shown)
                .map(clap::Command::get_name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let found = command.get_subcommands().filter(shown).find(|sub| sub.get_name() == name);
        command = found.ok_or_else(|| Usage::NoSuchCommand { name: name.clone(), known: known() })?;
    }
    // The title has the form of `clap_mangen::generate_to`.
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    clap_mangen::Man::new(command.clone()).title(title).render(out).map_err(unwritten)
}

/// Writes one manual page per command into `directory`.
///
/// # Errors
/// When the directory or a page cannot be written.
pub fn pages(directory: &Path) -> Result<(), Failure> {
    let failed = || Failure::system(format!("write the manual pages into {}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed())?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed())
}

/// Writes completions for `shell`.
///
/// # Errors
/// When the completions cannot be written.
pub fn completions(shell: Shell, out: &mut impl Write) -> Result<(), Failure> {
    let mut script = Vec::new(); // the generator panics when its writer fails
    clap_complete::generate(shell, &mut Cli::command(), "faircast", &mut script);
    out.write_all(&script).map_err(unwritten)
}

/// Returns the page `docs/cli.md`.
#[cfg(test)]
fn markdown() -> String {
    let mut page = String::from(
        "# The command line\n\n\
         This page is the output of `--help`. `FAIRCAST_BLESS=1 cargo test -p faircast-cli` regenerates it.\n\n\
         Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 a check or\n\
         transfer failed, 2 usage, 3 network or system, 4 complete except for receivers excluded by `--slow drop`, 5 complete\n\
         except for files that could not be read or changed during the transfer. `NO_COLOR` is honoured. The first SIGINT or SIGTERM\n\
         ends a session in order: its report and its last line state its progress, and the exit code is 1 (0 for `recv --serve` between two sessions).\n\
         The second one ends the process at once. SIGUSR1 starts a `send` that waits for receivers.\n\n\
         With `--json`, a session prints one JSON object per line: `opened`, `warning`, `content`, `joined`, `left`,\n\
         `slow`, `layers`, `output`, once a second `progress`, on failure `error`, and always `done` as the last line.\n\
         A session never waits for a reader of its output. Lines that are not read in time are dropped, and `dropped` counts them.\n\
         Rates are in bit/s (`_bps`), times in seconds or milliseconds (`_ms`). [json.md](json.md) lists every field, and the\n\
         format of `send --report`.\n",
    );
    let mut command = Cli::command();
    command.build();
    sections(&mut page, &mut command);
    page
}

/// Adds a section for a command and for each of its subcommands.
#[cfg(test)]
fn sections(page: &mut String, command: &mut clap::Command) {
    section(page, command);
    for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        sections(page, sub);
    }
}

#[cfg(test)]
fn section(page: &mut String, command: &mut clap::Command) {
    use std::fmt::Write as _;

    let title = command.get_bin_name().unwrap_or("faircast").to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(page, "\n## `{title}`\n\n```text\n{}\n```\n", help.join("\n").trim_end())
        .expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_command_line_page_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        if std::env::var_os("FAIRCAST_BLESS").is_some() {
            std::fs::write(&path, markdown()).expect("docs/ is writable");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == markdown(), "docs/cli.md is stale: FAIRCAST_BLESS=1 cargo test -p faircast-cli");
    }

    #[test]
    fn every_visible_command_except_dissector_has_examples() {
        for sub in Cli::command().get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let needs_none = sub.get_name() == "dissector";
            assert!(needs_none || sub.get_after_help().is_some(), "{}", sub.get_name());
        }
    }

    #[test]
    fn error_about_a_manual_page_lists_the_existing_commands() {
        let of = |names: &[&str]| {
            let (names, mut text) =
                (names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), Vec::new());
            page(&names, &mut text).map(|()| String::from_utf8(text).expect("text"))
        };
        let send = of(&["send"]).expect("there is such a command");
        assert!(send.contains("faircast\\-send") && send.contains("receivers"), "{send}");
        assert!(of(&["sim", "run"]).is_ok_and(|text| text.contains("faircast\\-sim\\-run")));
        let error = of(&["sim", "rum"]).expect_err("there is none").to_string();
        assert!(error.contains("`rum`") && error.contains("run, "), "{error}");
    }

    #[test]
    fn completions_and_manual_contain_command_names() {
        let (mut script, mut manual) = (Vec::new(), Vec::new());
        completions(Shell::Bash, &mut script).expect("a vector takes everything");
        page(&[], &mut manual).expect("a vector takes everything");
        for text in [script, manual] {
            let text = String::from_utf8(text).expect("text");
            assert!(text.contains("recv") && text.contains("doctor"));
        }
    }
}
