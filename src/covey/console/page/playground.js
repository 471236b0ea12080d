// The playground: a filter, an event, another filter; what they mean, and where the event would go.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask, said } from "./api.js";
import { number, plural } from "./format.js";
import { Badge, Choice, Empty, Filter, Owners, Panel, Problem, useRested } from "./parts.js";

const EXAMPLE = {
  filter: "company = 'IBM' AND (price < 150 OR volume >= 1000)",
  event: '{"company": "IBM", "price": 142.5}',
  other: "company = 'IBM' AND price < 100",
};
const DIALECTS = ["sql", "json", "cesql", "jms", "amqp", "eventbridge", "sigma"];
const TRUTHS = { true: ["✓", "true", "ok"], false: ["✗", "false", "bad"], null: ["?", "unknown", "warn"] };

// The line of a text around a position, with the place marked.
export function Place({ text, problem }) {
  if (problem.position === undefined || problem.position === null) {
    return html`<p class="problem" role="alert">${problem.message}</p>`;
  }
  const signs = [...text];
  const at = problem.position;
  const start = signs.lastIndexOf("\n", at - 1) + 1;
  const next = signs.indexOf("\n", at);
  const line = signs.slice(start, next < 0 ? signs.length : next);
  const column = at - start;
  return html`
    <div class="problem" role="alert">
      <p>${problem.message} <span class="quiet">(character ${at + 1})</span></p>
      <pre class="place">${line.slice(0, column).join("")}<mark>${line[column] ?? " "}</mark>${line.slice(column + 1).join("")}</pre>
    </div>`;
}

// Steps with a depth become a nested list.
function nested(steps) {
  const root = { children: [] };
  const way = [root];
  for (const step of steps) {
    const node = { ...step, children: [] };
    way.length = step.depth + 1;
    way[step.depth].children.push(node);
    way.push(node);
  }
  return root.children;
}

function Tree({ nodes, label }) {
  return html`<ul class="tree" aria-label=${label}>${nodes.map((node) => html`<li>
    <${Step} step=${node} />${node.children.length > 0 && html`<${Tree} nodes=${node.children} />`}</li>`)}</ul>`;
}

function Step({ step }) {
  if (step.truth === undefined) return html`<code class="filter">${step.text}</code>`;
  const [mark, word, tone] = TRUTHS[String(step.truth)];
  return html`<span class=${`truth ${tone}`}><span aria-hidden="true">${mark}</span><span class="visually-hidden">${word}: </span></span>
    <code class="filter">${step.text}</code>${step.note && html` <span class="quiet">${step.note}</span>`}`;
}

function Verdict({ found, filter }) {
  const problem = found.filter?.problem;
  if (problem) return html`<${Place} text=${filter} problem=${problem} />`;
  if (found.event?.problem) return html`<p class="problem" role="alert">The event is ${found.event.problem.message}</p>`;
  if (!found.filter) return html`<${Empty} title="Write a filter">It is an SQL condition, such as <code>price < 10</code>.<//>`;
  const { explanation } = found;
  return html`
    ${explanation
      ? html`<p class="verdict"><${Badge} tone=${explanation.matched ? "ok" : "bad"}>${explanation.matched ? "✓ matches" : "✗ does not match"}<//>
          ${" "}${!explanation.matched && explanation.reason}</p>
        <${Tree} nodes=${nested(explanation.steps)} label="Each part of the filter and its truth" />`
      : html`<p class="quiet">Write an event to see whether it matches. This is how the filter was read:</p>
        <${Tree} nodes=${nested(found.filter.parts)} label="The filter's parts" />`}
    <p class="hint">Names ${found.filter.attributes.map((name, at) => html`${at > 0 && ", "}<code>${name}</code>`)};
      semantics ${found.semantics}.${found.filter.normal && html` In short: <${Filter} text=${found.filter.normal} />`}</p>`;
}

const Listed = ({ title, rows, count, empty }) => html`
  <div><h3>${title} <span class="badge quiet">${number(count)}</span></h3>
    ${rows.length
      ? html`<ul class="plain-list">${rows.map((row) => html`<li><${Filter} text=${row.filter} />
          <${Owners} names=${row.owners} count=${row.owned} /></li>`)}</ul>`
      : html`<p class="quiet">${empty}</p>`}
    ${count > rows.length && html`<p class="hint">${number(count - rows.length)} more.</p>`}
  </div>`;

function Related({ others, left_out: leftOut }) {
  return html`
    <div class="two">
      <${Listed} title="Covers" rows=${others.covers} count=${others.counts.covers} empty="None of the broker's subscriptions." />
      <${Listed} title="Covered by" rows=${others.covered_by} count=${others.counts.covered_by}
        empty="None of the broker's subscriptions." />
    </div>
    <p class="hint">Compared with ${number(others.compared)} of ${plural(others.of + leftOut, "filter")} at this broker.</p>`;
}

const Shown = ({ name, event }) => event && html`<div><dt>${name}</dt><dd><code class="filter">${JSON.stringify(event)}</code></dd></div>`;

