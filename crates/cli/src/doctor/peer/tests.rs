use super::serve::{Served, serve};
use super::with::{Asked, test};
use crate::doctor::{Check, Verdict};
use crate::system;
use faircast_net::{Choice, choose};
use faircast_wire::doctor::Key;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

fn lo() -> Choice {
    choose(IpAddr::from([239, 255, 1, 1]), Some("lo")).expect("every host has lo")
}

/// Returns the checks of an asking host. Its key is `asking`; the key of the serving host is `serving`.
fn between(serving: &Key, asking: &Key, ahead: i64, one_way: bool) -> Vec<Check> {
    let (stop, choice) = (AtomicBool::new(false), lo());
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
    let group = system::random_group(free.ip());
    let served = Served {
        port: free.port(),
        group,
        choice: &choice,
        ttl: 0,
        keys: vec![serving.clone()],
        clock_ahead: 0,
    };
    let asked = Asked {
        host: free,
        group,
        choice: &choice,
        ttl: 0,
        key: asking.clone(),
        keyed: false,
        one_way,
        clock_ahead: ahead,
    };
    let (opened, is_open) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            serve(&served, &stop, &mut |text| {
                opened.send(text).ok();
            })
        });
        is_open.recv().expect("it listens");
        let checks = test(&asked);
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("it does not panic").expect("it ends in order");
        checks
    })
}

fn verdict(checks: &[Check], name: &str) -> Vec<Verdict> {
    checks.iter().filter(|check| check.check == name).map(|check| check.verdict).collect()
}

#[test]
fn two_doctors_on_one_host_measure_both_directions() {
    let key = Key::of(None);
    let checks = between(&key, &key, 0, false);
    assert_eq!(verdict(&checks, "mtu"), [Verdict::Ok; 2], "{checks:?}");
    assert_eq!(verdict(&checks, "group"), [Verdict::Ok; 2], "{checks:?}");
    assert_eq!(verdict(&checks, "answers"), [Verdict::Ok; 2], "{checks:?}");
    assert_eq!(verdict(&checks, "clocks"), [Verdict::Ok], "{checks:?}");
    let measured: Vec<_> = checks.iter().filter_map(|check| check.measured).collect();
    assert!(measured.len() == 2 && measured.iter().all(|path| path.rate_bps > 1e5), "{checks:?}");
}

#[test]
fn clock_error_of_an_hour_is_a_failure_only_with_option_one_way() {
    let key = Key::of(None);
    for (ahead, one_way, expected, words) in
        [(3_600, true, Verdict::Fail, "ahead of"), (-3_600, false, Verdict::Warn, "behind")]
    {
        let checks = between(&key, &key, ahead, one_way);
        let clocks = checks.iter().find(|check| check.check == "clocks").expect("clocks are compared");
        assert_eq!(clocks.verdict, expected);
        assert!(clocks.found.contains(words), "{clocks:?}");
        // The advice contains the time of the other host.
        let advice = clocks.advice.as_deref().expect("it says what to do");
        let set =
            advice.lines().next().and_then(|line| line.strip_prefix("date -u -s @")).expect("a command");
        let there: u64 = set.parse().expect("seconds since 1970");
        let now = super::serve::unix_nanos(0) / 1_000_000_000;
        assert!(now.abs_diff(there) < 600, "{there} where it is {now}");
    }
}

#[test]
fn doctor_with_another_key_does_not_answer() {
    let other = faircast_wire::GroupKey::generate().expect("a key");
    let checks = between(&Key::of(Some(&other)), &Key::of(None), 0, false);
    assert!(checks.len() == 1 && checks[0].verdict == Verdict::Fail, "{checks:?}");
    assert!(
        checks[0].advice.as_deref().is_some_and(|advice| advice.contains("doctor --serve")),
        "{checks:?}"
    );
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let (choice, group) = (lo(), system::random_group([127, 0, 0, 1].into()));
    let key = Key::of(None);
    let asked = Asked {
        host: nobody,
        group,
        choice: &choice,
        ttl: 0,
        key,
        keyed: true,
        one_way: false,
        clock_ahead: 0,
    };
    assert_eq!(verdict(&test(&asked), "peer"), [Verdict::Fail]);
}
