// worker.js - the connection's worker, begun before the page's own script is there; null: this browser shares none.

import { $ } from './dom.js';

const HUB = $('meta[name=hub]').content;

// The one script that a page may start by its address: gateway/front/site.c has the name.
const policy = globalThis.trustedTypes?.createPolicy('hub', {
  createScriptURL(url) {
    if (url !== HUB) throw new TypeError(`not the hub: ${url}`);
    return url;
  },
});

export const port = globalThis.SharedWorker
  ? new SharedWorker(policy ? policy.createScriptURL(HUB) : HUB, { type: 'module', name: 'sluice' }).port : null;
