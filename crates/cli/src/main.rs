//! The faircast command.
//!
//! | module | contents |
//! |---|---|
//! | [`args`] [`values`] [`day`] | command line arguments |
//! | [`settings`] | options from configuration files; `config` |
//! | [`session`] | `send`, `stream`, `recv`: arguments, resolution, execution |
//! | [`serve`] | `recv --serve`: successive and concurrent sessions |
//! | [`report`] [`shortfall`] | outcome of every receiver, in a file |
//! | [`formats`] | sessions in foreign formats |
//! | [`stand_in`] | the command under the names of udpcast's programs |
//! | [`relay`] [`hosts`] | relays; lists of hosts |
//! | [`start`] | start of a waiting session |
//! | [`print`] [`json`] [`units`] [`safe`] | output for people and programs, and safe display of texts from other hosts |
//! | [`page`] | the live page of a session for browsers, with the feature `page` |
//! | [`log`] | log lines and the trace of a session, with the feature `tracing` |
//! | [`qlog`] [`trace`] | traces; `trace show` |
//! | [`outlet`] | standard output and standard error, which do not block a session |
//! | [`sim`] | `sim`, `repro`, `compare`: simulations |
//! | [`emu`] | `emu`: networks of scenarios with real kernels and programs |
//! | [`new_crate`] | `new-scheme`, `new-queue`: crates with parts of your own for the simulator |
//! | [`key`] [`receipt`] [`clean`] [`doctor`] [`demo`] [`schemes`] [`manual`] | the other commands |
//! | [`failure`] [`wording`] [`system`] [`buffers`] | errors, messages with the names of options, exit codes, signals, advice about full buffers |

#[cfg(feature = "simulator")]
mod aqm;
mod args;
mod buffers;
#[cfg(feature = "simulator")]
mod campaign;
mod clean;
mod course;
mod day;
mod demo;
mod device;
mod doctor;
#[cfg(feature = "simulator")]
mod emu;
mod failure;
mod formats;
mod hook;
mod hosts;
mod json;
mod key;
#[cfg_attr(not(feature = "tracing"), path = "log/without.rs")]
mod log;
mod manual;
#[cfg(feature = "simulator")]
mod new_crate;
mod outlet;
#[cfg_attr(not(feature = "page"), path = "page/without.rs")]
mod page;
mod printer;
mod qlog;
mod receipt;
mod relay;
mod report;
mod safe;
#[cfg(test)]
#[path = "../tests/schema/mod.rs"]
mod schema;
mod schemes;
mod serve;
mod session;
mod settings;
mod shortfall;
#[cfg(feature = "simulator")]
mod sim;
#[cfg(feature = "simulator")]
mod sim_usage;
mod stand_in;
mod start;
mod summary;
mod system;
mod trace;
mod units;
mod values;
mod watch;
mod wording;

use crate::args::{Cli, Command};
use crate::failure::{Failure, unwritten};
use crate::json::Line;
use crate::log::Selected;
use crate::outlet::Outlet;
use crate::printer::{Keyboard, Role};
use crate::session::{Output, Resolved, Screen};
use crate::stand_in::StandIn;
use faircast::{Class, FormatSource, SendConfig, Stop};
use indicatif::ProgressDrawTarget;
use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "simulator")]
    if let Some(ended) = emu::called(std::env::args_os().collect()) {
        return failure::conclude(ended);
    }
    failure::conclude(match StandIn::called(std::env::args_os()) {
        Ok(Some(program)) => stand_in_for(program),
        Ok(None) => settings::parse(std::env::args_os().collect()).and_then(dispatch),
        Err(usage) => Err(usage.into()),
    })
}

/// Runs a session in place of a program of udpcast.
fn stand_in_for(program: StandIn) -> Result<(), Failure> {
    match program {
        StandIn::Sender(sender) => {
            let resolved = sender.resolve()?;
            let log = Selected::nothing("send");
            in_session(Channel::Stdout, log, |output, stop| {
                formats::run(Role::Unanswered, resolved, output, stop)
            })
        }
        StandIn::Receiver(receiver) => {
            let (resolved, remainder) = receiver.resolve()?;
            let log = Selected::nothing("recv");
            in_session(Channel::Stderr, log, |output, stop| {
                formats::run(Role::Receiver, resolved, output, stop)
            })?;
            remainder.finish()
        }
    }
}

