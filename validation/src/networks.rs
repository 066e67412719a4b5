//! The networks of the references, built for our simulator.

use crate::case::{Dumbbell, Group, Line, Net, Star, Steady};
use crate::reference::Failure;
use faircast_aqm::{LinkSpec, QueueSpec};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::{Scheme, ormcc};
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    ApplicationData, FlowId, LinkId, Network, NodeId, Options, ReceiverSpec, SessionSpec, UnicastProtocol,
    UnicastSpec,
};
use faircast_unicast::Protocol;

/// Bytes of an acknowledgement on the wire.
const ACK: u16 = 40;
/// Bytes of an acknowledgement of RAP on the wire (ns-2's `rap_base_hdr_size_`).
const RAP_ACK: u16 = 44;

/// Bytes of a packet that ns-2's scripts count as goodput, independent of headers.
const USEFUL: f64 = 1000.0;

/// A network that is ready to run, with its measuring points.
#[derive(Debug)]
pub struct Ready {
    /// The network.
    pub network: Network,
    /// Options of the run.
    pub options: Options,
    /// The measured bottlenecks.
    pub bottlenecks: Vec<LinkId>,
    /// Rate of each bottleneck.
    pub rate: Rate,
    /// The unicast flows, by group.
    pub groups: Vec<Flows>,
    /// The multicast session.
    pub session: Option<FlowId>,
    /// Size of a packet of the session, bits.
    pub session_bits: f64,
    /// The source without congestion control, and the bytes of a datagram that count as goodput.
    pub steady: Option<(FlowId, f64)>,
    /// Start and end of the measurement.
    pub window: (Time, Time),
}

/// Flows of the same kind.
#[derive(Debug)]
pub struct Flows {
    /// The flows.
    pub flows: Vec<FlowId>,
    /// Bytes of a packet that count as goodput.
    pub useful: f64,
}

/// Random stream of the start times.
const STARTS: u64 = 1;

/// Builds a network for one run.
///
/// # Errors
/// Fails if a protocol or queue cannot be parsed.
pub fn build(net: &Net, seed: u64, window_s: (f64, f64)) -> Result<Ready, Failure> {
    let window = (Time::from_secs_f64(window_s.0), Time::from_secs_f64(window_s.1));
    let options = Options { until: window.1, sample: Span::MAX, ..Options::default() };
    let mut ready = match net {
        Net::Line(line) => build_line(line, seed, window, options),
        Net::Dumbbell(dumbbell) => build_dumbbell(dumbbell, seed, window, options),
        Net::Star(star) => build_star(star, seed, window, options),
    }?;
    ready.network.count_until(window.0);
    Ok(ready)
}

fn millis(value: f64) -> Span {
    Span::from_secs_f64(value / 1e3)
}

fn wide(mbps: f64, delay_ms: f64) -> LinkSpec {
    LinkSpec::new(Rate::from_mbps(mbps), millis(delay_ms), QueueSpec::UNLIMITED)
}

fn flow(protocol: &str, size: u16, from: NodeId, to: NodeId, start: f64) -> Result<UnicastSpec, Failure> {
    let protocol: Protocol = protocol.parse()?;
    Ok(UnicastSpec {
        protocol: UnicastProtocol::Controlled(protocol.with_packet_size(size)),
        packet_size: size,
        ack_size: if matches!(protocol, Protocol::Rap(_)) { RAP_ACK } else { ACK },
        from,
        to,
        start: Time::from_secs_f64(start),
        stop: Time::NEVER,
        supply: ApplicationData::Endless,
    })
}

fn build_line(it: &Line, seed: u64, window: (Time, Time), options: Options) -> Result<Ready, Failure> {
    let mut network = Network::new(seed);
    let (from, to) = (network.node(), network.node());
    let there = LinkSpec { queue: it.queue.parse()?, ..wide(it.mbps, it.delay_ms) };
    let (link, _) = network.duplex(from, to, there, wide(it.mbps, it.delay_ms));
    let every = Span::from_millis(50);
    network.probe_link(link, every);
    let id = network.unicast(flow(&it.protocol, it.packet_bytes, from, to, 0.0)?);
    Ok(Ready {
        network,
        options: Options { sample: every, ..options },
        bottlenecks: vec![link],
        rate: there.rate,
        groups: vec![Flows { flows: vec![id], useful: USEFUL }],
        session: None,
        session_bits: 0.0,
        steady: None,
        window,
    })
}

