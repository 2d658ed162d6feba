// Asks a gateway with node-redis and prints what its user gets, as JSON: see
// redis_client.py.
const { createClient } = require("redis");

const [port, username, password] = process.argv.slice(2);
// It tells why a try failed before the next one, and of the last try nothing.
const socket = { port: Number(port), host: "127.0.0.1", reconnectStrategy: (n) => (n === 0 ? 1 : new Error("no third try")) };

async function code(call) {
  try {
    await call();
  } catch (error) {
    return String(error.message).split(" ")[0];
  }
  return "none";
}

async function connected(options) {
  const client = createClient({ socket, ...options });
  let why;
  client.on("error", (error) => (why = error));
  try {
    await client.connect();
  } catch (error) {
    throw why ?? error;
  }
  return client;
}

(async () => {
  const r = await connected({ username, password, name: "library" });
  const flood = await Promise.all(Array.from({ length: 1000 }, (_, i) => r.get(`key:${String(i % 100).padStart(12, "0")}`)));
  const got = {
    ping: (await r.ping()) === "PONG",
    get: await r.get("depts:42"),
    missing: await r.get("depts:9999999"),
    mget: await r.mGet(["depts:42", "depts:9999999", "orders:emea:17"]),
    exists: await r.exists(["depts:42", "depts:9999999", "orders:emea:17"]),
    strlen: await r.strLen("depts:42"),
    ttl: await r.ttl("depts:42"),
    type: await r.type("depts:42"),
    role: /role:(\w+)/.exec(await r.info("replication"))[1],
    name: await r.clientGetName(),
    pipeline: await Promise.all([r.get("orders:emea:17"), r.get("depts:42"), r.exists("depts:42")]),
    flood: flood.filter((text, i) => JSON.parse(text).hits === i % 100).length,
    set: await code(() => r.set("depts:42", "x")),
    key: await code(() => r.get("depts:x")),
    resource: await code(() => r.get("nothing:1")),
    secret: await code(() => r.get("secrets:1")),
    transaction: await code(() => r.multi().get("depts:42").exec()),
    subscribe: await code(() => r.duplicate().connect().then(() => r.sendCommand(["SUBSCRIBE", "news"]))),
    password: await code(() => connected({ username, password: "wrong" })),
    nobody: await code(async () => (await connected({})).get("depts:42")),
  };
  console.log(JSON.stringify(got));
  process.exit(0);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
