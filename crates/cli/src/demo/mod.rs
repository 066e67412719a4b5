//! `faircast demo`: two simulations (in a build with the simulator), then a real, sealed transfer from one process to four other
//! processes on this host. This process verifies the received files.

mod children;
mod content;
mod listener;
#[cfg(feature = "simulator")]
mod simulated;
mod standstill;
mod table;
#[cfg(test)]
mod tests;

use crate::args::Demo;
use crate::doctor;
use crate::failure::{Failure, unwritten};
use crate::printer::Role;
use crate::session::Screen;
use crate::{json, key, printer, system, units};
use children::{OutputItem, Process, Word};
use content::Hashes;
use faircast::Rate;
use faircast::event::Progress;
use indicatif::ProgressDrawTarget;
use listener::{CaptureCounts, Listener};
use serde::Serialize;
use serde_json::Value;
#[cfg(feature = "simulator")]
use simulated::Simulated;
use standstill::Standstill;
use std::ffi::OsString;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Number of receivers.
const RECEIVERS: usize = 4;
/// Index of the receiver that is suspended for some time.
const STILL: usize = 3;
/// Share of the content after which the receiver is suspended.
const STILL_AFTER: f64 = 1.0 / 16.0;
/// Interval at which the suspended receiver is checked.
const TURN: Duration = Duration::from_millis(5);
/// Time limit for the transfer of content of up to 64 MB.
const TIME_LIMIT: Duration = Duration::from_secs(45);
/// Time for the receivers to end after the source has failed.
const GRACE: Duration = Duration::from_secs(1);
/// Assumed minimum rate of a transfer, in bytes per second. Each further second that content above 64 MB takes at this rate is
/// added to the time limit.
const MIN_RATE: u64 = 4_000_000;

/// Arguments with resolved defaults.
#[derive(Debug)]
pub struct Resolved {
    program: PathBuf,
    bytes: u64,
    json: bool,
    #[cfg(feature = "simulator")]
    page: PathBuf,
}

/// Result of the demonstration.
#[derive(Debug, Serialize)]
pub struct DemoOutcome {
    ok: bool,
    #[cfg(feature = "simulator")]
    simulated: Vec<Simulated>,
    files: u64,
    source: SourceOutcome,
    receivers: Vec<ReceiverOutcome>,
    seen: CaptureCounts,
}

/// Final report of the source.
#[derive(Debug, Default, Serialize)]
struct SourceOutcome {
    ok: bool,
    bytes: u64,
    seconds: f64,
    goodput_bps: f64,
    repair_ratio: f64,
    cpu_seconds: Option<f64>,
    error: Option<String>,
}

/// Final report of a receiver, and whether its files are equal to the files of the source.
#[derive(Debug, Default, Serialize)]
struct ReceiverOutcome {
    host: String,
    ok: bool,
    equal: bool,
    seconds: f64,
    goodput_bps: f64,
    loss: f64,
    repaired_blocks: u64,
    dropped_local: u64,
    stopped_seconds: Option<f64>,
    cpu_seconds: Option<f64>,
    error: Option<String>,
}

/// The outcome as JSON.
#[derive(Serialize)]
struct Done<'a> {
    event: &'static str,
    #[serde(flatten)]
    outcome: &'a DemoOutcome,
}

/// Output of one process until now.
#[derive(Debug, Default)]
struct ProcessOutput {
    done: Option<Value>,
    error: Option<String>,
    ended: bool,
    /// Time for which the process was suspended.
    stopped: Option<Duration>,
}

impl ProcessOutput {
    fn is_ok(&self) -> bool {
        self.done.as_ref().is_some_and(|done| done["ok"] == true)
    }
}

impl Demo {
    /// Returns the size of the content, and the program that sends it.
    ///
    /// # Errors
    /// When the path of this program is unknown.
    pub fn resolve(self) -> Result<Resolved, Failure> {
        let program = std::env::current_exe().map_err(Failure::system("find this program's own file"))?;
        Ok(Resolved {
            program,
            bytes: self.size * 1_000_000,
            json: self.json,
            #[cfg(feature = "simulator")]
            page: self.page,
        })
    }
}