fn build_dumbbell(
    it: &Dumbbell,
    seed: u64,
    window: (Time, Time),
    options: Options,
) -> Result<Ready, Failure> {
    let mut network = Network::new(seed);
    let mut rng = Rng::new(seed, STARTS);
    let (left, right) = (network.node(), network.node());
    let there = LinkSpec { queue: it.queue.parse()?, ..wide(it.mbps, it.delay_ms) };
    let (link, _) = network.duplex(left, right, there, wide(it.mbps, it.delay_ms));
    network.probe_link(link, millis(it.sample_ms));
    let mut groups = Vec::new();
    let access = wide(it.access_mbps, it.access_delay_ms);
    let mut ends = |network: &mut Network, delay_ms: f64| {
        let (from, to) = (network.node(), network.node());
        let first = wide(it.access_mbps, delay_ms);
        network.duplex(from, left, first, first);
        network.duplex(right, to, access, access);
        (from, to, it.starts_within_s * rng.unit())
    };
    for group in &it.groups {
        let mut flows = Vec::new();
        let delays = group.access_delays_ms.iter().cycle();
        for (_, delay) in (0..group.flows).zip(delays) {
            let (from, to, start) = ends(&mut network, *delay);
            flows.push(network.unicast(of(group, from, to, start)?));
        }
        groups.push(Flows { flows, useful: f64::from(group.useful_bytes) });
    }
    let steady = it.steady.as_ref().map(|source| {
        let (from, to, start) = ends(&mut network, source.access_delay_ms);
        (network.unicast(datagrams(source, from, to, start)), f64::from(source.useful_bytes))
    });
    let rate = there.rate;
    let bottlenecks = vec![link];
    Ok(Ready {
        network,
        options,
        bottlenecks,
        rate,
        groups,
        session: None,
        session_bits: 0.0,
        steady,
        window,
    })
}

fn of(group: &Group, from: NodeId, to: NodeId, start: f64) -> Result<UnicastSpec, Failure> {
    flow(&group.protocol, group.packet_bytes, from, to, start)
}

fn datagrams(it: &Steady, from: NodeId, to: NodeId, start: f64) -> UnicastSpec {
    UnicastSpec {
        protocol: UnicastProtocol::Datagrams { rate: Rate::from_mbps(it.mbps), jitter: 0.0 },
        packet_size: it.packet_bytes,
        ack_size: ACK,
        from,
        to,
        start: Time::from_secs_f64(start),
        stop: Time::NEVER,
        supply: ApplicationData::Endless,
    }
}

fn build_star(it: &Star, seed: u64, window: (Time, Time), options: Options) -> Result<Ready, Failure> {
    let mut network = Network::new(seed);
    let mut rng = Rng::new(seed, STARTS);
    let (router, source) = (network.node(), network.node());
    let access = wide(it.access_mbps, it.access_delay_ms);
    let leaf = LinkSpec { queue: it.queue.parse()?, ..wide(it.mbps, it.delay_ms) };
    network.duplex(source, router, access, access);
    let (mut links, mut flows, mut members) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..it.leaves {
        let (from, to) = (network.node(), network.node());
        network.duplex(from, router, access, access);
        let (link, _) = network.duplex(router, to, leaf, wide(it.mbps, it.delay_ms));
        network.probe_link(link, window.0.since(Time::ZERO));
        links.push(link);
        let start = it.starts_within_s * rng.unit();
        flows.push(network.unicast(flow(&it.protocol, it.packet_bytes, from, to, start)?));
        let join = Time::from_secs_f64(0.1);
        members.push(ReceiverSpec { node: to, join, leave: Time::NEVER, mute_after: None });
    }
    let session = (it.multicast_kbps > 0.0).then(|| network.session(steady(it, source, members)));
    let rate = leaf.rate;
    let groups = vec![Flows { flows, useful: USEFUL }];
    let session_bits = 8.0 * f64::from(it.packet_bytes);
    Ok(Ready {
        network,
        options,
        bottlenecks: links,
        rate,
        groups,
        session,
        session_bits,
        steady: None,
        window,
    })
}

/// Returns a multicast session with a fixed rate.
fn steady(it: &Star, source: NodeId, members: Vec<ReceiverSpec>) -> SessionSpec {
    let rate = Rate::from_bps(it.multicast_kbps * 1e3);
    let mut config = ormcc::Config::published();
    config.sending.packet_size = it.packet_bytes;
    config.sending.bounds = Bounds { min: rate, max: rate };
    SessionSpec {
        scheme: Scheme::Ormcc(config),
        packet_size: it.packet_bytes,
        report_size: ACK,
        source,
        members,
        start: Time::from_secs_f64(0.5),
        stop: Time::NEVER,
        join_latency: Span::ZERO,
        leave_latency: Span::ZERO,
        alive: None,
    }
}
