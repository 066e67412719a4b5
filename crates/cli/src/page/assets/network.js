// The network of a simulation: rates of flows, and queues and losses of links, over time.
"use strict";
window.faircastNetwork = ({ $, put, rate, bytes, percent, time, grouped, plural, color, axis, marks }) => {
  const COLORS = ["--run", "--good", "--slow", "--bad", "--weak", "--text"];
  const MAX_LINKS = 6;
  const look = (at) => ({ stroke: () => color(COLORS[at % COLORS.length]), dash: at < COLORS.length ? undefined : [6, 4] });

  /// A plot with a line for each name, marks, and a text for the step at the cursor.
  function lines(id, { size, value, read, marked, mark }) {
    const box = $(id);
    let plot = null, steps = [], names = "", rows = [];
    const reading = (at) => put($(`${id}-reading`), steps.length ? `${time(steps[at ?? steps.length - 1].to)}: ${read(steps[at ?? steps.length - 1])}` : "no numbers yet");
    const drawMarks = (u) => rows.forEach((row, at) => marks(u, color(COLORS[at % COLORS.length]), steps.map((step, i) => (marked(step, row.place) ? [step.to, row.values[i]] : null))));
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || !plot || !steps.length) return;
      event.preventDefault();
      const at = Math.min(steps.length - 1, Math.max(0, (plot.cursor.idx ?? steps.length - 1) + step));
      plot.setCursor({ left: plot.valToPos(steps[at].to, "x"), top: 1 });
      reading(at);
    });
    new ResizeObserver(() => plot?.setSize({ width: box.clientWidth, height: 220 })).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot?.redraw(false));
    return (of, all) => {
      [steps, rows] = [all, of];
      const data = [steps.map((step) => step.to), ...rows.map((row) => row.values)];
      const drawn = rows.map((row) => row.name).join("\n");
      if (!plot || drawn !== names) {
        plot?.destroy();
        names = drawn;
        plot = new uPlot({
          width: box.clientWidth || 600, height: 220, legend: { show: false }, cursor: { y: false, drag: { x: true, y: false } },
          scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
          axes: [{ ...axis, values: (_u, values, _axis, _space, step) => values.map((v) => time(v, step)) }, { ...axis, size, values: (_, values) => values.map(value) }],
          series: [{}, ...rows.map((row, at) => ({ label: row.name, width: 2, points: { show: false }, ...look(at) }))],
          hooks: { draw: [drawMarks], setCursor: [(u) => reading(u.cursor.idx)] },
        }, data, box);
      } else plot.setData(data);
      if (plot.cursor.idx == null) reading(null);
      const key = JSON.stringify(rows.map((row) => row.words));
      if ($(`${id}-key`).dataset.drawn === key) return;
      $(`${id}-key`).dataset.drawn = key;
      const words = [...rows.map((row, at) => `${at < COLORS.length ? "━" : "┅"} ${row.words}`), `▼ ${mark}`];
      $(`${id}-key`).replaceChildren(...words.map((text, at) => {
        const span = document.createElement("span");
        span.className = at < rows.length ? `line-${at % COLORS.length}` : "line-4";
        span.textContent = text;
        return span;
      }));
    };
  }

  let network = null, chosen = [];
  const flows = lines("flows", {
    size: 94,
    value: (v) => rate(v),
    mark: "rate cut",
    marked: (step, place) => step.groups[place].cuts > 0,
    read: (step) => step.groups.map((group, at) => `${network.about.groups[at].name} ${rate(group.rate_bps)}${group.cuts ? `, ${plural(group.cuts, "cut")}` : ""}`).join("; "),
  });
  const queues = lines("queues", {
    size: 60,
    value: (v) => grouped(v),
    mark: "loss",
    marked: (step, place) => step.links[place].lost > 0,
    read: (step) => chosen.map((place) => `${network.about.links[place]} ${plural(step.links[place].packets, "packet")}${step.links[place].lost ? `, ${grouped(step.links[place].lost)} lost` : ""}`).join("; "),
  });

  /// The links, those with the most losses first, then those with the longest queues.
  function links(steps, last) {
    const longest = network.about.links.map(() => 0);
    for (const step of steps) step.links.forEach((link, at) => { longest[at] = Math.max(longest[at], link.packets); });
    const order = last.links.map((_, at) => at).sort((a, b) => last.links[b].all_lost - last.links[a].all_lost || longest[b] - longest[a] || a - b);
    chosen = order.filter((at) => longest[at] > 0 || last.links[at].all_lost > 0).slice(0, MAX_LINKS);
    $("links-part").hidden = order.length === 0;
    queues(chosen.map((place) => ({ place, name: network.about.links[place], words: `waiting packets, ${network.about.links[place]}`, values: steps.map((step) => step.links[place].packets) })), steps);
    $("links").replaceChildren(...order.map((at) => {
      const link = last.links[at], row = document.createElement("tr");
      const values = [
        ["link", network.about.links[at], network.about.links[at]], ["all_lost", link.all_lost, grouped(link.all_lost)],
        ["longest", longest[at], plural(longest[at], "packet")], ["packets", link.packets, `${plural(link.packets, "packet")} (${bytes(link.bytes)})`],
        ["used", link.used, percent(link.used)],
      ];
      row.append(...values.map(([name, value, text], place) => {
        const cell = document.createElement(place === 0 ? "th" : "td");
        cell.dataset.name = name;
        cell.dataset.value = value;
        cell.textContent = text;
        return cell;
      }));
      return row;
    }));
  }

  return (now) => {
    network = now;
    const steps = now?.steps ?? [], last = steps.at(-1);
    $("flows-part").hidden = !last;
    $("links-part").hidden = !last;
    if (!last || $("links").dataset.drawn === String(last.to)) return;
    $("links").dataset.drawn = String(last.to);
    flows(now.about.groups.map((group, place) => ({
      place, name: group.name, values: steps.map((step) => step.groups[place].rate_bps),
      words: `${group.name}${group.flows > 1 ? `, mean of ${group.flows} flows` : ""}: ${rate(last.groups[place].rate_bps)}`,
    })), steps);
    links(steps, last);
  };
};
