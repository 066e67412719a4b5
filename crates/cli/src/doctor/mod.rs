//! `faircast doctor`: checks whether this host is ready for multicast, with advice for each problem.
//!
//! Each check reports its finding in one sentence. If action is needed, a second sentence gives advice.

mod bridge;
mod filter;
mod host;
mod network;
mod peer;
mod routes;

use crate::args::Doctor;
use crate::failure::{Failure, unwritten};
use crate::{json, key, system, units};
use faircast_wire::KeyRing;
use faircast_wire::doctor::Key;
use peer::serve::{Served, serve};
use peer::with::{self, Asked};
use serde::Serialize;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The host is ready.
    Ok,
    /// The result cannot be determined on this host alone.
    Note,
    /// Sessions work, but not well or not everywhere.
    Warn,
    /// Sessions do not work.
    Fail,
}

/// A check with its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Name of the check.
    pub check: &'static str,
    /// Result of the check.
    pub verdict: Verdict,
    /// The finding.
    pub found: String,
    /// Advice: commands first, one per line.
    pub advice: Option<String>,
    /// Measurements of a test with another host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// Measurements of one direction of a test with another host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Arrival rate of the fastest train of datagrams, in bit/s.
    pub rate_bps: f64,
    /// Share of lost datagrams in the train that was sent at half of `rate_bps`, 0 to 1.
    pub loss: f64,
    /// Number of datagrams in the train at half of `rate_bps` that arrived after a datagram that was sent later.
    pub reordered: u64,
    /// Number of datagrams sent at half of `rate_bps`.
    pub datagrams: u64,
}

impl Check {
    fn new(check: &'static str, verdict: Verdict, found: impl Into<String>) -> Check {
        Check { check, verdict, found: found.into(), advice: None, measured: None }
    }

    fn advise(mut self, advice: impl Into<String>) -> Check {
        self.advice = Some(advice.into());
        self
    }
}

/// A check as a line of JSON.
#[derive(Serialize)]
struct CheckLine<'a> {
    event: &'static str,
    #[serde(flatten)]
    check: &'a Check,
}

/// The last line of JSON.
#[derive(Serialize)]
struct Done {
    event: &'static str,
    ok: bool,
    failed: usize,
    warned: usize,
}

/// Runs all checks and prints them.
///
/// # Errors
/// [`Failure::Check`] when a check fails.
pub fn run(args: &Doctor, out: &mut impl Write) -> Result<(), Failure> {
    let keys = args.key.as_deref().map(key::read).transpose()?.map(|(keys, _)| keys);
    if let Some(at) = args.serve {
        return serve_others(args, at, keys.as_ref(), out);
    }
    let group = args.group();
    let choice = faircast_net::choose(group.ip(), args.iface.as_deref());
    let interface = choice.as_ref().ok().map(|choice| choice.chosen.name.as_str());
    let mut checks = network::interfaces();
    checks.push(network::chosen(&choice, group.ip()));
    checks.push(network::route(group));
    let mut loopback = network::on_loopback(group.ip());
    // If this host has a network, multicast between programs on this host is not required.
    if loopback.verdict == Verdict::Fail && choice.as_ref().is_ok_and(|choice| !choice.chosen.loopback) {
        loopback.verdict = Verdict::Warn;
    }
    checks.push(loopback);
    if let Ok(choice) = &choice {
        let received = network::on_chosen(group, choice);
        checks.extend(routes::leads_nowhere(group.ip(), choice));
        checks.extend(network::address(choice));
        let is_silent = received.iter().any(|check| check.verdict == Verdict::Fail);
        checks.extend(received);
        checks.extend(filter::checks(group, choice, is_silent));
        if let Some(source) = args.source.or(args.with.map(|host| host.ip())) {
            checks.push(routes::back_to(source, choice, host::is_strict(&choice.chosen.name)));
        }
        checks.extend(network::buffers(group.ip(), choice));
    }
    checks.extend(host::membership(group.ip(), interface));
    checks.extend(interface.and_then(host::wireless));
    checks.extend(interface.and_then(host::reverse_path));
    checks.extend(interface.and_then(bridge::snooping));
    checks.push(host::clock());
    checks.push(host::open_files());
    if let (Some(mut host), Ok(choice)) = (args.with, &choice) {
        if host.port() == 0 {
            host.set_port(group.port());
        }
        let key = Key::of(keys.as_ref().map(KeyRing::first));
        let (ttl, keyed) = (args.ttl, keys.is_some());
        let (one_way, clock_ahead) = (args.one_way, args.clock_ahead);
        checks.extend(with::test(&Asked { host, group, choice, ttl, key, keyed, one_way, clock_ahead }));
    }
    print(&checks, args.json, out).map_err(unwritten)?;
    match count(&checks, Verdict::Fail) {
        0 => Ok(()),
        failed => Err(Failure::Check(format!("{} failed", units::count(failed as u64, "check")))),
    }
}

