// Asks for the paths on standard input with Node's http, https or http2: see client.py for
// the arguments and the lines.
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { createInterface } from "node:readline";

const [protocol, address, authority, certificate, key, apiKey] = process.argv.slice(2);
const headers = apiKey === "-" ? {} : { "x-api-key": apiKey };
const secrets = {};
if (authority !== "-") secrets.ca = fs.readFileSync(authority);
if (certificate !== "-") Object.assign(secrets, { cert: fs.readFileSync(certificate), key: fs.readFileSync(key) });

function collect(stream, resolve, reject, status) {
  const parts = [];
  stream.on("data", (part) => parts.push(part));
  stream.on("error", reject);
  stream.on("end", () => resolve(`${status()} ${Buffer.concat(parts)}`));
}

const module = authority === "-" ? http : https;
const agent = new module.Agent({ keepAlive: true, maxSockets: 1 });
const session = protocol === "h2" ? http2.connect(`https://${address}`, secrets) : undefined;
const fail = (error) => {
  console.error(error);
  process.exit(1);
};
session?.on("error", fail);

function ask(path) {
  return new Promise((resolve, reject) => {
    if (session) {
      let status;
      const stream = session.request({ ":path": path, ...headers });
      stream.on("response", (answered) => (status = answered[":status"]));
      collect(stream, resolve, reject, () => status);
      return;
    }
    const [host, port] = address.split(":");
    const where = address.startsWith("/") ? { socketPath: address } : { host, port };
    const request = module.request({ ...where, ...secrets, path, headers, agent, timeout: 20_000 }, (answer) =>
      collect(answer, resolve, reject, () => answer.statusCode));
    request.on("timeout", () => request.destroy(new Error("no answer within 20 s")));
    request.on("error", reject);
    request.end();
  });
}

for await (const path of createInterface({ input: process.stdin })) console.log(await ask(path).catch(fail));
session?.close();
agent.destroy();
