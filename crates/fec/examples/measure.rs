//! Measures the throughput of the erasure code on one thread, and the share of blocks that need more than K symbols: `cargo run
//! --release -p faircast-fec --example measure`.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use faircast_fec::{BlockEncoder, RepairSource, Shape, decode};
use std::time::Instant;

const SYMBOL_SIZE: u16 = 1432;

fn main() -> Result<(), faircast_fec::FecError> {
    println!("symbols of {SYMBOL_SIZE} bytes; GB/s of block data");
    println!(
        "{:>5} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "K", "first", "encode", "1 lost", "1 %", "5 %", "20 %"
    );
    for symbols in [64, 128, 256, 512, 1024] {
        let shape = Shape::new(symbols, SYMBOL_SIZE)?;
        let first = Instant::now();
        repairs(shape, 0, 1)?;
        let first = first.elapsed();
        let rates = [encode_rate(shape)?, decode_rate(shape, 1)?, decode_rate(shape, symbols.div_ceil(100))?];
        let more = [decode_rate(shape, symbols / 20)?, decode_rate(shape, symbols / 5)?];
        print!("{symbols:>5} {:>5.1} ms", first.as_secs_f64() * 1e3);
        rates.iter().chain(&more).for_each(|rate| print!(" {rate:>9.2}"));
        println!();
    }
    for extra in [0, 1] {
        let (blocks, failed) = failures(extra)?;
        println!("K + {extra} symbols, 20 % lost, K = 64: {failed} of {blocks} blocks need more");
    }
    Ok(())
}

fn block(shape: Shape, seed: u32) -> Vec<u8> {
    let len = u32::try_from(shape.block_len()).expect("at most 64 MB");
    (0..len).map(|n| (n ^ seed).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

fn repairs(shape: Shape, seed: u32, count: u32) -> Result<(Vec<u8>, Vec<u8>), faircast_fec::FecError> {
    let block = block(shape, seed);
    let mut made = Vec::new();
    BlockEncoder::new(shape, block.clone())?.repair_batch(u32::from(shape.symbols()), count, &mut made)?;
    Ok((block, made))
}

/// Measures the encoding rate of a block, with 5 % repair symbols.
fn encode_rate(shape: Shape) -> Result<f64, faircast_fec::FecError> {
    let (mut buffer, mut made) = (block(shape, 1), Vec::new());
    best_rate(shape, || {
        let mut encoder = BlockEncoder::new(shape, std::mem::take(&mut buffer))?;
        made.clear();
        encoder.repair_batch(u32::from(shape.symbols()), u32::from(shape.symbols() / 20), &mut made)?;
        buffer = encoder.into_block();
        Ok(())
    })
}

/// Measures the decoding rate of a block. `lost` source symbols, spread over the block, are replaced by `lost + 2` repair
/// symbols.
fn decode_rate(shape: Shape, lost: u16) -> Result<f64, faircast_fec::FecError> {
    let (block, made) = repairs(shape, 2, u32::from(lost) + 2)?;
    let size = usize::from(SYMBOL_SIZE);
    let k = u32::from(shape.symbols());
    let every = k / u32::from(lost);
    let gone = |esi: u32| esi.is_multiple_of(every) && esi / every < u32::from(lost);
    let symbols = (0..k).zip(block.chunks(size)).filter(|&(esi, _)| !gone(esi));
    let all: Vec<(u32, &[u8])> = symbols.chain((k..).zip(made.chunks(size))).collect();
    best_rate(shape, || {
        assert_eq!(decode(shape, all.iter().copied()).as_ref(), Some(&block));
        Ok(())
    })
}

/// Returns the throughput of the fastest of many runs of `work` on one block, in GB/s. The maximum hides the effect of other
/// processes.
fn best_rate(
    shape: Shape,
    mut work: impl FnMut() -> Result<(), faircast_fec::FecError>,
) -> Result<f64, faircast_fec::FecError> {
    let mut best = f64::INFINITY;
    for _ in 0..60_000_000 / shape.block_len() {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(shape.block_len() as f64 / best / 1e9)
}

fn failures(extra: u32) -> Result<(u32, u32), faircast_fec::FecError> {
    let shape = Shape::new(64, 8)?;
    let (block, made) = repairs(shape, 3, 60_000)?;
    let (mut blocks, mut failed) = (0, 0);
    for (n, run) in made.chunks_exact((13 + extra as usize) * 8).enumerate() {
        let n = u32::try_from(n).expect("few");
        let first = 64 + n * (13 + extra);
        let symbols = (0..64).zip(block.chunks(8)).filter(|&(esi, _)| (esi + n) % 64 >= 13);
        blocks += 1;
        failed += u32::from(decode(shape, symbols.chain((first..).zip(run.chunks(8)))).is_none());
    }
    Ok((blocks, failed))
}