fn dispatch(Cli { command, config }: Cli) -> Result<(), Failure> {
    let (mut out, mut people) = (io::stdout(), io::stderr());
    match command {
        Command::Send(send) => {
            let json = send.output_options.json;
            let (watched, options) = (send.watched.clone(), send.output_options.clone());
            match send.sending.format.wire {
                Some(format) => send_as(resolved(send.resolve_as(format), json)?),
                None if watched.watch.is_some() => {
                    let resolved_send = resolved(send.resolve(), json)?;
                    let log = resolved(Selected::of("send", &options), json)?;
                    in_session(Channel::Stdout, log, |output, stop| {
                        watch::run(resolved_send, &watched, output, stop)
                    })
                }
                None => send_or_stream("send", resolved(send.resolve(), json)?),
            }
        }
        Command::Stream(stream) => {
            let json = stream.output_options.json;
            match stream.sending.format.wire {
                Some(format) => send_as(resolved(stream.resolve_as(format), json)?),
                None => send_or_stream("stream", resolved(stream.resolve(), json)?),
            }
        }
        Command::Recv(recv) => {
            let json = recv.output_options.json;
            let channel = if recv.stdout { Channel::Stderr } else { Channel::Stdout };
            if let Some(format) = recv.format.wire {
                let resolved = resolved(recv.resolve_as(format), json)?;
                return in_session(channel, Selected::nothing("recv"), |output, stop| {
                    formats::run(Role::Receiver, resolved, output, stop)
                });
            }
            let (stays, most) = (recv.serve, usize::from(recv.max_sessions));
            let receiver = resolved(recv.resolve(), json)?;
            let log = resolved(Selected::of("recv", &receiver.output_options), json)?;
            if stays {
                return in_session(channel, log, |output, stop| serve::run(receiver, most, output, stop));
            }
            in_session(channel, log, |output, stop| session::receive(receiver, output, stop, session::drive))
        }
        Command::Start { pid } => start::run(pid, &mut out),
        Command::Relay(relay) if relay.status => {
            relay::status(relay.control, relay.output_options.json, &mut out)
        }
        Command::Relay(relay) => {
            let log = Selected::of("relay", &relay.output_options)?;
            let resolved = relay.resolve()?;
            in_session(Channel::Relay, log, |output, stop| relay::run(resolved, output, stop))
        }
        Command::Clean(clean) => clean::run(&clean, &mut out),
        Command::Config { command } => settings::run(&command, config.as_deref(), &mut out),
        Command::Keygen(keygen) => key::run(keygen.resolve()?, &mut out, &mut people),
        Command::Key(args::Key { command: args::KeyCommand::Show(show) }) => key::show(&show, &mut out),
        Command::Receipt(args::Receipt { command: args::ReceiptCommand::Verify(verify) }) => {
            receipt::verify(&verify, &mut out)
        }
        Command::Trace(args::Trace { command: args::TraceCommand::Show(typed) }) => {
            trace::show(&typed, &mut out)
        }
        Command::Doctor(doctor) => doctor::run(&doctor, &mut out),
        Command::Demo(demo) => demo::run(&demo.resolve()?, &mut out, system::stop_by_signal()?.flag()),
        Command::Dissector => out.write_all(faircast_wire::dissector_lua().as_bytes()).map_err(unwritten),
        Command::Schemes(schemes) => schemes::run(&schemes, &mut out),
        #[cfg(feature = "simulator")]
        Command::Sim(sim) => sim::run(sim.command, &mut out, system::stop_by_signal()?.flag()),
        #[cfg(feature = "simulator")]
        Command::Repro(repro) => sim::repro::run(repro.command, &mut out, system::stop_by_signal()?.flag()),
        #[cfg(feature = "simulator")]
        Command::Aqm(typed) => aqm::run(typed.command, &mut out, system::stop_by_signal()?.flag()),
        #[cfg(feature = "simulator")]
        Command::Compare(compare) if !compare.worlds.is_empty() => {
            emu::worlds::compare(&compare, &mut out, system::stop_by_signal()?.flag())
        }
        #[cfg(feature = "simulator")]
        Command::Compare(compare) => sim::compare::run(&compare, &mut out, system::stop_by_signal()?.flag()),
        #[cfg(feature = "simulator")]
        Command::Emu(typed) => emu::run(typed.command, &mut out, system::stop_by_signal()?.flag()),
        #[cfg(feature = "simulator")]
        Command::Campaign { words } => campaign::run(&words),
        #[cfg(feature = "simulator")]
        Command::NewScheme(typed) => new_crate::run(new_crate::Kind::Scheme, &typed, &mut out),
        #[cfg(feature = "simulator")]
        Command::NewQueue(typed) => new_crate::run(new_crate::Kind::Queue, &typed, &mut out),
        Command::Man { into: Some(directory), .. } => manual::pages(&directory),
        Command::Man { command, into: None } => manual::page(&command, &mut out),
        Command::Completions { shell } => manual::completions(shell, &mut out),
    }
}

