//! Symbolic links: which are followed at the source, which lead nowhere at the receivers, and which stay inside an output directory.

use super::manifest::{Entry, Kind, STATE_DIR};
use super::names::shown;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Maximum number of links that one path may pass (Linux: 40).
const MAX_PASSED: usize = 40;

/// Which symbolic links below a path are sent as the files and directories that they lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FollowLinks {
    /// None: links are sent as links.
    #[default]
    Never,
    /// Those that lead out of the paths that are sent, by their names alone.
    Unsafe,
    /// All.
    Always,
}

impl FollowLinks {
    /// Whether the link `path` with this target is followed, where the names `tops` are sent.
    pub(super) fn follows(self, path: &OsStr, target: &OsStr, tops: &BTreeSet<OsString>) -> bool {
        match self {
            FollowLinks::Never => false,
            FollowLinks::Unsafe => leads_out(path, target, tops),
            FollowLinks::Always => true,
        }
    }
}

/// Whether a link leads out of the names `tops`, by its own names alone.
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

/// The names above the last one of a path.
fn directory_of(path: &OsStr) -> Vec<&[u8]> {
    let mut names: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
    names.pop();
    names
}

/// The names of a target that mean something.
fn names_of(target: &OsStr) -> impl DoubleEndedIterator<Item = &[u8]> {
    target.as_bytes().split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."))
}

/// Where a link ends at a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// At something that is sent.
    Sent,
    /// Outside of what is sent.
    Outside,
    /// Nowhere.
    Nowhere,
}

/// Links of one kind: how many there are, and the first of them.
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

    /// In words.
    fn reported(self, whereto: &str) -> Option<String> {
        let first = self.first?;
        Some(match self.count {
            1 => format!("{first}: this symbolic link leads {whereto}"),
            count => format!("{first} and {} more: these symbolic links lead {whereto}", count - 1),
        })
    }
}

/// Links that receivers get without what they lead to, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StrayLinks {
    /// Those that lead out of what is sent: they can be followed.
    pub outside: Option<String>,
    /// Those that lead nowhere at the source either.
    pub nowhere: Option<String>,
}

/// The links among `entries` that receivers would get without what they lead to.
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

/// Where a link ends, through other links too.
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

/// Whether a link at `path` with this target cannot lead out of the output directory, whichever
/// other links it passes. Such a target begins with at most one `..` for each directory above the link,
/// followed by names only. A `..` after a name could undo less or more than that name.
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

    /// Where `path` with this target ends beside a directory `a` with a file, a link to it, and a link out.
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
    fn unsafe_links_are_those_that_leave_the_sent_names() {
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
