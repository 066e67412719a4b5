//! `send --watch`: sends each completed file and subdirectory of a directory in a numbered session. Receivers find lost sessions by
//! the gaps in the numbers.

mod inbox;
mod numbers;
mod record;
pub mod sequences;

use crate::args::Watched;
use crate::failure::{Failure, Usage};
use crate::printer::Role;
use crate::session::{self, Output, Resolved};
use faircast::{Class, Content, Error, Event, Repeat, SendConfig, SendReport, Series, Stop};
use inbox::Inbox;
use numbers::{Numbers, Version};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pause after a failed session. It doubles with each consecutive failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A directory whose files and subdirectories are sent.
struct Watch {
    inbox: Inbox,
    numbers: Numbers,
    sent_to: Option<PathBuf>,
    /// The lock of the watched directory.
    _lock: File,
}

impl Watch {
    fn open(watched: &Watched) -> Result<Watch, Failure> {
        let directory = watched.watch.as_deref().unwrap_or(Path::new("."));
        let not_watched = |error| Failure::system(format!("watch {}", directory.display()))(error);
        let lock = File::open(directory).map_err(not_watched)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Usage::AlreadyWatched(directory.to_owned()).into());
        }
        if let Some(sent_to) = &watched.sent_to {
            let made = fs::create_dir_all(sent_to).and_then(|()| fs::metadata(sent_to));
            let made = made.map_err(Failure::system(format!("use {}", sent_to.display())))?;
            let here = lock.metadata().map_err(not_watched)?;
            if made.dev() != here.dev() || made.ino() == here.ino() {
                return Err(Usage::SentToElsewhere(sent_to.clone()).into());
            }
        }
        let numbers = Numbers::open(watched.sent_to.as_deref().unwrap_or(directory))?;
        let inbox = Inbox::open(directory).map_err(not_watched)?;
        Ok(Watch { inbox, numbers, sent_to: watched.sent_to.clone(), _lock: lock })
    }

    /// Returns a complete file or directory that was not sent.
    fn next(&mut self) -> Result<Option<Version>, Failure> {
        while let Some(file) = self.inbox.next().map_err(Failure::system("watch the directory"))? {
            if !self.numbers.is_sent(&file) {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Moves or remembers a sent file, unless a newer version has replaced it, which will be sent, too. Returns a warning if the
    /// file cannot be moved.
    fn sent(&mut self, file: &Version, number: u64) -> Result<Option<String>, Failure> {
        let is_there = self.inbox.version(&file.name).as_ref() == Some(file);
        let moved = match &self.sent_to {
            Some(to) if is_there => move_to(&self.inbox.path(&file.name), to, &file.name, number),
            _ => Ok(()),
        };
        let stays = is_there && (self.sent_to.is_none() || moved.is_err());
        self.numbers.keep_only(|name| self.inbox.path(name).symlink_metadata().is_ok());
        self.numbers.sent(file, stays)?;
        let name = file.name.escape_debug();
        Ok(moved.err().map(|error| format!("{name} was sent, but cannot be moved: {error}; it stays")))
    }
}

/// Moves a file into a directory. If there is a file with its name, the number of the session is appended.
fn move_to(file: &Path, directory: &Path, name: &str, number: u64) -> io::Result<()> {
    let to = |name: &str| renameat_with(CWD, file, CWD, directory.join(name), RenameFlags::NOREPLACE);
    match to(name) {
        Err(rustix::io::Errno::EXIST) => Ok(to(&format!("{name}.{number}"))?),
        done => Ok(done?),
    }
}

/// Sends the files of a watched directory until `stop` is set. A stop between two sessions is not an error.
///
/// # Errors
/// When a stop interrupts a session, when the directory or the record cannot be used, or when the reader of the JSON has closed the
/// output.
pub fn run(
    resolved: Resolved<SendConfig>,
    watched: &Watched,
    output: Output<'_>,
    stop: &Stop,
) -> Result<(), Failure> {
    if resolved.config.one_way.is_some_and(|one_way| one_way.repeat == Repeat::Forever) {
        return Err(Usage::EndlessWatch.into());
    }
    let answers = resolved.config.one_way.is_none();
    let mut watch = Watch::open(watched)?;
    let Resolved { config, output_options, mut warnings, hook, .. } = resolved;
    let Output { program, people, block, keyboard } = output;
    let (mut pause, mut not_before) = (FIRST_PAUSE, Instant::now());
    while !stop.is_set() {
        let due = if Instant::now() < not_before { None } else { watch.next()? };
        let Some(file) = due else {
            watch.inbox.wait();
            continue;
        };
        if std::mem::take(&mut watch.inbox.has_unusable) {
            warnings.push("files whose names are not UTF-8 are not sent".to_owned());
        }
        let series = Series { id: watch.numbers.series(), number: watch.numbers.number_of(&file)? };
        let mut config = config.clone();
        config.content = Content::Paths(vec![watch.inbox.path(&file.name)]);
        config.series = Some(series);
        let (warnings, hook) = (std::mem::take(&mut warnings), hook.clone());
        let one = Resolved { config, output_options: output_options.clone(), warnings, report: None, hook };
        let output = Output { program: &mut *program, people: &mut *people, block: block.clone(), keyboard };
        let mut is_sent = false;
        let outcome = session::send(one, output, stop, |config, events, stop| {
            let sent = send_file(config, &file.name, series, events, stop);
            is_sent = sent.as_ref().is_ok_and(|report| report.ok);
            sent
        });
        let role = if answers { Role::Source } else { Role::Unanswered };
        let mut told = Vec::new();
        if is_sent {
            (pause, not_before) = (FIRST_PAUSE, Instant::now());
            told.extend(watch.sent(&file, series.number)?);
        }
        match outcome {
            Ok(()) => {}
            Err(failure) if stop.is_set() => return Err(failure),
            Err(failure @ Failure::NobodyReads(_)) => return Err(failure),
            Err(failure) if failure.class() == Class::Usage => return Err(failure),
            Err(failure) => {
                let (what, hint) = failure.what_and_hint();
                let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
                // The command of `--on-complete` may fail after the file was sent.
                if is_sent {
                    told.push(format!("{what}{hint}"));
                } else {
                    watch.inbox.put_back(&file.name);
                    not_before = Instant::now() + pause;
                    pause = (pause * 2).min(MAX_PAUSE);
                    told.push(format!("{what}{hint}; {} is tried again", file.name.escape_debug()));
                }
            }
        }
        if !told.is_empty() {
            let output =
                Output { program: &mut *program, people: &mut *people, block: block.clone(), keyboard };
            let mut printer = session::printer(role, &output_options, output, stop)?;
            told.into_iter().for_each(|text| printer.event(&Event::warning(text)));
        }
    }
    Ok(())
}

/// Sends one file, and reports its number first.
fn send_file(
    config: SendConfig,
    name: &str,
    Series { id, number }: Series,
    events: &mut dyn FnMut(Event),
    stop: &Stop,
) -> Result<SendReport, Error> {
    events(Event::Numbered { series: id, number, name: Some(name.to_owned()) });
    session::drive(config, events, stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_file_replaces_no_earlier_file_of_the_same_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("sent")).expect("made");
        for number in 1..=2 {
            fs::write(at("image"), number.to_string()).expect("room");
            move_to(&at("image"), &at("sent"), "image", number).expect("moved");
        }
        let read = |name: &str| fs::read_to_string(at("sent").join(name)).expect("it is there");
        assert_eq!((read("image"), read("image.2")), ("1".to_owned(), "2".to_owned()));
    }
}
