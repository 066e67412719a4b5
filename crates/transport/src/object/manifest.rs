//! The manifest: what a transfer consists of.
//!
//! ```text
//! u8 version (1) ‖ count ‖ count entries, sorted by path, and nothing more
//! entry:  shared ‖ length ‖ rest of the path ‖ u8 kind ‖ mode ‖ mtime ‖ file: size, link: length ‖ target
//! ```
//!
//! Numbers are LEB128 (7 bits per byte, low ones first); `shared` is how many bytes of the path
//! are those of the entry before; `mtime` is in zigzag form. [`Manifest::decode`] is total: any
//! bytes give a manifest whose paths all stay inside the output directory, or an error.

/// Name of the directory, inside the output directory, where the receiver keeps its state. No
/// entry may have it as its first component.
pub const STATE_DIR: &str = ".faircast";

/// Most entries of a manifest.
pub const MAX_ENTRIES: usize = 4_000_000;
/// Longest path and longest target of a link, in bytes (Linux's own limit).
pub const MAX_PATH_LEN: usize = 4095;
/// Longest component of a path, in bytes (Linux's own limit).
pub const MAX_NAME_LEN: usize = 255;
/// Most directories that a path lies below. Each is open while something is placed in it.
pub const MAX_DEPTH: usize = 256;
/// Most directories that paths need beyond those that are entries: names of one letter could ask for millions in little text.
const MAX_UNNAMED_DIRS: usize = 65_536;
/// Most bytes of all paths and targets together: shared beginnings could make much of little.
const MAX_TEXT: usize = 256 << 20;
/// Permission bits; set-user-id and its like do not travel.
pub const MODE_BITS: u32 = 0o777;

const VERSION: u8 = 1;
const SMALLEST_ENTRY: usize = 6;

/// What a transfer consists of, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
}

/// A file, directory, link or stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative path, components separated by `/`.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Permission bits, at most [`MODE_BITS`].
    pub mode: u32,
    /// Time of modification in ns since 1970.
    pub mtime: i64,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A file of this many bytes.
    File {
        /// Bytes.
        size: u64,
    },
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink {
        /// Where it points, as it is.
        target: String,
    },
    /// A stream: a file whose size is known only at its end. The only entry of its manifest.
    Stream,
}

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// No bytes, or none between two `/`.
    #[error("a name is empty")]
    Empty,
    /// Starts with `/`.
    #[error("the path is absolute")]
    Absolute,
    /// A component is `.` or `..`.
    #[error("the path contains \".\" or \"..\"")]
    Dots,
    /// Contains a NUL byte.
    #[error("the path contains a NUL byte")]
    Nul,
    /// Contains `\` where that separates components.
    #[error("the path contains a backslash, which this system takes for a separator")]
    Backslash,
    /// Too long, as a whole or a component.
    #[error("the path has more than {MAX_PATH_LEN} bytes, or a name in it more than {MAX_NAME_LEN}")]
    TooLong,
    /// Too many directories above it.
    #[error("the path lies below more than {MAX_DEPTH} directories")]
    TooDeep,
    /// Inside the receiver's state directory.
    #[error("\"{STATE_DIR}\" is where receivers keep their state; rename it")]
    Reserved,
}

/// Why bytes or entries are no manifest. Entries are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Ends too early.
    #[error("it ends at byte {at} in the middle of an entry")]
    Truncated {
        /// Where.
        at: usize,
    },
    /// Goes on after the last entry.
    #[error("{0} bytes follow the last entry")]
    Trailing(usize),
    /// Made by another version.
    #[error(
        "it has version {0}, this version of faircast reads {VERSION}; update faircast on the older side"
    )]
    Version(u8),
    /// A number of more than 64 bits, or not in its shortest form.
    #[error("the number at byte {at} is not in its only form")]
    Number {
        /// Where.
        at: usize,
    },
    /// More entries than allowed, or than the bytes could hold.
    #[error("{0} entries; at most {MAX_ENTRIES} can be sent, and each takes {SMALLEST_ENTRY} bytes or more")]
    TooMany(u64),
    /// All paths together are too long.
    #[error("the paths take more than {MAX_TEXT} bytes together")]
    TooMuchText,
    /// Directories that are no entries.
    #[error(
        "entry {entry}: the paths up to it lie below more than {MAX_UNNAMED_DIRS} directories that are not listed"
    )]
    TooManyDirs {
        /// Which entry.
        entry: usize,
    },
    /// A path, target or shared beginning that is not UTF-8.
    #[error("entry {entry}: the path or target is not UTF-8")]
    NotUtf8 {
        /// Which entry.
        entry: usize,
    },
    /// A path that is not allowed.
    #[error("entry {entry}: {why}")]
    Path {
        /// Which entry.
        entry: usize,
        /// What is wrong.
        why: PathError,
    },
    /// A link target that is empty, too long or has a NUL byte.
    #[error("entry {entry}: the target of the link is empty, too long or has a NUL byte")]
    Target {
        /// Which entry.
        entry: usize,
    },
    /// Not after the entry before: a duplicate or not sorted.
    #[error("entry {entry}: not after the one before")]
    Order {
        /// Which entry.
        entry: usize,
    },
    /// Lies below an entry that is no directory.
    #[error("entry {entry}: lies below \"{above}\", which is no directory")]
    BelowFile {
        /// Which entry.
        entry: usize,
        /// What it lies below.
        above: String,
    },
    /// An unknown kind of entry.
    #[error("entry {entry}: unknown kind {kind}")]
    Kind {
        /// Which entry.
        entry: usize,
        /// The kind.
        kind: u8,
    },
    /// More than permission bits.
    #[error("entry {entry}: mode {mode:o} has more than permission bits")]
    Mode {
        /// Which entry.
        entry: usize,
        /// The mode.
        mode: u64,
    },
    /// A stream beside other entries.
    #[error("entry {entry}: a stream has to be the only entry")]
    StreamNotAlone {
        /// Which entry.
        entry: usize,
    },
    /// The sizes add up to more than 2^63 bytes, or not to the object stream's length.
    #[error("the sizes of manifest and files do not add up to the length of the object")]
    Sizes,
}

