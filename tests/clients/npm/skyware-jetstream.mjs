// @skyware/jetstream: what it wants is in the URL, and so is the token.
import { Jetstream } from '@skyware/jetstream';
import WebSocket from 'ws';
import { TOKEN, URL, tell } from './told.mjs';

const POST = 'app.bsky.feed.post';
const endpoint = `${URL.replace('http', 'ws')}/subscribe?access_token=${TOKEN}`;
const jetstream = new Jetstream({ ws: WebSocket, endpoint, wantedCollections: [POST] });

jetstream.onCreate(POST, ({ did, commit }) => tell({ post: commit.rkey, text: commit.record.text, user: did }));
jetstream.onDelete(POST, ({ commit }) => tell({ deleted: commit.rkey }));
jetstream.start();
