// masto: one WebSocket with messages; the token is its subprotocol.
import { createRestAPIClient, createStreamingAPIClient } from 'masto';
import WebSocket from 'ws';
import { TOKEN, URL, tell } from './told.mjs';

const rest = createRestAPIClient({ url: URL, accessToken: TOKEN });
const { configuration } = await rest.v2.instance.fetch();
const { id } = await rest.v1.accounts.verifyCredentials();
if (!id) throw new Error('verify_credentials does not say who this is');
const streaming = createStreamingAPIClient({ streamingApiUrl: configuration.urls.streaming, accessToken: TOKEN,
  implementation: WebSocket });

async function read(stream, events) {
  for await (const { event, payload } of events) {
    if (event === 'update') tell({ stream, post: payload.id, text: payload.content, user: payload.account.acct });
    if (event === 'delete') tell({ stream, deleted: payload });
  }
}

read('public', streaming.public.subscribe());
read('hashtag', streaming.hashtag.subscribe({ tag: 'tea' }));
