//! `send`, `stream` and `recv` with `--wire`: sessions with other programs, in any format that the library lists.

use crate::args::{self, OutputOptions, Sending, SessionArgs};
use crate::buffers;
use crate::failure::{Failure, Usage};
use crate::hook::Hook;
use crate::printer::{self, Role};
use crate::session::{self, Output, Resolved, Verdict};
use faircast::config::LATENCY;
use faircast::format::{Feature, Given, Outcome, ReceiverRequest, Refused, SourceRequest};
use faircast::{
    Configuration, Content, Format, FormatReceiver, FormatSource, Input, SlowReceiverPolicy, Stop,
};
use std::io;
use std::path::Path;

/// A setting that some formats lack: its feature, the name of its option, and whether the option was given.
type Asked = (Feature, &'static str, bool);

/// Returns an error if a setting was given that the format lacks.
fn refuse(format: Format, asked: &[Asked]) -> Result<(), Usage> {
    for (feature, option, _) in asked.iter().filter(|(.., given)| *given) {
        if let Some(why) = format.declaration().why_not(*feature) {
            return Err(Usage::NotOver { option: (*option).to_owned(), format, why });
        }
    }
    Ok(())
}

/// Returns an error if a log or a trace was requested: sessions in foreign formats emit no events.
fn refuse_diagnostics(format: Format, options: &OutputOptions) -> Result<(), Usage> {
    match options.diagnostics().into_iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            let why = "only sessions in faircast's own format are logged and traced";
            Err(Usage::NotOver { option: option.to_owned(), format, why })
        }
        None => Ok(()),
    }
}

/// Returns the error of a setting that a format refuses. The error names the given option.
fn refused(format: Format, asked: &[Asked], refused: Refused) -> Usage {
    let flag = |feature: Feature| {
        let mut all = asked.iter().filter(|(other, ..)| *other == feature);
        let given = all.clone().find(|(.., given)| *given).or_else(|| all.next());
        given.map_or_else(|| format!("{feature:?}").to_lowercase(), |(_, option, _)| (*option).to_owned())
    };
    match refused {
        Refused::Feature { feature, why } => Usage::NotOver { option: flag(feature), format, why },
        Refused::Option { name, why } => Usage::NotOver { option: format!("--{name}"), format, why },
        Refused::Missing { feature, why } => Usage::MissingOver { option: flag(feature), format, why },
    }
}

impl args::Send {
    /// Prepares a source of files in a foreign format.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other, name a missing object or have no effect in this format.
    pub fn resolve_as(self, format: Format) -> Result<Resolved<FormatSource>, Usage> {
        let unanswered = self.unanswered;
        let asked = [
            (Feature::OneWay, "--one-way", unanswered.one_way),
            (Feature::FixedRate, "--rate", unanswered.rate.is_some()),
            (Feature::Repetition, "--repeat", unanswered.repeat.is_some()),
            (Feature::Pipe, "-", self.paths.iter().any(|path| path == Path::new("-"))),
            (Feature::Name, "--name", self.name.is_some()),
            (Feature::Metadata, "--preserve", !self.preserve.is_nothing()),
            (Feature::Metadata, "--delete", self.delete),
            (Feature::StartTime, "--start-at", self.start_at.is_some()),
            (Feature::Links, "--copy-links", self.copy_links),
            (Feature::Links, "--copy-unsafe-links", self.copy_unsafe_links),
            (Feature::Delta, "--delta", self.delta),
            (Feature::DryRun, "--dry-run", self.dry_run),
        ];
        let options = self.sending.format.options()?;
        refuse(format, &asked)?;
        // `refuse` has already refused a name if the format cannot send it.
        let content = session::send_content(self.paths, self.name)?;
        let source = Source { format, content, options, session: self.session, sending: self.sending };
        source.resolve(&asked, Some(&unanswered), self.output_options)
    }
}

