//! Names of files in FLUTE: URIs.

use faircast_transport::object::{PathError, check_path};

/// Returns the relative reference for a path of a manifest: all bytes except plain letters, digits and marks are percent-encoded.
pub(super) fn uri_of(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte.into())
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns the path inside the output directory for a URI. Scheme and host are left out: `http://host/a/b` becomes `a/b`.
///
/// # Errors
/// When the path would lead out of the directory, or is invalid.
pub(super) fn path_of(uri: &str) -> Result<String, PathError> {
    let rest = match uri.split_once(':') {
        // A scheme begins with a letter and has no slash (RFC 3986, 3.1).
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ => uri,
    };
    let path = match rest.strip_prefix("//") {
        Some(authority) => authority.split_once('/').map_or("", |(_, path)| path),
        None => rest.strip_prefix('/').unwrap_or(rest),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = decoded(path).ok_or(PathError::Nul)?;
    check_path(&path)?;
    Ok(path)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Decodes percent signs; `None` if the result is not text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.first_chunk::<2>().and_then(|hex| std::str::from_utf8(hex).ok());
        let hex = hex.filter(|hex| hex.chars().all(|c| c.is_ascii_hexdigit()));
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip_through_uris() {
        for path in ["a.txt", "tree/deep er/b%41.txt", "ü/&<>\"'", "c:d?e#f"] {
            assert_eq!(path_of(&uri_of(path)).as_deref(), Ok(path));
        }
    }

    #[test]
    fn scheme_and_host_are_removed_from_foreign_uris() {
        for (uri, path) in [
            ("file:///srv/a.txt", "srv/a.txt"),
            ("http://www.example.com/menu/tracklist.html?x=1#y", "menu/tracklist.html"),
            ("/a/b", "a/b"),
            ("urn:isbn", "isbn"),
        ] {
            assert_eq!(path_of(uri).as_deref(), Ok(path));
        }
    }

    #[test]
    fn uris_outside_the_directory_are_refused() {
        for uri in [
            "../x",
            "a/%2e%2e/x",
            "file:////etc/passwd",
            "//host",
            "%2Fetc/passwd",
            "a//b",
            "",
            "a%00",
            "%ff",
        ] {
            assert!(path_of(uri).is_err(), "{uri}");
        }
        assert_eq!(path_of("x/../../y"), Err(PathError::Dots));
        assert_eq!(path_of(".faircast/x"), Err(PathError::Reserved));
    }
}
