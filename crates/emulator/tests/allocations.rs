//! After a warm-up, packets in transit cause no memory allocations.

use faircast_core::time::{Span, Time};
use faircast_emulator::{EmulationPlan, Net};

/// A source, two members and a slow bottleneck with congestion marks.
const PLAN: &str = "
    host source 10.9.0.1
    host a 10.9.0.2 groups=all
    host b 10.9.0.3 groups=all
    router r
    link source r rate=100M delay=1ms jitter=1ms
    link r a rate=8M delay=20ms queue=red,limit=60,min=5,max=20,ecn
    link r b rate=10M delay=5ms queue=droptail,50 loss=bernoulli,0.01";

/// Returns a packet of one of two sizes, to the group or to the first member.
fn packet(number: u64) -> Vec<u8> {
    let size: u16 = if number.is_multiple_of(3) { 1500 } else { 700 };
    let goal = if number.is_multiple_of(2) { [239, 1, 2, 3] } else { [10, 9, 0, 2] };
    let mut bytes = vec![0; usize::from(size)];
    bytes[..2].copy_from_slice(&[0x45, 2]);
    bytes[2..4].copy_from_slice(&size.to_be_bytes());
    bytes[12..16].copy_from_slice(&[10, 9, 0, 1]);
    bytes[16..20].copy_from_slice(&goal);
    bytes
}

/// Sends one packet every 0.5 ms. This rate exceeds the capacity of the slowest link.
fn carry(net: &mut Net, begin: u64, packets: &[Vec<u8>], count: u64) -> u64 {
    let mut delivered = 0;
    for number in begin..begin + count {
        let now = Time::ZERO + Span::from_micros(500) * number;
        while net.due(now).is_some() {
            delivered += 1;
        }
        net.enter(now, 0, &packets[(number % 6) as usize]).expect("both goals are reached");
    }
    delivered
}

#[test]
fn forwarding_a_packet_allocates_nothing() {
    let plan = EmulationPlan::parse(PLAN).unwrap_or_else(|e| panic!("{e}"));
    let mut net = Net::new(&plan).unwrap_or_else(|e| panic!("{e}"));
    let packets: Vec<_> = (0..6).map(packet).collect();
    carry(&mut net, 0, &packets, 20_000); // fills all queues once
    let mut delivered = 0;
    let run = || delivered = carry(&mut net, 20_000, &packets, 100_000);
    let allocated = allocation_counter::measure(run).count_total;
    assert!(delivered > 50_000 && net.link(2).marked > 100, "{delivered} {:?}", net.link(2));
    assert_eq!(allocated, 0);
}
