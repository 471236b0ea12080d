// The routing tables: what each neighbour told, what it is told, and what became of everything else on the way.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { usePoll } from "./api.js";
import { hop, number } from "./format.js";
import { Badge, Choice, Empty, Filter, More, Pager, Panel, Problem, Search, Table, useRested } from "./parts.js";

const FATES = {
  forwarded: ["forwarded", "ok"],
  identity: ["identical", "quiet"],
  covering: ["covered", "quiet"],
  subsumption: ["subsumed", "quiet"],
  merging: ["merged", "quiet"],
  advertisements: ["not advertised", "quiet"],
};
const WHY = {
  forwarded: "The neighbour knows it as it is.",
  identity: "An equal filter was there before.",
  covering: "Another filter covers it.",
  subsumption: "Others together cover it.",
  merging: "It is part of a merger.",
  advertisements: "Nothing that overlaps it is advertised there.",
};
const STRATEGIES = {
  flooding: "Flooding: neighbours are told nothing and get every event.",
  simple: "Simple: neighbours are told every subscription.",
  identity: "Identity: equal filters are told once.",
  covering: "Covering: a filter that another one covers is not told.",
  subsumption: "Subsumption: a filter that others together cover is not told.",
  merging: "Merging: filters are told as mergers of several.",
};
const LOOK_SECONDS = 3;