impl args::Stream {
    /// Prepares a source of a stream in a foreign format.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other or have no effect in this format.
    pub fn resolve_as(self, format: Format) -> Result<Resolved<FormatSource>, Usage> {
        let asked = [
            (Feature::Stream, "stream", true),
            (Feature::Layers, "--layer", !self.layers.is_empty()),
            (Feature::Latency, "--latency", self.latency.is_some()),
        ];
        let options = self.sending.format.options()?;
        refuse(format, &asked)?;
        session::refuse_keyboard("stream")?;
        let (input, latency) = (Input::new(io::stdin()), self.latency.unwrap_or(LATENCY));
        let content = Content::Live { input, history: self.history, latency };
        let source = Source { format, content, options, session: self.session, sending: self.sending };
        source.resolve(&asked, None, self.output_options)
    }
}

/// The common arguments of `send` and `stream`.
struct Source {
    format: Format,
    content: Content,
    options: Given,
    session: SessionArgs,
    sending: Sending,
}

impl Source {
    fn resolve(
        self,
        own: &[Asked],
        unanswered: Option<&args::Unanswered>,
        output_options: OutputOptions,
    ) -> Result<Resolved<FormatSource>, Usage> {
        let Source { format, content, options, session, sending } = self;
        session::check_rates(sending.min, sending.max, sending.slow)?;
        let asked = [
            (Feature::Encryption, "--key", session.key.is_some()),
            (Feature::Signatures, "--sign-key", sending.sign_key.is_some()),
            (Feature::Receipts, "--receipts", sending.receipts.is_some()),
            (Feature::SlowPolicy, "--slow", sending.slow != SlowReceiverPolicy::Follow),
            (Feature::Expected, "--expect", sending.expect.is_some()),
            (Feature::ReceiverList, "--receivers", sending.receivers.is_some()),
            (Feature::ReceiverNames, "--to-hosts", !sending.to_hosts.is_empty()),
            (Feature::ReceiverReport, "--report", sending.report.is_some()),
            (Feature::Port, "--port", sending.port.is_some()),
            (Feature::Unicast, "--group", session.is_to_host()),
            (Feature::Unicast, "--listen", sending.listen.is_some()),
            (Feature::Unicast, "--invite", sending.invite.is_some()),
            (Feature::Scheme, "--cc", sending.cc.is_some()),
            (Feature::LeastRate, "--min", sending.min.is_some()),
            (Feature::HighestRate, "--max", sending.max.is_some()),
            (Feature::DayLimits, "--bandwidth", sending.bandwidth.is_some()),
        ];
        refuse(format, &asked)?;
        refuse_diagnostics(format, &output_options)?;
        let rate = unanswered.and_then(|options| options.rate);
        let mut warnings = Vec::new();
        if !sending.no_key {
            let title = format.declaration().title;
            warnings.push(format!("{title} is not encrypted: every host on the network can read and forge the packets of this session"));
        }
        warnings.extend(rate.map(session::fixed_rate_warning));
        let mut place = session::source_place(&session, &sending);
        place.receiver_events = output_options.receiver_events();
        let mut request = SourceRequest::new(place, content);
        request.scheme = sending.cc;
        request.spacing = sending.layers_by.into();
        request.min = sending.min;
        request.max = sending.max;
        request.rate = rate;
        request.repeat = unanswered.and_then(|options| options.repeat);
        request.expect = sending.expect;
        request.linger = sending.join_timeout;
        request.options = options;
        let config = format.source(request);
        let config = config.map_err(|why| refused(format, &[own, &asked[..]].concat(), why))?;
        let hook = sending.on_complete.map(Hook::of_source);
        Ok(Resolved { config, output_options, warnings, report: None, hook })
    }
}

