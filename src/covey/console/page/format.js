// Numbers, times and names for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => (value === null || value === undefined ? "–" : whole.format(value));

export const compact = (value) => (Math.abs(value) < 10_000 ? whole.format(value) : short.format(value));

export function rate(value) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 10) return `${value.toFixed(1)}/s`;
  return `${compact(value)}/s`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 2 * 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

export const clock = (date) =>
  date.toLocaleTimeString("en-GB") + "." + String(date.getMilliseconds()).padStart(3, "0");

// A hop of the routing table: p:NAME is a neighbour, c:NAME a client, nothing the broker itself.
export function hop(name) {
  if (!name) return "this broker";
  return name.startsWith("p:") ? `broker ${name.slice(2)}` : `client ${name.slice(2)}`;
}
