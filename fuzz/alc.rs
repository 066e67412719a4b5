//! The fuzz target of ALC's packets; a test of `faircast-flute` replays the corpus through it.

use faircast_flute::codec::{self, Fdt, Rlc};

/// Reads or refuses any bytes as ALC, and as a file delivery table. An accepted input can be written and reads the
/// same again.
pub fn alc(input: &[u8]) {
    if let Ok(table) = Fdt::parse(input) {
        assert_eq!(Fdt::parse(table.encode().as_bytes()).expect("what was written is a table"), table);
        table.files.iter().filter_map(|file| file.oti).for_each(cut);
    }
    let Ok(read) = codec::parse(input) else { return };
    read.extensions.oti.into_iter().for_each(cut);
    if let Some(rlc) = Rlc::from_bytes(read.cci) {
        assert_eq!(Rlc::from_bytes(&rlc.to_bytes()), Some(rlc));
    }
    let mut again = Vec::new();
    // An object of RaptorQ's has a length of 40 bits wherever it was read, the others' have 48: all can be written.
    codec::encode(&mut again, &read).expect("what was read can be written");
    assert_eq!(codec::parse(&again).expect("what was written is whole"), read);
}

/// However an object is cut, its blocks follow each other and its last symbol is in the last one.
fn cut(oti: codec::Oti) {
    let Some(blocks) = oti.blocks() else { return };
    let last = blocks.count().saturating_sub(1);
    assert_eq!(blocks.first(last) + u64::from(blocks.len(last)), blocks.symbols());
    assert_eq!(blocks.len(blocks.count()), 0);
}
