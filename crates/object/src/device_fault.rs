//! Reasons why a block device cannot be sent, or cannot take content.

/// Reason why a block device cannot be sent, or cannot take content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceFault {
    /// It is no block device.
    #[error(
        "is not a block device; name a disk or a partition such as /dev/sdb, or receive into a directory"
    )]
    NotADevice,
    /// Something uses the device.
    #[error("{0}; unmount or detach it first, or choose another device")]
    InUse(DeviceUse),
    /// The device changes while it is sent.
    #[error("{0}, so it changes while it is sent; unmount it, mount it read-only, or send a snapshot")]
    Changes(DeviceUse),
    /// The device is write-protected.
    #[error("is read-only; remove the write protection, or choose another device")]
    ReadOnly,
    /// The device has no medium.
    #[error("has no size; insert a medium, or attach a file to the loop device")]
    Empty,
    /// The content does not fit.
    #[error("has {size} bytes, but the content takes {needed}; choose a larger device")]
    TooSmall {
        /// Bytes of the content.
        needed: u64,
        /// Bytes of the device.
        size: u64,
    },
    /// The content is not one file.
    #[error(
        "a device takes exactly one file, but the source sends {0}; receive into a directory, or have the image sent alone"
    )]
    NotOneFile(Files),
}

/// Content that a device does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Files {
    /// Entries of a tree.
    #[error("{0} files and directories")]
    Tree(usize),
    /// A manifest that is too long for one file.
    #[error("many files")]
    Long,
    /// A stream whose length is not known in advance.
    #[error("a stream of unknown length")]
    Stream,
}

/// A use of a block device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceUse {
    /// The device, or a partition of it, is mounted.
    #[error("is mounted at {0}")]
    Mounted(String),
    /// Pages are swapped to it.
    #[error("is used as swap space")]
    Swap,
    /// It is a part of another device.
    #[error("is a part of {0} (LVM, RAID, encryption or a mapping)")]
    Holder(String),
    /// The kernel refuses exclusive access.
    #[error("is in use by another program, or a partition of it is")]
    Other,
}
