use super::*;
use crate::args::{Cli, Command};
use clap::Parser;
use faircast::LeftOut;
use faircast::error::TransferError;
use faircast::event::IncompleteReceiver;
use faircast_wire::{GroupKey, Spacing};

fn typed(line: &[&str]) -> Command {
    let words = ["faircast"].iter().chain(line);
    Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).command
}

fn sending(line: &[&str]) -> Result<Resolved<SendConfig>, Usage> {
    let Command::Send(send) = typed(line) else { panic!("{line:?} is a send") };
    send.resolve()
}

fn receiving(line: &[&str]) -> Result<Resolved<ReceiveConfig>, Usage> {
    let Command::Recv(recv) = typed(line) else { panic!("{line:?} is a recv") };
    recv.resolve()
}

fn refused(line: &[&str]) -> String {
    let words = ["faircast"].iter().chain(line);
    Cli::try_parse_from(words).expect_err("it makes no sense").to_string()
}

#[test]
fn send_without_options_has_sensible_defaults() {
    let Resolved { config, warnings, .. } = sending(&["send", "Cargo.toml"]).expect("the file is there");
    assert_eq!(config.group.to_string(), "239.255.70.1:5777");
    assert_eq!((config.ttl, config.slow, config.expect), (1, SlowReceiverPolicy::Follow, None));
    assert_eq!(config.join_timeout.as_secs(), 10);
    assert_eq!(config.content, Content::Paths(vec!["Cargo.toml".into()]));
    assert!(config.key.is_none() && config.interface.is_none() && !config.host.is_empty());
    assert_eq!(warnings.len(), 1, "it is said that nothing is sealed: {warnings:?}");
}

#[test]
fn unicast_source_sends_multicast_only_with_group_or_interface() {
    let unicast = |flags: &[&str]| {
        let line = [&["send", "Cargo.toml"][..], flags].concat();
        sending(&line).expect("fine").config.unicast
    };
    assert_eq!(unicast(&[]), None);
    let listening = unicast(&["--listen"]).expect("hosts are served");
    assert_eq!((listening.children, listening.multicast), (16, Multicast::Not));
    assert_eq!(listening.listen.iter().map(|at| at.port()).collect::<Vec<_>>(), [5778, 5778]);
    let beside =
        unicast(&["--listen", "127.0.0.1:6000", "--max-children", "3", "--iface", "lo"]).expect("they are");
    assert_eq!((beside.children, beside.multicast, beside.listen.len()), (3, Multicast::Also, 1));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let list = directory.path().join("hosts");
    std::fs::write(&list, "192.0.2.1\n192.0.2.2:6000\n").expect("the directory is ours");
    let list = list.to_str().expect("text");
    let invited = unicast(&["--invite", list]).expect("they are");
    assert_eq!((invited.invite.len(), invited.children, invited.listen), (2, 0, vec![]));
    assert!(matches!(
        sending(&["send", "Cargo.toml", "--invite", "no/such/list"]),
        Err(Usage::HostsUnreadable { .. })
    ));
    assert!(refused(&["recv", "--listen", "--parent", "192.0.2.1"]).contains("cannot be used with"));
    let waits = receiving(&["recv", "--listen", "--source", "192.0.2.9"]).expect("fine").config;
    assert_eq!(waits.listen.map(|at| at.to_string()).as_deref(), Some("0.0.0.0:5778"));
}

#[test]
fn options_of_the_packaged_service_are_valid() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/faircast-recv.service");
    let unit = std::fs::read_to_string(unit).expect("the unit is there");
    let line =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/faircast ")).expect("it runs");
    let options = ["", "--out /srv/images", "--preserve owner,setid --max-size 40G"];
    for typed in options.map(|options| line.replace("$RECV_OPTIONS", options)) {
        let words: Vec<&str> = typed.split_whitespace().collect();
        let config = receiving(&words).expect("it makes sense").config;
        let out = if typed.contains("--out") { "/srv/images" } else { "." };
        assert_eq!(config.destination, Destination::Directory(out.into()), "{typed}");
    }
}

