//! Disk images from and onto block devices. The devices are loop devices.

use crate::kit::{FAIRCAST, Running, Stage, must, noise, print_line};
use faircast_testkit::{Lab, LabPlan, Offloads, require_root};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const MB: usize = 1_000_000;

/// Length of the image: 70 % data around holes.
const IMAGE: u64 = 24 * MB as u64;

/// Length of the data at the start and in the middle of the image.
const DATA: [(u64, usize); 2] = [(0, 8 * MB), (12 * MB as u64, 9 * MB)];

fn plan() -> LabPlan {
    Lab::plan().receivers(3).offloads(Offloads::Off)
}

/// A file that is attached to a loop device until the end of the test.
struct Loop {
    device: String,
    file: PathBuf,
}

impl Loop {
    /// Attaches a new file of this many bytes other than zeros.
    fn new(stage: &Stage, name: &str, size: u64) -> Loop {
        let file = stage.path(name);
        must(std::fs::write(&file, vec![0xee; size as usize]));
        Loop::of(file)
    }

    fn of(file: PathBuf) -> Loop {
        let made = must(Command::new("losetup").args(["--find", "--show"]).arg(&file).output());
        assert!(made.status.success(), "{made:?}");
        Loop { device: must(String::from_utf8(made.stdout)).trim().to_owned(), file }
    }

    /// Checks that the device begins with the content of the image, and that the bytes after the content are unchanged.
    fn assert_holds(&self, image: &Path) {
        let (written, expected) = (must(std::fs::read(&self.file)), must(std::fs::read(image)));
        let (content, rest) = written.split_at(expected.len());
        assert_eq!(blake3::hash(content), blake3::hash(&expected), "{}", self.device);
        assert!(rest.iter().all(|byte| *byte == 0xee), "{}: bytes after the content", self.device);
    }

    fn allocated(&self) -> u64 {
        must(self.file.metadata()).blocks() * 512
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        Command::new("losetup").args(["--detach", &self.device]).status().ok();
    }
}

/// Writes the image with its holes. Returns its path.
fn image(stage: &Stage) -> String {
    let file = must(File::create(stage.path("disk.img")));
    must(file.set_len(IMAGE));
    for (at, len) in DATA {
        must(file.write_all_at(&noise("image", len), at));
    }
    stage.text("disk.img")
}

/// Needs a kernel: loop devices, and a process is killed.
#[test]
fn killed_receiver_resumes_on_its_device_and_holes_are_holes() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let image = image(&stage);
    let disks: Vec<Loop> = (0..3).map(|n| Loop::new(&stage, &format!("disk{n}"), IMAGE + 4096)).collect();
    let recv = |at: usize| stage.recv(at, &format!("r{at}"), &["--out-device", &disks[at].device, "--yes"]);
    let mut receivers: Vec<Running> = (0..3).map(recv).collect();
    let source = stage.send(&[&image], &["--max", "20M", "--expect", "3"]);
    let mut victim = receivers.remove(1);
    victim.reaches(0.5, 30);
    victim.crashes();
    let back = recv(1).succeeds(60);
    let source = source.succeeds(60);
    for receiver in receivers {
        receiver.succeeds(10);
    }
    let data: usize = DATA.iter().map(|(_, len)| len).sum();
    for disk in &disks {
        disk.assert_holds(Path::new(&image));
        assert!(disk.allocated() < data as u64 + 2 * MB as u64, "{} bytes on the disk", disk.allocated());
    }
    let (kept, again) = (back.number("resumed_bytes"), back.number("refetched_bytes"));
    assert!(kept > 0.2 * data as f64 && again < 0.02 * data as f64, "{kept} kept, {again} again: {back:?}");
    let sent = source.number("packets") * 1_400.0;
    assert!(sent < 1.52 * data as f64, "{sent} bytes were sent for {data} of data: {source:?}");
    print_line(&format!(
        "device: kept {:.1} MB, sent {:.1} MB for {:.1} MB of data",
        kept / 1e6,
        sent / 1e6,
        data as f64 / 1e6
    ));
}

