// A server or client for calc.thrift with Apache Thrift's Node.js library, used by foreign_test.go.
//
//     node apache.js server PORT TRANSPORT PROTOCOL KIND
//     node apache.js client PORT TRANSPORT PROTOCOL
//
// GENERATED is the directory with the generated code; NODE_PATH contains the library.
"use strict";

const assert = require("assert");
const thrift = require("thrift");
const Calculator = require(process.env.GENERATED + "/Calculator");
const Clock = require(process.env.GENERATED + "/Clock");
const types = require(process.env.GENERATED + "/calc_types");

const options = (transport, protocol) => ({
  transport: { buffered: thrift.TBufferedTransport, framed: thrift.TFramedTransport }[transport],
  protocol: { binary: thrift.TBinaryProtocol, compact: thrift.TCompactProtocol }[protocol],
});

function serve(port, transport, protocol) {
  let forgotten = 0;
  const handler = {
    ping: (result) => result(null),
    add: (a, b, result) => {
      const sum = a + b;
      if (sum !== (sum | 0)) {
        result(new types.Overflow({ what: String(sum) }));
        return;
      }
      // Every other answer is delayed, so answers overtake each other.
      if (sum % 2) setTimeout(() => result(null, sum), 1);
      else result(null, sum);
    },
    move: (point, by, result) => {
      for (const p of by) {
        point.x += p.x;
        point.y += p.y;
      }
      result(null, point);
    },
    echo: (text, result) => result(null, text === "forgotten" ? String(forgotten) : text),
    numbers: (count, result) => result(null, [...Array(count).keys()]),
    counts: (words, result) => {
      const all = {};
      for (const w of words) all[w] = (all[w] || 0) + 1;
      result(null, all);
    },
    forget: (id) => {
      forgotten += Number(id);
    },
    fail: (how, result) => result(new thrift.Thrift.TApplicationException(thrift.Thrift.TApplicationExceptionType.INTERNAL_ERROR, how)),
  };
  thrift.createServer(Calculator, handler, options(transport, protocol)).listen(port, "127.0.0.1");
}

async function call(port, transport, protocol) {
  const connection = thrift.createConnection("127.0.0.1", port, options(transport, protocol));
  const c = thrift.createClient(Calculator, connection);
  const sums = await Promise.all([...Array(100).keys()].map((i) => c.add(i, 1))); // concurrently
  assert.deepStrictEqual(sums, [...Array(100).keys()].map((i) => i + 1));
  await assert.rejects(c.add(2 ** 31 - 1, 1), (e) => e instanceof types.Overflow && e.what === "2147483648");
  const p = await c.move(new types.Point({ x: 1, y: 1, note: "n", blob: Buffer.from("blob") }), [new types.Point({ x: 2, y: 3 })]);
  assert.deepStrictEqual([p.x, p.y, p.note, p.blob.toString()], [3, 4, "n", "blob"]);
  for (const size of [0, 1, 70 << 10, 2 << 20]) assert.ok((await c.echo("x".repeat(size))) === "x".repeat(size));
  assert.deepStrictEqual((await c.numbers(3)).map(Number), [0, 1, 2]);
  assert.deepStrictEqual({ ...(await c.counts(["a", "b", "a"])) }, { a: 2, b: 1 });
  const before = Number(await c.echo("forgotten"));
  for (let i = 0; i < 10; i++) c.forget(5);
  await c.ping();
  assert.strictEqual(Number(await c.echo("forgotten")), before + 50);
  const kind = (type) => (e) => e instanceof thrift.Thrift.TApplicationException && e.type === type;
  await assert.rejects(c.fail("broken"), kind(thrift.Thrift.TApplicationExceptionType.INTERNAL_ERROR));
  connection.end();
  const other = thrift.createConnection("127.0.0.1", port, options(transport, protocol));
  await assert.rejects(thrift.createClient(Clock, other).now(), kind(thrift.Thrift.TApplicationExceptionType.UNKNOWN_METHOD));
  other.end();
}

const [role, port, transport, protocol] = process.argv.slice(2);
if (role === "server") serve(Number(port), transport, protocol);
else
  call(Number(port), transport, protocol).catch((e) => {
    console.error(e);
    process.exit(1);
  });
