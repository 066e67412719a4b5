//! `doctor --with HOST`: measures the network between two hosts in both directions.

use super::answering::{FROM_PEER, GROUP_PROBES, HELLO, MAX_TRAIN, TO_PEER};
use super::serve::{GROUP_INTERVAL, unix_nanos};
use super::sockets::{Ear, Mouth, other, paced};
use crate::doctor::{Check, Measured, Verdict};
use crate::{system, units};
use faircast_net::{Choice, Port};
use faircast_wire::doctor::{Key, Kind, LEN, Message, Tally};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Parameters of the asking host.
pub struct Asked<'a> {
    pub host: SocketAddr,
    pub group: SocketAddr,
    pub choice: &'a Choice,
    pub ttl: u8,
    pub key: Key,
    pub keyed: bool,
    /// Whether the clocks must agree, as sessions without feedback require.
    pub one_way: bool,
    /// Assumed lead of this host's clock, in seconds, for tests.
    pub clock_ahead: i64,
}

/// Maximum number of transmissions of a request. `ANSWER` is the time to wait for the answer to each transmission.
const TRIES: u32 = 8;
const ANSWER: Duration = Duration::from_millis(400);
/// Maximum number of transmissions of a datagram that may be too long to pass. `SOON` is the time to wait for the answer to each
/// transmission.
const FEW: u32 = 3;
const SOON: Duration = Duration::from_millis(100);
/// Maximum time to repeat a request while the other host is busy.
const BUSY: Duration = Duration::from_secs(15);
/// Approximate duration of a train.
const TRAIN: Duration = Duration::from_millis(60);
/// Duration of the last train, which measures loss.
const LONG_TRAIN: Duration = Duration::from_millis(500);
/// Rate of the first train, in bit/s. Each following train has four times the rate of the previous train, up to `LAST`: at most
/// six trains.
const FIRST: f64 = 1e6;
const LAST: f64 = 1.1e9;
/// Share of lost datagrams above which the rate of a train counts as too high.
const TOO_MUCH: f64 = 0.05;
/// Maximum difference between the clocks of two hosts for sessions without feedback, in seconds.
const CLOCKS: i64 = 600;
/// Time for queues to drain after a train at too high a rate.
const RECOVERS: Duration = Duration::from_millis(300);

/// State of the asking host after it has received a token.
struct With<'a> {
    asked: &'a Asked<'a>,
    mouth: Mouth,
    test: u64,
    token: u64,
    step: u16,
    /// Number of answers of the other host to datagrams that this host has sent to the group.
    echoed: u64,
    begun: Instant,
    out: Vec<u8>,
    bytes: Vec<u8>,
}

/// Measurements of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Path {
    /// Arrival rate of the fastest train of datagrams, in bit/s.
    rate: f64,
    /// Whether `rate` is a lower bound, because no train was too fast.
    at_least: bool,
    loss: f64,
    reordered: u64,
    datagrams: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    To,
    From,
}

/// Tests the network in both directions between this host and another host.
pub fn test(asked: &Asked<'_>) -> Vec<Check> {
    match With::begin(asked) {
        Ok((mut with, checks)) => {
            let mut checks = checks;
            match with.all() {
                Ok(more) => checks.extend(more),
                Err(error) => checks.push(Check::new("peer", Verdict::Fail, broken(asked, &error))),
            }
            with.leave();
            checks
        }
        Err(error) => {
            vec![Check::new("peer", Verdict::Fail, broken(asked, &error)).advise(unanswered(asked))]
        }
    }
}

fn broken(asked: &Asked<'_>, error: &io::Error) -> String {
    format!("{}: {error}", asked.host)
}

fn unanswered(asked: &Asked<'_>) -> String {
    let key = if asked.keyed { " --key FILE, with the same key," } else { "" };
    format!(
        "run `faircast doctor --serve`{key} there; if it runs, a packet filter drops UDP to port {} there, or to port {} here",
        asked.host.port(),
        asked.group.port()
    )
}

