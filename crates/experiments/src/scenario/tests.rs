use super::*;
use crate::stats::{Scale, Trait};
use faircast_core::time::Time;
use faircast_emulator::{EmulationPlan, Groups};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// Returns the diagnostics of an invalid text.
fn refusal(text: &str) -> String {
    Scenario::parse(text, "test.toml").map_or_else(|wrong| wrong.to_string(), |_| panic!("{text} is right"))
}

/// Returns a scenario of a star with one session and these additional lines.
fn star(more: &str) -> String {
    format!(
        "title = \"t\"\nduration = \"10 s\"\n{more}\n[topology]\nkind = \"star\"\nleaves = 4\n[[flow]]\n\
         name = \"m\"\nkind = \"session\"\nscheme = \"ormcc\"\nfrom = \"src1\"\nto = \"leaf*\"\n"
    )
}

#[test]
fn every_template_is_valid() {
    for template in TEMPLATES {
        let scenario =
            Scenario::parse(template.text, template.name).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(template.text.starts_with('#'), "{} explains itself", template.name);
        assert!(!scenario.title().is_empty());
    }
    assert_eq!(template("star").map(|text| text.contains("kind = \"star\"")), Some(true));
    assert_eq!(template("pentagon"), None);
}

#[test]
fn unknown_key_is_refused_with_a_suggestion() {
    assert_eq!(
        refusal(&star("warmpu = 3")),
        "test.toml:3:1: a scenario has no key `warmpu`; did you mean `warmup`?"
    );
}

#[test]
fn caret_points_at_the_error() {
    let wrong = Scenario::parse(&star("warmup = \"3 m\""), "test.toml").expect_err("metres are no time");
    let drawn = wrong.render(DiagnosticStyle::Plain);
    assert!(drawn.contains("test.toml:3:10") && drawn.contains("warmup = \"3 m\""), "{drawn}");
    assert!(drawn.contains("──┬──"), "{drawn}");
    assert!(wrong.render(DiagnosticStyle::Coloured).contains("\u{1b}["));
}

#[test]
fn unused_nodes_and_joins_after_the_end_of_a_run_are_refused() {
    let dangling = format!("{}\n[[link]]\nfrom = \"hubb\"\nto = \"leaf1\"\n", star(""));
    let reported = refusal(&dangling);
    assert!(reported.contains("hubb has only one link, and no flow begins or ends there"), "{reported}");
    let through = "[[link]]\nfrom = \"x\"\nto = \"leaf1\"\n[[link]]\nfrom = \"x\"\nto = \"leaf2\"\n";
    parse(&format!("{}\n{through}", star("")));
    let late = |join: &str| format!("{}join = {join}\n", star(""));
    let reported = refusal(&late("\"10 s\""));
    assert!(reported.contains("leaf1 joins at 10.000000 s, and the run ends at 10.000000 s"), "{reported}");
    parse(&late("\"9 s\""));
}

#[test]
fn all_errors_are_reported_together_in_order() {
    let text = star("warmup = []\nseeds = -1\nabout = 3");
    let wrong = Scenario::parse(&text, "test.toml").expect_err("three things are wrong");
    let lines: Vec<usize> = wrong.iter().map(|diagnostic| wrong.position(diagnostic).0).collect();
    assert_eq!(lines, [3, 4, 5]);
}

#[test]
fn unknown_names_are_refused_with_existing_names() {
    let text = star("").replace("leaf*", "leaf[1-9]");
    assert!(refusal(&text).ends_with("no node is called \"leaf[1-9]\"; there are leaf1 to leaf4"));
    let text = star("").replace("src1", "scr1");
    assert!(refusal(&text).ends_with("did you mean src*?"), "{}", refusal(&text));
    let text = star("[probe]\nlinks = \"src1->leaf1\"");
    assert!(refusal(&text).contains("there is no link \"src1->leaf1\""));
}

