//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../../fuzz/norm.rs"]
mod norm;
#[path = "../../../../fuzz/replay.rs"]
#[allow(dead_code, reason = "other crates use the rest")]
mod replay;

use replay::{assert_harmless_when_changed, replay};

#[test]
fn corpus_of_fuzz_target_norm_causes_no_panic() {
    replay("norm", norm::norm);
}

#[test]
fn corpus_of_fuzz_target_norm_source_causes_no_panic() {
    replay("norm_source", super::source);
}

#[test]
fn changed_inputs_of_fuzz_targets_of_norm_cause_no_panic() {
    assert_harmless_when_changed("norm_source", super::source);
}
