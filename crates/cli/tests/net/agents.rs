//! Agents of MTCP within one session, over real sockets: repairs, the amount of feedback at the source, and the children of a
//! killed agent.

use crate::kit::{Ended, Running, Stage, must, print_line};
use faircast_testkit::{Damage, Lab, LabPlan, require_root};
use serde_json::Value;

/// Starts an agent on this host of the lab.
pub fn agent(stage: &Stage, at: usize) -> Running {
    agent_below(stage, at, &[])
}

/// Starts an agent whose parents are other agents.
fn agent_below(stage: &Stage, at: usize, agents: &[usize]) -> Running {
    let control = stage.text(&format!("a{at}.sock"));
    let host = format!("agent{at}");
    let parents: Vec<String> = agents.iter().map(|at| stage.lab.receiver(*at).ipv4().to_string()).collect();
    let mut args = vec![
        "relay",
        "--json",
        "--role",
        "agent",
        "--from",
        &stage.group,
        "--host",
        &host,
        "--control",
        &control,
    ];
    parents.iter().for_each(|parent| args.extend(["--parent", parent]));
    let mut agent = Running::start(stage.lab.receiver(at), &args);
    agent.prints("\"opened\"", 20);
    agent
}

/// Returns the status of an agent as text.
fn words(stage: &Stage, at: usize, more: &[&str]) -> String {
    Running::relay_status(stage.lab.receiver(at), &stage.text(&format!("a{at}.sock")), more)
}

/// Returns the status of an agent as JSON.
fn status(stage: &Stage, at: usize) -> Value {
    let all: Value = must(serde_json::from_str(&words(stage, at, &["--json"])));
    all["sessions"][0]["agent"].clone()
}

/// Starts a receiver whose parents are these agents.
pub fn child(stage: &Stage, at: usize, agents: &[usize], more: &[&str]) -> Running {
    let (host, out) = (format!("r{at}"), stage.text(&format!("r{at}")));
    let parents: Vec<String> = agents.iter().map(|at| stage.lab.receiver(*at).ipv4().to_string()).collect();
    let mut args = vec!["recv", "--json", "--group", &stage.group, "--host", &host, "--out", &out];
    parents.iter().for_each(|parent| args.extend(["--parent", parent]));
    args.extend(more);
    let mut child = Running::start(stage.lab.receiver(at), &args);
    child.prints("\"opened\"", 20);
    child
}

/// Returns the number of datagrams that the source's host has received so far.
fn received(stage: &Stage) -> u64 {
    let mut read = Running::shell(stage.lab.sender(), "cat /proc/net/snmp; echo end");
    read.prints("end", 5);
    let text = read.task.stdout();
    let line = text.lines().filter(|line| line.starts_with("Udp:")).nth(1).expect("the kernel counts");
    line.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("a number")
}

/// Runs a session to these receivers. Each receiver has one of the agents as its parent, or no parent if `agents` is empty.
/// Returns the number of datagrams that the source received, divided by the number of packets that it sent.
fn feedback(stage: &Stage, name: &str, receivers: &[usize], agents: &[usize]) -> f64 {
    let file = stage.file(name, 4_000_000);
    let parents = |at: &usize| agents.get(at % 2).copied().into_iter().collect::<Vec<_>>();
    let children: Vec<_> = receivers.iter().map(|at| child(stage, *at, &parents(at), &[])).collect();
    let before = received(stage);
    let expect = receivers.len().to_string();
    let ended = stage.send(&[&file], &["--expect", &expect, "--cc", "mtcp", "--max", "10M"]).succeeds(60);
    let count = received(stage) - before;
    children.into_iter().for_each(|child| drop(child.succeeds(20)));
    assert!(receivers.iter().all(|at| stage.has(&format!("r{at}"), &file)));
    count as f64 / ended.number("packets")
}

/// Needs a kernel: agents are processes, and their feedback is counted in datagrams.
#[test]
fn feedback_does_not_grow_with_more_receivers_behind_agents() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(8));
    let agents = [agent(&stage, 0), agent(&stage, 1)];
    let two = feedback(&stage, "two", &[2, 3], &[0, 1]);
    let six = feedback(&stage, "six", &[2, 3, 4, 5, 6, 7], &[0, 1]);
    let flat = feedback(&stage, "flat", &[2, 3, 4, 5, 6, 7], &[]);
    print_line(&format!(
        "datagrams heard for each sent: 2 receivers behind 2 agents {two:.2}, 6 behind 2 {six:.2}, 6 behind none {flat:.2}"
    ));
    agents.into_iter().for_each(Running::crashes);
    assert!(six < 1.3 * two + 0.2, "{six} after {two}");
    assert!(six < 0.7 * flat, "{six} against {flat}");
}