#[test]
fn option_no_key_suppresses_the_warning() {
    assert!(sending(&["send", "Cargo.toml", "--no-key"]).expect("fine").warnings.is_empty());
}

#[test]
fn layers_use_consecutive_addresses_or_ports() {
    let spacing = |flags: &[&str]| {
        let line = [&["send", "Cargo.toml", "--cc", "rlc"][..], flags].concat();
        sending(&line).expect("fine").config.spacing
    };
    assert_eq!(spacing(&[]), Spacing::Address);
    assert_eq!(spacing(&["--layers-by", "port"]), Spacing::Port);
    assert!(refused(&["send", "Cargo.toml", "--layers-by", "host"]).contains("address"));
}

#[test]
fn recv_without_options_waits_and_writes_to_the_current_folder() {
    let config = receiving(&["recv"]).expect("fine").config;
    assert_eq!(config.destination, Destination::Directory(".".into()));
    assert_eq!((config.join_timeout, config.idle_timeout.as_secs()), (None, 60));
    assert_eq!((config.durability, config.overwrite), (Durability::Fast, OverwritePolicy::Refuse));
    let config = receiving(&["recv", "--overwrite"]).expect("fine").config;
    assert_eq!(config.overwrite, OverwritePolicy::Accept);
    let stdout = receiving(&["recv", "--stdout"]).expect("fine").config.destination;
    assert!(matches!(stdout, Destination::Writer(_)));
}

#[test]
fn contradictory_arguments_are_refused_with_a_reason() {
    assert!(matches!(sending(&["send", "-", "Cargo.toml"]), Err(Usage::StdinAndPaths)));
    assert!(matches!(sending(&["send", "-", "--delta"]), Err(Usage::DeltaOfStdin)));
    assert!(matches!(sending(&["send", "Cargo.toml", "--name", "x"]), Err(Usage::NameWithoutStdin)));
    assert!(matches!(sending(&["send", "no/such/file"]), Err(Usage::NoSuchPath(_))));
    assert!(matches!(
        sending(&["send", "Cargo.toml", "--min", "10M", "--max", "5M"]),
        Err(Usage::MinAboveMax { .. })
    ));
    assert!(matches!(
        sending(&["send", "Cargo.toml", "--slow", "floor:10M", "--max", "5M"]),
        Err(Usage::SlowAboveMax { policy: "floor", .. })
    ));
    assert!(matches!(receiving(&["recv", "--source", "ff15::1"]), Err(Usage::SourceIsGroup(_))));
    assert!(matches!(receiving(&["recv", "--source", "fd00::1"]), Err(Usage::Families { .. })));
    assert!(matches!(receiving(&["recv", "--out", "Cargo.toml"]), Err(Usage::OutIsFile(_))));
    assert!(matches!(receiving(&["recv", "--key", "no/such/key"]), Err(Usage::KeyUnreadable { .. })));
}

#[test]
fn key_that_other_users_can_read_is_used_with_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("lab.key");
    let line = GroupKey::from_bytes([7; 32]).to_line();
    std::fs::write(&path, line.as_bytes()).expect("the directory is ours");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("the file is ours");
    let Resolved { config, warnings, .. } =
        receiving(&["recv", "--key", path.to_str().expect("text")]).expect("a key");
    assert!(config.key.is_some());
    assert!(warnings[0].contains("chmod 600"), "{warnings:?}");
}

#[test]
fn values_out_of_range_are_refused_while_parsing() {
    assert!(refused(&["doctor", "--group", "192.0.2.1"]).contains("not a multicast address"));
    assert!(refused(&["send", "x", "--group", "0.0.0.0"]).contains("not a multicast address"));
    assert!(refused(&["send", "x", "--group", "239.1.1.1:0"]).contains("port 0"));
    assert!(refused(&["send", "x", "--ttl", "0"]).contains("TTL of 0"));
    assert!(refused(&["send", "x", "--expect", "0"]).contains("--expect 0"));
    assert!(refused(&["send", "x", "--max", "10"]).contains("below the minimum rate"));
    assert!(refused(&["send", "x", "--key", "k", "--no-key"]).contains("cannot be used with"));
    assert!(refused(&["send", "x", "--cc", "nosuch"]).contains("nosuch"));
    assert!(refused(&["send"]).contains("PATH"));
    assert!(refused(&["recv", "--stdout", "--out", "d"]).contains("cannot be used with"));
}

