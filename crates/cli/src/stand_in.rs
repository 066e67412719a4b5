//! The command under the names `udp-sender` and `udp-receiver`, with the options of udpcast's programs that FOG and Clonezilla use.

use crate::args::OutputOptions;
use crate::failure::{Failure, Usage};
use crate::session::{self, Resolved};
use crate::values;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};
use faircast::config::default_group;
use faircast::udpcast::{self as wire, UdpcastReceive as Receive, UdpcastSend as Send};
use faircast::{Content, Destination, Input, Output, Rate};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Options without a value that have no effect: the start does not depend on a keyboard, and the rate adapts to the network.
const IGNORED_FLAGS: [&str; 7] =
    ["nokbd", "no-progress", "full-duplex", "half-duplex", "nopointopoint", "autorate", "ignore-lost-data"];

/// Options with a value that have no effect: the source announces its session each second, sets the size of slices itself, and
/// repairs losses on request.
const IGNORED_VALUES: [&str; 12] = [
    "rexmit-hello-interval",
    "rehello-offset",
    "retries-until-drop",
    "fec",
    "log",
    "bw-period",
    "stat-period",
    "print-uncompressed-position",
    "default-slice-size",
    "min-slice-size",
    "max-slice-size",
    "exit-wait",
];

/// Options that change the meaning of a session and are not supported, with the reasons.
const REFUSED: [(&str, &str); 5] = [
    (
        "async",
        "receivers confirm what they have; use `faircast send --one-way` for links without a return path",
    ),
    ("broadcast", "data is sent to a multicast group; choose one with --mcast-data-address"),
    ("pointopoint", "data is sent to a multicast group; use `faircast send --listen` for unicast"),
    ("streaming", "a receiver must join before the transfer begins; use `faircast stream` for live content"),
    ("rate-governor", "the rate follows the losses in the network; limit it with --max-bitrate"),
];

/// Options of both programs.
#[derive(Debug, Args)]
struct Common {
    /// File to send, or to write [default: standard input or output]
    #[arg(long, short)]
    file: Option<PathBuf>,
    /// Command of the shell through which the content passes
    #[arg(long, short, value_name = "COMMAND")]
    pipe: Option<OsString>,
    /// Port of receivers; the sender has the next port
    #[arg(long, short = 'P', default_value_t = wire::DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..65_535))]
    portbase: u16,
    /// Interface by name or address
    #[arg(long, short)]
    interface: Option<String>,
    /// Address at which senders and receivers find one another, in addition to the broadcast address
    #[arg(long, short = 'M', aliases = ["mcast-all-addr", "mcast-all-address"], value_name = "ADDRESS")]
    mcast_rdv_address: Option<Ipv4Addr>,
    /// Time to live of packets
    #[arg(long, short, default_value_t = 1, value_parser = values::ttl)]
    ttl: u8,
    /// Maximum time to wait for the other end, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    start_timeout: Option<Duration>,
}

/// Sends a file to udp-receiver programs and to `faircast recv --wire udpcast`, at a rate that is fair to TCP.
#[derive(Debug, Args)]
pub struct Sender {
    #[command(flatten)]
    common: Common,
    /// Number of receivers to wait for
    #[arg(long, alias = "min-clients", value_name = "N")]
    min_receivers: Option<u32>,
    /// Minimum time to wait after the first receiver has joined, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    min_wait: Duration,
    /// Maximum time to wait after the first receiver has joined, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    max_wait: Option<Duration>,
    /// Same as --max-wait, unless that is given
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    autostart: Option<Duration>,
    /// Group of the data [default: 232.0.0.0 with the last 27 bits of the address of this host]
    #[arg(long, value_name = "ADDRESS")]
    mcast_data_address: Option<Ipv4Addr>,
    /// Maximum rate, in bit/s
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    max_bitrate: Option<Rate>,
    /// Bytes of content in a packet
    #[arg(long, short, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(400..=8_956))]
    blocksize: Option<u16>,
}

