//! A trace of the programs' decisions, for replay.

use crate::layout::Event;
use crate::{CocoonError, Loaded, Place};
use libbpf_rs::RingBufferBuilder;
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Writes [`Event::COLUMNS`] and then every decision as a line of CSV, until `stop` is set. Returns the number of written events,
/// and the number of events lost because the ring was full.
///
/// # Errors
/// Fails if no congestion control is loaded, or `out` cannot be written.
pub fn record(place: &Place, out: &mut dyn Write, stop: &AtomicBool) -> Result<(u64, u64), CocoonError> {
    let loaded = Loaded::find(place)?;
    let failed = |source| CocoonError::Bpf { what: "read events", source };
    let before = loaded.totals()?.lost_events;
    let state = RefCell::new((out, 0u64, None));
    {
        let (out, ..) = &mut *state.borrow_mut();
        writeln!(out, "{}", Event::COLUMNS).map_err(unwritten)?;
    }
    let mut builder = RingBufferBuilder::new();
    let added = builder.add(&loaded.events, |bytes| {
        let (out, count, fault) = &mut *state.borrow_mut();
        let Some(event) = Event::from_bytes(bytes) else { return 0 };
        *count += 1;
        *fault = writeln!(out, "{}", event.to_csv()).err();
        i32::from(fault.is_some())
    });
    added.map_err(failed)?;
    let ring = builder.build().map_err(failed)?;
    loaded.set_trace(true)?;
    while !stop.load(Ordering::Relaxed) && state.borrow().2.is_none() {
        let _ = ring.poll(Duration::from_millis(100)); // an interruption by a signal sets `stop`
    }
    loaded.set_trace(false)?;
    let _ = ring.consume();
    drop(ring);
    let (out, count, fault) = state.into_inner();
    if let Some(fault) = fault {
        return Err(unwritten(fault));
    }
    out.flush().map_err(unwritten)?;
    Ok((count, loaded.totals()?.lost_events - before))
}

fn unwritten(source: std::io::Error) -> CocoonError {
    crate::kernel::io("write", Path::new("the trace"), source)
}
