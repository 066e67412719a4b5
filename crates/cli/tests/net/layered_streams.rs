//! Live streams in layers between real hosts: each receiver gets as many layers as its path carries.

use crate::kit::{Ended, FAIRCAST, Running, Stage, must, noise, print_line};
use faircast_testkit::{Bottleneck, Forwarding, Lab, Offloads, require_root};

const SLOW: usize = 0;
const FAST: usize = 1;

/// RLC with long bursts, which reveal that a path of 0.6 Mbit/s has no room for a second layer of 0.5 Mbit/s.
const RLC: &str = "rlc,base=500000,b=12";

fn stage() -> Option<Stage> {
    let root = require_root()?;
    let plan = Lab::plan().receivers(2).offloads(Offloads::Off).forwarding(Forwarding::ToMembers);
    let plan = plan.bottleneck(SLOW as u16, Bottleneck::mbps(0.6).queue(5_000));
    Some(Stage::shared(&root, plan.bottleneck(FAST as u16, Bottleneck::mbps(10.0))))
}

/// Returns the content of a layer at the receiver `host`.
fn got(stage: &Stage, host: &str, layer: u8) -> Vec<u8> {
    let files = must(std::fs::read_dir(stage.path(host))).filter_map(|entry| Some(entry.ok()?.path()));
    let end = format!(".layer{layer}");
    let mut files = files.filter(|path| path.to_string_lossy().ends_with(&end));
    files.next().map_or_else(Vec::new, |path| must(std::fs::read(path)))
}

/// Returns the reported starts and stops of a layer's stream.
fn flows(ended: &Ended, layer: u64) -> Vec<String> {
    let of_layer = ended.all("output").filter(|event| event["layer"] == layer);
    of_layer.map(|event| event["flow"].as_str().unwrap_or("").to_owned()).collect()
}

/// Needs a kernel: a bridge forwards each group to its members, through token buckets.
#[test]
fn enhancement_layer_reaches_receivers_with_enough_capacity() {
    let Some(stage) = stage() else { return };
    let (base, upper) = (stage.file("base", 350_000), stage.file("upper", 350_000));
    let receivers = stage.recv_everywhere(&[]);
    let line = format!(
        "exec {FAIRCAST} stream --cc {RLC} --layer {base} --layer {upper} --repair 100% --expect 2 --no-key --json --group {}",
        stage.group
    );
    let source = Running::shell(stage.lab.sender(), &line);
    let ended: Vec<Ended> = receivers.into_iter().map(|receiver| receiver.succeeds(55)).collect();
    let source = source.succeeds(20);
    print_line(&format!(
        "layers: {:?} and {:?}",
        ended[SLOW].done()["streams"],
        ended[FAST].done()["streams"]
    ));
    for host in ["r0", "r1"] {
        assert!(got(&stage, host, 0) == noise("base", 350_000), "{host} has not all of the base: {ended:?}");
    }
    let upper = got(&stage, "r1", 1);
    assert!(upper.len() > 100_000 && noise("upper", 350_000).ends_with(&upper), "{:?}", ended[FAST]);
    assert_eq!(flows(&ended[FAST], 1), ["starts", "stops"]);
    assert!(got(&stage, "r0", 1).is_empty() && flows(&ended[SLOW], 1).is_empty(), "{:?}", ended[SLOW]);
    assert_eq!(source.done()["streams"][1]["bytes"], 350_000);
}

/// Needs a kernel: named pipes.
#[test]
fn live_layers_arrive_on_standard_output_and_a_named_pipe() {
    let Some(stage) = stage() else { return };
    let (in_pipe, out_pipe, base, upper) =
        (stage.text("in"), stage.text("out"), stage.text("base.out"), stage.text("upper.out"));
    let listen = format!(
        "mkfifo {out_pipe}; cat {out_pipe} > {upper} & {FAIRCAST} recv --quiet --stdout --layer-to 1={out_pipe} --group {} > {base} && wait",
        stage.group
    );
    let receiver = Running::shell(stage.lab.receiver(FAST), &listen);
    let lines = "i=0; while [ $i -lt 80 ]; do i=$((i+1)); echo line $i of a layer; sleep 0.1; done";
    let line = format!(
        "mkfifo {in_pipe}; ({lines}) > {in_pipe} & ({lines}) | {FAIRCAST} stream --cc {RLC} --layer - --layer {in_pipe} --no-key --json --group {}",
        stage.group
    );
    let source = Running::shell(stage.lab.sender(), &line).succeeds(50);
    assert_eq!(receiver.ends(20).code, 0, "{source:?}");
    let (base, upper) = (must(std::fs::read_to_string(base)), must(std::fs::read_to_string(upper)));
    assert!(base.ends_with("line 80 of a layer\n") && base.lines().count() >= 60, "{base}");
    assert!(upper.ends_with("line 80 of a layer\n") && upper.lines().count() >= 20, "{upper}");
}

/// Needs a kernel: processes end with exit code 2 before they send.
#[test]
fn invalid_arguments_are_refused_with_a_hint() {
    let Some(stage) = stage() else { return };
    let file = stage.file("base", 10);
    let refused = |how: &str, words: &str| {
        let line =
            format!("exec {FAIRCAST} stream {how} --no-key --json --group {} < /dev/null", stage.group);
        Running::shell(stage.lab.sender(), &line).ends(20).failed(2, words);
    };
    refused(&format!("--layer {file}"), "--cc rlc or --cc gmcc");
    refused(
        &format!("--cc rlc,layers=2 {}", format!("--layer {file} ").repeat(3)),
        "are more than the 2 layers of rlc",
    );
    refused("--cc rlc", "give each layer a separate stream");
    refused("--cc rlc --layer - --layer -", "one standard input");
    refused("--cc rlc --layer /nowhere/to/be/found", "does not exist");
}
