// command.js - prints the requests of the page as shell commands.

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export function curlCommand(origin, { path, parameters }) {
  const lines = ["curl -N -H \"Authorization: Bearer $TOKEN\""];
  const pairs = [...parameters];
  if (pairs.length > 0) lines[0] = lines[0].replace('-N', '-N -G');
  for (const [name, value] of pairs) lines.push(`  --data-urlencode ${quote(`${name}=${value}`)}`);
  lines.push(`  ${quote(origin + path)}`);
  return lines.join(' \\\n');
}

export function tailCommand(origin, { path, parameters }) {
  const lines = [`sluice tail --url ${quote(origin)}`, `  --token "$TOKEN" ${path.split('/').pop()}`];
  for (const [name, value] of parameters) lines.push(`  --${name.replaceAll('_', '-')} ${quote(value)}`);
  return lines.join(' \\\n');
}

export const exportCommand = (token) => `export TOKEN=${quote(token)}`;
