// Comunica's link traversal, asked for all statements that can be reached from the seeds.
import { createWriteStream, readFileSync } from 'node:fs';
import { ActorRdfResolveHypermediaLinksQueueWrapperLimitCount as LimitCount }
  from '@comunica/actor-rdf-resolve-hypermedia-links-queue-wrapper-limit-count';
import { QueryEngine } from '@comunica/query-sparql-link-traversal';

// As shipped it gives up after 1000 links, which would be no fair comparison.
const run = LimitCount.prototype.run;
LimitCount.prototype.run = function (action) {
  this.limit = Number.MAX_SAFE_INTEGER;
  return run.call(this, action);
};

const [seedFile, scope, output] = process.argv.slice(2);
const within = new RegExp(scope);
const plainFetch = globalThis.fetch;
const fetchWithin = (input, init) => {
  const url = typeof input === 'string' ? input : (input.url ?? String(input));
  return within.test(url) ? plainFetch(input, init) : Promise.resolve(new Response('', { status: 404 }));
};
const written = (term) => {
  if (term.termType === 'NamedNode') return `<${term.value}>`;
  if (term.termType === 'BlankNode') return `_:${term.value.replace(/[^A-Za-z0-9]/g, 'x')}`;
  const text = JSON.stringify(term.value);
  return term.language ? `${text}@${term.language}` : `${text}^^<${term.datatype.value}>`;
};
const out = createWriteStream(output);
const sources = readFileSync(seedFile, 'utf8').split('\n').filter(Boolean);
const stream = await new QueryEngine().queryBindings('SELECT ?s ?p ?o WHERE { ?s ?p ?o }', {
  sources, lenient: true, fetch: fetchWithin,
});
stream.on('data', (row) => {
  out.write(`${written(row.get('s'))} ${written(row.get('p'))} ${written(row.get('o'))} .\n`);
});
stream.on('error', (error) => { console.error(String(error)); process.exitCode = 1; out.end(); });
stream.on('end', () => out.end());
