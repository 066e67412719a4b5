//! The scenario of a twin, with comments that state the origin of each number.

use super::network::{AtSource, Limit, Path, at_source, fastest, paths};
use super::session::Session;
use crate::units;
use std::fmt::Write as _;

/// A session, and the network that it has seen.
#[derive(Debug)]
pub struct Twin {
    session: Session,
    /// The file of the session.
    origin: Origin,
    paths: Vec<Path>,
    at_source: AtSource,
    /// Factor of the rates of all limited links.
    scale: f64,
    /// Part of the losses of lossy paths that reports have as well.
    reports_lost: f64,
    /// Hosts that are left out.
    without: Vec<String>,
}

/// The file of a session.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Option of `sim new` that reads it.
    pub option: &'static str,
    pub name: String,
}

/// Longest twin, in simulated seconds, as a multiple of the session.
const LONGER: f64 = 1.5;
/// Random seeds of a twin: at most this number, and at least the second one, for about this number of packets over links.
const SEEDS: (f64, f64) = (10.0, 3.0);
const TRAVERSALS: f64 = 2e7;
/// Queue of the link to a host that is too slow: this time, in seconds.
const HOST_QUEUE: f64 = 0.05;
/// Least queue, in packets.
const LEAST_QUEUE: f64 = 4.0;

impl Twin {
    /// Returns the twin of a session.
    pub fn new(session: Session, origin: Origin) -> Twin {
        let (paths, at_source) = (paths(&session), at_source(&session));
        Twin { session, origin, paths, at_source, scale: 1.0, reports_lost: 0.0, without: Vec::new() }
    }

    /// Returns the duration of the real session, in seconds.
    pub fn seconds(&self) -> f64 {
        self.session.seconds
    }

    /// Whether a link limits the rate, so that [`Twin::scale`] has an effect.
    pub fn is_limited(&self) -> bool {
        self.paths.iter().any(|path| matches!(path.limit, Limit::Queue { .. } | Limit::Host { .. }))
    }

    /// Whether a path loses packets at random.
    pub fn is_lossy(&self) -> bool {
        self.paths.iter().any(|path| matches!(path.limit, Limit::Loss(_)))
    }

    /// Sets the part of the losses of lossy paths that reports have as well.
    pub fn lose_reports(&mut self, part: f64) {
        self.reports_lost = part;
    }

    /// Multiplies the rates of all limited links by a factor.
    pub fn scale(&mut self, factor: f64) {
        self.scale *= factor;
    }

    /// Leaves out the receivers of a host. Returns whether there is such a host, and a receiver remains.
    pub fn leave_out(&mut self, host: &str) -> bool {
        let before = self.paths.len();
        self.paths.retain(|path| path.host != host);
        self.without.push(host.to_owned());
        self.paths.len() < before && !self.paths.is_empty()
    }

    /// Returns the names of the hosts.
    pub fn hosts(&self) -> Vec<&str> {
        self.paths.iter().map(|path| path.host.as_str()).collect()
    }

