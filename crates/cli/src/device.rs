//! `recv --out-device`: checks the block device, and asks before it is overwritten.

use crate::failure::Usage;
use crate::units;
use faircast::Destination;
use faircast::object::BlockDevice;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

/// Whether the user has confirmed in advance that the device may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// `--yes` was given.
    Given,
    /// The user is asked, if there is a terminal.
    Asked,
}

/// Opens the block device at `path` for writing.
///
/// # Errors
/// [`Usage`] when it cannot be overwritten, or the user does not confirm that it may be.
pub fn destination(path: &Path, confirmation: Confirmation) -> Result<Destination, Usage> {
    let device = BlockDevice::open(path).map_err(Usage::Device)?;
    if confirmation == Confirmation::Asked {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Usage::DeviceUnconfirmed(described(&device)));
        }
        eprint!("overwrite {}? [y/N] ", described(&device));
        io::stderr().flush().ok(); // the question is then at least in the terminal's buffer
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        if read.is_err() || !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err(Usage::DeviceRefused(device.path().to_path_buf()));
        }
    }
    Ok(Destination::Device(Arc::new(device)))
}

/// Returns the path, model and size of a device.
fn described(device: &BlockDevice) -> String {
    let model = device.model().map_or_else(String::new, |model| format!("{model}, "));
    format!("{} ({model}{})", device.path().display(), units::bytes(device.size()))
}