/// Runs the demonstration, and writes its result.
///
/// # Errors
/// [`Failure::Check`] when any result is wrong.
pub fn run(resolved: &Resolved, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let like = IpAddr::from([239, 255, 1, 1]);
    doctor::require_loopback(like)?;
    #[cfg(feature = "simulator")]
    let simulated = {
        eprintln!("simulating 8 and then 10,000 receivers with a competing TCP flow");
        simulated::simulate(stop)?
    };
    let group = system::random_group(like);
    let place = tempfile::Builder::new()
        .prefix("faircast-demo-")
        .tempdir()
        .map_err(Failure::system("make a temporary directory"))?;
    eprintln!("making {} of random bytes and a small tree, and a key", units::bytes(resolved.bytes));
    let marker = format!("marker {:016x}", system::random());
    let sent = place.path().join("source");
    let made = || -> std::io::Result<(Vec<PathBuf>, Hashes)> {
        std::fs::create_dir(&sent)?;
        let paths = content::make(&sent, resolved.bytes, system::random(), &marker)?;
        Ok((paths, content::hashes(&sent)?))
    };
    let (paths, hashes) = made().map_err(Failure::system(
        "write the content into the temporary directory (TMPDIR chooses another)",
    ))?;
    let key = place.path().join("demo.key");
    key::run(key::Resolved::group(key::Place::New(key.clone())), &mut std::io::sink(), &mut std::io::sink())?;

    let lo = faircast_net::choose(like, Some("lo"))?;
    let listener = Listener::start(group, &lo, marker)?;
    eprintln!(
        "sending the content to {RECEIVERS} receivers on this host, in group {group}; {} is suspended for {} during the transfer",
        receiver_name(STILL),
        units::seconds(standstill::LASTS.as_secs_f64())
    );
    let stage = Stage { place: place.path(), key: &key, group, paths: &paths, listener: &listener };
    let reported = transfer(resolved, &stage, stop)?;
    let seen = listener.finish();

    eprintln!("comparing the content at every receiver with the content at the source");
    let outcome = judge(&reported, &hashes, place.path(), seen);
    #[cfg(feature = "simulator")]
    let outcome = DemoOutcome { simulated, ..outcome };
    #[cfg(feature = "simulator")]
    write_page(&outcome, &resolved.page);
    if resolved.json {
        json::write(out, &Done { event: "done", outcome: &outcome }).map_err(unwritten)?;
    } else {
        table::write(&outcome, out).map_err(unwritten)?;
    }
    match outcome.ok {
        true => Ok(()),
        false if stop.load(Ordering::Relaxed) => {
            Err(faircast::Error::Transfer(faircast::error::TransferError::Stopped).into())
        }
        false => Err(Failure::Check(
            "the demonstration failed; run `faircast doctor` and follow its advice".into(),
        )),
    }
}

#[cfg(feature = "simulator")]
/// Writes the page. An error causes only a warning.
fn write_page(outcome: &DemoOutcome, path: &Path) {
    let mut transfer = Vec::new();
    let text =
        table::transfer(outcome, &mut transfer).map(|()| String::from_utf8_lossy(&transfer).into_owned());
    let page = simulated::page(&outcome.simulated, &text.unwrap_or_default());
    match std::fs::write(path, page) {
        Ok(()) => eprintln!("wrote {}: these results with figures, for a browser", path.display()),
        Err(error) => eprintln!("{}", printer::warning(&format!("cannot write {}: {error}", path.display()))),
    }
}

/// Directory, key, group, content and listener of the transfer.
struct Stage<'a> {
    place: &'a Path,
    key: &'a Path,
    group: SocketAddr,
    paths: &'a [PathBuf],
    listener: &'a Listener,
}

