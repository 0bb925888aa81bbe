// Checks the types, then writes the package's files: two modules, small, and their types.
//
//     node scripts/build.mjs FOLDER_WITH_NODE_MODULES OUTPUT_FOLDER
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const MAX_BYTES = 8192;
const here = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const [packages, output] = process.argv.slice(2).map((folder) => path.resolve(folder));
const load = createRequire(path.join(packages, 'package.json'));

const tsc = spawnSync(process.execPath, [path.join(path.dirname(load.resolve('typescript/package.json')), 'bin/tsc'), '-p', here,
  '--outDir', output, '--emitDeclarationOnly'], { stdio: 'inherit' });
if (tsc.status !== 0) process.exit(1);
load('esbuild').buildSync({
  absWorkingDir: here,
  entryPoints: ['src/index.ts', 'src/worker.ts'],
  outdir: output,
  bundle: true,
  format: 'esm',
  minify: true,
  target: ['es2022'],
});
for (const name of ['index.js', 'worker.js']) {
  const size = gzipSync(readFileSync(path.join(output, name)), { level: 9 }).length;
  console.log(`${name}: ${size} bytes compressed`);
  if (size > MAX_BYTES) throw new Error(`${name} is larger than ${MAX_BYTES} bytes`);
}
