//! The receivers' loss filter (draft, 3.1): a first-order low-pass filter. Its input, in the order of packets, is 1 for a lost
//! packet and 0 for an arrived packet.

// The draft prints p_i = c p_(i-1) + (1 - c) p_i with c = 500/65536: the right side contains p_i itself, and the constant is on
// the wrong term. OpenPGM and the paper, whose constant is 65000/65536, agree on a gain of about 1/131.

/// Loss rates below this value count as zero, because the latest loss was thousands of packets ago.
const NOTHING: f32 = 1e-12;

/// Smoothed fraction of lost packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    gain: f32,
    loss: f32,
}

impl Filter {
    pub(super) fn new(gain: f64) -> Filter {
        Filter { gain: gain as f32, loss: 0.0 }
    }

    /// Returns the fraction of lost packets, 0 to 1.
    pub(super) const fn loss(&self) -> f32 {
        self.loss
    }

    /// Counts an arrived packet.
    #[inline]
    pub(super) fn received(&mut self) {
        self.loss -= self.gain * self.loss;
        if self.loss < NOTHING {
            self.loss = 0.0;
        }
    }

    /// Counts `packets` consecutive losses.
    pub(super) fn lost(&mut self, packets: u32) {
        self.loss = 1.0 - (1.0 - self.loss) * self.decay(packets);
    }

    /// Corrects the filter after the arrival of a packet that counted as lost. `since` packets were counted after that packet.
    pub(super) fn found(&mut self, since: u32) {
        self.loss = (self.loss - self.gain * self.decay(since)).max(0.0);
    }

    /// Returns the weight of a packet after `packets` further packets.
    fn decay(&self, packets: u32) -> f32 {
        (1.0 - self.gain).powi(packets.min(1 << 20) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> Filter {
        Filter::new(500.0 / 65_536.0)
    }

    #[test]
    fn loss_rate_rises_by_the_gain_and_decays_by_e_in_131_packets() {
        let mut filter = filter();
        filter.lost(1);
        assert!((filter.loss() - 0.00763).abs() < 1e-5, "{}", filter.loss());
        (0..131).for_each(|_| filter.received());
        assert!((filter.loss() / 0.007629 - 0.367).abs() < 1e-3, "{}", filter.loss());
    }

    #[test]
    fn gap_of_n_packets_counts_as_n_single_losses() {
        let (mut at_once, mut single) = (filter(), filter());
        at_once.lost(37);
        (0..37).for_each(|_| single.lost(1));
        assert!((at_once.loss() - single.loss()).abs() < 1e-6);
    }

    #[test]
    fn late_packet_removes_its_loss_from_the_loss_rate() {
        let (mut with, mut without) = (filter(), filter());
        for packet in 0..40 {
            if packet == 10 {
                with.lost(1)
            } else {
                with.received()
            }
            without.received();
        }
        with.found(29);
        assert!((with.loss() - without.loss()).abs() < 1e-7, "{}", with.loss());
    }
}
