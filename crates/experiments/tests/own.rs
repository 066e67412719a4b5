//! Congestion control and queues that this program registers. Each of them delegates to a built-in one, so the simulation must
//! have the same outcome, bit for bit.

use faircast_aqm::spec::{QUEUES, QueueFactory};
use faircast_aqm::{AnyDiscipline, QueueSpec};
use faircast_core::node::{Receiver, Source};
use faircast_core::own::OwnFactory;
use faircast_core::packet::ReceiverId;
use faircast_core::rate::{Aimd, POLICIES, PolicyFactory, RatePolicy, Sending};
use faircast_core::schemes::own::{SCHEMES, SchemeFactory};
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_core::time::{Rate, Span};
use faircast_experiments::run::{RunOptions, Silent, run};
use faircast_experiments::scenario::{DiagnosticStyle, Scenario};
use faircast_unicast::own::{PROTOCOLS, ProtocolFactory};
use faircast_unicast::{Protocol, Sender, Sink};

/// Delegates to the built-in implementation whose text is in the options.
#[derive(Debug)]
struct Built;

impl Built {
    fn scheme(options: &str, sending: &Sending) -> Scheme {
        let scheme: Scheme = options.parse().expect("checked");
        scheme.with_packet_size(sending.packet_size)
    }

    fn protocol(options: &str) -> Protocol {
        options.parse().expect("checked")
    }
}

impl OwnFactory for Built {
    fn version(&self) -> String {
        "1".into()
    }

    fn check(&self, options: &str) -> Result<(), String> {
        let is_known = options.is_empty()
            || options.parse::<Scheme>().is_ok()
            || options.parse::<Protocol>().is_ok()
            || options.parse::<QueueSpec>().is_ok();
        if is_known { Ok(()) } else { Err(format!("nothing built in is written `{options}`")) }
    }
}

impl PolicyFactory for Built {
    fn policy(&self, _options: &str) -> Box<dyn RatePolicy + Send> {
        Box::new(Aimd)
    }
}

impl SchemeFactory for Built {
    fn source(&self, options: &str, sending: &Sending) -> Box<dyn Source + Send> {
        Box::new(Built::scheme(options, sending).source())
    }

    fn receiver(&self, options: &str, sending: &Sending, me: ReceiverId) -> Box<dyn Receiver + Send> {
        Box::new(Built::scheme(options, sending).receiver(me))
    }
}

impl QueueFactory for Built {
    fn queue(&self, options: &str, rate: Rate, delay: Span) -> AnyDiscipline {
        options.parse::<QueueSpec>().expect("checked").build(rate, delay)
    }
}

impl ProtocolFactory for Built {
    fn sender(&self, options: &str, packet_size: u16) -> Box<dyn Sender + Send> {
        Box::new(Built::protocol(options).with_packet_size(packet_size).sender())
    }

    fn sink(&self, options: &str) -> Box<dyn Sink + Send> {
        Box::new(Built::protocol(options).sink())
    }
}

fn register() {
    POLICIES.register("built", Box::new(Built)).expect("a good name");
    SCHEMES.register("built", Box::new(Built)).expect("a good name");
    QUEUES.register("built", Box::new(Built)).expect("a good name");
    PROTOCOLS.register("built", Box::new(Built)).expect("a good name");
}

/// Returns a session beside two TCP flows on a bottleneck, for 30 s.
fn scenario(scheme: &str, queue: &str, protocol: &str) -> Scenario {
    register();
    let text = format!(
        r#"
title = "Own parts"
duration = "30 s"
warmup = "5 s"

[topology]
kind = "star"
sources = 2
leaves = 3
leaf = {{ rate = "1 Mbit/s", delay = "10 ms .. 40 ms", queue = "{queue}" }}

[[flow]]
name = "multicast"
kind = "session"
scheme = "{scheme}"
from = "src1"
to = "leaf*"

[[flow]]
name = "tcp"
kind = "{protocol}"
from = "src2"
to = "leaf*"
"#
    );
    Scenario::parse(&text, "own.toml")
        .unwrap_or_else(|wrong| panic!("{}", wrong.render(DiagnosticStyle::Plain)))
}

