//! Tests with virtual networks: each test starts itself again in a separate network namespace.
//!
//! The tests need root privileges or unprivileged user namespaces. If neither is available, the tests are skipped; in CI they
//! fail.

use faircast_net::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 79, 1));
const PORT: u16 = 47301;
/// A veth pair. Both ends are in the namespace and have an address.
const CABLE: &str = "ip link add fc0 type veth peer name fc1; ip link set fc0 up; ip link set fc1 up
    ip addr add 10.98.0.1/24 dev fc0; ip addr add 10.98.1.1/24 dev fc1";
/// A veth pair with an address at one end only.
const ONE_END: &str = "ip link add fc0 type veth peer name fc1; ip link set fc0 up; ip link set fc1 up
    ip addr add 10.98.0.1/24 dev fc0";

const INSIDE: &str = "FAIRCAST_TEST_IN_NAMESPACE";

/// Runs the test `name` again inside a new namespace: first the shell commands `setup`, then `body`.
fn in_namespace(name: &str, setup: &str, body: impl FnOnce()) {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == name) {
        return body();
    }
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "sh", "-ec", script]);
        command
    };
    if !unshare("ip link set lo up").status().is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "CI must allow user namespaces (unshare --map-root-user)");
        println!("skipped: this host does not let `unshare --map-root-user --net` make a namespace");
        return;
    }
    let script = format!("ip link set lo up\n{setup}\nexec \"$0\" --exact {name} --nocapture");
    let test = std::env::current_exe().expect("a running test has a path");
    let output = unshare(&script).arg(test).env(INSIDE, name).output().expect("unshare worked before");
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && printed[0].contains("1 passed"), "{}{}", printed[0], printed[1]);
}

fn shell(script: &str) {
    assert!(
        Command::new("sh").args(["-ec", script]).status().expect("there is a shell").success(),
        "{script}"
    );
}

fn chosen(wanted: Option<&str>) -> (String, Why) {
    let choice = choose(GROUP, wanted).expect("there is an interface");
    (choice.chosen.name, choice.why)
}

fn source(interface: &str, options: &SourceOptions) -> SourceSocket {
    let choice = choose(GROUP, Some(interface)).expect("the interface exists");
    SourceSocket::open((GROUP, PORT).into(), &choice, options).expect("a source opens")
}

fn receiver(interface: &str) -> GroupSocket {
    let choice = choose(GROUP, Some(interface)).expect("the interface exists");
    let group = SocketAddr::new(GROUP, PORT);
    GroupSocket::open(group, Membership::AnySource, &choice, &GroupOptions::default()).expect("joins")
}

fn received(socket: &GroupSocket) -> usize {
    let until = Instant::now() + Duration::from_millis(300);
    Waiter::new().wait(&[Watch::new(socket, Want::Readable)], Some(until)).expect("waits");
    socket.receive(&mut Batch::new(4)).expect("receives")
}

/// Needs a kernel: a host has no interface but lo.
#[test]
fn loopback_is_chosen_without_a_network() {
    in_namespace("loopback_is_chosen_without_a_network", "", || {
        assert_eq!(chosen(None), ("lo".into(), Why::Loopback));
    });
}

/// Needs a kernel: a host has no route.
#[test]
fn only_interface_with_an_address_is_chosen_without_a_route() {
    in_namespace("only_interface_with_an_address_is_chosen_without_a_route", ONE_END, || {
        assert_eq!(chosen(None), ("fc0".into(), Why::OnlyOne));
    });
}

/// Needs a kernel: routes choose an interface.
#[test]
fn route_selects_the_interface_and_ambiguity_is_an_error() {
    in_namespace("route_selects_the_interface_and_ambiguity_is_an_error", CABLE, || {
        let error = choose(GROUP, None).expect_err("two are equally good");
        assert!(
            matches!(&error, NetError::WhichInterface { candidates, .. } if candidates.len() == 2),
            "{error}"
        );
        shell("ip route add default via 10.98.1.9");
        assert_eq!(chosen(None), ("fc1".into(), Why::Route));
        shell("ip route add 239.0.0.0/8 dev fc0");
        assert_eq!(chosen(None), ("fc0".into(), Why::Route));
        assert_eq!(chosen(Some("10.98.1.1")), ("fc1".into(), Why::Asked));
    });
}

/// Needs a kernel: flags and addresses of interfaces.
#[test]
fn unusable_interfaces_are_refused_with_a_reason() {
    in_namespace("unusable_interfaces_are_refused_with_a_reason", CABLE, || {
        let refused = || choose(GROUP, Some("fc0")).expect_err("it cannot");
        shell("ip link set fc0 multicast off");
        assert!(matches!(refused(), NetError::NotMulticastCapable { .. }));
        shell("ip link set fc0 multicast on down");
        assert!(matches!(refused(), NetError::InterfaceDown { .. }));
        shell("ip link set fc0 up; ip addr flush dev fc0");
        assert!(matches!(refused(), NetError::NoAddress { .. }));
    });
}