function Summary({ links, table }) {
  const of = (link) => link.tables[table];
  const fate = (name) => ({
    name: FATES[name][0][0].toUpperCase() + FATES[name][0].slice(1), number: true, hint: WHY[name],
    show: (link) => number(of(link).fates[name] ?? 0),
  });
  const columns = [
    { name: "Neighbour", show: (link) => html`<strong>${link.peer}</strong>` },
    { name: "State", show: (link) => html`<${Badge} state=${link.open ? "up" : "down"} />
      ${!link.in_tree && html` <${Badge}>spare<//>`}${!link.filtering && html` <${Badge} tone="warn">unfiltered<//>`}` },
    { name: "Received", number: true, show: (link) => number(of(link).heard), hint: "Entries that the neighbour has told" },
    { name: "Pruned", number: true, show: (link) => number(of(link).pruned), hint: "Of those, matched by a smaller filter" },
    { name: "Candidates", number: true, show: (link) => number(of(link).entries), hint: "Entries of all other hops" },
    { name: "Told", number: true, show: (link) => number(of(link).told), hint: "Filters that the neighbour knows from here" },
    ...["identity", "covering", "subsumption", "merging", "advertisements"].map(fate),
  ];
  return html`<${Table} caption=${`${table === "subscriptions" ? "Subscriptions" : "Advertisements"} by neighbour`}
    columns=${columns} rows=${links} keyOf=${(link) => link.peer} />`;
}

function Told({ peer, table }) {
  const [search, setSearch] = useState("");
  const [fate, setFate] = useState("");
  const [offset, setOffset] = useState(0);
  const q = useRested(search);
  useEffect(() => setOffset(0), [peer, table, q, fate]);
  const { data, error } = usePoll("v1/console/routes/told", { peer, table, q, fate, offset }, LOOK_SECONDS);
  const columns = [
    { name: "Filter", wide: true, show: (row) => html`<${Filter} text=${row.filter} />` },
    { name: "From", show: (row) => hop(row.from) },
    { name: "Fate", hint: "What became of it", show: (row) => html`
      <${Badge} tone=${FATES[row.fate][1]}>${FATES[row.fate][0]}<//>` },
    { name: "Why", wide: true, show: (row) => html`${WHY[row.fate]} ${row.by && html`<${Filter} text=${row.by} />`}
      ${row.told && row.fate !== "forwarded" && row.told !== row.by
        && html`<br /><span class="quiet">told as</span> <${Filter} text=${row.told} />`}` },
  ];
  return html`
    <${Panel} title=${`What ${peer} is told`} id="told">
      <div class="controls">
        <${Search} label="Search filters and hops" value=${search} onValue=${setSearch} hint="price" />
        <${Choice} label="What became of it" value=${fate} onValue=${setFate}
          options=${[["", "anything"], ...Object.entries(FATES).map(([key, [name]]) => [key, name])]} />
      </div>
      <${Problem} text=${error} />
      ${data && (data.rows.length
        ? html`<${Table} caption=${`Entries of all other hops, on their way to ${peer}`} columns=${columns}
            rows=${data.rows} keyOf=${(row) => `${row.from} ${row.filter}`} />
          <${Pager} found=${data} onOffset=${setOffset} what="entry" many="entries" />`
        : html`<${Empty} title=${q || fate ? "Nothing fits" : `Nothing is to be told to ${peer}`}>
            ${q || fate ? "Search for something else." : `A subscription of a client here, or of another neighbour, would
              be told: covey sub "price < 100".`}<//>`)}
      <${More} count=${data?.more} what="entries" />
    <//>`;
}

function Heard({ peer, table }) {
  const [search, setSearch] = useState("");
  const [offset, setOffset] = useState(0);
  const q = useRested(search);
  useEffect(() => setOffset(0), [peer, table, q]);
  const { data, error } = usePoll("v1/console/routes/heard", { peer, table, q, offset }, LOOK_SECONDS);
  const columns = [
    { name: "Filter", wide: true, show: (row) => html`<${Filter} text=${row.filter} />` },
    { name: "Matched by", wide: true, show: (row) => (row.pruned
      ? html`<${Badge}>pruned<//> <${Filter} text=${row.pruned} />` : html`<span class="quiet">itself</span>`) },
  ];
  return html`
    <${Panel} title=${`What ${peer} told`} id="heard">
      <div class="controls"><${Search} label="Search filters" value=${search} onValue=${setSearch} hint="price" /></div>
      <${Problem} text=${error} />
      ${data && (data.rows.length
        ? html`<${Table} caption=${`Entries received from ${peer}`} columns=${columns} rows=${data.rows}
            keyOf=${(row) => row.filter} />
          <${Pager} found=${data} onOffset=${setOffset} what="entry" many="entries" />`
        : html`<${Empty} title=${q ? "Nothing fits" : `${peer} has asked for nothing`}>
            ${q ? "Search for something else." : "Events stay here until somebody behind it subscribes."}<//>`)}
      <${More} count=${data?.more} what="entries" />
    <//>`;
}

// By what neighbours' entries are pruned, how far, and, where the broker chose that itself, why.
function prunedBy(pruning) {
  const percent = (share) => `${Math.round(100 * share)} %`;
  const what = `What neighbours told is pruned by ${pruning.dimension}, ${percent(pruning.share)} of all prunings`;
  if (!pruning.auto) return `${what}.`;
  const used = ["memory", "bandwidth", "processing"].map((name) => `${name} ${percent(pruning[name])}`).join(", ");
  return `${what}: chosen by what is in use (${used}), ${pruning.settled ? "and settled" : "and being tried"}.`;
}

export function Routes() {
  const { data, error } = usePoll("v1/console/routes", {}, LOOK_SECONDS);
  const [chosen, setChosen] = useState("");
  const [table, setTable] = useState("subscriptions");
  if (!data) return html`<${Problem} text=${error} /><p class="loading" role="status">Asking the broker…</p>`;
  if (!data.links.length) {
    return html`<${Empty} title="This broker has no neighbours">What clients ask for stays here. With
      <code>--peer NAME=URL</code> on both sides two brokers are neighbours.<//>`;
  }
  const peer = data.links.some((link) => link.peer === chosen) ? chosen : data.links[0].peer;
  return html`
    <p class="lead">${STRATEGIES[data.strategy]} ${data.advertisements && "Subscriptions go only where something that overlaps them is advertised."} ${data.pruned_by && prunedBy(data.pruned_by)}</p>
    <${Panel} title="Neighbours" id="neighbours" aside=${data.advertisements && html`
      <${Choice} label="Table" value=${table} onValue=${setTable}
        options=${[["subscriptions", "subscriptions"], ["advertisements", "advertisements"]]} />`}>
      <${Summary} links=${data.links} table=${table} />
    <//>
    ${data.links.length > 1 && html`<div class="controls">
      <${Choice} label="Neighbour" value=${peer} onValue=${setChosen}
        options=${data.links.map((link) => [link.peer, link.peer])} />
    </div>`}
    <${Told} peer=${peer} table=${table} />
    <${Heard} peer=${peer} table=${table} />`;
}
