//! The flows of a scenario as programs on real hosts can run them.

use super::Scenario;
use super::layout::{LaidFlow, Layout};
use super::membership_periods::turns;
pub use super::plan::Ecn;
use super::plan::{FlowKind, FlowPlan, RunPlan, SessionPlan};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{ApplicationData, Change, Law};
use faircast_unicast::Protocol;
use std::sync::Arc;

/// Number of the first random stream for the data of flows, one for each flow. It is far above those of the layout's flows.
const DATA_STREAM: u64 = u64::MAX / 2;
/// Interval between two membership messages of a receiver in a small group (`transport/src/members/turns.rs`).
const ALIVE: Span = Span::from_millis(250);

/// The flows of a scenario for real programs.
#[derive(Debug, Clone, Default)]
pub struct RealFlows {
    /// Flows that programs can run.
    pub flows: Vec<RealFlow>,
    /// Changes of links: time, number of the link in the topology, and the change as text, as in `rate=1000000`, `delay=0.02`,
    /// `loss=bernoulli,0.01`, `loss=none`, `down` or `up`.
    pub changes: Vec<(Time, u32, String)>,
    /// Parts of the scenario that no program can run, with the reasons.
    pub omitted: Vec<String>,
}

/// A flow for real programs.
#[derive(Debug, Clone)]
pub struct RealFlow {
    /// Name of the group of flows.
    pub group: String,
    /// Number of the flow in its group, from 0.
    pub copy: usize,
    /// Number of the flow in the scenario's layout.
    pub(crate) number: usize,
    /// The sending host.
    pub from: String,
    /// The receiving hosts.
    pub to: Vec<RealReceiver>,
    /// Time at which the flow starts.
    pub start: Time,
    /// Time at which the flow stops; [`Time::NEVER`] if it lasts until the end.
    pub stop: Time,
    /// Time after which a link carries a group that was joined, and time after which it does not carry a group that was left.
    pub latencies: (Span, Span),
    /// Bytes of a data packet with its IP header.
    pub packet: u16,
    /// Protocol and data.
    pub traffic: Traffic,
}

/// A receiver of a flow.
#[derive(Debug, Clone)]
pub struct RealReceiver {
    /// The host.
    pub host: String,
    /// Times at which the receiver joins and leaves, in order.
    pub stays: Vec<(Time, Time)>,
}

/// Protocol and data of a flow.
#[derive(Debug, Clone)]
pub enum Traffic {
    /// A multicast session.
    Session {
        /// The congestion control.
        scheme: Box<Scheme>,
        /// Number of packets that the source sends; `None` if it always has data.
        packets: Option<u64>,
    },
    /// A TCP connection.
    Tcp {
        /// Name of the congestion control in Linux.
        congestion: &'static str,
        /// Whether queues may mark the packets.
        ecn: Ecn,
        /// Data of the application.
        supply: Supply,
    },
    /// Datagrams at a rate.
    Datagrams {
        /// The rate of the IP packets.
        rate: Rate,
        /// Maximum relative change of an interval between two packets, drawn at random.
        jitter: f64,
        /// Data of the application.
        supply: Supply,
    },
}

/// Data of an application.
#[derive(Debug, Clone)]
pub enum Supply {
    /// Unlimited data within these spans of time.
    Spans(Vec<(Time, Time)>),
    /// This number of packets.
    Packets(u32),
    /// Times since the start of the flow, each with the total number of packets until then.
    Trace(Arc<[(Span, u32)]>),
    /// Transfers one after another, each on a new connection.
    Transfers(Transfers),
}

/// An endless sequence of transfers: the number of packets of each, and the time until the next one.
#[derive(Debug, Clone)]
pub struct Transfers {
    packets: Law,
    pause: Law,
    rng: Rng,
}

impl Iterator for Transfers {
    type Item = (u32, Span);

    fn next(&mut self) -> Option<(u32, Span)> {
        let packets = self.packets.draw(&mut self.rng).round().clamp(1.0, 1e9) as u32;
        Some((packets, Span::from_secs_f64(self.pause.draw(&mut self.rng).max(0.0))))
    }
}

