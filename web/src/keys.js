// keys.js - the keyboard shortcuts of the page, which do not apply in fields and dialogs.

import { $ } from './dom.js';

export function listenToKeys({ onField, onFocus, onPause, onBack, onTable, onHelp }) {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || $('dialog[open]')) return;
    const { target, key } = event;
    const isTyping = target.matches('input:not([type=radio], [type=checkbox]), textarea');
    if (isTyping) {
      if (key === 'Escape') target.blur();
      return;
    }
    const isPressable = target.matches('button, input, a, summary');
    if (key === '/') onField();
    else if ('1' <= key && key <= '4') onFocus(Number(key) - 1);
    else if (key === ' ' && !isPressable) onPause();
    else if (key === 'Escape') onBack();
    else if (key === 't' || key === 'T') onTable();
    else if (key === '?') onHelp();
    else return;
    event.preventDefault();
  });
}
