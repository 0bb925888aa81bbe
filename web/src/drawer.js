// drawer.js - shows the current view as shell commands and as JSON.

import { $, copyText, make } from './dom.js';
import { curlCommand, tailCommand } from './command.js';

function splitPath(path) {
  const [route, query] = path.split('?');
  return { path: route, parameters: new URLSearchParams(query) };
}

function copyable(title, pre) {
  const copy = make('button.quiet', { type: 'button', 'aria-label': `Copy: ${title}` }, 'Copy');
  copy.addEventListener('click', () => copyText(copy, pre.textContent));
  return make('div.command', {}, pre, copy);
}

const command = (title, id, text) => [make('h3', {}, title), copyable(title, make('pre', { id, tabindex: '0', 'aria-label': title }, text))];

// The data of a panel at the moment when it is opened.
function data(title, name, read) {
  const pre = make('pre.data', { id: `json-${name}`, tabindex: '0', 'aria-label': `${title} as JSON` });
  const fold = make('details', {}, make('summary', {}, `${title} as JSON`), copyable(`${title} as JSON`, pre));
  fold.addEventListener('toggle', () => { pre.textContent = fold.open ? JSON.stringify(read(), null, 1) : ''; });
  return fold;
}

// `panels`: [{ title, name, path, isEvents, read() }, ...]; read() returns the displayed data, if there are any.
export function openDrawer(panels) {
  const parts = panels.flatMap(({ title, name, path, isEvents, read }, i) => {
    const request = splitPath(path);
    return [...(isEvents ? command(`${title} with sluice tail`, i === 0 ? 'tail' : `tail-${i}`, tailCommand(location.origin, request)) : []),
      ...command(`${title} with curl`, i === 0 ? 'curl' : `curl-${i}`, curlCommand(location.origin, request)), ...(read ? [data(title, name, read)] : [])];
  });
  $('#drawer-commands').replaceChildren(make('p.about', {}, 'These commands expect a token in $TOKEN.'), ...parts);
  $('#drawer').showModal();
}