impl Scenario {
    /// Returns the flows at a point, and the parts that no program can run.
    pub fn real_flows(&self, point: usize, seed: u64) -> RealFlows {
        let (plan, layout) = (self.plan(point), self.layout(point, seed));
        let changes = layout.changes.iter().map(|(at, link, change)| (*at, *link, text(change)));
        let omitted = parts_of_simulator(plan, &layout);
        let mut real = RealFlows { flows: Vec::new(), changes: changes.collect(), omitted };
        let mut copies = vec![0; plan.flows.len()];
        for (number, flow) in layout.flows.iter().enumerate() {
            let of = &plan.flows[flow.group];
            let rng = Rng::new(seed, DATA_STREAM - number as u64);
            match traffic(of, flow, plan.duration, rng) {
                Err(reason) => {
                    let omitted = format!("flow `{}`: {reason}", of.name.value);
                    if !real.omitted.contains(&omitted) {
                        real.omitted.push(omitted);
                    }
                }
                Ok(traffic) => {
                    let to = (0..flow.receivers.len()).map(|member| RealReceiver {
                        host: layout.names.name(flow.receivers[member]),
                        stays: stays(flow, member),
                    });
                    real.flows.push(RealFlow {
                        group: of.name.value.clone(),
                        copy: copies[flow.group],
                        number,
                        from: layout.names.name(flow.source),
                        to: to.collect(),
                        start: flow.start,
                        stop: flow.stop,
                        latencies: latencies(&of.kind),
                        packet: of.packet,
                        traffic,
                    });
                }
            }
            copies[flow.group] += 1;
        }
        real
    }

    /// Returns the interval of the samples from which results of a real network are made ([`crate::results::of_recording`]).
    pub fn recording_interval(&self, point: usize) -> Span {
        let probe = &self.plan(point).probe;
        probe.bin.min(probe.queue_every)
    }

    /// Returns the time from which on metrics are taken at a point.
    pub fn warmup(&self, point: usize) -> Time {
        self.plan(point).windows.first().map_or(Time::ZERO, |window| window.from)
    }
}

fn latencies(kind: &FlowKind) -> (Span, Span) {
    match kind {
        FlowKind::Session(session) => (session.join_latency, session.leave_latency),
        FlowKind::Unicast { .. } | FlowKind::Datagrams { .. } => Default::default(),
    }
}

/// Returns the parts of the network that only the simulator has.
fn parts_of_simulator(plan: &RunPlan, layout: &Layout) -> Vec<String> {
    let parts = [
        (!layout.aggregators.is_empty(), "`aggregate`: emulated routers forward all reports"),
        (!layout.routers.is_empty(), "`[[router]]`: emulated routers have no state of sessions"),
        (!plan.coordinated.is_empty(), "`[[coordinate]]`: the flows have programs of their own"),
    ];
    parts.into_iter().filter(|(has, _)| *has).map(|(_, text)| text.to_owned()).collect()
}

/// Returns a change of a link as text.
fn text(change: &Change) -> String {
    match change {
        Change::Rate(rate) => format!("rate={}", rate.bps()),
        Change::Delay(delay) => format!("delay={}", delay.as_secs_f64()),
        Change::Loss(None) => "loss=none".to_owned(),
        Change::Loss(Some(loss)) => format!("loss={loss}"),
        Change::Down => "down".to_owned(),
        Change::Up => "up".to_owned(),
    }
}

/// Returns the times at which a receiver is present.
fn stays(flow: &LaidFlow, member: usize) -> Vec<(Time, Time)> {
    let first = flow.stays.get(member).copied().unwrap_or((Time::ZERO, Time::NEVER));
    let returns = flow.returns.iter().filter(|(who, ..)| *who as usize == member);
    std::iter::once(first).chain(returns.map(|(_, join, leave)| (*join, *leave))).collect()
}

