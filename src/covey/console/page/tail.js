// The live tail: a temporary subscription, shown as it comes. What was shown longest ago goes first.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { ask, headers, problemOf, said } from "./api.js";
import { clock, number, plural } from "./format.js";
import { Badge, Empty, Panel, Problem } from "./parts.js";
import { Place } from "./playground.js";

const SHOWN = 200;
const DRAW_MILLISECONDS = 150;
const SAY_MILLISECONDS = 3000;

// Server-sent events by hand: EventSource can't send a token.
async function* parts(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
      const kind = lines.find((line) => line.startsWith("event: "))?.slice(7) ?? "message";
      if (data !== undefined) yield { kind, data: JSON.parse(data) };
    }
  }
}

class Stream {
  constructor(filter, onChange) {
    this.filter = filter;
    this.rows = [];
    this.number = 0;
    this.came = 0;
    this.gaps = 0;
    this.state = "opening";
    this.problem = null;
    this.stop = new AbortController();
    this.onChange = onChange;
    this.timer = null;
    this.run();
  }

  async run() {
    try {
      const response = await fetch(`v1/events?${new URLSearchParams({ filter: this.filter })}`,
        { headers: headers(), signal: this.stop.signal, cache: "no-store" });
      if (!response.ok) throw new Error(await problemOf(response));
      this.state = "open";
      this.draw();
      for await (const part of parts(response)) this.take(part);
      this.end("The stream ended.");
    } catch (error) {
      if (!this.stop.signal.aborted) this.end(said(error));
    }
  }

  take({ kind, data }) {
    if (kind === "closed") this.end(`The broker closed the stream: ${data.reason}`);
    else if (kind === "gap") {
      this.gaps += data.deliveries;
      this.push({ notice: `${plural(data.deliveries, "event")} lost: this page was too slow` });
    } else if (kind === "expired") this.end("The subscription's lease ended.");
    else {
      this.came += 1;
      this.push({ event: data });
    }
  }

  push(row) {
    this.number += 1;
    this.rows.unshift({ ...row, key: this.number, at: new Date() });
    this.rows.length = Math.min(this.rows.length, SHOWN);
    this.draw();
  }

  // The first reason counts.
  end(problem) {
    if (this.state === "ended") return;
    this.state = "ended";
    this.problem = problem;
    this.draw();
  }

  // Many events a second are one drawing.
  draw() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.onChange();
    }, DRAW_MILLISECONDS);
  }

  close() {
    this.stop.abort();
    clearTimeout(this.timer);
  }
}

const Row = ({ row }) => row.notice
  ? html`<li class="notice"><time>${clock(row.at)}</time> <${Badge} state="slow">gap<//> ${row.notice}</li>`
  : html`<li><time>${clock(row.at)}</time>
      <span class="publisher quiet">${row.event.publisher || "unknown"}</span>
      <code class="event">${JSON.stringify(row.event.attributes)}</code></li>`;

function useSpoken(text) {
  const [spoken, setSpoken] = useState("");
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    const timer = setInterval(() => setSpoken(latest.current), SAY_MILLISECONDS);
    return () => clearInterval(timer);
  }, []);
  return spoken;
}

export function Tail() {
  const [filter, setFilter] = useState("");
  const [problem, setProblem] = useState(null);
  const [held, setHeld] = useState(null);
  const stream = useRef(null);
  const [, redraw] = useState(0);
  useEffect(() => () => stream.current?.close(), []);
  const current = stream.current;
  const running = current && current.state !== "ended";

  const stop = () => {
    stream.current?.close();
    if (stream.current) stream.current.state = "ended";
    setHeld(null);
    redraw((count) => count + 1);
  };
  const start = async (event) => {
    event.preventDefault();
    stop();
    setProblem(null);
    try {
      // A filter that can't be read is told with its place, before anything is subscribed.
      const found = await ask("v1/console/playground", { body: { filter } });
      if (found.filter?.problem) return setProblem({ text: filter, problem: found.filter.problem });
      stream.current = new Stream(filter, () => redraw((count) => count + 1));
      redraw((count) => count + 1);
    } catch (error) {
      setProblem({ text: "", problem: { message: said(error) } });
    }
    return undefined;
  };
  // The subscription goes on meanwhile; only the page stands still.
  const pause = () => setHeld(held ? null : { rows: current.rows.slice(), came: current.came });

  const rows = held?.rows ?? current?.rows ?? [];
  const waiting = held ? current.came - held.came : 0;
  const words = !current ? "" : `${plural(current.came, "event")} came${current.gaps ? `, ${number(current.gaps)} lost` : ""}${held ? ", paused" : ""}`;
  const spoken = useSpoken(words);
  return html`
    <p class="lead">Events that match a filter, as they are published anywhere in the overlay. This is a subscription that
      ends with the tail; other clients don't notice.</p>
    <${Panel} title="Tail" id="tail" aside=${current && html`<span>
        ${running ? html`<${Badge} state=${held ? "away" : "up"}>${held ? "paused" : current.state === "open" ? "listening" : "opening"}<//>` : html`<${Badge}>stopped<//>`}
        <span class="quiet"> ${words}</span></span>`}>
      <form class="controls" onSubmit=${start}>
        <label class="field grow"><span>Filter</span>
          <input type="text" value=${filter} required spellcheck=${false} autocomplete="off" placeholder="price < 100"
            onInput=${(event) => setFilter(event.target.value)} /></label>
        <button type="submit" class="first">${running ? "Restart" : "Start"}</button>
        <button type="button" disabled=${!running} aria-pressed=${held !== null} onClick=${pause}>${held ? "Go on" : "Pause"}</button>
        <button type="button" disabled=${!running} onClick=${stop}>Stop</button>
      </form>
      ${problem && html`<${Place} ...${problem} />`}
      <${Problem} text=${current?.problem} />
      <p class="visually-hidden" role="status">${spoken}</p>
      ${held && waiting > 0 && html`<p class="hint">${plural(waiting, "newer event")} since the pause.</p>`}
      ${rows.length
        ? html`<ol class="tail" reversed aria-label="Events, the latest first" tabindex="0">${rows.map((row) => html`<${Row} key=${row.key} row=${row} />`)}</ol>
          ${rows.length >= SHOWN && html`<p class="hint">The latest ${SHOWN} are shown.</p>`}`
        : html`<${Empty} title=${running ? "Listening; nothing has come yet" : "Nothing is listened to"}>
            ${running ? html`Publish something that matches: <code>covey pub '${"{"}"price": 42${"}"}'</code>`
              : html`Write a filter and press Start. <code>TRUE</code> asks for everything.`}<//>`}
    <//>`;
}
