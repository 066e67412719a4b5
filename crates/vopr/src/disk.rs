//! The disks of the simulated hosts: real files in a directory of the run, with fault injection.

use blake3::Hasher;
use faircast_core::rng::Rng;
use faircast_core::time::Span;
use faircast_transport::object::host::disk::{Disk, Failure, Faults, Op, Verdict};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Unit of torn writes, in bytes.
const SECTOR: usize = 512;

/// All disks of a run. A process uses the disk of its host while it runs.
#[derive(Clone)]
pub struct Disks(Arc<Mutex<State>>);

struct State {
    disks: Vec<HostDisk>,
    /// The host whose process runs now.
    current: Option<usize>,
    trace: Hasher,
    /// Whether each written block is corrupted after the write.
    spoilt: bool,
    /// File and position of the last write to a part file.
    written: Option<(File, u64)>,
}

/// The disk of a host.
pub struct HostDisk {
    /// Whether all writes fail.
    pub full: bool,
    /// Probability that an operation fails.
    pub broken: f64,
    /// Duration of each operation.
    pub cost: Span,
    /// Total duration of the operations since the last call of `Disks::done`.
    spent: Span,
    /// Number of operations until the process is killed.
    dies_in: Option<u64>,
    /// Whether the process was killed: all its operations fail.
    dead: bool,
    /// Whether a file was renamed since the last call of `Disks::done`.
    renamed: bool,
    /// Whether a file was renamed since the start of the process.
    publishes: bool,
    /// Unflushed writes, the oldest first; `None`: they are not recorded.
    unflushed: Option<Vec<Unflushed>>,
    rng: Rng,
}

/// A write that the system has accepted, but that may not be on the disk.
struct Unflushed {
    file: File,
    inode: u64,
    at: u64,
    /// Previous bytes at this position; fewer than `len` at the end of the file.
    before: Vec<u8>,
    len: usize,
    file_len: u64,
}

impl HostDisk {
    fn new(rng: Rng, keeps: bool) -> HostDisk {
        HostDisk {
            full: false,
            broken: 0.0,
            cost: Span::ZERO,
            spent: Span::ZERO,
            dies_in: None,
            dead: false,
            renamed: false,
            publishes: false,
            unflushed: keeps.then(Vec::new),
            rng,
        }
    }

    fn before(&mut self, op: &Op<'_>) -> Verdict {
        if self.dead {
            return Verdict::Fails(Failure::Broken);
        }
        if let Some(left) = &mut self.dies_in {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.dead = true;
                return match op {
                    _ if self.rng.chance(0.3) => self.goes_through(op),
                    Op::Write { len, .. } => {
                        Verdict::Torn(self.rng.below(*len as u64 + 1) as usize, Failure::Broken)
                    }
                    _ => Verdict::Fails(Failure::Broken),
                };
            }
        }
        self.spent = Span::from_nanos(self.spent.as_nanos() + self.cost.as_nanos());
        if self.broken > 0.0 && self.rng.chance(self.broken) {
            return Verdict::Fails(Failure::Broken);
        }
        match op {
            Op::Write { len, .. } if self.full => {
                Verdict::Torn(self.rng.below(*len as u64) as usize, Failure::Full)
            }
            Op::Make | Op::Reserve if self.full => Verdict::Fails(Failure::Full),
            op => self.goes_through(op),
        }
    }

    fn goes_through(&mut self, op: &Op<'_>) -> Verdict {
        match op {
            Op::Rename => (self.renamed, self.publishes) = (true, true),
            Op::Write { file, at, len } => self.keep(file, *at, *len),
            Op::Sync { file } => {
                let inode = inode(file);
                self.unflushed.iter_mut().for_each(|stored| stored.retain(|one| one.inode != inode));
            }
            _ => {}
        }
        Verdict::Done
    }

    fn keep(&mut self, file: &File, at: u64, len: usize) {
        let Some(stored) = &mut self.unflushed else { return };
        let (Ok(meta), Ok(file)) = (file.metadata(), file.try_clone()) else { return };
        let mut before = vec![0; len.min(meta.len().saturating_sub(at) as usize)];
        // Files that cannot be read are not recorded.
        if file.read_exact_at(&mut before, at).is_ok() {
            stored.push(Unflushed { file, inode: meta.ino(), at, before, len, file_len: meta.len() });
        }
    }

    /// Simulates a loss of power: a random part of the unflushed writes is reverted. Some writes are reverted only in some of
    /// their sectors.
    fn lose_power(&mut self) {
        let Some(stored) = &mut self.unflushed else { return };
        for one in std::mem::take(stored).into_iter().rev() {
            if self.rng.chance(0.4) {
                continue;
            }
            let mut old = one.before;
            old.resize(one.len, 0);
            let ends_file = one.file.metadata().is_ok_and(|meta| meta.len() == one.at + one.len as u64);
            if ends_file && one.at + one.len as u64 > one.file_len && self.rng.chance(0.5) {
                // The change of the file's length is not on the disk either.
                one.file.set_len(one.file_len).expect("a file of this run");
                old.truncate(one.file_len.saturating_sub(one.at) as usize);
            }
            let torn = self.rng.chance(0.5);
            for (place, sector) in old.chunks(SECTOR).enumerate() {
                if !torn || self.rng.chance(0.5) {
                    let at = one.at + (place * SECTOR) as u64;
                    one.file.write_all_at(sector, at).expect("a file of this run");
                }
            }
        }
    }
}

fn inode(file: &File) -> u64 {
    file.metadata().map_or(0, |meta| meta.ino())
}