impl Stage<'_> {
    fn common(&self, verb: &str, host: &str) -> Vec<OsString> {
        let mut words = os([verb, "--json", "--iface", "lo", "--host", host, "--group"]);
        words.push(self.group.to_string().into());
        words.extend(["--key".into(), self.key.into()]);
        words
    }

    fn receiver(&self, number: usize) -> Vec<OsString> {
        let mut words = self.common("recv", &receiver_name(number));
        words.extend(os(["--join-timeout", "30", "--timeout", "15", "--out"]));
        words.push(receiver_directory(self.place, number).into());
        words
    }

    fn source(&self) -> Vec<OsString> {
        let mut words = self.common("send", "source");
        words.extend(os(["--join-timeout", "20", "--expect"]));
        words.push(RECEIVERS.to_string().into());
        words.extend(self.paths.iter().map(OsString::from));
        words
    }
}

fn os<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).into()
}

fn receiver_name(number: usize) -> String {
    format!("receiver-{}", number + 1)
}

fn receiver_directory(place: &Path, number: usize) -> PathBuf {
    place.join(receiver_name(number))
}

/// Starts the processes and reads their output until all processes have ended or the time limit is reached. The source is the
/// last process.
fn transfer(
    resolved: &Resolved,
    stage: &Stage<'_>,
    stop: &AtomicBool,
) -> Result<Vec<ProcessOutput>, Failure> {
    let (sender, words) = mpsc::channel();
    let mut processes = Vec::new();
    for number in 0..=RECEIVERS {
        let arguments = if number < RECEIVERS { stage.receiver(number) } else { stage.source() };
        let process = Process::start(&resolved.program, &arguments, number, sender.clone())
            .map_err(Failure::system("start a process of this program"))?;
        processes.push(process);
    }
    drop(sender);
    let limit = TIME_LIMIT + Duration::from_secs(resolved.bytes.saturating_sub(64_000_000) / MIN_RATE);
    let block = printer::block(ProgressDrawTarget::stderr());
    let mut show = |progress: &Progress| match Screen::of_stderr() {
        Screen::Terminal => block.set_message(printer::progress_block(Role::Source, progress)),
        Screen::Plain => eprintln!("{}", printer::progress_line(Role::Source, progress)),
    };
    let after = resolved.bytes as f64 * STILL_AFTER;
    let mut standstill = Standstill::After(after as u64, &processes[STILL]);
    let mut turn = || standstill.follow(stage.listener.bytes(), Instant::now());
    let mut reported = listen(&words, Instant::now() + limit, &mut show, &mut turn, stop);
    reported[STILL].stopped = standstill.lasted();
    block.finish_and_clear();
    Ok(reported) // dropping the processes kills running ones
}

fn listen(
    words: &Receiver<Word>,
    mut end: Instant,
    show: &mut dyn FnMut(&Progress),
    turn: &mut dyn FnMut(),
    stop: &AtomicBool,
) -> Vec<ProcessOutput> {
    let mut reported: Vec<ProcessOutput> = (0..=RECEIVERS).map(|_| ProcessOutput::default()).collect();
    while !reported.iter().all(|reported| reported.ended)
        && Instant::now() < end
        && !stop.load(Ordering::Relaxed)
    {
        turn();
        match words.recv_timeout(TURN) {
            Ok(word) => receive(word, &mut reported, show),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let source = &reported[RECEIVERS];
        if source.ended && !source.is_ok() {
            end = end.min(Instant::now() + GRACE); // the source has failed
        }
    }
    reported
}

fn receive(word: Word, reported: &mut [ProcessOutput], show: &mut dyn FnMut(&Progress)) {
    let from_source = word.from == RECEIVERS;
    let reported = &mut reported[word.from];
    match word.item {
        OutputItem::End(errors) => {
            reported.ended = true;
            if reported.done.is_none() && reported.error.is_none() {
                reported.error = errors.lines().find(|line| !line.is_empty()).map(str::to_owned);
            }
        }
        OutputItem::Line(line) => match line["event"].as_str() {
            Some("progress") if from_source => show(&progress(&line)),
            Some("error") => reported.error = line["message"].as_str().map(str::to_owned),
            Some("done") => reported.done = Some(line),
            _ => {}
        },
    }
}

fn progress(line: &Value) -> Progress {
    let number = |name: &str| line[name].as_f64().unwrap_or(0.0);
    let count = |name: &str| line[name].as_u64().unwrap_or(0);
    Progress {
        elapsed: Duration::try_from_secs_f64(number("seconds")).unwrap_or_default(),
        bytes: count("bytes"),
        moved_bytes: count("moved_bytes"),
        total_bytes: line["total_bytes"].as_u64(),
        rate: Rate::from_bps(number("rate_bps")),
        allowed: line["allowed_bps"].as_f64().map(Rate::from_bps),
        rtt: line["rtt_ms"].as_f64().and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok()),
        loss: number("loss"),
        representative: line["representative"].as_str().map(str::to_owned),
        receivers: count("receivers"),
        verified: count("verified"),
        ..Progress::default()
    }
}

