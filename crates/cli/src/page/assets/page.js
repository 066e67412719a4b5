// The live page of a session. The first state is in the page; updates follow by Server-Sent Events. Each update has the changes
// since the one before. The fields of events are those of docs/json.md.
"use strict";
(() => {
  // The page as it was loaded, for "Save as HTML".
  const loaded = document.documentElement.cloneNode(true);
  const $ = (id) => document.getElementById(id);
  const MAX_POINTS = 7200;
  const MANY = 150;
  // The worst first. Each condition has a shape, a word and a place in the order.
  const LOOKS = {
    failed: ["✕", "failed"],
    dropped: ["⊘", "left out"],
    unreached: ["!", "not reached"],
    silent: ["○", "silent"],
    slow: ["▼", "limits the rate"],
    behind: ["◢", "behind"],
    deferred: ["‖", "served later"],
    receiving: ["▶", "receiving"],
    done: ["✓", "done"],
  };
  const ORDER = Object.keys(LOOKS);
  // From here on, receivers need no attention, and are in the order of their names: their cells stay in place.
  const CALM = ORDER.indexOf("deferred");

  // ---- Numbers as words ----
  const scaled = (value, units, base) => {
    let at = 0;
    while (value >= base && at < units.length - 1) { value /= base; at += 1; }
    return `${at === 0 ? Math.round(value) : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${units[at]}`;
  };
  const rate = (bps) => (bps == null || !isFinite(bps) ? "–" : scaled(bps, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"], 1000));
  const bytes = (count) => (count == null ? "–" : scaled(count, ["B", "kB", "MB", "GB", "TB"], 1000));
  const percent = (part) => {
    const value = 100 * part;
    return value === 0 ? "0 %" : value < 0.01 ? "<0.01 %" : value < 1 ? `${value.toFixed(2)} %` : `${value.toFixed(1)} %`;
  };
  const millis = (ms) => (ms == null ? "–" : `${ms.toFixed(1)} ms`);
  // `step` is the distance of two times that have to differ.
  const time = (seconds, step = seconds < 10 ? 0.1 : 1) => {
    const whole = Math.floor(seconds), two = (n) => String(n).padStart(2, "0");
    if (seconds < 60) return `${seconds.toFixed(step < 0.1 ? 2 : step < 1 ? 1 : 0)} s`;
    const minutes = Math.floor(whole / 60);
    return minutes < 60 ? `${minutes}:${two(whole % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
  };
  const grouped = (count) => (count == null ? "–" : count.toLocaleString("en"));
  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  // ---- The state ----
  let state = null;
  let sessions = new Map();
  const keyOf = (of) => `${of.session}/${of.branch ?? ""}`;

  function apply(update) {
    if (!state || update.after === 0 || update.run !== state.run) {
      sessions = new Map();
      state = { network: null };
    }
    const { network } = state;
    state = { ...state, ...update };
    if (update.network) state.network = { ...network, ...update.network, steps: [...(network?.steps ?? []), ...update.network.steps] };
    for (const change of update.sessions) {
      const key = keyOf(change);
      const known = sessions.get(key) ?? { session: change.session, branch: change.branch, points: [], receivers: new Map(), notes: [] };
      sessions.set(key, known);
      for (const field of ["content", "found", "progress", "traffic", "error", "end"]) {
        if (change[field] !== undefined) known[field] = change[field];
      }
      for (const point of change.points ?? []) {
        if (known.points.length && known.points.at(-1).from === point.from) known.points.pop();
        known.points.push(point);
      }
      if (known.points.length > MAX_POINTS) known.points = known.points.filter((_, at) => at % 2 === 0);
      for (const one of change.receivers ?? []) known.receivers.set(one.receiver, one);
      known.notes = known.notes.concat(change.notes ?? []).slice(-100);
    }
    const all = new Set(update.all.map(keyOf));
    for (const key of sessions.keys()) if (!all.has(key)) sessions.delete(key);
  }

  // ---- What is shown ----
  let chosen = null;
  let paused = false;
  let shown = null;
  let connected = "connecting";

  function current() {
    if (chosen && sessions.has(chosen)) return sessions.get(chosen);
    const all = [...sessions.values()];
    const running = all.filter((one) => one.progress && !one.end);
    return (state.network ? running[0] : running.at(-1)) ?? all.filter((one) => one.progress || one.end).at(-1) ?? all.at(-1) ?? null;
  }

  /// The receiver that limits the rate, and why.
  function limit(one) {
    const now = one.progress;
    if (!now || one.end) return null;
    if (now.limited_by === "window") return { host: now.window_of, why: "its disk, processor or reader is too slow" };
    if (now.limited_by === "congestion" && now.representative) return { host: now.representative, why: "congestion on its path" };
    return null;
  }

  // Simulated hosts are numbered without zeros; there are at most 1,000 of them, so that the slow comparison is fast enough.
  const { compare } = new Intl.Collator("en", { numeric: true });
  const byName = (a, b) => (state.network ? compare(a, b) : a < b ? -1 : a > b ? 1 : 0);

  function conditions(one) {
    const limiting = limit(one);
    const receivers = [...one.receivers.values()];
    const active = receivers.filter((r) => r.state === "receiving").map((r) => r.verified_bytes).sort((a, b) => a - b);
    const middle = active.length ? active[Math.floor(active.length / 2)] : 0;
    const total = one.progress?.total_bytes || Math.max(1, ...receivers.map((r) => r.verified_bytes));
    // Simulated receivers may join at any time.
    const slack = state.network ? total : 0.05 * total;
    return receivers.map((r) => {
      let look = r.state;
      if (look === "receiving") {
        if (receivers.length > 1 && limiting && limiting.host === r.host && (one.progress.limited_by === "window" ? r.holds : r.rtt_ms != null)) look = "slow";
        else if (r.verified_bytes < middle - slack) look = "behind";
      }
      const part = r.state === "done" ? 1 : Math.min(1, r.verified_bytes / total);
      return { r, look, part, place: ORDER.indexOf(look) };
    }).sort((a, b) => a.place - b.place || (a.place < CALM ? a.part - b.part : 0) || byName(a.r.host, b.r.host));
  }

  function words(c) {
    const { r, look, part } = c;
    const lines = [`${r.host} ${LOOKS[look][0]} ${LOOKS[look][1]}${r.reason ? `: ${r.reason}` : ""}`];
    lines.push(`${state.network ? `${bytes(r.verified_bytes)} received` : `${percent(part)} verified (${bytes(r.verified_bytes)})`}, ${rate(r.rate_bps)}, loss ${percent(r.loss)}, round trip ${millis(r.rtt_ms)}`);
    if (state.network) return lines;
    const host = [];
    if (r.busy) host.push(`disk: ${r.busy.activity}, ${r.busy.percent} %`);
    else if (r.holds) host.push("its window holds the source: disk, processor or reader is too slow");
    else if (r.state === "receiving" && !r.unwritten_bytes) host.push("disk keeps up");
    if (r.unwritten_bytes) host.push(`${bytes(r.unwritten_bytes)} wait for its disk`);
    if (r.dropped_local) host.push(`its socket buffer dropped ${plural(r.dropped_local, "datagram")}`);
    host.push(`${plural(r.repair_symbols, "repair symbol")} requested`, r.address);
    if (r.receivers !== 1) host.push(`${r.done} of ${r.receivers} receivers below it done`);
    lines.push(host.join("; "));
    return lines;
  }

  function headline(one) {
    if (!one) return ["Waiting for a session", ""];
    const now = one.progress, role = state.command === "recv" || (state.command === "relay" && one.branch == null) ? "recv" : "send";
    if (one.end) {
      const end = one.end;
      if (!end.ok && end.receivers > 0) return [`Not complete: ${end.verified} of ${plural(end.receivers, "receiver")} verified`, one.error?.hint ?? ""];
      if (!end.ok) return [`Not complete: ${one.error?.message ?? "the session has failed"}`, one.error?.hint ?? ""];
      const took = `${bytes(end.bytes)} in ${time(end.seconds ?? 0)}, ${rate(end.goodput_bps)}`;
      return [role === "send" && end.verified != null ? `Done: ${end.verified} of ${plural(end.receivers, "receiver")} verified ${took}` : `Done: received ${took}`, ""];
    }
    if (!now) return ["Waiting for the first numbers", one.found ? `${one.found.host} at ${one.found.address}` : ""];
    if (now.joining) {
      const j = now.joining;
      const expected = j.expected == null ? "" : ` of ${j.expected}`;
      return [`Waiting for receivers: ${j.joined}${expected} joined`, j.absent.length ? `absent: ${j.absent.join(", ")}` : ""];
    }
    const whole = now.total_bytes ? `${bytes(now.bytes)} of ${bytes(now.total_bytes)} (${percent(now.bytes / now.total_bytes)})` : bytes(now.bytes);
    const left = now.total_bytes && now.rate_bps > 0 ? `, about ${time((now.total_bytes - now.bytes) * 8 / now.rate_bps)} left` : "";
    const sub = `${time(now.seconds)}: ${whole}${left}${role === "send" ? `, ${now.verified} of ${plural(now.receivers, "receiver")} done` : ""}`;
    const speed = rate(now.rate_bps);
    const about = state.network?.about, simulated = about && about.sessions[one.session - 1];
    if (simulated) {
      const who = limit(one)?.host, point = about.point ? `, ${about.point}` : "";
      return [`${who ? `${who} limits the rate of ${simulated.name}` : `${simulated.name} sends`}: ${speed}`, `${about.title}: ${time(now.seconds)} of ${time(about.seconds)} simulated${point}, seed ${about.seed}; ${simulated.scheme}, ${plural(now.receivers, "receiver")}`];
    }
    if (role === "recv") return [`Receiving ${speed}${one.found ? ` from ${one.found.host}` : ""}, loss ${percent(now.loss)}`, sub];
    const limiting = limit(one);
    const member = limiting && [...one.receivers.values()].find((r) => r.host === limiting.host && (r.holds || r.rtt_ms != null));
    if (limiting) return [`${limiting.host} limits the rate: ${speed}, loss ${percent(member ? member.loss : now.loss)}`, `${limiting.why}; ${sub}`];
    if (now.limited_by === "max") return [`The configured maximum limits the rate: ${speed}`, sub];
    if (now.limited_by === "application") return [`This host limits the rate: ${speed}`, `it has no more data, or reads too slowly; ${sub}`];
    return [`Sending ${speed}, loss ${percent(now.loss)}`, sub];
  }

  const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

  // ---- Numbers ----
  const REASONS = {
    malformed: "damaged or no packet", unauthentic: "wrong seal or signature", replayed: "replayed", session: "other session",
    sender: "wrong sender", implausible: "impossible numbers", unexpected: "wrong kind",
  };
  function refused(counts) {
    if (!counts) return "–";
    const by = Object.entries(counts.refused_by ?? {}).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
    return `${grouped(counts.refused)}${by.length ? `: ${by.map(([reason, count]) => `${grouped(count)} ${REASONS[reason] ?? reason}`).join(", ")}` : ""}`;
  }

  // The interface counts all that it carries. Headers and times of counts differ a little, so a small difference is no number.
  const beside = (one, at_source) => `Other traffic ${at_source ? "sent" : "received"} by ${one.traffic?.interface}, TCP included`;
  function others(one) {
    const { other_bps, all_bps } = one.traffic ?? {};
    if (other_bps == null) return "–";
    if (other_bps < 0.05 * all_bps) return "less than 5 % of all";
    return `${rate(other_bps)}, ${Math.round(100 * other_bps / all_bps)} % of all`;
  }

  function numbers(one) {
    const now = one?.progress, counts = now?.counts, last = one?.points.at(-1);
    const repair = counts && counts.packets ? percent(counts.repairs / counts.packets) : "–";
    const at_source = now && now.allowed_bps != null;
    const list = now ? [
      ["rate_bps", at_source ? "Sent" : "Received", now.rate_bps, rate(now.rate_bps)],
      ["allowed_bps", "Allowed", now.allowed_bps, rate(now.allowed_bps)],
      ["other_bps", beside(one, at_source), one.traffic?.other_bps, others(one)],
      ["loss", "Loss", now.loss, percent(now.loss)],
      ["rtt_ms", "Round trip", now.rtt_ms, millis(now.rtt_ms)],
      ["bytes", at_source ? "Content sent" : "Verified", now.bytes, bytes(now.bytes)],
      ["packets", "Packets", counts?.packets, grouped(counts?.packets)],
      ["repairs", at_source ? "Repair packets" : "Repaired blocks", counts?.repairs, at_source ? `${grouped(counts?.repairs)} (${repair})` : grouped(counts?.repairs)],
      ["cuts", "Rate cuts", counts?.cuts, `${grouped(counts?.cuts)}${last?.cuts ? ` (${last.cuts.length} now)` : ""}`],
      ["refused", "Refused packets", counts?.refused, refused(counts)],
      ["lost", "Packets lost", counts?.lost, grouped(counts?.lost)],
      ["dropped_local", "Dropped by the socket", counts?.dropped_local, grouped(counts?.dropped_local)],
      ["unwritten_bytes", "Waits for the disk", now.queues?.unwritten_bytes, bytes(now.queues?.unwritten_bytes)],
      ["socket_bytes", "Waits in the socket", now.queues?.socket_bytes, now.queues ? `${bytes(now.queues.socket_bytes)} of ${bytes(now.queues.socket_size_bytes)}` : "–"],
    ].filter(([name]) => !state.network || !["repairs", "refused"].includes(name)).filter(([name]) => name !== "other_bps" || one.traffic).filter(([name]) => (at_source ? !["lost", "dropped_local", "unwritten_bytes", "socket_bytes"].includes(name) : !["allowed_bps", "cuts"].includes(name))) : [];
    const dl = $("numbers");
    const names = list.map(([name]) => name).join();
    if (dl.dataset.names !== names) {
      dl.dataset.names = names;
      dl.replaceChildren(...list.flatMap(([name, title]) => {
        const dt = document.createElement("dt"), dd = document.createElement("dd"), div = document.createElement("div");
        dt.textContent = title;
        dd.dataset.name = name;
        div.append(dt, dd);
        return [div];
      }));
    }
    for (const [name, , value, text] of list) {
      const dd = dl.querySelector(`[data-name="${name}"]`);
      dd.dataset.value = value ?? "";
      put(dd, text);
    }
  }

  // ---- Limits of the rate ----
  const LIMITS = {
    congestion: (host) => host ? `${host} limited the rate: congestion on its path` : "Congestion control limited the rate",
    window: (host) => host ? `${host} limited the rate: its disk, processor or reader was too slow` : "A receiver's disk, processor or reader limited the rate",
    max: () => "The configured maximum limited the rate",
    application: () => "This host limited the rate: it had no more data, or read too slowly",
  };

  /// The limits of the rate as sentences, the longest first.
  function limitsOf(points) {
    const all = new Map();
    let whole = 0, cuts = 0;
    for (const point of points) {
      cuts += point.cuts?.length ?? 0;
      const span = point.to - point.from;
      whole += span;
      if (!LIMITS[point.limited_by]) continue;
      const host = ["congestion", "window"].includes(point.limited_by) ? point.host ?? "" : "";
      const key = `${point.limited_by} ${host}`;
      const known = all.get(key) ?? { by: point.limited_by, host, time: 0, bits: 0, cuts: 0 };
      known.time += span;
      known.bits += span * point.rate_bps;
      known.cuts += point.cuts?.length ?? 0;
      all.set(key, known);
    }
    const list = [...all.values()].sort((a, b) => b.time - a.time);
    const lines = list.slice(0, 8).map((one) => {
      const cut = one.cuts ? `, ${plural(one.cuts, "rate cut")}` : "";
      return `${LIMITS[one.by](one.host)}, for ${time(one.time)} (${Math.round(100 * one.time / whole)} %), at ${rate(one.bits / one.time)} on average${cut}`;
    });
    const more = list.slice(8).reduce((sum, one) => sum + one.time, 0);
    if (more > 0) lines.push(`${plural(list.length - 8, "other limit")}, for ${time(more)}`);
    return lines;
  }

  function items(list, lines) {
    const drawn = JSON.stringify(lines);
    if (list.dataset.drawn === drawn) return;
    list.dataset.drawn = drawn;
    list.replaceChildren(...lines.map((text) => {
      const li = document.createElement("li");
      li.textContent = text;
      return li;
    }));
  }

  function limits(one) {
    const lines = limitsOf(one?.points ?? []);
    $("limits-part").hidden = lines.length === 0;
    items($("limits"), lines);
  }

  /// The report of `--report FILE.html`: the receivers that are not complete first, then the slowest.
  function report() {
    const all = state.report?.receivers ?? [];
    $("report-part").hidden = all.length === 0;
    if ($("report").childElementCount === all.length) return;
    const rank = (one) => (one.outcome === "verified" ? 1 : 0);
    const sorted = [...all].sort((a, b) => rank(a) - rank(b) || b.seconds - a.seconds);
    $("report").replaceChildren(...sorted.map((one) => {
      const row = document.createElement("tr");
      row.dataset.outcome = one.outcome;
      const look = LOOKS[one.outcome === "verified" ? "done" : "failed"][0];
      const values = [one.host, `${look} ${one.outcome}`, bytes(one.verified_bytes), bytes(one.resumed_bytes), time(one.seconds), rate(one.rate_bps), percent(one.loss), String(one.repair_symbols), one.reason ?? ""];
      row.append(...values.map((text, at) => {
        const cell = document.createElement(at === 0 ? "th" : "td");
        cell.textContent = text;
        return cell;
      }));
      return row;
    }));
  }

  // ---- Receivers ----
  let cells = new Map();
  let focused = null;
  let pointed = null;
  let looks = [];
  let orderAt = 0;

  function cell(id) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.id = id;
    button.tabIndex = -1;
    button.append(document.createElement("b"), document.createElement("span"), document.createElement("i"));
    return { button, name: button.children[0], text: button.children[1], bar: button.children[2], drawn: "" };
  }

  function receivers(one) {
    looks = one ? conditions(one) : [];
    $("receivers-part").hidden = looks.length === 0;
    const counts = new Map();
    for (const c of looks) counts.set(c.look, (counts.get(c.look) ?? 0) + 1);
    const legend = ORDER.filter((look) => counts.has(look)).map((look) => `${look}:${counts.get(look)}`).join();
    if ($("legend").dataset.drawn !== legend) {
      $("legend").dataset.drawn = legend;
      $("legend").replaceChildren(...ORDER.filter((look) => counts.has(look)).map((look) => {
        const b = document.createElement("b");
        b.className = look;
        b.textContent = `${LOOKS[look][0]} ${counts.get(look)} ${LOOKS[look][1]}`;
        return b;
      }));
    }
    const box = $("cells"), wanted = $("search").value.trim().toLowerCase();
    const list = wanted ? looks.filter((c) => c.r.host.toLowerCase().includes(wanted)) : looks;
    const many = list.length > MANY;
    if (box.classList.contains("many") !== many) { box.classList.toggle("many", many); for (const known of cells.values()) known.drawn = ""; }
    const visible = new Set();
    for (const c of list) {
      const id = c.r.receiver;
      visible.add(id);
      let known = cells.get(id);
      if (!known) cells.set(id, (known = cell(id)));
      const share = state.network ? "" : `${Math.floor(100 * c.part)} % `;
      const label = `${LOOKS[c.look][1]}, ${state.network ? "" : `${percent(c.part)}, `}${rate(c.r.rate_bps)}`;
      const drawn = many ? `${c.look}${c.r.host}` : `${c.look}${c.r.host}${label}`;
      if (known.drawn === drawn) continue;
      known.drawn = drawn;
      known.button.className = `cell ${c.look}`;
      known.button.setAttribute("aria-label", many ? `${c.r.host}: ${LOOKS[c.look][1]}` : `${c.r.host}: ${label}`);
      put(known.name, c.r.host);
      put(known.text, many ? LOOKS[c.look][0] : `${LOOKS[c.look][0]} ${c.look === "receiving" || c.look === "behind" || c.look === "slow" ? `${share}${rate(c.r.rate_bps)}` : LOOKS[c.look][1]}`);
      if (!many) known.bar.style.transform = `scaleX(${c.part})`;
    }
    for (const [id, known] of cells) if (!visible.has(id)) { known.button.remove(); cells.delete(id); }
    // The order changes at most every two seconds, and never below the pointer or the focus.
    const now = performance.now();
    const held = box.matches(":hover") || box.contains(document.activeElement);
    if (box.childElementCount !== list.length || (!held && now - orderAt > 2000)) {
      orderAt = now;
      let at = box.firstElementChild;
      for (const c of list) {
        const button = cells.get(c.r.receiver).button;
        if (button === at) at = at.nextElementSibling;
        else box.insertBefore(button, at);
      }
    }
    if (!visible.has(focused)) {
      focused = list[0]?.r.receiver ?? null;
      for (const known of cells.values()) known.button.tabIndex = -1;
      if (focused) cells.get(focused).button.tabIndex = 0;
    }
    const unlisted = (one?.progress?.receivers ?? 0) - [...(one?.receivers.values() ?? [])].reduce((sum, r) => sum + r.receivers, 0);
    $("unseen").hidden = unlisted <= 0;
    put($("unseen"), `and ${plural(unlisted, "receiver")} without a cell`);
    detail();
    const bad = looks.filter((c) => c.place < CALM);
    // The receiver that limits the rate is always among the first.
    const slow = bad.findIndex((c) => c.look === "slow");
    if (slow > 5) bad.splice(5, 0, ...bad.splice(slow, 1));
    const attention = bad.slice(0, 6).map((c) => {
      const what = c.look === "slow" ? `limits the rate to ${rate(one.progress.rate_bps)}: ${limit(one).why}` : `${LOOKS[c.look][1]}${c.r.reason ? `: ${c.r.reason}` : ""}`;
      return [c.look, `${LOOKS[c.look][0]} ${c.r.host} ${what}${c.look === "slow" || c.look === "behind" ? `, loss ${percent(c.r.loss)}` : ""}${state.network ? "" : `, ${percent(c.part)} verified`}`];
    });
    if (bad.length > 6) attention.push([bad[6].look, `and ${bad.length - 6} more`]);
    const text = JSON.stringify(attention);
    if ($("attention").dataset.drawn !== text) {
      $("attention").dataset.drawn = text;
      $("attention").replaceChildren(...attention.map(([look, line]) => {
        const li = document.createElement("li");
        li.className = look;
        li.textContent = line;
        return li;
      }));
    }
  }

  function detail() {
    const id = pointed ?? focused, c = looks.find((one) => one.r.receiver === id);
    put($("detail"), c ? words(c).join(" · ") : "");
    $("detail").className = c ? c.look : "";
  }

  $("cells").addEventListener("pointerover", (event) => { pointed = event.target.closest(".cell")?.dataset.id ?? null; detail(); });
  $("cells").addEventListener("pointerleave", () => { pointed = null; detail(); });
  $("cells").addEventListener("focusin", (event) => {
    const id = event.target.dataset.id;
    if (cells.has(focused)) cells.get(focused).button.tabIndex = -1;
    focused = id;
    pointed = null;
    event.target.tabIndex = 0;
    detail();
  });
  $("cells").addEventListener("keydown", (event) => {
    const all = [...$("cells").children], at = all.indexOf(document.activeElement);
    const row = Math.max(1, all.findIndex((one, i) => i > 0 && one.offsetTop > all[0].offsetTop));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -at, End: all.length - 1 - at }[event.key];
    if (step === undefined || at < 0) return;
    event.preventDefault();
    all[Math.min(all.length - 1, Math.max(0, at + step))].focus();
  });
  $("search").addEventListener("input", () => { orderAt = 0; draw(); });

  // ---- The plot ----
  let plot = null;
  let points = [];
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const cutsOf = (point) => (point.cuts ?? []).map((cut) => `${time(cut.seconds)}: cut from ${rate(cut.from_bps)} to ${rate(cut.to_bps)}, ${cut.cause}${cut.host ? ` reported by ${cut.host}` : ""}`);

  function reading(at) {
    const point = points[at ?? points.length - 1];
    if (!point) return put($("reading"), "no numbers yet");
    const cuts = cutsOf(point);
    const who = point.host ? `, ${point.limited_by === "window" ? "held by" : "follows"} ${point.host}` : "";
    const allowed = point.allowed_bps == null ? "" : `, allowed ${rate(point.allowed_bps)}`;
    put($("reading"), `${time(point.to)}: ${rate(point.rate_bps)}${allowed}, loss ${percent(point.loss)}${who}${cuts.length ? `. ▽ ${cuts.slice(0, 3).join("; ")}${cuts.length > 3 ? `; and ${cuts.length - 3} more` : ""}` : ""}`);
  }

  const axis = { stroke: () => color("--weak"), grid: { stroke: () => color("--line"), width: 1 }, ticks: { stroke: () => color("--line") } };

  /// Draws a small triangle above each of these points, which are times and values.
  function marks(u, fill, points) {
    const c = u.ctx, size = 3 * devicePixelRatio;
    c.save();
    c.fillStyle = fill;
    for (const point of points) {
      if (!point) continue;
      const x = u.valToPos(point[0], "x", true), y = Math.max(u.valToPos(point[1], "y", true) - 2 * size, u.bbox.top + size);
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      c.beginPath();
      c.moveTo(x - size, y - size); c.lineTo(x + size, y - size); c.lineTo(x, y + size);
      c.fill();
    }
    c.restore();
  }

  /// Draws a triangle above each point with cuts.
  function drawCuts(u) {
    const c = u.ctx, size = 5 * devicePixelRatio;
    c.save();
    c.fillStyle = color("--bad");
    let last = -Infinity;
    points.forEach((point) => {
      if (!point.cuts?.length) return;
      const x = u.valToPos(point.to, "x", true), y = u.bbox.top + size * 2;
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width || x - last < size) return;
      last = x;
      c.beginPath();
      c.moveTo(x - size, y - size); c.lineTo(x + size, y - size); c.lineTo(x, y + size);
      c.fill();
      c.globalAlpha = 0.25;
      c.fillRect(x - 0.5, y + size, 1, u.bbox.top + u.bbox.height - y - size);
      c.globalAlpha = 1;
    });
    c.restore();
  }

  function makePlot() {
    plot?.destroy();
    plot = new uPlot({
      width: $("plot").clientWidth || 600,
      height: 240,
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.15)] }, loss: { range: (_, __, max) => [0, Math.max(0.1, max * 3)] } },
      axes: [
        { ...axis, values: (_u, all, _axis, _space, step) => all.map((v) => time(v, step)) },
        { ...axis, size: 94, values: (_, all) => all.map((v) => rate(v)) },
        { ...axis, side: 1, scale: "loss", size: 50, grid: { show: false }, values: (_, all) => all.map((v) => (v > 1 ? "" : `${Math.round(v * 100)} %`)) },
      ],
      series: [
        {},
        { label: "loss", scale: "loss", stroke: () => color("--bad"), width: 1, fill: () => color("--bad-back"), paths: uPlot.paths.stepped({ align: -1 }), points: { show: false } },
        { label: "allowed", stroke: () => color("--weak"), width: 1, dash: [6, 4], points: { show: false } },
        { label: "rate", stroke: () => color("--run"), width: 2, points: { show: false } },
      ],
      hooks: { draw: [drawCuts], setCursor: [(u) => reading(u.cursor.idx)] },
    }, data(), $("plot"));
  }

  function data() {
    return [points.map((p) => p.to), points.map((p) => p.loss), points.map((p) => p.allowed_bps), points.map((p) => p.rate_bps)];
  }

  function history(one) {
    points = one?.points ?? [];
    const drawn = `${one ? keyOf(one) : ""} ${points.length} ${points.at(-1)?.to}`;
    if ($("plot").dataset.drawn === drawn) return;
    $("plot").dataset.drawn = drawn;
    for (const key of document.querySelectorAll("#key .of-source")) key.hidden = one?.progress?.allowed_bps == null;
    if (plot) plot.setData(data());
    else makePlot();
    if (plot.cursor.idx == null) reading(null);
  }

  $("plot").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !plot || !points.length) return;
    event.preventDefault();
    const at = Math.min(points.length - 1, Math.max(0, (plot.cursor.idx ?? points.length - 1) + step));
    plot.setCursor({ left: plot.valToPos(points[at].to, "x"), top: 1 });
    reading(at);
  });
  new ResizeObserver(() => plot?.setSize({ width: $("plot").clientWidth, height: 240 })).observe($("plot"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot?.redraw(false));

  // ---- Content, relays, notes ----
  function content(one) {
    const now = one?.progress, total = now?.total_bytes;
    $("content-bar").hidden = !total;
    $("bar-words").hidden = !total;
    if (!total) return;
    const waited = [...one.receivers.values()].filter((r) => ["receiving", "done", "silent", "unreached"].includes(r.state));
    const all = one.end?.ok ? total : waited.length ? Math.min(...waited.map((r) => (r.state === "done" ? total : r.verified_bytes))) : state.command === "recv" ? now.bytes : 0;
    const sent = one.end?.ok || one.end?.verified > 0 ? total : now.bytes;
    $("bar-sent").style.width = `${100 * Math.min(1, sent / total)}%`;
    $("bar-all").style.width = `${100 * Math.min(1, all / total)}%`;
    const text = state.command === "recv" ? `${bytes(sent)} of ${bytes(total)} verified` : `${bytes(sent)} of ${bytes(total)} sent; ${bytes(Math.min(all, total))} verified by all receivers that are waited for`;
    put($("bar-words"), text);
    $("content-bar").setAttribute("aria-label", text);
  }

  function relays(one) {
    const list = one?.end?.relays ?? one?.progress?.relays ?? [];
    $("relays-part").hidden = list.length === 0;
    const drawn = JSON.stringify(list);
    if ($("relays").dataset.drawn === drawn) return;
    $("relays").dataset.drawn = drawn;
    const root = document.createElement("ul");
    const open = [root];
    for (const relay of list) {
      open.length = Math.max(1, Math.min(open.length, relay.depth));
      const li = document.createElement("li"), bar = document.createElement("progress"), below = document.createElement("ul");
      bar.max = Math.max(1, relay.receivers);
      bar.value = relay.done;
      bar.setAttribute("aria-hidden", "true");
      li.append(bar, ` ${relay.host}: ${relay.done} of ${plural(relay.receivers, "receiver")} done, ${rate(relay.rate_bps)} (${relay.address})`, below);
      open.at(-1).append(li);
      open.push(below);
    }
    $("relays").replaceChildren(...root.children);
    for (const empty of $("relays").querySelectorAll("ul:empty")) empty.remove();
  }

  function note(event) {
    switch (event.event) {
      case "slow": return `${event.host} can receive only ${rate(event.rate_bps)} (${event.action})`;
      case "left": return `${event.host} has left before it was complete (${event.reason ?? "no reason given"})`;
      case "other_source": return `${event.host} at ${event.address} also sends to this group; this host receives from ${event.followed}`;
      case "busy": return `${event.host} takes part in another session`;
      case "dropped": return `${plural(event.count, "event")} dropped: the output was not read in time`;
      default: return event.message ?? event.event;
    }
  }

  function notes(one) {
    const list = (one?.notes ?? []).slice(-30).map(note);
    $("notes-part").hidden = list.length === 0;
    items($("notes"), list.reverse());
  }

  function choices() {
    const all = [...sessions.values()];
    $("choose").hidden = all.length < 2;
    const drawn = all.map(keyOf).join();
    if ($("session").dataset.drawn !== drawn) {
      $("session").dataset.drawn = drawn;
      $("session").replaceChildren(...all.map((one) => new Option(`${state.network?.about.sessions[one.session - 1]?.name ?? one.session}${state.command === "relay" ? (one.branch == null ? " upstream" : ` branch ${one.branch + 1}`) : ""}`, keyOf(one))));
    }
    const one = current();
    if (one) $("session").value = keyOf(one);
  }

  $("session").addEventListener("change", () => { chosen = $("session").value; draw(); });

  const network = window.faircastNetwork({ $, put, rate, bytes, percent, time, grouped, plural, color, axis, marks });

  // ---- Drawing ----
  let due = false;
  function draw() {
    if (due) return;
    due = true;
    const now = () => { due = false; if (state && !paused) drawNow(); };
    if (document.hidden) setTimeout(now, 500);
    else requestAnimationFrame(now);
  }

  function drawNow() {
    const one = current();
    shown = one;
    const [title, sub] = headline(one);
    put($("headline"), title);
    put($("summary"), sub);
    put($("where"), `faircast ${state.command} on ${state.host}`);
    document.title = `${title} – faircast`;
    const live = state.report ? "report" : state.saved ? "saved" : state.ended ? "ended" : connected;
    put($("live"), live);
    $("live").dataset.live = live === "no connection" ? "no" : "yes";
    choices();
    receivers(one);
    content(one);
    history(one);
    network(state.network);
    limits(one);
    numbers(one);
    relays(one);
    report();
    notes(one);
    document.body.dataset.version = state.version;
  }

  // ---- Pause, save, updates ----
  $("pause").addEventListener("click", () => {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", String(paused));
    put($("pause"), paused ? "Resume" : "Pause");
    draw();
  });

  // The files are kept for "Save as HTML", because the server ends with the command.
  const files = new Map();
  function keepFiles() {
    for (const element of loaded.querySelectorAll("link[rel=stylesheet], script[src]")) {
      const name = element.getAttribute("href") ?? element.getAttribute("src");
      fetch(name).then((answer) => answer.text()).then((text) => files.set(name, text)).catch(() => {});
    }
  }

  function whole() {
    const all = [...sessions.values()].map((one) => ({ ...one, receivers: [...one.receivers.values()] }));
    return JSON.stringify({ ...state, after: 0, saved: true, ended: true, sessions: all }).replaceAll("<", "\\u003c");
  }

  function saved() {
    const copy = loaded.cloneNode(true);
    for (const link of copy.querySelectorAll("link[rel=stylesheet]")) {
      const style = document.createElement("style");
      style.textContent = files.get(link.getAttribute("href")) ?? "";
      link.replaceWith(style);
    }
    for (const script of copy.querySelectorAll("script[src]")) {
      const inner = document.createElement("script");
      inner.textContent = files.get(script.getAttribute("src")) ?? "";
      script.replaceWith(inner);
    }
    copy.querySelector("#state").textContent = whole();
    return `<!doctype html>\n${copy.outerHTML}`;
  }

  $("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([saved()], { type: "text/html" }));
    link.download = `faircast-${state.command.replaceAll(" ", "-")}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  function connect() {
    const events = new EventSource(`events?after=${state.run}-${state.version}`);
    events.onopen = () => { connected = "live"; draw(); };
    events.onmessage = (message) => {
      connected = "live";
      apply(JSON.parse(message.data));
      if (state.ended) events.close();
      draw();
    };
    events.onerror = () => { connected = "no connection"; draw(); };
  }

  apply(JSON.parse($("state").textContent));
  drawNow();
  if (state.saved) {
    $("save").hidden = true;
    $("pause").hidden = true;
  } else {
    keepFiles();
    if (!state.ended) connect();
  }
  window.faircast = { state: () => ({ ...state, sessions: [...sessions.values()] }), saved, shown: () => shown };
})();
