//! Block devices as source and destination. The tests attach files to loop devices, which takes root.

use super::sparse::{sent_blocks, sparse_file, sparse_object};
use super::*;
use crate::device_fault::{DeviceFault, DeviceUse, Files};
use crate::file_work::FileWork;
use crate::host::block_device::BlockDevice;
use crate::store::DeviceStore;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// A file that is attached to a loop device until the end of the test.
struct Loop(PathBuf);

impl Loop {
    /// Attaches a file; `None` if this user or this host cannot.
    fn of(file: &Path, more: &[&str]) -> Option<Loop> {
        if !is_root() {
            eprintln!("skipped: attaching a file to a loop device takes root");
            return None;
        }
        let made = Command::new("losetup").args(["--find", "--show"]).args(more).arg(file).output();
        let made = made.ok().filter(|made| made.status.success());
        let Some(made) = made else {
            eprintln!("skipped: losetup cannot attach a file");
            return None;
        };
        Some(Loop(String::from_utf8(made.stdout).expect("a path").trim().into()))
    }

    /// Attaches a new file of this many bytes, with other bytes than zeros.
    fn new(at: &Scratch, name: &str, size: u64) -> Option<Loop> {
        Loop::of(&at.file(name, &vec![0xee; size as usize]), &[])
    }

    /// Opens the device. A process that another test is starting may hold the former file of the device until it executes its
    /// program.
    fn open(&self) -> Arc<BlockDevice> {
        let mut opened = BlockDevice::open(&self.0);
        for _ in 0..200 {
            match opened {
                Err(ObjectError::Device { why: DeviceFault::InUse(DeviceUse::Other), .. }) => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    opened = BlockDevice::open(&self.0);
                }
                _ => break,
            }
        }
        Arc::new(opened.expect("nobody uses it"))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        Command::new("losetup").arg("--detach").arg(&self.0).status().ok();
    }
}

