//! The watched directory: which of its files are complete.

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

/// A file that was in the directory before the watch counts as complete if it has not changed for this time.
const SETTLED: Duration = Duration::from_secs(5);

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
    /// Files without an event: their versions, and since when they have not changed.
    unsure: BTreeMap<String, (Version, Instant)>,
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
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        inotify::add_watch(&events, directory, flags | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF)?;
        let (complete, unsure) = (VecDeque::new(), BTreeMap::new());
        let mut inbox =
            Inbox { directory: directory.to_owned(), events, complete, unsure, has_unusable: false };
        inbox.scan()?;
        Ok(inbox)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns the present version of a regular file, if it exists.
    pub fn version(&self, name: &str) -> Option<Version> {
        let of = fs::symlink_metadata(self.path(name)).ok().filter(fs::Metadata::is_file)?;
        Some(Version::new(name, &of))
    }

    /// Returns a complete file.
    ///
    /// # Errors
    /// If the directory cannot be read, or was removed.
    pub fn next(&mut self) -> io::Result<Option<Version>> {
        self.read_events()?;
        let waiting = std::mem::take(&mut self.unsure);
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

    /// Tries this file again after the other files.
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
            names.extend(event.file_name().map(|name| name.to_owned()));
        }
        for name in names {
            match name.into_string() {
                Ok(name) if !is_temporary(&name) => self.completed(name),
                Ok(_) => {}
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

    /// Finds the files that may be complete although no event has reported it.
    fn scan(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let Ok(name) = entry?.file_name().into_string() else {
                self.has_unusable = true;
                continue;
            };
            if is_temporary(&name) || self.complete.contains(&name) {
                continue;
            }
            if let Some(version) = self.version(&name) {
                self.unsure.entry(name).or_insert((version, Instant::now()));
            }
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
        write(at("gone"), "1").expect("room");
        fs::remove_file(at("gone")).expect("removed");
        assert_eq!(names(&mut inbox), ["written", "moved"], "an early file may still change");
        drop(growing);
        assert_eq!(names(&mut inbox), ["growing"]);
        inbox.unsure.values_mut().for_each(|(_, since)| *since -= SETTLED);
        assert_eq!(names(&mut inbox), ["early"]);
        fs::remove_dir_all(&inside).expect("removed");
        assert!(inbox.next().is_err(), "the directory is gone");
    }
}
