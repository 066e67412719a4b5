use super::super::fgn;
use super::*;
use faircast_core::rng::Rng;

fn mean(hurst: f64, method: Method, (seeds, length): (u64, usize)) -> f64 {
    let one = |seed| {
        let series = fgn::noise(hurst, length, &mut Rng::new(seed, 3));
        estimate(&series, method).expect("a series").hurst
    };
    (0..seeds).map(one).sum::<f64>() / seeds as f64
}

#[test]
fn whittle_and_wavelet_estimates_have_a_bias_below_0_02() {
    for hurst in [0.55, 0.65, 0.75, 0.85] {
        for (method, load) in [
            (Method::Whittle, (5, 4096)),
            (Method::Wavelet, (10, 65_536)),
            (Method::LocalWhittle, (10, 16_384)),
        ] {
            let found = mean(hurst, method, load);
            assert!((found - hurst).abs() < 0.02, "{hurst}, {method}: {found}");
        }
    }
}

#[test]
fn older_estimators_have_a_bias_below_0_06() {
    for hurst in [0.55, 0.65, 0.75, 0.85] {
        for method in [Method::RescaledRange, Method::VarianceTime] {
            let found = mean(hurst, method, (10, 65_536));
            assert!((found - hurst).abs() < 0.06, "{hurst}, {method}: {found}");
        }
    }
}

#[test]
fn most_whittle_intervals_contain_the_hurst_parameter() {
    let inside = (0..30).filter(|seed| {
        let series = fgn::noise(0.7, 4096, &mut Rng::new(*seed, 3));
        let found = estimate(&series, Method::Whittle).expect("a series");
        (found.hurst - 0.7).abs() <= found.margin.expect("it has one")
    });
    let inside = inside.count();
    assert!((25..=30).contains(&inside), "{inside} of 30");
}

/// Sources that alternate between sending and silence. The durations of both have a Pareto distribution.
#[test]
fn heavy_tails_of_on_off_times_determine_the_hurst_parameter() {
    let found = [1.5, 1.7].map(|shape| {
        let mut counts = vec![0.0; 65_536];
        for source in 0..60 {
            let mut rng = Rng::new(source, 77);
            let (mut at, mut on) = (0.0, rng.chance(0.5));
            while at < counts.len() as f64 {
                let length = 4.0 * (shape - 1.0) / shape * (1.0 - rng.unit()).powf(-1.0 / shape);
                if on {
                    let end = (at + length).min(counts.len() as f64);
                    (at as usize..end as usize).for_each(|slot| counts[slot] += 1.0);
                }
                (at, on) = (at + length, !on);
            }
        }
        // Only the longest durations determine the Hurst parameter. Means over 64 slots remove the variation within a typical
        // period.
        let means: Vec<f64> = counts.chunks(64).map(|slots| slots.iter().sum()).collect();
        estimate(&means, Method::LocalWhittle).expect("a series").hurst
    });
    assert!(
        (found[0] - of_on_off(1.5)).abs() < 0.12 && (found[1] - of_on_off(1.7)).abs() < 0.12,
        "{found:?}"
    );
}

#[test]
fn unusable_series_give_errors_instead_of_estimates() {
    assert_eq!(estimate(&[1.0; 10], Method::Whittle), Err(NoEstimate::TooShort(10)));
    assert_eq!(estimate(&[1.0; 1000], Method::Whittle), Err(NoEstimate::Constant));
    let mut series = vec![0.0; 1000];
    series[7] = f64::NAN;
    assert_eq!(estimate(&series, Method::Wavelet), Err(NoEstimate::NotFinite(7)));
}

#[test]
fn estimation_error_matches_the_hand_computed_value() {
    assert_eq!(estimation_error([(9.0, 10.0), (12.0, 10.0)].into_iter()), 0.15);
}
