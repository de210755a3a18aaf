// A table with numbers on the right, which becomes a list on a narrow screen.
//
// In: columns and rows. Out: a table with a caption. Each cell carries the name of its column, for the list.

import { html } from '../vendor/htm-preact.js';

/**
 * @typedef {{ key: string, name: string, number?: boolean, cell?: (row: any) => any, wide?: boolean }} Column
 * @param {{ caption: string, columns: Column[], rows: any[], none?: string, mark?: (row: any) => string, hideCaption?: boolean }} props
 */
export function Table({ caption, columns, rows, none = 'Nothing.', mark, hideCaption = true }) {
  if (!rows.length) return html`<p class="none">${none}</p>`;
  return html`<div class="scroll"><table class="list">
    <caption class=${hideCaption ? 'hidden' : ''}>${caption}</caption>
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.number ? 'number' : ''}>${column.name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) =>
      html`<tr class=${mark?.(row) ?? ''}>
        ${columns.map((column) =>
          html`<td data-name=${column.name} class=${`${column.number ? 'number' : ''} ${column.wide ? 'wide' : ''}`}>
            ${column.cell ? column.cell(row) : row[column.key]}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** Names and values, for what is no list. @param {{ of: [string, any][] }} props */
export const Facts = ({ of }) =>
  html`<dl class="facts">
    ${of.filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) =>
      html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
