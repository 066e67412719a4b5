//! The real source with ten thousand receivers, all simulated by this process.
//!
//! The simulated receivers follow the same rules as real receivers. They report at a random time within the backoff that the
//! source announces. They repeat a report at growing intervals until it is confirmed.

use crate::kit::{Running, Stage, must, print_line};
use faircast_core::packet::{Echo, ReceiverId, Seq, SessionId};
use faircast_core::rng::Rng;
use faircast_core::time::Span;
use faircast_testkit::{Lab, require_root};
use faircast_wire::{Member, MemberState, Message, Name, ReceiverCodec, Words};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const CROWD: usize = 10_000;

/// A packet number that no packet has.
const NOTHING: Seq = Seq((1 << 62) - 1);

/// State of a simulated receiver.
struct Played {
    codec: ReceiverCodec,
    id: ReceiverId,
    at: Instant,
    tries: u32,
    confirmed: bool,
}

/// All simulated receivers, and their shared observations.
struct Crowd {
    socket: UdpSocket,
    players: Vec<Played>,
    ear: ReceiverCodec,
    rng: Rng,
    session: Option<(SessionId, SocketAddr)>,
    spread: Duration,
    widest: Duration,
    state: MemberState,
    content_sent: bool,
    /// The newest data packet and its time of arrival. `reported` is the time of the last report about a data packet.
    newest: (Seq, Instant),
    reported: Instant,
    begin: Instant,
    /// Times of the reports.
    reports: Vec<Duration>,
}

impl Crowd {
    fn new(socket: UdpSocket) -> Crowd {
        let begin = Instant::now();
        let id = |number: usize| ReceiverId::new(number as u64 + 1).expect("it is not zero");
        let player = |number| Played {
            codec: ReceiverCodec::new(&[], id(number), number as u64),
            id: id(number),
            at: begin,
            tries: 0,
            confirmed: false,
        };
        Crowd {
            socket,
            players: (0..CROWD).map(player).collect(),
            ear: ReceiverCodec::new(&[], id(CROWD), 1),
            rng: Rng::new(7, 7),
            session: None,
            spread: Duration::from_millis(10),
            widest: Duration::ZERO,
            state: MemberState::Joined,
            content_sent: false,
            newest: (NOTHING, begin),
            reported: begin,
            begin,
            reports: Vec::new(),
        }
    }

    /// Processes the packets of the source.
    fn listen(&mut self) {
        let mut bytes = [0; 2048];
        while let Ok((len, from)) = self.socket.recv_from(&mut bytes) {
            let Ok((session, message)) = self.ear.open(&mut bytes[..len], from) else { continue };
            match message {
                Message::Announce(announce) => {
                    self.spread = Duration::from_millis(announce.spread_ms.into());
                    if self.session.is_none() {
                        self.session = Some((session, from));
                        self.ear.follow(session);
                        self.all_report(MemberState::Joined);
                    }
                }
                Message::Status(status) => {
                    self.spread = Duration::from_millis(status.spread_ms.into());
                    let welcomed = status.welcomed.iter().map(|welcome| welcome.id);
                    for id in status.confirmed.iter().copied().chain(welcomed) {
                        self.players[id.get() as usize - 1].confirmed = true;
                    }
                    self.content_sent |= status.blocks.is_some_and(|blocks| status.complete_to >= blocks);
                }
                Message::Data(packet) => self.newest = (packet.data.seq, Instant::now()),
                _ => {}
            }
        }
        self.widest = self.widest.max(self.spread);
    }

    /// Sets the state of all receivers, and schedules their reports.
    fn all_report(&mut self, state: MemberState) {
        self.state = state;
        let now = Instant::now();
        for player in &mut self.players {
            (player.confirmed, player.tries) = (false, 0);
            player.at = now + self.spread.mul_f64(self.rng.unit());
            player.codec.follow(self.session.expect("they report to a session").0);
        }
    }

    /// Returns a membership message of one receiver.
    fn member(&self, id: ReceiverId, state: MemberState) -> Member {
        let (seq, at) = self.newest;
        Member {
            from: id,
            nonce: 0,
            state,
            reason: 0,
            receivers: 1,
            done: 0,
            verified_bytes: 0,
            resumed_bytes: 0,
            blocks_missing: u32::from(state != MemberState::Done),
            rate: 1e8,
            loss: 0.0,
            dropped_local: 0,
            unwritten_bytes: 0,
            activity: faircast_wire::Activity::Network,
            percent: 0,
            echo: Echo { seq, hold: Span::from_nanos(at.elapsed().as_nanos() as u64) },
            host: Name::clipped(&format!("host-{id}")),
            why: Words::default(),
        }
    }

