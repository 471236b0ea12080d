// The page: who looks, which view, which theme.

import { html, render, useCallback, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { ask, keepToken, said, token, usePoll, whenStranger } from "./api.js";
import { Problem } from "./parts.js";
import { useRates } from "./rates.js";
import { Overlay } from "./overlay.js";
import { Routes } from "./routes.js";
import { Clients } from "./clients.js";
import { Subscriptions } from "./subscriptions.js";
import { Playground } from "./playground.js";
import { Tail } from "./tail.js";

const VIEWS = [
  ["overlay", "Overlay", Overlay],
  ["routes", "Routes", Routes],
  ["clients", "Clients", Clients],
  ["subscriptions", "Subscriptions", Subscriptions],
  ["playground", "Playground", Playground],
  ["tail", "Live tail", Tail],
];
const LOOK_SECONDS = 1;

const placed = () => VIEWS.find(([name]) => location.hash === `#/${name}`) ?? VIEWS[0];

function useView() {
  const [view, setView] = useState(placed);
  useEffect(() => {
    const follow = () => setView(placed());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return view;
}

function Theme() {
  const root = document.documentElement;
  const [chosen, setChosen] = useState(root.dataset.theme ?? "system");
  const choose = (value) => {
    if (value === "system") {
      localStorage.removeItem("covey.theme");
      delete root.dataset.theme;
    } else {
      localStorage.setItem("covey.theme", value);
      root.dataset.theme = value;
    }
    setChosen(value);
    dispatchEvent(new Event("covey-theme"));
  };
  return html`
    <label class="theme"><span class="visually-hidden">Theme</span>
      <select value=${chosen} onChange=${(event) => choose(event.target.value)}>
        ${["system", "light", "dark"].map((name) => html`
          <option value=${name} selected=${name === chosen}>${{ system: "System", light: "Light", dark: "Dark" }[name]}</option>`)}
      </select></label>`;
}

function Login({ problem, onToken }) {
  const [value, setValue] = useState("");
  const field = useRef(null);
  useEffect(() => field.current?.focus(), []);
  const submit = (event) => {
    event.preventDefault();
    onToken(value.trim());
  };
  return html`
    <main class="login panel" id="main">
      <h1>Who is it?</h1>
      <p>This broker asks everyone who they are. Give a token of a principal with <code>monitor</code>;
        it is kept in this tab until the tab is closed.</p>
      <form onSubmit=${submit}>
        <label class="field"><span>Token</span>
          <input ref=${field} type="password" autocomplete="off" value=${value} required
            onInput=${(event) => setValue(event.target.value)} /></label>
        <button type="submit" class="first">Look inside</button>
      </form>
      <${Problem} text=${problem} />
      <p class="hint">Whoever has the brokers' secret can make one:
        <code>covey token NAME --monitor --secret-file FILE</code></p>
    </main>`;
}

function Header({ overview, error, name, onLeave }) {
  return html`
    <header class="top">
      <a class="brand" href="#/overlay"><img src="console/icon.svg" alt="" width="22" height="22" /> covey</a>
      ${overview && html`<p class="where">broker <strong>${overview.broker}</strong>
        <span class="quiet"> ${overview.strategy}</span></p>`}
      <p class="live" role="status">${error
        ? html`<span class="badge bad"><span aria-hidden="true">✕ </span>no answer</span>`
        : overview && html`<span class="badge ok"><span aria-hidden="true">● </span>live</span>`}</p>
      ${name && html`<p class="quiet who">${name}</p>`}
      ${token() && html`<button type="button" class="plain" onClick=${onLeave}>Leave</button>`}
      <${Theme} />
    </header>`;
}

function Inside({ name, onLeave }) {
  const [key, title, View] = useView();
  const { data: overview, error } = usePoll("v1/console/overview", {}, LOOK_SECONDS);
  const rates = useRates(overview);
  const heading = useRef(null);
  const moved = useRef(false);
  useEffect(() => {
    document.title = `${title}${overview ? ` · ${overview.broker}` : ""} · covey`;
    if (moved.current) heading.current?.focus();
    moved.current = true;
  }, [key]);
  useEffect(() => {
    if (overview) document.title = `${title} · ${overview.broker} · covey`;
  }, [overview?.broker]);
  const skip = (event) => {
    event.preventDefault();
    heading.current?.focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Header} overview=${overview} error=${error} name=${name} onLeave=${onLeave} />
    <nav class="views" aria-label="Views">
      ${VIEWS.map(([one, label]) => html`
        <a href=${`#/${one}`} aria-current=${one === key ? "page" : undefined}>${label}</a>`)}
    </nav>
    <main id="main">
      <h1 ref=${heading} tabindex="-1">${title}</h1>
      <${Problem} text=${error && `${error} What is shown may be old.`} />
      <${View} overview=${overview} rates=${rates} />
    </main>
    <footer class="quiet">Nothing on this page changes the broker; a live tail is a subscription like any other.
      ${" "}<a href="console/vendor/README.txt">Licences</a></footer>`;
}

function App() {
  const [who, setWho] = useState(null);
  const look = useCallback(async (given) => {
    if (given !== undefined) keepToken(given);
    try {
      setWho(await ask("v1/console/who"));
    } catch (error) {
      setWho({ admin: false, problem: said(error) });
    }
  }, []);
  useEffect(() => {
    whenStranger((problem) => setWho({ admin: false, problem }));
    look();
  }, []);
  if (who === null) return html`<p class="loading" role="status">Asking the broker…</p>`;
  if (!who.admin) {
    return html`<${Header} /><${Login} problem=${token() || who.problem?.includes("answer") ? who.problem : null}
      onToken=${look} />`;
  }
  return html`<${Inside} name=${who.name} onLeave=${() => look("")} />`;
}

render(html`<${App} />`, document.getElementById("app"));
