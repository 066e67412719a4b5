//! Results as a data file of Flent (format version 4), which Flent plots beside its own measurements.
//!
//! TCP flows have the names of Flent's test `tcp_nup`. Time begins at zero, so the same results give the same bytes.

use super::Results;
use crate::scenario::{RealFlow, RealFlows, Scenario, Traffic};
use crate::table::Table;
use faircast_core::time::Time;
use faircast_topology::{LinkId, Routes};
use serde_json::{Map, Value, json};

/// Version of the format.
const VERSION: u32 = 4;
/// Begin of the run.
const BEGIN: &str = "1970-01-01T00:00:00.000000Z";
/// Bytes of the headers of IP, and of TCP with times. Flent measures payload.
const HEADERS: u16 = 52;
const PING: &str = "Ping (ms) ICMP";

/// Returns the first run as the content of a file `NAME.flent.gz`; `world` is its title. `None` if the run has no rates of TCP
/// flows.
pub fn flent(scenario: &Scenario, results: &Results, world: &str) -> Option<Vec<u8>> {
    let run = *results.jobs.first()?;
    let plan = scenario.plan(run.0);
    let real = scenario.real_flows(run.0, run.1);
    let tcp = real.flows.iter().filter(|flow| matches!(flow.traffic, Traffic::Tcp { .. }));
    let table = results.table("rates")?;
    let flows: Vec<(&RealFlow, Vec<f64>)> = tcp.map(|flow| (flow, goodput(table, run, flow))).collect();
    let flows: Vec<_> = flows.into_iter().filter(|(_, rates)| !rates.is_empty()).collect();
    let (first, longest) = flows.first().map(|(flow, rates)| (*flow, rates.len()))?;
    let step = plan.probe.bin.as_secs_f64();
    let times: Vec<f64> = (1..=longest).map(|bin| bin as f64 * step).collect();

    let mut series = Map::new();
    let mut sums = vec![(0.0, 0.0); longest];
    for (number, (_, rates)) in flows.iter().enumerate() {
        for ((sum, squares), rate) in sums.iter_mut().zip(rates) {
            (*sum, *squares) = (*sum + rate, *squares + rate * rate);
        }
        series.insert(format!("TCP upload::{}", number + 1), json!(rates));
    }
    let count = flows.len() as f64;
    let of_all = |value: &dyn Fn(f64, f64) -> f64| {
        // Flent has no number where nothing was sent.
        let value = |(sum, squares): &(f64, f64)| (*squares > 0.0).then(|| value(*sum, *squares));
        json!(sums.iter().map(value).collect::<Vec<Option<f64>>>())
    };
    series.insert("TCP upload sum".into(), of_all(&|sum, _| sum));
    series.insert("TCP upload avg".into(), of_all(&|sum, _| sum / count));
    series.insert("TCP upload fairness".into(), of_all(&|sum, squares| sum * sum / (count * squares)));
    let delays = delays(scenario, results, run, &real, first).unwrap_or_default();
    let mean = |end: &f64| {
        let within = delays.iter().filter(|(at, _)| (end - step..*end).contains(at)).map(|(_, delay)| *delay);
        let (sum, count) = within.fold((0.0, 0), |(sum, count), delay| (sum + delay, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    let mut raw = Map::new();
    if !delays.is_empty() {
        series.insert(PING.into(), json!(times.iter().map(mean).collect::<Vec<Option<f64>>>()));
        let values = delays.iter().map(|(at, delay)| json!({ "t": at, "val": delay }));
        raw.insert(PING.into(), values.collect());
    }
    let length = plan.duration.as_secs_f64();
    let to = &first.to[0].host;
    let metadata = json!({
        "NAME": "tcp_nup", "TITLE": world, "NOTE": scenario.title(), "TIME": BEGIN, "T0": BEGIN,
        "LENGTH": length.ceil() as u64, "TOTAL_LENGTH": length.ceil() as u64, "STEP_SIZE": step,
        "HOST": to, "HOSTS": [to], "LOCAL_HOST": first.from, "IP_VERSION": 4,
        "TEST_PARAMETERS": { "upload_streams": flows.len().to_string() },
        "SERIES_META": series.keys().map(|name| (name.clone(), json!({}))).collect::<Map<String, Value>>(),
    });
    let file = json!({
        "version": VERSION, "metadata": metadata, "x_values": times, "results": series, "raw_values": raw,
    });
    Some(gzip(file.to_string().as_bytes()))
}

/// Returns whether a row of a table belongs to a run.
fn is_of(table: &Table, (point, seed): (usize, u64), row: usize) -> bool {
    table.wholes("point")[row] == point as u64 && table.wholes("seed")[row] == seed
}

/// Returns the rate of a flow's payload in each interval, in Mbit/s.
fn goodput(rates: &Table, run: (usize, u64), flow: &RealFlow) -> Vec<f64> {
    let payload = f64::from(flow.packet.saturating_sub(HEADERS)) / f64::from(flow.packet);
    let is_meant = |row: &usize| {
        is_of(rates, run, *row)
            && rates.texts("flow")[*row] == flow.group
            && rates.wholes("copy")[*row] == flow.copy as u64 + 1
            && rates.texts("receiver")[*row] == flow.to[0].host
    };
    (0..rates.rows()).filter(is_meant).map(|row| rates.numbers("rate")[row] * payload / 1e6).collect()
}

/// Returns the round-trip times on the paths of a flow, in seconds and milliseconds: the delays of the links, and the queues of the
/// recorded links. `None` if no link of the paths is recorded.
fn delays(
    scenario: &Scenario,
    results: &Results,
    run: (usize, u64),
    real: &RealFlows,
    flow: &RealFlow,
) -> Option<Vec<(f64, f64)>> {
    let topology = scenario.layout(run.0, run.1).topology().ok()?;
    let (from, to) = (topology.find(&flow.from)?, topology.find(&flow.to[0].host)?);
    let (mut routes, mut links, mut back) = (Routes::new(&topology), Vec::new(), Vec::new());
    routes.path(from, to, &mut links)?;
    routes.path(to, from, &mut back)?;
    links.append(&mut back);
    let edge = |link: &LinkId| &topology.edges()[link.0 as usize];
    // The value of a link at a time: that of the scenario, or of its last change.
    let value = |link: &LinkId, at: f64, key: &str, value: f64| {
        let changed =
            real.changes.iter().filter(|(when, of, _)| *of == link.0 && *when <= Time::from_secs_f64(at));
        changed.filter_map(|(.., text)| text.strip_prefix(key)?.parse().ok()).next_back().unwrap_or(value)
    };
    let propagation = |at: f64| -> f64 {
        links.iter().map(|link| value(link, at, "delay=", edge(link).spec.delay.as_secs_f64())).sum()
    };
    let queues = results.table("queues")?;
    let mut delays: Vec<(f64, f64)> = Vec::new();
    for link in &links {
        let name = format!("{}->{}", topology.name(edge(link).from), topology.name(edge(link).to));
        let rows =
            (0..queues.rows()).filter(|row| is_of(queues, run, *row) && queues.texts("link")[*row] == name);
        for (number, row) in rows.enumerate() {
            let at = queues.numbers("time")[row];
            if delays.len() == number {
                delays.push((at, propagation(at) * 1e3));
            }
            let rate = value(link, at, "rate=", edge(link).spec.rate.bps());
            delays[number].1 += queues.wholes("bytes")[row] as f64 * 8.0 / rate * 1e3;
        }
    }
    Some(delays)
}

/// Returns content in the format gzip (RFC 1952), without compression.
fn gzip(content: &[u8]) -> Vec<u8> {
    const BLOCK: usize = u16::MAX as usize;
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let blocks = content.len().div_ceil(BLOCK).max(1);
    for number in 0..blocks {
        let block = &content[number * BLOCK..content.len().min((number + 1) * BLOCK)];
        let length = block.len() as u16;
        file.push(u8::from(number + 1 == blocks));
        file.extend(length.to_le_bytes().into_iter().chain((!length).to_le_bytes()));
        file.extend(block);
    }
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    let sum = content.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step));
    file.extend((!sum).to_le_bytes().into_iter().chain((content.len() as u32).to_le_bytes()));
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunOptions, Silent, run};

    const TEXT: &str = "title = \"two flows\"\nduration = \"10 s\"\nseeds = [4, 5]\nstart_jitter = \"0 s\"\n\
        [topology]\nkind = \"text\"\nnetwork = \"\"\"\nhost a\nhost b\nhost c\nrouter r\n\
        link a r delay=10ms\nlink c r delay=10ms\nlink r b rate=8M delay=10ms queue=droptail,50\n\"\"\"\n\
        [probe]\nlinks = \"r->b\"\n\
        [[flow]]\nname = \"one\"\nkind = \"tcp-cubic\"\nfrom = \"a\"\nto = \"b\"\n\
        [[flow]]\nname = \"two\"\nkind = \"tcp-cubic\"\nfrom = \"c\"\nto = \"b\"\n\
        [[change]]\nat = \"5 s\"\nlink = \"r->b\"\nrate = \"4 Mbit/s\"\ndelay = \"30 ms\"\n";

    fn simulated(text: &str) -> (Scenario, Results) {
        let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let results =
            run(&scenario, &RunOptions::default(), &Silent).unwrap_or_else(|error| panic!("{error}"));
        (scenario, results)
    }

    /// Returns the content of a file in the format gzip, which must be stored in blocks.
    fn unpacked(mut file: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        file = &file[10..];
        loop {
            let length = usize::from(u16::from_le_bytes([file[1], file[2]]));
            content.extend(&file[5..5 + length]);
            let is_last = file[0] == 1;
            file = &file[5 + length..];
            if is_last {
                return content;
            }
        }
    }

    #[test]
    fn gzip_has_the_checksum_and_the_length_of_its_content() {
        // The checksum of these digits is the check value of CRC-32.
        let file = gzip(b"123456789");
        assert_eq!(file[file.len() - 8..], [0x26, 0x39, 0xf4, 0xcb, 9, 0, 0, 0]);
        for length in [0, 1, 65_535, 65_536, 200_000] {
            let content: Vec<u8> = (0..length).map(|at| (at / 7) as u8).collect();
            assert_eq!(unpacked(&gzip(&content)), content);
        }
    }

    #[test]
    fn tcp_flows_and_their_delays_have_the_names_of_flent() {
        let (scenario, results) = simulated(TEXT);
        let file = unpacked(&flent(&scenario, &results, "simulation").expect("it has TCP flows"));
        let file: Value = serde_json::from_slice(&file).expect("it is JSON");
        let of = |name: &str| -> Vec<f64> {
            let values = file["results"][name].as_array().unwrap_or_else(|| panic!("no {name}: {file}"));
            values.iter().map(|value| value.as_f64().expect("a number")).collect()
        };
        let (one, two, sum) = (of("TCP upload::1"), of("TCP upload::2"), of("TCP upload sum"));
        assert!(one.iter().zip(&two).zip(&sum).all(|((one, two), sum)| (one + two - sum).abs() < 1e-9));
        let payload = 1.0 - 52.0 / f64::from(scenario.real_flows(0, 4).flows[0].packet);
        assert!((sum[3] / (8.0 * payload) - 1.0).abs() < 0.02, "{sum:?}");
        assert!((sum[8] / (4.0 * payload) - 1.0).abs() < 0.02, "{sum:?}");
        assert!(of("TCP upload fairness").iter().all(|index| (0.5..=1.0).contains(index)));
        let ping = of(PING);
        assert!(ping[3] > 45.0 && ping[8] > ping[3] + 20.0, "the delay is 40 ms, then 60 ms: {ping:?}");
        assert_eq!(
            (file["version"].as_u64(), file["x_values"].as_array().map(Vec::len)),
            (Some(4), Some(10))
        );
        assert_eq!(file["metadata"]["TEST_PARAMETERS"]["upload_streams"], "2");
    }

    #[test]
    fn run_without_tcp_flows_has_no_file() {
        let (scenario, results) =
            simulated(&TEXT.replace("tcp-cubic", "udp").replace("from", "rate = \"1 Mbit/s\"\nfrom"));
        assert_eq!(flent(&scenario, &results, "simulation"), None);
    }
}
