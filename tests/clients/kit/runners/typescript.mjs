// Like python_blocking.py, with the package that is built in the folder SLUICE_TYPESCRIPT.
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
  transport: plan.transport !== 'http' ? createRequire(`${process.env.SLUICE_TYPESCRIPT}/index.js`)('ws').WebSocket : 'fetch',
};
const client = plan.transport === 'connection' ? new Connection(plan.url, options) : new Client(plan.url, options);

function open({ track, ...parameters }) {
  if (plan.transport === 'filters') return client.filters(plan.filters ?? { tea: { track } }, parameters);
  return client[plan.stream]({ track, ...parameters });
}

async function change(stream, [, name, filter]) {
  const [done, answer] = filter ? ['subscribed', stream.subscribe(name, filter)] : ['unsubscribed', stream.unsubscribe(name)];
  console.log(JSON.stringify({ answer: await answer.then(() => done, ({ code }) => code) }));
}

async function read(parameters) {
  try {
    const stream = open(parameters);
    let given = 0;
    for await (const message of stream) {
      console.log(JSON.stringify(message));
      given++;
      for (const wanted of plan.changes ?? []) if (wanted[0] === given) await change(stream, wanted);
    }
    return 'complete';
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return error instanceof Refused ? String(error.status || error.code) : error instanceof Disconnected ? error.code : error.name;
  }
}

const [end] = await Promise.all([plan.parameters, ...(plan.others ?? [])].map(read));
process.stdout.write(`${JSON.stringify({ end })}\n`, () => process.exit()); // otherwise it would wait for a dead connection
