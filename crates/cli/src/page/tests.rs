mod prometheus;

use super::access::{Access, Refusal};
use super::model::{MAX_NOTES, MAX_POINTS, MAX_SESSIONS, Model, Traffic};
use super::server::MAX_CONNECTIONS;
use super::{Of, Page, Record, Serves};
use crate::json::Line;
use faircast::event::{
    Condition, Counts, IncompleteReceiver, Limit, Progress, Queues, RateCut, ReceiverState, RefusedPackets,
    RelayBelow,
};
use faircast::{Event, Rate, ReceiverId, SendReport};
use serde_json::{Value, json, to_value};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time limit of each read, far above what it takes.
const WITHIN: Duration = Duration::from_secs(60);

fn open() -> Page {
    Page::open((Some(([127, 0, 0, 1], 0).into()), None), "send")
        .expect("loopback has free ports")
        .expect("a page is wanted")
}

fn address(page: &Page) -> SocketAddr {
    let [(Serves::Page, url)] = page.urls() else { panic!("one page") };
    let at = url
        .strip_prefix("http://")
        .and_then(|rest| rest.strip_suffix('/'))
        .expect("an address without a token");
    at.parse().expect("an address")
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).expect("the server listens");
    stream.set_read_timeout(Some(WITHIN)).expect("it is not zero");
    stream
}

fn request(at: SocketAddr, head: &str) -> TcpStream {
    let mut stream = connect(at);
    write!(stream, "{head}\r\n\r\n").expect("the server reads");
    stream
}

fn ask(page: &Page, head: &str) -> (String, String) {
    ask_at(address(page), head)
}