/// Needs a kernel: multicast between two interfaces.
#[test]
fn only_the_selected_interface_receives_the_group() {
    let name = "only_the_selected_interface_receives_the_group";
    // Both ends of the veth pair belong to this host, so the receiving end must accept packets from an address of this host.
    let setup = format!("{CABLE}\necho 1 > /proc/sys/net/ipv4/conf/fc1/accept_local");
    in_namespace(name, &setup, || {
        let (near, far, loopback) = (receiver("fc0"), receiver("fc1"), receiver("lo"));
        let source = source("fc0", &SourceOptions::default());
        assert_eq!(source.send_batch(&[5; 44 * 1472], 1472).expect("sends"), SendOutcome::Sent);
        assert_eq!((received(&near), received(&far), received(&loopback)), (44, 44, 0));
    });
}

/// Needs a kernel: a token bucket fills the socket's buffer.
#[test]
fn blocked_batch_resumes_at_its_position() {
    let name = "blocked_batch_resumes_at_its_position";
    let setup = format!("{CABLE}\ntc qdisc add dev fc0 root tbf rate 40mbit burst 16kb limit 4mb");
    in_namespace(name, &setup, || {
        let source = source("fc0", &SourceOptions { send_buffer: 64 << 10, ..Default::default() });
        let bytes = vec![0; 640 * 1000];
        let (mut done, mut blocked) = (0, 0);
        while done < 640 {
            match source.send_batch(&bytes[done * 1000..], 1000).expect("sends") {
                SendOutcome::Sent => done = 640,
                SendOutcome::Blocked { sent } => {
                    (done, blocked) = (done + sent, blocked + 1);
                    let until = Some(Instant::now() + Duration::from_secs(5));
                    let ready = Waiter::new().wait(&[Watch::new(&source, Want::Writable)], until);
                    assert_eq!(ready.expect("waits"), 1, "the interface drains");
                }
            }
        }
        assert!(blocked > 0 && done == 640);
    });
}

/// Needs a kernel: the MTU of an interface changes.
#[test]
fn lowered_mtu_makes_datagrams_too_large() {
    in_namespace("lowered_mtu_makes_datagrams_too_large", CABLE, || {
        let source = source("fc0", &SourceOptions::default());
        assert_eq!(source.largest_datagram(), 1472);
        assert!(matches!(
            source.send_batch(&[0; 1473], 1473),
            Err(NetError::TooLarge { size: 1473, mtu: 1472 })
        ));
        shell("ip link set fc0 mtu 1400");
        for bytes in [&[0; 1472][..], &[0; 4 * 1472]] {
            let error = source.send_batch(bytes, 1472).expect_err("does not fit any more");
            assert!(matches!(error, NetError::TooLarge { size: 1472, mtu: ..1472 }), "{error}");
        }
    });
}

/// Needs a kernel: an interface is deleted.
#[test]
fn send_error_on_a_removed_interface_names_the_group() {
    in_namespace("send_error_on_a_removed_interface_names_the_group", CABLE, || {
        let source = source("fc0", &SourceOptions::default());
        shell("ip link del fc0");
        let error = source.send_batch(b"anybody?", 8).expect_err("nowhere to send it");
        assert!(matches!(error, NetError::NoMulticastRoute { group: GROUP }), "{error}");
    });
}

/// Needs a kernel: the limit of memberships.
#[test]
fn error_beyond_the_membership_limit_names_the_kernel_setting() {
    let name = "error_beyond_the_membership_limit_names_the_kernel_setting";
    let setup = format!("{CABLE}\necho 0 > /proc/sys/net/ipv4/igmp_max_memberships");
    in_namespace(name, &setup, || {
        let choice = choose(GROUP, Some("fc0")).expect("the interface exists");
        let group = SocketAddr::new(GROUP, PORT);
        let error = GroupSocket::open(group, Membership::AnySource, &choice, &GroupOptions::default());
        let error = error.expect_err("none is allowed");
        assert!(error.to_string().contains("igmp_max_memberships"), "{error}");
    });
}

/// Needs a kernel: routes of IPv6 on lo.
#[test]
fn route_proposed_by_the_error_enables_ipv6_on_loopback() {
    let name = "route_proposed_by_the_error_enables_ipv6_on_loopback";
    in_namespace(name, "", || {
        let group: SocketAddr = "[ff15::77:1]:47302".parse().expect("a literal address");
        let choice = choose(group.ip(), None).expect("loopback");
        let source = SourceSocket::open(group, &choice, &SourceOptions::default()).expect("opens");
        let error = source.send_batch(b"hello", 5).expect_err("there is no route");
        let route = "ip -6 route add local ff00::/8 dev lo";
        assert!(error.to_string().contains(route), "{error}");
        shell(route);
        let options = GroupOptions::default();
        let receiver = GroupSocket::open(group, Membership::AnySource, &choice, &options).expect("joins");
        assert_eq!(source.send_batch(&[1; 8000], 1000).expect("sends"), SendOutcome::Sent);
        assert_eq!(received(&receiver), 8);
    });
}
