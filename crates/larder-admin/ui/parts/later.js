// Parts of the page whose modules come later than the first picture.
//
// In: a part, or what loads it. Out: the part once it is there, and until then a line in its place. All of them are fetched
// while nothing else is to be done, so that a click finds its page, and all modules are of one version of larder.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';

/** Sheets that the first picture does not need, in their order. */
const SHEETS = ['/ui/vendor/uplot.css', '/ui/pages.css'];

/** @type {Promise<unknown> | null} */
let dressed = null;

/** Fetches the sheets, once. A sheet that does not come is no reason to show nothing. */
function sheets() {
  const last = document.querySelector('link[href="/ui/narrow.css"]');
  dressed ??= Promise.all(
    SHEETS.map((href) => {
      const link = document.createElement('link');
      link.rel = 'stylesheet';
      link.href = href;
      last?.before(link);
      return new Promise((done) => {
        link.onload = done;
        link.onerror = done;
      });
    }),
  );
  return dressed;
}

/** After the first picture, but not before this time. */
const AHEAD_MS = 1500;

/** @param {{ part?: any, load?: () => Promise<any>, [name: string]: any }} props `part`: it is there already; all else is for it */
export function Later({ part, load, ...rest }) {
  const [found, set] = useState(/** @type {{ part: any }} */ ({ part }));
  const [fault, setFault] = useState('');
  useEffect(() => {
    let isWanted = true;
    if (!found.part && load)
      Promise.all([load(), sheets()]).then(
        ([module]) => isWanted && set({ part: module }),
        () => isWanted && setFault('This part of the page did not come. Reload the page.'),
      );
    return () => void (isWanted = false);
  }, []);
  if (!found.part) return html`<p class=${fault ? 'fault' : 'none'}>${fault || 'Loading.'}</p>`;
  return html`<${found.part} ...${rest} />`;
}

/** Fetches what will be needed, one after the other. @param {(() => Promise<any>)[]} loads */
export function ahead(loads) {
  setTimeout(async () => {
    for (const load of loads) await load().catch(() => {});
  }, AHEAD_MS);
}
