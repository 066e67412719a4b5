//! The record of names in an output directory.

use super::*;
use crate::Origin;
use std::net::IpAddr;

/// Returns the identity of a source with this host name and address.
fn origin(host: &str, address: u8, proven: bool) -> Origin {
    Origin::new(IpAddr::from([192, 0, 2, address]), host, proven)
}

/// Returns a session that started at this time by the source's clock and by this host's clock.
pub(super) fn session(started: u64) -> Admission {
    Admission {
        started,
        began: started,
        now: u64::MAX,
        replay_policy: ReplayPolicy::Clock,
        origin: origin("lab1", 1, false),
        overwrite: OverwritePolicy::Refuse,
        names: Names::Escape,
        most: None,
    }
}

/// Receives this tree as content of a session that started at this time.
fn receive(
    source: &Path,
    out: &Path,
    started: u64,
    overwrite: OverwritePolicy,
) -> Result<Vec<String>, ObjectError> {
    receive_in(source, out, Admission { overwrite, ..session(started) })
}

/// Receives this tree as content of this session.
fn receive_in(source: &Path, out: &Path, admission: Admission) -> Result<Vec<String>, ObjectError> {
    let mut object = object(source);
    let blocks = blocks(&mut object);
    let mut store = Store::open(out, object.transfer(), object.geometry(), Some(admission))?;
    for (index, (data, hash)) in (0..).zip(&blocks) {
        store.put(index, data, *hash)?;
    }
    let mut warnings = store.take_warnings();
    warnings.extend(store.finish(&root(object.geometry(), &blocks), Durability::Fast)?.warnings);
    Ok(warnings)
}

/// Creates a directory with two versions of the file `image`. Returns the directory, the paths of both versions, and the path of
/// the output directory.
fn versions() -> (Scratch, PathBuf, PathBuf, PathBuf) {
    let at = Scratch::new();
    let [old, new] = [("old/image", 1), ("new/image", 2)]
        .map(|(name, seed)| at.file(name, &content(2_000 + usize::from(seed), seed)));
    let out = at.path("out");
    (at, old, new, out)
}

