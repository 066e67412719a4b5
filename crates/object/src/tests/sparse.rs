use super::*;
use crate::file_work::FileWork;
use crate::manifest::MAX_HOLES;
use proptest::prelude::*;
use std::os::unix::fs::FileExt;

/// Bytes at the edges of holes that a receiver of tiny blocks allocates, because no block holds a whole unit of zeros.
const EDGES: u64 = 32 << 10;

/// Returns the object stream of a file with its holes.
pub(super) fn sparse_object(path: &Path) -> ObjectStream {
    let reading = Reading { holes: Holes::Keep, ..Reading::default() };
    ObjectStream::open_with(&[path.to_path_buf()], &reading, T, K).expect("the source can be read")
}

/// Creates a file of `size` bytes with content at these ranges and holes elsewhere.
pub(super) fn sparse_file(at: &Scratch, name: &str, size: u64, data: &[std::ops::Range<u64>]) -> PathBuf {
    let path = at.file(name, b"");
    let file = fs::File::options().write(true).open(&path).expect("ours");
    file.set_len(size).expect("a hole");
    for (seed, range) in (1..).zip(data) {
        let bytes = content((range.end - range.start) as usize, seed);
        file.write_all_at(&bytes, range.start).expect("written");
    }
    path
}

/// Returns all blocks that are not void.
pub(super) fn sent_blocks(object: &mut ObjectStream) -> Vec<(u32, Vec<u8>, Hash)> {
    let mut buf = Vec::new();
    let mut sent = Vec::new();
    for index in 0..object.geometry().blocks().expect("a file has a length") {
        if !object.layout().is_void(index) {
            object.read_block(index, &mut buf).expect("readable");
            sent.push((index, buf.clone(), hash_of(&buf)));
        }
    }
    sent
}

fn allocated(path: &Path) -> u64 {
    path.metadata().expect("it exists").blocks() * 512
}

#[test]
fn holes_arrive_as_holes_and_their_blocks_are_not_sent() {
    let at = Scratch::new();
    let source = sparse_file(&at, "disk.img", 3 << 20, &[0..5_000, 1 << 20..(1 << 20) + 8192]);
    let mut object = sparse_object(&source);
    assert_eq!(object.manifest().encode()[..2], [3, 4], "the feature of holes");
    let sent = sent_blocks(&mut object);
    let bytes: usize = sent.iter().map(|(_, data, _)| data.len()).sum();
    assert!(bytes < 50_000, "{bytes} bytes are sent");
    let all = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    for (index, data, hash) in &sent {
        store.put(*index, data, *hash).expect("stored");
    }
    assert!(store.is_complete(), "void blocks count as received: {:?}", store.missing());
    store.finish(&root(object.geometry(), &all), Durability::Fast).expect("the same root");
    let arrived = at.path("out/disk.img");
    assert_eq!(fs::read(&arrived).expect("there"), fs::read(&source).expect("there"));
    assert!(allocated(&arrived) <= allocated(&source) + EDGES, "{} bytes", allocated(&arrived));
}

#[test]
fn interrupted_sparse_file_resumes_with_its_holes() {
    let at = Scratch::new();
    let source = sparse_file(&at, "disk.img", 3 << 20, &[0..9_000, 2 << 20..(2 << 20) + 9_000]);
    let mut object = sparse_object(&source);
    let sent = sent_blocks(&mut object);
    let all = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    let (first, rest) = sent.split_at(sent.len() / 2);
    for (index, data, hash) in first {
        store.put(*index, data, *hash).expect("stored");
    }
    drop(store);
    let mut store = open(&at.path("out"), &object).expect("opened again");
    assert_eq!(store.resumed_blocks() as usize, first.len());
    for (index, data, hash) in rest {
        store.put(*index, data, *hash).expect("stored");
    }
    store.finish(&root(object.geometry(), &all), Durability::Fast).expect("complete");
    let arrived = at.path("out/disk.img");
    assert_eq!(fs::read(&arrived).expect("there"), fs::read(&source).expect("there"));
    assert!(allocated(&arrived) <= allocated(&source) + EDGES, "{} bytes", allocated(&arrived));
}