/// Disk operations of a process since the last call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    /// Total duration of the operations.
    pub took: Span,
    /// Whether the process was killed.
    pub died: bool,
    /// Whether a file was renamed.
    pub renamed: bool,
}

impl Disks {
    /// Returns disks without faults. With `keeps`, the disks record unflushed bytes, which can then be lost. With `spoilt`,
    /// written blocks are corrupted.
    pub fn new(seed: u64, count: usize, keeps: bool, spoilt: bool) -> Disks {
        let disk = |at| HostDisk::new(Rng::new(seed, 1 << 41 | at as u64), keeps);
        let disks = (0..count).map(disk).collect();
        let state = State { disks, current: None, trace: Hasher::new(), spoilt, written: None };
        Disks(Arc::new(Mutex::new(state)))
    }

    /// Returns the interface through which a session uses these disks.
    pub fn disk(&self) -> Disk {
        Disk::with_faults(Arc::new(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `act` as the process of a host.
    pub fn run_as<T>(&self, host: usize, act: impl FnOnce() -> T) -> T {
        self.lock().current = Some(host);
        let done = act();
        self.lock().current = None;
        done
    }

    /// Changes a disk through `change`.
    pub fn change(&self, host: usize, change: impl FnOnce(&mut HostDisk)) {
        change(&mut self.lock().disks[host]);
    }

    /// Returns the duration of an operation.
    pub fn cost(&self, host: usize) -> Span {
        self.lock().disks[host].cost
    }

    /// Kills this host's process after this number of operations.
    pub fn crash_soon(&self, host: usize, operations: u64) {
        self.change(host, |disk| disk.dies_in = Some(operations.max(1)));
    }

    /// Returns a summary of the operations since the last call.
    pub fn done(&self, host: usize) -> Done {
        let disk = &mut self.lock().disks[host];
        let took = std::mem::replace(&mut disk.spent, Span::ZERO);
        Done { took, died: disk.dead, renamed: std::mem::replace(&mut disk.renamed, false) }
    }

    /// Cuts the host's power. Without `synced`, no writes are lost if the process has renamed a file, because a receiver that
    /// does not flush makes no promise about complete files.
    pub fn lose_power(&self, host: usize, synced: bool) {
        let disk = &mut self.lock().disks[host];
        if synced || !disk.publishes {
            disk.lose_power();
        }
    }

    /// Prepares the disk for a new process.
    pub fn restart(&self, host: usize, synced: bool) {
        let disk = &mut self.lock().disks[host];
        if let Some(stored) = &mut disk.unflushed {
            // Writes of the previous process can still be lost. The exception is a process that has renamed a file without
            // flushing, because a receiver that does not flush makes no promise about complete files.
            stored.retain(|one| {
                synced || (!disk.publishes && one.file.metadata().is_ok_and(|meta| meta.nlink() > 0))
            });
        }
        (disk.dead, disk.dies_in, disk.publishes) = (false, None, false);
    }

    /// Removes the faults of all disks.
    pub fn heal(&self) {
        for disk in &mut self.lock().disks {
            (disk.full, disk.broken, disk.cost, disk.dies_in) = (false, 0.0, Span::ZERO, None);
        }
    }

    /// Returns a digest of all operations.
    pub fn fingerprint(&self) -> blake3::Hash {
        self.lock().trace.finalize()
    }
}

impl Faults for Disks {
    fn before(&self, op: &Op<'_>) -> Verdict {
        let state = &mut *self.lock();
        state.spoil(op);
        let Some(host) = state.current else { return Verdict::Done };
        let verdict = state.disks[host].before(op);
        let (kind, at, len) = match op {
            Op::Open => (0, 0, 0),
            Op::Make => (1, 0, 0),
            Op::Read => (2, 0, 0),
            Op::Write { at, len, .. } => (3, *at, *len as u64),
            Op::Cut { len, .. } => (4, 0, *len),
            Op::Sync { .. } => (5, 0, 0),
            Op::Flush => (6, 0, 0),
            Op::Reserve => (7, 0, 0),
            Op::Rename => (8, 0, 0),
            Op::Remove => (9, 0, 0),
            Op::Mark => (10, 0, 0),
        };
        let mut record = [0; 26];
        (record[0], record[1]) = (kind, host as u8);
        record[2..10].copy_from_slice(&at.to_le_bytes());
        record[10..18].copy_from_slice(&len.to_le_bytes());
        let stated = match verdict {
            Verdict::Done => 0,
            Verdict::Fails(_) => 1,
            Verdict::Torn(part, _) => 2 + part as u64,
        };
        record[18..].copy_from_slice(&stated.to_le_bytes());
        state.trace.update(&record);
        verdict
    }

    fn free(&self) -> Option<u64> {
        let state = self.lock();
        let full = state.current.is_some_and(|host| state.disks[host].full);
        Some(if full { 0 } else { 1 << 40 })
    }
}

impl State {
    /// Corrupts a byte of the previous write to a part file.
    fn spoil(&mut self, op: &Op<'_>) {
        if !self.spoilt {
            return;
        }
        if let Some((file, at)) = self.written.take() {
            let mut byte = [0];
            if file.read_exact_at(&mut byte, at).is_ok() {
                file.write_all_at(&[byte[0] ^ 1], at).expect("a file of this run");
            }
        }
        if let Op::Write { file, at, len } = op {
            self.written =
                file.try_clone().ok().filter(|file| *len > 0 && is_part(file)).map(|file| (file, *at));
        }
    }
}

/// Whether a file holds a part of the content. The journal and the manifest do not.
fn is_part(file: &File) -> bool {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    name.is_ok_and(|path| path.parent().is_some_and(|parts| parts.ends_with("parts")))
}
