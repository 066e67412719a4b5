//! In the steady state, processing a packet allocates no memory. Islands share the memory of a network.

mod nets;

use faircast_core::time::{Span, Time};
use faircast_sim::{Islands, Mode, Network, Options, Watch};

/// Returns the number of memory allocations between second `warm` and the moment at which `arrivals` more packets have arrived.
fn allocations(network: &Network, mode: Mode, warm: f64, arrivals: u64) -> u64 {
    let options = Options {
        until: Time::from_secs_f64(1000.0),
        mode,
        sample: Span::from_secs(1),
        watch: Watch::First(0),
        ..Options::default()
    };
    let mut engine = network.engine(&options).expect("a sound network");
    let mut moment = Time::from_secs_f64(warm);
    engine.run_until(moment);
    let begin = engine.arrivals();
    let run = || {
        while engine.arrivals() < begin + arrivals {
            moment += Span::from_millis(100);
            engine.run_until(moment);
        }
    };
    allocation_counter::measure(run).count_total
}

#[test]
fn reception_of_a_million_packets_allocates_nothing() {
    assert_eq!(
        allocations(&nets::star(1000, nets::Background::None), Mode::Eager, 60.0, 1_000_000),
        0,
        "ORMCC"
    );
    assert_eq!(
        allocations(&nets::star(64, nets::Background::None), Mode::Evented, 60.0, 200_000),
        0,
        "evented"
    );
    assert_eq!(allocations(&nets::tcp_star(32), Mode::Eager, 300.0, 400_000), 0, "TCP beside a stream");
}

/// Every agent and link is in one island. Further islands have small places for them.
#[test]
fn four_islands_need_less_than_twice_the_memory_of_one() {
    let network = nets::tree(40, 25);
    let bytes = |islands| {
        let options = Options { islands, watch: Watch::First(0), ..Options::default() };
        let mut engine = None;
        let memory = allocation_counter::measure(|| engine = network.engine(&options).ok());
        (memory.bytes_current, engine.expect("a sound network").islands())
    };
    let [(one, _), (four, islands)] = [Islands::One, Islands::AtMost(4)].map(bytes);
    assert_eq!(islands, 4);
    assert!(four < 2 * one, "{four} bytes in place of {one}");
}
