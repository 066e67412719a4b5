//! The metrics in a real Prometheus.

use super::{Of, Page, progress, receivers, traffic};
use faircast::Event;
use faircast::event::{Counts, Progress, Queues, RefusedPackets};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A Prometheus server. It ends when this value is dropped.
struct Prometheus {
    process: Child,
    at: SocketAddr,
}

impl Prometheus {
    /// Starts a server that scrapes these metrics each second, with the alert rules; `None` without Prometheus.
    fn start(place: &Path, metrics: &str) -> Option<Prometheus> {
        let rules = crate::schema::docs("monitoring/alerts.yml");
        let config = format!(
            "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: [{}]\nscrape_configs:\n- job_name: faircast\n  static_configs:\n  - targets: [\"{metrics}\"]\n",
            rules.display()
        );
        let file = place.join("prometheus.yml");
        std::fs::write(&file, config).expect("the directory is ours");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let at = free.expect("loopback has free ports");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", place.join("data").display()));
        command.arg(format!("--web.listen-address={at}")).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(process) => Some(Prometheus { process, at }),
            Err(error) => {
                let is_required = std::env::var("CI").as_deref() == Ok("true");
                assert!(!is_required, "cannot be skipped with CI=true: no prometheus: {error}");
                eprintln!("skipped: no prometheus");
                None
            }
        }
    }

    /// Returns the data of an answer; `None` while the server does not answer.
    fn ask(&self, path: &str) -> Option<Value> {
        let (mut stream, mut answer) = (TcpStream::connect(self.at).ok()?, String::new());
        write!(stream, "GET /api/v1/{path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        stream.read_to_string(&mut answer).ok()?;
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        assert!(body["status"] != "error", "{path}: {body}");
        Some(body["data"].clone())
    }

    /// Returns the results of a query when it has some.
    fn results(&self, query: &str) -> Vec<Value> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        self.wait_for(query, |it| {
            let data = it.ask(&format!("query?query={encoded}"))?;
            data["result"].as_array().filter(|all| !all.is_empty()).cloned()
        })
    }

    fn wait_for<T>(&self, what: &str, found: impl Fn(&Prometheus) -> Option<T>) -> T {
        (0..600)
            .find_map(|_| {
                let found = found(self);
                if found.is_none() {
                    std::thread::sleep(Duration::from_millis(100));
                }
                found
            })
            .unwrap_or_else(|| panic!("{what}: no answer of Prometheus"))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // A process that has ended itself cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A real Prometheus scrapes a session, and evaluates each query of the dashboard and each alert rule.
#[test]
fn prometheus_answers_the_dashboard_and_evaluates_the_alerts() {
    let at = (None, Some(([127, 0, 0, 1], 0).into()));
    let page = Page::open(at, "send").expect("loopback has free ports").expect("metrics are wanted");
    let url = page.urls()[0].1.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let scratch = tempfile::tempdir().expect("a temporary directory");
    note_all(&page, 7);
    let Some(prometheus) = Prometheus::start(scratch.path(), url.expect("an address")) else { return };
    let up = prometheus.results("faircast_rate_bytes_per_second");
    assert_eq!(up[0]["value"][1], json!((progress(7).rate.bps() / 8.0).to_string()));
    // Counters that have risen have a rate.
    note_all(&page, 9);
    let dashboard =
        std::fs::read_to_string(crate::schema::docs("monitoring/grafana.json")).expect("it is there");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert_is_a_dashboard(&dashboard, panels);
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().expect("a query")).collect();
    assert!(queries.len() > 20, "{queries:?}");
    for query in queries {
        prometheus.results(&query.replace("$instance", ".*"));
    }
    let rules = prometheus.wait_for("rules", |it| {
        let groups = it.ask("rules")?["groups"].as_array()?.clone();
        let rules: Vec<Value> =
            groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect();
        (!rules.is_empty() && rules.iter().all(|rule| rule["health"] != "unknown")).then_some(rules)
    });
    let unhealthy: Vec<_> = rules.iter().filter(|rule| rule["health"] != "ok").collect();
    assert!(rules.len() == 6 && unhealthy.is_empty(), "{unhealthy:?}");
    let pending = |name: &str| rules.iter().any(|rule| rule["name"] == name && rule["state"] != "inactive");
    assert!(pending("FaircastReceiverSilent") && !pending("FaircastSourceIdle"), "{rules:?}");
}

/// Checks what Grafana needs of a dashboard: distinct panels that lie in its grid of 24 columns and not over one another, distinct
/// queries, and a data source that the user chooses.
fn assert_is_a_dashboard(dashboard: &Value, panels: &[Value]) {
    let source = json!({ "type": "prometheus", "uid": "${source}" });
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    assert!(
        variables.iter().any(|one| one["name"] == "source" && one["type"] == "datasource"),
        "{variables:?}"
    );
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|name| panel["gridPos"][name].as_u64().expect("a number"));
        let mut cells = (x..x + w).flat_map(|column| (y..y + h).map(move |row| (column, row)));
        assert!(x + w <= 24 && cells.all(|cell| taken.insert(cell)), "{panel}");
        assert!(ids.insert(panel["id"].as_u64()) && panel["datasource"] == source, "{panel}");
        let targets = panel["targets"].as_array().expect("targets");
        let refs: BTreeSet<_> =
            targets.iter().map(|target| target["refId"].as_str().expect("a name")).collect();
        assert!(
            refs.len() == targets.len() && targets.iter().all(|target| target["datasource"] == source),
            "{panel}"
        );
    }
}

/// Stores numbers of all metrics that the dashboard shows.
fn note_all(page: &Page, second: u64) {
    let counts = Counts {
        packets: 900 * second,
        repairs: 9 * second,
        lost: second,
        refused: 3 * second,
        refused_by: RefusedPackets { malformed: 3 * second, ..RefusedPackets::default() },
        dropped_local: second,
        cuts: second,
    };
    let queues = Queues { unwritten_bytes: 7_000, socket_bytes: 2_304, ..Queues::default() };
    let source = Progress {
        counts: Some(Box::new(counts)),
        queues: Some(queues),
        moved_bytes: 1_000 * second,
        ..progress(second)
    };
    page.note(Of::default(), &receivers());
    page.shared.change(|model| {
        model.note(Of::default(), &Event::Progress(source));
        model.note_traffic(Of::default(), traffic());
    });
}