fn refused(result: Result<Vec<String>, ObjectError>) -> String {
    match result {
        Err(error @ ObjectError::Older { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// 2001-09-09, and a second later.
const EARLY: u64 = 1_000_000_000_000_000_000;
const LATE: u64 = EARLY + 1_500_000_000;

#[test]
fn older_session_is_refused_with_both_start_times_in_the_error() {
    let (_at, old, new, out) = versions();
    assert_eq!(receive(&old, &out, EARLY, OverwritePolicy::Refuse).expect("nothing was there"), [""; 0]);
    receive(&new, &out, LATE, OverwritePolicy::Refuse).expect("it is newer");
    let before = picture(&out);
    let message = refused(receive(&old, &out, EARLY, OverwritePolicy::Refuse));
    assert!(
        message.contains("2001-09-09T01:46:41.500Z") && message.contains("2001-09-09T01:46:40.000Z"),
        "{message}"
    );
    assert!(message.contains(&*out.join("image").to_string_lossy()), "{message}");
    let after: BTreeMap<_, _> =
        picture(&out).into_iter().filter(|(name, _)| before.contains_key(name)).collect();
    assert_eq!(after.get("image"), before.get("image"));
    assert_eq!(fs::read(out.join("image")).expect("it is there"), content(2_002, 2));
}

#[test]
fn refused_session_writes_no_part_of_a_file() {
    let (_at, old, new, out) = versions();
    receive(&new, &out, LATE, OverwritePolicy::Refuse).expect("nothing was there");
    refused(receive(&old, &out, EARLY, OverwritePolicy::Refuse));
    let parts = out.join(".faircast").join(object(&old).transfer().to_string()).join("parts");
    assert_eq!(fs::read_dir(parts).expect("the store was opened").count(), 0);
}

#[test]
fn accepting_an_older_session_admits_sessions_that_follow_it() {
    let (at, old, new, out) = versions();
    receive(&new, &out, LATE, OverwritePolicy::Refuse).expect("nothing was there");
    receive(&old, &out, EARLY, OverwritePolicy::Accept).expect("the user wants it");
    assert_eq!(fs::read(out.join("image")).expect("it is there"), content(2_001, 1));
    refused(receive(&new, &out, EARLY - 1, OverwritePolicy::Refuse));
    let third = at.file("third/image", &content(1_000, 3));
    receive(&third, &out, EARLY + 1, OverwritePolicy::Refuse).expect("it is newer than what is there");
}

#[test]
fn older_session_with_the_recorded_content_is_accepted() {
    let (_at, old, new, out) = versions();
    receive(&old, &out, LATE, OverwritePolicy::Refuse).expect("nothing was there");
    receive(&old, &out, EARLY, OverwritePolicy::Refuse).expect("it changes nothing");
    refused(receive(&new, &out, LATE - 1, OverwritePolicy::Refuse));
}

#[test]
fn older_session_is_accepted_for_names_that_are_not_recorded() {
    let (at, _, new, out) = versions();
    receive(&new, &out, LATE, OverwritePolicy::Refuse).expect("nothing was there");
    let tree = at.path("tree");
    at.file("tree/image", b"another image, of a tree");
    receive(&tree, &out, EARLY, OverwritePolicy::Refuse).expect("the tree has another name");
    at.file("tree/more", b"more");
    refused(receive(&tree, &out, EARLY - 1, OverwritePolicy::Refuse));
}

#[test]
fn unreadable_record_is_reported_and_replaced() {
    for damage in [
        (|file: &Path| fs::write(file, b"fcrecv2\nand something else").expect("written")) as fn(&Path),
        |file| {
            fs::remove_file(file).expect("it was there");
            symlink("/etc/passwd", file).expect("a link is made");
        },
        |file| {
            fs::File::options()
                .write(true)
                .open(file)
                .and_then(|f| f.set_len(1 << 40))
                .expect("a sparse file")
        },
    ] {
        let (_at, old, new, out) = versions();
        receive(&new, &out, LATE, OverwritePolicy::Refuse).expect("nothing was there");
        let file = out.join(".faircast/received");
        damage(&file);
        let warnings = receive(&old, &out, EARLY, OverwritePolicy::Refuse).expect("nobody remembers");
        assert!(warnings[0].contains("cannot be read"), "{warnings:?}");
        assert!(file.symlink_metadata().expect("it is written anew").is_file());
        refused(receive(&new, &out, EARLY - 1, OverwritePolicy::Refuse));
    }
}

#[test]
fn resumed_publication_records_its_session() {
    let (_at, old, new, out) = versions();
    let mut object = object(&new);
    let all = blocks(&mut object);
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &all);
    drop(store);
    let state = out.join(".faircast").join(object.transfer().to_string());
    fs::rename(state.join("parts/0"), out.join("image")).expect("renamed");
    fs::write(state.join("published"), b"").expect("written");
    receive(&new, &out, LATE, OverwritePolicy::Refuse).expect("only the rest is done again");
    refused(receive(&old, &out, EARLY, OverwritePolicy::Refuse));
}

#[test]
fn content_of_another_source_is_refused_naming_both_sources() {
    let (_at, old, new, out) = versions();
    let from = |origin| Admission { origin, ..session(EARLY) };
    receive_in(&old, &out, from(origin("lab1", 1, false))).expect("nothing was there");
    let error = receive_in(&new, &out, from(origin("lab2", 2, false))).expect_err("lab1 has brought it");
    let message = error.to_string();
    assert!(matches!(error, ObjectError::OtherSource { .. }), "{message}");
    assert!(
        message.contains("it came from lab1 (192.0.2.1), and lab2 (192.0.2.2) sends other content"),
        "{message}"
    );
    assert_eq!(fs::read(out.join("image")).expect("it is there"), content(2_001, 1));
    receive_in(&old, &out, from(origin("lab2", 2, false))).expect("the same content");
    receive_in(&new, &out, from(origin("lab2", 2, false))).expect("lab2 has brought what is there");
    let wanted = Admission { overwrite: OverwritePolicy::Accept, ..from(origin("lab1", 1, false)) };
    receive_in(&old, &out, wanted).expect("the user wants it");
    assert_eq!(fs::read(out.join("image")).expect("it is there"), content(2_001, 1));
}

#[test]
fn source_is_recognised_by_its_address_or_name() {
    let same = [
        (origin("lab1", 1, false), origin("renamed", 1, false)),
        (origin("lab1", 1, true), origin("lab1", 2, true)),
        (origin("lab1", 1, false), origin("lab1", 2, false)),
        (origin("lab1", 1, true), origin("renamed", 1, true)),
    ];
    let others = [
        (origin("lab1", 1, true), origin("lab1", 2, false)),
        (origin("lab1", 1, true), origin("lab2", 2, true)),
    ];
    for (pairs, is_same) in [(&same[..], true), (&others[..], false)] {
        for (first, second) in pairs {
            let (_at, old, new, out) = versions();
            receive_in(&old, &out, Admission { origin: first.clone(), ..session(EARLY) })
                .expect("nothing was there");
            let received = receive_in(&new, &out, Admission { origin: second.clone(), ..session(LATE) });
            assert_eq!(received.is_ok(), is_same, "{first:?} {second:?}: {received:?}");
        }
    }
}

#[test]
fn source_that_answers_is_accepted_with_a_slow_clock() {
    let (at, old, new, out) = versions();
    let answered = |began, now| Admission { began, now, replay_policy: ReplayPolicy::Answer, ..session(1) };
    receive(&old, &out, LATE, OverwritePolicy::Refuse).expect("nothing was there");
    receive_in(&new, &out, answered(LATE + 1, LATE + 1)).expect("it began later, by the clock of this host");
    // A concurrent session that began long before the recorded one is refused, unless this host's clock has been set back.
    let early = LATE - 10_000_000_000;
    refused(receive_in(&old, &out, answered(early, LATE + 2)));
    receive_in(&old, &out, answered(early, early + 1)).expect("what is noted lies in the future");
    // If the source has not answered, a session with an earlier start by the source's clock is refused.
    let third = at.file("third/image", &content(1_000, 3));
    refused(receive(&third, &out, LATE - 1, OverwritePolicy::Refuse));
    receive(&third, &out, LATE, OverwritePolicy::Refuse).expect("it is not older");
}