fn traffic(plan: &FlowPlan, flow: &LaidFlow, end: Time, mut rng: Rng) -> Result<Traffic, &'static str> {
    if flow.clock_error != 0.0 {
        return Err("`clock_error`: all hosts have the clock of this machine");
    }
    let end = end.min(flow.stop);
    match &plan.kind {
        FlowKind::Session(session) => {
            let scheme = Box::new(of_session(session, flow)?);
            Ok(Traffic::Session { scheme, packets: session.packets })
        }
        FlowKind::Unicast { protocol, supply, .. } => {
            let congestion = in_linux(protocol)?;
            let ecn = if protocol.get("ecn") == "on" { Ecn::On } else { Ecn::Off };
            Ok(Traffic::Tcp { congestion, ecn, supply: supplied(plan, supply, flow.start, end, &mut rng)? })
        }
        FlowKind::Datagrams { rate, jitter, supply } => Ok(Traffic::Datagrams {
            rate: Rate::from_bps(*rate),
            jitter: jitter.clamp(0.0, 1.0),
            supply: supplied(plan, supply, flow.start, end, &mut rng)?,
        }),
    }
}

fn of_session(session: &SessionPlan, flow: &LaidFlow) -> Result<Scheme, &'static str> {
    let lacks = [
        (!flow.parents.is_empty(), "receivers in a tree need agents"),
        (session.packets.is_some() && session.scheme.layers() > 1, "`packets` needs a scheme without layers"),
        (!flow.talks.is_empty(), "a stream always has data, without `on` and `off`"),
        (session.mute_after.is_some(), "receivers do not stop sending reports"),
        (
            session.alive.is_some_and(|every| every != ALIVE),
            "`alive`: `faircast recv` sends messages every 250 ms",
        ),
        (session.ecn == Ecn::On, "`faircast stream` sends packets that queues may not mark"),
    ];
    match lacks.into_iter().find(|(lacks, _)| *lacks) {
        Some((_, reason)) => Err(reason),
        None => Ok(session.scheme),
    }
}

/// Returns the name of a protocol in Linux.
fn in_linux(protocol: &Protocol) -> Result<&'static str, &'static str> {
    match protocol.name() {
        "tcp-reno" | "tcp-newreno" | "tcp-sack" => Ok("reno"),
        "tcp-vegas" => Ok("vegas"),
        "tcp-cubic" => Ok("cubic"),
        "tcp-dctcp" => Ok("dctcp"),
        "tcp-prague" => Ok("prague"),
        "tcp-bbr" => Ok("bbr"),
        _ => Err("no program has this protocol"),
    }
}

