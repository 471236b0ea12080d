// The overlay as a drawing, by hand: a tree from this broker outwards. An overlay of some dozens of brokers needs no
// graph library of 400 KB; what it needs is to stay where it is when a broker dies, to follow the theme, and to fit a
// phone, where it becomes an indented list. The tables below say the same in words.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { compact, rate } from "./format.js";

const BOX = { width: 150, height: 50, across: 130, down: 22 };
const LABEL = 58;
const ROW = { height: 74, indent: 34 };
const MARKS = { up: "●", asked: "◌", down: "✕", "cut off": "?" };

// The first way to each broker over all links, working or not: so nothing moves when one fails.
function spanning(own, links) {
  const beside = new Map();
  for (const { a, b } of links) {
    for (const [one, other] of [[a, b], [b, a]]) beside.set(one, [...(beside.get(one) ?? []), other]);
  }
  const children = new Map([[own, []]]);
  const parent = new Map([[own, null]]);
  for (const name of parent.keys()) {
    for (const other of (beside.get(name) ?? []).sort()) {
      if (parent.has(other)) continue;
      parent.set(other, name);
      children.set(other, []);
      children.get(name).push(other);
    }
  }
  return { children, parent };
}

function wideLayout(own, children) {
  const places = new Map();
  let row = 0;
  let deepest = 0;
  const place = (name, depth) => {
    deepest = Math.max(deepest, depth);
    const below = children.get(name).map((child) => place(child, depth + 1));
    const y = below.length ? (below[0] + below.at(-1)) / 2 : row++ * (BOX.height + BOX.down);
    places.set(name, { x: depth * (BOX.width + BOX.across), y });
    return y;
  };
  place(own, 0);
  return {
    places,
    width: deepest * (BOX.width + BOX.across) + BOX.width,
    height: row * (BOX.height + BOX.down) - BOX.down,
  };
}

function narrowLayout(own, children) {
  const places = new Map();
  let row = 0;
  let deepest = 0;
  const place = (name, depth) => {
    deepest = Math.max(deepest, depth);
    places.set(name, { x: depth * ROW.indent, y: row++ * ROW.height });
    for (const child of children.get(name)) place(child, depth + 1);
  };
  place(own, 0);
  return { places, width: deepest * ROW.indent + BOX.width + 150, height: row * ROW.height - ROW.height + BOX.height };
}

function useWidth() {
  const element = useRef(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    watch.observe(element.current);
    return () => watch.disconnect();
  }, []);
  return [element, width];
}

// Events that cross a link, by what their receiver counts; where it can't tell, by what the sender does.
export function flow(rates, from, to) {
  return rates.get(`link ${to} ${from}`)?.received ?? rates.get(`link ${from} ${to}`)?.sent ?? null;
}

const weight = (value) => (value ? Math.min(6, 1.5 + Math.log10(1 + value)) : 1.5);

// A line to the child of the tree, with its label beside the child; links beside the tree bulge out to the right.
function wayOf(start, end, { beside, narrow }) {
  const [y1, y2] = [start.y + BOX.height / 2, end.y + BOX.height / 2];
  if (beside && (narrow || start.x === end.x)) {
    const [x1, x2] = [start.x + BOX.width, end.x + BOX.width];
    const out = Math.max(x1, x2) + 34;
    return { path: `M ${x1} ${y1} C ${out} ${y1} ${out} ${y2} ${x2} ${y2}`, label: null };
  }
  if (narrow) {
    return {
      path: `M ${start.x + 16} ${start.y + BOX.height} V ${y2} H ${end.x}`,
      label: { x: end.x + BOX.width + 8, y: y2 - 4, below: 16, anchor: "start" },
    };
  }
  const [x1, x2] = [start.x + BOX.width, end.x];
  const straight = x2 - LABEL;
  const middle = (x1 + straight) / 2;
  return {
    path: `M ${x1} ${y1} C ${middle} ${y1} ${middle} ${y2} ${straight} ${y2} H ${x2}`,
    label: { x: x2 - 8, y: y2 - 7, below: 21, anchor: "end" },
  };
}

function Edge({ link, from, to, places, rates, narrow, beside }) {
  const { path, label } = wayOf(places.get(from), places.get(to), { beside, narrow });
  const state = link.up ? (link.in_tree ? "up" : "spare") : "down";
  const [there, back] = [flow(rates, from, to), flow(rates, to, from)];
  let lines = there || back ? [`→ ${rate(there)}`, `← ${rate(back)}`] : beside || there === null ? [] : ["idle"];
  if (!link.up) lines = ["✕ down"];
  return html`
    <g class=${`edge ${state}`}>
      <path d=${path} stroke-width=${link.up ? weight(Math.max(there ?? 0, back ?? 0)) : 1.5} />
      ${label && lines.map((text, at) => html`
        <text x=${label.x} y=${label.y + at * label.below} text-anchor=${label.anchor}>${text}</text>`)}
    </g>`;
}

function Node({ broker, place, own, rates }) {
  const figures = broker.figures;
  const published = rates.get(`broker ${broker.name}`)?.published;
  const known = broker.state === "up" && figures
    ? `${compact(figures.connected)} ${figures.connected === 1 ? "client" : "clients"} · ${rate(published)} in`
    : { asked: "asked for its figures", down: "down", "cut off": "cut off", up: "" }[broker.state];
  const state = broker.state.replace(" ", "-");
  const name = broker.name.length > 15 ? `${broker.name.slice(0, 14)}…` : broker.name;
  return html`
    <g class=${`node ${state} ${own ? "own" : ""}`} transform=${`translate(${place.x} ${place.y})`}>
      <rect width=${BOX.width} height=${BOX.height} rx="7" />
      <text class="mark" x="12" y="21">${MARKS[broker.state]}</text>
      <text class="name" x="30" y="21">${name}${own && " (here)"}</text>
      <text class="more" x="12" y="39">${known}</text>
    </g>`;
}

export function Topology({ overview, rates }) {
  const [element, width] = useWidth();
  const { children, parent } = spanning(overview.broker, overview.links);
  const wide = wideLayout(overview.broker, children);
  const narrow = width > 0 && wide.width > width * 1.15;
  const { places, ...size } = narrow ? narrowLayout(overview.broker, children) : wide;
  const inside = overview.links.filter((link) => places.has(link.a) && places.has(link.b));
  const directed = (link) => (parent.get(link.a) === link.b || places.get(link.b).x < places.get(link.a).x
    ? [link.b, link.a] : [link.a, link.b]);
  const down = overview.brokers.filter((one) => one.state === "down" || one.state === "cut off");
  const words = `${overview.brokers.length} brokers and ${overview.links.length} links. `
    + (down.length ? `Not reached: ${down.map((one) => one.name).join(", ")}.` : "All of them are reached.");
  const natural = size.width + 8;
  return html`
    <div ref=${element} class="topology">
      <svg role="img" aria-label=${`The overlay: ${words} The tables below say the rest.`}
        viewBox=${`-4 -14 ${natural} ${size.height + 24}`} width=${natural} height=${size.height + 24}>
        ${inside.map((link) => {
          const [from, to] = directed(link);
          const beside = parent.get(to) !== from;
          return html`<${Edge} key=${`${link.a} ${link.b}`} ...${{ link, from, to, places, rates, narrow, beside }} />`;
        })}
        ${overview.brokers.filter((one) => places.has(one.name)).map((broker) => html`
          <${Node} key=${broker.name} broker=${broker} place=${places.get(broker.name)} rates=${rates}
            own=${broker.name === overview.broker} />`)}
      </svg>
    </div>`;
}
