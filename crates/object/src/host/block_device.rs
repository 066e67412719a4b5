//! Block devices: their size, their users, and exclusive access to them.

use crate::device_fault::{DeviceFault, DeviceUse, Files};
use crate::error::ObjectError;
use rustix::fs::{OFlags, major, minor};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A block device to which this process has exclusive access for writing.
#[derive(Debug)]
pub struct BlockDevice {
    path: PathBuf,
    pub(crate) file: File,
    size: u64,
    model: Option<String>,
}

/// The purpose for which a device is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenedFor {
    Reading,
    /// Reading and writing; nothing else can mount the device.
    Writing,
}

fn opened(path: &Path, purpose: OpenedFor) -> std::io::Result<File> {
    let is_exclusive = purpose == OpenedFor::Writing;
    let exclusively = if is_exclusive { OFlags::EXCL } else { OFlags::empty() };
    let flags = (exclusively | OFlags::CLOEXEC).bits() as i32;
    File::options().read(true).write(is_exclusive).custom_flags(flags).open(path)
}

impl PartialEq for BlockDevice {
    fn eq(&self, other: &BlockDevice) -> bool {
        self.path == other.path
    }
}

impl BlockDevice {
    /// Opens a block device for writing. Until the result is dropped, nothing else can mount the device or its partitions.
    ///
    /// # Errors
    /// [`ObjectError::Device`] if it is no block device, is in use or is read-only; otherwise the error of the system.
    pub fn open(path: &Path) -> Result<BlockDevice, ObjectError> {
        let fault = |why| ObjectError::Device { path: path.to_path_buf(), why };
        let about = path.metadata().map_err(|e| ObjectError::io(path, "open this device", e))?;
        if !about.file_type().is_block_device() {
            return Err(fault(DeviceFault::NotADevice));
        }
        if let Some((user, _)) = uses(about.rdev()).into_iter().next() {
            return Err(fault(DeviceFault::InUse(user)));
        }
        let directory = sys(about.rdev());
        if read(&directory.join("ro")) == "1" {
            return Err(fault(DeviceFault::ReadOnly));
        }
        let file = opened(path, OpenedFor::Writing).map_err(|e| match e.raw_os_error() {
            Some(code) if code == Errno::BUSY.raw_os_error() => fault(DeviceFault::InUse(DeviceUse::Other)),
            _ => ObjectError::io(path, "open this device", e),
        })?;
        let opened = file.metadata().map_err(|e| ObjectError::io(path, "open this device", e))?;
        if !opened.file_type().is_block_device() || opened.rdev() != about.rdev() {
            return Err(fault(DeviceFault::NotADevice));
        }
        let size =
            len(&file, &opened).map_err(|e| ObjectError::io(path, "read the size of this device", e))?;
        if size == 0 {
            return Err(fault(DeviceFault::Empty));
        }
        let model = [directory.join("device/model"), directory.join("../device/model")];
        let model = model.iter().map(|file| read(file)).find(|text| !text.is_empty());
        // A link such as /dev/disk/by-id/... leads to a name that says which device it is.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Ok(BlockDevice { path, file, size, model })
    }

    /// Opens the device again for reading, with flags of its own.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn open_again(&self) -> Result<File, ObjectError> {
        opened(&self.path, OpenedFor::Reading).map_err(|e| ObjectError::io(&self.path, "read this device", e))
    }

    /// Returns the path of the device, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the model, if the system knows it.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the error of a stream of unknown length, which a block device does not take.
    pub fn takes_no_stream(&self) -> ObjectError {
        ObjectError::Device { path: self.path.clone(), why: DeviceFault::NotOneFile(Files::Stream) }
    }

    /// Has the kernel read the partition table again, unless the device has no partitions.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn reread_partitions(&self) -> Result<(), Errno> {
        const BLKRRPART: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 95);
        #[expect(unsafe_code, reason = "no crate offers this ioctl as a safe function; it has no argument")]
        // SAFETY: BLKRRPART takes no argument and writes no memory of this process.
        let read = unsafe { rustix::ioctl::ioctl(&self.file, rustix::ioctl::NoArg::<BLKRRPART>::new()) };
        match read {
            Err(Errno::INVAL) => Ok(()), // a partition, or a device that cannot have any
            read => read,
        }
    }
}

/// Returns the number of bytes in a file or block device.
pub(crate) fn len(mut file: &File, about: &Metadata) -> std::io::Result<u64> {
    if about.file_type().is_block_device() { file.seek(SeekFrom::End(0)) } else { Ok(about.len()) }
}