#[test]
fn misspelled_schemes_protocols_and_queues_are_refused() {
    assert!(refusal(&star("").replace("\"ormcc\"", "\"omrcc\"")).contains("did you mean `ormcc`?"));
    assert!(refusal(&star("").replace("\"ormcc\"", "\"ormcc,beta=7\"")).contains("beta"));
    let tcp = star("").replace("session", "tcp-rino").replace("scheme = \"ormcc\"\n", "");
    assert!(refusal(&tcp).contains("did you mean `tcp-reno`?"));
    let queue = star("").replace("leaves = 4", "leaves = 4\nleaf.queue = \"red,mex=3\"");
    assert!(refusal(&queue).contains("no option \"mex\""));
}

#[test]
fn flows_with_invalid_endpoints_are_refused() {
    let two = star("").replace("leaves = 4", "leaves = 4\nsources = 2").replace("\"src1\"", "\"src*\"");
    assert!(refusal(&two).contains("2 senders for 4 receivers"), "{}", refusal(&two));
    let itself = star("").replace("\"leaf*\"", "[\"leaf*\", \"src1\"]");
    assert!(refusal(&itself).contains("src1 would send to itself"));
    let nowhere = star("").replace("to = \"leaf*\"\n", "");
    assert!(refusal(&nowhere).contains("a flow needs `from` and `to`"));
    let twice = star("") + "[[flow]]\nname = \"m\"\nkind = \"tcp-reno\"\nfrom = \"src1\"\nto = \"leaf1\"\n";
    assert!(refusal(&twice).contains("two flows are called \"m\""));
    let both = star("")
        + "[[flow]]\nname = \"t\"\nkind = \"tcp-reno\"\nfrom = \"src1\"\nto = \"leaf1\"\non = \"3 s\"\n";
    assert!(refusal(&both).contains("an application has either `packets`"));
}

#[test]
fn number_without_a_unit_is_refused_with_two_suggestions() {
    let leaf = |key: &str| refusal(&star("").replace("leaves = 4", &format!("leaves = 4\nleaf.{key}")));
    for (key, reported) in [
        ("queue = 40", "`queue = 40` has no unit; write `\"40 packets\"` or `\"40 kB\"`"),
        ("queue = \"40\"", "`queue = 40` has no unit; write `\"40 packets\"` or `\"40 kB\"`"),
        ("delay = 20", "`delay = 20` has no unit; write `\"20 ms\"` or `\"20 s\"`"),
        ("delay = [0, 20]", "`delay = 20` has no unit; write `\"20 ms\"` or `\"20 s\"`"),
        ("rate = 2.5", "`rate = 2.5` has no unit; write `\"2.5 kbit/s\"` or `\"2.5 Mbit/s\"`"),
        ("rate = \"1e308 bit/s\"", "of at most \"1000 Tbit/s\""),
    ] {
        assert!(leaf(key).contains(reported), "{key}: {}", leaf(key));
    }
    assert!(refusal(&star("warmup = 2")).contains("write `\"2 ms\"` or `\"2 s\"`"));
    parse(&star("warmup = 0"));
}

#[test]
fn windows_outside_the_run_are_refused() {
    assert!(refusal(&star("warmup = \"10 s\"")).contains("must lie within the run"));
    assert!(
        refusal(&star("[[window]]\nname = \"w\"\nfrom = \"2 s\"\nto = \"11 s\""))
            .contains("must lie within the run")
    );
}

#[test]
fn link_entry_changes_only_the_keys_that_it_sets() {
    let text = star("") + "[[link]]\nfrom = \"hub\"\nto = \"leaf[2-3]\"\ndelay = \"70 ms\"\n";
    let layout = parse(&text).layout(0, 1);
    assert_eq!(layout.links(), 10, "four leaves and a source, both ways");
    let delays = |from: &str, to: &str| {
        let (from, to) = (layout.names.exact(from), layout.names.exact(to));
        let link = layout.links.iter().find(|link| Some(link.from) == from && Some(link.to) == to);
        layout.specs[link.expect("neighbours").spec as usize].delay.as_secs_f64()
    };
    assert_eq!(delays("hub", "leaf1"), 0.02);
    assert_eq!(delays("hub", "leaf2"), 0.07);
    assert_eq!(delays("leaf3", "hub"), 0.07);
}