/// Receives a file from udp-sender or from `faircast send --wire udpcast`.
#[derive(Debug, Args)]
pub struct Receiver {
    #[command(flatten)]
    common: Common,
    /// Size of the receive buffer, in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    rcvbuf: Option<usize>,
    /// Maximum silence of the sender, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    receive_timeout: Option<Duration>,
    /// Write the content to the disk before the end of the program; the default for devices
    #[arg(long, conflicts_with = "nosync")]
    sync: bool,
    /// Do not wait until the content is on the disk; the default for files
    #[arg(long)]
    nosync: bool,
}

/// A program of udpcast, with its options.
#[derive(Debug)]
pub enum StandIn {
    /// `udp-sender`
    Sender(Sender),
    /// `udp-receiver`
    Receiver(Receiver),
}

impl StandIn {
    /// Parses a command line whose first word is the name of one of udpcast's programs; `None` for any other name. Exits if the
    /// options are wrong.
    ///
    /// # Errors
    /// [`Usage`] when an option is not supported.
    pub fn called(line: impl Iterator<Item = OsString>) -> Result<Option<StandIn>, Usage> {
        let mut line = line.peekable();
        let name = line.peek().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
        match name {
            Some("udp-sender") => parsed("udp-sender", line).map(StandIn::Sender).map(Some),
            Some("udp-receiver") => parsed("udp-receiver", line).map(StandIn::Receiver).map(Some),
            _ => Ok(None),
        }
    }
}

/// Parses a command line of a program. Unambiguous beginnings of options suffice, as in udpcast.
fn parsed<P: Args + FromArgMatches>(
    program: &'static str,
    line: impl Iterator<Item = OsString>,
) -> Result<P, Usage> {
    let hidden = |name: &'static str| Arg::new(name).long(name).hide(true);
    let flag = |name| hidden(name).action(ArgAction::SetTrue);
    let value = |name| hidden(name).action(ArgAction::Append);
    let command = P::augment_args(clap::Command::new(program).infer_long_args(true))
        .args(IGNORED_FLAGS.map(flag))
        .args(IGNORED_VALUES.map(value))
        .args(REFUSED.map(|(name, _)| hidden(name).num_args(0..=1).action(ArgAction::Append)));
    let matches: ArgMatches = command.get_matches_from(line);
    let is_given = |name: &str| matches.value_source(name).is_some();
    if let Some((option, why)) = REFUSED.into_iter().find(|(name, _)| is_given(name)) {
        return Err(Usage::NotAsStandIn { option, why });
    }
    P::from_arg_matches(&matches).map_err(|error| error.exit())
}

impl Sender {
    /// Prepares the source.
    ///
    /// # Errors
    /// If the content is not available, or no option states when the transfer starts.
    pub fn resolve(self) -> Result<Resolved<Send>, Failure> {
        let max_wait = given(self.max_wait).or(given(self.autostart));
        let expect = self.min_receivers.filter(|receivers| *receivers > 0);
        if expect.is_none() && max_wait.is_none() {
            return Err(Usage::NoStart.into());
        }
        let content = match self.common.pipe {
            Some(command) => filtered(&command, self.common.file.as_deref())?,
            None => session::send_content(vec![self.common.file.unwrap_or_else(|| "-".into())], None)?,
        };
        let mut config = Send::new(content);
        let group = self.mcast_data_address.map_or(default_group().ip(), IpAddr::V4);
        config.place.group = SocketAddr::new(group, self.common.portbase);
        config.place.interface = self.common.interface;
        config.place.ttl = self.common.ttl;
        config.place.datagram = self.blocksize.map(|bytes| bytes + wire::codec::DATA_HEADER_LEN as u16);
        config.rendezvous = self.common.mcast_rdv_address;
        config.max = self.max_bitrate;
        config.expect = expect;
        config.join_timeout = given(self.common.start_timeout);
        // Without a number of receivers, the transfer starts after the maximum time.
        config.min_wait = expect.map_or(max_wait.unwrap_or_default(), |_| self.min_wait);
        config.max_wait = max_wait;
        Ok(plain(config))
    }
}

/// Parses a duration in seconds, as udpcast does.
fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(|seconds: u32| Duration::from_secs(seconds.into()))
}