#[test]
fn hole_replaces_the_bytes_of_a_reused_part_file() {
    let at = Scratch::new();
    let source = sparse_file(&at, "disk.img", 2 << 20, &[0..5_000]);
    let mut object = sparse_object(&source);
    let (sent, all) = (sent_blocks(&mut object), blocks(&mut object));
    // The output directory has a file of the same size and time of modification with other bytes in place of the hole.
    let other = at.file("out/disk.img", &content(2 << 20, 9));
    let time = source.metadata().and_then(|about| about.modified()).expect("it has a time");
    fs::File::options().write(true).open(other).and_then(|file| file.set_modified(time)).expect("set");
    let disk = Disk::default();
    let (mut store, _) =
        Store::begin(&disk, &at.path("out"), object.transfer(), object.geometry(), None).expect("opened");
    store.put(sent[0].0, &sent[0].1, sent[0].2).expect("the manifest");
    store.adopt(&FileWork::default()).expect("copied");
    for (index, data, hash) in &sent[1..] {
        if store.has(*index) {
            store.withdraw(*index).expect("differs");
        }
        store.put(*index, data, *hash).expect("stored");
    }
    store.finish(&root(object.geometry(), &all), Durability::Fast).expect("complete");
    assert_eq!(fs::read(at.path("out/disk.img")).expect("there"), fs::read(&source).expect("there"));
}

#[test]
fn dense_file_keeps_its_zeros_and_its_manifest() {
    let at = Scratch::new();
    let source = at.file("zeros", &vec![0; 2 << 20]);
    let object = sparse_object(&source);
    assert_eq!((object.manifest().encode()[0], object.layout().void().len()), (1, 0));
}

#[test]
fn holes_that_do_not_fit_their_file_are_refused() {
    let file = |size, holes: &[std::ops::Range<u64>]| {
        let mut entry = Entry::new("file", Kind::File { size }, 0o644, 0);
        entry.holes = Some(holes.into());
        Manifest::new(vec![entry])
    };
    assert!(file(100, &[0..10, 20..100]).is_ok());
    for holes in [&[][..], &[5..5], &[0..101], &[0..10, 10..20], &[20..30, 0..10]] {
        assert_eq!(file(100, holes), Err(ManifestError::Hole { entry: 0 }), "{holes:?}");
    }
    let mut many = Entry::new("file", Kind::File { size: 1 << 40 }, 0o644, 0);
    many.holes = Some((0..=MAX_HOLES as u64).map(|n| n * 10..n * 10 + 5).collect());
    assert!(matches!(Manifest::new(vec![many]), Err(ManifestError::TooManyHoles(_))));
}

#[test]
fn every_truncation_of_a_table_of_holes_is_an_error() {
    let mut entry = Entry::new("file", Kind::File { size: 1_000_000 }, 0o644, 7);
    entry.holes = Some([300..500_000, 600_000..900_000].into());
    let mut other = Entry::new("other", Kind::File { size: 70_000 }, 0o644, 7);
    other.holes = Some([0..70_000].into());
    let manifest = Manifest::new(vec![entry, other]).expect("in order");
    let bytes = manifest.encode();
    assert_eq!(Manifest::decode(&bytes), Ok(manifest));
    for len in 0..bytes.len() {
        assert!(Manifest::decode(&bytes[..len]).is_err(), "{len} bytes");
    }
    assert!(Manifest::decode(&[&bytes[..], &[1, 1, 0, 0, 1]].concat()).is_err(), "a second table");
}

proptest! {
    #[test]
    fn sparse_manifest_round_trips_through_its_encoding(
        holes in proptest::collection::vec((1u64..5_000, 1u64..5_000), 1..20),
        after in 0u64..100,
    ) {
        let mut end = 0;
        let ranges: Vec<_> = holes.iter().map(|(skip, len)| {
            let start = end + skip;
            end = start + len;
            start..end
        }).collect();
        let mut entry = Entry::new("file", Kind::File { size: end + after }, 0o644, -1);
        entry.holes = Some(ranges.into());
        let manifest = Manifest::new(vec![entry]).expect("valid");
        prop_assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }

    #[test]
    fn changed_sparse_manifest_decodes_or_is_an_error(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut entry = Entry::new("file", Kind::File { size: 100_000 }, 0o644, 1);
        entry.holes = Some([0..30_000, 50_000..90_000].into());
        let mut bytes = Manifest::new(vec![entry]).expect("valid").encode();
        let at = at.index(bytes.len());
        bytes[at] = to;
        crate::manifest::fuzz(&bytes);
    }
}
