// Readable numbers. Every function returns an en dash for null.

export const none = "–";

// digits returns two to three significant digits: 0.04, 1.2, 12.3, 123.
function digits(v) {
  const a = Math.abs(v);
  if (a === 0) return "0";
  if (a < 0.095) return v.toPrecision(1);
  if (a < 99.95) return v.toFixed(1).replace(/\.0$/, "");
  return v.toFixed(0);
}

function scaled(v, base, units) {
  let i = 0;
  // 999.6 would be shown as 1000: it belongs to the next unit.
  while (Math.abs(v) >= base * 0.9995 && i < units.length - 1) {
    v /= base;
    i++;
  }
  return digits(v) + units[i];
}

export const count = (v) => (v == null ? none : scaled(v, 1000, ["", "k", "M", "G", "T"]));

export const rate = (v) => (v == null ? none : count(v) + "/s");

export const bytes = (v) => (v == null ? none : scaled(v, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]));

export const byteRate = (v) => (v == null ? none : bytes(v) + "/s");

// seconds formats a duration: 870 ns, 12 µs, 3.4 ms, 1.2 s, 5 min, 3.1 h, 4 d.
export function seconds(v) {
  if (v == null) return none;
  const a = Math.abs(v);
  if (a === 0) return "0 s";
  if (a < 0.9995e-6) return digits(v * 1e9) + " ns";
  if (a < 0.9995e-3) return digits(v * 1e6) + " µs";
  if (a < 0.9995) return digits(v * 1e3) + " ms";
  if (a < 120) return digits(v) + " s";
  if (a < 7200) return digits(Math.floor(v / 60)) + " min";
  if (a < 172800) return digits(v / 3600) + " h";
  return digits(v / 86400) + " d";
}

// percent keeps the digits that matter near 100: 99.97 %, 94.5 %.
export function percent(v) {
  if (v == null) return none;
  const p = v * 100;
  if (p === 100 || p === 0) return p + " %";
  if (p > 100) return p.toFixed(0) + " %";
  if (p > 99) return Math.min(p, 99.99).toFixed(2) + " %";
  return p.toFixed(1) + " %";
}

const clockFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minuteFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

export const clock = (ms) => clockFormat.format(ms);
export const minute = (ms) => minuteFormat.format(ms);
