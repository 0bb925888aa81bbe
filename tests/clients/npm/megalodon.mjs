// megalodon: a WebSocket for each stream, the token in its URL.
import { createRequire } from 'node:module';
import { TOKEN, URL, tell } from './told.mjs';

const { default: generator, detector } = createRequire(import.meta.url)('megalodon');
const stream = await generator(await detector(URL), URL, TOKEN).publicStreaming();
stream.on('connect', () => tell({ connected: true }));
stream.on('update', ({ id, content, account }) => tell({ post: id, text: content, user: account.acct }));
stream.on('delete', (id) => tell({ deleted: id }));
stream.on('error', (error) => tell({ refused: error.message }));
