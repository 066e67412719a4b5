//! `clean`: lists and removes partial files of receivers.

use crate::args::Clean;
use crate::failure::{Failure, unwritten};
use crate::{json, safe, units};
use faircast::object::{self, Unfinished};
use serde::Serialize;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Default of `--older-than` with `--remove`.
const OLD: Duration = Duration::from_secs(7 * 86_400);

/// A partial transfer as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    transfer: &'a str,
    bytes: u64,
    /// Time of the last write, in seconds since 1970.
    written_unix: u64,
    in_use: bool,
    removed: bool,
}

/// Lists the partial transfers. With `--remove`, removes them.
///
/// # Errors
/// When the directory cannot be read, or files cannot be removed.
pub fn run(typed: &Clean, out: &mut impl Write) -> Result<(), Failure> {
    let older = typed.older_than.unwrap_or(if typed.remove { OLD } else { Duration::ZERO });
    let now = SystemTime::now();
    let age = |one: &Unfinished| now.duration_since(one.written).unwrap_or_default();
    let all = object::unfinished(&typed.out).map_err(faircast::Error::from)?;
    let (meant, stored): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| age(one) >= older);
    let (mut gone, mut bytes) = (0, 0);
    for one in &meant {
        let removed =
            typed.remove && object::let_go(&typed.out, &one.transfer).map_err(faircast::Error::from)?;
        if removed {
            (gone, bytes) = (gone + 1, bytes + one.bytes);
        }
        if typed.json {
            let written_unix = one.written.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let (transfer, in_use) = (&*one.transfer, one.in_use);
            let line = Line { transfer, bytes: one.bytes, written_unix, in_use, removed };
            json::write(out, &line).map_err(unwritten)?;
            continue;
        }
        let what = match (removed, one.in_use) {
            (true, _) => "removed",
            (false, true) => "in use by a receiver",
            (false, false) => "unfinished",
        };
        let (size, age) = (units::bytes(one.bytes), units::age(age(one)));
        writeln!(out, "{}  {size:>10}  {age:>12} ago  {what}", one.transfer).map_err(unwritten)?;
    }
    if typed.json {
        return Ok(());
    }
    let place = typed.out.display().to_string();
    let place = safe::text(&place);
    let summary = match (typed.remove, meant.len(), stored.len()) {
        (_, 0, 0) => format!("no partial transfers in {place}"),
        (_, 0, stored) => {
            format!(
                "no partial transfers of that age in {place}; to select {stored} newer ones, use --older-than 0"
            )
        }
        (true, ..) => format!("removed {} of {gone} partial transfers in {place}", units::bytes(bytes)),
        (false, ..) => {
            "remove them with --remove (older than a week) or --remove --older-than 0 (all)".to_owned()
        }
    };
    writeln!(out, "{summary}").map_err(unwritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn clean(args: &[&str]) -> String {
        let cli = crate::args::Cli::parse_from([&["faircast", "clean"], args].concat());
        let crate::args::Command::Clean(typed) = cli.command else { panic!("it is another command") };
        let mut out = Vec::new();
        run(&typed, &mut out).expect("the directory is there");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn clean_command_lists_partial_transfers_and_removes_old_ones() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let out = directory.path().to_str().expect("a plain name");
        assert!(clean(&["--out", out]).contains("no partial transfers in"));
        let state = directory.path().join(".faircast").join("0a".repeat(16));
        std::fs::create_dir_all(state.join("parts")).expect("made");
        std::fs::write(state.join("journal"), vec![1; 70_000]).expect("written");
        std::fs::write(state.join("parts/0"), vec![1; 10_000]).expect("written");
        let listed = clean(&["--out", out]);
        assert!(listed.contains(&"0a".repeat(16)) && listed.contains("unfinished"), "{listed}");
        assert!(clean(&["--out", out, "--remove"]).contains("no partial transfers of that age"));
        let line: serde_json::Value =
            serde_json::from_str(&clean(&["--out", out, "--json"])).expect("an object");
        assert!(line["bytes"].as_u64() >= Some(80_000) && line["removed"] == false, "{line}");
        let removed = clean(&["--out", out, "--remove", "--older-than", "0"]);
        assert!(removed.contains("of 1 partial") && !state.exists(), "{removed}");
    }
}
