//! Who stands in the door to the disk, and for one thread decides what becomes of everything that passes.

use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;

/// What a receiver is about to do.
#[derive(Debug)]
pub enum Op<'a> {
    /// Open a file or directory, or create it.
    Open,
    /// Make a directory or a link.
    Make,
    /// Read from a file.
    Read,
    /// Write into a file.
    Write {
        /// Where.
        file: &'a File,
        /// From this offset on.
        at: u64,
        /// So many bytes.
        len: usize,
    },
    /// Give a file this length.
    Cut {
        /// Which.
        file: &'a File,
        /// In bytes.
        len: u64,
    },
    /// Flush a file.
    Sync {
        /// Which.
        file: &'a File,
    },
    /// Flush a directory.
    Flush,
    /// Reserve room for a file.
    Reserve,
    /// Give a file another name.
    Rename,
    /// Remove a file or directory.
    Remove,
    /// Set a mode or a time.
    Mark,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Done,
    /// Nothing of it is done.
    Fails(Failure),
    /// So many bytes are written, and then it fails.
    Torn(usize, Failure),
}

/// Why a disk does not do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// `ENOSPC`.
    Full,
    /// `EIO`.
    Broken,
}

/// The disk of whoever runs in this thread.
pub trait Disk {
    /// This is about to happen.
    fn before(&mut self, op: &Op<'_>) -> Verdict;

    /// Bytes that are free; `None`: as many as there really are.
    fn free(&mut self) -> Option<u64> {
        None
    }
}

thread_local! {
    static DISK: RefCell<Option<Box<dyn Disk>>> = const { RefCell::new(None) };
}

/// From now on this stands in the door of this thread, or nobody does; who stood there before.
pub fn stand(disk: Option<Box<dyn Disk>>) -> Option<Box<dyn Disk>> {
    DISK.replace(disk)
}

/// A mistake that receivers or sources make on purpose, to see whether somebody finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Blocks are taken as they come: neither their hash nor the root over all is compared.
    Unverified,
    /// What the journal claims is believed, and not read back.
    Believed,
    /// A source does not look whether a file is what it was.
    Unwatched,
}

thread_local! {
    static MISTAKE: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// From now on sessions in this thread make this mistake, or none.
pub fn make_mistake(mistake: Option<Mistake>) {
    MISTAKE.set(mistake);
}

pub(crate) fn makes(mistake: Mistake) -> bool {
    MISTAKE.get() == Some(mistake)
}

/// Whether somebody stands in the door of this thread.
pub(crate) fn is_watched() -> bool {
    DISK.with_borrow(Option::is_some)
}

impl Failure {
    fn errno(self) -> Errno {
        match self {
            Failure::Full => Errno::NOSPC,
            Failure::Broken => Errno::IO,
        }
    }
}

fn verdict(op: &Op<'_>) -> Verdict {
    DISK.with_borrow_mut(|disk| disk.as_mut().map_or(Verdict::Done, |disk| disk.before(op)))
}

/// Whether this is to be done.
pub(super) fn ask(op: Op<'_>) -> Result<(), Errno> {
    match verdict(&op) {
        Verdict::Done => Ok(()),
        Verdict::Fails(why) | Verdict::Torn(_, why) => Err(why.errno()),
    }
}

/// The same of a write; `Some`: so many bytes of it, and what is said then.
pub(super) fn ask_to_write(file: &File, len: usize, at: u64) -> io::Result<Option<(usize, io::Error)>> {
    match verdict(&Op::Write { file, at, len }) {
        Verdict::Done => Ok(None),
        Verdict::Fails(why) => Err(why.errno().into()),
        Verdict::Torn(part, why) => Ok(Some((part, why.errno().into()))),
    }
}

pub(super) fn free() -> Option<u64> {
    DISK.with_borrow_mut(|disk| disk.as_mut().and_then(|disk| disk.free()))
}
