//! Reading of configuration files.

use crate::failure::Usage;
use rustix::process::geteuid;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use toml_edit::{Document, TableLike};

/// The file for all users of this host.
const SYSTEM: &str = "/etc/faircast/faircast.toml";

/// Maximum length of a file, in bytes.
const MOST: u64 = 1 << 20;

/// The sticky bit of a directory: only its owner and the owners of its files can rename them.
const STICKY: u32 = 0o1000;

/// A configuration file.
#[derive(Debug)]
pub struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) document: Document<String>,
}

impl ConfigFile {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// [`Usage::Setting`] if the text is not TOML.
    pub fn new(path: PathBuf, text: String) -> Result<ConfigFile, Usage> {
        match Document::parse(text.clone()) {
            Ok(document) => Ok(ConfigFile { path, document }),
            Err(error) => {
                let line = line_at(&text, error.span().map_or(0, |span| span.start));
                Err(Usage::Setting { path, line, reason: error.message().trim().replace('\n', "; ") })
            }
        }
    }

    /// Returns the number of the line of a key.
    pub(super) fn line_of(&self, table: &dyn TableLike, key: &str) -> usize {
        let span = table.get_key_value(key).and_then(|(key, item)| key.span().or_else(|| item.span()));
        line_at(self.document.raw(), span.map_or(0, |span| span.start))
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the paths of the files that are read without `--config`, in the order of increasing priority.
pub fn default_paths() -> Vec<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    [PathBuf::from(SYSTEM)].into_iter().chain(user.map(|path| path.join("faircast/faircast.toml"))).collect()
}

/// Reads the chosen file, or the default files that exist.
///
/// # Errors
/// If a file cannot be read, is not TOML, or can be changed by other users.
pub fn read(chosen: Option<&Path>) -> Result<Vec<ConfigFile>, Usage> {
    let paths = chosen.map_or_else(default_paths, |path| vec![path.to_owned()]);
    let mut files = Vec::new();
    for path in paths {
        match read_text(&path) {
            Ok(Some(text)) => files.push(ConfigFile::new(path, text)?),
            Ok(None) => {}
            Err(Refused::System(error)) if chosen.is_none() && error.kind() == io::ErrorKind::NotFound => {}
            Err(Refused::System(source)) => return Err(Usage::ConfigUnreadable { path, source }),
            Err(Refused::Exposed(what)) => return Err(Usage::ConfigExposed { path, what }),
        }
    }
    Ok(files)
}

/// Reason why a file is not used.
enum Refused {
    System(io::Error),
    /// Other users can change this file or directory.
    Exposed(PathBuf),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::System(error)
    }
}

/// Returns the text of a file; `None` for the empty device `/dev/null`.
fn read_text(path: &Path) -> Result<Option<String>, Refused> {
    if path == Path::new("/dev/null") {
        return Ok(None);
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(Refused::System(io::Error::other("it is not a regular file")));
    }
    if is_owned_by_another(&about) || is_writable_by_others(&about) {
        return Err(Refused::Exposed(path.to_owned()));
    }
    for directory in fs::canonicalize(path)?.ancestors().skip(1) {
        let about = fs::metadata(directory)?;
        let is_sticky = about.mode() & STICKY != 0;
        if is_owned_by_another(&about) || (is_writable_by_others(&about) && !is_sticky) {
            return Err(Refused::Exposed(directory.to_owned()));
        }
    }
    let mut text = String::new();
    file.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(Refused::System(io::Error::other("it is longer than 1 MiB")));
    }
    Ok(Some(text))
}

/// Whether the owner is a user other than root and the user of this process.
fn is_owned_by_another(about: &Metadata) -> bool {
    about.uid() != 0 && about.uid() != geteuid().as_raw()
}

/// Whether others may write; for root, also whether the group may write.
fn is_writable_by_others(about: &Metadata) -> bool {
    let others = if geteuid().is_root() { 0o022 } else { 0o002 };
    about.mode() & others != 0
}
