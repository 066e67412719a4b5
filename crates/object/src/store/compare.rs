//! Comparison of an output with the list of files of a dry run. It reads the disk and changes nothing there.

use super::adopt::is_same;
use super::coverage::Coverage;
use super::existing::{Deleting, is_as_listed};
use super::files::check_footprint;
use super::in_place::{examined, open_published};
use super::obstacles::check_for_obstacles;
use super::publish::leads_to;
use super::search::{Candidates, WantedChunks};
use super::{DeviceStore, Known};
use crate::apply::Wanted;
use crate::block::hash_of;
use crate::chunking::READ;
use crate::error::ObjectError;
use crate::file_work::{FileWork, WorkStage};
use crate::geometry::{Geometry, Hash, TransferId};
use crate::host::block_device::BlockDevice;
use crate::host::disk::Disk;
use crate::host::tree::{Absent, split};
use crate::journal::{self, WITHDRAWN};
use crate::layout::Layout;
use crate::links::stays_inside;
use crate::manifest::{Entry, Kind, Manifest, STATE_DIR};
use crate::metadata::Aspect;
use crate::names::{self, Names};
use crate::origin_records::{Admission, Remembered};
use crate::output_directory::{JOURNAL, PARTS, Root, existing_part, has_others};
use crate::policy::Extraneous;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The output that is compared.
#[derive(Debug, Clone)]
pub enum ComparedOutput {
    /// A directory, which need not exist.
    Directory(PathBuf),
    /// A block device.
    Device(Arc<BlockDevice>),
    /// An output that keeps nothing of earlier sessions.
    Empty,
}

/// The smallest unit that a receiver requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// Symbols of a block.
    Symbols,
    /// Whole blocks.
    Blocks,
}

