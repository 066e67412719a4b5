//! Election of the acker: the receiver with the lowest throughput by TCP's formula (draft, 3.4).

use super::config::Formula;

/// Returns the load of a receiver, "M". It is inversely proportional to the receiver's throughput, and zero without loss.
pub(super) fn load(formula: Formula, rtt: f64, loss: f64) -> f64 {
    let square_root = rtt * loss.sqrt();
    match formula {
        Formula::Full => square_root * (1.0 + 9.0 * loss * (1.0 + 32.0 * loss * loss)),
        Formula::Simple => square_root,
    }
}

/// Returns whether a candidate replaces the acker, because the candidate's throughput is below `c` times the acker's throughput.
/// If both loads are zero, the acker stays.
pub(super) fn replaces(candidate: f64, acker: f64, c: f64) -> bool {
    c * candidate > acker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_load_follows_the_chosen_formula() {
        // 0.1 * 0.1 * (1 + 0.09 * 1.0032)
        assert!((load(Formula::Full, 0.1, 0.01) - 0.010_902_88).abs() < 1e-9);
        assert!((load(Formula::Simple, 0.1, 0.01) - 0.01).abs() < 1e-12);
        assert_eq!(load(Formula::Full, 0.1, 0.0), 0.0);
    }

    #[test]
    fn candidate_replaces_acker_if_c_times_its_load_is_larger() {
        assert!(!replaces(1.3, 1.0, 0.75));
        assert!(!replaces(4.0 / 3.0, 1.0, 0.75), "equal");
        assert!(replaces(1.34, 1.0, 0.75));
        assert!(replaces(1.01, 1.0, 1.0), "no hysteresis");
    }

    #[test]
    fn only_a_receiver_with_loss_replaces_a_loss_free_acker() {
        assert!(replaces(1e-9, 0.0, 0.75));
        assert!(!replaces(0.0, 0.0, 0.75));
    }
}
