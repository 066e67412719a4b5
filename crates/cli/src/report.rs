//! `--report`: the outcome of every receiver, in a file for scripts and continuous integration.

use crate::course::Course;
use crate::failure::{Failure, Usage, number, number_of_session};
use crate::json::Line;
use crate::page::Record;
use crate::safe;
use crate::shortfall::sent_failure;
use crate::system;
use crate::wording;
use faircast::error::StartError;
use faircast::event::{ReceiverOutcome, ReceiverReport};
use faircast::receipts::ReceiptsReport;
use faircast::{Error, Event, Rate, RequiredHost, SendReport};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Format of a report.
#[derive(Debug)]
enum Format {
    /// JSON, with the course of the session.
    Json(Course),
    JUnit,
    /// A page for browsers, with the record of the session.
    Page(Record),
}

impl Format {
    /// Returns the format of a file by the suffix of its name.
    fn of(path: &Path, course: Course) -> io::Result<Format> {
        let suffix = path.extension().unwrap_or_default();
        if suffix.eq_ignore_ascii_case("xml") {
            return Ok(Format::JUnit);
        }
        if suffix.eq_ignore_ascii_case("html") || suffix.eq_ignore_ascii_case("htm") {
            let without = || {
                io::Error::new(io::ErrorKind::Unsupported, "this build writes no pages; use .json or .xml")
            };
            return Record::new("send").map(Format::Page).ok_or_else(without);
        }
        Ok(Format::Json(course))
    }
}

/// Time limit for the reader of a pipe.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// A report that will be written. The file is empty until then, so that no reader mistakes an older report for this one.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
    place: Place,
    format: Format,
}

/// Destination of a report.
#[derive(Debug)]
enum Place {
    File(File),
    /// A named pipe. It is opened only when the report is written, because the open blocks until a program reads the pipe.
    Pipe,
}

impl Place {
    fn create(path: &Path) -> io::Result<Place> {
        match path.metadata() {
            Ok(at) if at.file_type().is_fifo() => {
                rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?;
                Ok(Place::Pipe)
            }
            _ => File::create(path).map(Place::File),
        }
    }

    fn write(self, path: &Path, text: String) -> io::Result<()> {
        let Place::File(mut file) = self else { return write_to_pipe(path.to_owned(), text) };
        file.write_all(text.as_bytes()).and_then(|()| file.flush())
    }
}

/// Writes in a separate thread, because the open and the writes block until a program reads the pipe.
fn write_to_pipe(path: PathBuf, text: String) -> io::Result<()> {
    let (done, outcome) = mpsc::channel();
    thread::Builder::new().name("report".to_owned()).spawn(move || {
        let pipe = File::options().write(true).open(path);
        // The send fails if `READ_WITHIN` has passed.
        let _ = done.send(pipe.and_then(|mut pipe| pipe.write_all(text.as_bytes())));
    })?;
    outcome.recv_timeout(READ_WITHIN).unwrap_or_else(|_| {
        let why = format!("no program has read this pipe within {} s", READ_WITHIN.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    })
}

/// The JSON report.
#[derive(Debug, Serialize)]
struct Report<'a> {
    /// Whether all receivers are complete.
    ok: bool,
    /// Exit code of the command.
    exit_code: u8,
    /// Error that explains the exit code; `None` if the exit code is 0.
    error: Option<String>,
    /// Size of the content, in bytes.
    bytes: u64,
    /// Bytes of the content that this session has transferred.
    moved_bytes: u64,
    /// Duration from the first data packet to the end.
    #[serde(rename = "seconds", with = "faircast::json::seconds")]
    duration: Duration,
    /// `moved_bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "faircast::json::bps")]
    goodput: Rate,
    /// Numbers of receivers by outcome.
    verified: usize,
    incomplete: usize,
    dropped: usize,
    refused: usize,
    absent: usize,
    /// Number of datagrams sent, and the size of one with a symbol.
    packets: u64,
    packet_bytes: u64,
    /// Number of symbols sent, divided by the number of symbols of the content.
    repair_ratio: f64,
    /// Maximum number of layers.
    layers: u8,
    /// Number of rate cuts.
    cuts: u64,
    /// Course of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    course: Option<Course>,
    /// Receipts of the receivers.
    receipts: Option<&'a ReceiptsReport>,
    /// Outcome of each receiver.
    receivers: &'a [ReceiverReport],
}

