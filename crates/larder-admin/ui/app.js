// The page as a whole: its head, its nine pages, the token, light and dark.
//
// In: the part of the address behind `#`. Out: one of the pages, with its title. Nothing is loaded from elsewhere, and no
// HTML is made from strings.

import { render } from './vendor/preact.js';
import { useEffect, useState } from './vendor/preact-hooks.js';
import { html } from './vendor/htm-preact.js';
import { shown } from './format.js';
import { token } from './api.js';
import { app, follow, restart, useApp } from './state.js';
import { Boundary } from './parts/boundary.js';
import { Head } from './parts/head.js';
import { Notices, TokenForm } from './parts/notices.js';
import { Overview } from './pages/overview.js';
import { Why } from './pages/why.js';
import { Rules } from './pages/rules.js';
import { Stores } from './pages/stores.js';
import { Origins } from './pages/origins.js';
import { Requests } from './pages/requests.js';
import { Url } from './pages/url.js';
import { Errors } from './pages/errors.js';
import { Config } from './pages/config.js';

/** @type {{ path: string, name: string, page: any }[]} */
const PAGES = [
  { path: '', name: 'Overview', page: Overview },
  { path: 'why', name: 'Why', page: Why },
  { path: 'rules', name: 'Rules', page: Rules },
  { path: 'stores', name: 'Stores', page: Stores },
  { path: 'origins', name: 'Origins', page: Origins },
  { path: 'requests', name: 'Requests', page: Requests },
  { path: 'url', name: 'URL', page: Url },
  { path: 'errors', name: 'Errors', page: Errors },
  { path: 'config', name: 'Config', page: Config },
];

/** Which page the address names, with its parameters. */
function route() {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const found = PAGES.find((one) => one.path === path) ?? PAGES[0];
  return { path: found?.path ?? '', name: found?.name ?? '', page: found?.page, query: new URLSearchParams(query) };
}

function toMain() {
  const main = document.getElementById('main');
  main?.focus();
  main?.scrollIntoView();
}

function forget() {
  token.set('');
  location.reload();
}

function App() {
  useApp();
  const [at, setAt] = useState(route);
  useEffect(() => {
    const moved = () => {
      setAt(route());
      scrollTo(0, 0);
    };
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  useEffect(() => {
    const host = app.about?.instance;
    document.title = `${at.name} - larder${host ? ` ${shown(host).slice(0, 60)}` : ''}`;
    if (at.path !== 'requests') follow(null);
  }, [at.path, app.about?.instance]);
  const skip = (/** @type {Event} */ event) => {
    event.preventDefault();
    toMain();
  };
  const Page = at.page;
  const isAsked = app.link.state === 'token';
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the figures</a>
    <${Head} pages=${PAGES} at=${at.path} />
    <main id="main" class=${`page ${app.link.state === 'lost' ? 'old' : ''}`} tabindex="-1">
      <h1>${at.name}</h1>
      <${Notices} />
      ${isAsked ? html`<${TokenForm} />` : app.about ? html`<${Boundary} key=${at.path}><${Page} key=${at.path} query=${at.query} /><//>`
        : html`<p class="none">Asking larder.</p>`}
    </main>
    <footer class="foot">Figures are larder's own, of its clients alone: this page and the admin address are not counted.
      ${token.get() && !isAsked ? html`<button type="button" class="quiet" onClick=${forget}>forget the token</button>` : ''}</footer>`;
}

const root = document.getElementById('app');
if (root) {
  root.replaceChildren();
  restart();
  render(html`<${App} />`, root);
}
