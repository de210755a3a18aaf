// What stands above a page while something is not as usual: the stream, the token, a drain, a bound, a restart.
//
// In: the state of the page. Out: short notes, each with what can be done.

import { useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { token } from '../api.js';
import { counted, moment, shown, span } from '../format.js';
import { app, restart, serverNow } from '../state.js';

export function TokenForm() {
  const [text, setText] = useState('');
  const sent = token.get() !== '';
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    token.set(text.trim());
    setText('');
    restart();
  };
  return html`<form class="token" onSubmit=${send}>
    <h2>A token is needed</h2>
    <p>This larder shows its figures to clients with a token: <code>token</code> or <code>view_token</code> in <code>[admin]</code> of its
      config. The token stays in this tab.</p>
    <label for="token-text">Token</label>
    <input id="token-text" type="password" autocomplete="off" required value=${text} aria-describedby="token-fault"
      onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} />
    <button type="submit">Show the figures</button>
    <p id="token-fault" class="fault" role="alert">
      ${app.link.why === 'asked' ? (sent ? 'This token is not the right one.' : '') : shown(app.link.why)}</p>
  </form>`;
}

export function Notices() {
  const { about, link, tick } = app;
  const notes = [];
  if (link.state === 'lost') {
    const age = tick ? `These figures are ${span(Date.now() / 1000 - link.since / 1000)} old. ` : '';
    notes.push(html`<p class="notice warn" role="status">${age}Reconnecting: ${shown(link.why)}.</p>`);
  }
  if (about?.health === 'draining' && link.state !== 'lost')
    notes.push(
      html`<p class="notice
        warn">larder is draining: it takes no new connections, and ends once those that are open have been answered.</p>`,
    );
  if (about?.health === 'degraded')
    notes.push(
      html`<p class="notice
        warn">A store works without one of its disks, or without its directory of files. <a href="#/stores">Stores</a> shows which.</p>`,
    );
  const folded = about?.memory?.series_folded ?? 0;
  if (folded > 0)
    notes.push(
      html`<p class="notice">
        ${counted(folded, 'figure')} found no room in <code>[live] memory</code>: ${folded === 1
          ? 'it is shown for this moment, and has'
          : 'they are shown for this moment, and have'} no past. A larger <code>memory</code> has room for more.</p>`,
    );
  if (about?.history === 0)
    notes.push(
      html`<p class="notice">Nothing is remembered here, as <code>history</code> in <code>[live]</code> is <code>0s</code>. Figures of the moment
        remain; pictures begin when a page is opened.</p>`,
    );
  const age = about ? serverNow() - about.started : Infinity;
  if (age < app.window && link.state === 'live' && about?.history !== 0)
    notes.push(
      html`<p class="notice">larder was started at ${moment(about.started)}, ${span(age)} ago. Nothing is known of the time before; pictures
        leave a gap there.</p>`,
    );
  return html`<div class="notices">${notes}</div>`;
}

/** Nothing has happened yet. @param {{ words: string }} props */
export const Nothing = ({ words }) =>
  html`<p class="empty">No request in ${words}. Try <code>curl -i ${'http://HOST/'}</code> with a host of one of the sites.</p>`;
