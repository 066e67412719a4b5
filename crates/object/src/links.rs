//! Symbolic links: links that the source follows, links whose targets receivers do not get, and links that stay inside an output
//! directory.

use super::manifest::{Entry, Kind, STATE_DIR};
use super::names::shown;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Maximum number of links that are followed on one path (40, as in Linux).
const MAX_PASSED: usize = 40;

/// Selection of the symbolic links that a source follows. The source sends the targets of these links in place of the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FollowLinks {
    /// No links: all are sent as links.
    #[default]
    Never,
    /// Links that lead out of the sent paths, judged only by the names in their targets.
    Unsafe,
    /// All links.
    Always,
}

impl FollowLinks {
    /// Returns whether the link at `path` with this target is followed, if the top-level names `tops` are sent.
    pub(super) fn follows(self, path: &OsStr, target: &OsStr, tops: &BTreeSet<OsString>) -> bool {
        match self {
            FollowLinks::Never => false,
            FollowLinks::Unsafe => leads_out(path, target, tops),
            FollowLinks::Always => true,
        }
    }
}

/// Returns whether a link leads out of the top-level names `tops`. The target is not checked for other links.
fn leads_out(path: &OsStr, target: &OsStr, tops: &BTreeSet<OsString>) -> bool {
    if target.as_bytes().starts_with(b"/") {
        return true;
    }
    let mut at = directory_of(path);
    for name in names_of(target) {
        match name {
            b".." if at.pop().is_none() => return true,
            b".." => {}
            name => at.push(name),
        }
    }
    at.first().is_none_or(|top| !tops.contains(OsStr::from_bytes(top)))
}

/// Returns the names of a path without the last one.
fn directory_of(path: &OsStr) -> Vec<&[u8]> {
    let mut names: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
    names.pop();
    names
}

/// Returns the names in a link target, without empty names and `.`.
fn names_of(target: &OsStr) -> impl DoubleEndedIterator<Item = &[u8]> {
    target.as_bytes().split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."))
}

/// Location of the final target of a link, after all links on the path are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// An entry that is sent.
    Sent,
    /// A path outside of the sent entries.
    Outside,
    /// No entry.
    Nowhere,
}

/// Number of links with one kind of target, and the first of these links.
#[derive(Default)]
struct Strays {
    count: u64,
    first: Option<String>,
}

impl Strays {
    fn add(&mut self, entry: &Entry, target: &OsStr) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{} -> {}", entry.name(), shown(target)));
    }

    /// Describes these links.
    fn reported(self, whereto: &str) -> Option<String> {
        let first = self.first?;
        Some(match self.count {
            1 => format!("{first}: this symbolic link leads {whereto}"),
            count => format!("{first} and {} more: these symbolic links lead {whereto}", count - 1),
        })
    }
}

/// Descriptions of the links whose targets receivers do not get.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StrayLinks {
    /// Links that lead out of the sent entries. The source has an option to follow links.
    pub outside: Option<String>,
    /// Links without a target at the source.
    pub nowhere: Option<String>,
}

/// Returns the links among `entries` whose targets receivers would not get.
pub(super) fn stray_links(entries: &[Entry]) -> StrayLinks {
    let (mut outside, mut nowhere) = (Strays::default(), Strays::default());
    for entry in entries {
        let Kind::Symlink { target } = &entry.kind else { continue };
        match end_of(entries, entry, target) {
            End::Sent => {}
            End::Outside => outside.add(entry, target),
            End::Nowhere => nowhere.add(entry, target),
        }
    }
    StrayLinks {
        outside: outside.reported("to targets outside of the content, which receivers do not get"),
        nowhere: nowhere.reported("to targets that are not sent"),
    }
}