impl ReportFile {
    /// Creates the file before the session, so that a path that cannot be written is reported at once. The suffix of the file
    /// name selects the format.
    ///
    /// # Errors
    /// [`Usage`] when the file cannot be created.
    pub fn create(path: &Path, course: Course) -> Result<ReportFile, Usage> {
        let created = Format::of(path, course).and_then(|format| Ok((format, Place::create(path)?)));
        match created {
            Ok((format, place)) => Ok(ReportFile { path: path.to_owned(), place, format }),
            Err(source) => Err(Usage::Report { path: path.to_owned(), source }),
        }
    }

    /// Returns whether the report shows the states of receivers.
    pub const fn shows_receivers(&self) -> bool {
        matches!(self.format, Format::Page(_))
    }

    /// Stores an event of the session, if the report shows its course.
    pub fn note(&mut self, event: &Event) {
        match &mut self.format {
            Format::Json(course) => course.note(event),
            Format::Page(record) => record.note(event),
            Format::JUnit => {}
        }
    }

    /// Writes the report of a session that has ended.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(
        self,
        outcome: &Result<SendReport, Error>,
        required: &[RequiredHost],
    ) -> Result<(), Failure> {
        let text = text(self.format, outcome, required);
        let what = format!("write the report {}", self.path.display());
        self.place.write(&self.path, text).map_err(Failure::system(what))
    }
}

fn text(format: Format, outcome: &Result<SendReport, Error>, required: &[RequiredHost]) -> String {
    let nobody: Vec<ReceiverReport>;
    let (sent, receivers, error, exit_code) = match outcome {
        Ok(report) => {
            let failure = sent_failure(report);
            let error = failure.as_ref().map(ToString::to_string);
            (report.clone(), &report.each, error, failure.as_ref().map_or(0, number))
        }
        Err(error) => {
            nobody = match error {
                Error::Start(StartError::NoReceiver { each, .. }) => each.clone(),
                _ => required.iter().map(|one| ReceiverReport::unknown(one.to_string())).collect(),
            };
            (SendReport::default(), &nobody, Some(wording::error(error)), number_of_session(error))
        }
    };
    let count = |outcome| receivers.iter().filter(|one| one.outcome == outcome).count();
    let mut report = Report {
        ok: error.is_none(),
        exit_code,
        error,
        bytes: sent.bytes,
        moved_bytes: sent.moved_bytes,
        duration: sent.duration,
        goodput: sent.goodput,
        verified: count(ReceiverOutcome::Verified),
        incomplete: count(ReceiverOutcome::Incomplete),
        dropped: count(ReceiverOutcome::Dropped),
        refused: count(ReceiverOutcome::Refused),
        absent: count(ReceiverOutcome::Absent),
        packets: sent.packets,
        packet_bytes: sent.packet_bytes,
        repair_ratio: sent.repair_ratio,
        layers: sent.layers,
        cuts: sent.cuts,
        course: None,
        receipts: sent.receipts.as_ref(),
        receivers,
    };
    match format {
        Format::Json(course) => {
            report.course = Some(course);
            json(&report)
        }
        Format::JUnit => junit(&report),
        Format::Page(mut record) => page(&mut record, outcome, &report),
    }
}

fn json(report: &Report<'_>) -> String {
    let text = serde_json::to_string_pretty(report).expect("numbers and texts are JSON");
    format!("{}\n", safe::json(&text))
}

/// Returns the report as a page for browsers.
fn page(record: &mut Record, outcome: &Result<SendReport, Error>, report: &Report<'_>) -> String {
    match outcome {
        Ok(sent) => {
            if let Some(failure) = sent_failure(sent) {
                record.end(&Line::failure(&failure));
            }
            record.end(&Line::done(sent, system::cpu_seconds()));
        }
        Err(_) => {
            record.end(&serde_json::json!({ "event": "error", "message": report.error }));
            record.end(&Line::failed());
        }
    }
    record.page(report)
}

