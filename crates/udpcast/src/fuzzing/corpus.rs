//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../../fuzz/replay.rs"]
#[allow(dead_code, reason = "other crates use the rest")]
mod replay;
#[path = "../../../../fuzz/udpcast.rs"]
mod udpcast;

use replay::{assert_harmless_when_changed, replay};

#[test]
fn corpus_of_fuzz_target_udpcast_causes_no_panic() {
    replay("udpcast", udpcast::udpcast);
}

#[test]
fn corpus_of_fuzz_target_udpcast_receiver_causes_no_panic() {
    replay("udpcast_receiver", super::receiver);
}

#[test]
fn corpus_of_fuzz_target_udpcast_source_causes_no_panic() {
    replay("udpcast_source", super::source);
}

#[test]
fn changed_inputs_of_fuzz_targets_of_udpcast_cause_no_panic() {
    assert_harmless_when_changed("udpcast_receiver", super::receiver);
    assert_harmless_when_changed("udpcast_source", super::source);
}
