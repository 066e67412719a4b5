//! tshark decodes a real transfer with the dissector that the program prints.

use crate::kit::{FAIRCAST, Stage, must};
use faircast_testkit::{Capture, Damage, Lab, Offloads, require_root, run};
use std::time::Duration;

/// Needs a kernel: packets are captured and dissected.
#[test]
fn dissector_decodes_every_packet_of_open_and_sealed_sessions() {
    let Some(root) = require_root() else { return };
    if let Err(error) = run("tshark", &["--version"], Duration::from_secs(20)) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needs tshark: {error}");
        return crate::kit::print_line(&format!("skipped: the dissector on captures: needs tshark: {error}"));
    }
    let plan = Lab::plan().receivers(2).offloads(Offloads::Off).damage(0..2, Damage::loss(0.05));
    let stage = Stage::shared(&root, plan).with_group("239.255.70.9:5777");
    let file = stage.file("image", 500_000);
    let key = crate::security::key(&stage, "lab.key");
    let lua = stage.text("faircast.lua");
    let printed = must(run(FAIRCAST, &["dissector"], Duration::from_secs(10))).stdout;
    must(std::fs::write(&lua, printed));
    for flags in [&[][..], &["--key", key.as_str()]] {
        let pcap = stage.path("session.pcap");
        let capture = must(Capture::start(stage.lab.sender(), "udp", &pcap));
        let receivers = stage.recv_everywhere(flags);
        // `--expect` makes the source wait for a receiver that loses the announcement.
        let expecting: Vec<_> = flags.iter().chain(&["--expect", "2"]).copied().collect();
        stage.send(&[&file], &expecting).succeeds(20);
        receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(5)));
        let pcap = must(capture.stop());
        let (path, script) = (pcap.to_string_lossy(), format!("lua_script:{lua}"));
        let shown = |filter: &str| {
            let args = ["-n", "-r", &path, "-X", &script, "-Y", filter];
            must(run("tshark", &args, Duration::from_secs(60)))
        };
        let all = shown("faircast");
        assert!(all.stdout.lines().count() > 350, "{} packets: {}", all.stdout.lines().count(), all.stderr);
        assert!(!all.stderr.to_lowercase().contains("lua"), "{}", all.stderr);
        let bad = shown(
            "_ws.malformed || _ws.expert.severity == error || _ws.lua.error || (udp && !faircast && !icmp)",
        );
        assert_eq!(bad.stdout, "", "flags {flags:?}");
        (0..2).for_each(|host| must(std::fs::remove_dir_all(stage.path(&format!("r{host}")))));
    }
}
