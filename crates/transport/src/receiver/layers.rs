//! The layers of a session at a receiver: the subscription, the groups, and the packet stream of each layer.

use super::flood::{Base, FloodWatch};
use super::sequence_bounds::SequenceBounds;
use crate::event::{LayersReport, Subscription};
use faircast_core::delivery::gaps::Gaps;
use faircast_core::packet::{Arrival, Layer, Seq, Signal};
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_wire::{Announce, layers::group_of};
use std::net::SocketAddr;

/// Maximum number of layers that are followed, regardless of the announcement.
const MAX_LAYERS: u8 = 32;

/// The joined layers: all layers from the base layer up to the highest one that the scheme allows.
pub(super) struct Layers {
    /// The groups of the enhancement layers. Their number may be limited by the available addresses or ports.
    groups: Vec<SocketAddr>,
    top: u8,
    /// The layer that cannot be joined. No packets arrive on it or on higher layers.
    refused: Option<u8>,
    /// Streams by layer, including layers that were joined and left.
    streams: Vec<Joined>,
    /// Sequence bounds by layer, including layers that are not joined.
    numbers: Vec<SequenceBounds>,
    reordering: u8,
    highest: u8,
    joins: u64,
    leaves: u64,
    warned: bool,
    flood: FloodWatch,
}

/// The packet stream of one layer since it was joined.
struct Joined {
    gaps: Gaps,
    since: Time,
}

/// The information that the scheme receives about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForScheme {
    /// The packet belongs to the subscription.
    Subscribed(Arrival),
    /// The scheme receives no information: the layer was left, or was joined after the packet was sent. The packet's symbol is
    /// valid.
    Beside,
}

impl Layers {
    /// Returns the layers that are announced on the group `base`, with a subscription to the base layer only.
    pub(super) fn new(base: SocketAddr, announce: &Announce, reordering: u8) -> Layers {
        let mut layers = Layers {
            groups: Vec::new(),
            top: 0,
            refused: None,
            streams: Vec::new(),
            numbers: Vec::new(),
            reordering,
            highest: 0,
            joins: 0,
            leaves: 0,
            warned: false,
            flood: FloodWatch::new(Base::Followed, Time::ZERO),
        };
        layers.restart(base, announce);
        layers
    }

    /// Restarts all streams for another session with the same content.
    pub(super) fn restart(&mut self, base: SocketAddr, announce: &Announce) {
        let above =
            (1..announce.layers.min(MAX_LAYERS)).map_while(|n| group_of(base, Layer(n), announce.spacing()));
        self.groups = above.collect();
        let follows = Scheme::from_number(announce.scheme).is_none_or(|scheme| scheme.has_feedback());
        self.flood = FloodWatch::new(if follows { Base::Followed } else { Base::Fixed }, Time::ZERO);
        (self.top, self.refused) = (0, None);
        self.streams = vec![Joined { gaps: Gaps::new(self.reordering), since: Time::ZERO }];
        self.numbers = vec![SequenceBounds::default(); self.groups.len() + 1];
    }

    /// Begins the session at packet `seq` of the base layer: lost probes before this packet do not count as losses.
    pub(super) fn begin(&mut self, seq: Seq, now: Time) {
        self.streams[0] = Joined { gaps: Gaps::new(self.reordering), since: Time::ZERO };
        self.on_packet(Layer(0), seq, Signal::None, now);
    }

