use super::super::pipe::{Fate, Pipe};
use super::*;
use crate::time::{Rate, Span, Time};
use crate::unicast::{Protocol, Sender as _, SenderView, Sink as _};

/// What a row of the reference says: acked, drops, cuts, timeouts, mean window.
struct Row {
    name: &'static str,
    protocol: &'static str,
    waiting: usize,
    acked: u64,
    drops: u64,
    drops_late: u64,
    cuts: u64,
    timeouts: u64,
    again: u64,
    window: f64,
}

/// ns-2.35: one flow over 1 Mbit/s, 20 ms and a drop-tail queue for 200 s; means from 20 s on.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "tahoe", protocol: "tcp-tahoe", waiting: 49, acked: 24711, drops: 74, drops_late: 17, cuts: 20, timeouts: 1, again: 131, window: 41.441 },
    Row { name: "reno", protocol: "tcp-reno", waiting: 49, acked: 24922, drops: 75, drops_late: 18, cuts: 21, timeouts: 1, again: 133, window: 43.6036 },
    Row { name: "newreno", protocol: "tcp-newreno", waiting: 49, acked: 24922, drops: 75, drops_late: 18, cuts: 21, timeouts: 1, again: 133, window: 43.6036 },
    Row { name: "sack", protocol: "tcp-sack", waiting: 49, acked: 24919, drops: 75, drops_late: 18, cuts: 21, timeouts: 1, again: 132, window: 43.5709 },
    Row { name: "vegas", protocol: "tcp-vegas", waiting: 49, acked: 24978, drops: 0, drops_late: 0, cuts: 0, timeouts: 0, again: 0, window: 8.5 },
    Row { name: "tahoe 2001", protocol: "tcp-tahoe,preset=ns2001", waiting: 49, acked: 24700, drops: 74, drops_late: 17, cuts: 20, timeouts: 1, again: 129, window: 41.5079 },
    Row { name: "reno 2001", protocol: "tcp-reno,preset=ns2001", waiting: 49, acked: 24916, drops: 75, drops_late: 18, cuts: 21, timeouts: 1, again: 131, window: 43.4847 },
    Row { name: "sack 2001", protocol: "tcp-sack,preset=ns2001", waiting: 49, acked: 24916, drops: 75, drops_late: 18, cuts: 21, timeouts: 1, again: 130, window: 43.4843 },
    Row { name: "vegas 2001", protocol: "tcp-vegas,preset=ns2001", waiting: 49, acked: 24972, drops: 0, drops_late: 0, cuts: 0, timeouts: 0, again: 0, window: 7.0 },
    Row { name: "reno delack", protocol: "tcp-reno,delack", waiting: 49, acked: 24831, drops: 37, drops_late: 9, cuts: 11, timeouts: 1, again: 103, window: 43.8055 },
    Row { name: "newreno delack", protocol: "tcp-newreno,delack", waiting: 49, acked: 24907, drops: 37, drops_late: 9, cuts: 11, timeouts: 1, again: 104, window: 43.7954 },
    Row { name: "vegas delack", protocol: "tcp-vegas,delack", waiting: 49, acked: 24956, drops: 0, drops_late: 0, cuts: 0, timeouts: 0, again: 0, window: 8.74045 },
    Row { name: "reno 10", protocol: "tcp-reno", waiting: 9, acked: 24928, drops: 216, drops_late: 181, cuts: 202, timeouts: 1, again: 231, window: 12.6857 },
    Row { name: "newreno 10", protocol: "tcp-newreno", waiting: 9, acked: 24944, drops: 216, drops_late: 181, cuts: 202, timeouts: 1, again: 234, window: 12.6857 },
    Row { name: "sack 10", protocol: "tcp-sack", waiting: 9, acked: 24961, drops: 216, drops_late: 180, cuts: 201, timeouts: 0, again: 216, window: 12.759 },
];

struct Measured {
    view: SenderView,
    drops: u64,
    drops_late: u64,
    window: f64,
}

fn measure(row: &Row) -> Measured {
    let protocol: Protocol = row.protocol.parse().expect("a protocol of the table");
    let mut pipe = Pipe::new(protocol, Rate::from_mbps(1.0), Span::from_millis(20));
    pipe.waiting_limit = row.waiting;
    pipe.run_until(Time::from_secs_f64(20.0));
    let early = pipe.drops;
    let (mut sum, mut count) = (0.0, 0);
    pipe.run_sampled(Time::from_secs_f64(200.0), Span::from_millis(50), |pipe| {
        sum += pipe.sender.observe().window;
        count += 1;
    });
    Measured {
        view: pipe.sender.observe(),
        drops: pipe.drops,
        drops_late: pipe.drops - early,
        window: sum / f64::from(count),
    }
}

#[test]
fn one_flow_does_what_it_does_in_ns_2_35() {
    for row in ROWS {
        let ours = measure(row);
        println!(
            "{:14} acked {}/{} drops {}/{} late {}/{} cuts {}/{} timeouts {}/{} again {}/{} window {:.4}/{}",
            row.name,
            ours.view.acked,
            row.acked,
            ours.drops,
            row.drops,
            ours.drops_late,
            row.drops_late,
            ours.view.cuts,
            row.cuts,
            ours.view.timeouts,
            row.timeouts,
            ours.view.again,
            row.again,
            ours.window,
            row.window
        );
    }
}
