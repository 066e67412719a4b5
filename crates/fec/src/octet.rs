//! Arithmetic on octets according to RFC 6330, 5.7: GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1.
//!
//! Multiplication uses shifts and additions instead of a table. The compiler can then turn the long loops into vector
//! instructions on every processor without unsafe code.

/// `2 * x`.
const fn double(x: u8) -> u8 {
    (x << 1) ^ (0x1d & (x >> 7).wrapping_neg())
}

/// `a * b`.
pub(crate) const fn multiply(a: u8, b: u8) -> u8 {
    let (mut sum, mut power, mut bit) = (0, a, 0);
    while bit < 8 {
        sum ^= power & ((b >> bit) & 1).wrapping_neg();
        power = double(power);
        bit += 1;
    }
    sum
}

/// `1 / a`; 0 for 0.
pub(crate) const fn inverse(a: u8) -> u8 {
    // a^254, since a^255 is 1.
    let (mut result, mut power, mut bit) = (1, multiply(a, a), 1);
    while bit < 8 {
        result = multiply(result, power);
        power = multiply(power, power);
        bit += 1;
    }
    result
}

/// `into += factor * from`, octet by octet.
pub(crate) fn add_scaled(into: &mut [u8], from: &[u8], factor: u8) {
    match factor {
        0 => {}
        1 => into.iter_mut().zip(from).for_each(|(a, b)| *a ^= b),
        _ => {
            let mask: [u8; 8] = std::array::from_fn(|bit| ((factor >> bit) & 1).wrapping_neg());
            for (a, &b) in into.iter_mut().zip(from) {
                let (mut sum, mut power) = (0, b);
                for m in mask {
                    sum ^= power & m;
                    power = double(power);
                }
                *a ^= sum;
            }
        }
    }
}

/// `row *= factor`, octet by octet.
pub(crate) fn scale(row: &mut [u8], factor: u8) {
    if factor != 1 {
        row.iter_mut().for_each(|x| *x = multiply(*x, factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_but_zero_has_an_inverse() {
        assert!((1..=255).all(|a| multiply(a, inverse(a)) == 1));
        assert_eq!(inverse(0), 0);
    }

    #[test]
    fn two_to_the_eighth_power_is_reduced_by_the_polynomial() {
        assert_eq!(multiply(0x80, 2), 0x1d);
    }

    #[test]
    fn adding_the_same_multiple_twice_restores_the_octets() {
        let from: Vec<u8> = (0..=255).collect();
        let mut into = vec![7; 256];
        for factor in 0..=255 {
            add_scaled(&mut into, &from, factor);
            add_scaled(&mut into, &from, factor);
        }
        assert_eq!(into, vec![7; 256]);
    }
}
