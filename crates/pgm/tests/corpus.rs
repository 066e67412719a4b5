//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../fuzz/pgm.rs"]
mod pgm;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use faircast_pgm::fuzzing;
use replay::{assert_harmless_when_changed, replay};

#[test]
fn the_corpus_of_pgm_is_harmless() {
    replay("pgm", pgm::pgm);
}

#[test]
fn the_corpus_of_pgm_receiver_is_harmless() {
    replay("pgm_receiver", fuzzing::receiver);
}

#[test]
fn the_corpus_of_pgm_source_is_harmless() {
    replay("pgm_source", fuzzing::source);
}

#[test]
fn changed_inputs_of_pgm_are_harmless() {
    assert_harmless_when_changed("pgm_receiver", fuzzing::receiver);
    assert_harmless_when_changed("pgm_source", fuzzing::source);
}
