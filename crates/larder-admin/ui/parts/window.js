// The window of time, and whether an hour before stands beside it.
//
// In: what was chosen. Out: a choice and a checkbox, kept in the tab.

import { html } from '../vendor/htm-preact.js';
import { WINDOWS, app, chooseCompare, chooseWindow } from '../state.js';

export const WindowChoice = () => html`<div class="window">
  <label><span class="hidden">Window of time</span><select value=${String(app.window)} onChange=${(/** @type {any} */ event) =>
    chooseWindow(Number(event.currentTarget.value))}>
    ${WINDOWS.map((one) =>
      html`<option value=${String(one.seconds)} selected=${one.seconds === app.window}>${one.name}</option>`)}</select></label>
  <label class="check"><input type="checkbox" checked=${app.compare} onChange=${(/** @type {any} */ event) =>
    chooseCompare(event.currentTarget.checked)} />beside an hour before</label>
</div>`;
