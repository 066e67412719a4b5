//! The checksum of unsealed packets.

/// Writes the correct checksum, because random input would almost never pass the check.
pub fn correct(packet: &mut [u8]) {
    if let Some(field) = packet.get_mut(12..16) {
        field.fill(0);
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, packet) as u32; // a 32-bit algorithm
        packet[12..16].copy_from_slice(&crc.to_be_bytes());
    }
}
