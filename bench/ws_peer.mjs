// ws_peer.mjs - what the package ws costs: each message of a Redis channel is sent to every
// WebSocket.
//
//     node bench/ws_peer.mjs PORT REDIS_PORT CHANNEL PACKAGES [deflate]
//
// PACKAGES is a folder with node_modules. With `deflate` ws compresses as it does by default: with
// a context for each client.
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import process from 'node:process';

const [port, redisPort, channel, packages, deflate] = process.argv.slice(2);
const { WebSocketServer } = createRequire(path.join(path.resolve(packages), 'package.json'))('ws');

const server = new WebSocketServer({ host: '127.0.0.1', port: Number(port), perMessageDeflate: deflate === 'deflate',
  backlog: 4096 });

function broadcast(message) {
  for (const client of server.clients) client.send(message, { binary: false });
}

// Parses the reply of Redis at `at`: [value, end], or null while it is incomplete.
function parse(bytes, at) {
  const end = bytes.indexOf('\r\n', at);
  if (end < 0) return null;
  const number = Number(bytes.toString('latin1', at + 1, end));
  const begin = end + 2;
  switch (String.fromCharCode(bytes[at])) {
    case ':': return [number, begin];
    case '$':
      return bytes.length < begin + number + 2 ? null : [bytes.subarray(begin, begin + number), begin + number + 2];
    case '*': {
      const values = [];
      let next = begin;
      while (values.length < number) {
        const value = parse(bytes, next);
        if (!value) return null;
        values.push(value[0]);
        next = value[1];
      }
      return [values, next];
    }
    default: throw new Error(`Redis says ${bytes.toString('latin1', at, end)}`);
  }
}

let kept = Buffer.alloc(0);
const redis = net.connect(Number(redisPort), '127.0.0.1', () => {
  redis.write(`*2\r\n$9\r\nSUBSCRIBE\r\n$${Buffer.byteLength(channel)}\r\n${channel}\r\n`);
});
redis.on('data', (bytes) => {
  kept = kept.length > 0 ? Buffer.concat([kept, bytes]) : bytes;
  for (let reply; (reply = parse(kept, 0)); kept = kept.subarray(reply[1])) {
    if (reply[0][0].toString() === 'message') broadcast(Buffer.from(reply[0][2]));
  }
});
