//! `send` and `recv` with `--wire alc`: files over ALC and FLUTE, to and from programs that are no faircast.

use crate::args::alc::{Code, Unanswered};
use crate::args::{self, Sending};
use crate::failure::{Failure, Usage};
use crate::session::{self, Output, Resolved, Verdict};
use crate::tell::{self, Role};
use crate::{buffers, units};
use faircast::alc::{AlcReceive, AlcReceiveReport, AlcSend, AlcSendReport, Fec, Pacing, Repeat};
use faircast::config::{Destination, Slow};
use faircast_core::schemes::Wire;
use std::sync::atomic::AtomicBool;

/// That nothing is asked of ALC that it cannot do.
fn refuse(given: &[(&'static str, bool, &'static str)]) -> Result<(), Usage> {
    match given.iter().find(|(_, given, _)| *given) {
        Some((option, _, why)) => Err(Usage::NotOverAlc { option, why }),
        None => Ok(()),
    }
}

impl args::Send {
    /// What will be sent over ALC.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other, name what is not there or mean nothing over ALC.
    pub fn resolve_alc(self) -> Result<Resolved<AlcSend>, Usage> {
        self.sending.format.check_without_pgm()?;
        refuse(&[
            ("--one-way", self.unanswered.one_way, "ALC has no feedback in any case"),
            (
                "-",
                self.paths.iter().any(|path| path.as_os_str() == "-"),
                "FLUTE's files have lengths; name a file",
            ),
            ("--name", self.name.is_some(), "files keep their names"),
            ("--preserve", !self.preserve.is_nothing(), "FLUTE's tables have names and sizes only"),
            ("--copy-links", self.copy_links, "FLUTE carries no links"),
            ("--copy-unsafe-links", self.copy_unsafe_links, "FLUTE carries no links"),
            ("--key", self.session.key.is_some(), "ALC has no encryption here"),
            ("--sign-key", self.sending.sign_key.is_some(), "ALC has no signatures here"),
            ("--receipts", self.sending.receipts.is_some(), "ALC has no receipts"),
            ("--faults", self.session.faults.is_some(), "its source receives nothing"),
        ])?;
        let content = session::send_content(self.paths, None)?;
        let (pacing, fec, repeat) = pacing(&self.sending, &self.unanswered)?;
        let mut warnings = Vec::new();
        if !self.sending.open {
            warnings.push("ALC is not sealed: who is on the network can read and forge this".into());
        }
        if let Pacing::Fixed(rate) = pacing {
            let rate = units::rate(rate.bps());
            warnings.push(format!(
                "a fixed rate gives way to nobody: make sure that {rate} are free on every path"
            ));
        }
        let place = session::source_place(&self.session, &self.sending);
        let config = AlcSend { place, pacing, fec, repeat, content };
        Ok(Resolved { config, telling: self.telling, warnings, report: None })
    }
}

/// How fast and how often: by a scheme whose source needs no answers, or at one rate.
fn pacing(sending: &Sending, options: &Unanswered) -> Result<(Pacing, Fec, Repeat), Usage> {
    let silent = "ALC's receivers never say anything";
    refuse(&[
        ("--slow", sending.slow != Slow::Follow, silent),
        ("--expect", sending.expect.is_some(), silent),
        ("--receivers", sending.receivers.is_some(), silent),
        ("--report", sending.report.is_some(), silent),
        ("--port", sending.port.is_some(), silent),
        ("--listen", sending.listen.is_some(), silent),
        ("--to", sending.to.is_some(), silent),
        ("--min", sending.min.is_some(), "the rate does not change; say --rate, or --cc rlc,base=RATE"),
        ("--max", sending.max.is_some(), "the rate does not change; say --rate, or --cc rlc,layers=N"),
    ])?;
    let fec = |default| match options.fec.unwrap_or(default) {
        Code::None => Fec::NoCode,
        Code::Raptorq => Fec::RaptorQ,
    };
    match (sending.cc, options.rate) {
        (Some(scheme), _) if !scheme.works_over(Wire::Alc) => Err(Usage::NotOverAlc {
            option: "--cc",
            why: "its source needs answers, so say --cc rlc or --rate RATE",
        }),
        (Some(_), Some(_)) => Err(Usage::RateAndScheme),
        (Some(scheme), None) => {
            refuse(&[(
                "--fec none",
                options.fec == Some(Code::None) && scheme.layers() > 1,
                "receivers of some layers would wait for symbols of the others for ever; use --fec raptorq",
            )])?;
            // A receiver of the lowest layer alone gets one packet of 2^(layers - 1).
            let rounds = 2 << scheme.layers().saturating_sub(1);
            let pacing = Pacing::Layered { scheme, spacing: sending.layers_by.into() };
            Ok((pacing, fec(Code::Raptorq), options.repeat.unwrap_or(Repeat::Rounds(rounds))))
        }
        (None, Some(rate)) => {
            Ok((Pacing::Fixed(rate), fec(Code::None), options.repeat.unwrap_or(Repeat::Rounds(3))))
        }
        (None, None) => Err(Usage::NoRate),
    }
}

