// Renders openapi.yaml and asyncapi.yaml as the page at /docs: one document without scripts, for searching and
// printing. Each schema is shown as JSON in an element that can be opened.

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

// The subset of Markdown that the descriptions use: paragraphs and `code`.
const prose = (text) => (text ?? '').trim().split(/\n\s*\n/).filter(Boolean)
  .map((part) => `<p>${escape(part).replace(/`([^`]+)`/g, '<code>$1</code>')}</p>`).join('\n');

const code = (text) => `<code>${escape(text)}</code>`;
const slug = (text) => text.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '').toLowerCase();
const json = (value) => `<pre><code>${escape(JSON.stringify(value, null, 2))}</code></pre>`;
const fold = (title, body, id = '') => `<details${id && ` id="${id}"`}><summary>${title}</summary>\n${body}\n</details>`;

function resolver(document) {
  return (thing) => {
    while (thing && thing.$ref) {
      thing = thing.$ref.slice(2).split('/').reduce((at, key) => at[key.replaceAll('~1', '/').replaceAll('~0', '~')], document);
    }
    return thing;
  };
}

const nameOf = (thing) => thing?.$ref?.split('/').pop();

const schemaLink = (prefix, schema) => {
  const name = nameOf(schema) ?? nameOf(schema?.items);
  return name ? `<a href="#${prefix}-${slug(name)}">${escape(name)}</a>` : code(schema?.type ?? (schema?.enum ?? []).join(', '));
};

function table(head, rows) {
  if (rows.length === 0) return '';
  const cells = (row, tag) => `<tr>${row.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<table><thead>${cells(head, 'th')}</thead><tbody>\n${rows.map((row) => cells(row, 'td')).join('\n')}\n</tbody></table>`;
}

function request(method, path, item, operation, resolve) {
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve);
  const body = resolve(operation.requestBody)?.content ?? {};
  return [
    `<h3 id="${slug(`${method} ${path}`)}">${code(`${method.toUpperCase()} ${path}`)}</h3>`,
    prose(operation.summary), prose(operation.description),
    table(['parameter', 'in', 'what'], parameters.map(({ name, in: where, required, schema, description }) => [
      code(name), escape(where) + (required ? ', required' : ''), prose(description ?? resolve(schema)?.description) || schemaLink('rest', schema)])),
    table(['body', 'schema'], Object.entries(body).map(([type, { schema }]) => [code(type), schemaLink('rest', schema)])),
    table(['status', 'what', 'schema'], Object.entries(operation.responses ?? {}).map(([status, response]) => {
      const found = resolve(response);
      return [code(status), prose(found.description), Object.values(found.content ?? {}).map(({ schema }) => schemaLink('rest', schema)).join(', ')];
    })),
  ].filter(Boolean).join('\n');
}

function rest(openapi) {
  const resolve = resolver(openapi);
  const methods = ['get', 'post', 'put', 'patch', 'delete'];
  const all = Object.entries(openapi.paths).flatMap(([path, item]) =>
    methods.filter((method) => item[method]).map((method) => ({ method, path, item, operation: item[method] })));
  return {
    index: all.map(({ method, path }) => `<li><a href="#${slug(`${method} ${path}`)}">${code(`${method.toUpperCase()} ${path}`)}</a></li>`).join('\n'),
    body: all.map(({ method, path, item, operation }) => request(method, path, item, operation, resolve)).join('\n'),
    schemas: Object.entries(openapi.components?.schemas ?? {}).map(([name, schema]) => fold(escape(name), prose(schema.description) + json(schema), `rest-${slug(name)}`)).join('\n'),
  };
}

function channel(name, { address, title, description, bindings, messages }, resolve) {
  const query = resolve(bindings?.ws?.query)?.properties ?? {};
  return [
    `<h3 id="stream-${slug(name)}">${code(address)}</h3>`, prose(title), prose(description),
    table(['parameter', 'what'], Object.entries(query).map(([key, schema]) => {
      const found = resolve(schema);
      const examples = found.examples ?? found.enum ?? (found.const ? [found.const] : []);
      return [code(key), prose(found.description) + examples.map(code).join(', ')];
    })),
    table(['message', 'what'], Object.entries(messages).map(([key, message]) => [
      `<a href="#message-${slug(nameOf(message) ?? key)}">${escape(key)}</a>`, prose(resolve(message).summary)])),
  ].filter(Boolean).join('\n');
}

function streams(asyncapi) {
  const resolve = resolver(asyncapi);
  const channels = Object.entries(asyncapi.channels);
  return {
    index: channels.map(([name, { address }]) => `<li><a href="#stream-${slug(name)}">${code(address)}</a></li>`).join('\n'),
    body: channels.map(([name, value]) => channel(name, value, resolve)).join('\n'),
    messages: Object.entries(asyncapi.components.messages).map(([name, { summary, description, payload, examples }]) =>
      fold(escape(name), prose(summary) + prose(description) + (examples ?? []).map(({ payload: example }) => json(example)).join('\n') + json(resolve(payload)), `message-${slug(name)}`)).join('\n'),
    schemas: Object.entries(asyncapi.components.schemas).map(([name, schema]) => fold(escape(name), json(schema))).join('\n'),
  };
}

export function referencePage(openapi, asyncapi) {
  const requests = rest(openapi);
  const events = streams(asyncapi);
  return `<!doctype html>
<html lang="en" data-theme="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sluice, the API</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/common.css">
<link rel="license" href="/licenses.txt">
</head>
<body class="reference-page">
<header class="bar">
  <a class="brand" href="/" aria-label="Sluice"><img src="/assets/icon.svg" alt="" width="26" height="26"><b>Sluice</b></a>
  <nav aria-label="Pages">
    <a href="/">Live</a>
    <a href="/status">Status</a>
    <a href="/docs" aria-current="page">API</a>
  </nav>
</header>
<main>
<h1>The API of this server</h1>
<p>For programs: <a href="/openapi.yaml">openapi.yaml</a> (<a href="/openapi.json">JSON</a>) and
<a href="/asyncapi.yaml">asyncapi.yaml</a> (<a href="/asyncapi.json">JSON</a>).</p>
<nav aria-label="On this page"><h2>Streams</h2><ul>
${events.index}
</ul><h2>Requests</h2><ul>
${requests.index}
</ul></nav>
<section><h2>Streams</h2>
${prose(asyncapi.info.description)}
${events.body}
<h3>Messages</h3>
${events.messages}
<h3>Schemas of messages</h3>
${events.schemas}
</section>
<section><h2>Requests</h2>
${prose(openapi.info.description)}
${requests.body}
<h3>Schemas of requests and answers</h3>
${requests.schemas}
</section>
</main>
</body>
</html>
`;
}