impl args::Recv {
    /// Prepares a receiver in a foreign format.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other or have no effect in this format.
    pub fn resolve_as(self, format: Format) -> Result<Resolved<FormatReceiver>, Usage> {
        let asked = [
            (Feature::Reception, "recv", true),
            (Feature::Unicast, "--group", self.session.is_to_host()),
            (Feature::Encryption, "--key", self.session.key.is_some()),
            (Feature::SourceNames, "--accept", !self.accept.is_empty()),
            (Feature::Signatures, "--verify-key", self.verify_key.is_some()),
            (Feature::Receipts, "--sign-receipts", self.sign_receipts.is_some()),
            (Feature::KeepPartial, "--keep-partial", self.keep_partial.is_some()),
            (Feature::Reuse, "--reuse", !self.reuse.is_empty()),
            (Feature::Sync, "--sync", self.sync),
            (Feature::Replacement, "--overwrite", self.overwrite),
            (Feature::Replacement, "--delete", self.delete),
            (Feature::Replacement, "--backup", self.backup.is_some()),
            (Feature::Layers, "--layer-to", !self.layer_to.is_empty()),
            (Feature::Unicast, "--parent", !self.parent.is_empty()),
            (Feature::Unicast, "--listen", self.listen.is_some()),
            (Feature::OneStream, "--stdout", self.stdout),
        ];
        let options = self.format.options()?;
        refuse(format, &asked)?;
        refuse_diagnostics(format, &self.output_options)?;
        if self.serve {
            let why = "`--serve` receives only sessions in faircast's own format";
            return Err(Usage::NotOver { option: "--serve".to_owned(), format, why });
        }
        if self.out_device.is_some() {
            let why = "`--out-device` takes only sessions in faircast's own format; name the device with --out, if the format allows it";
            return Err(Usage::NotOver { option: "--out-device".to_owned(), format, why });
        }
        self.check_source()?;
        let mut request = ReceiverRequest::new(self.receiver_place(), self.destination()?);
        request.names = self.unsafe_names;
        request.keep_partial = self.keep_partial.unwrap_or_default();
        request.most = self.max_size.map(|most| most as u64);
        request.options = options;
        let warnings = self.group_warning().into_iter().collect();
        let config = format.receiver(request).map_err(|why| refused(format, &asked, why))?;
        let hook = self.hook();
        Ok(Resolved { config, output_options: self.output_options, warnings, report: None, hook })
    }
}