    /// Sends a report of one receiver every 20 ms until the content has been sent, so that the source continues to send.
    fn print_liveness(&mut self) {
        let Some((session, to)) = self.session else { return };
        if self.reported.elapsed() > Duration::from_millis(20) && !self.content_sent {
            self.reported = Instant::now();
            let member = self.member(self.players[0].id, MemberState::Receiving);
            let mut out = Vec::new();
            must(self.players[0].codec.encode(&mut out, session, &Message::Member(member)));
            let _ = self.socket.send_to(&out, to);
        }
    }

    /// Sends the reports whose time has come.
    fn speak(&mut self) {
        let Some((session, to)) = self.session else { return };
        let now = Instant::now();
        let mut out = Vec::new();
        for number in 0..self.players.len() {
            if self.players[number].confirmed || self.players[number].at > now {
                continue;
            }
            let member = self.member(self.players[number].id, self.state);
            let player = &mut self.players[number];
            out.clear();
            must(player.codec.encode(&mut out, session, &Message::Member(member)));
            // The kernel drops the report if the queue is full, as a network would.
            let _ = self.socket.send_to(&out, to);
            self.reports.push(now - self.begin);
            player.at = now + self.spread.max(Duration::from_millis(10)) * (1 << player.tries.min(5));
            player.tries += 1;
        }
    }

    fn confirmed(&self) -> usize {
        self.players.iter().filter(|player| player.confirmed).count()
    }

    /// Runs until all receivers are confirmed, for at most `within` seconds. Returns the duration.
    fn play(&mut self, source: &mut Running, within: u64) -> Duration {
        let begin = Instant::now();
        while self.confirmed() < CROWD {
            self.listen();
            self.speak();
            let (confirmed, state) = (self.confirmed(), self.state);
            assert!(begin.elapsed() < Duration::from_secs(within), "{confirmed} are confirmed as {state:?}");
            assert!(source.task.is_running(), "{confirmed} as {state:?}: {}", source.task.stdout());
            std::thread::sleep(Duration::from_millis(1));
        }
        begin.elapsed()
    }

    /// Returns the maximum number of reports within a second, without the first `from` reports.
    fn busiest_second(&self, from: usize) -> usize {
        let reports = &self.reports[from..];
        let second = Duration::from_secs(1);
        (0..reports.len())
            .map(|i| reports[i..].partition_point(|at| *at < reports[i] + second))
            .max()
            .unwrap_or(0)
    }
}

/// Needs a kernel: the source's socket buffer holds the feedback of ten thousand receivers.
#[test]
fn ten_thousand_receivers_are_confirmed_without_implosion() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan());
    let file = stage.file("image", 200_000);
    let (address, port) = stage.group.rsplit_once(':').expect("a group has a port");
    let (address, port): (Ipv4Addr, u16) = (must(address.parse()), must(port.parse()));
    let here = stage.lab.receiver(0);
    let socket = must(here.inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).expect("the port is free there");
        socket.join_multicast_v4(&address, &here.ipv4()).expect("it has the address");
        socket.set_nonblocking(true).expect("a socket can be asked without waiting");
        socket
    }));
    let mut crowd = Crowd::new(socket);
    let expected = CROWD.to_string();
    let mut source = stage.send(&[&file], &["--expect", &expected, "--join-timeout", "60"]);
    let joining = crowd.play(&mut source, 50);
    let joined = crowd.reports.len();
    // All receivers are complete at the same time, after the content has been sent.
    let begin = Instant::now();
    while !crowd.content_sent {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "the content was not sent: {}",
            source.task.stdout()
        );
        crowd.listen();
        crowd.print_liveness();
        std::thread::sleep(Duration::from_millis(1));
    }
    crowd.all_report(MemberState::Done);
    let ending = crowd.play(&mut source, 90);
    let source = source.succeeds(20);
    let (at_first, at_last) = (crowd.busiest_second(0), crowd.busiest_second(joined));
    print_line(&format!(
        "10,000 receivers: joined in {joining:.1?}, confirmed done in {ending:.1?}, {} reports, {at_first} and {at_last} \
         in the busiest second of joining and of ending, spread up to {:?}, source used {:.1} s of processor",
        crowd.reports.len(),
        crowd.widest,
        source.number("cpu_seconds"),
    ));
    assert_eq!(source.number("verified"), CROWD as f64, "{:?}", source.done());
    assert!(crowd.widest >= Duration::from_secs(5), "{:?}", crowd.widest);
    assert!(at_first < 2_000 && at_last < 2_000, "{at_first} and {at_last} reports in one second");
    assert!(crowd.reports.len() < CROWD * 3, "{} reports", crowd.reports.len());
}
