// What the page asks the broker, and how often.

import { useEffect, useRef, useState } from "./vendor/preact-htm.js";

const KEY = "covey.token";

export const token = () => sessionStorage.getItem(KEY) ?? "";

export function keepToken(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

// Errors that say that somebody must log in (again), so that the page can ask for a token.
export class Stranger extends Error {}

export function headers(more = {}) {
  return token() ? { ...more, Authorization: `Bearer ${token()}` } : more;
}

export async function problemOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || `the broker answered ${response.status}`;
  }
}

export async function ask(path, { query = {}, body, signal } = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  const response = await fetch(path + search, {
    method: body === undefined ? "GET" : "POST",
    headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    signal,
  });
  if (response.status === 401 || response.status === 403) throw new Stranger(await problemOf(response));
  if (!response.ok) throw new Error(await problemOf(response));
  return response.json();
}

let onStranger = () => {};
export const whenStranger = (call) => { onStranger = call; };

// Asks now and every so many seconds while the page is seen. What was known stays while an answer is late.
export function usePoll(path, query, seconds) {
  const [state, setState] = useState({ data: null, error: null });
  const key = path + JSON.stringify(query);
  const latest = useRef(key);
  latest.current = key;
  useEffect(() => {
    if (!path) return undefined;
    const stop = new AbortController();
    let waiting = false;
    const look = async () => {
      if (waiting || document.hidden) return;
      waiting = true;
      try {
        const data = await ask(path, { query, signal: stop.signal });
        if (latest.current === key) setState({ data, error: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof Stranger) onStranger(error.message);
        setState((before) => ({ data: before.data, error: said(error) }));
      } finally {
        waiting = false;
      }
    };
    look();
    const timer = setInterval(look, seconds * 1000);
    document.addEventListener("visibilitychange", look);
    return () => {
      stop.abort();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [key, seconds]);
  return state;
}

export function said(error) {
  return error instanceof TypeError ? "the broker doesn't answer; is it running?" : error.message;
}
