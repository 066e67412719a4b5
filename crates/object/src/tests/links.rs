use super::*;

/// Creates a tree with all kinds of links, and targets of some of these links outside the tree.
fn tree() -> Scratch {
    let at = Scratch::new();
    at.file("tree/file", b"inside");
    at.file("blobs/weights", b"beside the tree");
    at.file("blobs/more/deep", b"below");
    symlink("file", at.path("tree/inner")).expect("linked");
    symlink("../blobs/weights", at.path("tree/outer")).expect("linked");
    symlink(at.path("blobs/more"), at.path("tree/directory")).expect("linked");
    symlink("nothing", at.path("tree/dangling")).expect("linked");
    at
}

fn read(at: &Scratch, follow: FollowLinks) -> ObjectStream {
    let reading = Reading { follow, ..Reading::default() };
    ObjectStream::open_with(&[at.path("tree")], &reading, T, K).expect("readable")
}

/// Returns the names of all entries: "name ->" for a link, "name/" for a directory, otherwise "name".
fn names(object: &ObjectStream) -> Vec<String> {
    let name = |entry: &Entry| match entry.kind {
        Kind::Symlink { .. } => format!("{} ->", entry.name()),
        Kind::Dir => format!("{}/", entry.name()),
        _ => entry.name().into_owned(),
    };
    object.manifest().entries().iter().map(name).collect()
}

#[test]
fn links_are_sent_as_links_unless_they_are_followed() {
    let at = tree();
    let never = read(&at, FollowLinks::Never);
    let links =
        ["tree/", "tree/dangling ->", "tree/directory ->", "tree/file", "tree/inner ->", "tree/outer ->"];
    assert_eq!(names(&never), links);
    let counts = Counts { files: 1, links: 4, directories: 1 };
    assert_eq!(never.manifest().counts(), counts);
    let some = read(&at, FollowLinks::Unsafe);
    let outer = [
        "tree/",
        "tree/dangling ->",
        "tree/directory/",
        "tree/directory/deep",
        "tree/file",
        "tree/inner ->",
        "tree/outer",
    ];
    assert_eq!(names(&some), outer);
    let all = read(&at, FollowLinks::Always);
    let followed =
        ["tree/", "tree/directory/", "tree/directory/deep", "tree/file", "tree/inner", "tree/outer"];
    assert_eq!(names(&all), followed);
    let left_out: Vec<_> = all.left_out().iter().map(|one| one.path.clone()).collect();
    assert_eq!(left_out, [at.path("tree/dangling").display().to_string()]);
}

#[test]
fn content_of_followed_links_arrives() {
    let at = tree();
    let mut object = read(&at, FollowLinks::Unsafe);
    let blocks = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    put_all(&mut store, &blocks);
    let finished = store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
    assert_eq!(finished.entries, Counts { files: 3, links: 2, directories: 2 });
    let content = |name: &str| fs::read(at.path(name)).expect("it is there");
    assert_eq!(content("out/tree/outer"), b"beside the tree");
    assert_eq!(content("out/tree/directory/deep"), b"below");
    assert!(at.path("out/tree/inner").is_symlink());
}

#[test]
fn links_whose_targets_are_not_sent_are_named_and_counted() {
    let at = tree();
    let stray = read(&at, FollowLinks::Never).stray_links();
    let outside = stray.outside.expect("two lead out");
    assert!(outside.starts_with("tree/directory -> ") && outside.contains(" and 1 more: "), "{outside}");
    let nowhere = stray.nowhere.expect("one dangles");
    assert_eq!(nowhere, "tree/dangling -> nothing: this symbolic link leads to targets that are not sent");
    assert_eq!(read(&at, FollowLinks::Unsafe).stray_links().outside, None);
    fs::remove_file(at.path("tree/dangling")).expect("removed");
    fs::remove_file(at.path("tree/directory")).expect("removed");
    fs::remove_file(at.path("tree/outer")).expect("removed");
    let stray = read(&at, FollowLinks::Never).stray_links();
    assert_eq!((stray.outside, stray.nowhere), (None, None));
}

#[test]
fn followed_link_to_a_directory_that_contains_it_is_left_out() {
    let at = Scratch::new();
    at.file("tree/below/file", b"x");
    symlink("..", at.path("tree/below/up")).expect("linked");
    symlink("../other", at.path("tree/other")).expect("linked");
    at.file("other/file", b"y");
    symlink("../tree", at.path("other/back")).expect("linked");
    let object = read(&at, FollowLinks::Always);
    let found = ["tree/", "tree/below/", "tree/below/file", "tree/other/", "tree/other/file"];
    assert_eq!(names(&object), found);
    let left_out = object.left_out();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(left_out[0].reason.contains("leads to a directory that contains it"), "{left_out:?}");
}
