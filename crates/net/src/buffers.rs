//! Socket buffers: requested size, granted size, and fill level.

/// Minimum size of a receive buffer, bytes. A smaller buffer is refused, because it could not hold the coalesced datagrams of one
/// receive call.
pub const MIN_RECEIVE_BUFFER: usize = 64 * 1024;

/// Requested and granted size of a buffer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Bytes requested.
    pub asked: usize,
    /// Bytes granted: half of the size that the kernel reports, because the kernel includes its own overhead.
    pub granted: usize,
}

/// Fill level of a receive buffer.
///
/// `used_bytes` can exceed the number of waiting bytes by a quarter of the capacity, because the kernel counts its own overhead,
/// too, and releases memory late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes of kernel memory in use.
    pub used_bytes: usize,
    /// Bytes of kernel memory allowed; twice the granted size.
    pub capacity_bytes: usize,
    /// Number of datagrams dropped at a full buffer since the socket was opened. The kernel counts coalesced datagrams that were
    /// dropped together as one.
    pub drops: u32,
}

impl Granted {
    /// Returns a warning for the user when the system granted less than was requested.
    pub fn warning(&self) -> Option<String> {
        (self.granted < self.asked).then(|| {
            format!(
                "the receive buffer is {} KiB instead of {} KiB, so bursts may be lost; as root, run: sysctl -w net.core.rmem_max={}",
                self.granted / 1024,
                self.asked / 1024,
                self.asked
            )
        })
    }
}

impl Backlog {
    /// Returns the used fraction of the buffer, from 0 to 1. The last datagram may exceed the capacity slightly.
    pub fn fill(&self) -> f64 {
        if self.capacity_bytes == 0 { 0.0 } else { self.used_bytes as f64 / self.capacity_bytes as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_names_the_buffer_setting_if_less_was_granted() {
        assert_eq!(Granted { asked: 4096, granted: 4096 }.warning(), None);
        let warning_text =
            Granted { asked: 8 << 20, granted: 208 << 10 }.warning().expect("less was granted");
        assert!(warning_text.contains("net.core.rmem_max=8388608"), "{warning_text}");
    }
}
