//! `relay`: relays sessions until it is stopped, and prints the status of a running relay.

mod control;
mod kernel;

use crate::args::{self, OutputOptions};
use crate::failure::{Failure, Usage, unwritten};
use crate::json::Line;
use crate::page::{Of, Page};
use crate::printer::{Level, sentence};
use crate::safe;
use crate::session::Output;
use crate::{json, key, system, units, wording};
use control::{Control, default_path};
use faircast::config::default_group_here;
use faircast::{
    Event, HopKey, HopStatus, RelayBranch, RelayConfig, RelayEvent, RelayHandle, RelayRole, RelaySource,
    RelayStatus, RelayedSession, RouterKind, Stop, relay,
};
use kernel::Nftables;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default port of an agent for its children.
const AGENT_PORT: &str = "5778";

/// An event of a relay as a line of JSON.
#[derive(Serialize)]
struct EventLine<'a> {
    /// Number of sessions that the relay found before the session of this event.
    relayed: u64,
    /// Index of the branch in the order of `--to`; null for the upstream side.
    branch: Option<usize>,
    #[serde(flatten)]
    event: &'a Event,
}

/// The last line of a relay.
#[derive(Serialize)]
struct RelayDone {
    /// Whether the relay ended because it was stopped.
    ok: bool,
    /// Number of relayed sessions.
    sessions: u64,
}

/// Arguments with resolved defaults.
pub struct Resolved {
    config: RelayConfig,
    control: PathBuf,
    warnings: Vec<String>,
    output_options: OutputOptions,
}

impl args::Relay {
    /// Resolves the configuration of the relay.
    ///
    /// # Errors
    /// [`Usage`] when the key cannot be read.
    pub fn resolve(self) -> Result<Resolved, Usage> {
        let mut warnings = Vec::new();
        let key = self.key.as_deref().map(|path| read_key(path, &mut warnings)).transpose()?;
        let source = |at: &crate::values::GroupAt| {
            let mut source =
                RelaySource::new(at.group.unwrap_or_else(|| default_group_here(at.interface.as_deref())));
            source.interface = at.interface.clone();
            source.only = self.source;
            source
        };
        let mut sources: Vec<_> = self.from.iter().map(source).collect();
        if !self.parent.is_empty() {
            let mut source = RelaySource::new(default_group_here(None));
            source.parents = self.parent.clone();
            sources.push(source);
        }
        let role = match self.role {
            args::Role::Repeater => RelayRole::Repeater,
            args::Role::Agent => RelayRole::Agent,
            args::Role::RouterRaccoom => RelayRole::Router(RouterKind::Raccoom),
            args::Role::RouterRmanp => RelayRole::Router(RouterKind::Rmanp),
        };
        let is_router = matches!(role, RelayRole::Router(_));
        let has_own = !self.parent.is_empty() || self.cache.is_some() || self.max.is_some();
        if is_router && (self.to.is_empty() || self.listen.is_some() || has_own) {
            return Err(Usage::RouterHasNoBranches);
        }
        if role == RelayRole::Repeater && self.to.is_empty() && self.listen.is_none() {
            return Err(Usage::RelayToNobody);
        }
        if role == RelayRole::Agent && (!self.to.is_empty() || self.cache.is_some() || self.max.is_some()) {
            return Err(Usage::AgentHasNoBranches);
        }
        let listen = match (self.listen, role) {
            (Some(at), _) => at.0,
            (None, RelayRole::Agent) => {
                crate::values::listen_at(AGENT_PORT).map_or_else(|_| Vec::new(), |at| at.0)
            }
            (None, RelayRole::Repeater | RelayRole::Router(_)) => Vec::new(),
        };
        let branch = |at: &crate::values::GroupAt| {
            let mut branch = RelayBranch::default();
            branch.group = at.group;
            branch.interface = at.interface.clone();
            branch.ttl = self.ttl;
            branch.max = self.max;
            branch
        };
        let mut config = RelayConfig::new(sources);
        config.branches = self.to.iter().map(branch).collect();
        config.key = key;
        config.memory = self.memory;
        config.cache = self.cache;
        config.idle_timeout = self.timeout;
        config.host = self.host.unwrap_or_else(faircast::host_name);
        config.listen = listen;
        config.children = usize::from(self.max_children);
        config.found = !self.hidden;
        config.role = role;
        config.receiver_events = self.output_options.receiver_events();
        config.forwarding = Some(Arc::new(Nftables::default()));
        Ok(Resolved {
            config,
            control: self.control.unwrap_or_else(default_path),
            warnings,
            output_options: self.output_options,
        })
    }
}

