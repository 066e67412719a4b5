//! Objects of an output directory that stand in the way of received files.

use crate::apply::Wanted;
use crate::error::{ObjectError, Obstacle};
use crate::host::tree::{Absent, file_type, split};
use crate::manifest::{Entry, Kind, Manifest};
use crate::output_directory::Root;
use crate::policy::Extraneous;
use rustix::fd::BorrowedFd;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;

/// Finds obstacles to publication before any content is received. Obstacles below a directory that is made equal to the source's
/// are deleted when the files get their names.
pub(super) fn check_for_obstacles(
    place: &Root,
    manifest: &Manifest,
    wanted: &Wanted,
) -> Result<(), ObjectError> {
    let deletes = manifest.extraneous.and(wanted.existing.extraneous) == Extraneous::Delete;
    find_obstacles(place, manifest, &mut |_, (_, entry), obstacle| {
        let is_below = entry.path.as_bytes().contains(&b'/');
        if deletes && is_below {
            return Ok(());
        }
        Err(ObjectError::InTheWay { path: place.out_path.join(&entry.path), obstacle })
    })
}

/// Called with the directory and the number of an entry, and the obstacle in its place.
type Found<'a> = dyn FnMut(BorrowedFd<'_>, (u32, &Entry), Obstacle) -> Result<(), ObjectError> + 'a;

/// Calls `found` for each entry whose place is taken by an object that a renamed file cannot replace, with the directory
/// and the number of the entry. `found` may delete the object.
pub(super) fn find_obstacles(
    place: &Root,
    manifest: &Manifest,
    found: &mut Found<'_>,
) -> Result<(), ObjectError> {
    let mut tree = place.tree();
    // No obstacle can exist below an absent directory.
    let mut absent: Option<&[u8]> = None;
    for (n, entry) in (0..).zip(manifest.entries()) {
        if absent.is_some_and(|above| is_below(entry.path.as_bytes(), above)) {
            continue;
        }
        let (above, name) = split(&entry.path);
        let Some(at) = tree.dir(above, Absent::Leave)? else {
            absent = Some(tree.first_absent(above));
            continue;
        };
        let there = match file_type(at, name) {
            Ok(there) => there,
            Err(Errno::NOENT) => {
                absent = Some(entry.path.as_bytes());
                continue;
            }
            Err(e) => return Err(ObjectError::io(tree.path_of(entry), "examine it", e)),
        };
        let obstacle = match (&entry.kind, there) {
            (Kind::Dir, FileType::Directory) => continue,
            (Kind::Dir, FileType::Symlink) => Obstacle::Symlink,
            (Kind::Dir, _) => Obstacle::File,
            (_, FileType::Directory) => Obstacle::Directory,
            _ => continue,
        };
        absent = Some(entry.path.as_bytes());
        found(at, (n, entry), obstacle)?;
    }
    Ok(())
}

/// Returns whether a path is below a directory.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.first() == Some(&b'/'))
}
