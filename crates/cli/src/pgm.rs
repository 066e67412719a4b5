//! `send`, `stream` and `recv` with `--wire pgm`: sessions with programs that are no faircast.

use crate::args::{self, Sending, Telling};
use crate::failure::{Failure, Usage};
use crate::session::{self, Output, Resolved, Verdict};
use crate::tell::{self, Role};
use crate::{buffers, units};
use faircast::config::Slow;
use faircast::pgm::{PgmReceive, PgmReceiveReport, PgmSend, PgmSendReport, WindowLimits};
use faircast::{Content, Input, Scheme};
use std::io;
use std::sync::atomic::AtomicBool;

/// That nothing is asked of PGM that only the native format has.
fn refuse(given: &[(&'static str, bool, &'static str)]) -> Result<(), Usage> {
    match given.iter().find(|(_, given, _)| *given) {
        Some((option, _, why)) => Err(Usage::NotOverPgm { option, why }),
        None => Ok(()),
    }
}

/// The scheme that needs no more than what receivers of PGM say: they send NAKs.
fn for_receivers_of_pgm() -> Scheme {
    "le-sbcc".parse().expect("it is in the catalogue")
}

impl args::Send {
    /// What will be sent over PGM.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other, name what is not there or mean nothing over PGM.
    pub fn resolve_pgm(self) -> Result<Resolved<PgmSend>, Usage> {
        self.unanswered.check_absent()?;
        let named = ("--name", self.name.is_some(), "PGM carries no names");
        let preserve = ("--preserve", !self.preserve.is_nothing(), "PGM carries no files");
        let links = ("--copy-links", self.copy_links, "PGM carries no links");
        let unsafe_links = ("--copy-unsafe-links", self.copy_unsafe_links, "PGM carries no links");
        refuse(&[named, preserve, links, unsafe_links])?;
        let content = session::send_content(self.paths, None)?;
        resolve_sending(content, self.session, self.sending, self.telling)
    }
}

impl args::Stream {
    /// What will be streamed over PGM; the window is as long as the history.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other or mean nothing over PGM.
    pub fn resolve_pgm(self) -> Result<Resolved<PgmSend>, Usage> {
        refuse(&[("--layer", !self.layers.is_empty(), "PGM has no layers")])?;
        session::refuse_keyboard("stream")?;
        let content = Content::Live { input: Input::new(io::stdin()), history: self.history };
        resolve_sending(content, self.session, self.sending, self.telling)
    }
}

fn resolve_sending(
    content: Content,
    own: args::SessionArgs,
    sending: Sending,
    telling: Telling,
) -> Result<Resolved<PgmSend>, Usage> {
    session::check_rates(sending.min, sending.max, sending.slow)?;
    refuse(&[
        ("--key", own.key.is_some(), "PGM has no encryption"),
        ("--sign-key", sending.sign_key.is_some(), "PGM has no signatures"),
        ("--receipts", sending.receipts.is_some(), "PGM has no receipts"),
        ("--slow", sending.slow != Slow::Follow, "PGM's receivers do not say how they do"),
        ("--expect", sending.expect.is_some(), "PGM's receivers do not say that they are there"),
        ("--receivers", sending.receivers.is_some(), "PGM's receivers do not say that they are there"),
        ("--report", sending.report.is_some(), "PGM's receivers do not say what they have"),
        ("--port", sending.port.is_some(), "receivers answer to --nak-port, which both ends name"),
        ("--listen", sending.listen.is_some(), "PGM is multicast"),
        ("--to", sending.to.is_some(), "PGM is multicast"),
    ])?;
    let mut warnings = Vec::new();
    if !sending.open {
        warnings.push("PGM is not sealed: who is on the network can read and forge this".into());
    }
    let mut window = WindowLimits::default();
    if let Content::Live { history, .. } = &content {
        window.age = faircast_core::time::Span::from_secs_f64(history.as_secs_f64());
    }
    let config = PgmSend {
        place: session::source_place(&own, &sending),
        scheme: sending.cc.unwrap_or_else(for_receivers_of_pgm),
        min: sending.min,
        max: sending.max,
        linger: sending.wait,
        content,
        options: sending.format.options(),
        window,
        faults: own.faults,
    };
    Ok(Resolved { config, telling, warnings, report: None })
}

impl args::Recv {
    /// What will be received over PGM.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other or mean nothing over PGM.
    pub fn resolve_pgm(self) -> Result<Resolved<PgmReceive>, Usage> {
        refuse(&[
            ("--key", self.session.key.is_some(), "PGM has no encryption"),
            ("--serve", self.serve, "only sessions of the native format are received one after another"),
            ("--accept", !self.accept.is_empty(), "sources do not say their names"),
            ("--verify-key", self.verify_key.is_some(), "PGM has no signatures"),
            ("--sign-receipts", self.sign_receipts.is_some(), "PGM has no receipts"),
            ("--unfinished", self.unfinished.is_some(), "what is not whole is no use later"),
            ("--sync", self.sync, "what comes over PGM is never known to be whole"),
            ("--replace", self.replace, "sessions do not say where they come from"),
            ("--layer-to", !self.layer_to.is_empty(), "PGM has no layers"),
            ("--parent", !self.parent.is_empty(), "PGM is multicast"),
            ("--listen", self.listen.is_some(), "PGM is multicast"),
        ])?;
        self.check_source()?;
        let destination = self.destination()?;
        let warnings = self.group_warning().into_iter().collect();
        let config = PgmReceive {
            place: self.receiver_place(),
            options: self.format.options(),
            destination,
            most: self.most.map(|most| most as u64),
        };
        Ok(Resolved { config, telling: self.telling, warnings, report: None })
    }
}

