/* The first part of DuckDB's worker: removes everything that could send a request, before any other code runs. */
"use strict";

for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "EventSource", "WebTransport", "importScripts", "Worker"]) {
  if (name in self) Object.defineProperty(self, name, { value: undefined, writable: false, configurable: false });
}
