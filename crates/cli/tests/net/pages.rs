//! Runs the commands of documentation pages between namespaces, and compares their output with the page.
//!
//! Blocks of the kind `console` are terminals. `HOST$ COMMAND` starts a command on a host. The following lines are its expected
//! output; `...` stands for omitted lines. `HOST$ ^C` presses Ctrl-C on that host after all expected output. The hosts `pc1`,
//! `pc2` and so on are receivers: a command on such a host runs until the next command of this host. Every other host name means
//! the source's host: the test waits for the end of each command there. All hosts share one home directory, with a file for each
//! block of the kind `python NAME`. Each host has a separate `/srv`.

use crate::kit::{FAIRCAST, Running, Stage, must};
use crate::schema::docs;
use faircast_testkit::{Lab, Root, Task, require_root};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A command of a page, with its expected output.
#[derive(Debug, PartialEq, Eq)]
struct Command {
    /// Line number on the page, from 1.
    line: usize,
    host: String,
    text: String,
    printed: Vec<String>,
}

/// Returns the commands of a page, in order.
fn commands(page: &str) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut inside = false;
    for (at, line) in page.lines().enumerate() {
        if let Some(kind) = line.strip_prefix("```") {
            inside = !inside && kind == "console";
            continue;
        }
        let prompt =
            line.split_once("$ ").filter(|(host, _)| host.chars().all(|c| c.is_ascii_alphanumeric()));
        match (inside, prompt, found.last_mut()) {
            (false, ..) => {}
            (true, Some((host, text)), _) if !host.is_empty() => {
                let (host, text) = (host.to_owned(), text.to_owned());
                found.push(Command { line: at + 1, host, text, printed: Vec::new() });
            }
            (true, _, Some(last)) if last.printed.is_empty() && last.text.ends_with('\\') => {
                last.text.truncate(last.text.len() - 1);
                last.text.push_str(line.trim_start());
            }
            (true, _, Some(last)) => last.printed.push(line.to_owned()),
            (true, _, None) => panic!("line {}: no command has printed this", at + 1),
        }
    }
    found
}

/// Returns names and contents of the files that a page shows.
fn files(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("\n```python ").skip(1);
    blocks.filter_map(|block| block.split("\n```").next()?.split_once('\n')).collect()
}

/// Units that follow a number. The form of some units depends on the number.
const WITH_NUMBERS: [&str; 6] = ["bit", "kbit", "Mbit", "Gbit", "block", "blocks"];

/// Returns the words of a line, without numbers and their units, sizes, durations and IDs.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split(|c: char| !c.is_ascii_alphanumeric());
    let is_word = |part: &&str| part.len() > 2 && part.chars().all(|c| c.is_ascii_alphabetic());
    parts.filter(is_word).filter(|part| !WITH_NUMBERS.contains(part)).collect()
}

/// Returns the expected lines of a page that no printed line matches. A printed line matches an expected line if it contains all
/// words of the expected line in order.
fn unprinted<'a>(page: &'a [String], printed: &str) -> Vec<&'a str> {
    let lines: Vec<Vec<&str>> = printed.lines().map(words).collect();
    let stands_in = |wanted: &[&str], line: &Vec<&str>| {
        let mut rest = line.iter();
        wanted.iter().all(|word| rest.any(|other| other == word))
    };
    let missing = page.iter().filter(|line| {
        let wanted = words(line);
        !lines.iter().any(|line| stands_in(&wanted, line))
    });
    missing.map(String::as_str).filter(|line| line.trim() != "...").collect()
}

/// A running command.
struct Begun<'a> {
    command: &'a Command,
    running: Running,
}

impl Begun<'_> {
    /// Presses Ctrl-C after the process has printed the expected lines.
    fn stops(mut self, page: &str) {
        for line in &self.command.printed {
            let end = Instant::now() + Duration::from_secs(60);
            let task = &mut self.running.task;
            let is_missing = |task: &Task| {
                !unprinted(std::slice::from_ref(line), &format!("{}{}", task.stdout(), task.stderr()))
                    .is_empty()
            };
            while is_missing(task) && task.is_running() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.running.task.interrupt();
        self.ends(page);
    }

    fn ends(self, page: &str) {
        let Command { line, text, printed, .. } = self.command;
        let ended = self.running.ends(60);
        let actual = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, 0, "{page}, line {line}: {text}\n{actual}");
        let missing = unprinted(printed, &actual);
        assert!(missing.is_empty(), "{page}, line {line}: {text}\ndid not print {missing:#?}\nbut\n{actual}");
    }
}

