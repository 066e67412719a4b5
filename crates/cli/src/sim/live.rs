//! `sim run --page`: the page of a simulation, for browsers; and the pages of results of other commands.

use super::running::refused;
use crate::course::Point;
use crate::failure::{Failure, unwritten};
use crate::json::{self, Line};
use crate::page::{Model, Of, Page, Serves};
use faircast::event::{Condition, Counts, Limit, Progress, RateCut, ReceiverState};
use faircast::{Event, ReceiverId};
use faircast_experiments::run::RunError;
use faircast_experiments::run::watched::{
    About, Cut, GroupStep, LinkStep, Presence, ReceiverStep, SessionStep, Step, Watched,
};
use faircast_experiments::scenario::Scenario;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

/// Name of the file with the page in the directory of results.
const FILE: &str = "page.html";

/// Interval at which the wait for Enter looks for a signal.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The page of a simulation. It ends when this value is dropped.
pub struct Live(Page);

impl Live {
    /// Starts the server, and prints its address.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn open(at: SocketAddr, is_json: bool, out: &mut impl Write) -> Result<Live, Failure> {
        Live::announced(Page::of_simulation(at)?, is_json, out)
    }

    /// Starts the server of a command whose results are one page, and prints its address.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn of_results(
        at: SocketAddr,
        command: &'static str,
        is_json: bool,
        out: &mut impl Write,
    ) -> Result<Live, Failure> {
        Live::announced(Page::of_results(at, command)?, is_json, out)
    }

    fn announced(page: Page, is_json: bool, out: &mut impl Write) -> Result<Live, Failure> {
        for (serves, url) in page.urls() {
            match is_json {
                true => json::write(out, &Line::page(url)).and_then(|()| out.flush()).map_err(unwritten)?,
                false => say(&format!("{}: {url}", Serves::name(*serves))),
            }
        }
        Ok(Live(page))
    }

    /// Runs the first point of a scenario with the first seed, and shows it.
    ///
    /// # Errors
    /// When the simulator rejects the scenario, or the run was stopped.
    pub fn show(&self, scenario: &Scenario, stop: &AtomicBool) -> Result<(), Failure> {
        let mut run = Watched::new(scenario).map_err(refused)?;
        let about = run.about();
        self.0.change(|model| model.describe(described(&about, scenario)));
        while let Some(step) = run.step() {
            if stop.load(Ordering::Relaxed) {
                return Err(refused(RunError::Cancelled));
            }
            self.0.change(|model| note(model, &step));
        }
        run.finish().map(|_| ()).map_err(refused)
    }

    /// Returns the page as a file that opens without a server.
    pub fn file(&self) -> (String, Vec<u8>) {
        (FILE.to_owned(), self.0.file().into_bytes())
    }

    /// Shows the results, and serves them until Enter or a signal, if a person is at the keyboard.
    pub fn show_results(&self, html: String, stop: &AtomicBool) {
        self.0.publish(html);
        self.stay(stop);
    }

    /// Serves the page until Enter or a signal, if a person is at the keyboard.
    pub fn stay(&self, stop: &AtomicBool) {
        let keyboard = std::io::stdin();
        if !(keyboard.is_terminal() && std::io::stderr().is_terminal()) {
            return;
        }
        say("the page stays until you press Enter");
        while !stop.load(Ordering::Relaxed) {
            let mut awaited = [PollFd::new(&keyboard, PollFlags::IN)];
            if poll(&mut awaited, Some(&LOOK_EVERY)).is_ok_and(|ready| ready > 0) {
                return;
            }
        }
    }
}

fn say(line: &str) {
    // A failure to write standard error is ignored.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn described(about: &About, scenario: &Scenario) -> Value {
    let named = |(name, scheme): &(String, String)| json!({ "name": name, "scheme": scheme });
    let group = |(name, flows): &(String, usize)| json!({ "name": name, "flows": flows });
    json!({
        "title": scenario.title(),
        "seconds": about.duration.as_secs_f64(),
        "seed": scenario.seeds()[0],
        "point": scenario.points()[0].to_string(),
        "sessions": about.sessions.iter().map(named).collect::<Vec<_>>(),
        "groups": about.groups.iter().map(group).collect::<Vec<_>>(),
        "links": about.links,
    })
}

/// Stores a step: of the network, and of each session as events of a session on a network.
fn note(model: &mut Model, step: &Step) {
    let group = |group: &GroupStep| json!({ "rate_bps": group.rate.bps(), "cuts": group.cuts });
    let link = |link: &LinkStep| json!({ "packets": link.packets, "bytes": link.bytes, "used": link.used, "lost": link.lost, "all_lost": link.all_lost });
    model.add_step(json!({
        "from": step.from.as_secs_f64(),
        "to": step.to.as_secs_f64(),
        "groups": step.groups.iter().map(group).collect::<Vec<_>>(),
        "links": step.links.iter().map(link).collect::<Vec<_>>(),
    }));
    for (session, number) in step.sessions.iter().zip(1..) {
        let of = Of { session: number, branch: None };
        let progress = progress(step, session);
        model.note_progress(of, Point::of(&progress).since(step.from), &progress);
        let limiting = session.limiting.as_deref();
        let receivers: Vec<_> =
            session.receivers.iter().filter_map(|one| receiver(one, session, limiting)).collect();
        ReceiverState::events(&receivers).for_each(|event: Event| model.note(of, &event));
    }
}

fn progress(step: &Step, session: &SessionStep) -> Progress {
    let depth = |cut: &RateCut| cut.to.bps() / cut.from.bps().max(f64::MIN_POSITIVE);
    let cut = |cut: &Cut| RateCut {
        at: cut.at,
        from: cut.from,
        to: cut.to,
        host: cut.receiver.clone(),
        cause: cut.reason,
    };
    let mut cuts: Vec<RateCut> = session.cuts.iter().map(cut).collect();
    // As in the events of sessions, the deepest cuts of a step are listed.
    cuts.sort_by(|a, b| depth(a).total_cmp(&depth(b)));
    cuts.truncate(RateCut::LISTED);
    cuts.sort_by_key(|cut| cut.at);
    let counts = Counts { packets: session.packets, cuts: session.all_cuts, ..Counts::default() };
    Progress {
        elapsed: step.to,
        bytes: session.sent_bytes,
        moved_bytes: session.sent_bytes,
        rate: session.rate,
        allowed: Some(session.allowed),
        rtt: Some(session.rtt),
        loss: session.receivers.iter().map(|one| one.loss).fold(0.0, f64::max),
        representative: session.limiting.clone(),
        receivers: session.present,
        limited_by: Some(Limit::Congestion),
        cuts,
        counts: Some(Box::new(counts)),
        ..Progress::default()
    }
}

/// Returns the state of a receiver. A simulated host has no address.
fn receiver(one: &ReceiverStep, session: &SessionStep, limiting: Option<&str>) -> Option<ReceiverState> {
    let (state, reason) = match one.presence {
        Presence::Absent => return None,
        Presence::Present => (Condition::Receiving, None),
        Presence::Left => (Condition::Done, Some("left the session")),
        Presence::Excluded => (Condition::Dropped, Some("its session excluded it")),
    };
    let id = ReceiverId::new(u64::from(one.number) + 1)?;
    Some(ReceiverState {
        host: one.host.clone(),
        verified_bytes: one.bytes,
        rate: one.rate,
        loss: one.loss,
        rtt: (limiting == Some(&*one.host)).then_some(session.rtt),
        reason: reason.map(str::to_owned),
        ..ReceiverState::unnamed(id, (Ipv4Addr::UNSPECIFIED, 0).into(), state)
    })
}