/// Combines the reports of the processes with the received files and the listener's counts.
fn judge(reported: &[ProcessOutput], hashes: &Hashes, place: &Path, seen: CaptureCounts) -> DemoOutcome {
    let (source, receivers) = reported.split_last().expect("the source is one of them");
    let source = source_outcome(source);
    let receivers: Vec<ReceiverOutcome> = receivers
        .iter()
        .enumerate()
        .map(|(number, reported)| {
            let arrived = content::hashes(&receiver_directory(place, number));
            receiver_outcome(number, reported, arrived.is_ok_and(|arrived| arrived == *hashes))
        })
        .collect();
    let ok = source.ok && receivers.iter().all(|receiver| receiver.ok && receiver.equal) && seen.is_closed();
    DemoOutcome {
        ok,
        #[cfg(feature = "simulator")]
        simulated: Vec::new(),
        files: hashes.len() as u64,
        source,
        receivers,
        seen,
    }
}

fn source_outcome(reported: &ProcessOutput) -> SourceOutcome {
    let Some(done) = &reported.done else {
        return SourceOutcome { error: Some(unfinished(reported)), ..SourceOutcome::default() };
    };
    SourceOutcome {
        ok: done["ok"] == true,
        bytes: done["bytes"].as_u64().unwrap_or(0),
        seconds: done["seconds"].as_f64().unwrap_or(0.0),
        goodput_bps: done["goodput_bps"].as_f64().unwrap_or(0.0),
        repair_ratio: done["repair_ratio"].as_f64().unwrap_or(0.0),
        cpu_seconds: done["cpu_seconds"].as_f64(),
        error: reported.error.clone(),
    }
}

fn receiver_outcome(number: usize, reported: &ProcessOutput, equal: bool) -> ReceiverOutcome {
    let host = receiver_name(number);
    let stopped_seconds = reported.stopped.map(|stopped| stopped.as_secs_f64());
    let Some(done) = &reported.done else {
        return ReceiverOutcome {
            host,
            equal,
            stopped_seconds,
            error: Some(unfinished(reported)),
            ..ReceiverOutcome::default()
        };
    };
    let (packets, lost) = (done["packets"].as_f64().unwrap_or(0.0), done["lost"].as_f64().unwrap_or(0.0));
    ReceiverOutcome {
        host,
        ok: done["ok"] == true,
        equal,
        seconds: done["seconds"].as_f64().unwrap_or(0.0),
        goodput_bps: done["goodput_bps"].as_f64().unwrap_or(0.0),
        loss: if packets + lost > 0.0 { lost / (packets + lost) } else { 0.0 },
        repaired_blocks: done["repaired_blocks"].as_u64().unwrap_or(0),
        dropped_local: done["dropped_local"].as_u64().unwrap_or(0),
        stopped_seconds,
        cpu_seconds: done["cpu_seconds"].as_f64(),
        error: reported.error.clone(),
    }
}

fn unfinished(reported: &ProcessOutput) -> String {
    reported.error.clone().unwrap_or_else(|| "it was still running when the demonstration timed out".into())
}

impl DemoOutcome {
    /// Returns the errors that the processes reported.
    fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let source = self.source.error.iter().map(|error| format!("source: {error}"));
        let receivers = self
            .receivers
            .iter()
            .filter_map(|receiver| Some(format!("{}: {}", receiver.host, receiver.error.as_ref()?)));
        source.chain(receivers)
    }
}
