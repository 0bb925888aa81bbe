// twit: POST with a form, OAuth 1.0a.
import Twit from 'twit';
import { TOKEN, URL, tell } from './told.mjs';

const client = new Twit({ consumer_key: 'key', consumer_secret: 'secret', access_token: TOKEN,
  access_token_secret: 'secret' });
const stream = client.stream(`${URL}/1.1/statuses/filter.json`, { track: ['tea', 'coffee'] });
stream.on('tweet', ({ id_str: id, text, user }) => tell({ post: id, text, user: user.screen_name }));
stream.on('delete', ({ delete: { status } }) => tell({ deleted: status.id_str }));
stream.on('connected', () => tell({ connected: true }));
stream.on('error', ({ statusCode, message }) => tell({ refused: statusCode, message }));
