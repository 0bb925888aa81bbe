// drawer.js - what the page shows, as commands for a terminal.

import { $, copyText, make } from './dom.js';
import { curlCommand, tailCommand } from './command.js';

function splitPath(path) {
  const [route, query] = path.split('?');
  return { path: route, parameters: new URLSearchParams(query) };
}

function command(title, id, text) {
  const copy = make('button.quiet', { type: 'button', 'aria-label': `Copy: ${title}` }, 'Copy');
  copy.addEventListener('click', () => copyText(copy, text));
  return [make('h3', {}, title), make('div.command', {}, make('pre', { id, tabindex: '0', 'aria-label': title }, text), copy)];
}

// `panels`: [[title, path, isEvents], ...]
export function openDrawer(panels) {
  const parts = panels.flatMap(([title, path, isEvents], i) => {
    const request = splitPath(path);
    return [...(isEvents ? command(`${title}, by sluice tail`, 'tail', tailCommand(location.origin, request)) : []),
      ...command(`${title}, by curl`, i === 0 ? 'curl' : `curl-${i}`, curlCommand(location.origin, request))];
  });
  $('#drawer-commands').replaceChildren(make('p.about', {}, 'With the token in $TOKEN:'), ...parts);
  $('#drawer').showModal();
}
