// Clients: who is there, what waits for them, whose leases end, and who is too slow.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { usePoll } from "./api.js";
import { duration, number } from "./format.js";
import { Badge, Choice, Empty, Filter, More, Pager, Panel, Problem, Search, Table, useRested } from "./parts.js";

const LOOK_SECONDS = 2;
const STATES = [["", "all"], ["slow", "slow"], ["away", "away"], ["connected", "connected"]];

function Claims({ client, table, title, empty }) {
  const [offset, setOffset] = useState(0);
  const { data, error } = usePoll("v1/console/claims", { client, table, offset }, LOOK_SECONDS);
  const columns = [
    { name: "Name", show: (row) => row.id },
    { name: "Filter", wide: true, show: (row) => html`<${Filter} text=${row.filter} />` },
    ...(table === "subscriptions" ? [{ name: "Hits", number: true, show: (row) => number(row.hits),
      hint: "Events that it matched since the broker was started" }] : []),
    { name: "Lasts", show: (row) => (row.durable ? "durable" : "while connected") },
    { name: "Lease", number: true, show: (row) => (row.left === null ? "none" : `${duration(row.left)} of ${duration(row.lease)}`) },
  ];
  if (data && !data.total && table === "advertisements") return null;
  return html`
    <${Problem} text=${error} />
    ${data && (data.total
      ? html`<${Table} caption=${title} columns=${columns} rows=${data.rows} keyOf=${(row) => row.id} />
        <${Pager} found=${data} onOffset=${setOffset} what=${table.slice(0, -1)} />`
      : html`<p class="quiet">${empty}</p>`)}
    <${More} count=${data?.more} what=${table} />`;
}

export function Clients() {
  const [search, setSearch] = useState("");
  const [state, setState] = useState("");
  const [offset, setOffset] = useState(0);
  const [open, setOpen] = useState(null);
  const q = useRested(search);
  useEffect(() => setOffset(0), [q, state]);
  const { data, error } = usePoll("v1/console/clients", { q, state, offset }, LOOK_SECONDS);
  const columns = [
    { name: "Client", show: (row) => html`
      <button type="button" class="disclose" aria-expanded=${open === row.client}
        onClick=${() => setOpen(open === row.client ? null : row.client)}>
        <span aria-hidden="true">${open === row.client ? "▾" : "▸"}</span> ${row.client}</button>` },
    { name: "State", show: (row) => html`<${Badge} state=${row.state} />` },
    { name: "Subscriptions", number: true, show: (row) => number(row.subscriptions) },
    { name: "Advertised", number: true, show: (row) => number(row.advertisements) },
    { name: "Queued", number: true, show: (row) => number(row.queued), hint: "Durable deliveries that aren't acknowledged" },
    { name: "Buffered", number: true, show: (row) => number(row.buffered), hint: "Other deliveries that wait for credit" },
    { name: "Credit", number: true, show: (row) => number(row.credit), hint: "Deliveries that it takes before it grants more" },
    { name: "Delivered", number: true, show: (row) => number(row.delivered), hint: "Since the broker was started" },
    { name: "Dropped", number: true, show: (row) => number(row.dropped), hint: "Lost in this session because it was too slow" },
    { name: "Next lease ends", number: true, show: (row) => (row.lease === null ? "–" : `in ${duration(row.lease)}`) },
  ];
  const details = (row) => open === row.client && html`
    <tr role="row" class="details" key=${`${row.client} details`}><td role="cell" colspan=${columns.length}>
      <${Claims} client=${row.client} table="subscriptions" title=${`Subscriptions of ${row.client}`}
        empty="It has no subscriptions." />
      <${Claims} client=${row.client} table="advertisements" title=${`Advertisements of ${row.client}`} />
    </td></tr>`;
  return html`
    <p class="lead">Slow is who has used up its credit while deliveries wait, or has lost some. Away is who is remembered
      for its durable subscriptions.</p>
    <${Panel} title="Clients of this broker" id="clients">
      <div class="controls">
        <${Search} label="Search names" value=${search} onValue=${setSearch} hint="ann" />
        <${Choice} label="State" value=${state} onValue=${setState} options=${STATES} />
      </div>
      <${Problem} text=${error} />
      ${data && (data.rows.length
        ? html`<${Table} caption="Slow ones first, then those that are away" columns=${columns} rows=${data.rows}
            keyOf=${(row) => row.client} after=${details} />
          <${Pager} found=${data} onOffset=${setOffset} what="client" />`
        : html`<${Empty} title=${q || state ? "No client fits" : "Nobody is connected"}>
            ${q || state ? "Search for something else." : html`Try <code>covey sub "price < 100"</code> in a terminal.`}<//>`)}
      <${More} count=${data?.more} what="clients" />
    <//>`;
}
