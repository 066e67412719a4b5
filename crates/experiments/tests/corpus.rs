//! Runs the fuzz targets on stored texts of the fuzzer's corpus. The fuzzer itself is not needed.

#[path = "../../../fuzz/texts.rs"]
mod texts;

use std::fs;
use std::path::Path;

fn replay(target: &str, entry: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for file in fs::read_dir(folder).expect("the corpus is part of the repository") {
        let path = file.expect("the folder can be read").path();
        println!("{}", path.display()); // shown when it panics
        entry(&fs::read(&path).expect("the file can be read"));
        replayed += 1;
    }
    assert!(replayed > 0, "no inputs for {target}");
}

#[test]
fn corpus_of_fuzz_target_specs_causes_no_panic() {
    replay("specs", texts::specs);
}

#[test]
fn corpus_of_fuzz_target_scenario_causes_no_panic() {
    replay("scenario", texts::scenario);
}

#[test]
fn corpus_of_fuzz_target_plan_causes_no_panic() {
    replay("plan", texts::plan);
}