/// Returns the head, in lower case, and the body of an answer.
pub fn ask_at(at: SocketAddr, head: &str) -> (String, String) {
    let mut answer = String::new();
    request(at, head).read_to_string(&mut answer).expect("the server answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

fn get(page: &Page, path: &str) -> String {
    let (head, body) = ask(page, &format!("GET /{path} HTTP/1.1\r\nHost: localhost:1"));
    assert!(head.starts_with("http/1.1 200"), "{head}");
    body
}

fn progress(second: u64) -> Progress {
    Progress {
        elapsed: Duration::from_secs(second),
        bytes: second * 1_000_000,
        total_bytes: Some(60_000_000),
        rate: Rate::from_bps(3_112_345.0 + second as f64),
        allowed: Some(Rate::from_bps(3.5e6)),
        rtt: Some(Duration::from_micros(12_340)),
        loss: 0.04,
        representative: Some("lab-07".into()),
        receivers: 3,
        limited_by: Some(Limit::Congestion),
        relays: vec![RelayBelow {
            depth: 1,
            host: "relay-b".into(),
            address: "192.0.2.9:4000".parse().expect("a literal"),
            receivers: 5,
            done: 1,
            rate: Rate::from_bps(4e6),
        }],
        cuts: vec![RateCut {
            at: Duration::from_secs(second),
            from: Rate::from_bps(6e6),
            to: Rate::from_bps(3e6),
            host: Some("lab-07".into()),
            cause: "loss",
        }],
        counts: Some(Box::new(Counts {
            packets: 900 * second,
            repairs: 9 * second,
            cuts: second,
            refused: 3,
            refused_by: RefusedPackets { malformed: 1, replayed: 2, ..RefusedPackets::default() },
            ..Counts::default()
        })),
        ..Progress::default()
    }
}

fn receiver(number: u64, host: &str, state: Condition) -> ReceiverState {
    ReceiverState {
        receiver: ReceiverId::new(number).expect("not zero"),
        host: host.to_owned(),
        address: "192.0.2.7:40000".parse().expect("a literal"),
        state,
        verified_bytes: 1_000_000 * number,
        rate: Rate::from_bps(3e6),
        loss: 0.04,
        rtt: (number == 1).then_some(Duration::from_micros(12_340)),
        holds: false,
        dropped_local: 0,
        unwritten_bytes: 0,
        repair_symbols: 7,
        busy: None,
        receivers: 1,
        done: 0,
        reason: None,
    }
}

fn receivers() -> Event {
    let receivers = vec![
        receiver(1, "lab-07", Condition::Receiving),
        receiver(2, "lab-08", Condition::Receiving),
        ReceiverState {
            unwritten_bytes: 48_000_000,
            dropped_local: 5,
            ..receiver(3, "lab-09", Condition::Silent)
        },
    ];
    Event::Receivers { receivers }
}

fn traffic() -> Traffic {
    Traffic { interface: "eth0".to_owned(), all_bps: 8e6, other_bps: 5e6 }
}

#[test]
fn state_of_the_page_equals_the_json_events() {
    let page = open();
    let events = [Event::warning("</script><b>\u{1b}"), receivers(), Event::Progress(progress(7))];
    events.iter().for_each(|event| page.note(Of::default(), event));
    let state: Value = serde_json::from_str(&get(&page, "state")).expect("JSON");
    let session = &state["sessions"][0];
    let mut expected = to_value(&events[2]).expect("JSON");
    expected.as_object_mut().expect("an object").remove("event");
    assert_eq!(session["progress"], expected);
    assert_eq!(session["receivers"], to_value(&events[1]).expect("JSON")["receivers"]);
    assert_eq!(session["points"][0]["rate_bps"], expected["rate_bps"]);
    assert_eq!(session["points"][0]["cuts"], expected["cuts"]);
    assert_eq!(session["notes"][0], to_value(&events[0]).expect("JSON"));
    // The same state is part of the page. A text of another host cannot end its element.
    let index = get(&page, "");
    assert_eq!(index.matches("</script>").count(), 4, "{index}");
    let (_, rest) = index.split_once("id=\"state\">").expect("the state");
    let inside: Value = serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON");
    assert_eq!(inside, state);
    let incomplete = vec![IncompleteReceiver { host: "lab-09".into(), reason: "silent".into() }];
    let report = SendReport { receivers: 3, verified: 2, incomplete, ..SendReport::default() };
    page.end(Of::default(), &Line::done(&report, Some(0.5)));
    let state: Value = serde_json::from_str(&get(&page, "state")).expect("JSON");
    assert_eq!(state["sessions"][0]["end"], to_value(Line::done(&report, Some(0.5))).expect("JSON"));
    assert_eq!(state["sessions"][0]["receivers"][2]["state"], "failed");
    assert_eq!(state["sessions"][0]["receivers"][2]["reason"], "silent");
}

#[test]
fn other_hosts_methods_and_paths_are_refused() {
    let page = open();
    let refused = |head: &str, status: u16| {
        let (answer, body) = ask(&page, head);
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{head}: {answer}");
        assert!(body.len() < 100, "{body}");
    };
    refused("GET / HTTP/1.1\r\nHost: attacker.example", 403);
    refused("GET / HTTP/1.1\r\nHost: localhost.attacker.example:80", 403);
    refused("GET / HTTP/1.1", 403);
    refused("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0", 405);
    refused("GET /../etc/passwd HTTP/1.1\r\nHost: [::1]:80", 404);
    refused("GET /page.js/ HTTP/1.1\r\nHost: 127.0.0.1", 404);
    let (head, body) = ask(&page, "HEAD / HTTP/1.1\r\nHost: 127.0.0.1:80");
    assert!(body.is_empty() && head.starts_with("http/1.1 200"), "{head}");
    for line in [
        "content-security-policy: default-src 'none'; script-src 'self';",
        "referrer-policy: no-referrer",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
}

#[test]
fn page_beyond_loopback_needs_the_token_of_its_address() {
    let access = Access::new(Serves::Page, "192.0.2.1:4000".parse().expect("a literal")).expect("random");
    let url = access.url();
    let path = url.strip_prefix("http://192.0.2.1:4000").expect("the address");
    assert!(path.len() == 34 && path.ends_with('/'), "{url}");
    let check = |path: &str| access.check("GET", Some("192.0.2.1:4000"), path).map(str::to_owned);
    assert_eq!(check(&format!("{path}page.js")), Ok("page.js".to_owned()));
    for wrong in ["/", "", "/page.js", "/0/page.js", &path[..33], &path.replace('/', ""), &format!("/{path}")]
    {
        assert_eq!(check(wrong), Err(Refusal::Path), "{wrong}");
    }
    let other = Access::new(Serves::Page, "192.0.2.1:4000".parse().expect("a literal")).expect("random");
    assert_ne!(url, other.url());
}

#[test]
fn browser_gets_changes_only_and_the_end_of_the_command() {
    let page = open();
    page.note(Of::default(), &receivers());
    page.note(Of::default(), &Event::Progress(progress(1)));
    let mut lines =
        BufReader::new(request(address(&page), "GET /events HTTP/1.1\r\nHost: 127.0.0.1")).lines();
    let mut next = || -> Value {
        loop {
            let line = lines.next().expect("an update").expect("the server sends");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    };
    let first = next();
    assert_eq!(
        (&first["after"], &first["sessions"][0]["receivers"][2]["host"]),
        (&json!(0), &json!("lab-09"))
    );
    let silent = receiver(2, "lab-08", Condition::Silent);
    page.note(
        Of::default(),
        &Event::Receivers { receivers: vec![silent, receiver(1, "lab-07", Condition::Receiving)] },
    );
    let second = next();
    assert_eq!(second["after"], first["version"]);
    let changed = second["sessions"][0]["receivers"].as_array().expect("a list");
    assert_eq!(
        (changed.len(), &changed[0]["host"], &changed[0]["state"]),
        (1, &json!("lab-08"), &json!("silent"))
    );
    assert!(second["sessions"][0].get("progress").is_none() && second["sessions"][0].get("points").is_none());
    // A browser that comes again continues; one of another run starts anew.
    let again = |id: String| {
        let head = format!("GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nLast-Event-ID: {id}");
        let mut lines = BufReader::new(request(address(&page), &head)).lines().map_while(Result::ok);
        lines.find(|line| line.starts_with("data: ") || line == ":")
    };
    let run = first["run"].as_str().expect("a name");
    assert_eq!(again(format!("{run}-{}", second["version"])).as_deref(), Some(":"), "nothing is new");
    assert!(again(format!("other-{}", second["version"])).is_some_and(|line| line.contains("\"after\":0")));
    let ended = std::thread::spawn(move || drop(page));
    assert_eq!(next()["ended"], json!(true));
    ended.join().expect("the server ends");
}

#[test]
fn idle_and_slow_browsers_have_bounds_and_delay_nobody() {
    let page = open();
    let all = (1..=1_000).map(|number| receiver(number, &format!("host-{number}"), Condition::Receiving));
    let mut all = all.collect::<Vec<_>>();
    // This browser never reads its updates.
    let slow = request(address(&page), "GET /events HTTP/1.1\r\nHost: 127.0.0.1");
    for second in 1..200 {
        all.iter_mut().for_each(|one| one.verified_bytes += second);
        page.note(Of::default(), &Event::Receivers { receivers: all.clone() });
    }
    let state: Value = serde_json::from_str(&get(&page, "state")).expect("JSON");
    assert_eq!(state["sessions"][0]["receivers"][999]["verified_bytes"], json!(all[999].verified_bytes));
    // Connections without a request have all places.
    let idle: Vec<_> = (0..MAX_CONNECTIONS).map(|_| connect(address(&page))).collect();
    let mut waiting = request(address(&page), "GET /state HTTP/1.1\r\nHost: 127.0.0.1");
    waiting.set_read_timeout(Some(Duration::from_millis(100))).expect("it is not zero");
    let refused = waiting.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::WouldBlock), "all places are taken");
    drop(idle);
    waiting.set_read_timeout(Some(WITHIN)).expect("it is not zero");
    assert_eq!(waiting.read(&mut [0; 1]).expect("a place is free"), 1);
    drop(slow);
}

#[test]
fn model_has_bounds_and_keeps_the_whole_history() {
    let mut model = Model::new("send", "run");
    let seconds = 3 * MAX_POINTS as u64 + 5;
    (1..=seconds).for_each(|second| model.note(Of::default(), &Event::Progress(progress(second))));
    (0..2 * MAX_NOTES).for_each(|number| model.note(Of::default(), &Event::warning(number.to_string())));
    let state = to_value(model.update_since(0)).expect("JSON");
    let points = state["sessions"][0]["points"].as_array().expect("points");
    assert!(points.len() <= MAX_POINTS && points.len() > MAX_POINTS / 2, "{} points", points.len());
    assert_eq!((&points[0]["from"], &points[points.len() - 1]["to"]), (&json!(0.0), &json!(seconds as f64)));
    assert!(points.windows(2).all(|two| two[0]["to"] == two[1]["from"]), "there are no gaps");
    assert!(points.iter().all(|point| !point["cuts"].as_array().expect("cuts").is_empty()));
    let notes = state["sessions"][0]["notes"].as_array().expect("notes");
    assert_eq!((notes.len(), &notes[0]["message"]), (MAX_NOTES, &json!(MAX_NOTES.to_string())));
    for session in 1..3 * MAX_SESSIONS as u64 {
        model.note(Of { session, branch: None }, &Event::Progress(progress(1)));
    }
    assert_eq!(
        to_value(model.update_since(0)).expect("JSON")["all"].as_array().map(Vec::len),
        Some(MAX_SESSIONS)
    );
}

/// Returns the document at an address after the scripts have run, or `None` without a browser.
pub fn browsed(address: &str) -> Option<String> {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let profile = format!("--user-data-dir={}", scratch.path().display());
    // A browser that does not end must not hold the tests.
    let browser = Command::new("timeout")
        .args([
            "300",
            "chromium",
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args(["--no-first-run", "--disable-background-networking", &profile, "--dump-dom", address])
        .env("HOME", scratch.path())
        .stderr(Stdio::null())
        .output()
        .expect("coreutils are there");
    if browser.status.code() == Some(127) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot be skipped with CI=true: no chromium");
        eprintln!("skipped: no chromium");
        return None;
    }
    Some(String::from_utf8_lossy(&browser.stdout).into_owned())
}

/// The report as one file, without a server.
#[test]
fn browser_shows_the_report_of_a_session() {
    let mut record = Record::new("send").expect("the build has pages");
    record.note(&receivers());
    for second in 1..=7 {
        record.note(&Event::Progress(progress(second)));
    }
    record.end(&json!({ "event": "error", "message": "1 of 3 receivers is not complete" }));
    let report = json!({ "receivers": [
        { "host": "lab-08", "outcome": "verified", "verified_bytes": 2_000_000, "resumed_bytes": 0, "seconds": 7.0, "rate_bps": 3e6,
          "loss": 0.0, "repair_symbols": 7, "reason": null },
        { "host": "</script><b>lab-09", "outcome": "incomplete", "verified_bytes": 5, "resumed_bytes": 0, "seconds": 2.0, "rate_bps": 1e6,
          "loss": 0.5, "repair_symbols": 0, "reason": "the disk is full" },
    ]});
    record.end(&json!({ "event": "done", "ok": false }));
    let page = record.page(&report);
    assert!(
        !page.contains("src=") && !page.contains("{{state}}") && !page.contains("</script><b>"),
        "{page}"
    );
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let path = scratch.path().join("report.html");
    std::fs::write(&path, page).expect("the directory is ours");
    let Some(dom) = browsed(&format!("file://{}", path.display())) else { return };
    let shown = |text: &str| dom.find(text).unwrap_or_else(|| panic!("{text}: {dom}"));
    shown("Not complete: 1 of 3 receivers is not complete");
    shown(
        "lab-07 limited the rate: congestion on its path, for 7.0 s (100 %), at 3.11 Mbit/s on average, 7 rate cuts",
    );
    let incomplete = shown("<th>&lt;/script&gt;&lt;b&gt;lab-09</th><td>✕ incomplete</td><td>5 B</td>");
    assert!(
        incomplete < shown("<th>lab-08</th><td>✓ verified</td><td>2.00 MB</td>"),
        "the worst is first: {dom}"
    );
    shown("<td>the disk is full</td>");
}

/// The page in a browser, which gets its numbers from the server: they equal those of the events.
#[test]
fn browser_shows_the_numbers_of_the_events() {
    let page = open();
    page.note(Of::default(), &receivers());
    page.note(Of::default(), &Event::Progress(progress(7)));
    page.shared.change(|model| model.note_traffic(Of::default(), traffic()));
    let Some(dom) = browsed(&page.urls()[0].1) else { return };
    let shown = |text: &str| assert!(dom.contains(text), "{text}: {dom}");
    shown("lab-07 limits the rate: 3.11 Mbit/s, loss 4.0 %");
    let event = to_value(progress(7)).expect("JSON");
    let counts = &event["counts"];
    for (name, value) in [
        ("rate_bps", &event["rate_bps"]),
        ("allowed_bps", &event["allowed_bps"]),
        ("loss", &event["loss"]),
        ("rtt_ms", &event["rtt_ms"]),
        ("bytes", &event["bytes"]),
        ("packets", &counts["packets"]),
        ("repairs", &counts["repairs"]),
        ("cuts", &counts["cuts"]),
    ] {
        let value = value.as_f64().expect("a number");
        shown(&format!("data-name=\"{name}\" data-value=\"{value}\""));
    }
    shown("data-name=\"other_bps\" data-value=\"5000000\">5.00 Mbit/s, 63 % of all<");
    shown("Other traffic sent by eth0, TCP included");
    shown("7.0 s: cut from 6.00 Mbit/s to 3.00 Mbit/s, loss reported by lab-07");
    shown("relay-b: 1 of 5 receivers done");
    shown("3: 2 replayed, 1 damaged or no packet");
    shown("48.0 MB wait for its disk; its socket buffer dropped 5 datagrams");
    // The worst receiver is first.
    let place =
        |label: &str| dom.find(&format!("aria-label=\"{label}")).unwrap_or_else(|| panic!("{label}: {dom}"));
    assert!(place("lab-09: silent") < place("lab-07: limits the rate"));
    assert!(place("lab-07: limits the rate") < place("lab-08: receiving"));
    assert!(dom.contains("<canvas"), "the plot is drawn: {dom}");
}

/// Returns the values of all metrics by name and labels.
fn metrics(model: &Model) -> BTreeMap<String, f64> {
    let text = super::metrics::text(&model.sample());
    assert!(text.ends_with("# EOF\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        (name.to_owned(), value.parse().expect("a number"))
    };
    lines.map(value).collect()
}

#[test]
fn counters_never_fall_while_sessions_come_and_go() {
    let mut model = Model::new("recv", "run");
    let mut last = BTreeMap::new();
    let mut of_serve = progress(1);
    (of_serve.allowed, of_serve.moved_bytes) = (None, 5_000);
    for session in 1..=3 * MAX_SESSIONS as u64 {
        let of = Of { session, branch: None };
        for second in 1..=3 {
            let refused_by = RefusedPackets { session: 2 * second, ..RefusedPackets::default() };
            let refused = 3 * second;
            let counts =
                Counts { packets: 100 * second, lost: second, refused, refused_by, ..Counts::default() };
            let queues = Queues { unwritten_bytes: 7_000, socket_bytes: 2_304, ..Queues::default() };
            let counts = Some(Box::new(counts));
            let now = Progress { counts, queues: Some(queues), ..of_serve.clone() };
            model.note(of, &Event::Progress(now));
            let values = metrics(&model);
            for (name, value) in values.iter().filter(|(name, _)| name.contains("_total")) {
                assert!(*value >= last.get(name).copied().unwrap_or(0.0), "{name}: {value} after {last:?}");
            }
            assert_eq!(values["faircast_sessions{side=\"receiver\"}"], 1.0);
            assert_eq!(values["faircast_disk_queue_bytes{side=\"receiver\"}"], 7_000.0);
            assert_eq!(values["faircast_socket_queue_bytes{side=\"receiver\"}"], 2_304.0);
            last = values;
        }
        let report = json!({ "event": "done", "ok": session % 2 == 0, "packets": 310, "lost": 3, "moved_bytes": 5_500,
            "refused": 10, "refused_by": RefusedPackets { session: 6, replayed: 1, ..RefusedPackets::default() } });
        model.end(of, report);
    }
    let (sessions, values) = (3.0 * MAX_SESSIONS as f64, metrics(&model));
    assert_eq!(values["faircast_packets_total{side=\"receiver\"}"], 310.0 * sessions);
    assert_eq!(values["faircast_packets_lost_total{side=\"receiver\"}"], 3.0 * sessions);
    assert_eq!(values["faircast_content_bytes_total{side=\"receiver\"}"], 5_500.0 * sessions);
    for (reason, count) in [("session", 6.0), ("replayed", 1.0), ("malformed", 0.0), ("other", 3.0)] {
        let refused = format!("faircast_packets_refused_total{{side=\"receiver\",reason=\"{reason}\"}}");
        assert_eq!(values[&refused], count * sessions, "{reason}");
    }
    assert_eq!(values["faircast_disk_queue_bytes{side=\"receiver\"}"], 0.0);
    assert_eq!(values["faircast_sessions_ended_total{outcome=\"complete\"}"], sessions / 2.0);
    assert_eq!(values["faircast_sessions{side=\"receiver\"}"], 0.0);
}

/// A day of a relay, in synthetic events: sessions of 18 minutes with pauses, one of them with many receivers, whose processes fail
/// after six minutes and come back under their names. A scrape each minute.
#[test]
fn counters_never_fall_in_a_day_of_1_440_scrapes() {
    let mut model = Model::new("relay", "run");
    let (mut last, mut dropped, mut most) = (BTreeMap::<String, f64>::new(), BTreeMap::new(), 0);
    for minute in 0..1_440 {
        let (session, within) = (minute / 20, minute % 20);
        let (upstream, branch) = (Of { session, branch: None }, Of { session, branch: Some(0) });
        let group = if session == 5 { 1_200 } else { 20 };
        let joined = if within < 18 { group.min(group * (within + 1) / 8) } else { 0 };
        let id = |host: u64, life: u64| 1 + (session * 10_000 + host) * 10 + life;
        let mut states = Vec::new();
        for host in 0..joined {
            let (life, age) = ((within + host) / 6, (within + host) % 6);
            if let Some(receiver) = ReceiverId::new(id(host, life.saturating_sub(1))).filter(|_| age == 0) {
                let (host, reason) = (format!("host-{host}"), Some("silent".to_owned()));
                model.note(branch, &Event::Left { receiver, host, verified: false, reason });
            }
            dropped.insert(id(host, life), age);
            let one = receiver(id(host, life), &format!("host-{host}"), Condition::Receiving);
            states.push(ReceiverState { dropped_local: age, ..one });
        }
        for some in states.chunks(ReceiverState::LISTED) {
            model.note(branch, &Event::Receivers { receivers: some.to_vec() });
        }
        if joined > 0 {
            model.note(branch, &Event::Progress(progress(within)));
            model.note(upstream, &Event::Progress(Progress { allowed: None, ..progress(within) }));
        } else if within == 18 {
            for of in [upstream, branch] {
                model.end(of, json!({ "event": "done", "ok": session % 3 > 0, "packets": 20_000 }));
            }
        }
        let values = metrics(&model);
        for (name, before) in last.iter().filter(|(name, _)| name.contains("_total")) {
            assert!(values.get(name).is_some_and(|now| now >= before), "{minute}: {name} after {before}");
        }
        let rates: BTreeMap<_, _> =
            values.iter().filter(|(name, _)| name.starts_with("faircast_receiver_rate")).collect();
        assert_eq!(rates.len() as u64, joined.min(1_001), "{minute}");
        assert_eq!(rates.values().copied().sum::<f64>(), joined as f64 * 3e6 / 8.0, "{minute}");
        let kept = last.keys().filter(|name| name.starts_with("faircast_receiver_rate"));
        assert!(joined == 0 || kept.into_iter().all(|name| rates.contains_key(name)), "{minute}");
        most = most.max(values.len());
        last = values;
    }
    assert!(most > 4_000 && most < 4 * 1_001 + 100, "{most} series");
    for side in ["source", "receiver"] {
        assert_eq!(last[&format!("faircast_packets_total{{side=\"{side}\"}}")], 72.0 * 20_000.0);
    }
    let all = dropped.values().sum::<u64>() as f64;
    assert_eq!(last["faircast_datagrams_dropped_total{side=\"source\"}"], all);
    assert_eq!(last["faircast_sessions_ended_total{outcome=\"incomplete\"}"], 2.0 * 24.0);
}

#[test]
fn metrics_equal_the_events_and_name_at_most_1_000_receivers() {
    let mut model = Model::new("send", "run");
    model.note(Of::default(), &receivers());
    model.note(Of::default(), &Event::Progress(progress(7)));
    assert!(!metrics(&model).keys().any(|name| name.starts_with("faircast_other_traffic")), "it is unknown");
    model.note_traffic(Of::default(), traffic());
    let values = metrics(&model);
    assert_eq!(values["faircast_other_traffic_bytes_per_second{side=\"source\"}"], 5e6 / 8.0);
    assert_eq!(values["faircast_rate_bytes_per_second{side=\"source\"}"], progress(7).rate.bps() / 8.0);
    assert_eq!(values["faircast_receivers{state=\"silent\"}"], 1.0);
    assert_eq!(values["faircast_receivers{state=\"failed\"}"], 0.0);
    assert_eq!(values["faircast_receiver_loss_ratio{receiver=\"lab-07\"}"], 0.04);
    assert_eq!(values["faircast_receiver_round_trip_seconds{receiver=\"lab-07\"}"], 0.012_34);
    assert_eq!(values["faircast_receiver_disk_queue_bytes{receiver=\"lab-09\"}"], 48e6);
    assert_eq!(values["faircast_datagrams_dropped_total{side=\"source\"}"], 5.0);
    // The dashboard and the alert rules use only metrics that exist.
    for file in ["monitoring/grafana.json", "monitoring/alerts.yml"] {
        let text = std::fs::read_to_string(crate::schema::docs(file)).expect("the file is there");
        let names = text.match_indices("faircast_").map(|(at, _)| {
            let rest = &text[at..];
            &rest[..rest.find(|c: char| c != '_' && !c.is_ascii_lowercase()).unwrap_or(rest.len())]
        });
        let unknown: Vec<&str> =
            names.filter(|name| !values.keys().any(|known| known.split('{').next() == Some(name))).collect();
        assert!(text.contains("faircast_sessions") && unknown.is_empty(), "{file}: {unknown:?}");
    }
    let many = (1..=3_000).map(|number| receiver(number, &format!("host-{number}"), Condition::Receiving));
    model.note(Of::default(), &Event::Receivers { receivers: many.collect() });
    let values = metrics(&model);
    let rates = values.keys().filter(|name| name.starts_with("faircast_receiver_rate"));
    assert_eq!(rates.count(), 1_001);
    assert_eq!(values["faircast_receiver_rate_bytes_per_second{receiver=\"others\"}"], 2_000.0 * 3e6 / 8.0);
    assert_eq!(values["faircast_receivers{state=\"receiving\"}"], 3_000.0);
}

/// Runs promtool with an input. Returns what it has printed, or `None` without promtool.
fn promtool(args: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = match command.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let is_required = std::env::var("CI").as_deref() == Ok("true");
            assert!(!is_required, "cannot be skipped with CI=true: no promtool");
            eprintln!("skipped: no promtool");
            return None;
        }
        process => process.expect("promtool starts"),
    };
    process.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("promtool reads");
    let output = process.wait_with_output().expect("promtool ends");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {text}", output.status);
    Some(text)
}

#[test]
fn promtool_accepts_the_metrics_and_the_alert_rules() {
    let mut model = Model::new("send", "run");
    model.note(Of::default(), &receivers());
    model.note(Of::default(), &Event::Progress(progress(7)));
    let Some(remarks) = promtool(&["check", "metrics"], &super::metrics::plain(&model.sample())) else {
        return;
    };
    assert_eq!(remarks, "");
    let rules = crate::schema::docs("monitoring/alerts.yml");
    let rules =
        promtool(&["check", "rules", rules.to_str().expect("a plain name")], "").expect("it is there");
    assert!(rules.contains("6 rules found"), "{rules}");
}

#[test]
fn metrics_are_served_under_any_name_of_the_host() {
    let page = Page::open((None, Some(([127, 0, 0, 1], 0).into())), "send")
        .expect("loopback has free ports")
        .expect("metrics are wanted");
    page.note(Of::default(), &Event::Progress(progress(7)));
    let [(Serves::Metrics, url)] = page.urls() else { panic!("one server: {page:?}") };
    let at = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).expect("an address");
    let ask = |head: &str| {
        let (mut stream, mut answer) = (TcpStream::connect(at).expect("the server listens"), String::new());
        write!(stream, "{head}\r\nHost: lab-07.example\r\n\r\n").expect("the server reads");
        stream.read_to_string(&mut answer).expect("the server answers");
        answer
    };
    let accept =
        "Accept: application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let answer = ask(&format!("GET /metrics HTTP/1.1\r\n{accept}"));
    assert!(
        answer.contains("application/openmetrics-text") && answer.contains("faircast_sessions"),
        "{answer}"
    );
    let plain = ask("GET /metrics HTTP/1.1\r\nAccept: */*");
    assert!(plain.contains("text/plain; version=0.0.4") && plain.contains("faircast_sessions"), "{plain}");
    assert!(ask("GET / HTTP/1.1").starts_with("HTTP/1.1 404"), "the page is not there");
}

#[test]
#[cfg(feature = "simulator")]
fn pages_of_results_have_the_colours_of_the_live_page() {
    let page = faircast_experiments::report::html::page("", "");
    let colours = page.split("--").filter_map(|part| part.split([';', '}']).next()?.split_once(": #"));
    let colours: Vec<(&str, &str)> = colours.collect();
    assert!(colours.len() > 18, "{colours:?}");
    for (name, value) in colours {
        assert!(super::document::STYLE.contains(&format!("--{name}: #{value};")), "{name}: {value}");
    }
}
