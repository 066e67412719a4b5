use super::*;
use crate::object::seal_block;
use faircast_core::packet::{Data, Flags, Mark, Payload, Seq, Signal};
use faircast_fec::{BlockEncoder, RepairSource, Shape};

const T: u16 = 64;
const LAYERS: u8 = 2;

/// A block of a stream with its 4 source symbols and 2 repair symbols.
struct EncodedBlock {
    number: u32,
    data: Vec<u8>,
    symbols: Vec<Vec<u8>>,
}

fn block(number: u32) -> EncodedBlock {
    let data = vec![number as u8; 4 * usize::from(T) - crate::object::TRAILER];
    let mut sealed = data.clone();
    let (k, _) = seal_block(&mut sealed, T);
    assert_eq!(k, 4);
    let mut encoder = BlockEncoder::new(Shape::new(k, T).expect("a shape"), sealed).expect("sealed");
    let mut symbols: Vec<Vec<u8>> =
        (0..4).map(|symbol| encoder.source(symbol).expect("below K").to_vec()).collect();
    for symbol in 4..6 {
        let mut repair = vec![0; usize::from(T)];
        encoder.repair(symbol, &mut repair).expect("in range");
        symbols.push(repair);
    }
    EncodedBlock { number, data, symbols }
}

struct Stage {
    streams: Streams,
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let to = Destination::Directory(dir.path().to_path_buf());
        let geometry = Geometry { stream_len: None, manifest_len: 0, symbol_size: T, symbols_per_block: 20 };
        let (transfer, by) = (TransferId([0; 16]), (&Worker::at_once(), 1 << 20));
        let streams = Streams::new(&to, &[], (transfer, &geometry), LAYERS, 3, by, Time::ZERO);
        Stage { streams, dir }
    }

    fn receive(&mut self, layer: u8, block: &EncodedBlock, symbols: &[u32]) {
        for &symbol in symbols {
            let data = Data {
                seq: Seq(0),
                flags: Flags::default(),
                signal: Signal::None,
                sent_at: Time::ZERO,
                rate: 0.0,
                payload: Payload { block: block.number, symbol },
                mark: Mark::None,
            };
            let payload = &block.symbols[symbol as usize];
            let packet = DataPacket { data, layer: Layer(layer), symbols: 4, payload };
            self.streams.take_symbol(&packet).expect("it can be written");
        }
    }

    fn subscribe(&mut self, joined: u8, secs: u64) {
        let now = Time::ZERO + Span::from_secs(secs);
        self.streams.subscribe(Subscription { joined, of: LAYERS }, now).expect("it can be written");
    }

    fn end(&mut self, secs: u64) {
        self.streams.ended = Some(Ended);
        self.streams
            .finish(0, [0; 32], Durability::Fast, Time::ZERO + Span::from_secs(secs))
            .expect("it can be written");
    }

    /// Returns the blocks in a layer's file.
    fn wrote(&self, layer: u8) -> Vec<u8> {
        let path = self.dir.path().join(format!("stream-00000000.layer{layer}"));
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.chunks(block(0).data.len()).map(|block| block[0]).collect()
    }

    fn lost(&self, layer: usize) -> u64 {
        self.streams.streams()[layer].blocks_lost
    }
}

#[test]
fn blocks_are_written_in_order_and_repairs_replace_losses() {
    let mut stage = Stage::new();
    stage.receive(0, &block(0), &[0, 1, 2, 3, 4, 5]);
    stage.receive(0, &block(1), &[0, 3, 4, 5]);
    assert_eq!(stage.wrote(0), [0, 1]);
    assert_eq!((stage.lost(0), stage.streams.symbols().decoded), (0, 1));
}

#[test]
fn incomplete_block_is_skipped_after_4_symbols_of_a_later_block() {
    let mut stage = Stage::new();
    stage.receive(0, &block(0), &[0, 1, 2, 3]);
    stage.receive(0, &block(1), &[0, 1]);
    stage.receive(0, &block(2), &[0, 1, 2]);
    assert_eq!(stage.lost(0), 0, "three packets may have been overtaken");
    stage.receive(0, &block(2), &[3]);
    assert_eq!((stage.lost(0), stage.wrote(0)), (1, vec![0, 2]), "a gap never stalls");
    stage.receive(0, &block(1), &[2, 3]);
    assert_eq!(stage.wrote(0), [0, 2], "what comes too late changes nothing");
}