function Relation({ relation, other }) {
  if (relation.problem) return html`<${Place} text=${other} problem=${relation.problem} />`;
  return html`
    <p class="verdict">${relation.sentence[0].toUpperCase() + relation.sentence.slice(1)}</p>
    <dl class="examples">
      <${Shown} name="Matches both" event=${relation.both} />
      <${Shown} name="Matches the filter only" event=${relation.only_filter} />
      <${Shown} name="Matches the other only" event=${relation.only_other} />
    </dl>`;
}

function Hops({ route, name, seen = new Set() }) {
  const passage = route.passages[name];
  if (!passage) return html`<p class="quiet">${name} didn't say in time.</p>`;
  const here = new Set([...seen, name]);
  return html`
    <ul class="tree hops" aria-label=${`Next hops at ${name}`}>
      ${passage.clients.map((one) => html`<li><span class="truth ok" aria-hidden="true">→</span> client <strong>${one.client}</strong>
        <ul class="tree">${Object.entries(one.subscriptions).map(([id, text]) => html`<li><${Filter} text=${text} /> <span class="quiet">${id}</span></li>`)}
          ${one.matched > Object.keys(one.subscriptions).length && html`<li class="quiet">and more, ${number(one.matched)} in all</li>`}</ul></li>`)}
      ${passage.links.filter((one) => one.peer !== passage.source).map((one) => html`<li>
        <span class=${`truth ${one.goes ? "ok" : "quiet"}`} aria-hidden="true">${one.goes ? "→" : "✗"}</span>
        <span class="visually-hidden">${one.goes ? "goes to " : "does not go to "}</span>broker <strong>${one.peer}</strong>
        <span class="quiet"> ${one.why}</span>
        ${one.matched > 0 && html`<ul class="tree">${Object.values(one.entries).map((text) => html`<li><${Filter} text=${text} /></li>`)}</ul>`}
        ${one.goes && !here.has(one.peer) && html`<${Hops} route=${route} name=${one.peer} seen=${here} />`}</li>`)}
      ${!passage.clients.length && passage.links.every((one) => !one.goes) && html`<li class="quiet">Nobody here asks for it.</li>`}
    </ul>`;
}

function useAnswers(question) {
  const [state, setState] = useState({ found: null, route: null, error: null });
  const key = JSON.stringify(question);
  useEffect(() => {
    const stop = new AbortController();
    const look = async () => {
      try {
        const found = await ask("v1/console/playground", { body: question, signal: stop.signal });
        setState((before) => ({ ...before, found, question, error: null }));
        const route = found.event && !found.event.problem
          ? await ask("v1/console/route", { body: { event: question.event }, signal: stop.signal }) : null;
        setState((before) => ({ ...before, route }));
      } catch (error) {
        if (!stop.signal.aborted) setState((before) => ({ ...before, error: said(error) }));
      }
    };
    look();
    return () => stop.abort();
  }, [key]);
  return state;
}

const Area = ({ label, value, onValue, rows, hint }) => html`
  <label class="field grow"><span>${label}</span>
    <textarea rows=${rows} value=${value} spellcheck=${false} autocomplete="off" placeholder=${hint}
      onInput=${(event) => onValue(event.target.value)}></textarea></label>`;

export function Playground() {
  const [filter, setFilter] = useState(EXAMPLE.filter);
  const [dialect, setDialect] = useState("sql");
  const [event, setEvent] = useState(EXAMPLE.event);
  const [other, setOther] = useState(EXAMPLE.other);
  const question = useRested(JSON.stringify({ filter, dialect, event, other }));
  const { found, route, error, question: asked } = useAnswers(JSON.parse(question));
  return html`
    <p class="lead">Nothing is subscribed or published here. Answers follow what you type.</p>
    <div class="split">
      <${Panel} title="Question" id="question">
        <${Area} label="Filter" rows="3" value=${filter} onValue=${setFilter} hint="price < 10" />
        <${Choice} label="Written in" value=${dialect} onValue=${setDialect} options=${DIALECTS.map((name) => [name, name])} />
        <${Area} label="Event (JSON)" rows="4" value=${event} onValue=${setEvent} hint=${'{"price": 5}'} />
        <${Area} label="Another filter, to compare with" rows="2" value=${other} onValue=${setOther} hint="price < 20" />
        <${Problem} text=${error} />
      <//>
      <${Panel} title="Does it match?" id="verdict">
        <div aria-live="polite" id="answer">${found && html`<${Verdict} found=${found} filter=${asked.filter} />`}</div>
      <//>
    </div>
    <div class="split">
      ${found?.others && html`<${Panel} title="This broker's subscriptions" id="related"><${Related} ...${found} /><//>`}
      ${found?.other && html`<${Panel} title="The two filters" id="relation"><${Relation} relation=${found.other} other=${asked.other} /><//>`}
    </div>
    ${route && html`<${Panel} title="Where the event would go" id="route">
      <p>Published at <strong>${route.broker}</strong> it would go:</p>
      <${Hops} route=${route} name=${route.broker} />
    <//>`}`;
}
