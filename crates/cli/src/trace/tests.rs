//! `trace show` on traces that the tests write.

use super::*;
use crate::args::{Cli, Command, Trace, TraceCommand};
use crate::qlog;
use clap::Parser;
use serde_json::Value;
use tempfile::TempDir;

/// Events of one session, as a source writes them.
struct Written {
    bytes: Vec<u8>,
    place: TempDir,
}

const SLOW: &str = "000000000000000a";
const FAST: &str = "000000000000000b";

impl Written {
    fn new() -> Written {
        let bytes = qlog::header("faircast send 1", "server", "alpha", Some("2026-11-30T01:02:03Z"));
        Written { bytes, place: tempfile::tempdir().expect("a directory") }
    }

    fn event(&mut self, at: f64, message: &str, data: &[(&'static str, Value)]) {
        let own = [("role", Value::from("source")), ("at", at.into())];
        let data = [&own[..], data].concat();
        let event = qlog::Event { seconds: at + 0.01, message, session: "disk.img", data: &data };
        self.bytes.extend(event.record());
    }

    fn sample(&mut self, at: f64, mbps: f64, limited_by: &str, held_ms: f64) {
        let allowed = if limited_by == "application" { 9e6 } else { mbps * 1e6 };
        self.event(
            at,
            "rate sampled",
            &[
                ("rate_bps", (mbps * 1e6).into()),
                ("allowed_bps", allowed.into()),
                ("limited_by", limited_by.into()),
                ("window_of", if held_ms > 0.0 { FAST.into() } else { Value::Null }),
                ("held_ms", held_ms.into()),
                ("limiting", SLOW.into()),
                ("rtt_ms", 24.0.into()),
            ],
        );
    }

    fn cut(&mut self, at: f64, from: f64, to: f64) {
        self.event(
            at,
            "rate cut",
            &[
                ("rate_before_bps", (from * 1e6).into()),
                ("rate_bps", (to * 1e6).into()),
                ("reason", "loss".into()),
                ("receiver", SLOW.into()),
                ("rtt_ms", 24.0.into()),
            ],
        );
    }

    /// Writes the file, and returns what the command prints.
    fn show(&self, options: &str) -> Result<String, String> {
        let file = self.place.path().join("send.sqlog");
        std::fs::write(&file, &self.bytes).expect("there is room");
        let line = format!("faircast trace show {} {options}", file.display());
        let typed = Cli::try_parse_from(line.split_whitespace()).expect("it is a command line");
        let Command::Trace(Trace { command: TraceCommand::Show(typed) }) = typed.command else {
            panic!("{line} has another command")
        };
        let mut out = Vec::new();
        show(&typed, &mut out).map_err(|failure| failure.to_string())?;
        Ok(String::from_utf8(out).expect("text"))
    }
}

/// A session of eight seconds: congestion, then a window, then no data.
fn session() -> Written {
    let mut written = Written::new();
    for (id, host) in [(SLOW, "lab-07"), (FAST, "lab-08")] {
        let joined = [("receiver", id.into()), ("host", host.into()), ("address", "192.0.2.7:5777".into())];
        written.event(0.1, "member joined", &joined);
    }
    written.event(0.2, "session started", &[("scheme", "ormcc".into()), ("receivers", 2.into())]);
    for step in 3..80 {
        let at = f64::from(step) / 10.0;
        match step {
            0..40 => written.sample(at, 3.0 + at / 10.0, "congestion", 0.0),
            40..60 => written.sample(at, 2.0, "window", 50.0),
            _ => written.sample(at, 1.0, "application", 0.0),
        }
        if step == 20 || step == 35 {
            written.cut(at + 0.05, 4.2, 3.1);
            let state = [("way", "received".into()), ("receiver", SLOW.into()), ("loss", 0.012.into())];
            written.event(at + 0.06, "state", &state);
        }
    }
    written.event(8.0, "session ended", &[("receivers", 2.into()), ("verified", 2.into())]);
    written
}

#[test]
fn moment_is_explained_by_limit_cuts_and_losses() {
    let written = session();
    let congested = written.show("--at 3.8").expect("it is a trace");
    for sentence in [
        "At 3.8 s the source sent 3.4 Mbit/s, and 3.4 Mbit/s were allowed.",
        "The limit was congestion on the path to lab-07 (round trip 24.0 ms), since 0.3 s.",
        "The last cut was 0.25 s earlier, at 3.55 s, from 4.2 Mbit/s to 3.1 Mbit/s: loss, reported by lab-07, round trip 24.0 ms.",
        "In the 10 s before there were 2 cuts: 2 by lab-07 (loss).",
        "The receivers had last reported: lab-07 1.2 % loss",
    ] {
        assert!(congested.contains(sentence), "{sentence}\n{congested}");
    }
    let held = written.show("--at 5").expect("it is a trace");
    assert!(held.contains("The limit was the window of lab-08") && held.contains("since 3.9 s"), "{held}");
    let idle = written.show("--at 7 --session disk.img").expect("it is a trace");
    assert!(idle.contains("9.0 Mbit/s were allowed") && idle.contains("it has no more data"), "{idle}");
    let early = written.show("--at 100ms").expect("it is a trace");
    assert!(
        early.contains("no packets of the session had been sent") && early.contains("lab-07 joined"),
        "{early}"
    );
    let late = written.show("--at 1h").expect("it is a trace");
    assert!(late.contains("the session was over: its last event is at 8.0 s"), "{late}");
}

#[test]
fn course_lists_limits_and_cuts_and_plots_the_rate() {
    let shown = session().show("").expect("it is a trace");
    assert!(shown.starts_with("faircast send 1 on alpha, 2026-11-30T01:02:03Z: "), "{shown}");
    assert!(shown.contains("disk.img (source, ormcc): 0.1 s to 8.0 s, 2 receivers, 2 verified"), "{shown}");
    for line in [
        "3.7 s (48.1 %) at 3.2 Mbit/s on average, 2 cuts: congestion on the path to lab-07",
        "2.0 s (26.0 %) at 2.0 Mbit/s on average, 0 cuts: the window of lab-08",
        "2 rate cuts:",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let row = |name: &str| shown.lines().find(|line| line.trim_start().starts_with(name)).expect("a row");
    assert_eq!(row("cuts").matches('▽').count(), 2, "{shown}");
    let limits = row("limit ").split_whitespace().last().expect("letters");
    assert!(limits.starts_with("ccc") && limits.contains("cww") && limits.ends_with("aaa"), "{shown}");
}

#[test]
fn sessions_of_one_name_are_shown_one_by_one() {
    let mut written = session();
    written.event(0.1, "session started", &[("scheme", "tfmcc".into())]);
    (2..9).for_each(|step| written.sample(f64::from(step) / 10.0, 1.0, "max", 0.0));
    let shown = written.show("").expect("it is a trace");
    let title = |text: &str| shown.lines().filter(|line| line.starts_with(text)).count();
    assert_eq!((title("disk.img (source, ormcc)"), title("disk.img#2 (source, tfmcc)")), (1, 1), "{shown}");
    let second = written.show("--session disk.img#2 --at 0.5").expect("it is a trace");
    assert!(second.contains("the configured maximum rate, since 0.2 s"), "{second}");
    assert!(written.show("--out rate.html").expect_err("there are two").contains("name one with --session"));
}

#[test]
fn damaged_traces_show_the_rest_and_other_files_are_refused() {
    let mut written = session();
    let whole = written.show("").expect("it is a trace");
    assert!(!whole.contains("maximum size"), "{whole}");
    let ended = qlog::Event { seconds: 9.0, message: "trace ended", session: "", data: &[] };
    written.bytes.extend(ended.record());
    let full = written.show("").expect("it is a trace");
    assert!(full.contains("warning: the trace ended at its maximum size"), "{full}");
    written.bytes.truncate(written.bytes.len() - 3);
    let cut = written.show("").expect("it is a trace");
    assert!(cut.contains("warning: 1 record could not be read: the record at byte "), "{cut}");
    assert!(cut.contains("2 rate cuts:") && whole.lines().count() > 20, "{cut}");
    let nothing = Written::new().show("").expect_err("there are no sessions");
    assert!(nothing.contains("has no sessions"), "{nothing}");
    let other = session().show("--session other").expect_err("there is no such session");
    assert!(other.contains("it has: disk.img"), "{other}");
    written.bytes = b"{\"no\":\"trace\"}".to_vec();
    let refused = written.show("").expect_err("it is no trace");
    assert!(refused.contains("is not a trace") && refused.contains("--trace FILE"), "{refused}");
}

#[test]
fn plots_are_written_as_pages_and_figures() {
    let mut written = session();
    let gone = [("receiver", FAST.into()), ("host", "lab-08".into()), ("reason", "its disk is full".into())];
    written.event(7.9, "member left", &gone);
    let place = written.place.path().join("rate");
    for (suffix, begin) in [("html", "<!doctype html>"), ("svg", "<svg"), ("pdf", "%PDF")] {
        let file = place.with_extension(suffix);
        let is_there = match suffix {
            "html" => cfg!(feature = "page"),
            _ => cfg!(feature = "simulator"),
        };
        let shown = written.show(&format!("--out {}", file.display()));
        assert_eq!(shown.is_ok(), is_there, "{shown:?}");
        if is_there {
            let bytes = std::fs::read(&file).expect("it was written");
            let text = String::from_utf8_lossy(&bytes);
            assert!(text.to_lowercase().starts_with(&begin.to_lowercase()), "{suffix}");
            let named = ["\"host\":\"lab-07\"", "\"state\":\"failed\"", "\"reason\":\"its disk is full\""];
            let is_named = |words: &&str| suffix != "html" || text.contains(*words);
            assert_eq!(named.iter().find(|words| !is_named(words)), None, "the page names the receivers");
        }
    }
    let refused = written.show("--out rate.png").expect_err("this form is unknown");
    assert!(refused.contains("ends in .html, .svg or .pdf"), "{refused}");
}
