// access.js - the dialog for the token, which is shown only when a token is needed or on request.

import { $, copyText } from './dom.js';
import { exportCommand } from './command.js';
import { describeToken, getToken, permittedStreams, setToken } from './token.js';

const COMMAND = "sluice token --secret-file FILE --sub 1 \\\n  --scope 'stream:filter stream:firehose'";
const OTHERS = { filter: 'Use Filter, which it permits', sample: 'Use Sample, which it permits', home: 'Use Home, which it permits' };

export class Access {
  // onToken(): the token has changed; onOther(stream): show this stream instead, which the token permits.
  constructor({ onToken, onOther }) {
    this.dialog = $('#token-dialog');
    $('#token-command').textContent = COMMAND;
    $('#token-form').addEventListener('submit', () => {
      if ($('#token').value.trim() === getToken()) return;
      setToken($('#token').value);
      onToken();
    });
    $('#token-close').addEventListener('click', () => this.dialog.close());
    $('#you').addEventListener('click', () => this.ask('Token', getToken() ? 'This token is in use, only in this tab.' : ''));
    $('#copy-token').addEventListener('click', ({ target }) => copyText(target, exportCommand(getToken())));
    $('#use-other').addEventListener('click', () => {
      this.dialog.close();
      onOther(this.other);
    });
  }

  // `other`: a stream that the token permits instead.
  ask(title, what, other = null) {
    this.other = other;
    $('#token-title').textContent = title;
    $('#token-what').textContent = what;
    $('#token').value = getToken();
    $('#about-token').textContent = describeToken(getToken());
    $('#copy-token').disabled = !getToken();
    $('#use-other').hidden = !(other in OTHERS);
    $('#use-other').textContent = OTHERS[other] ?? '';
    if (!this.dialog.open) this.dialog.showModal();
    $('#token').focus();
  }

  // Returns false if the token does not permit the stream; then the dialog says so.
  permits(stream) {
    const permitted = permittedStreams(getToken());
    if (permitted.length === 0 || permitted.includes(stream)) return true; // the token does not say; the server will check
    const [other] = permitted.filter((one) => one in OTHERS);
    this.ask('This token does not permit this', `It has no scope stream:${stream}.`, other);
    return false;
  }
}
