use crate::time::{Rate, Span, Time};
use crate::unicast::pipe::{Fate, Pipe};
use crate::unicast::{Protocol, Sender as _, Sink as _};

#[test]
fn probe() {
    for name in ["tfrc", "tfrc,preset=rfc", "rap", "rap,fine"] {
        let p: Protocol = name.parse().unwrap();
        let mut pipe = Pipe::new(p, Rate::from_mbps(1.0), Span::from_millis(20));
        pipe.waiting_limit = 49;
        println!("== {name}");
        for t in [1.0, 6.0, 11.0, 16.0, 21.0, 26.0, 31.0, 36.0, 41.0, 46.0, 51.0, 76.0, 116.0, 156.0, 196.0] {
            pipe.run_until(Time::from_secs_f64(t));
            println!(
                "{t} dep {} drops {} rate {:.1} q {}",
                pipe.sink.delivered(),
                pipe.drops,
                pipe.sender.observe().rate.bps() / 8.0,
                pipe.waiting()
            );
        }
    }
    for loss in [0.005, 0.02] {
        for name in ["tfrc", "tcp-reno", "tcp-sack"] {
            for seed in 2..6 {
                let p: Protocol = name.parse().unwrap();
                let mut pipe = Pipe::with_seed(p, Rate::from_mbps(100.0), Span::from_millis(50), seed);
                pipe.judge =
                    Box::new(move |_, _, rng| if rng.chance(loss) { Fate::Dropped } else { Fate::Passes });
                pipe.run_until(Time::from_secs_f64(2000.0));
                println!(
                    "{name} {loss} sent {} drops {} {:.5}",
                    pipe.sender.observe().sent,
                    pipe.drops,
                    pipe.drops as f64 / pipe.sender.observe().sent as f64
                );
            }
        }
    }
}

#[test]
fn probe2() {
    let p: Protocol = "tfrc".parse().unwrap();
    let mut pipe = Pipe::with_seed(p, Rate::from_mbps(100.0), Span::from_millis(50), 3);
    pipe.judge = Box::new(move |_, _, rng| if rng.chance(0.005) { Fate::Dropped } else { Fate::Passes });
    pipe.run_until(Time::from_secs_f64(600.0));
    println!("sent {} drops {}", pipe.sender.observe().sent, pipe.drops);
}
