// OSTRICH: loads the versions in FOLDER and answers its queries: node ostrich.js PACKAGE FOLDER
const fs = require("fs"), path = require("path"), { promisify } = require("util");
const [, , place, folder] = process.argv, ostrich = require(path.resolve(place, "lib/ostrich"));
const read = (name) => fs.readFileSync(path.join(folder, name), "utf8");
const bare = (term) => term.startsWith("<") ? term.slice(1, -1) : term;
const short = (term) => bare(term).replace(/\^\^<(.*)>$/, "^^$1");  // to look up; literals are loaded as they are
const long = (term) => term.startsWith('"') ? term.replace(/\^\^(.*)$/, "^^<$1>") : `<${term}>`;
const triple = (line, addition) => {
  const [subject, predicate, ...rest] = line.split(" ");
  return { subject: bare(subject), predicate: bare(predicate), object: bare(rest.slice(0, -1).join(" ")), addition };
};
const text = (each) => `${long(each.subject)} ${long(each.predicate)} ${long(each.object)} .`;
const seconds = () => Number(process.hrtime.bigint()) / 1e9;
async function main() {
  const store = await promisify(ostrich.fromPath)(path.join(folder, "store"), false), began = seconds();
  const call = (name, ...words) => new Promise((done, failed) =>
    store[name](...words, (error, found) => error ? failed(error) : done(found)));
  let before = new Set();
  for (const [version, name] of fs.readdirSync(folder).filter((each) => each.endsWith(".nt")).sort().entries()) {
    const now = new Set(read(name).trim().split("\n"));
    const changes = [...now].filter((line) => !before.has(line)).map((line) => triple(line, true));
    await call("append", version, changes.concat([...before].filter((line) => !now.has(line)).map((line) => triple(line, false))));
    before = now;
  }
  const result = { load: seconds() - began, times: { VM: [], DM: [], VQ: [] }, answers: { VM: [], DM: [], VQ: [] } };
  const timed = async (kind, name, options, pattern, form) => {
    const start = seconds(), found = await call(name, null, ...pattern, options);
    result.times[kind].push(seconds() - start);
    result.answers[kind].push(found.map(form));
  };
  for (const [predicate, value, old, now] of JSON.parse(read("queries.json"))) {
    const pattern = [short(predicate), value && short(value)];
    await timed("VM", "searchTriplesVersionMaterialized", { version: old }, pattern, text);
    await timed("DM", "searchTriplesDeltaMaterialized", { versionStart: old, versionEnd: now }, pattern,
      (each) => (each.addition ? "+" : "-") + text(each));
    await timed("VQ", "searchTriplesVersion", {}, pattern, (each) => text(each) + each.versions.join(" "));
  }
  fs.writeFileSync(path.join(folder, "result.json"), JSON.stringify(result));
  store.close();
}
main();