impl<'a> With<'a> {
    /// Requests a token, and the facts about the other host.
    fn begin(asked: &'a Asked<'a>) -> io::Result<(With<'a>, Vec<Check>)> {
        let port = Port::Preferred(asked.group.port());
        let mouth = Mouth::open(asked.group, asked.choice, asked.ttl, port).map_err(other)?;
        let (out, bytes) = (Vec::new(), vec![0; 9_000]);
        let (test, begun) = (system::random(), Instant::now());
        let mut with = With { asked, mouth, test, token: 0, step: 0, echoed: 0, begun, out, bytes };
        let hello = with.message(Kind::Hello, [0; 4]);
        let (answer, _) = with.ask(hello, HELLO, &[Kind::Token])?;
        with.token = answer.token;
        let hello = with.message(Kind::Hello, [0; 4]);
        let (ready, rtt) = loop {
            let asked_at = Instant::now();
            let (answer, _) = with.ask(hello, HELLO, &[Kind::Ready, Kind::Busy])?;
            if answer.kind == Kind::Ready {
                break (answer, asked_at.elapsed());
            }
            if begun.elapsed() > BUSY {
                return Err(io::Error::other("it is busy with a test of another host; try again later"));
            }
            std::thread::sleep(ANSWER);
        };
        let here = unix_nanos(asked.clock_ahead);
        let answers = Check::new(
            "peer",
            Verdict::Ok,
            format!("{} answers after {}", asked.host.ip(), units::seconds(rtt.as_secs_f64())),
        );
        let checks = vec![answers, clocks(here, ready.values[0], rtt, asked)];
        Ok((with, checks))
    }

    /// Ends the test, so that other hosts can start a test before the timeout.
    fn leave(&mut self) {
        let bye = self.message(Kind::Bye, [0; 4]);
        (0..2).for_each(|_| drop(self.send(&bye, LEN)));
    }

    fn all(&mut self) -> io::Result<Vec<Check>> {
        let headers = if self.asked.host.is_ipv4() { 28 } else { 48 };
        let wanted = (self.asked.choice.chosen.mtu.min(1_500) as usize).saturating_sub(headers);
        let to = self.longest(Direction::To, wanted)?;
        let from = self.longest(Direction::From, wanted)?;
        // A link may pass slightly longer datagrams in one direction than in the other. This host uses the length that passes in
        // both directions.
        let len = to.min(from);
        let judged = |direction, passes| lengths(direction, (wanted, passes, len), headers, self.asked);
        let mut checks = vec![judged(Direction::To, to), judged(Direction::From, from)];
        if len < LEN {
            return Ok(checks);
        }
        for direction in [Direction::To, Direction::From] {
            let path = self.path(direction, len)?;
            checks.push(reported(direction, &path, self.asked));
        }
        checks.extend(self.groups()?);
        Ok(checks)
    }

    fn message(&self, kind: Kind, values: [u64; 4]) -> Message {
        Message { kind, step: self.step, number: 0, test: self.test, token: self.token, values }
    }

    fn send(&mut self, message: &Message, len: usize) -> io::Result<()> {
        message.encode(&self.asked.key, len, &mut self.out);
        self.mouth.send(&self.out, self.asked.host).map_err(other)
    }

    /// Returns the next message of this test that arrives before `until`, its length, and its arrival time.
    fn next(&mut self, until: Instant) -> io::Result<Option<(Message, usize, Instant)>> {
        while let Some((len, from, at)) = self.mouth.next(until, &mut self.bytes).map_err(other)? {
            let message = Message::parse(&self.bytes[..len], &self.asked.key);
            let is_of_host = from.ip() == self.asked.host.ip();
            if let Some(message) = message.filter(|message| is_of_host && message.test == self.test) {
                return Ok(Some((message, len, at)));
            }
        }
        Ok(None)
    }

    /// Repeats a request until an answer arrives that has the same step and one of these kinds.
    fn ask(&mut self, question: Message, len: usize, kinds: &[Kind]) -> io::Result<(Message, usize)> {
        self.ask_for(question, len, kinds, (TRIES, ANSWER))?.ok_or_else(|| io::Error::other("no answer"))
    }

