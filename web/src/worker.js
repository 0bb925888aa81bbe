// worker.js - starts the shared worker of the connection before the page's own script is loaded; null: not supported.

import { $ } from './dom.js';

const HUB = $('meta[name=hub]').content;

// The only script that a page may start by its URL; gateway/front/site.c contains its name.
const policy = globalThis.trustedTypes?.createPolicy('hub', {
  createScriptURL(url) {
    if (url !== HUB) throw new TypeError(`not the hub: ${url}`);
    return url;
  },
});

export const port = globalThis.SharedWorker
  ? new SharedWorker(policy ? policy.createScriptURL(HUB) : HUB, { type: 'module', name: 'sluice' }).port : null;
