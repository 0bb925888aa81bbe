// twit without a user: it requests a token with its key and secret, then uses Bearer.
import { createRequire } from 'node:module';
import Twit from 'twit';
import { TOKEN, URL, tell } from './told.mjs';

createRequire(import.meta.url)('twit/lib/endpoints').API_HOST = `${URL}/`;
const client = new Twit({ consumer_key: 'key', consumer_secret: TOKEN, app_only_auth: true });
const stream = client.stream(`${URL}/1.1/statuses/filter.json`, { track: 'tea' });
stream.on('tweet', ({ id_str: id, text, user }) => tell({ post: id, text, user: user.screen_name }));
stream.on('delete', ({ delete: { status } }) => tell({ deleted: status.id_str }));
stream.on('error', ({ statusCode, message }) => tell({ refused: statusCode, message }));
