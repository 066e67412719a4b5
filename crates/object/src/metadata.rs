//! Metadata of files beyond names, permission bits and times: owners and attributes, and the selection of metadata.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Maximum number of owners in a manifest. A receiver may look up each owner by name.
pub const MAX_OWNERS: usize = 4_096;
/// Maximum number of different sets of attributes of a manifest.
pub const MAX_ATTRIBUTE_SETS: usize = 65_536;
/// Maximum number of attributes of a file.
pub const MAX_NAMES: usize = 256;
/// Maximum length of the name of an attribute, user or group, in bytes (for attributes, the limit of Linux).
pub const MAX_NAME: usize = 255;
/// Maximum length of the value of an attribute, in bytes (the limit of Linux).
pub const MAX_VALUE: usize = 65_536;
/// Maximum number of bytes of all names and values of a file's attributes.
pub const MAX_SET: usize = 2 * MAX_VALUE;

/// The attribute in which Linux stores a file's access control list.
pub const ACCESS_ACL: &str = "system.posix_acl_access";
/// The attribute in which Linux stores the access control list that new files in a directory get.
pub const DEFAULT_ACL: &str = "system.posix_acl_default";

/// Metadata that a source sends or a receiver applies, beyond names, permission bits, times and hard links.
///
/// As text, a selection is a list of names separated by commas, or `all`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preserve(BTreeSet<Aspect>);

/// A kind of metadata that can be selected with [`Preserve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Owner and group.
    Owner,
    /// Set-user-ID, set-group-ID and sticky bits. A receiver sets the set-user-ID (set-group-ID) bit only if the file has the
    /// same user (group) as at the source.
    Setid,
    /// POSIX access control lists.
    Acls,
    /// Extended attributes of users (`user.*`).
    Xattrs,
    /// Extended attributes that only root can set (`trusted.*`, and `security.*` such as capabilities).
    Privileged,
    /// Symbolic links that lead out of the output directory, and links with an absolute target. Only receivers use this aspect.
    Links,
}

const ASPECTS: [(&str, Aspect); 6] = [
    ("owner", Aspect::Owner),
    ("setid", Aspect::Setid),
    ("acls", Aspect::Acls),
    ("xattrs", Aspect::Xattrs),
    ("privileged", Aspect::Privileged),
    ("links", Aspect::Links),
];

/// An unknown name of metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" cannot be preserved; use owner, setid, acls, xattrs, privileged, links, and all")]
pub struct UnknownAspect(pub String);

impl Preserve {
    /// Returns an empty selection: only metadata that is always preserved.
    #[must_use]
    pub fn nothing() -> Preserve {
        Preserve::default()
    }

    /// Returns all kinds of metadata.
    #[must_use]
    pub fn everything() -> Preserve {
        Preserve(ASPECTS.into_iter().map(|(_, aspect)| aspect).collect())
    }

    /// Adds a kind of metadata.
    #[must_use]
    pub fn and(mut self, aspect: Aspect) -> Preserve {
        self.0.insert(aspect);
        self
    }

    /// Returns whether this kind is selected.
    #[must_use]
    pub fn has(&self, aspect: Aspect) -> bool {
        self.0.contains(&aspect)
    }

    /// Returns whether no kind is selected.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether attributes of any names are selected.
    pub(super) fn has_attributes(&self) -> bool {
        [Aspect::Acls, Aspect::Xattrs, Aspect::Privileged].into_iter().any(|aspect| self.has(aspect))
    }

    /// Returns whether attributes of this name are selected.
    pub(super) fn has_attribute(&self, name: &str) -> bool {
        Aspect::of_attribute(name).is_some_and(|aspect| self.has(aspect))
    }
}

impl FromStr for Preserve {
    type Err = UnknownAspect;

    fn from_str(text: &str) -> Result<Preserve, UnknownAspect> {
        let mut preserve = Preserve::nothing();
        for name in text.split(',').map(str::trim) {
            match ASPECTS.into_iter().find(|(known, _)| *known == name) {
                Some((_, aspect)) => preserve = preserve.and(aspect),
                None if name == "all" => preserve = Preserve::everything(),
                None => return Err(UnknownAspect(name.to_owned())),
            }
        }
        Ok(preserve)
    }
}

impl fmt::Display for Preserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ASPECTS.into_iter().filter(|(_, aspect)| self.has(*aspect)).map(|(name, _)| name);
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

impl Aspect {
    /// Returns the aspect to which an attribute with this name belongs; `None` if such attributes are never sent.
    pub(super) fn of_attribute(name: &str) -> Option<Aspect> {
        match name {
            ACCESS_ACL | DEFAULT_ACL => Some(Aspect::Acls),
            _ if is_below(name, "user.") => Some(Aspect::Xattrs),
            _ if is_below(name, "trusted.") || is_below(name, "security.") => Some(Aspect::Privileged),
            _ => None,
        }
    }
}

