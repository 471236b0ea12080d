// Pieces that all views share.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { number, plural } from "./format.js";

const MARKS = {
  up: "●", connected: "●", asked: "◌", away: "○", down: "✕", "cut off": "?", slow: "▲", failed: "✕",
};
const TONES = {
  up: "ok", connected: "ok", asked: "quiet", away: "quiet", down: "bad", "cut off": "warn", slow: "warn", failed: "bad",
};

// A state is always a word; its colour and mark only repeat it.
export const Badge = ({ state, tone, children }) => html`
  <span class="badge ${tone ?? TONES[state] ?? "quiet"}">
    ${MARKS[state] && html`<span aria-hidden="true">${MARKS[state]} </span>`}${children ?? state}
  </span>`;

export const Filter = ({ text }) => html`<code class="filter">${text}</code>`;

export const Empty = ({ title, children }) => html`
  <div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}</div>`;

export const Problem = ({ text }) => text && html`<p class="problem" role="alert">${text}</p>`;

export const Panel = ({ title, id, aside, children, level = 2 }) => html`
  <section class="panel" aria-labelledby=${id}>
    <header class="panel-head">
      ${level === 2 ? html`<h2 id=${id}>${title}</h2>` : html`<h3 id=${id}>${title}</h3>`}
      ${aside && html`<div class="aside">${aside}</div>`}
    </header>
    ${children}
  </section>`;

// columns: [{ name, show(row), number, hint, wide }]. On a phone each row becomes a card, so roles are said outright.
export const Table = ({ caption, columns, rows, keyOf, after }) => html`
  <table role="table" class="rows">
    <caption>${caption}</caption>
    <thead role="rowgroup"><tr role="row">
      ${columns.map((column) => html`
        <th role="columnheader" scope="col" class=${column.number ? "number" : ""} title=${column.hint}>
          ${column.name}</th>`)}
    </tr></thead>
    <tbody role="rowgroup">
      ${rows.map((row) => html`
        <tr role="row" key=${keyOf(row)}>
          ${columns.map((column, at) => html`
            <${at === 0 ? "th" : "td"} role=${at === 0 ? "rowheader" : "cell"} scope=${at === 0 ? "row" : undefined}
              data-name=${column.name} class=${cellClass(column)}>
              <span class="cell">${column.show(row)}</span><//>`)}
        </tr>
        ${after?.(row)}`)}
    </tbody>
  </table>`;

const cellClass = (column) => [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ");

export const Pager = ({ found, onOffset, what = "row", many = `${what}s` }) => {
  if (!found || found.total <= found.limit && !found.offset) {
    return found ? html`<p class="count">${plural(found.total, what, many)}</p>` : null;
  }
  const last = Math.min(found.offset + found.limit, found.total);
  return html`
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled=${found.offset === 0}
        onClick=${() => onOffset(Math.max(0, found.offset - found.limit))}>Earlier</button>
      <span>${number(found.offset + 1)} to ${number(last)} of ${plural(found.total, what, many)}</span>
      <button type="button" disabled=${last >= found.total}
        onClick=${() => onOffset(found.offset + found.limit)}>Later</button>
    </nav>`;
};

export const More = ({ count, what }) => count > 0 && html`
  <p class="hint">${number(count)} more ${what} aren't looked at here.</p>`;

// A text that is asked about when the typing rests.
export function useRested(value, milliseconds = 300) {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}

export const Search = ({ label, value, onValue, hint }) => html`
  <label class="field search"><span>${label}</span>
    <input type="search" value=${value} placeholder=${hint} autocomplete="off" spellcheck=${false}
      onInput=${(event) => onValue(event.target.value)} /></label>`;

export const Choice = ({ label, value, onValue, options }) => html`
  <label class="field"><span>${label}</span>
    <select value=${value} onChange=${(event) => onValue(event.target.value)}>
      ${options.map(([key, name]) => html`<option value=${key} selected=${key === value}>${name}</option>`)}
    </select></label>`;

export const Owners = ({ names, count }) => html`
  <span class="owners">${names.slice(0, 3).join(", ")}${count > 3 && ` and ${number(count - 3)} more`}</span>`;