/// Run a `send` or `stream` over PGM and tell it.
///
/// # Errors
/// Why it failed, or that something could not be repaired.
pub fn send<'a>(
    resolved: Resolved<PgmSend>,
    output: Output<'a>,
    stop: &'a AtomicBool,
) -> Result<(), Failure> {
    session::tell(Role::Unanswered, resolved, output, stop, session::drive, |report: &PgmSendReport| {
        Verdict {
            summary: vec![format!(
                "sent {} in {}: {}, {} again for {}; PGM does not say who has everything",
                units::bytes(report.bytes),
                units::seconds(report.seconds),
                units::rate(report.goodput_bps),
                units::count(report.repairs, "packet"),
                units::count(report.receivers, "host"),
            )],
            failure: Failure::Incomplete,
            shortfall: (!report.ok).then(|| {
                let packets = units::count(report.too_late, "packet");
                format!("{packets} asked for again had left the window; somebody has not everything")
            }),
        }
    })
}

/// Run a `recv` over PGM and tell it.
///
/// # Errors
/// Why it failed, or that not everything has arrived.
pub fn receive<'a>(
    resolved: Resolved<PgmReceive>,
    output: Output<'a>,
    stop: &'a AtomicBool,
) -> Result<(), Failure> {
    session::tell(Role::Receiver, resolved, output, stop, session::drive, |report: &PgmReceiveReport| {
        Verdict {
        summary: received_summary(report),
        failure: Failure::Incomplete,
        shortfall: (!report.ok).then(|| {
            let packets = units::count(report.unrecoverable, "packet");
            let messages = units::count(report.broken, "message");
            format!(
                "{packets} could not be repaired, {messages} lack a part; ask the source for a longer window"
            )
        }),
    }
    })
}

fn received_summary(report: &PgmReceiveReport) -> Vec<String> {
    let mut lines = vec![format!(
        "received {} in {}, {} in {}: {}, {} missed at first",
        units::bytes(report.bytes),
        units::count(report.messages, "message"),
        units::count(report.packets, "packet"),
        units::seconds(report.seconds),
        units::rate(report.goodput_bps),
        report.missed,
    )];
    if report.dropped_local > 0 {
        lines.push(tell::warning(&buffers::dropped(report.dropped_local)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use faircast::pgm::{Framing, Messages, PgmOptions};
    use std::time::Duration;

    fn sending(line: &[&str]) -> Result<Resolved<PgmSend>, Usage> {
        let words = ["faircast", "send", "Cargo.toml", "--wire", "pgm"].iter().chain(line);
        match Cli::try_parse_from(words).expect("it can be typed").command {
            Command::Send(send) => send.resolve_pgm(),
            other => panic!("{other:?} is no send"),
        }
    }

    #[test]
    fn a_send_over_pgm_has_zeromqs_ports_unless_told_otherwise() {
        let options = sending(&["--framing", "zmq"]).expect("fine").config.options;
        assert_eq!(options, PgmOptions { framing: Framing::Zmq, ..PgmOptions::default() });
        let options = sending(&["--nak-port", "3055", "--data-port", "7500", "--message", "900"]);
        let expected = PgmOptions {
            messages: Some(Messages::Sized(900)),
            nak_port: Some(3055),
            data_port: Some(7500),
            ..PgmOptions::default()
        };
        assert_eq!(options.expect("fine").config.options, expected);
    }

    #[test]
    fn what_pgm_cannot_do_is_refused_with_the_reason() {
        for (line, option) in
            [(["--expect", "3"], "--expect"), (["--slow", "drop:1M"], "--slow"), (["--key", "k"], "--key")]
        {
            assert!(
                matches!(sending(&line), Err(Usage::NotOverPgm { option: named, .. }) if named == option)
            );
        }
    }

    #[test]
    fn what_only_pgm_can_do_is_refused_elsewhere() {
        let line = ["faircast", "send", "Cargo.toml", "--framing", "zmq"];
        let Command::Send(send) = Cli::try_parse_from(line).expect("it can be typed").command else {
            panic!("it is a send")
        };
        assert!(matches!(send.resolve(), Err(Usage::NeedsPgm("--framing"))));
    }

    #[test]
    fn a_stream_keeps_its_history_for_repairs() {
        let history = Duration::from_secs(5);
        let content = Content::Live { input: Input::new(io::empty()), history };
        let words = ["faircast", "stream", "--wire", "pgm"];
        let Command::Stream(stream) = Cli::try_parse_from(words).expect("it can be typed").command else {
            panic!("it is a stream")
        };
        let resolved = resolve_sending(content, stream.session, stream.sending, stream.telling);
        assert_eq!(resolved.expect("fine").config.window.age.as_secs_f64(), 5.0);
    }
}