/// Returns a time limit; `None` for 0, which stands for no limit.
fn given(limit: Option<Duration>) -> Option<Duration> {
    limit.filter(|limit| !limit.is_zero())
}

/// Returns a configuration with the default output.
fn plain<C>(config: C) -> Resolved<C> {
    let output_options = OutputOptions::default();
    Resolved { config, output_options, warnings: Vec::new(), report: None, hook: None }
}

/// Work after the end of a receiving session.
#[derive(Debug)]
pub struct Remainder {
    filter: Option<(Child, OsString)>,
    synced: Option<(File, PathBuf)>,
}

impl Receiver {
    /// Prepares the receiver, and opens its output.
    ///
    /// # Errors
    /// If the output cannot be opened, or the command cannot be started.
    pub fn resolve(self) -> Result<(Resolved<Receive>, Remainder), Failure> {
        let mut remainder = Remainder { filter: None, synced: None };
        let file = self.common.file.as_deref().map(create).transpose()?;
        if let (Some(file), Some(path)) = (&file, self.common.file) {
            let failed = |source| unopened(&path, source);
            let is_device = file.metadata().map_err(failed)?.file_type().is_block_device();
            let copy = file.try_clone().map_err(failed)?;
            remainder.synced = (self.sync || is_device && !self.nosync).then_some((copy, path));
        }
        let output = match self.common.pipe {
            Some(command) => {
                let stdout = file.map_or_else(Stdio::inherit, Stdio::from);
                let mut child = shell(&command)
                    .stdin(Stdio::piped())
                    .stdout(stdout)
                    .spawn()
                    .map_err(|source| unstarted(&command, source))?;
                let input = child.stdin.take().expect("the standard input is a pipe");
                remainder.filter = Some((child, command));
                Output::new(input)
            }
            None => file.map_or_else(|| Output::new(io::stdout()), Output::new),
        };
        let mut config = Receive::new(Destination::Writer(output));
        config.place.group.set_port(self.common.portbase);
        config.place.interface = self.common.interface;
        config.place.join_timeout = given(self.common.start_timeout);
        if let Some(timeout) = given(self.receive_timeout) {
            config.place.idle_timeout = timeout;
        }
        if let Some(buffer) = self.rcvbuf {
            config.place.buffer = buffer;
        }
        config.rendezvous = self.common.mcast_rdv_address;
        Ok((plain(config), remainder))
    }
}

impl Remainder {
    /// Waits for the command, and until the content is on the disk.
    ///
    /// # Errors
    /// If the command fails, or the disk does.
    pub fn finish(self) -> Result<(), Failure> {
        if let Some((mut child, command)) = self.filter {
            let ended = child.wait().and_then(succeeded);
            ended.map_err(|source| unstarted(&command, source))?;
        }
        if let Some((file, path)) = self.synced {
            let what = format!("write {} to the disk", path.display());
            file.sync_all().map_err(|source| Failure::System { what, source })?;
        }
        Ok(())
    }
}

/// Opens a file or device for the content.
fn create(path: &Path) -> Result<File, Failure> {
    let options = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    options.map_err(|source| unopened(path, source))
}

fn unopened(path: &Path, source: io::Error) -> Failure {
    Failure::System { what: format!("open {}", path.display()), source }
}

fn unstarted(command: &OsStr, source: io::Error) -> Failure {
    Failure::System { what: format!("complete the command `{}`", command.display()), source }
}

fn shell(command: &OsStr) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    shell
}