/// Runs a fake transport that reports `event` and ends with `report`. Returns the output for programs, the output for people, and
/// the result of the run.
fn reported(
    line: &[&str],
    event: Event,
    report: Result<SendReport, Error>,
) -> (String, String, Result<(), Failure>) {
    let (mut program, mut people) = (Vec::new(), Vec::new());
    let output = Output { program: &mut program, people: &mut people, block: None, keyboard: Keyboard::None };
    let resolved = sending(line).expect("the line makes sense");
    let result = send(resolved, output, &Stop::new().expect("descriptors are left"), |_, events, _| {
        events(event);
        report
    });
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(program), text(people), result)
}

#[test]
fn json_always_ends_with_a_done_line() {
    let line = ["send", "Cargo.toml", "--no-key", "--json"];
    let event = || Event::warning("w");
    let good = SendReport { ok: true, receivers: 1, verified: 1, ..SendReport::default() };
    let (program, people, result) = reported(&line, event(), Ok(good));
    assert!(result.is_ok() && people.is_empty());
    let last = program.lines().last().expect("lines were written");
    assert!(
        last.starts_with("{\"event\":\"done\",\"ok\":true,\"stopped\":false,\"rounds\":0,\"receivers\":1"),
        "{last}"
    );

    let (program, _, result) = reported(&line, event(), Err(Error::Transfer(TransferError::Stopped)));
    assert!(matches!(result, Err(Failure::Session(Error::Transfer(TransferError::Stopped)))));
    let lines: Vec<&str> = program.lines().collect();
    assert!(lines[1].starts_with("{\"event\":\"error\",\"class\":\"transfer\""), "{program}");
    assert_eq!(lines[2], "{\"event\":\"done\",\"ok\":false}");
}

#[test]
fn send_with_an_incomplete_receiver_fails_and_names_it() {
    let report = SendReport {
        receivers: 2,
        verified: 1,
        incomplete: vec![IncompleteReceiver { host: "lab-07".into(), reason: "silent".into() }],
        ..SendReport::default()
    };
    let (_, people, result) = reported(&["send", "Cargo.toml", "--no-key"], Event::warning("w"), Ok(report));
    let failure = result.expect_err("one receiver has not everything");
    assert_eq!(failure.class(), Class::Transfer);
    assert!(failure.to_string().starts_with("1 of 2 receivers incomplete: lab-07 (silent); "), "{failure}");
    assert!(people.contains("1 of 2 verified"), "{people}");
}

#[test]
fn headline_has_no_rate_if_no_receiver_is_complete() {
    let report = SendReport {
        receivers: 1,
        bytes: 314_572_800,
        moved_bytes: 70_000,
        duration: Duration::from_millis(63),
        goodput: Rate::from_bps(39.71e9),
        incomplete: vec![IncompleteReceiver {
            host: "lab-07".into(),
            reason: "the receiver was stopped".into(),
        }],
        ..SendReport::default()
    };
    let (_, people, result) = reported(&["send", "Cargo.toml", "--no-key"], Event::warning("w"), Ok(report));
    assert!(
        people.contains(
            "0 of 1 receiver verified after 0.06 s; the most complete receiver has 70.0 kB of 314.6 MB"
        ),
        "{people}"
    );
    assert!(!people.contains("bit/s") && result.is_err(), "{people}");
}

