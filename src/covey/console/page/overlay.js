// The overlay: this broker in figures, its rates, all brokers and links.

import { html } from "./vendor/preact-htm.js";
import { RateChart } from "./charts.js";
import { compact, duration, number, rate } from "./format.js";
import { Badge, Empty, More, Panel, Table } from "./parts.js";
import { Topology, flow } from "./topology.js";

const CLIENTS = [
  { key: "published", name: "published here", colour: "--series-one" },
  { key: "delivered", name: "delivered to clients", colour: "--series-two", dash: [6, 4] },
];
const NEIGHBOURS = [
  { key: "received", name: "received", colour: "--series-one" },
  { key: "sent", name: "sent", colour: "--series-two", dash: [6, 4] },
];

const Tile = ({ name, value, more, tone }) => html`
  <div class=${`tile ${tone ?? ""}`}><dt>${name}</dt><dd>${value}${more && html`<span class="more">${more}</span>`}</dd></div>`;

function Tiles({ overview }) {
  const { figures } = overview.brokers.find((one) => one.name === overview.broker);
  const { waiting_inputs: inputs, waiting_records: records } = figures;
  const busy = inputs > overview.limits.waiting_inputs / 2 || records > overview.limits.waiting_records / 2;
  return html`
    <dl class="tiles">
      <${Tile} name="Clients connected" value=${number(figures.connected)} more=${`of ${number(figures.clients)} known`} />
      <${Tile} name="Subscriptions" value=${compact(figures.subscriptions)}
        more=${`${compact(figures.entries)} in the routing table`} />
      <${Tile} name="Published" value=${compact(figures.published)} more=${`${compact(figures.delivered)} delivered`} />
      <${Tile} name="Waiting for clients" value=${compact(figures.queued)}
        more=${`${compact(figures.events_kept)} events kept`} />
      <${Tile} name="Waiting for the broker" value=${compact(inputs)} more=${`${compact(records)} rows for the disk`}
        tone=${busy ? "warn" : ""} />
      <${Tile} name="Running for" value=${duration(figures.uptime)}
        more=${overview.durable ? "with a journal" : "without a journal"} />
    </dl>`;
}

function Brokers({ overview, rates }) {
  const columns = [
    { name: "Broker", show: (one) => html`<strong>${one.name}</strong>${one.name === overview.broker && " (here)"}` },
    { name: "State", show: (one) => html`<${Badge} state=${one.state} />${!["up", "asked"].includes(one.state)
      && one.age !== null && html` <span class="quiet">told ${duration(one.age)} ago</span>`}` },
    { name: "Hops", number: true, show: (one) => number(one.hops), hint: "Links from here" },
    { name: "Clients", number: true, show: (one) => (one.figures
      ? `${number(one.figures.connected)} of ${number(one.figures.clients)}` : "–"), hint: "Connected, of all known" },
    { name: "Subscriptions", number: true, show: (one) => number(one.figures?.subscriptions) },
    { name: "Table", number: true, show: (one) => number(one.figures?.entries), hint: "Entries of its routing table" },
    { name: "Waiting", number: true, show: (one) => number(one.figures?.queued), hint: "Deliveries that wait for clients" },
    { name: "Published", number: true, show: (one) => rate(live(one) && rates.get(`broker ${one.name}`)?.published) },
    { name: "Delivered", number: true, show: (one) => rate(live(one) && rates.get(`broker ${one.name}`)?.delivered) },
  ];
  return html`<${Table} caption="All brokers, the nearest first" columns=${columns} rows=${overview.brokers}
    keyOf=${(one) => one.name} />`;
}

const live = (broker) => (broker.state === "up" ? true : null) || undefined;

function Links({ overview, rates }) {
  const columns = [
    { name: "Link", show: (one) => html`<strong>${one.a}</strong> – <strong>${one.b}</strong>` },
    { name: "State", show: (one) => html`<${Badge} state=${one.up ? "up" : "down"} />` },
    { name: "Role", show: (one) => (one.in_tree ? "in the tree" : "spare"),
      hint: "Events take the links of the spanning tree; others wait until one of those fails" },
    { name: "Waiting", number: true, show: (one) => number(sum(one.at_a?.outbox, one.at_b?.outbox)),
      hint: "Durable events that wait for the other end, at both" },
    { name: "Traffic", number: true, wide: true, show: (one) => both(one, one.up ? rate(flow(rates, one.a, one.b)) : "–",
      one.up ? rate(flow(rates, one.b, one.a)) : "–"), hint: "Events a second, in both directions" },
    { name: "Filters told", number: true, wide: true, show: (one) => both(one, number(one.at_a?.told), number(one.at_b?.told)),
      hint: "Filters that each end has told the other" },
  ];
  return html`<${Table} caption="All links" columns=${columns} rows=${overview.links}
    keyOf=${(one) => `${one.a} ${one.b}`} />`;
}

const both = ({ a, b }, there, back) => html`
  <span class="way"><span class="quiet">${a} → ${b}</span> ${there}</span>${" "}
  <span class="way"><span class="quiet">${b} → ${a}</span> ${back}</span>`;

const sum = (...values) => (values.every((value) => value === undefined) ? null
  : values.reduce((total, value) => total + (value ?? 0), 0));

export function Overlay({ overview, rates: { current, history } }) {
  if (!overview) return html`<p class="loading" role="status">Asking the broker…</p>`;
  const down = overview.brokers.filter((one) => ["down", "cut off"].includes(one.state));
  const health = down.length
    ? html`<${Badge} state="down">${down.map((one) => `${one.name} ${one.state}`).join(", ")}<//>`
    : html`<${Badge} state="up">all brokers reached<//>`;
  return html`
    <${Tiles} overview=${overview} />
    <${Panel} title="Topology" id="topology" aside=${html`<span role="status">${health}</span>`}>
      ${overview.links.length
        ? html`<${Topology} overview=${overview} rates=${current} />
          <p class="hint key"><span><span class="line solid"></span> in the spanning tree</span>
            <span><span class="line spare"></span> spare</span> <span><span class="line broken"></span> down</span>
            <span>Arrows: events a second, seen from here</span></p>`
        : html`<${Empty} title="This broker has no neighbours">Start another with
            <code>covey broker --id b --port 7401 --peer ${overview.broker}=ws://HOST:PORT</code>, and name it here with
            <code>--peer b</code>.<//>`}
    <//>
    <${Panel} title="Rates at this broker" id="rates">
      <div class="charts">
        <${RateChart} title="Events of clients" series=${CLIENTS} history=${history} />
        <${RateChart} title="Events over links" series=${NEIGHBOURS} history=${history} />
      </div>
    <//>
    <${Panel} title="Brokers" id="brokers">
      <${Brokers} overview=${overview} rates=${current} />
      <${More} count=${overview.more_brokers} what="brokers" />
    <//>
    ${overview.links.length > 0 && html`<${Panel} title="Links" id="links">
      <${Links} overview=${overview} rates=${current} />
      <${More} count=${overview.more_links} what="links" />
    <//>`}`;
}
