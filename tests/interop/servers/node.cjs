// Required before a server: it listens on the loopback address only, and says each request that it gets.
const { subscribe } = require("node:diagnostics_channel");
const { Server } = require("node:net");

const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
  const where = typeof port === "number" ? { port, host: "127.0.0.1" } : port;
  return listen.call(this, where, ...rest);
};
subscribe("http.server.request.start", ({ request }) => console.log(`REQUEST ${request.method} ${request.url}`));
