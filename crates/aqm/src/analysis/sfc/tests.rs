use super::*;

/// Example 6.1 of paper 002.
fn example(per_ack: f64) -> Link {
    Link { flows: 300.0, rtt: Span::from_millis(600), packets_per_second: 1250.0, per_ack }
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1.5e-3, "{found} beside {expected}");
}

/// In the exact model, each of the w' packets is lost independently, and the first lost packet halves the window.
#[test]
fn corrected_model_has_the_slope_of_the_exact_model() {
    for (w, b) in [(2.0, 1.0), (5.0, 2.0), (8.0, 2.0), (30.0, 1.0)] {
        let p = 1e-5;
        let slope = |model| (drift(model, w, w, p, b) - drift(model, w, w, p / 2.0, b)) / (p / 2.0);
        let (exact, corrected, paper) = (slope(Model::Exact), slope(Model::Corrected), slope(Model::Paper));
        assert!((corrected / exact - 1.0).abs() < 1e-2, "{w}, {b}: {corrected} {exact}");
        assert!((paper / exact - 1.0).abs() > 1.5e-3, "the printed coefficient is twice as large");
    }
}

#[test]
fn equilibrium_of_the_example_matches_computed_values() {
    let link = example(2.0);
    near(link.equilibrium(Model::Paper).window, 2.5);
    near(link.equilibrium(Model::Paper).loss, 0.142_857);
    near(link.equilibrium(Model::Corrected).loss, 0.150_943);
    // At the equilibrium the drift is zero.
    for model in [Model::Paper, Model::Corrected, Model::Exact] {
        let rest = link.equilibrium(model);
        assert!(drift(model, rest.window, rest.window, rest.loss, 2.0).abs() < 1e-9, "{model:?}");
    }
}

#[test]
fn maximum_number_of_flows_has_an_equilibrium_loss_of_one() {
    for (model, per_ack, share) in [
        (Model::Paper, 1.0, 0.768),
        (Model::Paper, 2.0, 1.0),
        (Model::Corrected, 1.0, 0.740),
        (Model::Corrected, 2.0, 1.0),
    ] {
        let link = example(per_ack);
        near(link.max_flows(model) / 750.0, share);
        let at = Link { flows: link.max_flows(model), ..link };
        near(at.equilibrium(model).loss, 1.0);
    }
}

#[test]
fn bounds_of_k2_match_figure_6_2_and_the_example() {
    near(example(2.0).max_k2(Model::Paper), 0.5228);
    near(example(1.0).max_k2(Model::Paper), 0.5412);
    let shares = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7];
    let of_one = [0.0311, 0.1256, 0.2904, 0.5412, 0.9047, 1.426, 2.179];
    let of_two = [0.0313, 0.1257, 0.2870, 0.5228, 0.8460, 1.276, 1.841];
    for (per_ack, expected) in [(1.0, of_one), (2.0, of_two)] {
        for (share, expected) in shares.iter().zip(expected) {
            let link = Link { flows: share * 750.0, ..example(per_ack) };
            let found = link.max_k2(Model::Paper);
            assert!((found - expected).abs() < 6e-4, "{share}: {found} beside {expected}");
        }
    }
}

#[test]
fn bounds_of_k1_match_the_example() {
    let k2 = [0.0, 0.05, 0.1, 0.2, 0.3, 0.4];
    let of_two = [3.97e-4, 5.45e-4, 6.74e-4, 8.58e-4, 9.14e-4, 7.74e-4];
    let of_one = [7.39e-4, 8.82e-4, 1.005e-3, 1.177e-3, 1.219e-3, 1.063e-3];
    for (per_ack, expected) in [(2.0, of_two), (1.0, of_one)] {
        for (k2, expected) in k2.iter().zip(expected) {
            near(example(per_ack).max_k1(Model::Paper, *k2), expected);
        }
    }
    // Only the printed formulas give the paper's "k1 < 0.0007 at k2 = 0.2".
    near(example(2.0).printed_k1(0.2), 7.01e-4);
}

#[test]
fn example_6_2_is_unstable_at_small_k2() {
    let link = example(2.0);
    assert!(link.max_k1(Model::Paper, 0.035) > 5e-4 && link.max_k1(Model::Paper, 0.033) < 5e-4);
    let margins = |k2| link.open(Model::Paper, Gains { k1: 5e-4, k2 }).margins();
    assert!(margins(0.033).phase_deg < 0.0 && margins(0.033).gain_db < 0.0);
    assert!(margins(0.035).phase_deg > 0.0 && margins(0.035).gain_db > 0.0);
}

#[test]
fn margins_of_the_example_match_computed_values() {
    let link = example(2.0);
    let margins = |k1, k2| link.open(Model::Paper, Gains { k1, k2 }).margins();
    let check = |found: crate::analysis::control::Margins, phase: f64, gain: f64| {
        assert!((found.phase_deg - phase).abs() < 0.06 && (found.gain_db - gain).abs() < 0.06, "{found:?}");
    };
    check(margins(2e-4, 0.2), 58.5, 7.4);
    check(margins(5e-4, 0.2), 24.8, 4.9);
    check(margins(5e-4, link.per_window(0.2)), 9.7, 2.9);
    near(link.per_window(0.2), 0.08);
    // The printed transfer function (1.167 s + 0.5833) / (s (s + 0.6548)) belongs to k1 = 0.0002.
    let open = link.open(Model::Paper, Gains { k1: 2e-4, k2: 0.2 });
    near(open.gain * open.poles[0], 0.5833);
    near(open.gain * open.poles[0] / open.zeros[0], 1.167);
    near(open.poles[0], 0.6548);
}

#[test]
fn bounds_of_k1_separate_positive_and_negative_margins() {
    for model in [Model::Paper, Model::Corrected] {
        for k2 in [0.0, 0.1, 0.3] {
            let k1 = example(2.0).max_k1(model, k2);
            let at = |k1| example(2.0).open(model, Gains { k1, k2 }).margins().phase_deg;
            assert!(at(k1 * 0.99) > 0.0 && at(k1 * 1.01) < 0.0, "{model:?}, {k2}");
        }
    }
}

#[test]
fn mean_queue_is_near_the_target_only_with_a_designed_bias() {
    for flows in [100.0, 200.0] {
        let link = Link { flows, rtt: Span::from_millis(200), packets_per_second: 1250.0, per_ack: 1.0 };
        let fluid = Fluid { link, bias: 0.0, k1: 5e-4, k2: 0.2, target: 50.0, buffer: 100.0 };
        let literal = fluid.mean_queue(Model::Paper, 200.0);
        assert!(literal > 85.0, "{flows}: {literal}");
        let at_target = Link { rtt: Span::from_millis(240), ..link };
        let bias = at_target.equilibrium(Model::Paper).loss;
        let designed = Fluid { bias, ..fluid }.mean_queue(Model::Paper, 200.0);
        assert!((designed - 50.0).abs() < 4.0, "{flows}: {designed}");
    }
}