#[test]
fn join_time_and_transfer_time_are_reported_separately() {
    let report = |until_data, waited| SendReport {
        ok: true,
        receivers: 2,
        verified: 2,
        duration: Duration::from_millis(270),
        until_data: Duration::from_secs_f64(until_data),
        waited: Duration::from_secs_f64(waited),
        ..SendReport::default()
    };
    let line = ["send", "Cargo.toml", "--no-key"];
    let (_, people, _) = reported(&line, Event::warning("w"), Ok(report(7.8, 0.0)));
    assert!(
        people.contains(" in 0.27 s: ") && people.contains("; waited 7.80 s before the start"),
        "{people}"
    );
    let (_, people, _) = reported(&line, Event::warning("w"), Ok(report(0.1, 0.1)));
    assert!(!people.contains("waited"), "{people}");
}

#[test]
fn failed_send_names_one_remedy() {
    let incomplete = |reason: &str| SendReport {
        receivers: 2,
        verified: 1,
        incomplete: vec![IncompleteReceiver { host: "pc2".into(), reason: reason.into() }],
        ..SendReport::default()
    };
    let refused = IncompleteReceiver { host: "pc1".into(), reason: "refused: it has no key".into() };
    let refused =
        SendReport { verified: 1, receivers: 1, refused_hosts: vec![refused], ..SendReport::default() };
    for (report, remedy) in [
        (incomplete("its disk is full: 8 GB are needed"), "free space on pc2"),
        (incomplete("it has no permission to write this file or directory: /srv"), "let `recv` write on pc2"),
        (incomplete("it has content of a newer session"), "run `recv --overwrite` there"),
        (incomplete("silent"), "run both commands again: receivers resume"),
        (refused, "give pc1 this session's key"),
    ] {
        let (_, _, result) = reported(&["send", "Cargo.toml", "--no-key"], Event::warning("w"), Ok(report));
        let failure = result.expect_err("not everybody has everything");
        assert!(failure.to_string().contains(remedy), "{failure}");
    }
}

#[test]
fn stopped_send_reports_its_state_in_the_last_line() {
    let report = SendReport { stopped: true, receivers: 1, bytes: 5, ..SendReport::default() };
    let line = ["send", "Cargo.toml", "--no-key", "--json"];
    let (program, _, result) = reported(&line, Event::warning("w"), Ok(report));
    let failure = result.expect_err("it was stopped");
    assert!(failure.to_string().starts_with("stopped; "), "{failure}");
    assert_eq!(crate::failure::number(&failure), 1);
    let last = program.lines().last().expect("lines were written");
    assert!(last.contains("\"stopped\":true") && last.contains("\"bytes\":5"), "{last}");
}

#[test]
fn dropped_slow_receiver_causes_a_separate_exit_code() {
    let report =
        SendReport { receivers: 3, verified: 2, dropped: vec!["lab-07".into()], ..SendReport::default() };
    let line = ["send", "Cargo.toml", "--no-key", "--slow", "drop:5M"];
    let (_, _, result) = reported(&line, Event::warning("w"), Ok(report.clone()));
    let failure = result.expect_err("one was left out");
    assert_eq!(failure.to_string().split(';').next(), Some("left out as too slow: lab-07"));
    assert_eq!(crate::failure::number(&failure), 4);
    let more = SendReport { absent: vec!["lab-08".into()], ..report };
    let (_, _, result) = reported(&line, Event::warning("w"), Ok(more));
    let failure = result.expect_err("one has not come");
    assert!(
        failure.to_string().starts_with("did not join: lab-08, left out as too slow: lab-07; "),
        "{failure}"
    );
    assert_eq!(crate::failure::number(&failure), 1);
}

#[test]
fn send_with_an_unreadable_file_fails_and_names_the_file() {
    let unread = LeftOut { path: "a/secret".into(), reason: "no permission to read; change its mode".into() };
    let report = SendReport {
        receivers: 2,
        verified: 2,
        unsent: vec![unread],
        unsent_count: 3,
        ..SendReport::default()
    };
    let (_, _, result) =
        reported(&["send", "Cargo.toml", "--no-key"], Event::warning("w"), Ok(report.clone()));
    let failure = result.expect_err("something was not sent");
    let begins = "not sent: a/secret (no permission to read, change its mode) and 2 more; the receivers have everything else";
    assert!(failure.to_string().starts_with(begins), "{failure}");
    assert_eq!(crate::failure::number(&failure), 5);
    let slow = SendReport { dropped: vec!["lab-07".into()], ..report };
    let (_, _, result) = reported(&["send", "Cargo.toml", "--no-key"], Event::warning("w"), Ok(slow));
    assert_eq!(crate::failure::number(&result.expect_err("more than a slow one is missing")), 1);
}

