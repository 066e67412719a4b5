//! Owners, attributes, and set-user-ID, set-group-ID and sticky bits of received files. They are applied if the receiver wants
//! them and has the permission.
//!
//! A failure in this module does not fail a transfer, because the file content is complete. The failures are counted and
//! reported.

use super::manifest::{Entry, PERMISSIONS};
use super::metadata::{Aspect, Attributes, Owner, OwnersBy, Preserve};
use super::names::shown;
use super::walk::read_attributes;
use crate::host::disk::Disk;
use crate::policy::Existing;
use nix::unistd::{Group, User, geteuid};
use rustix::fd::AsFd;
use rustix::fs::{Gid, Mode, Stat, Uid, fgetxattr, flistxattr};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::sync::Arc;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// Wishes of a receiver: metadata that is applied to files in addition to names, permission bits, times and hard links, and the
/// treatment of existing files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The kinds of metadata.
    pub preserve: Preserve,
    /// Whether owners are looked up by name or taken as numbers.
    pub owners_by: OwnersBy,
    /// Treatment of existing files.
    pub existing: Existing,
}

/// Applies metadata to files.
pub(super) struct Apply<'a> {
    disk: &'a Disk,
    wanted: &'a Wanted,
    /// IDs of owners on this host.
    ids: BTreeMap<Arc<Owner>, Ids>,
    owners: Tally,
    special: Tally,
    unwanted_special: Tally,
    acls: Tally,
    attributes: Tally,
    pub(super) copies: Tally,
}

/// A user and a group of this host.
type Ids = (u32, u32);

/// Number of entries with one kind of problem, and the first of these entries.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    first: Option<(String, Option<Errno>)>,
}

impl Tally {
    pub(super) fn add(&mut self, entry: &Entry, why: Option<Errno>) {
        self.add_path(&entry.path, why);
    }

    pub(super) fn add_path(&mut self, path: &OsStr, why: Option<Errno>) {
        self.count += 1;
        self.first.get_or_insert_with(|| (shown(path).into_owned(), why));
    }

    pub(super) fn words(&self, what: impl fmt::Display) -> Option<String> {
        let (first, why) = self.first.as_ref()?;
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        let others = match self.count {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        Some(format!("{first}{why}{others}: {what}"))
    }
}

impl<'a> Apply<'a> {
    pub(super) fn new(wanted: &'a Wanted, disk: &'a Disk) -> Apply<'a> {
        Apply {
            disk,
            wanted,
            ids: BTreeMap::new(),
            owners: Tally::default(),
            special: Tally::default(),
            unwanted_special: Tally::default(),
            acls: Tally::default(),
            attributes: Tally::default(),
            copies: Tally::default(),
        }
    }

    /// Applies owner and attributes to an open file or directory. Call it before setting the mode, because a change of owner
    /// clears the set-user-ID and set-group-ID bits.
    pub(super) fn give(&mut self, fd: impl AsFd, entry: &Entry) {
        let fd = fd.as_fd();
        if let Some((uid, gid)) = self.owner_of(entry) {
            let both = self.disk.fchown(fd, Some(uid), Some(gid));
            // An unprivileged user can still set the group of an own file to another group of that user.
            if let Err(e) = both.or_else(|e| self.disk.fchown(fd, None, Some(gid)).and(Err(e))) {
                self.owners.add(entry, Some(e));
            }
        }
        if let Some(attributes) = &entry.attributes {
            self.set_attributes(fd, entry, attributes);
        }
    }

    /// Applies the owner of `entry` to the symbolic link `name` in `dir`, which was just created.
    pub(super) fn give_link(&mut self, dir: impl AsFd, name: &str, entry: &Entry) {
        if let Some((uid, gid)) = self.owner_of(entry)
            && let Err(e) = self.disk.chownat(dir, name, Some(uid), Some(gid))
        {
            self.owners.add(entry, Some(e));
        }
    }

    /// Returns the mode for the file of an entry. The set-user-ID (set-group-ID) bit remains only if the receiver wants it and
    /// the file has the user (group) that the entry states. Otherwise the bit would grant the rights of another user or group.
    pub(super) fn mode(&mut self, entry: &Entry, stat: impl FnOnce() -> Result<Stat, Errno>) -> Mode {
        let mut bits = entry.mode;
        if bits & !PERMISSIONS != 0 && !self.wanted.preserve.has(Aspect::Setid) {
            self.unwanted_special.add(entry, None);
            bits &= PERMISSIONS;
        }
        if bits & (SETUID | SETGID) != 0 {
            let (uid, gid) = match (&entry.owner, stat()) {
                (Some(owner), Ok(stat)) => {
                    let (uid, gid) = self.ids(owner);
                    (stat.st_uid == uid, stat.st_gid == gid)
                }
                _ => (false, false),
            };
            let lost = if uid { 0 } else { SETUID } | if gid { 0 } else { SETGID };
            if bits & lost != 0 {
                self.special.add(entry, None);
            }
            bits &= !lost;
        }
        Mode::from_raw_mode(bits)
    }