/// Destination of JSON. If standard output carries content, the destination is standard error.
#[derive(Clone, Copy)]
enum Channel {
    Stdout,
    Stderr,
    /// Standard output, in the format of a relay.
    Relay,
}

/// Converts a usage error into a failure, and reports it as JSON if `json` is set.
fn resolved<T>(outcome: Result<T, failure::Usage>, json: bool) -> Result<T, Failure> {
    outcome.map_err(|usage| {
        let failure = Failure::from(usage);
        if json {
            let mut out = Outlet::stdout(json::dropped);
            // An error is ignored: the exit code and standard error report the failure, too.
            let _ = json::write(&mut out, &Line::failure(&failure));
            let _ = json::write(&mut out, &Line::failed());
            let _ = out.finish();
        }
        failure
    })
}

/// Runs a source in a foreign format.
fn send_as(resolved: Resolved<FormatSource>) -> Result<(), Failure> {
    in_session(Channel::Stdout, Selected::nothing("send"), |output, stop| {
        formats::run(Role::Unanswered, resolved, output, stop)
    })
}

/// Runs a source. `start` or the Enter key can start its session early.
fn send_or_stream(command: &'static str, source: Resolved<SendConfig>) -> Result<(), Failure> {
    let log = resolved(Selected::of(command, &source.output_options), source.output_options.json)?;
    let has_keyboard = start::on_request(&source.config.start)?;
    in_session(Channel::Stdout, log, |output, stop| {
        let keyboard = if has_keyboard { Keyboard::Starts } else { Keyboard::None };
        session::send(source, Output { keyboard, ..output }, stop, session::drive)
    })
}

fn in_session(
    channel: Channel,
    log: Selected,
    run: impl for<'a> FnOnce(Output<'a>, &'a Stop) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let stop = system::stop_by_signal()?;
    let mut program = match channel {
        Channel::Stdout => Outlet::stdout(json::dropped),
        Channel::Relay => Outlet::stdout(relay::dropped),
        Channel::Stderr => Outlet::stderr(json::dropped),
    };
    let mut people = Outlet::stderr(outlet::dropped);
    let log = log.begin(&people);
    warn(&mut people, &log.warning);
    let is_terminal = Screen::of_stderr() == Screen::Terminal;
    let block =
        is_terminal.then(|| printer::block(ProgressDrawTarget::term_like(Box::new(people.terminal()))));
    let outcome =
        run(Output { program: &mut program, people: &mut people, block, keyboard: Keyboard::None }, &stop);
    warn(&mut people, &log.finish());
    // The error is ignored if no program reads standard error.
    let _ = people.finish();
    match program.finish() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe && outcome.is_ok() => {
            Err(Failure::NobodyReads(Class::Transfer))
        }
        _ => outcome,
    }
}

/// Writes warnings about the log.
fn warn<'a>(people: &mut Outlet, texts: impl IntoIterator<Item = &'a String>) {
    for text in texts {
        // The error is ignored if no program reads standard error.
        let _ = writeln!(people, "warning: {}", safe::text(text));
    }
}
