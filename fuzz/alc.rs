//! The fuzz target for packets of ALC. A test of `faircast-flute` replays the corpus through it.

use faircast_flute::codec::{self, Fdt, Rlc};

/// Parses any bytes as an ALC packet and as a file delivery table. Accepted input encodes and parses to the same value.
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
    // Object lengths have 40 bits with RaptorQ and 48 bits with all other codes, so every parsed length can be encoded.
    codec::encode(&mut again, &read).expect("what was read can be written");
    assert_eq!(codec::parse(&again).expect("what was written is whole"), read);
}

/// Checks that the blocks of an object are consecutive and that the last block contains the last symbol.
fn cut(oti: codec::Oti) {
    let Some(blocks) = oti.blocks() else { return };
    let last = blocks.count().saturating_sub(1);
    assert_eq!(blocks.first(last) + u64::from(blocks.len(last)), blocks.symbols());
    assert_eq!(blocks.len(blocks.count()), 0);
}
