//! Tables of owners and attributes in a manifest of version 2. Each value is written where it is first used.

use super::{Entry, ManifestError, Reader, put_number, put_text};
use crate::metadata::{Attributes, MAX_ATTRIBUTE_SETS, MAX_NAMES, MAX_OWNERS, MetadataError, Owner};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values written so far, with their numbers.
#[derive(Default)]
pub(super) struct WriteTables<'a> {
    owners: BTreeMap<&'a Owner, u64>,
    attributes: BTreeMap<&'a Attributes, u64>,
}

impl<'a> WriteTables<'a> {
    pub(super) fn put(&mut self, out: &mut Vec<u8>, entry: &'a Entry) {
        match entry.owner.as_deref() {
            None => out.push(0),
            Some(owner) => {
                let (number, is_new) = number_of(&mut self.owners, owner);
                put_number(out, number);
                if is_new {
                    put_number(out, owner.uid.into());
                    put_number(out, owner.gid.into());
                    put_text(out, owner.user.as_bytes());
                    put_text(out, owner.group.as_bytes());
                }
            }
        }
        match entry.attributes.as_deref() {
            None => out.push(0),
            Some(set) => {
                let (number, is_new) = number_of(&mut self.attributes, set);
                put_number(out, number);
                if is_new {
                    put_number(out, set.all().len() as u64);
                    for (name, value) in set.all() {
                        put_text(out, name.as_bytes());
                        put_text(out, value);
                    }
                }
            }
        }
    }
}

/// Returns the number of this value, and whether it is new.
fn number_of<'a, T: Ord>(known: &mut BTreeMap<&'a T, u64>, one: &'a T) -> (u64, bool) {
    if let Some(number) = known.get(one) {
        return (*number, false);
    }
    let number = known.len() as u64 + 1;
    known.insert(one, number);
    (number, true)
}

/// Owners and attributes read so far, by number. The tables also detect duplicate values.
#[derive(Default)]
pub(super) struct ReadTables {
    owners: Table<Owner>,
    attributes: Table<Attributes>,
}

struct Table<T> {
    in_order: Vec<Arc<T>>,
    numbers: BTreeMap<Arc<T>, ()>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { in_order: Vec::new(), numbers: BTreeMap::new() }
    }
}

impl<T: Ord> Table<T> {
    /// Returns the value with this number, counted from 1. If the number is new, `read` reads the value.
    fn get(
        &mut self,
        number: u64,
        most: usize,
        entry: usize,
        read: impl FnOnce() -> Result<T, ManifestError>,
    ) -> Result<Arc<T>, ManifestError> {
        let failed = |why| ManifestError::Metadata { entry, why };
        let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
        if let Some(known) = self.in_order.get(at) {
            return Ok(Arc::clone(known));
        }
        if at > self.in_order.len() {
            return Err(failed(MetadataError::Unknown(number)));
        }
        if at >= most {
            return Err(failed(MetadataError::TooMany(most)));
        }
        let new = Arc::new(read()?);
        if self.numbers.insert(Arc::clone(&new), ()).is_some() {
            return Err(failed(MetadataError::Twice(number)));
        }
        self.in_order.push(Arc::clone(&new));
        Ok(new)
    }
}

impl ReadTables {
    pub(super) fn read(
        &mut self,
        from: &mut Reader<'_>,
        entry: usize,
        into: &mut Entry,
    ) -> Result<(), ManifestError> {
        let number = from.number()?;
        if number > 0 {
            into.owner = Some(self.owners.get(number, MAX_OWNERS, entry, || owner(from, entry))?);
        }
        let number = from.number()?;
        if number > 0 {
            let set = self.attributes.get(number, MAX_ATTRIBUTE_SETS, entry, || attributes(from, entry))?;
            into.attributes = Some(set);
        }
        Ok(())
    }
}

fn owner(from: &mut Reader<'_>, entry: usize) -> Result<Owner, ManifestError> {
    let failed = |why| ManifestError::Metadata { entry, why };
    let mut id = || u32::try_from(from.number()?).map_err(|_| failed(MetadataError::NoId));
    let (uid, gid) = (id()?, id()?);
    let mut name = || text(from.text()?).ok_or(failed(MetadataError::OwnerName));
    let owner = Owner { uid, gid, user: name()?, group: name()? };
    owner.check().map_err(failed)?;
    Ok(owner)
}

fn attributes(from: &mut Reader<'_>, entry: usize) -> Result<Attributes, ManifestError> {
    let failed = |why| ManifestError::Metadata { entry, why };
    let count = from.number()?;
    if count == 0 || count > MAX_NAMES as u64 {
        return Err(failed(MetadataError::Count(count)));
    }
    let mut all = Vec::new();
    for _ in 0..count {
        let name = text(from.text()?).ok_or(failed(MetadataError::AttributeName))?;
        all.push((name, from.text()?.to_vec()));
    }
    Attributes::new(all).map_err(failed)
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}