#[test]
fn network_can_consist_of_link_entries_only() {
    let text = "title = \"t\"\nduration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n[[link]]\nfrom = \"b\"\n\
                to = \"c[1-3]\"\nrate = [\"1 Mbit/s\", \"2 Mbit/s\"]\n[[flow]]\nname = \"t\"\nkind = \"tcp-reno\"\n\
                from = \"a\"\nto = \"c*\"\n";
    let layout = parse(text).layout(0, 1);
    assert_eq!((layout.nodes(), layout.links(), layout.flows()), (5, 8, 3));
    let rates: Vec<f64> =
        [2, 4, 6].map(|link| layout.specs[layout.links[link].spec as usize].rate.bps()).into();
    assert_eq!(rates, [1e6, 2e6, 1e6]);
}

#[test]
fn topologies_have_the_documented_node_names() {
    let names = |topology: &str, ends: &str| {
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\n[topology]\n{topology}\n[[flow]]\nname = \"t\"\nkind = \"tcp-reno\"\n{ends}\n"
        );
        let layout = parse(&text).layout(0, 1);
        (0..layout.nodes()).map(|node| layout.names.name(node)).collect::<Vec<_>>().join(" ")
    };
    let tree = names("kind = \"tree\"\nfanout = [2, 2]", "from = \"root\"\nto = \"leaf4\"");
    assert_eq!(tree, "root r1.1 r1.2 leaf1 leaf2 leaf3 leaf4");
    let chain = names("kind = \"chain\"\nbottlenecks = 1\nleaves = 1", "along = \"r0->r1\"");
    assert_eq!(chain, "r0 r1 src0.1 leaf0.1 src1.1 leaf1.1");
    let dumbbell = names("kind = \"dumbbell\"\nleaves = 2", "from = \"src1\"\nto = \"leaf2\"");
    assert_eq!(dumbbell, "left right src1 leaf1 leaf2");
}

#[test]
fn children_of_a_router_have_consecutive_numbers() {
    let text = "title = \"t\"\nduration = \"1 s\"\n[topology]\nkind = \"tree\"\nfanout = [2, 3]\n[[flow]]\nname = \"t\"\n\
                kind = \"tcp-reno\"\nalong = \"r1.2->leaf*\"\n";
    let layout = parse(text).layout(0, 1);
    let leaves: Vec<String> = layout.flows.iter().map(|flow| layout.names.name(flow.receivers[0])).collect();
    assert_eq!(leaves, ["leaf4", "leaf5", "leaf6"]);
}

#[test]
fn random_draws_depend_on_the_seed_alone() {
    let text =
        star("start_jitter = \"2 s\"").replace("leaves = 4", "leaves = 4\nleaf.delay = \"10 ms .. 90 ms\"");
    let scenario = parse(&text);
    let drawn = |seed| {
        let layout = scenario.layout(0, seed);
        (layout.specs.clone(), layout.flows[0].start)
    };
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
    let (specs, start) = drawn(7);
    let delays = specs.iter().map(|spec| spec.delay.as_secs_f64());
    assert!(delays.filter(|delay| (0.01..=0.09).contains(delay)).count() >= 4);
    assert!(start.as_secs_f64() <= 2.0);
}

/// Returns the clock errors of the star's flows if the flows' `[[flow]]` has this line.
fn flows_with(line: &str, seed: u64) -> Vec<f64> {
    let text = star("").replace("name = \"m\"", &format!("name = \"m\"\n{line}"));
    parse(&text).layout(0, seed).flows.iter().map(|flow| flow.clock_error).collect()
}