/// Returns a shell command line that runs `text` under this host name, in the shared home directory and with a separate `/srv`.
fn at_home(stage: &Stage, host: &str, text: &str) -> String {
    let (home, srv) = (stage.text("home"), stage.text(host));
    must(std::fs::create_dir_all(&srv));
    let bin = Path::new(FAIRCAST).parent().expect("a program lies in a directory").display();
    let quoted = text.replace('\'', "'\\''");
    format!(
        "exec unshare --mount --uts sh -c 'echo {host} >/proc/sys/kernel/hostname && mount --bind \"$1\" /srv && cd \"$2\" && \
         PATH=$3:$PATH exec bash -c \"$4\"' sh '{srv}' '{home}' '{bin}' '{quoted}'"
    )
}

/// Runs a page's commands. Errors are reported with the line number.
fn run(root: &Root, page: &str) {
    let text = must(std::fs::read_to_string(docs(page)));
    let commands = commands(&text);
    assert!(commands.len() > 4, "{page} shows {} commands", commands.len());
    let receivers =
        commands.iter().filter_map(|command| command.host.strip_prefix("pc")?.parse::<u16>().ok());
    let stage = Stage::shared(root, Lab::plan().receivers(receivers.max().unwrap_or(1)));
    must(std::fs::create_dir(stage.path("home")));
    for (name, text) in files(&text) {
        must(std::fs::write(stage.path("home").join(name), text));
    }
    let mut at_work: BTreeMap<&str, Begun<'_>> = BTreeMap::new();
    for command in &commands {
        if command.text == "^C" {
            at_work.remove(&*command.host).expect("a page stops what it has begun").stops(page);
            continue;
        }
        if let Some(before) = at_work.remove(&*command.host) {
            before.ends(page);
        }
        let receiver = command.host.strip_prefix("pc").and_then(|number| number.parse::<usize>().ok());
        let node = receiver.map_or(stage.lab.sender(), |number| stage.lab.receiver(number - 1));
        let running = Running::shell(node, &at_home(&stage, &command.host, &command.text));
        let begun = Begun { command, running };
        match receiver {
            Some(_) => drop(at_work.insert(&command.host, begun)),
            None => begun.ends(page),
        }
    }
    at_work.into_values().for_each(|begun| begun.ends(page));
}

/// Needs a kernel: the page's commands run unchanged.
#[test]
fn commands_of_the_users_page_work() {
    let Some(root) = require_root() else { return };
    run(&root, "users.md");
}

/// Needs a kernel: the page's commands run unchanged.
#[test]
fn commands_of_the_admin_tutorial_work() {
    let Some(root) = require_root() else { return };
    run(&root, "tutorials/admin.md");
}

/// Needs a kernel: the page's commands run unchanged.
#[test]
fn commands_of_the_engineer_tutorial_work() {
    let Some(root) = require_root() else { return };
    run(&root, "tutorials/engineer.md");
}

/// Needs a kernel: the page's commands run unchanged.
#[test]
fn commands_of_the_researcher_tutorial_work() {
    let Some(root) = require_root() else { return };
    run(&root, "tutorials/researcher.md");
}

/// Needs a kernel: not this test, but the tests that use the same parser of pages.
#[test]
fn page_parser_reads_commands_with_their_hosts() {
    let page = "# A\n```sh\nno$ thing\n```\n```console\npc1$ recv --out \\\n  here\nready: yes\n\nmaster$ send a\n...\npc1$ ^C\n```\n";
    let read = commands(page);
    let brief: Vec<_> = read.iter().map(|c| (c.line, &*c.host, &*c.text, c.printed.len())).collect();
    assert_eq!(brief, [(6, "pc1", "recv --out here", 2), (10, "master", "send a", 1), (12, "pc1", "^C", 0)]);
}

/// Needs a kernel: not this test, but the tests that use the same parser of pages.
#[test]
fn page_comparison_checks_words_in_order_and_ignores_numbers() {
    let page: Vec<String> =
        ["pc1 has everything at 3.2 Mbit/s", "...", "12 %"].into_iter().map(str::to_owned).collect();
    assert!(unprinted(&page, "first\npc1 has all but everything, at 9 Gbit/s in 700 s\n").is_empty());
    assert_eq!(unprinted(&page, "everything has pc1\n"), [&*page[0]]);
    assert_eq!(files("a\n```python x.py\n1\n2\n```\nb"), [("x.py", "1\n2")]);
}