impl args::Recv {
    /// What will be received over ALC.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other or mean nothing over ALC.
    pub fn resolve_alc(self) -> Result<Resolved<AlcReceive>, Usage> {
        self.format.check_without_pgm()?;
        refuse(&[
            ("--key", self.session.key.is_some(), "ALC has no encryption here"),
            ("--serve", self.serve, "only sessions of the native format are received one after another"),
            ("--accept", !self.accept.is_empty(), "sources do not say their names"),
            ("--verify-key", self.verify_key.is_some(), "ALC has no signatures here"),
            ("--sign-receipts", self.sign_receipts.is_some(), "ALC has no receipts"),
            ("--stdout", self.stdout, "files come in any order and in parts; use --out DIR"),
            ("--sync", self.sync, "files are not flushed one by one"),
            ("--replace", self.replace, "sessions do not say where they come from"),
            ("--parent", !self.parent.is_empty(), "its sessions are multicast"),
            ("--listen", self.listen.is_some(), "its sessions are multicast"),
            ("--layer-to", !self.layer_to.is_empty(), "its layers carry parts of the same files"),
        ])?;
        self.check_source()?;
        let Destination::Directory(out) = self.destination()? else {
            return Err(Usage::NotOverAlc { option: "--stdout", why: "use --out DIR" });
        };
        let warnings = self.group_warning().into_iter().collect();
        let config = AlcReceive {
            place: self.receiver_place(),
            out,
            names: self.names,
            unfinished: self.unfinished.unwrap_or_default(),
            most: self.most.map(|most| most as u64),
        };
        Ok(Resolved { config, telling: self.telling, warnings, report: None })
    }
}

/// Run a `send` over ALC and tell it.
///
/// # Errors
/// Why it failed, or that it was stopped before everything had been sent once.
pub fn send<'a>(
    resolved: Resolved<AlcSend>,
    output: Output<'a>,
    stop: &'a AtomicBool,
) -> Result<(), Failure> {
    session::tell(Role::Unanswered, resolved, output, stop, session::drive, |report: &AlcSendReport| {
        Verdict {
            summary: vec![format!(
                "sent {} in {}, {} in {}: {} on {}; ALC does not say who has everything",
                units::count(report.files, "file"),
                units::count(report.rounds, "round"),
                units::count(report.packets, "packet"),
                units::seconds(report.seconds),
                units::rate(report.rate_bps),
                units::count(report.layers, "layer"),
            )],
            failure: Failure::Incomplete,
            shortfall: (!report.ok).then(|| "stopped before everything had been sent once".to_owned()),
        }
    })
}

/// Run a `recv` over ALC and tell it.
///
/// # Errors
/// Why it failed, or that not every file has arrived.
pub fn receive<'a>(
    resolved: Resolved<AlcReceive>,
    output: Output<'a>,
    stop: &'a AtomicBool,
) -> Result<(), Failure> {
    session::tell(Role::Receiver, resolved, output, stop, session::drive, |report: &AlcReceiveReport| {
        Verdict {
            summary: received_summary(report),
            failure: Failure::Incomplete,
            shortfall: (!report.ok).then(|| {
                let known = units::count(report.known, "file");
                format!("{} of {known} arrived; the others are named above", report.files)
            }),
        }
    })
}