    /// Returns whether an existing file has the owner that a new file would have, or can get the owner of its entry.
    pub(super) fn may_keep_owner(&self, stat: &Stat) -> bool {
        let user = geteuid();
        stat.st_uid == user.as_raw() || user.is_root() && self.wanted.preserve.has(Aspect::Owner)
    }

    /// Returns whether an existing file has the owner that the receiver wants for this entry.
    pub(super) fn has_owner(&mut self, entry: &Entry, stat: &Stat) -> bool {
        self.owner_of(entry)
            .is_none_or(|(uid, gid)| (uid.as_raw(), gid.as_raw()) == (stat.st_uid, stat.st_gid))
    }

    /// Returns whether an existing file has exactly the attributes of an entry, among those that the receiver wants.
    pub(super) fn has_attributes(&self, entry: &Entry, file: io::Result<impl AsFd>) -> bool {
        let preserve = &self.wanted.preserve;
        let Ok(file) = file else { return false };
        let list = |list: &mut [u8]| flistxattr(&file, list);
        let found = read_attributes(preserve, list, |name, value| fgetxattr(&file, name, value));
        let listed = entry.attributes.iter().flat_map(|set| set.all());
        match found {
            Ok(found) => found.iter().eq(listed.filter(|(name, _)| preserve.has_attribute(name))),
            Err(Errno::OPNOTSUPP) => true,
            Err(_) => false,
        }
    }

    /// Returns whether the receiver wants attributes of files.
    pub(super) fn wants_attributes(&self) -> bool {
        self.wanted.preserve.has_attributes()
    }

    /// Returns whether symbolic links that lead out of the output directory are also made.
    pub(super) fn wants_all_links(&self) -> bool {
        self.wanted.preserve.has(Aspect::Links)
    }

    fn owner_of(&mut self, entry: &Entry) -> Option<(Uid, Gid)> {
        let owner = entry.owner.as_ref().filter(|_| self.wanted.preserve.has(Aspect::Owner))?;
        let (uid, gid) = self.ids(owner);
        Some((Uid::from_raw(uid), Gid::from_raw(gid)))
    }

    /// Returns the user ID and group ID of the owner on this host. Each owner is looked up only once.
    fn ids(&mut self, owner: &Arc<Owner>) -> Ids {
        let by = self.wanted.owners_by;
        *self.ids.entry(Arc::clone(owner)).or_insert_with(|| here(owner, by))
    }

    fn set_attributes(&mut self, fd: impl AsFd, entry: &Entry, attributes: &Attributes) {
        for (name, value) in attributes.all() {
            if !self.wanted.preserve.has_attribute(name) {
                continue;
            }
            if let Err(e) = self.disk.fsetxattr(&fd, name.as_str(), value) {
                let is_acl = Aspect::of_attribute(name) == Some(Aspect::Acls);
                let tally = if is_acl { &mut self.acls } else { &mut self.attributes };
                tally.add(entry, Some(e));
            }
        }
    }

    /// Describes the metadata that could not be applied.
    pub(super) fn reported(&self) -> Vec<String> {
        let owner = "owner and group differ from those at the source; only root with CAP_CHOWN (a service may lack it) can set any owner, and other users only their own groups";
        let lines = [
            self.owners.words(owner),
            self.special.words("set-user-ID or set-group-ID left out, because the file has another owner; preserve the owner too, as root"),
            self.unwanted_special.words("set-user-ID, set-group-ID or sticky bits left out; preserve setid to apply them"),
            self.acls.words("without the access control list"),
            self.attributes.words("without all extended attributes"),
            self.copies.words("a copy instead of a hard link"),
        ];
        lines.into_iter().flatten().collect()
    }
}

/// Returns the user ID and group ID of an owner on this host: by name if this host has the name, otherwise by number.
fn here(owner: &Owner, by: OwnersBy) -> Ids {
    let is_named = |name: &str| by == OwnersBy::Name && !name.is_empty();
    let user = is_named(&owner.user).then(|| User::from_name(&owner.user).ok().flatten()).flatten();
    let group = is_named(&owner.group).then(|| Group::from_name(&owner.group).ok().flatten()).flatten();
    (user.map_or(owner.uid, |user| user.uid.as_raw()), group.map_or(owner.gid, |group| group.gid.as_raw()))
}