#[test]
fn reordered_symbols_of_two_blocks_complete_both_blocks() {
    let mut stage = Stage::new();
    stage.receive(0, &block(0), &[0, 1, 2]);
    stage.receive(0, &block(1), &[0, 1]);
    stage.receive(0, &block(0), &[3]);
    stage.receive(0, &block(1), &[2, 3]);
    assert_eq!((stage.wrote(0), stage.lost(0)), (vec![0, 1], 0));
}

#[test]
fn completely_lost_blocks_are_counted() {
    let mut stage = Stage::new();
    stage.receive(0, &block(3), &[0, 1, 2, 3]);
    stage.receive(0, &block(9), &[0, 1, 2, 3]);
    assert_eq!((stage.wrote(0), stage.lost(0)), (vec![3, 9], 5));
}

#[test]
fn block_in_progress_at_the_join_is_not_counted_as_lost() {
    let mut stage = Stage::new();
    stage.receive(0, &block(7), &[2, 3]);
    stage.receive(0, &block(8), &[0, 1, 2, 3]);
    assert_eq!((stage.wrote(0), stage.lost(0)), (vec![8], 0));
}

#[test]
fn stream_of_a_layer_is_written_only_while_the_layer_is_joined() {
    let mut stage = Stage::new();
    stage.receive(1, &block(0), &[0, 1, 2, 3]);
    assert!(stage.wrote(1).is_empty(), "not joined");
    stage.subscribe(2, 1);
    stage.receive(1, &block(4), &[0, 1, 2, 3]);
    stage.receive(1, &block(5), &[0, 1]);
    stage.subscribe(1, 3);
    stage.receive(1, &block(6), &[0, 1, 2, 3]);
    stage.subscribe(2, 5);
    stage.receive(1, &block(8), &[0, 1, 2, 3]);
    stage.end(6);
    assert_eq!((stage.wrote(1), stage.lost(1)), (vec![4, 8], 0), "what passed meanwhile is not lost");
    assert_eq!(stage.streams.streams()[1].joined_for.as_secs_f64(), 3.0);
    let flows = |event: &Event| match event {
        Event::Output { layer: 1, flow, bytes, .. } => Some((*flow, bytes / 220)),
        _ => None,
    };
    let flows: Vec<_> = stage.streams.events.iter().filter_map(flows).collect();
    let expected = [(Flow::Starts, 0), (Flow::Stops, 1), (Flow::Starts, 1), (Flow::Stops, 2)];
    assert_eq!(flows, expected);
}

#[test]
fn incomplete_block_at_the_end_counts_as_lost() {
    let mut stage = Stage::new();
    stage.receive(0, &block(0), &[0, 1, 2, 3]);
    stage.receive(0, &block(1), &[0, 1]);
    stage.end(1);
    assert_eq!((stage.wrote(0), stage.lost(0)), (vec![0], 1));
    assert_eq!(stage.streams.warnings(), ["1 of 2 blocks of layer 0 are missing"]);
}

#[test]
fn symbols_of_invalid_blocks_and_layers_are_ignored() {
    let mut stage = Stage::new();
    stage.receive(0, &block(0), &[0]);
    stage.receive(0, &EncodedBlock { number: u32::MAX, ..block(1) }, &[0, 1, 2, 3]);
    stage.receive(0, &EncodedBlock { number: 1 << 20, ..block(1) }, &[0, 1, 2, 3]);
    stage.receive(7, &block(1), &[0, 1, 2, 3]);
    stage.receive(0, &block(0), &[1, 2, 3]);
    assert_eq!((stage.wrote(0), stage.lost(0)), (vec![0], 0));
}

#[test]
fn forged_block_is_not_written_and_counts_as_lost() {
    let mut stage = Stage::new();
    let mut forged = block(0);
    forged.symbols[2][0] ^= 1;
    stage.receive(0, &forged, &[0, 1, 2, 3]);
    stage.receive(0, &block(1), &[0, 1, 2, 3]);
    assert_eq!((stage.wrote(0), stage.lost(0)), (vec![1], 1));
}