/// Checks that nobody writes to a block device that is to be sent.
///
/// # Errors
/// [`ObjectError::Device`] when it is in use, except mounted read-only.
pub(crate) fn check_source(path: &Path, about: &Metadata) -> Result<(), ObjectError> {
    let writer = uses(about.rdev()).into_iter().find(|(_, access)| *access == Access::Writable);
    match writer {
        Some((user, _)) => {
            Err(ObjectError::Device { path: path.to_path_buf(), why: DeviceFault::Changes(user) })
        }
        None => Ok(()),
    }
}

/// Whether a use may change the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadOnly,
    Writable,
}

/// Returns the uses of a block device and of its partitions.
fn uses(device: u64) -> Vec<(DeviceUse, Access)> {
    let own = sys(device);
    let mut parts = vec![own.clone()];
    let inside = own.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    parts.extend(inside.filter(|path| path.join("partition").exists()));
    let numbers: Vec<String> = parts.iter().map(|part| read(&part.join("dev"))).collect();
    let is_named = |path: &str| {
        let about = Path::new(path).metadata().ok().filter(|about| about.file_type().is_block_device());
        about.is_some_and(|about| numbers.contains(&number(about.rdev())))
    };
    let mut uses = mounts(&read(Path::new("/proc/self/mountinfo")), &numbers, is_named);
    let swaps = read(Path::new("/proc/swaps"));
    if swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(is_named) {
        uses.push((DeviceUse::Swap, Access::Writable));
    }
    let holders =
        parts.iter().flat_map(|part| part.join("holders").read_dir().into_iter().flatten().flatten());
    uses.extend(holders.map(|holder| {
        (DeviceUse::Holder(format!("/dev/{}", holder.file_name().to_string_lossy())), Access::Writable)
    }));
    uses
}

/// Returns the mounts of devices with these numbers, or with names for which `is_named` returns true, from
/// `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).
fn mounts(mountinfo: &str, numbers: &[String], is_named: impl Fn(&str) -> bool) -> Vec<(DeviceUse, Access)> {
    let of_line = |line: &str| {
        let (place, filesystem) = line.split_once(" - ")?;
        let place: Vec<&str> = place.split(' ').collect();
        let mut filesystem = filesystem.split(' ').skip(1);
        let (device, options) = (filesystem.next()?, filesystem.next()?);
        // btrfs has numbers of its own, so the name of the device counts too.
        if !numbers.iter().any(|number| number == place.get(2).unwrap_or(&"")) && !is_named(device) {
            return None;
        }
        let is_writable = options.split(',').any(|option| option == "rw");
        let access = if is_writable { Access::Writable } else { Access::ReadOnly };
        Some((DeviceUse::Mounted((*place.get(4)?).to_owned()), access))
    };
    mountinfo.lines().filter_map(of_line).collect()
}

/// Returns the directory of a device in `/sys`.
fn sys(device: u64) -> PathBuf {
    Path::new("/sys/dev/block").join(number(device))
}

fn number(device: u64) -> String {
    format!("{}:{}", major(device), minor(device))
}

/// Returns the text of a file of the kernel; "" if it does not exist.
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
40 22 7:4 / /mnt/image ro,relatime - ext4 /dev/loop4 ro,noload\n\
41 22 0:44 /@ /mnt/tree rw shared:7 master:3 - btrfs /dev/sdc1 rw,space_cache\n\
a damaged line\n";

    #[test]
    fn mounts_are_found_by_number_and_by_name() {
        let of = |numbers: &[&str], name: &str| {
            let numbers: Vec<String> = numbers.iter().map(|number| (*number).to_owned()).collect();
            mounts(MOUNTINFO, &numbers, |path| path == name)
        };
        let mounted = |at: &str| DeviceUse::Mounted(at.to_owned());
        assert_eq!(of(&["7:4"], ""), [(mounted("/mnt/image"), Access::ReadOnly)]);
        assert_eq!(of(&["259:2", "259:3"], ""), [(mounted("/"), Access::Writable)]);
        assert_eq!(of(&["8:33"], "/dev/sdc1"), [(mounted("/mnt/tree"), Access::Writable)]);
        assert_eq!(of(&["8:1"], "/dev/sda1"), []);
    }

    #[test]
    fn only_block_devices_are_opened() {
        for path in ["/dev/null", "/etc", "/proc/self/stat"] {
            let error = BlockDevice::open(Path::new(path)).expect_err("no block device");
            assert!(matches!(error, ObjectError::Device { why: DeviceFault::NotADevice, .. }), "{error}");
        }
        let missing = BlockDevice::open(Path::new("/dev/does-not-exist"));
        assert!(matches!(missing, Err(ObjectError::NotFound { .. })));
    }
}
