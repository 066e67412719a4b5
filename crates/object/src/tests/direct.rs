//! Accesses past the page cache.

use super::*;
use crate::host::direct::Direct;
use faircast_core::rng::Rng;

#[test]
fn direct_accesses_in_any_order_meet_the_bytes_of_all_writes() {
    let at = Scratch::new();
    let mut expected = content(300_000, 1);
    let path = at.file("disk", &expected);
    let file = fs::File::options().read(true).write(true).open(&path).expect("ours");
    let (disk, mut direct, mut rng) = (Disk::default(), Direct::default(), Rng::new(5, 0));
    let mut end = 0;
    for seed in 2..400_u32 {
        let mut below = |most: usize| rng.bits() as usize % most;
        // Half of the ranges continue the previous one.
        let start = if below(2) == 0 { end } else { below(expected.len()) };
        end = (start + below(20_000)).min(expected.len());
        if below(4) == 0 {
            let mut read = vec![0; end - start];
            let have = direct.read((&disk, &file), &mut read, start as u64).expect("readable");
            assert!(have == read.len() && read == expected[start..end], "{start}..{end}");
            continue;
        }
        expected[start..end].copy_from_slice(&content(end - start, seed as u8));
        direct.write((&disk, &file), &expected[start..end], start as u64).expect("written");
    }
    direct.flush((&disk, &file)).expect("written");
    assert!(fs::read(&path).expect("there") == expected);
    let mut beyond = vec![0; 9_000];
    let have = direct.read((&disk, &file), &mut beyond, 299_000).expect("readable");
    assert!(have == 1_000 && beyond[..have] == expected[299_000..]);
}
