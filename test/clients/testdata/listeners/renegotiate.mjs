// Asks once over TLS 1.2, and then for another handshake on the same connection.
import fs from "node:fs";
import tls from "node:tls";

const [address, authority] = process.argv.slice(2);
const [host, port] = address.split(":");
const socket = tls.connect({ host, port, ca: fs.readFileSync(authority), maxVersion: "TLSv1.2" });
const end = (what) => {
  console.log(what);
  process.exit(0);
};
setTimeout(() => end("nothing happened"), 30_000);
socket.once("secureConnect", () => socket.write("GET /r0/42 HTTP/1.1\r\nHost: localhost\r\n\r\n"));
socket.once("data", () => {
  console.log("answered in", socket.getProtocol());
  socket.on("close", () => end("refused"));
  if (!socket.renegotiate({}, (error) => end(error ? "refused" : "renegotiated"))) end("not tried");
});
socket.on("error", () => end("refused"));