/// Returns the report as JUnit XML. It has a test case for each receiver. If the session failed for another reason, it also has a
/// test case for the session.
fn junit(report: &Report<'_>) -> String {
    let failed = report.receivers.iter().filter(|one| one.outcome != ReceiverOutcome::Verified).count();
    let of_session = report.error.as_ref().filter(|_| failed == 0);
    let tests = report.receivers.len() + usize::from(of_session.is_some());
    let counts = format!(
        "tests=\"{tests}\" failures=\"{failed}\" errors=\"{}\" time=\"{:.3}\"",
        u8::from(of_session.is_some()),
        report.duration.as_secs_f64()
    );
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut line = |text: String| {
        xml.push_str(&text);
        xml.push('\n');
    };
    line(format!("<testsuites {counts}>"));
    line(format!("  <testsuite name=\"faircast send\" {counts}>"));
    for one in report.receivers {
        line(format!(
            "    <testcase classname=\"faircast.receiver\" name=\"{}\" time=\"{:.3}\">",
            escaped(&one.host),
            one.duration.as_secs_f64()
        ));
        if one.outcome != ReceiverOutcome::Verified {
            let reason = escaped(one.reason.as_deref().unwrap_or("no reason given"));
            line(format!("      <failure type=\"{}\" message=\"{reason}\"/>", outcome(one.outcome)));
        }
        line(format!("      <system-out>{}</system-out>", escaped(&numbers(one))));
        line("    </testcase>".to_owned());
    }
    if let Some(error) = of_session {
        line("    <testcase classname=\"faircast.session\" name=\"session\" time=\"0.000\">".to_owned());
        line(format!("      <error message=\"{}\"/>", escaped(error)));
        line("    </testcase>".to_owned());
    }
    line("  </testsuite>".to_owned());
    line("</testsuites>".to_owned());
    xml
}

const fn outcome(outcome: ReceiverOutcome) -> &'static str {
    match outcome {
        ReceiverOutcome::Verified => "verified",
        ReceiverOutcome::Incomplete => "incomplete",
        ReceiverOutcome::Dropped => "dropped",
        ReceiverOutcome::Refused => "refused",
        ReceiverOutcome::Absent => "absent",
    }
}

/// Returns measurements for which JUnit has no field.
fn numbers(one: &ReceiverReport) -> String {
    let address = one.address.map_or_else(String::new, |address| format!("address {address}, "));
    let receipt = one.receipt.as_ref().map_or_else(String::new, |receipt| {
        let valid = if receipt.valid { "receipt" } else { "receipt that is not valid" };
        format!(
            ", {valid} by key {} at {} with signature {}",
            receipt.key, receipt.signed_at, receipt.signature
        )
    });
    format!(
        "{address}{} bytes verified, {} of them before this session, {:.0} bit/s, loss {:.4}, {} symbols repaired{receipt}",
        one.verified_bytes,
        one.resumed_bytes,
        one.rate.bps(),
        one.loss,
        one.repair_symbols
    )
}

