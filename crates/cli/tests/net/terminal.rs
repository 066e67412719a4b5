//! A session at a terminal: Enter starts it, and a terminal that accepts no output does not stall it.

use crate::kit::{FAIRCAST, Running, Stage};
use faircast_testkit::{Lab, require_root};

/// Runs a command at a pseudo-terminal, types one key, and prints the command's output and exit code. The key Enter is typed when
/// the output of the command offers this key. The key Ctrl-S is typed at the start, and stops the terminal's output permanently.
const AT_A_TERMINAL: &str = r#"
import os, pty, sys
key, command = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
if key == "stop":
    os.write(terminal, b"\x13")
else:
    said, typed = b"", False
    while True:
        try:
            some = os.read(terminal, 4096)
        except OSError:
            break
        said += some
        os.write(1, some)
        if not typed and b"Enter starts now" in said:
            os.write(terminal, b"\n")
            typed = True
status = os.waitpid(pid, 0)[1]
print("ended with", os.waitstatus_to_exitcode(status), flush=True)
"#;

fn send(stage: &Stage, key: &str, file: &str, more: &str) -> Running {
    let group = &stage.group;
    let line = format!(
        "exec /usr/bin/python3 -c '{AT_A_TERMINAL}' {key} {FAIRCAST} send {file} --no-key --group {group} {more}"
    );
    Running::shell(stage.lab.sender(), &line)
}

/// Needs a kernel: a pseudo-terminal.
#[test]
fn enter_key_starts_a_session_that_waits_for_receivers() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 1_000_000);
    let receiver = stage.recv(0, "r0", &[]);
    let source = send(&stage, "enter", &file, "--expect 2 --join-timeout 3600").ends(60);
    receiver.succeeds(10);
    assert!(stage.has("r0", &file));
    assert!(source.stdout.contains("ended with "), "{source:?}");
}

/// Needs a kernel: a pseudo-terminal that is stopped.
#[test]
fn stopped_terminal_does_not_stall_the_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 3_000_000);
    let receiver = stage.recv(0, "r0", &[]);
    let source = send(&stage, "stop", &file, "--max 8M --verbose --expect 1 --join-timeout 60").ends(60);
    receiver.succeeds(10);
    assert!(stage.has("r0", &file));
    assert!(source.stdout.ends_with("ended with 0\n"), "{source:?}");
}