fn supplied(
    plan: &FlowPlan,
    supply: &ApplicationData,
    start: Time,
    end: Time,
    rng: &mut Rng,
) -> Result<Supply, &'static str> {
    if let Some(trace) = &plan.trace {
        return Ok(Supply::Trace(Arc::clone(trace)));
    }
    match supply {
        ApplicationData::Endless => Ok(Supply::Spans(vec![(start, end)])),
        ApplicationData::Packets(packets) => Ok(Supply::Packets(*packets)),
        ApplicationData::OnOff { on, off } => Ok(Supply::Spans(turns(&(*on, *off), start, end, rng))),
        ApplicationData::Transfers { packets, pause } => {
            if matches!(plan.kind, FlowKind::Datagrams { .. }) {
                return Err("`transfer` needs TCP");
            }
            let (packets, pause, rng) = (*packets, *pause, rng.clone());
            Ok(Supply::Transfers(Transfers { packets, pause, rng }))
        }
        ApplicationData::Trace(_) => Err("its trace is for the simulator alone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "title = \"t\"\nduration = \"10 s\"\nwarmup = \"2 s\"\nstart_jitter = \"0 s\"\n\
        [topology]\nkind = \"dumbbell\"\nsources = 2\nleaves = 2\n";

    fn real(flows: &str) -> RealFlows {
        let text = format!("{HEAD}{flows}");
        let scenario = Scenario::parse(&text, "test.toml")
            .unwrap_or_else(|faults| panic!("{}", faults.render(crate::scenario::DiagnosticStyle::Plain)));
        assert_eq!(scenario.warmup(0), Time::from_secs_f64(2.0));
        scenario.real_flows(0, 1)
    }

    #[test]
    fn flows_have_hosts_times_and_names_of_linux() {
        let it = real(
            "[[flow]]\nname = \"m\"\nkind = \"session\"\nscheme = \"ormcc\"\nfrom = \"src1\"\nto = \"leaf*\"\njoin = [\"0 s\", \"3 s\"]\njoin_latency = \"1 s\"\npackets = 500\nalive = \"250 ms\"\n\
             [[flow]]\nname = \"t\"\nkind = \"tcp-newreno,ecn\"\nfrom = \"src2\"\nto = \"leaf2\"\ncount = 2\nstart = \"1 s\"\nstop = \"9 s\"\n\
             [[flow]]\nname = \"u\"\nkind = \"udp\"\nrate = \"1 Mbit/s\"\nfrom = \"src2\"\nto = \"leaf1\"\non = \"1 s\"\noff = \"2 s\"\n",
        );
        assert_eq!(it.omitted, [""; 0]);
        let names: Vec<_> = it.flows.iter().map(|flow| (flow.group.as_str(), flow.copy)).collect();
        assert_eq!(names, [("m", 0), ("t", 0), ("t", 1), ("u", 0)]);
        let at = Time::from_secs_f64;
        let [session, tcp, _, udp] = &it.flows[..] else { panic!("{it:?}") };
        let Traffic::Session { scheme, packets: Some(500) } = &session.traffic else { panic!("{session:?}") };
        assert_eq!(scheme.to_string(), "ormcc");
        assert_eq!([session, tcp].map(|flow| flow.latencies.0), [Span::from_secs(1), Span::ZERO]);
        assert_eq!((session.to[1].host.as_str(), session.to[1].stays[0].0), ("leaf2", at(3.0)));
        let Traffic::Tcp { congestion: "reno", ecn: Ecn::On, supply: Supply::Spans(spans) } = &tcp.traffic
        else {
            panic!("{tcp:?}")
        };
        assert_eq!((spans[0], tcp.from.as_str(), tcp.stop), ((at(1.0), at(9.0)), "src2", at(9.0)));
        let Traffic::Datagrams { supply: Supply::Spans(spans), .. } = &udp.traffic else { panic!("{udp:?}") };
        assert_eq!(spans[..2], [(at(0.0), at(1.0)), (at(3.0), at(4.0))]);
    }

    #[test]
    fn parts_without_a_program_are_named() {
        let it = real(
            "[[flow]]\nname = \"a\"\nkind = \"tfrc\"\nfrom = \"src1\"\nto = \"leaf*\"\n\
             [[flow]]\nname = \"b\"\nkind = \"session\"\nscheme = \"ormcc\"\nfrom = \"src1\"\nto = \"leaf*\"\necn = \"on\"\n\
             [[flow]]\nname = \"c\"\nkind = \"session\"\nscheme = \"ormcc\"\nfrom = \"src1\"\nto = \"leaf*\"\nalive = \"1 s\"\n\
             [[change]]\nat = \"5 s\"\nlink = \"left->right\"\nrate = \"2 Mbit/s\"\nloss = \"1 %\"\n",
        );
        assert!(it.flows.is_empty(), "{it:?}");
        let starts = [
            "flow `a`: no program",
            "flow `b`: `faircast stream` sends",
            "flow `c`: `alive`: `faircast recv`",
        ];
        assert!(it.omitted.iter().zip(starts).all(|(text, start)| text.starts_with(start)), "{it:?}");
        assert_eq!(it.omitted.len(), 3, "each reason once: {it:?}");
        let changes: Vec<_> =
            it.changes.iter().map(|(at, link, text)| (at.as_secs_f64(), *link, text.as_str())).collect();
        assert_eq!(changes, [(5.0, 0, "rate=2000000"), (5.0, 0, "loss=bernoulli,0.01")]);
    }
}
