// A dialog that has to be answered.
//
// In: what it is about, and what follows. Out: the browser's own modal dialog, which keeps the focus, closes with Escape,
// and gives the focus back.

import { useEffect, useRef } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';

/** @param {{ title: string, onClose: () => void, children?: any }} props */
export function Dialog({ title, onClose, children }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const own = box.current;
    if (own && !own.open) own.showModal();
    return () => own?.close();
  }, []);
  // The browser tells of a close a frame later, when another dialog may be open already.
  return html`<dialog ref=${box} aria-labelledby="dialog-title" onClose=${() => box.current && onClose()}><h2 id="dialog-title">${title}</h2>${children}</dialog>`;
}