/// Answers tests of other hosts until stopped.
fn serve_others(
    args: &Doctor,
    at: SocketAddr,
    keys: Option<&KeyRing>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let group = args.group();
    let address = (!at.ip().is_unspecified()).then(|| at.ip().to_string());
    let interface = address.as_deref().or(args.iface.as_deref());
    let choice = faircast_net::choose(group.ip(), interface).map_err(Failure::from)?;
    let stop = system::stop_by_signal()?;
    let port = if at.port() == 0 { group.port() } else { at.port() };
    let keys = keys.map_or_else(
        || vec![Key::of(None)],
        |ring| ring.keys().iter().map(|key| Key::of(Some(key))).collect(),
    );
    let (ttl, clock_ahead) = (args.ttl, args.clock_ahead);
    let served = Served { port, group, choice: &choice, ttl, keys, clock_ahead };
    let mut written = Ok(());
    let outcome = serve(&served, stop.flag(), &mut |text| {
        let check = Check::new("serve", Verdict::Note, text);
        let line = match args.json {
            true => json::write(out, &CheckLine { event: "check", check: &check }),
            false => writeln!(out, "{}", check.found),
        };
        written = std::mem::replace(&mut written, Ok(())).and(line);
    });
    outcome.and(written.map_err(unwritten))
}

/// Checks that programs on this host receive each other's multicast.
///
/// # Errors
/// [`Failure::Check`] with advice.
pub fn require_loopback(like: IpAddr) -> Result<(), Failure> {
    let check = network::on_loopback(like);
    if check.verdict != Verdict::Fail {
        return Ok(());
    }
    let advice = check.advice.map(|advice| format!("; {advice}")).unwrap_or_default();
    Err(Failure::Check(format!("multicast does not work on this host's loopback: {}{advice}", check.found)))
}

fn count(checks: &[Check], verdict: Verdict) -> usize {
    checks.iter().filter(|check| check.verdict == verdict).count()
}

fn print(checks: &[Check], json: bool, out: &mut impl Write) -> io::Result<()> {
    let (failed, warned) = (count(checks, Verdict::Fail), count(checks, Verdict::Warn));
    if json {
        for check in checks {
            json::write(out, &CheckLine { event: "check", check })?;
        }
        return json::write(out, &Done { event: "done", ok: failed == 0, failed, warned });
    }
    for Check { check, verdict, found, advice, .. } in checks {
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Note => "note",
            Verdict::Warn => "WARN",
            Verdict::Fail => "FAIL",
        };
        writeln!(out, "{verdict:<5} {check:<11} {found}")?;
        for line in advice.iter().flat_map(|advice| advice.lines()) {
            writeln!(out, "{:17} -> {line}", "")?;
        }
    }
    match (failed, warned) {
        (0, 0) => {
            writeln!(out, "\nThis host can run faircast; run `faircast doctor` on the other hosts too.")
        }
        (0, _) => writeln!(out, "\nThis host can run faircast; the warnings name improvements."),
        _ => writeln!(out, "\nThis host cannot run faircast yet; the lines marked FAIL state the fixes."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(json: bool) -> String {
        let checks = [
            Check::new("clock", Verdict::Ok, "it runs"),
            Check::new("buffers", Verdict::Warn, "small").advise("raise\nthem"),
            Check::new("loopback", Verdict::Fail, "nothing was heard"),
        ];
        let mut out = Vec::new();
        print(&checks, json, &mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn text_report_has_a_line_per_check_with_advice_below() {
        assert_eq!(
            reported(false),
            "ok    clock       it runs\nWARN  buffers     small\n                  -> raise\n                  \
             -> them\nFAIL  loopback    nothing was heard\n\nThis host cannot run faircast yet; the lines marked FAIL state the fixes.\n"
        );
    }

    #[test]
    fn json_report_has_an_object_per_check_and_a_done_line() {
        let text = reported(true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            r#"{"event":"check","check":"buffers","verdict":"warn","found":"small","advice":"raise\nthem"}"#
        );
        assert_eq!(lines[3], r#"{"event":"done","ok":false,"failed":1,"warned":1}"#);
    }
}