/// A comparison of an output with a list of files.
#[derive(Debug, Clone)]
pub struct Comparing {
    /// The output.
    pub output: ComparedOutput,
    /// The division of the whole object stream.
    pub geometry: Geometry,
    /// The rules for admitting the files to a directory.
    pub admission: Option<Admission>,
    /// The treatment of existing files.
    pub wanted: Wanted,
    /// Files, directories and block devices whose content is reused.
    pub reuse: Vec<PathBuf>,
    /// The smallest unit of requests.
    pub granularity: Granularity,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compared {
    /// Number of files and links that do not exist.
    pub new_files: u64,
    /// Number of files and links that exist in another form.
    pub changed_files: u64,
    /// Number of files and links that would be deleted.
    pub deleted: u64,
    /// Bytes of content that are on the disk.
    pub held_bytes: u64,
    /// Bytes of symbols that are missing.
    pub needed_bytes: u64,
    /// Number of missing symbols of each block. The blocks of the manifest count as missing.
    pub missing: Vec<u16>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Comparing {
    /// Compares the output with a manifest.
    ///
    /// # Errors
    /// The obstacle that would prevent the session: see [`super::Store::begin`] and [`super::Ledger::plan`].
    pub fn compare(&self, disk: &Disk, manifest: &[u8], work: &FileWork) -> Result<Compared, ObjectError> {
        let transfer = TransferId::of(manifest, &self.geometry);
        let names = self.admission.as_ref().map_or(Names::Keep, |admission| admission.names);
        let (manifest, changed) = Manifest::decode(manifest)?.named_by(names)?;
        let layout = Layout::new(&manifest, &self.geometry)?;
        let known = Known { manifest, layout };
        let mut compared = Compared::default();
        let entries = known.manifest.counts();
        let all_files = entries.files + entries.links;
        compared.warnings.extend((changed > 0).then(|| names::reported(changed)));
        let mut held: Vec<Range<u64>> = match &self.output {
            ComparedOutput::Directory(out) => match Root::existing(disk, out)? {
                Some(root) => self.in_directory(&root, transfer, &known, (&mut compared, work))?,
                None => {
                    check_footprint(&known.manifest, self.admission.as_ref())?;
                    compared.new_files = all_files;
                    self.reused(None, &known, (&mut compared, work))?
                }
            },
            ComparedOutput::Device(device) => self.on_device((disk, device), transfer, &known, work)?,
            ComparedOutput::Empty => {
                compared.new_files = all_files;
                Vec::new()
            }
        };
        let geometry = &self.geometry;
        held.extend(
            known
                .layout
                .void()
                .iter()
                .map(|run| geometry.range(run.start).start..geometry.range(run.end - 1).end),
        );
        let held: Coverage = held.into_iter().filter(|range| !range.is_empty()).collect();
        compared.held_bytes = held.bytes();
        compared.missing =
            (0..geometry.blocks().unwrap_or(0)).map(|block| self.missing(&held, block)).collect();
        let symbols: u64 = compared.missing.iter().map(|symbols| u64::from(*symbols)).sum();
        compared.needed_bytes = symbols * u64::from(geometry.symbol_size);
        if let ComparedOutput::Device(_) = self.output {
            compared.changed_files = u64::from(compared.held_bytes < known.manifest.content_len());
        }
        Ok(compared)
    }

    /// Returns the number of symbols that are missing of a block.
    fn missing(&self, held: &Coverage, block: u32) -> u16 {
        let all = self.geometry.symbols(block);
        match self.granularity {
            _ if block < self.geometry.manifest_blocks() => all,
            _ if held.covers(&self.geometry.range(block)) => 0,
            Granularity::Symbols => (all - held.symbols_of(&self.geometry, block).count()).max(1),
            Granularity::Blocks => all,
        }
    }

    /// Compares a directory. Returns the parts of the object stream that are on the disk.
    fn in_directory(
        &self,
        root: &Root,
        transfer: TransferId,
        known: &Known,
        (compared, work): (&mut Compared, &FileWork),
    ) -> Result<Vec<Range<u64>>, ObjectError> {
        let manifest = &known.manifest;
        let states = root.existing_dir(&[STATE_DIR]);
        let remembered = states.as_ref().map(|states| Remembered::load(&root.disk, states));
        let remembered = remembered.and_then(Result::ok).unwrap_or_default();
        if let Some(admission) = &self.admission {
            remembered.check(&root.out_path, manifest, transfer, admission)?;
        }
        check_for_obstacles(root, manifest, &self.wanted)?;
        check_footprint(manifest, self.admission.as_ref())?;
        self.count_files(root, manifest, compared);
        compared.deleted = self.count_deleted(root, manifest, work)?;
        let mut held = self.stored(root, transfer, known, work)?;
        let has_stored = !held.is_empty();
        let knows_origin =
            (self.admission.as_ref()).is_some_and(|admission| remembered.has_any_of(&admission.origin));
        let has_others = states.is_some_and(|states| has_others(&states, transfer));
        let looks = knows_origin
            || match has_stored {
                true => manifest.chunks().is_some(),
                false => has_others || !self.reuse.is_empty(),
            };
        if looks {
            held.extend(self.reused(Some(root), known, (compared, work))?);
        }
        let needed =
            manifest.data_len().saturating_sub(held.iter().map(|range| range.end - range.start).sum());
        let available = root.available();
        if needed > available {
            let (path, available) = (root.out_path.clone(), Some(available));
            return Err(ObjectError::DiskFull { path, needed, available });
        }
        Ok(held)
    }

    /// Counts the new and the changed files and links.
    fn count_files(&self, root: &Root, manifest: &Manifest, compared: &mut Compared) {
        let mut tree = root.tree();
        for entry in manifest.entries() {
            let stat = examined(&mut tree, entry);
            let is_equal = match (&entry.kind, &stat) {
                (Kind::Dir, _) => continue,
                (Kind::Symlink { target }, _) => {
                    let wants_all = self.wanted.preserve.has(Aspect::Links);
                    if !wants_all && !stays_inside(&entry.path, target) {
                        continue; // the link would not be made
                    }
                    let (above, name) = split(&entry.path);
                    let above = tree.dir(above, Absent::Leave).ok().flatten();
                    above.is_some_and(|above| leads_to(above, name, target))
                }
                (Kind::HardLink { to }, Some(stat)) => is_as_listed(stat, &manifest.entries()[*to as usize]),
                (_, Some(stat)) => is_as_listed(stat, entry),
                (_, None) => false,
            };
            match stat {
                _ if is_equal => {}
                Some(_) => compared.changed_files += 1,
                None => compared.new_files += 1,
            }
        }
    }

    /// Returns the number of files that would be deleted.
    fn count_deleted(&self, root: &Root, manifest: &Manifest, work: &FileWork) -> Result<u64, ObjectError> {
        let existing = &self.wanted.existing;
        if manifest.extraneous.and(existing.extraneous) == Extraneous::Keep {
            return Ok(0);
        }
        let mut deleting = Deleting::counting(root, existing.backup.as_deref(), work)?;
        deleting.clear_the_way(manifest, |_, _| true)?;
        deleting.delete_extraneous(manifest)?;
        Ok(deleting.end().0)
    }

    /// Returns the blocks that an interrupted session has stored, after verifying them.
    fn stored(
        &self,
        root: &Root,
        transfer: TransferId,
        known: &Known,
        work: &FileWork,
    ) -> Result<Vec<Range<u64>>, ObjectError> {
        let (name, disk) = (transfer.to_string(), &root.disk);
        let state = root.existing_dir(&[STATE_DIR, &name]);
        let parts = root.existing_dir(&[STATE_DIR, &name, PARTS]);
        let (Some(state), Some(parts)) = (state, parts) else { return Ok(Vec::new()) };
        let journal = root.existing_file(&state, JOURNAL);
        let content = journal.map(|file| journal::content_of(disk, &file, transfer, self.geometry));
        let Some(Ok(Some((content, _)))) = content else { return Ok(Vec::new()) };
        let blocks: BTreeMap<u32, Hash> = content.blocks.into_iter().collect();
        work.begin(WorkStage::Verifying, blocks.len() as u64);
        let (mut tree, mut data, mut stored) = (root.tree(), Vec::new(), Vec::new());
        for (block, hash) in blocks {
            work.step(&root.out_path)?;
            let range = self.geometry.range(block);
            if hash == WITHDRAWN || block < self.geometry.manifest_blocks() || range.is_empty() {
                continue;
            }
            data.resize((range.end - range.start) as usize, 0);
            let mut rest = &mut data[..];
            let is_read = known.layout.pieces(range.clone()).all(|piece| {
                let (into, after) = std::mem::take(&mut rest).split_at_mut(piece.len);
                rest = after;
                let entry = &known.manifest.entries()[piece.entry as usize];
                let file = existing_part(disk, &parts, piece.entry)
                    .or_else(|_| open_published(&mut tree, disk, entry));
                file.and_then(|file| disk.read_at(&file, into, piece.offset))
                    .is_ok_and(|have| have == piece.len)
            });
            if is_read && hash_of(&data) == hash {
                stored.push(range);
            }
        }
        Ok(stored)
    }

    /// Returns the parts of the object stream that are in files with the same path, size and time, and the chunks in other files.
    fn reused(
        &self,
        root: Option<&Root>,
        known: &Known,
        (compared, work): (&mut Compared, &FileWork),
    ) -> Result<Vec<Range<u64>>, ObjectError> {
        let (candidates, warnings) = Candidates::list(&self.reuse);
        compared.warnings.extend(warnings);
        let mut tree = root.map(Root::tree);
        let mut published = |entry: &Entry| {
            root.zip(tree.as_mut()).and_then(|(root, tree)| open_published(tree, &root.disk, entry).ok())
        };
        let (mut held, mut whole) = (Vec::new(), BTreeSet::new());
        for (n, entry) in (0..).zip(known.manifest.entries()) {
            let Some(range) = known.layout.range_of(n) else { continue };
            let same =
                published(entry).filter(|file| is_same(file, entry)).or_else(|| candidates.same(entry));
            if same.is_some() {
                whole.insert(n);
                held.push(range);
            }
        }
        let Some(mut wanted) = WantedChunks::new(known, |entry, _| !whole.contains(&entry)) else {
            return Ok(held);
        };
        let entries = known.manifest.entries();
        let changed: Vec<&Entry> = wanted.entries().into_iter().map(|n| &entries[n as usize]).collect();
        let bytes = changed.iter().map(|entry| entry.size()).sum::<u64>() + candidates.bytes();
        work.begin(WorkStage::Verifying, bytes / READ as u64);
        let disk = root.map_or_else(Disk::default, |root| root.disk.clone());
        let out = root.map_or_else(PathBuf::new, |root| root.out_path.clone());
        let files = changed.into_iter().filter_map(published).chain(candidates.opened());
        for file in files {
            wanted.search((&disk, &file), (work, &out), |_, _, _| Ok(()))?;
        }
        held.append(&mut wanted.found);
        Ok(held)
    }

    /// Returns the parts of the object stream that a device has: blocks of an interrupted session, after verifying them, and chunks
    /// in their places.
    fn on_device(
        &self,
        (disk, device): (&Disk, &Arc<BlockDevice>),
        transfer: TransferId,
        known: &Known,
        work: &FileWork,
    ) -> Result<Vec<Range<u64>>, ObjectError> {
        let (mut store, reported) = DeviceStore::begin(disk, device, transfer, self.geometry)?;
        store.files.check_one_file(&known.manifest)?;
        if let Some(reported) = reported {
            store.go_on(reported, work)?;
        }
        let blocks = 0..self.geometry.blocks().unwrap_or(0);
        let stored = blocks.filter(|block| store.ledger.has(*block)).map(|block| self.geometry.range(block));
        let mut held: Vec<Range<u64>> = stored.collect();
        held.extend(store.files.chunks_in_place(known, work)?);
        Ok(held)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests write files")]
mod tests {
    use super::*;
    use crate::policy::{Durability, Existing};
    use crate::walk::Reading;
    use crate::{ObjectStream, RootHasher, Store};
    use std::fs;
    use std::path::Path;

    fn comparing(out: &Path, object: &ObjectStream, wanted: Wanted) -> Comparing {
        let output = ComparedOutput::Directory(out.to_owned());
        let (geometry, granularity) = (object.geometry(), Granularity::Blocks);
        Comparing { output, geometry, admission: None, wanted, reuse: Vec::new(), granularity }
    }

    fn compare(comparing: &Comparing, object: &ObjectStream) -> Compared {
        let manifest = object.manifest().encode();
        comparing.compare(&Disk::default(), &manifest, &FileWork::default()).expect("it is readable")
    }

    /// Returns all paths below a directory, with their times of modification.
    fn listed(directory: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
        let (mut all, mut pending) = (Vec::new(), vec![directory.to_owned()]);
        while let Some(path) = pending.pop() {
            let about = path.symlink_metadata().expect("it is there");
            if about.is_dir() {
                pending
                    .extend(path.read_dir().expect("readable").map(|entry| entry.expect("readable").path()));
            }
            all.push((path, about.modified().expect("it has a time")));
        }
        all.sort();
        all
    }

    /// Stores these blocks. Returns the store, and the root of all blocks.
    fn store(store: &mut Store, object: &mut ObjectStream, stored: Range<u32>) -> Hash {
        let (mut hashes, mut data) = (RootHasher::new(object.geometry()), Vec::new());
        for block in 0..object.geometry().blocks().expect("files") {
            object.read_block(block, &mut data).expect("readable");
            if stored.contains(&block) {
                store.put(block, &data, hash_of(&data)).expect("room");
            }
            hashes.push(block, hash_of(&data));
        }
        hashes.root().expect("all are there")
    }

    #[test]
    fn verified_blocks_of_an_interrupted_session_are_held() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (big, out) = (dir.path().join("big"), dir.path().join("out"));
        fs::write(&big, (0..9_000_u32).map(|n| (n / 7) as u8).collect::<Vec<u8>>()).expect("room");
        let mut object = ObjectStream::open(&[big], 64, 8).expect("readable");
        let (transfer, geometry) = (object.transfer(), object.geometry());
        let first = geometry.manifest_blocks();
        let mut receiving = Store::open(&out, transfer, geometry, None).expect("opened");
        store(&mut receiving, &mut object, 0..first + 5);
        drop(receiving);
        // A block that differs from its journal does not count.
        let part = out.join(STATE_DIR).join(transfer.to_string()).join(PARTS).join("0");
        let mut content = fs::read(&part).expect("readable");
        *content.last_mut().expect("it has bytes") ^= 1;
        fs::write(&part, content).expect("room");
        let before = listed(&out);
        let compared = compare(&comparing(&out, &object, Wanted::default()), &object);
        assert_eq!(listed(&out), before);
        let held: Vec<u32> = (0..)
            .zip(&compared.missing)
            .filter(|(_, missing)| **missing == 0)
            .map(|(block, _)| block)
            .collect();
        assert_eq!(held, (first..first + 4).collect::<Vec<_>>());
        assert_eq!(compared.held_bytes, 4 * geometry.capacity());
        assert_eq!((compared.new_files, compared.changed_files, compared.deleted), (1, 0, 0));
    }

    #[test]
    fn number_of_files_to_delete_is_that_of_the_session() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (tree, out) = (dir.path().join("tree"), dir.path().join("out"));
        let make = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("it has a directory")).expect("it is made");
            fs::write(path, "text").expect("room");
        };
        ["tree/same/a", "tree/name", "tree/directory/b"].into_iter().for_each(make);
        // Two files more, a directory in place of a file with two files, a file in place of a directory, and the backup.
        ["out/tree/same/x", "out/tree/y", "out/tree/name/1", "out/tree/name/2/3", "out/tree/directory"]
            .into_iter()
            .for_each(make);
        make("out/tree/backup/old");
        let reading = Reading { extraneous: Extraneous::Delete, ..Reading::default() };
        let mut object = ObjectStream::open_with(&[tree], &reading, 64, 8).expect("readable");
        let existing = Existing::new(Extraneous::Delete, Some(out.join("tree/backup")));
        let before = listed(&out);
        let wanted = Wanted { existing: existing.clone(), ..Wanted::default() };
        let compared = compare(&comparing(&out, &object, wanted), &object);
        assert_eq!(listed(&out), before);
        assert_eq!((compared.new_files, compared.changed_files), (2, 1), "{compared:?}");
        let opened = Store::open(&out, object.transfer(), object.geometry(), None).expect("opened");
        let mut receiving = opened.treating(existing);
        let root = store(&mut receiving, &mut object, 0..u32::MAX);
        let finished = receiving.finish(&root, Durability::Fast).expect("all blocks are there");
        assert_eq!((finished.deleted, compared.deleted), (5, 5));
    }
}