#[test]
fn layered_summary_has_a_volume_but_no_repair_percentage() {
    let report = |layers| SendReport {
        ok: true,
        receivers: 1,
        verified: 1,
        repair_ratio: 3.5,
        layers,
        ..SendReport::default()
    };
    let line = ["send", "Cargo.toml", "--no-key"];
    let (_, people, _) = reported(&line, Event::warning("w"), Ok(report(1)));
    assert!(people.contains(", 250.0 % repair, "), "{people}");
    let (_, people, _) = reported(&line, Event::warning("w"), Ok(report(8)));
    assert!(people.contains(", 3.5 times the content on 8 layers, "), "{people}");
}

#[test]
fn option_quiet_prints_nothing_on_success() {
    let good = SendReport { ok: true, receivers: 1, verified: 1, ..SendReport::default() };
    let (program, people, result) = reported(&["send", "Cargo.toml", "-q"], Event::warning("w"), Ok(good));
    assert!(result.is_ok() && program.is_empty() && people.is_empty(), "{program}{people}");
}

#[test]
fn source_specific_group_without_a_source_causes_a_warning() {
    let warnings = |typed: &[&str]| receiving(typed).expect("it makes sense").warnings;
    for group in ["232.1.1.1", "[ff3e::8000:1]:5777"] {
        let reported = warnings(&["recv", "--group", group]);
        assert!(reported.len() == 1 && reported[0].contains("add --source"), "{group}: {reported:?}");
    }
    assert!(warnings(&["recv", "--group", "232.1.1.1", "--source", "192.0.2.1"]).is_empty());
    assert!(warnings(&["recv", "--group", "239.1.1.1"]).is_empty());
    assert!(warnings(&["recv", "--group", "[ff15::7]:5777"]).is_empty());
}

#[test]
fn impossible_output_directory_is_refused_at_the_start() {
    for (out, word) in [("Cargo.toml", "is a file"), ("Cargo.toml/below", "Cargo.toml is a file")] {
        let error = receiving(&["recv", "--out", out]).expect_err(out);
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(receiving(&["recv", "--out", "not/yet/there"]).is_ok());
}

#[test]
fn start_time_is_a_time_of_day_or_a_date() {
    let Resolved { config, .. } =
        sending(&["send", "Cargo.toml", "--start-at", "02:00"]).expect("the next such time");
    let now = std::time::SystemTime::now();
    let left = config.start_at.and_then(|at| at.duration_since(now).ok()).expect("it is in the future");
    assert!(left <= std::time::Duration::from_secs(90_000), "{left:?}");
    let past = refused(&["send", "Cargo.toml", "--start-at", "2020-01-01T02:00"]);
    assert!(past.contains("is in the past"), "{past}");
}

#[test]
fn limit_of_the_day_below_another_rate_is_refused() {
    let send = |more: &[&str]| {
        let line = [&["send", "Cargo.toml", "--bandwidth", "08:00-18:00 5M, 50M"], more].concat();
        sending(&line).map(|resolved| resolved.config.day_limits.and_then(|limits| limits.lowest()))
    };
    assert_eq!(send(&["--max", "9M"]).expect("the lower one applies"), Some(Rate::from_mbps(5.0)));
    for (more, option) in [(["--min", "6M"], "--min"), (["--slow", "drop:6M"], "--slow")] {
        let error = send(&more).expect_err("it makes no sense").to_string();
        assert!(error.contains("`--bandwidth` (5") && error.contains(option), "{error}");
    }
    let error = send(&["--one-way", "--rate", "1M"]).expect_err("the rate is fixed").to_string();
    assert!(error.contains("--bandwidth") && error.contains("--one-way"), "{error}");
}
