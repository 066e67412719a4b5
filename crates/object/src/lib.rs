//! Objects: files, directory trees and streams, each converted to one byte string (the *object stream*) that is divided into
//! blocks.
//!
//! ```text
//! object stream:   manifest ‖ content of file 1 ‖ content of file 2 ‖ ...
//! block:  data ‖ zeros ‖ u32 length of the data ‖ BLAKE3 of the data      (K symbols of T bytes)
//! ```
//!
//! The position of a block in the object stream is fixed, whatever packets are lost. A receiver can therefore store blocks in any
//! order, stop, and continue later. A source reads an [`ObjectStream`]; a receiver writes to a [`Store`] (files) or a
//! [`StreamSink`] (a pipe).
//!
//! | module | content |
//! |---|---|
//! | [`geometry`] [`block`] | positions of blocks; their trailers and hashes, and the root hash over all blocks |
//! | [`manifest`] | names, sizes, modes and times; a decoder that accepts any bytes |
//! | [`metadata`] | further metadata of files: owners and attributes, and their selection |
//! | [`names`] | treatment of names with terminal control characters |
//! | `chunking` | chunks of files, for receivers that have earlier versions |
//! | `links` | symbolic links that are followed, and links without a target at the receivers |
//! | `walk` | search for the entries below the paths that are sent |
//! | `apply` | owners, attributes and special bits that a receiver applies |
//! | [`object_stream`] [`spool`] | reading files and streams at the source |
//! | [`memory`] | files in memory instead of on a disk |
//! | [`SealedBlocks`] | blocks as they are sent; each has the same bytes at every read |
//! | `file_work` | progress of work on many files |
//! | `origin_records` | record of the transfers that an output directory has received |
//! | [`partial_transfers`] | incomplete transfers, and their deletion |
//! | [`store`] [`sink`] | writing at the receiver: resume, verification, publishing |

mod apply;
pub mod block;
mod chunking;
mod device_fault;
pub mod error;
mod file_work;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod gather;
pub mod geometry;
pub mod host;
mod journal;
mod layout;
mod links;
pub mod manifest;
pub mod memory;
pub mod metadata;
mod named_files;
pub mod names;
pub mod object_stream;
mod origin;
mod origin_records;
mod output_directory;
pub mod partial_transfers;
mod policy;
mod sealed;
pub mod sink;
pub mod spool;
pub mod store;
mod walk;
mod withdrawn;

pub use apply::Wanted;
pub use block::data_of;
pub use block::{BlockError, RootHasher, hash_of, seal_block, verify_block};
pub use chunking::Delta;
pub use device_fault::{DeviceFault, DeviceUse, Files as RefusedFiles};
pub use error::{Change, ObjectError, Obstacle};
pub use file_work::{FileWork, WorkStage};
pub use geometry::{Geometry, GeometryError, Hash, TRAILER, TransferId};
pub use host::block_device::BlockDevice;
pub use host::disk::{Disk, SYSTEM};
pub use host::replace::{replace, replace_in};
pub use host::tree::{DIR, Tree, make_directory, open_or_create_dir};
pub use journal::JournalContent;
pub use layout::Layout;
pub use links::FollowLinks;
pub use manifest::{Counts, Entry, Kind, Manifest, ManifestError, PathError};
pub use manifest::{STATE_DIR, check_path};
pub use memory::{Memory, MemoryFile};
pub use metadata::{Aspect, Attributes, MetadataError, Owner, OwnersBy, Preserve, UnknownAspect};
pub use named_files::{NamedFile, NamedFiles};
pub use names::name_by;
pub use names::{NameError, Names, UnknownNames};
pub use object_stream::{BlockRead, ObjectStream};
pub use origin::Origin;
pub use origin_records::Admission;
pub use partial_transfers::PARTS_PREFIX;
pub use policy::{Durability, Existing, Extraneous, KeepPartial, OverwritePolicy, ReplayPolicy};
pub use sealed::SealedBlocks;
pub use sink::{SinkResult, StreamSink};
pub use store::{AnyFiles, AnyStore, DeviceStore};
pub use store::{Compared, ComparedOutput, Comparing, Granularity};
pub use store::{Files, Operation, Performed, Plan};
pub use store::{Finished, Ledger, Put, SkippedLink, Store};
pub use walk::{HardLinks, Holes, LeftOut, Reading, Skipped, Unreadable};
pub use withdrawn::{Affected, Withdrawal};

#[allow(clippy::disallowed_methods, reason = "tests compare with the times of real files")]
#[cfg(test)]
mod tests;
