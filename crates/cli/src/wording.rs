//! Messages of sessions with the names of options, which the library does not know.

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

/// Advice to send links that lead out of the given paths as their targets.
const LINKS: &str = "--copy-unsafe-links sends the targets of such links, --copy-links those of all links";

/// Advice if announcements arrive and data does not.
const PATH: &str =
    "look at the MTU of the path (`--datagram 1200` at the source sends smaller packets) and at firewalls";

/// Advice for receivers, which resume a transfer.
const RESUME: &str = "run the same command again to resume";

/// Returns an event whose warning names the option.
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

/// Describes the error of a session: the library's message, and advice with names of options.
pub fn error(error: &Error) -> String {
    match error {
        Error::Start(StartError::NoReceiver { group, waited, ttl, port, each }) => match named_refusals(each) {
            Some(refusals) => format!("no receiver joined; {refusals}"),
            None => format!(
                "no receiver answered on {group} within {}; is `faircast recv` running there, on the same group, with the \
                 same key, within --ttl {ttl} hops? This host must accept UDP from receivers on port {port}, and they on port {}: \
                 `faircast doctor` checks both{}. Where nothing can come back (a diode, a satellite link) use `send --one-way` and \
                 `recv --one-way`",
                secs(*waited),
                group.port(),
                other_group(*group)
            ),
        },
        Error::Start(StartError::NoHost { invited: 0, waited }) => format!(
            "no host asked to be served within {} (--join-timeout); does `faircast recv --parent` with this host's address run, with \
             the same key, and does UDP reach this host?",
            secs(*waited)
        ),
        Error::Start(StartError::NoHost { invited, waited }) => format!(
            "none of the {invited} hosts joined within {} (--join-timeout); does `faircast recv --listen` run there, with the same key, \
             and does UDP reach them?",
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
            "no session was announced on {group} within {} whose source answers; a session without feedback was found: use --one-way to \
             follow it by this host's clock",
            secs(*waited)
        ),
        Error::Start(StartError::NoSession { seen: Some(JoinObstacle::Unanswering(_)), .. }) => {
            format!("{error} Where no feedback is possible, use `send --one-way` there and --one-way here")
        }
        Error::Start(StartError::NoSession { seen: Some(JoinObstacle::Unsigned | JoinObstacle::UnsignedStreams), .. }) => {
            error.to_string().replace("leave out the public key", "leave out --verify-key")
        }
        Error::System(SystemError::Outage { lasted, why }) => format!(
            "{why}; waited {} s for it (--timeout). Run the command again when it is back: receivers resume",
            lasted.as_secs()
        ),
        Error::Transfer(TransferError::NothingArrives { packets, bytes, lasted, verified_bytes, resumes }) => format!(
            "announcements arrive but no data: none of {packets} packets of up to {bytes} bytes within {} s; {PATH}; {}",
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
            "dropped: slower than the source allows (--slow drop); ask its administrator to send the remainder to this host alone".to_owned()
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
        .map_or_else(String::new, |other| format!(". Also, {other}: name one with --group at both ends"))
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
            "the options of --cc take {len} bytes where the announcement has room for {most}: set fewer of them"
        ),
        Error::Config(ConfigError::NoGroupForLayer { scheme, layers, top, by, other, group }) => format!(
            "{scheme} sends {layers} layers and there is no group for layer {top} by {by} from {group}; choose a lower one \
             with --group, or --layers-by {other}, or fewer layers"
        ),
        Error::Config(ConfigError::NotInLayers { what, scheme }) => {
            let (what, instead) = match what {
                Unlayered::LiveStream => (
                    "a live stream",
                    "give each layer a stream of its own (--layer base.ts --layer more.ts), or choose another --cc",
                ),
                Unlayered::SlowPolicy => {
                    ("--slow", "slow receivers join fewer layers and do not slow the others, leave it out")
                }
                Unlayered::Unicast => {
                    ("--listen or --invite", "each host has its own rate, choose a --cc at one rate")
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
            "{count} streams (--layer) do not fit the {layers} layers of {scheme}; give 1 to {layers}, base layer first"
        ),
        Error::System(SystemError::MtuTooSmall { .. }) => format!("{error} with --iface"),
        Error::Config(ConfigError::NotAStream { files }) => format!(
            "the session carries {}; `--stdout` takes one file or a stream, use `--out DIR`, or send `tar c DIR | faircast send -`",
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
    fn warning_names_its_option_in_text_and_json() {
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
    fn hosts_that_refused_are_named_if_no_receiver_joined() {
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
                "from receivers on port 7, and they on port 5777",
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