/// Runs a session in a foreign format and reports it.
///
/// # Errors
/// An error if the session failed, or if its report states an incomplete result.
pub fn run<'a, C: Configuration<Report: Outcome>>(
    role: Role,
    resolved: Resolved<C>,
    output: Output<'a>,
    stop: &'a Stop,
) -> Result<(), Failure> {
    session::print(role, resolved, output, stop, session::drive, |report: &C::Report| {
        let mut summary = report.summary();
        let dropped = report.dropped_local();
        summary.extend((dropped > 0).then(|| printer::warning(&buffers::dropped(dropped))));
        Verdict { summary, failure: Failure::Incomplete, shortfall: report.shortfall() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn typed(line: &str) -> Command {
        let words = line.split_whitespace();
        Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}")).command
    }

    /// Parses a command line and returns its error, if it has one.
    fn usage(line: &str) -> Option<Usage> {
        match typed(line) {
            Command::Send(send) => match send.sending.format.wire {
                Some(format) => send.resolve_as(format).err(),
                None => send.resolve().err(),
            },
            Command::Stream(stream) => match stream.sending.format.wire {
                Some(format) => stream.resolve_as(format).err(),
                None => stream.resolve().err(),
            },
            Command::Recv(recv) => match recv.format.wire {
                Some(format) => recv.resolve_as(format).err(),
                None => recv.resolve().err(),
            },
            other => panic!("{other:?} has no format"),
        }
    }

    fn is_refused(line: &str, named: &str) {
        let refused = usage(line).unwrap_or_else(|| panic!("{line} is taken"));
        let option = match &refused {
            Usage::NotOver { option, .. }
            | Usage::MissingOver { option, .. }
            | Usage::NeedsFormat { option, .. } => option,
            other => panic!("{line}: {other}"),
        };
        assert_eq!(option.trim_start_matches("--"), named, "{line}: {refused}");
    }

    #[test]
    fn requests_for_unsupported_format_features_are_refused() {
        for option in ["expect 3", "slow drop:1M", "key k", "port 9", "report r", "invite h"] {
            let name = option.split(' ').next().expect("a word");
            is_refused(&format!("faircast send Cargo.toml --wire pgm --{option}"), name);
            is_refused(&format!("faircast send Cargo.toml --wire alc --rate 1M --{option}"), name);
        }
        is_refused("faircast send Cargo.toml --wire pgm --start-at 02:00", "start-at");
        is_refused("faircast send Cargo.toml --wire pgm --bandwidth 5M", "bandwidth");
        is_refused("faircast send Cargo.toml --wire pgm --to-hosts lab-*", "to-hosts");
        is_refused("faircast send Cargo.toml --wire pgm --rate 1M", "rate");
        is_refused("faircast send Cargo.toml --wire alc --max 3M", "max");
        for format in ["pgm", "alc --rate 1M", "udpcast", "norm"] {
            is_refused(&format!("faircast send Cargo.toml --dry-run --wire {format}"), "dry-run");
        }
        is_refused("faircast send - --wire alc --rate 1M", "-");
        is_refused("faircast stream --wire alc", "stream");
        is_refused("faircast stream --wire udpcast", "stream");
        is_refused("faircast send Cargo.toml --wire udpcast --receivers list", "receivers");
        is_refused("faircast recv --wire alc --stdout", "stdout");
        is_refused("faircast recv --wire alc --log l", "log");
        is_refused("faircast send Cargo.toml --wire pgm --trace t", "trace");
        is_refused("faircast recv --wire pgm --serve", "serve");
        is_refused("faircast recv --wire pgm --keep-partial 7d", "keep-partial");
    }

    #[test]
    fn error_names_the_missing_or_conflicting_format_option() {
        is_refused("faircast send Cargo.toml --wire alc", "rate");
        is_refused("faircast send Cargo.toml --wire alc --cc rlc --rate 1M", "rate");
        is_refused("faircast send Cargo.toml --wire alc --cc tfmcc", "cc");
        is_refused("faircast send Cargo.toml --wire alc --cc rlc --fec none", "fec");
    }

    #[test]
    fn option_of_one_format_is_refused_with_all_other_formats() {
        for format in std::iter::once(None).chain(Format::ALL.iter().copied().map(Some)) {
            let name = format.map_or("native", |format| format.declaration().name);
            for other in Format::ALL.iter().filter(|other| Some(**other) != format) {
                for option in other.declaration().options {
                    let value = match (option.values, option.value) {
                        (faircast::format::Values::Words(words), _) => words[0].0,
                        (_, "PORT") => "7500",
                        (_, "ADDRESS") => "192.0.2.1",
                        _ => "9",
                    };
                    let line = format!("faircast send Cargo.toml --wire {name} --{} {value}", option.name);
                    is_refused(&line, option.name);
                }
            }
        }
    }

    #[test]
    fn values_of_format_options_are_checked_during_parsing() {
        for line in ["--wire smtp", "--framing tcp", "--message line", "--nak-port 0"] {
            let words = format!("faircast send Cargo.toml {line}");
            assert!(Cli::try_parse_from(words.split_whitespace()).is_err(), "{line}");
        }
        assert!(usage("faircast send Cargo.toml --wire pgm --framing zmq --nak-port 3055").is_none());
        assert!(usage("faircast send - --wire udpcast --expect 3 --rendezvous 224.0.0.9").is_none());
        assert!(
            usage("faircast send Cargo.toml --wire alc --rate 2M --fec raptorq --repeat forever").is_none()
        );
    }
}
