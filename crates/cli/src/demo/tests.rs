use super::*;
use serde_json::json;

fn ended(done: Value) -> ProcessOutput {
    ProcessOutput { done: Some(done), ended: true, ..ProcessOutput::default() }
}

/// Returns the output of a complete transfer to four receivers. Creates the directories of these receivers with the source's
/// content.
fn good(place: &Path) -> (Vec<ProcessOutput>, Hashes) {
    let mut reported = Vec::new();
    for number in 0..RECEIVERS {
        let directory = receiver_directory(place, number);
        std::fs::create_dir(&directory).expect("the place is ours");
        content::make(&directory, 1_000, 7, "marker").expect("the place is ours");
        reported.push(ended(json!({"ok": true, "packets": 98, "lost": 2, "repaired_blocks": 1})));
    }
    reported.push(ended(json!({"ok": true, "bytes": 1_000, "seconds": 1.0, "repair_ratio": 1.05})));
    (reported, content::hashes(&receiver_directory(place, 0)).expect("it was just made"))
}

const SEALED: CaptureCounts = CaptureCounts { sealed: 5, open: 0, readable: 0 };

#[test]
fn demonstration_with_complete_receivers_and_sealing_succeeds() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (mut reported, hashes) = good(place.path());
    reported[3].stopped = Some(Duration::from_secs(3));
    let outcome = judge(&reported, &hashes, place.path(), SEALED);
    assert!(outcome.ok);
    assert_eq!(outcome.receivers[0].loss, 0.02);
    let mut text = Vec::new();
    table::write(&outcome, &mut text).expect("a vector takes everything");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("yes 4 of 4 receivers hold the same 26 files"), "{text}");
    let notes: Vec<&str> = text.lines().filter(|line| line.contains("stopped")).collect();
    assert!(
        matches!(notes[..], [note] if note.starts_with("receiver-4") && note.ends_with("(stopped for 3.00 s)")),
        "{text}"
    );
}

#[test]
fn demonstration_fails_if_a_receiver_has_wrong_bytes() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (reported, hashes) = good(place.path());
    std::fs::write(receiver_directory(place.path(), 2).join("image.bin"), "other").expect("it is ours");
    let outcome = judge(&reported, &hashes, place.path(), SEALED);
    assert!(!outcome.ok && outcome.receivers[2].ok && !outcome.receivers[2].equal);
}

#[test]
fn demonstration_fails_if_packets_are_unencrypted_or_missing() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (reported, hashes) = good(place.path());
    for seen in [
        CaptureCounts { open: 1, ..SEALED },
        CaptureCounts { readable: 1, ..SEALED },
        CaptureCounts::default(),
    ] {
        assert!(!judge(&reported, &hashes, place.path(), seen).ok);
    }
}

#[test]
fn failed_process_is_named_with_its_error() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (mut reported, hashes) = good(place.path());
    reported[1] = ProcessOutput { error: Some("no route".into()), ended: true, ..ProcessOutput::default() };
    let outcome = judge(&reported, &hashes, place.path(), SEALED);
    assert!(!outcome.ok);
    assert_eq!(outcome.failures().collect::<Vec<_>>(), ["receiver-2: no route"]);
}