#[test]
fn clocks_are_exact_unless_their_errors_are_listed_or_drawn() {
    assert_eq!(flows_with("", 1), [0.0]);
    assert_eq!(flows_with("count = 3\nclock_error = [\"10 ppm\", \"-20 ppm\"]", 1), [1e-5, -2e-5, 1e-5]);
    let drawn = |seed| flows_with("count = 50\nclock_error = \"-50 ppm .. 50 ppm\"", seed);
    assert!(drawn(1).iter().all(|error| error.abs() <= 5e-5) && drawn(1).iter().any(|error| *error < 0.0));
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn clock_errors_change_the_run_and_exact_clocks_do_not() {
    let digest = |line: &str| {
        let text = star("").replace("name = \"m\"", &format!("name = \"m\"\n{line}"));
        let options = faircast_sim::Options { until: Time::from_secs_f64(5.0), ..Default::default() };
        parse(&text).network(0, 1).run(&options).expect("a sound network").digest
    };
    assert_eq!(digest(""), digest("clock_error = \"0 ppm\""));
    assert_ne!(digest(""), digest("clock_error = \"100 ppm\""));
}

#[test]
fn million_receivers_need_at_most_four_link_specs() {
    let layout = parse(&star("").replace("leaves = 4", "leaves = 1000000")).layout(0, 1);
    assert_eq!(layout.receivers(), 1_000_000);
    assert!(layout.specs.len() <= 4);
    assert_eq!(layout.link_name(2 * 1_000_000), "hub->leaf1000000");
}

#[test]
fn sweep_has_all_combinations_and_the_last_axis_varies_fastest() {
    let scenario = parse(
        &(star("")
            + "[sweep]\n\"topology.leaves\" = [1, 2]\nsize = { set = [\"flow.m.packet\"], to = [\"500 B\", 1000] }\n"),
    );
    let points: Vec<String> = scenario.points().iter().map(Point::to_string).collect();
    assert_eq!(
        points,
        [
            "leaves = 1, size = 500 B",
            "leaves = 1, size = 1000",
            "leaves = 2, size = 500 B",
            "leaves = 2, size = 1000"
        ]
    );
    assert_eq!(scenario.layout(2, 1).receivers(), 2);
}

#[test]
fn errors_in_values_of_an_axis_are_reported() {
    let text = star("") + "[sweep]\n\"topology.leaves\" = [1, \"two\"]\n";
    assert!(refusal(&text).contains("`leaves` takes a whole number"), "{}", refusal(&text));
    let text = star("") + "[sweep]\n\"flow.x.count\" = [1]\n";
    assert!(refusal(&text).contains("the path `flow.x.count` does not exist: there is no `x`"));
    let text = star("") + "[sweep]\nseeds = [1, 2]\n";
    assert!(refusal(&text).contains("cannot be swept"));
}

#[test]
fn claims_about_missing_sweep_points_are_refused() {
    let sweep = "[sweep]\n\"topology.leaves\" = [1, 2]\n";
    let claim =
        |at: &str| star("") + sweep + "[[claim]]\nname = \"c\"\nof = \"m.rate\"\nlow = 1\nat = " + at + "\n";
    let scenario = parse(&claim("{ leaves = 2 }"));
    let about: Vec<bool> =
        scenario.points().iter().map(|point| scenario.claims()[0].is_about(point)).collect();
    assert_eq!(about, [false, true]);
    assert!(refusal(&claim("{ leafs = 2 }")).contains("did you mean `leaves`?"));
    assert!(refusal(&claim("{ leaves = 3 }")).contains("its values: 1, 2"));
}

#[test]
fn range_of_a_claim_follows_from_its_tolerance_or_limits() {
    let claim = Claim { published: Some(-10.0), tolerance: Some(0.2), ..Claim::default() };
    assert_eq!(claim.range(), (-12.0, -8.0));
    assert_eq!(Claim { low: Some(1.0), ..Claim::default() }.range(), (1.0, f64::INFINITY));
    let text = star("") + "[[claim]]\nname = \"c\"\nof = \"m.rate\"\n";
    assert!(refusal(&text).contains("a claim needs `low` or `high`"));
}

#[test]
fn names_of_expected_representatives_become_member_numbers() {
    let text = star("")
        + "expected = [{ from = 0, is = \"leaf2\" }, { from = \"5 s\", is = [\"leaf3\", \"leaf4\"] }]\n";
    let expected = parse(&text).layout(0, 1).flows[0].expected.clone();
    let members: Vec<Vec<u32>> = expected.into_iter().map(|(_, members)| members).collect();
    assert_eq!(members, [vec![1], vec![2, 3]]);
}

#[test]
fn hostile_scenario_texts_are_refused() {
    for text in [
        "",
        "[[[",
        "title = 1e999",
        "a.b.c = 3\na.b = 4",
        "\u{0}",
        "flow = 3",
        "[sweep]\n\"\" = [1]",
        "[topology]",
    ] {
        assert!(!check(text).is_empty(), "{text:?}");
    }
    let values: String = (2..20_002).map(|value| format!("{value}, ")).collect();
    let deep = star("") + "[sweep]\n\"topology.leaves\" = [" + &values + "1]\n";
    assert!(refusal(&deep).contains("more than 10000 points"));
    let huge = star("").replace("leaves = 4", "leaves = 4000000000");
    assert!(refusal(&huge).contains("at most"));
    let huge = "title = \"t\"\nduration = \"1 s\"\n[topology]\nkind = \"tree\"\nfanout = [100000, 100000]\n[[flow]]\n\
                name = \"t\"\nkind = \"tcp-reno\"\nfrom = \"root\"\nto = \"leaf1\"\n";
    assert!(refusal(huge).contains("too many leaves"));
}

#[test]
fn value_of_an_axis_occurs_once() {
    let twice = star("") + "[sweep]\n\"topology.leaves\" = [1, 2, 1]\n";
    assert!(refusal(&twice).contains("the axis `topology.leaves` has a value twice"));
}

#[test]
fn axis_can_set_several_keys_and_name_its_points() {
    let axis =
        "[sweep.variant]\nset = [\"flow.m.packet\", \"topology.leaves\"]\neach = [[500, 1], [1000, 2]]\n";
    let named = parse(&star(&format!("{axis}names = [\"few\", \"many\"]")));
    let names: Vec<String> = named.points().iter().map(Point::to_string).collect();
    assert_eq!(names, ["variant = few", "variant = many"]);
    assert_eq!([0, 1].map(|point| named.layout(point, 1).receivers()), [1, 2]);
    let plain = parse(&star(axis));
    assert_eq!(plain.points()[1].to_string(), "variant = 1000 2");
    assert!(refusal(&star(&axis.replace("[500, 1]", "[500]"))).contains("wants 2 values at every point"));
    assert!(refusal(&star(&format!("{axis}names = [\"few\"]"))).contains("1 names for 2 points"));
    assert!(refusal(&star(&axis.replace("each", "to_each"))).contains("one of `to` and `each`"));
}

#[test]
fn claim_can_use_another_sweep_point_as_its_baseline() {
    let text = star("[sweep]\n\"topology.leaves\" = [1, 2, 4]\n")
        + "[[claim]]\nname = \"c\"\nof = \"m.rate\"\nover = \"m.rate\"\nover_at = { leaves = 1 }\nlow = 0.5\n";
    let scenario = parse(&text);
    let claim = &scenario.claims()[0];
    assert_eq!([0, 1, 2].map(|point| claim.base(scenario.points(), point)), [0, 0, 0]);
    assert!(refusal(&text.replace("{ leaves = 1 }", "{ leaves = 3 }")).contains("does not have this value"));
}

#[test]
fn receivers_may_join_and_leave_repeatedly() {
    let text = star("") + "present = \"pareto 2 s\"\nabsent = \"exponential 1 s\"\nsteady = \"leaf2\"\n";
    let scenario = parse(&text);
    let flow = &scenario.layout(0, 1).flows[0];
    assert_eq!(flow.stays[1], (Time::ZERO, Time::NEVER));
    assert!(flow.stays[0].1 < Time::NEVER && flow.returns.iter().all(|(member, ..)| *member != 1));
    assert!(flow.returns.len() >= 3, "{:?}", flow.returns);
    let other = &scenario.layout(0, 2).flows[0];
    assert!(other.returns != flow.returns, "drawn for each seed");
    assert!(refusal(&text.replace("absent = \"exponential 1 s\"\n", "")).contains("alternate; give both"));
}

#[test]
fn sessions_can_have_a_number_of_packets_or_on_and_off_periods() {
    let sent = |more: &str| {
        let scenario = parse(&(star("start_jitter = 0\n") + more));
        let options = faircast_sim::Options { until: Time::from_secs_f64(10.0), ..Default::default() };
        scenario.network(0, 1).run(&options).expect("it runs").flows[0].sent
    };
    assert_eq!(sent("packets = 7\n"), 7);
    let (always, half) = (sent(""), sent("on = \"constant 1 s\"\noff = \"constant 1 s\"\n"));
    assert!(half > 10 && half < always * 3 / 4, "{half} of {always}");
}

#[test]
fn tree_nodes_with_too_many_children_are_refused() {
    let text = |leaves, more| {
        format!(
            "title = \"t\"\nduration = \"1 s\"\n[topology]\nkind = \"star\"\nleaves = {leaves}\n[[flow]]\nname = \"t\"\n\
             kind = \"session\"\nscheme = \"mtcp,preset=published\"\nfrom = \"src1\"\nto = \"leaf*\"\n{more}\n"
        )
    };
    let refused = refusal(&text(18, "fan_out = 17"));
    assert!(refused.contains("src1 has 17 children in the tree, but at most 16 are allowed"), "{refused}");
    let refused = refusal(&text(18, "agents = [{ is = \"leaf1\", children = \"leaf[2-18]\" }]"));
    assert!(refused.contains("leaf1 has 17 children") && refused.contains("most_children = 17"), "{refused}");
    parse(&text(40, "fan_out = 16"));
    parse(&text(18, "fan_out = 17\nmost_children = 17"));
    assert!(parse(&text(40, "")).layout(0, 1).flows[0].parents.is_empty(), "no tree, no limit");
}

#[test]
fn list_of_aggregating_nodes_may_be_empty() {
    let nodes = |more: &str| parse(&star(more)).layout(0, 1).aggregators.len();
    assert_eq!(nodes("aggregate = []"), 0);
    assert_eq!(nodes("aggregate = [\"hub\", \"leaf*\"]\naggregate_for = \"2 s\""), 5);
    let swept = parse(&star("[sweep]\naggregate = [[], [\"hub\"]]\n"));
    assert_eq!(swept.points()[0].to_string(), "aggregate = none");
    assert_eq!([0, 1].map(|point| swept.layout(point, 1).aggregators.len()), [0, 1]);
    assert!(refusal(&star("aggregate = \"hob\"")).contains("no node is called \"hob\""));
}

#[test]
fn schema_contains_every_key_of_the_templates() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).expect("JSON");
    for template in TEMPLATES {
        for entry in Node::parse(template.text).expect("TOML").entries() {
            assert!(schema["properties"][&entry.key].is_object(), "{}", entry.key);
        }
    }
    assert_eq!(schema["additionalProperties"], false);
}

