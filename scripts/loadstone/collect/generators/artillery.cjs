// Fills the variables of Artillery's one request in from JSON on standard input; some are drawn at random each time.
// Sets how it connects, too: Artillery has no options for that.
'use strict';

const { fixed, drawn, https, agent } = JSON.parse(require('node:fs').readFileSync(process.env.LOADSTONE, 'utf8'));

module.exports.fill = (request, context, events, next) => {
  Object.assign(context.vars, fixed);
  for (const [name, values] of Object.entries(drawn)) {
    context.vars[name] = values[Math.floor(Math.random() * values.length)];
  }
  request.https = https;
  Object.assign(context._httpAgent.options, agent);
  Object.assign(context._httpsAgent.options, agent);
  next();
};
