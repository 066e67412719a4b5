//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../../fuzz/pgm.rs"]
mod pgm;
#[path = "../../../../fuzz/replay.rs"]
#[allow(dead_code, reason = "other crates use the rest")]
mod replay;

use replay::{assert_harmless_when_changed, replay};

#[test]
fn the_corpus_of_pgm_is_harmless() {
    replay("pgm", pgm::pgm);
}

#[test]
fn the_corpus_of_pgm_receiver_is_harmless() {
    replay("pgm_receiver", super::receiver);
}

#[test]
fn the_corpus_of_pgm_source_is_harmless() {
    replay("pgm_source", super::source);
}

#[test]
fn changed_inputs_of_pgm_are_harmless() {
    assert_harmless_when_changed("pgm_receiver", super::receiver);
    assert_harmless_when_changed("pgm_source", super::source);
}
