import http from 'k6/http';
import { check, group } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const orders = new Counter('orders'), depth = new Gauge('queue_depth'), sizes = new Trend('sizes'), good = new Rate('good');
const target = 'http://127.0.0.1:18431';
export const options = {
  scenarios: { steady: { executor: 'constant-arrival-rate', rate: 10, timeUnit: '1s', duration: '2s', preAllocatedVUs: 5 } },
  thresholds: {
    http_req_duration: ['p(95)<500', 'avg<1'], 'http_req_duration{expected_response:true}': ['med<400'],
    checks: ['rate>0.1'], http_reqs: ['count>10'],
  },
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)', 'count'],
};
export function setup() { http.post(`${target}/login`, 'user'); }
export default function () {
  const r = http.get(`${target}/a`);
  check(r, { 'status is 200': (r) => r.status === 200, 'is fast = 5ms': (r) => r.timings.duration < 5 });
  sizes.add(Math.random() * 1000); orders.add(2); depth.add(__ITER); good.add(r.timings.duration < 5);
  group('others', () => {
    if (__ITER % 3 === 0) http.get(`${target}/status/404`);
    group('deep', () => { if (__ITER % 5 === 0) http.get(`${target}/drop`); check(1, { 'one': (x) => x === 1 }); });
  });
}
export function teardown() { http.get(`${target}/bye`); }