/// Returns a plan for two agents with three receivers each. The first receiver loses 1 % of its packets.
fn eight() -> LabPlan {
    Lab::plan().receivers(8).damage([2], Damage::loss(0.01))
}

/// Runs a session to two agents with three receivers each. With `kill`, the first agent is killed at a third of the content.
fn session(stage: &Stage, name: &str, bytes: usize, kill: bool) -> (Ended, [Value; 2]) {
    let file = stage.file(name, bytes);
    let mut agents = vec![agent(stage, 0), agent(stage, 1)];
    let mut children: Vec<Running> = (2..8)
        .map(|at| {
            if at == 7 {
                return child(stage, at, &[], &["--parent", "find"]);
            }
            // One child has both agents as parents, the first agent first.
            let agents: &[usize] = if at == 4 { &[0, 1] } else { &[[0], [1]][at % 2] };
            child(stage, at, agents, &[])
        })
        .collect();
    let source = stage.send(&[&file], &["--expect", "6", "--cc", "mtcp", "--max", "12M"]);
    children[1].reaches(0.35, 40);
    let mut seen = [status(stage, 0), status(stage, 1)];
    if kill {
        agents.remove(0).crashes();
    } else {
        // Waits only until 60 %, because progress is reported once a second and the content may complete before the next report.
        children[1].reaches(0.6, 40);
        seen = [status(stage, 0), status(stage, 1)];
        let printed = words(stage, 0, &[]);
        assert!(
            printed.contains("agent: retransmitted ")
                && (3..=4).contains(&printed.matches("  child ").count()),
            "{printed}"
        );
        print_line(&printed);
    }
    let ended = source.succeeds(90);
    children.into_iter().for_each(|child| drop(child.succeeds(30)));
    agents.into_iter().for_each(Running::crashes);
    assert!((2..8).all(|at| stage.has(&format!("r{at}"), &file)), "everybody has everything");
    (ended, seen)
}

/// Needs a kernel: agents are processes with sockets.
#[test]
fn agent_repairs_the_losses_of_its_receivers() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, eight());
    let (ended, [first, second]) = session(&stage, "image", 8_000_000, false);
    print_line(&format!("agents: {first} {second}; source {:?}", ended.done()));
    let number = |of: &Value, field: &str| of[field].as_u64().unwrap_or(0);
    assert!(number(&first, "repairs") > 10 && number(&second, "repairs") < number(&first, "repairs") / 4);
    assert_eq!((ended.number("receivers"), ended.number("verified")), (6.0, 6.0), "{ended:?}");
}

/// Needs a kernel: a process is killed.
#[test]
fn receivers_of_a_killed_agent_get_the_complete_content() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, eight());
    let (ended, _) = session(&stage, "image", 16_000_000, true);
    print_line(&format!("an agent killed at a third: {:?}", ended.done()));
    assert_eq!(ended.number("verified"), 6.0, "each once: {ended:?}");
}

/// Needs a kernel: agents are processes with sockets.
#[test]
fn agent_without_children_is_served_by_another_agent() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(4));
    let file = stage.file("image", 7_500_000);
    let top = agent(&stage, 0);
    let mut below = agent_below(&stage, 1, &[0]);
    let children = [child(&stage, 2, &[0], &[]), child(&stage, 3, &[], &[])];
    let source = stage.send(&[&file], &["--expect", "2", "--cc", "mtcp", "--max", "5M"]);
    // The session lasts longer than the time within which a new child must join. The upper agent serves the lower agent until the
    // end of the session.
    let ended = source.succeeds(60);
    assert!(ended.number("seconds") > 11.0, "{ended:?}");
    assert_eq!((ended.number("receivers"), ended.number("verified")), (2.0, 2.0), "{ended:?}");
    children.into_iter().for_each(|child| drop(child.succeeds(20)));
    assert!(!below.task.stdout().contains("no agent serves"), "{}", below.task.stdout());
    below.prints("joined", 5);
    [below, top].into_iter().for_each(Running::crashes);
}