/// Tests that the reference in `docs/scenarios.md` equals the reference in the code. To update the page: `FAIRCAST_BLESS=1 cargo
/// test -p faircast-experiments reference`.
#[test]
fn scenario_reference_in_the_documentation_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let mark = "says how to renew it. -->\n\n";
    let start = text.find(mark).expect("the page has the mark") + mark.len();
    if std::env::var_os("FAIRCAST_BLESS").is_some() {
        std::fs::write(&path, format!("{}{}", &text[..start], reference())).expect("the page can be written");
        return;
    }
    assert!(
        text[start..] == reference(),
        "renew the page: FAIRCAST_BLESS=1 cargo test -p faircast-experiments reference"
    );
}

#[test]
fn claims_about_unknown_metrics_are_refused() {
    let claim = |of: &str| star("") + &format!("[[claim]]\nname = \"c\"\nof = \"{of}\"\nlow = 1\n");
    assert!(refusal(&claim("m.rat")).contains("did you mean `m.rate`?"), "{}", refusal(&claim("m.rat")));
    assert!(refusal(&claim("tpc.rate")).contains("no metric is called `tpc.rate`"));
    assert!(refusal(&claim("m.timeouts")).contains("no metric is called"), "sessions have no timer");
    assert!(refusal(&claim("m.rate@late")).contains("no metric is called"), "there is no such window");
    assert!(refusal(&claim("link.nowhere.loss")).contains("no link is probed"));
    assert!(refusal(&claim("m.layers")).contains("no metric is called"), "it has one layer");
    for known in ["m.rate", "m.loss", "m.cuts", "m.reports.heard", "m.sent"] {
        parse(&claim(known));
    }
    let over = star("") + "[[claim]]\nname = \"c\"\nof = \"m.rate\"\nover = \"m.rage\"\nlow = 1\n";
    assert!(refusal(&over).contains("did you mean `m.rate`?"));
}

