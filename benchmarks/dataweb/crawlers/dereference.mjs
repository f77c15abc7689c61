// rdf-dereference in a plain breadth-first loop: every IRI of every document within the scope, once.
import { createWriteStream, readFileSync } from 'node:fs';
import { rdfDereferencer } from 'rdf-dereference';

const AT_ONCE = 64;
const [seedFile, scope, output] = process.argv.slice(2);
const within = new RegExp(scope);
const out = createWriteStream(output);
const seen = new Set();
const waiting = [];
const add = (iri) => {
  const url = iri.split('#')[0];
  if (!seen.has(url) && within.test(url)) { seen.add(url); waiting.push(url); }
};
const written = (term) => {
  if (term.termType === 'NamedNode') return `<${term.value}>`;
  if (term.termType === 'BlankNode') return `_:${term.value.replace(/[^A-Za-z0-9]/g, 'x')}`;
  const text = JSON.stringify(term.value);
  return term.language ? `${text}@${term.language}` : `${text}^^<${term.datatype.value}>`;
};
const visit = async (url) => {
  try {
    const { data } = await rdfDereferencer.dereference(url);
    for await (const { subject, predicate, object } of data) {
      out.write(`${written(subject)} ${written(predicate)} ${written(object)} .\n`);
      for (const term of [subject, predicate, object]) if (term.termType === 'NamedNode') add(term.value);
    }
  } catch { /* not RDF, or not there */ }
};
readFileSync(seedFile, 'utf8').split('\n').filter(Boolean).forEach(add);
let running = 0;
await new Promise((done) => {
  const next = () => {
    while (running < AT_ONCE && waiting.length) {
      running += 1;
      visit(waiting.shift()).then(() => { running -= 1; next(); });
    }
    if (!running && !waiting.length) done();
  };
  next();
});
out.end();