fn is_below(name: &str, namespace: &str) -> bool {
    name.strip_prefix(namespace).is_some_and(|rest| !rest.is_empty())
}

/// Whether a receiver identifies users and groups by name or by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnersBy {
    /// By name if this host has the name of the user or group, otherwise by number.
    #[default]
    Name,
    /// By number, regardless of the names on this host.
    Number,
}

/// Owner of a file at the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Number of the user.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
    /// Name of the user; empty if the user ID has no name.
    pub user: String,
    /// Name of the group; empty if the group ID has no name.
    pub group: String,
}

/// Extended attributes of a file, including access control lists, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attributes(Vec<(String, Vec<u8>)>);

/// Error in an owner or in attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The user or group ID is the largest number, which the system reserves for "unchanged".
    #[error("the number of its owner or group is not valid")]
    NoId,
    /// A user or group name is too long, or has characters that are not allowed in such names.
    #[error("the name of its owner or group is not valid")]
    OwnerName,
    /// A reference to an owner or a set of attributes that is not defined.
    #[error("it refers to owner or attributes number {0}, which are not defined yet")]
    Unknown(u64),
    /// An owner or a set of attributes is defined twice, under two numbers.
    #[error("owner or attributes number {0} are defined twice")]
    Twice(u64),
    /// The manifest has more owners or sets of attributes than allowed.
    #[error("more than {0} different owners or sets of attributes")]
    TooMany(usize),
    /// The set has no attributes, or more than allowed.
    #[error("it has {0} attributes; 1 to {MAX_NAMES} are allowed")]
    Count(u64),
    /// The name of an attribute is not allowed.
    #[error("the name of an attribute is not allowed, or not in order")]
    AttributeName,
    /// A value, or a whole set of attributes, is too long.
    #[error(
        "an attribute has more than {MAX_VALUE} bytes, or all attributes together have more than {MAX_SET} bytes"
    )]
    TooLong,
    /// The attribute for an access control list does not contain a valid list.
    #[error("its access control list is not valid")]
    Acl,
}

impl Owner {
    pub(super) fn check(&self) -> Result<(), MetadataError> {
        if self.uid == u32::MAX || self.gid == u32::MAX {
            return Err(MetadataError::NoId);
        }
        let is_name = |name: &str| {
            name.len() <= MAX_NAME && !name.chars().any(|c| c.is_control() || matches!(c, ':' | '/' | ','))
        };
        if is_name(&self.user) && is_name(&self.group) { Ok(()) } else { Err(MetadataError::OwnerName) }
    }
}

impl Attributes {
    /// Creates a set of these attributes, which must be sorted by name.
    ///
    /// # Errors
    /// [`MetadataError`] states the error.
    pub fn new(all: Vec<(String, Vec<u8>)>) -> Result<Attributes, MetadataError> {
        let set = Attributes(all);
        set.check()?;
        Ok(set)
    }

    /// Returns the names and values of all attributes, sorted by name.
    pub fn all(&self) -> &[(String, Vec<u8>)] {
        &self.0
    }

    /// Returns the bytes of names and values.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    pub(super) fn check(&self) -> Result<(), MetadataError> {
        if self.0.is_empty() || self.0.len() > MAX_NAMES {
            return Err(MetadataError::Count(self.0.len() as u64));
        }
        for (name, value) in &self.0 {
            let aspect = Aspect::of_attribute(name);
            if aspect.is_none() || name.len() > MAX_NAME || name.contains('\0') {
                return Err(MetadataError::AttributeName);
            }
            if value.len() > MAX_VALUE {
                return Err(MetadataError::TooLong);
            }
            if aspect == Some(Aspect::Acls) && !is_acl(value) {
                return Err(MetadataError::Acl);
            }
        }
        if !self.0.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(MetadataError::AttributeName);
        }
        if self.bytes() > MAX_SET { Err(MetadataError::TooLong) } else { Ok(()) }
    }
}

/// Maximum number of entries of an access control list.
const MAX_ACL: usize = 1_024;

/// Returns whether `value` is an access control list in the format of Linux (linux/posix_acl_xattr.h): u32 version 2, then
/// entries of u16 tag, u16 permissions and u32 number.
fn is_acl(value: &[u8]) -> bool {
    let Some((version, entries)) = value.split_first_chunk::<4>() else { return false };
    let (entries, rest) = entries.as_chunks::<8>();
    let is_entry = |[t0, t1, p0, p1, ..]: &[u8; 8]| {
        let (tag, permissions) = (u16::from_le_bytes([*t0, *t1]), u16::from_le_bytes([*p0, *p1]));
        matches!(tag, 0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x20) && permissions <= 7
    };
    u32::from_le_bytes(*version) == 2
        && rest.is_empty()
        && (1..=MAX_ACL).contains(&entries.len())
        && entries.iter().all(is_entry)
}
