//! Rate of congestion, "p": the number of instances of congestion divided by the number of packets, over the latest packets
//! (paper 000, 5.2.1.3).

use crate::packet::Seq;

/// Numbers of instances of congestion in [`PARTS`] complete parts of the period and in the current part. From the oldest part, only
/// the fraction within the period counts.
#[derive(Debug, Clone)]
pub(super) struct CongestionRate {
    /// Packet numbers per part.
    width: u16,
    /// The first packet received.
    first: Option<Seq>,
    /// Index of the newest part.
    newest: u64,
    counts: [u16; PARTS + 1],
}

const PARTS: usize = 20;
/// Minimum number of packets over which a rate is measured.
const FEWEST: f64 = 100.0;

impl CongestionRate {
    /// Creates a counter over a period of about `counted` packet numbers.
    pub(super) fn new(counted: u16) -> CongestionRate {
        let width = counted.div_ceil(PARTS as u16).max(1);
        CongestionRate { width, first: None, newest: 0, counts: [0; PARTS + 1] }
    }

    /// Records a received packet. The count begins at the first received packet.
    pub(super) fn receive(&mut self, seq: Seq) {
        if self.first.is_none() {
            (self.first, self.newest) = (Some(seq), self.part(seq));
        }
    }

    /// Counts an instance of congestion at packet `seq`; returns the rate including this instance.
    pub(super) fn count(&mut self, seq: Seq) -> f64 {
        self.receive(seq);
        let part = self.part(seq).max(self.newest);
        let fresh = (part - self.newest).min(self.counts.len() as u64);
        for new in part + 1 - fresh..=part {
            self.counts[place(new)] = 0;
        }
        self.newest = part;
        self.counts[place(part)] = self.counts[place(part)].saturating_add(1);
        self.rate(seq)
    }

    fn rate(&self, newest: Seq) -> f64 {
        let width = f64::from(self.width);
        let period = width * PARTS as f64;
        let seen = newest.0.saturating_sub(self.first.map_or(newest.0, |first| first.0)) + 1;
        let oldest = f64::from(self.counts[place(self.newest + 1)]);
        let all: u32 = self.counts.iter().map(|count| u32::from(*count)).sum();
        let into = (newest.0 % u64::from(self.width) + 1) as f64;
        let instances = f64::from(all) - oldest * into / width;
        (instances / (seen as f64).min(period).max(FEWEST)).min(1.0)
    }

    fn part(&self, seq: Seq) -> u64 {
        seq.0 / u64::from(self.width)
    }
}

fn place(part: u64) -> usize {
    (part % (PARTS as u64 + 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_of_every_tenth_packet_gives_a_rate_of_one_tenth() {
        let mut rate = CongestionRate::new(1000);
        rate.receive(Seq(7));
        for seq in (10..5000).step_by(10) {
            let measured = rate.count(Seq(seq));
            if seq > 1010 {
                assert!((measured - 0.1).abs() < 0.0011, "{measured} at {seq}");
            }
        }
    }

    #[test]
    fn congestion_rate_is_measured_over_at_least_100_packets() {
        let mut rate = CongestionRate::new(1000);
        rate.receive(Seq(0));
        assert_eq!(rate.count(Seq(3)), 0.01);
    }

    #[test]
    fn instances_of_congestion_expire_after_a_period() {
        let mut rate = CongestionRate::new(1000);
        (0..500).for_each(|seq| _ = rate.count(Seq(seq)));
        assert!((rate.count(Seq(999)) - 0.501).abs() < 0.001);
        assert!((rate.count(Seq(1499)) - 0.002).abs() < 0.001);
        assert_eq!(rate.count(Seq(90_000)), 0.001);
    }
}
