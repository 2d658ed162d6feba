// The dashboard requests the samples that it lacks from the gateway every second,
// and shows them. The gateway keeps ten minutes of samples; this page keeps its
// own copy, so that samples from before a restart stay on the screen.
import { Chart } from "./chart.js";
import * as format from "./format.js";
import { bars, list, meters, table, text } from "./tables.js";

const interval = 1000; // ms between two requests
const patience = 4000; // timeout of a request in ms
const kept = 600; // samples

const store = { columns: [], rows: [], instance: "", newest: 0 };
let lost = null; // when the gateway stopped answering, on the page's clock
let answered = null; // when it last answered
let lastNow = null; // the time of the gateway in its last answer
let range = 300000;

// column returns a function that reads one number of a row.
const column = (name) => {
  let from = null, i = -1;
  return (row) => {
    if (from !== store.columns) {
      from = store.columns;
      i = from.indexOf(name);
    }
    return i < 0 ? null : row[i];
  };
};

const shared = {
  at: null,
  ready: (row) => readyAt(row) !== 0,
  hover(at) {
    if (shared.at === at) return;
    shared.at = at;
    charts.forEach((c) => c.showMoment());
  },
  say: (words) => text("spoken", words),
};
const readyAt = column("ready");

const line = (label, style, name) => ({ label, style, value: column(name) });
const specs = [
  {
    title: "Requests per second", format: format.rate, axis: format.count, stacked: true, least: 4,
    series: [
      line("hit", "c-hit", "source:hit"), line("load", "c-load", "source:load"), line("joined", "c-joined", "source:joined"),
      line("stale", "c-stale", "source:stale"), line("other", "c-other", "source:other"),
      { ...line("5xx", "c-error", "errors"), line: true },
    ],
  },
  {
    title: "Latency", format: format.seconds, log: true, least: 1e-6, nothing: "no requests in this period",
    series: [line("p50", "c-p50", "p50"), line("p90", "c-p90", "p90"), line("p99", "c-p99", "p99"), line("p99.9", "c-p999", "p999")],
  },
  {
    title: "Freshness", format: format.seconds, least: 0.01, nothing: "no horizon: the stream has not started",
    series: [line("age of the horizon", "c-age", "horizon")],
    limit: { label: "promised", value: column("bound") },
  },
  {
    title: "Database and changes per second", format: format.rate, axis: format.count, least: 4,
    series: [line("statements", "c-load", "statements"), line("invalidations", "c-age", "events"), line("evictions", "c-stale", "evictions")],
  },
  {
    title: "Document memory", format: format.bytes, binary: true, least: 4096, stacked: true,
    series: [line("in use", "c-memory", "memory")],
    limit: { label: "budget", value: column("budget") },
  },
  {
    title: "Bytes out per second", format: format.byteRate, axis: format.bytes, binary: true, least: 1024, stacked: true,
    series: [line("bodies", "c-bytes", "bytes_out")],
  },
];
const charts = specs.map((spec) => new Chart(document.getElementById("charts"), spec, shared));

// remember adds the samples of a response to those of the page. Samples of a new
// process follow those of the previous one. If the clock was set back, the new
// samples replace those that are now in the future.
function remember(series, instance) {
  if (series.columns.join() !== store.columns.join()) {
    store.columns = series.columns;
    store.rows = [];
  }
  for (const row of series.rows) {
    while (store.rows.length && store.rows[store.rows.length - 1][0] >= row[0]) store.rows.pop();
    store.rows.push(row);
  }
  store.rows.splice(0, Math.max(store.rows.length - kept, 0));
  store.instance = instance;
  store.newest = series.newest;
}

// drawCharts shows the last minutes. While the gateway does not answer, the
// charts continue to scroll, with a growing gap.
function drawCharts() {
  if (lastNow == null) return;
  const to = lastNow + (lost == null ? 0 : performance.now() - answered);
  const from = to - range;
  const rows = store.rows.filter((r) => r[0] >= from);
  charts.forEach((c) => c.update(rows, from, to));
}

function showState(state, title, words, reasons) {
  document.body.dataset.state = state;
  text("state", title);
  text("state-text", words);
  list("reasons", reasons);
  document.title = `${title} · slipstream`;
}

