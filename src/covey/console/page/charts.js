// Rates over the last minutes. The chart is for the eye; the list under it says the same in numbers.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { compact, rate } from "./format.js";

const HEIGHT = 130;
const SPAN_SECONDS = 60;

const coloured = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function useTheme() {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const changed = () => setCount((before) => before + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    addEventListener("covey-theme", changed);
    return () => {
      system.removeEventListener("change", changed);
      removeEventListener("covey-theme", changed);
    };
  }, []);
  return count;
}

// At least a minute, so that the first seconds aren't a line from edge to edge; without data, the minute before now.
function span(_, first, last) {
  const end = last ?? Date.now() / 1000;
  return [Math.min(first ?? end, end - SPAN_SECONDS), end];
}

function options(series, width) {
  const grid = { stroke: coloured("--line"), width: 1 };
  const axis = { stroke: coloured("--quiet"), grid, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 26, 0, 0],
    scales: { x: { range: span }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [
      { ...axis, size: 24, space: 70, values: (_, ticks) => ticks.map((at) => new Date(at * 1000).toLocaleTimeString("en-GB")) },
      { ...axis, size: 44, space: 30, values: (_, ticks) => ticks.map((value) => (value % 1 ? value.toFixed(1) : compact(value))) },
    ],
    series: [{}, ...series.map(({ colour, dash }) => ({
      stroke: coloured(colour), width: 2, dash, points: { show: false }, spanGaps: false,
    }))],
  };
}

// series: [{ key, name, colour, dash }]
export function RateChart({ title, series, history }) {
  const place = useRef(null);
  const plot = useRef(null);
  const [width, setWidth] = useState(0);
  const theme = useTheme();
  const data = [history.map((one) => one.at), ...series.map(({ key }) => history.map((one) => one[key] ?? null))];
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (!width) return undefined;
    plot.current = new window.uPlot(options(series, width), data, place.current);
    return () => plot.current.destroy();
  }, [width, theme]);
  useEffect(() => {
    plot.current?.setData(data);
  });
  return html`
    <figure class="chart">
      <figcaption>${title}</figcaption>
      <div ref=${place} class="plot" role="img" aria-label=${`${title} over the last minutes; the figures follow.`}></div>
      <ul class="legend">
        ${series.map(({ key, name, colour, dash }) => {
          const values = history.map((one) => one[key]).filter((value) => value !== null && value !== undefined);
          const line = `swatch ${colour.slice(2)} ${dash ? "dashed" : ""}`;
          return html`<li><span class=${line} aria-hidden="true"></span>${name}${" "}
            <strong>${rate(values.at(-1))}</strong>${" "}
            <span class="quiet">highest ${rate(values.length ? Math.max(...values) : null)}</span></li>`;
        })}
      </ul>
    </figure>`;
}
