// As python_blocking.py, with the package that is built in the folder SLUICE_TYPESCRIPT.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { text } from 'node:stream/consumers';

const { Client, Connection, Disconnected, Refused, SluiceError } = await import(pathToFileURL(`${process.env.SLUICE_TYPESCRIPT}/index.js`));
const plan = JSON.parse(await text(process.stdin));
let count = 0;
const options = {
  token: plan.token ?? (plan.renews ? () => `token-${++count}` : 'token-1'),
  maxTries: plan.max_tries ?? undefined,
  silenceMs: plan.silence_s * 1000,
  waitScale: 0.02,
  transport: ['websocket', 'connection'].includes(plan.transport) ? createRequire(`${process.env.SLUICE_TYPESCRIPT}/index.js`)('ws').WebSocket : 'fetch',
};
const client = plan.transport === 'connection' ? new Connection(plan.url, options) : new Client(plan.url, options);

async function read(parameters) {
  try {
    for await (const message of client[plan.stream](parameters)) console.log(JSON.stringify(message));
    return 'complete';
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return error instanceof Refused ? String(error.status || error.code) : error instanceof Disconnected ? error.code : error.name;
  }
}

const [end] = await Promise.all([plan.parameters, ...(plan.others ?? [])].map(read));
process.stdout.write(`${JSON.stringify({ end })}\n`, () => process.exit()); // a dead connection would be waited for