/// Classifies the final target of a link, following other links.
fn end_of(entries: &[Entry], link: &Entry, target: &OsStr) -> End {
    if target.as_bytes().starts_with(b"/") {
        return End::Outside;
    }
    let mut at = directory_of(&link.path);
    let mut pending: Vec<&[u8]> = names_of(target).rev().collect();
    let mut passed = 1;
    while let Some(name) = pending.pop() {
        if name == b".." {
            if at.pop().is_none() {
                return End::Outside;
            }
            continue;
        }
        at.push(name);
        let path = at.join(&b'/');
        let found = entries.binary_search_by(|entry| entry.path.as_bytes().cmp(&path[..]));
        match found.map(|n| &entries[n].kind) {
            Err(_) if at.len() == 1 => return End::Outside,
            Err(_) => return End::Nowhere,
            Ok(Kind::Symlink { target }) => {
                passed += 1;
                if target.as_bytes().starts_with(b"/") {
                    return End::Outside;
                }
                if passed > MAX_PASSED {
                    return End::Nowhere;
                }
                at.pop();
                pending.extend(names_of(target).rev());
            }
            Ok(Kind::Dir) => {}
            Ok(_) if pending.is_empty() => {}
            Ok(_) => return End::Nowhere, // a file is no directory
        }
    }
    if at.is_empty() { End::Outside } else { End::Sent }
}

/// Returns whether a link at `path` with this target cannot lead out of the output directory, whatever other links exist in it.
/// The target may begin with one `..` for each directory above the link; names must follow. A `..` after a name is refused: the
/// name may be a link, and `..` would then mean the parent of the link's target.
pub(crate) fn stays_inside(path: impl AsRef<OsStr>, target: impl AsRef<OsStr>) -> bool {
    let target = target.as_ref().as_bytes();
    let depth = path.as_ref().as_bytes().iter().filter(|byte| **byte == b'/').count();
    let names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let ups = names.clone().take_while(|name| *name == b"..").count();
    let into_state = ups == depth && names.clone().nth(ups) == Some(STATE_DIR.as_bytes());
    !target.starts_with(b"/")
        && ups <= depth
        && !names.clone().skip(ups).any(|name| name == b"..")
        && !into_state
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(path: &str, target: &str) -> Entry {
        Entry::new(path, Kind::Symlink { target: target.into() }, 0o777, 0)
    }

    /// Classifies the target of the link `path`. The tree contains a directory `a`, which holds a file, a link to itself, a link
    /// to `a`, and a link that leads out of the tree.
    fn end(path: &str, target: &str) -> End {
        let mut entries = vec![
            Entry::new("a", Kind::Dir, 0o755, 0),
            Entry::new("a/file", Kind::File { size: 1 }, 0o644, 0),
            link("a/loop", "loop"),
            link("a/out", "../../b"),
            link("a/self", "../a"),
            link(path, target),
        ];
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let n = entries.iter().position(|entry| entry.path == *path).expect("it is there");
        end_of(&entries, &entries[n], OsStr::new(target))
    }

    #[test]
    fn link_targets_are_classified_as_sent_outside_or_missing() {
        for target in ["file", "./file", "../a/file", "self/file", "self/self/file", ".", "self"] {
            assert_eq!(end("a/link", target), End::Sent, "{target}");
        }
        for target in ["/a/file", "../b/file", "..", "../..", "self/../../a", "out", "out/file"] {
            assert_eq!(end("a/link", target), End::Outside, "{target}");
        }
        for target in ["other", "file/x", "../a/other", "loop", "self/other"] {
            assert_eq!(end("a/link", target), End::Nowhere, "{target}");
        }
    }

    #[test]
    fn only_links_that_lead_outside_the_sent_names_are_unsafe() {
        let tops = BTreeSet::from([OsString::from("a"), OsString::from("b")]);
        let follows =
            |target: &str| FollowLinks::Unsafe.follows(OsStr::new("a/d/link"), OsStr::new(target), &tops);
        for target in ["/etc/passwd", "../../c", "../../../a", "../..", "../../c/../../x"] {
            assert!(follows(target), "{target}");
        }
        for target in ["x", "../x", "../../a/x", "../../b", "../../c/../b"] {
            assert!(!follows(target), "{target}");
        }
    }
}
