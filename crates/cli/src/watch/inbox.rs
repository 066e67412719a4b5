//! The watched directory: which of its files and directories are complete.

use super::numbers::Version;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A directory that is filled in place, and a file that was there before the watch, counts as complete if it has not changed for
/// this time.
const SETTLED: Duration = Duration::from_secs(5);

/// Interval at which such files and directories are looked at.
const UNSURE_EVERY: Duration = Duration::from_secs(1);

/// Longest wait for an event.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Beginnings and ends of the names of files that programs write before they rename them.
const TEMPORARY: ([&str; 3], [&str; 8]) =
    ([".", "#", "~"], ["~", "#", ".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload"]);

/// A watched directory.
pub struct Inbox {
    directory: PathBuf,
    events: OwnedFd,
    /// Names of complete files, in the order of their completion.
    complete: VecDeque<String>,
    /// Files and directories without an event of their completion: their versions, and since when they have not changed.
    unsure: BTreeMap<String, (Version, Instant)>,
    unsure_at: Instant,
    /// Whether a file with an unusable name was found.
    pub has_unusable: bool,
}

impl Inbox {
    /// Begins to watch a directory.
    ///
    /// # Errors
    /// If it cannot be watched or read.
    pub fn open(directory: &Path) -> io::Result<Inbox> {
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::ONLYDIR;
        inotify::add_watch(&events, directory, flags | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF)?;
        let mut inbox = Inbox {
            directory: directory.to_owned(),
            events,
            complete: VecDeque::new(),
            unsure: BTreeMap::new(),
            unsure_at: Instant::now(),
            has_unusable: false,
        };
        inbox.scan()?;
        Ok(inbox)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns the present version of a regular file or a directory, if it exists and can be read.
    pub fn version(&self, name: &str) -> Option<Version> {
        let path = self.path(name);
        let of = fs::symlink_metadata(&path).ok()?;
        match of.is_dir() {
            true => Version::of_directory(name, &path).ok(),
            false => of.is_file().then(|| Version::new(name, &of)),
        }
    }

    /// Returns a complete file or directory.
    ///
    /// # Errors
    /// If the directory cannot be read, or was removed.
    pub fn next(&mut self) -> io::Result<Option<Version>> {
        self.read_events()?;
        let is_due = self.unsure_at.elapsed() >= UNSURE_EVERY;
        let waiting = if is_due { std::mem::take(&mut self.unsure) } else { BTreeMap::new() };
        if is_due {
            self.unsure_at = Instant::now();
        }
        for (name, (known, since)) in waiting {
            match self.version(&name) {
                Some(now) if now == known && since.elapsed() >= SETTLED => self.complete.push_back(name),
                Some(now) if now == known => _ = self.unsure.insert(name, (known, since)),
                Some(now) => _ = self.unsure.insert(name, (now, Instant::now())),
                None => {}
            }
        }
        while let Some(name) = self.complete.pop_front() {
            if let Some(version) = self.version(&name) {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// Tries this file or directory again after the others.
    pub fn put_back(&mut self, name: &str) {
        self.completed(name.to_owned());
    }

    /// Waits for a moment, or for an event.
    pub fn wait(&self) {
        // An interrupted wait ends early.
        let _ = poll(&mut [PollFd::new(&self.events, PollFlags::IN)], Some(&LOOK_EVERY));
    }

    fn read_events(&mut self) -> io::Result<()> {
        let (mut names, mut is_scan_due) = (Vec::new(), false);
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.events, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            is_scan_due |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let is_gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
            if event.events().intersects(is_gone) {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the directory was moved or removed"));
            }
            // A new file is complete when it is closed. A new directory has no such event.
            let is_new = event.events().contains(ReadFlags::CREATE);
            if !is_new || event.events().contains(ReadFlags::ISDIR) {
                names.extend(event.file_name().map(|name| (name.to_owned(), is_new)));
            }
        }
        for (name, is_new) in names {
            match name.into_string() {
                Ok(name) if is_temporary(&name) => {}
                Ok(name) if is_new => self.doubt(name),
                Ok(name) => self.completed(name),
                Err(_) => self.has_unusable = true,
            }
        }
        if is_scan_due { self.scan() } else { Ok(()) }
    }

    fn completed(&mut self, name: String) {
        self.unsure.remove(&name);
        self.complete.retain(|other| *other != name);
        self.complete.push_back(name);
    }

    /// Waits until this file or directory does not change.
    fn doubt(&mut self, name: String) {
        if let Some(version) = self.version(&name) {
            self.unsure.entry(name).or_insert((version, Instant::now()));
        }
    }

    /// Finds the files and directories that may be complete although no event has reported it.
    fn scan(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let Ok(name) = entry?.file_name().into_string() else {
                self.has_unusable = true;
                continue;
            };
            if is_temporary(&name) || self.complete.contains(&name) {
                continue;
            }
            self.doubt(name);
        }
        Ok(())
    }
}

fn is_temporary(name: &str) -> bool {
    let (begins, ends) = TEMPORARY;
    begins.iter().any(|begin| name.starts_with(begin)) || ends.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, rename, write};
    use std::io::Write;

    fn names(inbox: &mut Inbox) -> Vec<String> {
        std::iter::from_fn(|| inbox.next().expect("it can be read")).map(|version| version.name).collect()
    }

    #[test]
    fn closed_and_moved_files_are_complete_and_others_are_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let (inside, at) = (dir.path().join("in"), |name: &str| dir.path().join("in").join(name));
        fs::create_dir(&inside).expect("made");
        write(at("early"), "1").expect("room");
        let mut inbox = Inbox::open(&inside).expect("watched");
        let mut growing = File::create(at("growing")).expect("room");
        growing.write_all(b"1").expect("room");
        write(at("written"), "1").expect("room");
        write(dir.path().join("outside"), "1").expect("room");
        rename(dir.path().join("outside"), at("moved")).expect("moved");
        for skipped in [".hidden", "copy.part", "note~"] {
            write(at(skipped), "1").expect("room");
        }
        fs::create_dir(at("folder")).expect("made");
        write(at("folder/inner"), "1").expect("room");
        fs::create_dir_all(dir.path().join("tree/sub")).expect("made");
        write(dir.path().join("tree/sub/inner"), "12").expect("room");
        rename(dir.path().join("tree"), at("tree")).expect("moved");
        write(at("gone"), "1").expect("room");
        fs::remove_file(at("gone")).expect("removed");
        assert_eq!(names(&mut inbox), ["written", "moved", "tree"], "the others may still change");
        drop(growing);
        assert_eq!(names(&mut inbox), ["growing"]);
        let pass = |inbox: &mut Inbox| {
            inbox.unsure_at -= UNSURE_EVERY;
            inbox.unsure.values_mut().for_each(|(_, since)| *since -= SETTLED);
        };
        write(at("folder/inner"), "12").expect("room");
        pass(&mut inbox);
        assert_eq!(names(&mut inbox), ["early"], "the directory has changed");
        pass(&mut inbox);
        assert_eq!(names(&mut inbox), ["folder"]);
        let sent = inbox.version("tree");
        write(at("tree/sub/inner"), "123").expect("room");
        assert!(sent.is_some() && inbox.version("tree") != sent, "it is sent again");
        fs::remove_dir_all(&inside).expect("removed");
        assert!(inbox.next().is_err(), "the directory is gone");
    }
}
