//! Keys are wiped when they are dropped: their place in memory is looked at afterwards.

use faircast_wire::{GroupKey, SigningKey};
use std::mem::MaybeUninit;

/// No run of bytes in this crate's memory looks like it by chance.
const SECRET: [u8; 32] = *b"\xfa\x1c\xa5\x7e thirty-two secret bytes! \xde\xad";

/// How often four bytes in a row of the secret lie in a value's place, before it is dropped and afterwards.
fn before_and_after<T>(value: T) -> (usize, usize) {
    let mut place = Box::new(MaybeUninit::new(value));
    let look = |place: &MaybeUninit<T>| {
        let bytes: *const u8 = std::ptr::from_ref(place).cast();
        // SAFETY: the place is as long as the value. Each byte is read as such, volatile, so that nothing is concluded from what it was;
        // the values here have no padding where the secret lies.
        let bytes: Vec<u8> = (0..size_of::<T>()).map(|at| unsafe { bytes.add(at).read_volatile() }).collect();
        SECRET.windows(4).filter(|part| bytes.windows(4).any(|window| window == *part)).count()
    };
    let before = look(&place);
    // SAFETY: it holds a value, which is not used any more.
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
