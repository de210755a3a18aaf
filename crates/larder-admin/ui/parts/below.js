// What stands below the first picture: two pictures over time, and three short lists.
//
// In: series of the window, figures of this moment. Out: the rest of the first page. It is a module of its own, so that the
// first picture does not wait for what draws lines.

import { html } from '../vendor/htm-preact.js';
import { EventList, StoreList, WhyList } from './glance.js';
import { Latencies, Traffic } from './traffic.js';

/** @param {{ past: import('../past.js').Past, coarse: import('../past.js').Past, values: Record<string, number>, before: Record<string, number> | null, minute: Record<string, number>, stats: any }} props */
export const Below = ({ past, coarse, values, before, minute, stats }) => html`
  <div class="pair"><${Traffic} past=${past} /><${Latencies} past=${past} of="all" /></div>
  <div class="grid three"><${WhyList} values=${values} before=${before} minute=${minute} /><${StoreList} stats=${stats} />
    <${EventList} past=${coarse} /></div>`;

/** Where no request came. @param {{ past: import('../past.js').Past, stats: any }} props */
export const Lists = ({ past, stats }) => html`<div class="grid"><${StoreList} stats=${stats} /><${EventList} past=${past} /></div>`;
