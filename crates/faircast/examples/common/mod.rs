//! Destination for the receivers of the examples with many receivers. It stores only a checksum of the content.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Number of bytes that one receiver has received, and the FNV-1a hash of these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    pub bytes: u64,
    pub fnv: u64,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum { bytes: 0, fnv: 0xcbf2_9ce4_8422_2325 }
    }
}

/// Takes the content and updates the checksum.
pub struct Summing(pub Arc<Mutex<Sum>>);

impl Write for Summing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sum = self.0.lock().map_err(|_| io::Error::other("another receiver panicked"))?;
        sum.bytes += bytes.len() as u64;
        sum.fnv =
            bytes.iter().fold(sum.fnv, |fnv, byte| (fnv ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