fn received_summary(report: &AlcReceiveReport) -> Vec<String> {
    let mut lines = vec![format!(
        "received {}, {} in {}: {}, {} repaired, {} checked by MD5",
        units::count(report.files, "file"),
        units::bytes(report.bytes),
        units::seconds(report.seconds),
        units::rate(report.goodput_bps),
        units::count(report.repaired_blocks, "block"),
        report.verified,
    )];
    if report.layers > 1 {
        lines.push(format!(
            "took up to {} of {} layers; joined layers {}, left them {}",
            report.highest_layer + 1,
            report.layers,
            units::count(report.joins, "time"),
            units::count(report.leaves, "time"),
        ));
    }
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
    use faircast_core::time::Rate;

    fn sending(line: &[&str]) -> Result<AlcSend, Usage> {
        let words = ["faircast", "send", "Cargo.toml", "--wire", "alc"].iter().chain(line);
        match Cli::try_parse_from(words).expect("it can be typed").command {
            Command::Send(send) => send.resolve_alc().map(|resolved| resolved.config),
            other => panic!("{other:?} is no send"),
        }
    }

    #[test]
    fn a_fixed_rate_sends_three_rounds_without_a_code_unless_told_otherwise() {
        let config = sending(&["--rate", "2M"]).expect("fine");
        assert_eq!(config.pacing, Pacing::Fixed(Rate::from_mbps(2.0)));
        assert_eq!((config.fec, config.repeat), (Fec::NoCode, Repeat::Rounds(3)));
        let config = sending(&["--rate", "2M", "--fec", "raptorq", "--repeat", "forever"]).expect("fine");
        assert_eq!((config.fec, config.repeat), (Fec::RaptorQ, Repeat::Forever));
    }

    #[test]
    fn layers_have_a_code_and_rounds_for_the_lowest_one() {
        let config = sending(&["--cc", "rlc,layers=4"]).expect("fine");
        assert!(matches!(config.pacing, Pacing::Layered { scheme, .. } if scheme.name() == "rlc"));
        assert_eq!((config.fec, config.repeat), (Fec::RaptorQ, Repeat::Rounds(16)));
    }

    #[test]
    fn what_alc_cannot_do_is_refused_with_the_reason() {
        for (line, option) in [
            (["--expect", "3"], "--expect"),
            (["--slow", "drop:1M"], "--slow"),
            (["--key", "k"], "--key"),
            (["--cc", "tfmcc"], "--cc"),
            (["--max", "3M"], "--max"),
        ] {
            let refused = sending(&line).expect_err(option);
            assert!(
                matches!(refused, Usage::NotOverAlc { option: named, .. } if named == option),
                "{refused}"
            );
        }
        assert!(matches!(sending(&[]), Err(Usage::NoRate)));
        assert!(matches!(sending(&["--cc", "rlc", "--rate", "1M"]), Err(Usage::RateAndScheme)));
        let layers = sending(&["--cc", "rlc", "--fec", "none"]);
        assert!(matches!(layers, Err(Usage::NotOverAlc { option: "--fec none", .. })));
        assert!(matches!(sending(&["--framing", "zmq"]), Err(Usage::NeedsPgm("--framing"))));
    }

    #[test]
    fn what_only_alc_can_do_is_refused_elsewhere() {
        for wire in ["native", "pgm"] {
            let line = ["faircast", "send", "Cargo.toml", "--wire", wire, "--fec", "raptorq"];
            let Command::Send(send) = Cli::try_parse_from(line).expect("it can be typed").command else {
                panic!("it is a send")
            };
            let refused = if wire == "pgm" { send.resolve_pgm().err() } else { send.resolve().err() };
            let is_named =
                matches!(refused, Some(Usage::NeedsAlc("--fec") | Usage::NotOverPgm { option: "--fec", .. }));
            assert!(is_named, "{refused:?}");
        }
    }
}