function showNumbers(p) {
  const r = p.requests, l = r.latency;
  text("n-rate", format.rate(r.rate));
  text("n-errors", r.errors > 0 ? `${format.rate(r.errors)} answered with 5xx` : `${format.count(r.total)} since the start, no 5xx now`);
  document.getElementById("n-errors").className = r.errors > 0 ? "bad" : "";
  const idle = r.rate > 0 ? "not measured" : "no requests";
  text("n-p99", l ? format.seconds(l.p99) : idle);
  for (const q of ["p50", "p90", "p999"]) text(`n-${q}`, l ? format.seconds(l[q]) : format.none);
  text("n-hit", r.hit_ratio == null ? "no requests" : format.percent(r.hit_ratio));
  text("n-statements", `${format.rate(p.loads.statements).replace("/s", "")} statements per second, ${format.count(p.loads.in_flight)} keys loading`);
  const h = p.horizon;
  text("n-age", h.age == null ? "no horizon" : format.seconds(h.age));
  text("n-bound", h.bound == null ? "no resource has a promise" : `behind; promised: within ${format.seconds(h.bound)}`);
  const late = h.bound != null && (h.age == null || h.age > h.bound);
  document.getElementById("n-fresh").classList.toggle("alarm", late);
}

function showResources(p) {
  const words = { kept: "kept", none: "none, by age" };
  table("t-resources", p.resources.map((r) => [
    r.name,
    r.promise === "broken" ? { text: `broken: ${r.why}`, className: "bad wrap" } : { text: words[r.promise], className: r.promise === "kept" ? "good" : "" },
    format.seconds(r.bound),
    format.rate(r.rate),
    format.percent(r.hit_ratio),
    format.rate(r.statements),
    format.count(r.in_flight),
    format.rate(r.events),
    { text: format.count(r.failed), className: r.failed ? "bad" : "" },
    { text: r.unkept ? `${format.count(r.unkept)} (${r.on_stale})` : "0", className: r.unkept ? "bad" : "" },
  ]), "no resources");
}

function showFrontends(p) {
  table("t-frontends", p.frontends.map((f) => [
    f.name, f.engine, format.count(f.connections), format.rate(f.rate), format.percent(f.handed_over), format.bytes(f.unwritten),
    f.closes.map((c) => `${c.reason} ${format.count(c.count)}`).join(", ") || format.none,
  ]), "no data yet");
}

// budgets describes how each budget is shown. Above the share high, its bar is orange, and
// words returns the consequence.
const budgets = {
  client_memory: { label: "client memory", unit: format.bytes, high: 0.5, words: (share) => (share > 1 ? "connections are closed" : "slow readers are throttled") },
  large_answers: { label: "large answers", unit: format.bytes, high: 0.5, words: (share) => (share > 1 ? "the connection with the most is closed" : "slow readers get no more") },
  connections: { label: "connections", unit: format.count, high: 0.8, words: (share) => (share >= 1 ? "others are closed to make room" : "near the limit") },
  waiting: { label: "waiting for loads", unit: format.count, high: 0.8, words: (share) => (share >= 1 ? "more are refused" : "near the limit") },
  loading: { label: "loading batches", unit: format.bytes, high: 0.8, words: (share) => (share >= 1 ? "others wait" : "near the limit") },
  streams: { label: "HTTP/2 streams", unit: format.count, high: 0.8, words: (share) => (share >= 1 ? "more are refused" : "near the limit") },
  checks: { label: "tokens to check", unit: format.count, high: 0.8, words: (share) => (share >= 1 ? "the client with the most loses some" : "near the limit") },
  large_commands: { label: "large commands", unit: format.count, high: 0.8, words: (share) => (share >= 1 ? "more are refused" : "near the limit") },
  load_queue: { label: "load queue", unit: format.count, high: 0.8, words: (share) => (share >= 1 ? "the client with the most loses some" : "near the limit") },
};

function showBudgets(p) {
  meters("budgets", p.budgets.map((b) => {
    const { label, unit, high, words } = budgets[b.name];
    const share = b.limit ? b.used / b.limit : 0;
    const warning = share > high ? `: ${words(share)}` : "";
    return { text: `${b.frontend} ${label}: ${unit(b.used)} of ${unit(b.limit)} (${format.percent(share)})${warning}`.trim(), share, high, facts: [] };
  }));
  table("t-rules", p.rules.map((r) => [
    r.frontend || "all", r.rule, { text: r.effect, className: r.rate > 0 ? "bad" : "" }, format.rate(r.rate), format.count(r.total),
  ]), "no rule has throttled or closed anything");
}

function showTables(p) {
  showResources(p);
  showFrontends(p);
  showBudgets(p);
  table("t-sources", p.requests.sources.map((s) => {
    const l = s.latency || {};
    return [{ text: s.name, className: `mark c-${s.name}` }, format.rate(s.rate), ...["p50", "p90", "p99", "p999", "max"].map((q) => format.seconds(l[q]))];
  }), "no data yet");
  table("t-slowest", p.slowest.slice(0, 12).map((s) => [
    { text: `/${s.resource}/${s.key}`, className: "key" }, format.seconds(s.took), { text: s.source, className: `mark c-${s.source}` }, format.seconds(s.ago),
  ]), "no slow documents in the last five minutes");
  table("t-statuses", p.statuses.map((s) => [{ text: s.status, className: s.status >= "500" ? "bad" : "" }, format.rate(s.rate), format.count(s.count)]), "no answers yet");
  meters("memory", p.memory.map((m) => ({
    text: `${m.name}: ${format.bytes(m.bytes)} of ${format.bytes(m.budget)} (${format.percent(m.budget ? m.bytes / m.budget : null)})`,
    share: m.budget ? m.bytes / m.budget : 0,
    facts: [
      ["documents", format.count(m.documents)], ["of which for missing rows", format.count(m.missing)], ["forms (prepared HTTP headers)", format.bytes(m.form_bytes)],
      ["evicted since the start", format.count(m.evicted)], ["evictions", format.rate(m.evictions)], ["bytes out", format.byteRate(p.requests.bytes_out)],
    ],
  })));
}

