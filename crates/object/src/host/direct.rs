//! Access to a block device past the page cache (`O_DIRECT`), so that a disk image does not displace the pages of other programs.
//!
//! The kernel takes only whole units: aligned memory, and offsets and lengths that are multiples of a sector. Blocks end between
//! sectors. Consecutive blocks are therefore collected in memory and written together. Their first and last bytes that fill no unit
//! go through the page cache. One thread performs all accesses in order, and the kernel writes and drops the cached pages of a
//! range before it accesses the range directly. So no access meets older bytes.

use super::disk::Disk;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// Size and alignment of direct accesses, in bytes. It is a multiple of the sectors of common devices.
const UNIT: usize = 4096;

/// Number of collected bytes that are written together. The writing thread waits for the device once for each of these writes.
const COLLECTED: usize = 4 << 20;

/// Direct reads and writes of one block device.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    /// Aligned memory, after `skipped` bytes.
    memory: Vec<u8>,
    skipped: usize,
    /// Offset on the device of the first byte in memory, if bytes are held.
    at: u64,
    /// Number of bytes in memory that are not written yet.
    held: usize,
    /// Whether the kernel refuses direct access to the device.
    is_refused: bool,
}

impl Direct {
    /// Writes bytes at this offset. They may stay in memory until [`Direct::flush`].
    ///
    /// # Errors
    /// When the device cannot be written.
    pub(crate) fn write(&mut self, on: (&Disk, &File), mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        if !self.continues(at) {
            self.flush(on)?;
            let to_unit = (at.next_multiple_of(UNIT as u64) - at) as usize;
            let (first, rest) = bytes.split_at(to_unit.min(bytes.len()));
            on.0.write_all_at(on.1, first, at)?;
            (bytes, at) = (rest, at + first.len() as u64);
            self.at = at;
        }
        let (held, len) = (self.held, self.held + bytes.len());
        self.memory(len)[held..].copy_from_slice(bytes);
        self.held = len;
        if len < COLLECTED { Ok(()) } else { self.write_units(on) }
    }

    /// Writes the whole units of the held bytes.
    fn write_units(&mut self, (disk, file): (&Disk, &File)) -> io::Result<()> {
        let (held, whole, at) = (self.held, self.held / UNIT * UNIT, self.at);
        if whole > 0 {
            self.past_the_cache(file, whole, |units| disk.write_all_at(file, units, at))?;
            self.memory(held).copy_within(whole.., 0);
            (self.at, self.held) = (at + whole as u64, held - whole);
        }
        Ok(())
    }

    /// Returns whether bytes at this offset continue the held bytes.
    pub(crate) fn continues(&self, at: u64) -> bool {
        self.held > 0 && at == self.at + self.held as u64
    }

    /// Returns whether all bytes before this offset are written, of those that continued each other.
    pub(crate) fn has_written(&self, to: u64) -> bool {
        self.held == 0 || to <= self.at
    }

    /// Writes the held bytes.
    ///
    /// # Errors
    /// When the device cannot be written.
    pub(crate) fn flush(&mut self, on: (&Disk, &File)) -> io::Result<()> {
        self.write_units(on)?;
        let (held, at) = (std::mem::take(&mut self.held), self.at);
        on.0.write_all_at(on.1, &self.memory(held)[..held], at)
    }

    /// Reads until `buf` is full or the device ends, and returns the number of bytes read.
    ///
    /// # Errors
    /// When the device cannot be read.
    pub(crate) fn read(&mut self, on: (&Disk, &File), buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.flush(on)?;
        let start = at / UNIT as u64 * UNIT as u64;
        let skipped = (at - start) as usize;
        let len = (skipped + buf.len()).next_multiple_of(UNIT);
        let have = self.past_the_cache(on.1, len, |units| on.0.read_at(on.1, units, start))?;
        let have = have.saturating_sub(skipped).min(buf.len());
        buf[..have].copy_from_slice(&self.memory(len)[skipped..][..have]);
        Ok(have)
    }

    /// Calls `access` with the first `len` bytes of the memory, while the kernel bypasses the page cache. If the kernel refuses
    /// this, calls `access` without it.
    fn past_the_cache<T>(
        &mut self,
        file: &File,
        len: usize,
        mut access: impl FnMut(&mut [u8]) -> io::Result<T>,
    ) -> io::Result<T> {
        if !self.is_refused && fcntl_setfl(file, OFlags::DIRECT).is_ok() {
            let done = access(self.memory(len));
            fcntl_setfl(file, OFlags::empty())?;
            match done {
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
                done => return done,
            }
        }
        self.is_refused = true;
        access(self.memory(len))
    }

    /// Returns `len` bytes of aligned memory. The held bytes stay at its start.
    fn memory(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < self.skipped + len {
            let mut memory = vec![0; len + UNIT];
            let skipped = memory.as_ptr().align_offset(UNIT).min(UNIT);
            memory[skipped..][..self.held].copy_from_slice(&self.memory[self.skipped..][..self.held]);
            (self.memory, self.skipped) = (memory, skipped);
        }
        &mut self.memory[self.skipped..][..len]
    }
}
