//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../../fuzz/pgm.rs"]
mod pgm;
#[path = "../../../../fuzz/replay.rs"]
#[allow(dead_code, reason = "other crates use the rest")]
mod replay;

use replay::{assert_harmless_when_changed, replay};

#[test]
fn corpus_of_fuzz_target_pgm_causes_no_panic() {
    replay("pgm", pgm::pgm);
}

#[test]
fn corpus_of_fuzz_target_pgm_receiver_causes_no_panic() {
    replay("pgm_receiver", super::receiver);
}

#[test]
fn corpus_of_fuzz_target_pgm_source_causes_no_panic() {
    replay("pgm_source", super::source);
}

#[test]
fn changed_inputs_of_fuzz_targets_of_pgm_cause_no_panic() {
    assert_harmless_when_changed("pgm_receiver", super::receiver);
    assert_harmless_when_changed("pgm_source", super::source);
}
