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
import { Later, ahead } from './parts/later.js';
import { Overview } from './pages/overview.js';

/** The first page comes with this module; the others come when they are asked for, or once the first picture stands.
 * @type {{ path: string, name: string, page?: any, load?: () => Promise<any> }[]} */
const PAGES = [
  { path: '', name: 'Overview', page: Overview },
  { path: 'why', name: 'Why', load: () => import('./pages/why.js').then((module) => module.Why) },
  { path: 'rules', name: 'Rules', load: () => import('./pages/rules.js').then((module) => module.Rules) },
  { path: 'stores', name: 'Stores', load: () => import('./pages/stores.js').then((module) => module.Stores) },
  { path: 'origins', name: 'Origins', load: () => import('./pages/origins.js').then((module) => module.Origins) },
  { path: 'requests', name: 'Requests', load: () => import('./pages/requests.js').then((module) => module.Requests) },
  { path: 'url', name: 'URL', load: () => import('./pages/url.js').then((module) => module.Url) },
  { path: 'errors', name: 'Errors', load: () => import('./pages/errors.js').then((module) => module.Errors) },
  { path: 'config', name: 'Config', load: () => import('./pages/config.js').then((module) => module.Config) },
];

/** Which page the address names, with its parameters. */
function route() {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const found = PAGES.find((one) => one.path === path) ?? PAGES[0];
  return { path: found?.path ?? '', name: found?.name ?? '', of: found, query: new URLSearchParams(query) };
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
  const isAsked = app.link.state === 'token';
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the figures</a>
    <${Head} pages=${PAGES} at=${at.path} />
    <main id="main" class=${`page ${app.link.state === 'lost' ? 'old' : ''}`} tabindex="-1">
      <h1>${at.name}</h1>
      <${Notices} />
      ${isAsked ? html`<${TokenForm} />`
        : html`<${Boundary} key=${at.path}><${Later} key=${at.path} part=${at.of?.page} load=${at.of?.load} query=${at.query} /><//>`}
    </main>
    <footer class="foot">Figures are larder's own, of its clients alone: this page and the admin address are not counted.
      ${token.get() && !isAsked ? html`<button type="button" class="quiet" onClick=${forget}>forget the token</button>` : ''}</footer>`;
}

const root = document.getElementById('app');
if (root) {
  root.replaceChildren();
  restart();
  render(html`<${App} />`, root);
  ahead(PAGES.flatMap((page) => page.load ?? []));
}
