//! Files that list hosts, one per line. Errors name the line.

use crate::failure::Usage;
use crate::values;
use faircast::RequiredHost;
use faircast::config::InvitedHost;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum number of invited hosts, which are served by unicast.
pub const MAX_HOSTS: usize = 1024;

/// Maximum length of a list, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of receivers in a list.
const MAX_RECEIVERS: usize = 10_000;

/// Reads the receivers that a session requires: one name or address per line. Text after `#` is a comment.
///
/// # Errors
/// [`Usage`] when the file cannot be read, when a line is not a name or address, or when a line repeats an earlier line.
pub fn read_receivers(path: &Path) -> Result<Vec<RequiredHost>, Usage> {
    parse_receivers(path, &text_of(path)?)
}

fn parse_receivers(path: &Path, text: &str) -> Result<Vec<RequiredHost>, Usage> {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    let mut hosts = Vec::new();
    for (line, name) in named_lines(text) {
        let path = || path.to_owned();
        values::host_name(name).map_err(|reason| Usage::HostLine { path: path(), line, reason })?;
        if let Some(before) = lines.insert(name.to_lowercase(), line) {
            return Err(Usage::ReceiverTwice { path: path(), line, before, name: name.to_owned() });
        }
        if hosts.len() == MAX_RECEIVERS {
            return Err(Usage::TooManyHosts { path: path(), most: MAX_RECEIVERS });
        }
        hosts.push(RequiredHost::new(name));
    }
    if hosts.is_empty() { Err(Usage::NoHosts(path.to_owned())) } else { Ok(hosts) }
}

/// Returns the lines that are neither empty nor comments, with their numbers.
fn named_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    let named = lines.map(|(line, text)| (line, text.split('#').next().unwrap_or("").trim()));
    named.filter(|(_, name)| !name.is_empty())
}

fn text_of(path: &Path) -> Result<String, Usage> {
    let unreadable = |source| Usage::HostsUnreadable { path: path.to_owned(), source };
    let mut text = String::new();
    File::open(path).map_err(unreadable)?.take(MAX_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Reads the hosts to invite: one `HOST` or `HOST:PORT` per line. Text after `#` is a comment.
///
/// # Errors
/// [`Usage`] when the file cannot be read, when a line is not a host, or when a line repeats an earlier line.
pub fn read(path: &Path) -> Result<Vec<InvitedHost>, Usage> {
    parse(path, &text_of(path)?)
}

fn parse(path: &Path, text: &str) -> Result<Vec<InvitedHost>, Usage> {
    let mut hosts: Vec<(usize, InvitedHost)> = Vec::new();
    for (line, name) in named_lines(text) {
        let path = || path.to_owned();
        let address =
            values::parent(name).map_err(|reason| Usage::HostLine { path: path(), line, reason })?;
        if let Some((before, _)) = hosts.iter().find(|(_, host)| host.address == address) {
            return Err(Usage::HostTwice {
                path: path(),
                line,
                before: *before,
                name: name.to_owned(),
                address,
            });
        }
        if hosts.len() == MAX_HOSTS {
            return Err(Usage::TooManyHosts { path: path(), most: MAX_HOSTS });
        }
        hosts.push((line, InvitedHost::new(name.to_owned(), address)));
    }
    if hosts.is_empty() {
        return Err(Usage::NoHosts(path.to_owned()));
    }
    Ok(hosts.into_iter().map(|(_, host)| host).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<Vec<(String, String)>, String> {
        let hosts = parse(Path::new("hosts.txt"), text).map_err(|usage| usage.to_string())?;
        Ok(hosts.into_iter().map(|host| (host.name, host.address.to_string())).collect())
    }

    #[test]
    fn host_list_has_one_host_per_line_and_allows_comments() {
        let text = "# our hosts\n\n10.0.0.1\n  10.0.0.2:6000  # in the cellar\r\n[2001:db8::7]\n[2001:db8::7]:6000\nlocalhost:7\n";
        let hosts = list(text).expect("all are hosts");
        let addresses: Vec<&str> = hosts.iter().map(|(_, address)| address.as_str()).collect();
        assert_eq!(
            addresses[..4],
            ["10.0.0.1:5778", "10.0.0.2:6000", "[2001:db8::7]:5778", "[2001:db8::7]:6000"]
        );
        assert_eq!(hosts[4].0, "localhost:7", "it is called as in the list");
        assert!(addresses[4].ends_with(":7"));
    }

    #[test]
    fn receiver_list_accepts_each_name_or_address_once() {
        let receivers = |text| parse_receivers(Path::new("lab.txt"), text);
        let named = receivers("# the lab\nlab-01\n\n 192.0.2.7  # the slow one\n").expect("both are names");
        assert_eq!(named, [RequiredHost::Name("lab-01".into()), RequiredHost::new("192.0.2.7")]);
        assert!(named[0].is("LAB-01.example.org", [192, 0, 2, 1].into()));
        assert!(
            named[1].is("whatever", [192, 0, 2, 7].into())
                && !named[1].is("192.0.2.7", [192, 0, 2, 1].into())
        );
        let error = |text| receivers(text).expect_err("it is wrong").to_string();
        assert!(
            error("lab-01\nLAB-01\n").contains("line 2: LAB-01 is on line 1 already"),
            "{}",
            error("a\na")
        );
        assert!(error("a/b\n").contains("lab.txt, line 1"), "{}", error("a/b\n"));
        assert!(error("#\n").contains("names no host"), "{}", error("#\n"));
    }

    #[test]
    fn invalid_line_is_reported_with_its_number_and_a_reason() {
        let refuses = |text: &str, words: &[&str]| {
            let error = list(text).expect_err(text);
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        };
        refuses("10.0.0.1\nno such host\n", &["hosts.txt, line 2", "no such host"]);
        refuses("10.0.0.1\n\nnosuch.invalid\n", &["line 3", "nosuch.invalid", "nor a known host name"]);
        refuses("10.0.0.1:0\n", &["line 1", "port 0"]);
        refuses("239.1.2.3\n", &["line 1", "239.1.2.3"]);
        refuses("10.0.0.1\n10.0.0.2\n10.0.0.1:5778 # again\n", &["line 3", "line 1", "10.0.0.1:5778"]);
        refuses("# nobody\n", &["hosts.txt", "no host"]);
        let many: String =
            (0..=MAX_HOSTS).map(|at| format!("10.0.{}.{}\n", at / 250, at % 250 + 1)).collect();
        refuses(&many, &["1024"]);
        let missing = read(Path::new("no/such/list")).expect_err("no file").to_string();
        assert!(missing.contains("no/such/list"), "{missing}");
    }
}