/// Escapes text for XML. Texts may contain any characters, because each host chooses its name.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in safe::text(text).chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' | '\t' => _ = write!(xml, "&#{};", u32::from(c)),
            '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'), // not allowed in XML
            c => xml.push(c),
        }
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast::error::SystemError;
    use serde_json::Value;

    fn receiver(host: &str, outcome: ReceiverOutcome, reason: Option<&str>) -> ReceiverReport {
        ReceiverReport {
            address: Some("192.0.2.7:4000".parse().expect("a literal")),
            outcome,
            verified_bytes: 900,
            resumed_bytes: 100,
            duration: Duration::from_secs(2),
            rate: Rate::from_bps(3_200.0),
            repair_symbols: 3,
            reason: reason.map(str::to_owned),
            ..ReceiverReport::absent(host.to_owned())
        }
    }

    fn course() -> Course {
        Course::new(&"ormcc,beta=0.8".parse().expect("a scheme"), Some(Rate::from_bps(1e6)))
    }

    fn dropped() -> SendReport {
        SendReport {
            receivers: 2,
            verified: 1,
            bytes: 900,
            moved_bytes: 800,
            duration: Duration::from_secs(2),
            dropped: vec!["lab-02".into()],
            each: vec![
                receiver("lab-01", ReceiverOutcome::Verified, None),
                receiver("lab-02", ReceiverOutcome::Dropped, Some("dropped: too slow")),
            ],
            ..SendReport::default()
        }
    }

    #[test]
    fn json_report_has_the_exit_code_and_every_receiver() {
        let read: Value =
            serde_json::from_str(&text(Format::Json(course()), &Ok(dropped()), &[])).expect("JSON");
        assert_eq!((&read["ok"], &read["exit_code"]), (&Value::from(false), &Value::from(4)), "{read}");
        assert_eq!((&read["verified"], &read["dropped"]), (&Value::from(1), &Value::from(1)));
        crate::schema::Schema::read().check_as("report", &read).expect("as the schema says");
        assert_eq!(read["receivers"][0]["outcome"], "verified");
        assert_eq!(read["receivers"][1]["reason"], "dropped: too slow");
        assert!(
            read["error"].as_str().is_some_and(|error| error.contains("left out as too slow: lab-02")),
            "{read}"
        );
    }

    #[test]
    fn session_without_receivers_reports_required_hosts_as_absent() {
        let group = "239.255.70.1:5777".parse().expect("a group");
        let each = || vec![ReceiverReport::absent("lab-01".to_owned())];
        let error = || {
            Err(Error::Start(StartError::NoReceiver {
                group,
                waited: Duration::from_secs(1),
                ttl: 1,
                port: 5777,
                each: each(),
            }))
        };
        let required = [RequiredHost::new("lab-01")];
        let read: Value =
            serde_json::from_str(&text(Format::Json(course()), &error(), &required)).expect("JSON");
        assert_eq!((&read["exit_code"], &read["absent"]), (&Value::from(1), &Value::from(1)), "{read}");
        let xml = text(Format::JUnit, &Err(Error::System(SystemError::Panicked)), &[]);
        assert!(
            xml.contains("tests=\"1\" failures=\"0\" errors=\"1\"") && xml.contains("<error message="),
            "{xml}"
        );
    }

    #[test]
    fn junit_report_has_a_case_per_receiver_and_escapes_text() {
        let mut report = dropped();
        report.each.push(receiver("<b>&\"\u{1b}", ReceiverOutcome::Incomplete, Some("a\nb")));
        let xml = text(Format::JUnit, &Ok(report), &[]);
        assert!(xml.contains("tests=\"3\" failures=\"2\" errors=\"0\" time=\"2.000\""), "{xml}");
        assert!(xml.contains("<failure type=\"dropped\" message=\"dropped: too slow\"/>"), "{xml}");
        assert!(xml.contains("name=\"&lt;b&gt;&amp;&quot;\\u{1b}\""), "{xml}");
        assert!(xml.contains("message=\"a&#10;b\""), "{xml}");
        assert_eq!(xml.matches("<testcase").count(), xml.matches("</testcase>").count());
    }

    #[test]
    fn report_to_an_unread_pipe_fails_after_a_limited_wait() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let directory = tempfile::tempdir().expect("a temporary directory");
        let pipe = |name: &str| {
            let path = directory.path().join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("the directory is ours");
            path
        };
        let report = ReportFile::create(&pipe("unread.json"), course()).expect("it waits for no reader");
        let error = report.write(&Ok(dropped()), &[]).expect_err("no reader");
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(cause.contains("no program has read"), "{error}: {cause}");
        let path = pipe("read.json");
        let report = ReportFile::create(&path, course()).expect("it waits for no reader");
        let reader = thread::spawn(move || std::fs::read_to_string(path));
        report.write(&Ok(dropped()), &[]).expect("it is read");
        let printed = reader.join().expect("it reads").expect("it is a pipe");
        assert!(printed.contains("\"exit_code\": 4"), "{printed}");
    }

    #[test]
    #[cfg(feature = "page")]
    fn report_as_a_page_has_the_outcome_and_the_error() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.HTML");
        let mut report = ReportFile::create(&path, course()).expect("the directory is ours");
        assert!(report.shows_receivers());
        report.note(&Event::warning("a note".to_owned()));
        report.write(&Ok(dropped()), &[]).expect("the directory is ours");
        let page = std::fs::read_to_string(path).expect("it is written");
        let state = page.split("id=\"state\">").nth(1).and_then(|rest| rest.split("</script>").next());
        let state: Value = serde_json::from_str(state.expect("the state")).expect("JSON");
        assert_eq!(state["report"]["receivers"][1]["reason"], "dropped: too slow");
        let session = &state["sessions"][0];
        assert_eq!(
            (&session["end"]["ok"], &session["notes"][0]["message"]),
            (&false.into(), &"a note".into())
        );
        assert!(
            session["error"]["message"].as_str().is_some_and(|text| text.contains("lab-02")),
            "{session}"
        );
    }

    #[test]
    fn unwritable_report_path_is_named_at_the_start() {
        let error =
            ReportFile::create(Path::new("no/such/place/report.json"), course()).expect_err("no directory");
        assert!(error.to_string().contains("no/such/place/report.json"), "{error}");
    }
}
