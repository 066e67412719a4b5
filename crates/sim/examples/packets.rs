//! Measures the cost of a packet in a queue. `packets QUEUE N` offers N packets in total, from twenty flows, to a link of 100
//! Mbit/s with this queue. The offered rate is 5 % above the link rate. Every second packet is ECN-capable. The output is one
//! line of JSON. `make count` counts the instructions of this program.

use faircast_aqm::{Dequeued, Link, LinkSpec, OfferResult};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let queue = arguments.next().unwrap_or_else(|| "droptail,100".to_owned());
    let packets: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let queue = queue.parse().unwrap_or_else(|error| panic!("{error}"));
    let spec = LinkSpec::new(Rate::from_mbps(100.0), Span::from_millis(10), queue);
    let (mut link, mut rng) = (Link::new(&spec, Rng::new(1, 1)), Rng::new(1, 2));
    // Transmission time of a packet: 80 us.
    let (mut now, mut arrived) = (Time::ZERO, 0u64);
    for packet in 0..packets {
        now += Span::from_nanos(rng.below(2 * 76_000));
        while let Some(news) = link.dequeue(now) {
            arrived += u64::from(matches!(news, Dequeued::Arrives { .. }));
        }
        let fate = link.offer(now, 1000, rng.below(20) as u32, packet % 2 == 0);
        arrived += u64::from(matches!(fate, OfferResult::Arrives { .. }));
        while let Some(news) = link.dequeue(now) {
            arrived += u64::from(matches!(news, Dequeued::Arrives { .. }));
        }
    }
    println!("{{\"packets\": {packets}, \"arrived\": {arrived}}}");
}
