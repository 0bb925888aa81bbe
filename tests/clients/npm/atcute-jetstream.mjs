// @atcute/jetstream: what it wants is sent as a message; the token can only be a password. It
// checks each event.
import { JetstreamSubscription } from '@atcute/jetstream';
import WebSocket from 'ws';
import { TOKEN, URL, tell } from './told.mjs';

const subscription = new JetstreamSubscription({
  url: URL.replace('http://', `ws://jwt:${TOKEN}@`),
  wantedCollections: ['app.bsky.feed.post'],
  ws: { WebSocket },
  onError: (error) => { throw error; },
});

for await (const { did, kind, commit } of subscription) {
  if (kind !== 'commit') continue;
  if (commit.operation === 'create') tell({ post: commit.rkey, text: commit.record.text, user: did });
  else tell({ deleted: commit.rkey });
}
