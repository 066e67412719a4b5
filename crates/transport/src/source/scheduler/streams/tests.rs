use super::*;
use faircast_core::rng::Rng;
use std::collections::BTreeSet;

const T: u16 = 64;

/// An input with some bytes available now, and possibly more later.
struct Ready {
    bytes: Vec<u8>,
    taken: usize,
    pacing: Pacing,
    more: More,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    Comes,
    Never,
}

impl Feed for Ready {
    fn take(&mut self, most: usize, _: Span, _: Time) -> Result<Option<Vec<u8>>, ObjectError> {
        let rest = &self.bytes[self.taken..];
        let taken = rest[..rest.len().min(most)].to_vec();
        self.taken += taken.len();
        Ok(Some(taken).filter(|taken| !taken.is_empty()))
    }

    fn is_finished(&self) -> bool {
        self.more == More::Never && self.taken == self.bytes.len()
    }

    fn pacing(&self) -> Pacing {
        self.pacing
    }
}

fn cut() -> Cut {
    Cut {
        symbol_size: T,
        symbols: 20,
        repair: 0.1,
        history: Span::from_secs(1),
        block_time: Span::from_millis(100),
        fill: Fill::Times(0),
    }
}

fn feed(len: usize, pacing: Pacing, more: More) -> Box<dyn Feed> {
    Box::new(Ready { bytes: vec![7; len], taken: 0, pacing, more })
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// Polls the inputs of the streams, with all layers at this rate.
fn look(streams: &mut Streams, now: Time, rate: Rate) {
    streams.look(now, Leisure::No, &|_| rate).expect("nothing fails");
}

/// Returns the number of sent symbols, and the number of source symbols of all blocks begun.
fn symbols(streams: &Streams) -> (u64, u64) {
    let amounts = streams.amounts();
    (amounts.sent_symbols, amounts.content_symbols)
}

/// Returns streams started at time zero, at a rate that makes full blocks.
fn started(feeds: Vec<Box<dyn Feed>>, cut: Cut) -> Streams {
    let mut streams = Streams::new(feeds, cut, 1).expect("symbols make blocks");
    streams.start(at(0));
    look(&mut streams, at(0), Rate::from_mbps(10.0));
    streams
}

/// Returns the block and symbol numbers of all remaining symbols of a layer.
fn all(streams: &mut Streams, layer: u8) -> Vec<(u32, u32)> {
    let next = || {
        look(streams, at(0), Rate::from_mbps(10.0));
        streams.turn(Layer(layer)).map(|(place, ..)| (place.block, place.symbol))
    };
    std::iter::from_fn(next).take(10_000).collect()
}

#[test]
fn block_is_sent_with_its_repairs_before_the_next_block() {
    let full = 20 * usize::from(T) - crate::object::TRAILER;
    let mut streams = started(vec![feed(full + 10, Pacing::Waits, More::Never)], cut());
    let mut expected: Vec<_> = (0..22).map(|symbol| (0, symbol)).collect();
    // 10 bytes and their trailer fit one symbol, and each block has at least one repair.
    expected.extend([(1, 0), (1, 1)]);
    assert_eq!(all(&mut streams, 0), expected);
    assert_eq!(symbols(&streams), (24, 21));
    let sent = StreamSent { bytes: full as u64 + 10, blocks: 2, blocks_dropped: 0 };
    assert_eq!(streams.streams(), [sent]);
}

#[test]
fn slow_layer_sends_small_blocks() {
    let mut streams = Streams::new(vec![feed(100_000, Pacing::Waits, More::Never)], cut(), 1).expect("fine");
    streams.start(at(0));
    look(&mut streams, at(0), Rate::from_bps(1_000.0));
    let (_, symbols, _) = streams.turn(Layer(0)).expect("a block is there");
    assert_eq!(symbols, MIN_BLOCK);
}

#[test]
fn layer_without_a_stream_sends_nothing() {
    let feeds = vec![feed(100, Pacing::Waits, More::Never), feed(0, Pacing::Waits, More::Never)];
    let mut streams = started(feeds, cut());
    assert!(streams.has(Layer(0)) && !streams.has(Layer(1)) && !streams.has(Layer(2)));
    assert!(streams.turn(Layer(1)).is_none() && streams.turn(Layer(2)).is_none());
    assert!(!all(&mut streams, 0).is_empty());
}

#[test]
fn number_of_repair_symbols_is_rounded_up() {
    assert_eq!(
        [(30, 0.1), (31, 0.1), (1, 0.1), (20, 0.15), (8, 0.0), (7, 1.0)].map(|(k, of)| repairs(k, of)),
        [3, 4, 1, 3, 0, 7]
    );
}

#[test]
fn reported_losses_raise_the_number_of_repairs_within_bounds() {
    let repairs = |loss: f64| {
        let mut streams = started(vec![feed(1_200, Pacing::Waits, More::Never)], cut());
        streams.on_reported_loss(loss, Span::ZERO);
        all(&mut streams, 0).len() as u64 - symbols(&streams).1
    };
    assert_eq!([0.0, 0.05, 0.1, 0.5, f64::NAN].map(repairs), [2, 2, 3, 4, 2]);
}

#[test]
fn idle_turns_are_filled_with_repairs_until_the_input_ends() {
    let filled = Cut { fill: Fill::Times(2), ..cut() };
    let mut open = started(vec![feed(1_200, Pacing::Live, More::Comes)], filled);
    assert_eq!(all(&mut open, 0).len(), 20 + 2 + 2 * 20);
    let mut ended = started(vec![feed(1_200, Pacing::Live, More::Never)], filled);
    assert_eq!(all(&mut ended, 0).len(), 22);
}

#[test]
fn expired_live_blocks_are_dropped_with_one_warning() {
    let mut streams = started(vec![feed(5_000, Pacing::Live, More::Comes)], cut());
    let begun = streams.turn(Layer(0)).map(|(place, ..)| place);
    assert_eq!(begun, Some(Payload { block: 0, symbol: 0 }));
    look(&mut streams, at(1_001), Rate::ZERO);
    assert!(!streams.has(Layer(0)), "the block under way and all that waited");
    let report = streams.streams()[0];
    assert_eq!((report.blocks, report.bytes, report.blocks_dropped), (0, 0, 5));
    let warnings = streams.take_warnings();
    assert!(warnings[0].contains("layer 0") && warnings[0].contains("dropped 5 blocks"), "{warnings:?}");
    assert_eq!(streams.take_warnings(), Vec::<String>::new());
}

#[test]
fn file_of_an_inactive_layer_waits_until_other_streams_end() {
    let feeds = vec![feed(100, Pacing::Waits, More::Never), feed(50_000, Pacing::Waits, More::Never)];
    let mut streams = started(feeds, cut());
    all(&mut streams, 0);
    let rate = |layer: Layer| if layer.0 == 0 { Rate::from_mbps(1.0) } else { Rate::ZERO };
    for millis in (0..1_000).step_by(100) {
        streams.look(at(millis), Leisure::No, &rate).expect("nothing fails");
        assert!(streams.status().blocks.is_none() && streams.has(Layer(1)));
    }
    for millis in [1_500, 2_000] {
        streams.look(at(millis), Leisure::No, &rate).expect("nothing fails");
    }
    assert!(streams.status().blocks.is_some(), "nobody wants the rest");
    assert_eq!(streams.streams()[1].blocks_dropped, 0);
}

#[test]
fn status_announces_the_end_of_all_streams_after_a_delay() {
    let mut streams = started(vec![feed(100, Pacing::Waits, More::Never)], cut());
    assert!(streams.status().blocks.is_none());
    all(&mut streams, 0);
    assert!(streams.status().blocks.is_none(), "the last packets are on their way");
    look(&mut streams, at(301), Rate::from_mbps(1.0));
    assert!(streams.status().blocks.is_some());
}

#[test]
fn only_the_newest_blocks_are_queued_before_the_start() {
    let mut streams = Streams::new(vec![feed(20_000, Pacing::Live, More::Comes)], cut(), 1).expect("fine");
    for millis in [0, 3_000] {
        look(&mut streams, at(millis), Rate::from_mbps(10.0));
    }
    streams.start(at(3_000));
    look(&mut streams, at(3_900), Rate::from_mbps(10.0));
    let left: BTreeSet<_> = all(&mut streams, 0).into_iter().map(|(block, _)| block).collect();
    assert_eq!(left.len(), KEPT);
    assert_eq!(streams.streams()[0].blocks_dropped, 0, "nobody was there to miss them");
}

#[test]
fn no_symbol_is_sent_twice_despite_drops_and_stopped_layers() {
    for fill in [Fill::All, Fill::Times(1)] {
        for seed in 0..20 {
            let mut rng = Rng::new(seed, 0);
            let feeds = (0..3).map(|layer| {
                let bytes = (0..60_000).map(|_| rng.bits() as u8).collect();
                let pacing = if layer == 1 { Pacing::Waits } else { Pacing::Live };
                Box::new(Ready { bytes, taken: 0, pacing, more: More::Comes }) as Box<dyn Feed>
            });
            let mut streams =
                Streams::new(feeds.collect(), Cut { fill, ..cut() }, 1).expect("they make blocks");
            let (mut left, mut newest, mut now) = (BTreeSet::new(), [0; 3], Time::ZERO);
            for step in 0..2_000 {
                if step == 50 {
                    streams.start(now);
                }
                now += Span::from_micros(rng.below(20_000));
                let rates = [(); 3].map(|()| Rate::from_mbps([0.0, 0.1, 1.0, 10.0][rng.below(4) as usize]));
                streams.look(now, Leisure::No, &|layer| rates[usize::from(layer.0)]).expect("nothing fails");
                for _ in 0..rng.below(8) {
                    let layer = rng.below(3) as u8;
                    let Some((place, ..)) = streams.turn(Layer(layer)) else { continue };
                    assert!(
                        left.insert((layer, place.block, place.symbol)),
                        "{place:?} on layer {layer} again"
                    );
                    let newest = &mut newest[usize::from(layer)];
                    assert!(place.block >= *newest, "block numbers go up");
                    *newest = place.block;
                }
            }
            let dropped: u64 = streams.streams().iter().map(|sent| sent.blocks_dropped).sum();
            assert!(left.len() > 1_000 && dropped > 0, "{} symbols, {dropped} blocks dropped", left.len());
        }
    }
}

#[test]
fn streams_end_if_a_layer_stops_before_its_last_repairs() {
    let mut streams = started(vec![feed(100, Pacing::Live, More::Never)], cut());
    // Send all source symbols, but not the repair.
    loop {
        let (place, symbols, _) = streams.turn(Layer(0)).expect("a block is there");
        if place.symbol + 1 == u32::from(symbols) {
            break;
        }
    }
    assert!(streams.has(Layer(0)), "the repair is still to leave");
    for millis in (0..3_000).step_by(100) {
        look(&mut streams, at(millis), Rate::ZERO);
    }
    assert!(streams.status().blocks.is_some(), "nobody waits for what is so old");
    assert_eq!(streams.streams()[0].blocks_dropped, 0, "the block itself has left");
}
