//! `receipt`: verifies receipts after the session, and reads the public keys whose holders must sign receipts.

mod claims;

use crate::args::ReceiptVerify;
use crate::failure::{Failure, Usage, unwritten};
use crate::{json, key, safe, units};
use claims::{Checked, Report};
use faircast::receipts::{ReceiptReport, ReceiptsReport};
use faircast::{ReceiptKeys, VerifyKey};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Maximum number of files in a directory of public keys.
const MAX_FILES: usize = 10_000;

/// Maximum number of contradictions that are described. Further contradictions are only counted.
const MAX_NAMED: usize = 5;

/// Maximum length of a report, in bytes. It has room for 65,536 receipts and as many receivers.
const MAX_REPORT: u64 = 256 << 20;

/// A receipt as a line of JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    host: &'a str,
    key: &'a str,
    signed_at: u64,
    valid: bool,
    known: Option<bool>,
}

/// Reads the public keys in a file, or in all files of a directory except for hidden ones.
///
/// # Errors
/// When the file does not exist, or a file does not contain public keys.
pub fn read_keys(path: &Path) -> Result<Vec<VerifyKey>, Usage> {
    if !path.is_dir() {
        return Ok(key::signing::read_public(path)?.iter().copied().collect());
    }
    let unreadable = |source| Usage::KeysUnreadable { path: path.to_owned(), source };
    let entries = path.read_dir().map_err(unreadable)?.take(MAX_FILES + 1);
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()
        .map_err(unreadable)?;
    if files.len() > MAX_FILES {
        return Err(Usage::TooManyKeyFiles { path: path.to_owned(), most: MAX_FILES });
    }
    files.retain(|file| {
        file.is_file() && !file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    });
    files.sort();
    let mut keys = Vec::new();
    for file in &files {
        keys.extend(key::signing::read_public(file)?.iter().copied());
    }
    if keys.is_empty() { Err(Usage::NoKeys(path.to_owned())) } else { Ok(keys) }
}

/// Reads the public keys that must sign receipts.
///
/// # Errors
/// As [`read_keys`].
pub fn read_receipt_keys(path: &Path) -> Result<ReceiptKeys, Usage> {
    Ok(read_keys(path)?.into_iter().collect())
}

/// Verifies the receipts of a report.
///
/// # Errors
/// When the report cannot be read, or a receipt, a key or the content is wrong.
pub fn verify(typed: &ReceiptVerify, out: &mut impl Write) -> Result<(), Failure> {
    let keys = typed.keys.as_deref().map(read_keys).transpose()?;
    let report = read(&typed.report)?;
    let no_receipts = || Failure::from(Usage::NoReceipts(typed.report.clone()));
    let receipts = report.receipts.as_ref().ok_or_else(no_receipts)?;
    let keys: Option<BTreeSet<String>> = keys.map(|keys| keys.iter().map(hex).collect());
    let checked: Vec<_> = receipts.signed.iter().map(|one| check(receipts, one, keys.as_ref())).collect();
    for one in &checked {
        print(typed.json, one, out)?;
    }
    let counts = |one: &&Checked<'_>| one.valid && one.known != Some(false);
    let used: BTreeSet<String> = checked.iter().filter(counts).map(|one| one.receipt.key.clone()).collect();
    let wrong = checked.iter().filter(|one| !counts(one)).count();
    let mut faults = Vec::new();
    let root = match typed.paths.as_slice() {
        [] => None,
        paths => Some(receipts.root_of(paths, &typed.preserve).map_err(faircast::Error::from)?),
    };
    if receipts.signed.is_empty() {
        faults.push("it has no receipt".to_owned());
    }
    if wrong > 0 {
        let all = units::count(receipts.signed.len() as u64, "receipt");
        faults.push(format!("not valid, or signed by an unknown key: {wrong} of {all}"));
    }
    let silent = keys.map_or(0, |keys| keys.difference(&used).count());
    if silent > 0 {
        faults.push(format!("{} without a receipt", units::count(silent as u64, "key")));
    }
    if root.is_some() && root != receipts.root_hash() {
        faults.push(
            "the content differs from the signed content: its names, times, modes or bytes have changed, or --preserve has another value than at `send`"
                .to_owned(),
        );
    }
    let contradictions = report.contradictions(receipts, &checked);
    let shown = contradictions.iter().take(MAX_NAMED).map(|one| safe::name(one).into_owned());
    faults.extend(shown);
    let more = contradictions.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        faults.push(format!("{} more", units::count(more as u64, "contradiction")));
    }
    if !faults.is_empty() {
        return Err(Failure::Incomplete(faults.join(", ")));
    }
    if !typed.json {
        let about = if root.is_some() { "receipt of this content" } else { "the root of this report" };
        let count = units::count(used.len() as u64, "key");
        writeln!(out, "all receipts verify: {count} signed {about}").map_err(unwritten)?;
        writeln!(out, "{}", uncovered(&report)).map_err(unwritten)?;
    }
    Ok(())
}