/// Returns a number that depends on everything that happens.
fn outcome(scheme: &str, queue: &str, protocol: &str) -> u64 {
    let results = run(&scenario(scheme, queue, protocol), &RunOptions::default(), &Silent).expect("it runs");
    assert!(results.totals.arrivals > 1000, "{scheme} {queue} {protocol}");
    results.totals.digest
}

#[test]
fn own_scheme_that_delegates_has_the_built_in_outcome() {
    let one_rate = CATALOGUE.iter().filter(|entry| {
        let scheme: Scheme = entry.name.parse().expect("listed");
        // MTCP sends orders to the members of its tree.
        scheme.layers() == 1 && entry.name != "mtcp"
    });
    let mut count = 0;
    for entry in one_rate {
        let text = format!("{},preset=published", entry.name);
        let built_in = outcome(&text, "20 packets", "tcp-sack");
        assert_eq!(outcome(&format!("own:built,{text}"), "20 packets", "tcp-sack"), built_in, "{text}");
        count += 1;
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn own_policy_that_delegates_has_the_built_in_outcome() {
    for scheme in ["ormcc", "le-sbcc", "mca-plus"] {
        let built_in = outcome(&format!("{scheme},policy=aimd"), "20 packets", "tcp-sack");
        assert_eq!(
            outcome(&format!("{scheme},policy=own:built"), "20 packets", "tcp-sack"),
            built_in,
            "{scheme}"
        );
    }
}

#[test]
fn own_queue_that_delegates_has_the_built_in_outcome() {
    for (form, _) in QueueSpec::known() {
        let name = form.split(['[', ',']).next().expect("a name");
        let text = if name == "droptail" { "droptail,20" } else { name };
        let built_in = outcome("ormcc,preset=published", text, "tcp-sack,ecn");
        assert_eq!(
            outcome("ormcc,preset=published", &format!("own:built,{text}"), "tcp-sack,ecn"),
            built_in,
            "{text}"
        );
    }
}

#[test]
fn own_protocol_that_delegates_has_the_built_in_outcome() {
    for entry in faircast_unicast::CATALOGUE {
        let built_in = outcome("ormcc,preset=published", "20 packets", entry.name);
        let own = format!("own:built,{}", entry.name);
        assert_eq!(outcome("ormcc,preset=published", "20 packets", &own), built_in, "{}", entry.name);
    }
}

#[test]
fn names_that_are_not_registered_are_refused_in_their_line() {
    let text = faircast_experiments::scenario::template("dumbbell").expect("there is one");
    let text = text.replace("scheme = \"ormcc", "scheme = \"own:missing,ormcc");
    let wrong = Scenario::parse(&text, "lab.toml").expect_err("wrong on purpose");
    let wrong = wrong.render(DiagnosticStyle::Plain);
    assert!(wrong.contains("there is no scheme \"own:missing\"") && wrong.contains("lab.toml"), "{wrong}");
}

#[test]
fn stored_runs_depend_on_the_version_of_the_code() {
    #[derive(Debug)]
    struct Version(u32);

    impl OwnFactory for Version {
        fn version(&self) -> String {
            self.0.to_string()
        }

        fn check(&self, _options: &str) -> Result<(), String> {
            Ok(())
        }
    }

    impl QueueFactory for Version {
        fn queue(&self, _options: &str, rate: Rate, delay: Span) -> AnyDiscipline {
            "droptail,20".parse::<QueueSpec>().expect("known").build(rate, delay)
        }
    }

    let fingerprint = |version| {
        QUEUES.register("versioned", Box::new(Version(version))).expect("a good name");
        scenario("ormcc", "own:versioned", "tcp-sack").fingerprint(0).to_owned()
    };
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}
