// Sends the requests on standard input with Node's http or fetch: see client.py for
// the form of the lines.
import { createHash } from "node:crypto";
import http from "node:http";
import { createInterface } from "node:readline";
import zlib from "node:zlib";

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function decode(coding, body) {
  if (body.length === 0) return body;
  if (coding === "gzip") return zlib.gunzipSync(body);
  if (coding === "zstd") return zlib.zstdDecompressSync(body);
  return body;
}

function byHTTP(method, url, fields) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers: fields, agent, timeout: 20_000 }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () => {
        const answered = Object.entries(answer.headers);
        resolve([answer.statusCode, answered, decode(answer.headers["content-encoding"], Buffer.concat(parts))]);
      });
    });
    request.on("timeout", () => request.destroy(new Error("no answer within 20 s")));
    request.on("error", reject);
    request.end();
  });
}

// fetch decodes by itself.
async function byFetch(method, url, fields) {
  const answer = await fetch(url, { method, headers: fields, redirect: "error", signal: AbortSignal.timeout(20_000) });
  return [answer.status, [...answer.headers.entries()], Buffer.from(await answer.arrayBuffer())];
}

if (process.argv[2] === "codings") {
  console.log(zlib.zstdDecompressSync ? "gzip zstd" : "gzip");
  process.exit(0);
}
const send = { http: byHTTP, fetch: byFetch }[process.argv[2]];
for await (const line of createInterface({ input: process.stdin })) {
  const [method, url, ...fields] = line.split("\t");
  const headers = Object.fromEntries(fields.map((f) => [f.slice(0, f.indexOf(": ")), f.slice(f.indexOf(": ") + 2)]));
  const [status, answered, body] = await send(method, url, headers);
  const hash = createHash("sha256").update(body).digest("hex");
  console.log([status, body.length, hash, ...answered.map(([name, value]) => `${name.toLowerCase()}: ${value}`)].join("\t"));
}
agent.destroy();
