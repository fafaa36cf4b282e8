/* loadstone.contrast(baseline, other, how): the difference of two series from their bootstrap replicates, with intervals.
 *
 * The formulas are those of loadstone/stats/contrasts.py and bootstrap.py; methods.html explains them. A series is
 * { value, requests, runs, draws, within }: a figure (ns or a share), the numbers of requests and runs behind it, and two
 * arrays of replicates. `how` has confidence (a share), paired, isShare, step (ns, of the coarsest clock) and pooled
 * ({ oneRun, freedom } of the pooled standard error, where tables have this pair). Returns { shift, ratio }, each
 * [low, high]; the ratio of shares has no interval. null: there is none, since a latency is 0.
 */
window.loadstone = window.loadstone || {};
(function () {
  "use strict";

  const LEAST_SHARE = 1 / 4; // the least total variance, as a share of that within runs: _LEAST_SHARE of bootstrap.py
  const sum = (values) => values.reduce((total, each) => total + each, 0);

  // --- Student's t -------------------------------------------------------------------------------------------------------

  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];

  function logGamma(x) {
    const base = x + 6.5;
    const series = LANCZOS.reduce((total, each, at) => (at ? total + each / (x - 1 + at) : each), 0);
    return Math.log(2 * Math.PI) / 2 + (x - 0.5) * Math.log(base) - base + Math.log(series);
  }

  /** The regularized incomplete beta function, by its continued fraction (Lentz's method). */
  function incompleteBeta(x, a, b) {
    if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
    const factor = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
    const away = (value) => (Math.abs(value) < 1e-300 ? 1e-300 : value);
    let c = 1, d = 1 / away(1 - ((a + b) * x) / (a + 1)), fraction = d;
    for (let m = 1; m < 1000; m += 1) {
      let step = 1;
      for (const each of [
        (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
        (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
      ]) {
        d = 1 / away(1 + each * d);
        c = away(1 + each / c);
        step = c * d;
        fraction *= step;
      }
      if (Math.abs(step - 1) < 1e-15) break;
    }
    return factor * fraction;
  }

  /** The half width of an interval in standard errors, by bisection: beyond it on both sides lies 1 - confidence. */
  function tFactor(confidence, freedom) {
    const beyond = (t) => incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5);
    let low = 0, high = 1;
    while (beyond(high) > 1 - confidence) high *= 2;
    for (let step = 0; step < 80; step += 1) {
      const middle = (low + high) / 2;
      if (beyond(middle) > 1 - confidence) low = middle; else high = middle;
    }
    return (low + high) / 2;
  }

  // --- Standard errors -----------------------------------------------------------------------------------------------------

  function variance(values) {
    const mean = sum(values) / values.length;
    return sum(values.map((each) => (each - mean) ** 2)) / (values.length - 1);
  }

  /** The squared standard error of a figure from its replicates. */
  function squaredError(draws, within, runs) {
    const noise = variance(within);
    return Math.max(((variance(draws) - noise) * runs) / (runs - 1), noise * LEAST_SHARE);
  }

  /** Of a difference: its standard error, degrees of freedom, and the error with one run of each. `least` are variances. */
  function spread([one, other], least, paired) {
    if (paired) {
      const minus = (name) => other[name].map((each, at) => each - one[name][at]);
      const squared = Math.max(squaredError(minus("draws"), minus("within"), one.runs), sum(least));
      return { error: Math.sqrt(squared), freedom: one.runs - 1, oneRun: Math.sqrt(squared * one.runs) };
    }
    const sides = [one, other], sizes = sides.map((side) => side.runs);
    const variances = sides.map((side, at) => Math.max(squaredError(side.draws, side.within, side.runs), least[at]));
    const most = sizes[0] === sizes[1] ? sum(sizes) - 2 : Math.min(...sizes) - 1;
    const below = sum(variances.map((each, at) => each ** 2 / (sizes[at] - 1)));
    return {
      error: Math.sqrt(sum(variances)),
      freedom: below ? Math.min(sum(variances) ** 2 / below, most) : most,
      oneRun: Math.sqrt(sum(variances.map((each, at) => each * sizes[at]))),
    };
  }

  /** The binomial variance of each side's share if both sides are equal. */
  function ofShares(sides) {
    const share = sum(sides.map((side) => side.value * side.requests)) / Math.max(sum(sides.map((side) => side.requests)), 1);
    return sides.map((side) => (share * (1 - share)) / Math.max(side.requests, 1));
  }

  // --- The difference ------------------------------------------------------------------------------------------------------

  const logarithms = (side) => ({ ...side, draws: side.draws.map(Math.log), within: side.within.map(Math.log) });

  window.loadstone.contrast = function contrast(baseline, other, { confidence, paired, isShare, step, pooled }) {
    const sides = [baseline, other].map((side) => ({ ...side, draws: [...side.draws], within: [...side.within] }));
    const shift = other.value - baseline.value;
    const around = (value, { error, freedom }, rounding) => {
      const reach = tFactor(confidence, freedom) * Math.hypot(error, Math.sqrt(rounding));
      return [value - reach, value + reach];
    };
    if (isShare) return { shift: around(shift, spread(sides, ofShares(sides), paired), 0), ratio: null };
    if (!sides.every((side) => side.value > 0 && [...side.draws, ...side.within].every((each) => each > 0))) return null;
    let plain = spread(sides, [0, 0], paired), scaled = spread(sides.map(logarithms), [0, 0], paired);
    if (pooled && scaled.oneRun) {
      const factor = pooled.oneRun / scaled.oneRun, more = pooled.freedom / scaled.freedom;
      [plain, scaled] = [plain, scaled].map((each) => ({ error: each.error * factor, freedom: each.freedom * more }));
    }
    return {
      shift: around(shift, plain, (2 * step ** 2) / 12),
      ratio: around(Math.log(other.value / baseline.value), scaled, sum(sides.map((side) => (step / side.value) ** 2)) / 12).map(Math.exp),
    };
  };
})();
