//! Tests that the example runs to completion with the expected result.

use std::path::PathBuf;
use std::process::Command;

/// Returns the path of an example's executable. Its directory is next to the directory of the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.ancestors().nth(2).expect("tests lie in `deps`").join("examples").join(name)
}

#[test]
fn example_simulates_ten_receivers_and_a_tcp_flow() {
    let output = Command::new(example("simulate_ten_receivers")).output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {printed}", output.status);
    let value = |name: &str| -> f64 {
        let line = printed.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {printed}"))
    };
    let (multicast, tcp) = (value("multicast.rate"), value("tcp.rate"));
    assert!(multicast > 0.5e6 && tcp > 0.5e6 && multicast + tcp <= 4e6, "{printed}");
}
