use super::*;
use std::ops::Range;

#[test]
fn file_of_any_size_arrives() {
    for len in [0, 1, 150, 190, 219, 220, 221, 439, 440, 441, 5000] {
        let at = Scratch::new();
        let source = at.file("source/name.bin", &content(len, 1));
        let finished = transfer(&source, &at.path("out")).expect("it arrives");
        assert_eq!((finished.entries.files, finished.bytes), (1, len as u64));
        assert_eq!(picture(&at.path("source")).get("name.bin"), picture(&at.path("out")).get("name.bin"));
        assert_eq!(fs::read_dir(at.path("out")).expect("listed").count(), 1, "nothing else is left");
    }
}

#[test]
fn tree_arrives_with_modes_times_links_and_empty_entries() {
    let at = Scratch::new();
    at.file("tree/empty", b"");
    at.file("tree/späße/数据 \\ x\n.txt", &content(300, 2));
    at.file("tree/a", &content(10, 3));
    at.file("tree/a-b", &content(CAPACITY, 4));
    at.file("tree/deep/er/and/deeper", &content(1000, 5));
    fs::create_dir(at.path("tree/empty dir")).expect("created");
    symlink("deep/er", at.path("tree/inside")).expect("linked");
    symlink("../../a", at.path("tree/deep/er/up")).expect("linked");
    symlink("nowhere", at.path("tree/dangling")).expect("linked");
    let mode = |name, mode| {
        fs::set_permissions(at.path(name), fs::Permissions::from_mode(mode)).expect("mode set");
    };
    mode("tree/a", 0o755);
    mode("tree/a-b", 0o444);
    mode("tree/deep/er/and", 0o555);
    mode("tree/empty dir", 0o500);
    let finished = transfer(&at.path("tree"), &at.path("out")).expect("it arrives");
    assert_eq!(finished.skipped, []);
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
    // A second transfer over the existing tree, including read-only directories.
    transfer(&at.path("tree"), &at.path("out")).expect("it arrives again");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn ten_thousand_small_files_arrive() {
    let at = Scratch::new();
    for n in 0..10_000u32 {
        let name = format!("tree/{}/{n}", n % 37);
        if n < 37 {
            fs::create_dir_all(at.path(&name).parent().expect("below")).expect("created");
        }
        fs::write(at.path(&name), n.to_le_bytes()).expect("written");
    }
    let mut object = ObjectStream::open(&[at.path("tree")], 1432, 64).expect("the source can be read");
    let blocks = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    put_all(&mut store, &blocks);
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn blocks_can_be_stored_in_any_order() {
    let at = Scratch::new();
    let source = at.file("tree/one", &content(3000, 6));
    at.file("tree/two", &content(2000, 7));
    let source = source.parent().expect("it has one");
    let mut object = object(source);
    let blocks = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    let mut stored = Vec::new();
    for (index, (data, hash)) in (0..blocks.len() as u32).zip(&blocks).rev() {
        match store.put(index, data, *hash).expect("stored") {
            Put::NeedsManifest => stored.push(index),
            Put::ManifestComplete => assert_eq!(store.files().len(), 3),
            Put::Stored | Put::AlreadyHad => {}
        }
    }
    assert_eq!(store.missing(), vec![Range { start: 1, end: blocks.len() as u32 }]);
    for index in stored {
        let (data, hash) = &blocks[index as usize];
        assert_eq!(store.put(index, data, *hash).expect("stored"), Put::Stored);
        assert_eq!(store.put(index, data, *hash).expect("known"), Put::AlreadyHad);
    }
    assert!(store.is_complete());
    assert_eq!(Some(store.verified_bytes()), object.geometry().stream_len);
    store.finish(&root(object.geometry(), &blocks), Durability::Synced).expect("it arrives");
    assert_eq!(picture(source), picture(&at.path("out/tree")));
}

#[test]
fn several_paths_arrive_in_one_directory() {
    let at = Scratch::new();
    let paths = [at.file("x/one", b"1"), at.file("y/two/three", b"3").parent().expect("it has one").into()];
    let object = ObjectStream::open(&paths, T, K).expect("the sources can be read");
    let names: Vec<_> = object.manifest().entries().iter().map(|e| e.name()).collect();
    assert_eq!(names, ["one", "two", "two/three"]);
    let clash = [at.file("x/same", b"1"), at.file("y/same", b"2")];
    assert!(
        matches!(ObjectStream::open(&clash, T, K), Err(ObjectError::NameClash { name, .. }) if name == "same")
    );
}

#[test]
fn transfer_id_changes_with_the_modification_time() {
    let at = Scratch::new();
    let source = at.file("file", b"content");
    let before = object(&source).transfer();
    assert_eq!(before, object(&source).transfer());
    fs::File::options()
        .write(true)
        .open(&source)
        .and_then(|f| f.set_modified(SystemTime::now()))
        .expect("set");
    assert_ne!(before, object(&source).transfer());
}

#[test]
fn file_that_changes_while_it_is_sent_is_named_in_the_error() {
    let changed = |change: fn(&Path)| {
        let at = Scratch::new();
        let source = at.file("file", &content(3000, 8));
        let mut object = object(&source);
        let mut buf = Vec::new();
        object.read_block(1, &mut buf).expect("unchanged so far");
        change(&source);
        let result = (2..10).try_for_each(|index| object.read_block(index, &mut buf).map(|_| ()));
        match result {
            Err(ObjectError::Changed { path, change }) => {
                assert_eq!(path, source);
                change
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(changed(|path| size(path, 100).expect("cut")), Change::Size { before: 3000, now: 100 });
    assert_eq!(changed(|path| size(path, 9000).expect("grown")), Change::Size { before: 3000, now: 9000 });
    assert_eq!(changed(|path| fs::write(path, content(3000, 9)).expect("written")), Change::Modified);
    fn size(path: &Path, len: u64) -> std::io::Result<()> {
        fs::File::options().write(true).open(path).and_then(|f| f.set_len(len))
    }
}

#[test]
fn paths_that_cannot_be_sent_are_named() {
    let at = Scratch::new();
    assert!(matches!(ObjectStream::open(&[], T, K), Err(ObjectError::Nothing)));
    assert!(
        matches!(ObjectStream::open(&[at.path("none")], T, K), Err(ObjectError::NotFound { path }) if path == at.path("none"))
    );
    assert!(matches!(ObjectStream::open(&["/".into()], T, K), Err(ObjectError::NoName { .. })));
    assert!(matches!(ObjectStream::open(&["/dev/null".into()], T, K), Err(ObjectError::Special { .. })));
    let reserved = at.file(".faircast", b"");
    assert!(matches!(
        ObjectStream::open(&[reserved], T, K),
        Err(ObjectError::Name { why: PathError::Reserved, .. })
    ));
}

#[test]
fn unix_sockets_in_a_tree_are_left_out_and_named() {
    let at = Scratch::new();
    at.file("tree/file", b"1");
    let _socket = std::os::unix::net::UnixListener::bind(at.path("tree/socket")).expect("bound");
    let object = object(&at.path("tree"));
    assert_eq!(object.skipped(), [Skipped { path: at.path("tree/socket") }]);
    assert_eq!(object.manifest().entries().len(), 2);
}

/// A reader that returns pieces of odd sizes.
struct Trickle(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Trickle {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = buf.len().min(37);
        self.0.read(&mut buf[..len])
    }
}

fn stream(at: &Scratch, content: Vec<u8>) -> ObjectStream {
    let reader = Box::new(Trickle(std::io::Cursor::new(content)));
    ObjectStream::from_reader(reader, "stream", 5_000_000_000, &at.0, T, K).expect("it can be kept")
}

#[test]
fn stream_arrives_as_a_file_and_its_blocks_can_be_reread() {
    for len in [0, 1, 219, 440, 4000] {
        let at = Scratch::new();
        let mut object = stream(&at, content(len, 10));
        let (transfer, open_geometry) = (object.transfer(), object.geometry());
        assert_eq!(open_geometry.stream_len, None);
        let all = blocks(&mut object);
        assert_eq!(object.geometry().stream_len, Some(u64::from(open_geometry.manifest_len) + len as u64));
        assert_eq!(all, blocks(&mut object));
        assert_eq!(transfer, object.transfer());
        let mut store = Store::open(&at.path("out"), transfer, open_geometry, None).expect("opened");
        put_all(&mut store, &all);
        store.set_stream_len(object.geometry().stream_len.expect("it has ended")).expect("the same end");
        store.finish(&root(object.geometry(), &all), Durability::Fast).expect("it arrives");
        assert_eq!(fs::read(at.path("out/stream")).expect("read"), content(len, 10));
    }
}

#[test]
fn block_of_a_stream_can_be_read_after_a_later_block() {
    let at = Scratch::new();
    let mut ahead = stream(&at, content(2000, 1));
    let mut object = stream(&at, content(2000, 1));
    let all = blocks(&mut object);
    let mut buf = Vec::new();
    assert_eq!(ahead.read_block(5, &mut buf).expect("read"), BlockRead::Data);
    assert_eq!(buf, all[5].0);
    assert_eq!(ahead.read_block(2, &mut buf).expect("read"), BlockRead::Data);
    assert_eq!(buf, all[2].0);
}

#[test]
fn second_stream_length_that_differs_from_the_first_is_refused() {
    let at = Scratch::new();
    let mut object = stream(&at, content(1000, 11));
    let open_geometry = object.geometry();
    let all = blocks(&mut object);
    let mut store = Store::open(&at.path("out"), object.transfer(), open_geometry, None).expect("opened");
    put_all(&mut store, &all[..3]);
    assert!(matches!(store.set_stream_len(300), Err(ObjectError::BlockLength { index: 2, .. })));
    store.set_stream_len(3000).expect("nothing says otherwise");
    assert!(matches!(store.set_stream_len(3001), Err(ObjectError::TwoEnds { first: 3000, second: 3001 })));
    let far = Store::open(&at.path("far"), object.transfer(), open_geometry, None).expect("opened").put(
        u32::MAX - 1,
        &all[0].0,
        all[0].1,
    );
    assert!(matches!(far, Err(ObjectError::NoSuchBlock { .. })));
}

#[test]
fn sink_writes_blocks_in_order_within_its_memory_limit() {
    let mut sink = StreamSink::new(Vec::new(), 0, 2, 5);
    assert_eq!(sink.put(2, b"ef".to_vec()).expect("kept"), SinkResult::Kept);
    assert_eq!(sink.put(1, b"cd".to_vec()).expect("kept"), SinkResult::Kept);
    assert_eq!(sink.put(3, b"gh".to_vec()).expect("refused"), SinkResult::Full(b"gh".to_vec()));
    assert_eq!(sink.put(1, b"cd".to_vec()).expect("known"), SinkResult::AlreadyHad);
    assert_eq!(sink.put(0, b"XXab".to_vec()).expect("written"), SinkResult::Written(6));
    assert_eq!(sink.put(5, b"kl".to_vec()).expect("kept"), SinkResult::Kept);
    assert_eq!(sink.skip_to(5).expect("written"), 2);
    assert_eq!((sink.next(), sink.stored(), sink.written()), (6, 0, 8));
    assert_eq!(sink.skip_to(10).expect("nothing to write"), 4);
    assert_eq!(sink.finish().expect("flushed"), b"abcdefkl");
}

#[test]
fn control_characters_in_names_follow_the_name_policy() {
    let at = Scratch::new();
    at.file("tree/a\u{1b}[2J/b\nc", b"content");
    at.file("tree/plain", b"plain");
    symlink("a\u{1b}[2J/b\nc", at.path("tree/link")).expect("made");
    let receive = |names| {
        let mut object = object(&at.path("tree"));
        let blocks = blocks(&mut object);
        let admission = Some(Admission { names, ..super::overwrite::session(1) });
        let mut store =
            Store::open(&at.path(&names.to_string()), object.transfer(), object.geometry(), admission)?;
        for (index, (data, hash)) in (0..).zip(&blocks) {
            store.put(index, data, *hash)?;
        }
        let warnings = store.take_warnings();
        store.finish(&root(object.geometry(), &blocks), Durability::Fast).map(|_| warnings)
    };
    let reported = receive(Names::Escape).expect("received");
    assert!(reported.len() == 1 && reported[0].starts_with("2 names have"), "{reported:?}");
    let escaped = at.path("escape/tree");
    let names: Vec<String> = picture(&escaped).into_keys().collect();
    assert_eq!(names, ["", "a\\x1b[2J", "a\\x1b[2J/b\\x0ac", "link", "plain"]);
    assert_eq!(fs::read(escaped.join("link")).expect("it leads to the new name"), b"content");
    assert_eq!(receive(Names::Keep).expect("received"), Vec::<String>::new());
    assert_eq!(picture(&at.path("keep/tree")), picture(&at.path("tree")));
    let refused = receive(Names::Refuse).expect_err("it has such names");
    assert!(matches!(refused, ObjectError::NameHere(NameError::Refused(_))), "{refused}");
    assert!(!at.path("refuse/tree").exists());
}