/// Describes the fields of a report that no receipt covers.
fn uncovered(report: &Report) -> String {
    let outcomes = match report.unsigned() {
        0 => String::new(),
        some => format!(", and the outcome of {} without a receipt", units::count(some, "receiver")),
    };
    format!("not signed: the report's addresses, byte counts, times, rates and losses{outcomes}")
}

fn check<'a>(
    receipts: &ReceiptsReport,
    receipt: &'a ReceiptReport,
    keys: Option<&BTreeSet<String>>,
) -> Checked<'a> {
    let known = keys.map(|keys| keys.contains(&receipt.key));
    Checked { receipt, valid: receipts.is_signed(receipt), known }
}

/// Reads the checked fields of a report.
fn read(path: &Path) -> Result<Report, Failure> {
    let unreadable = |source| Usage::ReportUnreadable { path: path.to_owned(), source };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_REPORT).read_to_string(&mut text).map_err(unreadable)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let not_a_report =
        |error: serde_json::Error| Usage::NotAReport { path: path.to_owned(), reason: error.to_string() };
    Ok(serde_json::from_str(text).map_err(not_a_report)?)
}

fn print(as_json: bool, one: &Checked<'_>, out: &mut impl Write) -> Result<(), Failure> {
    let Checked { receipt: ReceiptReport { host, key, signed_at, .. }, valid, known } = *one;
    let signed_at = *signed_at;
    if as_json {
        return json::write(out, &Line { host, key, signed_at, valid, known }).map_err(unwritten);
    }
    let verdict = match (valid, known) {
        (false, _) => "DOES NOT VERIFY",
        (true, Some(false)) => "another key",
        (true, _) => "ok",
    };
    let (host, key) = (safe::name(host), safe::name(key));
    writeln!(out, "{host}  {}  {key}  {verdict}", units::utc(signed_at)).map_err(unwritten)
}