/// Needs a kernel: loop devices.
#[test]
fn device_is_sent_and_received_and_wrong_content_is_refused() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let (from, to) = (Loop::new(&stage, "from", 3 << 20), Loop::new(&stage, "to", 4 << 20));
    must(std::fs::write(&from.device, noise("disk", 3 << 20)));
    let unconfirmed = stage.recv(0, "r0", &["--out-device", &to.device]).ends(10);
    unconfirmed.failed(2, "add --yes");
    let no_device = stage.recv(0, "r0", &["--out-device", &stage.text("to"), "--yes"]).ends(10);
    no_device.failed(2, "is not a block device");
    let receiver = stage.recv(0, "r0", &["--out-device", &to.device, "--yes"]);
    let dry = stage.send(&[&from.device], &["--dry-run", "--expect", "1"]).succeeds(30);
    receiver.succeeds(10);
    assert!(dry.done()["dry_run"]["needed_bytes"].as_u64() > Some(3 << 20), "{dry:?}");
    assert!(must(std::fs::read(&to.file)).iter().all(|byte| *byte == 0xee), "a dry run writes nothing");
    let receiver = stage.recv(0, "r0", &["--out-device", &to.device, "--yes"]);
    let busy = stage.recv(1, "r1", &["--out-device", &to.device, "--yes"]).ends(10);
    busy.failed(2, "in use by another program");
    stage.send(&[&from.device], &["--expect", "1"]).succeeds(30);
    receiver.succeeds(10);
    to.assert_holds(&from.file);
    // A later image costs its changed chunks and the block at the place of the table.
    let disk = must(File::options().write(true).open(&from.device));
    must(disk.write_all_at(&noise("change", 10_000), 1_000_000));
    drop(disk);
    let receiver = stage.recv(0, "r0", &["--out-device", &to.device, "--yes"]);
    let dry = stage.send(&[&from.device], &["--delta", "--dry-run", "--expect", "1"]).succeeds(30);
    receiver.succeeds(10);
    assert!(dry.done()["dry_run"]["needed_bytes"].as_u64() < Some(1 << 20), "{dry:?}");
    let receiver = stage.recv(0, "r0", &["--out-device", &to.device, "--yes"]);
    let source = stage.send(&[&from.device], &["--delta", "--expect", "1"]).succeeds(30);
    let kept = receiver.succeeds(10);
    assert!(source.number("packets") * 1_400.0 < (1 << 20) as f64, "{source:?}");
    assert!(kept.number("resumed_bytes") > 2.0 * (1 << 20) as f64, "{kept:?}");
    to.assert_holds(&from.file);
    // Two files do not fit a device, and neither does a longer one.
    let (a, b) = (stage.file("a", 100_000), stage.file("b", 100_000));
    let long = stage.file("long", 5 << 20);
    for (paths, words) in
        [(&[a.as_str(), &b][..], "exactly one file"), (&[long.as_str()][..], "choose a larger device")]
    {
        let receiver = stage.recv(0, "r0", &["--out-device", &to.device, "--yes"]);
        let source = stage.send(paths, &["--join-timeout", "5", "--expect", "1"]).ends(30);
        assert_ne!(source.code, 0, "{source:?}");
        receiver.ends(10).failed(3, words);
        to.assert_holds(&from.file);
    }
}

/// Needs a kernel: pipes between programs on several hosts.
#[test]
fn compressed_image_is_piped_through_a_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("zstd") || !has("partclone.ext4") {
        return print_line("skipped: zstd or partclone is missing");
    }
    let (from, to) = (Loop::new(&stage, "from", 32 << 20), Loop::new(&stage, "to", 32 << 20));
    let (mnt, shell) = (stage.text("mnt"), |line: &str| {
        let done = must(Command::new("sh").args(["-ec", line]).output());
        assert!(done.status.success(), "{line}: {done:?}");
    });
    let file = stage.file("content", 3 * MB);
    let (a, b, group) = (&from.device, &to.device, &stage.group);
    shell(&format!("mkfs.ext4 -q {a}; mkdir {mnt}; mount {a} {mnt}; cp {file} {mnt}/content; umount {mnt}"));
    let restore = format!(
        "{FAIRCAST} recv --stdout --group {group} --join-timeout 30 | zstd -d -q | partclone.ext4 -r -L /dev/null -s - -o {b} && echo restored"
    );
    let receiver = Running::shell(stage.lab.receiver(0), &restore);
    let save = format!(
        "partclone.ext4 -c -L /dev/null -s {a} | zstd -q | {FAIRCAST} send - --name sda1.zst --no-key --group {group} --expect 1 --join-timeout 30"
    );
    let source = Running::shell(stage.lab.sender(), &save).ends(60);
    assert_eq!(source.code, 0, "{source:?}");
    let receiver = receiver.ends(30);
    assert!(receiver.stdout.contains("restored"), "{receiver:?}");
    shell(&format!("mount -o ro {b} {mnt}; cmp {file} {mnt}/content; umount {mnt}"));
}
