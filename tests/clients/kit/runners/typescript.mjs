// As python_blocking.py, with the package that is built in the folder SLUICE_TYPESCRIPT.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { text } from 'node:stream/consumers';

const { Client, Disconnected, Refused, SluiceError } = await import(pathToFileURL(`${process.env.SLUICE_TYPESCRIPT}/index.js`));
const plan = JSON.parse(await text(process.stdin));
let count = 0;
const client = new Client(plan.url, {
  token: plan.token ?? (plan.renews ? () => `token-${++count}` : 'token-1'),
  maxTries: plan.max_tries ?? undefined,
  silenceMs: plan.silence_s * 1000,
  waitScale: 0.02,
  transport: plan.transport === 'websocket' ? createRequire(`${process.env.SLUICE_TYPESCRIPT}/index.js`)('ws').WebSocket : 'fetch',
});
let end = 'complete';
try {
  for await (const message of client[plan.stream](plan.parameters)) console.log(JSON.stringify(message));
} catch (error) {
  if (!(error instanceof SluiceError)) throw error;
  end = error instanceof Disconnected ? error.code : error instanceof Refused ? String(error.status) : error.name;
}
process.stdout.write(`${JSON.stringify({ end })}\n`, () => process.exit()); // a dead connection would be waited for
