//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../../fuzz/alc.rs"]
mod alc;
#[path = "../../../../fuzz/replay.rs"]
#[allow(dead_code, reason = "other crates use the rest")]
mod replay;

use replay::{assert_harmless_when_changed, replay};

#[test]
fn corpus_of_fuzz_target_alc_causes_no_panic() {
    replay("alc", alc::alc);
    assert_harmless_when_changed("alc", alc::alc);
}

#[test]
fn corpus_of_fuzz_target_alc_receiver_causes_no_panic() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    replay("alc_receiver", |input| super::receiver(input, scratch.path()));
}