/// Returns a disk of 16 MiB with a partition table (MBR) of these partitions: first sector and number of sectors.
fn with_partitions(partitions: &[(u32, u32)]) -> Vec<u8> {
    let mut disk = vec![0; 16 << 20];
    for (at, (first, sectors)) in (446..).step_by(16).zip(partitions) {
        disk[at + 4] = 0x83;
        disk[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
        disk[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    }
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk
}

fn fault(error: ObjectError) -> DeviceFault {
    match error {
        ObjectError::Device { why, .. } => why,
        other => panic!("{other}"),
    }
}

fn begin(device: &Arc<BlockDevice>, object: &ObjectStream) -> DeviceStore {
    let disk = Disk::default();
    let begun = DeviceStore::begin(&disk, device, object.transfer(), object.geometry());
    let (mut store, reported) = begun.expect("it fits");
    if let Some(reported) = reported {
        store.go_on(reported, &FileWork::default()).expect("verified");
    }
    store
}

/// Passes a block to a store on a device, which takes over what the device has once the manifest is known. Returns whether the
/// store takes the block now.
fn put(store: &mut DeviceStore, index: u32, data: &[u8], hash: Hash) -> bool {
    let mut next = match store.ledger.plan(index, data.to_vec(), hash).expect("planned") {
        Plan::Write(operation) => Some(operation),
        Plan::AlreadyHad(_) => None,
        Plan::NeedsManifest(_) => return false,
    };
    while let Some(operation) = next {
        next = store.ledger.settle(store.files.perform(operation).expect("performed"));
    }
    if store.ledger.manifest().is_some() && store.ledger.may_adopt() {
        store.adopt(&FileWork::default()).expect("read");
    }
    true
}

#[test]
fn image_with_holes_arrives_on_a_device() {
    let at = Scratch::new();
    let Some(target) = Loop::new(&at, "target", 4 * MIB) else { return };
    let image = sparse_file(&at, "disk.img", 3 * MIB + 77, &[0..9_000, MIB..MIB + 40_000]);
    let mut object = sparse_object(&image);
    let (sent, all) = (sent_blocks(&mut object), blocks(&mut object));
    let mut store = begin(&target.open(), &object);
    // Blocks arrive in reverse order after the manifest.
    let manifest = object.geometry().manifest_blocks() as usize;
    for (index, data, hash) in sent[..manifest].iter().chain(sent[manifest..].iter().rev()) {
        assert!(put(&mut store, *index, data, *hash), "block {index}");
    }
    assert!(store.ledger.is_complete(), "{:?}", store.ledger.missing());
    let finished = store.finish_as(&root(object.geometry(), &all), &FileWork::default()).expect("written");
    assert_eq!((finished.entries.files, finished.bytes), (1, 3 * MIB + 77));
    let expected = fs::read(&image).expect("there");
    let written = fs::read(at.path("target")).expect("there");
    assert!(written[..expected.len()] == expected, "the content");
    assert!(
        written[expected.len()..].iter().all(|byte| *byte == 0xee),
        "bytes after the content are unchanged"
    );
    let allocated = at.path("target").metadata().expect("there").blocks() * 512;
    assert!(allocated < 2 * MIB, "holes are holes: {allocated} bytes");
}

/// Returns the number of pages of a part of a device that are in the page cache.
fn cached_pages(device: &Path, part: std::ops::Range<u64>) -> usize {
    let file = fs::File::open(device).expect("readable");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).expect("no read-ahead");
    let mut byte = [0];
    let mut is_cached = |at: &u64| {
        let nowait = rustix::io::ReadWriteFlags::NOWAIT;
        rustix::io::preadv2(&file, &mut [std::io::IoSliceMut::new(&mut byte)], *at, nowait).is_ok()
    };
    part.step_by(4096).filter(|at| is_cached(at)).count()
}

#[test]
fn devices_are_read_and_written_past_the_page_cache() {
    let at = Scratch::new();
    let image = at.file("from", &content(12 << 20, 3));
    let Some(from) = Loop::of(&image, &[]) else { return };
    let Some(target) = Loop::new(&at, "target", 12 * MIB) else { return };
    let mut object = ObjectStream::open(std::slice::from_ref(&from.0), 1_000, 100).expect("nobody uses it");
    let all = blocks(&mut object);
    let mut store = begin(&target.open(), &object);
    for (index, (data, hash)) in (0..).zip(&all) {
        assert!(put(&mut store, index, data, *hash));
    }
    let has_arrived = |part: std::ops::Range<usize>| {
        fs::read(at.path("target")).expect("there")[part.clone()] == fs::read(&image).expect("there")[part]
    };
    assert!(has_arrived(1 << 20..3 << 20), "it is written meanwhile");
    let cached = |device: &Loop| cached_pages(&device.0, MIB..3 * MIB);
    assert!(cached(&from) < 64 && cached(&target) < 64, "of 512: {}, {}", cached(&from), cached(&target));
    store.finish_as(&root(object.geometry(), &all), &FileWork::default()).expect("written");
    drop(store);
    assert!(has_arrived(0..12 << 20));
}

#[test]
fn restarted_machine_resumes_from_what_its_device_holds() {
    let at = Scratch::new();
    let Some(target) = Loop::new(&at, "target", 2 * MIB) else { return };
    let image = at.file("disk.img", &content(MIB as usize, 3));
    let mut object = object(&image);
    let all = blocks(&mut object);
    let half = all.len() / 2;
    let mut store = begin(&target.open(), &object);
    for (index, (data, hash)) in (0..).zip(&all[..half]) {
        assert!(put(&mut store, index, data, *hash));
    }
    // Blocks in the place of the table are lost with the memory of the machine.
    let last = all.len() as u32 - 1;
    assert!(put(&mut store, last, &all[last as usize].0, all[last as usize].1));
    drop(store);
    // A block is damaged meanwhile.
    let damaged = 10u64 * CAPACITY as u64;
    let file = fs::File::options().write(true).open(&target.0).expect("root may write");
    file.write_all_at(&[0x11; 4], damaged).expect("written");
    drop(file);
    let mut store = begin(&target.open(), &object);
    assert_eq!(
        store.ledger.resumed_blocks() as usize,
        half - 2,
        "all but the manifest and the damaged block"
    );
    assert!(!store.ledger.has(last) && store.ledger.spoiled_bytes() == CAPACITY as u64);
    for (index, (data, hash)) in (0..).zip(&all) {
        assert!(put(&mut store, index, data, *hash));
    }
    store.finish_as(&root(object.geometry(), &all), &FileWork::default()).expect("written");
    drop(store);
    let written = fs::read(at.path("target")).expect("there");
    assert!(written[..MIB as usize] == fs::read(&image).expect("there"));
    // The next transfer begins from nothing, because the table has been overwritten.
    assert_eq!(begin(&target.open(), &object).ledger.resumed_blocks(), 0);
}

#[test]
fn table_of_another_transfer_is_not_taken_for_the_own_one() {
    let at = Scratch::new();
    let Some(target) = Loop::new(&at, "target", 2 * MIB) else { return };
    let first = object(&at.file("first.img", &content(MIB as usize, 3)));
    let second = object(&at.file("other.img", &content(MIB as usize, 4)));
    for (mut object, keep) in [(first, 100), (second, 10)] {
        let all = blocks(&mut object);
        let mut store = begin(&target.open(), &object);
        assert_eq!(store.ledger.resumed_blocks(), 0);
        for (index, (data, hash)) in (0..).zip(&all[..keep]) {
            assert!(put(&mut store, index, data, *hash));
        }
        drop(store);
        assert_eq!(begin(&target.open(), &object).ledger.resumed_blocks() as usize, keep - 1);
    }
}

#[test]
fn contradiction_starts_the_device_over() {
    let at = Scratch::new();
    let Some(target) = Loop::new(&at, "target", 2 * MIB) else { return };
    let mut object = object(&at.file("disk.img", &content(MIB as usize, 3)));
    let all = blocks(&mut object);
    let mut store = begin(&target.open(), &object);
    for (index, (data, hash)) in (0..).zip(&all[..50]) {
        assert!(put(&mut store, index, data, *hash));
    }
    store.give_up(&ObjectError::Conflict { index: 7 }).expect("the device can be written");
    assert_eq!((store.ledger.blocks_stored(), store.files.warnings.len()), (0, 1));
    drop(store);
    assert_eq!(begin(&target.open(), &object).ledger.resumed_blocks(), 0);
}

#[test]
fn device_refuses_content_that_is_too_long_or_a_tree() {
    let at = Scratch::new();
    let Some(target) = Loop::new(&at, "target", 64 << 10) else { return };
    let long = object(&at.file("long.img", &content(65_537, 1)));
    let device = target.open();
    let begun = DeviceStore::begin(&Disk::default(), &device, long.transfer(), long.geometry());
    let needed = DeviceFault::TooSmall { needed: 65_537, size: 65_536 };
    assert_eq!(fault(begun.expect_err("it does not fit")), needed);
    at.file("tree/a", &content(3_000, 1));
    at.file("tree/b", &content(3_000, 1));
    let mut tree = object(&at.path("tree"));
    let all = blocks(&mut tree);
    let mut store = begin(&device, &tree);
    let refused = (0..).zip(&all).find_map(|(index, (data, hash))| {
        let Plan::Write(operation) = store.ledger.plan(index, data.clone(), *hash).expect("planned") else {
            return None;
        };
        let learn = store.ledger.settle(store.files.perform(operation).expect("in memory"))?;
        store.files.perform(learn).err()
    });
    assert_eq!(fault(refused.expect("a tree")), DeviceFault::NotOneFile(Files::Tree(3)));
    assert!(fs::read(at.path("target")).expect("there").iter().all(|byte| *byte == 0xee), "unchanged");
}

#[test]
fn device_in_use_or_write_protected_is_refused() {
    let at = Scratch::new();
    let image = at.file("fs", &vec![0; 8 << 20]);
    let Some(target) = Loop::of(&image, &[]) else { return };
    let first = BlockDevice::open(&target.0).expect("free");
    let second = BlockDevice::open(&target.0).expect_err("exclusive");
    assert_eq!(fault(second), DeviceFault::InUse(DeviceUse::Other));
    drop(first);
    // A link leads to the device.
    symlink(&target.0, at.path("by-id")).expect("linked");
    assert_eq!(BlockDevice::open(&at.path("by-id")).expect("free").path(), target.0);
    let mkfs = Command::new("mkfs.ext4").arg("-q").arg(&target.0).status();
    if !mkfs.is_ok_and(|made| made.success()) {
        return eprintln!("skipped: mkfs.ext4 is missing");
    }
    fs::create_dir(at.path("mnt")).expect("made");
    let mount = |more: &[&str]| {
        Command::new("mount").args(more).args([&target.0, &at.path("mnt")]).status().expect("mount").success()
    };
    let umount = || Command::new("umount").arg(at.path("mnt")).status().expect("umount").success();
    assert!(mount(&[]));
    let (opened, sent) =
        (BlockDevice::open(&target.0), ObjectStream::open(std::slice::from_ref(&target.0), T, K));
    assert!(umount());
    let mounted = || DeviceUse::Mounted(at.path("mnt").display().to_string());
    assert_eq!(fault(opened.expect_err("mounted")), DeviceFault::InUse(mounted()));
    assert_eq!(fault(sent.expect_err("it changes")), DeviceFault::Changes(mounted()));
    assert!(mount(&["-o", "ro"]));
    let (opened, sent) =
        (BlockDevice::open(&target.0), ObjectStream::open(std::slice::from_ref(&target.0), T, K));
    assert!(umount());
    assert!(opened.is_err() && sent.is_ok(), "a device that is mounted read-only does not change");
    drop(target);
    let Some(protected) = Loop::of(&image, &["--read-only"]) else { return };
    assert_eq!(fault(BlockDevice::open(&protected.0).expect_err("protected")), DeviceFault::ReadOnly);
}

#[test]
fn disk_with_a_mounted_partition_is_refused() {
    let at = Scratch::new();
    let image = at.file("disk", &with_partitions(&[(2_048, 16_384), (18_432, 8_192)]));
    let Some(disk) = Loop::of(&image, &["--partscan"]) else { return };
    let part = |n: u8| PathBuf::from(format!("{}p{n}", disk.0.display()));
    if !part(1).exists() || !part(2).exists() {
        return eprintln!("skipped: this host has no partitions on loop devices");
    }
    assert!(Command::new("mkfs.ext4").arg("-q").arg(part(1)).status().is_ok_and(|made| made.success()));
    fs::create_dir(at.path("mnt")).expect("made");
    assert!(Command::new("mount").arg(part(1)).arg(at.path("mnt")).status().expect("mount").success());
    let (whole, own, other) =
        (BlockDevice::open(&disk.0), BlockDevice::open(&part(1)), BlockDevice::open(&part(2)));
    let sent = ObjectStream::open(std::slice::from_ref(&disk.0), T, K);
    assert!(Command::new("umount").arg(at.path("mnt")).status().expect("umount").success());
    let mounted = DeviceUse::Mounted(at.path("mnt").display().to_string());
    assert_eq!(fault(whole.expect_err("a partition is mounted")), DeviceFault::InUse(mounted.clone()));
    assert_eq!(fault(own.expect_err("mounted")), DeviceFault::InUse(mounted.clone()));
    assert!(other.is_ok(), "the other partition is free");
    assert_eq!(fault(sent.expect_err("it changes")), DeviceFault::Changes(mounted));
}

#[test]
fn device_is_sent_as_one_file_and_its_changes_are_noticed() {
    let at = Scratch::new();
    let Some(disk) = Loop::new(&at, "disk", MIB) else { return };
    let name = disk.0.file_name().expect("it has a name").to_owned();
    let mut object = object(&disk.0);
    let [entry] = object.manifest().entries() else { panic!("one file") };
    assert_eq!((&entry.path, entry.size()), (&name, MIB));
    let all = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    put_all(&mut store, &all);
    store.finish(&root(object.geometry(), &all), Durability::Fast).expect("it arrives");
    assert!(
        fs::read(at.path("out").join(&name)).expect("there") == fs::read(at.path("disk")).expect("there")
    );
    let file = fs::File::options().write(true).open(&disk.0).expect("root may write");
    file.write_all_at(&[0x11], 5).expect("written");
    let again = object.read_block(1, &mut Vec::new());
    assert!(matches!(again, Err(ObjectError::Changed { change: Change::Modified, .. })), "{again:?}");
}

/// A device that holds an earlier version of the content keeps the unchanged chunks, and lacks only the other symbols.
#[test]
fn device_keeps_unchanged_chunks_of_an_earlier_image() {
    let at = Scratch::new();
    let Some(target) = Loop::new(&at, "target", 4 * MIB) else { return };
    let old = content(3 << 20, 5);
    let mut new = old.clone();
    new[1_000_000..1_000_100].fill(7);
    fs::File::options()
        .write(true)
        .open(at.path("target"))
        .and_then(|file| file.write_all_at(&old, 0))
        .expect("written");
    let image = at.file("disk.img", &new);
    let reading = Reading { delta: Delta::On, ..Reading::default() };
    let mut object = ObjectStream::open_with(&[image], &reading, 1_000, 100).expect("readable");
    let all = blocks(&mut object);
    let mut store = begin(&target.open(), &object);
    assert!(store.ledger.may_adopt(), "the device may hold something");
    let manifest = object.geometry().manifest_blocks();
    for (index, (data, hash)) in (0..manifest).zip(&all) {
        assert!(put(&mut store, index, data, *hash));
    }
    let seeds = store.take_seeds().expect("parts of a block are there");
    let missing: Vec<u32> = store.ledger.missing().into_iter().flatten().collect();
    // The changed chunk, and the blocks at the end of the content, where the table is.
    let changed = object.geometry().block_of(u64::from(object.geometry().manifest_len) + 1_000_000);
    let last = object.geometry().blocks().expect("known") - 1;
    assert_eq!(missing, [changed, last], "of {last}");
    assert!(seeds.symbols() > 50, "{} of 100 symbols of the changed block", seeds.symbols());
    for index in missing {
        let (data, hash) = &all[index as usize];
        assert!(put(&mut store, index, data, *hash));
    }
    assert!(store.ledger.is_complete());
    store.finish_as(&root(object.geometry(), &all), &FileWork::default()).expect("written");
    drop(store);
    let written = fs::read(at.path("target")).expect("there");
    assert!(written[..new.len()] == new && written[new.len()..].iter().all(|byte| *byte == 0xee));
}

/// Blocks arrive while blocks of an earlier receiver are verified. A recorded block that arrives replaces the stored one. A block
/// that differs from its record is missing.
#[test]
fn device_takes_blocks_while_it_verifies_others() {
    let at = Scratch::new();
    let Some(target) = Loop::new(&at, "target", 4 * MIB) else { return };
    let image = at.file("disk.img", &content(3 << 20, 6));
    let mut object = ObjectStream::open(&[image], 1_000, 100).expect("readable");
    let all = blocks(&mut object);
    let (first, last) = (object.geometry().manifest_blocks(), all.len() as u32 - 1);
    let mut earlier = begin(&target.open(), &object);
    for (index, (data, hash)) in (0..10).zip(&all) {
        assert!(put(&mut earlier, index, data, *hash));
    }
    drop(earlier);
    let place = object.geometry().range(first + 3).start - u64::from(object.geometry().manifest_len);
    let file = fs::File::options().write(true).open(at.path("target")).expect("there");
    file.write_all_at(b"changed", place + 5).expect("written");

    let disk = Disk::default();
    let begun = DeviceStore::begin(&disk, &target.open(), object.transfer(), object.geometry());
    let (mut store, reported) = begun.expect("it fits");
    store.claim(reported.expect("the device has a table"));
    for (index, (data, hash)) in (0..first).zip(&all) {
        assert!(put(&mut store, index, data, *hash));
    }
    let claimed: Vec<u32> = (0..=last).filter(|block| store.ledger.is_claimed(*block)).collect();
    assert_eq!(claimed, (first..10).collect::<Vec<u32>>());
    let mut from = 0;
    while let Some((block, operation)) = store.ledger.verification(from) {
        let arriving = last - 1 - block;
        assert!(put(&mut store, arriving, &all[arriving as usize].0, all[arriving as usize].1));
        if block == first + 1 {
            assert!(put(&mut store, block, &all[block as usize].0, all[block as usize].1), "it arrives too");
        }
        assert!(store.ledger.settle(store.files.perform(operation).expect("read")).is_none());
        from = block + 1;
    }
    assert_eq!((store.ledger.verifying(), store.ledger.has(first + 3)), (None, false));
    let bytes = |blocks: u64| blocks * u64::from(object.geometry().block_len(first + 3));
    assert_eq!(
        (store.ledger.resumed_bytes(), store.ledger.spoiled_bytes()),
        (bytes(u64::from(8 - first)), bytes(1))
    );
    for (index, (data, hash)) in (0..).zip(&all) {
        assert!(put(&mut store, index, data, *hash));
    }
    assert!(store.ledger.is_complete());
    store.finish_as(&root(object.geometry(), &all), &FileWork::default()).expect("written");
}