    /// Whether the session has more than the base layer.
    pub(super) fn is_layered(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Subscribes to the layers up to and including `top`. Returns the subscription if it has changed.
    pub(super) fn subscribe(&mut self, top: Layer, now: Time) -> Option<Subscription> {
        let top = top.0.min(self.groups.len() as u8);
        if top == self.top {
            return None;
        }
        for joined in self.top + 1..=top {
            let fresh = Joined { gaps: Gaps::new(self.reordering), since: now };
            match self.streams.get_mut(usize::from(joined)) {
                Some(stream) => *stream = fresh,
                None => self.streams.push(fresh),
            }
        }
        self.joins += u64::from(top.saturating_sub(self.top));
        self.leaves += u64::from(self.top.saturating_sub(top));
        self.top = top;
        self.flood.on_subscription(top, now);
        self.highest = self.highest.max(top);
        if self.refused.is_some_and(|refused| top < refused) {
            self.refused = None; // a later attempt may succeed
        }
        Some(self.subscription())
    }

    /// Records that a layer could not be joined. Returns whether this is the first such failure.
    pub(super) fn refuse(&mut self, layer: Layer) -> bool {
        self.refused = Some(layer.0);
        !std::mem::replace(&mut self.warned, true)
    }

    /// Returns the groups of the joined enhancement layers, lowest first.
    pub(super) fn groups(&self) -> &[SocketAddr] {
        let joined = self.refused.map_or(self.top, |refused| self.top.min(refused - 1));
        &self.groups[..usize::from(joined)]
    }

    /// Returns the present subscription.
    pub(super) fn subscription(&self) -> Subscription {
        Subscription { joined: self.groups().len() as u8 + 1, of: self.groups.len() as u8 + 1 }
    }

    /// Handles a packet of `layer`. Returns `None` if the layer does not exist.
    pub(super) fn on_packet(
        &mut self,
        layer: Layer,
        seq: Seq,
        signal: Signal,
        arrived: Time,
    ) -> Option<ForScheme> {
        if usize::from(layer.0) > self.groups.len() {
            return None;
        }
        self.numbers[usize::from(layer.0)].on_packet(seq, arrived);
        match self.streams.get_mut(usize::from(layer.0)) {
            Some(stream) if layer.0 <= self.top && arrived >= stream.since => {
                let arrival = stream.gaps.on_arrival(seq);
                if layer.0 == 0 {
                    self.flood.on_packet(arrival, signal, arrived);
                }
                Some(ForScheme::Subscribed(arrival))
            }
            _ => Some(ForScheme::Beside),
        }
    }

    /// Whether the source can have sent a packet of this layer with this packet number.
    pub(super) fn allows(&self, layer: Layer, wire: u32, arrived: Time) -> bool {
        self.numbers.get(usize::from(layer.0)).is_none_or(|numbers| numbers.allows(wire, arrived))
    }

    /// Records the next packet number of each layer, as the source states it. Returns the layers on which forged packet numbers
    /// had arrived, each with its next packet number.
    pub(super) fn on_stated(&mut self, base: u64, upper: &[u64], arrived: Time) -> Vec<(Layer, u64)> {
        let reported = std::iter::once(base).chain(upper.iter().copied());
        let mut forged = Vec::new();
        for (layer, (numbers, next)) in self.numbers.iter_mut().zip(reported).enumerate() {
            if numbers.on_stated(next, arrived) {
                forged.push((Layer(layer as u8), next));
                if let Some(stream) = self.streams.get_mut(layer) {
                    stream.gaps = Gaps::new(self.reordering);
                }
            }
        }
        forged
    }

    /// Returns the newest packet of the base layer with its arrival time.
    pub(super) fn newest(&self) -> Option<(Seq, Time)> {
        self.numbers[0].newest()
    }

    /// Records the next packet numbers of the enhancement layers, as the source states them.
    pub(super) fn on_status(&mut self, upper_seqs: &[u64]) {
        self.flood.on_status(upper_seqs);
    }

    /// Returns the lost fraction of the base layer's packets, if only the base layer is joined and enhancement layers may cause
    /// the losses. The flag states whether this is the first such observation. Call it about once a second.
    pub(super) fn flooded(&mut self, now: Time) -> Option<(f64, bool)> {
        let part = self.flood.look(now).filter(|_| !self.groups.is_empty())?;
        Some((part, self.flood.is_news()))
    }

    /// Returns the results of the layers; `None` for a session at a single rate.
    pub(super) fn report(&self) -> Option<LayersReport> {
        let of = self.groups.len() as u8 + 1;
        let (highest, joins, leaves) = (self.highest + 1, self.joins, self.leaves);
        self.is_layered().then_some(LayersReport { of, highest, joins, leaves })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::time::Span;

    fn announced(layers: u8, flags: u8) -> Announce {
        Announce {
            salt: [0; 16],
            unix_secs: 0,
            started: 0,
            source: SocketAddr::from(([10, 0, 0, 1], 4000)),
            parent: SocketAddr::from(([10, 0, 0, 1], 4000)),
            transfer: Default::default(),
            stream_len: None,
            manifest_len: 1,
            symbol_size: 64,
            packet_size: 144,
            symbols_per_block: 4,
            first_block: 0,
            next_seq: 0,
            scheme: 8,
            layers,
            options: Default::default(),
            hops: 0,
            spread_ms: 10,
            flags,
            name: Default::default(),
            signer: 0,
            to_hosts: faircast_wire::Name::EMPTY,
            series: None,
            dry_run: None,
            signature: None,
        }
    }

    fn four() -> Layers {
        let base = "239.255.70.1:5777".parse().expect("an address");
        Layers::new(base, &announced(4, 0), 1)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn lost(layers: &mut Layers, layer: u8, seq: u64, now: Time) -> Option<u32> {
        match layers.on_packet(Layer(layer), Seq(seq), Signal::None, now) {
            Some(ForScheme::Subscribed(arrival)) => Some(arrival.lost),
            _ => None,
        }
    }

    #[test]
    fn receiver_starts_with_the_base_layer_only() {
        let mut layers = four();
        assert!(layers.groups().is_empty());
        assert_eq!(layers.subscription(), Subscription { joined: 1, of: 4 });
        assert_eq!(layers.on_packet(Layer(1), Seq(0), Signal::None, at(0)), Some(ForScheme::Beside));
        assert_eq!(layers.on_packet(Layer(4), Seq(0), Signal::None, at(0)), None, "there are four");
    }

    #[test]
    fn joined_groups_follow_the_subscription() {
        let mut layers = four();
        assert_eq!(layers.subscribe(Layer(2), at(0)), Some(Subscription { joined: 3, of: 4 }));
        assert_eq!(layers.subscribe(Layer(2), at(0)), None);
        let groups: Vec<String> = layers.groups().iter().map(SocketAddr::to_string).collect();
        assert_eq!(groups, ["239.255.70.2:5777", "239.255.70.3:5777"]);
        layers.subscribe(Layer(9), at(1));
        assert_eq!(layers.subscription(), Subscription { joined: 4, of: 4 }, "there are no more");
        layers.subscribe(Layer(0), at(2));
        assert!(layers.groups().is_empty());
        assert_eq!(layers.report(), Some(LayersReport { of: 4, highest: 4, joins: 3, leaves: 3 }));
    }

    #[test]
    fn layers_can_use_one_group_address_and_different_ports() {
        let base = "[ff15::7]:5777".parse().expect("an address");
        let mut layers = Layers::new(base, &announced(3, Announce::LAYERS_BY_PORT), 1);
        layers.subscribe(Layer(2), at(0));
        let groups: Vec<String> = layers.groups().iter().map(SocketAddr::to_string).collect();
        assert_eq!(groups, ["[ff15::7]:5778", "[ff15::7]:5779"]);
    }

    #[test]
    fn single_rate_session_reports_no_layers() {
        let base = "239.255.70.1:5777".parse().expect("an address");
        let mut layers = Layers::new(base, &announced(1, 0), 1);
        assert!(!layers.is_layered() && layers.report().is_none());
        assert_eq!(layers.subscribe(Layer(1), at(0)), None);
    }

    #[test]
    fn loss_counts_per_layer_restart_at_a_join() {
        let mut layers = four();
        layers.subscribe(Layer(1), at(10));
        assert_eq!(lost(&mut layers, 0, 5, at(11)), Some(0));
        assert_eq!(lost(&mut layers, 1, 70, at(11)), Some(0));
        assert_eq!(lost(&mut layers, 1, 72, at(12)), Some(1));
        assert_eq!(lost(&mut layers, 0, 6, at(12)), Some(0));
        layers.subscribe(Layer(0), at(13));
        assert_eq!(lost(&mut layers, 1, 73, at(14)), None, "left");
        layers.subscribe(Layer(1), at(20));
        assert_eq!(lost(&mut layers, 1, 90, at(19)), None, "waited in the buffer since before the join");
        assert_eq!(lost(&mut layers, 1, 99, at(21)), Some(0));
        assert_eq!(lost(&mut layers, 1, 101, at(22)), Some(1));
    }

    #[test]
    fn failed_join_is_retried_after_the_scheme_left_the_layer() {
        let mut layers = four();
        layers.subscribe(Layer(3), at(0));
        assert!(layers.refuse(Layer(2)));
        assert_eq!((layers.groups().len(), layers.subscription().joined), (1, 2));
        layers.subscribe(Layer(2), at(1));
        assert_eq!(layers.groups().len(), 1);
        layers.subscribe(Layer(1), at(2));
        layers.subscribe(Layer(2), at(3));
        assert_eq!(layers.groups().len(), 2);
        assert!(!layers.refuse(Layer(2)), "said before");
    }

    #[test]
    fn new_session_starts_at_the_base_layer_and_retains_counters() {
        let mut layers = four();
        layers.subscribe(Layer(2), at(0));
        layers.restart("239.255.70.1:5777".parse().expect("an address"), &announced(8, 0));
        assert_eq!(layers.subscription(), Subscription { joined: 1, of: 8 });
        assert_eq!(layers.report().map(|report| (report.highest, report.joins)), Some((3, 2)));
    }
}
