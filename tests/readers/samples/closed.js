import http from 'k6/http';
import { check } from 'k6';
export const options = {
  scenarios: {
    users: { executor: 'per-vu-iterations', vus: 3, iterations: 8 },
    others: { executor: 'per-vu-iterations', vus: 2, iterations: 4, startTime: '500ms' },
  },
};
export default function () {
  check(http.get('http://127.0.0.1:18431/a'), { 'status is 200': (r) => r.status === 200 });
}