#[test]
fn claim_can_use_a_metric_that_exists_at_only_one_sweep_point() {
    let text = star("")
        + "[sweep]\n\"flow.m.scheme\" = [\"ormcc\", \"gmcc\"]\n"
        + "[[claim]]\nname = \"c\"\nof = \"m.layers\"\nat = { scheme = \"gmcc\" }\nlow = 1\n";
    parse(&text);
}

#[test]
fn schema_lists_the_metrics() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).expect("JSON");
    let metrics = schema["x-metrics"].as_array().expect("a list");
    assert!(metrics.iter().any(|metric| metric["name"] == "G.loss" && metric["over"] == "window"));
}

/// Tests that every TOML example on the page is a valid scenario or a part of a valid scenario.
#[test]
fn toml_examples_in_the_documentation_are_valid() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let text = std::fs::read_to_string(path).expect("the page is there");
    let whole = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    parse(whole);
    for part in text.split("```toml\n").skip(2).filter_map(|rest| rest.split("```").next()) {
        Node::parse(part).unwrap_or_else(|wrong| panic!("{part}: {wrong:?}"));
    }
}

#[test]
fn parts_may_contain_only_receivers_of_their_flow() {
    let with = |parts: &str| star("") + parts + "\n";
    let layout = parse(&with("parts = [{ name = \"a\", receivers = \"leaf[1-2]\" }]")).layout(0, 1);
    assert_eq!(layout.parts[0][0].len(), 2);
    assert!(
        refusal(&with("parts = [{ name = \"a\", receivers = \"hub\" }]")).contains("no node of this part")
    );
    assert!(
        refusal(&with("parts = [{ name = \"a\", receivers = \"laef1\" }]")).contains("did you mean leaf*?")
    );
    assert!(refusal(&with("parts = [{ name = \"a b\", receivers = \"leaf1\" }]")).contains("a part's name"));
    assert!(refusal(&with("parts = [{ name = \"a\" }]")).contains("parts needs `receivers`"));
    let twice = "parts = [{ name = \"a\", receivers = \"leaf1\" }, { name = \"a\", receivers = \"leaf2\" }]";
    assert!(refusal(&with(twice)).contains("two parts are called \"a\""));
}

