// The head of every page: who answers, the window, the stream, light and dark, and the way to the other pages.
//
// In: `about`, the state of the stream. Out: the header with its navigation.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { clock, shown, span } from '../format.js';
import { app, serverNow } from '../state.js';
import { Text } from './text.js';
import { WindowChoice } from './window.js';

const KEPT = 'larder-theme';

function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem(KEPT) ?? 'system');
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(KEPT, theme);
  }, [theme]);
  return html`<label><span class="hidden">Colours</span><select value=${theme} onChange=${(/** @type {any} */ event) =>
    setTheme(event.currentTarget.value)}>
    ${[
      ['system', 'as the system'],
      ['light', 'light'],
      ['dark', 'dark'],
    ].map(([value, name]) => html`<option value=${value} selected=${value === theme}>${name}</option>`)}</select></label>`;
}

const STATES = { connecting: 'connecting', live: 'live', lost: 'reconnecting', token: 'token needed', hidden: 'paused' };

/** @param {{ pages: { path: string, name: string }[], at: string }} props */
export function Head({ pages, at }) {
  const { about, link } = app;
  const config = about?.config;
  return html`<header class="head">
    <div class="line">
      <span class="brand">larder</span>
      <p class="who">${
        about
          ? html`${about.instance ? html`<${Text} of=${about.instance} max=${40} />` : ''}<span>${shown(about.version)}</span>
            <span>up ${span(serverNow() - about.started)}</span>
          <span>${config?.file ? html`<a href="#/config">config of ${clock(config.loaded)}</a>` : 'no config file'}</span>
          ${about.may_change === false ? html`<span>view only</span>` : ''}
          ${about.health === 'ok' ? '' : html`<strong class="bad">${shown(about.health)}</strong>`}`
          : ''
      }</p>
      <${WindowChoice} />
      <span class=${`link ${link.state}`}><span class="light" aria-hidden="true"></span>${STATES[link.state]}</span>
      <${Theme} />
    </div>
    <nav aria-label="Pages"><ul>${pages.map(
      (page) => html`<li><a href=${`#/${page.path}`} aria-current=${page.path === at ? 'page' : undefined}>${page.name}</a></li>`,
    )}</ul></nav>
  </header>`;
}
