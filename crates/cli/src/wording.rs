//! Messages of sessions that contain names of command line options, which the library does not know.

use crate::units;
use faircast::config::other_default;
use faircast::error::{
    ConfigError, EndReason, JoinObstacle, StartError, StorageError, SystemError, TransferError, Unlayered,
    named_refusals, seconds,
};
use faircast::event::{Advice, Setting};
use faircast::{Error, Event};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

/// Advice if large datagrams do not arrive.
const SMALLER: &str = "`--datagram 1200` at the source sends smaller packets";

/// Advice if a session does not leave this host.
const INTERFACE: &str =
    "bring one up or choose one with --iface, and start again; `faircast doctor` lists their faults";

/// Advice about links that lead out of the given paths. It names the options that send the targets of such links.
const LINKS: &str = "--copy-unsafe-links sends the targets of such links, --copy-links those of all links";

/// Advice if announcements arrive and data does not.
const PATH: &str =
    "look at the MTU of the path (`--datagram 1200` at the source sends smaller packets) and at firewalls";

/// Advice for receivers, which resume a transfer.
const RESUME: &str = "run the same command again to resume";

/// Adds the name of an option, or advice, to a warning.
pub fn event(event: Event) -> Event {
    match event {
        Event::Warning { message, concerns: Some(setting) } => {
            let flag = match setting {
                Setting::Timeout => "--timeout",
                Setting::Datagram => SMALLER,
                Setting::Scheme => "--cc",
                Setting::Role => "--role repeater",
                Setting::Interface => INTERFACE,
                Setting::Port => "--port",
                Setting::Group => "--group",
                Setting::Links => LINKS,
                _ => return Event::Warning { message, concerns: Some(setting) },
            };
            Event::Warning { message: format!("{message} ({flag})"), concerns: Some(setting) }
        }
        event => event,
    }
}

/// Formats a time, as in `7 s`.
fn secs(time: Duration) -> String {
    seconds(time.as_secs_f64())
}

/// Describes the data that a failed receiver has stored, with advice.
pub fn stored(verified_bytes: u64, resumes: bool) -> String {
    match (units::bytes(verified_bytes), resumes) {
        (bytes, true) => format!("{bytes} are verified and stored, {RESUME}"),
        _ if verified_bytes == 0 => "no data was verified, run the same command again".to_owned(),
        (bytes, false) => format!("{bytes} were verified and are not stored, run the same command again"),
    }
}

/// Returns advice for incomplete receivers.
pub fn advice(advice: Advice) -> Cow<'static, str> {
    match advice {
        Advice::Path => PATH.into(),
        advice => advice.to_string().into(),
    }
}

