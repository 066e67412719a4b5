//! Prefetch: a hint to the processor that memory will be needed soon.
//!
//! With 10,000 flows, a simulation mostly waits for memory. Prefetching the memory for the next entries of the calendar makes the
//! simulation two to three times as fast. Prefetching never affects the outcome.

/// Prefetches all cache lines of a value.
#[inline]
pub fn soon<T>(value: &T) {
    lines(value, size_of::<T>());
}

/// Prefetches the first `bytes` bytes of a value.
#[inline]
pub fn lines<T: ?Sized>(value: &T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<i8>();
        let bytes = bytes.min(size_of_val(value));
        // The value may begin in the middle of a cache line, so its last byte may be in one line more.
        for offset in (0..bytes).step_by(64).chain(bytes.checked_sub(1)) {
            // SAFETY: a prefetch reads no data and cannot fault at any address; this address lies within `value`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        _ = (value, bytes);
    }
}
