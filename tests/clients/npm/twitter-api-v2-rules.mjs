// twitter-api-v2, the filtered stream of version 2: rules first; Bearer.
import http from 'node:http';
import { createRequire } from 'node:module';
import { TOKEN, URL, tell } from './told.mjs';

const require = createRequire(import.meta.url);
require('twitter-api-v2/dist/cjs/globals.js').API_V2_PREFIX = `${URL}/2/`;
const { ETwitterStreamEvent, TwitterApi } = require('twitter-api-v2');

const { v2 } = new TwitterApi(TOKEN, { httpAgent: new http.Agent() });
try {
  const added = await v2.updateStreamRules({ add: [{ value: '#tea', tag: 'hot' }] });
  const { data: rules } = await v2.streamRules();
  tell({ added: added.meta.summary.created, rules });
  const stream = await v2.searchStream({ expansions: ['author_id'], 'tweet.fields': ['created_at'],
    'user.fields': ['username'] });
  stream.autoReconnect = true;
  stream.on(ETwitterStreamEvent.Data, ({ data, includes, matching_rules: matching }) => tell({ post: data.id,
    text: data.text, user: includes.users.find(({ id }) => id === data.author_id).username,
    tags: matching.map(({ tag }) => tag) }));
} catch (error) {
  tell({ refused: error.code, message: error.message });
}