    fn ask_for(
        &mut self,
        question: Message,
        len: usize,
        kinds: &[Kind],
        (tries, wait): (u32, Duration),
    ) -> io::Result<Option<(Message, usize)>> {
        for _ in 0..tries {
            self.send(&question, len)?;
            let until = Instant::now() + wait;
            while let Some((answer, len, _)) = self.next(until)? {
                self.echoed += u64::from(answer.kind == Kind::Heard && answer.step == TO_PEER);
                if kinds.contains(&answer.kind) && answer.step == question.step {
                    return Ok(Some((answer, len)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the maximum length of datagrams that pass, up to `wanted`.
    fn longest(&mut self, direction: Direction, wanted: usize) -> io::Result<usize> {
        // If a short datagram passes between two lost long datagrams, the long datagrams are lost because of their length.
        if self.passes(direction, wanted, (FEW, ANSWER))?
            || !self.passes(direction, LEN, (TRIES, ANSWER))?
            || self.passes(direction, wanted, (FEW, ANSWER))?
        {
            return Ok(wanted);
        }
        let (mut passes, mut fails) = (0, wanted);
        while passes + 1 < fails && fails > LEN {
            // No datagram is shorter than a message.
            let middle = passes.max(LEN).midpoint(fails).clamp(passes + 1, fails - 1);
            match self.passes(direction, middle, (FEW, SOON))? {
                true => passes = middle,
                false => fails = middle,
            }
        }
        Ok(passes)
    }

    fn passes(&mut self, direction: Direction, len: usize, tries: (u32, Duration)) -> io::Result<bool> {
        self.step += 1;
        let answer = match direction {
            Direction::To => {
                let question = self.message(Kind::Size, [0; 4]);
                self.ask_for(question, len, &[Kind::Sized], tries)?
            }
            Direction::From => {
                let question = self.message(Kind::PullSize, [len as u64, 0, 0, 0]);
                self.ask_for(question, LEN, &[Kind::Sized], tries)?
            }
        };
        Ok(answer.is_some_and(|(answer, came)| match direction {
            Direction::To => answer.values[0] == len as u64,
            Direction::From => came == len,
        }))
    }

    /// Sends trains at increasing rates until a train is too fast. Then sends a train at half of the maximum arrival rate.
    fn path(&mut self, direction: Direction, len: usize) -> io::Result<Path> {
        let mut path = Path { rate: 0.0, at_least: true, loss: 1.0, reordered: 0, datagrams: 0 };
        let mut rate = FIRST;
        while rate <= LAST {
            let (sent, tally) = self.train(direction, rate, TRAIN, len)?;
            let arrived = arrived(&tally, len);
            path.rate = path.rate.max(arrived.min(rate * 1.1));
            let lost = 1.0 - tally.received as f64 / sent as f64;
            if lost > TOO_MUCH || arrived < 0.7 * rate {
                path.at_least = false;
                std::thread::sleep(RECOVERS);
                break;
            }
            rate *= 4.0;
        }
        let (sent, tally) = self.train(direction, (path.rate / 2.0).max(FIRST / 10.0), LONG_TRAIN, len)?;
        path.loss = 1.0 - tally.received as f64 / sent as f64;
        (path.reordered, path.datagrams) = (tally.reordered, sent);
        Ok(path)
    }

    /// Sends one train in this direction. Returns the number of sent datagrams, and the counts of received datagrams.
    fn train(
        &mut self,
        direction: Direction,
        rate: f64,
        lasts: Duration,
        len: usize,
    ) -> io::Result<(u64, Tally)> {
        self.step += 1;
        let interval = (len as f64 * 8.0 / rate * 1e9) as u64;
        let count = (lasts.as_nanos() as u64 / interval.max(1)).clamp(10, MAX_TRAIN);
        match direction {
            Direction::To => {
                let data = self.message(Kind::Data, [0; 4]);
                paced(count as u32, interval, |number| {
                    Message { number, ..data }.encode(&self.asked.key, len, &mut self.out);
                    self.mouth.send(&self.out, self.asked.host)
                })
                .map_err(other)?;
                std::thread::sleep(TRAIN / 2);
                let question = self.message(Kind::Count, [0; 4]);
                let (Message { values, .. }, _) = self.ask(question, LEN, &[Kind::Counted])?;
                let [received, span, reordered, _] = values;
                Ok((count, Tally::reported(self.step, [received, span, reordered])))
            }
            Direction::From => {
                let pull = self.message(Kind::Pull, [count, interval, len as u64, 0]);
                let mut tally = Tally::default();
                for _ in 0..TRIES {
                    self.send(&pull, LEN)?;
                    let whole = Duration::from_nanos(interval * count);
                    let mut until = Instant::now() + whole + ANSWER;
                    while tally.received < count
                        && let Some((message, _, at)) = self.next(until)?
                    {
                        if message.kind == Kind::Data && message.step == self.step {
                            let at = at.saturating_duration_since(self.begun).as_nanos() as u64;
                            tally.take(message.step, message.number, at);
                            until = until.min(Instant::now() + ANSWER.max(whole / 4));
                        }
                    }
                    if tally.received > 0 {
                        break;
                    }
                }
                Ok((count, tally))
            }
        }
    }

    /// Tests multicast and the answers of receivers in both directions, with the sockets and ports of sessions.
    fn groups(&mut self) -> io::Result<Vec<Check>> {
        let asked = self.asked;
        let mut ear = match Ear::open(asked.group, asked.choice) {
            Ok(ear) => ear,
            Err(error) => return Ok(vec![Check::new("group", Verdict::Fail, error.to_string())]),
        };
        self.step = TO_PEER;
        let probe = self.message(Kind::Group, [0; 4]);
        probe.encode(&asked.key, 0, &mut self.out);
        let interval = GROUP_INTERVAL.as_nanos() as u64;
        paced(GROUP_PROBES, interval, |_| self.mouth.send(&self.out, asked.group)).map_err(other)?;
        std::thread::sleep(ANSWER);
        let question = self.message(Kind::Count, [0; 4]);
        let to = self.ask(question, LEN, &[Kind::Counted])?.0.values[3];
        self.step = FROM_PEER;
        let pull = self.message(Kind::PullGroup, [0; 4]);
        let (mut from, test) = (0, self.test);
        for _ in 0..2 {
            self.send(&pull, LEN)?;
            std::thread::sleep(GROUP_INTERVAL * GROUP_PROBES + ANSWER);
            let echoed = ear.wait_for(std::slice::from_ref(&asked.key), |message, _| {
                let is_of_test =
                    message.kind == Kind::Group && message.step == FROM_PEER && message.test == test;
                from += u64::from(is_of_test);
                is_of_test.then_some(Message { kind: Kind::Heard, ..message })
            });
            echoed.map_err(other)?;
            if from > 0 {
                break;
            }
        }
        // Requests the number of this host's answers that arrived at the other host. While this host waits, it counts the answers
        // of the other host.
        let question = self.message(Kind::Count, [0; 4]);
        let answered = self.ask(question, LEN, &[Kind::Counted])?.0.values[0];
        let ports = (self.mouth.local().port(), asked.host.port());
        let mut checks = vec![grouped(Direction::To, to, asked), grouped(Direction::From, from, asked)];
        checks.extend((to > 0).then(|| answers(Direction::From, self.echoed, ports.0, asked)));
        checks.extend((from > 0).then(|| answers(Direction::To, answered, ports.1, asked)));
        Ok(checks)
    }
}

/// Checks that answers of receivers arrive at the source.
fn answers(direction: Direction, echoed: u64, port: u16, asked: &Asked<'_>) -> Check {
    let arrow = arrow(direction, asked);
    if echoed > 0 {
        return Check::new(
            "answers",
            Verdict::Ok,
            format!("answers of receivers arrive {arrow} at port {port}"),
        );
    }
    let (here, mend) = match direction {
        Direction::To => (
            format!("{} as a source", asked.host.ip()),
            format!("`faircast doctor` on {} names the rule that drops it", asked.host.ip()),
        ),
        Direction::From => (
            "this host as a source".to_owned(),
            "the line `firewall` above names the rule that drops it, if it is on this host".to_owned(),
        ),
    };
    let found = format!("answers of receivers do not arrive {arrow}: {here} must accept UDP on port {port}");
    Check::new("answers", Verdict::Fail, found).advise(format!(
        "{mend}; without an existing rule, add one:\nnft add rule inet filter input udp dport {port} accept\n\
         firewall-cmd --add-port={port}/udp\nufw allow {port}/udp"
    ))
}

/// Checks that datagrams of length `wanted` pass. Otherwise reports `passes`, the maximum length that passes, and advises
/// `least`, the maximum length that passes in both directions.
fn lengths(
    direction: Direction,
    (wanted, passes, least): (usize, usize, usize),
    headers: usize,
    asked: &Asked<'_>,
) -> Check {
    let words = |len: usize| format!("datagrams of {len} bytes (MTU {})", len + headers);
    let arrow = arrow(direction, asked);
    if passes == wanted {
        return Check::new("mtu", Verdict::Ok, format!("{} pass {arrow}", words(wanted)));
    }
    let (mtu, name) = (least + headers, &asked.choice.chosen.name);
    let mend = match direction {
        Direction::To => format!("ip link set {name} mtu {mtu}"),
        Direction::From => format!("on {}: ip link set IFACE mtu {mtu}", asked.host.ip()),
    };
    let found = format!("{} do not pass {arrow}; {} do", words(wanted), words(passes));
    Check::new("mtu", Verdict::Fail, found).advise(format!(
        "{mend}\nor raise the MTU of the devices on the path; until then `send --datagram {least}`"
    ))
}

fn arrow(direction: Direction, asked: &Asked<'_>) -> String {
    match direction {
        Direction::To => format!("to {}", asked.host.ip()),
        Direction::From => format!("from {}", asked.host.ip()),
    }
}

/// Returns the arrival rate of a train, in bit/s.
fn arrived(tally: &Tally, len: usize) -> f64 {
    let gaps = tally.received.saturating_sub(1);
    if tally.span == 0 { 0.0 } else { gaps as f64 * len as f64 * 8.0 / (tally.span as f64 / 1e9) }
}

fn reported(direction: Direction, path: &Path, asked: &Asked<'_>) -> Check {
    let arrow = arrow(direction, asked);
    if path.rate == 0.0 {
        return Check::new("path", Verdict::Fail, format!("no train of datagrams arrived {arrow}"))
            .advise("check packet filters and rate limits on the path");
    }
    let more = if path.at_least { " or more" } else { "" };
    let found = format!(
        "{}{more} {arrow}; at half of this rate, {} of {} were lost, and {} arrived out of order",
        units::rate(path.rate),
        units::percent(path.loss),
        units::count(path.datagrams, "datagram"),
        path.reordered,
    );
    let verdict = if path.loss > TOO_MUCH { Verdict::Warn } else { Verdict::Ok };
    let measured = Measured {
        rate_bps: path.rate,
        loss: path.loss,
        reordered: path.reordered,
        datagrams: path.datagrams,
    };
    let check = Check { measured: Some(measured), ..Check::new("path", verdict, found) };
    match verdict {
        Verdict::Warn => check.advise(
            "packets are lost without load: check cables, ports (duplex) and wireless links on the path",
        ),
        _ => check,
    }
}

fn grouped(direction: Direction, echoed: u64, asked: &Asked<'_>) -> Check {
    let (arrow, group) = (arrow(direction, asked), asked.group.ip());
    if echoed > 0 {
        return Check::new("group", Verdict::Ok, format!("packets to {group} arrive {arrow}"));
    }
    let found = format!(
        "no packet to {group} arrives {arrow}, but unicast does: a switch or bridge on the path snoops IGMP without a querier, or a packet filter drops the group"
    );
    let snooping = match group {
        IpAddr::V4(_) => "a switch: enable its IGMP querier, or switch IGMP snooping off",
        IpAddr::V6(_) => "a switch: enable its MLD querier, or switch MLD snooping off",
    };
    Check::new("group", Verdict::Fail, found).advise(format!(
        "ip link set BRIDGE type bridge mcast_querier 1   where the bridge is Linux's\n{snooping}\n\
         behind a router: `send --ttl`, multicast routing, or `faircast relay`; without multicast: `send --invite`"
    ))
}

/// Compares the clocks of the two hosts.
fn clocks(here: u64, there: u64, rtt: Duration, asked: &Asked<'_>) -> Check {
    let half = (rtt / 2).as_nanos() as i128;
    let ahead = ((i128::from(here) - half - i128::from(there)) / 1_000_000_000) as i64;
    let host = asked.host.ip();
    let seconds = ahead.unsigned_abs();
    let which = if ahead > 0 { "ahead of" } else { "behind" };
    if ahead.abs() <= CLOCKS {
        return Check::new("clocks", Verdict::Ok, format!("{seconds} s {which} that of {host}"));
    }
    let verdict = if asked.one_way { Verdict::Fail } else { Verdict::Warn };
    let found = format!("this clock is {seconds} s {which} that of {host}");
    let now = there / 1_000_000_000;
    Check::new("clocks", verdict, found).advise(format!(
        "date -u -s @{now}\nif the clock of the other host is wrong, set that clock there (timedatectl set-ntp true); only `recv --one-way` needs clocks that agree within {} minutes",
        CLOCKS / 60
    ))
}
