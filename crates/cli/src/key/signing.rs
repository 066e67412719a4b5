//! Key pairs that sign and verify content.

use super::{Exposure, OWNERS, Place, read_text, write};
use crate::failure::{Failure, Usage, unwritten};
use faircast_wire::{SigningKey, VerifyKeys};
use std::io::Write;
use std::path::Path;

/// Suffix that turns the name of a private key file into the name of its public key file. `EVERYBODYS` is the mode of a public
/// key file.
const PUBLIC: &str = ".pub";
const EVERYBODYS: u32 = 0o644;

/// Reads a private key file, and checks whether other users can read it.
///
/// # Errors
/// [`Usage`] when the file does not exist or contains no key.
pub fn read_private(path: &Path) -> Result<(SigningKey, Exposure), Usage> {
    let (text, exposure) = read_text(path)?;
    Ok((text.parse().map_err(super::malformed(path))?, exposure))
}

/// Reads a file of public keys.
///
/// # Errors
/// As [`read_private`].
pub fn read_public(path: &Path) -> Result<VerifyKeys, Usage> {
    read_text(path)?.0.parse().map_err(super::malformed(path))
}

/// Creates a private key, and the public key next to it.
///
/// # Errors
/// [`Usage::KeyExists`], or an error when a file cannot be written.
pub fn make(place: &Place, people: &mut impl Write) -> Result<(), Failure> {
    let key = SigningKey::generate()?;
    // The public key is written first, so that an error never leaves a private key without its public key.
    let public = write(place, PUBLIC, &key.verify_key().to_line(), EVERYBODYS)?;
    let private = match write(place, "", &key.to_line(), OWNERS) {
        Ok(private) => private,
        Err(failure) => {
            if let (Place::New(_), Some(public)) = (place, &public) {
                std::fs::remove_file(public).ok(); // the new public key has no private key
            }
            return Err(failure);
        }
    };
    let (Some(private), Some(public)) = (private, public) else { return Ok(()) };
    let (private, public) = (private.display(), public.display());
    writeln!(
        people,
        "{private} holds a new signing key ({:08x}): keep it on the sending host and add --sign-key {private} to `faircast \
         send`; copy {public} to the receivers and add --verify-key {public} to `faircast recv`",
        key.verify_key().fingerprint()
    )
    .map_err(unwritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn private_key_file_of_a_pair_is_accessible_only_to_its_owner() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.sign");
        let public = directory.path().join("lab.sign.pub");
        let pair = |place| make(&place, &mut Vec::new());
        pair(Place::New(path.clone())).expect("nothing is there yet");
        let mode = |path: &Path| fs::metadata(path).expect("it was made").mode() & 0o777;
        assert_eq!((mode(&path), mode(&public) & 0o600), (0o600, 0o600));
        let (key, exposure) = read_private(&path).expect("it was just written");
        assert_eq!(exposure, Exposure::Owner);
        assert_eq!(read_public(&public).expect("it was just written"), VerifyKeys::from(key.verify_key()));
        assert!(matches!(read_public(&path), Err(Usage::KeyMalformed { .. })), "the other half");
        assert!(matches!(pair(Place::New(path.clone())), Err(Failure::Usage(Usage::KeyExists(_)))));
        pair(Place::Replace(path.clone())).expect("by force");
        let (other, _) = read_private(&path).expect("it was just written");
        assert_ne!(other.verify_key(), key.verify_key());
        assert_eq!(mode(&public) & 0o044, 0o044, "everybody may read it");
        fs::remove_file(&public).expect("ours");
        assert!(matches!(pair(Place::New(path)), Err(Failure::Usage(Usage::KeyExists(_)))));
        assert!(!public.exists(), "no public key without its private half");
    }
}
