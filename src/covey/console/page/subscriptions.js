// The subscriptions by covering order: at the top what no other covers, under each what it covers.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { usePoll } from "./api.js";
import { number, plural } from "./format.js";
import { Empty, Filter, More, Owners, Pager, Panel, Problem, Search, useRested } from "./parts.js";

const LOOK_SECONDS = 10;

function Row({ row, level }) {
  const [open, setOpen] = useState(false);
  const has = row.covers === null || row.covers > 0;
  return html`
    <li>
      <div class="order-row">
        ${has
          ? html`<button type="button" class="disclose" aria-expanded=${open} onClick=${() => setOpen(!open)}>
              <span class="arrow" aria-hidden="true">${open ? "▾" : "▸"}</span>
              <span class="visually-hidden">What it covers: </span><${Filter} text=${row.filter} /></button>`
          : html`<span class="leaf"><span class="arrow" aria-hidden="true">·</span><${Filter} text=${row.filter} /></span>`}
        <span class="order-facts">
          ${has && html`<span class="badge quiet">covers ${row.covers === null ? "others" : number(row.covers)}</span>`}${" "}
          <${Owners} names=${row.owners} count=${row.owned} />
        </span>
      </div>
      ${open && html`<${Level} under=${row.key} level=${level + 1} of=${row.filter} />`}
    </li>`;
}

function Level({ under, level, q = "", of }) {
  const [offset, setOffset] = useState(0);
  useEffect(() => setOffset(0), [q]);
  const { data, error } = usePoll("v1/console/subscriptions", { under, q, offset }, LOOK_SECONDS);
  if (!data) return html`<${Problem} text=${error} /><p class="loading" role="status">Comparing…</p>`;
  if (!data.rows.length) {
    return under ? html`<p class="quiet">It covers nothing any more.</p>` : html`
      <${Empty} title=${q ? "No subscription fits" : "There are no subscriptions"}>
        ${q ? "Search for something else." : html`Try <code>covey sub "price < 100"</code> in a terminal.`}<//>`;
  }
  const label = of ? `Covered by ${of}` : q ? "Subscriptions found" : "Subscriptions that no other covers";
  return html`
    <${Problem} text=${error} />
    <ul class="order" aria-label=${label}>${data.rows.map((row) => html`<${Row} key=${row.key} row=${row} level=${level} />`)}</ul>
    ${(!under || data.total > data.limit) && html`<${Pager} found=${data} onOffset=${setOffset} what="filter" />`}
    ${!under && html`<p class="hint">${!q && "Nothing covers these. "}There are ${plural(data.filters, "distinct filter")} at this broker.</p>
      <${More} count=${data.more} what="subscriptions" />`}`;
}

export function Subscriptions() {
  const [search, setSearch] = useState("");
  const q = useRested(search);
  return html`
    <p class="lead">A filter covers another if every event that matches the other matches it too. Open one to see what it
      covers; clients' own subscriptions and those that neighbours told are ordered together.</p>
    <${Panel} title=${q ? "Search" : "By covering"} id="order">
      <div class="controls">
        <${Search} label="Search filters and owners" value=${search} onValue=${setSearch} hint="price" />
      </div>
      <${Level} under="" level=${0} q=${q} />
    <//>`;
}