/// Check a relative path as [`Manifest`] has them.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check_path(path: &str) -> Result<(), PathError> {
    if path.starts_with('/') {
        return Err(PathError::Absolute);
    }
    if path.len() > MAX_PATH_LEN {
        return Err(PathError::TooLong);
    }
    for (n, name) in path.split('/').enumerate() {
        match name {
            "" => return Err(PathError::Empty),
            "." | ".." => return Err(PathError::Dots),
            STATE_DIR if n == 0 => return Err(PathError::Reserved),
            _ if name.len() > MAX_NAME_LEN => return Err(PathError::TooLong),
            _ if name.contains('\0') => return Err(PathError::Nul),
            // An ordinary character on Unix: every Debian has systemd units with it.
            _ if cfg!(windows) && name.contains('\\') => return Err(PathError::Backslash),
            _ => {}
        }
        if n > MAX_DEPTH {
            return Err(PathError::TooDeep);
        }
    }
    Ok(())
}

impl Manifest {
    /// A manifest of these entries, which need not be sorted.
    ///
    /// # Errors
    /// A [`ManifestError`]; the entries are counted in their sorted order.
    pub fn new(mut entries: Vec<Entry>) -> Result<Manifest, ManifestError> {
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let manifest = Manifest { entries };
        manifest.check()?;
        Ok(manifest)
    }

    /// The entries, sorted by path.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes of all files together.
    pub fn content_len(&self) -> u64 {
        // Checked not to overflow.
        self.entries.iter().map(Entry::size).sum()
    }

    /// Whether it is that of a stream.
    pub fn is_stream(&self) -> bool {
        matches!(self.entries[..], [Entry { kind: Kind::Stream, .. }])
    }

    fn check(&self) -> Result<(), ManifestError> {
        if self.entries.len() > MAX_ENTRIES {
            return Err(ManifestError::TooMany(self.entries.len() as u64));
        }
        let (mut text, mut total, mut dirs) = (0usize, 0u64, 0usize);
        // What is no directory, and with which the path before began: the longest last. All that begin with a path follow it directly.
        let mut leaves: Vec<&str> = Vec::new();
        for (entry, e) in self.entries.iter().enumerate() {
            check_path(&e.path).map_err(|why| ManifestError::Path { entry, why })?;
            if entry > 0 && self.entries[entry - 1].path >= e.path {
                return Err(ManifestError::Order { entry });
            }
            if e.mode & !MODE_BITS != 0 {
                return Err(ManifestError::Mode { entry, mode: e.mode.into() });
            }
            text = text.saturating_add(e.path.len());
            match &e.kind {
                Kind::Symlink { target } => {
                    if target.is_empty() || target.len() > MAX_PATH_LEN || target.contains('\0') {
                        return Err(ManifestError::Target { entry });
                    }
                    text = text.saturating_add(target.len());
                }
                Kind::Stream if self.entries.len() > 1 => {
                    return Err(ManifestError::StreamNotAlone { entry });
                }
                Kind::File { .. } | Kind::Dir | Kind::Stream => {}
            }
            total = total.checked_add(e.size()).filter(|&t| t < 1 << 63).ok_or(ManifestError::Sizes)?;
            if text > MAX_TEXT {
                return Err(ManifestError::TooMuchText);
            }
            // A directory that is entered for the first time is one that is listed (its path is what comes before the slash), or not.
            let before = entry.checked_sub(1).map_or("", |before| self.entries[before].path.as_str());
            dirs += entered(before, &e.path);
            if dirs > MAX_UNNAMED_DIRS + 2 * entry {
                return Err(ManifestError::TooManyDirs { entry });
            }
            // An entry sorts before everything below it. Of the leaves that the path begins with only the longest can have a slash
            // behind it here: behind the others the path goes on as the longer ones do.
            while leaves.pop_if(|leaf| !e.path.starts_with(*leaf)).is_some() {}
            if let Some(leaf) = leaves.last().filter(|leaf| e.path.as_bytes().get(leaf.len()) == Some(&b'/'))
            {
                return Err(ManifestError::BelowFile { entry, above: (*leaf).to_owned() });
            }
            if e.kind != Kind::Dir {
                leaves.push(&e.path);
            }
        }
        Ok(())
    }

