//! The contents of an announcement: its congestion control, its division of the content, and its packet size.

use crate::object::Geometry;
use faircast_core::schemes::Scheme;
use faircast_wire::encode::IPV6_HEADERS;
use faircast_wire::{Announce, MAX_DATA_HEADER};

/// Root of a live stream. A live stream has no root hash, because no receiver needs all of the stream.
pub(crate) const LIVE_ROOT: [u8; 32] = [0; 32];

/// Maximum difference between packet size and symbol size: the headers, and up to 7 bytes of padding because symbol sizes are
/// multiples of eight.
const MAX_OVERHEAD: usize = IPV6_HEADERS + MAX_DATA_HEADER + 7;

/// Returns the announced scheme with its options; `None` if this version does not support it.
pub(crate) fn scheme_of(announce: &Announce) -> Option<Scheme> {
    let number = Scheme::from_number(announce.scheme)?;
    let scheme: Scheme = format!("{},{}", number.name(), announce.options.as_str()).parse().ok()?;
    Some(scheme.with_packet_size(announce.packet_size))
}

/// Returns the division of the content into blocks and symbols; `None` if the announced division is invalid.
pub(crate) fn geometry_of(announce: &Announce) -> Option<Geometry> {
    let geometry = Geometry {
        stream_len: announce.stream_len,
        manifest_len: announce.manifest_len,
        symbol_size: announce.symbol_size,
        symbols_per_block: announce.symbols_per_block,
    };
    // Streams in layers have no manifest, because late joiners would not receive the manifest.
    let described = if announce.has_streams() { Geometry { manifest_len: 1, ..geometry } } else { geometry };
    let is_possible = announce.dry_run.is_none() || whole_of(announce).is_some();
    (described.check().is_ok() && is_possible).then_some(geometry)
}

/// Returns the division of the whole object stream of a dry run; `None` in other sessions, or if the announcement contradicts itself.
pub(crate) fn whole_of(announce: &Announce) -> Option<Geometry> {
    let whole = Geometry {
        stream_len: Some(announce.dry_run?),
        manifest_len: announce.manifest_len,
        symbol_size: announce.symbol_size,
        symbols_per_block: announce.symbols_per_block,
    };
    let has_list_only = announce.stream_len == Some(announce.manifest_len.into());
    let is_usual = announce.flags & (Announce::LIVE | Announce::ONE_WAY) == 0;
    (has_list_only && is_usual && whole.check().is_ok()).then_some(whole)
}

/// Whether a symbol and its headers fit the announced packet size, and the packet size exceeds the symbol size by at most the
/// maximum overhead.
pub(crate) fn packet_size_fits(announce: &Announce) -> bool {
    let around = announce.packet_size.checked_sub(announce.symbol_size);
    around.is_some_and(|bytes| (Announce::MIN_PACKET.into()..=MAX_OVERHEAD).contains(&usize::from(bytes)))
}