#[test]
fn fit_needs_one_abscissa_for_each_metric() {
    let with = |against: &str| {
        star("") + "[[fit]]\nname = \"f\"\nof = [\"m.rate\", \"m.loss\"]\nagainst = " + against + "\n"
    };
    assert_eq!(parse(&with("[1, \"2 Mbit/s\"]")).plan(0).fits.len(), 1);
    assert!(refusal(&with("[1]")).contains("`of` has 2 metrics, but `against` has 1"));
    assert!(refusal(&with("7")).contains("`against` takes a list of numbers, of rates"));
}

#[test]
fn claims_are_about_either_a_ratio_or_a_trend() {
    let with = |more: &str| star("") + "[[claim]]\nname = \"c\"\nof = \"m.rate\"\nlow = 0\n" + more;
    let scenario = parse(&with("against = \"m.loss\"\nfit = \"r2\"\nscale = \"log\"\n"));
    let trend = scenario.claims()[0].trend.clone().expect("it has one");
    assert_eq!((trend.number, trend.scale), (Trait::Explained, Scale::Logarithmic));
    assert!(
        refusal(&with("against = \"m.loss\"\nover = \"m.rate\"\n"))
            .contains("a claim has either `against` or `over`")
    );
    assert!(refusal(&with("fit = \"slope\"\n")).contains("require `against`"));
    assert!(refusal(&with("against = \"m.loss\"\nfit = \"slop\"\n")).contains("did you mean `slope`?"));
}

