// Draws the hosts of a crawl: each host that led to others in the middle of those it led to, like the seeds of
// a sunflower. The same data always gives the same picture, and 10,000 hosts are placed in a few milliseconds.
"use strict";

(() => {
  const canvas = document.getElementById("graph");
  if (!canvas) return;
  const told = document.getElementById("graph-told");
  const pen = canvas.getContext("2d");
  const GOLDEN = Math.PI * (3 - Math.sqrt(5));
  const MARGIN = 24, LARGEST = 4;
  let hosts = [], links = [], view = { x: 0, y: 0, zoom: 1, size: 1 }, pointed = -1;

  const count = (number) => number.toLocaleString("en");
  const radius = (host) => 2 + 1.6 * Math.log2(1 + host.datasets + host.urls / 10);
  const pixels = () => window.devicePixelRatio || 1;
  // Hosts grow with the zoom, but only so far: then there is room between them.
  const drawn = (host) => host.radius * Math.min(view.size, LARGEST * pixels() / view.zoom);

  // Each host belongs to the one that led to it most often; whoever belongs to nobody is a centre.
  function parents(data) {
    const strongest = data.hosts.map(() => ({ by: -1, times: 0 }));
    for (const [from, to, times] of data.links) {
      if (times > strongest[to].times && strongest[from].by !== to) strongest[to] = { by: from, times };
    }
    return strongest.map((each, place) => root(strongest, place, each.by));
  }

  function root(strongest, place, by) {
    for (let step = 0; by >= 0 && step < 50; step++) {
      const above = strongest[by].by;
      if (above < 0 || above === place) return by;
      by = above;
    }
    return by;
  }

  function sunflower(members, x, y) {
    let reach = 0;
    const step = Math.max(9, 1.8 * members.reduce((sum, host) => sum + host.radius, 0) / members.length);
    members.forEach((host, place) => {
      const distance = place === 0 ? 0 : step * Math.sqrt(place + 1) + members[0].radius;
      host.x = x + distance * Math.cos(place * GOLDEN);
      host.y = y + distance * Math.sin(place * GOLDEN);
      reach = Math.max(reach, distance + host.radius);
    });
    return reach;
  }

  // Groups on a spiral, the largest in the middle, each as far out as those before it need.
  function arrange(groups) {
    let area = 0;
    groups.forEach((group, place) => {
      const reach = sunflower(group, 0, 0) + 12;
      area += reach * reach;
      const distance = place === 0 ? 0 : Math.sqrt(area) * 1.3;
      for (const host of group) {
        host.x += distance * Math.cos(place * GOLDEN);
        host.y += distance * Math.sin(place * GOLDEN);
      }
    });
  }

  // Whoever has no link stands around all others.
  function surround(inside, lone) {
    let far = 0;
    for (const host of inside) far = Math.max(far, Math.hypot(host.x, host.y) + host.radius + 15);
    lone.forEach((host, place) => {
      const distance = Math.sqrt(far * far + 81 * (place + 1));
      host.x = distance * Math.cos(place * GOLDEN);
      host.y = distance * Math.sin(place * GOLDEN);
    });
  }

  // Hosts whose name has a text in it, with those that they have links with.
  function chosen(data, text, watched) {
    const matches = data.hosts.map((name, i) => name.includes(text) && (!watched || data.datasets[i] > 0));
    const wanted = [...matches];
    for (const [from, to] of text ? data.links : []) {
      wanted[from] = wanted[from] || matches[to];
      wanted[to] = wanted[to] || matches[from];
    }
    const places = [];
    const rows = data.hosts.map((_, i) => i).filter((i) => wanted[i]);
    rows.forEach((i, place) => { places[i] = place; });
    const pairs = data.links.filter(([from, to]) => wanted[from] && wanted[to]);
    return {
      hosts: rows.map((i) => data.hosts[i]), datasets: rows.map((i) => data.datasets[i]), urls: rows.map((i) => data.urls[i]),
      links: pairs.map(([from, to, times]) => [places[from], places[to], times]),
    };
  }

  function place(data) {
    hosts = data.hosts.map((name, i) => ({ name, datasets: data.datasets[i], urls: data.urls[i] }));
    for (const host of hosts) host.radius = radius(host);
    links = data.links;
    const groups = new Map();
    parents(data).forEach((by, i) => {
      const centre = by < 0 ? i : by;
      if (!groups.has(centre)) groups.set(centre, []);
      if (centre === i) groups.get(centre).unshift(hosts[i]); else groups.get(centre).push(hosts[i]);
    });
    const lone = [...groups.values()].filter((group) => group.length === 1).flat();
    const many = [...groups.values()].filter((group) => group.length > 1).sort((a, b) => b.length - a.length);
    arrange(many);
    surround(many.flat(), lone);
    for (const host of hosts) host.across = host.x;
  }

  // What is drawn is round, the canvas is not: it is stretched until it fills both its sides.
  function fit() {
    const box = canvas.getBoundingClientRect();
    const scale = pixels();
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
    const ends = (values) => [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
    const [left, right] = ends(hosts.map((host) => host.across)), [top, bottom] = ends(hosts.map((host) => host.y));
    const widest = Math.max(right - left, 1), highest = Math.max(bottom - top, 1), largest = ends(hosts.map((host) => host.radius))[1];
    const edge = MARGIN * scale + largest * Math.min(LARGEST * scale, canvas.height / highest);
    const zoom = Math.max(canvas.height - 2 * edge, scale) / highest;
    const stretch = Math.max(canvas.width - 2 * edge, scale) / zoom / widest;
    for (const host of hosts) host.x = host.across * stretch;
    view = { zoom, size: Math.min(1, stretch), x: (canvas.width - (left + right) * stretch * zoom) / 2, y: (canvas.height - (top + bottom) * zoom) / 2 };
    draw();
  }

  function draw() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.setTransform(view.zoom, 0, 0, view.zoom, view.x, view.y);
    drawLinks(colour("--second"), colour("--accent"));
    drawHosts(colour("--accent"), colour("--second"));
    drawNames(colour("--ink"), colour("--panel"));
    canvas.dataset.drawn = String(hosts.length);
  }

  function drawLinks(quiet, loud) {
    pen.lineWidth = pixels() * (links.length < 1000 ? 1.2 : 0.6) / view.zoom;
    for (const [colour, ours] of [[quiet, false], [loud, true]]) {
      pen.strokeStyle = colour;
      pen.globalAlpha = ours ? 0.9 : links.length < 1000 ? 0.8 : 0.25;
      pen.beginPath();
      for (const [from, to] of links) {
        if ((from === pointed || to === pointed) !== ours) continue;
        pen.moveTo(hosts[from].x, hosts[from].y);
        pen.lineTo(hosts[to].x, hosts[to].y);
      }
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  function drawHosts(filled, empty) {
    for (const [colour, wanted] of [[empty, false], [filled, true]]) {
      pen.fillStyle = colour;
      pen.beginPath();
      for (const host of hosts) {
        if ((host.datasets > 0) !== wanted) continue;
        pen.moveTo(host.x + drawn(host), host.y);
        pen.arc(host.x, host.y, drawn(host), 0, 2 * Math.PI);
      }
      pen.fill();
    }
  }

  // The host that is pointed at comes first, then the largest; a name that has no room is left out.
  function drawNames(ink, paper) {
    const scale = pixels();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    Object.assign(pen, { fillStyle: ink, strokeStyle: paper, lineWidth: 3 * scale, lineJoin: "round", textAlign: "center" });
    pen.font = `${12 * scale}px system-ui, sans-serif`;
    const written = [];
    for (const host of pointed < 0 ? hosts : [hosts[pointed], ...hosts]) {
      const size = drawn(host) * view.zoom;
      if (written.length && (size < 4 * scale || written.length > 80)) continue;
      const wide = pen.measureText(host.name).width / 2 + 2 * scale;
      const y = host.y * view.zoom + view.y - size - 4 * scale;
      const middle = host.x * view.zoom + view.x;
      if (middle < 0 || middle > canvas.width || y < 0 || y - size > canvas.height) continue;
      const x = Math.min(Math.max(middle, wide), canvas.width - wide);
      if (!written.every((each) => Math.abs(each.x - x) > each.wide + wide || Math.abs(each.y - y) > 15 * scale)) continue;
      pen.strokeText(host.name, x, y);
      pen.fillText(host.name, x, y);
      written.push({ x, y, wide });
    }
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width;
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  }

  function nearest(spot) {
    const x = (spot.x - view.x) / view.zoom, y = (spot.y - view.y) / view.zoom;
    let best = -1, least = 12 / view.zoom;
    hosts.forEach((host, i) => {
      const away = Math.hypot(host.x - x, host.y - y) - drawn(host);
      if (away < least) { least = away; best = i; }
    });
    return best;
  }

  function point(i) {
    if (i === pointed) return;
    pointed = i;
    canvas.style.cursor = i < 0 ? "grab" : "pointer";
    const host = hosts[i];
    told.textContent = host ? `${host.name}: ${count(host.datasets)} datasets, ${count(host.urls)} addresses known` : told.dataset.usual;
    draw();
  }

  function zoom(spot, factor) {
    view = { ...view, zoom: view.zoom * factor, x: spot.x - (spot.x - view.x) * factor, y: spot.y - (spot.y - view.y) * factor };
    draw();
  }

  function watch() {
    let held = null, moved = false;
    canvas.addEventListener("pointerdown", (event) => { held = at(event); moved = false; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", (event) => {
      held = null;
      const found = nearest(at(event));
      if (!moved && found >= 0) location.href = `/host/${encodeURIComponent(hosts[found].name)}`;
    });
    canvas.addEventListener("pointermove", (event) => {
      const spot = at(event);
      if (!held) { point(nearest(spot)); return; }
      moved = moved || Math.hypot(spot.x - held.x, spot.y - held.y) > 4;
      view = { ...view, x: view.x + spot.x - held.x, y: view.y + spot.y - held.y };
      held = spot;
      draw();
    });
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(at(event), event.deltaY < 0 ? 1.2 : 1 / 1.2); }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const middle = { x: canvas.width / 2, y: canvas.height / 2 };
      const moves = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
      if (event.key === "+" || event.key === "=") zoom(middle, 1.25);
      else if (event.key === "-") zoom(middle, 0.8);
      else if (event.key === "0") fit();
      else if (moves[event.key]) { view = { ...view, x: view.x + moves[event.key][0], y: view.y + moves[event.key][1] }; draw(); }
      else return;
      event.preventDefault();
    });
    const middle = () => ({ x: canvas.width / 2, y: canvas.height / 2 });
    const acts = { in: () => zoom(middle(), 1.5), out: () => zoom(middle(), 1 / 1.5), all: fit };
    for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", acts[button.dataset.zoom]);
    window.addEventListener("resize", fit);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  function choose(data, form) {
    const { text, watched } = form.elements;
    pointed = -1;
    place(chosen(data, text.value.trim().toLowerCase(), watched.checked));
    told.textContent = hosts.length ? told.dataset.usual : "No host matches.";
    fit();
  }

  fetch(canvas.dataset.from).then((answer) => answer.json()).then((data) => {
    const form = document.getElementById("graph-filter");
    form.hidden = false;
    form.addEventListener("input", () => choose(data, form));
    form.addEventListener("submit", (event) => event.preventDefault());
    choose(data, form);
    watch();
  });
})();
