//! The gate's virtual connection and the coordinator's virtual connection permit the same packets.

use faircast_cocoon_bpf::layout::{Group, Slot};
use faircast_cocoon_bpf::regulator::{Opening, Regulator};
use faircast_core::time::{Span, Time};
use faircast_unicast::cocoon::{Config, Coordinator, MemberId, Recovery, Start, View};
use std::time::Duration;

/// Size of a packet of TCP and UDP, bytes.
const PACKET: usize = 1460;

/// Two TCPs and two UDP flows, observed by a coordinator and a regulator.
struct Both {
    coordinator: Coordinator,
    members: [MemberId; 2],
    group: faircast_unicast::cocoon::GroupId,
    sockets: [faircast_unicast::cocoon::SocketId; 2],
    regulator: Regulator,
    windows: [u32; 2],
    acked: u64,
    frozen: u32,
    now_ms: u64,
}

impl Both {
    fn new(windows: [u32; 2]) -> Self {
        let mut coordinator = Coordinator::new(Config { start: Start::Alone, ..Config::published() });
        let group = coordinator.open_group().expect("there is room");
        let mut join = |cwnd: u32| coordinator.join(group, view(cwnd)).expect("there is room").member;
        let members = [join(windows[0]), join(windows[1])];
        coordinator.on_rtt_sample(members[0], Span::from_millis(50));
        let mut open = || coordinator.open_socket(group).expect("there is room");
        let sockets = [open(), open()];
        let mut it = Self {
            coordinator,
            members,
            group,
            sockets,
            regulator: Regulator::new(Opening::All),
            windows,
            acked: 0,
            frozen: 0,
            now_ms: 1,
        };
        it.look();
        it
    }

    fn look(&mut self) {
        let slot = |(id, cwnd): (u32, u32)| Slot { id, cwnd, ssthresh: 64, active: true };
        let group = Group {
            members: 2,
            born: 1,
            last: 1,
            cut_gen: 0,
            srtt_us: 50_000,
            rttvar_us: 25_000,
            frozen: self.frozen,
            acked: self.acked,
            losses: 0,
            timeouts: 0,
            ignored: 0,
            applied: 0,
            expired: 0,
            shared: 0,
            alone: 0,
            limited: 0,
            slots: vec![slot((1, self.windows[0])), slot((2, self.windows[1]))],
        };
        self.now_ms += 1;
        self.regulator.observe(Duration::from_millis(self.now_ms), 2, Some(&group));
    }

    /// Acknowledges this number of packets of a TCP and sets its window.
    fn acknowledge(&mut self, at: usize, packets: u32, window: u32) {
        self.windows[at] = window;
        self.acked += u64::from(packets) * PACKET as u64;
        self.frozen = 0;
        self.coordinator.on_ack(self.members[at], view(window), f64::from(packets));
        self.look();
    }

    /// Simulates a timeout of a TCP.
    fn time_out(&mut self, at: usize) {
        let now = Time::from_nanos(self.now_ms * 1_000_000);
        let lost = View { recovery: Recovery::None, ..view(self.windows[at]) };
        self.coordinator.on_timeout(self.members[at], lost, lost.una, now, now);
        while self.coordinator.next_verdict().is_some() {}
        self.windows[at] = 1;
        self.frozen = 1;
        self.look();
    }

    /// Returns the numbers of packets that the coordinator and the regulator permit now.
    fn let_through(&mut self) -> (usize, usize) {
        let now = Time::from_nanos(self.now_ms * 1_000_000);
        let (mut by_coordinator, mut by_regulator) = (0, 0);
        for _ in 0..30 {
            for socket in self.sockets {
                let _ = self.coordinator.offer(self.group, socket, 1.0); // a full backlog drops the packet
            }
        }
        while self.coordinator.next_datagram(self.group, now).is_some() {
            by_coordinator += 1;
        }
        while self.regulator.may_send() {
            self.regulator.sent(PACKET);
            by_regulator += 1;
        }
        (by_coordinator, by_regulator)
    }
}

/// Returns the state of a TCP whose whole window is in flight.
fn view(cwnd: u32) -> View {
    View::in_packets(100, 100 + u64::from(cwnd), f64::from(cwnd), 64.0)
}

#[test]
fn regulator_and_coordinator_permit_the_same_packets() {
    let mut both = Both::new([4, 8]);
    assert_eq!(both.let_through(), (13, 13), "mean 6 of two flows, and one packet more");
    for (at, packets, window) in [(0, 1, 4), (1, 2, 9), (0, 4, 5), (1, 0, 4), (1, 9, 4), (0, 20, 6)] {
        both.acknowledge(at, packets, window);
        let (coordinator, regulator) = both.let_through();
        assert_eq!(regulator, coordinator, "after {packets} acknowledged to {at}, window {window}");
    }
    both.time_out(0);
    assert_eq!(both.let_through(), (0, 0), "frozen");
    both.acknowledge(0, 3, 2);
    let (coordinator, regulator) = both.let_through();
    assert_eq!(regulator, coordinator, "free again");
}