/// Describes the error of a session: the library's message, and advice that names options.
pub fn error(error: &Error) -> String {
    match error {
        Error::Start(StartError::NoReceiver { group, waited, ttl, port, each }) => match named_refusals(each) {
            Some(refusals) => format!("no receiver joined; {refusals}"),
            None => format!(
                "no receiver answered on {group} within {}; start `faircast recv` with the same group and the \
                 same key, within the reach of --ttl {ttl}. This host must accept UDP from receivers on port {port}, and receivers must accept UDP on port {}: \
                 check with `faircast doctor`{}. On paths without feedback, use `send --one-way` and \
                 `recv --one-way`",
                secs(*waited),
                group.port(),
                other_group(*group)
            ),
        },
        Error::Start(StartError::NoHost { invited: 0, waited }) => format!(
            "no host requested service within {} (--join-timeout); start `faircast recv --parent` with this host's address and \
             the same key, and let UDP reach this host",
            secs(*waited)
        ),
        Error::Start(StartError::NoHost { invited, waited }) => format!(
            "none of the {invited} invited hosts joined within {} (--join-timeout); start `faircast recv --listen` on these hosts, with the same key, \
             and let UDP reach them",
            secs(*waited)
        ),
        Error::Start(StartError::NoSession { group, waited, seen: Some(JoinObstacle::Sealed) }) => format!(
            "no session was announced on {group} within {}; a sealed session was found: give its --key",
            secs(*waited)
        ),
        Error::Start(StartError::NoSession { group, waited, seen: Some(JoinObstacle::Unsealed) }) => format!(
            "no session was announced on {group} within {}; an unsealed session was found: leave out --key to accept it",
            secs(*waited)
        ),
        Error::Start(StartError::NoSession { group, waited, seen: Some(JoinObstacle::OneWay) }) => format!(
            "no session with feedback was announced on {group} within {}; a session without feedback was found: use --one-way to \
             receive it, if the clocks of both hosts agree",
            secs(*waited)
        ),
        Error::Start(StartError::NoSession { seen: Some(JoinObstacle::Unanswering(_)), .. }) => {
            format!("{error} On paths without feedback, use `send --one-way` there and --one-way here")
        }
        Error::Start(StartError::NoSession { seen: Some(JoinObstacle::Unsigned | JoinObstacle::UnsignedStreams), .. }) => {
            error.to_string().replace("leave out the public key", "leave out --verify-key")
        }
        Error::System(SystemError::Outage { lasted, why }) => format!(
            "{why}; waited {} s for the network (--timeout). Run the command again when the network is back: receivers resume",
            lasted.as_secs()
        ),
        Error::Transfer(TransferError::NothingArrives { packets, bytes, lasted, verified_bytes, resumes }) => format!(
            "announcements arrive but no data: none of {packets} packets of up to {bytes} bytes arrived within {} s; {PATH}; {}",
            lasted.as_secs(),
            stored(*verified_bytes, *resumes)
        ),
        Error::Transfer(TransferError::NothingServed { source_address, lasted, verified_bytes, resumes }) => format!(
            "{source_address} answers but has sent none of the requested data within {} s (--timeout); {}",
            lasted.as_secs(),
            stored(*verified_bytes, *resumes)
        ),
        Error::Transfer(TransferError::SourceSilent { silent, verified_bytes, resumes }) => format!(
            "the source has been silent for {}; {}",
            secs(*silent),
            stored(*verified_bytes, *resumes)
        ),
        Error::Transfer(TransferError::Ended { reason: EndReason::TooSlow, .. }) => {
            "this host is slower than the source allows (--slow drop), so the source excluded it; ask the administrator of the source to send the remainder to this host alone".to_owned()
        }
        Error::Transfer(TransferError::Ended { reason: EndReason::SentEnough, verified_bytes, resumes }) => format!(
            "the source has ended its repetitions (`send --repeat`), and some data did not arrive; {}",
            stored(*verified_bytes, *resumes)
        ),
        Error::Transfer(TransferError::Ended { reason, verified_bytes, resumes }) => {
            format!(
                "the source ended the session before all data had arrived ({reason}); {}",
                stored(*verified_bytes, *resumes)
            )
        }
        Error::Storage(StorageError::Pipe(cause)) => format!("cannot read standard input or write standard output: {cause}"),
        error => setting(error),
    }
}

/// Warns that hosts of the other address family use another default group.
fn other_group(group: SocketAddr) -> String {
    other_default(group)
        .map_or_else(String::new, |other| format!(". Also, {other}: give the same --group at both ends"))
}