    /// The manifest as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_number(&mut out, self.entries.len() as u64);
        let mut before: &[u8] = &[];
        for entry in &self.entries {
            let path = entry.path.as_bytes();
            let shared = path.iter().zip(before).take_while(|(a, b)| a == b).count();
            put_number(&mut out, shared as u64);
            put_text(&mut out, &path[shared..]);
            out.push(match entry.kind {
                Kind::File { .. } => 0,
                Kind::Dir => 1,
                Kind::Symlink { .. } => 2,
                Kind::Stream => 3,
            });
            put_number(&mut out, entry.mode.into());
            put_number(&mut out, ((entry.mtime << 1) ^ (entry.mtime >> 63)) as u64);
            match &entry.kind {
                Kind::File { size } => put_number(&mut out, *size),
                Kind::Symlink { target } => put_text(&mut out, target.as_bytes()),
                Kind::Dir | Kind::Stream => {}
            }
            before = path;
        }
        out
    }

    /// Read a manifest. The same manifest has only one form.
    ///
    /// # Errors
    /// A [`ManifestError`] says what is wrong and where.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let mut from = Reader { bytes, at: 0 };
        match from.byte()? {
            VERSION => {}
            other => return Err(ManifestError::Version(other)),
        }
        let count = from.number()?;
        if count > MAX_ENTRIES as u64 || count > (bytes.len() / SMALLEST_ENTRY) as u64 {
            return Err(ManifestError::TooMany(count));
        }
        let mut entries = Vec::with_capacity(count as usize); // bounded by the bytes there are
        let mut path = Vec::new();
        let mut text = 0;
        for entry in 0..count as usize {
            let (shared, at) = (from.number()?, from.at);
            let shared = usize::try_from(shared).ok().filter(|&s| s <= path.len());
            let Some(shared) = shared else { return Err(ManifestError::Number { at }) };
            let rest = from.text()?;
            // The longest beginning is shared, so that there is only one form.
            if shared < path.len() && rest.first() == Some(&path[shared]) {
                return Err(ManifestError::Number { at });
            }
            path.truncate(shared);
            path.extend_from_slice(rest);
            text += path.len();
            if text > MAX_TEXT {
                return Err(ManifestError::TooMuchText);
            }
            entries.push(from.entry(entry, &path)?);
        }
        if from.at < bytes.len() {
            return Err(ManifestError::Trailing(bytes.len() - from.at));
        }
        let manifest = Manifest { entries };
        manifest.check()?;
        Ok(manifest)
    }
}

/// How many directories a path lies below that the one before it, in order, did not.
fn entered(before: &str, path: &str) -> usize {
    let shared = before.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
    path.as_bytes()[shared..].iter().filter(|byte| **byte == b'/').count()
}

impl Entry {
    /// Bytes of its content; 0 for what is no file.
    pub fn size(&self) -> u64 {
        match self.kind {
            Kind::File { size } => size,
            Kind::Dir | Kind::Symlink { .. } | Kind::Stream => 0,
        }
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, ManifestError> {
        let byte = *self.bytes.get(self.at).ok_or(ManifestError::Truncated { at: self.at })?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, ManifestError> {
        let at = self.at;
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                return Err(ManifestError::Number { at });
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn text(&mut self) -> Result<&'a [u8], ManifestError> {
        let len = self.number()?;
        let truncated = ManifestError::Truncated { at: self.bytes.len() };
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        let text = end.and_then(|end| self.bytes.get(self.at..end)).ok_or(truncated)?;
        self.at += text.len();
        Ok(text)
    }

    fn entry(&mut self, entry: usize, path: &[u8]) -> Result<Entry, ManifestError> {
        let utf8 = |bytes: &[u8]| {
            std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ManifestError::NotUtf8 { entry })
        };
        let path = utf8(path)?;
        let kind = self.byte()?;
        let mode = self.number()?;
        let mode = u32::try_from(mode).map_err(|_| ManifestError::Mode { entry, mode })?;
        let zigzag = self.number()?;
        let mtime = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        let kind = match kind {
            0 => Kind::File { size: self.number()? },
            1 => Kind::Dir,
            2 => Kind::Symlink { target: utf8(self.text()?)? },
            3 => Kind::Stream,
            _ => return Err(ManifestError::Kind { entry, kind }),
        };
        Ok(Entry { path, kind, mode, mtime })
    }
}

/// What a fuzzer may call with any bytes: decoding neither panics nor accepts two forms of one
/// manifest.
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        assert_eq!(manifest.encode(), bytes, "a manifest has one form");
        for entry in manifest.entries() {
            assert_eq!(check_path(&entry.path), Ok(()));
        }
    }
}