/// Two paths from `a` to `r`. The shorter path leads through a host.
const WRITTEN: &str = r#"
title = "written line by line"
duration = "1 s"
[topology]
kind = "text"
network = """
host a
host between
router q
router r
host b
link a between
link between r
link a q delay=5ms
link q r
link r b rate=10M delay=20ms queue=droptail,50 back rate=1M
"""
[[flow]]
name = "tcp"
kind = "tcp-reno"
from = "a"
to = "b"
"#;

#[test]
fn hosts_of_text_topologies_do_not_forward_packets() {
    let scenario = Scenario::parse(WRITTEN, "test.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let outcome = scenario.network(0, 1).run(&faircast_sim::Options::default()).expect("it is sound");
    let offered: Vec<bool> = outcome.links.iter().map(|link| link.counts.offered > 0).collect();
    assert_eq!(offered, [false, false, false, false, true, true, true, true, true, true]);
    let lame = WRITTEN.replace("link q r", "oneway q r");
    assert!(refusal(&lame).contains("a link has only one direction"), "{}", refusal(&lame));
    let wrong = WRITTEN.replace("link q r", "link q s");
    assert!(refusal(&wrong).contains("line 9, `link q s`: there is no node `s`"), "{}", refusal(&wrong));
}

#[test]
fn emulator_reads_networks_of_scenarios() {
    for text in
        [WRITTEN, template("dumbbell").expect("there is one"), template("star").expect("there is one")]
    {
        let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
        let topology = scenario.layout(0, 1).topology().expect("ends of flows pass nothing on");
        let mut plan = EmulationPlan::from(topology.clone());
        plan.hosts_mut().for_each(|(_, host)| host.groups = Groups::None);
        assert_eq!(EmulationPlan::parse(&topology.to_string()), Ok(plan));
    }
    let tree = star("").replace("kind = \"star\"", "kind = \"tree\"\nfanout = [2, 2]");
    let tree = tree.replace("leaves = 4\n", "").replace("\"src1\"", "\"root\"");
    let scenario = Scenario::parse(&tree, "test.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let error = scenario.layout(0, 1).topology().expect_err("its root sends, and has two neighbours");
    assert!(error.to_string().starts_with("root is an end of a flow"), "{error}");
}
