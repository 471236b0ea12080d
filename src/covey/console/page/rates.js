// Counters become rates: the difference between two answers, over the time between them. What was before the page was
// loaded, the broker knows.

import { useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";

export const HISTORY = 300;
const SERIES = ["published", "delivered", "received", "sent"];

// What one broker's figures count, and when they were taken by the asked broker's clock.
function samples(overview) {
  const found = new Map();
  const put = (key, at, counts) => found.set(key, { at, ...counts });
  for (const { name, age, figures } of overview.brokers) {
    if (figures) {
      put(`broker ${name}`, overview.time - age, { published: figures.published, delivered: figures.delivered });
    }
  }
  const ages = new Map(overview.brokers.map((one) => [one.name, one.age]));
  for (const link of overview.links) {
    for (const [end, from, to] of [[link.at_a, link.a, link.b], [link.at_b, link.b, link.a]]) {
      if (end) put(`link ${from} ${to}`, overview.time - ages.get(from), { received: end.received, sent: end.sent });
    }
  }
  const ends = overview.links.flatMap((link) => [[link.at_a, link.a], [link.at_b, link.b]])
    .filter(([end, name]) => end && name === overview.broker).map(([end]) => end);
  const total = (name) => ends.reduce((sum, end) => sum + end[name], 0);
  put("neighbours", overview.time, { received: total("received"), sent: total("sent") });
  return found;
}

// A counter that went back was started anew: there is no rate then.
function difference(before, now) {
  const seconds = now.at - before.at;
  const rates = {};
  for (const name of SERIES) {
    if (name in now) rates[name] = now[name] >= before[name] ? (now[name] - before[name]) / seconds : null;
  }
  return rates;
}

// The rates of the broker's own samples, each over the time since the one before it.
function past({ counted, samples: rows }) {
  const found = rows.map(([at, ...counts]) => ({ at, ...Object.fromEntries(counted.map((name, place) => [name, counts[place]])) }));
  return found.slice(1).map((now, place) => ({ at: now.at, ...difference(found[place], now) }));
}

export function useRates(overview) {
  const kept = useRef({ before: new Map(), current: new Map(), history: [] });
  const [, redraw] = useState(0);
  useEffect(() => {
    // Without it the charts begin now; what keeps the broker from answering is said where its figures are asked for.
    ask("v1/console/history").then((found) => {
      const { history } = kept.current;
      history.unshift(...past(found).filter(({ at }) => !history.length || at < history[0].at));
      history.splice(0, history.length - HISTORY);
      redraw((count) => count + 1);
    }, () => {});
  }, []);
  useEffect(() => {
    if (!overview) return;
    const { before, current, history } = kept.current;
    const found = samples(overview);
    for (const [key, sample] of found) {
      const last = before.get(key);
      if (!last) before.set(key, sample);
      else if (sample.at - last.at > 0.3) {
        current.set(key, difference(last, sample));
        before.set(key, sample);
      }
    }
    for (const key of [...before.keys()]) {
      if (!found.has(key)) {
        before.delete(key);
        current.delete(key);
      }
    }
    const own = current.get(`broker ${overview.broker}`);
    if (own) {
      history.push({ at: overview.time, ...own, ...current.get("neighbours") });
      if (history.length > HISTORY) history.shift();
    }
    redraw((count) => count + 1);
  }, [overview]);
  return kept.current;
}
