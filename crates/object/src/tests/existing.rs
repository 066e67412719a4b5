//! Existing files of an output directory: deletion of files that the source does not have, and backups.

use super::*;

/// Receives `tree` into `out` with deletion selected at the source and this treatment at the receiver.
fn mirror(at: &Scratch, existing: Existing) -> Result<Finished, ObjectError> {
    let reading = Reading { extraneous: Extraneous::Delete, ..Reading::default() };
    let mut object = ObjectStream::open_with(&[at.path("tree")], &reading, T, K).expect("it can be read");
    let blocks = blocks(&mut object);
    let mut store = open(&at.path("out"), &object)?.treating(existing);
    for (index, (data, hash)) in (0..).zip(&blocks) {
        store.put(index, data, *hash)?;
    }
    store.finish(&root(object.geometry(), &blocks), Durability::Fast)
}

/// Creates a tree with two files, and an output directory with other versions and other files.
fn versions() -> Scratch {
    let at = Scratch::new();
    at.file("tree/a", &content(500, 1));
    at.file("tree/d/b", &content(300, 2));
    at.file("out/tree/a", b"old");
    at.file("out/tree/d/b", &content(300, 2));
    at.file("out/tree/d/gone", b"gone");
    at.file("out/tree/x/y/z", b"zz");
    at.file("out/beside", b"beside");
    at.file("out/tree/x/.faircast/state", b"state");
    symlink("../../beside", at.path("out/tree/d/link")).expect("room for a link");
    at
}

fn names(top: &Path) -> Vec<String> {
    let files = picture(top).into_iter().filter(|(_, what)| !what.starts_with("dir"));
    files.map(|(name, _)| name).collect()
}

#[test]
fn only_entries_that_the_source_lacks_are_deleted() {
    let at = versions();
    let finished = mirror(&at, Existing::new(Extraneous::Delete, None)).expect("received");
    assert_eq!((finished.deleted, &finished.warnings[..]), (3, &[][..]));
    assert_eq!(names(&at.path("out")), ["beside", "tree/a", "tree/d/b", "tree/x/.faircast/state"]);
    assert_eq!(fs::read(at.path("out/beside")).expect("it stays"), b"beside");
}

#[test]
fn files_stay_unless_source_and_receiver_select_deletion() {
    let at = versions();
    let finished = mirror(&at, Existing::default()).expect("received");
    assert_eq!((finished.deleted, names(&at.path("out")).len()), (0, 7));
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let store = open(&at.path("out"), &object).expect("opened");
    let mut store = store.treating(Existing::new(Extraneous::Delete, None));
    put_all(&mut store, &blocks);
    let finished = store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("received");
    assert_eq!((finished.deleted, names(&at.path("out")).len()), (0, 7));
}

#[test]
fn backup_has_replaced_and_deleted_files_but_no_unchanged_ones() {
    let at = versions();
    let backup = at.path("out/tree/backup");
    let finished = mirror(&at, Existing::new(Extraneous::Delete, Some(backup.clone()))).expect("received");
    assert_eq!(finished.deleted, 3);
    assert_eq!(names(&backup), ["tree/a", "tree/d/gone", "tree/d/link", "tree/x/y/z"]);
    assert_eq!(fs::read(backup.join("tree/a")).expect("backed up"), b"old");
    assert_eq!(fs::read(at.path("out/tree/a")).expect("received"), content(500, 1));
    let again = mirror(&at, Existing::new(Extraneous::Delete, Some(backup.clone()))).expect("received");
    assert_eq!((again.deleted, names(&backup).len()), (0, 4));
}

#[test]
fn deletion_clears_the_way_for_entries_of_another_kind() {
    let at = versions();
    at.file("tree/x", b"now a file");
    at.file("out/tree/w", b"a file");
    at.file("tree/w/below", b"now a directory");
    fs::remove_dir_all(at.path("out/tree/x/.faircast")).expect("ours");
    let refused = mirror(&at, Existing::default());
    assert!(matches!(refused, Err(ObjectError::InTheWay { .. })), "{refused:?}");
    fs::remove_dir_all(at.path("out/.faircast")).expect("ours"); // the state of the refused receiver
    let finished = mirror(&at, Existing::new(Extraneous::Delete, None)).expect("received");
    assert_eq!(finished.deleted, 4);
    assert_eq!(names(&at.path("out")), ["beside", "tree/a", "tree/d/b", "tree/w/below", "tree/x"]);

    let at = versions();
    fs::remove_dir_all(at.path("out/tree")).expect("ours");
    at.file("out/tree", b"a file at the top");
    let refused = mirror(&at, Existing::new(Extraneous::Delete, None));
    assert!(matches!(refused, Err(ObjectError::InTheWay { .. })), "{refused:?}");
}

#[test]
fn source_that_leaves_out_a_file_lets_receivers_delete_nothing() {
    if is_root() {
        // Root can read each file, but a name that is too deep is left out, too.
        let at = versions();
        let deep = "d/".repeat(300);
        at.file(&format!("tree/{deep}f"), b"too deep");
        let reading = Reading { extraneous: Extraneous::Delete, ..Reading::default() };
        let object = ObjectStream::open_with(&[at.path("tree")], &reading, T, K).expect("it can be read");
        assert!(!object.left_out().is_empty());
        assert!(object.notes().iter().any(|note| note.contains("delete no files")), "{:?}", object.notes());
        assert_eq!(object.manifest().extraneous, Extraneous::Keep);
    }
    let at = versions();
    let reading = Reading { extraneous: Extraneous::Delete, ..Reading::default() };
    let object = ObjectStream::open_with(&[at.path("tree/a")], &reading, T, K).expect("it can be read");
    assert!(object.notes().iter().any(|note| note.contains("no directory")), "{:?}", object.notes());
}

#[test]
fn backup_on_another_filesystem_is_refused_before_the_content() {
    let at = versions();
    let elsewhere = Path::new("/dev/shm").join(format!("faircast-backup-{}", std::process::id()));
    let same = fs::metadata("/dev/shm").is_ok_and(|shm| shm.dev() == at.0.metadata().expect("ours").dev());
    if same {
        return;
    }
    let refused = mirror(&at, Existing::new(Extraneous::Keep, Some(elsewhere.clone())));
    assert!(matches!(refused, Err(ObjectError::OtherFilesystem { .. })), "{refused:?}");
    fs::remove_dir(&elsewhere).expect("it is empty");
}

#[test]
fn manifest_that_permits_deletion_has_version_3() {
    let mut manifest = Manifest::new(vec![Entry::new("d", Kind::Dir, 0o755, 0)]).expect("it is sound");
    manifest.extraneous = Extraneous::Delete;
    let expected = [3, 1, 1, 0, 1, b'd', 1, 0xed, 3, 0, 0, 0];
    assert_eq!(manifest.encode(), expected);
    assert_eq!(Manifest::decode(&expected), Ok(manifest));
    for have in 0..expected.len() {
        assert!(Manifest::decode(&expected[..have]).is_err(), "{have} bytes");
    }
    let with = |features: u8| Manifest::decode(&[&[3, features], &expected[2..]].concat());
    assert_eq!(with(0), Err(ManifestError::Unneeded(3)));
    assert_eq!(with(9), Err(ManifestError::Features(9)));
    assert_eq!(with(0x81), Err(ManifestError::Features(0x81)));
}
