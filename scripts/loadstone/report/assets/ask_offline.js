/* The first part of DuckDB's worker: takes from it, before anything else runs, all that could ask a server. */
"use strict";

for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "EventSource", "WebTransport", "importScripts", "Worker"]) {
  if (name in self) Object.defineProperty(self, name, { value: undefined, writable: false, configurable: false });
}