fn read_key(path: &Path, warnings: &mut Vec<String>) -> Result<HopKey, Usage> {
    let (text, exposure) = key::read_text(path)?;
    if exposure == key::Exposure::Others {
        let path = path.display();
        warnings
            .push(format!("other users of this host can read the key file {path}; run `chmod 600 {path}`"));
    }
    text.parse().map_err(|reason| Usage::KeyMalformed { path: path.to_owned(), reason })
}

/// Relays sessions until `stop` is set.
///
/// # Errors
/// When the sockets cannot be opened, or when another relay runs on this host.
pub fn run(resolved: Resolved, output: Output<'_>, stop: &Stop) -> Result<(), Failure> {
    let Resolved { config, control, warnings, output_options } = resolved;
    let (level, json) = (Level::of(&output_options), output_options.json);
    let Output { program, people, .. } = output;
    let page = Page::open(output_options.served_at(), "relay")?;
    let handle = RelayHandle::default();
    let control = Control::open(&control, handle.clone())?;
    let mut say = |text: &str| {
        if !json {
            // A failure to print the line is ignored.
            let _ = writeln!(people, "{text}");
        }
    };
    warnings.iter().for_each(|text| say(&format!("warning: {text}")));
    for (serves, url) in page.iter().flat_map(Page::urls) {
        if json {
            // The relay continues without a reader.
            let _ = json::write(program, &Line::page(url));
        }
        say(&format!("{}: {url}", serves.name()));
    }
    let mut sessions = 0;
    let mut print = |reported: RelayEvent| {
        sessions += u64::from(reported.branch.is_none() && matches!(reported.event, Event::Joined { .. }));
        let event = wording::event(reported.event.clone());
        if let Some(page) = &page {
            page.note(Of { session: reported.session, branch: reported.branch }, &event);
        }
        if json {
            // The relay continues without a reader.
            let _ = json::write(
                program,
                &EventLine { relayed: reported.session, branch: reported.branch, event: &event },
            );
        } else if let Some(text) = words(&event, &reported, level) {
            say(&text);
        }
    };
    let ended = relay(&config, &handle, &mut print, stop).map_err(Failure::from);
    drop(control);
    if json {
        // An error is ignored: the exit code reports the failure, too.
        let _ = ended.as_ref().map_err(|failure| json::write(program, &Line::failure(failure)));
        let done = RelayDone { ok: ended.is_ok(), sessions };
        let _ = json::write(program, &Line::done(&done, system::cpu_seconds()));
    } else if ended.is_ok() && level > Level::Quiet {
        say(&format!("stopped; relayed {}", units::count(sessions, "session")));
    }
    ended
}

/// Returns the line that replaces `count` dropped lines.
pub fn dropped(count: u64) -> Vec<u8> {
    json::line(&EventLine { relayed: 0, branch: None, event: &Event::Dropped { count } }).into_bytes()
}

/// Describes an event for people; `None` if the level excludes it.
fn words(event: &Event, reported: &RelayEvent, level: Level) -> Option<String> {
    let branch = reported.branch;
    let role = if branch.is_some() { crate::printer::Role::Source } else { crate::printer::Role::Receiver };
    match (event, branch) {
        (Event::Progress(_), _) => None,
        // To search for its next session, a relay opens the same sockets again. This event is not printed.
        (Event::Opened { .. }, None) if reported.session > 0 && level < Level::Verbose => None,
        (Event::Joined { host, address, .. }, None) if level > Level::Quiet => {
            Some(format!("relaying a session of {host} from {address}"))
        }
        (_, Some(branch)) => {
            sentence(role, event, level).map(|text| format!("branch {}: {text}", branch + 1))
        }
        (_, None) => sentence(role, event, level),
    }
}