    /// Returns the scenario file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // A text takes everything.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Session { seconds, packets, packet_bytes, .. } = self.session;
        let (rate, course) = (self.session.rate(), self.session.course());
        let traversals = packets as f64 * LONGER * (1 + self.paths.len()) as f64;
        let seeds = (TRAVERSALS / traversals).clamp(SEEDS.1, SEEDS.0).round();
        let without = match self.without.as_slice() {
            [] => String::new(),
            hosts => format!(" without {}", hosts.join(", ")),
        };
        let Origin { option, name } = &self.origin;
        writeln!(out, "# The twin of a session, made by `faircast sim new {option} {name}`.")?;
        if self.session.missing > 0 {
            let records = units::count(self.session.missing, "record");
            writeln!(out, "# {records} of its trace are missing or damaged.")?;
        }
        writeln!(
            out,
            "# The session took {}, with {} of {packet_bytes} bytes. Its receivers got {} on average.",
            units::seconds(seconds),
            units::count(packets, "packet"),
            units::rate(rate)
        )?;
        for one in self.session.receivers.iter().filter(|one| one.outcome != "verified") {
            writeln!(out, "# Not in the twin: {} ({}).", one.host, one.outcome)?;
        }
        writeln!(out, "title = {}", quoted(&format!("Twin of {name}{without}")))?;
        writeln!(
            out,
            "duration = \"{} s\"       # at most; longer than the session, in case the twin is slower",
            (seconds * LONGER + 5.0).ceil()
        )?;
        writeln!(
            out,
            "seeds = {seeds}\nstart_jitter = \"0 s\"\n\n[topology]\nkind = \"text\"\nnetwork = \"\"\""
        )?;
        writeln!(out, "host source\nrouter net")?;
        writeln!(
            out,
            "# Not measured: what the source's link can carry. The session sent {} in its fastest interval.",
            units::rate(fastest(&self.session))
        )?;
        writeln!(out, "link source net rate={}", rate_text(fast_link(fastest(&self.session))))?;
        if self.is_limited() {
            writeln!(
                out,
                "# Other traffic on a path is part of its link: a rate is what the session could use. Rates of limited links were\n\
                 # estimated from the session, then multiplied by {:.2}, so that the twin takes as long as the session.",
                self.scale
            )?;
        }
        self.paths.iter().try_for_each(|path| self.write_path(path, out))?;
        writeln!(out, "\"\"\"\n\n[[flow]]\nname = \"session\"\nkind = \"session\"")?;
        writeln!(out, "scheme = {}", quoted(&course.scheme))?;
        writeln!(out, "from = \"source\"\nto = [{}]", list(&self.paths, |path| quoted(&path.node)))?;
        writeln!(out, "packet = \"{packet_bytes} B\"")?;
        let (content, why) = self.content();
        writeln!(out, "content = {content:.0}        # {why}")?;
        writeln!(out, "alive = \"250 ms\"       # as in every session")?;
        if self.paths.iter().any(|path| path.joined > 0.0) {
            writeln!(out, "join = [{}]", list(&self.paths, |path| format!("\"{:.1} s\"", path.joined)))?;
        }
        match self.at_source {
            AtSource { most: Some(most), configured: true } => {
                writeln!(out, "at_most = \"{most:.0} bit/s\"       # --max")?;
            }
            AtSource { most: Some(most), .. } => {
                writeln!(out, "at_most = \"{most:.0} bit/s\"       # the host of the source sent no faster")?;
            }
            AtSource { most: None, .. } => {}
        }
        writeln!(out, "\n[probe]\nbin = \"100 ms\"")?;
        if self.without.is_empty() { self.write_claims(rate, out) } else { Ok(()) }
    }

    /// Returns the number of packets that each receiver needs, and its origin. A repair of what several receivers lack is of no use
    /// to those that have it; one receiver with losses needs no more than the content.
    fn content(&self) -> (f64, &'static str) {
        let lossy = self.paths.iter().filter(|path| !matches!(path.limit, Limit::Nothing)).count();
        match self.without.is_empty() || lossy > 1 {
            true => {
                (self.session.arrived().max(1.0), "packets that arrived at the receiver with the most losses")
            }
            false => (self.session.content().max(1.0), "packets of the content, without repairs"),
        }
    }

    /// Writes the link to a receiver.
    fn write_path(&self, path: &Path, out: &mut String) -> std::fmt::Result {
        let Path { host, node, receivers, rtt, .. } = path;
        let packet = self.session.packet_bytes as f64 * 8.0;
        let (why, options) = match path.limit {
            Limit::Nothing => (String::new(), String::new()),
            Limit::Loss(loss) => {
                let reports = match self.reports_lost > 0.0 {
                    true => "; reports are lost, too: the session was faster than without",
                    false => "",
                };
                // After n losses, a fraction has a relative error of about 1 / sqrt(n).
                let error = (self.session.packets as f64 * loss).max(1.0).sqrt().recip();
                let (loss_text, error) = (units::percent(loss), units::percent(error));
                (
                    format!(
                        "; {loss_text} of its packets were lost (\u{b1} {error} of that), and no queue grew{reports}"
                    ),
                    format!(" loss=bernoulli,{loss:.5}"),
                )
            }
            Limit::Queue { rate, delay } => {
                let rate = rate * self.scale;
                let queue = (rate * delay / packet).round().max(LEAST_QUEUE);
                (
                    format!("; {:.1} ms more when it lost packets, so a full queue", delay * 1e3),
                    format!(" rate={} queue=droptail,{queue}", rate_text(rate)),
                )
            }
            Limit::Host { rate } => {
                let rate = rate * self.scale;
                let queue = (rate * HOST_QUEUE / packet).round().max(LEAST_QUEUE);
                (
                    "; its window limited the rate: a slow disk or processor, here a slow link".to_owned(),
                    format!(" rate={} queue=droptail,{queue}", rate_text(rate)),
                )
            }
        };
        let below =
            if *receivers == 1 { String::new() } else { format!(", a relay for {receivers} receivers") };
        writeln!(
            out,
            "# {}{below}: round trip {:.1} ms{why}.",
            host.replace(['\n', '"', '\\'], "_"),
            rtt * 1e3
        )?;
        let loss = match path.limit {
            Limit::Loss(loss) if self.reports_lost > 0.0 => {
                format!("bernoulli,{:.5}", loss * self.reports_lost)
            }
            _ => "none".to_owned(),
        };
        let back = match options.is_empty() {
            true => String::new(),
            false => format!(" back rate=unlimited queue=droptail,1000 loss={loss}"),
        };
        writeln!(out, "host {node}\nlink net {node} delay={:.3}ms{options}{back}", rtt * 1e3 / 2.0)
    }

    /// Writes the real session's numbers as claims, which a run compares with those of the twin.
    fn write_claims(&self, rate: f64, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\n# The numbers of the real session are \"published\".\n[[window]]\nname = \"real\"\nfrom = \"0 s\"\nto = \"{} s\"",
            self.session.seconds
        )?;
        let claims = [
            ("seconds until all receivers are complete", "session.completion", self.session.seconds),
            ("mean rate of the receivers over this time, bit/s", "session.rate@real", rate.round()),
        ];
        claims.into_iter().try_for_each(|(name, of, published)| {
            writeln!(
                out,
                "\n[[claim]]\nname = \"{name}\"\nof = \"{of}\"\npublished = {published}\ntolerance = \"15 %\""
            )
        })
    }
}

/// Returns a usual rate of Ethernet that a rate fits into.
fn fast_link(rate: f64) -> f64 {
    [1e9, 1e10, 1e11].into_iter().find(|link| rate < *link).unwrap_or(1e12)
}

fn rate_text(rate: f64) -> String {
    if rate >= 1e9 { format!("{}M", (rate / 1e6).round()) } else { format!("{:.1}k", rate / 1e3) }
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_owned()
}

fn list(paths: &[Path], each: impl Fn(&Path) -> String) -> String {
    paths.iter().map(each).collect::<Vec<_>>().join(", ")
}
