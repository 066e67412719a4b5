//! `faircast doctor` and the maximum receive buffer, which all network namespaces of a machine share.

use crate::doctor::WITHIN;
use crate::kit::{FAIRCAST, must};
use faircast_testkit::{Lab, require_root, run};
use serde_json::Value;

/// The system's maximum receive buffer, which all namespaces share. Dropping this value restores the previous maximum.
struct LargestBuffer(String);

impl LargestBuffer {
    const PLACE: &str = "/proc/sys/net/core/rmem_max";

    fn set(bytes: u32) -> LargestBuffer {
        let before = LargestBuffer(must(std::fs::read_to_string(LargestBuffer::PLACE)));
        must(std::fs::write(LargestBuffer::PLACE, bytes.to_string()));
        before
    }
}

impl Drop for LargestBuffer {
    fn drop(&mut self) {
        must(std::fs::write(LargestBuffer::PLACE, &self.0));
    }
}

/// Needs a kernel: the limit of receive buffers.
#[test]
fn advised_command_enlarges_a_small_receive_buffer() {
    let Some(root) = require_root() else { return };
    // No other lab may exist during this test, because all labs share the maximum. The test drops CAP_NET_ADMIN: programs with
    // this capability are not subject to the maximum.
    let lab = must(Lab::plan().receivers(1).build(&root));
    let doctor = || {
        let args = [
            "--bounding-set=-net_admin",
            "--inh-caps=-net_admin",
            FAIRCAST,
            "doctor",
            "--json",
            "--iface",
            "eth0",
        ];
        let ended = must(must(lab.receiver(0).start("setpriv", &args)).finish(WITHIN));
        let lines = ended.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let failed: Vec<Value> = lines.filter(|check| check["verdict"] == "fail").collect();
        (ended.status.code(), failed)
    };
    let _before = LargestBuffer::set(20_000);
    let (code, failed) = doctor();
    let buffers = failed.iter().find(|check| check["check"] == "buffers");
    let buffers = buffers.unwrap_or_else(|| panic!("{code:?} {failed:?}"));
    assert_eq!(code, Some(1), "{failed:?}");
    let advice = buffers["advice"].as_str().and_then(|advice| advice.lines().next());
    must(run("sh", &["-c", advice.expect("it says what to do")], WITHIN));
    assert_eq!(doctor(), (Some(0), Vec::new()), "after {advice:?}");
}