/// Requests the status of the relay on this host, and prints it.
///
/// # Errors
/// When no relay runs, or its status cannot be read or printed.
pub fn status(control: Option<PathBuf>, json: bool, out: &mut impl Write) -> Result<(), Failure> {
    let text = control::ask(&control.unwrap_or_else(default_path))?;
    if json {
        return writeln!(out, "{}", text.trim_end()).map_err(unwritten);
    }
    let status: RelayStatus = serde_json::from_str(&text)
        .map_err(|error| Failure::from(Usage::RelayAnswer { reason: error.to_string() }))?;
    let mut lines = Vec::new();
    for session in &status.sessions {
        reported(session, &mut lines);
    }
    if !status.waiting.is_empty() {
        lines.push(format!("hosts that wait for a session by unicast: {}", status.waiting.join(", ")));
    }
    if status.turned_away > 0 {
        lines.push(
            "a host was refused: the maximum number of hosts (--max-children) is already served by unicast"
                .to_owned(),
        );
    }
    if status.sessions.is_empty() {
        lines.push("no session is being relayed".to_owned());
    }
    lines.iter().try_for_each(|line| writeln!(out, "{}", safe::text(line))).map_err(unwritten)
}

fn reported(session: &RelayedSession, lines: &mut Vec<String>) {
    let from = match session.hops {
        0 => format!("from {}", session.source),
        1 => format!("from {} by the relay {}", session.source, session.parent),
        more => format!("from {} by {more} relays, the last of them {}", session.source, session.parent),
    };
    lines.push(format!("session {} of {} {from}", session.session, session.name));
    if let Some(agent) = &session.agent {
        return agent_lines(session, agent, lines);
    }
    if let Some(hop) = &session.hop {
        return router_lines(session, hop, lines);
    }
    let blocks = session.blocks.map_or_else(|| "?".to_owned(), |blocks| blocks.to_string());
    lines.push(format!(
        "  received {} of {blocks} blocks; {} in memory, {} in the cache file, {} evicted",
        session.blocks_passed,
        units::bytes(session.cached_bytes),
        units::bytes(session.written_bytes),
        units::bytes(session.evicted_bytes)
    ));
    for branch in &session.branches {
        let Some(to) = branch.to else { continue };
        lines.push(format!(
            "  to {to}: {} of {} receivers done, {} blocks, {:.1} Mbit/s allowed",
            branch.done,
            branch.receivers,
            branch.blocks_sent,
            branch.rate.bps() / 1e6
        ));
        lines.extend(branch.relays.iter().map(|relay| format!("    {}", crate::printer::relay(relay))));
    }
}

/// Describes the branches of an active router, and the packets that it has processed.
fn router_lines(session: &RelayedSession, hop: &HopStatus, lines: &mut Vec<String>) {
    lines.push(format!(
        "  router: {} packets received, {} forwarded, {} retransmitted; {} queued, {} cached, {} dropped at full queues",
        hop.packets, hop.passed, hop.repairs, hop.held, hop.stored, hop.dropped
    ));
    lines.push(format!(
        "  received {} reports, sent {}; {} of them congestion indications, {} suppressed",
        hop.reports_received, hop.reports_sent, hop.indications, hop.filtered
    ));
    for exit in &session.branches {
        let Some(to) = exit.to else { continue };
        lines.push(format!("  to {to}: {} of {} receivers done", exit.done, exit.receivers));
        lines.extend(exit.relays.iter().map(|relay| format!("    {}", crate::printer::relay(relay))));
    }
}

/// Describes the children of an agent, and the work of the agent for these children.
fn agent_lines(session: &RelayedSession, agent: &faircast::AgentStatus, lines: &mut Vec<String>) {
    lines.push(format!(
        "  agent: retransmitted {} packets, forwarded {} to slow children ({} now); minimum window {:.1} packets, {} cached",
        agent.repairs, agent.passed_on, agent.moved, agent.window, agent.stored
    ));
    lines.push(format!(
        "  received {} reports of children, sent {}",
        agent.reports_received, agent.reports_sent
    ));
    for child in &session.branches {
        let Some(to) = child.to else { continue };
        lines.push(format!("  child {to}: {} of {} receivers done", child.done, child.receivers));
        lines.extend(child.relays.iter().map(|relay| format!("    {}", crate::printer::relay(relay))));
    }
}
