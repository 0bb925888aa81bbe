// twitter-api-v2, the streams of version 1.1: POST with a form, OAuth 1.0a; its base URL is
// constant.
import http from 'node:http';
import { createRequire } from 'node:module';
import { TOKEN, URL, tell } from './told.mjs';

const require = createRequire(import.meta.url);
const places = require('twitter-api-v2/dist/cjs/globals.js');
places.API_V1_1_STREAM_PREFIX = `${URL}/1.1/`;
const { ETwitterStreamEvent, TwitterApi } = require('twitter-api-v2');

const client = new TwitterApi({ appKey: 'key', appSecret: 'secret', accessToken: TOKEN, accessSecret: 'secret' },
  { httpAgent: new http.Agent() });
try {
  const stream = await client.v1.filterStream({ track: ['tea', 'coffee'] });
  stream.autoReconnect = true;
  stream.on(ETwitterStreamEvent.Data, (data) => tell(data.delete
    ? { deleted: data.delete.status.id_str }
    : { post: data.id_str, text: data.text, user: data.user.screen_name }));
  tell({ connected: true });
} catch (error) {
  tell({ refused: error.code, message: error.message });
}
