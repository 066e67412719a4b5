//! Changes of this host's interfaces and addresses.

use crate::sys;
use socket2::Socket;
use std::cell::Cell;
use std::io::Read;
use std::time::{Duration, Instant};

/// Reports changes of interfaces, of their addresses or of their carrier. The program then calls [`crate::choose_again`].
///
/// On Linux the kernel reports changes (rtnetlink). On other systems a change is assumed every two seconds.
#[derive(Debug)]
pub struct Changes {
    reported: Option<Socket>,
    assumed_at: Cell<Instant>,
}

const ASSUMED_EVERY: Duration = Duration::from_secs(2);

/// Kind of change of the interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterfaceChange {
    /// No known change.
    Nothing,
    /// A change of other interfaces.
    Elsewhere,
    /// A change of the given interface, and possibly of other interfaces.
    Here,
}

/// Number of bytes that are read from each message.
const MESSAGE: usize = 64;

/// Offset of the interface index in a message, in bytes: after the header (16 bytes) and 4 bytes of the body. The offset is the
/// same in messages about links (`ifinfomsg`) and about addresses (`ifaddrmsg`).
const INDEX_AT: usize = 20;

/// Maximum number of messages per call; the rest is read at the next call.
const MAX_MESSAGES: usize = 256;

impl Changes {
    /// Starts to listen for changes.
    pub fn listen() -> Changes {
        Changes { reported: sys::listen_for_changes().ok(), assumed_at: Cell::new(Instant::now()) }
    }

    /// Returns the most relevant change since the last call, for a user of the interface with this index.
    pub fn news(&self, index: u32) -> InterfaceChange {
        let Some(socket) = &self.reported else {
            if self.assumed_at.get().elapsed() < ASSUMED_EVERY {
                return InterfaceChange::Nothing;
            }
            self.assumed_at.set(Instant::now());
            return InterfaceChange::Here;
        };
        let (mut buffer, mut news) = ([0; MESSAGE], InterfaceChange::Nothing);
        for _ in 0..MAX_MESSAGES {
            let mut socket: &Socket = socket;
            news = match socket.read(&mut buffer) {
                Ok(len) => news.max(about(&buffer[..len], index)),
                // The socket's buffer overflowed, so messages about this interface may be lost.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => InterfaceChange::Here,
                Err(_) => break,
            };
        }
        news
    }
}

fn about(message: &[u8], index: u32) -> InterfaceChange {
    let named =
        message.get(INDEX_AT..).and_then(|rest| rest.first_chunk()).map(|four| u32::from_ne_bytes(*four));
    if named.is_none_or(|named| named == index) { InterfaceChange::Here } else { InterfaceChange::Elsewhere }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_kernel_message_applies_to_every_interface() {
        let mut message = [0; MESSAGE];
        message[INDEX_AT..][..4].copy_from_slice(&7u32.to_ne_bytes());
        assert_eq!(
            (about(&message, 7), about(&message, 8)),
            (InterfaceChange::Here, InterfaceChange::Elsewhere)
        );
        for have in 0..INDEX_AT + 4 {
            assert_eq!(about(&message[..have], 8), InterfaceChange::Here);
        }
    }
}
