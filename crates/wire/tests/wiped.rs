//! Keys are wiped when they are dropped. The tests then examine the memory of the dropped key.

use faircast_wire::{GroupKey, SigningKey};
use std::mem::MaybeUninit;

/// The secret. Its bytes do not occur in this crate's memory by chance.
const SECRET: [u8; 32] = *b"\xfa\x1c\xa5\x7e thirty-two secret bytes! \xde\xad";

/// Returns how many of the secret's sequences of four bytes the memory of the value contains, before and after the value is
/// dropped.
fn before_and_after<T>(value: T) -> (usize, usize) {
    let mut place = Box::new(MaybeUninit::new(value));
    let look = |place: &MaybeUninit<T>| {
        let bytes: *const u8 = std::ptr::from_ref(place).cast();
        // SAFETY: `bytes` points to as many bytes as the value has. The reads are volatile, so the compiler assumes nothing about
        // the bytes. These values have no padding at the position of the secret.
        let bytes: Vec<u8> = (0..size_of::<T>()).map(|at| unsafe { bytes.add(at).read_volatile() }).collect();
        SECRET.windows(4).filter(|part| bytes.windows(4).any(|window| window == *part)).count()
    };
    let before = look(&place);
    // SAFETY: `place` contains a value, which is not used afterwards.
    unsafe { place.assume_init_drop() };
    (before, look(&place))
}

#[test]
fn group_key_is_wiped_from_memory() {
    assert_eq!(before_and_after(GroupKey::from_bytes(SECRET)), (29, 0));
}

#[test]
fn seed_of_a_signing_key_is_wiped_from_memory() {
    assert_eq!(before_and_after(SigningKey::from_seed(SECRET)), (29, 0));
}

#[test]
fn unwiped_secret_is_found_in_memory() {
    assert_eq!(before_and_after(SECRET), (29, 29), "the test can fail");
}
