// One request per iteration: the one that standard input holds as JSON. Scenarios come from k6's configuration file.
import exec from 'k6/execution';
import http from 'k6/http';
import { SharedArray } from 'k6/data';

// Read once and kept once, however many users there are.
const [given] = new SharedArray('given', () => {
  const { request, draw, requests } = JSON.parse(open(__ENV.LOADSTONE));
  return [{ request, requests, drawn: Object.keys(draw) }];
});
const values = new SharedArray('values', () =>
  Object.entries(JSON.parse(open(__ENV.LOADSTONE)).draw).flatMap(([name, each]) => each.map((value) => ({ name, value }))),
);
const ranges = {};
values.forEach(({ name }, index) => {
  ranges[name] = [(ranges[name] || [index])[0], index + 1];
});

export default function () {
  // The request that is due as a scenario ends may or may not come: k6's timers race there.
  const most = given.requests[exec.scenario.name];
  if (most !== undefined && exec.scenario.iterationInTest >= most) {
    return;
  }
  const { method, url, body, timeout_ms } = given.request;
  const headers = { ...given.request.headers };
  for (const name of given.drawn) {
    const [first, end] = ranges[name];
    headers[name] = values[first + Math.floor(Math.random() * (end - first))].value;
  }
  // Each redirect that k6 follows counts as a request: more than were planned.
  http.request(method, url, body, { headers, timeout: timeout_ms, redirects: 0 });
}