function showFresh(f) {
  const prefix = f.at_most ? "≤ " : "";
  const value = (v) => (f.count ? prefix + format.seconds(v) : format.none);
  text("f-p50", f.count ? value(f.p50) : "no change yet");
  text("f-p99", value(f.p99));
  text("f-max", f.count && f.above ? `> ${format.seconds(f.max)}` : value(f.max));
  const most = Math.max(...f.buckets, 1);
  bars("f-bars", f.buckets.map((n, i) => ({
    label: f.bounds[i] == null ? "more" : `≤ ${format.seconds(f.bounds[i])}`, share: n / most, amount: format.count(n),
  })));
  text("f-note", "Time from a commit until every answer includes it, since the start. " +
    (f.at_most ? "At most: SQLite does not report when a change was committed, so the time is measured from the last poll that did not see it." :
      "Measured from the writing of the row, so the time until its transaction commits is included."));
}

function showLoads(p) {
  text("l-flight", format.count(p.loads.in_flight));
  text("l-statements", format.rate(p.loads.statements));
  text("l-loaded", format.rate(p.loads.loaded));
  text("l-failed", format.rate(p.loads.failed));
  text("l-events", format.rate(p.loads.events));
  text("l-connections", format.count(p.requests.connections));
  text("l-polls", format.count(p.horizon.poll_errors));
  text("l-voids", `${format.count(p.horizon.voids)} times`);
  text("l-stale", format.count(p.horizon.stale_served));
  document.getElementById("l-stale").className = p.horizon.stale_served ? "bad" : "";
  const notes = [];
  if (p.horizon.trouble) notes.push(`The last poll of the stream failed: ${p.horizon.trouble}.`);
  if (p.horizon.void_reason) notes.push(`Everything was last dropped because ${p.horizon.void_reason}.`);
  text("l-note", notes.join(" "));
  document.getElementById("l-note").hidden = !notes.length;
}

function show(p) {
  remember(p.series, p.instance);
  lastNow = p.now;
  if (!p.ready) showState("bad", "NOT READY", `the gateway should get no traffic: ${p.reasons.length} ${p.reasons.length === 1 ? "reason" : "reasons"}`, p.reasons);
  else if (p.horizon.stale_served) showState("warn", "READY", "but the canary found documents that were served older than promised", []);
  else showState("good", "READY", "every promise is kept", []);
  text("version", p.version ? `slipstream ${p.version}` : "slipstream");
  text("uptime", `up ${format.seconds(p.uptime)}`);
  showNumbers(p);
  showTables(p);
  showFresh(p.fresh);
  showLoads(p);
  drawCharts();
}

function showLost() {
  const since = (performance.now() - lost) / 1000;
  const words = `gateway not reachable for ${Math.max(Math.round(since), 1)} s`;
  showState("lost", "NOT REACHABLE", lastNow == null ? words : `${words}; the values below are from ${format.clock(lastNow)}`, []);
  drawCharts();
}

async function ask() {
  const query = new URLSearchParams({ instance: store.instance, since: store.newest });
  const response = await fetch(`dashboard.json?${query}`, { cache: "no-store", signal: AbortSignal.timeout(patience) });
  if (!response.ok) throw new Error(response.statusText);
  return response.json();
}

async function poll() {
  const begun = performance.now();
  let page = null;
  try {
    page = await ask();
  } catch {
    lost ??= answered ?? begun; // for any error, there are no new values
  }
  // The next request is sent regardless of the outcome of this one.
  setTimeout(poll, Math.max(interval - (performance.now() - begun), 100));
  if (page === null) return showLost();
  lost = null;
  answered = performance.now();
  show(page);
}

document.getElementById("range").addEventListener("change", (e) => {
  range = Number(e.target.value) * 1000;
  drawCharts();
});

document.getElementById("config").addEventListener("toggle", async (e) => {
  if (!e.target.open) return;
  try {
    const response = await fetch("config", { cache: "no-store", signal: AbortSignal.timeout(patience) });
    text("config-text", response.ok ? await response.text() : "the gateway does not show its configuration");
  } catch {
    text("config-text", "gateway not reachable");
  }
});

poll();
