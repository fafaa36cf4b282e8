// Each iteration lists all pages as one of several users, drawn at random, whose tokens setup() gets by logging in.
import http from 'k6/http';
import { check } from 'k6';

const { request } = JSON.parse(open(__ENV.LOADSTONE));
const base = request.url.split('/').slice(0, 3).join('/');

export function setup() {
  const tokens = [];
  for (let user = 1; user <= Number(__ENV.USERS); user++) {
    const body = JSON.stringify({ username: `${__ENV.USERNAME_PREFIX}${user}`, password: __ENV.PASSWORD });
    const response = http.post(`${base}/v3-public/localProviders/local?action=login`, body, {
      headers: { 'Content-Type': 'application/json' },
      responseType: 'text',
    });
    tokens.push(response.json('token'));
  }
  return { tokens };
}

export default function ({ tokens }) {
  const token = tokens[Math.floor(Math.random() * tokens.length)];
  for (let page = 1; page <= Number(__ENV.PAGES); page++) {
    const response = http.get(`${request.url}?pagesize=${__ENV.PAGE_SIZE}&page=${page}`, {
      headers: { Authorization: `Bearer ${token}` },
      tags: { name: 'list' },
    });
    check(response, { 'status is 200': ({ status }) => status === 200 });
  }
}