fn hex(key: &VerifyKey) -> String {
    key.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, ReceiptCommand};
    use clap::Parser;
    use faircast::SigningKey;
    use faircast_core::packet::ReceiverId;
    use faircast_wire::{Name, Receipt};
    use std::fs;

    /// Returns a report about `content`. It contains one receipt for each of `keys`, signed with this key.
    fn report(content: &Path, keys: &[u8]) -> ReceiptsReport {
        let mut report = ReceiptsReport {
            session: "0000002a".into(),
            salt: "01".repeat(16),
            transfer: "02".repeat(16),
            started: u64::MAX.to_string(),
            root: None,
            symbol_size: 1_400,
            symbols_per_block: 16,
            good: keys.len() as u64,
            unused_keys: Vec::new(),
            without_receipt: Vec::new(),
            signed: Vec::new(),
        };
        let root = report.root_of(&[content.to_owned()], &faircast::Preserve::nothing()).expect("it is read");
        report.root = Some(root.iter().map(|byte| format!("{byte:02x}")).collect());
        let about = report.about().expect("it has a form");
        for seed in keys {
            let key = SigningKey::from_seed([*seed; 32]);
            let (id, host) = (ReceiverId::new(u64::from(*seed)).expect("not zero"), format!("host{seed}"));
            let receipt = Receipt::sign(&about, root, (id, Name::clipped(&host)), 1_750_000_000, &key);
            report.signed.push(ReceiptReport {
                receiver: id.to_string(),
                host,
                key: hex(&key.verify_key()),
                signed_at: receipt.unix_secs,
                signature: receipt.signature.iter().map(|byte| format!("{byte:02x}")).collect(),
                root: None,
                valid: true,
                known: None,
            });
        }
        report
    }

    /// Returns the JSON report of a session in which the signers of all receipts were complete.
    fn whole(receipts: &ReceiptsReport) -> serde_json::Value {
        let receivers: Vec<_> = receipts
            .signed
            .iter()
            .map(|one| serde_json::json!({"host": one.host, "outcome": "verified", "receipt": one}))
            .collect();
        serde_json::json!({
            "ok": true, "exit_code": 0, "error": null,
            "verified": receivers.len(), "incomplete": 0, "dropped": 0, "absent": 0,
            "receipts": receipts, "receivers": receivers,
        })
    }

    fn verified(args: &[&str]) -> (Result<(), Failure>, String) {
        let cli = Cli::parse_from([&["faircast", "receipt", "verify"], args].concat());
        let Command::Receipt(typed) = cli.command else { panic!("it is another command") };
        let ReceiptCommand::Verify(typed) = typed.command;
        let mut out = Vec::new();
        let outcome = verify(&typed, &mut out);
        (outcome, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn receipts_are_checked_and_faults_are_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        let text = |name: &str| path(name).to_str().expect("a plain name").to_owned();
        fs::write(path("image"), vec![7; 100_000]).expect("written");
        fs::write(path("other"), vec![8; 100_000]).expect("written");
        fs::create_dir(path("keys")).expect("made");
        for seed in [1, 2] {
            let line = SigningKey::from_seed([seed; 32]).verify_key().to_line();
            fs::write(path("keys").join(format!("host{seed}.pub")), line).expect("written");
        }
        fs::write(path("keys/.hidden"), "no key").expect("written");
        let write = |report: &ReceiptsReport| {
            fs::write(path("report.json"), whole(report).to_string()).expect("written")
        };
        let (report_at, keys_at, image, other) =
            (text("report.json"), text("keys"), text("image"), text("other"));
        let good = report(&path("image"), &[1, 2]);
        write(&good);
        let (outcome, printed) = verified(&[&report_at, &image, "--keys", &keys_at]);
        outcome.expect("all is as it should be");
        assert!(printed.contains("not signed: the report's addresses"), "{printed}");
        assert!(
            printed.contains("host1  2025-06-15 15:06:40 UTC") && printed.contains("2 keys signed"),
            "{printed}"
        );
        let fails = |args: &[&str], words: &str| {
            let (outcome, printed) = verified(args);
            let error = outcome.expect_err("something is wrong").to_string();
            assert!(error.contains(words), "{error}\n{printed}");
        };
        fails(&[&report_at, &other], "the content differs from the signed content");
        let mut changed = good.clone();
        changed.signed[0].signed_at += 1;
        write(&changed);
        fails(&[&report_at], "not valid, or signed by an unknown key: 1 of 2 receipts");
        let mut another = good.clone();
        another.salt = "03".repeat(16);
        write(&another);
        fails(&[&report_at], "not valid, or signed by an unknown key: 2 of 2 receipts");
        write(&report(&path("image"), &[1, 9]));
        fails(&[&report_at, "--keys", &keys_at], "1 key without a receipt");
        let line: serde_json::Value = serde_json::from_str(
            verified(&[&report_at, "--keys", &keys_at, "--json"]).1.lines().nth(1).expect("two"),
        )
        .expect("JSON");
        assert_eq!((&line["valid"], &line["known"]), (&true.into(), &false.into()), "{line}");
        let mut without = whole(&good);
        without["receipts"] = serde_json::Value::Null;
        fs::write(path("report.json"), without.to_string()).expect("written");
        fails(&[&report_at], "no receipts");
        fs::write(path("report.json"), "<xml/>").expect("written");
        fails(&[&report_at], "is not a report in JSON");
        fails(&[&report_at, "--keys", &text("none")], "none");
    }

    /// Changes one field of a report.
    type Edit = fn(&mut serde_json::Value);

    #[test]
    fn report_that_contradicts_its_receipts_fails_verification() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("report.json");
        let content = directory.path().join("image");
        fs::write(&content, vec![7; 10_000]).expect("written");
        let good = whole(&report(&content, &[1, 2]));
        let edits: [(&str, Edit); 14] = [
            ("receivers[].host", |all| all["receivers"][0]["host"] = "host9".into()),
            ("receivers[].outcome", |all| all["receivers"][0]["outcome"] = "incomplete".into()),
            ("hosts of receivers swapped", |all| {
                all["receivers"][0]["host"] = "host2".into();
                all["receivers"][1]["host"] = "host1".into();
            }),
            ("receipts of receivers swapped", |all| {
                let other = all["receivers"][1]["receipt"].take();
                all["receivers"][1]["receipt"] =
                    std::mem::replace(&mut all["receivers"][0]["receipt"], other);
            }),
            ("a receiver cut out", |all| _ = all["receivers"].as_array_mut().expect("a list").pop()),
            ("a receipt cut out", |all| _ = all["receipts"]["signed"].as_array_mut().expect("a list").pop()),
            ("a receipt twice", |all| all["receipts"]["signed"][1] = all["receipts"]["signed"][0].clone()),
            ("verified", |all| all["verified"] = 3.into()),
            ("incomplete", |all| all["incomplete"] = 1.into()),
            ("ok", |all| all["ok"] = false.into()),
            ("exit_code", |all| all["exit_code"] = 1.into()),
            ("good", |all| all["receipts"]["good"] = 7.into()),
            ("signed[].valid", |all| all["receipts"]["signed"][0]["valid"] = false.into()),
            ("unused_keys", |all| {
                let key = all["receipts"]["signed"][0]["key"].clone();
                all["receipts"]["unused_keys"] = vec![key].into();
            }),
        ];
        let at = path.to_str().expect("a plain name");
        let verified_with = |all: &serde_json::Value| {
            fs::write(&path, all.to_string()).expect("written");
            verified(&[at])
        };
        verified_with(&good).0.expect("nothing is changed");
        for (what, edit) in edits {
            let mut all = good.clone();
            edit(&mut all);
            assert!(verified_with(&all).0.is_err(), "{what}");
        }
        let mut unsigned = good.clone();
        unsigned["receivers"][0]["receipt"] = serde_json::Value::Null;
        let (outcome, printed) = verified_with(&unsigned);
        outcome.expect("a receiver may have no receipt");
        assert!(printed.contains("the outcome of 1 receiver without a receipt"), "{printed}");
    }

    #[test]
    fn control_characters_of_host_names_are_escaped_in_the_output() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, content) = (directory.path().join("report.json"), directory.path().join("image"));
        fs::write(&content, vec![7; 10_000]).expect("written");
        let mut all = whole(&report(&content, &[1]));
        let evil = "h1\u{1b}[2J\nall receipts verify\u{2028}";
        all["receivers"][0]["host"] = evil.into();
        all["receipts"]["signed"][0]["host"] = evil.into();
        fs::write(&path, all.to_string()).expect("written");
        let (outcome, printed) = verified(&[path.to_str().expect("a plain name")]);
        let error = outcome.expect_err("nobody has signed it").to_string();
        assert_eq!((printed.lines().count(), error.lines().count()), (1, 1), "{printed}{error}");
        assert!(printed.contains("h1\\u{1b}[2J\\u{a}all receipts verify\\u{2028}"), "{printed}");
    }
}