/// Describes errors of arguments.
fn setting(error: &Error) -> String {
    match error {
        Error::Storage(StorageError::Object(faircast::ObjectError::NameHere(why))) => {
            let text = why.to_string();
            text.replace("with names escaped or kept", "with --unsafe-names escape or keep").replace("with names kept", "with --unsafe-names keep")
        }
        Error::Storage(StorageError::Object(faircast::ObjectError::Older { .. } | faircast::ObjectError::OtherSource { .. })) => {
            error.to_string().replace("allow overwriting", "receive with --overwrite")
        }
        Error::Config(ConfigError::SchemeOptions { len, most }) => format!(
            "the options of --cc take {len} bytes, but the announcement has room for {most}: set fewer options"
        ),
        Error::Config(ConfigError::NoGroupForLayer { scheme, layers, top, by, other, group }) => format!(
            "{scheme} sends {layers} layers, but no group remains for layer {top} if each layer has the next {by} after {group}; choose a lower group \
             with --group, or --layers-by {other}, or fewer layers"
        ),
        Error::Config(ConfigError::NotInLayers { what, scheme }) => {
            let (what, instead) = match what {
                Unlayered::LiveStream => (
                    "a live stream",
                    "give each layer a separate stream (--layer base.ts --layer more.ts), or choose another --cc",
                ),
                Unlayered::SlowPolicy => {
                    ("--slow", "slow receivers join fewer layers and do not slow other receivers: leave out --slow")
                }
                Unlayered::Unicast => {
                    ("--listen or --invite", "each host has a separate rate: choose a --cc without layers")
                }
                Unlayered::OneWay => ("--one-way", "leave out --cc, or use --wire alc"),
                _ => return error.to_string(),
            };
            format!("{what} is not supported with {scheme}, which sends in layers: {instead}")
        }
        Error::Config(ConfigError::LiveReceipts) => {
            "a live stream has no receipts, because late joiners receive another part of it; leave out --receipts"
                .to_owned()
        }
        Error::Config(ConfigError::NeedsLayers { scheme }) => format!(
            "--layer needs a scheme that sends in layers, which {scheme} does not; use --cc rlc or --cc gmcc"
        ),
        Error::Config(ConfigError::LayerInputs { count, layers, scheme }) => format!(
            "{count} streams (--layer) are more than the {layers} layers of {scheme}; give 1 to {layers} streams, base layer first"
        ),
        Error::System(SystemError::MtuTooSmall { .. }) => format!("{error} with --iface"),
        Error::Config(ConfigError::NotAStream { files }) => format!(
            "the session contains {}, but `--stdout` takes one file or a stream; use `--out DIR`, or send `tar c DIR | faircast send -`",
            if *files == 1 { "a directory".to_owned() } else { format!("{files} files") }
        ),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast::event::ReceiverReport;

    #[test]
    fn warning_contains_the_name_of_the_option_concerned() {
        let reported =
            Event::Warning { message: "waiting up to 60 s".into(), concerns: Some(Setting::Timeout) };
        let Event::Warning { message, .. } = event(reported) else { panic!("it stays a warning") };
        assert_eq!(message, "waiting up to 60 s (--timeout)");
        let alone = Event::Warning { message: "this host alone".into(), concerns: Some(Setting::Interface) };
        let Event::Warning { message, .. } = event(alone) else { panic!("it stays a warning") };
        assert!(message.contains("--iface") && message.contains("faircast doctor"), "{message}");
        assert_eq!(event(Event::warning("as it is")), Event::warning("as it is"));
    }

    #[test]
    fn message_mentions_a_resume_only_if_the_receiver_resumes() {
        let error = |resumes| {
            error(&Error::Transfer(TransferError::SourceSilent {
                silent: Duration::from_secs(20),
                verified_bytes: 92_220_524,
                resumes,
            }))
        };
        assert_eq!(
            error(true),
            "the source has been silent for 20 s; 92.2 MB are verified and stored, run the same command again to resume"
        );
        assert!(!error(false).contains("resume") && error(false).contains("not stored"), "{}", error(false));
    }

    #[test]
    fn hosts_that_refused_the_session_are_named_if_no_host_joined() {
        let refused = |host: &str, reason: &str| ReceiverReport::refused(host.to_owned(), reason.to_owned());
        let each = vec![refused("pc1", "it has another key (1f2e3d4c)"), refused("pc2", "it has no key")];
        let (group, waited) = ("239.255.70.1:5777".parse().expect("a group"), Duration::from_secs(3));
        let stated = error(&Error::Start(StartError::NoReceiver { group, waited, ttl: 1, port: 7, each }));
        assert_eq!(stated, "no receiver joined; pc1 has another key (1f2e3d4c), pc2 has no key");
    }

    #[test]
    fn error_message_states_the_option_that_helps() {
        let group = "239.255.70.1:5777".parse().expect("a group");
        let waited = Duration::from_secs(3);
        let cases = [
            (
                Error::Start(StartError::NoReceiver { group, waited, ttl: 4, port: 7, each: Vec::new() }),
                "within 3 s; ",
            ),
            (
                Error::Start(StartError::NoReceiver { group, waited, ttl: 4, port: 7, each: Vec::new() }),
                "--ttl 4",
            ),
            (
                Error::Start(StartError::NoReceiver { group, waited, ttl: 4, port: 7, each: Vec::new() }),
                "from receivers on port 7, and receivers must accept UDP on port 5777",
            ),
            (
                Error::Start(StartError::NoReceiver { group, waited, ttl: 4, port: 7, each: Vec::new() }),
                "`send --one-way`",
            ),
            (
                Error::Start(StartError::NoSession { group, waited, seen: Some(JoinObstacle::OneWay) }),
                "use --one-way",
            ),
            (
                Error::Start(StartError::NoSession { group, waited, seen: Some(JoinObstacle::Sealed) }),
                "give its --key",
            ),
            (
                Error::Config(ConfigError::NotInLayers { what: Unlayered::SlowPolicy, scheme: "rlc" }),
                "--slow is not supported with rlc",
            ),
            (
                Error::System(SystemError::MtuTooSmall { interface: "eth0".into(), mtu: 100 }),
                "choose another interface with --iface",
            ),
            (Error::Config(ConfigError::NotAStream { files: 2 }), "`--out DIR`"),
        ];
        for (case, words) in cases {
            assert!(error(&case).contains(words), "{}", error(&case));
            assert!(!case.to_string().contains("--"), "the library names no flag: {case}");
        }
    }
}