/// Returns an error if a command has failed.
fn succeeded(status: std::process::ExitStatus) -> io::Result<()> {
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// Starts a command that reads a file, or standard input. Returns its output as content.
fn filtered(command: &OsStr, file: Option<&Path>) -> Result<Content, Failure> {
    let mut shell = shell(command);
    if let Some(path) = file {
        shell.stdin(File::open(path).map_err(|source| unopened(path, source))?);
    }
    let mut child = shell.stdout(Stdio::piped()).spawn().map_err(|source| unstarted(command, source))?;
    let output = child.stdout.take().expect("the standard output is a pipe");
    Ok(Content::Reader { name: "stdin".into(), input: Input::new(Filter { child, output }) })
}

/// The output of a command. If the command fails, the content ends with an error, so that receivers do not take it for complete.
struct Filter {
    child: Child,
    output: ChildStdout,
}

impl Read for Filter {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.output.read(into)? {
            0 => self.child.wait().and_then(succeeded).map(|()| 0),
            len => Ok(len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(line: &str) -> Result<Option<StandIn>, Usage> {
        StandIn::called(line.split_whitespace().map(OsString::from))
    }

    fn sender(line: &str) -> Result<Send, Failure> {
        match called(line)?.expect("it is a name of udpcast's programs") {
            StandIn::Sender(sender) => sender.resolve().map(|resolved| resolved.config),
            StandIn::Receiver(_) => panic!("it is a sender"),
        }
    }

    #[test]
    fn options_of_fog_become_a_configuration() {
        let config = sender(
            "/usr/local/sbin/udp-sender --interface eth0 --min-receivers 3 --max-wait 600 --max-bitrate 40m \
             --mcast-data-address 239.1.1.1 --mcast-rdv-address 10.0.0.1 --portbase 9002 --full-duplex --ttl 32 \
             --nokbd --nopointopoint --rexmit-hello-interval 500 --file Cargo.toml",
        );
        let config = config.expect("FOG uses these options");
        assert_eq!(config.place.group, "239.1.1.1:9002".parse().expect("an address"));
        assert_eq!((config.place.interface.as_deref(), config.place.ttl), (Some("eth0"), 32));
        assert_eq!((config.expect, config.max_wait), (Some(3), Some(Duration::from_secs(600))));
        assert_eq!((config.join_timeout, config.max.map(Rate::bps)), (None, Some(40e6)));
        assert_eq!(config.rendezvous, Some(Ipv4Addr::new(10, 0, 0, 1)));
    }

    #[test]
    fn options_of_clonezilla_become_a_configuration() {
        let config = sender(
            "udp-sender --min-clients 2 --min-wait 5 --max-wait 30 --full-duplex --nokbd --mcast-all-addr 224.0.0.1 \
             --portbase 2232 --ttl 1 --retries-until-drop 50 -f Cargo.toml",
        );
        let config = config.expect("Clonezilla uses these options");
        assert_eq!(config.place.group, SocketAddr::new(default_group().ip(), 2232));
        assert_eq!((config.expect, config.min_wait), (Some(2), Duration::from_secs(5)));
        assert!(matches!(
            called("udp-receiver --nokbd --portbase 2232 --pipe cat"),
            Ok(Some(StandIn::Receiver(_)))
        ));
    }

    #[test]
    fn transfer_starts_after_the_maximum_time_without_a_number() {
        let config =
            sender("udp-sender --file Cargo.toml --max-wa 7").expect("a beginning of an option suffices");
        assert_eq!((config.expect, config.min_wait), (None, Duration::from_secs(7)));
        let error = sender("udp-sender --file Cargo.toml").expect_err("nothing states the start").to_string();
        assert!(error.contains("--min-receivers"), "{error}");
    }

    #[test]
    fn options_that_change_a_session_are_refused_with_reasons() {
        for (option, why) in REFUSED {
            let error =
                called(&format!("udp-sender --file x --{option}")).expect_err("it is refused").to_string();
            assert!(error.contains(option) && error.contains(why), "{error}");
        }
    }

    #[test]
    fn content_of_a_failing_command_ends_with_an_error() {
        for (command, is_complete) in [("printf abc", true), ("printf abc; exit 3", false)] {
            let content = filtered(OsStr::new(command), None).expect("the shell starts");
            let Content::Reader { input, .. } = content else { panic!("it is a stream") };
            let mut bytes = Vec::new();
            assert_eq!(input.take().read_to_end(&mut bytes).is_ok(), is_complete, "{command}");
            assert_eq!(bytes, b"abc");
        }
    }

    #[test]
    fn other_names_are_not_programs_of_udpcast() {
        assert!(matches!(called("faircast send x"), Ok(None)));
        assert!(matches!(called("/usr/bin/udp-sender-static"), Ok(None)));
    }
}
