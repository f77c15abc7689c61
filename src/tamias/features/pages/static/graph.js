// Draws the hosts of a crawl: each host that led to others in the middle of those it led to, like the seeds of
// a sunflower. The same data always gives the same picture, and 10,000 hosts are placed in a few milliseconds.
"use strict";

(() => {
  const canvas = document.getElementById("graph");
  if (!canvas) return;
  const told = document.getElementById("graph-told");
  const pen = canvas.getContext("2d");
  const GOLDEN = Math.PI * (3 - Math.sqrt(5));
  let hosts = [], links = [], view = { x: 0, y: 0, zoom: 1 }, pointed = -1;

  const count = (number) => number.toLocaleString("en");
  const radius = (host) => 2 + 1.6 * Math.log2(1 + host.datasets + host.urls / 10);

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
    members.forEach((host, place) => {
      const distance = place === 0 ? 0 : 9 * Math.sqrt(place + 1) + members[0].radius;
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
  }

  function fit() {
    const box = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
    let far = 20;
    for (const host of hosts) far = Math.max(far, Math.abs(host.x) + host.radius, Math.abs(host.y) + host.radius);
    view = { x: canvas.width / 2, y: canvas.height / 2, zoom: Math.min(6 * scale, Math.min(canvas.width, canvas.height) / 2 / far / 1.12) };
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
    drawNames(colour("--ink"));
    canvas.dataset.drawn = String(hosts.length);
  }

  function drawLinks(quiet, loud) {
    pen.lineWidth = (window.devicePixelRatio || 1) * (links.length < 1000 ? 1.2 : 0.6) / view.zoom;
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
        pen.moveTo(host.x + host.radius, host.y);
        pen.arc(host.x, host.y, host.radius, 0, 2 * Math.PI);
      }
      pen.fill();
    }
  }

  function drawNames(ink) {
    const scale = window.devicePixelRatio || 1;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = ink;
    pen.font = `${12 * scale}px system-ui, sans-serif`;
    pen.textAlign = "center";
    const written = [];
    hosts.forEach((host, i) => {
      if (i !== pointed && (host.radius * view.zoom < 5 * scale || written.length > 80)) return;
      const spot = { x: host.x * view.zoom + view.x, y: host.y * view.zoom + view.y - host.radius * view.zoom - 4 * scale };
      const wide = pen.measureText(host.name).width / 2;
      const free = written.every((each) => Math.abs(each.x - spot.x) > each.wide + wide || Math.abs(each.y - spot.y) > 14 * scale);
      if (i === pointed || free) { pen.fillText(host.name, spot.x, spot.y); written.push({ ...spot, wide }); }
    });
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
      const away = Math.hypot(host.x - x, host.y - y) - host.radius;
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
    view = { zoom: view.zoom * factor, x: spot.x - (spot.x - view.x) * factor, y: spot.y - (spot.y - view.y) * factor };
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
    window.addEventListener("resize", fit);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  fetch(canvas.dataset.from).then((answer) => answer.json()).then((data) => { place(data); fit(); watch(); });
})();
